"""Small tables of plain values, as Spark tables.

They go to Spark as Arrow data, which Java reads. A list of Python rows would be decoded by Python on the
executors, which then must have one that can import what the driver's can.
"""

from collections.abc import Iterable, Sequence

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from priocast.pipeline.spark_types import spark_schema

_TYPES = {
    "string": pyarrow.string(),
    "long": pyarrow.int64(),
    "int": pyarrow.int32(),
    "double": pyarrow.float64(),
    "boolean": pyarrow.bool_(),
    "array<string>": pyarrow.list_(pyarrow.string()),
}


def small_table(spark: SparkSession, rows: Iterable[Sequence[object]], columns: str) -> DataFrame:
    """Rows as a table; `columns` are names with types of SQL, separated by commas."""
    schema = pyarrow.schema([_field(definition) for definition in columns.split(",")])
    found = list(rows)
    values = zip(*found, strict=True) if found else [()] * len(schema)
    arrays = [pyarrow.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return spark.createDataFrame(pyarrow.table(arrays, schema=schema), spark_schema(schema))


def _field(definition: str) -> pyarrow.Field:
    name, kind = definition.split()
    return pyarrow.field(name, _TYPES[kind])
