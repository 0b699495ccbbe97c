"""A newcomer's first five minutes, scripted: `python -m tools.five_minutes [WHEEL]`, part of `make release`.

The package is installed into a clean environment. The first groups of the tutorial run there, then the demo
with its live page. A browser opens the page and waits until an urgent message is seen overtaking. At the end
the traces of the demo are verified. Each step prints how long it took.
"""

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from selenium.webdriver import Chrome
from selenium.webdriver.support.wait import WebDriverWait

from tools.browser import browser, missing_browser
from tools.release.distributions import ROOT, exported_sources
from tools.release.installation import Environment

Result = TypeVar("Result")
EXTRAS = ("cli", "pipeline")
_TUTORIAL = ROOT / "docs" / "tutorial.md"
_PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FIRST_BLOCKS = 2  # a group in one process, and urgent messages first
_OVERTAKING = "return document.getElementById('overtaking')?.innerText ?? ''"
_ADDRESS = re.compile(r"The live page is at (\S+)\s")
_WIDE = {"COLUMNS": "120", "PYTHONUNBUFFERED": "1", "BROWSER": "true"}
_WAIT_SECONDS = 300.0


def main(wheel: str = "") -> None:
    """Take all steps; exits if one fails."""
    if reason := missing_browser():
        sys.exit(f"error: {reason}")
    os.environ.pop("PYTHONPATH", None)  # or the clean environment would run sources instead of the wheel
    with TemporaryDirectory() as place:
        directory = Path(place)
        path = Path(wheel) if wheel else build_wheel(directory / "wheel")
        environment = _timed("a clean environment", lambda: Environment(sys.executable, directory / "venv"))
        _timed(f"pip install priocast[{','.join(EXTRAS)}]", lambda: environment.install(path, *EXTRAS))
        take_steps(environment.program, directory)


def take_steps(program: Path, directory: Path, *demo_options: str) -> None:
    """Everything after the installation, with this Python; files are written into the directory."""
    _timed("the first groups of the tutorial", lambda: run_tutorial(program, directory))
    out = directory / "demo-out"
    seen = _timed("the demo with its live page", lambda: watch_demo(program, directory, out, demo_options))
    print(f"   seen on the page: {seen}")
    verdicts = _timed(
        "priocast verify", lambda: _run(program, directory, "-m", "priocast", "verify", str(out / "traces"))
    )
    print(textwrap.indent(verdicts, "   "))


def build_wheel(directory: Path) -> Path:
    """A wheel of the sources of the last commit."""
    with exported_sources() as sources:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-w", directory, sources], check=True)
    return next(directory.glob("*.whl"))


def run_tutorial(program: Path, directory: Path) -> str:
    """Run the first blocks of the tutorial, as they stand, each as a program of its own."""
    blocks = _PYTHON_BLOCK.findall(_TUTORIAL.read_text())[:_FIRST_BLOCKS]
    assert len(blocks) == _FIRST_BLOCKS
    for number, block in enumerate(blocks):
        path = directory / f"tutorial_{number}.py"
        main_function = f"async def main():\n{textwrap.indent(block, '    ')}\n"
        path.write_text(f"import asyncio\nimport priocast\n\n{main_function}\nasyncio.run(main())\n")
        _run(program, directory, str(path))
    return f"{len(blocks)} programs ran"


def watch_demo(program: Path, directory: Path, out: Path, options: tuple[str, ...]) -> str:
    """Run the demo, open its page, and wait until it says that a message overtook others; what it says."""
    command = [str(program), "-m", "priocast", "demo", "--live", "--out", str(out), *options]
    log = directory / "demo.log"
    with log.open("w") as file, browser() as driver:
        demo = subprocess.Popen(command, cwd=directory, env=os.environ | _WIDE, stdout=file, stderr=file)
        try:
            driver.get(_address_in(log, demo))
            seen = _wait_for_overtaking(driver)
            if demo.wait(_WAIT_SECONDS) != 0:
                sys.exit(f"error: the demo failed:\n{log.read_text()}")
        finally:
            if demo.poll() is None:
                demo.terminate()
                demo.wait()
    return seen


def _address_in(log: Path, demo: subprocess.Popen[bytes]) -> str:
    """The address of the page, as the demo prints it when it has no browser to open."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while (found := _ADDRESS.search(log.read_text())) is None:
        if demo.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"error: the demo served no page:\n{log.read_text()}")
        time.sleep(0.05)
    return found[1]


def _wait_for_overtaking(driver: Chrome) -> str:
    def overtaking(_: Chrome) -> str:
        text = str(driver.execute_script(_OVERTAKING))
        return text if "overtook" in text else ""

    found: str = WebDriverWait(driver, _WAIT_SECONDS, poll_frequency=0.1).until(overtaking)
    return found


def _run(program: Path, directory: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _timed(what: str, act: Callable[[], Result]) -> Result:
    started = time.monotonic()
    result = act()
    print(f"{time.monotonic() - started:6.1f} s  {what}", flush=True)
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
