"""Ranges of messages, as they are sent: consecutive messages of one level and one sender."""

from typing import Annotated

import msgspec

from priocast.core.identity import Number, PositiveNumber
from priocast.core.message import CONTROL

_RANGES_MAX = 131_072


class MessageRange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`count` messages of one level and one sender (by rank), numbered from `first` on."""

    level: Annotated[int, msgspec.Meta(ge=0, le=CONTROL)]
    sender: Number
    first: Number
    count: PositiveNumber

    def __str__(self) -> str:
        return f"{self.sender}/{self.level}/{self.first}+{self.count}"


MessageRanges = Annotated[tuple[MessageRange, ...], msgspec.Meta(max_length=_RANGES_MAX)]
