"""What callers hand over, checked where they do: what is wrong is said there, before anything has begun."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import msgspec

from priocast.core.errors import InvalidAddress, InvalidInput, InvalidOption, PayloadTooLarge, UnusableKey
from priocast.core.identity import check_name
from priocast.core.message import PAYLOAD_BYTES_MAX, TO_ALL, Scope
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.network.address import Address, parse_address
from priocast.network.security import AnyPath
from priocast.runtime.configuration import State

_INCARNATION_MAX = 2**63 - 1
_TAKEN_BY = {"tls": ("tcp",), "advertise": ("tcp", "udp"), "keys": ("udp",), "multicast": ("udp",)}

# Of any call


def check_kind(name: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} is {value!r}: give {wanted}")


def path_of(name: str, path: AnyPath | None) -> Path | None:
    """A path that was given as a path or as text, if one was given."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or isinstance(os.fspath(path), bytes):
        raise InvalidOption(f"{name} is {path!r}: give a path, as text or as a pathlib.Path")
    return Path(path)


def check_seconds(name: str, seconds: float, above: float = -math.inf) -> None:
    """Refuse what is no time, or has no end; a wait that is over before it begins is none of these."""
    check_kind(name, seconds, int | float, "a number of seconds")
    if not above < seconds < math.inf:
        raise InvalidOption(
            f"{name} is {seconds}: give a number of seconds{' above 0' if above == 0 else ''}"
        )


# Of a message


def scope_of(safe: bool, to: Iterable[str] | None) -> Scope:
    """What a sender asks for, checked."""
    if type(safe) is not bool:
        raise InvalidInput(f"safe is {safe!r}: give True or False")
    if to is None:
        return Scope(safe) if safe else TO_ALL
    if isinstance(to, str):
        raise InvalidInput(f"to is a list of names of members, not the text {to!r}: write [{to!r}]")
    if not isinstance(to, Iterable):
        raise InvalidInput(f"to is {to!r}: give a list of names of members, or None for all")
    names = tuple(check_name(name, "member") for name in to)
    if not 1 <= len(names) <= MEMBERS_MAX:
        raise InvalidInput(f"to names {len(names)} members: name 1 to {MEMBERS_MAX}, or give None for all")
    return Scope(safe, names)


def check_payload(payload: bytes) -> None:
    """Raise if this cannot be the payload of a message."""
    if type(payload) is not bytes:
        raise InvalidInput(f"a payload is bytes, not {type(payload).__name__}: encode it first")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(
            f"a payload of {len(payload):,} bytes is over the limit of {PAYLOAD_BYTES_MAX:,}: split it"
        )


def payloads_of(payloads: Iterable[bytes]) -> list[bytes]:
    """The payloads of several messages, checked; a list is taken as it is."""
    if type(payloads) is not list:
        if isinstance(payloads, bytes | bytearray | memoryview | str) or not isinstance(payloads, Iterable):
            raise InvalidInput(f"payloads is a list of bytes, not {type(payloads).__name__}")
        payloads = list(payloads)
    if set(map(type, payloads)) != {bytes} or max(map(len, payloads)) > PAYLOAD_BYTES_MAX:
        for payload in payloads:
            check_payload(payload)
    return payloads


# Of a node


def address_of(address: str, *, any_port: bool = False) -> Address:
    """An address that was given as text."""
    if not isinstance(address, str):
        raise InvalidAddress(f"{address!r} is not an address: write host:port, for example '127.0.0.1:7401'")
    return parse_address(address, any_port=any_port)


def addresses_of(peers: Iterable[str]) -> list[Address]:
    """The addresses of peers, which were given as a list of texts."""
    if isinstance(peers, str) or not isinstance(peers, Iterable):
        raise InvalidAddress(f"peers is {peers!r}: give a list of addresses, as in ['127.0.0.1:7401']")
    return [address_of(peer) for peer in peers]


def check_size(size: int | None) -> None:
    """Refuse a number that no group can be founded by."""
    if size is not None and (type(size) is not int or not 1 <= size <= MEMBERS_MAX):
        raise InvalidOption(f"size is {size!r}: a group is founded by 1 to {MEMBERS_MAX} processes")


def check_way(way: str, **given: object) -> None:
    """Refuse what only another kind of network heeds: whoever gives it counts on it."""
    for name, value in given.items():
        if value and way not in _TAKEN_BY[name]:
            ways = " or ".join(map(repr, _TAKEN_BY[name]))
            raise InvalidInput(f"{name} is for listen= and transport={ways}: leave it out, or choose that")


def keys_of(keys: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """The keys of groups, by their names."""
    if not keys:
        raise InvalidInput("UDP needs keys=, a key of 32 bytes for each group: anybody can send a datagram")
    check_kind("keys", keys, Mapping, "a key of 32 bytes for each group, by its name")
    for group, key in keys.items():
        if type(key) is not bytes:
            raise UnusableKey(
                f"the key of the group {check_name(group, 'group')} is not bytes: give 32 of them"
            )
    return dict(keys)


# Of a member


def check_order_name(order: str) -> None:
    """Refuse what is no name of an order; whether there is one of that name is seen later."""
    check_kind("order", order, str, "the name of an order, as 'priocast orders' lists them")


def ordering_of(options: OrderingOptions | None, prioritised: bool | None) -> OrderingOptions:
    """How the group is to be ordered; what is given by name goes before what `options` say."""
    check_kind("options", options, OrderingOptions | None, "priocast.OrderingOptions(...)")
    ordering = options or OrderingOptions()
    return ordering if prioritised is None else msgspec.structs.replace(ordering, prioritised=prioritised)


def membership_of(
    membership: MembershipOptions | None, size: int, state: State | None, **named: object
) -> MembershipOptions:
    """How the group is to live; what is given by name goes before what `membership` says."""
    check_kind("membership", membership, MembershipOptions | None, "priocast.MembershipOptions(...)")
    check_kind("state", state, State | None, "priocast.State(save, load)")
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if membership is None:
        return MembershipOptions(**{"founders": size, **given, "state": state is not None})
    if membership.state and state is None:
        raise InvalidInput(
            "membership says that there is a state: give it as state=priocast.State(save, load)"
        )
    return msgspec.structs.replace(membership, **given, state=state is not None)


def check_incarnation(incarnation: int | None) -> None:
    """Refuse what cannot be the number of a life."""
    if incarnation is not None and (type(incarnation) is not int or not 1 <= incarnation <= _INCARNATION_MAX):
        raise InvalidOption(f"incarnation is {incarnation!r}: give a number from 1 on, or None")


def check_trace(journal: bool, run: str, labels: Mapping[str, str] | None) -> None:
    """Refuse what a trace cannot be kept or described by."""
    check_kind("trace_journal", journal, bool, "True or False")
    check_kind("run", run, str, "the name of the run")
    check_kind("labels", labels, Mapping | None, "texts, by their names")
    for name, text in (labels or {}).items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidInput(f"labels has {name!r}: {text!r}: give texts, by their names")
