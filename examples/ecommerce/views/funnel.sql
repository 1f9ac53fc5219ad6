WITH events AS (
  SELECT 'click' AS kind, event_time FROM clicks
  UNION ALL
  SELECT 'cart' AS kind, event_time FROM cart_events
  UNION ALL
  SELECT 'purchase' AS kind, event_time FROM purchases
)

SELECT
  window.start AS window_start,
  window.end AS window_end,
  count_if(kind = 'click') AS click_count,
  count_if(kind = 'cart') AS cart_count,
  count_if(kind = 'purchase') AS purchase_count,
  -- NULL, not an error, in a window without clicks
  try_divide(count_if(kind = 'purchase'), count_if(kind = 'click')) AS conversion_rate
FROM events
GROUP BY window(event_time, '15 minutes')
