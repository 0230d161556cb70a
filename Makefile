PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
NATIVE := CMakeLists.txt pyproject.toml $(wildcard src/draftproof/kernels/csrc src/draftproof/kernels/csrc/*)

# With a compiler at hand a kernel that does not build is an error; without one the package is pure NumPy.
export DRAFTPROOF_REQUIRE_NATIVE ?= $(if $(shell command -v $(CXX)),1,0)
BUILD_TOOLS := $(foreach tool,cmake ninja,$(if $(shell command -v $(tool)),,$(tool)))

# Where glibc gives no memory back between calls, arrays of a few megabytes cost no page faults.
KEPT := MALLOC_MMAP_THRESHOLD_=100000000 MALLOC_TRIM_THRESHOLD_=1000000000

.PHONY: help proof test lint bench audit evidence evidence-long clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

proof: $(INSTALLED)  ## prove that the verifier is lossless
	@mkdir -p build
	$(BIN)/python -m draftproof check --json build/verdict.json --html build/report.html

test: lint  ## lint, type check, and run the fast tests
	$(BIN)/python -m pytest

lint: $(INSTALLED)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(INSTALLED)  ## measure, and write bench/results.csv
	$(BIN)/python -m bench

audit: $(INSTALLED)  ## judge public implementations, and write audit/results.csv
	$(BIN)/python -m audit $(NAMES)

evidence: $(INSTALLED)  ## the slow lane: long tests, sanitizers, a cross compilation
	$(BIN)/python -m pytest -m slow
	tests/sanitizers.sh
	tests/cross_compile.sh

evidence-long: $(INSTALLED)  ## 10^9 texts of the native verifier, in shards that a second run keeps
	$(KEPT) $(BIN)/python -m evidence

clean:  ## remove all that the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests bench audit evidence -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("draftproof needs Python 3.11 or newer, and $(PYTHON) is %d.%d: make PYTHON=/path/to/python3.11" % v[:2])'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(NATIVE) | $(BIN)/python
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(VENV)/build-requires.txt
	$(PIP) install --requirement $(VENV)/build-requires.txt $(BUILD_TOOLS)
	$(PIP) install --no-build-isolation --config-settings build-dir='build/{wheel_tag}' --editable '.[dev,bench]'
	$(BIN)/python -m compileall -q src
	@touch $@
