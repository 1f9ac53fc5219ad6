-- Orders, and what is made of them.
CREATE STREAMING TABLE orders COMMENT 'every order; once' AS
SELECT value AS order_id, value % 10 AS user_id, timestamp AS ordered_at
FROM STREAM raw_orders;

CREATE MATERIALIZED VIEW by_user AS
SELECT user_id, count(*) AS n FROM orders GROUP BY user_id;

CREATE STREAMING TABLE totals AS
SELECT user_id, count(*) AS n
FROM STREAM default.orders
GROUP BY user_id;  -- error: [MS201]

CREATE STREAMING TABLE all_orders;

CREATE FLOW copied AS INSERT INTO all_orders BY NAME
SELECT * FROM STREAM(orders);
