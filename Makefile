# A fresh machine needs only make and Python 3.11 or later: each target installs what it runs.
#   make PYTHON=python3.12 test     another interpreter (for a new .venv)
#   make PYTHON=python3.11 test-minimum   if python3 is not 3.11, the lowest version
#   make bench SUITE="kv --quick"   the arguments of `python -m benchmarks`
#   make dist DIST=--release        the arguments of tools/check_dist.py
#   make docs SPHINXOPTS="-D plot_gallery=0"   the site without running the examples

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := .venv-minimum

# two processes, whose threads must not multiply; processes started by tests share bytecode
PYTEST_ENV := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

define CHECK_PYTHON
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "mercer needs Python 3.11 or later; $(PYTHON) is: $$($(PYTHON) --version 2>&1)" >&2; \
  echo "Name another interpreter: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # one environment, one pip at a time
.PHONY: help demo test test-minimum lint coverage bench docs dist clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s%s\n", $$1, $$2}' Makefile

demo: $(VENV)/.cli ## kernel PCA of the digits: a picture, a model and a report
	$(BIN)/mercer demo --output out

test: lint ## run the checks of `lint` and the tests
	$(PYTEST_ENV) $(BIN)/python -m pytest

test-minimum: $(OLDEST)/.dev ## run the tests with the lowest versions that pyproject.toml allows
	@# old releases call functions that newer releases of their own dependencies deprecate
	$(PYTEST_ENV) $(OLDEST)/bin/python -m pytest -W default::DeprecationWarning

lint: $(VENV)/.dev ## check style, types, layers, spelling, names, prose and workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/check_text.py
	$(BIN)/python tools/check_github_files.py

coverage: $(VENV)/.dev ## run the tests, list the uncovered lines and branches: build/coverage/html
	rm -rf build/coverage
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage html -q --fail-under=0
	$(BIN)/python -m coverage report

bench: $(VENV)/.bench ## measure against other libraries; SUITE=... for a part
	$(BIN)/python -m benchmarks $(SUITE)

docs: $(VENV)/.docs ## build the site, build/site/index.html, and fail on any warning
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -c docs -b html -W --keep-going -q . build/site $(SPHINXOPTS)
	@echo "the site: build/site/index.html"

dist: $(VENV)/.dist ## build sdist and wheel into dist/, and test the wheel offline in a new environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py $(DIST)

clean: ## remove everything the other targets made
	rm -rf $(VENV) $(OLDEST) build dist out docs/gallery docs/api/generated .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# .venv/.dev stands for "mercer[dev] is installed", and likewise for every extra of pyproject.toml.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	@echo "installing mercer[$*] into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	@touch $@

# Created again after every change, because pip keeps installed versions that are still allowed.
$(OLDEST)/.dev: pyproject.toml tools/minimum_versions.py
	@$(CHECK_PYTHON)
	@rm -rf $(OLDEST) && mkdir $(OLDEST)
	@$(PYTHON) tools/minimum_versions.py > $(OLDEST)/constraints.txt
	@echo "installing mercer[dev] with the lowest versions into $(OLDEST) ..."
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check \
	  --constraint $(OLDEST)/constraints.txt --editable '.[dev]'
	@touch $@

$(BIN)/python:
	@$(CHECK_PYTHON)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; } # no half an environment
