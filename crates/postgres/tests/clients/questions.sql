SELECT 1::smallint AS a, 2::int AS b, (-9223372036854775808)::bigint AS c, 1.5::real AS d, 0.1::real AS e, 1e100::double precision AS f
SELECT 'NaN'::double precision AS a, '-Infinity'::real AS b, 1e15::double precision AS c, 123456789.123::double precision AS d, 1e-7::real AS e
SELECT 12.340::numeric(10,3) AS a, -0.05::numeric(4,2) AS b, 12345678901234567890123456789012345678::numeric(38,0) AS c, 1/3.0 AS d
SELECT 'a,b' AS a, 'say "x"' AS b, E'line\nfeed\ttab \\ ' AS c, NULL::text AS d, 'ü😀' AS e, 'x'::char(5) AS f, '  lead' AS g
SELECT '\x00ff7f'::bytea AS a, '12345678-1234-5678-1234-567812345678'::uuid AS b
SELECT DATE '2024-02-29' AS a, DATE '0001-01-01' AS b, DATE '-0044-03-15' AS c, DATE '12000-01-01' AS d
SELECT TIME '01:02:03' AS a, TIME '01:02:03.000004' AS b, TIME '24:00' AS c
SELECT TIMESTAMP '2024-02-29 01:02:03' AS a, TIMESTAMP '2024-02-29 01:02:03.5' AS b, TIMESTAMP '1969-12-31 23:59:59.999999' AS c
SELECT TIMESTAMPTZ '2024-02-29 01:02:03+02' AS a, '2024-02-29 01:02:03.123456789'::timestamp(9) AS b
SELECT INTERVAL '1 year 2 months 3 days 04:05:06.789' AS a, INTERVAL '-1 day' AS b, TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS c
SELECT ARRAY[1, NULL, 3] AS a, ARRAY['a', 'b,c', 'd "e"', NULL] AS b, ARRAY[ARRAY[1,2],ARRAY[3,4]] AS c, ARRAY[DATE '2024-01-01'] AS d
SELECT count(*) AS a, sum(v) AS b, avg(v) AS c, min(v) AS d, stddev(v) AS e, avg(v::numeric) AS f FROM generate_series(1, 100) AS t(v)
SELECT v, v * 1.5 AS w, v::double precision / 7 AS x, repeat('ä', v::int % 9 + 1) AS y, DATE '2024-01-01' + v::int AS z FROM generate_series(1, 20000) AS t(v) ORDER BY v DESC
SELECT 'x' AS nothing WHERE false
SELECT 5::float4 / 3 AS a, round(2.5) AS b, 7 / 2 AS c, -7 / 2 AS d, 7 % 3 AS e, sqrt(2) AS f, 10 ^ 20 AS g
SELECT * FROM questions ORDER BY id
SELECT small, count(*) AS rows, sum(n) AS sum, max(note) AS max FROM questions GROUP BY small ORDER BY small
