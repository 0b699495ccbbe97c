"""Run directories: what is written can be read, and errors say what is wrong."""

import json
from pathlib import Path

import msgspec
import pyarrow
import pytest
from pyarrow import parquet

from priocast.core.errors import ForeignTrace, UnreadableTrace
from priocast.trace.columns import GROUP_EVENTS, MESSAGES, SERVICES, table_schema
from priocast.trace.run_directory import (
    MANIFEST,
    find_runs,
    find_segments,
    read_group_events,
    read_manifest,
    read_segment,
    write_manifest,
    write_segment,
)
from priocast.trace.schema import SCHEMA_VERSION, GroupEventRow, Manifest, MessageRow, ServiceRow
from priocast.trace.stored_rows import find_rows

ROW = MessageRow(
    member="a",
    incarnation=1,
    view=1,
    coordinator="a#1",
    step=0,
    time_ns=5,
    event="sent",
    packet="submit",
    peer="b",
    sender="a",
    sender_incarnation=1,
    level=7,
    first=0,
    count=2,
    priorities=b"\1\2",
    safe=True,
    to="b,c",
    client="k#1",
    request=9,
    position=-1,
    bytes=30,
    backlog=4,
)
VIEW_ROW = GroupEventRow(
    *("a", 1, 2, "a#1", 1, 6, "view"),
    position=5,
    members=("a#1", "c#1"),
    orderer="a#1",
    order="sequencer-ub",
    starvation="none",
    priorities_act="sequencing",
    sends_by_priority=True,
    joined=("c",),
    evicted=(("b", "slow", "for 3 s"), ("d", "overflow", "")),
)
FINISHED_ROW = ServiceRow(
    *("a", 1, 2, "a#1", 2, 7, "finished", "a", 1, "atomic", 3),
    unit=1,
    units=2,
    bytes=90,
    quality="atomic",
    priority=255,
    recipients=("a#1", "c#1"),
    accepted=True,
    answered=("a",),
    rejected=("c",),
    reasons=("no room",),
    missing=("d",),
    rounds=3,
)
MANIFEST_OF_RUN = Manifest(
    run="r",
    group="g",
    order="sequencer-ub",
    prioritised=True,
    starvation="none",
    orders="coordinator",
    priorities_act="sequencing",
    members=["a", "b"],
    policy="primary",
    delivery="agreed",
    clock="virtual",
    options={"window": None, "window_ms": 5.0},
    seed=7,
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A complete run."""
    directory = tmp_path / "run"
    write_manifest(directory, MANIFEST_OF_RUN)
    write_segment(directory, "r", "a-1-000000", [ROW, VIEW_ROW, FINISHED_ROW])
    return directory


def _overwrite_manifest(run: Path, **changes: object) -> None:
    raw = {**msgspec.to_builtins(MANIFEST_OF_RUN), **changes}
    (run / MANIFEST).write_text(json.dumps(raw))


def _rows(segment: Path) -> list[MessageRow]:
    table = read_segment(segment, list(MessageRow._fields))
    return [MessageRow(**row) for row in table.to_pylist()]


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def test_a_run_is_read_as_it_was_written(run: Path) -> None:
    assert read_manifest(run) == MANIFEST_OF_RUN
    segments = find_segments(run)
    (segment,) = segments.messages
    assert _rows(segment) == [ROW]
    assert read_group_events(segments.group_events) == [VIEW_ROW]
    (service,) = pyarrow.concat_tables(map(read_segment, segments.services)).to_pylist()
    of_segment = {"run": "r", "clock_offset_ns": None, "schema_version": SCHEMA_VERSION}
    assert {name: _frozen(value) for name, value in service.items()} == FINISHED_ROW._asdict() | of_segment
    assert find_runs(run) == [run]


def test_large_incarnations_and_positions_fit(tmp_path: Path) -> None:
    large = ROW._replace(incarnation=2**60, sender_incarnation=2**60, position=2**60, time_ns=2**62)
    write_segment(tmp_path, "r", "large", [large])
    (segment,) = find_segments(tmp_path).messages
    assert _rows(segment) == [large]


def test_the_segments_contain_the_version_of_their_schema(run: Path) -> None:
    for (segment,) in find_segments(run):
        metadata = parquet.read_schema(segment).metadata
        assert metadata[b"priocast.schema_version"] == str(SCHEMA_VERSION).encode()


def test_only_complete_segments_are_found(run: Path) -> None:
    (run / MESSAGES / ".a-1-000001.part").write_bytes(b"half of a segment")
    assert [path.name for path in find_segments(run).messages] == ["a-1-000000.parquet"]


def test_runs_are_found_below_a_directory_by_name(run: Path) -> None:
    other = run.parent / "another"
    write_manifest(other, MANIFEST_OF_RUN)
    (run.parent / "no run").mkdir()
    assert find_runs(run.parent) == [other, run]


class TestManifest:
    def test_members_that_share_a_run_may_all_write_it(self, run: Path) -> None:
        write_manifest(run, msgspec.structs.replace(MANIFEST_OF_RUN, labels={"who": "b"}))
        assert read_manifest(run) == MANIFEST_OF_RUN
        assert {path.name for path in run.iterdir()} == {MANIFEST, MESSAGES, GROUP_EVENTS, SERVICES}

    @pytest.mark.parametrize("other", [{"run": "r2"}, {"group": "g2"}, {"order": "token-ring"}])
    def test_another_run_may_not(self, run: Path, other: dict[str, str]) -> None:
        with pytest.raises(
            ForeignTrace, match="already contains run 'r' of group 'g': choose another directory"
        ):
            write_manifest(run, msgspec.structs.replace(MANIFEST_OF_RUN, **other))
        assert read_manifest(run) == MANIFEST_OF_RUN

    def test_it_is_written_completely_or_not_at_all(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Found by reading: it was created empty and then written, so a member that started in between could
        # not read it, and a full disk left an empty one.
        def fail_when_half_is_written(path: Path, text: str) -> int:
            path.write_bytes(text.encode()[: len(text) // 2])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", fail_when_half_is_written)
        with pytest.raises(OSError, match="No space left"):
            write_manifest(tmp_path, MANIFEST_OF_RUN)
        assert list(tmp_path.iterdir()) == []

    def test_a_directory_without_one_is_not_a_run(self, tmp_path: Path) -> None:
        for read in (read_manifest, find_runs):
            with pytest.raises(UnreadableTrace, match="is not a run directory"):
                read(tmp_path)

    def test_a_file_is_not_a_run(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.touch()
        for read in (read_manifest, find_runs):
            with pytest.raises(UnreadableTrace, match=r"/file is a file, not a run directory"):
                read(file)
            with pytest.raises(UnreadableTrace, match=r"/file/below is below a file, not a run directory"):
                read(file / "below")

    @pytest.mark.parametrize("text", ["", "{", '{"format": "priocast-run"', "\udcff"])
    def test_a_damaged_one_cannot_be_read(self, run: Path, text: str) -> None:
        (run / MANIFEST).write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(UnreadableTrace, match="cannot be read"):
            read_manifest(run)

    @pytest.mark.parametrize("text", ["[]", "{}", '{"format": "other"}', "7"])
    def test_a_foreign_one_is_recognised(self, run: Path, text: str) -> None:
        (run / MANIFEST).write_text(text)
        with pytest.raises(ForeignTrace, match="does not describe a Priocast run"):
            read_manifest(run)

    @pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, SCHEMA_VERSION - 1, 0, None, "1"])
    def test_another_version_is_rejected_with_what_to_do(self, run: Path, version: object) -> None:
        _overwrite_manifest(run, schema_version=version)
        with pytest.raises(
            ForeignTrace, match=f"has trace schema version {version}, .*use the release that wrote the trace"
        ):
            read_manifest(run)

    @pytest.mark.parametrize(
        "changes", [{"members": "a"}, {"prioritised": "yes"}, {"clock": None}, {"policy": 1}]
    )
    def test_an_incomplete_one_is_unreadable(self, run: Path, changes: dict[str, object]) -> None:
        _overwrite_manifest(run, **changes)
        with pytest.raises(UnreadableTrace, match="is not a complete manifest"):
            read_manifest(run)


class TestSegments:
    def test_a_run_without_rows_is_unreadable(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableTrace, match="contains no rows"):
            find_rows(tmp_path)

    def test_no_flipped_bit_reads_as_other_rows(self, run: Path) -> None:
        # Found by flipping bits: without checksums, a third of them in the pages read as other rows.
        rows = [ROW._replace(step=step, first=step, bytes=step * step) for step in range(50)]
        write_segment(run, "r", "a-1-000000", rows)
        (path,) = find_segments(run).messages
        whole, undamaged = path.read_bytes(), read_segment(path)
        noticed = 0
        for bit in range(0, 8 * len(whole), 41):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                find_segments(run)
            except (UnreadableTrace, ForeignTrace):
                noticed += 1
            else:
                assert read_segment(path).equals(undamaged)
        assert noticed > len(whole) // 41

    @pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
    def test_a_truncated_segment_is_unreadable(self, run: Path, keep: float) -> None:
        (path,) = find_segments(run).messages
        whole = path.read_bytes()
        path.write_bytes(whole[: int(keep * len(whole)) if keep < 1 else int(keep)])
        with pytest.raises(UnreadableTrace, match="is damaged or not a Parquet file"):
            find_segments(run)

    def test_a_file_that_is_not_parquet_is_unreadable(self, run: Path) -> None:
        (run / MESSAGES / "notes.parquet").write_text("these are my notes, and they are long enough")
        with pytest.raises(UnreadableTrace, match=r"notes\.parquet is damaged or not a Parquet file"):
            find_segments(run)

    def test_parquet_of_other_columns_is_foreign(self, run: Path) -> None:
        parquet.write_table(pyarrow.table({"member": ["a"]}), run / MESSAGES / "b.parquet")
        with pytest.raises(ForeignTrace, match="does not have the columns of the table 'messages'"):
            find_segments(run)

    def test_rows_of_another_schema_version_are_foreign(self, run: Path) -> None:
        for path in (*find_segments(run).messages, *find_segments(run).group_events):
            table = whole = read_segment(path)
            column = table.column_names.index("schema_version")
            versions = pyarrow.array([SCHEMA_VERSION + 1] * len(table), pyarrow.int32())
            table = table.set_column(column, table.schema.field(column), versions)
            parquet.write_table(table, path)
            with pytest.raises(
                ForeignTrace,
                match=rf"{path.name} has trace schema version {SCHEMA_VERSION + 1}, .*use the release that",
            ):
                find_segments(run)
            parquet.write_table(whole, path, write_page_checksum=True)

    def test_parquet_of_other_types_is_foreign(self, run: Path) -> None:
        schema = table_schema(MessageRow)
        other = schema.set(schema.get_field_index("step"), pyarrow.field("step", pyarrow.string()))
        parquet.write_table(other.empty_table(), run / MESSAGES / "b.parquet")
        with pytest.raises(ForeignTrace):
            find_segments(run)
