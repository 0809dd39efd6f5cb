# Each command is complete on a fresh machine: Python 3.11 or newer, make, git, a package registry.
PYTHON ?= python3
PIP = -m pip install --quiet --disable-pip-version-check

.PHONY: run test test-extras check format bench clean

run: .venv/ready  ## Read the sample book, answer three questions about it, open the web page
	.venv/bin/gistree demo --page

test: .venv-test/ready  ## The whole test suite
	.venv-test/bin/gistree models fetch smollm2-135m-instruct qwen2.5-coder-1.5b-instruct minilm-l6-v2-int8
	.venv-test/bin/python -m pytest

test-extras: .venv-extras/ready  ## The tests of the optional extras (torch-sized)
	.venv-extras/bin/gistree models fetch minilm-l6-v2 minilm-l6-v2-int8
	.venv-extras/bin/python -m pytest -m extras

check: .venv-test/ready  ## Format, lint, types, tests
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy
	$(MAKE) test

format: .venv-test/ready  ## Put the code in its form
	.venv-test/bin/ruff check --fix .
	.venv-test/bin/ruff format .

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) --upgrade pip
	.venv/bin/python $(PIP) --editable '.[ui]'
	touch $@

.venv-test/ready: pyproject.toml
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/python $(PIP) --upgrade pip
	.venv-test/bin/python $(PIP) --editable '.[dev,postgres,ui]'
	touch $@

.venv-extras/ready: pyproject.toml tests/constraints-extras.txt
	$(PYTHON) -m venv .venv-extras
	.venv-extras/bin/python $(PIP) --upgrade pip
	.venv-extras/bin/python $(PIP) --constraint tests/constraints-extras.txt --editable '.[dev,sentence-transformers,provence,llama-index,langchain,mcp]' 'langchain-openai>=1,<2'
	touch $@

clean:  ## Remove environments and caches, not libraries or models
	rm -rf .venv .venv-test .venv-extras .pytest_cache .mypy_cache .ruff_cache *.egg-info
