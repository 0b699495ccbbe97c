"""What callers hand over: whatever cannot be used is refused at the call, with words, and changes nothing."""

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
from support.groups import Town, groups, ids, take
from support.waiting import PATIENCE_SECONDS, run

HERE = {"listen": "127.0.0.1:7401", "peers": ["127.0.0.1:7402"]}
LIFE = priocast.MembershipOptions(founders=1, failure_ms=500)
NAN = float("nan")
NO_SCOPE: list[tuple[dict[str, Any], str]] = [
    ({"safe": "no"}, "safe is 'no': give True or False"),
    ({"safe": 0}, "safe is 0: give True or False"),
    ({"safe": None}, "safe is None: give True or False"),
    ({"to": []}, "to names 0 members: name 1 to 64, or give None for all"),
    ({"to": [f"m{number}" for number in range(65)]}, "to names 65 members"),
    ({"to": 5}, "to is 5: give a list of names"),
    ({"to": "bob"}, r"not the text 'bob': write \['bob'\]"),
    ({"to": b"bob"}, "98 cannot be the name of a member"),
    ({"to": ["a", "no spaces"]}, "'no spaces' cannot be the name of a member"),
    ({"timeout_seconds": NAN}, "timeout_seconds is nan: give a number of seconds"),
    ({"timeout_seconds": "1"}, "timeout_seconds is '1': give a number of seconds"),
]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"hub": "x", "size": 1}, "hub is 'x': give a priocast.MemoryHub"),
        ({"hub": priocast.MemoryHub(), "size": "3"}, "size is '3': a group is founded by 1 to 64"),
        ({"hub": priocast.MemoryHub(), "size": 0}, "size is 0: a group is founded by"),
        ({"hub": priocast.MemoryHub(), "size": True}, "size is True"),
        ({"hub": priocast.MemoryHub(), "size": 1, "tls": TlsSecurity("a", "b", "c")}, "tls is for listen="),
        ({**HERE, "listen": 7401}, "7401 is not an address"),
        ({**HERE, "peers": [1]}, "1 is not an address: write host:port"),
        ({**HERE, "peers": "127.0.0.1:7402"}, "peers is '127.0.0.1:7402': give a list"),
        ({**HERE, "peers": 7402}, "peers is 7402: give a list"),
        ({**HERE, "advertise": 7401}, "7401 is not an address"),
        ({**HERE, "transport": None}, "transport is None: choose 'tcp' or 'udp'"),
        ({**HERE, "tls": True}, "tls is True: give priocast.TlsSecurity"),
        ({**HERE, "keys": {"test": bytes(32)}}, "keys is for listen= and transport='udp'"),
        ({**HERE, "multicast": "239.1.2.3:7400"}, "multicast is for listen= and transport='udp'"),
        ({**HERE, "transport": "udp", "tls": TlsSecurity("a", "b", "c")}, "tls is for .* transport='tcp'"),
        ({**HERE, "transport": "udp", "keys": b"k" * 32}, "keys is b'k.*': give a key of 32 bytes for each"),
        ({**HERE, "transport": "udp", "keys": {"test": "secret"}}, "key of the group test is not bytes"),
        ({**HERE, "state_directory": 5}, "state_directory is 5: give a path"),
        ({**HERE, "state_directory": ""}, "state_directory is '': give a path"),
    ],
)
def test_a_node_of_the_wrong_things_is_refused_at_the_call(arguments: Any, complaint: str) -> None:
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.open_node("a", **arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"order": 3}, "order is 3: give the name of an order"),
        ({"options": {"window": 4}}, r"options is \{'window': 4\}: give priocast.OrderingOptions"),
        ({"membership": {"founders": 1}}, r"membership is .*: give priocast.MembershipOptions"),
        ({"membership": priocast.MembershipOptions(founders=1, state=True)}, "give it as state="),
        ({"state": lambda: 0}, "state is .*: give priocast.State"),
        ({"prioritised": "no"}, "prioritised is 'no'"),
        ({"founders": 0}, "founders is 0: a group has 1 to 64"),
        ({"founders": 0, "membership": LIFE}, "founders is 0: a group has 1 to 64"),
        ({"founders": "3"}, "founders is '3'"),
        ({"policy": 1}, "policy is 1"),
        ({"delivery": "", "membership": LIFE}, "delivery is ''"),
        ({"start_seconds": NAN}, "start_seconds is nan: give a number of seconds above 0"),
        ({"start_seconds": -1}, "start_seconds is -1: give a number of seconds above 0"),
        ({"start_seconds": float("inf")}, "start_seconds is inf"),
        ({"start_seconds": None}, "start_seconds is None"),
        ({"incarnation": 0}, "incarnation is 0: give a number from 1 on"),
        ({"incarnation": "1"}, "incarnation is '1'"),
        ({"incarnation": 2**63}, "incarnation is 9223372036854775808"),
        ({"trace": 5}, "trace is 5: give a path"),
        ({"trace": b"traces"}, "trace is b'traces': give a path"),
        ({"trace_journal": 1}, "trace_journal is 1: give True or False"),
        ({"run": 5}, "run is 5"),
        ({"labels": ["x"]}, r"labels is \['x'\]"),
        ({"labels": {"x": 5}}, "labels has 'x': 5: give texts"),
    ],
)
def test_a_member_of_the_wrong_things_is_refused_at_the_call(arguments: Any, complaint: str) -> None:
    node = priocast.open_node("a", hub=priocast.MemoryHub(), size=1)
    with pytest.raises(priocast.InvalidInput, match=complaint):
        node.join("test", **arguments)
    with pytest.raises(priocast.InvalidInput, match=complaint):
        priocast.join_blocking("test", member="a", hub=priocast.MemoryHub(), size=1, **arguments)
    assert not node.groups


