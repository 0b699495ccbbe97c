"""Which roles may send which datagrams: one table, checked before anything of a datagram is decoded.

Frames of a view's links are for members alone. The tag of a datagram is its first element, so it can be read
without decoding the rest.
"""

from priocast.core.role import Role
from priocast.membership.packets import (
    Accepted,
    ChangeOrder,
    ClientReceipt,
    ClientReply,
    ClientRequest,
    ClientSend,
    Control,
    Declined,
    EvictionNotice,
    FetchState,
    FlushReply,
    FlushRequest,
    Heartbeat,
    Install,
    LaterIncarnation,
    OptionsMismatch,
    Prepare,
    Promise,
    Propose,
    StabilityReport,
    StateChunk,
)

_MEMBERS = frozenset({Role.MEMBER})
_CLIENTS = frozenset({Role.MEMBER, Role.CLIENT})

SENDERS: dict[type[Control], frozenset[Role]] = {
    Heartbeat: _MEMBERS,
    StabilityReport: _MEMBERS,
    Prepare: _MEMBERS,
    Promise: _MEMBERS,
    Declined: _MEMBERS,
    Propose: _MEMBERS,
    Accepted: _MEMBERS,
    Install: _MEMBERS,
    FlushRequest: _MEMBERS,
    FlushReply: _MEMBERS,
    EvictionNotice: _MEMBERS,
    LaterIncarnation: _MEMBERS,
    OptionsMismatch: _MEMBERS,
    ChangeOrder: _MEMBERS,
    FetchState: _MEMBERS,
    StateChunk: _MEMBERS,
    ClientRequest: _CLIENTS,
    ClientReply: _MEMBERS,
    ClientSend: _CLIENTS,
    ClientReceipt: _MEMBERS,
}


def _encoded(tag: str) -> bytes:
    """A short text as msgpack encodes it: its length, with three bits set, and the text."""
    assert len(tag) < 32
    return bytes([0xA0 | len(tag)]) + tag.encode()


_BY_TAG = {_encoded(str(kind.__struct_config__.tag)): roles for kind, roles in SENDERS.items()}


def may_send(role: Role, body: bytes) -> bool:
    """Whether a process of this role may send a datagram with this body, by its tag alone.

    What has no tag of the table is left to the decoder if it comes from a member, and rejected otherwise.
    """
    if role is Role.MEMBER:
        return True
    if len(body) < 2 or body[0] & 0xF0 != 0x90:  # not a short array
        return False
    return role in _BY_TAG.get(body[1 : 2 + (body[1] & 0x1F)], _MEMBERS)
