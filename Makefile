# Every target installs what it needs: a virtual environment from the lock file, and a broker from Docker or Maven.
#
#   make demo     a sample crawl through the embedded run, no broker
#   make test     lint, then all tests on a real Kafka
#   make faults   the fault tests at full length
#   make soak     an hour of constant load, during which memory and latency must not grow (make soak MINUTES=10)
#   make lint     ruff, mypy and bandit
#   make bench    every benchmark at its default size (one benchmark: make bench NAME=runner)
#   make up       start the stack of docker-compose.yml, in Docker or as local processes, and process a sample crawl
#   make down     stop the stack
#   make broker   only Apache Kafka, in the foreground, on port 9092
#   make docs     build the documentation as a searchable site in .run/docs
#   make references  regenerate the reference pages (commands, settings, metrics, benchmarks)
#   make lock     regenerate the lock files from pyproject.toml

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KAFKA ?= 4.3.1
NAME ?= all
MINUTES ?= 60
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test faults soak lint bench docs references up down broker lock clean

help:
	@sed -n 's/^#   //p' Makefile

# The environment matches the lock file if the stamp is newer.
$(VENV)/stamp: deploy/lock/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("expected Python 3.11 or newer, got " + sys.version.split()[0] + "; set PYTHON=") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --requirement deploy/lock/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Two processes, because many tests wait for a broker most of the time. The tests of a file share its fixtures.
PARALLEL ?= --numprocesses 2 --dist loadfile --no-loadscope-reorder

# On a machine with Docker, or with Java and Maven, a skipped integration test is a failure.
# Evaluated only by the targets that use it.
REAL = $(shell { command -v java && command -v mvn || docker info; } >/dev/null 2>&1 && echo 1)

# The kernels are compiled once in advance, instead of by every test process.
test: lint
	$(BIN)/neardup warm-up
	NEARDUP_TEST_REQUIRE_REAL_BROKER=$(REAL) NEARDUP_TEST_KAFKA_VERSION=$(KAFKA) $(BIN)/pytest $(PARALLEL) $(PYTEST_ARGS)

faults: $(VENV)/stamp
	NEARDUP_TEST_REQUIRE_REAL_BROKER=$(REAL) NEARDUP_TEST_KAFKA_VERSION=$(KAFKA) NEARDUP_TEST_FUZZ_RECORDS=100000 NEARDUP_TEST_FAULT_ROUNDS=10 NEARDUP_TEST_FLOOD_SECONDS=120 $(BIN)/pytest -m faults $(PYTEST_ARGS)

soak: $(VENV)/stamp
	NEARDUP_TEST_REQUIRE_REAL_BROKER=$(REAL) NEARDUP_TEST_KAFKA_VERSION=$(KAFKA) $(BIN)/python tests/faults/soak.py --minutes $(MINUTES)

lint: $(VENV)/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml shared services deploy

DEMO := .run/demo
demo: $(VENV)/stamp
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(BIN)/neardup sample --pages 5000 --out $(DEMO)/pages.jsonl --truth $(DEMO)/truth.jsonl
	$(BIN)/neardup dedup $(DEMO)/pages.jsonl --state $(DEMO)/state --out $(DEMO)/verdicts.jsonl
	$(BIN)/neardup score $(DEMO)/verdicts.jsonl $(DEMO)/truth.jsonl

$(VENV)/bench: deploy/lock/bench.txt $(VENV)/stamp
	$(BIN)/pip install --quiet --require-hashes --requirement deploy/lock/bench.txt
	@touch $@

bench: $(VENV)/bench
	$(BIN)/python tests/bench/run.py $(NAME)

$(VENV)/docs: deploy/lock/docs.txt $(VENV)/stamp
	$(BIN)/pip install --quiet --require-hashes --requirement deploy/lock/docs.txt
	@touch $@

# Warnings fail the build, such as a broken link or a page that is missing in the navigation.
docs: $(VENV)/docs
	$(BIN)/python deploy/docs/references.py --check
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --doctree-dir .run/doctrees deploy/docs .run/docs
	@echo "The site is in .run/docs; open .run/docs/index.html"

references: $(VENV)/stamp
	$(BIN)/python deploy/docs/references.py

up: $(VENV)/stamp
	$(BIN)/python -m deploy.stack up
	$(BIN)/neardup sample --pages 2000 --format msgpack --out - | $(BIN)/neardup produce - --wait

down: $(VENV)/stamp
	$(BIN)/python -m deploy.stack down

broker:
	$(PYTHON) -m deploy.kafka.broker run --data .run/kafka-$(KAFKA) --version $(KAFKA)

# The lock files contain hashes but no address of an index. With --universal, one file serves all platforms and Pythons.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links
lock:
	$(LOCK) pyproject.toml --group dev --output-file deploy/lock/dev.txt
	$(LOCK) pyproject.toml --group bench --constraint deploy/lock/dev.txt --output-file deploy/lock/bench.txt
	$(LOCK) --group docs --constraint deploy/lock/dev.txt --output-file deploy/lock/docs.txt
	$(LOCK) pyproject.toml --constraint deploy/lock/dev.txt --output-file deploy/lock/runtime.txt
	$(LOCK) --group build --constraint deploy/lock/dev.txt --output-file deploy/lock/build.txt

clean:
	rm -rf $(VENV) .run .mypy_cache .ruff_cache .pytest_cache .hypothesis
