"""The measurements of python.rs, made by a program in Python. Prints one line for each: its name, and seconds.

Usage: door.py FOLDER KEY_FILE ROWS POINTS
"""

import sys
import time

import counterfoil
import pyarrow

BATCH = 1 << 17
folder, key_file, rows, points = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def measure(name, work):
    begun = time.perf_counter()
    work()
    print(name, time.perf_counter() - begun, flush=True)


def batches():
    for first in range(0, rows, BATCH):
        numbers = range(first, min(rows, first + BATCH))
        yield pyarrow.record_batch(
            {
                "id": pyarrow.array(numbers, pyarrow.int64()),
                "value": pyarrow.array([number / 4 for number in numbers]),
                "note": pyarrow.array([f"note {number}" for number in numbers]),
            }
        )


def select():
    cursor = connection.cursor()
    for number in range(points):
        wanted = number * 7919 % rows
        assert cursor.execute("SELECT note FROM t WHERE id = $1", [wanted]).fetchone() == (f"note {wanted}",)


def insert(count, first):
    cursor = connection.cursor()
    for number in range(first, first + count):
        cursor.execute("INSERT INTO t VALUES ($1, $2, $3)", [number, 0.5, "a note"])


def insert_in_one():
    with connection.transaction():
        insert(points, rows)


connection = counterfoil.connect(
    f"{folder}/python.db", key_file=key_file, counter=f"{folder}/state", create=True, autocommit=True
)
connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE PRECISION, note TEXT)")
table = pyarrow.Table.from_batches(list(batches()))
measure("in", lambda: connection.load("t", table))
measure("out", lambda: connection.execute("SELECT * FROM t").arrow())
measure("rows", lambda: connection.execute("SELECT * FROM t").fetchall())
measure("select", select)
measure("insert", insert_in_one)
measure("commit", lambda: insert(points // 10, rows + points))
connection.close()
