"""Errors of our own in handling a peer's input are logged with a traceback, and not without end."""

import logging

import pytest

from priocast.core.identity import ProcessId
from priocast.membership.fault_handler import HandlingFault
from priocast.runtime.fault_log import FaultLog
from support.stacks import Neighbourhood, founded


def test_faults_are_logged_with_a_traceback_each_time_their_count_has_doubled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    member, log = Neighbourhood("a").members["a"], FaultLog("g")
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            member.faults.append(HandlingFault(ProcessId("b"), KeyError("x")))
            log.take_from(member)
    assert [record.__dict__["count"] for record in caplog.records] == [1, 2, 4, 8, 16, 32, 64]
    assert all(record.exc_info and record.exc_info[0] is KeyError for record in caplog.records)
    assert "internal error in handling what b sent" in caplog.text and not member.faults


def test_other_options_of_a_process_are_logged_once_and_never_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    member, log = founded("ab").members["a"], FaultLog("g")
    joining = Neighbourhood("a").members["a"]
    with caplog.at_level(logging.WARNING):
        for number in range(200):
            for each in (member, member, joining):
                each.membership.mismatches.add(f"p{number}", '{"order": "reorder"}')
                log.log_mismatches(each)
    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].startswith("rejected: p0 has other group options: ")
    assert "order is 'sequencer-ub' here and 'reorder' at p0" in texts[0]
    assert len(texts) == 65 and "at p127" in texts[-1], "64, and after that each time the count has doubled"
    assert len(member.membership.mismatches.texts()) == 16
