"""Rows of a simulated run, of either table: the checks of a test choose them by their event."""

from typing import Any

Row = Any
