"""Arrow out and in: pyarrow, pandas, polars."""

from __future__ import annotations

import datetime
from decimal import Decimal

import counterfoil
import pandas
import polars
import pyarrow
import pytest

TYPES = (
    "b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, d DOUBLE PRECISION, n NUMERIC(12, 3), t TEXT, y BYTEA, "
    "dt DATE, tm TIME, ts TIMESTAMP, tz TIMESTAMPTZ"
)
ROW = {
    "b": True,
    "s": 1,
    "i": 2,
    "l": 3,
    "r": 0.5,
    "d": 0.25,
    "n": Decimal("12.345"),
    "t": "wren",
    "y": b"\x00\x01",
    "dt": datetime.date(2024, 2, 29),
    "tm": datetime.time(1, 2, 3, 4),
    "ts": datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
    "tz": datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.timezone.utc),
}


@pytest.fixture
def all_types(memory: counterfoil.Connection) -> counterfoil.Connection:
    memory.execute(f"CREATE TABLE t ({TYPES})")
    names = ", ".join(f":{name}" for name in ROW)
    memory.execute(f"INSERT INTO t VALUES ({names})", ROW)
    memory.execute("INSERT INTO t (s) VALUES (NULL)")
    return memory


def test_a_table_of_pyarrow(all_types: counterfoil.Connection) -> None:
    table = all_types.execute("SELECT * FROM t").arrow()
    assert table.column_names == list(ROW)
    assert table.to_pylist() == [ROW, dict.fromkeys(ROW)]
    reader = all_types.execute("SELECT * FROM t").reader()
    assert reader.read_all().equals(table)
    assert pyarrow.table(all_types.execute("SELECT * FROM t")).equals(table)


def test_what_was_fetched_is_gone(memory: counterfoil.Connection) -> None:
    cursor = memory.execute("SELECT value FROM generate_series(1, 10) AS t (value) ORDER BY value")
    assert cursor.fetchmany(4) == [(1,), (2,), (3,), (4,)]
    assert cursor.arrow()["value"].to_pylist() == [5, 6, 7, 8, 9, 10]
    assert cursor.arrow().num_rows == 0


def test_no_rows_have_columns(all_types: counterfoil.Connection) -> None:
    table = all_types.execute("SELECT * FROM t WHERE false").arrow()
    assert (table.num_rows, table.column_names) == (0, list(ROW))


def test_a_frame_of_pandas(all_types: counterfoil.Connection) -> None:
    frame = all_types.execute("SELECT * FROM t").df()
    assert list(frame.columns) == list(ROW)
    assert frame["t"][0] == "wren"
    assert frame["ts"][0] == pandas.Timestamp(ROW["ts"])
    assert frame["n"][0] == Decimal("12.345")


def test_a_frame_of_polars(all_types: counterfoil.Connection) -> None:
    frame = all_types.execute("SELECT * FROM t").pl()
    assert frame.row(0, named=True) == ROW
    assert frame.row(1) == (None,) * len(ROW)


def test_pandas_reads_sql(all_types: counterfoil.Connection) -> None:
    with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
        frame = pandas.read_sql("SELECT s, t FROM t WHERE s = ?", all_types, params=(1,))
    assert frame.to_dict("records") == [{"s": 1, "t": "wren"}]


@pytest.mark.parametrize("library", ["pyarrow", "batch", "pandas", "polars", "cursor", "reader"])
def test_rows_come_in_from_everywhere(all_types: counterfoil.Connection, library: str) -> None:
    all_types.execute(f"CREATE TABLE copy ({TYPES})")
    table = all_types.execute("SELECT * FROM t").arrow()
    sources = {
        "pyarrow": lambda: table,
        "batch": lambda: table.combine_chunks().to_batches()[0],
        "pandas": lambda: table.to_pandas(types_mapper=pandas.ArrowDtype),
        "polars": lambda: polars.DataFrame(table),
        "cursor": lambda: all_types.execute("SELECT * FROM t"),
        "reader": lambda: table.to_reader(),
    }
    assert all_types.load("copy", sources[library]()) == 2
    assert all_types.execute("SELECT * FROM copy").fetchall() == all_types.execute("SELECT * FROM t").fetchall()


def test_columns_by_name(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER, b TEXT DEFAULT 'none', c DOUBLE PRECISION)")
    assert memory.load("t", pyarrow.table({"c": [1.5], "a": [1]})) == 1
    assert memory.load("t", pyarrow.table({"x": ["two"], "y": [2]}), columns=["b", "a"]) == 1
    assert memory.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "none", 1.5), (2, "two", None)]
    with pytest.raises(counterfoil.ProgrammingError, match="1 columns are named, and the data has 2"):
        memory.load("t", pyarrow.table({"x": ["two"], "y": [2]}), columns=["b"])
    with pytest.raises(counterfoil.ProgrammingError):
        memory.load("t", pyarrow.table({"nothing": [1]}))
    with pytest.raises(counterfoil.ProgrammingError, match="a value of type list gives no Arrow data"):
        memory.load("t", [1, 2])


def test_a_load_is_all_or_nothing(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    with pytest.raises(counterfoil.IntegrityError):
        memory.load("t", pyarrow.table({"a": [1, 2, 1]}))
    schema = pyarrow.schema([("a", pyarrow.int64())])

    def broken() -> object:
        yield pyarrow.record_batch({"a": [1]}, schema=schema)
        raise RuntimeError("the source went away")

    with pytest.raises(counterfoil.DataError, match="the source went away"):
        memory.load("t", pyarrow.RecordBatchReader.from_batches(schema, broken()))
    assert memory.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_load_is_part_of_the_transaction(connection: counterfoil.Connection) -> None:
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.commit()
    connection.load("t", pyarrow.table({"a": [1]}))
    assert connection.in_transaction
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_an_error_among_the_rows_is_ours(memory: counterfoil.Connection) -> None:
    sql = "SELECT 1 / (value - 50000) FROM generate_series(1, 100000) AS t (value)"
    for take in ("fetchall", "arrow", "df", "pl"):
        with pytest.raises(counterfoil.Error) as raised:
            getattr(memory.execute(sql), take)()
        assert "division by zero" in str(raised.value), take


def test_what_is_not_installed_is_named(memory: counterfoil.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'counterfoil\[polars\]'"):
        memory.execute("SELECT 1").pl()


def test_a_schema_that_is_asked_for_makes_no_null(memory: counterfoil.Connection) -> None:
    wanted = pyarrow.schema([("a", pyarrow.int64())])
    try:
        table = pyarrow.table(memory.execute("SELECT 'x' AS a"), schema=wanted)
    except (pyarrow.ArrowInvalid, ValueError, TypeError):
        return
    assert table.to_pydict() == {"a": ["x"]}
