"""Optional packages: a plain install of Priocast brings none of them, an extra those for one use."""

from importlib.util import find_spec

from priocast.core.errors import ExtraMissing

#: The extra of pyproject.toml that installs a package, by the name that is imported.
EXTRA_OF = {
    "apsw": "sql",
    "cryptography": "tls",
    "h11": "admin",
    "matplotlib": "pipeline",
    "prometheus_client": "admin",
    "psycopg": "sql",
    "pyarrow": "trace",
    "pyspark": "pipeline",
    "rich": "cli",
    "typer": "cli",
}


def check_installed(*packages: str) -> None:
    """Raise ExtraMissing, with the command that installs it, if one of these packages is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise _missing(package)


def extra_missing(error: ImportError) -> ExtraMissing | None:
    """The error to raise instead, if an import failed because an extra is not installed."""
    package = (error.name or "").partition(".")[0]
    return _missing(package) if package in EXTRA_OF else None


def _missing(package: str) -> ExtraMissing:
    return ExtraMissing(f"{package} is not installed: pip install 'priocast[{EXTRA_OF[package]}]'")
