"""The search for mutants: deliberate faults, each of which the shared properties must detect.

A check that cannot fail is a defect. A mutant is one plausible mistake in a protocol. Its row names the
guarantee that it breaks, or a script or a test that fails with it. If correct members reject what the mutant
sends, the row says what happens among those that do not (`trusting`).
"""

from collections.abc import Callable, Collection
from random import Random
from typing import TypeVar

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from priocast.core.starvation import Ageing, PeriodicRelease, Starvation, Strict
from protocols.harness import Violation
from protocols.schedules import MILLISECOND, cases, check, check_waiting_in
from protocols.test_scripts import SCRIPTS, replay
from protocols.view_sequences import check_views, view_sequences

Patch = Callable[[pytest.MonkeyPatch], None]
Mutant = tuple[Patch, Collection[str]]
Twin = tuple[bool, Starvation]
STRICT: Twin = (True, Strict())
PLAIN: Twin = (False, Strict())
AGEING: Twin = (True, Ageing(MILLISECOND))
FLUSH: Twin = (True, PeriodicRelease(MILLISECOND))

Drawn = TypeVar("Drawn")


def name_of(case: object) -> str:
    """The name of a case: its mutant, and where it is detected."""
    parts = case if isinstance(case, tuple) else (case,)
    words = [
        part.replace(" ", "-") if isinstance(part, str) else getattr(part, "__name__", "") for part in parts
    ]
    return "-".join(filter(None, words))


def check_schedules_find(mutant: Mutant, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some schedule violates one of the guarantees of the mutant's row."""
    mutate, guarantees = mutant
    mutate(monkeypatch)
    check_found_in_schedules(order, guarantees)


def check_view_sequences_find(mutant: Mutant, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some sequence of views violates one of the guarantees of the mutant's row."""
    mutate, guarantees = mutant
    mutate(monkeypatch)
    check_found_in_view_sequences(order, guarantees)


def check_script_finds(
    mutate: Patch, script: str, monkeypatch: pytest.MonkeyPatch, may_stop: bool = False
) -> None:
    """A script has another outcome; if it `may_stop`, it need not run to its end."""
    text = recorded(script)
    mutate(monkeypatch)
    assert (_replayed_or_stopped if may_stop else replay)(text) != text


def check_single_test_finds(
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


def check_found_in_schedules(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """Some schedule violates one of these guarantees."""
    check_found(cases(order, *twin), check, guarantees)


def check_found_by_waiting(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """In some schedule a member names a bottleneck that cannot end the wait, or none."""
    check_found(cases(order, *twin), check_waiting_in, guarantees)


def check_found_in_view_sequences(order: str, guarantees: Collection[str], twin: Twin = STRICT) -> None:
    """Some sequence of views violates one of these guarantees.

    Every second one is short: most mutants show in two views with few messages, and drawing takes the time.
    """
    short = view_sequences([order], [twin], views_max=2, bursts_max=4)
    check_found(short | view_sequences([order], [twin]), check_views, guarantees)


def check_found(
    drawn: st.SearchStrategy[Drawn], play: Callable[[Drawn], object], guarantees: Collection[str]
) -> None:
    """Some example violates one of these guarantees."""
    find(
        drawn,
        lambda each: _broken(play, each) in guarantees,
        # The search may differ between processes in spite of the fixed seed: what Hypothesis draws may depend
        # on the modules that are imported. 1,000 cases once missed a mutant that is otherwise always found.
        settings=settings(max_examples=10_000, database=None, phases=[Phase.generate]),
        random=Random(0),
    )


def _broken(play: Callable[[Drawn], object], drawn: Drawn) -> str:
    """The violated guarantee.

    An error is no violation: a mutant that fails a check or an assertion has not shown yet what that serves.
    """
    try:
        play(drawn)
    except Violation as violation:
        return violation.guarantee
    except Exception:
        return ""
    return ""


def _replayed_or_stopped(text: str) -> str:
    """The outcome of a script; empty if it cannot run to its end."""
    try:
        return replay(text)
    except AssertionError:
        return ""
