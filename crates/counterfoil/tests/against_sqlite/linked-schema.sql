CREATE TABLE airlines (carrier TEXT PRIMARY KEY, name TEXT);
CREATE TABLE airports (faa TEXT PRIMARY KEY, name TEXT, lat DOUBLE PRECISION, lon DOUBLE PRECISION, alt BIGINT, tz BIGINT, dst TEXT, tzone TEXT);
CREATE TABLE planes (tailnum TEXT PRIMARY KEY, year BIGINT, type TEXT, manufacturer TEXT, model TEXT, engines BIGINT, seats BIGINT, speed BIGINT, engine TEXT);
CREATE TABLE weather (
    origin TEXT, year BIGINT, month BIGINT, day BIGINT, hour BIGINT, temp DOUBLE PRECISION, dewp DOUBLE PRECISION, humid DOUBLE PRECISION,
    wind_dir BIGINT, wind_speed DOUBLE PRECISION, wind_gust DOUBLE PRECISION, precip DOUBLE PRECISION, pressure DOUBLE PRECISION, visib DOUBLE PRECISION, time_hour TEXT,
    PRIMARY KEY (origin, time_hour),
    FOREIGN KEY (origin) REFERENCES airports (faa)
);
CREATE TABLE flights (
    year BIGINT, month BIGINT, day BIGINT, dep_time BIGINT, sched_dep_time BIGINT, dep_delay BIGINT, arr_time BIGINT, sched_arr_time BIGINT,
    arr_delay BIGINT, carrier TEXT, flight BIGINT, tailnum TEXT, origin TEXT, dest TEXT, air_time BIGINT, distance BIGINT, hour BIGINT, minute BIGINT, time_hour TEXT,
    FOREIGN KEY (carrier) REFERENCES airlines (carrier),
    FOREIGN KEY (origin) REFERENCES airports (faa),
    FOREIGN KEY (dest) REFERENCES airports (faa) NOT ENFORCED,
    FOREIGN KEY (tailnum) REFERENCES planes (tailnum) NOT ENFORCED,
    FOREIGN KEY (origin, time_hour) REFERENCES weather (origin, time_hour) NOT ENFORCED
);
CREATE INDEX ON flights (day);
CREATE INDEX ON flights (flight);
CREATE INDEX ON flights (dep_delay);
CREATE INDEX ON flights (arr_delay);
CREATE INDEX ON flights (air_time);
CREATE INDEX ON planes (manufacturer);
CREATE INDEX ON planes (model);
CREATE INDEX ON planes (year);
CREATE INDEX ON planes (engines);
CREATE INDEX ON planes (seats);
CREATE INDEX ON airlines (name);
CREATE INDEX ON airports (name);
CREATE INDEX ON airports (alt);
CREATE INDEX ON airports (tzone);
CREATE INDEX ON weather (wind_speed);
CREATE INDEX ON weather (precip);
CREATE INDEX ON weather (temp);
CREATE INDEX ON weather (visib);
