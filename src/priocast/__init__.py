"""Prioritised, totally ordered group communication.

Every member of a group sees the same messages in the same order, and the urgent ones first.
"""

from typing import TYPE_CHECKING

from priocast.core.errors import (
    DeadlineExceeded,
    GroupClosed,
    InvalidInput,
    Overloaded,
    PayloadTooLarge,
    PeerFault,
    PriocastError,
    PriorityOutOfRange,
    UnknownProtocol,
)
from priocast.core.events import DeliveredBatch, Delivery, Event, Evicted, Restored, ViewChange
from priocast.core.identity import MessageId, ProcessId
from priocast.core.message import Message
from priocast.core.priority import BACKGROUND, ELEVATED, HIGHEST, LOWEST, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.core.starvation import Ageing, PeriodicRelease, Strict
from priocast.core.view import View
from priocast.core.view_reason import Eviction, ViewReason
from priocast.membership.options import MembershipOptions
from priocast.network.memory import MemoryHub
from priocast.network.security import TlsSecurity
from priocast.runtime.blocking import BlockingGroup, join_blocking
from priocast.runtime.client import Client, open_client
from priocast.runtime.configuration import State
from priocast.runtime.gc_freeze import freeze_gc
from priocast.runtime.group import Group
from priocast.runtime.node import Node, join, open_node
from priocast.runtime.status import Status

__all__ = [
    "BACKGROUND",
    "ELEVATED",
    "HIGHEST",
    "LOWEST",
    "ROUTINE",
    "URGENT",
    "Ageing",
    "BlockingGroup",
    "Client",
    "DeadlineExceeded",
    "DeliveredBatch",
    "Delivery",
    "Event",
    "Evicted",
    "Eviction",
    "Group",
    "GroupClosed",
    "InvalidInput",
    "MembershipOptions",
    "MemoryHub",
    "Message",
    "MessageId",
    "Node",
    "OrderingOptions",
    "Overloaded",
    "PayloadTooLarge",
    "PeerFault",
    "PeriodicRelease",
    "PriocastError",
    "PriorityOutOfRange",
    "ProcessId",
    "Restored",
    "State",
    "Status",
    "Strict",
    "TlsSecurity",
    "UnknownProtocol",
    "View",
    "ViewChange",
    "ViewReason",
    "freeze_gc",
    "join",
    "join_blocking",
    "open_client",
    "open_node",
]

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """The version is looked up when it is asked for: reading it takes a file or two."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("priocast")
