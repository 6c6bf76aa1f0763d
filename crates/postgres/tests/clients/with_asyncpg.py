"""asyncpg at its common work. The environment says where the server is (PGHOST and its kin)."""

import asyncio
import datetime
import decimal

import asyncpg


async def work(connection):
    await connection.execute(
        "CREATE TABLE a (id BIGINT PRIMARY KEY, name TEXT, v DOUBLE PRECISION, n NUMERIC(20,4), d DATE, at TIMESTAMPTZ)"
    )
    await connection.execute(
        "INSERT INTO a VALUES (1, 'é', 1.5, 12.34, '2024-02-29', '2024-01-01 12:30Z'), (2, NULL, NULL, NULL, NULL, NULL)"
    )
    first, second = await connection.fetch("SELECT * FROM a ORDER BY id")
    at = datetime.datetime(2024, 1, 1, 12, 30, tzinfo=datetime.timezone.utc)
    assert tuple(first) == (1, "é", 1.5, decimal.Decimal("12.34"), datetime.date(2024, 2, 29), at)
    assert tuple(second) == (2, None, None, None, None, None)
    for _ in range(3):
        assert await connection.fetchval("SELECT name FROM a WHERE name = $1", "é") == "é"
    try:
        async with connection.transaction():
            await connection.execute("INSERT INTO a (id) VALUES (3)")
            await connection.execute("INSERT INTO a (id) VALUES (1)")
    except asyncpg.IntegrityConstraintViolationError:
        pass
    assert await connection.fetchval("SELECT count(*) FROM a") == 2
    async with connection.transaction():
        seen = [row["v"] async for row in connection.cursor("SELECT v FROM generate_series(1, 1000) AS s(v)", prefetch=70)]
    assert seen == list(range(1, 1001))
    await connection.execute("DROP TABLE a")


async def main():
    connection = await asyncpg.connect()
    await work(connection)
    await connection.close()


asyncio.run(main())
