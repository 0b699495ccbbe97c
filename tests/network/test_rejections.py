"""The log of rejections: every one is counted, and a flood of them is not a flood of log records."""

import logging
from itertools import pairwise

import pytest

from priocast.network.rejections import Reason, RejectionLog

LOGGER = "priocast.network"


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def _counts(caplog: pytest.LogCaptureFixture) -> list[int]:
    return [vars(record)["count"] for record in caplog.records]


def test_a_burst_within_one_second_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RejectionLog("a", clock)
    for _ in range(100):
        log.record(Reason.MALFORMED)
        clock.seconds += 0.0001
    assert _counts(caplog) == [1]
    assert log.counts == {Reason.MALFORMED: 100}


@pytest.mark.parametrize("interval", [0.0003, 0.1, 0.3, 1.0, 7.0])
def test_no_reason_is_logged_twice_within_a_second(
    interval: float, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    times: list[float] = []
    log = RejectionLog("a", clock)
    monkeypatch.setattr(logging.getLogger(LOGGER), "warning", lambda *_, **__: times.append(clock.seconds))
    for _ in range(10_000):
        log.record(Reason.NOT_PRIOCAST)
        clock.seconds += interval
    assert len(times) <= 14, "the count at least doubles between two records"
    assert min(after - before for before, after in pairwise(times)) >= 1.0


def test_a_record_after_a_pause_has_the_total_count(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RejectionLog("a", clock)
    for _ in range(8):
        log.record(Reason.MALFORMED)
    clock.seconds += 1.0
    log.record(Reason.MALFORMED)
    assert _counts(caplog) == [1, 9]


def test_reasons_are_limited_separately(caplog: pytest.LogCaptureFixture) -> None:
    log = RejectionLog("a", Clock())
    log.record(Reason.MALFORMED)
    log.record(Reason.TOO_LONG)
    log.record(Reason.MALFORMED)
    assert [vars(record)["reason"] for record in caplog.records] == [Reason.MALFORMED, Reason.TOO_LONG]


def test_a_record_has_a_sentence_and_fields(caplog: pytest.LogCaptureFixture) -> None:
    RejectionLog("a", Clock()).record(Reason.MALFORMED, "an empty frame", peer="b", address="127.0.0.1")
    [record] = caplog.records
    assert record.getMessage() == "a rejected: malformed content (1)"
    fields = {"member": "a", "reason": "malformed content", "count": 1, "detail": "an empty frame"}
    assert vars(record).items() >= {**fields, "peer": "b", "address": "127.0.0.1"}.items()
