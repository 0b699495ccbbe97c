"""python -m tools.release DIRECTORY: builds the distributions there, checks them and tries them."""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import five_minutes
from tools.browser import missing_browser
from tools.release.compiled_wheel import build_compiled, missing_compiler, try_compiled
from tools.release.distributions import build_reproducibly, check_complete, digest_of
from tools.release.installation import VERSIONS, Environment, find_interpreters, try_extras, try_plain


def main(directory: str) -> None:
    out = Path(directory)
    shutil.rmtree(out, ignore_errors=True)
    source_distribution, wheel = sorted(build_reproducibly(out), key=lambda path: path.suffix)
    for path in (source_distribution, wheel):
        print(f"{digest_of(path)}  {path.name}  ({path.stat().st_size / 1e6:.1f} MB; built twice, the same)")
    print(f"{source_distribution.name} has all {check_complete(source_distribution)} files of the commit")
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", source_distribution, wheel], check=True
    )
    found = find_interpreters()
    for version, interpreter in found.items():
        with TemporaryDirectory() as place:
            environment = Environment(interpreter, Path(place))
            print(f"Python {version}: {try_plain(environment, wheel)}")
            print(f"Python {version}, with extras: {try_extras(environment, wheel)}")
    missing = [version for version in VERSIONS if version not in found]
    if missing:
        print(f"not tried, because there is no interpreter here: Python {', '.join(missing)}")
    if reason := missing_compiler():
        print(f"no compiled wheel was built: {reason}")
    else:
        compiled = build_compiled(out)
        print(f"{digest_of(compiled)}  {compiled.name}  ({compiled.stat().st_size / 1e6:.1f} MB)")
        with TemporaryDirectory() as place:
            print(f"compiled: {try_compiled(Environment(sys.executable, Path(place)), compiled)}")
    if reason := missing_browser():
        print(f"the first five minutes were not tried: {reason}")
    else:
        five_minutes.main(str(wheel))


if __name__ == "__main__":
    main(*sys.argv[1:])
