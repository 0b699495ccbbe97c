"""Who went on with whom: what the views of a run come to, and who owes which part of each.

Members of a view that were told of the same next view *went on together*. If nobody went on from a view, it
is a *final* one, and its members *stayed*: all of them but those who say that they stopped. A member that
neither went on nor stayed *fell out*: it crashed, left or was left behind.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from priocast.pipeline.chronicle import Chronicle, Life, Told, ViewName
from priocast.trace.schema import ViewOrder, read_view_order

Answer = TypeVar("Answer", bound=Hashable)

STAYED = "stayed"
FELL_OUT = ""
_SEQUENCING = "sequencing"
_CONSUMING = "consuming"


@dataclass(frozen=True)
class Stay:
    """One member in one view: where it went on to, and the positions that can be asked of it.

    Those who went on or stayed together owe each other everything up to the last that one of them delivered;
    one that fell out owes nothing after its own last one. A state that was taken over holds what came before.
    """

    process: str
    onward: str
    owes_from: int
    owes_until: int

    @property
    def name(self) -> str:
        return name_of(self.process)


@dataclass(frozen=True)
class GroupView:
    """A view as most of those tell it who were told.

    `gapless` says that its order can have no place left open. A place is left open where only those knew what
    belongs there who fell out, or, in a divided group, whose sender is on the other side. That cannot be if
    nobody has gone on at all, if all went on together, or if in a primary group the one that orders did.
    """

    name: ViewName
    members: tuple[str, ...]
    orderer: str
    order: ViewOrder
    first_position: int
    reason: str
    stays: tuple[Stay, ...]
    final: bool
    gapless: bool

    @property
    def survived(self) -> bool:
        """Whether anybody went on or stayed; what its members did binds them all the same if nobody did."""
        return any(stay.onward != FELL_OUT for stay in self.stays)

    @property
    def orders_by_rank(self) -> bool:
        """Whether one member orders, and what leaves its queue next is decided by rank."""
        by_rank = self.order.priorities_act == _SEQUENCING and not self.order.is_plain
        return by_rank and self.orderer != ""

    @property
    def sends_by_rank(self) -> bool:
        """Whether what its members have broadcast leaves them by rank."""
        return self.order.sends_by_priority and not self.order.is_plain

    @property
    def consumes_by_priority(self) -> bool:
        """Whether urgent messages overtake others that are queued to be consumed."""
        return self.order.priorities_act == _CONSUMING and not self.order.is_plain


@dataclass(frozen=True)
class Audience:
    """Who has to deliver what has a position from `start` on and before `end`, and is addressed `to` these.

    `binding` if one of them went on or stayed, or nobody did at all; `complete` if all are among them who did
    and are addressed.
    """

    to: str
    start: int
    end: int
    processes: tuple[str, ...]
    binding: bool
    complete: bool


def survey(chronicle: Chronicle, primary: bool) -> dict[ViewName, GroupView]:
    """The views of a run, by number."""
    told: dict[ViewName, list[Told]] = defaultdict(list)
    onward: dict[ViewName, dict[str, str]] = defaultdict(dict)
    for life in chronicle.lives.values():
        for telling in life.told:
            told[telling.view].append(telling)
        for telling, after in life.onward():
            onward[telling.view].setdefault(life.process, str(after.view))
    return {
        name: _view(name, told[name], onward.get(name, {}), chronicle.lives, primary) for name in sorted(told)
    }


def audiences(view: GroupView, addressed: Iterable[str]) -> Iterator[Audience]:
    """Who has to deliver what: messages for all, and those for each list of addressees."""
    for to in ("", *sorted(addressed)):
        names = set(to.split(","))
        stays = [stay for stay in view.stays if not to or stay.name in names]
        cuts = sorted({0, *(cut for stay in stays for cut in (stay.owes_from, stay.owes_until))})
        for start, end in pairwise(cuts):
            due = [stay for stay in stays if stay.owes_from <= start and end <= stay.owes_until]
            if due:
                others = [stay for stay in stays if stay not in due and stay.owes_from <= start]
                yield Audience(
                    to=to,
                    start=start,
                    end=end,
                    processes=tuple(stay.process for stay in due),
                    binding=any(stay.onward != FELL_OUT for stay in due) or not view.survived,
                    complete=all(stay.onward == FELL_OUT for stay in others),
                )


def stayers(views: Mapping[ViewName, GroupView]) -> set[str]:
    """The processes that were there at the end."""
    return {stay.process for view in views.values() for stay in view.stays if stay.onward == STAYED}


def lost_processes(chronicle: Chronicle, views: Mapping[ViewName, GroupView]) -> set[str]:
    """Those that ended without a word: neither stopped nor in a final view. Their record may be cut short."""
    known = {member for view in views.values() for member in view.members} | set(chronicle.lives)
    stopped = {life.process for life in chronicle.lives.values() if life.stopped}
    return known - stayers(views) - stopped


def name_of(process: str) -> str:
    """The member's name, which all of its lives share."""
    return process.rpartition("#")[0]


def most(answers: Iterable[Answer]) -> Answer:
    """What most of them say; of several, the greatest."""
    votes: Counter[Any] = Counter(answers)
    answer: Answer = max(votes, key=lambda answer: (votes[answer], answer))
    return answer


def _view(
    name: ViewName,
    told: list[Told],
    onward: Mapping[str, str],
    lives: Mapping[str, Life],
    primary: bool,
) -> GroupView:
    members = most(telling.members for telling in told)
    orderer = most(telling.orderer for telling in told)
    final = not onward
    went = {
        member: STAYED if final and not _stopped(lives.get(member)) else onward.get(member, FELL_OUT)
        for member in members
    }
    together = FELL_OUT not in went.values() and len(set(went.values())) == 1
    orders_on = primary and went.get(orderer, FELL_OUT) != FELL_OUT
    return GroupView(
        name=name,
        members=members,
        orderer=orderer,
        order=read_view_order(most(telling.order for telling in told)),
        first_position=most(telling.first_position for telling in told),
        reason=most(telling.reason for telling in told),
        stays=tuple(_stays(name, went, lives)),
        final=final,
        gapless=final or together or orders_on,
    )


def _stays(name: ViewName, went: Mapping[str, str], lives: Mapping[str, Life]) -> Iterator[Stay]:
    ends: dict[str, int] = {}
    reached: dict[str, int] = defaultdict(int)
    for member, where in went.items():
        span = lives[member].delivered.get(name) if member in lives else None
        ends[member] = span.position_last + 1 if span else 0
        reached[where] = max(reached[where], ends[member])
    for member, where in went.items():
        owes_from = lives[member].owes_from if member in lives else 0
        yield Stay(member, where, owes_from, ends[member] if where == FELL_OUT else reached[where])


def _stopped(life: Life | None) -> bool:
    return life is not None and life.stopped is not None
