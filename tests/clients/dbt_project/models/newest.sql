{{ config(materialized="ephemeral") }}
select id, shop, amount, day
from (select *, row_number() over (partition by id order by day desc) as place from {{ ref("deliveries") }}) as ranked
where place = 1
