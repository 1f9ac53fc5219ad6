CREATE OR REFRESH STREAMING TABLE ${silver}.late
AS SELECT ship FROM STREAM(${silver}.arrivals) WHERE minutes_late > 0;

CREATE OR REFRESH MATERIALIZED VIEW ${silver}.delays AS SELECT ship, delay FROM ${silver}.late;
