# What a person does with this repository, one word each. `make` alone tells them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# Some machines have this set. Each process would then compile every module that it imports again, as uv installs sources
# alone: three CPU seconds for each start of `millstream run`.
unexport PYTHONDONTWRITEBYTECODE

# The first Python that is 3.11 or later; another one: make install PYTHON=/path/to/python
PYTHON ?= $(shell for one in python3.11 python3.12 python3.13 python3; do \
	$$one -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$one; break; }; done)
BIN := .venv/bin
# uv unpacks in parallel and takes half of pip's time; where it cannot be had, pip does the same.
PACKAGES := $(BIN)/python tools/install.py
# Files of tests side by side; each worker has a Spark session and servers of its own, some 4 GB. More than two cores
# have work for, as many tests wait for processes that they have started or killed: four where memory is enough.
WORKERS ?= $(shell awk '/^MemTotal/ { print ($$2 > 20000000) ? 4 : 3 }' /proc/meminfo 2>/dev/null || echo 3)

# Parts of `make lint`, side by side.
LINTS := lint-types lint-pages lint-imports lint-packages lint-ruff lint-format lint-page lint-prose lint-spelling

.PHONY: help install check quick lint $(LINTS) page editor site wheel test page-packages jars test-all examples demo clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

install: .venv/dev  ## make .venv with millstream, its local servers and the tools of development

check: .venv/dev  ## checks before a commit, without Spark; about a minute
	@$(MAKE) --no-print-directory --jobs=3 --keep-going quick $(LINTS)

quick: .venv/dev
	$(BIN)/pytest -q -n 3 --dist worksteal --inline-snapshot=disable -m "not slow" \
		tests/unit tests/cli tests/pipeline tests/meta src

lint: .venv/dev
	@$(MAKE) --no-print-directory --jobs=2 --keep-going $(LINTS)

lint-types: .venv/dev
	$(BIN)/mypy

lint-pages: .venv/dev
	$(BIN)/python tools/generate.py --check

lint-format: .venv/dev
	$(BIN)/ruff format --check

lint-ruff: .venv/dev
	$(BIN)/ruff check

lint-imports: .venv/dev
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

lint-packages: .venv/dev
	$(BIN)/deptry src

lint-page: .venv/dev
	$(BIN)/python tools/build_page.py --check

lint-prose: .venv/dev
	$(BIN)/python tools/prose.py

lint-spelling: .venv/dev
	$(BIN)/codespell src docs examples tests tools benchmarks page/src README.md CONTRIBUTING.md CHANGELOG.md

page: .venv/dev  ## build the live page from page/ into the package; needs Node
	$(BIN)/python tools/build_page.py

editor:  ## lint, test and package the extension for VS Code, in editors/vscode/dist; needs Node 20.19
	cd editors/vscode && npm ci --ignore-scripts && npm run lint && npm test && npm run package

site: .venv/dev  ## build the documentation site into build/site; fails on a broken link
	$(BIN)/python tools/build_site.py

wheel: site  ## build the wheel, with the site inside, and the sdist into dist/
	rm -rf dist
	$(BIN)/python -m build --sdist --wheel

test: .venv/dev  ## all tests, with a sample of each sweep; downloads the jars once
	@$(MAKE) --no-print-directory --jobs=2 page-packages jars
	@# The archive of classes is made beside the first tests, which start no JVM, and before the others: so `nice`.
	@{ $(BIN)/python -m millstream.spark.cds_training || echo "no class-data archive; each JVM starts the slower"; } & \
	nice -n 10 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --inline-snapshot=disable \
		&& status=0 || status=$$?; wait; exit $$status

page-packages: .venv/dev
	$(PACKAGES) page

jars: .venv/dev
	$(BIN)/millstream jars fetch >/dev/null

test-all:  ## all tests with every combination: run it before a larger change is done
	@MILLSTREAM_SWEEP=all $(MAKE) --no-print-directory test

examples: .venv/dev  ## run every example on a local stack and compare; ONLY=NAME for one
	$(BIN)/python tools/examples.py $(ONLY:%=--only %)

demo: .venv/use  ## servers, traffic and the e-commerce pipeline; Ctrl-C ends it
	$(BIN)/millstream demo

clean:  ## remove what can be built again
	rm -rf .venv page/node_modules editors/vscode/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
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
