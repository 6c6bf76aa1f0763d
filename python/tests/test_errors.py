"""An exception for every kind of error, with the text that the command `counterfoil` prints."""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import counterfoil
import counterfoil._counterfoil
import counterfoil.errors
import pytest
from conftest import KEY

# These need a server, minutes, or a fault of ours; their classes are held to the list all the same.
NOT_BROUGHT_ABOUT = {"Network", "NotVerified", "SnapshotTooOld", "Bug"}


def test_every_kind_has_a_class() -> None:
    kinds = counterfoil._counterfoil.kinds()
    assert list(counterfoil.errors.BY_KIND) == [kind for kind, _ in kinds]
    for kind, exit_code in kinds:
        error = counterfoil.errors.BY_KIND[kind]
        assert error is getattr(counterfoil, kind)
        assert (error.kind, error.exit_code) == (kind, exit_code)
        assert issubclass(error, counterfoil.DatabaseError)


def changed(path: pathlib.Path) -> counterfoil.Connection:
    connection = counterfoil.connect(path, key=KEY)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    return connection


def misuse(path: pathlib.Path) -> None:
    counterfoil.connect(path, key=KEY, passphrase="x")


def sql(path: pathlib.Path) -> None:
    counterfoil.connect(path, key=KEY).execute("SELEC 1")


def constraint(path: pathlib.Path) -> None:
    changed(path).execute("INSERT INTO t VALUES (1)")


def not_supported(path: pathlib.Path) -> None:
    counterfoil.connect(path, key=KEY).execute("REINDEX TABLE t")


def not_found(path: pathlib.Path) -> None:
    counterfoil.connect(path.with_name("nowhere.db"), key=KEY)


def wrong_key(path: pathlib.Path) -> None:
    counterfoil.connect(path, key=bytes(32))


def not_a_database(path: pathlib.Path) -> None:
    path.write_bytes(b"something else " * 5000)
    counterfoil.connect(path, key=KEY)


def data(path: pathlib.Path) -> None:
    counterfoil.connect(path, key=KEY).records["x" * 10_000] = b""


def device(path: pathlib.Path) -> None:
    # The system answers that the first byte of a process cannot be read.
    counterfoil.connect(path, key_file="/proc/self/mem")


