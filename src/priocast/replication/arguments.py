"""Checks of what callers pass to replicas, and what their errors say."""

import math
from collections.abc import Callable
from typing import Any

from priocast.core.errors import CommandFailed, InvalidInput, InvalidOption, OutcomeUnknown, PayloadTooLarge
from priocast.core.identity import NUMBER_MAX
from priocast.core.priority import HIGHEST, LOWEST, check_priority
from priocast.replication.commands import COMMAND_BYTES_MAX, SESSION_LENGTH_MAX, CommandId
from priocast.replication.sessions import Outcome
from priocast.runtime.arguments import check_kind, check_seconds


def check_command(command: bytes, priority: int, timeout_seconds: float) -> None:
    """Raise if this cannot be submitted."""
    if (
        type(command) is bytes
        and len(command) <= COMMAND_BYTES_MAX
        and type(priority) is int
        and LOWEST <= priority <= HIGHEST
        and type(timeout_seconds) is float
        and abs(timeout_seconds) < math.inf
    ):
        return  # every command passes here: the checks one by one cost three times as much
    check_body("a command", command)
    check_priority(priority)
    check_seconds("timeout_seconds", timeout_seconds)


def check_body(what: str, body: bytes) -> None:
    """Raise if these are not bytes, or too many for one message."""
    if type(body) is not bytes:
        raise InvalidInput(f"{what} must be bytes, not {type(body).__name__}: encode it first")
    if len(body) > COMMAND_BYTES_MAX:
        raise PayloadTooLarge(f"{what} must have at most {COMMAND_BYTES_MAX:,} bytes, not {len(body):,}")


def check_read(
    query: Callable[..., Any], priority: int, staleness_seconds: float, timeout_seconds: float
) -> None:
    """Raise if nothing can be read like this."""
    if not callable(query):
        raise InvalidInput(f"query must be a function of the state machine, not {query!r}")
    check_priority(priority)
    check_kind("staleness_seconds", staleness_seconds, int | float, "a number of seconds")
    if math.isnan(staleness_seconds) or staleness_seconds < 0:
        raise InvalidOption(f"staleness_seconds must not be negative, but is {staleness_seconds}")
    check_seconds("timeout_seconds", timeout_seconds)


def command_id_of(command: CommandId | str) -> CommandId:
    """The id of a command, which may be given as text."""
    if isinstance(command, CommandId):
        return command
    session, _, number = command.rpartition(":") if isinstance(command, str) else ("", "", "")
    valid = (
        0 < len(session) <= SESSION_LENGTH_MAX and number.isdecimal() and len(number) < len(str(NUMBER_MAX))
    )
    if not valid:
        raise InvalidInput(f"{command!r} is not the id of a command: it looks like 'a#1700000000000:5'")
    return CommandId(session, int(number))


def result_of(command: CommandId, outcome: Outcome) -> bytes:
    """The result of a command that was applied; otherwise the error that says what became of it."""
    match outcome.kind:
        case "applied":
            return outcome.body
        case "failed":
            text = outcome.body.decode(errors="replace")
            raise CommandFailed(text, text.partition(":")[0])
        case "void":
            raise CommandFailed(
                f"command {command} was not applied: it was settled before it was ordered", ""
            )
    raise OutcomeUnknown(f"command {command} was applied, but its result is not known any more", str(command))


def outcome_unknown(command: CommandId, timeout_seconds: float, why: str) -> OutcomeUnknown:
    """The error of a command that nobody answered in time."""
    return OutcomeUnknown(
        f"timed out after {timeout_seconds:g} s: command {command} may have been applied or not ({why}); "
        f"settle('{command}') tells what became of it",
        str(command),
    )
