"""The processor time of a message, compiled and interpreted: `python -m benchmarks.message_cost`.

All members are in one process, without a network and in virtual time (`driven_group.py`). A case is an order
and a burst: that many messages of each member, of eight levels in turn; a burst of 1 is a lone message of one
member. Both versions are measured by turns, and the shortest time of all rounds counts, because what disturbs
the machine only adds to it.
"""

import argparse
import subprocess
import sys
from functools import partial

import msgspec
from tools.compiled_tree import ROOT, environment

from benchmarks.driven_group import DrivenGroup

ORDERS = ("sequencer-ub", "token-ring", "causal-history", "agreement-skeen", "reorder", "reorder-locks")
BURSTS = (1, 64, 512)
LEVELS = 8
MEMBERS = 4
_MESSAGES = 1024
_LONE_MESSAGES = 100
_ROUNDS_WITHIN = 3
_SETTLING_MS = 300

Times = dict[str, float]


def microseconds_per_message(order: str, burst: int) -> float:
    """The processor time of a message, in all members together."""
    group = settled_group(MEMBERS, order)
    senders = None if burst == 1 else list(group.members)
    return min(microseconds(group, burst, senders=senders) for _ in range(_ROUNDS_WITHIN))


def settled_group(members: int, order: str) -> DrivenGroup:
    """A group whose founding is over."""
    group = DrivenGroup(members, order)
    group.wait_view()
    group.run(_SETTLING_MS)
    return group


def microseconds(
    group: DrivenGroup, burst: int, payload_bytes: int = 64, senders: list[str] | None = None
) -> float:
    """The processor time of a message in all members, if these broadcast bursts; the second if none."""
    names = list(group.members)
    senders = senders or names[1:2]
    payload, wanted = bytes(payload_bytes), _LONE_MESSAGES if burst == 1 else _MESSAGES
    group.seconds, messages = 0.0, 0
    while messages < wanted:
        for name in senders:
            for number in range(burst):
                group.broadcast(name, payload, (messages + number) % LEVELS)
        messages += burst * len(senders)
        expected = group.deliveries + burst * len(senders) * len(names)
        group.run_until(partial(_has_delivered, group, expected))
    return group.seconds / messages * 1e6


def _has_delivered(group: DrivenGroup, expected: int) -> bool:
    return group.deliveries >= expected


def measure_here(orders: list[str]) -> Times:
    """All cases, in this process."""
    return {
        f"{order} {burst}": microseconds_per_message(order, burst) for order in orders for burst in BURSTS
    }


def _measured_by_child(orders: list[str], *, pure: bool) -> Times:
    command = [sys.executable, "-m", "benchmarks.message_cost", "--here", *orders]
    done = subprocess.run(command, env=environment(pure=pure), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("orders", nargs="*", default=ORDERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="measure this process only, and print JSON")
    arguments = parser.parse_args()
    orders = list(arguments.orders)
    if arguments.here:
        print(msgspec.json.encode(measure_here(orders)).decode())
        return
    rounds = [
        [_measured_by_child(orders, pure=pure) for pure in (True, False)] for _ in range(arguments.rounds)
    ]
    print(f"{MEMBERS} members, us of processor time per message, in all members together")
    for case in rounds[0][0]:
        sources, compiled = (min(each[version][case] for each in rounds) for version in (0, 1))
        print(f"{case:24} sources {sources:8.2f}  compiled {compiled:8.2f}  ratio {compiled / sources:.2f}")


if __name__ == "__main__":
    main()
