-- The 23 queries of Nexmark in DuckDB, over all events at once: what the tables of the pipeline must contain.
-- A view per query, over the tables person, auction, bid and side_input. A window counts as closed when the
-- watermark has passed its end: four seconds behind the newest event that the query reads.

CREATE VIEW q0 AS SELECT auction, bidder, price, dateTime, extra FROM bid;

CREATE VIEW q1 AS SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;

CREATE VIEW q2 AS SELECT auction, price FROM bid WHERE auction % 123 = 0;

CREATE VIEW q3 AS
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');

CREATE VIEW auction_bids AS
SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bid_dateTime, b.extra AS bid_extra
FROM auction a JOIN bid b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires;

CREATE VIEW q4 AS
SELECT category, avg(final) AS final
FROM (SELECT max(price) AS final, category FROM auction_bids GROUP BY id, category) GROUP BY category;

CREATE VIEW hops AS
SELECT auction, unnest(generate_series(
    time_bucket(INTERVAL '2 seconds', dateTime) - INTERVAL '8 seconds',
    time_bucket(INTERVAL '2 seconds', dateTime),
    INTERVAL '2 seconds')) AS starttime
FROM bid;

CREATE VIEW q5 AS
WITH counts AS (SELECT auction, starttime, count(*) AS num FROM hops GROUP BY auction, starttime)
SELECT starttime, starttime + INTERVAL '10 seconds' AS endtime, auction, num
FROM counts JOIN (SELECT starttime, max(num) AS num FROM counts GROUP BY starttime) USING (starttime, num)
WHERE starttime + INTERVAL '10 seconds' <= (SELECT max(dateTime) - INTERVAL '4 seconds' FROM bid);

CREATE VIEW q9 AS
SELECT * FROM auction_bids QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_dateTime) = 1;

CREATE VIEW q6 AS
SELECT seller, id AS auction,
    avg(price) OVER (PARTITION BY seller ORDER BY bid_dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
        AS avg_price
FROM q9;

CREATE VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b
JOIN (
    SELECT time_bucket(INTERVAL '10 seconds', dateTime) AS starttime, max(price) AS price FROM bid GROUP BY starttime
) h ON time_bucket(INTERVAL '10 seconds', b.dateTime) = h.starttime AND b.price = h.price
WHERE h.starttime + INTERVAL '10 seconds' <= (SELECT max(dateTime) - INTERVAL '4 seconds' FROM bid);

CREATE VIEW q8 AS
SELECT DISTINCT p.id, p.name, time_bucket(INTERVAL '10 seconds', p.dateTime) AS starttime
FROM person p JOIN auction a
    ON p.id = a.seller
    AND time_bucket(INTERVAL '10 seconds', p.dateTime) = time_bucket(INTERVAL '10 seconds', a.dateTime)
WHERE time_bucket(INTERVAL '10 seconds', p.dateTime) + INTERVAL '10 seconds'
    <= least((SELECT max(dateTime) FROM person), (SELECT max(dateTime) FROM auction)) - INTERVAL '4 seconds';

CREATE VIEW q10 AS
SELECT auction, bidder, price, dateTime, extra,
    strftime(dateTime, '%Y-%m-%d') AS dt, strftime(dateTime, '%H:%M') AS hm
FROM bid;

CREATE VIEW q11 AS
WITH gaps AS (
    SELECT bidder, dateTime,
        dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) > INTERVAL '10 seconds' AS is_gap
    FROM bid
), visits AS (
    SELECT bidder, dateTime,
        count(*) FILTER (WHERE is_gap) OVER (PARTITION BY bidder ORDER BY dateTime) AS visit
    FROM gaps
)
SELECT bidder, count(*) AS bid_count, min(dateTime) AS starttime, max(dateTime) + INTERVAL '10 seconds' AS endtime
FROM visits GROUP BY bidder, visit
HAVING endtime <= (SELECT max(dateTime) - INTERVAL '4 seconds' FROM bid);