def test_the_errors_say_by_their_types_what_is_wrong() -> None:
    with pytest.raises(InvalidAddress):
        priocast.open_node("a", listen="127.0.0.1:7401", peers=[1])  # type: ignore[list-item]
    with pytest.raises(InvalidOption):
        priocast.open_node("a", hub=priocast.MemoryHub(), size=65)
    with pytest.raises(UnusableKey):
        priocast.open_node("a", **HERE, transport="udp", keys={"test": None})  # type: ignore[arg-type,dict-item]
    with pytest.raises(priocast.InvalidInput, match="peers is 5"):
        priocast.open_client("test", client="shop", peers=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("save", "load"), [(0, print), (bytes, None)])
def test_a_state_is_made_of_functions(save: Any, load: Any) -> None:
    with pytest.raises(priocast.InvalidInput, match=r"of a State is (0|None): give a function"):
        priocast.State(save, load)


def test_a_state_that_is_not_bytes_is_refused_where_it_was_saved() -> None:
    assert priocast.State(lambda: b"all", print).snapshot() == b"all"
    with pytest.raises(priocast.InvalidInput, match="save of a State gave str: it must give bytes"):
        priocast.State(lambda: "all", print).snapshot()  # type: ignore[arg-type,return-value]


def test_what_is_given_by_name_goes_before_what_the_options_say() -> None:
    async def test() -> None:
        town = Town("memory", "a")
        options = priocast.OrderingOptions(window=7)
        given: dict[str, Any] = {"delivery": "safe", "policy": "partitionable", "prioritised": False}
        async with town.join("a", membership=LIFE, options=options, **given) as group:
            status = group.status()
            assert (status.policy, status.delivery, status.prioritised) == ("partitionable", "safe", False)

    run(test)
    life = membership_of(LIFE, 5, None, founders=3, policy="partitionable", delivery=None)
    assert life == priocast.MembershipOptions(founders=3, policy="partitionable", failure_ms=500)
    plain = priocast.OrderingOptions(window=7, prioritised=False)
    assert ordering_of(priocast.OrderingOptions(window=7), prioritised=False) == plain
    assert ordering_of(plain, prioritised=True).prioritised


def test_what_is_not_given_by_name_is_as_the_options_say() -> None:
    life = priocast.MembershipOptions(founders=2, policy="partitionable", delivery="safe")
    assert membership_of(life, 5, None, founders=None, policy=None, delivery=None) == life
    assert membership_of(None, 5, None, founders=None, policy=None, delivery=None).founders == 5
    assert membership_of(None, 70, None, founders=3).founders == 3
    assert membership_of(life, 5, priocast.State(bytes, print)).state
    assert not ordering_of(priocast.OrderingOptions(prioritised=False), None).prioritised


@pytest.mark.parametrize(("arguments", "complaint"), NO_SCOPE)
def test_what_no_message_can_ask_for_is_refused_and_changes_nothing(arguments: Any, complaint: str) -> None:
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
def test_a_client_can_ask_for_no_more_than_a_member(arguments: Any, complaint: str) -> None:
    async def test() -> None:
        async with priocast.open_client("test", client="shop", hub=priocast.MemoryHub()) as client:
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await client.send(b"x", **arguments)

    run(test)


