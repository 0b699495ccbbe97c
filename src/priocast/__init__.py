"""Prioritised, totally ordered group communication.

Every member of a group delivers the same messages in the same order, urgent ones first.

    async with priocast.join("tickets", member="a", listen="127.0.0.1:7401", peers=[...]) as group:
        await group.broadcast(b"one seat", priority=priocast.URGENT)
        async for event in group:
            ...

`join` is for a process that is in one group; `open_node` for one that is in several; `open_client` for one
that only sends; `join_blocking` for a program without asyncio; `replicate` for
an object, and `open_replica` for a state machine, with a copy at every member.
`priocast.core.errors` draws the tree of errors.

`import priocast` by itself loads nothing: the names are those of `priocast.api`, which the first use imports.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if os.environ.get("PRIOCAST_PURE", "0") not in ("", "0"):  # before any module that may be compiled
    from priocast.compiled import choose_sources

    choose_sources()

if TYPE_CHECKING:
    from priocast.api import *  # noqa: F403
    from priocast.api import __all__ as __all__

    __version__: str
else:

    def __getattr__(name: str) -> object:
        """Look up a public name, or the version, when it is first used."""
        if name == "__version__":
            from importlib.metadata import version

            return version("priocast")
        api = import_module("priocast.api")
        if name not in api.__all__ and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(api, name)
        return found

    def __dir__() -> list[str]:
        return [*globals(), *import_module("priocast.api").__all__]
