"""Incarnation numbers always increase, whatever the clock says."""

import asyncio
import stat
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import priocast
from priocast.core.errors import InvalidOption
from priocast.runtime.incarnations import Incarnations
from support.groups import NETWORKS, Cluster, quick
from support.waiting import run


def _file(directory: Path) -> Path:
    return directory / "tickets.a.incarnation"


def test_without_a_directory_the_clock_provides_the_number() -> None:
    before = time.time_ns() // 1_000_000
    number = Incarnations(None, "tickets", "a").next()
    assert before <= number <= time.time_ns() // 1_000_000


def test_the_state_is_private(tmp_path: Path) -> None:
    Incarnations(tmp_path / "state", "tickets", "a").next()
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE(_file(tmp_path / "state").stat().st_mode) == 0o600


@pytest.mark.parametrize("kept", [True, False])
def test_numbers_increase_although_the_clock_does_not(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    incarnations = Incarnations(tmp_path if kept else None, "tickets", "a")
    assert [incarnations.next() for _ in range(4)] == [5, 6, 7, 8]


def test_numbers_increase_over_a_restart_although_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 9_000_000)
    assert Incarnations(tmp_path / "new" / "directory", "tickets", "a").next() == 9
    monkeypatch.setattr(time, "time_ns", lambda: 2_000_000)
    assert Incarnations(tmp_path / "new" / "directory", "tickets", "a").next() == 10


def test_the_number_is_on_disk_before_it_is_returned(tmp_path: Path) -> None:
    number = Incarnations(tmp_path, "tickets", "a").next()
    assert _file(tmp_path).read_text() == f"{number}\n"
    assert [path.name for path in tmp_path.iterdir()] == [_file(tmp_path).name], (
        "nothing half written is left"
    )


def test_each_group_and_member_has_its_own_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    counted = {
        (group, member): [Incarnations(tmp_path, group, member).next() for _ in range(2)]
        for group in ("tickets", "audit")
        for member in "ab"
    }
    assert set(map(tuple, counted.values())) == {(1, 2)}
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("text", ["", "soon", "-3", "1.5", "12 13"])
def test_a_damaged_file_is_an_error_and_not_a_first_incarnation(text: str, tmp_path: Path) -> None:
    _file(tmp_path).write_text(text)
    with pytest.raises(InvalidOption, match="must contain an incarnation number, not"):
        Incarnations(tmp_path, "tickets", "a").next()


def test_a_partly_written_file_of_a_crash_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    _file(tmp_path).write_text("41\n")
    _file(tmp_path).with_suffix(".part").write_text("4")
    assert Incarnations(tmp_path, "tickets", "a").next() == 42


def test_a_member_stores_its_incarnations_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
        incarnations = []
        for _ in range(3):
            async with Cluster("memory", "a").join("a", group="tickets", state_directory=tmp_path) as group:
                incarnations.append(group.me)
        assert incarnations == [priocast.ProcessId("a", number) for number in (1, 2, 3)]
        assert _file(tmp_path).read_text() == "3\n"

    run(test)


def test_a_number_that_the_group_knows_is_exceeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    incarnations = Incarnations(tmp_path, "tickets", "a")
    assert [incarnations.next(above=90), incarnations.next(above=80)] == [91, 92]
    assert _file(tmp_path).read_text() == "92\n"


@pytest.mark.parametrize("network", NETWORKS)
def test_a_member_whose_clock_was_set_back_is_told_and_takes_a_higher_number(
    network: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Found by setting the clock back: the others ignored the restarted member, which waited without a reason.
    async def test() -> None:
        cluster = Cluster(network, "abc")
        monkeypatch.setattr(time, "time_ns", lambda: 9_000_000_000)
        a, b, c = (cluster.join(name, membership=quick(3)) for name in "abc")
        async with AsyncExitStack() as stack:
            groups = await asyncio.gather(*map(stack.enter_async_context, (a, b)), c.__aenter__())
            assert groups[2].me == priocast.ProcessId("c", 9_000)
            await c.__aexit__(None, None, None)
            monkeypatch.setattr(time, "time_ns", lambda: 2_000_000_000)
            async with cluster.join("c", membership=quick(3)) as again:
                assert again.me == priocast.ProcessId("c", 9_001)
                assert "the group knows incarnation 9000 of c, which is later than c#2000" in caplog.text

    run(test)
