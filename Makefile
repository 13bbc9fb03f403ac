# Everything that a developer runs. `make` alone prints this list.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# The newest PySpark for which delta-spark has a release: the conformance cases are validated there.
NEWEST_JVM := .venv-4.1
PYTEST := $(BIN)/python -m pytest

# The environment of each supported PySpark release: 4.3 is that of requirements.lock.
VERSIONS := .venv-4.0 .venv-4.1 .venv-4.2 $(VENV)
COMMITS = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
# Two of the three older releases; the next commit takes another pair.
SAMPLED = $(filter-out $(word $(shell echo $$(($(COMMITS) % 3 + 1))),$(VERSIONS)) $(VENV),$(VERSIONS))

# A Spark, a Python path or a Python home of the caller's own would be mixed with those of the virtual environment.
unexport SPARK_HOME
unexport PYTHONPATH
unexport PYTHONHOME
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export SPARK_LOCAL_IP ?= 127.0.0.1

# Prefix of a recipe line that starts Spark: the directory of a Java runtime that is new enough, or one clear sentence.
JAVA := JAVA_HOME="$$(scripts/java_home.sh)" && export JAVA_HOME &&

.PHONY: help setup java demo test test-core test-spark test-versions test-versions-sample delta-spark-tests interop lint format docs golden bench soak lock clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-21s %s\n", $$1, $$2}'

setup: $(VENV)/.package java ## make .venv from requirements.lock and see to a Java runtime (17 or newer)

java:
	@$(JAVA) echo "Java runtime: $$JAVA_HOME"

# pip leaves an environment alone that already holds what the lock names, so this costs seconds when little has changed.
$(VENV)/.dependencies: requirements.lock scripts/make_venv.sh
	@scripts/make_venv.sh $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.package: $(VENV)/.dependencies pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The PySpark releases before the one in requirements.lock, each with the same other packages.
.venv-4.%/.package: requirements.lock requirements-pyspark.lock scripts/make_venv.sh scripts/lock_for_pyspark.sh pyproject.toml
	@scripts/make_venv.sh .venv-4.$*
	@scripts/lock_for_pyspark.sh 4.$* >.venv-4.$*/requirements.lock
	.venv-4.$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv-4.$*/requirements.lock
	.venv-4.$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The oldest PySpark with the readers of `make interop`, from a lock of its own.
$(OLDEST)/.package: requirements-oldest.lock scripts/make_venv.sh pyproject.toml
	@scripts/make_venv.sh $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-oldest.lock
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(VENV)/.package ## a year of flights: Spark writes Delta, seven readers agree on it; then as streams (about three minutes)
	@$(JAVA) $(BIN)/python -m demo

test: $(VENV)/.package ## the whole test suite, with and without Spark side by side; FILES="tests/unit/log" runs that room alone
	@$(JAVA) $(if $(FILES),$(PYTEST) $(FILES),scripts/run_tests.sh $(CURDIR)/$(BIN)/python)

test-core: $(VENV)/.package ## the tests that need neither Spark nor Java
	@$(PYTEST) --ignore=tests/spark -m "not spark and not soak and not jvm and not readers"

test-spark: $(VENV)/.package ## the tests that start Spark, with all of Spark's settings as users have them
	@$(JAVA) TAHOE_SPARK_AS_USERS_HAVE_IT=1 $(PYTEST) -m "spark and not soak"

test-versions: $(VERSIONS:%=%/.package) ## the tests that start Spark on every supported PySpark (VERSIONS=.venv-4.1 runs one); over an hour
	@$(JAVA) TAHOE_SPARK_AS_USERS_HAVE_IT=1 scripts/test_versions.sh $(VERSIONS)

test-versions-sample: $(SAMPLED:%=%/.package) ## an eighth of them on two PySpark releases before the newest; the commit number selects both
	@$(JAVA) scripts/test_versions.sh $(SAMPLED) -- --share=$(shell echo $$(($(COMMITS) % 8)))/8

delta-spark-tests: $(VENV)/.package ## delta-spark's own Python tests against Tahoe; CHECKOUT=DIR is a clone of github.com/delta-io/delta
	@$(JAVA) $(BIN)/python scripts/delta_spark_tests.py --checkout "$(CHECKOUT)"

interop: $(OLDEST)/.package $(NEWEST_JVM)/.package ## the JVM's own Delta and Iceberg (Spark fetches their JARs), ClickHouse, Sail and DataFusion on the same tables
	@$(JAVA) PYSPARK_PYTHON=$(CURDIR)/$(OLDEST)/bin/python $(OLDEST)/bin/python -m pytest tests/jvm tests/interop -m "jvm or readers"
	@$(JAVA) PYSPARK_PYTHON=$(CURDIR)/$(NEWEST_JVM)/bin/python $(NEWEST_JVM)/bin/python -m pytest tests/jvm/test_conformance_jvm.py -m jvm

lint: $(VENV)/.package ## ruff, mypy --strict, the contract of the layers, and the house's own rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict tahoe pyspark_delta
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_house.py

format: $(VENV)/.package ## let ruff format and repair what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.package ## write the pages of docs/ that are printed from code
	$(BIN)/python scripts/feature_table.py >docs/features.md
	$(BIN)/python scripts/settings_table.py >docs/settings.md
	$(BIN)/python scripts/coming_from_delta_spark.py >docs/coming-from-delta-spark.md

bench: $(VENV)/.package ## every experiment in benchmarks/ at a modest size, each printing its ratios
	@$(JAVA) for script in benchmarks/[a-z]*.py; do echo; echo "== $$script"; $(BIN)/python "$$script"; done

golden: $(VENV)/.package ## FOLDER=DIR: every Delta table below it through every reader, and where two disagree; SPARK=1 takes Spark too
	@$(JAVA) $(BIN)/python scripts/golden.py "$(or $(FOLDER),../shared/golden)" $(if $(SPARK),--spark)

soak: $(VENV)/.package ## the long tests: many more seeds, writers and faults
	@$(JAVA) HYPOTHESIS_PROFILE=explore $(PYTEST) -m soak

LOCK := uv pip compile pyproject.toml --extra connect --extra iceberg --extra hive --extra glue --extra serve --extra coordinator --group dev --universal \
  --generate-hashes --python-version 3.11 \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet

lock: $(VENV)/.package ## make requirements.lock and requirements-oldest.lock anew from pyproject.toml (needs uv)
	$(LOCK) --output-file requirements.lock
	$(LOCK) --group readers --constraint <(echo "pyspark==4.0.*") --output-file requirements-oldest.lock

clean: ## remove what tests and the demonstration leave behind; .venv stays
	rm -rf demo-output build dist spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
