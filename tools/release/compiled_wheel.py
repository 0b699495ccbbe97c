"""Builds the compiled wheel of the committed sources, installs it into a clean environment and tries it.

It is for this interpreter and this kind of machine only, and it is not compared with a second build.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.release.distributions import ROOT, exported_sources
from tools.release.installation import Environment, run_example

_EXAMPLE = ROOT / "examples" / "tickets.py"
_WHERE = "import priocast.links.fifo_link as link; print(link.__file__)"


def missing_compiler() -> str:
    """Why there is no compiled wheel; empty if there is nothing in the way."""
    return "" if shutil.which(os.environ.get("CC", "cc")) else "there is no C compiler"


def build_compiled(out: Path) -> Path:
    """Build the compiled wheel into `out`; exits if the sources cannot be compiled."""
    options = ["--quiet", "--no-build-isolation", "--no-deps"]
    with exported_sources() as sources, TemporaryDirectory() as built:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", built, sources],
            env=os.environ | {"PRIOCAST_COMPILE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"error: the sources cannot be compiled:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        [wheel] = Path(built).iterdir()
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out))


def try_compiled(environment: Environment, wheel: Path) -> str:
    """Install the wheel; a group must work, compiled and with the sources that `PRIOCAST_PURE=1` chooses."""
    environment.install(wheel)
    for pure in (False, True):
        found = environment.run("-c", _WHERE, pure=pure).strip()
        check_module(found, pure=pure)
        run_example(environment, _EXAMPLE, pure=pure)
    return f"{_EXAMPLE.name} ran, compiled and with PRIOCAST_PURE=1"


def check_module(file: str, *, pure: bool) -> None:
    """Exit if a module was imported from its source where the compiled one is wanted, or the other way."""
    if (Path(file).suffix == ".py") is not pure:
        sys.exit(f"error: {'PRIOCAST_PURE=1' if pure else 'the compiled wheel'} imports {file}")
