"""The building blocks: dictionary, counter, lock, work queue, leader election and questions."""

import asyncio
from functools import partial

import pytest

import priocast
from replication.object_copies import copies
from replication.replicas import replicated
from support.groups import Cluster
from support.waiting import run, wait_until


def isolate(cluster: Cluster, name: str) -> None:
    for other in cluster.names.replace(name, ""):
        cluster.hub.cut(name, other)
        cluster.hub.cut(other, name)


def test_a_dictionary_is_the_same_everywhere() -> None:
    async def test() -> None:
        made = [priocast.ReplicatedDict[str, int]() for _ in "abc"]
        async with copies(*made) as (a, b, c):
            await a.set("x", 1)
            assert await b.get("x") == 1
            assert await b.get("y") is None and await b.get("y", 7) == 7
            assert await c.compare_and_set("x", 1, 2) and not await a.compare_and_set("x", 1, 3)
            assert await a.compare_and_set("new", None, 4)
            assert await b.setdefault("x", 9) == 2
            await c.update({"y": 5, "z": 6})
            assert await a.pop("z") == 6 and await a.pop("z") is None
            assert await b.items() == [("x", 2), ("new", 4), ("y", 5)]
            assert (await c.length(), await c.contains("y"), await c.contains("z")) == (3, True, False)
            assert dict(c.local) == {"x": 2, "new": 4, "y": 5}
            await a.clear()
            assert await b.length() == 0

    run(test)


def test_a_counter_gives_every_call_its_own_value() -> None:
    async def test() -> None:
        async with copies(*(priocast.ReplicatedCounter() for _ in "abc")) as counters:
            values = await asyncio.gather(*(each.add() for each in counters for _ in range(20)))
            assert sorted(values) == list(range(1, 61))
            assert await counters[0].set(5) == 60
            assert await counters[1].value() == 5

    run(test)


def test_a_lock_has_one_holder_at_a_time_and_tokens_grow() -> None:
    async def test() -> None:
        async with copies(*(priocast.ReplicatedLock() for _ in "abc")) as locks:
            inside, tokens = 0, []

            async def work(lock: priocast.ReplicatedLock) -> None:
                nonlocal inside
                async with lock.hold() as token:
                    inside += 1
                    assert inside == 1
                    await asyncio.sleep(0.002)
                    tokens.append(token)
                    inside -= 1

            await asyncio.gather(*(work(lock) for lock in locks for _ in range(5)))
            assert tokens == list(range(1, 16))

    run(test)


def test_the_most_urgent_call_gets_the_lock_next() -> None:
    async def test() -> None:
        async with copies(*(priocast.ReplicatedLock() for _ in "ab")) as (a, b):
            granted = []

            async def work(lock: priocast.ReplicatedLock, priority: int) -> None:
                async with lock.hold(priority):
                    granted.append(priority)

            token = await a.acquire()
            waiting = [asyncio.create_task(work(b, priority)) for priority in (10, 200, 100)]
            await wait_until(lambda: len(a.waiting) == 3)
            assert await a.release(token) and not await a.release(token)
            await asyncio.gather(*waiting)
            assert granted == [200, 100, 10]

    run(test)


def test_a_lease_that_is_over_passes_the_lock_on_and_the_old_token_is_void() -> None:
    async def test() -> None:
        async with copies(*(priocast.ReplicatedLock() for _ in "ab")) as (a, b):
            old = await a.acquire(lease_seconds=60)
            assert await a.is_held_with(old)
            assert await a.renew(old, 0.1)
            new = await b.acquire(lease_seconds=60)
            assert new == old + 1
            assert not await a.renew(old, 10) and not await a.release(old)
            assert await b.renew(new, 120)
            with pytest.raises(priocast.DeadlineExceeded, match="the lock was not granted in time"):
                await a.acquire(timeout_seconds=0.2)
            await wait_until(lambda: not b.waiting)
            with pytest.raises(priocast.CommandFailed, match="lease_seconds must be"):
                await b.renew(new, -1)
            assert await b.release(new)

    run(test)


def test_a_call_that_waits_for_a_lock_survives_the_eviction_of_its_member() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with copies(*(priocast.ReplicatedLock() for _ in "abc"), cluster=cluster) as (a, _, c):
            token = await a.acquire(lease_seconds=60)
            waiting = asyncio.create_task(c.acquire())
            await wait_until(lambda: len(a.waiting) == 1)
            isolate(cluster, "c")
            await wait_until(lambda: not a.waiting)
            cluster.hub.heal()
            await wait_until(lambda: len(a.waiting) == 1)
            await a.release(token)
            assert await waiting == token + 1

    run(test)


def test_a_queue_gives_the_most_urgent_item_to_one_worker() -> None:
    async def test() -> None:
        async with copies(*(priocast.ReplicatedQueue[str]() for _ in "abc")) as (a, b, c):
            for item, priority in [("low", 10), ("first", 96), ("second", 96), ("urgent", 224)]:
                await a.put(item, priority)
            taken = [await each.take() for each in (b, c, b, c)]
            assert [each.item for each in taken] == ["urgent", "first", "second", "low"]
            assert await b.take_nowait() is None
            assert not await c.done(taken[0].number), "it is not c's"
            assert await b.done(taken[0].number) and not await b.done(taken[0].number)
            assert await c.give_back(taken[1].number)
            again = await b.take()
            assert (again.item, again.attempts) == ("first", 2)
            waiting = asyncio.create_task(c.take())
            await asyncio.sleep(0.01)
            await a.put("late")
            assert (await waiting).item == "late"
            assert await a.counts() == (0, 4)
            with pytest.raises(priocast.DeadlineExceeded):
                await a.take(timeout_seconds=0.05)

    run(test)


