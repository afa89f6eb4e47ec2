# Everything runs in .venv, which the first call makes. A second call finds it ready.
#   make demo          profile flux eager and compiled, and compare them
#   make suite-quick   tiny sizes of two models, eager and compiled, in a few minutes
#   make test          the tests
#   make test-installed PYTHON=python3    the tests, those of a GPU too, with what that Python has; installs nothing
#   make check         tests, lint, types and import rules
#   make fuzz          the tests that draw their examples, with twenty times as many, and other ones each time
#   make docs          the site of docs/ with the pages of the committed runs, into build/docs; a broken link is an error
#   make report-check  sizes and load times of the pages under reports/
#   make goldens BEFORE=COMMIT    whether the working tree says of the committed recordings what that commit said
#   make bench         reading and analysing against peers; TRACELENS=path adds a checkout of TraceLens, PEERS= leaves HTA out

PYTHON ?= python3
BIN := .venv/bin
RUN := $(BIN)/python -m
PIP := $(RUN) pip --disable-pip-version-check install --quiet --constraint constraints.txt --editable
# Tests of one file mostly stay with one worker, which sets up once what they share; whoever is done takes over the rest.
# One worker more than there are cores: some wait, for a browser or a process of their own.
PYTEST_ARGS ?= -n $(shell expr $$(env -u OMP_NUM_THREADS nproc) + 1) --dist worksteal

PEERS ?= .venv-peers/bin/python
BENCH_ARGS ?=

# Each of hundreds of short processes would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo suite-quick test test-installed fuzz lint types imports check docs reports results pictures goldens bench
.PHONY: report-check clean

goldens: .venv/.test
	$(RUN) benchmarks.goldens $(BEFORE)

demo: .venv/.profile
	$(RUN) tracekit profile flux --compiled --force

suite-quick: .venv/.profile
	$(RUN) tracekit sweep --suite quick

# A worker for each core: torch's and polars' own threads would only get in their way.
test: export OMP_NUM_THREADS = 1
test: export POLARS_MAX_THREADS = 1
test: .venv/.test
	$(RUN) pytest $(PYTEST_ARGS)

# With another torch, or on a GPU: nothing is installed. What a test lacks (a browser, Ray, moto, ...) is listed as skipped.
# Tests of a GPU measure times, so that they run alone.
test-installed: export OMP_NUM_THREADS = 1
test-installed: export POLARS_MAX_THREADS = 1
test-installed: export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
test-installed:
	$(PYTHON) -m pytest $(PYTEST_ARGS) -m "not browser and not gpu"; tests=$$?; \
		$(PYTHON) -m pytest -m gpu tests/gpu && exit $$tests

# All tests that draw their examples: damaged traces, runs and sweeps among them, of which each must end in a result or in
# one line of error.
fuzz: export OMP_NUM_THREADS = 1
fuzz: export POLARS_MAX_THREADS = 1
fuzz: export TRACEKIT_FUZZ ?= 20
fuzz: .venv/.test
	$(RUN) pytest $(PYTEST_ARGS) -m hypothesis

lint: .venv/.dev
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: .venv/.dev
	$(RUN) mypy

imports: .venv/.dev
	$(BIN)/lint-imports

check: test lint types imports

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict --quiet
	@echo "build/docs/index.html"

# The reports in reports/, of the committed runs and sweep, and what README and docs show of output, as tracekit writes
# them now.
reports: .venv/.test
	$(RUN) docs.making.reports
	$(RUN) docs.making.tour

# docs/results.md and README's table, from results/*.json.
results: .venv/.test
	$(RUN) docs.making.results

# The pictures in README and docs, cut from the pages of committed runs in headless Chromium.
pictures: .venv/.test
	$(RUN) docs.making.pictures

bench: .venv/.test $(if $(PEERS),.venv-peers/.made)
	$(RUN) benchmarks.run $(if $(PEERS),--peers-python $(PEERS)) $(if $(TRACELENS),--tracelens $(TRACELENS)) $(BENCH_ARGS)
	$(RUN) benchmarks.ranks tests/data/ranks/tp_reduce-overhead.rank*.json.gz $(if $(PEERS),--peers-python $(PEERS))

# Sizes and load times of the pages under reports/, in headless Chromium.
report-check: .venv/.test
	$(RUN) benchmarks.report_check $(PAGES)

# HTA brings JupyterLab along, so it has a place of its own; TraceLens needs the rest.
.venv-peers/.made:
	@echo "installing the peers into .venv-peers (half a gigabyte)"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/pip --disable-pip-version-check install --quiet traceinsight tqdm openpyxl tabulate orjson PyYAML matplotlib
	@touch $@

clean:
	rm -rf .venv .venv-peers .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist

.venv/.made:
	@case "$(CURDIR)" in *\ *) echo "note: this folder's path has a space in it, on which Inductor's C++ linker call breaks (CPU runs)" >&2;; esac
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is not Python 3.11 or newer; name one that is: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv .venv || \
		{ echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

.venv/.profile: .venv/.made pyproject.toml constraints.txt
	@echo "installing tracekit and torch into .venv (a few minutes the first time)"
	@$(PIP) '.[profile]'
	@touch $@

.venv/.test: .venv/.made pyproject.toml constraints.txt
	@echo "installing tracekit, torch and the test tools into .venv (a few minutes the first time)"
	@$(PIP) '.[profile,test]'
	@touch $@ .venv/.profile

.venv/.docs: .venv/.made pyproject.toml constraints.txt
	@$(PIP) '.[docs]'
	@touch $@

.venv/.dev: .venv/.test
	@$(PIP) '.[profile,test,dev]'
	@touch $@
