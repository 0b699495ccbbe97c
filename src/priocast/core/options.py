"""Checks for option structs: a wrong value raises an error where it is given, not where it is used."""

import math

import msgspec

from priocast.core.errors import InvalidOption


def check_types(options: msgspec.Struct) -> None:
    """Raise if a value does not have its declared type; nothing else checks that until it is used."""
    for field in msgspec.structs.fields(options):
        value = getattr(options, field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            raise InvalidOption(f"{field.name} is {value!r}: wrong type ({error})") from error


def check_durations(options: msgspec.Struct, *names: str) -> None:
    """Raise if a duration is not positive and finite."""
    for name in names:
        value = getattr(options, name)
        if not 0 < value < math.inf:
            raise InvalidOption(f"{name} is {value}: it must be above 0 and finite")
