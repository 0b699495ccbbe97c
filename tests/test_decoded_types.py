"""Everything that can be decoded is bounded: every number, text and collection that a peer can name."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from priocast.core.decoding import decode
from priocast.core.errors import ForeignFrame
from priocast.core.message import Batch
from priocast.log.entries import LogEntry
from priocast.log.ordered_log import LogIdentity
from priocast.membership.packets import AnyControl, OptionsHash
from priocast.network.tcp_connection import Introduction
from priocast.network.udp_handshake import Greeting
from priocast.protocols import PROTOCOLS
from priocast.replication.commands import Envelope
from priocast.replication.saved_state import SavedState
from priocast.services.packets import AnyServicePacket
from priocast.sql.database_machine import SavedDatabase
from priocast.sql.postgres_changes import RowChanges
from priocast.sql.postgres_snapshot import PostgresContents, PostgresSnapshot
from priocast.sql.requests import SqlRequest, Verdict
from priocast.sql.sqlite_files import SqliteSnapshot

PACKETS = {
    f"{name} {packet.__name__}": packet for name, protocol in PROTOCOLS.items() for packet in protocol.PACKETS
}
TYPES: dict[str, Any] = {
    **{control.__name__: control for control in AnyControl.__args__},
    **{each.__name__: each for each in (Introduction, Greeting)},
    **{envelope.__name__: envelope for envelope in Envelope.__args__},
    "SavedState": SavedState,
    **{each.__name__: each for each in (*LogEntry.__args__, LogIdentity)},
    **{packet.__name__: packet for packet in AnyServicePacket.__args__},
    **{each.__name__: each for each in (*SqlRequest.__args__, *Verdict.__args__)},
    **{each.__name__: each for each in (SavedDatabase, SqliteSnapshot)},
    "RowChanges": RowChanges,
    **{each.__name__: each for each in (PostgresContents, PostgresSnapshot)},
    **PACKETS,
}
_OF_64_BITS = inspect.type_info(OptionsHash)
_LENGTHS = inspect.StrType | inspect.BytesType | inspect.VarTupleType | inspect.ListType | inspect.DictType


def unbounded(found: inspect.Type, path: str) -> Iterator[str]:
    """The paths to what has no bound in a type."""
    if found == _OF_64_BITS:
        return
    if isinstance(found, inspect.IntType) and (found.ge is None or found.le is found.lt):
        yield path
    if isinstance(found, _LENGTHS) and found.max_length is None:
        yield path
    for inner, name in inside(found):
        yield from unbounded(inner, f"{path}{name}")


def inside(found: inspect.Type) -> list[tuple[inspect.Type, str]]:
    """The types that a type consists of, and what to add to the path to them."""
    match found:
        case inspect.StructType(fields=fields):
            return [(field.type, f".{field.name}") for field in fields]
        case inspect.UnionType(types=types):
            return [(each, "") for each in types]
        case inspect.TupleType(item_types=item_types):
            return [(each, "[]") for each in item_types]
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [(item, "[]")]
        case inspect.DictType(key_type=key, value_type=value):
            return [(key, " key"), (value, " value")]
    return []


@pytest.mark.parametrize("name", TYPES)
def test_everything_that_a_peer_can_name_is_bounded(name: str) -> None:
    assert list(unbounded(inspect.type_info(TYPES[name]), name)) == []


def test_what_has_no_bound_is_found() -> None:
    class Unbounded(msgspec.Struct):
        batch: Batch
        numbers: tuple[int, ...]
        texts: dict[str, bytes]

    found = list(unbounded(inspect.type_info(Unbounded), "it"))
    assert found == ["it.numbers", "it.numbers[]", "it.texts", "it.texts key", "it.texts value"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x92\xa2\xff\xfe\x01", id="a tag that is not UTF-8"),
        pytest.param(b"\x93\xa9heartbeat\x00\x92\x01\x92\xa2\xff\xfe\x01", id="a name that is not UTF-8"),
        pytest.param(b"\x92\xafoptions-mismatch\xa1x" + b"\x91" * 5_000, id="deeply nested"),
        pytest.param(
            b"\x94\xb0options-mismatch\xa1x" + b"\x91" * 100_000 + b"\x01", id="nesting in what is skipped"
        ),
        pytest.param(b"\x92\xb0options-mismatch\xdb\xff\xff\xff\xff", id="a length beyond the end"),
    ],
)
def test_every_failure_of_decoding_is_one_error(body: bytes) -> None:
    decoder = msgspec.msgpack.Decoder(AnyControl).decode
    with pytest.raises(ForeignFrame, match=r"b sent a datagram that cannot be read: .{1,200}$"):
        decode(decoder, body, "b", "a datagram")