def test_the_blocking_calls_refuse_the_same() -> None:
    address = str(free_addresses(1)[0])
    with priocast.join_blocking("test", member="a", listen=address, peers=[]) as group:
        for arguments, complaint in NO_SCOPE:
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.broadcast(b"x", **arguments)
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.broadcast_many([b"x"], **arguments)
        with pytest.raises(priocast.InvalidInput, match="a payload is bytes, not str"):
            group.broadcast("x")  # type: ignore[arg-type]
        assert group.backlog == 0


def test_to_none_is_to_all_and_names_may_come_in_any_collection() -> None:
    everybody = scope_of(False, None)
    assert everybody.to == ()
    assert scope_of(True, None).safe
    given: list[Any] = [["b"], ("b",), {"b"}, iter(["b"]), {"b": 1}]
    assert [scope_of(False, names).to for names in given] == [("b",)] * 5


def test_a_name_that_nobody_has_yet_is_heeded_once_somebody_has() -> None:
    async def test() -> None:
        town = Town("memory", "ab")
        async with town.join("a", founders=1) as first:
            await first.broadcast(b"for nobody", to=["zzz"])
            await first.broadcast(b"for b", to=["b"])
            async with town.join("b", founders=1) as second:
                await first.broadcast(b"for b, who is here", to=["b"])
                await first.broadcast(b"for a", to=["a"])
                (late,) = await take(second, 1)
                assert late.message.payload == b"for b, who is here"
                (own,) = await take(first, 1)
                assert own.message.payload == b"for a"
                assert own.position == late.position + 1, "whatever is for others has its place"

    run(test)


@pytest.mark.parametrize(
    "collect",
    [list, tuple, iter, lambda payloads: (each for each in payloads), lambda p: dict.fromkeys(p).keys()],
)
def test_many_messages_may_come_in_any_collection(collect: Callable[[list[bytes]], Any]) -> None:
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
        (b"payload", "payloads is a list of bytes, not bytes"),
        ("payload", "payloads is a list of bytes, not str"),
        (5, "payloads is a list of bytes, not int"),
        (None, "payloads is a list of bytes, not NoneType"),
        (iter([b"x", "y"]), "a payload is bytes, not str"),
        (iter([b"x", bytes(1024 * 1024 + 1)]), "over the limit of 1,048,576"),
    ],
)
def test_what_is_no_collection_of_payloads_is_refused(payloads: Any, complaint: str) -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            with pytest.raises(priocast.InvalidInput, match=complaint):
                await group.broadcast_many(payloads)
            assert group.backlog == 0

    run(test)


def test_a_generator_runs_in_the_thread_of_its_caller() -> None:
    threads: list[str] = []

    def payloads() -> Iterator[bytes]:
        threads.append(threading.current_thread().name)
        yield b"x"

    address = str(free_addresses(1)[0])
    with priocast.join_blocking("test", member="a", listen=address, peers=iter([])) as group:
        group.broadcast_many(payloads())
    assert threads == [threading.current_thread().name]


def test_a_list_that_waits_for_room_may_be_used_for_others() -> None:
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
        ({"order": 3}, "order is 3"),
        ({"order": "sequencer-ub", "prioritised": "no"}, "prioritised is 'no'"),
        ({"order": "sequencer-ub", "starvation": "none"}, "starvation is 'none': give priocast.Strict"),
    ],
)
def test_an_order_is_changed_to_what_can_be_one(arguments: Any, complaint: str) -> None:
    async def test() -> None:
        async with groups("memory", 1) as (group,):
            with pytest.raises(priocast.InvalidInput, match=complaint):
                group.change_order(**arguments)
            assert group.status().prioritised

    run(test)


@pytest.mark.parametrize("kind", [str, Path])
def test_directories_may_be_given_as_text(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    async def test() -> None:
        where = {"trace": kind(tmp_path / "trace"), "state_directory": kind(tmp_path / "state")}
        async with Town("memory", "a").join("a", **where, labels={"load": "none"}) as group:
            await group.broadcast(b"x")
            await take(group, 1)

    run(test)
    assert (tmp_path / "trace" / "manifest.json").is_file()
    assert (tmp_path / "state" / "test.a.incarnation").is_file()


def test_a_state_directory_that_cannot_be_one_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def test() -> None:
        town = Town("memory", "a")
        with ExitStack() as failing:
            failing.enter_context(
                pytest.raises(InvalidOption, match=r"file/.* cannot keep .*: Not a directory")
            )
            await town.join("a", state_directory=tmp_path / "file" / "state").__aenter__()
        assert not town.hub.networks

    run(test)
