# Each target works from a fresh clone with Python 3.11 and g++ alone.
PYTHON ?= python3
BIN := .venv/bin
PIP = $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt
CXX_FILES := $(shell find cpp -name "*.cpp" -o -name "*.h")

.PHONY: core demo demo-neural serve fuzz test test-lowest lint types selfcheck unit docs bench page stub setup clean

## demo: set up, then plan a part of Denver: a map, and a sheet and a track for each driver
demo: core
	mkdir -p out
	$(BIN)/arcfleet info example:denver
	@echo
	$(BIN)/arcfleet solve example:denver --time 10 --seed 1 --out out/denver-plan.json \
	    --html out/denver-map.html --plot out/denver-plan.png \
	    --sheets out/denver-drivers --gpx out/denver-drivers
	@echo
	$(BIN)/arcfleet check example:denver out/denver-plan.json
	@echo "Open out/denver-map.html in a browser to see the plan driven; the drivers' sheets"
	@echo "and tracks are in out/denver-drivers, a picture is in out/denver-plan.png"

## demo-neural: the same streets by every method, the learned ones too
demo-neural: setup
	mkdir -p out
	$(BIN)/arcfleet compare example:denver --time 5 --seed 1 --out out/denver-best.json

## serve: set up, then start the web app on bundled streets and open its page
serve: core
	$(PIP) $$($(BIN)/python -m tools.requirements serve)
	$(BIN)/arcfleet serve --data out/serve --open $(SERVE)

## test: set up, then lint, types, the self-check of the C++ core, tests and the site
test: setup lint types selfcheck unit docs

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

# Built with the address and undefined-behaviour sanitizers, outside of the tests, where no
# time limit can end it.
selfcheck: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B build/selfcheck -G Ninja \
	    -DARCFLEET_PYTHON=OFF -DARCFLEET_SELFCHECK=ON -DARCFLEET_SANITIZE=ON \
	    -DCMAKE_BUILD_TYPE=RelWithDebInfo --log-level=WARNING
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/selfcheck -- --quiet
	build/selfcheck/selfcheck

unit: setup
	$(BIN)/pytest -n 2 --dist worksteal -q

## test-lowest: the tests with the least versions that pyproject.toml allows, once per release
# Packages beneath these are the latest, so their own deprecation warnings are no errors.
test-lowest:
	test -d .venv-lowest || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m tools.requirements --lowest bounds plot maps sheets neural cluster serve \
	    > .venv-lowest/requirements.txt
	.venv-lowest/bin/pip install -q --disable-pip-version-check \
	    -r .venv-lowest/requirements.txt scikit-build-core hatch-fancy-pypi-readme nanobind \
	    cmake ninja geopandas httpx hypothesis networkx pypdf pyproj pytest pytest-timeout \
	    pytest-xdist PyYAML schemathesis tensorboard xmlschema
	.venv-lowest/bin/pip install -q --no-build-isolation --no-deps .
	.venv-lowest/bin/pytest -n 2 -q -W default -W ignore::DeprecationWarning \
	    --ignore tests/docs --ignore tests/streets/test_osmnx_graph.py

## fuzz: damaged files for every reader for an hour, findings into out/fuzz; FUZZ="--seconds 60"
# Where atheris is installed in .venv, half of the time is for what it finds.
fuzz: setup
	$(BIN)/python -m tests.fuzz $(FUZZ)

## docs: build the site into build/site; any warning is an error
docs: setup
	$(BIN)/python -m tools.docs

## bench: the speed of each kernel beside its reference
bench: setup
	$(BIN)/python -m benchmarks.network_speed
	$(BIN)/python -m benchmarks.path_scanning_speed
	$(BIN)/python -m benchmarks.split_speed
	$(BIN)/python -m benchmarks.street_maps

## page: build the page of the web app from web/ into the package; needs Node.js
page:
	cd web && npm ci --no-audit --no-fund && npm run build

## stub: write the extension's stub anew after its bindings changed
stub: setup
	$(BIN)/python -m nanobind.stubgen -m arcfleet._core -o src/arcfleet/_core.pyi

## setup: the package with all extras and what the tests need, into .venv
setup: .venv/ready

core: .venv/core

# --no-build-isolation: the build uses the pinned tools of the environment.
.venv/core: pyproject.toml constraints.txt CMakeLists.txt $(CXX_FILES)
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) scikit-build-core hatch-fancy-pypi-readme nanobind cmake ninja
	$(PIP) --no-build-isolation -e ".[bounds,plot,maps,sheets]"
	touch $@

# torch first, and pinned: what depends on it would bring a build with CUDA along. The rest
# by name: installing the package again would build it again.
.venv/ready: .venv/core
	$(PIP) torch
	$(BIN)/python -m tools.requirements neural cluster serve docs test > .venv/requirements.txt
	$(PIP) -r .venv/requirements.txt
	touch $@

clean:
	rm -rf .venv build out
