"""Spark Connect: the tables of runs can be read through a server; the session here has no Java of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.sample_runs import play
from priocast import pipeline
from priocast.pipeline.java import find_java_home
from support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.spark

#: Spark starts a server for a session of `remote("local")`, and ends it with this process.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from priocast import pipeline

spark = SparkSession.builder.remote("local[1]").getOrCreate()
for name, table in pipeline.open(sys.argv[1], spark).items():
    print(name, table.count())
print(type(spark).__module__)
"""


def test_the_tables_of_runs_are_read_through_a_server(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("one", "two"):
        play(run=name, ticks=3).write(tmp_path)
    expected = {name: table.count() for name, table in pipeline.open(tmp_path, spark).items()}
    assert expected["deliveries"] > 0
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        env={**os.environ, "JAVA_HOME": str(find_java_home()), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=5 * PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *counts, session = done.stdout.splitlines()
    assert session == "pyspark.sql.connect.session"
    assert {name: int(count) for name, count in (line.split() for line in counts)} == expected
