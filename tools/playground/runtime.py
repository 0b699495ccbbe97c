"""Python for WebAssembly, and msgspec for it: fetched by name and version, checked, and kept below `build/`.

They come from wherever npm and pip are configured to look. A file that is there already is not fetched again,
so that the page can be built without a network.
"""

import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "playground-runtime"
PYODIDE = "314.0.7"
MSGSPEC = "0.22.0"
_PLATFORM = ("pyemscripten_2026_0_wasm32", "314", "cp314")  # of that version of Pyodide
_PYODIDE_FILE = f"pyodide-{PYODIDE}.tgz"
_WHEEL_FILE = f"msgspec-{MSGSPEC}-cp314-cp314-{_PLATFORM[0]}.whl"
_HASHES = {
    _PYODIDE_FILE: "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    _WHEEL_FILE: "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
}
#: What a page needs of the package `pyodide`.
_PARTS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_FETCH_SECONDS = 120


class RuntimeMissing(Exception):
    """Python for WebAssembly cannot be had here, and why."""


class BrowserRuntime(NamedTuple):
    """The two files that were fetched."""

    pyodide: Path
    wheel: Path

    def unpack(self, target: Path) -> None:
        """Put everything that a page loads into a directory."""
        with tarfile.open(self.pyodide) as archive:
            for name in _PARTS:
                packed = archive.extractfile(f"package/{name}")
                assert packed is not None
                (target / name).write_bytes(packed.read())
        shutil.copy(self.wheel, target)


def fetch(cache: Path = CACHE) -> BrowserRuntime:
    """Fetch what is missing, and check it; raises an error if it cannot be had."""
    cache.mkdir(parents=True, exist_ok=True)
    pyodide, wheel = cache / _PYODIDE_FILE, cache / _WHEEL_FILE
    if not pyodide.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise RuntimeMissing("there is no npm (on Debian: apt install npm)")
        _fetch([npm, "pack", "--silent", "--fetch-retries=1", f"pyodide@{PYODIDE}"], pyodide)
    if not wheel.exists():
        platform, version, abi = _PLATFORM
        only = ["--no-deps", "--only-binary", ":all:", "--implementation", "cp"]
        named = ["--platform", platform, "--python-version", version, "--abi", abi, f"msgspec=={MSGSPEC}"]
        _fetch([sys.executable, "-m", "pip", "download", "--quiet", "--retries", "1", *only, *named], wheel)
    return BrowserRuntime(pyodide, wheel)


def _fetch(command: list[str], wanted: Path) -> None:
    """Run a command that writes a file of this name into its directory; keep it if it is the right one."""
    with TemporaryDirectory(dir=wanted.parent) as place:
        try:
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise RuntimeMissing(f"{wanted.name} was not fetched within {_FETCH_SECONDS} s") from None
        fetched = Path(place) / wanted.name
        if done.returncode or not fetched.exists():
            said = done.stderr.strip().splitlines() or ["nothing was written"]
            raise RuntimeMissing(f"{wanted.name} cannot be fetched: {said[-1]}")
        if (found := sha256(fetched.read_bytes()).hexdigest()) != _HASHES[wanted.name]:
            raise RuntimeMissing(f"{wanted.name} is not the file that was tried: its SHA-256 is {found}")
        fetched.rename(wanted)
