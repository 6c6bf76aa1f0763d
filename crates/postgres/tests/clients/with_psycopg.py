"""psycopg 3 at its common work. The environment says where the server is (PGHOST and its kin)."""

import datetime
import decimal
import threading
import uuid

import psycopg

UTC = datetime.timezone.utc
ROW = (
    1,
    "é",
    1.5,
    decimal.Decimal("12.3400"),
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 1, 12, 30, tzinfo=UTC),
    b"\x00\xff",
    True,
)
LONG = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(v) WHERE v % 7 = 8"


def refused(connection, kind, statement, values=None):
    """The statement is refused with an error of this kind."""
    try:
        connection.execute(statement, values)
    except kind:
        return
    raise AssertionError(f"{statement} is not refused")


def parameters(connection):
    connection.execute(
        "CREATE TABLE p (id BIGINT PRIMARY KEY, name TEXT, v DOUBLE PRECISION, n NUMERIC(20,4), d DATE,"
        " at TIMESTAMPTZ, b BYTEA, f BOOLEAN)"
    )
    connection.execute("INSERT INTO p VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", ROW)
    for binary in [False, True]:
        with connection.cursor(binary=binary) as cursor:
            # From the fifth time on the statement is prepared.
            for _ in range(8):
                cursor.execute("SELECT * FROM p WHERE id = %s", (1,))
                assert cursor.fetchall() == [ROW], binary
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO p (id, name) VALUES (%s, %s)", [(i, f"n{i}") for i in range(2, 200)])
        assert cursor.rowcount == 198
        cursor.execute("SELECT CAST(%s AS UUID) = '00000000-0000-0000-0000-000000000005'", (uuid.UUID(int=5),))
        assert cursor.fetchone() == (True,)
        assert cursor.execute("SELECT name FROM p WHERE name IS NOT DISTINCT FROM %s", (None,)).fetchall() == []
    connection.commit()


def transactions(connection):
    refused(connection, psycopg.Error, "SELECT nothing")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    connection.rollback()
    try:
        with connection.transaction():
            connection.execute("INSERT INTO p (id) VALUES (1000)")
            with connection.transaction(force_rollback=True):
                connection.execute("INSERT INTO p (id) VALUES (1001)")
            refused(connection, psycopg.IntegrityError, "INSERT INTO p (id) VALUES (1)")
            raise RuntimeError
    except RuntimeError:
        pass
    with connection.transaction():
        connection.execute("INSERT INTO p (id) VALUES (1002)")
        with connection.transaction(force_rollback=True):
            connection.execute("INSERT INTO p (id) VALUES (1003)")
    assert connection.execute("SELECT id FROM p WHERE id >= 1000").fetchall() == [(1002,)]
    connection.commit()


def copies(connection):
    with connection.cursor() as cursor:
        with cursor.copy("COPY p (id, name) FROM STDIN") as rows:
            for number in range(2000, 7000):
                rows.write_row((number, f"tab\t{number}"))
        with cursor.copy("COPY (SELECT id, name FROM p WHERE id >= 2000 ORDER BY id) TO STDOUT") as rows:
            copied = list(rows.rows())
    assert len(copied) == 5000 and copied[0] == ("2000", "tab\t2000"), (len(copied), copied[-3:])
    connection.commit()


def pipelines(connection):
    with connection.pipeline():
        some = [connection.execute("SELECT %s::BIGINT", (number,)) for number in range(500)]
    assert [cursor.fetchone()[0] for cursor in some] == list(range(500))
    connection.commit()
    try:
        with connection.pipeline():
            connection.execute("INSERT INTO p (id) VALUES (8000)")
            connection.execute("SELECT nothing")
            connection.execute("INSERT INTO p (id) VALUES (8001)")
    except psycopg.Error:
        connection.rollback()
    assert connection.execute("SELECT count(*) FROM p WHERE id >= 8000").fetchone() == (0,)
    connection.commit()


def rows_piece_by_piece(connection):
    with connection.cursor() as cursor:
        streamed = [row[0] for row in cursor.stream("SELECT id FROM p WHERE id BETWEEN 2000 AND 6999 ORDER BY id")]
    assert streamed == list(range(2000, 7000))
    connection.commit()


def cursors_with_a_name(connection):
    with connection.cursor(name="my cursor") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT id, name FROM p WHERE id < %s ORDER BY id", (100,))
        assert [column.name for column in cursor.description] == ["id", "name"]
        assert [row[0] for row in cursor.fetchmany(3)] == [1, 2, 3]
        assert len(cursor.fetchall()) == 96
    connection.commit()
    with connection.cursor(name="held", withhold=True) as cursor:
        cursor.execute("SELECT id FROM p ORDER BY id")
        connection.commit()
        assert cursor.fetchone() == (1,)
    connection.commit()


def cancelling(connection):
    timer = threading.Timer(0.5, connection.cancel_safe)
    timer.start()
    refused(connection, psycopg.errors.QueryCanceled, LONG)
    timer.join()
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.commit()


def main():
    with psycopg.connect() as connection:
        for part in [parameters, transactions, copies, pipelines, rows_piece_by_piece, cursors_with_a_name, cancelling]:
            part(connection)
        connection.execute("DROP TABLE p")


main()
