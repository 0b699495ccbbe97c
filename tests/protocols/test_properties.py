"""The shared property suite: every protocol of the registry, prioritised and plain, under every policy.

A new protocol is in it as soon as it is in `priocast.protocols.PROTOCOLS`.
"""

from itertools import combinations

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from priocast.core.errors import UnknownProtocol
from priocast.core.starvation import Ageing, Strict
from priocast.protocols import PROTOCOLS, find_protocol
from protocols.harness import Delivered
from protocols.orders import ORDERED_TWINS, ORDERS, TWINS, patiently
from protocols.schedules import MILLISECOND, Case, cases, check, check_waiting_in, play


@pytest.mark.parametrize(("order", "twin"), ORDERED_TWINS)
def test_every_guarantee_holds_whatever_the_schedule(order: str, twin: str) -> None:
    @settings(max_examples=patiently(40))
    @given(cases(order, *TWINS[twin]))
    def holds(case: Case) -> None:
        check(case)

    holds()


@pytest.mark.parametrize(("order", "twin"), ORDERED_TWINS)
def test_whoever_is_waited_for_can_end_the_wait(order: str, twin: str) -> None:
    """Whom a member waits for may be evicted for it: it must be somebody whose consumption would help."""

    @settings(max_examples=patiently(16))
    @given(cases(order, *TWINS[twin]))
    def holds(case: Case) -> None:
        check_waiting_in(case)

    holds()


@pytest.mark.parametrize("order", ORDERS)
def test_a_protocol_is_deterministic(order: str) -> None:
    @settings(max_examples=patiently(12))
    @given(cases(order, True, Ageing(MILLISECOND)))
    def repeats(case: Case) -> None:
        assert play(case).journal == play(case).journal

    repeats()


@pytest.mark.parametrize("order", ORDERS)
def test_schedules_reach_what_they_are_for(order: str) -> None:
    """An urgent message overtakes an earlier one of its own sender: without a backlog that never happens."""

    def overtakes(case: Case) -> bool:
        group = play(case)
        first = next(iter(group.members))
        delivered = [
            happened.message
            for happened in group.journal
            if isinstance(happened, Delivered) and happened.member == first
        ]
        return any(
            one.sender == other.sender
            and one.priority > other.priority
            and int(one.payload.rstrip(b".")) > int(other.payload.rstrip(b"."))
            for one, other in combinations(delivered, 2)
        )

    search = settings(max_examples=500, database=None, phases=[Phase.generate])
    check(find(cases(order, True, Strict()), overtakes, settings=search))


@given(st.text(max_size=20).filter(lambda name: name not in PROTOCOLS))
def test_an_unknown_protocol_is_rejected_with_the_known_names(name: str) -> None:
    with pytest.raises(UnknownProtocol, match=r"there are: .*sequencer-ub"):
        find_protocol(name)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocols_are_found_by_the_name_they_give_themselves(name: str) -> None:
    assert find_protocol(name) is PROTOCOLS[name]
    assert name == PROTOCOLS[name].NAME


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_says_what_it_gives_and_costs(name: str) -> None:
    module = __import__(PROTOCOLS[name].__module__, fromlist=["__doc__"])
    for heading in ("Gives:", "Costs:", "Orders:", "Assumes:", "Priorities act:", "Reference:", "Diverges:"):
        assert heading in (module.__doc__ or "")
