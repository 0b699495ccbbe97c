"""The part of a report about senders: delivery times at the other members, rates over time, weights."""

from collections.abc import Iterable

from priocast.pipeline.figures.sender_rates import draw_delivery_rates, draw_ticks, draw_weights
from priocast.pipeline.figures.style import render_svg
from priocast.pipeline.html import Content, Html, element, figure, table
from priocast.pipeline.results import StudyResult
from priocast.pipeline.tables.sender_times import SenderTime
from priocast.trace.weight_samples import changes_of


def senders_section(result: StudyResult) -> Iterable[Html]:
    """The section, if any run was measured by sender."""
    if not result.sender_times:
        return
    yield element("h2", "Senders")
    yield element(
        "p",
        "From a message's broadcast to its delivery at each of the other members, in ms: the mean, the "
        "variance, the median and the 99th percentile; first of the messages that were sent before the load "
        "had settled, then of the others. An empty sender stands for all of them.",
        css="soft",
    )
    headings = ["run", "sender", "part", "messages", "mean", "variance", "median", "99 %"]
    yield table(headings, map(_row, result.sender_times), numbers_from=3)
    chosen = _one_sender(result)
    shown = [rate for rate in result.sender_rates if rate.sender == chosen]
    if shown:
        yield figure(
            render_svg(draw_delivery_rates(shown)),
            f"Messages of {chosen} per second, as it sent them and as another member delivered them. The "
            "dashed line is where the load counts as settled.",
        )
        yield figure(render_svg(draw_ticks(shown)), f"The same in tenths of a second, from {chosen}.")
    if result.weights:
        yield figure(
            render_svg(draw_weights(result.weights)),
            "The senders' shares of the slots, and, dotted, of the messages that are sent. A vertical line "
            "is a change of the distribution.",
        )
        yield table(["run", "change at (s)", "distribution"], _changes(result))


def _row(time: SenderTime) -> list[Content]:
    values = (time.mean_ms, time.variance_ms2, time.median_ms, time.p99_ms)
    part = "settled" if time.settled else "before"
    return [time.run, time.sender, part, time.messages, *(f"{value:,.3g}" for value in values)]


def _one_sender(result: StudyResult) -> str:
    """The first of the senders by name, which the figures show."""
    return min((rate.sender for rate in result.sender_rates), default="")


def _changes(result: StudyResult) -> Iterable[list[Content]]:
    for run in dict.fromkeys(sample.run for sample in result.weights):
        of_run = [sample for sample in result.weights if sample.run == run]
        for change in changes_of([sample for sample in of_run if sample.sender == of_run[0].sender]):
            yield [run, f"{change.second:.1f}", change.distribution]
