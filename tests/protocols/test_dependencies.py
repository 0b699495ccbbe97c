"""Dependency vectors suffice: a member that has exactly the packets of a vector knows the position.

In a group that goes on on both sides of a cut a message is delivered when its sender is known to hold these
packets. If they did not tell it the place, it would send the message again on its side.
"""

from itertools import count

import pytest
from hypothesis import given, settings

from priocast.core.identity import ProcessId
from priocast.core.message import OrderedBatch
from priocast.core.protocol import Packet
from priocast.core.protocol import Received as Hear
from priocast.core.starvation import Strict
from priocast.protocols import find_protocol
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from protocols.harness import Group, Sent
from protocols.schedules import NAMES, Case, act_out, cases

ORDERS = ["causal-history", "all-ack", "agreement-proposal"]


def _to_all(group: Group, name: str) -> list[Packet]:
    """What a member has sent to all, by number."""
    said = [happened for happened in group.journal if isinstance(happened, Sent) and happened.member == name]
    return [happened.packet for happened in said if happened.packet.TO_ALL]


def _told(group: Group, me: ProcessId, ordered_batch: OrderedBatch, backwards: bool) -> OrderingProtocol:
    """A member that has sent nothing and receives the packets of a dependency vector, sender by sender."""
    protocol = find_protocol(group.order)(me, group.view, group.options, group.position)
    protocol.in_flight.ordered = lambda _: None  # type: ignore[attr-defined]
    ranks = range(len(group.view.members))
    for rank in reversed(ranks) if backwards else ranks:
        sender = group.view.members[rank]
        for number, packet in enumerate(_to_all(group, sender.name)[: ordered_batch.dependencies[rank]], 1):
            protocol.step(Hear(sender, packet, (rank, number)), group.now)
    protocol.close()
    return protocol


@pytest.mark.parametrize("prioritised", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_packets_of_the_dependency_vector_determine_the_position(order: str, prioritised: bool) -> None:
    @settings(max_examples=60)
    @given(cases(order, prioritised, Strict()))
    def holds(case: Case) -> None:
        group = Group(NAMES[: case.size], case.order, case.options)
        act_out(group, case.actions, count())
        for member in group.members.values():
            ordered_batches = member.protocol.unconsumed()
            for ordered_batch in ordered_batches[:1] + ordered_batches[-1:]:
                for backwards in (False, True):
                    told = _told(group, member.me, ordered_batch, backwards)
                    assert told.position_next >= ordered_batch.position + ordered_batch.batch.count
                    places = {each.position: str(each.batch) for each in told.unconsumed()}
                    assert places.get(ordered_batch.position) == str(ordered_batch.batch)

    holds()
