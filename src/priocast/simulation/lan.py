"""The simulated LAN: the abstract network of the xAMp paper, with all its properties Pn1 to Pn6.

One medium carries one frame after the other. A frame to several processes occupies it once, and arrives
everywhere at the same time, also at its own sender (Pn1, Pn4, Pn5). A corrupted frame is dropped (Pn2), so it
is an omission, and there are at most k of those in k + 1 rounds of an exchange (Pn3). A frame is in transit
for a bounded time, and so is the medium inaccessible: frames wait until it can be used again (Pn6). Faults
that are named after a property break it for a while.
"""

from functools import partial

import msgspec

from priocast.core.identity import ProcessId
from priocast.core.network_properties import NetworkProperties
from priocast.links.frame import Frame
from priocast.services.frames import SERVICE_CHANNEL, read_service_frame
from priocast.services.packets import ServiceData, ServicePacket
from priocast.simulation.counters import Counters
from priocast.simulation.event_queue import EventQueue
from priocast.simulation.faults import MICROSECOND, NetworkFault
from priocast.simulation.network import HEADER_BYTES, Arrive, SimulatedNetwork, Written
from priocast.simulation.omissions import Omissions
from priocast.simulation.scenario import LanOptions, Scenario
from priocast.simulation.seeded_random import SeededRandom


def properties_of(lan: LanOptions) -> NetworkProperties:
    """What the LAN declares."""
    return NetworkProperties(
        broadcast=True,
        error_detection=True,
        omission_degree=lan.omission_degree,
        full_duplex=True,
        network_order=True,
        delay_ns=lan.delay_us * MICROSECOND,
        inaccessibility_ns=lan.inaccessibility_us * MICROSECOND,
    )


class SimulatedLan(SimulatedNetwork):
    """A medium that all processes share; `arrive` is called with target, source and frame."""

    def __init__(
        self, scenario: Scenario, lan: LanOptions, event_queue: EventQueue, counters: Counters, arrive: Arrive
    ) -> None:
        super().__init__(scenario, event_queue, counters, arrive)
        self._lan = lan
        self._faults = scenario.faults
        self._healed_at = scenario.faults.healed_at_us * MICROSECOND
        self._free_at = 0
        self._random = SeededRandom(f"lan {scenario.seed}")
        rate = scenario.faults.omission_percent / 100
        self._omissions = Omissions(f"omissions {scenario.seed}", lan.omission_degree, rate)

    @property
    def is_faithful(self) -> bool:
        return not self._faults.network

    def transmit(self, source: ProcessId, target: str, frame: Frame, at: int) -> None:
        self._transmit(source, [target], frame, at)

    def transmit_all(self, source: ProcessId, written: Written, at: int) -> None:
        targets_of: dict[int, tuple[Frame, list[str]]] = {}
        for target, frame in written:
            targets_of.setdefault(id(frame), (frame, []))[1].append(target)
        for frame, targets in targets_of.values():
            self._transmit(source, targets, frame, at)

    def _transmit(self, source: ProcessId, targets: list[str], frame: Frame, at: int) -> None:
        """The frame waits for the medium, and arrives at all targets when it has left it."""
        self._counters.frames += 1
        self._counters.frame_bytes += HEADER_BYTES + len(frame.body)
        self._free_at = self._accessible_from(max(self._free_at, at)) + self._lan.frame_us * MICROSECOND
        arrival = self._free_at + self._lan.latency_us * MICROSECOND
        packet = read_service_frame(source, frame) if frame.channel == SERVICE_CHANNEL else None
        if packet is not None and self._happens("delay", at):
            arrival = self._free_at = arrival + self._lan.delay_us * MICROSECOND * self._random.randint(1, 3)
        changed = packet is not None and self._happens("corruption", at)
        sent = _corrupted(frame, packet, self._random) if changed and packet is not None else frame
        for target in targets:
            if self._is_blocked((source.name, target)) or (
                packet is not None and self._is_lost(source, target, packet, at)
            ):
                continue
            received, late = sent, 0
            if packet is not None and target != source.name and self._happens("inconsistency", at):
                received = _corrupted(frame, packet, self._random)
            if packet is not None and self._happens("disorder", at):
                late = self._random.randint(0, self._lan.delay_us * MICROSECOND)
            self._event_queue.schedule(arrival + late, partial(self._arrive, target, source, received))

    def _is_lost(self, source: ProcessId, target: str, packet: ServicePacket, at: int) -> bool:
        if target == source.name:
            return self._happens("half duplex", at)
        if self._happens("omissions", at):
            return True
        is_lost = at < self._healed_at and self._omissions(source, ProcessId(target, 0), packet)
        if is_lost:
            self._counters.count("omission")
        return is_lost

    def _accessible_from(self, time: int) -> int:
        """When the medium can be used, if not at this time."""
        for outage in self._faults.inaccessible:
            if outage.from_us * MICROSECOND <= time < outage.until_us * MICROSECOND:
                self._counters.count("inaccessibility")
                return outage.until_us * MICROSECOND
        return time

    def _happens(self, kind: str, at: int) -> bool:
        fault = next((each for each in self._faults.network if each.kind == kind), None)
        return fault is not None and self._is_active(fault, at)

    def _is_active(self, fault: NetworkFault, at: int) -> bool:
        in_time = fault.from_us * MICROSECOND <= at < fault.until_us * MICROSECOND
        happens = in_time and self._random.chance(fault.percent)
        if happens:
            self._counters.count(f"network: {fault.kind}")
        return happens


def _corrupted(frame: Frame, packet: ServicePacket, random: SeededRandom) -> Frame:
    """A frame with one wrong byte: in the payload, which nothing checks, or anywhere."""
    index = random.randrange(len(frame.body))
    if isinstance(packet, ServiceData):
        index = frame.body.index(packet.units[0]) + random.randrange(len(packet.units[0]))
    wrong = bytes([frame.body[index] ^ (1 << random.randrange(7))])
    return msgspec.structs.replace(frame, body=frame.body[:index] + wrong + frame.body[index + 1 :])
