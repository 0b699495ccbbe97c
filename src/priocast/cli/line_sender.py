"""How `priocast node` sends its lines: in the total order, or with a quality of service."""

import typer

from priocast.core.errors import DeadlineExceeded, InvalidOption, NoQuorum
from priocast.core.quality import Quality, parse_quality
from priocast.operations.visible_text import visible
from priocast.runtime.group import Group
from priocast.services.outputs import SendReceipt


class LineSender:
    """Broadcasts lines, or sends them with a quality of service to some members or to all."""

    def __init__(self, quality: str | None, to: list[str] | None) -> None:
        if to and quality is None:
            raise InvalidOption(
                "--to needs --quality: without it, lines go to all members in the total order"
            )
        self._quality = parse_quality(quality) if quality is not None else None
        self._to = to or None

    async def send(self, group: Group, payload: bytes, priority: int) -> None:
        """Send a line."""
        if self._quality is None:
            await self._broadcast(group, payload, priority)
        else:
            await self._send_with(self._quality, group, payload, priority)

    async def _broadcast(self, group: Group, payload: bytes, priority: int) -> None:
        """Wait for room for as long as it takes: a line that was read is not lost."""
        while True:
            try:
                await group.broadcast(payload, priority)
            except DeadlineExceeded as error:
                typer.echo(f"still waiting: {visible(str(error))}", err=True)
            else:
                return

    async def _send_with(self, quality: Quality, group: Group, payload: bytes, priority: int) -> None:
        """Report what came of it, if it is not what was asked for; it is not sent twice."""
        try:
            receipt = await group.send(payload, quality=quality, to=self._to, priority=priority)
        except (DeadlineExceeded, NoQuorum) as error:
            typer.echo(f"error: {visible(str(error))}", err=True)
        else:
            if not receipt.accepted:
                typer.echo(f"error: not accepted: {visible(problem_of(receipt))}", err=True)


def problem_of(receipt: SendReceipt) -> str:
    """Why a message was not accepted, for people."""
    reasons = [f"{name}: {reason}" for name, reason in receipt.rejected.items()]
    if receipt.missing:
        reasons.append(f"no answer from {', '.join(receipt.missing)}")
    return "; ".join(reasons) or "no recipient is left"
