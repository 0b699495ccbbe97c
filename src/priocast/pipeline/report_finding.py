"""The finding of a report: what priorities changed, in one sentence and one figure."""

from collections.abc import Iterable
from dataclasses import dataclass

from priocast.pipeline.html import Html, element
from priocast.pipeline.results import StudyResult
from priocast.pipeline.tables.delivery_time import DeliveryTime
from priocast.trace.schema import Manifest

_NARROWEST_PERCENT = 0.4  # a bar that nobody sees would look like a missing one


@dataclass(frozen=True)
class Finding:
    """The same messages without and with priorities: those of the most urgent priority, in both runs."""

    plain: DeliveryTime
    prioritised: DeliveryTime

    @property
    def ratio(self) -> float:
        """How many times faster the 99th percentile is."""
        return self.plain.p99_ms / self.prioritised.p99_ms

    def __str__(self) -> str:
        return (
            f"99 of 100 {self.plain.name} messages were delivered within {duration(self.prioritised.p99_ms)} "
            f"instead of {duration(self.plain.p99_ms)}: {_times(self.ratio)}."
        )


def finding_of(result: StudyResult) -> Finding | None:
    """The comparison of a plain and a prioritised run that are otherwise alike, under the highest load."""
    manifests = [run.manifest for run in result.runs]
    pairs = [
        (plain, prioritised)
        for plain in manifests
        for prioritised in manifests
        if prioritised.prioritised and not plain.prioritised and _compared(plain) == _compared(prioritised)
    ]
    times = {(time.run, time.priority): time for time in result.delivery_times}
    found = []
    for plain, prioritised in pairs:
        shared = {priority for run, priority in times if run == plain.run} & {
            priority for run, priority in times if run == prioritised.run
        }
        if shared:
            top = max(shared)
            found.append(Finding(times[plain.run, top], times[prioritised.run, top]))
    return max(found, key=lambda finding: finding.plain.p99_ms, default=None)


def finding_section(result: StudyResult) -> Iterable[Html]:
    """The sentence and the figure; of runs that cannot be compared, how long their messages took."""
    finding = finding_of(result)
    if finding is not None:
        yield element("p", str(finding), css="finding")
        yield _bars([("without priorities", finding.plain), ("with priorities", finding.prioritised)])
    elif result.delivery_times:
        slowest = max(result.delivery_times, key=lambda time: time.p99_ms)
        top = max(result.delivery_times, key=lambda time: time.priority)
        text = f"99 of 100 {top.name} messages were delivered within {duration(top.p99_ms)}."
        yield element("p", text, css="finding")
        if slowest != top:
            yield _bars([(f"{each.name}, {each.run}", each) for each in (slowest, top)])


def _compared(manifest: Manifest) -> tuple[object, ...]:
    """What must be the same in two runs for the priorities alone to make the difference."""
    load = manifest.labels.get("load", "")
    return manifest.group, manifest.order, len(manifest.members), manifest.delivery, manifest.policy, load


def _bars(times: list[tuple[str, DeliveryTime]]) -> Html:
    longest = max(time.p99_ms for _, time in times)
    rows = []
    for label, time in times:
        width = max(100 * time.p99_ms / longest, _NARROWEST_PERCENT)
        bar = element("div", css="bar", style=f"width: {width:.2f}%")
        value = element("b", duration(time.p99_ms))
        rows.append(element("div", element("span", label), value, bar, css="bar-row"))
    caption = element("figcaption", f"Delivery time of {times[0][1].name} messages, 99th percentile.")
    return element("figure", element("div", *rows, css="card bars"), caption)


def duration(milliseconds: float) -> str:
    """A duration with a readable unit."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def _times(ratio: float) -> str:
    if ratio < 1:
        return f"{1 / ratio:.1f} times slower"
    return f"{ratio:,.0f} times faster" if ratio >= 10 else f"{ratio:.1f} times faster"
