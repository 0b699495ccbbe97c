"""The error tree that the module's docstring draws is the one that the classes make."""

import re

from priocast.core import errors
from priocast.core.errors import PriocastError

_BRANCH = re.compile(r"^    (?P<stem>[│ ]*[├└]── )?(?P<name>[A-Z]\w+)")


def _drawn() -> dict[str, str]:
    """Each class of the drawing with the class that it hangs from."""
    parent_of: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if branch := _BRANCH.match(line):
            depth = len(branch["stem"] or "") // 4
            path[depth:] = [branch["name"]]
            parent_of[branch["name"]] = path[depth - 1] if depth else ""
    return parent_of


def _defined() -> dict[str, str]:
    """Each class of the module with the class of the tree that it derives from."""
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PriocastError)
    ]
    return {
        kind.__name__: next((base.__name__ for base in kind.__bases__ if issubclass(base, PriocastError)), "")
        for kind in kinds
    }


def test_the_drawn_tree_is_the_tree() -> None:
    assert _drawn() == _defined()


def test_every_error_says_what_it_means() -> None:
    for name in _defined():
        assert getattr(errors, name).__doc__


def test_the_faults_of_a_caller_can_be_caught_the_python_way() -> None:
    assert issubclass(errors.InvalidInput, ValueError)
    assert issubclass(errors.DeadlineExceeded, TimeoutError)


def test_a_rejection_has_a_reason_and_a_detail() -> None:
    plain, detailed = errors.Rejected("too long"), errors.Rejected("too long", "9 bytes where 3 may come")
    assert (plain.reason, plain.detail, str(plain)) == ("too long", "", "too long")
    assert (detailed.reason, str(detailed)) == ("too long", "too long: 9 bytes where 3 may come")
