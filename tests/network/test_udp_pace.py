"""Flow control for large bodies: as fast as they are received, and no faster."""

from collections.abc import Iterator

from priocast.network.rejections import RejectionLog
from priocast.network.udp_pace import Flow, Pacer, Sent
from support.waiting import run, wait_until

WINDOW = 96
KIBIBYTE = 1024


class FragmentSender:
    """Sends fragments of 1 KiB with consecutive counters, and records which fragment each was."""

    def __init__(self) -> None:
        self.fragments: list[int] = []

    def send(self, fragment: int) -> Sent:
        self.fragments.append(fragment)
        return Sent(len(self.fragments), KIBIBYTE, lambda: self.send(fragment))

    def steps(self, count: int, flows: int = 1) -> Iterator[list[Sent]]:
        """A body of this many fragments."""
        for fragment in range(count):
            yield [self.send(fragment)] * flows


def pacer() -> Pacer:
    return Pacer(RejectionLog("a"))


def all_up_to(highest: int) -> tuple[int, int]:
    return highest, (1 << highest) - 1


def test_the_bytes_in_flight_are_limited() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), FragmentSender()
        pace.add("body", [flow], sender.steps(1000), 1000 * KIBIBYTE)
        assert len(sender.fragments) == WINDOW
        for highest in (10, 90, 96, 186):
            pace.on_report(flow, *all_up_to(highest), 0.0)
            assert len(sender.fragments) == WINDOW + highest
        pace.stop()

    run(test)


def test_lost_fragments_are_sent_before_new_ones() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), FragmentSender()
        pace.add("body", [flow], sender.steps(200), 200 * KIBIBYTE)
        pace.on_report(flow, 10, 0b1011111011, 0.0)
        assert sender.fragments[WINDOW : WINDOW + 3] == [1, 7, 96], "counters 2 and 8 of 10 are missing"
        assert len(sender.fragments) == WINDOW + 10
        pace.stop()

    run(test)


def test_a_fragment_that_is_lost_repeatedly_is_abandoned() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), FragmentSender()
        pace.add("body", [flow], sender.steps(3), 3 * KIBIBYTE)
        for _ in range(9):
            pace.on_report(flow, len(sender.fragments), 1 << 2000, 0.0)
        assert sender.fragments == [0, 1, 2] * 5
        assert flow.idle
        pace.stop()

    run(test)


def test_without_reports_everything_is_sent_again_and_finally_abandoned() -> None:
    async def test() -> None:
        pace, sender = pacer(), FragmentSender()
        pace.add("body", [Flow()], sender.steps(90), 90 * KIBIBYTE)
        assert len(sender.fragments) == 90
        await pace.wait_empty()
        assert sorted(sender.fragments) == sorted([*range(90)] * 5)
        await wait_until(lambda: pace._timer is None)

    run(test)


def test_the_slowest_receiver_sets_the_pace_and_each_gets_what_it_lacks() -> None:
    async def test() -> None:
        pace, flows, sender = pacer(), [Flow(), Flow()], FragmentSender()
        pace.add("body", flows, sender.steps(1000, flows=2), 1000 * KIBIBYTE)
        pace.on_report(flows[0], *all_up_to(96), 0.0)
        assert len(sender.fragments) == WINDOW
        pace.on_report(flows[1], 50, (1 << 49) - 1, 0.0)
        assert sender.fragments[WINDOW : WINDOW + 2] == [0, 96]
        assert len(sender.fragments) == WINDOW + 50
        pace.stop()

    run(test)


def test_flows_do_not_wait_for_each_other() -> None:
    async def test() -> None:
        pace, slow, fast = pacer(), FragmentSender(), FragmentSender()
        pace.add("one", [Flow()], slow.steps(1000), 1000 * KIBIBYTE)
        pace.add("other", [Flow()], fast.steps(10), 10 * KIBIBYTE)
        assert len(fast.fragments) == 10
        pace.stop()

    run(test)


def test_a_body_that_is_still_waiting_is_not_added_again() -> None:
    async def test() -> None:
        pace, flow, sender = pacer(), Flow(), FragmentSender()
        for _ in range(3):
            pace.add("body", [flow], sender.steps(100), 100 * KIBIBYTE)
        pace.on_report(flow, *all_up_to(WINDOW), 0.0)
        assert len(sender.fragments) == 100
        pace.add("body", [flow], sender.steps(1), KIBIBYTE)
        assert len(sender.fragments) == 101
        pace.stop()

    run(test)


def test_the_waiting_bytes_are_bounded() -> None:
    async def test() -> None:
        rejection_log = RejectionLog("a")
        pace, sender = Pacer(rejection_log), FragmentSender()
        for number in range(20):
            pace.add(number, [Flow()], sender.steps(1000), 1000 * KIBIBYTE)
        assert rejection_log.counts == {"could not be sent": 4}
        pace.stop()

    run(test)
