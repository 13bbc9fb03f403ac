# Everything that a developer runs. `make` alone prints this list.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
# Installed as copies, even from a clone.
STARTUP := tahoe_startup.py tahoe_startup.pth
BIN := $(VENV)/bin
OLDEST := .venv-oldest
CLIENTS := .venv-clients
# The newest PySpark with a delta-spark release: the conformance cases are validated there.
NEWEST_JVM := .venv-4.1
PYTEST := $(BIN)/python -m pytest

# The environment of each supported PySpark release: 4.3 is that of requirements.lock.
VERSIONS := .venv-4.0 .venv-4.1 .venv-4.2 $(VENV)
COMMITS = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
# Two of the three older releases; each commit selects another pair.
SAMPLED = $(filter-out $(word $(shell echo $$(($(COMMITS) % 3 + 1))),$(VERSIONS)) $(VENV),$(VERSIONS))

# The caller's Spark, Python path or Python home would be mixed with those of the virtual environment.
unexport SPARK_HOME
unexport PYTHONPATH
unexport PYTHONHOME
# Tests start hundreds of Python processes, and Spark more. Without bytecode files each would compile Tahoe, and each run all tests.
unexport PYTHONDONTWRITEBYTECODE
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export SPARK_LOCAL_IP ?= 127.0.0.1

# Prefix of a recipe line that starts Spark: finds the directory of a suitable Java runtime, or fails with one sentence.
JAVA := JAVA_HOME="$$(scripts/java_home.sh)" && export JAVA_HOME &&

.PHONY: help setup java demo test test-core test-spark test-versions test-versions-sample test-nightly delta-spark-tests interop clients lint format docs site golden bench accessibility soak packages release-check sbom lock clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-21s %s\n", $$1, $$2}'

setup: $(VENV)/.package java ## create .venv from requirements.lock and install a Java runtime (17 or newer) if there is none

java:
	@$(JAVA) echo "Java runtime: $$JAVA_HOME"

