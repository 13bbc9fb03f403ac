{{ config(materialized="table") }}
select city, sum(amount) as amount from {{ ref("newest") }} join {{ ref("shops") }} using (shop) group by city
