.DEFAULT_GOAL := help
.PHONY: accessibility bare bits coverage digests dist earlier evidence later lines help install lint portable smoke stages test upcoming lowest sanitize nightly weekly repeat fuzz mutants audit sbom docs newuser pictures chaos grid reproduce clean

help: ## list these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: ## install the package, editable, with everything that the other targets need
	python -m pip install --upgrade "pip>=25.1"
	python -m pip install --editable . --group test --group lint --group docs

lint: ## style, types, and who may import whom
	ruff check
	ruff format --check
	mypy
	lint-imports

test: ## tests, and the examples of the docstrings
	python -m pytest -n 2 --dist worksteal tests
	python -m pytest -n 2 --doctest-modules --pyargs heatsketch

coverage: ## lines and branches that the tests reach; takes half as long again
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not untraced" --cov --cov-report=term --cov-fail-under=95 tests

portable: ## the tests that need nothing of Linux
	python -m pytest -n 2 -m "not untraced" tests/core/test_kernels.py tests/diffusion tests/estimators tests/graph tests/persistence/test_storage.py
	python -m pytest tests/test_digests.py

upcoming: ## the tests with the nightly wheels of numpy, scipy and scikit-learn (SPEC 4)
	python -m pip install --upgrade --pre --extra-index-url https://pypi.anaconda.org/scientific-python-nightly-wheels/simple \
	numpy scipy scikit-learn
	python -m pytest -n 2 -m "not untraced" -W default::DeprecationWarning -W default::FutureWarning \
	--deselect tests/test_plot.py::test_pictures_look_as_they_did tests

lowest: ## the tests with the lowest version of each library that we allow, in build/lowest
	python -m pip install --group lowest
	uv venv --clear --quiet --python 3.11 build/lowest
	uv pip compile --quiet --python-version 3.11 --resolution lowest-direct pyproject.toml \
	--extra all --output-file build/lowest/requirements.txt
	uv pip install --quiet --python build/lowest --requirements build/lowest/requirements.txt --group test --editable .
	build/lowest/bin/python -m pytest -n 2 -m "not untraced" -W ignore::pytest.PytestRemovedIn10Warning \
	--deselect tests/test_plot.py::test_pictures_look_as_they_did tests # drawn by a later matplotlib
	build/lowest/bin/python -m pytest tests/test_digests.py

earlier: ## the tests with the libraries of half a year ago, in build/earlier
	python -m pip install --group lowest
	uv venv --clear --quiet --python 3.11 build/earlier
	uv pip compile --quiet --python-version 3.11 --exclude-newer "180 days" \
	--exclude-newer-package "typer=90 days" `# the first that we allow is younger` \
	pyproject.toml --extra all --output-file build/earlier/requirements.txt
	uv pip install --quiet --python build/earlier --requirements build/earlier/requirements.txt --group test --editable .
	build/earlier/bin/python -m pytest -n 2 -m "not untraced" -W ignore::pytest.PytestRemovedIn10Warning \
	--deselect tests/test_plot.py::test_pictures_look_as_they_did tests # drawn by a later matplotlib
	build/earlier/bin/python -m pytest tests/test_digests.py

sanitize: ## the tests of compiled loops and hostile input with AddressSanitizer and UBSan, in build/sanitize
	python -m venv build/sanitize # of its own: an editable install would hide the library under test
	build/sanitize/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	build/sanitize/bin/python -m pip install --quiet --group test --config-settings cmake.define.HEATSKETCH_SANITIZE=ON ".[all]"
	PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so) $$(gcc -print-file-name=libstdc++.so)" \
	build/sanitize/bin/python -m pytest --timeout=3600 -p no:cacheprovider tests/core/test_kernels.py tests/graph tests/io/test_hostile_files.py tests/persistence/test_changed_files.py \
	-k "not (header and (gibibytes or million))" # which limit memory, and a sanitized process has its own

nightly: ## what takes too long for every change: more examples, flipped bits, kills by the system
	python -m pip install --group databases
	HEATSKETCH_NIGHTLY=1 HEATSKETCH_BIT_FLIPS=10000 HEATSKETCH_CHANGED_FILES=20000 \
	python -m pytest -n 2 --timeout=3600 --hypothesis-profile=nightly tests/persistence/test_changed_files.py \
	tests/estimators/test_relations.py tests/estimators/test_lifecycle.py tests/io/test_killed_writers.py tests/core/test_atomic_file.py
	HEATSKETCH_NIGHTLY=1 python -m pytest -n 2 --dist worksteal --timeout=3600 -m nightly --ignore tests/io/test_killed_writers.py tests

weekly: ## statistics with a seed of this week, and four times as many trials
	HEATSKETCH_SEED=$$(date +%G%V) HEATSKETCH_COLUMNS=4200000 HEATSKETCH_TRIALS=62252 \
	python -m pytest --timeout=3600 tests/diffusion/test_confidence.py

repeat: ## the tests of the cluster fifty times, in hours, until one fails
	for i in $$(seq 50); do python -m pytest -q -n 2 tests/engines || exit 1; done

fuzz: ## damage two million files, and write how long that took to docs/benchmarks
	python -m pip install --group fuzz
	python tests/_support/fuzz_readers.py

