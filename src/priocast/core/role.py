"""Roles: what a process may do in a group."""

from enum import IntEnum


class Role(IntEnum):
    """What a process may do in a group; a higher role may do more.

    An observer hears heartbeats, and may send nothing. A client may also ask members to broadcast for it. A
    member takes part in the order and in the agreement on views.
    """

    OBSERVER = 0
    CLIENT = 1
    MEMBER = 2
