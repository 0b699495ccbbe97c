"""`python -m tools.test_run [pytest's options]`: run the tests, and once more, alone, the few that failed.

A group of real processes shares the machine with the tests beside it, and what pauses a member for seconds
can fail a test although nothing is wrong. Deterministic tests fail alike both times. A test that passes only
alone is named at the end, and is to be explained: a race in the code looks the same.
"""

import subprocess
import sys

import pytest

_ALONE_MAX = 3


class _Failures:
    """The tests that failed, and whether files could not be collected, as a plugin of pytest."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}
        self.in_collection = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.in_collection |= report.failed


def run(options: list[str]) -> int:
    """Run the tests with these options; returns pytest's exit code, of the second run if there was one."""
    failures = _Failures()
    code = pytest.main(options, plugins=[failures])
    tests = list(failures.tests)
    is_bad_luck = 0 < len(tests) <= _ALONE_MAX and not failures.in_collection
    if code != pytest.ExitCode.TESTS_FAILED or not is_bad_luck:
        return int(code)
    print(f"\nrunning alone what failed beside others: {', '.join(tests)}", flush=True)
    code = subprocess.call([sys.executable, "-m", "pytest", *tests])
    if code == pytest.ExitCode.OK:
        print(f"\nFAILED BESIDE OTHERS, PASSED ALONE ({len(tests)}), to be explained:", *tests, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
