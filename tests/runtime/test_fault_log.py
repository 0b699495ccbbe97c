"""Errors of our own in handling a peer's input are logged with a traceback, and not without end."""

import logging

import pytest

from priocast.core.identity import ProcessId
from priocast.membership.fault_handler import HandlingFault
from priocast.runtime.fault_log import FaultLog
from support.stacks import Neighbourhood


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
