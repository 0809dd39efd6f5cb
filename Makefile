# Each command is complete on a fresh machine: Python 3.11 or newer, make, git, a package registry.
PYTHON ?= python3
PIP = -m pip install --quiet --disable-pip-version-check

.PHONY: run test test-extras test-vllm check format bench clean

run: .venv/ready  ## Read the sample book, answer three questions about it, open the web page
	.venv/bin/gistree demo --page

test: .venv-test/ready  ## The whole test suite
	.venv-test/bin/gistree models fetch smollm2-135m-instruct qwen2.5-coder-1.5b-instruct minilm-l6-v2-int8
	.venv-test/bin/python -m pytest

test-extras: .venv-extras/ready  ## The tests of the optional extras (torch-sized)
	.venv-extras/bin/gistree models fetch minilm-l6-v2 minilm-l6-v2-int8
	.venv-extras/bin/python -m pytest -m extras

# SmolLM2 as a folder that vLLM loads, made from the file that the tests use anyway.
VLLM_MODEL = .run/vllm/smollm2-135m-instruct
test-vllm: .venv-vllm/ready $(VLLM_MODEL)/config.json  ## The tests that run vLLM (its CPU build, 3 GB)
	GISTREE_VLLM_MODEL=$(VLLM_MODEL) .venv-vllm/bin/python -m pytest tests/vllm_real tests/serving/test_selectors.py tests/serving/test_head_patterns.py tests/serving/test_sparse_layer.py tests/serving/test_sparse_plugin.py

$(VLLM_MODEL)/config.json: .venv-vllm/ready bench/gguf_to_hf.py
	mkdir -p $(VLLM_MODEL)
	.venv-vllm/bin/gistree models fetch smollm2-135m-instruct
	.venv-vllm/bin/python bench/gguf_to_hf.py smollm2-135m-instruct $(VLLM_MODEL)

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
	.venv-test/bin/python $(PIP) --editable '.[dev,postgres,ui,login,watch]'
	touch $@

.venv-extras/ready: pyproject.toml tests/constraints-extras.txt
	$(PYTHON) -m venv .venv-extras
	.venv-extras/bin/python $(PIP) --upgrade pip
	.venv-extras/bin/python $(PIP) --constraint tests/constraints-extras.txt --editable '.[dev,sentence-transformers,provence,llama-index,langchain,mcp,ray]' 'langchain-openai>=1,<2'
	touch $@

# vLLM's CPU build brings wheels of torchvision and its kin that do not load beside this torch.
.venv-vllm/ready: tests/requirements-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python $(PIP) --upgrade pip
	.venv-vllm/bin/python $(PIP) --requirement tests/requirements-vllm.txt
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.venv-vllm/bin/python $(PIP) --editable .
	touch $@

clean:  ## Remove environments and caches, not libraries or models
	rm -rf .venv .venv-test .venv-extras .venv-vllm .pytest_cache .mypy_cache .ruff_cache *.egg-info
