"""An explanation as lines of text; in a queue, the explained message is in brackets."""

from collections.abc import Iterator, Sequence

from priocast.core.priority import NAMED_LEVELS
from priocast.trace.explanation import Explanation, QueueWait
from priocast.trace.queues import QueueEntry, QueueKind

_NS_PER_MS = 1_000_000
_INDENT = "  "
_WITH_LOCKS = "reorder-locks"
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}
_WHERE = {
    QueueKind.SENDER: "in its sender's queue, at {}",
    QueueKind.ORDERER: "in the queue of {}, which assigns the positions",
    QueueKind.MEMBER: "in the queue of {}",
}
_LEAVING = {
    QueueKind.SENDER: "sent after {}",
    QueueKind.ORDERER: "ordered after {}",
    QueueKind.MEMBER: "consumed after {}",
}
_NEVER_LEFT = {
    QueueKind.SENDER: "never sent from there",
    QueueKind.ORDERER: "never ordered there",
    QueueKind.MEMBER: "never consumed there",
}


def describe(explanation: Explanation, names_max: int = 8) -> Iterator[str]:
    """The lines of an explanation; of long queues only `names_max` messages around the explained one."""
    yield _headline(explanation)
    for wait in explanation.waits:
        yield ""
        yield from _describe_wait(explanation, wait, names_max)
    if any(wait.kind is QueueKind.MEMBER for wait in explanation.waits):
        yield ""
        yield _describe_reason(explanation)
    yield ""
    yield _describe_overtaken(explanation, names_max)


def priority_name(priority: int) -> str:
    """A priority with its name, if it has one."""
    return f"{_NAMES[priority]}, {priority}" if priority in _NAMES else str(priority)


def _headline(explanation: Explanation) -> str:
    order = explanation.view.order
    plain = ", plain" if order.is_plain else ""
    by = f"view {explanation.view}, ordered by {order.order}{plain}"
    subject = f"{explanation.message} (priority {priority_name(explanation.priority)})"
    if explanation.position is None:
        return f"{subject} was not delivered; it was last seen in {by}."
    return f"{subject} is at position {explanation.position} of {by}."


def _describe_wait(explanation: Explanation, wait: QueueWait, names_max: int) -> Iterator[str]:
    waited_ns = wait.waited_ns
    if waited_ns is None:
        ended = _NEVER_LEFT[wait.kind]
    else:
        ended = _LEAVING[wait.kind].format(f"{waited_ns / _NS_PER_MS:.3f} ms")
    title = _WHERE[wait.kind].format(wait.process)
    if wait.kind is not QueueKind.MEMBER and not wait.before:
        yield f"I{title[1:]}, which was empty: {ended}"
        return
    yield f"I{title[1:]}: {ended}"
    if wait.kind is QueueKind.MEMBER:
        yield f"{_INDENT}already consumed:   {_count_gone(wait)}"
    yield f"{_INDENT}queue on arrival:   {_list(wait.before, None, names_max)}"
    if wait.kind is QueueKind.MEMBER and _has_locks(explanation):
        locked = _list(wait.locked, None, names_max) if wait.locked else "nothing"
        yield f"{_INDENT}locked by it:       {locked}"
    yield f"{_INDENT}queue with it:      {_list(wait.after, wait.entry, names_max)}"
    if wait.overtaken:
        yield f"{_INDENT}it overtook {_names(wait.overtaken, names_max)}"
    for entry in wait.not_overtaken[-names_max:] if wait.kind is QueueKind.MEMBER else ():
        consumers = explanation.consumers.get(str(entry.message), ())
        if consumers:
            who = _join_names(consumers)
            yield f"{_INDENT}not {entry.message}, which {who} had consumed when it arrived there"


def _count_gone(wait: QueueWait) -> str:
    if not wait.gone:
        return "nothing"
    many = f"{len(wait.gone):,} messages, the last one " if len(wait.gone) > 1 else ""
    return f"{many}{wait.gone[-1].message}"


def _has_locks(explanation: Explanation) -> bool:
    return explanation.view.order.order == _WITH_LOCKS


def _describe_reason(explanation: Explanation) -> str:
    """The cut or the insertion point, and how far the members had consumed."""
    cut = explanation.cut
    if cut is None:
        reach, overtakes = "no member had consumed anything when it arrived", "everything that is less urgent"
    else:
        reach = f"{cut.process} had consumed the most when it arrived, up to position {cut.position}"
        overtakes = "everything less urgent after that position"
    if _has_locks(explanation):
        return f"The insertion point: {_insertion_point(explanation)}; {reach}."
    return f"The cut: {reach}; it overtakes {overtakes}."


def _insertion_point(explanation: Explanation) -> str:
    if explanation.position is None:
        return "unknown, because no member consumed it"
    return (
        f"before {explanation.insertion_point}" if explanation.insertion_point else "at the end of the queue"
    )


def _describe_overtaken(explanation: Explanation, names_max: int) -> str:
    overtaken = explanation.overtaken
    if not overtaken:
        return "It overtook nothing."
    where = _join_names([wait.process for wait in explanation.waits if wait.overtaken])
    count = f"{len(overtaken):,} message{'s' if len(overtaken) > 1 else ''}"
    return f"It overtook {count} at {where}: {_names(overtaken, names_max)}."


def _list(entries: Sequence[QueueEntry], marked: QueueEntry | None, names_max: int) -> str:
    """The messages from the head of the queue on; of a long queue, those around the marked one."""
    if not entries:
        return "empty"
    centre = entries.index(marked) if marked else 0
    first = max(0, min(centre - names_max // 2, len(entries) - names_max))
    shown = entries[first : first + names_max]
    words = [f"[{entry.message}]" if entry is marked else str(entry.message) for entry in shown]
    if first:
        words.insert(0, f"({first:,} more)")
    if first + len(shown) < len(entries):
        words.append(f"({len(entries) - first - len(shown):,} more)")
    return " ".join(words)


def _names(entries: Sequence[QueueEntry], names_max: int) -> str:
    names = [str(entry.message) for entry in entries[:names_max]]
    left = len(entries) - len(names)
    return _join_names(names) if not left else f"{', '.join(names)} and {left:,} more"


def _join_names(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
