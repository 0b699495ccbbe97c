"""Flow control for large bodies: as fast as they are received, and no faster."""

from collections.abc import Hashable

from priocast.network.rejections import RejectionLog
from priocast.network.udp_pace import Flow, Pacer, Sent
from support.waiting import run, wait_until

WINDOW = 96
KIBIBYTE = 1024


class Sender:
    """Gives the datagrams of all transfers consecutive counters, and records which fragment each has."""

    def __init__(self) -> None:
        self.fragments: list[int] = []
        self.again: list[tuple[int, Flow]] = []


class Body:
    """A body of so many fragments of 1 KiB, which are numbered from 0 on."""

    def __init__(self, sender: Sender, fragments: int, *flows: Flow, name: Hashable = "body") -> None:
        self.flows = flows
        self.frames = [(name, index) for index in range(len(flows))]
        self.size = fragments * KIBIBYTE
        self._sender = sender
        self._count = fragments
        self._next = 0

    def send_next(self) -> Sent | None:
        if self._next == self._count:
            return None
        self._next += 1
        return self._send(self._next - 1, multicast=len(self.flows) > 1)

    def send_again(self, fragment: int, flow: Flow) -> Sent:
        self._sender.again.append((fragment, flow))
        return self._send(fragment, multicast=False)

    def _send(self, fragment: int, *, multicast: bool) -> Sent:
        self._sender.fragments.append(fragment)
        return Sent(len(self._sender.fragments), KIBIBYTE, multicast, fragment, self)


def pacer() -> Pacer:
    return Pacer(RejectionLog("a"))


def all_up_to(highest: int) -> tuple[int, int]:
    return highest, (1 << highest) - 1


def test_the_bytes_in_flight_are_limited() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        pace.add(Body(sender, 1000, flow))
        assert len(sender.fragments) == WINDOW
        for highest in (10, 90, 96, 186):
            pace.on_report(flow, *all_up_to(highest), 0.0)
            assert len(sender.fragments) == WINDOW + highest
        pace.stop()

    run(test)


def test_a_peer_with_a_larger_buffer_gets_more_at_a_time() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        assert flow.report_bytes == 16 * KIBIBYTE
        flow.bytes_max = 200 * KIBIBYTE
        pace.add(Body(sender, 1000, flow))
        assert len(sender.fragments) == 200
        flow.bytes_max = 10_000 * KIBIBYTE
        assert flow.report_bytes < WINDOW * KIBIBYTE, "a sender with a small window is not kept waiting"
        pace.stop()

    run(test)


def test_lost_fragments_are_sent_before_new_ones() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        pace.add(Body(sender, 200, flow))
        pace.on_report(flow, 10, 0b1011101111, 0.0)
        assert sender.fragments[WINDOW : WINDOW + 3] == [1, 5, 96], "counters 2 and 6 of 10 are missing"
        assert len(sender.fragments) == WINDOW + 10
        pace.stop()

    run(test)


def test_a_fragment_that_two_later_ones_have_overtaken_may_still_arrive() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        pace.add(Body(sender, 200, flow))
        pace.on_report(flow, 10, 0b1111111011, 0.0)
        assert not sender.again, "only counters 9 and 10 came after 8"
        pace.on_report(flow, 10, 0b1111111111, 0.0)
        assert not sender.again and len(sender.fragments) == WINDOW + 10
        pace.on_report(flow, 13, 0b1110, 0.0)
        assert not sender.again, "11 and 12 came after 10, and 13 is missing itself"
        pace.on_report(flow, 14, 0b11101, 0.0)
        assert not sender.again, "14 came after 13"
        pace.on_report(flow, 16, 0b1110111, 0.0)
        assert sender.again == [(12, flow)], "14, 15 and 16 came after 13"
        pace.stop()

    run(test)


def test_what_is_multicast_and_what_is_not_overtake_each_other() -> None:
    """They arrive at different sockets of a receiver, which may read the later ones first."""

    async def test() -> None:
        pace, flow, other, sender = pacer(), Flow(), Flow(), Sender()
        pace.add(Body(sender, 5, flow, other, name="to both"))
        pace.add(Body(sender, 5, flow, name="to one"))
        pace.on_report(flow, 10, 0b11111, 0.0)
        assert not sender.again, "counters 1 to 5 are on their way to another socket"
        pace.on_report(flow, 10, 0b1111111111, 0.0)
        assert flow.idle and not other.idle
        pace.on_report(other, 5, 0b01110, 0.0)
        assert sender.again == [(0, other)], "2, 3 and 4 came after 1, and nothing after 5"
        pace.stop()

    run(test)


