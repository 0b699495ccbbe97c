"""The group for programs without asyncio."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import priocast
from priocast.testing.addresses import free_addresses


@contextmanager
def meanwhile(threads: ThreadPoolExecutor, work: Callable[[], None]) -> Iterator[None]:
    """Run a function in another thread meanwhile; its errors are raised here."""
    done = threads.submit(work)
    yield
    done.result()


def _take_part(index: int, addresses: list[str]) -> list[bytes]:
    peers = [address for address in addresses if address != addresses[index]]
    payloads: list[bytes] = []
    with priocast.join_blocking("test", member="ab"[index], listen=addresses[index], peers=peers) as group:
        founded = group.view
        assert [member.name for member in founded.members] == ["a", "b"]
        group.broadcast(b"one from %d" % index, priority=priocast.URGENT)
        group.broadcast_many([b"two from %d" % index, b"three from %d" % index])
        for event in group:
            match event:
                case priocast.ViewChange(view=view):
                    assert view == founded
                case priocast.Delivery(message=message):
                    payloads.append(message.payload)
            if len(payloads) == 4:
                break
        for batch in group.batches():
            payloads += batch.payloads
            if len(payloads) == 6:
                return payloads
    raise AssertionError("the group ended early")


def test_blocking_members_deliver_the_same_order() -> None:
    addresses = [str(address) for address in free_addresses(2)]
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(_take_part, range(2), [addresses] * 2)
    assert first == second
    assert sorted(first) == sorted(
        b"%s from %d" % (word, index) for word in (b"one", b"two", b"three") for index in range(2)
    )


def test_messages_with_a_quality_of_service() -> None:
    with priocast.join_blocking("test", member="a", hub=priocast.MemoryHub(), size=1) as group:
        receipt = group.send((each for each in (b"x", b"y")), quality=priocast.ATOMIC, deadline=60.0)
        assert receipt.accepted and receipt.answered == ("a",)
        taken = []
        for event in group:
            if isinstance(event, priocast.ServiceDelivery):
                taken.append(event.payload)
                if len(taken) == 2:
                    break
        assert taken == [b"x", b"y"]
        with pytest.raises(priocast.InvalidInput, match="`to` is empty"):
            group.send(b"x", quality=priocast.RELIABLE, to=[])


def test_when_a_member_leaves_the_others_continue() -> None:
    addresses = [str(address) for address in free_addresses(2)]

    def leave() -> None:
        with priocast.join_blocking("test", member="b", listen=addresses[1], peers=addresses[:1]) as group:
            group.broadcast(b"goodbye")

    seen: list[object] = []
    with (
        ThreadPoolExecutor(1) as threads,
        meanwhile(threads, leave),
        priocast.join_blocking("test", member="a", listen=addresses[0], peers=addresses[1:]) as group,
    ):
        for event in group:
            seen.append(event.message.payload if isinstance(event, priocast.Delivery) else event)
            if isinstance(event, priocast.ViewChange) and len(event.view.members) == 1:
                break
    founded, goodbye, left = seen
    assert isinstance(founded, priocast.ViewChange)
    assert goodbye == b"goodbye"
    assert isinstance(left, priocast.ViewChange)
    assert str(left.reason) == "b left"


def test_a_blocking_group_has_the_calls_of_a_group() -> None:
    address = str(free_addresses(1)[0])
    with priocast.join_blocking("test", member="a", listen=address, peers=[]) as group:
        assert group.me.name == "a"
        group.broadcast(b"safe", safe=True)
        group.broadcast_many([b"for me", b"and me"], to=["a"])
        group.broadcast(b"for b", to=["b"])
        payloads = [message.payload for message in _messages(group, 3)]
        assert payloads == [b"safe", b"for me", b"and me"]
        group.change_order("sequencer-ub", prioritised=False)
        group.broadcast(b"plain", priority=7)
        (message,) = _messages(group, 1)
        assert (message.priority, group.backlog, group.status().state) == (7, 0, "active")


def _messages(group: priocast.BlockingGroup, count: int) -> list[priocast.Message]:
    found: list[priocast.Message] = []
    for event in group:
        if isinstance(event, priocast.Delivery):
            found.append(event.message)
            if len(found) == count:
                break
    return found


def test_errors_reach_the_caller_and_leave_no_thread_behind() -> None:
    address = str(free_addresses(1)[0])
    with (
        pytest.raises(priocast.PriorityOutOfRange),
        priocast.join_blocking("test", member="a", listen=address, peers=[]) as group,
    ):
        group.broadcast(b"x", priority=-1)
    with (
        pytest.raises(priocast.UnknownProtocol, match=r"no protocol 'ring'; there are: .*sequencer-ub"),
        priocast.join_blocking("test", member="a", listen=address, peers=[], order="ring"),
    ):
        pass
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("priocast")]
