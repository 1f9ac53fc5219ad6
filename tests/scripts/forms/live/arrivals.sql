-- Databricks notebook source
CREATE OR REFRESH STREAMING LIVE TABLE arrivals COMMENT "as they come"
AS SELECT *, current_timestamp() AS read_at FROM STREAM(port.raw.arrivals)

-- COMMAND ----------

CREATE STREAMING LIVE TABLE ships (CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION DROP ROW)
AS SELECT * FROM cloud_files("/Volumes/port/ships", "json")

-- COMMAND ----------

CREATE LIVE TABLE per_flag
AS SELECT flag, count(*) AS ships FROM LIVE.ships GROUP BY flag;

CREATE OR REFRESH STREAMING TABLE berths (id INT, CONSTRAINT known EXPECT (id > 0), length DOUBLE);
CREATE FLOW filled AS INSERT INTO berths BY NAME SELECT id, length FROM STREAM read_files("/Volumes/port/berths");

CREATE MATERIALIZED VIEW long_berths AS
SELECT id, depth FROM berths WHERE length > 200;
