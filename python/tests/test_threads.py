"""Threads and processes beside each other."""

from __future__ import annotations

import os
import pathlib
import threading

import counterfoil
import pytest
from conftest import KEY

LONG = "SELECT count(*) FROM generate_series(1, 100000000000)"


def test_python_goes_on_while_a_statement_runs(memory: counterfoil.Connection) -> None:
    ended: list[BaseException] = []

    def run() -> None:
        try:
            memory.execute(LONG)
        except counterfoil.Interrupted as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    # If the statement held the interpreter, this would not be reached before it ends: in hours.
    while thread.is_alive():
        memory.interrupt()
        thread.join(0.05)
    assert len(ended) == 1


def test_threads_share_a_connection(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (thread INTEGER, number INTEGER)")

    def add(thread: int) -> None:
        for number in range(50):
            memory.execute("INSERT INTO t VALUES (?, ?)", (thread, number))

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.execute("SELECT count(*), count(DISTINCT thread) FROM t").fetchone() == (200, 4)


def test_connections_of_a_process_share_the_database(path: pathlib.Path) -> None:
    one = counterfoil.connect(path, key=KEY, autocommit=True)
    other = counterfoil.connect(path, key=KEY, autocommit=True)
    one.execute("CREATE TABLE t (a INTEGER)")
    other.execute("INSERT INTO t VALUES (1)")
    one.execute("INSERT INTO t VALUES (2)")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    with pytest.raises(counterfoil.WrongKey):
        counterfoil.connect(path, key=bytes(32))
    with pytest.raises(counterfoil.WrongKey):
        counterfoil.connect(path, passphrase="x")
    one.close()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    other.close()


def test_a_child_does_not_use_its_parents(memory: counterfoil.Connection) -> None:
    child = os.fork()
    if child == 0:
        try:
            memory.execute("SELECT 1")
        except counterfoil.Misuse:
            os._exit(7)
        finally:
            os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert memory.execute("SELECT 1").fetchone() == (1,)


def test_a_program_may_not_use_what_waits_for_it(memory: counterfoil.Connection) -> None:
    import pyarrow

    memory.execute("CREATE TABLE t (a BIGINT)")
    schema = pyarrow.schema([("a", pyarrow.int64())])
    asked: list[str] = []

    def batches() -> object:
        try:
            memory.execute("SELECT 1")
        except counterfoil.Misuse as error:
            asked.append(str(error))
        yield pyarrow.record_batch({"a": [1]}, schema=schema)

    assert memory.load("t", pyarrow.RecordBatchReader.from_batches(schema, batches())) == 1
    assert asked == ["the connection is in use by the statement that asks for this: use another one"]
