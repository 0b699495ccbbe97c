"""Runs that are not on a local disk: what members write through a file system of pyarrow."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from pyarrow import BufferReader, parquet

from priocast.core.errors import ForeignTrace, InvalidOption
from priocast.core.identity import ProcessId
from priocast.trace.remote_directory import RemoteDirectory, is_remote, parse_location, without_secrets
from priocast.trace.run_directory import MANIFEST, parse_manifest, write_manifest
from priocast.trace.schema import Manifest, MessageRow
from priocast.trace.writer import TraceWriter
from support.network_storage import NetworkStorage, network_storage

MANIFEST_OF_RUN = Manifest(
    run="r",
    group="g",
    order="sequencer-ub",
    prioritised=True,
    starvation="none",
    orders="coordinator",
    priorities_act="sequencing",
    members=["a"],
    policy="primary",
    delivery="agreed",
    clock="shared",
)
ROW = MessageRow("a", 1, 1, "a#1", 0, 0, "sent", "", "", "a", 1, 0, 0, 1, b"", False, "", "", 0, -1, 8, 0)


@pytest.fixture
def storage() -> Iterator[NetworkStorage]:
    with network_storage() as serving:
        yield serving


def test_a_run_is_written_to_an_object_store(storage: NetworkStorage) -> None:
    directory = parse_location(storage.url_to_write("runs/1"))
    assert isinstance(directory, RemoteDirectory)
    directory.check()
    write_manifest(directory, MANIFEST_OF_RUN)
    writer = TraceWriter(directory, "r", ProcessId("a"))
    writer.emit(ROW)
    writer.close()
    assert set(storage.files) == {"runs/1/manifest.json", "runs/1/messages/a-1-000000.parquet"}
    assert parse_manifest("it", storage.files["runs/1/manifest.json"]) == MANIFEST_OF_RUN
    [row] = parquet.read_table(BufferReader(storage.files["runs/1/messages/a-1-000000.parquet"])).to_pylist()
    assert (row["run"], row["member"], row["bytes"]) == ("r", "a", 8)


def test_members_of_another_run_may_not_use_it(storage: NetworkStorage) -> None:
    directory = parse_location(storage.url_to_write("runs/1"))
    write_manifest(directory, MANIFEST_OF_RUN)
    write_manifest(directory, msgspec.structs.replace(MANIFEST_OF_RUN, labels={"who": "b"}))
    with pytest.raises(ForeignTrace, match=r"^s3://traces/runs/1 already contains run 'r' of group 'g'"):
        write_manifest(directory, msgspec.structs.replace(MANIFEST_OF_RUN, run="s"))


def test_a_storage_that_denies_is_noticed_before_the_run(storage: NetworkStorage) -> None:
    storage.refuses_writes = True
    directory = parse_location(storage.url_to_write("runs/1"))
    assert isinstance(directory, RemoteDirectory)
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        directory.check()
    assert storage.files == {}


def test_rows_that_the_storage_did_not_take_are_reported(storage: NetworkStorage) -> None:
    writer = TraceWriter(parse_location(storage.url_to_write("runs/1")), "r", ProcessId("a"))
    storage.refuses_writes = True
    writer.emit(ROW)
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        writer.close()
    assert "ACCESS_DENIED" in writer.problem and "\n" not in writer.problem


def test_a_file_appears_only_when_it_is_complete(storage: NetworkStorage) -> None:
    directory = parse_location(storage.url_to_write("runs/1"))
    assert isinstance(directory, RemoteDirectory)

    def fill(file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        directory.write(MANIFEST, fill)
    assert directory.read(MANIFEST) is None


@pytest.mark.parametrize(
    ("text", "path"), [("runs/1", "runs/1"), ("file:///runs/a%20b", "/runs/a b"), ("c:x", "c:x")]
)
def test_paths_and_file_urls_are_local(text: str, path: str) -> None:
    assert parse_location(text) == Path(path)
    assert not is_remote(text)


def test_a_url_that_nothing_here_can_write_to_is_rejected_without_its_secrets() -> None:
    with pytest.raises(InvalidOption, match=r"^nowhere://host/x cannot be written to: ") as raised:
        parse_location("nowhere://user:secret@host/x?key=secret")
    assert "secret@" not in without_secrets("s3://user:secret@host/x") == "s3://host/x"
    assert "secret" not in str(raised.value).partition(":")[0]
