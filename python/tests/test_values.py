"""Values both ways: what goes in as a parameter comes out the same."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import counterfoil
import numpy
import pandas
import pytest

UTC = datetime.timezone.utc
EAST = datetime.timezone(datetime.timedelta(hours=2, minutes=30))


@pytest.mark.parametrize(
    ("kind", "value", "comes_out"),
    [
        ("BOOLEAN", True, True),
        ("BOOLEAN", numpy.bool_(False), False),
        ("SMALLINT", -(2**15), -(2**15)),
        ("INTEGER", 2**31 - 1, 2**31 - 1),
        ("BIGINT", -(2**63), -(2**63)),
        ("BIGINT", numpy.int64(7), 7),
        ("REAL", 0.5, 0.5),
        ("REAL", numpy.float32(0.25), 0.25),
        ("DOUBLE PRECISION", 0.1, 0.1),
        ("DOUBLE PRECISION", float("inf"), float("inf")),
        ("NUMERIC(38, 0)", 10**37, Decimal(10**37)),
        ("NUMERIC(38, 10)", Decimal("-1234567890123456789012345678.0123456789"), None),
        ("NUMERIC(6, 2)", Decimal("1E+3"), Decimal("1000.00")),
        ("NUMERIC(6, 2)", 12, Decimal("12.00")),
        ("TEXT", "naïve 🐦", None),
        ("TEXT", "", None),
        ("VARCHAR(5)", "wren", None),
        ("BYTEA", b"\x00\xff", None),
        ("BYTEA", bytearray(b"abc"), b"abc"),
        ("BYTEA", memoryview(b"abc"), b"abc"),
        ("DATE", datetime.date(2024, 2, 29), None),
        ("DATE", datetime.date(1, 1, 1), None),
        ("DATE", datetime.date(9999, 12, 31), None),
        ("TIME", datetime.time(23, 59, 59, 999999), None),
        ("TIMESTAMP", datetime.datetime(1969, 12, 31, 23, 59, 59, 1), None),
        ("TIMESTAMP", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), None),
        ("TIMESTAMP", pandas.Timestamp("2024-02-29T12:00:00.123456"), datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)),
        ("TIMESTAMP", numpy.datetime64("2024-02-29T12:00"), datetime.datetime(2024, 2, 29, 12)),
        ("TIMESTAMP", numpy.datetime64("2500-01-01", "us"), datetime.datetime(2500, 1, 1)),
        ("TIMESTAMPTZ", datetime.datetime(2024, 2, 29, 12, 0, tzinfo=UTC), None),
        (
            "TIMESTAMPTZ",
            datetime.datetime(2024, 2, 29, 2, 30, tzinfo=EAST),
            datetime.datetime(2024, 2, 29, 0, 0, tzinfo=UTC),
        ),
        ("TIMESTAMP", None, None),
        ("TIMESTAMP", pandas.NaT, "NULL"),
        ("TIMESTAMP", numpy.datetime64("NaT"), "NULL"),
        ("TEXT", pandas.NA, "NULL"),
    ],
)
def test_there_and_back(memory: counterfoil.Connection, kind: str, value: object, comes_out: object) -> None:
    expected = value if comes_out is None else None if comes_out == "NULL" else comes_out
    memory.execute(f"CREATE TABLE t (v {kind})")
    memory.execute("INSERT INTO t VALUES (?)", [value])
    found = memory.execute("SELECT v FROM t").fetchone()
    assert found == (expected,)
    if expected is not None and found is not None:
        assert type(found[0]) is type(expected)
        assert str(found[0]) == str(expected)


UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ("SELECT v FROM t WHERE v = ?", (UUID,)),
        ("SELECT x.v AS other, n FROM (SELECT * FROM t) AS x WHERE v = ?", (UUID, 1)),
        ("SELECT max(n), v FROM t GROUP BY v HAVING v = ?", (1, UUID)),
        ("SELECT DISTINCT v FROM t UNION ALL SELECT v FROM t WHERE v = ? LIMIT 1", (UUID,)),
        ("SELECT one.v FROM t AS one JOIN t AS two ON one.v = two.v WHERE one.v = ?", (UUID,)),
        ("SELECT v FROM seen WHERE v = ?", (UUID,)),
        ("SELECT CAST(? AS UUID)", (UUID,)),
        ("SELECT v::text FROM t WHERE v = ?", (str(UUID),)),
        ("SELECT lower(v::text), NULL::uuid FROM t WHERE v = ?", (str(UUID), None)),
        ("INSERT INTO t VALUES (?, 2) RETURNING v, n", (UUID, 2)),
    ],
)
def test_a_uuid_goes_in_and_comes_out(
    memory: counterfoil.Connection, sql: str, answer: object, writing: bool
) -> None:
    memory.execute("CREATE TABLE t (v UUID, n INTEGER)")
    memory.execute("CREATE VIEW seen AS SELECT v FROM t")
    memory.execute("INSERT INTO t VALUES (?, 1)", [UUID])
    if writing:
        memory.execute("BEGIN; UPDATE t SET n = 1")
    cursor = memory.execute(sql, [UUID])
    assert [column[1] == "uuid" for column in cursor.description or ()] == [
        isinstance(value, uuid.UUID) or value is None for value in answer  # type: ignore[attr-defined]
    ]
    assert cursor.fetchone() == answer


def test_texts_among_uuids(memory: counterfoil.Connection) -> None:
    rows = memory.execute("SELECT CAST(? AS UUID) AS v UNION ALL SELECT 'wren'", [UUID]).fetchall()
    assert {row[0] for row in rows} == {UUID, "wren"}


def test_a_uuid_is_a_text_in_arrow(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (v UUID)")
    memory.execute("INSERT INTO t VALUES (?)", [UUID])
    table = memory.execute("SELECT v FROM t").arrow()
    assert table.to_pylist() == [{"v": str(UUID)}]
    assert table.schema.field("v").metadata == {b"counterfoil.type": b"uuid"}
    assert memory.load("t", table) == 1
    memory.execute("CREATE TABLE copy AS SELECT v FROM t")
    assert memory.execute("SELECT DISTINCT v FROM copy").fetchall() == [(UUID,)]
    with pytest.raises(counterfoil.DatabaseError):
        memory.execute("INSERT INTO copy VALUES ('wren')")


def test_a_uuid_names_a_series(memory: counterfoil.Connection) -> None:
    memory.execute(
        "CREATE TABLE r (v UUID, ts TIMESTAMP, n INTEGER, PRIMARY KEY (v, ts)) WITH (engine = 'series')"
    )
    readings = memory.series("r")
    with readings.writer() as writer:
        writer.push(writer.cursor(UUID), 0, 7)
    assert readings.newest(UUID) == (UUID, datetime.datetime(1970, 1, 1), 7)
    assert readings.read(UUID).arrow()["v"].to_pylist() == [str(UUID)]
    assert memory.execute("SELECT v, n FROM r").fetchall() == [(UUID, 7)]


def test_nanoseconds(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (v TIMESTAMP(9))")
    memory.execute("INSERT INTO t VALUES (?)", [pandas.Timestamp("2024-02-29T12:00:00.123456789")])
    assert memory.execute("SELECT v FROM t").fetchone() == (datetime.datetime(2024, 2, 29, 12, 0, 0, 123456),)
    assert memory.execute("SELECT v::text FROM t").fetchone() == ("2024-02-29 12:00:00.123456789",)
    assert memory.execute("SELECT v FROM t").arrow()["v"].cast("int64").to_pylist() == [1709208000123456789]


def test_what_queries_make(memory: counterfoil.Connection) -> None:
    row = memory.execute(
        "SELECT array_agg(a ORDER BY a), count(*), sum(a), NULL, INTERVAL '1 day 2 seconds', "
        "max(b) - min(b) FROM (VALUES (1, DATE '2024-01-01'), (2, DATE '2024-01-03')) AS t (a, b)"
    ).fetchone()
    assert row is not None
    assert row[:4] == ([1, 2], 2, 3, None)
    assert row[4] == datetime.timedelta(days=1, seconds=2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**38, "a number of more than 38 digits"),
        (Decimal("1E-39"), "a number of more than 38 digits"),
        (Decimal("NaN"), "a number that is not finite"),
    ],
)
def test_numbers_that_cannot_be(memory: counterfoil.Connection, value: object, text: str) -> None:
    with pytest.raises(counterfoil.DataError, match=text):
        memory.execute("SELECT ?", [value])


@pytest.mark.parametrize("value", [[1], {1}, object(), 1j, datetime.time(1, tzinfo=UTC), numpy.array([1, 2])])
def test_values_of_other_types(memory: counterfoil.Connection, value: object) -> None:
    with pytest.raises((counterfoil.ProgrammingError, counterfoil.DataError)):
        memory.execute("SELECT ?", [value])


def test_dates_out_of_pythons_reach(memory: counterfoil.Connection) -> None:
    for sql in ("SELECT DATE '10000-01-01'", "SELECT TIMESTAMP '0044-03-15 00:00:00 BC'", "SELECT TIME '24:00:00'"):
        with pytest.raises(counterfoil.DataError, match="Python"):
            memory.execute(sql).fetchone()


def test_moments_beyond_microseconds_are_refused(memory: counterfoil.Connection) -> None:
    for moment in (numpy.datetime64("586511-01-01", "D"), numpy.datetime64(2**55 + 5, "s")):
        with pytest.raises(counterfoil.Input):
            memory.execute("SELECT ?", [moment])
    row = memory.execute("SELECT ?::timestamp", [numpy.datetime64("2024-01-01", "D")]).fetchone()
    assert row == (datetime.datetime(2024, 1, 1),)
