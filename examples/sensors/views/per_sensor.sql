SELECT
  sensor_id,
  count(*) AS readings,
  avg(value) AS mean_value,
  stddev(value) AS deviation,
  min(value) AS lowest,
  max(value) AS highest,
  -- each code once, in the order of the alphabet
  array_sort(collect_set(error_code)) AS error_codes,
  max(event_time) AS last_seen
FROM readings
GROUP BY sensor_id
