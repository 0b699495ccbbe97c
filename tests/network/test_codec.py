"""Frames survive any way in which a stream is cut; anything else is refused by its header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import ForeignFrame, VersionMismatch
from priocast.core.identity import ProcessId
from priocast.links.fifo_link import Frame
from priocast.network.codec import FRAME_BYTES_MAX, HEADER_BYTES, FrameReader, FrameWriter, Kind

A = ProcessId("a", 7)
U64 = st.integers(0, 2**64 - 1)
FRAMES = st.lists(st.builds(Frame, U64, U64, U64, st.binary(max_size=2000)), max_size=12)


def feed(reader: FrameReader, data: bytes) -> list[tuple[Kind, Frame]]:
    """Hand bytes over as an event loop does: as many as there is space for at a time."""
    frames: list[tuple[Kind, Frame]] = []
    while data:
        space = reader.free()
        count = min(len(space), len(data))
        space[:count] = data[:count]
        frames += reader.read(count)
        data = data[count:]
    return frames


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 3000), max_size=20))
def test_frames_arrive_as_they_were_sent_however_the_stream_is_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    writer, reader = FrameWriter("g", A), FrameReader()
    reader.expect("g", A)
    stream = b"".join(b"".join(writer.data(frame)) for frame in frames)
    received = []
    for cut in cuts:
        received += feed(reader, stream[:cut])
        stream = stream[cut:]
    received += feed(reader, stream)
    assert [frame for _, frame in received] == frames
    assert all(kind is Kind.DATA for kind, _ in received)


def test_a_frame_larger_than_the_buffer_arrives_whole() -> None:
    reader = FrameReader()
    body = bytes(range(256)) * 4096
    stream = b"".join(FrameWriter("g", A).data(Frame(1, 0, 0, body))) * 2
    received = []
    for start in range(0, len(stream), 100_000):
        received += feed(reader, stream[start : start + 100_000])
    assert [frame.body for _, frame in received] == [body, body]


def header(group: str = "g", sender: ProcessId = A) -> bytearray:
    return bytearray(FrameWriter(group, sender).frame(Kind.HELLO))


def test_foreign_bytes_are_refused_by_the_header_alone() -> None:
    with pytest.raises(ForeignFrame, match="check the port"):
        feed(FrameReader(), b"GET / HTTP/1.1\r\nHost: tickets.example\r\nAccept: text/html\r\n\r\n")


def test_another_version_is_refused_with_a_reason() -> None:
    damaged = header()
    damaged[2] = 9
    with pytest.raises(VersionMismatch, match=r"version 9.*version 1.*same release"):
        feed(FrameReader(), bytes(damaged))


def test_an_unknown_kind_is_refused() -> None:
    damaged = header()
    damaged[3] = 99
    with pytest.raises(ForeignFrame, match="unknown kind 99"):
        feed(FrameReader(), bytes(damaged))


def test_a_length_over_the_limit_is_refused_before_its_bytes_come() -> None:
    damaged = header()
    damaged[28:32] = (FRAME_BYTES_MAX + 1).to_bytes(4)
    with pytest.raises(ForeignFrame, match="over the limit"):
        feed(FrameReader(), bytes(damaged))
    assert len(damaged) == HEADER_BYTES


@pytest.mark.parametrize(("group", "sender"), [("h", A), ("g", ProcessId("b", 7)), ("g", ProcessId("a", 8))])
def test_a_frame_of_another_group_or_process_is_refused(group: str, sender: ProcessId) -> None:
    reader = FrameReader()
    reader.expect("g", A)
    with pytest.raises(ForeignFrame, match="another group or sender"):
        feed(reader, bytes(header(group, sender)))
