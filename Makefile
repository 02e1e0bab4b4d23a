# Foretoken's commands. `make run` and `make test` do their own set-up on a bare machine.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Tools that scripts/setup.sh put here come first; Rust is found right after its installation too.
export PATH := $(CURDIR)/.tools/bin:$(PATH):$(HOME)/.cargo/bin
CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR

NPM := npm --prefix ui --silent
PAGE := ui/dist/index.html
PAGE_SOURCES := $(shell find ui/src ui/public ui/index.html ui/package-lock.json ui/vite.config.ts -type f)
# Always all crates at once: a choice of them would build the libraries again with other features.
CARGO_ALL := --workspace --locked
# On Linux, where the window would appear; elsewhere there always is such a place.
DISPLAY_HERE := $(if $(filter Linux,$(shell uname)),$(DISPLAY)$(WAYLAND_DISPLAY),yes)

.NOTPARALLEL:
.PHONY: help setup setup-tests model page run run-window run-terminal test test-tensors test-sanitized test-arm check bench bench-ui pictures bundle cuda-build gpu-check gpu-check-cuda gpu-check-metal

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

setup: ## install what building needs
	@scripts/setup.sh window

setup-tests: ## install what testing needs
	@scripts/setup.sh tests

model: ## get SmolLM2, the model to begin with, once; the others do so by themselves
	@scripts/model.sh

run: $(if $(DISPLAY_HERE),run-window,run-terminal) ## build and open the window (or chat here, without a display)

run-window: setup model $(PAGE)
	@echo "Building Foretoken; the first time this takes some minutes."
	@cargo build --release $(CARGO_ALL) --bins
	@exec $(CARGO_TARGET_DIR)/release/foretoken

run-terminal:
	@scripts/setup.sh terminal
	@scripts/model.sh
	@echo "There is no display here, so this is the chat in the terminal. Building it takes some minutes the first time."
	@cargo build --release --locked -p foretoken-cli
	@exec $(CARGO_TARGET_DIR)/release/foretoken-cli chat

page: setup $(PAGE) ## build the page, which the window's binary holds

$(PAGE): $(PAGE_SOURCES)
	@echo "Building the page"
	@$(NPM) run build >&2

test: setup-tests model $(PAGE) ## all tests, the real window's too
	@echo "== Formats, lints and types"
	cargo fmt --all --check
	cargo clippy $(CARGO_ALL) --all-targets -- -D warnings
	$(NPM) run lint
	$(NPM) run check
	@echo "== Rust: all crates, and the real window"
	@rm -rf $(CARGO_TARGET_DIR)/bindings-before && cp -R ui/src/bindings $(CARGO_TARGET_DIR)/bindings-before
	cargo test $(CARGO_ALL)
	@echo "== The types the tests have just written for the page are the ones that were there"
	diff -r $(CARGO_TARGET_DIR)/bindings-before ui/src/bindings
	@echo "== The page's unit tests"
	$(NPM) test

# DEVICE=cuda or metal with a build for it: make test-tensors DEVICE=metal FEATURES="--features metal"
DEVICE := cpu
FEATURES :=
test-tensors: setup-tests $(PAGE) ## the engine's tests with models on tensors, the way of the GPUs, which takes some minutes
	FORETOKEN_TEST_DEVICE=$(DEVICE) cargo test $(CARGO_ALL) $(FEATURES) --test integration -- $(if $(filter cpu,$(DEVICE)),,--test-threads=1) lossless:: trial:: safetensors:: tensors::

# A stable compiler has sanitisers, too, if it is told that it is not one.
test-sanitized: setup-tests ## the kernels and the packing under the address sanitiser, on Linux with an x86-64 processor
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/sanitized \
		cargo test --locked -p foretoken-engine --lib --target x86_64-unknown-linux-gnu forward::

