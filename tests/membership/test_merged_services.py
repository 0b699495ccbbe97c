"""Qualities of service in partitionable groups: after a merge everything works again."""

from contextlib import suppress
from random import Random

import pytest

from membership.test_group_services import send, taken
from priocast.core.errors import InvalidInput
from priocast.core.quality import ATOMIC, CAUSAL, RELIABLE, TIGHT, UNRELIABLE, at_least, best_effort
from support.stacks import Neighbourhood, founded

QUALITIES = (UNRELIABLE, best_effort(1), at_least(1), RELIABLE, CAUSAL, ATOMIC, TIGHT)


def send_some(group: Neighbourhood, random: Random, count: int, pause_ms: int) -> None:
    """Members send with any quality to the members of their views."""
    for _ in range(count):
        group.run(random.randint(0, pause_ms))
        name, quality = random.choice("abcd"), random.choice(QUALITIES)
        with suppress(InvalidInput):  # too few recipients
            send(group, name, "x", quality=quality, priority=random.choice((1, 7)))


@pytest.mark.parametrize("seed", [39, 128, 177, 198])
def test_after_partitions_every_quality_reaches_all_members_again(seed: int) -> None:
    random = Random(seed)
    group = founded("abcd", policy="partitionable")
    for _ in range(3):
        one, other = random.choice((("ab", "cd"), ("a", "bcd"), ("abc", "d")))
        send_some(group, random, random.randint(0, 6), 0)
        group.run(random.randint(0, 4))
        group.cut(one, other)
        send_some(group, random, random.randint(0, 12), 40)
        group.run(random.choice((0, 300)))
        group.lost = set()
        group.run_until(lambda: all(len(members) == 4 for members in group.views().values()))
        group.run(random.randint(0, 200))
    group.run(1_000)
    for number, quality in enumerate(QUALITIES):
        send(group, random.choice("abcd"), f"last {number}", quality=quality)
    group.run(1_000)
    for name, member in group.members.items():
        last = [text for text in taken(group, name) if text.startswith("last")]
        assert sorted(last) == [f"last {number}" for number in range(len(QUALITIES))]
        assert member.services.idle and not member.services.in_flight
