"""A fault-injection campaign on the qualities of service: which faults are noticed, and which are tolerated.

Each kind of fault is injected alone into simulated groups that send with one quality. Faults of the first
part are those that the qualities are made for: the promises must hold. Those of the second part break what
the qualities assume of the network: the campaign shows which promises are lost then, and whether anybody
notices.
"""

import re
from pathlib import Path

import msgspec

from priocast.core.quality import QualityKind, parse_quality
from priocast.core.violation import Violation
from priocast.simulation.faults import NetworkFaultKind
from priocast.simulation.service_generator import (
    EVERY_QUALITY,
    INACCESSIBLE_US,
    ServiceFaults,
    generate_service_scenario,
)
from priocast.simulation.simulator import SimulatedRun, run_scenario
from priocast.simulation.trace_writer import write_run

_NOTHING = ServiceFaults(omissions=False, crashes=0, inaccessible_us=0)
_LONG_US = 8 * INACCESSIBLE_US
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")


class InjectedFault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault: its name, how runs get it, and which counters of a run say how often it occurred.

    `assumed`: the qualities assume that it can happen, and keep their promises. It is not injected into runs
    of the kind `except_for`.
    """

    name: str
    faults: ServiceFaults
    counter: str
    assumed: bool
    except_for: QualityKind | None = None


def _broken(name: str, kind: NetworkFaultKind) -> InjectedFault:
    faults = msgspec.structs.replace(_NOTHING, broken=kind)
    return InjectedFault(name=name, faults=faults, counter=f"network: {kind}", assumed=False)


FAULTS = (
    InjectedFault(
        name="omission",
        faults=ServiceFaults(crashes=0, inaccessible_us=0),
        counter="omission",
        assumed=True,
    ),
    InjectedFault(
        name="crash",
        faults=ServiceFaults(omissions=False, crashes_min=1, inaccessible_us=0),
        counter="crash",
        assumed=True,
    ),
    InjectedFault(
        name="inaccessibility",
        faults=ServiceFaults(omissions=False, crashes=0),
        counter="inaccessibility",
        assumed=True,
    ),
    InjectedFault(
        name="slow recipient",
        faults=msgspec.structs.replace(_NOTHING, no_room=True),
        counter="slow recipient",
        assumed=True,
        except_for=QualityKind.DELTA,  # a slow application takes a message later than it is offered
    ),
    _broken("inconsistency (Pn1)", "inconsistency"),
    _broken("corruption (Pn2)", "corruption"),
    _broken("omissions (Pn3)", "omissions"),
    _broken("half duplex (Pn4)", "half duplex"),
    _broken("disorder (Pn5)", "disorder"),
    _broken("delay (Pn6)", "delay"),
    InjectedFault(
        name="long inaccessibility (Pn6)",
        faults=msgspec.structs.replace(_NOTHING, inaccessible_us=_LONG_US),
        counter="inaccessibility",
        assumed=False,
    ),
)


class InjectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which faults are injected into runs of which qualities, and how many runs there are of each."""

    seeds: int = 5
    qualities: tuple[str, ...] = EVERY_QUALITY
    faults: tuple[InjectedFault, ...] = FAULTS

    def cells(self) -> list[tuple[InjectedFault, str, int]]:
        """Every fault, quality and seed."""
        return [
            (fault, quality, seed)
            for fault in self.faults
            for quality in self.qualities
            if parse_quality(quality).kind is not fault.except_for
            for seed in range(self.seeds)
        ]


def inject(fault: InjectedFault, quality: str, seed: int, traces: Path) -> tuple[Violation, ...]:
    """Run one seed with one kind of fault, write its trace, and return what the simulator found broken."""
    run = run_scenario(generate_service_scenario(seed, (quality,), fault.faults))
    broken = sorted({violation.guarantee for violation in run.violations})
    name = _NOT_IN_NAMES.sub("-", f"{fault.name} {quality} {seed}")
    labels = {
        "title": f"{fault.name}, {quality}, seed {seed}",
        "fault": fault.name,
        "quality": quality,
        "assumed": "yes" if fault.assumed else "no",
        "injected": str(_injected(fault, run)),
        "noticed": str(run.counters.occurred.get("fault noticed", 0)),
        "broken": ", ".join(broken),
    }
    write_run(run, traces / name, name=name, labels=labels)
    return tuple(run.violations)


def _injected(fault: InjectedFault, run: SimulatedRun) -> int:
    if fault.faults.no_room:
        return 1
    return run.counters.occurred.get(fault.counter, 0)
