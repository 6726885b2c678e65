# `make serve` speaks, `make check` is the one command before a commit. Needs make, sh and Python 3.11 or newer.

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help serve check test quality bench format lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1|/' | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

serve: $(VENV)/.serve ## install what is needed and serve speech on this machine only (HOST=, PORT=)
	$(BIN)/legato serve --host $(HOST) --port $(PORT)

check: $(VENV)/.dev ## format, lint, types, import rules, tests, full branch coverage of the core
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest --cov --cov-report=
	$(BIN)/coverage report --fail-under=0
	$(BIN)/coverage report --include='src/legato/core/*' --fail-under=100

test: $(VENV)/.dev ## the tests alone
	$(BIN)/pytest

quality: $(VENV)/.quality ## speak, listen with a speech recogniser and a MOS model, hold the gate
	$(BIN)/pytest -m quality -s tests/quality

bench: $(VENV)/.serve ## time to first sound on this machine
	$(BIN)/python -m benchmarks.first_sound

format: $(VENV)/.dev ## rewrite the code in the house format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lock: ## write requirements.lock and requirements-quality.lock anew from the newest allowed versions
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --upgrade pip
	.venv-lock/bin/python -m pip install --quiet ".[serve,play,dev]"
	{ sed -n '/^#/p' requirements.lock; .venv-lock/bin/python -m pip freeze --exclude legato-speech; } > .venv-lock/base
	.venv-lock/bin/python -m pip install --quiet -c .venv-lock/base ".[quality]"
	.venv-lock/bin/python -m pip freeze --exclude legato-speech > .venv-lock/all
	{ sed -n '/^#/p' requirements-quality.lock; grep -vxFf .venv-lock/base .venv-lock/all; } > .venv-lock/more
	mv .venv-lock/base requirements.lock
	mv .venv-lock/more requirements-quality.lock
	rm -rf .venv-lock

clean: ## remove what the other commands made
	rm -rf $(VENV) .venv-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment; a stamp per set of extras, so that a set is installed again only when what it depends on has changed.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Legato needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.serve: $(VENV)/.made pyproject.toml requirements.lock
	$(PIP) install --quiet -c requirements.lock -e ".[serve]"
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml requirements.lock
	$(PIP) install --quiet -c requirements.lock -e ".[serve,play,dev]"
	@touch $@

$(VENV)/.quality: $(VENV)/.made pyproject.toml requirements.lock requirements-quality.lock
	$(PIP) install --quiet -c requirements.lock -c requirements-quality.lock -e ".[quality]"
	@touch $@