def full(path: pathlib.Path) -> None:
    connection = changed(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100_000, limits[1]))
    try:
        connection.execute("CREATE TABLE big (a TEXT)")
        connection.execute("INSERT INTO big SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
        connection.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def corrupt(path: pathlib.Path) -> None:
    # Both copies of the header, at the beginnings of the first two extents, but for their magic and lengths.
    content = bytearray(path.read_bytes())
    for copy in (0, 256 * 1024):
        for place in range(copy + 64, copy + 2048):
            content[place] ^= 0xFF
    path.write_bytes(content)
    counterfoil.connect(path, key=KEY)


def tampered(path: pathlib.Path) -> None:
    changed(path).close()
    content = bytearray(path.read_bytes())
    for place in range(20_000, len(content)):
        content[place] ^= 1
    path.write_bytes(content)
    counterfoil.connect(path, key=KEY).execute("SELECT * FROM t").fetchall()


def rolled_back(path: pathlib.Path) -> None:
    changed(path).close()
    before = path.with_name("before.db")
    shutil.copy(path, before)
    with counterfoil.connect(path, key=KEY) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    shutil.copy(before, path)
    counterfoil.connect(path, key=KEY).execute("SELECT * FROM t").fetchall()


def counter_lost(path: pathlib.Path) -> None:
    changed(path).close()
    shutil.rmtree(os.environ["COUNTERFOIL_STATE_DIR"])
    counterfoil.connect(path, key=KEY, require_counter=True)


def locked(path: pathlib.Path) -> None:
    first = changed(path)
    first.execute("INSERT INTO t VALUES (2)")
    counterfoil.connect(path, key=KEY, lock_timeout=0.1).execute("INSERT INTO t VALUES (3)")


def interrupted(path: pathlib.Path) -> None:
    connection = counterfoil.connect(path, key=KEY)
    timer = threading.Timer(0.3, connection.interrupt)
    timer.start()
    try:
        connection.execute("SELECT count(*) FROM generate_series(1, 100000000000)").fetchall()
    finally:
        timer.join()


CAUSES: dict[str, Callable[[pathlib.Path], None]] = {
    "Misuse": misuse,
    "Sql": sql,
    "Constraint": constraint,
    "NotSupported": not_supported,
    "NotFound": not_found,
    "WrongKey": wrong_key,
    "NotADatabase": not_a_database,
    "Input": data,
    "Device": device,
    "Full": full,
    "Corrupt": corrupt,
    "Tampered": tampered,
    "RolledBack": rolled_back,
    "CounterLost": counter_lost,
    "Locked": locked,
    "Interrupted": interrupted,
}


def test_no_kind_is_left_out() -> None:
    assert set(CAUSES) | NOT_BROUGHT_ABOUT == set(counterfoil.errors.BY_KIND)


@pytest.mark.parametrize("kind", CAUSES)
@pytest.mark.filterwarnings("ignore:freshness not checked")
def test_a_kind_is_raised(path: pathlib.Path, kind: str) -> None:
    with pytest.raises(counterfoil.Error) as raised:
        CAUSES[kind](path)
    assert type(raised.value) is counterfoil.errors.BY_KIND[kind], raised.value
    text = str(raised.value)
    assert text and "\n" not in text and KEY.hex() not in text


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM nowhere",
        "SELEC 1",
        "SELECT a + FROM t",
        "SELECT nothing FROM t",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES ('x')",
        "REINDEX TABLE t",
        "SELECT 1 / 0",
        "SELECT CAST('x' AS INTEGER)",
        "SAVEPOINT a; RELEASE SAVEPOINT b",
        "EXECUTE nothing",
        "SELECT $1",
        "BEGIN READ ONLY; INSERT INTO t VALUES (2)",
        "COPY t FROM '/proc/self/status' (FORMAT csv)",
        "INSERT INTO t SELECT * FROM nowhere",
        "SET lock_timeout = 'soon'",
    ],
)
def test_the_text_is_the_shells(path: pathlib.Path, statement: str) -> None:
    changed(path).close()
    key_file = path.with_name("test.key")
    key_file.write_bytes(KEY)
    program = os.environ.get("COUNTERFOIL_PROGRAM")
    assert program, "COUNTERFOIL_PROGRAM names the program whose texts are compared"
    shell = subprocess.run(
        [program, path, "--key-file", key_file, "-c", statement], capture_output=True, text=True, check=False
    )
    with counterfoil.connect(path, key=KEY) as connection:
        with pytest.raises(counterfoil.Error) as raised:
            connection.execute(statement).fetchall()
        connection.rollback()
    assert shell.stderr == f"error: {raised.value}\n"
    assert shell.returncode == raised.value.exit_code


Opened = Callable[[pathlib.Path], tuple[dict[str, Any], list[str]]]


