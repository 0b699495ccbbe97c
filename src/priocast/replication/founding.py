"""What members that found a group together begin with: the state of the one whose log goes furthest.

An answer was given only when a majority of the *voters* had the entry on disk. So if a majority of them is
here with whole logs, one of these has every entry that was answered. Logs are compared by the generation of
their last entry first: entries of an older generation that were not answered may have been dropped.
"""

from priocast.core.view import View
from priocast.replication.commands import LogReport


def agreed_report(reports: dict[str, LogReport], view: View) -> LogReport | None:
    """The report of the member whose state all begin with; None while too few have reported."""
    names = [member.name for member in view.members]
    if any(name not in reports for name in names):
        return None
    present = [reports[name] for name in names]
    whole = [report for report in present if report.voters and not report.is_damaged]
    if not whole:
        return None if any(report.is_damaged for report in present) else present[0]
    best = max(whole, key=lambda report: (report.generation, report.index))
    voters = [report for report in whole if report.member in best.voters]
    return best if 2 * len(voters) > len(best.voters) else None


def why_not_agreed(reports: dict[str, LogReport], view: View) -> str:
    """What the members that found a group wait for."""
    silent = [member.name for member in view.members if member.name not in reports]
    if silent:
        return f"waits for what {', '.join(silent)} found on disk"
    whole = [report for report in reports.values() if report.voters and not report.is_damaged]
    voters = max((report.voters for report in whole), key=len, default=())
    here = ", ".join(report.member for report in whole) or "none"
    needed = ", ".join(voters) or "the earlier members"
    return f"a majority of {needed} must be here with whole logs, to know what was answered; here: {here}"
