"""What members that found a group together begin with: the state of the one whose log goes furthest.

An answer was given only when a majority of the *voters* had the entry on disk. So if a majority of them is
here with whole logs, one of these has every entry that was answered. Logs are compared by the generation of
their last entry first: entries of an older generation that were not answered may have been dropped.

A log is not whole if it is damaged, or *rolled back*: another log says that this member's disk has had more.
Such a member does not count, as if its disk were empty, and gets what the others have.

A generation begins when all have promised on their disks to take part in it. Its number is higher than any
that one of them has promised before. Any two foundings that can count have a voter in common, so no number is
used twice.
"""

from priocast.core.view import View
from priocast.replication.commands import LogReport


def agreed_report(reports: dict[str, LogReport], view: View) -> LogReport | None:
    """The report of the member whose state all begin with; None while too few have reported."""
    names = [member.name for member in view.members]
    if any(name not in reports for name in names):
        return None
    present = [reports[name] for name in names]
    if len(histories_of(present)) > 1:
        return None
    whole = whole_logs(present)
    if not whole:
        is_new = not any(report.is_damaged or report.voters for report in present)
        return present[0] if is_new else None
    best = max(whole, key=lambda report: report.tip)
    voters = [report for report in whole if report.member in best.voters]
    return best if 2 * len(voters) > len(best.voters) else None


def whole_logs(reports: list[LogReport]) -> list[LogReport]:
    """The reports of logs that have everything their member has ever acknowledged, as far as is known."""
    return [
        report
        for report in reports
        if report.voters and not report.is_damaged and not is_rolled_back(report, reports)
    ]


def is_rolled_back(report: LogReport, reports: list[LogReport]) -> bool:
    """Whether another log says that the disk of this member has had more than was found on it."""
    known = [other.acknowledged.get(report.member) for other in reports]
    return any(tip is not None and tip > report.tip for tip in known)


def histories_of(reports: list[LogReport]) -> set[bytes]:
    """Where the logs come from: one founding, unless somebody has the directory of another group."""
    return {report.history for report in reports if report.voters and not report.is_damaged}


def next_generation(reports: dict[str, LogReport], view: View) -> int:
    """The number of the generation that these members begin."""
    present = [reports[member.name] for member in view.members]
    return 1 + max(max(report.promised, report.generation) for report in present)


def why_not_agreed(reports: dict[str, LogReport], view: View) -> str:
    """What the members that found a group wait for."""
    silent = [member.name for member in view.members if member.name not in reports]
    if silent:
        return f"waits for what {', '.join(silent)} found on disk"
    present = [reports[member.name] for member in view.members]
    if len(histories_of(present)) > 1:
        named = ", ".join(f"{each.member}: {each.history.hex()}" for each in present if each.voters)
        return f"the logs are of different groups that had the same name ({named}): remove the foreign ones"
    whole = whole_logs(present)
    logs = [report for report in present if report.voters]
    voters = max((report.voters for report in whole or logs), key=len, default=())
    here = ", ".join(report.member for report in whole) or "none"
    needed = ", ".join(voters) or "the earlier members"
    text = f"a majority of {needed} must be here with whole logs, to know what was answered; here: {here}"
    causes = [("damaged", [each.member for each in present if each.is_damaged])]
    causes.append(("older than what it acknowledged", _rolled_back(present)))
    return text + "".join(f"; {cause}: {', '.join(names)}" for cause, names in causes if names)


def _rolled_back(reports: list[LogReport]) -> list[str]:
    return [report.member for report in reports if not report.is_damaged and is_rolled_back(report, reports)]
