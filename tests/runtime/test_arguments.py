"""Invalid arguments are rejected at the call, with an explanation, and change nothing."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import priocast
from priocast.core.errors import InvalidAddress, InvalidOption, UnusableKey
from priocast.network.security import TlsSecurity
from priocast.runtime.arguments import membership_of, ordering_of, scope_of
from priocast.testing.addresses import free_addresses
from support.groups import Cluster, entered, groups, ids, take
from support.waiting import PATIENCE_SECONDS, run

HERE = {"listen": "127.0.0.1:7401", "peers": ["127.0.0.1:7402"]}
MEMBERSHIP = priocast.MembershipOptions(founders=1, failure_ms=500)
NAN = float("nan")
NO_SCOPE: list[tuple[dict[str, Any], str]] = [
    ({"safe": "no"}, "safe must be True or False, not 'no'"),
    ({"safe": 0}, "safe must be True or False, not 0"),
    ({"safe": None}, "safe must be True or False, not None"),
    ({"to": []}, "to must name 1 to 256 members, not 0; None means all members"),
    ({"to": [f"m{number}" for number in range(257)]}, "to must name 1 to 256 members, not 257"),
    ({"to": 5}, "to must be a list of member names, .*, not 5"),
    ({"to": "bob"}, r"not the text 'bob': write \['bob'\]"),
    ({"to": b"bob"}, "98 cannot be the name of a member"),
    ({"to": ["a", "no spaces"]}, "'no spaces' cannot be the name of a member"),
    ({"timeout_seconds": NAN}, "timeout_seconds must be a finite number of seconds, not nan"),
    ({"timeout_seconds": "1"}, "timeout_seconds must be a finite number of seconds, not '1'"),
]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"hub": "x", "size": 1}, r"hub must be a priocast.MemoryHub\(\), not 'x'"),
        ({"hub": priocast.MemoryHub(), "size": "3"}, "size must be an integer from 1 to 256, not '3'"),
        ({"hub": priocast.MemoryHub(), "size": 0}, "size must be an integer from 1 to 256, not 0"),
        ({"hub": priocast.MemoryHub(), "size": True}, "size must be .*, not True"),
        ({"hub": priocast.MemoryHub(), "size": 1, "tls": TlsSecurity("a", "b", "c")}, "tls requires listen="),
        ({**HERE, "listen": 7401}, "an address must be text .*, not 7401"),
        ({**HERE, "peers": [1]}, "an address must be text .*, not 1"),
        ({**HERE, "peers": "127.0.0.1:7402"}, "peers must be a list of addresses .*, not '127.0.0.1:7402'"),
        ({**HERE, "peers": 7402}, "peers must be a list of addresses .*, not 7402"),
        ({**HERE, "advertise": 7401}, "an address must be text .*, not 7401"),
        ({**HERE, "transport": None}, "transport must be 'tcp' or 'udp', not None"),
        ({**HERE, "tls": True}, "tls must be priocast.TlsSecurity.*, not True"),
        ({**HERE, "keys": {"test": bytes(32)}}, "keys requires listen= and transport='udp'"),
        ({**HERE, "multicast": "239.1.2.3:7400"}, "multicast requires listen= and transport='udp'"),
        ({**HERE, "datagram_bytes": 9000}, "datagram_bytes requires listen= and transport='udp'"),
        (
            {**HERE, "transport": "udp", "keys": {"test": bytes(32)}, "datagram_bytes": 70_000},
            "datagram_bytes must be between 512 and 65507, not 70000",
        ),
        (
            {**HERE, "transport": "udp", "keys": {"test": bytes(32)}, "tls": TlsSecurity("a", "b", "c")},
            "cannot read a: No such file",
        ),
        (
            {**HERE, "transport": "udp", "keys": b"k" * 32},
            "keys must be a key of 32 bytes or its file for each group, by its name, not b'k",
        ),
        ({**HERE, "transport": "udp", "keys": {"test": "secret"}}, "cannot read secret: No such file"),
        ({**HERE, "state_directory": 5}, "state_directory must be a path .*, not 5"),
        ({**HERE, "state_directory": ""}, "state_directory must be a path .*, not ''"),
    ],
)
def test_invalid_parameters_of_a_node_are_rejected_at_the_call(arguments: Any, complaint: str) -> None:
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.open_node("a", **arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"order": 3}, "order must be the name of an order, .*, not 3"),
        ({"options": {"window": 4}}, r"options must be priocast.OrderingOptions\(...\), not \{'window': 4\}"),
        ({"membership": {"founders": 1}}, r"membership must be priocast.MembershipOptions"),
        ({"membership": priocast.MembershipOptions(founders=1, state=True)}, "pass state=priocast.State"),
        ({"state": lambda: 0}, "state must be priocast.State"),
        ({"prioritised": "no"}, "prioritised is 'no'"),
        ({"founders": 0}, "founders is 0: it must be between 1 and 256"),
        ({"founders": 0, "membership": MEMBERSHIP}, "founders is 0: it must be between 1 and 256"),
        ({"founders": "3"}, "founders is '3'"),
        ({"policy": 1}, "policy is 1"),
        ({"delivery": "", "membership": MEMBERSHIP}, "delivery is ''"),
        ({"start_seconds": NAN}, "start_seconds must be a finite number of seconds above 0, not nan"),
        ({"start_seconds": -1}, "start_seconds must be a finite number of seconds above 0, not -1"),
        ({"start_seconds": float("inf")}, "start_seconds must be .*, not inf"),
        ({"start_seconds": None}, "start_seconds must be .*, not None"),
        ({"incarnation": 0}, "incarnation must be an integer from 1 .*, not 0"),
        ({"incarnation": "1"}, "incarnation must be .*, not '1'"),
        ({"incarnation": 2**63}, "incarnation must be .*, not 9223372036854775808"),
        ({"trace": 5}, "trace must be a path .*, not 5"),
        ({"trace": b"traces"}, "trace must be a path .*, not b'traces'"),
        ({"trace_journal": 1}, "trace_journal must be True or False, not 1"),
        ({"run": 5}, "run must be .*, not 5"),
        ({"labels": ["x"]}, r"labels must be .*, not \['x'\]"),
        ({"labels": {"x": 5}}, "labels must map names to texts, not 'x' to 5"),
    ],
)
def test_invalid_parameters_of_a_group_are_rejected_at_the_call(arguments: Any, complaint: str) -> None:
    node = priocast.open_node("a", hub=priocast.MemoryHub(), size=1)
    with pytest.raises(priocast.InvalidInput, match=complaint):
        node.join("test", **arguments)
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.join_blocking("test", member="a", hub=priocast.MemoryHub(), size=1, **arguments)
    assert not node.groups


def test_the_type_of_the_error_tells_what_is_wrong() -> None:
    with pytest.raises(InvalidAddress):
        priocast.open_node("a", listen="127.0.0.1:7401", peers=[1])  # type: ignore[list-item]
    with pytest.raises(InvalidOption):
        priocast.open_node("a", hub=priocast.MemoryHub(), size=257)
    with pytest.raises(UnusableKey):
        priocast.open_node("a", **HERE, transport="udp", keys={"test": None})  # type: ignore[arg-type,dict-item]
    with pytest.raises(priocast.InvalidInput, match=r"peers must be .*, not 5"):
        priocast.open_client("test", client="shop", peers=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("save", "load"), [(0, print), (bytes, None)])
def test_a_state_consists_of_functions(save: Any, load: Any) -> None:
    with pytest.raises(priocast.InvalidInput, match=r"of a State must be a function, not (0|None)"):
        priocast.State(save, load)


def test_a_state_that_is_not_bytes_is_rejected_when_it_is_saved() -> None:
    assert priocast.State(lambda: b"all", print).snapshot() == b"all"
    with pytest.raises(priocast.InvalidInput, match="save of a State must return bytes, not str"):
        priocast.State(lambda: "all", print).snapshot()  # type: ignore[arg-type,return-value]


def test_named_parameters_override_the_options() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "a")
        options = priocast.OrderingOptions(window=7)
        given: dict[str, Any] = {"delivery": "safe", "policy": "partitionable", "prioritised": False}
        async with cluster.join("a", membership=MEMBERSHIP, options=options, **given) as group:
            status = group.status()
            assert (status.policy, status.delivery, status.prioritised) == ("partitionable", "safe", False)

    run(test)
    membership = membership_of(MEMBERSHIP, 5, None, founders=3, policy="partitionable", delivery=None)
    assert membership == priocast.MembershipOptions(founders=3, policy="partitionable", failure_ms=500)
    plain = priocast.OrderingOptions(window=7, prioritised=False)
    assert ordering_of(priocast.OrderingOptions(window=7), prioritised=False) == plain
    assert ordering_of(plain, prioritised=True).prioritised


def test_the_options_apply_where_no_named_parameter_is_given() -> None:
    membership = priocast.MembershipOptions(founders=2, policy="partitionable", delivery="safe")
    assert membership_of(membership, 5, None, founders=None, policy=None, delivery=None) == membership
    assert membership_of(None, 5, None, founders=None, policy=None, delivery=None).founders == 5
    assert membership_of(None, 70, None, founders=3).founders == 3
    assert membership_of(membership, 5, priocast.State(bytes, print)).state
    assert not ordering_of(priocast.OrderingOptions(prioritised=False), None).prioritised


@pytest.mark.parametrize(("arguments", "complaint"), NO_SCOPE)
def test_invalid_send_options_are_rejected_and_change_nothing(arguments: Any, complaint: str) -> None:
    async def test() -> None:
        async with groups("memory", 2) as (group, other):
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await group.broadcast(b"x", **arguments)
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await group.broadcast_many([b"x"], **arguments)
            if "timeout_seconds" not in arguments:
                with pytest.raises(priocast.InvalidInput, match=complaint):
                    group.broadcast_nowait(b"x", **arguments)
            await group.broadcast(b"good", timeout_seconds=PATIENCE_SECONDS)
            assert ids(await take(other, 1)) == ["a#1/96/0"]

    run(test)


@pytest.mark.parametrize(("arguments", "complaint"), NO_SCOPE)
def test_a_client_rejects_the_same_send_options(arguments: Any, complaint: str) -> None:
    async def test() -> None:
        async with priocast.open_client("test", client="shop", hub=priocast.MemoryHub()) as client:
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await client.send(b"x", **arguments)

    run(test)


def test_the_blocking_calls_reject_the_same_send_options() -> None:
    address = str(free_addresses(1)[0])
    with priocast.join_blocking("test", member="a", listen=address, peers=[]) as group:
        for arguments, complaint in NO_SCOPE:
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.broadcast(b"x", **arguments)
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.broadcast_many([b"x"], **arguments)
        with pytest.raises(priocast.InvalidInput, match="a payload must be bytes, not str"):
            group.broadcast("x")  # type: ignore[arg-type]
        assert group.backlog == 0


def test_recipients_may_be_any_collection_and_none_means_all() -> None:
    all_members = scope_of(False, None)
    assert all_members.to == ()
    assert scope_of(True, None).safe
    given: list[Any] = [["b"], ("b",), {"b"}, iter(["b"]), {"b": 1}]
    assert [scope_of(False, names).to for names in given] == [("b",)] * 5


def test_a_recipient_may_join_after_the_message_was_broadcast() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with entered(*(cluster.join(name, founders=2) for name in "ac")) as (first, _):
            await first.broadcast(b"for nobody", to=["zzz"])
            await first.broadcast(b"for b", to=["b"])
            async with cluster.join("b", founders=2) as second:
                await first.broadcast(b"for b, who is here", to=["b"])
                await first.broadcast(b"for a", to=["a"])
                (late,) = await take(second, 1)
                assert late.message.payload == b"for b, who is here"
                (own,) = await take(first, 1)
                assert own.message.payload == b"for a"
                assert own.position == late.position + 1, "messages for other members have positions too"

    run(test)


@pytest.mark.parametrize(
    "collect",
    [list, tuple, iter, lambda payloads: (each for each in payloads), lambda p: dict.fromkeys(p).keys()],
)
def test_payloads_may_be_any_collection(collect: Callable[[list[bytes]], Any]) -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            payloads = [b"%d" % number for number in range(20)]
            await group.broadcast_many(collect(payloads))
            await group.broadcast_many(collect([]))
            assert [each.message.payload for each in await take(group, 20)] == payloads

    run(test)


@pytest.mark.parametrize(
    ("payloads", "complaint"),
    [
        (b"payload", "payloads must be a list of bytes, not bytes"),
        ("payload", "payloads must be a list of bytes, not str"),
        (5, "payloads must be a list of bytes, not int"),
        (None, "payloads must be a list of bytes, not NoneType"),
        (iter([b"x", "y"]), "a payload must be bytes, not str"),
        (iter([b"x", bytes(1024 * 1024 + 1)]), "at most 1,048,576 bytes, not 1,048,577"),
    ],
)
def test_invalid_payloads_are_rejected(payloads: Any, complaint: str) -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await group.broadcast_many(payloads)
            assert group.backlog == 0

    run(test)


def test_a_generator_of_payloads_runs_in_the_thread_of_its_caller() -> None:
    threads: list[str] = []

    def payloads() -> Iterator[bytes]:
        threads.append(threading.current_thread().name)
        yield b"x"

    address = str(free_addresses(1)[0])
    with priocast.join_blocking("test", member="a", listen=address, peers=iter([])) as group:
        group.broadcast_many(payloads())
    assert threads == [threading.current_thread().name]


def test_the_caller_may_reuse_a_list_that_waits_for_room() -> None:
    async def test() -> None:
        options = priocast.OrderingOptions(window=1, queue_max=16, submit_max=16)
        async with groups("memory", 1, options=options) as (group,):
            payloads = [b"%d" % number for number in range(200)]
            sending = asyncio.create_task(group.broadcast_many(payloads))
            await asyncio.sleep(0)
            payloads.clear()
            seen = await take(group, 200)
            await sending
            assert [each.message.payload for each in seen] == [b"%d" % number for number in range(200)]

    run(test)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"order": 3}, "order must be .*, not 3"),
        ({"order": "sequencer-ub", "prioritised": "no"}, "prioritised must be .*, not 'no'"),
        ({"order": "sequencer-ub", "starvation": "none"}, "starvation must be priocast.Strict.*, not 'none'"),
    ],
)
def test_an_invalid_change_of_order_is_rejected(arguments: Any, complaint: str) -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.change_order(**arguments)
            assert group.status().prioritised

    run(test)


@pytest.mark.parametrize("kind", [str, Path])
def test_directories_may_be_passed_as_text(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    async def record() -> None:
        where = {"trace": kind(tmp_path / "trace"), "state_directory": kind(tmp_path / "state")}
        async with Cluster("memory", "a").join("a", **where, labels={"load": "none"}) as group:
            await group.broadcast(b"x")
            await take(group, 1)

    run(record)
    assert (tmp_path / "trace" / "manifest.json").is_file()
    assert (tmp_path / "state" / "test.a.incarnation").is_file()


def test_an_unusable_state_directory_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def test() -> None:
        cluster = Cluster("memory", "a")
        with ExitStack() as failing:
            failing.enter_context(
                pytest.raises(
                    InvalidOption, match=r"cannot store the incarnation number in .*file/.*: Not a directory"
                )
            )
            await cluster.join("a", state_directory=tmp_path / "file" / "state").__aenter__()
        assert not cluster.hub.networks

    run(test)
