# Python 3.11+ and make are all that is needed; everything else is brought by `make install`.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The first interpreter that is new enough and can make environments; `make PYTHON=... ` overrides.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$p"; break; }; done)
PYTEST := $(BIN)/pytest
MINUTES ?= 10
SEED ?= 1
RECORDS ?= 100000

.PHONY: help install compiled pure demo test test-fast lint types schemas docs docs-reference bench bench-quick bench-report bench-profile bench-detectors soak fuzz format clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Build .venv with the loopstream command

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer, with venv, is needed." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	touch $@

# Built in a copy, put beside their source: Python takes a compiled module before its .py.
compiled: $(STAMP) ## The engine compiled in place by mypyc: a C compiler and two minutes
	@command -v cc gcc clang >/dev/null || { echo "A C compiler is needed; without it all works as plain Python." >&2; exit 2; }
	rm -rf build/compiled && mkdir -p build/compiled
	cp -r pyproject.toml README.md LICENSE loopstream build/compiled/
	find build/compiled -name '*.so' -delete
	cd build/compiled && HATCH_BUILD_HOOKS_ENABLE=1 $(abspath $(BIN))/python -m hatchling build --target wheel
	cd build/compiled && find . -name '*.so' | tar -c -T - | tar -x -C ../..
	$(BIN)/loopstream --version

pure: ## Back to plain Python
	find loopstream -name '*.so' -delete
	rm -f loopstream__mypyc.*.so

demo: $(STAMP) ## Broker, worker and a fleet of agents, some of which loop; ends by itself
	$(BIN)/loopstream up --demo

test: lint types ## All checks and all tests
	$(BIN)/loopstream schemas --check
	$(PYTEST) -n 3 --dist loadfile

test-fast: $(STAMP) ## The tests that need no broker
	$(PYTEST) -n 2 --dist worksteal -m "not kafka and not slow"

lint: $(STAMP) ## Style, layers, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/deptry .

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

schemas: $(STAMP) ## Write the JSON Schemas and the AsyncAPI document anew
	$(BIN)/loopstream schemas

docs: $(STAMP) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Peers and measuring tools live beside loopstream, in an environment of their own.
BENCH_VENV ?= .venv-bench
BENCH := $(BENCH_VENV)/bin/python
BENCH_STAMP := $(BENCH_VENV)/.installed

$(BENCH_STAMP): pyproject.toml benchmarks/requirements.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer, with venv, is needed." >&2; exit 2; }
	test -x $(BENCH) || $(PYTHON) -m venv $(BENCH_VENV)
	echo '*' > $(BENCH_VENV)/.gitignore
	$(BENCH) -m pip install --quiet --upgrade pip
	$(BENCH) -m pip install --quiet --editable '.[worker,broker]' -r benchmarks/requirements.txt
	touch $@

bench: $(BENCH_STAMP) ## Measure everything, beside peers, on a quiet machine; about two hours
	@$(MAKE) --no-print-directory compiled || echo "Plain Python is measured." >&2
	@failed=; for one in compare engine delay changelog scale recovery failover sdk overload; do \
		$(BENCH) -m benchmarks.$$one || failed="$$failed $$one"; done; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

bench-quick: $(BENCH_STAMP) ## The worker against Quix and the limit, in under 5 minutes
	@$(BENCH) -m benchmarks.compare --quick

bench-report: $(BENCH_STAMP) ## Write docs/performance of what was measured
	@$(BENCH) -m benchmarks.report

bench-profile: $(BENCH_STAMP) ## Where a worker's time goes: a top list and a flame graph
	@$(BENCH) -m benchmarks.profiling

bench-detectors: $(STAMP) ## Measure the detectors and write docs/quality/report.md
	$(BIN)/python benchmarks/detectors.py

docs-reference: $(STAMP) ## Write the generated reference pages anew
	$(BIN)/python -m tools.docs_reference

soak: $(STAMP) ## A fleet under faults against the pure engine; MINUTES= SEED= FAULTS=kill,… REPORT=
	@$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --seed $(SEED) \
		$(if $(FAULTS),--faults $(FAULTS)) $(if $(REPORT),--report $(REPORT)) \
		$(if $(INTENSITY),--intensity $(INTENSITY))

fuzz: $(STAMP) ## Hostile records at the decoder and the fold; RECORDS= SEED=
	@$(BIN)/python -m tests.fuzz --records $(RECORDS) --seed $(SEED)

format: $(STAMP) ## Lay the code out
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: pure ## Remove the environment and all caches
	rm -rf $(VENV) $(BENCH_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
