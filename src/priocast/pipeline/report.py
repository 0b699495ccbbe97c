"""The report: one HTML file that needs nothing else, with what was run, what was proved and what it cost."""

import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path

from priocast.pipeline.figures.delivery_time import draw_distributions, draw_p99
from priocast.pipeline.figures.membership import draw_membership, lanes_of_changing_runs
from priocast.pipeline.figures.over_time import draw_queue_depth, draw_throughput
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import Content, Html, element, figure, render, table, tag
from priocast.pipeline.outcome import Outcome
from priocast.pipeline.report_style import CSS
from priocast.pipeline.tables.delivery_time import name_of
from priocast.pipeline.tables.membership import Origin
from priocast.pipeline.verdicts import Verdict, Violation
from priocast.trace.schema import Manifest


def write_report(outcome: Outcome, source: Path, path: Path) -> Path:
    """Write the report to `path`: aside first, then renamed, so that it is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as aside:
        part = Path(aside) / path.name
        part.write_text(render_page(outcome, source), encoding="utf-8")
        part.chmod(0o644)
        return part.replace(path)


def render_page(outcome: Outcome, source: Path) -> str:
    """The whole page."""
    group = ", ".join(dict.fromkeys(run.manifest.group for run in outcome.runs))
    body = element(
        "main",
        element("h1", f"Group “{group}”: what was promised, and what it cost"),
        _summary(outcome),
        *_runs(outcome),
        *_verdicts(outcome),
        *_views(outcome),
        *_delivery_times(outcome),
        *_over_time(outcome),
        *_reproduce(source),
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{render(f'Priocast report: {group}')}</title><style>{CSS}</style></head>"
        f"<body>{body.text}</body></html>\n"
    )


def _summary(outcome: Outcome) -> Html:
    deliveries = sum(counted.deliveries for counted in outcome.census)
    size = element(
        "p",
        f"{outcome.events:,} recorded events of {len(outcome.runs)} "
        f"run{'s' if len(outcome.runs) > 1 else ''}, {deliveries:,} deliveries of messages.",
        css="soft",
    )
    promises = sum(verdict.promised for verdict in outcome.verdicts)
    if outcome.broken:
        text = f"{len(outcome.broken)} of {promises} promises were broken: see below where."
    else:
        text = f"All {promises} promises were kept."
    banner = element("div", text, css=f"banner {'bad' if outcome.broken else 'good'}")
    return Html(size.text + banner.text)


def _runs(outcome: Outcome) -> Iterable[Html]:
    manifests = [run.manifest for run in outcome.runs]
    facts = [_facts(manifest) for manifest in manifests]
    yield element("h2", "What was run")
    rows = [[name, *(of_run[name] for of_run in facts)] for name in facts[0]]
    yield table(["run", *(manifest.run for manifest in manifests)], rows)


def _facts(manifest: Manifest) -> dict[str, Content]:
    return {
        "protocol": manifest.order,
        "priorities": f"yes, starvation: {manifest.starvation}" if manifest.prioritised else "no (plain)",
        "members": ", ".join(manifest.members),
        "priorities act": f"in {manifest.priorities_act}" if manifest.prioritised else "nowhere",
        "ordered by": f"the {manifest.orders} of the view" if manifest.orders else "nobody alone",
        "when divided": manifest.policy,
        "delivery": manifest.delivery,
        "clock": manifest.clock,
        "seed": "none" if manifest.seed is None else str(manifest.seed),
        "options": _pairs(manifest.options),
        "labels": _pairs(manifest.labels),
        "versions": _pairs(manifest.versions),
    }


def _pairs(values: dict[str, str] | dict[str, int | float | str | bool | None]) -> Html:
    lines = [element("div", element("code", f"{name} = {value}")) for name, value in values.items()]
    return Html("".join(line.text for line in lines) or "none")


def _verdicts(outcome: Outcome) -> Iterable[Html]:
    yield element("h2", "What was proved")
    yield element(
        "p",
        "Each property is checked from the members' own records, in the order of their own steps; "
        "the protocols do not write these records.",
        css="soft",
    )
    runs = [run.name for run in outcome.runs]
    verdict_of = {(verdict.property, verdict.run): verdict for verdict in outcome.verdicts}
    says = {verdict.property: verdict.says for verdict in outcome.verdicts}
    rows: list[list[Content]] = [
        [name, text, *(_result(verdict_of[name, run]) for run in runs)] for name, text in says.items()
    ]
    yield table(["property", "it says", *runs], rows)
    for verdict in outcome.verdicts:
        if not verdict.holds:
            yield element("h3", f"{verdict.run}: {verdict.property}")
            shown = len(verdict.examples)
            yield element("p", f"{verdict.violations:,} violations; the first {shown}:", css="soft")
            headings = ["view", "position", "messages", "members", "what happened"]
            yield table(headings, map(_violation, verdict.examples))


def _result(verdict: Verdict) -> Html:
    examined = element("div", f"{verdict.examined:,} {verdict.unit}", css="soft")
    if not verdict.promised:
        word = tag("not promised", "quiet")
    elif verdict.holds:
        word = tag("holds", "good")
    else:
        word = tag(f"broken {verdict.violations:,} times", "bad")
    return Html(word.text + examined.text)


def _violation(violation: Violation) -> list[Content]:
    return [
        violation.view_name or "-",
        "-" if violation.position is None else violation.position,
        element("code", ", ".join(violation.messages)),
        ", ".join(violation.members),
        violation.detail,
    ]


def _views(outcome: Outcome) -> Iterable[Html]:
    yield element("h2", "Who was in the group")
    yield element(
        "p",
        "A view is named by its number and its coordinator. Order: the protocol, and its policy against "
        "starvation. Told: when the first and the last of its members were told of it, in seconds. Gap: the "
        "longest time in ms that a member which came from another view was without a message, by its own "
        "clock.",
        css="soft",
    )
    rows: list[list[Content]] = [
        [
            "" if place and outcome.views[place - 1].run == view.run else view.run,
            view.view,
            ", ".join(view.members),
            f"{view.order.order}, {'plain' if view.order.is_plain else view.order.policy}",
            view.reason or "-",
            Html("".join(element("div", _origin(origin)).text for origin in view.origins)),
            f"{view.first_told_s:.3f} - {view.last_told_s:.3f}",
            view.messages,
            "-" if view.gap_ms is None else _milliseconds(view.gap_ms),
        ]
        for place, view in enumerate(outcome.views)
    ]
    headings = ["run", "view", "members", "order", "reason", "came from", "told (s)", "messages", "gap (ms)"]
    yield table(headings, rows, numbers_from=6)
    if changing := lanes_of_changing_runs(outcome.lanes):
        yield figure(
            render_svg(draw_membership(changing)),
            "Who was in which view when: a lane for each process, a bar for each view with its number.",
        )


def _origin(origin: Origin) -> str:
    return f"{origin.view or 'joined'}: {', '.join(origin.processes)}"


def _delivery_times(outcome: Outcome) -> Iterable[Html]:
    yield element("h2", "How long delivery took")
    yield element(
        "p",
        "From a message's broadcast to its delivery at its own sender, by the sender's clock, in ms. "
        "Overtaken: the group delivered a less urgent message before these, although they had been broadcast "
        "before anybody delivered that; inversions: how many such pairs there are.",
        css="soft",
    )
    inversions = {(of.run, of.priority): (f"{of.share:.1%}", of.pairs) for of in outcome.inversions}
    undelivered = {(counted.run, counted.priority): counted.undelivered for counted in outcome.census}
    rows: list[list[Content]] = [
        [
            "" if place and outcome.delivery_times[place - 1].run == time.run else time.run,
            name_of(time.priority),
            time.count,
            *map(
                _milliseconds,
                (time.mean_ms, time.p25_ms, time.median_ms, time.p75_ms, time.p99_ms, time.max_ms),
            ),
            *inversions.get((time.run, time.priority), ("-", "-")),
            undelivered[time.run, time.priority],
        ]
        for place, time in enumerate(outcome.delivery_times)
    ]
    headings = ["run", "priority", "messages", "mean", "25 %", "median", "75 %", "99 %", "max"]
    yield table([*headings, "overtaken", "inversions", "not delivered"], rows, numbers_from=2)
    if outcome.delivery_times:
        yield figure(
            render_svg(draw_distributions(outcome.delivery_times)),
            "The share of each priority's messages that was delivered within a time. Further left is sooner.",
        )
        yield figure(
            render_svg(draw_p99(outcome.delivery_times)),
            "All but the slowest hundredth of the messages were delivered within this time.",
        )


def _milliseconds(value: float) -> str:
    return f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def _over_time(outcome: Outcome) -> Iterable[Html]:
    yield element("h2", "How it went over time")
    deepest: dict[str, int] = {}
    for depth in outcome.queue_depths:
        deepest[depth.run] = max(deepest.get(depth.run, 0), depth.deepest)
    rows: list[list[Content]] = [
        [of.run, of.slowest, round(of.per_second), deepest.get(of.run, 0)] for of in outcome.throughputs
    ]
    yield table(["run", "slowest member", "messages/s there", "most waiting"], rows, numbers_from=2)
    yield figure(
        render_svg(draw_throughput(outcome.throughputs)),
        "Messages delivered per second at the slowest member: what the group as a whole does.",
    )
    yield figure(
        render_svg(draw_queue_depth(outcome.queue_depths)),
        "Messages that waited for a place in the order, where it is decided: at the one that orders, or else "
        "at every member. Priorities act on these.",
    )


def _reproduce(source: Path) -> Iterable[Html]:
    quoted = shlex.quote(str(source))
    yield element("h2", "Check it yourself")
    yield element("p", "The traces are Parquet files; the same verdicts and this page come from:", css="soft")
    yield element("pre", f"priocast verify {quoted}\npriocast report {quoted} --out report.html")