def test_the_items_of_a_worker_that_is_gone_are_taken_by_others() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with copies(*(priocast.ReplicatedQueue[str]() for _ in "abc"), cluster=cluster) as (a, b, c):
            await a.put("work")
            taken = await c.take()
            isolate(cluster, "c")
            again = await b.take()
            assert (again.number, again.item, again.attempts) == (taken.number, "work", 2)
            cluster.hub.heal()
            assert not await c.done(taken.number), "it is b's now"
            assert await b.done(taken.number)

    run(test)


def test_one_candidate_leads_and_another_one_when_it_is_gone() -> None:
    async def test() -> None:
        cluster = Cluster("memory", "abc")
        async with copies(*(priocast.LeaderElection() for _ in "abc"), cluster=cluster) as (a, b, c):
            assert await c.stand()
            assert not await b.stand.at(priority=10)() and not await a.stand.at(priority=20)()
            assert await a.current() == (str(c.replica.me), 1)
            assert c.is_leader and not b.is_leader
            isolate(cluster, "c")
            await wait_until(lambda: a.is_leader)
            await wait_until(lambda: b.leader != str(c.replica.me))
            assert await b.wait_leader() == str(a.replica.me)
            assert a.term == b.term == 2
            cluster.hub.heal()
            await c.replica.wait_not_current()
            assert await c.current() == (str(a.replica.me), 2), "it knows that it was replaced"
            assert not c.is_leader
            await a.withdraw()
            assert await c.current() == (str(b.replica.me), 3)

    run(test)


def test_members_lead_one_after_the_other() -> None:
    async def test() -> None:
        async with copies(*(priocast.LeaderElection() for _ in "abc")) as elections:
            terms, leading = [], 0

            async def lead(election: priocast.LeaderElection) -> None:
                nonlocal leading
                async with election.lead() as term:
                    leading += 1
                    assert leading == 1
                    terms.append(term)
                    await asyncio.sleep(0.01)
                    leading -= 1

            await asyncio.gather(*(lead(each) for each in elections))
            assert terms == [1, 2, 3]

    run(test)


def test_members_answer_questions_at_their_place_in_the_order() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:

            def answer_of(name: str, question: bytes) -> bytes:
                return f"{name} {len(replicas[name].machine.lines)} {question.decode()}".encode()

            for name in "ab":
                replicas[name].questions.answer_with(partial(answer_of, name))
            await replicas["a"].submit(b"1")
            assert await replicas["c"].questions.ask(b"?", "b") == b"b 1 ?"
            with pytest.raises(priocast.CommandFailed, match="c: InvalidInput: c answers no questions"):
                await replicas["a"].questions.ask(b"?", "c")

            async def answer(question: bytes) -> bytes:
                await asyncio.sleep(0.01)
                raise KeyError(question.decode())

            replicas["c"].questions.answer_with(answer)
            answers = await replicas["a"].questions.ask_all(b"all")
            assert (answers["a"], answers["b"]) == (b"a 1 all", b"b 1 all")
            assert isinstance(answers["c"], priocast.CommandFailed) and answers["c"].kind == "KeyError"
            assert await replicas["b"].questions.ask_all(b"x", to=["a", "x"]) == {"a": b"a 1 x", "x": None}
            with pytest.raises(priocast.DeadlineExceeded, match="x is not in the group"):
                await replicas["b"].questions.ask(b"x", "x")

    run(test)


def test_a_member_that_leaves_before_it_answers_does_not_delay_the_others() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            asked = asyncio.Event()

            async def never(question: bytes) -> bytes:
                asked.set()
                await asyncio.sleep(3600)
                return question

            replicas["a"].questions.answer_with(bytes)
            replicas["b"].questions.answer_with(never)
            asking = asyncio.create_task(replicas["a"].questions.ask_all(b"?", to=["a", "b"]))
            await asked.wait()
            replicas.isolate("b")
            assert await asking == {"a": b"?", "b": None}
            with pytest.raises(priocast.DeadlineExceeded, match="no answer from b"):
                replicas.cluster.hub.heal()
                await replicas["b"].wait_not_current()
                await replicas["b"].wait_current()
                await replicas["a"].read(id)
                await replicas["a"].questions.ask(b"?", "b", timeout_seconds=0.2)

    run(test)


def test_a_question_of_a_member_that_was_evicted_is_asked_again() -> None:
    async def test() -> None:
        async with replicated("abc") as replicas:
            for name in "abc":
                replicas[name].questions.answer_with(bytes)
            replicas.isolate("c")
            asking = asyncio.create_task(replicas["c"].questions.ask_all(b"?", to=["a", "b"]))
            await replicas["a"].submit(b"1")
            replicas.cluster.hub.heal()
            assert await asking == {"a": b"?", "b": b"?"}

    run(test)