# pip skips packages that are already installed at the locked version, so this takes seconds after small changes.
$(VENV)/.dependencies: requirements.lock scripts/make_venv.sh
	@scripts/make_venv.sh $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.package: $(VENV)/.dependencies pyproject.toml $(STARTUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Environments of the PySpark releases before the one in requirements.lock; all other packages are the same.
.venv-4.%/.package: requirements.lock requirements-pyspark.lock scripts/make_venv.sh scripts/lock_for_pyspark.sh pyproject.toml $(STARTUP)
	@scripts/make_venv.sh .venv-4.$*
	@scripts/lock_for_pyspark.sh 4.$* >.venv-4.$*/requirements.lock
	.venv-4.$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv-4.$*/requirements.lock
	.venv-4.$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The oldest PySpark and the readers of `make interop`, from a separate lock file.
$(OLDEST)/.package: requirements-oldest.lock scripts/make_venv.sh pyproject.toml $(STARTUP)
	@scripts/make_venv.sh $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-oldest.lock
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The clients of `make clients`, from a separate lock file. --no-deps: it deviates from two of their requirements (CLIENTS_OVERRIDE).
$(CLIENTS)/.package: requirements-clients.lock scripts/make_venv.sh pyproject.toml $(STARTUP)
	@scripts/make_venv.sh $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-clients.lock
	$(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(VENV)/.package ## a year of flights: Spark writes Delta, seven readers agree on it; then as streams (about three minutes)
	@$(JAVA) $(BIN)/python -m demo

test: $(VENV)/.package ## the whole test suite, with and without Spark in parallel; FILES="tests/unit/log" runs only that folder
	@$(JAVA) $(if $(FILES),$(PYTEST) $(FILES),scripts/run_tests.sh $(CURDIR)/$(BIN)/python)

test-core: $(VENV)/.package ## the tests that need neither Spark nor Java
	@$(PYTEST) --ignore=tests/spark -m "not spark and not soak and not jvm and not readers and not clients"

test-spark: $(VENV)/.package ## the tests that start Spark, with Spark's default settings
	@$(JAVA) TAHOE_SPARK_AS_USERS_HAVE_IT=1 $(PYTEST) -m "spark and not soak"

test-versions: $(VERSIONS:%=%/.package) ## the tests that start Spark on every supported PySpark (VERSIONS=.venv-4.1 runs one); over an hour
	@$(JAVA) TAHOE_SPARK_AS_USERS_HAVE_IT=1 scripts/test_versions.sh $(VERSIONS)

test-versions-sample: $(SAMPLED:%=%/.package) ## an eighth of them on two PySpark releases before the newest; the number of commits selects both
	@$(JAVA) scripts/test_versions.sh $(SAMPLED) -- --share=$(shell echo $$(($(COMMITS) % 8)))/8

test-nightly: soak test-versions interop ## all cases, PySpark releases, catalogs and readers, and every table checked; takes hours
	@$(JAVA) HYPOTHESIS_PROFILE=nightly TAHOE_CHECK_ALL=1 scripts/run_tests.sh $(CURDIR)/$(BIN)/python --timeout=7200

delta-spark-tests: $(VENV)/.package ## delta-spark's own Python tests against Tahoe; CHECKOUT=DIR is a clone of github.com/delta-io/delta
	@$(JAVA) $(BIN)/python scripts/delta_spark_tests.py --checkout "$(CHECKOUT)"

interop: $(OLDEST)/.package $(NEWEST_JVM)/.package ## the JVM's Delta and Iceberg (Spark downloads their JARs), ClickHouse, Sail and DataFusion on the same tables; HDFS and Azurite
	@$(JAVA) PYSPARK_PYTHON=$(CURDIR)/$(OLDEST)/bin/python $(OLDEST)/bin/python -m pytest tests/jvm tests/interop -m "jvm or readers"
	@$(JAVA) PYSPARK_PYTHON=$(CURDIR)/$(NEWEST_JVM)/bin/python $(NEWEST_JVM)/bin/python -m pytest tests/jvm/test_conformance_jvm.py -m jvm

clients: ## dbt, ibis, MLflow, Airflow and other clients, with Delta by configuration; MACK=DIR is a clone of github.com/MrPowers/mack
	@$(MAKE) --no-print-directory $(CLIENTS)/.package || { echo "make clients: SKIPPED, because pip could not install requirements-clients.lock: see its error above."; exit 0; }; \
	$(JAVA) PYSPARK_PYTHON=$(CURDIR)/$(CLIENTS)/bin/python TAHOE_TEST_MACK="$(MACK)" $(CLIENTS)/bin/python -m pytest tests/clients -m clients --timeout=3600

lint: $(VENV)/.package ## ruff, mypy --strict, the layer contract, and the structure rules of scripts/check_house.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict tahoe pyspark_delta tahoe_startup.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_house.py

format: $(VENV)/.package ## format and fix with ruff
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.package ## update the generated pages of docs/
	$(BIN)/python scripts/feature_table.py >docs/features.md
	$(BIN)/python scripts/settings_table.py >docs/settings.md
	$(BIN)/python scripts/coming_from_delta_spark.py >docs/coming-from-delta-spark.md
	$(BIN)/python scripts/sql_reference.py >docs/sql.md
	$(BIN)/python scripts/error_reference.py >docs/errors.md
	$(BIN)/python scripts/engine_table.py >docs/engines.md
	$(BIN)/python scripts/ratio_history.py >docs/ratios.md

site: .venv-docs/.package ## the documentation as a web site in site/, with the API reference; fails on broken links
	.venv-docs/bin/mkdocs build --strict # not --quiet, which hides the warnings that fail the build

.venv-docs/.package: requirements-docs.lock scripts/make_venv.sh
	@scripts/make_venv.sh .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

bench: $(VENV)/.package ## every experiment in benchmarks/; compares its ratios with the accepted ones of benchmarks/ratios.json; over an hour
	@$(JAVA) $(BIN)/python scripts/benchmark_ratios.py full

bench-check: $(VENV)/.package ## the ten cheapest experiments at a small size, compared likewise (about three minutes)
	@$(BIN)/python scripts/benchmark_ratios.py check

bench-jars: $(OLDEST)/.package ## Tahoe against delta-spark, and scans of S3 with and without S3A; needs Maven Central
	@$(JAVA) $(OLDEST)/bin/python -m pytest -q -m jvm tests/jvm/test_s3a_jvm.py
	@$(JAVA) $(OLDEST)/bin/python benchmarks/s3_scan.py --jars .ivy/s3a
	@$(JAVA) $(OLDEST)/bin/python benchmarks/spark_against_delta_spark.py

bench-accept: $(VENV)/.package ## accept the ratios of the last `make bench` or `make bench-check`, and add them to the history
	@$(BIN)/python scripts/benchmark_ratios.py accept

accessibility: $(VENV)/.package ## axe-core in headless Chromium on reports, layouts, pages of `tahoe serve` and notebook output; SHOTS=DIR for screenshots
	@$(BIN)/python scripts/accessibility.py $(SHOTS)

golden: $(VENV)/.package ## FOLDER=DIR: read every Delta table below it with every reader and report differences; SPARK=1 includes Spark
	@$(JAVA) $(BIN)/python scripts/golden.py "$(or $(FOLDER),../shared/golden)" $(if $(SPARK),--spark)

soak: $(VENV)/.package ## the cases that `make test` leaves out, and long tests: many more seeds, writers and faults
	@$(JAVA) TAHOE_SAMPLE_CASES=1 HYPOTHESIS_PROFILE=explore $(PYTEST) -m soak

packages: $(VENV)/.package ## build wheel and sdist, install them with each extra in new environments outside the clone, use each; STEPS="base spark"
	@$(JAVA) $(BIN)/python scripts/packages.py $(STEPS)

release-check: $(VENV)/.package ## every step of a release but publishing: TAG=v1.2.3, version and changelog agree; then packages and sbom
	@$(BIN)/python scripts/release_check.py $(TAG)
	@$(MAKE) --no-print-directory packages sbom

sbom: $(VENV)/.package .venv-release/.package ## the components of a release from requirements.lock, as CycloneDX in build/
	@$(BIN)/python scripts/sbom.py .venv-release/bin/cyclonedx-py build/tahoe-delta.cdx.json

.venv-release/.package: requirements-release.lock scripts/make_venv.sh
	@scripts/make_venv.sh .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	@touch $@

LOCK := uv pip compile pyproject.toml --extra connect --extra iceberg --extra hive --extra glue --extra serve --extra coordinator --extra opentelemetry --extra openlineage --extra dynamodb --group dev --universal \
  --generate-hashes --python-version 3.11 \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet

# ibis 12 names PySpark before 4.1, and Airflow's provider names pyspark-client, whose files would replace those of PySpark.
CLIENTS_OVERRIDE := "pyspark>=4.3,<4.4" "pyspark-client; python_version < '3'"

lock: $(VENV)/.package ## update the lock files from pyproject.toml (needs uv)
	$(LOCK) --output-file requirements.lock
	$(LOCK) --group readers --constraint <(echo "pyspark==4.0.*") --output-file requirements-oldest.lock
	uv pip compile pyproject.toml --extra spark --extra testing --group clients --override <(printf '%s\n' $(CLIENTS_OVERRIDE)) \
	  --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet \
	  --output-file requirements-clients.lock
	uv pip compile --group docs --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	  --no-emit-find-links --quiet --output-file requirements-docs.lock
	uv pip compile --group release --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	  --no-emit-find-links --quiet --output-file requirements-release.lock

clean: ## delete the output of tests and the demonstration; .venv stays
	rm -rf demo-output build dist spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
