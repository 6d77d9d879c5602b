# make demo | figures | studies | test | bench | bench-peers | clean. PYTHON=/path/to/python3.12 chooses the interpreter.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
CONSTRAINTS := constraints.txt
SCENARIO := experiments/base_like_1.toml
OUT := out/base_like_1

.PHONY: demo test lint bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	@$(MAKE) -s announce
	@mkdir -p $(OUT)
	$(BIN)/mdpcloud compare $(SCENARIO) --json $(OUT)/comparison.json --plots $(OUT)

# Every figure of experiments/*_*/, two at a time, into a folder figures beside its scenario.
FIGURES := $(patsubst %,figure/%,$(shell grep -l '^\[figure\]' experiments/*_*/*.toml))
.PHONY: figures $(FIGURES)
figures: $(VENV)/.installed
	@$(MAKE) -s announce
	@$(MAKE) -s -j 2 -O $(FIGURES)

$(FIGURES): figure/%:
	$(BIN)/mdpcloud figure $*

# Every study of experiments/*_*/, into a folder NAME.results beside each; what is known is kept.
STUDIES := $(patsubst %,study/%,$(shell grep -l '^base = ' experiments/*_*/*.toml))
.PHONY: studies $(STUDIES)
studies: $(VENV)/.installed
	@$(MAKE) -s announce
	@$(MAKE) -s $(STUDIES)

$(STUDIES): study/%:
	$(BIN)/mdpcloud study $* --resume

# The linters run first, so that the closing line of pytest is the last one; a failure of any fails the whole.
test: $(VENV)/.installed-test
	@$(MAKE) -s announce
	@status=0; \
	$(BIN)/ruff check || status=1; \
	$(BIN)/ruff format --check || status=1; \
	$(BIN)/mypy || status=1; \
	$(BIN)/lint-imports || status=1; \
	[ $$status -eq 0 ] || echo "ruff, mypy or import-linter found mistakes (above); pytest runs all the same"; \
	$(BIN)/pytest -n 2 --dist loadscope || status=1; \
	exit $$status

bench: $(VENV)/.installed-test
	@$(MAKE) -s announce
	$(BIN)/python -m benchmarks

# The peers get an environment of their own, in .benchmarks; the tables go into benchmarks/RESULTS.md.
.PHONY: bench-peers
bench-peers: $(VENV)/.installed-test
	@$(MAKE) -s announce
	$(BIN)/python -m benchmarks.peers.environment
	$(BIN)/python -m benchmarks.peers

clean:
	rm -rf $(VENV) out build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache .benchmarks

# --- set-up -------------------------------------------------------------------------------------------------

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@$(call install,.)
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@$(call install,.[test])
	@touch $@ $(VENV)/.installed

define install
echo "installing mdpcloud and what it needs into $(VENV) (about two minutes with pip, 15 s with uv)"; \
if command -v uv >/dev/null 2>&1; \
then uv pip install --quiet --python $(BIN)/python --constraint $(CONSTRAINTS) --editable "$(1)"; \
else $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable "$(1)"; \
fi
endef

$(BIN)/python:
	@chosen=""; \
	for python in $(if $(PYTHON),"$(PYTHON)",$(CANDIDATES)); do \
	  if command -v "$$python" >/dev/null 2>&1 && \
	     "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	  then chosen="$$python"; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
	  echo "mdpcloud needs Python 3.11 or newer; found none among: $(if $(PYTHON),$(PYTHON),$(CANDIDATES))." >&2; \
	  echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi; \
	if command -v uv >/dev/null 2>&1; then uv venv --quiet --python "$$chosen" $(VENV); exit $$?; fi; \
	if ! "$$chosen" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	  version=$$("$$chosen" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "$$chosen cannot create virtual environments: its package python$$version-venv is missing." >&2; \
	  echo "On Debian and Ubuntu: sudo apt install python$$version-venv" >&2; exit 1; \
	fi; \
	"$$chosen" -m venv $(VENV)

.PHONY: announce
announce:
	@$(BIN)/python -c 'from mdpcloud.engine.jit import kernels_are_cached as cached; cached() or print(\
	"first run: numba compiles the kernels, ten to twenty seconds without output; later runs use its cache")'
