"""The columns of the tables of a trace: name, type, and what each means.

The Parquet schemas, the tables of `docs/trace.md` and those that Spark shows are all made from these lists.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from priocast.core.view_reason import Eviction
from priocast.trace.schema import SCHEMA_VERSION, GroupEventRow, MessageRow, ServiceRow, TraceRow

if TYPE_CHECKING:
    import pyarrow

MESSAGES = "messages"
GROUP_EVENTS = "group_events"
SERVICES = "services"


class TraceColumn(NamedTuple):
    """A column: its type in `docs/trace.md`, its meaning, and for which events it has one (empty: all)."""

    name: str
    type: str
    meaning: str
    events: str = ""


#: What every table begins with. The run is the same in all rows of a segment; the other columns are recorded.
RUN_COLUMN = TraceColumn("run", "string", "the name of the run, as in its manifest")
PROCESS_COLUMNS = (
    TraceColumn("member", "string", "the name of the member that recorded the row"),
    TraceColumn("incarnation", "int64", "its incarnation: together they are the process `name#incarnation`"),
    TraceColumn("view", "int64", "the number of the view; 0 before the first one"),
    TraceColumn("coordinator", "string", "the coordinator of the view; empty before the first one"),
    TraceColumn("step", "int64", "the order of the events at the process, in all tables together"),
    TraceColumn("time_ns", "int64", "the time of the driver's clock; `clock` in the manifest says of which"),
    TraceColumn("event", "string", "what happened"),
)
#: What every table ends with; the same in all rows that were written together.
SEGMENT_COLUMNS = (
    TraceColumn(
        "clock_offset_ns",
        "int64",
        "added to `time_ns`: nanoseconds since 1970 (UTC) by the clock of the machine; null in a simulated "
        "run and for the rows that only a journal has",
    ),
    TraceColumn("schema_version", "int32", "the version of this schema"),
)
MESSAGE_COLUMNS = (
    TraceColumn("packet", "string", "the kind of packet", "`sent`, `received`"),
    TraceColumn(
        "peer", "string", "to which member (empty: to all), or from which it came", "`sent`, `received`"
    ),
    TraceColumn("sender", "string", "the member that broadcast the messages"),
    TraceColumn("sender_incarnation", "int64", "its incarnation"),
    TraceColumn("level", "int32", "the priority in a prioritised group, 0 in a plain one"),
    TraceColumn("first", "int64", "the number of the first message"),
    TraceColumn("count", "int32", "how many messages there are"),
    TraceColumn("priorities", "binary", "in a plain group: the priority of each message, one byte each"),
    TraceColumn("safe", "bool", "the sender asked for safe delivery"),
    TraceColumn("to", "string", "the recipients by name, separated by commas; empty: all members"),
    TraceColumn("client", "string", "the client on whose behalf it was broadcast"),
    TraceColumn("request", "int64", "the number of the client's request"),
    TraceColumn("position", "int64", "the position of the first message, or -1"),
    TraceColumn("bytes", "int64", "the encoded size; 0 if the packet only references the messages"),
    TraceColumn("backlog", "int64", "how many messages waited to be ordered at the process"),
    TraceColumn(
        "distribution", "string", "in a view of the adaptive order: of the first stamp", "`delivered`"
    ),
    TraceColumn("stamp_number", "int64", "as above: the number of the first stamp, or -1", "`delivered`"),
)
GROUP_EVENT_COLUMNS = (
    TraceColumn(
        "position",
        "int64",
        "the next position; the state covers all positions before it",
        "`view`, `state`",
    ),
    TraceColumn("members", "list of strings", "the processes of the view, the coordinator first", "`view`"),
    TraceColumn(
        "orderer", "string", "the process that decides the order; empty if no single one does", "`view`"
    ),
    TraceColumn("order", "string", "the protocol", "`view`"),
    TraceColumn("starvation", "string", "the starvation policy in force; `fifo` in a plain view", "`view`"),
    TraceColumn(
        "priorities_act",
        "string",
        "where priorities act: `sequencing`, `sending`, `delivering`, `consensus` or `consuming`",
        "`view`",
    ),
    TraceColumn(
        "sends_by_priority", "bool", "whether members also send their own messages by priority", "`view`"
    ),
    TraceColumn("founded", "bool", "it is the first view of the group", "`view`"),
    TraceColumn("joined", "list of strings", "the members that joined", "`view`"),
    TraceColumn("left", "list of strings", "the members that left", "`view`"),
    TraceColumn("failed", "list of strings", "the members that failed", "`view`"),
    TraceColumn(
        "evicted",
        "list of structs",
        "the members that were evicted: `member`, `cause` (`slow`, `unacknowledged`, `unanswered`, "
        "`overflow`, `stateless` or `fault`), `detail` for people",
        "`view`",
    ),
    TraceColumn(
        "merged", "list of strings", "the members that came from another view after a partition", "`view`"
    ),
    TraceColumn("order_change", "string", "the protocol from here on, if the order was changed", "`view`"),
    TraceColumn(
        "voluntary",
        "bool",
        "whether the member left on purpose; the reason is that of the view without it",
        "`stopped`",
    ),
    TraceColumn("state_bytes", "int64", "the size of the state", "`state`"),
)
SERVICE_COLUMNS = (
    TraceColumn("sender", "string", "the member that sent the message"),
    TraceColumn("sender_incarnation", "int64", "its incarnation"),
    TraceColumn("stream", "string", "the stream of its sender: `disseminated`, `atomic` or `tight`"),
    TraceColumn("number", "int64", "it is the number-th message of its sender in the stream"),
    TraceColumn("unit", "int32", "which unit of the message, from 0", "`delivered`"),
    TraceColumn("units", "int32", "how many units it has", "`sent`"),
    TraceColumn("bytes", "int64", "the size of its payload, or of the unit", "`sent`, `delivered`"),
    TraceColumn("quality", "string", "the quality of service, such as `at-least:2`", "`sent`, `delivered`"),
    TraceColumn("priority", "int32", "its priority", "`sent`, `delivered`"),
    TraceColumn("recipients", "list of strings", "the processes that it is for", "`sent`, `delivered`"),
    TraceColumn("accepted", "bool", "as many recipients have it as its quality asks for", "`finished`"),
    TraceColumn("answered", "list of strings", "the recipients that have it", "`finished`"),
    TraceColumn("rejected", "list of strings", "the recipients that could not accept it", "`finished`"),
    TraceColumn(
        "reasons",
        "list of strings",
        "why not, one reason each; of a `delivered` row, `late` if it was outside of its window",
        "`finished`",
    ),
    TraceColumn("missing", "list of strings", "the recipients that did not answer", "`finished`"),
    TraceColumn("rounds", "int64", "how often it was transmitted", "`finished`"),
)
OWN_COLUMNS: dict[type[TraceRow], tuple[TraceColumn, ...]] = {
    MessageRow: MESSAGE_COLUMNS,
    GroupEventRow: GROUP_EVENT_COLUMNS,
    ServiceRow: SERVICE_COLUMNS,
}
"""What is only in the table that each type of row belongs to."""

TABLE_NAMES: dict[type[TraceRow], str] = {
    MessageRow: MESSAGES,
    GroupEventRow: GROUP_EVENTS,
    ServiceRow: SERVICES,
}
"""The name of the table that each type of row belongs to; its segments are in a directory of that name."""

#: Strings in rows that there are many of have few values.
_WITH_DICTIONARIES = (MessageRow, ServiceRow)
_schemas: "dict[type[TraceRow], pyarrow.Schema]" = {}


def columns_of(kind: type[TraceRow]) -> tuple[TraceColumn, ...]:
    """All columns of a table, in their order."""
    recorded = (*PROCESS_COLUMNS, *OWN_COLUMNS[kind])
    assert tuple(column.name for column in recorded) == kind._fields, "the columns are the fields of the row"
    return (RUN_COLUMN, *recorded, *SEGMENT_COLUMNS)


def table_schema(kind: type[TraceRow]) -> "pyarrow.Schema":
    """The Parquet schema of the table that rows of this type belong to."""
    if kind not in _schemas:
        _schemas[kind] = _make_schema(kind)
    return _schemas[kind]


def _make_schema(kind: type[TraceRow]) -> "pyarrow.Schema":
    import pyarrow as pa

    dictionary = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, Callable[[], pyarrow.DataType]] = {
        "string": lambda: dictionary if kind in _WITH_DICTIONARIES else pa.string(),
        "int64": pa.int64,
        "int32": pa.int32,
        "bool": pa.bool_,
        "binary": pa.binary,
        "list of strings": lambda: pa.list_(pa.string()),
        "list of structs": lambda: pa.list_(
            pa.struct([(name, pa.string()) for name in Eviction.__struct_fields__])
        ),
    }
    fields = [(column.name, types[column.type]()) for column in columns_of(kind)]
    return pa.schema(fields, metadata={"priocast.schema_version": str(SCHEMA_VERSION)})


def to_table(
    kind: type[TraceRow], rows: Sequence[TraceRow], run: str, clock_offset_ns: int | None = None
) -> "pyarrow.Table":
    """Rows of one type as an Arrow table."""
    import pyarrow as pa

    schema = table_schema(kind)
    recorded = zip(*rows, strict=True) if rows else [()] * len(kind._fields)
    arrays = [
        pa.array(values, schema.field(name).type) for name, values in zip(kind._fields, recorded, strict=True)
    ]
    same = {"run": run, "clock_offset_ns": clock_offset_ns, "schema_version": SCHEMA_VERSION}
    first, *last = (
        pa.repeat(pa.scalar(value, _plain(schema.field(name).type)), len(rows)).cast(schema.field(name).type)
        for name, value in same.items()
    )
    return pa.table([first, *arrays, *last], schema=schema)


def _plain(arrow_type: "pyarrow.DataType") -> "pyarrow.DataType":
    """The type of the values, if they are in a dictionary."""
    return getattr(arrow_type, "value_type", arrow_type)
