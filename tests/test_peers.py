"""The comparison with other systems: its results, what it skips, and that a wrong order is noticed."""

import asyncio
import dataclasses
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.__main__ import FULL_LOADS
from benchmarks.peers.__main__ import default_out, measure_all
from benchmarks.peers.clients.zookeeper_member import ZookeeperMember
from benchmarks.peers.jgroups_stack import TCP, UDP, write_stack
from benchmarks.peers.launches import LaunchResult, OrderViolation, measure_launch
from benchmarks.peers.load import PeerLoad
from benchmarks.peers.member_loop import PeerClient
from benchmarks.peers.references import full_load
from benchmarks.peers.results import PeerResult, draw_peers, markdown, result_of, write_results
from benchmarks.peers.systems import SYSTEMS, PeerSystem, Requirement
from benchmarks.peers.totem import KNET, UDPU, ring_configuration
from rich.console import Console

from priocast.network.address import Address
from support.networks import carries_multicasts

SMALL = PeerLoad(members=2, messages=50, warm_ups=1, deliveries=5)
MEMBER = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    answer = {"rate": 1000.0 + int(sys.argv[1]), "times_us": [5.0], "digest": sys.argv[2]}
    print(json.dumps(answer), flush=True)
"""


def system(*digests: str, name: str = "sample", requirements: tuple[Requirement, ...] = ()) -> PeerSystem:
    """A system whose members answer with these digests."""

    @contextmanager
    def launch(members: int, _directory: Path) -> Iterator[list[list[str]]]:
        yield [[sys.executable, "-c", MEMBER, str(rank), digests[rank]] for rank in range(members)]

    launched: Callable[[int, Path], AbstractContextManager[list[list[str]]]] = launch
    return PeerSystem(name, "a set-up", "a guarantee", requirements, launched)


@pytest.mark.processes
def test_the_slowest_member_counts_and_the_first_one_is_not_timed() -> None:
    found = measure_launch(system("same", "same"), SMALL)
    assert (found.rate, found.delivery_us) == (1000.0, 5.0)


@pytest.mark.processes
def test_members_that_deliver_in_different_orders_are_noticed() -> None:
    with pytest.raises(OrderViolation, match="different orders"):
        measure_launch(system("one", "another"), SMALL)


@pytest.mark.processes
def test_systems_take_turns_and_the_others_go_on_if_one_is_missing_or_fails() -> None:
    missing = system("x", "x", name="missing", requirements=(Requirement("nowhere", lambda: False),))
    wrong = system("one", "another", name="wrong")
    stored: list[list[PeerResult]] = []
    chosen = [missing, wrong, system("x", "x")]
    results = measure_all(chosen, SMALL, 2, Console(quiet=True), stored.append)
    assert [[len(each.launches) for each in part] for part in stored] == [[0, 0, 0], [0, 0, 1], [0, 0, 2]]
    assert [len(each.launches) for each in results] == [0, 0, 2]
    assert results[0].reason == "skipped: nowhere missing"
    assert results[1].reason == "failed: wrong: the members delivered in different orders"


@pytest.mark.processes
@pytest.mark.parametrize(
    "name", ["raw round trip", "floor", "Priocast, batches", "Priocast, batches, multicast", "PySyncObj"]
)
def test_a_real_system_is_measured(name: str) -> None:
    if "multicast" in name and not carries_multicasts():
        pytest.skip("this machine does not carry multicasts on its loopback interface")
    (chosen,) = (each for each in SYSTEMS if each.name == name)
    found = measure_launch(chosen, SMALL)
    assert found.rate is None if name == "raw round trip" else found.rate is not None and found.rate > 0
    assert found.delivery_us > 0


def test_a_row_has_the_median_and_the_spread_or_the_reason() -> None:
    launches = [
        LaunchResult(rate=rate, delivery_us=1500.0, foreign_cores=0.25, foreign_cores_measured=1.5)
        for rate in (3000.0, 1000.0, 2000.0)
    ]
    results = [result_of(system(), launches), result_of(system(name="other"), [], "skipped: x missing")]
    text = markdown(results, PeerLoad(), {"processors": "2"})
    assert "| sample | a set-up | a guarantee | 3 | 2,000 (1,000 to 3,000) | 1.50 | 0.2 | 1.5 |" in text
    assert "| other | a set-up | a guarantee | 0 | skipped: x missing |  |  |  |" in text
    assert "processors: 2." in text
    stopped = markdown([result_of(system(), launches, "failed: late")], PeerLoad(), {})
    assert "| 3, then failed: late | 2,000 (1,000 to 3,000) |" in stopped
    axes = draw_peers(results).axes[0]
    assert [text.get_text() for text in axes.texts] == ["sample"]


def test_every_system_says_what_it_guarantees_and_how_it_is_set_up() -> None:
    assert len({each.name for each in SYSTEMS}) == len(SYSTEMS)
    assert all(each.setup and each.guarantees for each in SYSTEMS)


class Echo(PeerClient):
    """A client whose messages are delivered at once."""

    async def start(self) -> None: ...

    async def send(self, payload: bytes) -> None:
        self.delivered([payload])

    async def stop(self) -> None: ...


class AcknowledgedWrites(ZookeeperMember):
    """The client of ZooKeeper without a server: every write is answered at once."""

    async def send(self, payload: bytes) -> None:
        self.delivered([payload])


def test_writes_that_only_their_writers_count_are_those_of_all_members() -> None:
    member = AcknowledgedWrites(0, ["a", "b", "c", "d"])
    answer = asyncio.run(member.rate(messages=5, size=16))
    seconds = (member._last_ns - member._first_ns) / 1e9
    assert answer["rate"] == pytest.approx(4 * 5 / seconds)


def test_a_digest_depends_on_the_order_and_on_nothing_else() -> None:
    def digest(*batches: list[bytes]) -> object:
        client = Echo(0, ["a"])
        for batch in batches:
            client.delivered(batch)
        return client._finish({})["digest"]

    one, two, three = (number.to_bytes(8) for number in range(3))
    assert digest([one, two], [three]) == digest([one], [two, three])
    assert digest([one, two], [three]) != digest([two, one], [three])


def test_a_client_keeps_no_message_that_it_has_received() -> None:
    client = Echo(0, ["a"])
    tracemalloc.start()
    try:
        for _ in range(64):
            client.delivered([bytes(1 << 16)])
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("transport", [TCP, UDP])
def test_messages_on_their_way_to_the_sequencer_are_bundled_too(tmp_path: Path, transport: str) -> None:
    addresses = [Address("127.1.2.3", port) for port in (7001, 7002)]
    path = write_stack(tmp_path, 1, addresses, transport=transport, bundling=True)
    first = next(iter(ElementTree.parse(path).getroot()))  # noqa: S314 (our own file)
    assert first.tag.endswith(transport)
    assert first.get("enable_bundling") == first.get("enable_unicast_bundling") == "true"


def test_multicasts_of_a_launch_do_not_leave_the_machine(tmp_path: Path) -> None:
    path = write_stack(tmp_path, 1, [Address("127.1.2.3", 7001)] * 2, transport=UDP, bundling=True)
    first = next(iter(ElementTree.parse(path).getroot()))  # noqa: S314 (our own file)
    assert (first.get("bind_addr"), first.get("ip_ttl")) == ("127.0.0.1", "0")
    assert first.get("mcast_port") == "7001", "of this launch alone"


def test_a_ring_finds_the_size_of_its_packets_unless_it_must_be_told() -> None:
    assert "transport: knet" in ring_configuration(2, KNET)
    assert "netmtu" not in ring_configuration(2, KNET)
    assert "netmtu: 8982" in ring_configuration(2, UDPU)


def test_a_row_without_a_rate_is_in_the_table_and_not_in_the_figure(tmp_path: Path) -> None:
    launch = LaunchResult(rate=None, delivery_us=60.0, foreign_cores=0.0, foreign_cores_measured=0.0)
    results = [result_of(system(name="raw round trip"), [launch])]
    assert "| 1 |  | 0.06 | 0.0 | 0.0 |" in markdown(results, PeerLoad(), {})
    assert not draw_peers(results).axes[0].texts
    write_results(results, PeerLoad(), {"Priocast": "compiled"}, tmp_path)
    assert "Priocast: compiled." in (tmp_path / "peers.md").read_text(encoding="utf-8")


def test_configurations_have_directories_of_their_own() -> None:
    assert default_out(PeerLoad()) == Path("bench-out/peers-4-64B")
    assert default_out(PeerLoad(members=8, size=1024)) == Path("bench-out/peers-8-1024B")


_OWN_TIME = """
import subprocess, sys
from benchmarks.peers.foreign_load import own_seconds
program = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(flush=True)\\ninput()"
before = own_seconds()
command = [sys.executable, "-c", program]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
    child.stdout.readline()
    print(own_seconds() - before)
    child.communicate(b"\\n")
print(own_seconds() - before)
"""


@pytest.mark.processes
def test_the_time_of_a_process_that_this_one_started_is_its_own() -> None:
    """While it runs, and after its end; in a process that has no other children, as that of the tests may."""
    done = subprocess.run([sys.executable, "-c", _OWN_TIME], capture_output=True, text=True, check=True)
    assert [float(line) >= 0.25 for line in done.stdout.splitlines()] == [True, True]


def test_the_floor_is_measured_as_in_the_other_benchmarks() -> None:
    for expected in FULL_LOADS:
        found = full_load(PeerLoad(members=expected.members, size=expected.payload_bytes))
        assert found == dataclasses.replace(expected, messages=found.messages)
