"""The line formats of `priocast node`: input lines are messages, output lines are events, as text or JSON."""

import json
from collections.abc import Iterable

from priocast.core.errors import InvalidInput, PriorityOutOfRange
from priocast.core.events import Delivery, Event, Evicted, Restored, ServiceDelivery, ViewChange
from priocast.core.message import Message
from priocast.core.priority import ROUTINE, parse_priority
from priocast.operations.visible_text import visible, visible_bytes


def split_group(line: str, groups: Iterable[str]) -> tuple[str, str]:
    """Split `tickets: text` into group and text, for a node in several groups."""
    name, _, text = line.partition(":")
    if name.strip() not in groups:
        forms = " or ".join(f"'{group}: text'" for group in groups)
        raise InvalidInput(f"{line!r} does not name a group: write {forms}")
    return name.strip(), text.strip()


def split_priority(line: str) -> tuple[int, bytes]:
    """Split `urgent: text` or `200: text` into priority and payload; without a priority it is routine."""
    head, separator, rest = line.partition(":")
    try:
        if separator and head.strip():
            return parse_priority(head), rest.strip().encode()
    except PriorityOutOfRange:
        if head.strip().lstrip("-").isdecimal():
            raise InvalidInput(
                f"{line!r} has the priority {head.strip()}: it must be between 0 and 255"
            ) from None
    return ROUTINE, line.encode()


def event_as_text(group: str, event: Event) -> str:
    """A line for people, whatever a payload contains. `group` is empty if the node is in one group only."""
    prefix = f"{group}: " if group else ""
    match event:
        case Delivery(message=message, position=position):
            text = visible_bytes(message.payload)
            sender = visible(_client_of(message)) or message.sender.name
            return f"{prefix}{position:>6}  {sender:<8} {message.priority:>3}  {text}"
        case ServiceDelivery(quality=quality, sender=process, priority=priority, payload=payload):
            return f"{prefix}{quality!s:>6}  {process.name:<8} {priority:>3}  {visible_bytes(payload)}"
        case ViewChange(view=view, reason=reason):
            names = ", ".join(member.name for member in view.members)
            return f"{prefix}view {view.number}: {names} ({visible(str(reason))})"
        case Evicted(reason=reason):
            return f"{prefix}evicted, rejoining: {visible(str(reason))}"
        case Restored(position=position, bytes=size):
            return f"{prefix}state restored at position {position} ({size:,} bytes)"


def event_as_json(group: str, event: Event) -> str:
    """A JSON object on one line. `group` is empty if the node is in one group only."""
    match event:
        case Delivery(message=message, position=position):
            fields: dict[str, object] = {
                "position": position,
                "sender": message.sender.name,
                "client": _client_of(message),
                "priority": message.priority,
                "id": str(message.id),
                "payload": message.payload.decode(errors="replace"),
            }
        case ServiceDelivery():
            fields = {
                "quality": str(event.quality),
                "sender": event.sender.name,
                "number": event.number,
                "priority": event.priority,
                "unit": event.index,
                "units": event.count,
                "payload": event.payload.decode(errors="replace"),
            }
        case ViewChange(view=view, reason=reason, position=position):
            members = [str(member) for member in view.members]
            fields = {"view": view.number, "members": members, "reason": str(reason), "position": position}
        case Evicted(reason=reason):
            fields = {"evicted": str(reason)}
        case Restored(position=position, bytes=size):
            fields = {"restored": position, "bytes": size}
    return json.dumps({"group": group} | fields if group else fields)


def _client_of(message: Message) -> str:
    """The client on whose behalf a member broadcast the message, or nothing."""
    return message.scope.client.rpartition("#")[0]
