"""Attacks simulated groups until the time is over: `make fuzz`."""

import argparse
import sys
import time
import traceback
from collections import Counter

from fuzz.targets import TARGETS


def place_of(error: Exception) -> str:
    """Where an error was raised: two findings with the same place count as one."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    file = frame.filename.rpartition("/")[2]
    return f"{type(error).__name__} in {file}:{frame.lineno} {frame.name}"


def main() -> int:
    """Give all targets the same time; print how many frames were sent, and what they caused."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to attack (60)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument(
        "--target", choices=TARGETS, action="append", help="only this target; may be repeated"
    )
    parser.add_argument(
        "--findings", type=int, default=20, help="stop after this many different findings (20)"
    )
    arguments = parser.parse_args()
    started = time.monotonic()
    cases: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    spent = dict.fromkeys(arguments.target or TARGETS, 0.0)
    found: dict[str, list[str]] = {}
    while time.monotonic() - started < arguments.seconds and len(found) < arguments.findings:
        target = min(spent, key=lambda each: spent[each])
        seed, at = arguments.seed + runs[target], time.monotonic()
        try:
            cases[target] += TARGETS[target](seed)
        except Exception as error:
            key = place_of(error)
            if key not in found:
                print(f"\n{target}, seed {seed}:", file=sys.stderr)
                traceback.print_exception(error)
            found.setdefault(key, []).append(f"{target} {seed}")
        runs[target] += 1
        spent[target] += time.monotonic() - at
    seconds = time.monotonic() - started
    sent = sum(cases.values())
    print(f"{sent:,} frames in {runs.total():,} runs, {seconds:.0f} s: {sent / seconds:,.0f} a second")
    print(", ".join(f"{target}: {count:,}" for target, count in cases.items()))
    for key, seeds in sorted(found.items(), key=lambda each: -len(each[1])):
        print(f"{len(seeds):5} {key}: {'; '.join(seeds[:3])}")
    print(f"seeds from {arguments.seed} on: {len(found)} different findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
