"""What a class must say to be compiled, for modules that are also interpreted.

`mypy_extensions` is needed by who compiles, and by nobody else.
"""

from typing import TYPE_CHECKING

__all__ = ["mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_):
        """Return the class as it is."""
        return lambda decorated: decorated
