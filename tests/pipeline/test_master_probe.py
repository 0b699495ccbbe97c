"""Whether a Spark master answers is known before Spark starts, whatever listens at its address."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from priocast.core.errors import InvalidOption
from priocast.pipeline import master_probe
from priocast.pipeline.master_probe import check_reachable

_TEXT = b"Stream was not found."
#: As a master answers a request for a stream that it does not have: the length, the type, and a text.
STREAM_FAILURE = struct.pack(">QBI", 13 + len(_TEXT), 8, len(_TEXT)) + _TEXT


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """The URL of something that gives this answer to whatever it is sent; None: it says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(answer or b"")
                if answer is None:
                    connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://127.0.0.1:1", "no Spark master can be reached"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:2: "),
        ("spark://127.0.0.1", "is not the URL of a master"),
        ("sc://127.0.0.1:15002", "is a Spark Connect server, and commands need a master"),
    ],
)
def test_unreachable_master_is_named_at_once(master: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        check_reachable(master)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"no", b""])
def test_something_else_is_not_taken_for_a_master(answer: bytes) -> None:
    with (
        listener(answer) as master,
        pytest.raises(InvalidOption, match="what listens there is not a Spark master"),
    ):
        check_reachable(master)


def test_something_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_probe, "_ANSWER_SECONDS", 0.2)
    with listener(None) as master, pytest.raises(InvalidOption, match="no answer within"):
        check_reachable(master)


def test_one_master_that_answers_is_enough() -> None:
    with listener(STREAM_FAILURE) as master:
        check_reachable(master.replace("spark://", "spark://127.0.0.1:1,"))


def test_other_masters_are_left_to_spark() -> None:
    check_reachable("local[2]")
