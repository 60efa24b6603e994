# Two commands matter: `make run` (set up, then the program) and `make test` (set up, then all tests).
# Everything lives in .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.ready-for-tests
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ARGS ?=

.PHONY: run test check format bench clean

run: $(READY)
	@$(BIN)/batchpeak $(ARGS)

test: $(TESTED)
	@$(BIN)/python -m pytest $(ARGS)

check: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(TESTED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "batchpeak needs Python 3.11 or newer; name one with: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

# torchvision and timm go in without what they depend on: torch is there already, and the release of torchvision that its
# wheel asks for by name is not the build that the tests run on (their set-up says how it is made to import).
$(TESTED): $(READY)
	$(PIP) -e '.[test,onnx,hf,images]'
	$(PIP) --no-deps torchvision timm
	@touch $@
