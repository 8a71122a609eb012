# `make help` lists the targets.
PYTHON_BIN := .venv/bin/python
.DEFAULT_GOAL := help
# Where it is set, each of the many processes compiles Django and Celery anew: their start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help run demo test lint clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/'

run: ## install what is needed and run contextapp on this machine
	@scripts/setup run
	@$(PYTHON_BIN) -m contextapp

demo: ## fill the dashboard with a session of 79 turns: an agent at work, offline, with a scripted model
	@scripts/setup run
	@PYTHONPATH=examples:clients/python/src $(PYTHON_BIN) -m demo

test: ## install what the tests need, a browser included, and run them all (ARGS="-k name" for some)
	@scripts/setup test
	@scripts/browser
	$(PYTHON_BIN) -m pytest -n 3 --dist worksteal $(ARGS)

lint: ## style, types, import directions, missing migrations
	@scripts/setup test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/djlint templates --check --lint --quiet
	.venv/bin/mypy
	.venv/bin/mypy --config-file examples/mypy.ini
	.venv/bin/lint-imports
	$(PYTHON_BIN) manage.py makemigrations --check --dry-run

clean: ## remove the environment and the caches; data in .contextapp stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis staticfiles
