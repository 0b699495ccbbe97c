"""Three control rooms of one plant: critical commands come before routine ones, and those before readings."""

import asyncio

import priocast
from priocast.sql import Database, PriorityPolicy, ProcedureRule, TableRule, connect

SCHEMA = """
    CREATE TABLE plant (
        id INTEGER PRIMARY KEY, heating INTEGER, cooling INTEGER, CONSTRAINT cooled CHECK (heating <= cooling)
    );
    CREATE TABLE readings (id INTEGER PRIMARY KEY, room TEXT, value INTEGER);
    INSERT INTO plant VALUES (1, 0, 0);
"""
PROCEDURES = {
    "cool": "UPDATE plant SET cooling = cooling + 5 WHERE id = 1",
    "heat": "UPDATE plant SET heating = heating + 1 WHERE id = 1",
    "record": "INSERT INTO readings (room, value) VALUES (:room, :value)",
}
CRITICAL_FIRST = PriorityPolicy(
    ProcedureRule("cool", priocast.URGENT), TableRule("readings", priocast.BACKGROUND)
)


async def control(room: Database, name: str) -> int:
    """Record, heat and cool, in this order; return how many routine commands were aborted."""
    readings = [room.call("record", room=name, value=value) for value in range(20)]
    routine = [room.call("heat") for _ in range(20)]
    critical = [room.call("cool") for _ in range(4)]
    results = await asyncio.gather(*readings, *routine, *critical, return_exceptions=True)
    return sum(isinstance(each, priocast.TransactionAborted) for each in results)


async def main() -> None:
    for name, priorities in (("plain", PriorityPolicy()), ("prioritised", CRITICAL_FIRST)):
        hub = priocast.MemoryHub()
        rooms = [
            connect("plant", member=room, hub=hub, size=3, schema=SCHEMA, priorities=priorities)
            for room in "abc"
        ]
        for room in rooms:
            for procedure, sql in PROCEDURES.items():
                room.procedure(procedure, sql)
        await asyncio.gather(*rooms)
        aborted = sum(await asyncio.gather(*map(control, rooms, "abc")))
        copies = [(await room.execute("SELECT heating, cooling FROM plant")).fetchone() for room in rooms]
        print(f"{name}: {aborted} of 60 routine commands aborted, heating and cooling {copies}")
        await asyncio.gather(*(room.close() for room in rooms))


asyncio.run(main())
