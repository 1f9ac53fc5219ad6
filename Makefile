# What a person does with this repository, one word each. `make` alone tells them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# The first Python that is 3.11 or later; another one: make install PYTHON=/path/to/python
PYTHON ?= $(shell for one in python3.11 python3.12 python3.13 python3; do \
	$$one -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$one; break; }; done)
BIN := .venv/bin
# uv unpacks in parallel and takes half of pip's time; where it cannot be had, pip does the same.
PACKAGES := $(BIN)/python tools/install.py
# Files of tests side by side; each worker has a Spark session and servers of its own, some 4 GB.
WORKERS ?= 2
# These come after the others, whose sessions and servers are gone by then: each starts drivers of its own, kills them, and
# waits for long stretches while nothing is to be done.
KILLS := tests/acceptance tests/proof tests/recovery

.PHONY: help install check lint page test examples demo clean
.DEFAULT_GOAL := help

help:  ## say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

install: .venv/dev  ## make .venv with millstream, its local servers and the tools of development

check: .venv/dev lint  ## what must hold before a commit; no Spark
	$(BIN)/pytest -q tests/unit tests/cli tests/pipeline tests/meta src

lint: .venv/dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src
	$(BIN)/python tools/generate.py --check
	$(BIN)/python tools/build_page.py --check

page: .venv/dev  ## build the live page from page/ into the package; needs Node
	$(BIN)/python tools/build_page.py

test: .venv/dev  ## every test; fetches the jars once
	$(PACKAGES) page
	$(BIN)/millstream jars fetch >/dev/null
	$(BIN)/python -m millstream.runtime.train || echo "no class-data archive; each JVM starts the slower"
	both=0; \
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(KILLS:%=--ignore=%) || both=1; \
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(KILLS) || both=1; \
	exit $$both

examples: .venv/dev  ## run every example on a local stack and compare; ONLY=NAME for one
	$(BIN)/python tools/examples.py $(ONLY:%=--only %)

demo: .venv/use  ## servers, traffic and the e-commerce pipeline; Ctrl-C ends it
	$(BIN)/millstream demo

clean:  ## remove what can be made again
	rm -rf .venv page/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests tools examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "there is no Python 3.11 or later with its venv module here;" \
		"install one (Debian: python3 python3-venv), or name it: make install PYTHON=..." >&2; exit 4; }
	$(PYTHON) -m venv .venv

.venv/use: pyproject.toml | .venv/bin/python
	$(PACKAGES) use
	@touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(PACKAGES) dev
	@touch $@ .venv/use
