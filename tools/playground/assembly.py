"""Puts the page together: its own files, strip and style of the live page, Python, and the package."""

import json
import shutil
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tools.playground.runtime import MSGSPEC, PYODIDE, BrowserRuntime

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).parent / "page"
_LIVE_PAGE = ROOT / "src" / "priocast" / "runtime" / "admin" / "page"
_SHARED = ("page.css", "strip.js", "icon.svg")
_SOURCES = "priocast.zip"
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: What a simulated group runs, and nothing else: a page loads it all.
_PACKAGES = (
    "advice",
    "core",
    "links",
    "member.py",
    "membership",
    "protocols",
    "services",
    "simulation",
    "trace",
)
_MODULES = ("__init__.py", "compiled.py")


def assemble(runtime: BrowserRuntime, target: Path) -> None:
    """Write the page into a directory, which need not exist."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copytree(PAGE, target, dirs_exist_ok=True)
    for name in _SHARED:
        shutil.copy(_LIVE_PAGE / name, target)
    runtime.unpack(target)
    zip_sources(target / _SOURCES)
    version = f"Pyodide {PYODIDE} (MPL-2.0), msgspec {MSGSPEC} (BSD-3-Clause)"
    files = {"wheel": runtime.wheel.name, "sources": _SOURCES, "version": version}
    (target / "files.json").write_text(json.dumps(files))


def zip_sources(target: Path) -> None:
    """Pack the modules, the same bytes for the same sources."""
    source = ROOT / "src" / "priocast"
    found = [source / name for name in _MODULES]
    for name in _PACKAGES:
        path = source / name
        found += [path] if path.is_file() else path.rglob("*.py")
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(found):
            entry = ZipInfo(path.relative_to(source.parent).as_posix(), _EPOCH)
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


def write_placeholder(target: Path, reason: str) -> None:
    """Write a page that says why there is no playground here."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(_LIVE_PAGE / "page.css", target)
    text = (Path(__file__).parent / "placeholder.html").read_text()
    (target / "index.html").write_text(text.replace("{reason}", reason))
