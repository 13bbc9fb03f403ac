-- The rows that have arrived by a day: {{ var("day") }}.
{{ config(materialized="view") }}
select id, shop, amount, cast(day as date) as day, cast(day as timestamp) as at
from values
    (1, 'a', 10, '2026-01-01', 1),
    (2, 'b', 20, '2026-01-01', 1),
    (2, 'b', 21, '2026-01-02', 2),
    (3, 'a', 30, '2026-01-02', 2)
    as rows(id, shop, amount, day, arrived)
where arrived <= {{ var("day") }}
