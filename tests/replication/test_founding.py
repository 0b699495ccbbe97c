"""What members begin with when they found a group together, from what they found on their disks."""

from priocast.core.identity import ProcessId
from priocast.core.view import View
from priocast.replication.commands import LogReport
from priocast.replication.founding import agreed_report, why_not_agreed

VOTERS = ("a", "b", "c")
VIEW = View(1, tuple(ProcessId(name) for name in "abc"))


def report(member: str, generation: int, index: int, is_damaged: bool = False) -> LogReport:
    return LogReport(member, generation, index, VOTERS if generation else (), is_damaged)


def agreed(*reports: LogReport, view: View = VIEW) -> LogReport | None:
    return agreed_report({each.member: each for each in reports}, view)


def test_everybody_has_to_report() -> None:
    reports = {"a": report("a", 1, 5), "b": report("b", 1, 5)}
    assert agreed_report(reports, VIEW) is None
    assert why_not_agreed(reports, VIEW) == "waits for what c found on disk"


def test_members_without_logs_begin_with_nothing() -> None:
    assert agreed(*(report(name, 0, 0) for name in "abc")) == report("a", 0, 0)


def test_the_log_that_goes_furthest_counts_and_a_later_generation_before_that() -> None:
    assert agreed(report("a", 1, 5), report("b", 1, 9), report("c", 1, 7)) == report("b", 1, 9)
    assert agreed(report("a", 1, 50), report("b", 2, 9), report("c", 2, 7)) == report("b", 2, 9)


def test_a_majority_of_the_voters_must_have_whole_logs() -> None:
    assert agreed(report("a", 1, 5), report("b", 1, 4), report("c", 0, 0)) == report("a", 1, 5)
    assert agreed(report("a", 1, 5), report("b", 1, 9, is_damaged=True), report("c", 0, 0)) is None
    assert agreed(report("a", 1, 5, is_damaged=True), report("b", 0, 0), report("c", 0, 0)) is None
    small = View(1, (ProcessId("a"), ProcessId("d")))
    assert agreed(report("a", 1, 5), report("d", 1, 5), view=small) is None, "d is no voter"
    reports = {"a": report("a", 1, 5), "d": report("d", 0, 0)}
    assert why_not_agreed(reports, small) == (
        "a majority of a, b, c must be here with whole logs, to know what was answered; here: a"
    )
