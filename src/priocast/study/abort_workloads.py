"""The workloads of the study of aborts: requests that constraints may abort, depending on the order.

A request raises or lowers the values of items, which must not become negative: free seats of a show, balances
of accounts, quantities in stock. What is raised can always be raised. So the best order of requests that wait
together is known: first those that raise a value, then as many of the others as possible.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from priocast.core.priority import BACKGROUND, ELEVATED, ROUTINE, URGENT
from priocast.sql.policy import PriorityPolicy, ProcedureRule, SmallestFirst

_REQUESTS_PER_ITEM = 6
_POOL = 3


class AbortRequest(msgspec.Struct, frozen=True):
    """A call of a procedure; `changes` is what it does to items. A `favoured` one is to be early."""

    procedure: str
    arguments: dict[str, int]
    changes: dict[int, int]
    favoured: bool


class AbortWorkload(msgspec.Struct, frozen=True):
    """A kind of application: its table, its procedures, its policy, and how requests are drawn.

    `draw` gets the items of a round and draws one request. An item has the value `initial` at first.
    """

    name: str
    schema: str
    fill: str
    procedures: dict[str, str]
    policy: PriorityPolicy
    initial: int
    draw: Callable[[random.Random, Sequence[int]], AbortRequest]

    def round_of(self, rng: random.Random, first_item: int, count: int) -> list[AbortRequest]:
        """The requests of one round, for items of its own, from `first_item` on."""
        items = range(first_item, first_item + items_of(count))
        return [self.draw(rng, items) for _ in range(count)]


def items_of(count: int) -> int:
    """How many items a round with this many requests has."""
    return max(1, count // (_REQUESTS_PER_ITEM * _POOL)) * _POOL


def fewest_aborts(requests: Sequence[AbortRequest], initial: int) -> int:
    """How many requests abort in the best order, if all items have the initial value before."""
    values: defaultdict[int, int] = defaultdict(lambda: initial)
    lowering = []
    for request in requests:
        if all(change >= 0 for change in request.changes.values()):
            for item, change in request.changes.items():
                values[item] += change
        else:
            lowering.append(request)
    return sum(len(part) - _most(part, values) for part in _independent(lowering))


def _independent(requests: Sequence[AbortRequest]) -> list[list[AbortRequest]]:
    """Requests in parts that have no item in common."""
    parts: list[tuple[set[int], list[AbortRequest]]] = []
    for request in requests:
        items, members = set(request.changes), [request]
        apart = []
        for others, of_others in parts:
            if items & others:
                items, members = items | others, [*of_others, *members]
            else:
                apart.append((others, of_others))
        parts = [*apart, (items, members)]
    return [members for _, members in parts]


def _most(requests: Sequence[AbortRequest], values: Mapping[int, int]) -> int:
    """How many requests that lower values can commit, at most."""
    by_size = sorted(requests, key=_size)
    return _search(by_size, 0, {item: values[item] for each in requests for item in each.changes}, 0, 0)


def _size(request: AbortRequest) -> int:
    return -sum(request.changes.values())


def _search(
    requests: Sequence[AbortRequest], index: int, left: dict[int, int], chosen: int, best: int
) -> int:
    """The most that can be chosen of what follows; branches that cannot exceed the best are not entered.

    The smallest requests come first, and the first branch takes all that there is room for.
    """
    if index == len(requests):
        return max(chosen, best)
    room = sum(left.values()) // _size(requests[index])
    if chosen + min(room, len(requests) - index) <= best:
        return best
    changes = requests[index].changes
    if all(left[item] + change >= 0 for item, change in changes.items()):
        after = left | {item: left[item] + change for item, change in changes.items()}
        best = _search(requests, index + 1, after, chosen + 1, best)
    return _search(requests, index + 1, left, chosen, best)


def _ticket(rng: random.Random, shows: Sequence[int]) -> AbortRequest:
    show, seats = rng.choice(shows), rng.choice((1, 1, 2, 2, 3, 4, 5, 6))
    return AbortRequest("buy", {"show": show, "seats": seats}, {show: -seats}, favoured=seats <= 2)


def _transfer(rng: random.Random, accounts: Sequence[int]) -> AbortRequest:
    account = rng.choice(accounts)
    if rng.random() < 0.4:
        amount = rng.randrange(5, 40)
        return AbortRequest("deposit", {"account": account, "amount": amount}, {account: amount}, True)
    amount = rng.randrange(5, 60)
    return AbortRequest("withdraw", {"account": account, "amount": amount}, {account: -amount}, False)


def _order(rng: random.Random, items: Sequence[int]) -> AbortRequest:
    if rng.random() < 0.25:
        item, count = rng.choice(items), rng.randrange(2, 10)
        return AbortRequest("restock", {"item": item, "count": count}, {item: count}, True)
    pool = rng.randrange(max(1, len(items) // _POOL)) * _POOL
    one, other = rng.sample(items[pool : pool + _POOL], 2)
    count = rng.choice((1, 1, 2, 3, 4, 6))
    arguments = {"one": one, "other": other, "count": count}
    return AbortRequest("order", arguments, {one: -count, other: -count}, favoured=count <= 2)


WORKLOADS = {
    workload.name: workload
    for workload in (
        AbortWorkload(
            "tickets",
            "CREATE TABLE shows (id INTEGER PRIMARY KEY, free INTEGER NOT NULL "
            "CONSTRAINT sold_out CHECK (free >= 0));",
            "INSERT INTO shows (id, free) VALUES (:id, :value)",
            {"buy": "UPDATE shows SET free = free - :seats WHERE id = :show"},
            PriorityPolicy(SmallestFirst("seats", largest=6)),
            12,
            _ticket,
        ),
        AbortWorkload(
            "bank",
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL "
            "CONSTRAINT solvent CHECK (balance >= 0));",
            "INSERT INTO accounts (id, balance) VALUES (:id, :value)",
            {
                "deposit": "UPDATE accounts SET balance = balance + :amount WHERE id = :account",
                "withdraw": "UPDATE accounts SET balance = balance - :amount WHERE id = :account",
            },
            PriorityPolicy(
                ProcedureRule("deposit", ELEVATED),
                SmallestFirst("amount", largest=60, smallest=5, first=ROUTINE, last=BACKGROUND),
            ),
            20,
            _transfer,
        ),
        AbortWorkload(
            "stock",
            "CREATE TABLE items (id INTEGER PRIMARY KEY, quantity INTEGER NOT NULL "
            "CONSTRAINT in_stock CHECK (quantity >= 0));",
            "INSERT INTO items (id, quantity) VALUES (:id, :value)",
            {
                "restock": "UPDATE items SET quantity = quantity + :count WHERE id = :item",
                "order": "UPDATE items SET quantity = quantity - :count WHERE id IN (:one, :other)",
            },
            PriorityPolicy(ProcedureRule("restock", URGENT), SmallestFirst("count", largest=6)),
            10,
            _order,
        ),
    )
}
