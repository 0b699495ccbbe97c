"""`python -m benchmarks.peers` (`make peers`): other systems side by side with ours, by turns, in one run.

Every round launches each system once: servers and members on this machine, warm-up, rate, delivery times. All
members must deliver in the same order. A system whose packages are missing is skipped with the reason.
"""

import argparse
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from benchmarks.peers.launches import LaunchResult, measure_launch, memory_directory
from benchmarks.peers.load import PeerLoad
from benchmarks.peers.results import PeerResult, markdown, result_of, write_drawing, write_results
from benchmarks.peers.systems import SYSTEMS, PeerSystem
from benchmarks.version import measured_version


def main() -> None:
    """Measure and write the results."""
    arguments = _parser().parse_args()
    console = Console()
    chosen = [
        each for each in SYSTEMS if not arguments.only or any(word in each.name for word in arguments.only)
    ]
    if arguments.install:
        _install(chosen, console)
    load = PeerLoad(
        members=arguments.members,
        size=arguments.size,
        messages=arguments.messages,
        warm_ups=arguments.warm_ups,
        deliveries=arguments.deliveries,
    )
    out = arguments.out or default_out(load)
    machine = _machine()

    def store(results: list[PeerResult]) -> None:
        write_results(results, load, machine, out)

    results = measure_all(chosen, load, arguments.rounds, console, store)
    write_drawing(results, out)
    console.print(Markdown(markdown(results, load, machine)))
    console.print(f"Results: {out}")


def default_out(load: PeerLoad) -> Path:
    """Where the results of a configuration are: those of others are beside them."""
    return Path(f"bench-out/peers-{load.members}-{load.size}B")


def _machine() -> dict[str, str]:
    return {
        "Priocast": measured_version(),
        "processors": str(os.cpu_count()),
        "Python": platform.python_version(),
        "Linux": platform.release(),
        "directories of servers": memory_directory() or f"{tempfile.gettempdir()} (may be a disk)",
    }


def _parser() -> argparse.ArgumentParser:
    default = PeerLoad()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="launches of every system (default: 3)")
    parser.add_argument("--members", type=int, default=default.members)
    parser.add_argument("--size", type=int, default=default.size, help="bytes of a message")
    parser.add_argument("--messages", type=int, default=default.messages, help="per member and round")
    parser.add_argument("--warm-ups", type=int, default=default.warm_ups, help="rounds that are not counted")
    parser.add_argument(
        "--deliveries", type=int, default=default.deliveries, help="timed messages per member"
    )
    parser.add_argument("--only", action="append", help="systems whose name contains this (may be repeated)")
    parser.add_argument("--install", action="store_true", help="install missing Debian packages, as root")
    parser.add_argument(
        "--out", type=Path, help=f"directory of the results (default: by load, as {default_out(default)})"
    )
    return parser


def measure_all(
    systems: Sequence[PeerSystem],
    load: PeerLoad,
    rounds: int,
    console: Console,
    store: Callable[[list[PeerResult]], None],
) -> list[PeerResult]:
    """Launch all systems by turns; one that is missing, or fails, is left out from there on.

    What is there is stored after every launch.
    """
    launches: dict[str, list[LaunchResult]] = {system.name: [] for system in systems}
    reasons: dict[str, str] = {}
    for system in systems:
        if missing := system.missing():
            reasons[system.name] = f"skipped: {', '.join(missing)} missing"
            console.print(
                f"{system.name}: {reasons[system.name]}; apt-get install {' '.join(missing)}, or --install"
            )

    def results() -> list[PeerResult]:
        return [result_of(each, launches[each.name], reasons.get(each.name, "")) for each in systems]

    for number in range(rounds):
        for system in systems:
            if system.name in reasons:
                continue
            try:
                found = measure_launch(system, load)
            except Exception as error:  # a system that fails is a result, and the others go on
                reasons[system.name] = f"failed: {error}".splitlines()[0]
                console.print(f"{system.name}: {reasons[system.name]}")
            else:
                launches[system.name].append(found)
                console.print(f"{number + 1}: {system.name}: {_described(found)}")
            store(results())
    return results()


def _described(found: LaunchResult) -> str:
    rate = "" if found.rate is None else f"{found.rate:,.0f} msg/s, "
    return f"{rate}{found.delivery_us / 1000:.2f} ms"


def _install(systems: Sequence[PeerSystem], console: Console) -> None:
    packages = sorted({name for system in systems for name in system.missing() if " " not in name})
    if packages:
        console.print(f"installing {' '.join(packages)}")
        command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


if __name__ == "__main__":
    main()
