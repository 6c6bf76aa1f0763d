"""What Python answers is what the command `counterfoil` answers, to the last type: as Arrow, and as rows."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator

import counterfoil
import pyarrow
import pytest
from conftest import KEY
from pyarrow import csv

DATA = pathlib.Path(__file__).parents[2] / "data/nycflights13"
QUESTIONS = [
    "SELECT * FROM airlines ORDER BY carrier",
    "SELECT count(*), sum(distance), avg(dep_delay), min(time_hour), max(tailnum) FROM flights",
    "SELECT a.name, count(*) AS flights FROM flights f JOIN airlines a USING (carrier) GROUP BY 1 ORDER BY 2 DESC, 1",
    "SELECT * FROM flights WHERE dest = 'HNL' ORDER BY time_hour, flight LIMIT 20",
    "SELECT flight, dep_delay FROM flights WHERE dep_delay IS NULL ORDER BY 1, tailnum LIMIT 5",
    "SELECT CAST(time_hour AS DATE) AS day, count(DISTINCT tailnum) FROM flights GROUP BY 1 ORDER BY 1",
    "SELECT CAST(distance AS NUMERIC(12, 3)) / 7 AS x, CAST(distance AS REAL) FROM flights ORDER BY 1 DESC LIMIT 9",
    "SELECT origin, rank() OVER (ORDER BY count(*) DESC) FROM flights GROUP BY origin ORDER BY 2",
    "WITH d AS (SELECT dest FROM flights GROUP BY dest HAVING count(*) = 1) SELECT * FROM d ORDER BY 1",
    "SELECT DATE '2024-02-29', TIME '01:02:03.000004', TIMESTAMP '2024-02-29 01:02:03', NULL, true, '\\x00ff'::bytea",
    "SELECT '12345678-1234-5678-1234-567812345678'::uuid::text, ARRAY[1, NULL, 3]",
    "SELECT * FROM flights WHERE false",
]


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[pathlib.Path, counterfoil.Connection]]:
    folder = tmp_path_factory.mktemp("flights")
    path = folder / "flights.db"
    connection = counterfoil.connect(path, key=KEY, create=True, counter=folder)
    (folder / "key").write_bytes(KEY)
    connection.execute("CREATE TABLE airlines (carrier TEXT PRIMARY KEY, name TEXT)")
    connection.execute(
        "CREATE TABLE flights (carrier TEXT, flight INTEGER, tailnum TEXT, origin TEXT, dest TEXT, time_hour TIMESTAMPTZ, "
        "dep_delay SMALLINT, distance DOUBLE PRECISION)"
    )
    for table, file in [("airlines", "airlines.csv"), ("flights", "flights-2013-01.csv.gz")]:
        names = [column[0] for column in connection.execute(f"SELECT * FROM {table}").description or ()]
        options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True, include_columns=names)
        connection.load(table, csv.read_csv(DATA / file, convert_options=options))
    connection.commit()
    yield path, connection
    connection.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_the_shells(flights: tuple[pathlib.Path, counterfoil.Connection], question: str) -> None:
    path, connection = flights
    command = [os.environ["COUNTERFOIL_PROGRAM"], "sql", path, "--key-file", path.with_name("key"), "--read-only"]
    shell = subprocess.run([*command, "--format", "arrow", "-c", question], capture_output=True, check=True)
    told = pyarrow.ipc.open_stream(shell.stdout).read_all()
    # The shell writes texts as readers of files have them, and says of no column that it has no NULL.
    found = connection.execute(question).arrow().cast(told.schema)
    assert found.equals(told)
    names = told.column_names
    assert connection.execute(question).fetchall() == [
        tuple(row[name] for name in names) for row in told.to_pylist(maps_as_pydicts="strict")
    ]
