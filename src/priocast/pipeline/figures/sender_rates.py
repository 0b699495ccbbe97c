"""Figures of senders: how evenly their messages are delivered, and their shares of the slots."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from priocast.pipeline.figures.style import (
    INK,
    add_legend_above,
    colours_of_runs,
    line_of,
    new_figure,
    styled,
)
from priocast.pipeline.tables.sender_times import SenderRate
from priocast.trace.weight_samples import WeightSample, changes_of

_TICK_S = 0.1
_TICKS_PER_SECOND = 10
_SHOWN_TICKS = 100


@styled
def draw_delivery_rates(rates: Sequence[SenderRate]) -> Figure:
    """Figure 7: messages per second of one sender, as it sends them and as another member delivers them."""
    figure, panels = new_figure(2.8, panels=len(rates))
    for rate, axes in zip(rates, panels, strict=True):
        seconds = range(len(rate.sent) // _TICKS_PER_SECOND)
        for name, ticks, style in (("sent", rate.sent, ":"), ("delivered", rate.delivered, "-")):
            values = [sum(ticks[_TICKS_PER_SECOND * at : _TICKS_PER_SECOND * (at + 1)]) for at in seconds]
            colour = INK if name == "sent" else "#0072b2"
            axes.plot([at + 0.5 for at in seconds], values, style, color=colour, label=name)
        axes.axvline(rate.settled_s, color=INK, linewidth=0.8, linestyle="--")
        axes.set_title(rate.run)
        axes.set_xlabel("time in the run (s)")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel(f"messages of {rates[0].sender} per second")
    add_legend_above(panels[0])
    return figure


@styled
def draw_ticks(rates: Sequence[SenderRate]) -> Figure:
    """Figure 8: sent and delivered messages of one sender in each tenth of a second, in the settled part."""
    figure, panels = new_figure(2.8, panels=len(rates))
    for rate, axes in zip(rates, panels, strict=True):
        first = round(rate.settled_s * _TICKS_PER_SECOND)
        shown = range(first, min(first + _SHOWN_TICKS, len(rate.sent)))
        times = [tick * _TICK_S for tick in shown]
        axes.step(times, [rate.delivered[tick] for tick in shown], color="#0072b2", label="delivered")
        axes.plot(times, [rate.sent[tick] for tick in shown], ":", color=INK, label="sent")
        axes.set_title(rate.run)
        axes.set_xlabel("time in the run (s)")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("messages per 100 ms")
    add_legend_above(panels[0])
    return figure


@styled
def draw_weights(samples: Sequence[WeightSample]) -> Figure:
    """One panel for each run: each sender's share of the slots, its true share, and the changes."""
    runs = list(dict.fromkeys(sample.run for sample in samples))
    senders = sorted({sample.sender for sample in samples})
    colours = colours_of_runs(senders)
    figure, panels = new_figure(3.6, panels=len(runs))
    for run, axes in zip(runs, panels, strict=True):
        of_run = [sample for sample in samples if sample.run == run]
        for index, sender in enumerate(senders):
            own = [sample for sample in of_run if sample.sender == sender]
            times = [sample.second for sample in own]
            axes.step(times, [each.share for each in own], where="post", color=colours[sender], label=sender)
            axes.plot(
                times, [each.true_share for each in own], line_of(2), color=colours[sender], linewidth=1
            )
            if index == 0:
                for change in changes_of(own):
                    axes.axvline(change.second, color=INK, linewidth=0.6, alpha=0.5)
        axes.set_title(run)
        axes.set_xlabel("time in the run (s)")
        axes.set_ylim(0, 1)
    panels[0].set_ylabel("share of the slots\n(dotted: of the messages)")
    add_legend_above(panels[0])
    return figure