def other_key(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    path.with_name("other.key").write_bytes(bytes(32))
    return {"key_file": path.with_name("other.key")}, ["--key-file", str(path.with_name("other.key"))]


def no_key(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    return {"key_file": "/proc/self/mem"}, ["--key-file", "/proc/self/mem"]


def nothing(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    path.unlink()
    return {}, []


def something_else(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    path.write_bytes(b"something else " * 5000)
    return {}, []


def broken_header(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    content = bytearray(path.read_bytes())
    for copy in (0, 256 * 1024):
        for place in range(copy + 64, copy + 2048):
            content[place] ^= 0xFF
    path.write_bytes(content)
    return {}, []


def broken_pages(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    content = bytearray(path.read_bytes())
    for place in range(20_000, len(content)):
        content[place] ^= 1
    path.write_bytes(content)
    return {}, []


def older(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    before = path.read_bytes()
    with counterfoil.connect(path, key=KEY) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    path.write_bytes(before)
    return {}, []


def forgotten(path: pathlib.Path) -> tuple[dict[str, Any], list[str]]:
    shutil.rmtree(os.environ["COUNTERFOIL_STATE_DIR"])
    return {"require_counter": True}, ["--require-counter"]


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("WrongKey", other_key),
        ("Device", no_key),
        ("NotFound", nothing),
        ("NotADatabase", something_else),
        ("Corrupt", broken_header),
        ("Tampered", broken_pages),
        ("RolledBack", older),
        ("CounterLost", forgotten),
    ],
)
@pytest.mark.filterwarnings("ignore:freshness not checked")
def test_the_text_of_opening_is_the_shells(path: pathlib.Path, kind: str, cause: Opened) -> None:
    changed(path).close()
    key_file = path.with_name("test.key")
    key_file.write_bytes(KEY)
    given, options = cause(path)
    with pytest.raises(counterfoil.Error) as raised:
        counterfoil.connect(path, **{"key_file": key_file, **given}).execute("SELECT * FROM t").fetchall()
    options = options if "--key-file" in options else ["--key-file", str(key_file), *options]
    shell = subprocess.run(
        [os.environ["COUNTERFOIL_PROGRAM"], path, *options, "-c", "SELECT * FROM t"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert raised.value.kind == kind
    assert shell.stderr.splitlines()[-1] == f"error: {raised.value}"
    assert shell.returncode == raised.value.exit_code


def shell(path: pathlib.Path, statement: str, *options: str, **how: Any) -> subprocess.CompletedProcess[str]:
    key_file = path.with_name("test.key")
    key_file.write_bytes(KEY)
    command = [os.environ["COUNTERFOIL_PROGRAM"], path, "--key-file", key_file, *options, "-c", statement]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)


def test_the_text_of_a_full_disk_is_the_shells(path: pathlib.Path) -> None:
    changed(path).close()
    twin = path.with_name("twin.db")
    counterfoil.connect(twin, key=KEY, create=True).close()
    changed(twin).close()
    statement = "INSERT INTO t SELECT value FROM generate_series(2, 1000000) AS s (value)"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = path.stat().st_size + 100_000
    # The signal that comes with it stays ignored, as it is in Python.
    told = shell(
        twin,
        statement,
        restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    connection = counterfoil.connect(path, key=KEY, autocommit=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(counterfoil.Full) as raised:
            connection.execute(statement)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (told.stderr.replace("twin", "birds"), told.returncode) == (f"error: {raised.value}\n", 2)
    connection.close()


def test_the_text_of_a_lock_is_the_shells(path: pathlib.Path) -> None:
    connection = changed(path)
    connection.execute("INSERT INTO t VALUES (2)")
    told = shell(path, "INSERT INTO t VALUES (3)", "--lock-timeout", "1")
    script = (
        "import counterfoil, sys\n"
        "try: counterfoil.connect(sys.argv[1], key=bytes(range(32)), lock_timeout=1).execute('INSERT INTO t VALUES (3)')\n"
        "except counterfoil.Locked as error: print(f'error: {error}'); sys.exit(error.exit_code)\n"
    )
    other = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert (told.stderr, told.returncode) == (other.stdout, 4)
    assert other.returncode == 4
    connection.close()


def test_secrets_are_not_shown(path: pathlib.Path) -> None:
    secret = "correct horse battery"
    connection = counterfoil.connect(path.with_name("other.db"), passphrase=secret, create=True)
    cursor = connection.cursor()
    shown = repr(connection) + repr(cursor) + repr(vars(connection)) + repr(connection._session)
    connection.close()
    with pytest.raises(counterfoil.WrongKey) as wrong:
        counterfoil.connect(path.with_name("other.db"), passphrase=secret + "!")
    with pytest.raises(counterfoil.Misuse) as misused:
        counterfoil.connect(path, key=secret)
    with pytest.raises(counterfoil.Misuse) as empty:
        counterfoil.connect(path, passphrase="")
    for text in (shown, str(wrong.value), str(misused.value), str(empty.value)):
        assert secret not in text and secret.encode().hex() not in text


def test_a_signal_ends_a_query(memory: counterfoil.Connection) -> None:
    killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    killer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        memory.execute("SELECT count(*) FROM generate_series(1, 100000000000)")
    killer.join()
    assert memory.execute("SELECT 1").fetchone() == (1,), f"goes on, after {time.monotonic() - began:.1f} s"


def test_a_signal_ends_an_arrow_stream(memory: counterfoil.Connection) -> None:
    cursor = memory.execute("SELECT value FROM generate_series(1, 100000000000) AS t (value)")
    killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        cursor.execute("SELECT value FROM generate_series(1, 100000000000) AS t (value) WHERE value < 0").arrow()
    killer.join()
