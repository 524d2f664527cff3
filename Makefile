# make app   installs into .venv and opens the page on the shipped runs
# make test  installs into .venv and runs the checks
PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
.PHONY: install app test test-browser test-real test-extras lint bench clean

install: $(VENV)/installed

# The pinned set; torch first and alone, so that the wheel it names is the one that is kept
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

app: install
	$(BIN)/streamlit run app

# As many processes as there are cores; the tests of a file share what they have trained
test: install lint
	$(BIN)/pytest --numprocesses auto --dist loadfile

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Needs a Chromium on the PATH
test-browser: install
	$(BIN)/pytest --override-ini addopts=--import-mode=importlib tests/browser

# Real models and data in a folder of yours: make test-real DATA=folder
test-real: install
	DATA='$(DATA)' $(BIN)/pytest --override-ini addopts='--jaxtyping-packages=workbench,analyses,beartype.beartype --import-mode=importlib' tests/real

# Other tools on our models, from the bench extra; by hand
test-extras: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/pytest --override-ini addopts=--import-mode=importlib tests/extras

bench: install
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV)
