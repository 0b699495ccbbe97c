"""Reports: said at once where somebody waits for them, and rarely elsewhere."""

from membership.builders import A, B, batch, epoch, options, view
from priocast.core.message import Scope
from priocast.core.protocol import Received
from priocast.membership.epoch import Epoch
from priocast.membership.packets import Held
from priocast.membership.reports import Reports
from priocast.protocols.flow.packets import Ordered

OLD = view(A, B)


def hold(of: Epoch, size: int = 10) -> None:
    of.retention.add(0, bytes(size))


def test_in_a_group_that_waits_for_reports_each_is_said_at_once_and_once() -> None:
    for chosen in ({"delivery": "safe"}, {"policy": "partitionable"}):
        reports, one = Reports(options(**chosen)), epoch(B, OLD)
        assert reports.due(one) is None
        hold(one)
        assert reports.due(one) == Held(OLD.id, (1, 0)) and reports.due(one) is None
        hold(one)
        assert reports.due(one) == Held(OLD.id, (2, 0))


def test_elsewhere_signs_of_life_say_enough_but_for_every_mebibyte() -> None:
    reports, one = Reports(options()), epoch(B, OLD)
    hold(one)
    assert reports.due(one) is None
    hold(one, 1024 * 1024)
    assert reports.due(one) == Held(OLD.id, (2, 0))
    hold(one)
    assert reports.due(one) is None


def test_a_safe_message_is_waited_for() -> None:
    reports, one = Reports(options()), epoch(B, OLD)
    packet_id = (0, one.retention.add(0, b"packet"))
    one.step(Received(A, Ordered(0, (batch(A, 0, scope=Scope(safe=True)),)), packet_id), 0)
    assert reports.are_awaited(one) and not reports.are_complete(one)
    assert reports.due(one) is not None
    one.retention.report(0, [1, 0])
    assert reports.are_complete(one), "everybody is known to hold it"


def test_a_new_view_begins_anew() -> None:
    reports = Reports(options(delivery="safe"))
    for number in (1, 2):
        one = epoch(B, view(A, B, number=number))
        hold(one)
        reports.begin()
        assert reports.due(one) is not None
