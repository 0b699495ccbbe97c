"""The report: one self-contained HTML file with the runs, the verdicts and the measurements."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from priocast.core.violation import Violation
from priocast.pipeline.figures.delivery_time import draw_distributions, draw_p99
from priocast.pipeline.figures.membership import draw_membership, lanes_of_changing_runs
from priocast.pipeline.figures.over_time import draw_queue_depth, draw_throughput
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import Content, Html, element, figure, folded, table, tag
from priocast.pipeline.report_finding import finding_section
from priocast.pipeline.report_page import page, write_page
from priocast.pipeline.report_senders import senders_section
from priocast.pipeline.results import StudyResult
from priocast.pipeline.tables.delivery_time import name_of
from priocast.pipeline.tables.membership import Origin
from priocast.pipeline.verdicts import Verdict
from priocast.trace.remote_directory import without_secrets
from priocast.trace.schema import Manifest

_FACTS_SHOWN = 5


def write_report(result: StudyResult, source: str | Path, path: Path) -> Path:
    """Write the report; an earlier one is replaced."""
    return write_page(render_page(result, source), path)


def render_page(result: StudyResult, source: str | Path) -> str:
    """The whole page."""
    group = ", ".join(dict.fromkeys(run.manifest.group for run in result.runs))
    return page(
        f"Priocast report: {group}",
        element("h1", f"Group “{group}”: guarantees and measurements"),
        *finding_section(result),
        _summary(result),
        *_verdicts(result),
        *_runs(result),
        *_delivery_times(result),
        *_views(result),
        *senders_section(result),
        *_over_time(result),
        *_reproduce(source),
    )


def _summary(result: StudyResult) -> Html:
    deliveries = sum(counts.deliveries for counts in result.counts)
    size = element(
        "p",
        f"{result.events:,} recorded events of {len(result.runs)} "
        f"run{'s' if len(result.runs) > 1 else ''}, {deliveries:,} message deliveries.",
        css="soft",
    )
    promises = sum(verdict.promised for verdict in result.verdicts)
    if result.broken:
        text = f"{len(result.broken)} of {promises} promises were broken; see below."
    elif result.undecided:
        text = f"{len(result.undecided)} of {promises} promises cannot be decided; the others were kept."
    else:
        text = f"All {promises} promises were kept."
    banner = element("div", text, css=f"banner {'bad' if result.broken or result.undecided else 'good'}")
    return Html(size.text + banner.text)


def _runs(result: StudyResult) -> Iterable[Html]:
    """The runs: what differs between them, and everything about them to unfold."""
    manifests = [run.manifest for run in result.runs]
    facts = [_facts(manifest) for manifest in manifests]
    names = list(dict.fromkeys(name for of_run in facts for name in of_run))
    headings = ["run", *(manifest.run for manifest in manifests)]

    def row(name: str) -> list[Content]:
        return [name, *(of_run.get(name, "-") for of_run in facts)]

    differing = [name for name in names if len({of_run.get(name) for of_run in facts}) > 1]
    yield element("h2", "Runs")
    if len(facts) > 1:
        yield element("p", "What differs between the runs; everything else is the same in all.", css="soft")
        yield table(headings, map(row, differing))
        same = [[name, facts[0][name]] for name in names if name not in differing]
        yield folded(f"The same in all runs: {len(same)} facts and options", table(["", "all runs"], same))
    else:
        shown, others = map(row, names[:_FACTS_SHOWN]), map(row, names[_FACTS_SHOWN:])
        yield table(headings, shown)
        yield folded(f"{len(names) - _FACTS_SHOWN} more facts and options", table(headings, others))


def _facts(manifest: Manifest) -> dict[str, str]:
    facts = {
        "protocol": manifest.order,
        "priorities": f"yes, starvation: {manifest.starvation}" if manifest.prioritised else "no (plain)",
        "members": ", ".join(manifest.members),
        "priorities act": f"in {manifest.priorities_act}" if manifest.prioritised else "nowhere",
        "ordered by": f"the {manifest.orders} of the view" if manifest.orders else "all members together",
        "partition policy": manifest.policy,
        "delivery": manifest.delivery,
        "clock": manifest.clock,
        "seed": "none" if manifest.seed is None else str(manifest.seed),
    }
    for kind, values in (("label", manifest.labels), ("", manifest.options), ("version", manifest.versions)):
        facts |= {f"{kind} {name}".strip(): str(value) for name, value in values.items()}
    return facts


def _verdicts(result: StudyResult) -> Iterable[Html]:
    yield element("h2", "Guarantees")
    yield element(
        "p",
        "Each guarantee is checked from the members' own records, in the order of their own steps. "
        "The driver writes these records, not the protocol.",
        css="soft",
    )
    runs = [run.name for run in result.runs]
    verdict_of = {(verdict.guarantee, verdict.run): verdict for verdict in result.verdicts}
    statements = {verdict.guarantee: verdict.statement for verdict in result.verdicts}
    rows: list[list[Content]] = [
        [_named(name, text), *(_result(verdict_of.get((name, run))) for run in runs)]
        for name, text in statements.items()
    ]
    yield table(["guarantee", *runs], rows)
    for verdict in result.verdicts:
        if verdict.violations:
            yield element("h3", f"{verdict.run}: {verdict.guarantee}")
            shown = len(verdict.examples)
            yield element("p", f"{verdict.violations:,} violations; the first {shown}:", css="soft")
            headings = ["view", "position", "messages", "members", "what happened"]
            yield table(headings, map(_violation, verdict.examples))


def _named(guarantee: str, statement: str) -> Html:
    return Html(element("div", guarantee).text + element("div", statement, css="soft").text)


def _result(verdict: Verdict | None) -> Html:
    """The cell of a verdict; a run without qualities of service has none about them."""
    if verdict is None:
        return Html("-")
    examined = element("div", f"{verdict.examined:,} {verdict.unit}", css="soft")
    if not verdict.promised:
        word = tag("not promised", "quiet")
    elif not verdict.decidable:
        word = tag("not decidable: the clocks cannot be compared", "quiet")
    elif verdict.holds:
        word = tag("holds", "good")
    else:
        word = tag(f"broken {verdict.violations:,} times", "bad")
    return Html(word.text + examined.text)


def _violation(violation: Violation) -> list[Content]:
    return [
        violation.view or "-",
        "-" if violation.position is None else violation.position,
        element("code", ", ".join(violation.messages)),
        ", ".join(violation.members),
        violation.summary,
    ]


def _views(result: StudyResult) -> Iterable[Html]:
    yield element("h2", "Views")
    yield element(
        "p",
        "A view is identified by its number and its coordinator. Order: the protocol, and its starvation "
        "policy. Received: when the first and the last member received it, in seconds. Gap: the longest time "
        "in ms that a member that came from another view was without a message, by its own clock.",
        css="soft",
    )
    rows: list[list[Content]] = [
        [
            "" if index and result.views[index - 1].run == view.run else view.run,
            view.view,
            ", ".join(view.members),
            str(view.order),
            str(view.reason),
            Html("".join(element("div", _origin(origin)).text for origin in view.origins)),
            f"{view.first_received_s:.3f} - {view.last_received_s:.3f}",
            view.messages,
            "-" if view.gap_ms is None else _milliseconds(view.gap_ms),
        ]
        for index, view in enumerate(result.views)
    ]
    headings = [
        "run",
        "view",
        "members",
        "order",
        "reason",
        "came from",
        "received (s)",
        "messages",
        "gap (ms)",
    ]
    yield table(headings, rows, numbers_from=6)
    if changing := lanes_of_changing_runs(result.lanes):
        yield figure(
            render_svg(draw_membership(changing)),
            "Membership over time: a lane for each process, a bar for each view with its number.",
        )


def _origin(origin: Origin) -> str:
    return f"{origin.view or 'joined'}: {', '.join(origin.processes)}"


def _delivery_times(result: StudyResult) -> Iterable[Html]:
    yield element("h2", "Delivery time")
    yield element(
        "p",
        "From a message's broadcast to its delivery at its own sender, by the sender's clock, in ms. "
        "Overtaken: the share of messages for which the group delivered a less urgent one first, although "
        "they were broadcast before any member delivered that one. Inversions: the number of such pairs.",
        css="soft",
    )
    inversions = {(of.run, of.priority): (f"{of.share:.1%}", of.pairs) for of in result.inversions}
    undelivered = {(counts.run, counts.priority): counts.undelivered for counts in result.counts}
    rows: list[list[Content]] = [
        [
            "" if index and result.delivery_times[index - 1].run == time.run else time.run,
            name_of(time.priority),
            time.count,
            *map(
                _milliseconds,
                (time.mean_ms, time.p25_ms, time.median_ms, time.p75_ms, time.p99_ms, time.max_ms),
            ),
            *inversions.get((time.run, time.priority), ("-", "-")),
            undelivered[time.run, time.priority],
        ]
        for index, time in enumerate(result.delivery_times)
    ]
    headings = ["run", "priority", "messages", "mean", "25 %", "median", "75 %", "99 %", "max"]
    yield table([*headings, "overtaken", "inversions", "not delivered"], rows, numbers_from=2)
    if result.delivery_times:
        yield figure(
            render_svg(draw_distributions(result.delivery_times)),
            "The share of each priority's messages that was delivered within a time. Further left is faster.",
        )
        yield figure(
            render_svg(draw_p99(result.delivery_times)),
            "99 % of the messages were delivered within this time.",
        )


def _milliseconds(value: float) -> str:
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def _over_time(result: StudyResult) -> Iterable[Html]:
    yield element("h2", "Over time")
    deepest: dict[str, int] = {}
    for depth in result.queue_depths:
        deepest[depth.run] = max(deepest.get(depth.run, 0), depth.deepest)
    rows: list[list[Content]] = [
        [of.run, of.slowest, round(of.per_second), deepest.get(of.run, 0)] for of in result.throughputs
    ]
    yield table(["run", "slowest member", "messages/s there", "maximum queue depth"], rows, numbers_from=2)
    yield figure(
        render_svg(draw_throughput(result.throughputs)),
        "Messages delivered per second at the slowest member: the throughput of the group.",
    )
    yield figure(
        render_svg(draw_queue_depth(result.queue_depths)),
        "Messages that waited to be ordered, where the order is decided: at the orderer, or else at every "
        "member. Priorities act on these.",
    )


def _reproduce(source: str | Path) -> Iterable[Html]:
    quoted = shlex.quote(without_secrets(str(source)))
    yield element("h2", "Reproduce")
    yield element(
        "p",
        "The traces are Parquet files. These commands produce the same verdicts and this page:",
        css="soft",
    )
    yield element("pre", f"priocast verify {quoted}\npriocast report {quoted} --out report.html")
