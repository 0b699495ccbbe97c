"""One Spark session for all tests of the pipeline: to start one costs more than most of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from priocast.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("local[2]") as session:
        yield session
