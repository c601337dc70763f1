# Every target makes its own environment in .venv and needs nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test run bench-reader lint clean

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/pytest -n auto

run: $(STAMP)
	$(BIN)/toolglot read --tools examples/tools.json examples/answer.txt

bench-reader: $(STAMP)
	$(BIN)/python bench/reader.py

lint: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy --strict

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	{ $(BIN)/python -m pip install --quiet --disable-pip-version-check uv \
	    && $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[test]'; } \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@
