"""A SQL database with a copy in each of three processes: seats are sold once (needs priocast[sql])."""

import launch
import priocast
from priocast.sql import connect

SCHEMA = "CREATE TABLE seats (number INTEGER PRIMARY KEY, buyer TEXT NOT NULL)"


async def member(name: str, network: priocast.JoinParameters) -> None:
    async with connect("shop", member=name, schema=SCHEMA, **network) as database:
        try:
            await database.execute("INSERT INTO seats VALUES (7, ?)", [name])
            launch.show(f"{name}: bought seat 7")
        except priocast.TransactionAborted:
            [(buyer,)] = (await database.execute("SELECT buyer FROM seats")).fetchall()
            launch.show(f"{name}: {buyer!r} was faster")


launch.run(member)
