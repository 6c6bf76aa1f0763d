-- Flights with all that they reference, one question a line; every answer is ordered. Most ask for little of much.
SELECT f.day, f.flight, a.name FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE f.tailnum = 'N14228' ORDER BY f.day, f.flight, a.name
SELECT f.day, f.flight, p.model, p.seats FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.tailnum = 'N619AA' ORDER BY f.day, f.flight
SELECT f.day, f.flight, f.dest, p.year FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.manufacturer = 'CESSNA' ORDER BY f.day, f.flight, f.dest, p.year NULLS LAST
SELECT f.day, f.flight, o.name, d.name FROM flights f JOIN airports o ON o.faa = f.origin JOIN airports d ON d.faa = f.dest WHERE f.dest = 'ANC' ORDER BY f.day, f.flight, o.name, d.name
SELECT f.day, f.flight, d.name FROM flights f JOIN airports d ON d.faa = f.dest WHERE d.name = 'Honolulu Intl' AND f.dep_delay > 30 ORDER BY f.day, f.flight
SELECT f.day, f.flight, w.temp, w.wind_speed FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour WHERE w.wind_speed > 40 ORDER BY f.day, f.flight, w.temp NULLS LAST, w.wind_speed
SELECT count(*) FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour WHERE w.precip > 0.3
SELECT f.day, f.flight, o.name, w.visib FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour JOIN airports o ON o.faa = w.origin WHERE w.visib = 0 ORDER BY f.day, f.flight, o.name
SELECT f.day, f.flight, a.name, d.name FROM flights f JOIN airlines a ON a.carrier = f.carrier JOIN airports d ON d.faa = f.dest WHERE f.flight = 1545 ORDER BY f.day, f.flight, a.name, d.name
SELECT a.name, count(*) FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE f.dest = 'HNL' GROUP BY a.name ORDER BY a.name
SELECT p.manufacturer, count(*) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE f.dest = 'EYW' GROUP BY p.manufacturer ORDER BY p.manufacturer
SELECT f.day, f.flight, f.arr_delay FROM flights f WHERE f.arr_delay > 600 ORDER BY f.day, f.flight, f.arr_delay
SELECT f.day, f.flight, f.dep_delay, a.name FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE f.dep_delay > 500 ORDER BY f.dep_delay DESC, f.flight, f.day, a.name
SELECT f.day, f.flight, f.tailnum FROM flights f WHERE f.dest IN ('ANC', 'EYW', 'HDN') ORDER BY f.day, f.flight, f.tailnum NULLS LAST
SELECT f.day, f.flight FROM flights f WHERE f.air_time BETWEEN 650 AND 660 ORDER BY f.day, f.flight
SELECT f.day, f.flight, p.engines FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.engines = 4 ORDER BY f.day, f.flight
SELECT f.day, f.flight, p.year FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.year < 1965 ORDER BY f.day, f.flight, p.year
SELECT count(*), max(f.distance) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.seats > 400
SELECT p.model, count(*) FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.manufacturer = 'GULFSTREAM AEROSPACE' GROUP BY p.model ORDER BY p.model
SELECT f.day, f.flight FROM flights f JOIN airports d ON d.faa = f.dest WHERE d.alt > 6500 AND f.origin = 'EWR' ORDER BY f.day, f.flight
SELECT d.tzone, count(*) FROM flights f JOIN airports d ON d.faa = f.dest WHERE d.tzone = 'America/Anchorage' GROUP BY d.tzone ORDER BY d.tzone
SELECT f.dest, count(*) FROM flights f LEFT JOIN airports d ON d.faa = f.dest WHERE d.faa IS NULL GROUP BY f.dest ORDER BY f.dest
SELECT f.day, f.flight, p.model FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum WHERE f.flight = 15 AND f.day < 6 ORDER BY f.day, f.flight, p.model NULLS LAST
SELECT f.day, f.carrier, f.flight FROM flights f WHERE f.day = 8 AND f.dest = 'MSN' ORDER BY f.day, f.carrier, f.flight
SELECT f.day, f.carrier, f.flight FROM flights f WHERE f.flight = 1 OR f.dest = 'TVC' ORDER BY f.day, f.carrier, f.flight, f.dest LIMIT 40
SELECT f.carrier, f.flight, w.temp FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour WHERE w.temp < 11.5 ORDER BY f.carrier, f.flight, w.temp
SELECT o.name, count(*) FROM flights f JOIN airports o ON o.faa = f.origin WHERE f.tailnum IN ('N14228', 'N24211', 'N619AA') GROUP BY o.name ORDER BY o.name
SELECT a.name, p.manufacturer, count(*) FROM flights f JOIN airlines a ON a.carrier = f.carrier JOIN planes p ON p.tailnum = f.tailnum WHERE p.year = 1986 GROUP BY a.name, p.manufacturer ORDER BY a.name, p.manufacturer
SELECT DISTINCT f.dest FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.model = 'A330-243' ORDER BY f.dest
SELECT f.day, f.flight, a.name, p.model, o.name, d.name, w.temp FROM flights f JOIN airlines a ON a.carrier = f.carrier JOIN planes p ON p.tailnum = f.tailnum JOIN airports o ON o.faa = f.origin JOIN airports d ON d.faa = f.dest JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour WHERE f.dest = 'SBN' ORDER BY f.day, f.flight, a.name, p.model NULLS LAST, o.name, w.temp NULLS LAST
SELECT count(*) FROM flights f WHERE f.tailnum IS NULL
SELECT f.day, f.flight, f.dest FROM flights f WHERE f.tailnum IS NULL AND f.dest = 'ORD' ORDER BY f.day, f.flight LIMIT 20
SELECT f.day, f.flight FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE a.name = 'SkyWest Airlines Inc.' ORDER BY f.day, f.flight
SELECT avg(f.arr_delay), count(f.arr_delay) FROM flights f JOIN airlines a ON a.carrier = f.carrier WHERE a.name = 'Hawaiian Airlines Inc.'
SELECT f.day, f.flight, f.dep_delay FROM flights f JOIN planes p ON p.tailnum = f.tailnum WHERE p.year = 2013 AND f.dep_delay > 60 ORDER BY f.day, f.flight, f.dep_delay
SELECT p.tailnum, p.model FROM planes p WHERE p.tailnum BETWEEN 'N100' AND 'N1050' ORDER BY p.tailnum
SELECT w.time_hour, w.wind_gust FROM weather w WHERE w.origin = 'LGA' AND w.wind_speed > 35 ORDER BY w.time_hour
SELECT carrier, flight, count(*) FROM flights WHERE dest = 'JAC' GROUP BY carrier, flight ORDER BY carrier, flight
SELECT a.name, sum(f.distance), min(f.dep_delay) FROM flights f JOIN airlines a ON a.carrier = f.carrier GROUP BY a.name ORDER BY a.name
SELECT d.tzone, count(*), avg(f.air_time) FROM flights f JOIN airports d ON d.faa = f.dest JOIN planes p ON p.tailnum = f.tailnum WHERE p.manufacturer = 'BOEING' GROUP BY d.tzone ORDER BY d.tzone
