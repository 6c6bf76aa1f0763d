"""Threads and processes beside each other."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

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


def in_a_child(work: Callable[[], bool]) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(7 if work() else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_child_opens_for_itself(path: pathlib.Path) -> None:
    with counterfoil.connect(path, key=KEY) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    parent = counterfoil.connect(path, key=KEY)
    assert parent.execute("SELECT count(*) FROM t").fetchone() == (0,)

    def ask() -> bool:
        with counterfoil.connect(path, key=KEY) as own:
            return own.execute("SELECT count(*) FROM t").fetchone() == (0,)

    in_a_child(ask)
    parent.close()


FORKS = """
import counterfoil, os, sys
path, key = sys.argv[1], bytes.fromhex(sys.argv[2])
parent = counterfoil.connect(path, key=key, create=True, counter=os.path.dirname(path))
parent.execute("CREATE TABLE t (a INTEGER)")
parent.commit()
parent.execute("SELECT * FROM t").fetchall()
child = os.fork()
if child == 0:
    own = counterfoil.connect(path, key=key, counter=os.path.dirname(path))
    own.execute("SELECT * FROM t").fetchall()
    own.close()
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_ends_as_every_program(path: pathlib.Path) -> None:
    """What it has of its parent is let go of when the interpreter ends, and touches neither threads nor the file."""
    ended = subprocess.run([sys.executable, "-c", FORKS, str(path), KEY.hex()], timeout=60, check=False)
    assert ended.returncode == 0


def test_a_child_does_not_wait_for_its_parents_threads(memory: counterfoil.Connection) -> None:
    def run() -> None:
        with contextlib.suppress(counterfoil.Interrupted):
            memory.execute(LONG)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)

    def ask() -> bool:
        try:
            memory.execute("SELECT 1")
        except counterfoil.Misuse as error:
            return "the parent of this process" in str(error)
        return False

    in_a_child(ask)
    while thread.is_alive():
        memory.interrupt()
        thread.join(0.05)


def test_one_that_makes_a_database_shares_it(tmp_path: pathlib.Path) -> None:
    one = counterfoil.connect(tmp_path / "new.db", key=KEY, create=True, autocommit=True)
    one.execute("CREATE TABLE t (a INTEGER)")
    other = counterfoil.connect(tmp_path / "new.db", key=KEY, autocommit=True, lock_timeout=0.1)
    other.execute("INSERT INTO t VALUES (1)")
    one.execute("INSERT INTO t VALUES (2)")
    other.close()
    one.close()


def test_statements_start_no_threads(memory: counterfoil.Connection) -> None:
    memory.execute("SELECT 1").fetchall()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(100):
        memory.execute("SELECT 1").fetchall()
    assert len(os.listdir("/proc/self/task")) <= before


def test_a_handler_may_use_another_database(memory: counterfoil.Connection) -> None:
    other = counterfoil.connect(":memory:", autocommit=True)
    seen: list[object] = []

    def handle(number: int, frame: object) -> None:
        seen.append(other.execute("SELECT 7").fetchone())
        try:
            memory.execute("SELECT 7")
        except counterfoil.Misuse as error:
            seen.append(str(error))
        memory.interrupt()

    before = signal.signal(signal.SIGUSR1, handle)
    killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    killer.start()
    try:
        with pytest.raises(counterfoil.Interrupted):
            memory.execute(LONG)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [(7,), "the connection is in use by the statement that asks for this: use another one"]


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
