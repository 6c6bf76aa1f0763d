"""What pandas and polars do with databases: `read_sql` and `to_sql`, `read_database` and `write_database`."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator
from decimal import Decimal

import counterfoil
import pandas
import polars
import pytest
import sqlalchemy
from conftest import KEY
from sqlalchemy import Engine, create_engine, text

ROWS = [
    ("wren", 2, 9.5, datetime.datetime(2024, 2, 29, 12), datetime.date(2024, 2, 29), True),
    ("owl", None, None, None, None, None),
    ("kiwi", 0, -1e300, datetime.datetime(1970, 1, 1, 0, 0, 0, 1), datetime.date(1970, 1, 1), False),
]
NAMES = ["name", "wings", "grams", "at", "day", "real"]


@pytest.fixture
def engine(path: pathlib.Path) -> Iterator[Engine]:
    engine = create_engine(f"counterfoil:///{path}", connect_args={"key": KEY})
    yield engine
    engine.dispose()


@pytest.fixture
def birds() -> polars.DataFrame:
    return polars.DataFrame(ROWS, schema=NAMES, orient="row")


def test_polars_writes_and_reads(engine: Engine, birds: polars.DataFrame) -> None:
    assert birds.write_database("birds", engine) == 3
    with pytest.raises(ValueError, match="already exists"):
        birds.write_database("birds", engine)
    assert polars.read_database("SELECT * FROM birds", engine).rows() == ROWS
    assert birds.write_database("birds", engine, if_table_exists="append") == 3
    batches = list(polars.read_database("SELECT * FROM birds", engine, iter_batches=True, batch_size=4))
    assert [batch.height for batch in batches] == [4, 2]
    assert birds.head(1).write_database("birds", engine, if_table_exists="replace") == 1
    found = polars.read_database(
        "SELECT name FROM birds WHERE wings = :wings", engine, execute_options={"parameters": {"wings": 2}}
    )
    assert found.rows() == [("wren",)]


def test_polars_reads_from_a_connection(engine: Engine, birds: polars.DataFrame, path: pathlib.Path) -> None:
    birds.write_database("birds", engine)
    with counterfoil.connect(path, key=KEY) as connection:
        sql = "SELECT * FROM birds"
        assert polars.read_database(sql, connection).equals(birds)
        assert polars.read_database(sql, connection.cursor()).equals(connection.execute(sql).pl())
        found = polars.read_database(
            "SELECT name FROM birds WHERE wings = ?", connection, execute_options={"parameters": [2]}
        )
        assert found.rows() == [("wren",)]
        batches = polars.read_database(sql, connection, iter_batches=True, batch_size=2)
        assert [batch.height for batch in batches] == [2, 1]
        assert connection.load("birds", birds) == 3


def test_polars_knows_the_types(memory: counterfoil.Connection) -> None:
    sql = "SELECT 1.50::numeric(8, 2) AS n, '00:01'::time AS t, '\\x00'::bytea AS b, 1::smallint AS s WHERE 1 = ?"
    for rows, schema in (
        ([(Decimal("1.50"), datetime.time(0, 1), b"\0", 1)], polars.Schema),
        ([], polars.Schema),
    ):
        options = {"parameters": [len(rows)]}
        frame = polars.read_database(sql, memory, execute_options=options)
        assert frame.rows() == rows
        assert frame.schema == schema(
            {"n": polars.Decimal(8, 2), "t": polars.Time, "b": polars.Binary, "s": polars.Int16}
        )


def test_pandas_reads_what_it_wrote(engine: Engine, birds: polars.DataFrame) -> None:
    frame = pandas.DataFrame(ROWS, columns=NAMES).convert_dtypes()
    frame["n"] = [Decimal("1.50"), None, Decimal("-2.25")]
    types = {"n": sqlalchemy.Numeric(8, 2), "day": sqlalchemy.Date, "grams": sqlalchemy.Double}
    assert frame.to_sql("birds", engine, index_label="number", dtype=types, chunksize=2, method="multi") == 3
    kinds = {column["name"]: str(column["type"]) for column in sqlalchemy.inspect(engine).get_columns("birds")}
    assert (kinds["n"], kinds["day"], kinds["number"]) == ("NUMERIC(8, 2)", "DATE", "BIGINT")
    back = pandas.read_sql("birds", engine, index_col="number", dtype_backend="pyarrow")
    numbers = pandas.read_sql("SELECT n FROM birds ORDER BY number", engine, coerce_float=False)
    assert list(numbers["n"]) == [Decimal("1.50"), None, Decimal("-2.25")]
    assert back["at"].iloc[0] == pandas.Timestamp("2024-02-29 12:00")
    some = pandas.read_sql(
        text("SELECT name, at::text AS at FROM birds WHERE wings = :wings"),
        engine,
        params={"wings": 2},
        parse_dates=["at"],
    )
    assert some["at"].iloc[0] == pandas.Timestamp("2024-02-29 12:00")
    assert len(list(pandas.read_sql_query("SELECT * FROM birds", engine, chunksize=2))) == 2
    with engine.begin() as connection:
        frame.head(1).to_sql("birds", connection, if_exists="append", index_label="number")
        assert pandas.read_sql("SELECT count(*) AS n FROM birds", connection)["n"][0] == 4
        connection.rollback()
    assert pandas.read_sql("SELECT count(*) AS n FROM birds", engine)["n"][0] == 3
    with pytest.raises(pandas.errors.DatabaseError, match="table 'nowhere' not found"):
        pandas.read_sql("SELECT * FROM nowhere", engine)


def test_moments_with_a_zone(engine: Engine) -> None:
    moments = pandas.to_datetime(["2024-02-29 12:00+02:00", "2024-02-29 13:00+02:00"])
    pandas.DataFrame({"at": moments}).to_sql("moments", engine, index=False)
    kinds = [str(column["type"]) for column in sqlalchemy.inspect(engine).get_columns("moments")]
    assert kinds == ["TIMESTAMP"]
    back = pandas.read_sql("SELECT * FROM moments", engine)
    assert list(back["at"]) == [moment.tz_convert("UTC") for moment in moments]
