{{ config(materialized="incremental", incremental_strategy="append") }}
select id, amount, day from {{ ref("deliveries") }}
{% if is_incremental() %}where day > (select max(day) from {{ this }}){% endif %}
