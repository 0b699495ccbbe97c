"""Rules of the qualities of service in a group: each that is missing is detected by a test."""

from collections.abc import Callable
from functools import partial

import pytest

from membership import test_group_services as of_groups
from membership import test_inaccessibility as of_silence
from membership import test_service_clients as of_clients
from membership import test_unanswered_members as of_members
from priocast.core.quality import ATOMIC, RELIABLE
from priocast.links.transmission import Transmission
from priocast.membership.failure_detector import FailureDetector
from priocast.membership.group_services import GroupServices
from priocast.membership.service_clients import ServiceClients
from priocast.services.service_host import ServiceHost
from priocast.services.services import Services


def views_are_not_passed_on(patch: pytest.MonkeyPatch) -> None:
    honest = ServiceHost.on_view

    def on_view(self: ServiceHost, view: object, now: int) -> None:
        if self._view is None:
            honest(self, view, now)  # type: ignore[arg-type]

    patch.setattr(ServiceHost, "on_view", on_view)


def suspects_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupServices, "on_suspects", lambda self, _: self._host.suspects.clear())


def members_without_a_quorum_send_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupServices, "_check_membership", lambda *_: None)


def equal_messages_do_not_take_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupServices, "take", lambda self, now: self._host.take(now))


def every_view_is_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupServices, "_is_settled", lambda *_: True)


def silence_of_all_counts(patch: pytest.MonkeyPatch) -> None:
    honest = FailureDetector.be_awake

    def be_awake(self: FailureDetector, now: int) -> None:
        self.inaccessibility.bound_ns = 0
        honest(self, now)

    patch.setattr(FailureDetector, "be_awake", be_awake)


def timers_run_in_the_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServiceHost, "_is_excused", lambda *_: False)


def what_was_sent_into_the_silence_counts(patch: pytest.MonkeyPatch) -> None:
    def on_inaccessible(self: Transmission[object], duration_ns: int) -> None:
        if self.waits_until is not None:
            self.waits_until += duration_ns

    patch.setattr(Transmission, "on_inaccessible", on_inaccessible)


def the_clock_stops_with_the_timers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Services, "release_at", lambda *_: None)


def repeated_requests_are_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ServiceClients, "on_send", lambda self, client, request, now: self._send((client, 0), request, now)
    )


def clients_have_no_quota(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServiceClients, "_check_quota", lambda *_: None)


DETECTED: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (
        views_are_not_passed_on,
        of_groups.test_a_new_member_takes_part_and_one_that_left_is_no_longer_waited_for,
    ),
    (suspects_are_ignored, of_members.test_a_member_that_does_not_answer_on_a_bounded_network_is_evicted),
    (members_without_a_quorum_send_everything, of_groups.test_without_a_quorum_only_best_effort_is_sent),
    (
        equal_messages_do_not_take_turns,
        of_groups.test_the_more_urgent_of_the_two_heads_goes_first_and_equal_ones_take_turns,
    ),
    (every_view_is_settled, of_members.test_a_member_that_learns_of_the_view_later_is_not_taken_for_failed),
    (silence_of_all_counts, of_silence.test_a_silent_network_changes_no_view_and_the_period_is_counted),
    (
        timers_run_in_the_silence,
        partial(of_silence.test_what_is_sent_into_the_silence_arrives_after_it, RELIABLE),
    ),
    (
        what_was_sent_into_the_silence_counts,
        partial(of_silence.test_what_is_sent_into_the_silence_and_then_lost_arrives, ATOMIC),
    ),
    (the_clock_stops_with_the_timers, of_silence.test_delivery_by_the_clock_does_not_stop_with_the_timers),
    (repeated_requests_are_sent_again, of_clients.test_a_repeated_request_is_sent_once_and_answered_again),
    (clients_have_no_quota, of_clients.test_clients_have_a_share_of_the_room),
]


@pytest.mark.parametrize(("mutant", "test"), DETECTED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_missing_rule_is_detected(
    mutant: Callable[[pytest.MonkeyPatch], None], test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        test()
