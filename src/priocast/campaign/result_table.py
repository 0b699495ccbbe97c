"""The stored results of a campaign: a Parquet table in the directory `results` below its `--out`.

A row is stored once or, if the driver is killed while it stores, several times with the same contents:
readers take one row per cell and seed. A directory with other files is rejected before any seed runs.
"""

import re

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from priocast.campaign.plan import Plan
from priocast.campaign.seed_rows import RESULT_COLUMNS
from priocast.core.errors import InvalidOption
from priocast.pipeline.run_files import as_pattern, find_files
from priocast.trace.remote_directory import without_secrets

RESULTS = "results"
_PART = re.compile(rf"/{RESULTS}/part-[^/]+\.parquet$")


class ResultTable:
    """The results of a campaign at a path or URL; raises if something else is stored there."""

    def __init__(self, spark: SparkSession, out: str) -> None:
        location = f"{out.rstrip('/')}/{RESULTS}"
        self._spark = spark
        self._shown = without_secrets(location)
        self._target, self._pattern = as_pattern(location, glob=False)[0], as_pattern(location)[0]
        for file in find_files(spark, location):
            if not _PART.search(file):
                raise self._foreign(without_secrets(file))

    def done(self, plan: Plan) -> set[tuple[str, int]]:
        """The cells and seeds that were stored by earlier runs of the campaign."""
        try:
            stored = self._spark.read.parquet(self._pattern)
        except AnalysisException as error:
            if error.getCondition() in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                return set()
            raise
        columns = {field.name: field.dataType for field in stored.schema}
        if columns != {field.name: field.dataType for field in RESULT_COLUMNS}:
            raise self._foreign(self._shown)
        other = stored.where(f.col("code") != plan.code).select("code").first()
        if other is not None:
            raise InvalidOption(
                f"{self._shown} has results of other code ({other['code']}; this is {plan.code}): choose "
                "another --out"
            )
        seeds = stored.select("cell", "seed").distinct()
        return {(row["cell"], row["seed"]) for row in seeds.toLocalIterator()}

    def check_writable(self) -> None:
        """Write no rows: a storage that cannot be written to must not be found only after a round."""
        self.append(self._spark.createDataFrame([], RESULT_COLUMNS))

    def append(self, rows: DataFrame) -> None:
        """Store rows, in one file."""
        rows.repartition(1).write.mode("append").parquet(self._target)

    def of_plan(self, plan: Plan) -> DataFrame:
        """The stored rows of a plan, each once."""
        stored = self._spark.read.schema(RESULT_COLUMNS).parquet(self._pattern)
        planned = f.col("cell").isin(list(plan.cells)) & f.col("seed").between(plan.seeds[0], plan.seeds[-1])
        return stored.where(planned).dropDuplicates(["cell", "seed"])

    def _foreign(self, what: str) -> InvalidOption:
        return InvalidOption(f"{what} was not written by a campaign: it is left alone; choose another --out")
