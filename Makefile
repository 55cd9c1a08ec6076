# The front door. Every target sets up what it needs; a second run starts at once.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests against servers wait more than they compute: two workers for each core.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
UV_VERSION := 0.13.7
export UV_PROJECT_ENVIRONMENT := $(VENV)
# Behind a proxy that has a certificate of its own, the system knows it and uv does not.
export UV_SYSTEM_CERTS := true

.DEFAULT_GOAL := help
.PHONY: train-extractor help setup crawl serve test test-unit test-pure-python test-integration chaos check check-native firecrawl-clients format docs sql release-migrations dist bench

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z%-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## Install everything into .venv (other targets do this by themselves)

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit("Trapline needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv $(VENV) || { echo "This Python cannot make virtual environments: install its venv package (python3-venv on Debian)."; exit 1; }
	@$(BIN)/pip install --quiet uv==$(UV_VERSION)

NATIVE := hatch_build.py $(wildcard src/trapline/native/*.[ch])

$(VENV)/.ready: pyproject.toml uv.lock $(NATIVE) | $(BIN)/uv
	@$(BIN)/uv sync --frozen --inexact --quiet
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready
	@$(BIN)/uv sync --frozen --inexact --quiet --group bench --group train --group minilm
	@touch $@

$(VENV)/.ready-integration: $(VENV)/.ready
	@$(BIN)/uv sync --frozen --inexact --quiet --group integration
	@touch $@

$(VENV)/.ready-dist: $(VENV)/.ready
	@$(BIN)/uv sync --frozen --inexact --quiet --group dist
	@touch $@

crawl: setup ## Crawl URL=… (without URL: the bundled demo site)
	@$(BIN)/python -m tests.site.demo $(URL)

serve: setup ## Start the dashboard, the API, the workers and the embedded Postgres on 127.0.0.1:3002
	@$(BIN)/trapline serve

test: check test-pure-python test-integration ## Run everything that CI runs
	@$(BIN)/python -m tools.sanitized --where-possible

test-unit: setup ## Run the tests that need no server
	@$(BIN)/pytest tests/unit -n auto -q

test-pure-python: setup ## Run the extractor's and the store's unit tests without the native library
	@TRAPLINE_NATIVE=off $(BIN)/pytest tests/unit/extract tests/unit/store -n auto -q

test-integration: $(VENV)/.ready-integration ## Run the tests against real servers
	@$(BIN)/pytest tests/integration tests/conformance tests/e2e tests/replay tests/chaos -n $(WORKERS) -q

chaos: $(VENV)/.ready-integration ## Run the fault tests: kills, lost connections, a full disk
	@$(BIN)/pytest tests/chaos tests/integration/queue/worker/test_faults.py tests/e2e/test_retried_transactions.py -n $(WORKERS) -q

check: setup ## Format, lint, types, imports, dead code, unit tests
	@$(BIN)/ruff format --check --quiet . || { echo "Run 'make format'."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m tools.dead_code
	@$(MAKE) --no-print-directory test-unit

firecrawl-clients: setup .venv/.ready-integration ## Run the published tests of firecrawl-py and firecrawl-js against a server (root)
	@$(BIN)/python -m tools.firecrawl_clients

check-native: setup ## Run the tests of what is compiled with libraries that check every access (gcc)
	@$(BIN)/python -m tools.sanitized

format: setup ## Rewrite the code in the one format
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --fix --quiet .

docs: setup ## Regenerate docs/settings.md, docs/cli.md and docs/api.md
	@$(BIN)/python -m tools.reference_pages

sql: setup ## Regenerate schema.sql and the typed functions of all named queries
	@$(BIN)/python -m tools.sql

release-migrations: setup ## Note all migrations as released: from then on an edit fails the build
	@$(BIN)/python -m tools.sql release

dist: $(VENV)/.ready-dist ## Build the sdist and the wheels, compiled and pure, into dist/
	@$(BIN)/python -m tools.dist

bench: $(patsubst benchmarks/%.py,bench-%,$(filter-out benchmarks/__init__.py,$(wildcard benchmarks/[a-z]*.py))) ## Run every benchmark

bench-%: $(VENV)/.ready-bench ## Run one benchmark; the last line is JSON
	@$(BIN)/python -m benchmarks.$*

train-extractor: $(VENV)/.ready-bench ## Learn the main-content model from WCXB again (a quarter of an hour)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.extractor.train