def test_a_fragment_that_is_lost_repeatedly_is_abandoned() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        pace.add(Body(sender, 4, flow))
        for _ in range(9):
            received = sum(1 << len(sender.fragments) - counter for counter in (2, 3, 4))
            pace.on_report(flow, len(sender.fragments), received, 0.0)
        assert sender.again == [(0, flow)]
        for now in range(1, 9):
            flow.check(float(now))
        assert sender.again == [(0, flow)] * 4, "five attempts in all"
        assert flow.idle
        pace.stop()

    run(test)


def test_a_fragment_that_is_missing_for_a_while_is_sent_again_although_others_are_reported() -> None:
    """A single one that was multicast, for example: nothing that was sent the same way overtakes it."""
    flow, sender = Flow(), Sender()
    body = Body(sender, 100, flow)
    flow.note(Sent(1, KIBIBYTE, True, 0, body), now=0.0)
    for counter in range(2, 40):
        now = counter / 1000
        flow.note(Sent(counter, KIBIBYTE, False, counter - 1, body), now)
        flow.on_report(counter, 0b1, now)
        flow.check(now)
        assert bool(sender.again) is (counter > 20)
    assert sender.again == [(0, flow)] * len(sender.again)


def test_without_reports_everything_is_sent_again_and_finally_abandoned() -> None:
    async def test() -> None:
        pace, sender = pacer(), Sender()
        pace.add(Body(sender, 90, Flow()))
        assert len(sender.fragments) == 90
        await pace.wait_empty()
        assert sorted(sender.fragments) == sorted([*range(90)] * 5)
        await wait_until(lambda: pace._timer is None)

    run(test)


def test_the_slowest_receiver_sets_the_pace_and_each_gets_what_it_lacks() -> None:
    async def test() -> None:
        pace, fast, slow, sender = pacer(), Flow(), Flow(), Sender()
        pace.add(Body(sender, 1000, fast, slow))
        pace.on_report(fast, *all_up_to(96), 0.0)
        assert len(sender.fragments) == WINDOW
        pace.on_report(slow, 50, (1 << 49) - 1, 0.0)
        assert sender.again == [(0, slow)]
        assert sender.fragments[WINDOW : WINDOW + 2] == [0, 96]
        assert len(sender.fragments) == WINDOW + 50
        pace.stop()

    run(test)


def test_a_body_for_several_continues_when_the_last_of_them_has_room() -> None:
    async def test() -> None:
        pace, flows, sender = pacer(), [Flow(), Flow(), Flow()], Sender()
        pace.add(Body(sender, 200, *flows))
        for flow in (flows[2], flows[0]):
            pace.on_report(flow, *all_up_to(96), 0.0)
            assert len(sender.fragments) == WINDOW
        pace.on_report(flows[1], *all_up_to(96), 0.0)
        assert len(sender.fragments) == 2 * WINDOW
        pace.stop()

    run(test)


def test_flows_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        pace, one, other, sender = pacer(), Flow(), Flow(), Sender()
        pace.add(Body(sender, 1000, one, name="large"))
        pace.add(Body(sender, 1000, one, other, name="to both"))
        fast = Sender()
        pace.add(Body(fast, 10, other, name="small"))
        assert len(sender.fragments) == WINDOW and len(fast.fragments) == 10
        pace.stop()

    run(test)


def test_frames_wait_until_they_were_sent_to_their_end() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), Sender()
        pace.add(Body(sender, 100, flow))
        assert pace.is_waiting(("body", 0)) and not pace.is_waiting(("body", 1))
        pace.on_report(flow, *all_up_to(WINDOW), 0.0)
        assert len(sender.fragments) == 100 and not pace.is_waiting(("body", 0))
        pace.stop()

    run(test)


def test_the_waiting_bytes_are_bounded() -> None:
    async def test() -> None:
        rejection_log = RejectionLog("a")
        pace, sender = Pacer(rejection_log), Sender()
        for number in range(20):
            pace.add(Body(sender, 1000, Flow(), name=number))
        assert rejection_log.counts == {"could not be sent": 4}
        pace.stop()

    run(test)
