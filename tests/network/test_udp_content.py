"""Frames and fragments as the content of datagrams."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import Rejected
from priocast.links.frame import Frame
from priocast.network.codec import FRAME_BYTES_MAX
from priocast.network.replay_window import ReplayWindow
from priocast.network.udp_content import (
    CELL_BYTES,
    Fragment,
    LinkHeader,
    Sizes,
    pack_fragment,
    pack_fragments,
    pack_frames,
    pack_report,
    unpack_fragments,
    unpack_frames,
    unpack_report,
)
from priocast.network.udp_security import SEAL_BYTES

SIZES = Sizes(1400)
U64 = st.integers(0, 2**64 - 1)
BODIES = st.binary(max_size=SIZES.frame_body)


@given(frames=st.lists(st.builds(Frame, U64, U64, U64, U64, BODIES), max_size=20), incarnation=U64)
def test_frames_are_decoded_as_encoded_and_every_datagram_fits(frames: list[Frame], incarnation: int) -> None:
    contents = list(pack_frames(incarnation, frames, SIZES))
    assert all(len(content) + SEAL_BYTES <= 1400 for content in contents)
    assert [frame for content in contents for frame in unpack_frames(content)[1]] == frames
    assert all(unpack_frames(content)[0] == incarnation for content in contents)


def test_small_frames_share_a_datagram() -> None:
    frames = [Frame(1, number, 0, 0, bytes(50)) for number in range(20)]
    assert len(list(pack_frames(1, frames, SIZES))) == 2
    assert len(list(pack_frames(1, frames, Sizes(9000)))) == 1


@given(headers=st.integers(1, SIZES.headers), datagram_bytes=st.integers(512, 65_507))
def test_a_fragment_fits_next_to_its_link_headers(headers: int, datagram_bytes: int) -> None:
    sizes = Sizes(datagram_bytes)
    headers = min(headers, sizes.headers)
    length, whole = sizes.fragment(headers), sizes.whole(headers)
    assert CELL_BYTES <= length <= whole < length + CELL_BYTES
    for body, size in ((bytes(70_000), length), (bytes(whole), whole)):
        fragment = pack_fragment([LinkHeader(1, 2, 3, 4, 5)] * headers, 0, body, 0, size)
        [content] = pack_fragments(1, [fragment], sizes)
        assert len(content) + SEAL_BYTES <= datagram_bytes
        assert len(unpack_fragments(content, 1)[1]) == headers


def test_each_peer_finds_its_own_link_headers() -> None:
    headers = [LinkHeader(peer, 10 + peer, 20, 30, 40) for peer in (1, 2, 3)]
    again = LinkHeader(2, 12, 21, 30, 40)
    contents = pack_fragments(6, [pack_fragment([*headers, again], 0, b"shared", 0, 6)], SIZES)
    [content] = contents
    assert unpack_fragments(content, 2) == (
        6,
        [Fragment(headers[1], 0, 6, 0, b"shared"), Fragment(again, 0, 6, 0, b"shared")],
    )
    assert unpack_fragments(content, 9) == (6, [])


def test_several_small_bodies_share_a_datagram() -> None:
    fragments = [
        pack_fragment([LinkHeader(1, 2, number, 0, 0)], 0, b"%d" % number, 0, 1) for number in range(3)
    ]
    [content] = pack_fragments(1, fragments, SIZES)
    assert [fragment.body for fragment in unpack_fragments(content, 1)[1]] == [b"0", b"1", b"2"]


def block(length: int, total: int, offset: int) -> bytes:
    """A content with one fragment that claims these sizes."""
    fragment = pack_fragment([LinkHeader(1, 2, 3, 4, 5)], 0, bytes(total), offset, length)
    return next(pack_fragments(1, [fragment], Sizes(65_507)))


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
def test_invalid_sizes_are_rejected(length: int, total: int, offset: int, reason: str) -> None:
    with pytest.raises(Rejected) as rejected:
        unpack_fragments(block(length, total, offset), 1)
    assert rejected.value.reason == reason


@given(content=st.binary(max_size=200))
def test_random_content_is_decoded_or_rejected(content: bytes) -> None:
    """Nothing else is raised, and what is decoded was in the content."""
    with suppress(Rejected):
        incarnation, frames = unpack_frames(content)
        assert b"".join(pack_frames(incarnation, frames, SIZES)) == (content if frames else b"")
    with suppress(Rejected):
        _, fragments = unpack_fragments(content, 1)
        assert all(fragment.body in content for fragment in fragments)
    with suppress(Rejected):
        highest, bits = unpack_report(content)
        assert highest.to_bytes(8) + bits.to_bytes(len(content) - 8) == content


def test_truncated_contents_are_rejected() -> None:
    whole = next(pack_frames(1, [Frame(1, 2, 3, 4, b"body")], SIZES))
    for cut in (1, 8, len(whole) - 1):
        with pytest.raises(Rejected, match="malformed"):
            unpack_frames(whole[:cut] + bytes(1 if cut == 8 else 0))
    fragment = block(128, 128, 0)
    for cut in (1, len(fragment) - 1, 20):
        with pytest.raises(Rejected, match="malformed"):
            unpack_fragments(fragment[:cut], 1)


def test_a_report_contains_the_replay_window() -> None:
    window = ReplayWindow(2**64 - 9)
    window.note(2**64 - 3)
    window.note(2**64 - 1)
    highest, bits = unpack_report(pack_report(window))
    assert highest == 2**64 - 1
    assert [behind for behind in range(10) if bits >> behind & 1] == [0, 2, 8, 9]
