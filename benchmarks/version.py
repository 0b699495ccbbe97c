"""Which version of Priocast is measured."""

import priocast.links.fifo_link
from priocast.compiled import is_compiled


def measured_version() -> str:
    """`compiled` or `sources`, as in this process and in those that it starts."""
    return "compiled" if is_compiled(priocast.links.fifo_link) else "sources"
