"""`priocast feed` keeps what a group orders, and leaves the group when it is told to."""

import signal
from pathlib import Path

from priocast.feed.feed_files import FeedFiles
from priocast.feed.feed_reader import FeedReader
from priocast.testing.addresses import free_addresses
from support.command import command_error, priocast, start


def test_messages_are_kept_for_readers_and_on_disk(tmp_path: Path) -> None:
    listen, address = (str(each) for each in free_addresses(2))
    arguments = (
        "feed",
        "tickets",
        "--member",
        "a",
        "--listen",
        listen,
        "--directory",
        str(tmp_path / "feed"),
    )
    with start(*arguments, "--address", address) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"a feeds readers of group tickets at {address}\n"
            for text in ("one seat", "two seats"):
                assert priocast("send", "tickets", "--peer", listen, text).returncode == 0
            with FeedReader("tickets", [address], wait_seconds=60) as reader:
                read = [message.payload for part in reader.read(0, 2) for message in part]
            assert read == [b"one seat", b"two seats"]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0
    assert FeedFiles("tickets", tmp_path / "feed").widest_range() == (0, 2)


def test_an_address_that_others_reach_is_rejected_without_tls(tmp_path: Path) -> None:
    arguments = ("--member", "a", "--listen", "127.0.0.1:7401", "--directory", str(tmp_path))
    error = command_error("feed", "tickets", *arguments, "--address", "0.0.0.0:9501")
    assert "which other machines can reach: pass tls=" in error
