"""Log formats: the records of all `priocast` loggers as text for people or as JSON for programs.

Every record has a message and fields (`extra`): group, member, view, reason, …. In text, the fields follow
the message; in JSON, a record is one object per line.
"""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Literal, TextIO

from priocast.core.errors import InvalidOption
from priocast.operations.visible_text import visible

LEVELS = ("debug", "info", "warning", "error")
LogFormat = Literal["text", "json"]
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_REJECTION_SECONDS = 1.0


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, event, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class TextFormatter(logging.Formatter):
    """One line of text: time (local), level, message, and the fields of the record; a traceback follows."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        clock = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}"
        fields = " ".join(f"{name}={_shown(value)}" for name, value in fields_of(record).items())
        line = f"{clock} {record.levelname.lower():<7} {record.getMessage()}"
        line = visible(f"{line}  ({fields})" if fields else line)
        return f"{line}\n{_visible_lines(self.formatException(record.exc_info))}" if record.exc_info else line


class OncePerSecond(logging.Filter):
    """Passes records about rejections at most once per second for each logger, group and reason.

    The counts in the records continue meanwhile. Invalid input from the network must not flood the log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        fields = vars(record)
        if "reason" not in fields or "count" not in fields:
            return True
        key, now = (record.name, str(fields.get("group")), str(fields["reason"])), time.monotonic()
        if now - self._passed_at.get(key, -_REJECTION_SECONDS) < _REJECTION_SECONDS:
            return False
        self._passed_at[key] = now
        return True


def configure_logging(log_format: str, level: str, stream: TextIO | None = None) -> logging.Handler:
    """Log the records of all Priocast loggers from this level on; return the handler."""
    if level not in LEVELS:
        raise InvalidOption(f"the log level is {level!r}: must be one of {', '.join(LEVELS)}")
    formatters = {"text": TextFormatter, "json": JsonFormatter}
    if log_format not in formatters:
        raise InvalidOption(f"the log format is {log_format!r}: must be text or json")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatters[log_format]())
    handler.addFilter(OncePerSecond())
    logger = logging.getLogger("priocast")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    return handler


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields given as `extra`, without empty ones."""
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _visible_lines(text: str) -> str:
    """A traceback, which has several lines, each indented so that it cannot pass for a record."""
    return "\n".join(f"  {visible(line)}" for line in text.split("\n"))


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return repr(text) if " " in text else text
