"""Installs a wheel into clean environments and tries it: its size, its start, and the examples."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.release.distributions import CONSTRAINTS, ROOT

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLAIN_BYTES_MAX = 30_000_000
_REPEATS = 5
_TIMED = """
import resource, subprocess, sys
best = float("inf")
for _ in range({repeats}):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run({command}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
print(best)
"""


def find_interpreters() -> dict[str, str]:
    """The interpreters of this machine by version: on the path, and those that pyenv has installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in VERSIONS:
        installed = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
        path = str(installed[-1]) if installed else shutil.which(f"python{version}")
        if (
            path is not None
            and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            found[version] = path
    return found


class Environment:
    """A virtual environment with nothing but a wheel and what it depends on."""

    def __init__(self, interpreter: str, directory: Path) -> None:
        subprocess.run([interpreter, "-m", "venv", directory], check=True)
        self._directory = directory

    @property
    def program(self) -> Path:
        """Its Python."""
        return self._directory / "bin" / "python"

    def install(self, wheel: Path, *extras: str) -> None:
        """Install the wheel, with extras, at the versions that were tested."""
        wanted = f"priocast[{','.join(extras)}] @ {wheel.resolve().as_uri()}"
        pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        self.run(*pip, "--constraint", str(CONSTRAINTS), wanted)

    def run(self, *arguments: str, pure: bool = False) -> str:
        """Run Python there, away from the sources; what it prints. `pure`: without compiled modules."""
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self._directory,
            env=os.environ | {"PRIOCAST_PURE": str(int(pure))},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def installed_bytes(self) -> int:
        """The size of all packages, without those that every environment has."""
        [packages] = self._directory.glob("lib/python*/site-packages")
        return sum(
            path.stat().st_size
            for each in packages.iterdir()
            if not re.match(r"pip|setuptools|_distutils|distutils|pkg_resources", each.name)
            for path in (each.rglob("*") if each.is_dir() else [each])
            if path.is_file()
        )

    def processor_seconds(self, *arguments: str) -> float:
        """The processor time of a command of this environment, the best of a few."""
        command = [str(self._directory / "bin" / arguments[0]), *arguments[1:]]
        return float(self.run("-c", _TIMED.format(repeats=_REPEATS, command=command)))


def try_plain(environment: Environment, wheel: Path) -> str:
    """Install the wheel alone; run the examples that need no extra. Exits if it has become too large."""
    environment.install(wheel)
    size = environment.installed_bytes()
    if size > PLAIN_BYTES_MAX:
        sys.exit(f"error: a plain install has {size / 1e6:.1f} MB, more than {PLAIN_BYTES_MAX / 1e6:.0f} MB")
    ran = [run_example(environment, path) for path in examples(of_sql=False)]
    seconds = environment.processor_seconds("python", "-c", "import priocast")
    start = f"import priocast {seconds * 1000:.0f} ms of processor time"
    return f"{size / 1e6:.1f} MB; {start}; {len(ran)} examples ran"


def try_extras(environment: Environment, wheel: Path) -> str:
    """Install the command line and the databases, too; run a command and the examples with databases."""
    environment.install(wheel, "cli", "sql", "tls", "trace")
    ran = [run_example(environment, path) for path in examples(of_sql=True)]
    environment.run("-m", "priocast", "simulate", "--seeds", "0:4")
    seconds = environment.processor_seconds("priocast", "--help")
    return f"priocast --help {seconds * 1000:.0f} ms of processor time; {len(ran)} examples ran"


def examples(*, of_sql: bool) -> list[Path]:
    """The examples that run by themselves, with a database or without."""
    programs = [
        path
        for path in sorted((ROOT / "examples").rglob("*.py"))
        if path.name not in {"launch.py", "maelstrom_node.py"}  # a part of others; needs Maelstrom
    ]
    return [path for path in programs if ("priocast.sql" in path.read_text()) == of_sql]


def run_example(environment: Environment, path: Path, *, pure: bool = False) -> str:
    """Run an example; exits if it fails or prints nothing."""
    printed = environment.run(str(path), pure=pure)
    if not printed.strip():
        sys.exit(f"error: {path.name} printed nothing")
    return printed
