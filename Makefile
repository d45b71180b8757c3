# `make check` runs what CI runs first (.ci/run), in the environment of the Python given: make check PYTHON=.venv/bin/python
PYTHON ?= python3

.PHONY: check lint types test slow golden

check: lint types test

lint:
	$(PYTHON) -m ruff check

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -n 2

slow:  # the tests that `test` leaves out because of their cost
	$(PYTHON) -m pytest -n 2 -m slow

golden:  # accept the present output as the expected one; review the result with git diff
	$(PYTHON) -m pytest -n 2 --update-golden
