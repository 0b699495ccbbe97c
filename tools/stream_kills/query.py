"""The query that is killed: it appends each batch to a file of its own, slowly, so that kills fall inside.

Arguments: the group, its feeds, the directory of the output, and that of the checkpoint. It prints a line
before, in and after each batch.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from priocast.pipeline.session import spark_session

_BATCH_MESSAGES = "200"
_PART_SECONDS = 0.2


def _say(moment: str, batch: int) -> None:
    sys.stdout.write(f"{moment} {batch}\n")
    sys.stdout.flush()


def main(group: str, feeds: str, out: str, checkpoint: str) -> None:
    """Run the query until the process is killed."""
    directory = Path(out)

    def write(batch: DataFrame, number: int) -> None:
        _say("before", number)
        rows = batch.select("position", "payload").collect()
        part = directory / f".{number:06}"
        with part.open("w") as file:
            for row in rows[: len(rows) // 2]:
                file.write(f"{row['position']} {bytes(row['payload']).decode()}\n")
            file.flush()
            _say("in", number)
            time.sleep(_PART_SECONDS)
            for row in rows[len(rows) // 2 :]:
                file.write(f"{row['position']} {bytes(row['payload']).decode()}\n")
        part.rename(directory / f"{number:06}")
        _say("after", number)
        time.sleep(_PART_SECONDS)

    with spark_session("local[2]") as spark:
        stream = spark.readStream.format("priocast").options(
            group=group, feeds=feeds, max_messages_per_batch=_BATCH_MESSAGES
        )
        query = (
            stream.load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
