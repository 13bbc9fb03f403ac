{{ config(materialized="incremental", incremental_strategy="merge", unique_key="id", on_schema_change="append_new_columns") }}
select id, amount, day {% if var("day") > 1 %}, shop{% endif %} from {{ ref("deliveries") }}
{% if is_incremental() %}where day > (select max(day) from {{ this }}){% endif %}
