"""The installed package: its version, command and exports, and what it does without optional packages."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import priocast
from priocast import api
from priocast.core import errors
from priocast.core.extras import EXTRA_OF


def _python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=240, check=True
    )
    return done.stdout


def test_the_package_has_a_version() -> None:
    assert priocast.__version__ == version("priocast")
    with pytest.raises(AttributeError, match="module 'priocast' has no attribute 'nothing'"):
        getattr(priocast, "nothing")  # noqa: B009  # mypy knows that there is none


def test_the_version_is_looked_up_lazily() -> None:
    assert _python("-c", "import priocast; print('__version__' in vars(priocast))") == "False\n"


def test_the_package_runs_as_a_command() -> None:
    assert "Usage: python -m priocast" in _python("-m", "priocast", "--help")


OPTIONAL = [*EXTRA_OF, "uvloop"]
OF_UNIX = ["fcntl", "grp", "pwd", "resource", "termios"]
HIDING = """
import asyncio, signal, sys
sys.modules |= dict.fromkeys({hidden!r})  # any import of these fails
for name in ("SIGHUP", "SIGPIPE", "pthread_sigmask"):
    delattr(signal, name)  # as on Windows
import priocast
"""
GROUPS = """
async def deliver(**network):
    async with priocast.join("g", member="a", **network) as group:
        await group.broadcast(b"x", priority=priocast.URGENT)
        async for event in group:
            if isinstance(event, priocast.Delivery):
                print(event.message.payload)
                break

asyncio.run(deliver(hub=priocast.MemoryHub(), size=1))
asyncio.run(deliver(listen="127.0.0.1:0", peers=[]))
with priocast.join_blocking("g", member="a", listen="127.0.0.1:0", peers=[]) as group:
    group.broadcast(b"x")
    print(next(event.message.payload for event in group if isinstance(event, priocast.Delivery)))
"""


def _python_without(hidden: list[str], program: str) -> str:
    return _python("-c", HIDING.format(hidden=hidden) + program)


def test_groups_run_with_msgspec_alone_and_without_modules_of_unix() -> None:
    assert _python_without(OPTIONAL + OF_UNIX, GROUPS) == "b'x'\n" * 3


def test_every_module_of_the_plain_install_can_be_imported_without_modules_of_unix() -> None:
    program = """
from pathlib import Path
package = Path(priocast.__file__).parent
for path in sorted(package.rglob("*.py")):
    name = ".".join(("priocast", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
    if name.split(".")[1:2] and name.split(".")[1] not in OTHERS and not name.startswith(OF_EXTRAS):
        __import__(name)
        print(name)
"""
    others = ["__main__", "campaign", "cli", "operations", "pipeline", "sql", "streaming", "study", "testing"]
    sealed = tuple(f"priocast.network.{name}" for name in ("udp", "keys", "revocation", "fragments"))
    of_extras = (*sealed, "priocast.runtime.admin")
    program = f"OTHERS = {others}\nOF_EXTRAS = {of_extras}\n{program}"
    imported = _python_without(OPTIONAL + OF_UNIX, program).splitlines()
    assert len(imported) > 200
    assert "priocast.simulation.swarm" in imported


@pytest.mark.parametrize(
    ("program", "package"),
    [
        ("priocast.join('g', member='a', hub=priocast.MemoryHub(), size=1, trace='run')", "pyarrow"),
        ("priocast.open_node('a', hub=priocast.MemoryHub(), size=1, admin='127.0.0.1:0')", "h11"),
        ("priocast.TlsSecurity('a.crt', 'a.key', 'ca.crt')", "cryptography"),
        (
            "priocast.join('g', member='a', listen='[::1]:0', peers=[], transport='udp', keys={'g': b''})",
            "cryptography",
        ),
        ("from priocast.sql import connect; connect('g', member='a', listen='[::1]:0', peers=[])", "apsw"),
    ],
)
def test_what_is_missing_is_named_with_the_extra_that_installs_it(program: str, package: str) -> None:
    caught = f"try: {program}\nexcept priocast.ExtraMissing as error: print(error)"
    expected = f"{package} is not installed: pip install 'priocast[{EXTRA_OF[package]}]'\n"
    assert _python_without(OPTIONAL, caught) == expected


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_the_command_without_its_extra_is_one_line(package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from priocast.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    expected = f"error: {package} is not installed: pip install 'priocast[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_the_command_line_starts_without_uvloop() -> None:
    program = "import sys; sys.modules['uvloop'] = None; import priocast.cli.main, priocast.cli.node"
    assert _python("-c", program) == ""


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    program = "import sys, priocast; print([name for name in sys.modules if name.startswith('priocast')])"
    assert _python("-c", program) == "['priocast']\n"


def test_the_help_loads_no_command() -> None:
    program = """
import sys
from priocast.cli.main import app
try:
    app(["--help"])
finally:
    loaded = {name.split(".")[-1] for name in sys.modules if name.startswith("priocast.cli.")}
    print(sorted(loaded), "asyncio" in sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "['commands', 'exit_codes', 'help_text', 'main'] False\n"


def test_the_public_names_are_those_of_the_api() -> None:
    assert priocast.__all__ == api.__all__
    assert set(api.__all__) <= set(dir(priocast))
    assert priocast.join is api.join


def test_every_error_can_be_imported_from_the_package() -> None:
    defined = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert defined <= set(priocast.__all__)
