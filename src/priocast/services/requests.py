"""What a call of `send` asks for: checked before anything is sent, with one clear error for each mistake."""

from collections.abc import Callable, Collection, Sequence

from priocast.core.errors import InvalidInput, PayloadTooLarge
from priocast.core.identity import ProcessId
from priocast.core.message import BATCH_COUNT_MAX, PAYLOAD_BYTES_MAX
from priocast.core.quality import Quality, QualityKind
from priocast.core.view import View
from priocast.services.options import ServiceOptions
from priocast.services.packets import RECIPIENTS_MAX

_MILLISECOND = 1_000_000
_REQUESTS_KEPT = 1024


def check_units(units: Sequence[bytes]) -> None:
    """Raise InvalidInput if one transmission cannot carry these units."""
    if not 1 <= len(units) <= BATCH_COUNT_MAX:
        raise InvalidInput(f"a message has {len(units)} units: send 1 to {BATCH_COUNT_MAX}")
    size = sum(map(len, units))
    if size > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(
            f"the units have {size:,} bytes together: at most {PAYLOAD_BYTES_MAX:,} are sent"
        )


class RequestCheck:
    """Checks what is to be sent in one view.

    Requests that are alike have the same recipients: what depends on nothing else is checked once.
    """

    def __init__(self, view: View, options: ServiceOptions) -> None:
        self._view = view
        self._options = options
        self._found: dict[tuple[Quality, tuple[str, ...] | None], tuple[ProcessId, ...]] = {}

    def recipients(
        self,
        quality: Quality,
        to: Collection[str] | None,
        now: int,
        deadline: int | None,
        precision_ns: Callable[[int], int | None],
    ) -> tuple[ProcessId, ...]:
        """The recipients in the order of the view, or InvalidInput if a message cannot be sent like that.

        `to` are the names of the recipients; None stands for all members. `deadline` is when the caller stops
        waiting, `precision_ns` how far this member's clock can be wrong at a time (None: not known).
        """
        if isinstance(to, str):
            raise InvalidInput(f"`to` is the text {to!r}: pass a list of names")
        key = quality, to if to is None or isinstance(to, tuple) else tuple(to)
        recipients = self._found.get(key)
        if recipients is None:
            recipients = _recipients(key[1], self._view)
            _check_agreement(quality, recipients)
            _check_network(quality, self._options)
            self._found[key] = recipients
            if len(self._found) > _REQUESTS_KEPT:
                del self._found[next(iter(self._found))]
        if deadline is not None and deadline <= now:
            late_ms = (now - deadline) / _MILLISECOND
            raise InvalidInput(f"the deadline was {late_ms:g} ms ago: nothing was sent")
        if quality.kind is QualityKind.DELTA:
            _check_delta(quality, len(recipients), self._options, precision_ns(now))
        return recipients


def _recipients(to: tuple[str, ...] | None, view: View) -> tuple[ProcessId, ...]:
    if to is not None:
        if not to:
            raise InvalidInput("`to` is empty: name at least one recipient, or leave it out for all members")
        names = [each.name for each in view.members]
        strangers = [repr(name) for name in to if name not in names]
        if strangers:
            raise InvalidInput(f"{', '.join(strangers)} is not a member; the members are {', '.join(names)}")
    recipients = tuple(each for each in view.members if to is None or each.name in to)
    if len(recipients) > RECIPIENTS_MAX:
        raise InvalidInput(f"{len(recipients)} recipients: a quality of service reaches {RECIPIENTS_MAX}")
    return recipients


def _check_agreement(quality: Quality, recipients: tuple[ProcessId, ...]) -> None:
    if quality.count is not None and quality.names:
        raise InvalidInput(f"{quality} asks for a number of recipients and for named ones: choose one")
    if not quality.is_consistent:
        raise InvalidInput(f"{quality} has parameters of another quality: use the functions that make one")
    if quality.count is not None and quality.count > len(recipients):
        raise InvalidInput(f"{quality} asks for more than the {len(recipients)} recipients")
    names = [each.name for each in recipients]
    others = [repr(name) for name in quality.names if name not in names]
    if others:
        raise InvalidInput(f"{quality} asks for {', '.join(others)}, which is not a recipient")


def _check_network(quality: Quality, options: ServiceOptions) -> None:
    """Network order (Pn5) is not needed: without it, recipients agree on insertion points."""
    network = options.network
    if not network.error_detection:
        raise InvalidInput(f"{quality} needs error detection (Pn2), which this network does not have")
    if quality.kind is QualityKind.DELTA:
        if network.omission_degree is None:
            raise InvalidInput(
                f"{quality} needs a bounded omission degree (Pn3), which this network does not have"
            )
        if network.delay_ns is None:
            raise InvalidInput(f"{quality} needs a bounded delay (Pn6), which this network does not have")


def _check_delta(quality: Quality, count: int, options: ServiceOptions, precision_ns: int | None) -> None:
    needed_ns = options.dissemination_ns(count)
    assert needed_ns is not None and quality.within_ms is not None
    if int(quality.within_ms * _MILLISECOND) < needed_ns:
        raise InvalidInput(
            f"{quality} is too short: with omissions, {count} recipients are reached after up to "
            f"{needed_ns / _MILLISECOND:g} ms"
        )
    if precision_ns is None:
        raise InvalidInput(f"{quality} needs a synchronised clock, and the coordinator has not answered yet")
    if 2 * precision_ns > options.precision_ns:
        raise InvalidInput(
            f"{quality} needs clocks that are at most {options.precision_ms:g} ms apart, "
            f"and this one can be wrong by {precision_ns / _MILLISECOND:g} ms: half of that is allowed"
        )
