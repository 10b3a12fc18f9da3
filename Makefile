# Millpond: the few commands a person types. CMake does the work; CMakePresets.json has the kinds of build.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
TESTS ?= .
SUITE ?= trixie
MINUTES ?= 10
# Tools that `make setup` unpacked for a user who is not root.
export PATH := $(CURDIR)/.deps/bin:$(PATH)

.DEFAULT_GOAL := build
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*## .*/\1/p' Makefile)

build: setup ## the program, build/bin/millpond (default)
	@$(call compile,release,build,--target program)

all: setup ## the program, the libraries, tests, examples and benchmarks
	@$(call compile,release,build)

setup: ## the libraries and tools the build needs (apt as root, otherwise into .deps); only looks when all is there
	@scripts/setup.sh

demo: build ## a first training run and its memory plan
	@scripts/demo.sh

test: all peers browser ## all tests; TESTS=regex picks some
	@$(call check,release)

fresh: ## `make demo` and `make test` on a clean system, as root: SUITE=bookworm, trixie or forky
	@scripts/fresh.sh $(SUITE)

peers: ## .venv-peers: TensorFlow, Keras and JAX, pinned, for tests and benchmarks
	@scripts/peers.sh

browser: ## what only tests need: Chromium for the report page, clang for the public headers
	@scripts/setup.sh tests

judge: build peers ## the doctor on PROGRAMS=500 generated programs of unseen seeds, or on CASES=folder; REJUDGE=1, OPEN=1 (tests/cases/README.md)
	@tests/cases/judge.py --jobs $(JOBS) $(if $(CASES),$(addprefix --cases ,$(CASES)),--programs $(or $(PROGRAMS),500)) $(if $(REJUDGE),--rejudge) $(if $(OPEN),--open) $(if $(SEED),--seed $(SEED))

prove: build peers ## the long proofs, with figures; ONLY=name picks one (scripts/prove.sh has the names)
	@scripts/prove.sh $(ONLY)

bench: all peers ## time and memory beside the peers
	@scripts/bench.sh

debug: setup ## tests with asserts and every invariant checked
	@$(call compile,debug,build-debug)
	@$(call check,debug)

asan: setup ## tests under the address and undefined-behaviour sanitizers
	@$(call compile,asan,build-asan)
	@$(call check,asan)

tsan: setup ## tests under the thread sanitizer
	@$(call compile,tsan,build-tsan)
	@$(call check,tsan)

fuzz: setup ## all fuzzers under the address sanitizer: MINUTES=60 of processor time together
	@JOBS=$(JOBS) scripts/fuzz.sh $(MINUTES) $(FUZZERS)

install: setup ## the command, headers, libmillpond.so, find_package(millpond) and pkg-config millpond, into PREFIX (/usr/local)
	@$(call compile,release,build,--target installed)
	@cmake --install build --prefix "$(PREFIX)" | grep -v '^-- Up-to-date' || true

wheel: setup ## dist/millpond-*.whl, which runs where nothing is installed; scripts/wheel.sh --try tries it
	@JOBS=$(JOBS) scripts/wheel.sh

format: peers ## clang-format over all C++
	@scripts/format.sh

clean: ## build folders only; .deps and .venv-peers stay
	@rm -rf build build-debug build-asan build-tsan build-fuzz build-wheel

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# $(call compile,PRESET,FOLDER[,MORE]): configure once; after that ninja re-runs CMake when it must. CI=1: warnings are errors.
compile = { [ -f $(2)/build.ninja ] || cmake --preset $(1) $(if $(CI),-DMILLPOND_WERROR=ON); } && cmake --build --preset $(1) -j $(JOBS) $(3)
check = scripts/check.sh $(1) $(JOBS) '$(TESTS)'
