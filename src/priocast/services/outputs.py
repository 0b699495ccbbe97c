"""What the state machines of the qualities of service return: things to send, to deliver and to report."""

import msgspec

from priocast.core.identity import ProcessId
from priocast.services.packets import ServiceData, ServicePacket, TransmissionId


class Multicast(msgspec.Struct, frozen=True):
    """Send a packet to these processes, which may include this one; at once, unless it `can_wait`."""

    to: tuple[ProcessId, ...]
    packet: ServicePacket
    can_wait: bool = False


class Arrived(msgspec.Struct, frozen=True):
    """A message was received for the first time; its order is decided next."""

    data: ServiceData


class Deliver(msgspec.Struct, frozen=True):
    """The application can consume a message."""

    data: ServiceData


class Settled(msgspec.Struct, frozen=True):
    """Every recipient has received this message, or has left the view."""

    id: TransmissionId


class GivenUp(msgspec.Struct, frozen=True):
    """This process has rejected a message: it will never deliver it, and nothing waits for it here."""

    data: ServiceData


class Finished(msgspec.Struct, frozen=True):
    """A transmission of this process has ended; `receipt` is what the callers of `send` get.

    It carried so many messages, from the one that the receipt names on.
    """

    receipt: "SendReceipt"
    message_count: int = 1


class Suspected(msgspec.Struct, frozen=True):
    """A process did not answer as often as the network allows omissions: it has failed."""

    process: ProcessId


class SendReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message that was sent with a quality of service.

    `answered` are the recipients that have it, `rejected` those that could not accept it and why, `missing`
    those that did not answer. `accepted` says whether as many recipients have it as its quality asks for; an
    atomic or tight message that is not accepted is delivered nowhere. `rounds` counts its transmissions.
    """

    message: TransmissionId
    accepted: bool
    answered: tuple[str, ...] = ()
    rejected: dict[str, str] = {}
    missing: tuple[str, ...] = ()
    rounds: int = 0


ServiceOutput = Multicast | Arrived | Deliver | Settled | GivenUp | Finished | Suspected
