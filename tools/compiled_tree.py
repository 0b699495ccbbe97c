"""The compiled version of these sources, beside them: built once for each state of the sources.

`python -m tools.compiled_tree` prints the directory, for PYTHONPATH. It contains what a compiled wheel has.
Its name is the hash of the sources, so it is never older than they are.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CACHE = ROOT / "build" / "compiled"
_BUILT_FROM = ("setup.py", "pyproject.toml", "src")
_KEPT = 2


def compiled_tree() -> Path:
    """The directory with the compiled version; it takes a minute or two if the sources have changed."""
    tree = _CACHE / _hash_of_sources()
    _CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(_CACHE / "lock"):
        if not tree.exists():
            _build(tree)
            _forget_old(tree)
    return tree


def environment(*, pure: bool = False) -> dict[str, str]:
    """The environment of a process that uses the compiled version; `pure`: of its sources."""
    return {**os.environ, "PYTHONPATH": str(compiled_tree()), "PRIOCAST_PURE": str(int(pure))}


def _hash_of_sources() -> str:
    digest = blake2b(digest_size=8)
    digest.update(f"{version('mypy')} {sysconfig.get_config_var('EXT_SUFFIX')}".encode())
    for name in _BUILT_FROM:
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _build(tree: Path) -> None:
    """Build a copy of the sources, so that nothing is left beside the sources themselves."""
    work = tree.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name in _BUILT_FROM:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, work / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(path, work)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(  # noqa: S603  # our own build
        command,
        cwd=work,
        env={**os.environ, "PRIOCAST_COMPILE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the sources cannot be compiled:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    (work / "src").rename(tree)
    shutil.rmtree(work)


def _forget_old(tree: Path) -> None:
    others = [each for each in _CACHE.iterdir() if each.is_dir() and each != tree]
    others.sort(key=lambda each: each.stat().st_mtime)
    for other in others[: 1 - _KEPT]:
        shutil.rmtree(other)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time builds."""
    import fcntl

    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    print(compiled_tree())  # noqa: T201
