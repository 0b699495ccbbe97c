"""Tickets that are sold by three members of a group: the fewer seats a request is for, the earlier it is."""

import asyncio

import priocast
from priocast.sql import PriorityPolicy, ProcedureCursor, SmallestFirst, connect

SCHEMA = """
    CREATE TABLE seats (id INTEGER PRIMARY KEY, buyer TEXT);
    INSERT INTO seats (id) SELECT value FROM json_each('[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]');
"""


def buy(cursor: ProcedureCursor, buyer: str, seats: int) -> int:
    free = cursor.execute("SELECT id FROM seats WHERE buyer IS NULL ORDER BY id LIMIT ?", (seats,))
    if len(free) < seats:
        raise LookupError(f"only {len(free)} left")
    for (seat,) in free:
        cursor.execute("UPDATE seats SET buyer = ? WHERE id = ?", (buyer, seat))
    return seats


async def main() -> None:
    hub, priorities = priocast.MemoryHub(), PriorityPolicy(SmallestFirst("seats", largest=5))
    members = [
        connect("tickets", member=name, hub=hub, size=3, schema=SCHEMA, priorities=priorities)
        for name in "abc"
    ]
    for each in members:
        each.procedure(buy)
    await asyncio.gather(*members)
    requests = [(member, seats) for seats in (5, 4, 3, 2, 1) for member in members]
    calls = [
        member.call("buy", buyer=f"buyer {number}", seats=seats)
        for number, (member, seats) in enumerate(requests)
    ]
    served = [each for each in await asyncio.gather(*calls, return_exceptions=True) if isinstance(each, int)]
    print(f"requests for {sorted(served)} seats were served, {len(requests) - len(served)} were not")
    for each in members:
        sold = await each.execute("SELECT count(*) FROM seats WHERE buyer IS NOT NULL")
        print(f"{each.replica.me.name}: {sold.fetchone()} of 12 seats sold")
    await asyncio.gather(*(each.close() for each in members))


asyncio.run(main())
