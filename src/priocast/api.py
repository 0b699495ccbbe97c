"""All public names. `priocast` loads this module when one of them is first used."""

from priocast.core.errors import (
    CommandFailed,
    DamagedLog,
    DatabaseUnusable,
    DeadlineExceeded,
    ExtraMissing,
    FarAhead,
    ForeignFrame,
    ForeignTrace,
    GroupClosed,
    InvalidAddress,
    InvalidInput,
    InvalidOption,
    JavaMissing,
    JoinRejected,
    LinkOverflow,
    LogFault,
    NoQuorum,
    OutcomeUnknown,
    Overloaded,
    PayloadTooLarge,
    PeerFault,
    PriocastError,
    PriorityOutOfRange,
    Rejected,
    SparkEnded,
    StatementRejected,
    TraceFault,
    TransactionAborted,
    TransactionConflict,
    TrimmedPosition,
    UnavailableFeed,
    UnknownProtocol,
    UnreadableTrace,
    UnusableKey,
    UnusableLog,
)
from priocast.core.events import (
    DeliveredBatch,
    Delivery,
    Event,
    Evicted,
    Restored,
    ServiceDelivery,
    ViewChange,
)
from priocast.core.identity import MessageId, ProcessId
from priocast.core.message import Message
from priocast.core.network_properties import NetworkProperties
from priocast.core.priority import BACKGROUND, ELEVATED, HIGHEST, LOWEST, ROUTINE, URGENT
from priocast.core.protocol import OrderingOptions
from priocast.core.quality import (
    ATOMIC,
    CAUSAL,
    RELIABLE,
    TIGHT,
    UNRELIABLE,
    Quality,
    QualityKind,
    at_least,
    at_least_to,
    atomic,
    best_effort,
    best_effort_to,
    delta,
    parse_quality,
)
from priocast.core.stamp import DistributionId, Stamp
from priocast.core.starvation import Ageing, PeriodicRelease, Strict
from priocast.core.view import View
from priocast.core.view_reason import Eviction, ViewReason
from priocast.feed.feed import Feed, open_feed
from priocast.feed.feed_reader import FeedReader
from priocast.membership.options import MembershipOptions
from priocast.network.interface import Network
from priocast.network.memory import MemoryHub
from priocast.network.security import TlsSecurity
from priocast.protocols.adaptive.policies import register_policy
from priocast.protocols.adaptive.policies.policy import AdaptationPolicy
from priocast.replication.commands import CommandId
from priocast.replication.objects.counter import ReplicatedCounter
from priocast.replication.objects.dictionary import ReplicatedDict
from priocast.replication.objects.election import LeaderElection
from priocast.replication.objects.lock import ReplicatedLock
from priocast.replication.objects.methods import query, replicated
from priocast.replication.objects.replicated_object import ReplicatedObject
from priocast.replication.objects.replicating import replicate, replicate_on
from priocast.replication.objects.work_queue import ReplicatedQueue, WorkItem
from priocast.replication.opening import DurabilityName, open_replica, open_replica_on
from priocast.replication.questions import Questions
from priocast.replication.replica import Replica
from priocast.replication.sessions import Outcome
from priocast.replication.state_machine import Applied, Continue, FollowsViews, StateMachine
from priocast.runtime.blocking import BlockingGroup, join_blocking
from priocast.runtime.broadcast_handle import BroadcastHandle
from priocast.runtime.client import Client, open_client
from priocast.runtime.configuration import State
from priocast.runtime.gc_freeze import freeze_gc
from priocast.runtime.group import Group
from priocast.runtime.node import Node, join, open_node
from priocast.runtime.parameters import (
    DeliveryGuarantee,
    GroupParameters,
    JoinParameters,
    NodeParameters,
    OrderName,
    PartitionPolicy,
    Transport,
)
from priocast.runtime.status import (
    GroupState,
    InaccessibilityStatus,
    PeerStatus,
    QualityStatus,
    QueueStatus,
    StallStatus,
    Status,
)
from priocast.services.options import ServiceOptions
from priocast.services.outputs import SendReceipt
from priocast.services.packets import ServiceStream, TransmissionId

__all__ = [
    "ATOMIC",
    "BACKGROUND",
    "CAUSAL",
    "ELEVATED",
    "HIGHEST",
    "LOWEST",
    "RELIABLE",
    "ROUTINE",
    "TIGHT",
    "UNRELIABLE",
    "URGENT",
    "AdaptationPolicy",
    "Ageing",
    "Applied",
    "BlockingGroup",
    "BroadcastHandle",
    "Client",
    "CommandFailed",
    "CommandId",
    "Continue",
    "DamagedLog",
    "DatabaseUnusable",
    "DeadlineExceeded",
    "DeliveredBatch",
    "Delivery",
    "DeliveryGuarantee",
    "DistributionId",
    "DurabilityName",
    "Event",
    "Evicted",
    "Eviction",
    "ExtraMissing",
    "FarAhead",
    "Feed",
    "FeedReader",
    "FollowsViews",
    "ForeignFrame",
    "ForeignTrace",
    "Group",
    "GroupClosed",
    "GroupParameters",
    "GroupState",
    "InaccessibilityStatus",
    "InvalidAddress",
    "InvalidInput",
    "InvalidOption",
    "JavaMissing",
    "JoinParameters",
    "JoinRejected",
    "LeaderElection",
    "LinkOverflow",
    "LogFault",
    "MembershipOptions",
    "MemoryHub",
    "Message",
    "MessageId",
    "Network",
    "NetworkProperties",
    "NoQuorum",
    "Node",
    "NodeParameters",
    "OrderName",
    "OrderingOptions",
    "Outcome",
    "OutcomeUnknown",
    "Overloaded",
    "PartitionPolicy",
    "PayloadTooLarge",
    "PeerFault",
    "PeerStatus",
    "PeriodicRelease",
    "PriocastError",
    "PriorityOutOfRange",
    "ProcessId",
    "Quality",
    "QualityKind",
    "QualityStatus",
    "Questions",
    "QueueStatus",
    "Rejected",
    "Replica",
    "ReplicatedCounter",
    "ReplicatedDict",
    "ReplicatedLock",
    "ReplicatedObject",
    "ReplicatedQueue",
    "Restored",
    "SendReceipt",
    "ServiceDelivery",
    "ServiceOptions",
    "ServiceStream",
    "SparkEnded",
    "StallStatus",
    "Stamp",
    "State",
    "StateMachine",
    "StatementRejected",
    "Status",
    "Strict",
    "TlsSecurity",
    "TraceFault",
    "TransactionAborted",
    "TransactionConflict",
    "TransmissionId",
    "Transport",
    "TrimmedPosition",
    "UnavailableFeed",
    "UnknownProtocol",
    "UnreadableTrace",
    "UnusableKey",
    "UnusableLog",
    "View",
    "ViewChange",
    "ViewReason",
    "WorkItem",
    "at_least",
    "at_least_to",
    "atomic",
    "best_effort",
    "best_effort_to",
    "delta",
    "freeze_gc",
    "join",
    "join_blocking",
    "open_client",
    "open_feed",
    "open_node",
    "open_replica",
    "open_replica_on",
    "parse_quality",
    "query",
    "register_policy",
    "replicate",
    "replicate_on",
    "replicated",
]
