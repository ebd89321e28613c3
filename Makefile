# Each target works from a fresh clone with Python 3.11 and g++ alone.
PYTHON ?= python3
BIN := .venv/bin
CXX_FILES := $(shell find cpp -name "*.cpp" -o -name "*.h")

.PHONY: demo test lint types selfcheck unit docs bench stub setup clean

## demo: set up, then plan a part of Denver by every method and draw the best plan
demo: setup
	mkdir -p out
	$(BIN)/arcfleet info example:denver
	@echo
	$(BIN)/arcfleet compare example:denver --time 2 --seed 1 \
	    --out out/denver-plan.json --plot out/denver-plan.png --html out/denver-plan.html
	@echo
	$(BIN)/arcfleet check example:denver out/denver-plan.json
	@echo "The best plan is in out/denver-plan.json, its picture in out/denver-plan.png;"
	@echo "open out/denver-plan.html in a browser to see it driven"

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
	$(BIN)/pytest -n 2 -q

## docs: build the site into build/site; any warning is an error
docs: setup
	$(BIN)/python -m tools.docs

## bench: the speed of each kernel beside its reference
bench: setup
	$(BIN)/python -m benchmarks.network_speed
	$(BIN)/python -m benchmarks.path_scanning_speed
	$(BIN)/python -m benchmarks.split_speed
	$(BIN)/python -m benchmarks.street_maps

## stub: write the extension's stub anew after its bindings changed
stub: setup
	$(BIN)/python -m nanobind.stubgen -m arcfleet._core -o src/arcfleet/_core.pyi

setup: .venv/ready

# torch first, and pinned: what depends on it would bring a build with CUDA along.
# --no-build-isolation: the build uses the pinned tools of the environment.
.venv/ready: pyproject.toml constraints.txt CMakeLists.txt $(CXX_FILES)
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt \
	    scikit-build-core nanobind cmake ninja torch
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt \
	    --no-build-isolation -e ".[plot,maps,sheets,neural,docs,test]"
	touch $@

clean:
	rm -rf .venv build out
