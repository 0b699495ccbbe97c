"""Coverage-guided fuzzing of the decoders with atheris: inputs that reach new code are kept and mutated.

    python -m fuzz.guided WORK tests/fuzz/corpus -max_total_time=60

The arguments are those of libFuzzer. New inputs go to the directory WORK, the corpus is only read.
"""

import sys


def main() -> None:
    """Search until the time is over; exits with an error when an input fails, which it writes to a file."""
    try:
        import atheris
    except ImportError:
        sys.exit("error: atheris is not installed: pip install 'priocast[dev]' (Linux on x86-64 only)")
    with atheris.instrument_imports(include=["priocast"]):
        from fuzz.decoders import check_input
    atheris.Setup(sys.argv, check_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
