"""An explanation as lines of text, with the message itself in brackets wherever it stands in a queue."""

from collections.abc import Iterator, Sequence

from priocast.core.priority import NAMED_LEVELS
from priocast.trace.explanation import Explanation, Waited
from priocast.trace.queues import Entry, Kind

_NS_PER_MS = 1_000_000
_INDENT = "  "
_WITH_LOCKS = "reorder-locks"
_NAMES = {level: name for name, level in NAMED_LEVELS.items()}
_WHERE = {
    Kind.SENDER: "in its sender's queue, at {}",
    Kind.ORDERER: "in the queue of {}, who gives out the places",
    Kind.MEMBER: "in the queue of {}",
}
_LEAVING = {
    Kind.SENDER: "sent after {}",
    Kind.ORDERER: "given its place after {}",
    Kind.MEMBER: "consumed after {}",
}
_NEVER_LEFT = {
    Kind.SENDER: "never sent from there",
    Kind.ORDERER: "never given a place there",
    Kind.MEMBER: "never consumed there",
}


def describe(explanation: Explanation, names_max: int = 8) -> Iterator[str]:
    """The lines of an explanation; of long queues so many messages around the one that is explained."""
    yield _headline(explanation)
    for waited in explanation.waits:
        yield ""
        yield from _describe_wait(explanation, waited, names_max)
    if any(waited.kind is Kind.MEMBER for waited in explanation.waits):
        yield ""
        yield _say_reason(explanation)
    yield ""
    yield _say_overtaken(explanation, names_max)


def priority_name(priority: int) -> str:
    """A priority as people say it."""
    return f"{_NAMES[priority]}, {priority}" if priority in _NAMES else str(priority)


def _headline(explanation: Explanation) -> str:
    order = explanation.view.order
    plain = ", plain" if order.is_plain else ""
    by = f"view {explanation.view}, ordered by {order.order}{plain}"
    said = f"{explanation.message} (priority {priority_name(explanation.priority)})"
    if explanation.position is None:
        return f"{said} was not delivered; it was last seen in {by}."
    return f"{said} is at position {explanation.position} of {by}."


def _describe_wait(explanation: Explanation, waited: Waited, names_max: int) -> Iterator[str]:
    held_ns = waited.held_ns
    if held_ns is None:
        ended = _NEVER_LEFT[waited.kind]
    else:
        ended = _LEAVING[waited.kind].format(f"{held_ns / _NS_PER_MS:.3f} ms")
    title = _WHERE[waited.kind].format(waited.process)
    if waited.kind is not Kind.MEMBER and not waited.before:
        yield f"I{title[1:]}, which was empty: {ended}"
        return
    yield f"I{title[1:]}: {ended}"
    if waited.kind is Kind.MEMBER:
        yield f"{_INDENT}consumed by then:   {_count_gone(waited)}"
    yield f"{_INDENT}queue when it came: {_list(waited.before, None, names_max)}"
    if waited.kind is Kind.MEMBER and _has_locks(explanation):
        locked = _list(waited.locked, None, names_max) if waited.locked else "nothing"
        yield f"{_INDENT}locked by it:       {locked}"
    yield f"{_INDENT}queue with it:      {_list(waited.after, waited.entry, names_max)}"
    if waited.overtaken:
        yield f"{_INDENT}it overtook {_names(waited.overtaken, names_max)}"
    for entry in waited.let_pass[-names_max:] if waited.kind is Kind.MEMBER else ():
        had = explanation.consumers.get(str(entry.message), ())
        if had:
            yield f"{_INDENT}not {entry.message}, which {_all_of(had)} had consumed when it came there"


def _count_gone(waited: Waited) -> str:
    if not waited.gone:
        return "nothing"
    many = f"{len(waited.gone):,} messages, the last one " if len(waited.gone) > 1 else ""
    return f"{many}{waited.gone[-1].message}"


def _has_locks(explanation: Explanation) -> bool:
    return explanation.view.order.order == _WITH_LOCKS


def _say_reason(explanation: Explanation) -> str:
    """The cut, or where it was inserted, and how far anybody had consumed."""
    cut = explanation.cut
    if cut is None:
        reach, overtakes = "nobody had consumed anything when it came", "all that is less urgent"
    else:
        reach = f"{cut.process} had consumed up to position {cut.position} when it came, the most of all"
        overtakes = "what is less urgent behind that"
    if _has_locks(explanation):
        return f"The insertion point: {_insertion_point(explanation)}; {reach}."
    return f"The cut: {reach}; it overtakes {overtakes}."


def _insertion_point(explanation: Explanation) -> str:
    if explanation.position is None:
        return "not told, because nobody has consumed it"
    return f"before {explanation.point}" if explanation.point else "behind all that it met"


def _say_overtaken(explanation: Explanation, names_max: int) -> str:
    overtaken = explanation.overtaken
    if not overtaken:
        return "It overtook nothing."
    places = [waited for waited in explanation.waits if waited.overtaken]
    where = _all_of([waited.process for waited in places])
    count = f"{len(overtaken):,} message{'s' if len(overtaken) > 1 else ''}"
    return f"It overtook {count} at {where}: {_names(overtaken, names_max)}."


def _list(entries: Sequence[Entry], marked: Entry | None, names_max: int) -> str:
    """The head of the queue first; around the marked one if there is one."""
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


def _names(entries: Sequence[Entry], names_max: int) -> str:
    names = [str(entry.message) for entry in entries[:names_max]]
    left = len(entries) - len(names)
    return _all_of(names) if not left else f"{', '.join(names)} and {left:,} more"


def _all_of(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