# The linker and the emulator that cargo shall use for ARM.
ARM := aarch64-unknown-linux-gnu
test-arm: setup-tests ## the kernels for NEON against their plain twins, on an emulated ARM processor
	@scripts/setup.sh arm
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
		cargo test --locked -p foretoken-engine --lib --target $(ARM) forward::cpu

check: setup $(PAGE) ## the quick part: formats, lints, types
	cargo fmt --all --check
	cargo clippy $(CARGO_ALL) --all-targets -- -D warnings
	$(NPM) run lint
	$(NPM) run check

# MODELS=FOLDER names a folder with .gguf files of real models, which are measured first. Those with random
# weights are made in the system's folder for temporary files. A process each, so that memory is measured of
# one model alone. LLAMA_CPP_BIN may name a folder with llama.cpp's programs.
MODELS :=
RANDOM_MODELS := 0.5B:Q4_K_M 0.5B:Q8_0 1.1B:Q4_K_M 1.1B:Q8_0

bench: setup $(PAGE) ## plain decoding against speculative: real models (MODELS=FOLDER), the starter, random weights
	@cargo build --release $(CARGO_ALL) --bins
	@$(if $(MODELS),$(CARGO_TARGET_DIR)/release/foretoken-cli bench --models "$(MODELS)" --tokens 64 --repeats 2; echo)
	@for draft in starter-draft ngram; do \
		echo "draft: $$draft"; $(CARGO_TARGET_DIR)/release/foretoken-cli bench --target starter --draft $$draft; \
	done
	@for model in $(RANDOM_MODELS); do \
		echo; $(CARGO_TARGET_DIR)/release/foretoken-cli bench --random $$model --verify-cost || exit 1; \
	done

# The window is driven as in the tests; what is built is what people run.
bench-ui: setup-tests $(PAGE) ## the window's speed against the terminal's (MODELS=FOLDER: real models, too), what painting costs
	@cargo build --release $(CARGO_ALL) --bins
	@cargo build $(CARGO_ALL) --examples
	@FORETOKEN_APPLICATION=$(CARGO_TARGET_DIR)/release/foretoken FORETOKEN_BENCH_MODELS="$(MODELS)" $(CARGO_TARGET_DIR)/debug/examples/bench_ui

pictures: setup-tests $(PAGE) ## the pictures in the documents, and those the heatmap is compared with
	@cargo build $(CARGO_ALL) --bins
	@FORETOKEN_KEEP_PICTURES=1 cargo test $(CARGO_ALL) --test desktop -- seeing::

SMOLLM2 := smollm2/SmolLM2-135M-Instruct-Q4_1.gguf
bundle: setup model $(PAGE) ## an installable package in target/dist/bundle, with SmolLM2 where it could be fetched
	@[ -f $(SMOLLM2) ] || echo "SmolLM2 is not here, so the package begins with the tiny starter model."
	cd src-tauri && npx --yes @tauri-apps/cli@2.12 build \
		$$([ ! -f ../$(SMOLLM2) ] || echo --config smollm2.conf.json) -- --profile dist

cuda-build: ## foretoken-cli for NVIDIA GPUs, on Linux; needs neither a GPU nor CUDA
	@scripts/setup.sh terminal
	@scripts/test-cuda-stubs.sh && scripts/cuda.sh build

# CHECK="--models 8B:Q8_0 --json" passes options on.
CHECK :=
GPU_CHECK := $(if $(filter Darwin,$(shell uname)),gpu-check-metal,gpu-check-cuda)
gpu-check: $(GPU_CHECK) ## whether this computer's GPU computes what the CPU does, and how fast: one table; makes files of 15 GB

gpu-check-cuda: cuda-build
	@exec $(CARGO_TARGET_DIR)/cuda/release/foretoken-cli gpu-check --device cuda $(CHECK)

gpu-check-metal:
	@scripts/setup.sh terminal
	@cargo build --release --locked -p foretoken-cli --features metal
	@exec $(CARGO_TARGET_DIR)/release/foretoken-cli gpu-check --device metal $(CHECK)
