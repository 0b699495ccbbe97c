"""Logs: sentences with facts, for people and for programs; and no flood."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from priocast.core.errors import InvalidOption
from priocast.operations.logs import configure_logging

LOG = logging.getLogger("priocast.group")


@contextmanager
def logged(log_format: str, level: str = "info") -> Iterator[io.StringIO]:
    """What is logged meanwhile; then all is as it was."""
    logger = logging.getLogger("priocast")
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    configure_logging(log_format, level, stream)
    try:
        yield stream
    finally:
        logger.handlers[:], logger.level, logger.propagate = before


def test_as_json_a_record_is_an_object_with_its_fields() -> None:
    with logged("json") as stream:
        LOG.warning(
            "blocked on credit from %s", "c", extra={"group": "tickets", "seconds": 3.2, "detail": ""}
        )
        LOG.debug("not this")
    told = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", told.pop("time"))
    assert told == {
        "level": "warning",
        "logger": "priocast.group",
        "event": "blocked on credit from c",
        "group": "tickets",
        "seconds": 3.2,
    }


def test_as_text_a_record_is_a_line_for_a_person() -> None:
    with logged("text") as stream:
        LOG.info("in view 2", extra={"members": ["a#1", "b#1"], "reason": "c failed", "took_ms": 4.0})
    line = stream.getvalue()
    assert re.fullmatch(
        r"[-0-9]{10} [0-9:]{8}\.\d{3} info    in view 2  \(members=a#1,b#1 reason='c failed' took_ms=4\)\n",
        line,
    )


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_an_exception_is_told_whole(log_format: str) -> None:
    with logged(log_format) as stream:
        try:
            raise ValueError("a fault of our own")
        except ValueError:
            LOG.exception("stopped")
    assert "ValueError: a fault of our own" in stream.getvalue()


def test_a_reason_to_refuse_is_told_once_a_second_with_its_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("priocast.operations.logs.time.monotonic", lambda: now[0])
    with logged("json") as stream:
        for count in range(1, 6):
            LOG.warning("refused", extra={"reason": "malformed", "count": count, "group": "tickets"})
        LOG.warning("refused", extra={"reason": "malformed", "count": 1, "group": "audit"})
        LOG.warning("refused", extra={"reason": "too long", "count": 1, "group": "tickets"})
        LOG.info("in view 2", extra={"reason": "c failed"})
        LOG.info("in view 3", extra={"reason": "c failed"})
        now[0] += 1.01
        LOG.warning("refused", extra={"reason": "malformed", "count": 900, "group": "tickets"})
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["reason"], each.get("count")) for each in told] == [
        ("malformed", 1),
        ("malformed", 1),
        ("too long", 1),
        ("c failed", None),
        ("c failed", None),
        ("malformed", 900),
    ]


def test_what_cannot_be_chosen_is_named() -> None:
    with pytest.raises(InvalidOption, match="log level 'loud' is not known: choose debug, info"):
        configure_logging("text", "loud")
    with pytest.raises(InvalidOption, match="log format 'xml' is not known: choose text or json"):
        configure_logging("xml", "info")
