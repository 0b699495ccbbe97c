"""Checks of what callers pass: an unusable value is rejected at the call, before anything starts."""

import math
import os
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any

import msgspec

from priocast.core.errors import InvalidAddress, InvalidInput, InvalidOption, PayloadTooLarge, UnusableKey
from priocast.core.identity import check_name
from priocast.core.message import PAYLOAD_BYTES_MAX, TO_ALL, Scope
from priocast.core.network_properties import NetworkProperties
from priocast.core.protocol import OrderingOptions
from priocast.membership.options import MEMBERS_MAX, MembershipOptions
from priocast.network.address import Address, parse_address
from priocast.network.discovery import Discovery, is_dns_name, parse_dns_name
from priocast.network.security import AnyPath
from priocast.runtime.configuration import Deadlines, State
from priocast.services.options import ServiceOptions
from priocast.trace.remote_directory import is_remote

_INCARNATION_MAX = 2**63 - 1
_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}")

# Any call


def check_kind(name: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """Reject a value of another type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} must be {wanted}, not {value!r}")


def path_of(name: str, path: AnyPath | None) -> Path | None:
    """The path that was passed as text or as a path, if one was."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or isinstance(os.fspath(path), bytes):
        raise InvalidOption(f"{name} must be a path (text or pathlib.Path), not {path!r}")
    return Path(path)


def location_of(name: str, location: AnyPath | None) -> str | None:
    """The path or URL that was passed, if one was."""
    path = path_of(name, location)
    return None if path is None else str(location)


def check_seconds(name: str, seconds: float, above: float = -math.inf) -> None:
    """Reject what is not a finite number of seconds; a timeout that is not above 0 expires at once."""
    wanted = f"a finite number of seconds{' above 0' if above == 0 else ''}"
    check_kind(name, seconds, int | float, wanted)
    if not above < seconds < math.inf:
        raise InvalidOption(f"{name} must be {wanted}, not {seconds}")


# Messages


def scope_of(safe: bool, to: Iterable[str] | None, traceparent: str | None = None) -> Scope:
    """The send options `safe`, `to` and `traceparent`, checked."""
    if traceparent is not None:
        check_traceparent(traceparent)
        return msgspec.structs.replace(scope_of(safe, to), traceparent=traceparent)
    if type(safe) is not bool:
        raise InvalidInput(f"safe must be True or False, not {safe!r}")
    if to is None:
        return Scope(safe) if safe else TO_ALL
    if isinstance(to, str):
        raise InvalidInput(f"to must be a list of member names, not the text {to!r}: write [{to!r}]")
    if not isinstance(to, Iterable):
        raise InvalidInput(f"to must be a list of member names, or None for all members, not {to!r}")
    names = tuple(check_name(name, "member") for name in to)
    if not 1 <= len(names) <= MEMBERS_MAX:
        raise InvalidInput(
            f"to must name 1 to {MEMBERS_MAX} members, not {len(names)}; None means all members"
        )
    return Scope(safe, names)


def check_traceparent(traceparent: str) -> None:
    """Reject what is not a trace context as W3C Trace Context writes it: nobody could continue the trace."""
    check_kind("traceparent", traceparent, str, "text")
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not int(found["trace"], 16) or not int(found["span"], 16):
        raise InvalidInput(
            "traceparent must be like '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' "
            f"(W3C Trace Context), not {traceparent!r}"
        )


def check_payload(payload: bytes) -> None:
    """Raise if this cannot be the payload of a message."""
    if type(payload) is not bytes:
        raise InvalidInput(f"a payload must be bytes, not {type(payload).__name__}: encode it first")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise PayloadTooLarge(
            f"a payload must have at most {PAYLOAD_BYTES_MAX:,} bytes, not {len(payload):,}: split it"
        )


def payloads_of(payloads: Iterable[bytes]) -> list[bytes]:
    """The payloads of several messages, checked; a list is not copied."""
    if type(payloads) is not list:
        if isinstance(payloads, bytes | bytearray | memoryview | str) or not isinstance(payloads, Iterable):
            raise InvalidInput(f"payloads must be a list of bytes, not {type(payloads).__name__}")
        payloads = list(payloads)
    if set(map(type, payloads)) != {bytes} or max(map(len, payloads)) > PAYLOAD_BYTES_MAX:
        for payload in payloads:
            check_payload(payload)
    return payloads


def units_of(payload: bytes | Iterable[bytes]) -> list[bytes]:
    """The units of a message: one payload, or several."""
    if isinstance(payload, bytes):
        return [payload]
    units = payload if isinstance(payload, str) or not isinstance(payload, Iterable) else list(payload)
    return payloads_of(units) if units else []


def recipients_of(to: Iterable[str] | None) -> tuple[str, ...] | None:
    """The names of the recipients, once each, which may not be members; None means all members."""
    if to is None:
        return None
    if isinstance(to, str) or not isinstance(to, Iterable):
        raise InvalidInput(f"to must be a list of member names, or None for all members, not {to!r}")
    return tuple(dict.fromkeys(check_name(name, "member") for name in to))


# Nodes


def address_of(address: str, *, any_port: bool = False) -> Address:
    """The address that was passed as text."""
    if not isinstance(address, str):
        raise InvalidAddress(f"an address must be text like '127.0.0.1:7401', not {address!r}")
    return parse_address(address, any_port=any_port)


def discovery_of(peers: str | Iterable[str] | None) -> Discovery | None:
    """What looks up the peers, if they were passed as one name for all, `dns:name:port`."""
    given = [peers] if isinstance(peers, str) else peers if isinstance(peers, list | tuple) else []
    names = [each for each in given if isinstance(each, str) and is_dns_name(each)]
    if not names:
        return None
    if len(given) > 1:
        raise InvalidAddress(f"peers must be one name or a list of addresses, not both: {peers!r}")
    return Discovery(parse_dns_name(names[0]))


def addresses_of(peers: Iterable[str]) -> list[Address]:
    """The addresses of peers, which were passed as a list of texts."""
    if isinstance(peers, str) or not isinstance(peers, Iterable):
        raise InvalidAddress(f"peers must be a list of addresses like ['127.0.0.1:7401'], not {peers!r}")
    return [address_of(peer) for peer in peers]


def check_size(size: int | None) -> None:
    """Reject a number of founders that no group can have."""
    if size is not None and (type(size) is not int or not 1 <= size <= MEMBERS_MAX):
        raise InvalidOption(f"size must be an integer from 1 to {MEMBERS_MAX}, not {size!r}")


def keys_of(keys: Mapping[str, bytes | AnyPath] | None) -> dict[str, bytes | Path]:
    """The keys of groups, or the files that they are in, by the names of the groups."""
    if not keys:
        raise InvalidInput("UDP requires keys=, a key of 32 bytes or its file for each group, by its name")
    check_kind("keys", keys, Mapping, "a key of 32 bytes or its file for each group, by its name")
    found: dict[str, bytes | Path] = {}
    for group, key in keys.items():
        if not isinstance(key, bytes | str | os.PathLike):
            raise UnusableKey(
                f"the key of group {check_name(group, 'group')!r} must be 32 bytes, or the path of a file"
            )
        found[group] = key if isinstance(key, bytes) else Path(key)
    return found


# Members


def check_order_name(order: str) -> None:
    """Reject what is not text; whether there is an order of this name is checked later."""
    check_kind("order", order, str, "the name of an order, as listed by 'priocast orders'")


def ordering_of(options: OrderingOptions | None, prioritised: bool | None) -> OrderingOptions:
    """The options of the ordering protocol; `prioritised` overrides `options`."""
    check_kind("options", options, OrderingOptions | None, "priocast.OrderingOptions(...)")
    ordering = options or OrderingOptions()
    return ordering if prioritised is None else msgspec.structs.replace(ordering, prioritised=prioritised)


def membership_of(
    membership: MembershipOptions | None, size: int, state: State | None, **named: object
) -> MembershipOptions:
    """The options of the group; those passed by name override `membership`."""
    check_kind("membership", membership, MembershipOptions | None, "priocast.MembershipOptions(...)")
    check_kind("state", state, State | None, "priocast.State(save, load)")
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    of_state: dict[str, Any] = {"state": state is not None}
    of_state["durability"] = state.durability if state is not None else "memory"
    if membership is None:
        if not size and "founders" not in given:
            raise InvalidInput("with peers='dns:…', also pass founders= (or size=): how many found the group")
        return MembershipOptions(**{"founders": size, **given, **of_state})
    if membership.state and state is None:
        raise InvalidInput("membership has state=True: pass state=priocast.State(save, load) as well")
    return msgspec.structs.replace(membership, **given, **of_state)


def services_of(services: ServiceOptions | None, declared: NetworkProperties) -> ServiceOptions:
    """The options of the qualities of service, with the properties of the network that carries them.

    The bounds in `services.network` are what the caller knows of the network. Everything else follows from
    the implementation, which has `declared` it.
    """
    check_kind("services", services, ServiceOptions | None, "priocast.ServiceOptions(...)")
    options = services or ServiceOptions()
    known = options.network
    for name in ("broadcast", "error_detection", "full_duplex", "network_order"):
        if getattr(known, name) and not getattr(declared, name):
            raise InvalidOption(f"services declares {name}, which this network does not have: remove it")
    network = msgspec.structs.replace(
        declared,
        omission_degree=declared.omission_degree if known.omission_degree is None else known.omission_degree,
        delay_ns=declared.delay_ns if known.delay_ns is None else known.delay_ns,
        inaccessibility_ns=known.inaccessibility_ns or declared.inaccessibility_ns,
    )
    return msgspec.structs.replace(options, network=network)


def check_incarnation(incarnation: int | None) -> None:
    """Reject what cannot be the number of an incarnation."""
    if incarnation is not None and (type(incarnation) is not int or not 1 <= incarnation <= _INCARNATION_MAX):
        raise InvalidOption(
            f"incarnation must be an integer from 1 to 2**63 - 1, or None, not {incarnation!r}"
        )


def deadlines_of(start_seconds: float, broadcast_seconds: float, leave_seconds: float) -> Deadlines:
    """How long the calls of a member wait, checked."""
    check_seconds("start_seconds", start_seconds, above=0)
    check_seconds("broadcast_seconds", broadcast_seconds, above=0)
    check_seconds("leave_seconds", leave_seconds)
    return Deadlines(
        start_seconds=start_seconds, broadcast_seconds=broadcast_seconds, leave_seconds=leave_seconds
    )


def check_trace(location: str | None, journal: bool, run: str, labels: Mapping[str, str] | None) -> None:
    """Reject options that a trace cannot have."""
    check_kind("trace_journal", journal, bool, "True or False")
    if journal and location is not None and is_remote(location):
        raise InvalidOption(
            "trace_journal needs a trace on a local disk: a storage in the network cannot take single rows"
        )
    if journal and find_spec("fcntl") is None:
        raise InvalidOption("trace_journal needs the file locks of Unix, which this system lacks: omit it")
    check_kind("run", run, str, "the name of the run")
    check_kind("labels", labels, Mapping | None, "a mapping of names to texts")
    for name, text in (labels or {}).items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidInput(f"labels must map names to texts, not {name!r} to {text!r}")
