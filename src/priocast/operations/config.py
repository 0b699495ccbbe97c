"""Reads the configuration file of a node: `priocast node --config group.toml`.

    [node]      name, addresses and credentials of this process
    [peers]     names and addresses of the members; the same table can be in every member's file
    [[group]]   a group to join; one table for each

`config_example.py` has every key. Paths are relative to the file. All problems of a file are reported
together, and nothing is started unless there are none.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from priocast.advice.choice import AUTO, resolve_order
from priocast.core.errors import InvalidAddress, InvalidInput, InvalidOption
from priocast.core.identity import check_name
from priocast.core.network_properties import NetworkProperties
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Strict, parse_starvation
from priocast.membership.options import MembershipOptions
from priocast.network.address import check_multicast, parse_address
from priocast.network.datagram_size import DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN
from priocast.operations.config_files import check_directory, check_key, check_trace, find_tls
from priocast.operations.node_plan import (
    ORDER,
    SHUTDOWN_SECONDS,
    WAIT_SECONDS_MAX,
    AdminPlan,
    GroupPlan,
    NodePlan,
)
from priocast.operations.toml_tables import Table, TableReader
from priocast.protocols import find_protocol
from priocast.runtime.admin.admin_address import check_admin_address
from priocast.runtime.configuration import START_SECONDS
from priocast.services.options import ServiceOptions
from priocast.trace.remote_directory import is_url

_ANY_HOST = {"0.0.0.0", "::"}  # noqa: S104 - to compare with, not to listen on
# `state` and `durability` need an application, which `priocast node` does not have; `adapts` follows from the
# order. Of `network` the bounds are keys of their own.
_NOT_FOR_FILES = frozenset({"state", "durability", "adapts", "network"})
_MILLISECOND = 1_000_000

Seconds = Annotated[float, msgspec.Meta(gt=0, le=WAIT_SECONDS_MAX)]
DatagramBytes = Annotated[int, msgspec.Meta(ge=DATAGRAM_BYTES_MIN, le=DATAGRAM_BYTES_MAX)]


class MemberName(str):
    """Text that must be the name of a member; the next four classes mark text in the same way."""

    __slots__ = ()


class GroupName(str):
    __slots__ = ()


class AddressText(str):
    __slots__ = ()


class OrderName(str):
    __slots__ = ()


class StarvationText(str):
    __slots__ = ()


class LocationText(str):
    """A path or a URL."""

    __slots__ = ()


_CHECKS: dict[type, Callable[[str], object]] = {
    MemberName: lambda text: check_name(text, "member"),
    GroupName: lambda text: check_name(text, "group"),
    AddressText: parse_address,
    OrderName: lambda text: text == AUTO or find_protocol(text),
    StarvationText: parse_starvation,
}


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all tables."""


class TlsTable(_Table, frozen=True, kw_only=True):
    certificate: Path
    key: Path
    authority: Path
    revoked: Path | None = None


class AdminTable(_Table, frozen=True, kw_only=True):
    listen: AddressText
    allow_remote: bool = False


class NodeTable(_Table, frozen=True, kw_only=True):
    name: MemberName
    listen: AddressText
    advertise: AddressText | None = None
    transport: Literal["tcp", "udp"] = "tcp"
    multicast: AddressText | None = None
    datagram_bytes: DatagramBytes | None = None
    state_directory: Path | None = None
    start_seconds: Seconds = START_SECONDS
    shutdown_seconds: Seconds = SHUTDOWN_SECONDS
    tls: TlsTable | None = None
    admin: AdminTable | None = None


class GroupTable(_Table, frozen=True, kw_only=True):
    """The keys of a group other than those of OrderingOptions, MembershipOptions and ServiceOptions."""

    name: GroupName
    order: OrderName = OrderName(ORDER)
    starvation: StarvationText = StarvationText(Strict())
    founders: int | None = None
    key_file: Path | None = None
    trace: LocationText | None = None
    trace_journal: bool = False
    omission_degree: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None
    delay_ms: Annotated[float, msgspec.Meta(gt=0, le=60_000)] | None = None
    inaccessibility_ms: Annotated[float, msgspec.Meta(ge=0, le=600_000)] = 0.0


class ConfigFile(_Table, frozen=True, kw_only=True):
    node: dict[str, Any]
    peers: dict[str, Any] = {}
    group: Annotated[list[Any], msgspec.Meta(min_length=1)]


def read_config(path: Path) -> NodePlan:
    """Read a configuration file; raise InvalidOption with all its problems if there are any."""
    return _ConfigReader(path).read()


