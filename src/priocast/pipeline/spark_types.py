"""The schema of a table of a trace, in Spark."""

import pyarrow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_SPARK_TYPES: dict[pyarrow.DataType, DataType] = {
    pyarrow.string(): StringType(),
    pyarrow.binary(): BinaryType(),
    pyarrow.bool_(): BooleanType(),
    pyarrow.int32(): IntegerType(),
    pyarrow.int64(): LongType(),
    pyarrow.float64(): DoubleType(),
}


def spark_schema(schema: pyarrow.Schema) -> StructType:
    """The schema of a table in Spark, where a dictionary column is a plain string."""
    return StructType([StructField(field.name, _spark_type(field.type)) for field in schema])


def _spark_type(arrow_type: pyarrow.DataType) -> DataType:
    if pyarrow.types.is_dictionary(arrow_type):
        return _spark_type(arrow_type.value_type)
    if pyarrow.types.is_list(arrow_type):
        return ArrayType(_spark_type(arrow_type.value_type))
    if pyarrow.types.is_struct(arrow_type):
        return spark_schema(pyarrow.schema(list(arrow_type)))
    return _SPARK_TYPES[arrow_type]


def without_dictionaries(table: pyarrow.Table) -> pyarrow.Table:
    """A table that Spark can take: its dictionary columns as plain strings."""
    fields = [
        field.with_type(field.type.value_type) if pyarrow.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pyarrow.schema(fields))
