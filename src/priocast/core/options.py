"""What every set of options is held to, so that what is wrong is said where it was written."""

import math

import msgspec

from priocast.core.errors import InvalidOption


def check_types(options: msgspec.Struct) -> None:
    """Refuse values of other types than they are declared with; nobody else would until they are used."""
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            raise InvalidOption(f"{field.name} is {value!r}: it must be of another type ({error})") from error


def check_durations(options: msgspec.Struct, *names: str) -> None:
    """Refuse times that are not above zero, or without end."""
    for name in names:
        value = getattr(options, name)
        if not 0 < value < math.inf:
            raise InvalidOption(f"{name} is {value}: it must be above 0, and have an end")
