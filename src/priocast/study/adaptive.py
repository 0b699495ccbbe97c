"""How the adaptive order follows its senders: the adaptive paper's experiments (Figures 7 and 8), and more.

The same load is sent with the adaptive order, with the same order and equal weights that never adapt, with
`all-ack`, in which every message waits for the slowest sender, with `causal-history`, and with the quality
`causal`, which orders nothing and is the best that any order can reach. It runs in the simulator and on real
processes, with constant and with changing rates.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.protocol import OrderingOptions
from priocast.core.violation import Violation
from priocast.links.frame import Frame
from priocast.membership.datagrams import CHANNEL
from priocast.membership.options import MembershipOptions
from priocast.protocols.adaptive.packets import FilledSlot, SkippedTurns
from priocast.protocols.adaptive.slots import DEFAULT_ID
from priocast.services.frames import SERVICE_CHANNEL
from priocast.simulation.faults import FaultOptions
from priocast.simulation.scenario import NetworkOptions, Scenario, WorkloadOptions
from priocast.simulation.simulator import run_scenario
from priocast.simulation.trace_writer import write_run
from priocast.study.adaptive_load import PAYLOAD_BYTES, SENDERS, AdaptiveLoad
from priocast.study.adaptive_worker import SenderReport, SenderTask, SlotSample
from priocast.testing.process_group import WorkerProgram, loopback_members, member_name, run_tasks
from priocast.trace.schema import SETTLED_LABEL
from priocast.trace.weight_samples import WeightSample

ALL_ACK, CAUSAL = "all-ack", "causal"
_FOUNDED_US = 1_000_000
_LATENCY_US, _SPREAD_US = 200, 100
#: No sender is limited by what others have consumed: the paper has no flow control.
_WINDOW = 1_024
#: How many pauses of a slow sender all-ack waits: the paper's never acknowledges without a message.
_PATIENCE = 4
_WORKER = WorkerProgram("priocast.study.adaptive_worker", SenderReport)


class LoadVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the study: a way of sending under a load, in an environment.

    The way is an order, an adaptation policy of the adaptive order, or a quality of service.
    """

    environment: str
    way: str
    load: AdaptiveLoad
    order: str = "adaptive"
    adaptation: str = OrderingOptions().adaptation
    quality: str = ""

    @property
    def name(self) -> str:
        """The name of the run."""
        return f"{self.environment}-{self.way}"

    @property
    def options(self) -> OrderingOptions:
        """The options of its order."""
        acknowledge_ms = 1_000 * _PATIENCE * self.load.slow_seconds
        return OrderingOptions(window=_WINDOW, acknowledge_ms=acknowledge_ms, adaptation=self.adaptation)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its trace."""
        return {"title": self.name, SETTLED_LABEL: self.load.settled}


class LoadRun(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run: the weights over time, if its order has any, and what it violated."""

    variant: LoadVariant
    samples: list[SlotSample]
    violations: list[Violation] = []
    same_digest: bool = True


def variants(environment: str, load: AdaptiveLoad) -> list[LoadVariant]:
    """The runs to compare under one load; the first one adapts, the last one is the floor."""
    return [
        LoadVariant(environment=environment, way="adaptive", load=load),
        LoadVariant(environment=environment, way=ALL_ACK, load=load, order="all-ack"),
        LoadVariant(environment=environment, way="equal-weights", load=load, adaptation="equal"),
        LoadVariant(environment=environment, way="causal-history", load=load, order="causal-history"),
        LoadVariant(environment=environment, way=CAUSAL, load=load, order="sequencer-ub", quality="causal"),
    ]


def simulate(variant: LoadVariant, traces: Path) -> LoadRun:
    """Run a variant in the simulator, and write its trace."""
    watched = _Weights()
    run = run_scenario(_scenario(variant), watched.tap)
    write_run(run, traces / variant.name, variant.name, variant.labels)
    return LoadRun(variant=variant, samples=watched.samples, violations=run.violations)


