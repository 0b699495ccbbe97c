"""The installed package: its version, its command, its exports, and that it needs no uvloop."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import priocast
from priocast.core import errors


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


@pytest.mark.parametrize("function", ["asyncio.run(main())", "main_blocking()"])
def test_a_group_runs_without_uvloop(function: str) -> None:
    program = f"""
import asyncio, sys
sys.modules["uvloop"] = None  # any import of it fails
import priocast

async def main():
    async with priocast.join("g", member="a", hub=priocast.MemoryHub(), size=1) as group:
        await group.broadcast(b"x")
        async for event in group:
            if isinstance(event, priocast.Delivery):
                print(event.message.payload)
                break

def main_blocking():
    with priocast.join_blocking("g", member="a", listen="127.0.0.1:0", peers=[]) as group:
        group.broadcast(b"x")
        print(next(event.message.payload for event in group if isinstance(event, priocast.Delivery)))

{function}
"""
    assert _python("-c", program) == "b'x'\n"


def test_the_command_line_starts_without_uvloop() -> None:
    program = "import sys; sys.modules['uvloop'] = None; import priocast.cli.main"
    assert _python("-c", program) == ""


def test_every_error_can_be_imported_from_the_package() -> None:
    defined = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert defined <= set(priocast.__all__)