mutants: ## change a module in many ways, and count what tests notice: make mutants OF="uses/_compare tests/uses"
	python tests/_support/mutants.py $(OF)

audit: ## look for weak spots in code and workflows, and for known flaws in what they depend on
	python -m pip install --group audit
	bandit --quiet --recursive src --severity-level medium
	zizmor --offline .github/workflows
	pip-audit --skip-editable

sbom: ## write the bill of materials of the package with all extras to build/sbom.json
	python -m pip install --group audit
	python -m venv --clear build/sbom
	build/sbom/bin/python -m pip install --quiet ".[all]"
	cyclonedx-py environment --output-file build/sbom.json build/sbom/bin/python
	python -c 'import json; found = json.load(open("build/sbom.json")); \
	assert {"bomFormat", "serialNumber", "specVersion"} <= {*found}, "actions/attest needs these"; \
	assert any(part["name"] == "heatsketch" and part["version"] for part in found["components"])'

docs: ## run the gallery, make web pages in docs/_build/html; a warning is an error
	rm -rf docs/_build docs/gallery docs/reference/generated # no page of a name that is gone
	sphinx-build -W --keep-going -b html docs docs/_build/html
	python docs/check.py docs/_build/html

dist: ## build sdist and wheel twice, compare the bytes, and check them; leaves them in dist
	python -m pip install --group dist
	.ci/dist

smoke: ## the wheel of dist in a fresh environment of each Python that is here: README, short tests
	.ci/smoke

bare: ## build and test the wheel in two bare Debians without network, from the sdist of dist; needs root
	.ci/bare

later: ## the files of dist on the later Pythons of Debian testing; needs root
	.ci/later

newuser: ## the built wheel in a fresh environment: README, import, command line
	.ci/newuser

pictures: ## draw those of README, front page and pages; for the drift see examples/drift.py
	python examples/spiral.py
	python examples/parameters.py
	python examples/site_pictures.py
	python examples/distances.py
	python examples/compare.py
	python examples/labels.py
	python examples/fates.py
	python examples/uses.py
	python examples/report.py

COMPARED = asv continuous --factor 1.2 --split --show-stderr $(or $(BASE),main) HEAD
stages: ## time the stages of a fit here and at BASE (main by default); fails if one is 20 % slower, twice
	python -m pip install --group stages
	asv machine --yes
	$(COMPARED) || $(COMPARED) # a busy machine makes a stage slower once

evidence: export PYTHONPATH = . # for the folder paper
evidence: docs ## write docs/benchmarks again, in a day; scripts keep rows that are in some files: delete these first
	python -m pip install --group bench --group fuzz
	rm -f docs/benchmarks/accuracy.json
	python benchmarks/accuracy.py
	python benchmarks/small.py
	python benchmarks/eigenpairs.py
	python benchmarks/products.py
	python benchmarks/powers.py
	python benchmarks/constants.py
	python benchmarks/first_minute.py
	python benchmarks/ties.py
	python benchmarks/limits.py
	python benchmarks/accessibility.py
	python benchmarks/compare.py --level 1000 --power 200 --flags 400 --size 2000000
	python benchmarks/labels.py --accuracy --coverage --rare --suspects --scale --fates --fresh
	python benchmarks/fates.py
	python benchmarks/search.py
	python benchmarks/search.py --million
	python benchmarks/smooth.py
	python benchmarks/smooth.py --million
	python benchmarks/cluster_quality.py
	python benchmarks/cluster_quality.py --million
	python benchmarks/report.py
	python benchmarks/epsilon.py
	python benchmarks/all_times.py
	python benchmarks/selection.py
	python benchmarks/drift_level.py
	python benchmarks/pseudotime.py
	python benchmarks/pseudotime.py --time
	python benchmarks/graphs.py
	python benchmarks/million.py
	python benchmarks/scaling.py
	python benchmarks/usefulness.py --ours
	python benchmarks/isometry.py
	python benchmarks/cluster_cost.py --calibrate
	python tests/_support/fuzz_readers.py
	python benchmarks/page.py
	python benchmarks/uses_page.py

accessibility: docs ## faults of a report and of pages that axe-core (from npm) finds, in a browser
	python benchmarks/accessibility.py

chaos: ## kill workers and drivers of clusters by the dozen, in hours, and write docs/benchmarks
	python benchmarks/chaos.py
	python benchmarks/cluster.py

grid: ## the bits of one machine, on clusters of 1, 2 and 4 workers in 1 to 16 blocks
	python benchmarks/cluster_grid.py
	HEATSKETCH_GRID=1 python -m pytest tests/engines/test_dask_engine.py -k all_times

reproduce: ## run the paper's experiments in full, and write docs/developer/reproduction.md
	python -m paper --out docs/developer

lines: ## count lines of code, without docstrings and comments
	python .ci/count_lines.py

digests: ## write the digests of twelve fits, which every machine must find again
	python -W ignore tests/_support/digests.py > tests/baseline/digests.json

bits: ## compare the numbers of two checkouts: make bits OLD=../old/src
	python tests/_support/compare_bits.py $(OLD) src

clean: ## delete what the other targets made
	rm -rf build dist mutants docs/_build docs/gallery docs/reference/generated docs/sg_execution_times.rst .coverage* .hypothesis .*_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
