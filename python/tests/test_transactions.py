"""Transactions, as PEP 249 has them and as blocks."""

from __future__ import annotations

import pathlib

import counterfoil
import pytest
from conftest import KEY


def count(connection: counterfoil.Connection) -> object:
    row = connection.execute("SELECT count(*) FROM t").fetchone()
    return None if row is None else row[0]


@pytest.fixture
def table(connection: counterfoil.Connection) -> counterfoil.Connection:
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.commit()
    return connection


def test_a_change_begins_one(table: counterfoil.Connection, path: pathlib.Path) -> None:
    other = counterfoil.connect(path, key=KEY)
    assert count(table) == 0
    assert not table.in_transaction, "a query needs none"
    table.execute("INSERT INTO t VALUES (1)")
    assert table.in_transaction
    assert (count(table), count(other)) == (1, 0)
    table.commit()
    assert (count(table), count(other)) == (1, 1)
    table.execute("DELETE FROM t")
    table.rollback()
    assert count(table) == 1
    other.close()


def test_what_a_block_leaves(path: pathlib.Path) -> None:
    with counterfoil.connect(path, key=KEY) as connection:
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(ZeroDivisionError), counterfoil.connect(path, key=KEY) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    with counterfoil.connect(path, key=KEY) as connection:
        assert count(connection) == 1
    with pytest.raises(counterfoil.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    counterfoil.connect(path, key=KEY).close()


def test_closing_rolls_back(table: counterfoil.Connection, path: pathlib.Path) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    table.close()
    with counterfoil.connect(path, key=KEY) as again:
        assert count(again) == 0


def test_autocommit(table: counterfoil.Connection) -> None:
    table.autocommit = True
    table.execute("INSERT INTO t VALUES (1)")
    assert not table.in_transaction
    table.rollback()
    assert count(table) == 1
    table.execute("BEGIN")
    with pytest.raises(counterfoil.ProgrammingError, match="a transaction is open"):
        table.autocommit = False
    table.execute("ROLLBACK")


def test_blocks_within_blocks(table: counterfoil.Connection) -> None:
    with table.transaction():
        table.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(counterfoil.IntegrityError), table.transaction():
            table.execute("INSERT INTO t VALUES (2)")
            table.execute("INSERT INTO t VALUES (2)")
        with table.transaction():
            table.execute("INSERT INTO t VALUES (3)")
    assert not table.in_transaction
    assert table.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


def test_a_first_statement_that_fails_leaves_none(table: counterfoil.Connection) -> None:
    with pytest.raises(counterfoil.IntegrityError):
        table.execute("INSERT INTO t VALUES (1), (1)")
    assert not table.in_transaction
    assert count(table) == 0


def test_one_that_failed_is_not_committed(table: counterfoil.Connection) -> None:
    table.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(counterfoil.IntegrityError):
        table.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(counterfoil.ProgrammingError, match="the transaction has failed"):
        table.execute("SELECT 1")
    with pytest.raises(counterfoil.ProgrammingError, match="all of it was rolled back"):
        table.commit()
    assert count(table) == 0


def test_texts_that_begin_their_own(table: counterfoil.Connection) -> None:
    table.execute("BEGIN; INSERT INTO t VALUES (1); COMMIT")
    assert not table.in_transaction
    table.execute("SELECT 1; INSERT INTO t VALUES (2)")
    assert table.in_transaction
    table.execute("COMMIT")
    assert count(table) == 2


def test_a_savepoint_begins_one(table: counterfoil.Connection) -> None:
    table.execute("SAVEPOINT a")
    assert table.in_transaction
    table.execute("INSERT INTO t VALUES (1)")
    table.execute("ROLLBACK TO SAVEPOINT a")
    table.commit()
    assert count(table) == 0


def test_maintenance_is_outside(table: counterfoil.Connection) -> None:
    table.execute("VACUUM")
    table.execute("SET synchronous_commit = off")
    assert not table.in_transaction


def test_a_query_with_names_for_others_begins_none(table: counterfoil.Connection) -> None:
    table.execute("WITH x AS (SELECT 'UPDATE' AS a) SELECT * FROM x").fetchall()
    assert not table.in_transaction
    with table.transaction():
        table.execute("INSERT INTO t VALUES (1)")
    assert not table.in_transaction, "it is committed"
    table.execute("WITH x AS (SELECT 2 AS a) INSERT INTO t SELECT a FROM x")
    assert table.in_transaction
    table.rollback()
    assert count(table) == 1


def test_what_went_wrong_in_a_block_is_what_is_told(table: counterfoil.Connection) -> None:
    with pytest.raises(ValueError, match="mine"), table.transaction(), table.transaction():
        table.rollback()
        raise ValueError("mine")


def test_rows_of_many_see_those_before(table: counterfoil.Connection) -> None:
    table.executemany("INSERT INTO t VALUES ((SELECT count(*) FROM t) + ?)", [[1], [1], [1]])
    assert [row[0] for row in table.execute("SELECT a FROM t ORDER BY a")] == [1, 2, 3]
