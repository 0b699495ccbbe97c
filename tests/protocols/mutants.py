"""The search for mutants: deliberate faults, each of which the shared properties must find.

A check that cannot fail is a defect. A mutant is one plausible mistake in a protocol; beside it stand the
guarantees by which it may be found, or a script or a test that it breaks.
"""

from collections.abc import Callable, Collection
from random import Random
from typing import TypeVar

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from priocast.core.errors import PeerFault
from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from protocols.harness import Violation
from protocols.lives import live, lives
from protocols.schedules import MILLISECOND, cases, check, check_waiting_in
from protocols.test_scripts import SCRIPTS, replay

Patch = Callable[[pytest.MonkeyPatch], None]
Mutant = tuple[Patch, Collection[str]]
Twin = tuple[bool, Starvation]
STRICT: Twin = (True, Strict())
PLAIN: Twin = (False, Strict())
AGEING: Twin = (True, Ageing(MILLISECOND))
FLUSH: Twin = (True, PeriodicRelease(MILLISECOND))
PEER_FAULT = PeerFault.__name__
OWN_FAULT = "our own fault"
#: For mutants of the checks themselves: correct members must not be rejected. Every other mutant must be
#: found by the guarantee that it breaks, if necessary among `trusting` members.
FALSE_REJECTION = PEER_FAULT

Drawn = TypeVar("Drawn")


def name_of(case: object) -> str:
    """What a case is called: what its mutant does, and where that is to be seen."""
    parts = case if isinstance(case, tuple) else (case,)
    words = [
        part.replace(" ", "-") if isinstance(part, str) else getattr(part, "__name__", "") for part in parts
    ]
    return "-".join(filter(None, words))


def schedules_find(mutant: Mutant, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some schedule breaks one of the guarantees that stand beside the mutant."""
    mutate, guarantees = mutant
    mutate(monkeypatch)
    found_in_schedules(order, guarantees)


def lives_find(mutant: Mutant, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some life breaks one of the guarantees that stand beside the mutant."""
    mutate, guarantees = mutant
    mutate(monkeypatch)
    found_in_lives(order, guarantees)


def script_finds(mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch, may_stop: bool = False) -> None:
    """Something else happens in a script; if it `may_stop`, it need not be played to its end."""
    text = recorded(script)
    mutate(monkeypatch)
    assert (_replayed_or_stopped if may_stop else replay)(text) != text


def single_test_finds(
    mutate: Patch,
    test: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception] | tuple[type[Exception], ...] = AssertionError,
    match: str | None = None,
) -> None:
    """A test that passes fails with the mutant."""
    test()
    mutate(monkeypatch)
    with pytest.raises(error, match=match):
        test()


def recorded(script: str) -> str:
    """A script as it was recorded, which is what happens without a mutant."""
    text = (SCRIPTS / f"{script}.txt").read_text()
    assert replay(text) == text
    return text


def found_in_schedules(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """Some schedule breaks one of these guarantees."""
    found(cases(order, *twin), check, guarantees)


def found_by_waiting(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """In some schedule a member waits for one that can do nothing about it, or for nobody."""
    found(cases(order, *twin), check_waiting_in, guarantees)


def found_in_lives(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """In some life, from view to view, one of these guarantees breaks."""
    found(lives([order], [twin]), live, guarantees)


def found(
    drawn: st.SearchStrategy[Drawn], play: Callable[[Drawn], object], guarantees: Collection[str]
) -> None:
    """Something that is drawn breaks one of these guarantees when it is played."""
    find(
        drawn,
        lambda each: _broken(play, each) in guarantees,
        # The search is not the same in every process, although its dice are: what Hypothesis draws may depend
        # on the modules that are imported. 1,000 cases once missed a mutant that was always found otherwise.
        settings=settings(max_examples=10_000, database=None, phases=[Phase.generate]),
        random=Random(0),
    )


def _broken(play: Callable[[Drawn], object], drawn: Drawn) -> str:
    """The guarantee that broke, or the error that showed it."""
    try:
        play(drawn)
    except Violation as violation:
        return violation.guarantee
    except PeerFault:
        return PEER_FAULT
    except Exception:
        return OWN_FAULT
    return ""


def _replayed_or_stopped(text: str) -> str:
    """What happens in a script; nothing if it cannot be played to its end."""
    try:
        return replay(text)
    except AssertionError:
        return ""
