SELECT
  CAST(window.start AS DATE) AS day,
  window.start AS window_start,
  window.end AS window_end,
  page,
  count(*) AS views,
  approx_count_distinct(user_id) AS unique_users,
  -- of actions that are equally frequent the first by the alphabet
  mode(action, true) AS top_action
FROM clicks
GROUP BY window(timestamp, '5 minutes'), page
