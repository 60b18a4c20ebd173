.DEFAULT_GOAL := help
.PHONY: help install lint test nightly docs visit pictures bench reproduce clean

help: ## list these words
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: ## install the package, editable, with everything that the other words need
	python -m pip install --upgrade "pip>=25.1"
	python -m pip install --editable . --group test --group lint --group docs

lint: ## style, types, and who may import whom
	ruff check
	ruff format --check
	mypy
	lint-imports

test: ## tests with coverage, then the examples of the docstrings
	python -m pytest -n 2 --cov --cov-report=term --cov-fail-under=95 tests
	python -m pytest --doctest-modules src

nightly: ## what takes too long for every change: bits flipped one by one, and changed files
	HEATSKETCH_BIT_FLIPS=10000 HEATSKETCH_CHANGED_FILES=20000 \
	python -m pytest --timeout=3600 tests/test_changed_files.py -k "single_bit or our_errors"

docs: ## run the gallery, make web pages in docs/_build/html; a warning is an error
	sphinx-build -W --keep-going -b html docs docs/_build/html
	python docs/check.py docs/_build/html

visit: ## a first visit: the built wheel in a fresh environment, from a file to distances
	.ci/visit

pictures: ## draw those of README and docs/distances.md; for the drift see examples/drift.py
	python examples/readme.py
	python examples/distances.py

bench: ## measure against peers and limits, in hours, and write docs/benchmarks
	python -m pip install --group bench
	for script in small scaling million products powers limits tiles peers eigenpairs epsilon choices isometry pseudotime command_line report page; do python benchmarks/$$script.py; done

reproduce: ## run the paper's experiments in full, and write docs/reproduction.md
	heatsketch reproduce --out docs

clean: ## delete what the other words made
	rm -rf build dist docs/_build docs/gallery docs/sg_execution_times.rst .coverage* .hypothesis .*_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
