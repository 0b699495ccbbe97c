"""Stability reporter: sent at once where a member waits for them, and rarely elsewhere."""

from membership.builders import A, B, C, batch, epoch, options, view
from priocast.core.message import Scope
from priocast.core.protocol import Received
from priocast.membership.epoch import Epoch
from priocast.membership.packets import StabilityReport
from priocast.membership.stability_reporter import StabilityReporter
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B)


def receive(of: Epoch, size: int = 10) -> None:
    of.stability.add(0, bytes(size))


def test_where_delivery_waits_for_reports_each_is_sent_at_once_and_once() -> None:
    for chosen in ({"delivery": "safe"}, {"policy": "partitionable"}):
        reporter, one = StabilityReporter(options(**chosen)), epoch(B, OLD)
        assert reporter.due(one) is None
        receive(one)
        assert reporter.due(one) == StabilityReport(OLD.id, (1, 0)) and reporter.due(one) is None
        receive(one)
        assert reporter.due(one) == StabilityReport(OLD.id, (2, 0))


def test_elsewhere_heartbeats_are_enough_but_for_every_two_mebibytes() -> None:
    reporter, one = StabilityReporter(options()), epoch(B, OLD)
    receive(one)
    assert reporter.due(one) is None
    receive(one, 2 * 1024 * 1024)
    assert reporter.due(one) == StabilityReport(OLD.id, (2, 0))
    receive(one)
    assert reporter.due(one) is None


def test_a_safe_message_waits_for_reports() -> None:
    reporter, one = StabilityReporter(options()), epoch(B, view(A, B, C))
    packet_id = (0, one.stability.add(0, b"packet"))
    one.step(Received(A, Ordered(0, (batch(A, 0, scope=Scope(safe=True)),)), packet_id), 0)
    assert not reporter.is_complete(one), "c has not acknowledged it"
    assert reporter.due(one) is not None
    one.stability.report(2, [1, 0, 0])
    assert reporter.is_complete(one), "everybody has acknowledged it, the sender by sending it"


def test_nobody_reports_its_own_packets() -> None:
    reporter, sender = StabilityReporter(options(delivery="safe")), epoch(A, OLD)
    receive(sender)
    assert reporter.due(sender) is None
    sender.stability.add(1, b"of b")
    assert reporter.due(sender) == StabilityReport(OLD.id, (1, 1))


def test_a_new_view_has_its_own_reports() -> None:
    reporter = StabilityReporter(options(delivery="safe"))
    for number in (1, 2):
        one = epoch(B, view(A, B, number=number))
        receive(one)
        assert reporter.due(one) is not None
