"""Series tables without SQL."""

from __future__ import annotations

import datetime

import counterfoil
import pyarrow
import pytest


@pytest.fixture
def readings(memory: counterfoil.Connection) -> counterfoil.Series:
    memory.execute(
        "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT, "
        "PRIMARY KEY (sensor, ts)) WITH (engine = 'series')"
    )
    return memory.series("readings")


def test_points_go_in_and_come_out(readings: counterfoil.Series, memory: counterfoil.Connection) -> None:
    begin = datetime.datetime(2024, 2, 29)
    with readings.writer() as writer:
        boiler, pump = writer.cursor("boiler"), writer.cursor("pump")
        for second in range(100):
            writer.push(boiler, begin + datetime.timedelta(seconds=second), 80.0 + second, 192)
        points = [(begin + datetime.timedelta(seconds=second), 1.5, None) for second in range(10)]
        assert writer.extend(pump, points) == 10
        assert writer.waiting == 110
        assert writer.commit() == counterfoil.Written(points=110, kept_apart=0, expired=0)
    assert (readings.name, readings.columns) == ("readings", ["sensor", "ts", "value", "quality"])
    assert readings.count() == 110
    assert readings.newest("boiler") == ("boiler", begin + datetime.timedelta(seconds=99), 179.0, 192)
    assert readings.newest("nothing") is None
    first, last = begin + datetime.timedelta(seconds=3), begin + datetime.timedelta(seconds=5)
    assert [row[2] for row in readings.read("boiler", first=first, last=last)] == [83.0, 84.0, 85.0]
    table = readings.read().arrow()
    assert (table.num_rows, table.column_names) == (110, readings.columns)
    assert readings.read("pump").columns == readings.columns
    assert memory.execute("SELECT count(*) FROM readings").fetchone() == (110,)


def test_points_come_as_arrow(readings: counterfoil.Series) -> None:
    begin = datetime.datetime(2024, 2, 29)
    times = [begin + datetime.timedelta(seconds=second) for second in range(1000)]
    table = pyarrow.table({"sensor": ["boiler"] * 1000, "ts": times, "value": [1.0] * 1000})
    assert readings.append(table) == 1000
    assert readings.count() == 1000


def test_what_an_exception_ends_is_not_stored(readings: counterfoil.Series) -> None:
    with pytest.raises(ZeroDivisionError), readings.writer() as writer:
        writer.push(writer.cursor("boiler"), 0, 1.0, None)
        raise ZeroDivisionError
    assert readings.count() == 0
    with pytest.raises(counterfoil.ProgrammingError, match="the writer is closed"):
        writer.commit()
    writer = readings.writer()
    writer.push(writer.cursor("boiler"), 0, 1.0, None)
    writer.discard()
    assert writer.commit().points == 0
    writer.close()


def test_what_cannot_be(readings: counterfoil.Series, memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE other (a INTEGER)")
    with pytest.raises(counterfoil.ProgrammingError, match="other is no series table"):
        memory.series("other")
    with pytest.raises(counterfoil.NotFound):
        memory.series("nowhere")
    writer = readings.writer()
    cursor = writer.cursor("boiler")
    with pytest.raises(counterfoil.ProgrammingError, match="a time was expected, not a text"):
        writer.push(cursor, "now", 1.0, None)  # type: ignore[arg-type]
    for values in ((), (1.0,), (1.0, 2, 3)):
        with pytest.raises(counterfoil.Error):
            writer.push(cursor, 0, *values)
    with pytest.raises(counterfoil.Error):
        writer.push(readings.writer().cursor("boiler"), 0, 1.0, None)
    with pytest.raises(counterfoil.Error):
        readings.read("boiler", "more")
