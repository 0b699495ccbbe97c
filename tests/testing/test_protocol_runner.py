"""A protocol by itself: own packets, packet ids, turns and timers."""

from core.builders import A, B, batch_of
from priocast.core.protocol import OrderingOptions, Packet
from priocast.core.view import View
from priocast.protocols import find_protocol
from priocast.testing.protocol_runner import Outgoing, ProtocolRunner

VIEW = View(1, (A, B))


class Observed(ProtocolRunner):
    """Notes the packets that it receives."""

    def on_packet_received(self, packet: Packet, sender: object, now: int) -> None:
        vars(self).setdefault("received", []).append((sender, packet.name(), tuple(self.received_counts)))


def runner(order: str, me: object = A) -> Observed:
    return Observed(find_protocol(order)(me, VIEW, OrderingOptions()))  # type: ignore[arg-type]


def test_a_member_receives_its_own_packets_in_the_next_step() -> None:
    sequencer = runner("sequencer-ub")
    sequencer.broadcast(batch_of(1), 0)
    assert sequencer.has_work
    sequencer.act(0)
    assert sequencer.protocol.head() is None
    sequencer.run_until_idle(0)
    head = sequencer.protocol.head()
    assert head is not None
    assert head.batch == batch_of(1)
    assert not sequencer.has_work


def test_packets_for_others_wait_in_the_outbox() -> None:
    sequencer, other = runner("sequencer-ub"), runner("sequencer-ub", B)
    sequencer.broadcast(batch_of(1), 0)
    sequencer.run_until_idle(0)
    outbox = sequencer.take_outbox()
    assert [(each.to, each.packet.name()) for each in outbox] == [(None, "ordered")]
    assert sequencer.take_outbox() == []
    for each in outbox:
        other.receive(A, each.packet, 0)
    other.run_until_idle(0)
    assert other.protocol.head() is not None
    assert vars(other)["received"] == [(A, "ordered", (1, 0))]


def test_consuming_may_send_packets() -> None:
    other = runner("sequencer-ub", B)
    other.receive(A, _ordered(), 0)
    other.consume(1, 0)
    other.run_until_idle(0)
    assert all(isinstance(each, Outgoing) and each.to == A for each in other.take_outbox())
    assert other.protocol.head() is None


def test_timers_are_kept_until_they_expire() -> None:
    layer = runner("time-parts/sequencer-ub")
    layer.broadcast(batch_of(1), 0)
    layer.run_until_idle(0)
    (name,) = layer.timers
    layer.fire(name, layer.timers[name])
    assert name not in layer.timers or layer.needs_turn


def _ordered() -> Packet:
    sequencer = runner("sequencer-ub")
    sequencer.broadcast(batch_of(1), 0)
    sequencer.run_until_idle(0)
    return sequencer.take_outbox()[0].packet
