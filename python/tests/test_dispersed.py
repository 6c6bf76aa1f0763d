"""Tables that lie at clouds: what loads them, what becomes of them when a cloud or the key is lost."""

from __future__ import annotations

import datetime
import decimal
import io
import pathlib
import re
import stat
import warnings
from collections.abc import Iterator

import counterfoil
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import KEY

COLUMNS = """id BIGINT PRIMARY KEY, name TEXT FOR (equality, prefix), salary NUMERIC(10,2) FOR (sum, range), born DATE,
             photo BYTEA, is_in BOOLEAN"""
ROWS = [
    (1, "Ada", decimal.Decimal("1000.50"), datetime.date(1815, 12, 10), b"\x00\xff", True),
    (2, "Ädä", decimal.Decimal("-0.50"), datetime.date(9999, 12, 31), b"", False),
    (3, None, None, None, None, None),
]


@pytest.fixture
def connection(tmp_path: pathlib.Path) -> Iterator[counterfoil.Connection]:
    """A database that knows three clouds, and its table."""
    with warnings.catch_warnings():
        # What each cloud learns is told as warnings.
        warnings.simplefilter("ignore", counterfoil.Warning)
        connection = counterfoil.connect(tmp_path / "people.foil", key=KEY, create=True, autocommit=True)
        for cloud in "abc":
            (tmp_path / cloud).mkdir()
            connection.execute(f"CREATE CLOUD {cloud} OPTIONS (url 'dir:{tmp_path / cloud}')")
        connection.execute(f"CREATE TABLE people ({COLUMNS}) WITH (engine = 'dispersed', clouds = 'a, b, c')")
    yield connection
    connection.close()


@pytest.fixture
def split(connection: counterfoil.Connection, tmp_path: pathlib.Path) -> counterfoil.Connection:
    """The same, whose key was split."""
    connection.split_key(tmp_path / "shares", need=2, of=3)
    return connection


