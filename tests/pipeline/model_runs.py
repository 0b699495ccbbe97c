"""Correct runs of several views, each with a fault or a change of the group."""

from pipeline.group_model import GroupModel
from pipeline.sample_runs import SampleRun
from pipeline.trace_facts import id_of
from priocast.trace.schema import BROADCAST, DELIVERED, MessageRow, TraceRow


def crashed(batch_max: int = 1, seed: int = 1) -> SampleRun:
    """Member d crashes; the others notice and continue."""
    return GroupModel(batch_max=batch_max, seed=seed).work().crash("d").work(2).notice().work().done()


def orderer_crashed(batch_max: int = 1) -> SampleRun:
    return GroupModel(batch_max=batch_max, seed=3).work().crash("a").work(2).notice().work().done()


def joined() -> SampleRun:
    """Member d joins, and receives the state a little later."""
    return GroupModel("abc").work().join("d", after=2).work().done()


def crashed_and_joined() -> SampleRun:
    return GroupModel("abcd").work().crash("d").work(1).notice().work(3).join("e").work(3).done()


def returned() -> SampleRun:
    """Members d and e are evicted, and rejoin one after the other with new incarnations."""
    group = GroupModel("abcde").work().evict("d", "e").work(3).join("d").work(3)
    return group.join("e", after=3).work(3).done()


def half_with_the_first() -> SampleRun:
    return GroupModel("abcd").work().crash("c", "d").work(1).notice().work(3).done()


def left() -> SampleRun:
    """One member after the other leaves, until one is left."""
    return GroupModel("abc").work(3).leave("a").work(3).leave("b").work(2).done()


def divided(batch_max: int = 1) -> SampleRun:
    """Two components at the end, in views with the same number."""
    group = GroupModel("abcde", policy="partitionable", batch_max=batch_max)
    return group.work().split("d", "e").work().done()


def merged() -> SampleRun:
    return GroupModel("abcde", policy="partitionable").work().split("d", "e").work().merge().work().done()


def safe() -> SampleRun:
    """Every message is safe; member d crashes."""
    return GroupModel(delivery="safe").work().crash("d").work(2).notice().work().done()


def safe_at_times() -> SampleRun:
    return GroupModel(safe_share=0.5, seed=2).work().crash("d").work(2).notice().work().done()


def safe_and_divided() -> SampleRun:
    group = GroupModel("abcde", delivery="safe", policy="partitionable")
    return group.work().split("d").work(4).merge().work().done()


def safe_and_selective() -> SampleRun:
    """Every message is safe, and some are for some members, in a group that is divided."""
    group = GroupModel("abcd", delivery="safe", policy="partitionable", selective_share=0.4)
    return group.work().split("d").work(4).done()


def selective() -> SampleRun:
    """Some messages are for some members, which may have left."""
    group = GroupModel(selective_share=0.4).work().crash("d").work(2).notice().work()
    return group.join("e").work(4).done()


def truncated() -> SampleRun:
    """A real run: the record of d, which was killed, lacks rows of messages that others delivered."""
    group = GroupModel(clock="local").work()
    group.settle().crash("d").work(1).notice().work(3)
    run = group.done()
    own = [row for row in run.rows if row.member == "d"]
    return run.changed(lambda rows: [row for row in rows if row.member != "d" or row.step < len(own) // 2])


def repeated() -> SampleRun:
    """Members broadcast requests of clients, some of them twice: nobody delivers the second."""
    return GroupModel(repeated_share=0.4).work().crash("d").work(2).notice().work().done()


def order_changed() -> SampleRun:
    """The second and third views are plain; in the last one, what waited there goes first."""
    group = GroupModel().work().change_order().work(3).join("e").work(3)
    return group.change_order("sequencer-bb", True, "ageing:50us").work(4).done()


def class_changed() -> SampleRun:
    """The orderer of the second view orders by reference; the third has another policy."""
    group = GroupModel().work().change_order("sequencer-bb", True).work(4)
    return group.change_order("sequencer-ub", True, "flush:2ms").work(4).done()


def safe_and_named() -> SampleRun:
    """All receive the messages, and their order by reference; some are safe, and member d crashes."""
    group = GroupModel(safe_share=0.5, seed=2, order="sequencer-bb")
    return group.work().crash("d").work(2).notice().work().done()


def first_of_two_left() -> SampleRun:
    return GroupModel("ab").work(3).leave("a").work(2).done()


def delivered_alone() -> SampleRun:
    """The orderer delivers what nobody else has, and crashes; the senders submit it again.

    The delivery is nonbinding: the messages are not safe, and the group is a primary one.
    """
    run = GroupModel(seed=5).work(4).crash("a").work(1).notice().work().done()
    last = [row for row in run.messages if (row.event, row.member) == (DELIVERED, "a")][-1]
    kept = max(row.position for row in run.messages if (row.event, row.view) == (DELIVERED, 1))
    new = [
        last._replace(sender=row.sender, level=row.level, first=row.first, position=kept + 1 + index)
        for index, row in enumerate(reversed(_submitted_again(run)))
    ]
    return run.changed(lambda rows: [*rows, *new])


def delivered_alone_and_skipped() -> SampleRun:
    """The same with requests of clients that got their reply: ordered again, they are skipped by all.

    Found by the simulator (seed 403): the position of such a message is empty although a member delivered it.
    """
    run = delivered_alone()
    alone = {id_of(row) for row in _submitted_again(run)}

    def change(rows: list[TraceRow]) -> list[TraceRow]:
        changed: list[TraceRow] = []
        for row in rows:
            is_alone = isinstance(row, MessageRow) and id_of(row) in alone
            if isinstance(row, MessageRow) and is_alone and row.event == BROADCAST:
                changed.append(row._replace(client="k", request=7))
            elif not is_alone or (row.event, row.view) != (DELIVERED, 2):
                changed.append(row)
        return changed

    return run.changed(change)


def _submitted_again(run: SampleRun) -> list[MessageRow]:
    """Two messages that are delivered in the second view, as b delivers them."""
    found = [
        row
        for row in run.messages
        if (row.event, row.member, row.view) == (DELIVERED, "b", 2) and row.first == 0 and row.sender != "a"
    ][:2]
    assert len(found) == 2
    return found


GOOD = {
    "repeated": repeated(),
    "order-changed": order_changed(),
    "class-changed": class_changed(),
    "safe-and-named": safe_and_named(),
    "all-safe-and-named": GroupModel(delivery="safe", order="sequencer-bb").work().done(),
    "selective-and-named": GroupModel(selective_share=0.4, order="sequencer-bb").work().done(),
    "first-of-two-left": first_of_two_left(),
    "delivered-alone": delivered_alone(),
    "delivered-alone-and-skipped": delivered_alone_and_skipped(),
    "crashed": crashed(),
    "crashed-in-batches": crashed(batch_max=4),
    "orderer-crashed": orderer_crashed(batch_max=3),
    "joined": joined(),
    "crashed-and-joined": crashed_and_joined(),
    "returned": returned(),
    "half-with-the-first": half_with_the_first(),
    "left": left(),
    "divided": divided(batch_max=3),
    "merged": merged(),
    "safe": safe(),
    "safe-at-times": safe_at_times(),
    "safe-and-divided": safe_and_divided(),
    "safe-and-selective": safe_and_selective(),
    "selective": selective(),
    "truncated": truncated(),
}
