"""What a node writes to its log: the records of the loggers below `priocast`, for people or for programs.

Every record has a sentence, and its facts as fields (`extra`): group, member, view, reason, …. As text, the
fields follow the sentence; as JSON, a record is one object a line.
"""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Literal, TextIO

from priocast.core.errors import InvalidOption

LEVELS = ("debug", "info", "warning", "error")
LogFormat = Literal["text", "json"]
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_REFUSAL_PAUSE_SECONDS = 1.0


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, event, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class TextFormatter(logging.Formatter):
    """A line that a person reads: time (local), level, sentence, and what else there is to know."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone()
        clock = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}"
        fields = " ".join(f"{name}={_shown(value)}" for name, value in fields_of(record).items())
        line = f"{clock} {record.levelname.lower():<7} {record.getMessage()}"
        line = f"{line}  ({fields})" if fields else line
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class OncePerSecond(logging.Filter):
    """Lets each reason to turn something away through at most once a second: the counts go on meanwhile.

    A flood from outside must not become a flood in the log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        fields = vars(record)
        if "reason" not in fields or "count" not in fields:
            return True
        key, now = (record.name, str(fields.get("group")), str(fields["reason"])), time.monotonic()
        if now - self._passed_at.get(key, -_REFUSAL_PAUSE_SECONDS) < _REFUSAL_PAUSE_SECONDS:
            return False
        self._passed_at[key] = now
        return True


def configure_logging(log_format: str, level: str, stream: TextIO | None = None) -> logging.Handler:
    """Write the records of all Priocast loggers, from this level on; return the handler that does."""
    if level not in LEVELS:
        raise InvalidOption(f"the log level {level!r} is not known: choose {', '.join(LEVELS)}")
    formatters = {"text": TextFormatter, "json": JsonFormatter}
    if log_format not in formatters:
        raise InvalidOption(f"the log format {log_format!r} is not known: choose text or json")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatters[log_format]())
    handler.addFilter(OncePerSecond())
    logger = logging.getLogger("priocast")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    return handler


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What was given as `extra`; a field without a value is left out."""
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return repr(text) if " " in text else text
