# `make help` lists the targets.
PYTHON_BIN := .venv/bin/python
.DEFAULT_GOAL := help
# With this variable, every process compiles Django and Celery again, which doubles its start time.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run demo check test lint chaos clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

run: ## install the dependencies and run contextapp on this machine
	@scripts/setup run
	@$(PYTHON_BIN) -m contextapp

demo: ## record a demo session of 79 turns offline, with a scripted model
	@scripts/setup run
	@PYTHONPATH=examples:clients/python/src $(PYTHON_BIN) -m demo

check: ## lint, and run the fast tests: no browser, child processes, real transcripts or long inputs
	@scripts/setup test
	@scripts/check

test: ## install the dependencies and a browser, and run all tests (ARGS="-k name" selects some)
	@scripts/setup test
	@scripts/browser
	$(PYTHON_BIN) -m pytest -n auto --dist worksteal $(ARGS)

lint: ## check style, templates, types, import contracts and missing migrations
	@scripts/setup test
	@scripts/check lint

chaos: ## start a separate instance, kill and starve its parts for 10 minutes, then check its data (ARGS="--minutes 3")
	@scripts/setup run
	@$(PYTHON_BIN) -m bench.chaos $(ARGS)

clean: ## remove the environment and the caches; keep the data in .contextapp
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis staticfiles