class _ConfigReader:
    """Reads one file into a plan. Invalid values are reported to the TableReader and left out."""

    def __init__(self, path: Path) -> None:
        self._reader = TableReader(path, self._convert)
        self._directory = path.parent

    def read(self) -> NodePlan:
        reader = self._reader
        file = reader.table("", reader.parse(), ConfigFile)
        node = reader.table("node", file["node"], NodeTable) if "node" in file else {}
        self._check_node(node)
        peers = self._peers(file.get("peers", {}), node)
        groups = self._groups(file.get("group", []), node, len(peers) + 1)
        tls = find_tls(reader, node.get("tls"), node.get("name", ""), [group.name for group in groups])
        reader.check()
        admin = node.pop("admin", None)
        return NodePlan(
            **node | {"tls": tls},
            peers=tuple(peers.values()),
            groups=tuple(groups),
            admin=AdminPlan(listen=admin.listen, allow_remote=admin.allow_remote) if admin else None,
        )

    def _convert(self, kind: type, raw: Any) -> Any:
        """Convert text to a path, a location or checked text."""
        if not isinstance(raw, str):
            raise InvalidInput(f"is {raw!r}: must be text in quotes")
        if kind is Path:
            return self._directory / raw
        if kind is LocationText:
            return LocationText(raw if is_url(raw) else self._directory / raw)
        _CHECKS[kind](raw)
        return kind(raw)

    def _check_node(self, node: Table) -> None:
        reader, transport = self._reader, node.get("transport", "tcp")
        for key in ("multicast", "datagram_bytes"):
            if key in node and transport == "tcp":
                reader.problem(f"node.{key}", 'applies to UDP only: remove it, or set transport = "udp"')
        if "multicast" in node and transport == "udp":
            try:
                check_multicast(parse_address(node["multicast"]))
            except InvalidAddress as error:
                reader.problem("node.multicast", str(error))
        if "state_directory" in node:
            check_directory(reader, "node.state_directory", node["state_directory"])
        if "admin" in node:
            try:
                check_admin_address(node["admin"].listen, allow_remote=node["admin"].allow_remote)
            except InvalidInput as error:
                reader.problem("node.admin.listen", str(error))

    # Peers

    def _peers(self, raw: Table, node: Table) -> dict[str, str]:
        """The addresses of the other members, by name."""
        reader = self._reader
        name, own = node.get("name"), [node[key] for key in ("listen", "advertise") if key in node]
        by_address: dict[str, str] = {}
        for peer, text in raw.items():
            key = f"peers.{peer}"
            reader.value(key, peer, MemberName)
            address = reader.value(key, text, AddressText)
            if address is None:
                continue
            if peer == name:
                if own and not any(_is_same(address, each) for each in own):
                    reader.problem(key, f"is {address}, but node.listen is {own[0]}: they must be equal")
            elif address in own:
                reader.problem(key, f"is {address}, the address of this node: give {peer} its own")
            elif address in by_address:
                reader.problem(
                    key, f"is {address}, the address of {by_address[address]}: give {peer} its own"
                )
            else:
                by_address[address] = peer
        return {peer: address for address, peer in by_address.items()}

    # Groups

    def _groups(self, raw: list[Any], node: Table, founders: int) -> list[GroupPlan]:
        plans: list[GroupPlan] = []
        names: set[str] = set()
        for number, table in enumerate(raw, 1):
            key = f"group[{number}]"
            if isinstance(table, dict) and isinstance(table.get("name"), str):
                key = f"group.{table['name']}"
                if table["name"] in names:
                    self._reader.problem(key, "is defined twice: give each group a unique name")
                names.add(table["name"])
            found = self._reader.table(
                key,
                table,
                GroupTable,
                OrderingOptions,
                MembershipOptions,
                ServiceOptions,
                hidden=_NOT_FOR_FILES,
            )
            found.setdefault("founders", founders)
            plan = self._group(key, found, node.get("transport", "tcp"))
            if plan is not None:
                plans.append(plan)
        return plans

    def _group(self, key: str, found: Table, transport: str) -> GroupPlan | None:
        starvation = parse_starvation(found.pop("starvation", str(Strict())))
        options = self._options(key, OrderingOptions, found | {"starvation": starvation})
        membership = self._options(key, MembershipOptions, found)
        services = self._options(key, ServiceOptions, found | {"network": _bounds(found)})
        order = found.get("order", ORDER)
        self._check_order(key, order, options, membership)
        check_key(self._reader, f"{key}.key_file", found.get("key_file"), transport)
        if "trace" in found:
            check_trace(self._reader, key, found["trace"], found.get("trace_journal", False))
        if "name" not in found or options is None or membership is None or services is None:
            return None
        return GroupPlan(
            name=found["name"],
            order=order,
            options=options,
            membership=membership,
            services=services,
            key_file=found.get("key_file"),
            trace=found.get("trace"),
            trace_journal=found.get("trace_journal", False),
        )

    def _check_order(
        self, key: str, order: str, options: OrderingOptions | None, membership: MembershipOptions | None
    ) -> None:
        if options is None or membership is None:
            return
        try:
            resolve_order(order, options, membership)
        except InvalidOption as error:
            self._reader.problem(f"{key}.order", str(error).removeprefix("order "))

    def _options(self, key: str, kind: Any, found: Table) -> Any:
        """The options in a table, or None if a value is rejected; every rejected value is reported."""
        share = {name: found[name] for name in kind.__struct_fields__ if name in found}
        rejected = False
        while True:
            try:
                options = kind(**share)
            except InvalidOption as error:
                name = str(error).partition(" ")[0]
                if name in share or not rejected:
                    self._reader.problem(f"{key}.{name}", str(error).removeprefix(f"{name} "))
                if share.pop(name, None) is None or name == "founders":
                    return None
                rejected = True
            else:
                return None if rejected else options


def _bounds(found: Table) -> NetworkProperties:
    """What is known of the network that the group is on."""
    delay_ms = found.get("delay_ms")
    return NetworkProperties(
        omission_degree=found.get("omission_degree"),
        delay_ns=None if delay_ms is None else int(delay_ms * _MILLISECOND),
        inaccessibility_ns=int(found.get("inaccessibility_ms", 0) * _MILLISECOND),
    )


def _is_same(address: str, own: str) -> bool:
    """Whether an address can be that of this node; if it listens on all addresses, the port decides."""
    one, other = parse_address(address), parse_address(own)
    return one == other or (other.host in _ANY_HOST and one.port == other.port)
