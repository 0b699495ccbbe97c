"""Whole frames and pieces, as the sealed part of datagrams."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import Rejected
from priocast.links.fifo_link import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.replay_window import ReplayWindow
from priocast.network.udp_content import (
    CELL_BYTES,
    Piece,
    Row,
    Sizes,
    pack_frames,
    pack_piece,
    pack_pieces,
    pack_seen,
    unpack_frames,
    unpack_pieces,
    unpack_seen,
)
from priocast.network.udp_security import SEAL_BYTES

SIZES = Sizes(1400)
U64 = st.integers(0, 2**64 - 1)
BODIES = st.binary(max_size=SIZES.frame_body)


@given(frames=st.lists(st.builds(Frame, U64, U64, U64, U64, BODIES), max_size=20), incarnation=U64)
def test_frames_come_out_as_they_went_in_and_every_datagram_fits(
    frames: list[Frame], incarnation: int
) -> None:
    contents = list(pack_frames(incarnation, frames, SIZES))
    assert all(len(content) + SEAL_BYTES <= 1400 for content in contents)
    assert [frame for content in contents for frame in unpack_frames(content)[1]] == frames
    assert all(unpack_frames(content)[0] == incarnation for content in contents)


def test_small_frames_share_a_datagram() -> None:
    frames = [Frame(1, number, 0, 0, bytes(50)) for number in range(20)]
    assert len(list(pack_frames(1, frames, SIZES))) == 2
    assert len(list(pack_frames(1, frames, Sizes(9000)))) == 1


@given(rows=st.integers(1, SIZES.rows), datagram_bytes=st.integers(512, 65_507))
def test_a_piece_fits_next_to_its_rows(rows: int, datagram_bytes: int) -> None:
    sizes = Sizes(datagram_bytes)
    rows = min(rows, sizes.rows)
    length = sizes.piece(rows)
    assert length >= CELL_BYTES
    piece = pack_piece([Row(1, 2, 3, 4, 5)] * rows, 0, bytes(70_000), 0, length)
    [content] = pack_pieces(1, [piece], sizes)
    assert len(content) + SEAL_BYTES <= datagram_bytes


def test_each_peer_finds_its_own_rows() -> None:
    rows = [Row(peer, 10 + peer, 20, 30, 40) for peer in (1, 2, 3)]
    again = Row(2, 12, 21, 30, 40)
    contents = pack_pieces(6, [pack_piece([*rows, again], 0, b"shared", 0, 6)], SIZES)
    [content] = contents
    assert unpack_pieces(content, 2) == (
        6,
        [Piece(rows[1], 0, 6, 0, b"shared"), Piece(again, 0, 6, 0, b"shared")],
    )
    assert unpack_pieces(content, 9) == (6, [])


def test_several_small_bodies_share_a_datagram() -> None:
    pieces = [pack_piece([Row(1, 2, number, 0, 0)], 0, b"%d" % number, 0, 1) for number in range(3)]
    [content] = pack_pieces(1, pieces, SIZES)
    assert [piece.body for piece in unpack_pieces(content, 1)[1]] == [b"0", b"1", b"2"]


def block(length: int, total: int, offset: int) -> bytes:
    """A content with one piece that claims these sizes."""
    piece = pack_piece([Row(1, 2, 3, 4, 5)], 0, bytes(total), offset, length)
    return next(pack_pieces(1, [piece], Sizes(65_507)))


@pytest.mark.parametrize(
    ("length", "total", "offset", "reason"),
    [
        (128, FRAME_BYTES_MAX + 1, 0, "frame over the limit"),
        (128, 200, 128, "contradictory fragments"),
        (100, 1000, 0, "contradictory fragments"),
        (128, 1000, 64, "contradictory fragments"),
        (0, 1000, 128, "contradictory fragments"),
        (0, 0, 0, "contradictory fragments"),
    ],
)
def test_sizes_that_cannot_be_are_refused(length: int, total: int, offset: int, reason: str) -> None:
    with pytest.raises(Rejected) as refused:
        unpack_pieces(block(length, total, offset), 1)
    assert refused.value.reason == reason


@given(content=st.binary(max_size=200))
def test_nonsense_does_no_harm(content: bytes) -> None:
    for read in (unpack_frames, unpack_seen, lambda each: unpack_pieces(each, 1)):
        with suppress(Rejected):
            read(content)


def test_contents_that_are_cut_off_are_refused() -> None:
    whole = next(pack_frames(1, [Frame(1, 2, 3, 4, b"body")], SIZES))
    for cut in (1, 8, len(whole) - 1):
        with pytest.raises(Rejected, match="malformed"):
            unpack_frames(whole[:cut] + bytes(1 if cut == 8 else 0))
    piece = block(128, 128, 0)
    for cut in (1, len(piece) - 1, 20):
        with pytest.raises(Rejected, match="malformed"):
            unpack_pieces(piece[:cut], 1)


def test_what_was_seen_is_a_window() -> None:
    window = ReplayWindow(2**64 - 9)
    window.note(2**64 - 3)
    window.note(2**64 - 1)
    highest, bits = unpack_seen(pack_seen(window))
    assert highest == 2**64 - 1
    assert [behind for behind in range(10) if bits >> behind & 1] == [0, 2, 8, 9]
