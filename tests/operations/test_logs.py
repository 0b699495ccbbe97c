"""Log formats for people and for programs, and the rate limit for rejections."""

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
    """Capture the log; restore the configuration afterwards."""
    logger = logging.getLogger("priocast")
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    configure_logging(log_format, level, stream)
    try:
        yield stream
    finally:
        logger.handlers[:], logger.level, logger.propagate = before


def test_json_record_has_its_fields() -> None:
    with logged("json") as stream:
        LOG.warning("the order waits for %s", "c", extra={"group": "tickets", "seconds": 3.2, "detail": ""})
        LOG.debug("not this")
    record = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", record.pop("time"))
    assert record == {
        "level": "warning",
        "logger": "priocast.group",
        "event": "the order waits for c",
        "group": "tickets",
        "seconds": 3.2,
    }


def test_text_record_is_one_line() -> None:
    with logged("text") as stream:
        LOG.info("in view 2", extra={"members": ["a#1", "b#1"], "reason": "c failed", "took_ms": 4.0})
    line = stream.getvalue()
    assert re.fullmatch(
        r"[-0-9]{10} [0-9:]{8}\.\d{3} info    in view 2  \(members=a#1,b#1 reason='c failed' took_ms=4\)\n",
        line,
    )


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_text_of_others_cannot_forge_a_record(log_format: str) -> None:
    forged = "x\n2026-01-01 00:00:00.000 error   forged\x1b[2J\u202e"
    with logged(log_format) as stream:
        LOG.warning("rejected: %s", forged, extra={"detail": forged, "silent": [forged]})
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()
    assert r"\n2026-01-01" in line


def test_every_line_of_a_traceback_is_indented() -> None:
    with logged("text") as stream:
        try:
            raise ValueError("x\n2026-01-01 00:00:00.000 error   forged\x1b[2J")
        except ValueError:
            LOG.exception("a fault")
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("a fault")
    assert rest and all(line.startswith("  ") and line.isprintable() for line in rest)


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_exception_is_logged_with_its_traceback(log_format: str) -> None:
    with logged(log_format) as stream:
        try:
            raise ValueError("a fault of our own")
        except ValueError:
            LOG.exception("stopped")
    assert "ValueError: a fault of our own" in stream.getvalue()


def test_rejection_is_logged_at_most_once_per_second_and_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("priocast.operations.logs.time.monotonic", lambda: now[0])
    with logged("json") as stream:
        for count in range(1, 6):
            LOG.warning("rejected", extra={"reason": "malformed", "count": count, "group": "tickets"})
        LOG.warning("rejected", extra={"reason": "malformed", "count": 1, "group": "audit"})
        LOG.warning("rejected", extra={"reason": "too long", "count": 1, "group": "tickets"})
        LOG.info("in view 2", extra={"reason": "c failed"})
        LOG.info("in view 3", extra={"reason": "c failed"})
        now[0] += 1.01
        LOG.warning("rejected", extra={"reason": "malformed", "count": 900, "group": "tickets"})
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["reason"], each.get("count")) for each in records] == [
        ("malformed", 1),
        ("malformed", 1),
        ("too long", 1),
        ("c failed", None),
        ("c failed", None),
        ("malformed", 900),
    ]


def test_unknown_level_and_format_are_rejected() -> None:
    with pytest.raises(InvalidOption, match="the log level is 'loud': must be one of debug, info"):
        configure_logging("text", "loud")
    with pytest.raises(InvalidOption, match="the log format is 'xml': must be text or json"):
        configure_logging("xml", "info")
