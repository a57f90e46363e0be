# `make help` lists what there is. CMake alone works too: cmake --preset release.
PREFIX ?= /usr/local
SECONDS_PER_TARGET ?= 60
WALKS ?= 3000

.PHONY: build help demo test test-mlx test-browser test-llama sanitize fuzz bench bench-llama property mutants lint format wheel install uninstall clean

build: ## the library, optimised and without assertions, in build/release
	@tools/install-deps build
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
	@echo 'NO_INSTALL=1 prints the packages that are missing, and stops.'

demo: ## keeps a real model's prompt across two processes, and shows what that saves
	@tools/install-deps build python mlx demo
	@tools/install_python
	@tools/demo

test: ## builds and runs every test
	@tools/test

test-mlx: ## long chats with a real model through mlx-lm's server: restarts, kill -9, damage, windows
	@tools/install-deps build python mlx demo
	@tools/install_python
	@.venv/bin/pytest -q -m long python/tests

test-browser: ## the status page of kvkeep llama in headless Chromium, where one is installed
	@tools/install-deps build test python
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target kvkeep_cli
	@.venv/bin/pytest -q -rs tests/browser

test-llama: ## 20 chats, and KVKEEP_SOAK (300) seconds of many clients and killed processes, with real llama-servers
	@tools/install-deps build test python llama
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target kvkeep_cli
	@.venv/bin/pytest -q -m long tests/llama

sanitize: ## the C++ tests under ASan with UBSan, and under TSan
	@tools/install-deps build test lint
	@rm -rf build/results/asan build/results/tsan
	@tools/test_build asan $(CURDIR)/build/results/asan
	@tools/test_build tsan $(CURDIR)/build/results/tsan

fuzz: ## each fuzz target for SECONDS_PER_TARGET (60)
	@tools/fuzz $(SECONDS_PER_TARGET)

bench: ## what kvkeep costs, beside baselines; BENCH_DIR names the drive, BENCH_ARGS=--large opens 100,000 blocks
	@tools/install-deps build test python mlx demo
	@tools/install_python
	@cmake --preset bench --log-level=WARNING
	@cmake --build --preset bench --target kvkeep_bench
	@build/bench/bench/kvkeep_bench $(BENCH_DIR) $(BENCH_ARGS)
	@.venv/bin/python bench/against_safetensors.py $(BENCH_DIR)
	@.venv/bin/python bench/fetch_for_mlx.py $(BENCH_DIR)

bench-llama: ## what kvkeep llama costs before a real llama-server, and what a restore costs
	@tools/install-deps build python llama
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target kvkeep_cli
	@.venv/bin/python bench/llama_server.py build/release/program/kvkeep

property: ## the random walks over everything, WALKS (3000) times
	@tools/install-deps build test
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target system_test
	@KVKEEP_WALKS=$(WALKS) KVKEEP_STEPS=500 build/dev/tests/system/system_test --gtest_filter='Stateful.*:PrefixWalk.*'

mutants: ## would the tests notice? one-line faults, one at a time
	@tools/install-deps build test
	@tools/mutants

lint: ## layers, format, house rules, headers, clang with -Wthread-safety
	@tools/lint

format: ## formats the C++ files
	@tools/install-deps lint
	@tools/format

wheel: ## the Python package as a wheel, in dist/
	@tools/install-deps build python
	@.venv/bin/pip wheel --disable-pip-version-check --no-build-isolation --no-deps -q -C build-dir=build/python -w dist .

install: build ## into PREFIX (/usr/local), below DESTDIR
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

uninstall: ## what install put there; caches stay
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) tools/uninstall

clean: ## build/ and dist/
	@rm -rf build dist
