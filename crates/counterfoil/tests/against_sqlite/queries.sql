-- One question a line, understood by SQLite and by us alike; every answer is ordered.
SELECT count(*) FROM flights
SELECT count(*), count(dep_time), count(DISTINCT tailnum) FROM flights
SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC, carrier
SELECT a.name, count(*) AS n FROM flights f JOIN airlines a ON a.carrier = f.carrier GROUP BY a.name ORDER BY n DESC, a.name
SELECT origin, avg(dep_delay), max(dep_delay), min(dep_delay) FROM flights GROUP BY origin ORDER BY origin
SELECT month, day, sum(distance) FROM flights GROUP BY month, day ORDER BY 3 DESC, 1, 2 LIMIT 7
SELECT dest, count(*) FROM flights WHERE origin = 'JFK' AND month = 1 GROUP BY dest HAVING count(*) > 100 ORDER BY dest
SELECT f.dest, p.name, count(*) AS n FROM flights f LEFT JOIN airports p ON p.faa = f.dest GROUP BY f.dest, p.name ORDER BY n DESC, f.dest LIMIT 20
SELECT f.dest, count(*) FROM flights f LEFT JOIN airports p ON p.faa = f.dest WHERE p.faa IS NULL GROUP BY f.dest ORDER BY f.dest
SELECT tailnum, count(*) AS n FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum ORDER BY n DESC, tailnum LIMIT 10
SELECT count(*) FROM flights WHERE dep_delay > 60 AND arr_delay < 30
SELECT count(*) FROM flights WHERE dep_time IS NULL
SELECT count(*) FROM flights WHERE tailnum IN ('N14228', 'N24211', 'N619AA')
SELECT count(*) FROM flights WHERE tailnum NOT IN ('N14228', 'N24211', 'N619AA')
SELECT count(*) FROM flights WHERE distance BETWEEN 1000 AND 1500
SELECT count(*) FROM flights WHERE dest LIKE 'S%'
SELECT count(*) FROM flights WHERE NOT (dep_delay <= 0 OR dep_delay IS NULL)
SELECT hour, avg(arr_delay) FROM flights GROUP BY hour ORDER BY hour
SELECT carrier, origin, count(*) FROM flights GROUP BY carrier, origin ORDER BY carrier, origin
SELECT manufacturer, count(*) AS n FROM planes GROUP BY manufacturer ORDER BY n DESC, manufacturer LIMIT 5
SELECT p.manufacturer, count(*) AS n, avg(f.distance) FROM flights f JOIN planes p ON p.tailnum = f.tailnum GROUP BY p.manufacturer ORDER BY n DESC, p.manufacturer LIMIT 8
SELECT p.year, count(DISTINCT f.tailnum) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.year IS NOT NULL GROUP BY p.year ORDER BY p.year
SELECT count(*) FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum AND p.seats > 300)
SELECT count(*) FROM flights f WHERE NOT EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum)
SELECT count(*) FROM planes WHERE tailnum NOT IN (SELECT tailnum FROM flights WHERE tailnum IS NOT NULL)
SELECT carrier FROM airlines WHERE carrier NOT IN (SELECT carrier FROM flights WHERE month = 1) ORDER BY carrier
SELECT origin, dest, count(*) AS n FROM flights GROUP BY origin, dest ORDER BY n DESC, origin, dest LIMIT 5 OFFSET 3
SELECT carrier, sum(CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END) AS late FROM flights GROUP BY carrier ORDER BY late DESC, carrier
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'middle' ELSE 'long' END AS haul, count(*) FROM flights GROUP BY 1 ORDER BY 1
SELECT min(distance), max(distance), sum(air_time), avg(air_time) FROM flights
SELECT DISTINCT origin FROM flights ORDER BY origin
SELECT DISTINCT carrier, origin FROM flights WHERE distance > 2000 ORDER BY carrier, origin
SELECT carrier FROM flights WHERE month = 1 AND day = 1 UNION SELECT carrier FROM airlines ORDER BY carrier
SELECT dest FROM flights WHERE origin = 'EWR' INTERSECT SELECT dest FROM flights WHERE origin = 'LGA' ORDER BY dest
SELECT dest FROM flights WHERE origin = 'JFK' EXCEPT SELECT dest FROM flights WHERE origin = 'EWR' ORDER BY dest
WITH busy AS (SELECT dest, count(*) AS n FROM flights GROUP BY dest) SELECT dest, n FROM busy WHERE n > (SELECT avg(n) FROM busy) ORDER BY n DESC, dest
SELECT month, day, n, rank() OVER (ORDER BY n DESC) AS place FROM (SELECT month, day, count(*) AS n FROM flights GROUP BY month, day) AS days ORDER BY place, month, day LIMIT 10
SELECT origin, month, n, sum(n) OVER (PARTITION BY origin ORDER BY month) FROM (SELECT origin, month, count(*) AS n FROM flights GROUP BY origin, month) AS months ORDER BY origin, month
SELECT year, month, day, flight, carrier, tailnum FROM flights WHERE distance > 4900 AND month = 1 ORDER BY day, flight, carrier LIMIT 15
SELECT length(name), upper(name), lower(carrier) FROM airlines ORDER BY carrier
SELECT substr(name, 1, 5), name FROM airports WHERE faa < '0' OR faa > 'Z' ORDER BY name, faa LIMIT 10
SELECT coalesce(speed, -1), count(*) FROM planes GROUP BY 1 ORDER BY 1
SELECT engine, min(seats), max(seats), count(*) FROM planes WHERE engines = 2 GROUP BY engine ORDER BY engine
SELECT abs(dep_delay), count(*) FROM flights WHERE dep_delay < -20 GROUP BY 1 ORDER BY 1
SELECT sched_dep_time / 100, sched_dep_time % 100, count(*) FROM flights GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 12
SELECT w.origin, avg(w.temp), count(*) FROM weather w WHERE w.month = 1 GROUP BY w.origin ORDER BY w.origin
SELECT f.origin, count(*) FROM flights f JOIN weather w ON w.origin = f.origin AND w.year = f.year AND w.month = f.month AND w.day = f.day AND w.hour = f.hour WHERE w.wind_speed > 30 GROUP BY f.origin ORDER BY f.origin
SELECT count(*) FROM flights a JOIN flights b ON a.tailnum = b.tailnum AND a.month = b.month AND a.day = b.day WHERE a.month = 1 AND a.day = 1 AND a.dep_time < b.dep_time
SELECT origin, dest, distance FROM flights WHERE month = 1 AND day = 31 ORDER BY distance DESC NULLS LAST, origin, dest, carrier, flight LIMIT 9
SELECT dep_delay, carrier, flight FROM flights WHERE month = 1 AND day = 3 ORDER BY dep_delay DESC NULLS LAST, carrier, flight LIMIT 9
SELECT count(*) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.year < 1960 OR (f.year = 2013 AND p.seats > (SELECT avg(seats) * 2 FROM planes))
SELECT count(*) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.year = 1999 OR f.year NOT IN (SELECT seats FROM planes o WHERE o.seats > 300)
