"""What members reject: packets that no correct member sends, each in the situation in which it is forbidden.

The tables are in `rejections/`, a family of protocols each. A row is one packet; `PeerFault` names its
sender and what was expected. Packets that break a limit of their own fields are not even decoded.
"""

import ast
from pathlib import Path

import msgspec
import pytest

from priocast import protocols as package
from priocast.core.errors import PeerFault
from priocast.core.protocol import Packet
from priocast.protocols import PROTOCOLS
from priocast.protocols.flow.ordering_protocol import OrderingProtocol
from protocols.rejections import adaptive, agreement, history, reorder, ring, sequencer
from protocols.rejections.row import RejectedPacket, Rejection

REJECTIONS = [
    row for family in (sequencer, ring, agreement, history, reorder, adaptive) for row in family.REJECTIONS
]
MALFORMED = [*ring.MALFORMED, *agreement.MALFORMED, *history.MALFORMED, *adaptive.MALFORMED]
SOURCE = Path(package.__path__[0])


def _fault(row: Rejection) -> PeerFault:
    with pytest.raises(RejectedPacket) as rejected:
        row.situation.hear(row.sender, row.packet)
    fault = rejected.value.__cause__
    assert isinstance(fault, PeerFault), repr(fault)
    return fault


@pytest.mark.parametrize("row", REJECTIONS, ids=lambda row: f"{row.protocol.NAME}: {row.what}")
def test_a_forbidden_packet_is_rejected(row: Rejection) -> None:
    assert row.fault in str(_fault(row))


@pytest.mark.parametrize(("protocol", "packet"), MALFORMED)
def test_a_malformed_packet_is_not_decoded(protocol: type[OrderingProtocol], packet: Packet) -> None:
    assert type(packet) in protocol.PACKETS
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(packet), type=type(packet))


def test_every_protocol_has_rows() -> None:
    assert {row.protocol.NAME for row in REJECTIONS} >= set(PROTOCOLS)


def test_every_rejection_in_the_code_has_a_row() -> None:
    """Whoever adds a `raise PeerFault` adds the packet that it is for."""
    raised = {_raised_at(_fault(row)) for row in REJECTIONS}
    written = {
        (path, node.lineno)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and _is_rejection(node)
    }
    assert sorted(written - raised) == []


def _raised_at(fault: PeerFault) -> tuple[Path, int]:
    """The file and line of the statement that raised a fault."""
    traceback = fault.__traceback__
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return Path(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno


def _is_rejection(node: ast.Raise) -> bool:
    return isinstance(node.exc, ast.Call) and getattr(node.exc.func, "id", "") == PeerFault.__name__