def test_no_row_is_taken_before_the_key_was_split(connection: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    with pytest.raises(counterfoil.Error, match="key split"):
        connection.execute("INSERT INTO people (id) VALUES (1)")
    with pytest.raises(counterfoil.Error):
        connection.split_key(tmp_path / "shares", need=4, of=3)
    assert not (tmp_path / "shares").exists()
    shares = connection.split_key(tmp_path / "shares", need=2, of=3)
    assert [stat.S_IMODE(share.stat().st_mode) for share in shares] == [0o600] * 3
    connection.execute("INSERT INTO people (id) VALUES (1)")
    with pytest.raises(FileExistsError):
        connection.split_key(tmp_path / "shares", need=2, of=3)


def test_the_shares_open_the_database(split: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    split.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    split.close()
    (tmp_path / "shares" / "share-2-of-3.txt").unlink()
    with counterfoil.connect(tmp_path / "people.foil", key_file=tmp_path / "shares") as again:
        assert again.execute("SELECT * FROM people ORDER BY id").fetchall() == ROWS
    (tmp_path / "shares" / "share-1-of-3.txt").unlink()
    with pytest.raises(counterfoil.Error):
        counterfoil.connect(tmp_path / "people.foil", key_file=tmp_path / "shares")


def test_a_cloud_may_be_lost(split: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    split.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    (tmp_path / "b").rename(tmp_path / "gone")
    with pytest.warns(counterfoil.Warning, match="cloud b"):
        assert split.execute("SELECT * FROM people ORDER BY id").fetchall() == ROWS
    with pytest.warns(counterfoil.Warning, match="cloud b"):
        split.execute("UPDATE people SET salary = 5 WHERE id = 1")
    (tmp_path / "gone").rename(tmp_path / "b")
    repaired = split.execute("REPAIR TABLE people").fetchall()
    assert [(row[0], row[-1]) for row in repaired] == [(cloud, "complete") for cloud in "abc"]
    assert split.execute("SELECT sum(salary) FROM people").fetchone() == (decimal.Decimal("4.50"),)


def table(rows: int) -> pyarrow.Table:
    ids = range(1, rows + 1)
    schema = pyarrow.schema(
        [
            ("id", pyarrow.int64()),
            ("name", pyarrow.string()),
            ("salary", pyarrow.decimal128(10, 2)),
            ("born", pyarrow.date32()),
            ("photo", pyarrow.binary()),
            ("is_in", pyarrow.bool_()),
        ]
    )
    columns = {
        "id": list(ids),
        "name": [None if at % 7 == 0 else f"näme {at % 100}" for at in ids],
        "salary": [None if at % 5 == 0 else decimal.Decimal(at) / 4 for at in ids],
        "born": [datetime.date(1970, 1, 1) + datetime.timedelta(at) for at in ids],
        "photo": [bytes([at % 256]) * (at % 40) for at in ids],
        "is_in": [at % 3 == 0 for at in ids],
    }
    return pyarrow.table(columns, schema)


QUESTIONS = [
    "SELECT * FROM people ORDER BY id",
    "SELECT sum(salary), avg(salary), count(salary), count(*) FROM people",
    "SELECT id FROM people WHERE name = 'näme 17' ORDER BY id",
    "SELECT sum(salary) FROM people WHERE salary BETWEEN 10 AND 20.5",
    "SELECT is_in, count(*), max(name) FROM people GROUP BY is_in ORDER BY is_in",
]


def answers(connection: counterfoil.Connection) -> list[list[tuple[object, ...]]]:
    return [connection.execute(question).fetchall() for question in QUESTIONS]


@pytest.fixture
def expected() -> list[list[tuple[object, ...]]]:
    """What a relation answers that has the same rows."""
    relation = counterfoil.connect(":memory:", autocommit=True)
    relation.execute("CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, salary NUMERIC(10,2), born DATE, photo BYTEA, is_in BOOLEAN)")
    relation.load("people", table(3000))
    return answers(relation)


def test_arrow_and_data_frames_load_it(split: counterfoil.Connection, expected: list[list[tuple[object, ...]]]) -> None:
    assert split.load("people", table(3000)) == 3000
    assert answers(split) == expected
    assert split.execute("SELECT * FROM people ORDER BY id").arrow().num_rows == 3000
    split.execute("DELETE FROM people")
    frame = table(3000).to_pandas(types_mapper=pandas.ArrowDtype)
    assert split.load("people", frame) == 3000
    assert answers(split) == expected


def test_copy_loads_it(split: counterfoil.Connection, expected: list[list[tuple[object, ...]]]) -> None:
    relation = counterfoil.connect(":memory:", autocommit=True)
    relation.execute("CREATE TABLE people (id BIGINT, name TEXT, salary NUMERIC(10,2), born DATE, photo BYTEA, is_in BOOLEAN)")
    relation.load("people", table(3000))
    text = io.StringIO()
    relation.copy_out("COPY people TO STDOUT (FORMAT csv, HEADER)", text)
    text.seek(0)
    assert split.copy_in("COPY people FROM STDIN (FORMAT csv, HEADER)", text) == 3000
    assert answers(split) == expected
    # A line that is no row: none of them is there.
    with pytest.raises(counterfoil.Error):
        split.copy_in("COPY people FROM STDIN (FORMAT csv)", io.StringIO("4001,a,1,2000-01-01,\\x,t\n4002,a,x,2000-01-01,\\x,t\n"))
    assert answers(split) == expected


def test_a_load_with_a_key_twice_leaves_nothing(split: counterfoil.Connection) -> None:
    split.execute("INSERT INTO people (id, name) VALUES (5, 'before')")
    with pytest.raises(counterfoil.IntegrityError):
        split.load("people", table(100))
    assert split.execute("SELECT id, name FROM people").fetchall() == [(5, "before")]


def test_what_lies_in_a_folder_is_parquet_and_says_nothing(split: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    split.load("people", table(3000))
    for cloud in "abc":
        rows: dict[str, int] = {}
        for file in (tmp_path / cloud).rglob("*.parquet"):
            read = pyarrow.parquet.read_table(file)
            rows[file.parent.name] = rows.get(file.parent.name, 0) + read.num_rows
            assert all(re.fullmatch("place|[a-z][0-9a-f]{16}", name) for name in read.column_names), read.column_names
            assert "näme".encode() not in file.read_bytes()
        # One folder is the table's, the other one that of the catalogue.
        assert sorted(rows.values())[-1] == 3000, rows


def test_other_engines_ask_what_lies_in_a_folder(split: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    """What a cloud's owner can count, as docs/disperse.md says: rows, and how many are equal where a column is FOR (equality)."""
    split.load("people", table(3000))
    split.execute("DELETE FROM people WHERE id > 2990")
    equal = split.execute("SELECT count(*) AS n FROM people WHERE name IS NOT NULL GROUP BY name ORDER BY n").fetchall()
    seen = []
    for cloud in "abc":
        folders = {file.parent for file in (tmp_path / cloud).rglob("*.parquet")}
        sizes = {duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/*.parquet')").fetchall()[0][0]: folder for folder in folders}
        folder = sizes[2990]
        assert polars.scan_parquet(folder / "*.parquet").select(polars.len()).collect().item() == 2990
        columns = duckdb.sql(f"SELECT * FROM read_parquet('{folder}/*.parquet') LIMIT 0").columns
        for column in columns:
            groups = f"""SELECT count(*) AS n FROM read_parquet('{folder}/*.parquet') GROUP BY "{column}" HAVING n > 1 ORDER BY n"""
            seen.append(duckdb.sql(groups).fetchall())
    # The tags of names are at two clouds, those of their beginnings beside them; nothing else comes twice.
    assert seen.count([row for row in equal if row[0] > 1]) == 2
