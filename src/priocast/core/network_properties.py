"""What a network guarantees: the properties Pn1 to Pn6 of the xAMp paper's abstract network (its Table 2).

Every network declares which of them it has. A quality of service that needs a property asks here. If it
is missing, the quality obtains it in another way or is rejected with the name of the property.
"""

import msgspec

from priocast.core.errors import InvalidOption
from priocast.core.options import check_types


class NetworkProperties(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of one network; the defaults are those of a network that guarantees nothing.

    - `broadcast` (Pn1): one transmission reaches several processes, and all that receive
      it receive the same frame.
    - `error_detection` (Pn2): a frame that was corrupted in transit is detected and dropped.
    - `omission_degree` (Pn3): of that many successive transmissions and one more, at least one arrives
      everywhere. None: there is no such bound.
    - `full_duplex` (Pn4): a process receives its own transmissions as the others do.
    - `network_order` (Pn5): frames arrive in the same order at all processes that receive them.
    - `delay_ns` (Pn6): how long a frame is in transit at most. None: there is no such bound.
    - `inaccessibility_ns`: how long the whole network may be silent without being considered failed.
    """

    broadcast: bool = False
    error_detection: bool = False
    omission_degree: int | None = None
    full_duplex: bool = False
    network_order: bool = False
    delay_ns: int | None = None
    inaccessibility_ns: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("omission_degree", "delay_ns", "inaccessibility_ns"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidOption(f"{name} is {value}: it must not be negative")
