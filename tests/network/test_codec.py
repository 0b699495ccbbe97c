"""Frames are decoded however the stream is split; everything else is rejected by its header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from priocast.core.errors import Rejected
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.codec import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    INTRODUCTION_BYTES_MAX,
    FrameKind,
    FrameReader,
    FrameWriter,
    ReceivedFrames,
    hash_of,
)

A = ProcessId("a", 7)
U64 = st.integers(0, 2**64 - 1)
FRAMES = st.lists(st.builds(Frame, U64, U64, U64, U64, st.binary(max_size=2000)), max_size=12)


def feed(reader: FrameReader, data: bytes) -> list[ReceivedFrames]:
    """Feed bytes as an event loop does: as many as fit into the buffer at a time."""
    arrivals: list[ReceivedFrames] = []
    while data:
        space = reader.free()
        count = min(len(space), len(data))
        assert count, "there is always space for more"
        space[:count] = data[:count]
        arrivals += reader.read(count)
        data = data[count:]
    return arrivals


def reader_of(name: str) -> FrameReader:
    reader = FrameReader()
    reader.expect(name)
    return reader


def stream_of(frames: list[Frame], group: str = "g", sender: ProcessId = A) -> bytes:
    return b"".join(FrameWriter(group, sender).data(frames))


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 3000), max_size=20))
def test_frames_are_decoded_however_the_stream_is_split(frames: list[Frame], cuts: list[int]) -> None:
    reader, stream = reader_of("a"), stream_of(frames)
    arrivals = []
    for cut in cuts:
        arrivals += feed(reader, stream[:cut])
        stream = stream[cut:]
    arrivals += feed(reader, stream)
    assert [frame for arrival in arrivals for frame in arrival.frames] == frames
    origins = {(arrival.kind, arrival.group, arrival.incarnation) for arrival in arrivals}
    assert origins <= {(FrameKind.DATA, hash_of("g"), 7)}


def test_the_header_has_64_bytes() -> None:
    assert HEADER_BYTES == 64
    assert len(stream_of([Frame(1, 2, 3, 4)])) == 64


@given(origins=st.lists(st.tuples(st.sampled_from("gh"), st.integers(1, 3)), max_size=30))
def test_the_frames_of_one_read_are_grouped_by_group_and_incarnation(origins: list[tuple[str, int]]) -> None:
    stream = b""
    expected: dict[tuple[int, int], list[Frame]] = {}
    for number, (group, incarnation) in enumerate(origins):
        frame = Frame(1, number, 0, 0, b"x")
        stream += stream_of([frame], group, ProcessId("a", incarnation))
        expected.setdefault((hash_of(group), incarnation), []).append(frame)
    reader = reader_of("a")
    reader.free()[: len(stream)] = stream
    arrivals = reader.read(len(stream))
    assert {(arrival.group, arrival.incarnation): arrival.frames for arrival in arrivals} == expected
    assert len(arrivals) == len(expected)


def test_a_frame_larger_than_the_buffer_is_decoded() -> None:
    reader = reader_of("a")
    body = bytes(range(256)) * 4096
    stream = stream_of([Frame(1, 1, 0, 0, body)] * 2)
    arrivals = []
    for start in range(0, len(stream), 100_000):
        arrivals += feed(reader, stream[start : start + 100_000])
    assert [frame.body for arrival in arrivals for frame in arrival.frames] == [body, body]


def hello(sender: ProcessId = A, body: bytes = b"") -> bytearray:
    return bytearray(FrameWriter("", sender).frame(FrameKind.HELLO, body))


def rejection(reader: FrameReader, data: bytes) -> Rejected:
    with pytest.raises(Rejected) as rejected:
        feed(reader, data)
    return rejected.value


def test_foreign_bytes_are_rejected_by_the_header() -> None:
    request = b"GET / HTTP/1.1\r\nHost: tickets.example\r\nAccept: text/html\r\n\r\n" + bytes(8)
    error = rejection(FrameReader(), request)
    assert error.reason == "not Priocast"
    assert "check the port" in str(error)


def test_another_version_is_rejected_with_a_hint() -> None:
    damaged = hello()
    damaged[2] = 9
    error = rejection(FrameReader(), bytes(damaged))
    assert error.reason == "another version of the wire format"
    assert "version 9" in error.detail
    assert "same release" in error.detail


def test_an_unknown_kind_is_rejected() -> None:
    damaged = hello()
    damaged[3] = 99
    assert rejection(FrameReader(), bytes(damaged)).reason == "unknown kind of frame"


@pytest.mark.parametrize(
    ("reader", "limit"), [(FrameReader(), INTRODUCTION_BYTES_MAX), (reader_of("a"), FRAME_BYTES_MAX)]
)
def test_a_length_over_the_limit_is_rejected_before_the_body_arrives(reader: FrameReader, limit: int) -> None:
    damaged = hello()
    damaged[28:32] = (limit + 1).to_bytes(4)
    room = len(reader.free())
    assert rejection(reader, bytes(damaged)).reason == "frame over the limit"
    assert len(reader.free()) <= room, "the buffer did not grow"


def test_before_the_introduction_frames_are_limited_to_one_kilobyte() -> None:
    reader = FrameReader()
    assert len(reader.free()) == HEADER_BYTES + INTRODUCTION_BYTES_MAX
    [arrival] = feed(reader, bytes(hello(body=bytes(INTRODUCTION_BYTES_MAX))))
    assert len(arrival.frames[0].body) == INTRODUCTION_BYTES_MAX
    reader.expect("a")
    assert len(reader.free()) > 10 * INTRODUCTION_BYTES_MAX


def test_frames_of_another_process_are_rejected_after_the_introduction() -> None:
    reader = reader_of("a")
    assert feed(reader, stream_of([Frame(0, 0, 0, 0)], sender=ProcessId("a", 8)))
    assert rejection(reader, stream_of([Frame(0, 0, 0, 0)], sender=ProcessId("b", 7))).reason == (
        "frame of another sender"
    )


def test_the_buffer_follows_what_arrives_and_not_what_a_header_announces() -> None:
    reader = FrameReader()
    reader.expect("a")
    first = len(reader.free())
    [header, body] = FrameWriter("g", ProcessId("a")).data([Frame(1, 1, 0, 0, bytes(FRAME_BYTES_MAX))])
    assert feed(reader, header) == []
    assert len(reader.free()) < first, "1.5 MB are announced, and nothing of it has come"
    sent = 0
    while sent < len(body):
        free = len(reader.free())
        assert 0 < free <= max(first, 2 * (HEADER_BYTES + sent))
        arrived = feed(reader, body[sent : sent + free])
        sent += free
    assert len(arrived[0].frames[0].body) == FRAME_BYTES_MAX
    assert len(reader.free()) <= 256 * 1024, "a long frame keeps its memory no longer than it lasts"
