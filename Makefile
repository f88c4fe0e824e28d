# Every target sets itself up in .venv; nothing else on the machine is touched.
PYTHON ?= python3
PORT ?= 8080
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests

SECONDS_OF_SOAK := $(or $(SECONDS),600)

.PHONY: help demo test check bench sweep soak lock clean

help:  ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

demo: $(VENV)/.run  ## try Midwatch here: PORT=8080, FRESH=1 to start over, EMPTY=1 without a team
	@$(BIN)/midwatch demo --port $(PORT) $(if $(FRESH),--fresh) $(if $(EMPTY),--empty)

test: $(VENV)/.test  ## the tests, on SQLite and on a throwaway PostgreSQL
	@$(call pytest,-m "not slow")

check: $(VENV)/.check  ## what CI decides by: format, lint, types, imports, every test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(call pytest,)

bench: $(VENV)/.peers  ## every promised figure beside the machine's limits and other projects' (BENCH="timers peers")
	@$(BIN)/python -m tests.bench $(BENCH)

sweep: $(VENV)/.test  ## kill the pager at every single step, and race every move against every other (slow)
	@MIDWATCH_SWEEP=full $(BIN)/python -m pytest -q -n auto tests/crash tests/scenario/test_interleavings_races.py

soak: $(VENV)/.test  ## ten minutes of kill -9 and failing providers on each database (SECONDS=60, SOAK="--on sqlite")
	@$(BIN)/python -m tests.soak --seconds $(SECONDS_OF_SOAK) $(SOAK)

lock: $(VENV)/.check  ## pin every dependency anew
	@$(BIN)/pip install -q uv
	@$(call pin,) > requirements.lock
	@$(call pin,--extra test) > requirements-test.lock
	@$(call pin,--extra test --extra check) > requirements-check.lock
	@$(call pin,--extra test --extra check --extra peers) > requirements-peers.lock
	@rm -f uv.lock

clean:  ## remove .venv and what the demo kept
	rm -rf $(VENV) data/demo

# Why the empty variable: where Python may not write bytecode, each of the hundreds of processes that
# tests start compiles everything anew. What failed is run once more, alone: tests of whole processes
# have deadlines, which a machine that is busy with something else can miss. What fails alone too has failed.
pytest = export PYTHONDONTWRITEBYTECODE=; $(BIN)/python -m pytest -q -n auto $(1) $(TESTS) || { \
	echo "--- once more, alone, what failed:"; \
	$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none $(1) $(TESTS); }

# --- the environment: pinned names and hashes, then Midwatch itself --------------------------------

pin = $(BIN)/uv export -q --format requirements-txt $(1) --no-emit-project --no-annotate --no-header
install = $(BIN)/pip install -q --disable-pip-version-check --require-hashes -r $(1) \
	&& $(BIN)/pip install -q --disable-pip-version-check --no-deps -e .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Midwatch needs Python 3.11 or newer: make demo PYTHON=python3.12"; exit 1; }
	@echo "Setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements.lock pyproject.toml | $(VENV)/bin/python
	@$(call install,requirements.lock)
	@touch $@

$(VENV)/.test: requirements-test.lock $(VENV)/.run
	@$(call install,requirements-test.lock)
	@touch $@

$(VENV)/.check: requirements-check.lock $(VENV)/.test
	@$(call install,requirements-check.lock)
	@touch $@

$(VENV)/.peers: requirements-peers.lock $(VENV)/.check
	@$(call install,requirements-peers.lock)
	@touch $@
