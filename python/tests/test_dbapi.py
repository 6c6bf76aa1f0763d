"""PEP 249, by the public suite of its author's colleagues (dbapi-compliance), and where that suite is silent."""

from __future__ import annotations

import pathlib

import counterfoil
import dbapi20
import pytest
from conftest import KEY


class TestSuite(dbapi20.DatabaseAPI20Test):
    driver = counterfoil
    connect_kw_args: dict[str, object] = {"key": KEY, "create": True}

    @pytest.fixture(autouse=True)
    def in_a_file(self, tmp_path: pathlib.Path) -> None:
        self.connect_args = (str(tmp_path / "suite.db"),)

    def test_non_idempotent_close(self) -> None:
        # The suite wants an error; sqlite3 and psycopg let it pass, as PEP 249 allows, and so do we.
        connection = self._connect()
        connection.close()
        connection.close()

    def test_nextset(self) -> None:
        with self._connect() as connection:
            cursor = connection.execute("SELECT 1; SELECT 2; SELECT 3")
            assert cursor.fetchall() == [(1,)]
            assert cursor.nextset()
            assert cursor.fetchall() == [(2,)]
            assert cursor.nextset()
            assert cursor.fetchall() == [(3,)]
            assert cursor.nextset() is None

    def test_setoutputsize(self) -> None:
        self._connect().cursor().setoutputsize(1000, 0)


def test_description_tells_types(memory: counterfoil.Connection) -> None:
    cursor = memory.execute("SELECT 1 AS a, 1.50 AS b, 'x' AS c, now() AS d, X'00'::bytea AS e, true AS f")
    described = {column[0]: column for column in cursor.description or []}
    assert described["a"][1] == counterfoil.NUMBER
    assert described["b"][1:6] == ("numeric(3,2)", None, None, 3, 2)
    assert described["c"][1] == counterfoil.STRING
    assert described["d"][1] == counterfoil.DATETIME
    assert described["e"][1] == counterfoil.BINARY
    assert described["a"][1] != counterfoil.STRING
    assert cursor.rowcount == -1
    assert cursor.statusmessage == "SELECT"


def test_fetching_in_parts(memory: counterfoil.Connection) -> None:
    cursor = memory.execute("SELECT value FROM generate_series(1, 20000) AS t (value) ORDER BY value")
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany(2) == [(2,), (3,)]
    with pytest.raises(counterfoil.Misuse):
        cursor.fetchmany(-1)
    assert next(cursor) == (4,)
    assert len(cursor.fetchmany(9000)) == 9000
    rest = cursor.fetchall()
    assert rest[0] == (9005,) and rest[-1] == (20000,) and len(rest) == 10996
    assert cursor.fetchone() is None
    assert cursor.fetchall() == []


def test_closed_is_closed(path: pathlib.Path) -> None:
    connection = counterfoil.connect(path, key=KEY)
    cursor = connection.execute("SELECT 1")
    cursor.close()
    with pytest.raises(counterfoil.ProgrammingError, match="the cursor is closed"):
        cursor.fetchone()
    cursor = connection.execute("SELECT 1")
    connection.close()
    for use in (cursor.fetchone, connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(counterfoil.ProgrammingError, match="the connection is closed"):
            use()
