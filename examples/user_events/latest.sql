-- The last row of each key: what a reader of the files in update mode asks for.
SELECT window_start, action, event_count, total_amount, unique_users
FROM (
  SELECT *, row_number() OVER (PARTITION BY window_start, action ORDER BY batch DESC) AS version
  FROM parquet.`lake/event_summary`
)
WHERE version = 1
ORDER BY window_start, action
