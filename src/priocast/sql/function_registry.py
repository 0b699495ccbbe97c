"""Which procedures in Python the group has agreed on: a part of the replicated state.

Every member announces its functions when it opens the database. A function may be called as soon as all
members of the view have announced the same one, and from then on for ever: so that a call never reaches a
member that was there before and does not have the function. Who joins later must have it.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from priocast.core.errors import PayloadTooLarge, StatementRejected
from priocast.core.identity import Name
from priocast.core.view_reason import MEMBERS_MAX
from priocast.sql.requests import PROCEDURES_MAX, ProcedureDigests, ProcedureName

Announcements = Annotated[dict[Name, ProcedureDigests], msgspec.Meta(max_length=MEMBERS_MAX)]


class FunctionRegistry(msgspec.Struct, array_like=True):
    """The functions that are agreed on, the members of the view, and what they have announced besides."""

    agreed: ProcedureDigests = {}
    members: Annotated[list[Name], msgspec.Meta(max_length=MEMBERS_MAX)] = []
    announced: Announcements = {}

    def on_members(self, names: Iterable[str]) -> None:
        """The view has these members from here on."""
        self.members = sorted(names)
        self.announced = {name: each for name, each in self.announced.items() if name in self.members}
        self._agree()

    def announce(self, member: str, functions: Mapping[str, bytes]) -> None:
        """A member has these functions."""
        if functions:
            self.announced[member] = dict(functions)
            self._agree()

    def check_announced(self, functions: Mapping[str, bytes]) -> None:
        """Raise if a member has a function that is not the one of the group."""
        for name, digest in functions.items():
            if self.agreed.get(name, digest) != digest:
                raise StatementRejected(
                    f"procedure {name} has another source in the group: all members need the same; give a "
                    "function that you changed another name"
                )
        if len(self.agreed.keys() | functions.keys()) > PROCEDURES_MAX:
            raise PayloadTooLarge(f"at most {PROCEDURES_MAX:,} procedures can be defined in Python")

    def check_call(self, name: ProcedureName, digest: bytes) -> None:
        """Raise if a function cannot be called, because not all members have this one."""
        if self.agreed.get(name) != digest:
            missing = [each for each in self.members if self.announced.get(each, {}).get(name) != digest]
            raise StatementRejected(
                f"procedure {name} is not the same at every member (see {', '.join(missing) or 'the group'})"
            )

    def _agree(self) -> None:
        """Agree on every function that all members of the view have announced."""
        announced = [self.announced.get(each, {}) for each in self.members] or list(self.announced.values())
        for name, digest in announced[0].items() if announced else ():
            if all(each.get(name) == digest for each in announced):
                self.agreed.setdefault(name, digest)
