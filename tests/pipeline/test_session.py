"""There is one session, and an invalid master gives an error of one line."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from priocast.pipeline import session
from priocast.pipeline.java_process import how_spark_ended
from priocast.pipeline.session import plan_for, spark_session

pytestmark = pytest.mark.spark

OPEN_TWICE = """
from priocast.pipeline.session import spark_session
for master in ("local[1]", "local[2]"):
    with spark_session(master) as spark:
        print(spark.sparkContext.master, spark.conf.get("spark.sql.session.timeZone"))
"""
OPEN_INVALID = """
from priocast.core.errors import InvalidOption
from priocast.pipeline.session import spark_session
try:
    with spark_session("nowhere"):
        pass
except InvalidOption as error:
    print(error)
"""
OPEN_WITH_SETTINGS = """
from priocast.core.errors import InvalidOption
from priocast.pipeline.session import spark_session
try:
    with spark_session("local[1]") as spark:
        print(spark.sparkContext.getConf().get("spark.jars"), spark.conf.get("spark.sql.session.timeZone"))
except InvalidOption as error:
    print(error)
"""
KILLED = """
import threading
from pyspark import SparkContext
from priocast.core.errors import SparkEnded
from priocast.pipeline.session import spark_session
try:
    with spark_session("local[1]") as spark:
        assert spark.range(10).count() == 10
        java = SparkContext._gateway.proc
        threading.Timer(0.5, java.kill).start()
        spark.range(10**15).selectExpr("sum(id % 7)").collect()
except SparkEnded as error:
    print(error)
with spark_session("local[1]") as spark:
    print(spark.range(7).count())
"""


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=800, check=False
    )


def test_open_session_is_used_and_left_open(spark: SparkSession) -> None:
    with spark_session("local[1]") as again:
        assert again is spark
    assert spark.range(3).count() == 3


def test_sessions_can_follow_each_other() -> None:
    done = run_python(OPEN_TWICE)
    assert (done.stdout.splitlines(), done.stderr) == (["local[1] UTC", "local[2] UTC"], "")


def test_invalid_master_gives_an_error_of_one_line() -> None:
    done = run_python(OPEN_INVALID)
    assert done.stdout.startswith("Spark cannot run on master 'nowhere': ")
    assert done.stdout.count("\n") == 1


def test_reason_is_the_first_one_that_says_something() -> None:
    log = (
        "io.fabric8.kubernetes.client.KubernetesClientException: An error has occurred.\n\tat io.fabric8\n"
        "Caused by: java.io.IOException: Connection refused: /127.0.0.1:1\n"
    )
    found = session._REASON.search(log)
    assert found and found[1] == "Connection refused: /127.0.0.1:1"


def test_settings_of_users_are_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.jars /jars/hadoop-aws.jar\nspark.sql.session.timeZone CET\n")
    assert run_python(OPEN_WITH_SETTINGS).stdout == "file:/jars/hadoop-aws.jar UTC\n"
    file.write_text("spark.executor.memory 1m\n")
    error = run_python(OPEN_WITH_SETTINGS).stdout
    assert error.startswith(f"Spark cannot run on master 'local[1]' with the settings of {file}: ")
    assert "Insufficient executor memory" in error and error.count("\n") == 1


def test_the_end_of_java_gives_an_error_of_one_line_and_another_session_can_follow() -> None:
    error, rows = run_python(KILLED).stdout.splitlines()
    head, log = error.split("; log: ")
    assert head.startswith("Spark ended in the middle of its work: its Java process was killed")
    assert rows == "7"
    Path(log).unlink()


def test_a_task_without_enough_memory_is_named(spark: SparkSession) -> None:
    no_memory = "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] got 0"
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"SELECT raise_error('{no_memory}')").collect()
    assert how_spark_ended(raised.value).startswith("a task needs more memory than it has")


def test_a_slow_machine_has_a_day_for_a_broadcast(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.broadcastTimeout") == str(24 * 60 * 60)


@pytest.mark.parametrize(("rows", "replans", "partitions"), [(1_000_000, "true", "4"), (1_000, "false", "1")])
def test_only_jobs_on_large_tables_are_planned_anew_and_divided(
    spark: SparkSession, rows: int, replans: str, partitions: str
) -> None:
    plan_for(spark, rows)
    assert spark.conf.get("spark.sql.adaptive.enabled") == replans
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
