WITH events AS (
  SELECT ad_id, impression_time, 0 AS clicked FROM impressions
  UNION ALL
  SELECT ad_id, impression_time, 1 AS clicked FROM clicked
)

SELECT
  ad_id,
  window.start AS window_start,
  window.end AS window_end,
  count_if(clicked = 0) AS impressions,
  count_if(clicked = 1) AS clicked,
  -- A window without impressions has no clicked ones either.
  try_divide(count_if(clicked = 1), count_if(clicked = 0)) AS ctr
FROM events
GROUP BY window(impression_time, '1 hour'), ad_id
