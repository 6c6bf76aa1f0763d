"""DuckDB as a peer of the benchmark (src/remote.rs): takes orders from standard input, answers on standard output.

Tuples become Arrow columns, which are inserted as a whole, one transaction for what is acknowledged together.
"""

import pathlib
import struct
import sys

import duckdb
import numpy
import pyarrow

TUPLE = numpy.dtype([("series", "<u4"), ("quality", "u1"), ("zeros", "u1", 3), ("time", "<i8"), ("value", "<f8")])
TABLES = ["analog", "boolean"]
# What a fold is in SQL: counts of what is left out where nothing is there.
NUMBERS = [
    "sum(time % 1000 + value + quality)",
    "count(*)",
    "sum(value)",
    "avg(value)",
    "min(value) + max(value)",
    "count(*) FILTER (value > {})",
]
# The window is of each series, so the question is the same for one series and for all.
GAPS = """SELECT count(*), count(*) FILTER (time - before > {own}) FROM
          (SELECT series, time, lag(time) OVER (PARTITION BY series ORDER BY time) AS before FROM {table} WHERE {where})"""


class Peer:
    def __init__(self, folder):
        self.orders = sys.stdin.buffer
        self.connection = duckdb.connect(str(pathlib.Path(folder) / "tuples.duckdb"))
        self.connection.execute("SET threads = 1; SET memory_limit = '2GB'")
        for table, value in zip(TABLES, ["FLOAT", "UTINYINT"]):
            self.connection.execute(
                f"CREATE TABLE {table} (series UINTEGER, time BIGINT, value {value}, quality UTINYINT)"
            )
        self.is_active = False

    def take(self, form):
        return struct.unpack("<" + form, self.orders.read(struct.calcsize("<" + form)))

    def give(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def rows(self):
        (sort, count) = self.take("BI")
        tuples = numpy.frombuffer(self.orders.read(TUPLE.itemsize * count), dtype=TUPLE)
        value = tuples["value"].astype("f4" if sort == 0 else "u1")
        columns = {"series": tuples["series"], "time": tuples["time"], "value": value, "quality": tuples["quality"]}
        rows = pyarrow.table({name: pyarrow.array(numpy.ascontiguousarray(column)) for name, column in columns.items()})
        return TABLES[sort], rows

    def change(self, text):
        table, rows = self.rows()
        if not self.is_active:
            self.connection.execute("BEGIN")
            self.is_active = True
        self.connection.register("incoming", rows)
        self.connection.execute(text.format(table=table))
        self.connection.unregister("incoming")

    def insert(self):
        self.change("INSERT INTO {table} SELECT series, time, value, quality FROM incoming")

    def update(self):
        self.change(
            "UPDATE {table} AS t SET value = incoming.value, quality = incoming.quality FROM incoming"
            " WHERE t.series = incoming.series AND t.time = incoming.time"
        )

    def delete(self):
        self.change(
            "DELETE FROM {table} AS t USING incoming WHERE t.series = incoming.series AND t.time = incoming.time"
        )

    def commit(self):
        if self.is_active:
            self.connection.execute("COMMIT")
            self.is_active = False
        self.give(b"\0")

    def settle(self):
        if self.is_active:
            self.connection.execute("COMMIT")
            self.is_active = False
        self.connection.execute("CHECKPOINT")
        self.give(b"\0")

    def answer(self, text):
        tuples, number = self.connection.execute(text).fetchone()
        self.give(struct.pack("<Qd", tuples, number or 0))

    def fold_one(self):
        sort, fold, series, first, last, parameter = self.take("BBIqqd")
        where = f"series = {series} AND time BETWEEN {first} AND {last}"
        if fold == 6:
            return self.answer(GAPS.format(own=parameter, table=TABLES[sort], where=where))
        number = NUMBERS[fold].format(parameter)
        self.answer(f"SELECT count(*), {number} FROM {TABLES[sort]} WHERE {where}")

    def fold_all(self):
        sort, fold, first, last, count = self.take("BBqqI")
        parameters = self.take(f"{count}d")
        where = f"time BETWEEN {first} AND {last}"
        if fold == 6:
            return self.answer(GAPS.format(own=parameters[0], table=TABLES[sort], where=where))
        self.connection.execute("CREATE OR REPLACE TEMP TABLE thresholds (series UINTEGER, own DOUBLE)")
        rows = ", ".join(f"({series}, {own!r})" for series, own in enumerate(parameters))
        self.connection.execute(f"INSERT INTO thresholds VALUES {rows}")
        number = NUMBERS[fold].format("own")
        self.answer(f"SELECT count(*), {number} FROM {TABLES[sort]} JOIN thresholds USING (series) WHERE {where}")

    def newest(self):
        (sort,) = self.take("B")
        rows = self.connection.execute(
            "SELECT series, max(time), arg_max(value, time), arg_max(quality, time)"
            f" FROM {TABLES[sort]} GROUP BY series ORDER BY series"
        ).fetchall()
        tuples = [struct.pack("<IB3xqd", series, quality, time, value) for series, time, value, quality in rows]
        self.give(struct.pack("<I", len(tuples)) + b"".join(tuples))

    def serve(self):
        orders = {
            b"I": self.insert,
            b"U": self.update,
            b"D": self.delete,
            b"C": self.commit,
            b"S": self.settle,
            b"F": self.fold_one,
            b"A": self.fold_all,
            b"N": self.newest,
        }
        while word := self.orders.read(1):
            orders[word]()


Peer(sys.argv[1]).serve()
