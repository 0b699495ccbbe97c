"""Omissions of a network with a bounded omission degree (Pn3 of the xAMp paper).

Of k + 1 rounds of an exchange, one has no omission. A round is a transmission and the responses to it.
"""

from collections import defaultdict

from priocast.core.identity import ProcessId
from priocast.services.packets import (
    Inquiry,
    MessageDecision,
    MessagePacket,
    Report,
    Response,
    ServiceData,
    ServicePacket,
    StatusRequest,
    TransmissionId,
)
from priocast.simulation.seeded_random import SeededRandom

_OPENING = ServiceData | MessageDecision | Inquiry | StatusRequest


class Omissions:
    """Random omissions within an omission degree; `rate` is their share in a round that has any."""

    def __init__(self, seed: int | str, degree: int, rate: float) -> None:
        self._random = SeededRandom(seed)
        self._degree = degree
        self._rate = rate
        self._last: dict[tuple[TransmissionId, str], ServicePacket] = {}
        self._lossy: dict[tuple[TransmissionId, str], int] = defaultdict(int)
        self._is_lossy: dict[tuple[TransmissionId, str], bool] = {}

    def __call__(self, source: ProcessId, target: ProcessId, packet: ServicePacket) -> bool:
        """Whether this packet is lost on the way to the target."""
        if not isinstance(packet, MessagePacket):
            return False
        exchange = packet.id, _exchange_of(packet)
        if isinstance(packet, _OPENING) and self._last.get(exchange) is not packet:
            self._last[exchange] = packet
            lossy = self._lossy[exchange] < self._degree and self._random.random() < 0.5
            self._is_lossy[exchange] = lossy
            self._lossy[exchange] += lossy
        return self._is_lossy.get(exchange, False) and self._random.random() < self._rate


def _exchange_of(packet: MessagePacket) -> str:
    match packet:
        case ServiceData() | Response():
            return "data"
        case Inquiry() | Report():
            return "inquiry"
    return "decision"
