"""The memory network: a hub whose connections can be cut."""

from pathlib import Path

import pytest

from priocast.core.errors import InvalidOption
from priocast.core.identity import ProcessId
from priocast.links.frame import Frame
from priocast.network.memory import MemoryHub, MemoryNetwork
from support.networks import NetworkFactory, Recorder, open_all
from support.waiting import run, wait_until


def test_a_cut_connection_drops_frames_until_it_is_healed(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("memory", tmp_path)
        async with factory.running("ab") as networks:
            recorders = [Recorder(), Recorder()]
            ports = [
                network.open("test", ProcessId(name), recorder)
                for network, name, recorder in zip(networks, "ab", recorders, strict=True)
            ]
            factory.hub.cut("a", "b")
            ports[0].send("b", [Frame(0, 0, 0, 0, b"lost")])
            ports[1].send("a", [Frame(0, 0, 0, 0, b"the other way")])
            await recorders[0].wait_received(1)
            assert not recorders[1].received
            factory.hub.heal()
            assert recorders[0].reached == ["b", "b"]
            assert recorders[1].reached == ["a"]
            ports[0].send("b", [Frame(0, 0, 0, 0, b"again")])
            await wait_until(lambda: recorders[1].bodies() == [b"again"])

    run(test)


def test_one_name_is_used_by_one_process_at_a_time() -> None:
    async def test() -> None:
        hub = MemoryHub()
        first, second = MemoryNetwork(hub, "a"), MemoryNetwork(hub, "a")
        await first.start()
        with pytest.raises(InvalidOption, match="its own name"):
            await second.start()
        await second.close()
        assert hub.networks == {"a": first}
        await first.close()
        await second.start()
        assert hub.networks == {"a": second}

    run(test)


def test_peers_are_reported_to_a_port_that_was_opened_before_start(tmp_path: Path) -> None:
    async def test() -> None:
        factory = NetworkFactory("memory", tmp_path)
        async with factory.running("a") as networks:
            late = factory.network("b")
            [recorder] = open_all([late], "b")
            assert recorder.reached == []
            [other] = open_all(networks, "a")
            await late.start()
            assert recorder.reached == ["a"]
            assert other.reached == ["b"]

    run(test)