-- Which ten seconds of the clock a bid falls into is known to the run alone: the bids of each bidder are compared.
CREATE VIEW q12 AS SELECT bidder, count(*) AS bid_count FROM bid GROUP BY bidder;

CREATE VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid b JOIN side_input s ON b.auction % 10000 = s.key;

CREATE VIEW q14 AS
SELECT auction, bidder, 0.908 * price AS price,
    CASE
        WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
        WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
        ELSE 'otherTime'
    END AS bidTimeType,
    dateTime, extra, len(regexp_extract_all(extra, 'c')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

CREATE VIEW ranked AS
SELECT *, strftime(dateTime, '%Y-%m-%d') AS day, strftime(dateTime, '%H:%M') AS minute,
    CASE WHEN price < 10000 THEN 1 WHEN price < 1000000 THEN 2 ELSE 3 END AS rank
FROM bid;

CREATE VIEW q15 AS
SELECT day, count(*) AS total_bids,
    count(*) FILTER (rank = 1) AS rank1_bids,
    count(*) FILTER (rank = 2) AS rank2_bids,
    count(*) FILTER (rank = 3) AS rank3_bids,
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (rank = 1) AS rank1_bidders,
    count(DISTINCT bidder) FILTER (rank = 2) AS rank2_bidders,
    count(DISTINCT bidder) FILTER (rank = 3) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions,
    count(DISTINCT auction) FILTER (rank = 1) AS rank1_auctions,
    count(DISTINCT auction) FILTER (rank = 2) AS rank2_auctions,
    count(DISTINCT auction) FILTER (rank = 3) AS rank3_auctions
FROM ranked GROUP BY day;

CREATE VIEW q16 AS
SELECT channel, day, max(minute) AS minute, count(*) AS total_bids,
    count(*) FILTER (rank = 1) AS rank1_bids,
    count(*) FILTER (rank = 2) AS rank2_bids,
    count(*) FILTER (rank = 3) AS rank3_bids,
    count(DISTINCT bidder) AS total_bidders,
    count(DISTINCT bidder) FILTER (rank = 1) AS rank1_bidders,
    count(DISTINCT bidder) FILTER (rank = 2) AS rank2_bidders,
    count(DISTINCT bidder) FILTER (rank = 3) AS rank3_bidders,
    count(DISTINCT auction) AS total_auctions,
    count(DISTINCT auction) FILTER (rank = 1) AS rank1_auctions,
    count(DISTINCT auction) FILTER (rank = 2) AS rank2_auctions,
    count(DISTINCT auction) FILTER (rank = 3) AS rank3_auctions
FROM ranked GROUP BY channel, day;

CREATE VIEW q17 AS
SELECT auction, day, count(*) AS total_bids,
    count(*) FILTER (rank = 1) AS rank1_bids,
    count(*) FILTER (rank = 2) AS rank2_bids,
    count(*) FILTER (rank = 3) AS rank3_bids,
    min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM ranked GROUP BY auction, day;

CREATE VIEW q18 AS
SELECT * FROM bid QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) = 1;

CREATE VIEW q19 AS
SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, dateTime) AS rank_number
FROM bid QUALIFY rank_number <= 10;

CREATE VIEW q20 AS
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime AS bid_dateTime, b.extra AS bid_extra,
    a.itemName, a.description, a.initialBid, a.reserve, a.dateTime, a.expires, a.seller, a.category, a.extra
FROM bid b JOIN auction a ON b.auction = a.id
WHERE a.category = 10;

CREATE VIEW q21 AS
WITH ids AS (
    SELECT auction, bidder, price, channel,
        CASE lower(channel)
            WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
        END AS channel_id
    FROM bid
)
SELECT * FROM ids WHERE channel_id IS NOT NULL;

CREATE VIEW q22 AS
SELECT auction, bidder, price, channel,
    split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bid;
