"""The search for mutants: deliberate faults, each of which the shared properties must find.

A check that cannot fail is a defect. A mutant is one plausible mistake in a protocol; beside it stand the
guarantees by which it may be found.
"""

from collections.abc import Callable, Collection
from random import Random
from typing import TypeVar

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from priocast.core.errors import PeerFault
from priocast.core.starvation import Starvation, Strict
from protocols.harness import Violation
from protocols.lives import live, lives
from protocols.schedules import cases, check, check_waiting_in

Patch = Callable[[pytest.MonkeyPatch], None]
Twin = tuple[bool, Starvation]
STRICT: Twin = (True, Strict())
PLAIN: Twin = (False, Strict())
PEER_FAULT = PeerFault.__name__
OWN_FAULT = "our own fault"

Drawn = TypeVar("Drawn")


def found_in_schedules(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """Some schedule breaks one of these guarantees."""
    _found(cases(order, *twin), check, guarantees)


def found_by_waiting(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """In some schedule a member waits for one that can do nothing about it, or for nobody."""
    _found(cases(order, *twin), check_waiting_in, guarantees)


def found_in_lives(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """In some life, from view to view, one of these guarantees breaks."""
    _found(lives([order], [twin]), live, guarantees)


def _found(
    drawn: st.SearchStrategy[Drawn], play: Callable[[Drawn], object], guarantees: Collection[str]
) -> None:
    find(
        drawn,
        lambda each: _broken(play, each) in guarantees,
        # What is drawn may depend on the modules that are imported: the search may take longer elsewhere.
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
    except AssertionError:
        return OWN_FAULT
    return ""
