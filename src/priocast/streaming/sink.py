"""The sink: each row becomes a message, with the priority that its column says, once.

A task that is repeated after any failure must not broadcast its rows again. So the tasks of a query are
clients whose identity follows from the query, the partition and the batch: a repeated one sends the same
requests under the same identity, and the group ignores those that it has ordered. The rows of a partition
with the same priority keep their order. A query must give the same rows when a batch is repeated, as Spark
demands of every sink.
"""

import asyncio
from collections.abc import Iterator
from hashlib import blake2b
from uuid import uuid4

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, ShortType, StringType, StructType

from priocast.core.errors import InvalidInput
from priocast.core.identity import ProcessId
from priocast.core.priority import ROUTINE
from priocast.runtime.client import open_client
from priocast.streaming.options import StreamSink

_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"
_SENDS_AT_ONCE = 256
_BATCH_BITS = 31
_QUERIES = 1 << 31
_WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


class RowsBroadcast(WriterCommitMessage):
    """How many rows a task has broadcast."""

    def __init__(self, count: int) -> None:
        self.count = count


def check_columns(sink: StreamSink, schema: StructType) -> None:
    """Raise if the rows lack the columns that a message needs."""
    types = {field.name: field.dataType for field in schema}
    payload = types.get(sink.payload_column)
    if not isinstance(payload, BinaryType | StringType):
        raise InvalidInput(
            f"the rows need a column {sink.payload_column!r} of type binary or string, the payload of a "
            f"message (option payload_column); they have {', '.join(types)}"
        )
    priority = types.get(sink.priority_column, IntegerType())
    if not isinstance(priority, _WHOLE_NUMBERS):
        raise InvalidInput(f"the column {sink.priority_column!r} must hold whole numbers from 0 to 255")


def broadcast_rows(
    sink: StreamSink, client: ProcessId, batches: Iterator[pyarrow.RecordBatch]
) -> RowsBroadcast:
    """Have the group order the rows of one task; return when all have their positions."""
    return RowsBroadcast(asyncio.run(_broadcast(sink, client, batches)))


async def _broadcast(sink: StreamSink, client: ProcessId, batches: Iterator[pyarrow.RecordBatch]) -> int:
    count = 0
    async with open_client(
        sink.group,
        client=client.name,
        incarnation=client.incarnation,
        peers=list(sink.peers),
        tls=sink.tls,
    ) as members:
        for batch in batches:
            rows = list(_messages(sink, batch))
            for start in range(0, len(rows), _SENDS_AT_ONCE):
                part = rows[start : start + _SENDS_AT_ONCE]
                await asyncio.gather(
                    *(
                        members.send(payload, priority, safe=sink.safe, timeout_seconds=sink.timeout_seconds)
                        for payload, priority in part
                    )
                )
                count += len(part)
    return count


def _messages(sink: StreamSink, batch: pyarrow.RecordBatch) -> Iterator[tuple[bytes, int]]:
    """The payload and the priority of each row."""
    payloads = batch.column(sink.payload_column).to_pylist()
    if sink.priority_column in batch.schema.names:
        priorities = batch.column(sink.priority_column).to_pylist()
    else:
        priorities = [ROUTINE] * len(payloads)
    for payload, priority in zip(payloads, priorities, strict=True):
        if payload is None or priority is None:
            raise InvalidInput("a row has no payload or no priority: replace nulls before writing")
        yield payload.encode() if isinstance(payload, str) else payload, priority


def client_of(sink: StreamSink, query: str, partition: int, batch: int) -> ProcessId:
    """The client that broadcasts a partition of a batch of a query, whenever it is tried.

    With TLS it has the name of the certificate, so there is one for all batches of one partition.
    """
    hashed = blake2b(query.encode(), digest_size=8).digest()
    if sink.tls is None:
        return ProcessId(f"{sink.name}-{hashed[:6].hex()}-{partition}", batch + 1)
    if partition:
        raise InvalidInput("with TLS, a sink is one client: use coalesce(1) before writing")
    return ProcessId(sink.name, (int.from_bytes(hashed) % _QUERIES << _BATCH_BITS) + batch + 1)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by a task"
    return context


class OrderedStreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("priocast")`: a batch is broadcast once, even if it is tried again."""

    def __init__(self, sink: StreamSink) -> None:
        self._sink = sink

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        assert query is not None and batch is not None, "a streaming query has these"
        client = client_of(self._sink, query, context.partitionId(), int(batch))
        return broadcast_rows(self._sink, client, iterator)


class OrderedWriter(DataSourceArrowWriter):
    """`df.write.format("priocast")`: a task that fails and is tried again broadcasts its rows once."""

    def __init__(self, sink: StreamSink) -> None:
        self._sink = sink
        self._job = str(uuid4())

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        client = client_of(self._sink, self._job, _context().partitionId(), batch=0)
        return broadcast_rows(self._sink, client, iterator)
