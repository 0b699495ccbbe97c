"""A join that cannot succeed fails with the reason, and leaves nothing behind."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import priocast
from priocast.core.errors import InvalidOption, TraceFault
from priocast.member import Member
from priocast.membership.outgoing_frames import OutgoingFrames
from priocast.runtime.node import Node
from priocast.runtime.tracing import Tracing
from support.groups import Cluster
from support.waiting import PATIENCE_SECONDS, run

FAULT = "a stopped because of an internal error: ZeroDivisionError"


def _fail(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


def _writers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("trace a-")]


def _assert_nothing_is_left(node: Node) -> None:
    assert not node.groups
    assert not node.network.ports.all()  # type: ignore[attr-defined]
    assert not _writers()


@pytest.mark.parametrize(("part", "step"), [(Member, "tick"), (OutgoingFrames, "take")])
def test_an_internal_error_before_the_first_view_fails_the_join(
    part: type, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        faults: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(str(context)))
        async with Cluster("memory", "ab").open("a") as node:
            with monkeypatch.context() as broken:
                broken.setattr(part, step, _fail)
                with pytest.raises(priocast.GroupClosed, match=FAULT) as failed:
                    await node.join("test", start_seconds=PATIENCE_SECONDS).__aenter__()
            assert isinstance(failed.value.__cause__, ZeroDivisionError)
            assert faults, "the full error is logged"
            assert "ZeroDivisionError" in faults[0]
            _assert_nothing_is_left(node)
            async with node.join("test", founders=1) as group:
                assert len(group.view.members) == 1

    run(test)


def test_an_internal_error_when_a_peer_becomes_reachable_fails_the_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        monkeypatch.setattr(Member, "reachable", _fail)
        cluster = Cluster("memory", "ab")
        async with cluster.open("a") as node:
            entering = asyncio.create_task(node.join("test", start_seconds=PATIENCE_SECONDS).__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(ZeroDivisionError):
                await cluster.open("b").__aenter__()
            with pytest.raises(priocast.GroupClosed, match=FAULT):
                await entering
            _assert_nothing_is_left(node)

    run(test)


def test_an_internal_error_while_leaving_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with Cluster("memory", "a").open("a") as node:
            joining = node.join("test", trace=tmp_path)
            await joining.__aenter__()
            monkeypatch.setattr(Member, "leave", _fail)
            with pytest.raises(ZeroDivisionError):
                await joining.__aexit__(None, None, None)
            _assert_nothing_is_left(node)

    run(test)


def test_an_unwritable_trace_is_rejected_before_the_group_is_joined(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "file").write_text("")
        async with Cluster("memory", "a").open("a") as node:
            for path, reason in (("file", "File exists"), ("file/run", "Not a directory")):
                for journal in (False, True):
                    complaint = rf"cannot be written to .*/{path}: {reason}; choose another directory"
                    joining = node.join("test", trace=tmp_path / path, trace_journal=journal)
                    with pytest.raises(InvalidOption, match=complaint):
                        await joining.__aenter__()
                    _assert_nothing_is_left(node)
            async with node.join("test", trace=tmp_path / "good"):
                assert list(node.groups) == ["test"]

    run(test)


def test_a_trace_that_fails_after_the_first_view_fails_the_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with Cluster("memory", "a").open("a") as node:
            with monkeypatch.context() as full:
                full.setattr("priocast.runtime.tracing.write_manifest", _no_space)
                with pytest.raises(InvalidOption, match=rf"written to {tmp_path}: No space left on device"):
                    await node.join("test", trace=tmp_path).__aenter__()
            _assert_nothing_is_left(node)
            (tmp_path / "manifest.json").mkdir()
            with pytest.raises(TraceFault, match=r"manifest\.json cannot be read"):
                await node.join("test", trace=tmp_path).__aenter__()
            _assert_nothing_is_left(node)

    run(test)


def _no_space(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_member_that_cannot_be_created_leaves_no_writer_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with Cluster("memory", "a").open("a") as node:
            monkeypatch.setattr("priocast.runtime.member_factory.Member", _fail)
            with pytest.raises(ZeroDivisionError):
                await node.join("test", trace=tmp_path).__aenter__()
            _assert_nothing_is_left(node)

    run(test)


def test_every_writer_is_closed_although_one_of_them_failed(tmp_path: Path) -> None:
    async def test() -> None:
        node = Cluster("memory", "a").open("a")
        joining = node.join("test", trace=tmp_path)
        tracing = joining._tracing
        assert isinstance(tracing, Tracing)
        for incarnation in (1, 2, 3):
            tracing.open(priocast.ProcessId("a", incarnation))
            if incarnation != 2:
                tracing._writers[-1]._failure = OSError("no room")
        with pytest.raises(OSError, match="no room"):
            tracing.close()
        assert not _writers()

    run(test)
