# Everything runs in its own virtual environment; only Python 3.11 or newer and a package registry are needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-faults test-browser test-engines test-wheel coverage size explore lint docs bench experiments build lock clean

demo: $(VENV)/.run
	$(BIN)/sequester demo

test: $(VENV)/.test
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	$(BIN)/pytest -n 2 --durations=25 --durations-min=5

# A fault at every system call of a first and a next publish, kills at random moments, flipped bits, ledgers put back,
# races, servers that die: real processes, about twenty minutes.
test-faults: $(VENV)/.test
	$(BIN)/pytest -n 2 -m faults tests

# Every page in an installed Chromium: pictures, console, requests, accessibility, paper. Without one it is skipped.
test-browser: $(VENV)/.test $(VENV)/.browser
	$(BIN)/pytest -n 2 -rs -m browser tests/browser

# The same tables by DuckDB and by Spark, which needs Java 17. Without Java they are skipped.
test-engines: $(VENV)/.test $(VENV)/.engines
	$(BIN)/pytest -rs -m engines tests/engines

# Which lines the quicker tests reach; below the floor in pyproject.toml it fails.
coverage: $(VENV)/.test
	$(BIN)/pytest -n 2 --cov --cov-report=term tests/unit tests/papers

# Lines of code per room, beside what each is to have and what the tests let it have.
size: $(VENV)/.run
	$(BIN)/python tools/size.py

# The built wheel in an empty environment of each Python that is here, used outside the sources.
test-wheel: $(VENV)/.run
	$(BIN)/python tools/try_wheel.py

# Fresh random examples for so long; what fails is saved as a test case. FAULTS=1: fresh kills and flipped bits.
MINUTES ?= 20
explore: $(VENV)/.test
	$(BIN)/python tests/explore.py --minutes $(MINUTES) $(if $(FAULTS),--faults)

lint: $(VENV)/.test
	$(BIN)/ruff check --fix . && $(BIN)/ruff format . && $(BIN)/mypy

# The site, in build/site; a broken link, or anything that a page would load from elsewhere, fails it.
docs: $(VENV)/.docs
	DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

experiments: $(VENV)/.bench
	$(BIN)/python -m experiments

# The wheel, with its bill of materials inside, and the sources, in dist/.
build: $(VENV)/.run
	$(BIN)/python -m hatchling build

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sequester needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# Each stamp is one locked set of packages, installed with hashes, plus this package in place.
$(VENV)/.%: requirements/%.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes -r $<
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

# Re-pin after changing pyproject.toml or requirements/*.in.
lock: | $(VENV)/bin/python
	$(PIP) install uv
	cd requirements && for set in run test bench docs browser engines; do \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    ../pyproject.toml $$set.in -o $$set.txt || exit 1; done

clean:
	rm -rf $(VENV) build dist sequester-demo .coverage
