"""The protocols, by name."""

from priocast.core.errors import UnknownProtocol
from priocast.core.protocol import Protocol
from priocast.protocols.sequencer_ub import SequencerUb

PROTOCOLS: dict[str, type[Protocol]] = {protocol.NAME: protocol for protocol in (SequencerUb,)}


def find_protocol(name: str) -> type[Protocol]:
    """The protocol of that name, or an error that lists the names there are."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise UnknownProtocol(
            f"there is no protocol {name!r}; there are: {', '.join(sorted(PROTOCOLS))}"
        ) from None