def carry_out(variant: LoadVariant, traces: Path, on_progress: Callable[[int], None]) -> LoadRun:
    """Run a variant on processes of this machine, over TCP on the loopback network."""
    load = variant.load
    tasks = [
        SenderTask(
            **member,
            run=variant.name,
            order=variant.order,
            options=variant.options,
            trace=str(traces / variant.name),
            labels=variant.labels,
            times_us=load.times_us(index),
            total=load.total,
            payload_bytes=PAYLOAD_BYTES,
            quality=variant.quality,
        )
        for index, member in enumerate(loopback_members(SENDERS))
    ]
    reports = run_tasks(_WORKER, tasks, on_progress)
    return LoadRun(
        variant=variant,
        samples=reports[0].samples,
        same_digest=len({report.digest for report in reports}) == 1,
    )


def _scenario(variant: LoadVariant) -> Scenario:
    """A small local network, in which one more sender may join."""
    load = variant.load
    nobody = (0,) * load.senders
    late = (_FOUNDED_US + load.joins_at_us,) if load.joins else ()
    return Scenario(
        seed=1998,
        order=variant.order,
        ordering=variant.options,
        membership=MembershipOptions(founders=SENDERS, slow_ms=60_000),
        network=NetworkOptions(
            latency_us=_LATENCY_US, latency_spread_us=_SPREAD_US, latency_shape="exponential"
        ),
        workload=WorkloadOptions(
            messages=nobody,
            rate_per_second=nobody,
            consume_us=nobody,
            start_us=(0,) * SENDERS + late,
            payload_bytes_min=PAYLOAD_BYTES,
            payload_bytes_max=PAYLOAD_BYTES,
            phases=load.phases(_FOUNDED_US),
            until_us=_FOUNDED_US + load.until_us,
            quality=variant.quality,
        ),
        # There are no faults; all members must be in one view some time after the last one has started.
        faults=FaultOptions(healed_at_us=max(late, default=0)),
    )


class _Weights:
    """Reads the weights of new distributions from the frames of a simulated run; every view has its own."""

    _decoder = msgspec.msgpack.Decoder(FilledSlot | SkippedTurns)

    def __init__(self) -> None:
        self.samples: list[SlotSample] = []
        self._views: dict[int, int] = {}
        self._known: set[str] = set()

    def tap(self, time_ns: int, source: ProcessId, target: str, frame: Frame) -> None:
        """A frame has arrived."""
        if frame.channel in (CHANNEL, SERVICE_CHANNEL) or not frame.body:
            return
        try:
            packet = self._decoder.decode(frame.body)
        except msgspec.DecodeError:
            return
        view = self._views.setdefault(frame.channel, len(self._views) + 1)
        distribution = f"{view}/{packet.distribution}"
        weights = packet.weights or (1,) * (SENDERS + view - 1)
        is_new = distribution not in self._known
        if is_new and (packet.weights or packet.distribution == DEFAULT_ID):
            self._known.add(distribution)
            second = time_ns / 1e9 - _FOUNDED_US / 1e6
            by_member = {member_name(rank): weight for rank, weight in enumerate(weights)}
            self.samples.append(SlotSample(second, distribution, by_member))


def weights_over_time(run: LoadRun) -> Iterator[WeightSample]:
    """At ten times in each second: each sender's share of the slots, and its true share of the messages."""
    load, samples = run.variant.load, run.samples
    if not samples:
        return
    at = 0
    for tick in range(int(load.seconds * 10)):
        second = tick / 10
        while at + 1 < len(samples) and samples[at + 1].second <= second:
            at += 1
        distribution, weights = samples[at].distribution, samples[at].weights
        for rank, true_share in enumerate(load.true_shares(second)):
            name = member_name(rank)
            share = weights.get(name, 0) / sum(weights.values())
            yield WeightSample(run.variant.name, second, distribution, name, share, true_share)
