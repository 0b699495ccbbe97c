"""Transmission with response, with every parameter of Figure 1."""

from priocast.core.identity import ProcessId
from priocast.links.transmission import Transmission, TransmissionTimes, earliest

A, B, C = (ProcessId(name, 1) for name in "abc")


def transmission(
    wanted: int | None = None,
    *,
    retries_max: int | None = 3,
    same_retry: bool = False,
    send_first: bool = True,
    expected: tuple[ProcessId, ...] = (A, B, C),
) -> Transmission[str]:
    return Transmission(
        expected,
        wanted,
        timeout_ns=10,
        retries_max=retries_max,
        same_retry=same_retry,
        send_first=send_first,
    )


def test_the_bag_has_one_response_per_process() -> None:
    run = transmission()
    assert run.start(0)
    run.on_response(A, 1, "first")
    run.on_response(A, 1, "second")
    assert run.responses == {A: "first"}
    assert run.missing == [B, C]
    assert not run.complete


def test_it_ends_when_all_have_answered() -> None:
    run = transmission()
    run.start(0)
    for process in (A, B, C):
        run.on_response(process, 1, "")
    assert run.complete
    assert run.waits_until is None
    assert not run.exhausted
    assert not run.on_tick(100)


def test_wanted_responses_are_enough() -> None:
    run = transmission(2)
    run.start(0)
    run.on_response(C, 1, "")
    assert not run.complete
    run.on_response(A, 1, "")
    assert run.complete


def test_without_wanted_responses_it_ends_when_it_starts() -> None:
    run = transmission(0)
    assert run.start(0)
    assert run.complete
    assert run.waits_until is None


def test_responses_of_others_do_not_count() -> None:
    run = transmission(1, expected=(A,))
    run.start(0)
    run.on_response(B, 1, "")
    assert not run.complete


def test_it_is_sent_again_when_the_timer_expires() -> None:
    run = transmission()
    run.start(0)
    assert not run.on_tick(9)
    assert run.on_tick(10)
    assert run.retry == 2
    assert run.waits_until == 20


def test_it_is_sent_as_often_as_allowed() -> None:
    run = transmission(retries_max=3)
    run.start(0)
    run.on_response(B, 1, "")
    assert [run.on_tick(10), run.on_tick(20), run.on_tick(30), run.on_tick(40)] == [True, True, False, False]
    assert run.exhausted
    assert run.missing == run.silent == [A, C]


def test_without_a_bound_the_intervals_grow_and_it_never_ends() -> None:
    run = transmission(retries_max=None)
    run.start(0)
    intervals, now = [], 0
    for _ in range(7):
        assert run.waits_until is not None
        intervals.append(run.waits_until - now)
        now = run.waits_until
        assert run.on_tick(now)
    assert intervals == [10, 20, 40, 80, 160, 160, 160]
    assert not run.exhausted


def test_responses_are_kept_from_one_retry_to_the_next() -> None:
    run = transmission(expected=(A, B))
    run.start(0)
    run.on_response(A, 1, "")
    run.on_tick(10)
    run.on_response(B, 2, "")
    assert run.complete


def test_with_order_all_must_answer_the_same_retry() -> None:
    run = transmission(expected=(A, B), same_retry=True)
    run.start(0)
    run.on_response(A, 1, "")
    run.on_tick(10)
    run.on_response(B, 2, "")
    run.on_response(A, 1, "late")
    assert not run.complete
    run.on_response(A, 2, "")
    assert run.complete
    assert run.responses == {A: "", B: ""}


def test_who_answered_an_earlier_retry_is_missing_and_not_silent() -> None:
    run = transmission(expected=(A, B), same_retry=True, retries_max=2)
    run.start(0)
    run.on_response(A, 1, "")
    run.on_tick(10)
    run.on_tick(20)
    assert run.exhausted
    assert run.missing == [A, B]
    assert run.silent == [B]


def test_the_first_transmission_can_be_skipped() -> None:
    run = transmission(send_first=False)
    assert not run.start(0)
    assert run.on_tick(10), "another process sent it, and responses are missing"


def test_a_transmission_by_another_process_restarts_the_timer() -> None:
    run = transmission(send_first=False)
    run.start(0)
    run.on_sent_by_another(7)
    assert not run.on_tick(16)
    assert run.on_tick(17)


def test_who_departs_is_not_waited_for() -> None:
    run = transmission(expected=(A, B))
    run.start(0)
    run.on_response(A, 1, "")
    run.on_departure(B)
    assert run.complete
    assert run.waits_until is None


def test_the_response_of_a_process_that_departs_does_not_count() -> None:
    run = transmission(2)
    run.start(0)
    run.on_response(A, 1, "")
    run.on_departure(A)
    run.on_response(B, 1, "")
    assert not run.complete
    run.on_departure(C)
    assert run.complete, "no more can answer"


def test_the_earliest_time() -> None:
    assert earliest([None, 5, 3]) == 3
    assert earliest([None]) is None


def test_the_next_timer_is_found_although_timers_move_and_end() -> None:
    times = TransmissionTimes[str]()
    moves, ends, stays = (transmission(send_first=False) for _ in range(3))
    for at, (name, run) in enumerate({"moves": moves, "ends": ends, "stays": stays}.items()):
        run.start(at)
        times.add(name, run)
    assert times.next_at == 10
    for process in (A, B, C):
        ends.on_response(process, 1, "")
    moves.on_sent_by_another(5)
    assert times.next_at == 12
    assert times.expired(11) == []
    assert times.expired(20) == ["moves", "stays"], "in the order of their start"
    assert times.expired(20) == ["moves", "stays"], "until they have been given the time"
    assert moves.on_tick(20) and stays.on_tick(20)
    assert times.expired(20) == []
    assert times.next_at == 30


def test_a_transmission_that_ended_at_its_start_has_no_timer() -> None:
    times = TransmissionTimes[str]()
    unreliable = transmission(0)
    unreliable.start(0)
    times.add("unreliable", unreliable)
    assert times.next_at is None
