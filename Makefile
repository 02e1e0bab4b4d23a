# Foretoken's commands. `make run` and `make test` set up a bare machine by themselves.

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
.PHONY: help setup setup-tests setup-systems model page run run-window run-terminal test nightly quick test-clients test-tensors test-gpu test-mesa kernel-statistics test-sanitized test-arm test-package test-windows test-windows-package check-systems fuzz kill-test soak setup-check check bench bench-ui bench-server pictures bundle bundle-windows release cuda-build gpu-check gpu-check-cuda gpu-check-metal

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

setup: ## install what the build needs
	@scripts/setup.sh window

setup-tests: ## install what the tests need
	@scripts/setup.sh tests

setup-check:
	@scripts/setup.sh check

setup-systems:
	@scripts/setup.sh systems

model: ## download the default model, SmolLM2, once (run, test and bundle do this too)
	@scripts/model.sh

run: $(if $(DISPLAY_HERE),run-window,run-terminal) ## build and open the window (without a display: the chat in the terminal)

run-window: setup model $(PAGE)
	@echo "Building Foretoken; the first build takes several minutes."
	@cargo build --release $(CARGO_ALL) --bins
	@exec $(CARGO_TARGET_DIR)/release/foretoken

run-terminal:
	@scripts/setup.sh terminal
	@scripts/model.sh
	@echo "No display found, so this starts the chat in the terminal. The first build takes several minutes."
	@cargo build --release --locked -p foretoken-cli
	@exec $(CARGO_TARGET_DIR)/release/foretoken-cli chat

page: setup $(PAGE) ## build the page, which becomes part of the window's binary

$(PAGE): $(PAGE_SOURCES)
	@echo "Building the page"
	@$(NPM) run build >&2

# The end lists how long each part took.
TIMES = $(CARGO_TARGET_DIR)/test-times
PART = @scripts/part.sh $(TIMES)
BINDINGS_BEFORE = $(CARGO_TARGET_DIR)/bindings-before

test: setup-tests model $(PAGE) ## run all tests, including those of the real window, with one case of each kind
	@mkdir -p $(CARGO_TARGET_DIR) && rm -rf $(TIMES) $(BINDINGS_BEFORE) && cp -R ui/src/bindings $(BINDINGS_BEFORE)
	$(PART) "The page's size" scripts/check-page.sh ui/dist
	$(PART) "Building the programs" cargo build $(CARGO_ALL) --bins
	$(PART) "Where the programs look for libraries" scripts/check-libraries.sh $(addprefix $(CARGO_TARGET_DIR)/debug/,foretoken foretoken-cli)
	$(PART) "Building the Rust tests" cargo test $(CARGO_ALL) --no-run
	$(PART) "Rust tests: all crates, and the real window" scripts/rust-tests.sh $(CARGO_ALL)
	$(PART) "The generated types of the page are up to date" diff -r $(BINDINGS_BEFORE) ui/src/bindings
	$(PART) "Page unit tests" $(NPM) test
	@echo "All tests passed:" && cat $(TIMES)

# Longer than `test` before a change is merged: every case of every matrix, examples in comments, then what `test` only
# begins with. Continuous integration runs the tests of it.
NIGHTLY_RUNS := 200000
nightly: export FORETOKEN_NIGHTLY = 1
nightly: test ## run all tests with every family, format and way, fuzz for minutes, kill 200 times
	$(PART) "Fuzzing, guided by coverage" $(MAKE) fuzz RUNS=$(NIGHTLY_RUNS)
	$(PART) "Kill tests" $(MAKE) kill-test
	@echo "All tests passed:" && cat $(TIMES)

quick: setup-tests $(PAGE) ## run the unit tests of all crates and of the page (two minutes once built)
	cargo test $(CARGO_ALL) --lib
	$(NPM) test

# DEVICE=cuda or metal with a build for it: make test-tensors DEVICE=metal FEATURES="--features metal"
DEVICE := cpu
FEATURES :=
test-tensors: setup-tests $(PAGE) ## run the engine's tests on tensors, as on GPUs (several minutes)
	FORETOKEN_TEST_DEVICE=$(DEVICE) cargo test $(CARGO_ALL) $(FEATURES) --test integration -- $(if $(filter cpu,$(DEVICE)),,--test-threads=1) lossless:: evaluation:: safetensors:: tensors::

test-gpu: setup-tests $(PAGE) ## run the engine's tests on the GPU engine, without a GPU on a software renderer (an hour)
	FORETOKEN_TEST_DEVICE=gpu cargo test $(CARGO_ALL) --test integration -- invariance:: lossless:: families:: passes:: heads:: block_heads:: mtp:: assistants:: recurrent:: hybrids:: --skip bytes_per_pass
	cargo test $(CARGO_ALL) --test gpu
	$(if $(and $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),$(shell command -v apt-get)),$(MAKE) test-mesa)

test-mesa: setup-tests $(PAGE) ## run the GPU engine's own tests on Mesa 25.0 of Debian 13 (Linux on x86-64)
	@scripts/mesa.sh
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$(CURDIR)/scripts/mesa.sh cargo test $(CARGO_ALL) --test gpu
	MESA_DRIVER=radeon CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$(CURDIR)/scripts/mesa.sh cargo test $(CARGO_ALL) --test compiled

# FAMILY=gfx1201 compiles for another GPU, KERNELS="Product(Q4K, 8) Attend" some kernels only.
FAMILY := navi31
KERNELS :=
kernel-statistics: setup-tests ## print what Mesa's compiler for AMD makes of the GPU kernels (Linux on x86-64; needs no GPU)
	@cargo build $(CARGO_ALL) --example kernel_statistics
	@MESA_DRIVER=radeon scripts/mesa.sh $(CARGO_TARGET_DIR)/debug/examples/kernel_statistics $(FAMILY) $(foreach name,$(KERNELS),"$(name)")

# The packages are other projects' and change with their own services, so they are no part of `make test`.
test-clients: setup-tests $(PAGE) ## ask a local server with the openai and anthropic packages from PyPI
	@python3 -m pip install --quiet --upgrade --target .tools/clients -r tests/clients/requirements.txt
	@cargo build $(CARGO_ALL) --bins
	@PYTHONPATH=.tools/clients python3 tests/clients/run.py $(CARGO_TARGET_DIR)/debug/foretoken-cli

# A stable compiler has sanitisers too, if it is told that it is not one.
test-sanitized: setup-tests ## test kernels and packing under the address sanitiser (Linux on x86-64)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/sanitized \
		cargo test --locked -p foretoken-forward --lib --target x86_64-unknown-linux-gnu

# The linker and the emulator that cargo uses for ARM.
ARM := aarch64-unknown-linux-gnu
test-arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64-static -L /usr/aarch64-linux-gnu
test-arm: setup-tests ## test the NEON kernels and the bits of every family on an emulated ARM processor
	@scripts/setup.sh arm
	cargo test --locked -p foretoken-forward --lib --target $(ARM) cpu::
	cargo test --locked -p foretoken-tests --test integration --target $(ARM) hashes::

# TARGETS="x86_64-pc-windows-gnu" checks for one alone.
TARGETS :=
check-systems: setup-systems $(PAGE) ## compile and lint the whole workspace for macOS, Windows and Linux on ARM
	@scripts/check-systems.sh $(TARGETS)

PACKAGE = $(BUNDLE)/deb/*.deb
test-package: ## install what `make bundle` made for Debian over an older version, chat with it, remove it
	@scripts/setup.sh packages
	@cargo build $(CARGO_ALL) --example installed
	@scripts/test-package.sh $(PACKAGE)

# TESTS="part_of_a_name another" runs these alone.
TESTS :=
test-windows: setup model $(PAGE) ## build the tests for Windows, and run them under Wine, on Linux
	@scripts/setup.sh windows
	@scripts/windows/test.sh $(TESTS)

test-windows-package: ## install what `make bundle-windows` made, start it, remove it, under Wine
	@scripts/setup.sh windows
	@scripts/windows/test-package.sh $(CARGO_TARGET_DIR)/dist/bundle/nsis/*-setup.exe

# A stable compiler counts for `fuzz` which edges of our crates were taken. RUNS executions over all targets and a
# thousandth as many of the page's Markdown, or of TARGET alone; what did something new is kept in target/fuzz and
# begun with the next time.
RUNS := 1000000
TARGET :=
SEED := 1
fuzz: setup-tests $(PAGE) ## feed damaged files, answers and arguments (RUNS=10000000 TARGET=hub SEED=2)
	@RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/with-counters.sh cargo build $(CARGO_ALL) --bin fuzz
	@mkdir -p $(CARGO_TARGET_DIR)/fuzz
	@$(if $(filter markdown,$(TARGET)),,$(CARGO_TARGET_DIR)/debug/fuzz --runs $(RUNS) --seed $(SEED) --keep $(CARGO_TARGET_DIR)/fuzz $(if $(TARGET),--target $(TARGET)))
	@$(if $(filter-out markdown,$(TARGET)),,cd ui && FORETOKEN_FUZZ_RUNS=$(if $(TARGET),$(RUNS),$$(($(RUNS) / 1000))) FORETOKEN_FUZZ_SEED=$(SEED) npx vitest run src/markdown/mutate.test.ts)

KILLS := 200
kill-test: setup-tests $(PAGE) ## kill the application at random moments of what writes (KILLS=200 SEED=1)
	KILLS=$(KILLS) SEED=$(SEED) cargo test $(CARGO_ALL) --test kill -- --nocapture

MESSAGES := 2000
soak: setup-tests model $(PAGE) ## use the application for a day in an hour, and see that nothing grows (MESSAGES=2000)
	@cargo build $(CARGO_ALL) --example soak
	@mkdir -p $(CARGO_TARGET_DIR)/soak
	@TMPDIR=$(CARGO_TARGET_DIR)/soak MESSAGES=$(MESSAGES) $(CARGO_TARGET_DIR)/debug/examples/soak

check: setup-tests setup-check $(PAGE) ## check formatting, lints, types, licences and known vulnerabilities
	cargo fmt --all --check
	cargo clippy $(CARGO_ALL) --all-targets -- -D warnings
	$(NPM) run lint
	$(NPM) run check
	scripts/audit.sh

# MODELS=FOLDER names a folder with .gguf files of real models, which are measured first. Those with random
# weights are made in the system's folder for temporary files. A process each, so that memory is measured of
# one model alone. LLAMA_CPP_BIN may name a folder with llama.cpp's programs.
MODELS :=
RANDOM_MODELS := 0.5B:Q4_K_M 0.5B:Q8_0 1.1B:Q4_K_M 1.1B:Q8_0

bench: setup $(PAGE) ## compare plain and speculative decoding: real models (MODELS=FOLDER), the starter pair, random weights
	@cargo build --release $(CARGO_ALL) --bins
	@$(if $(MODELS),$(CARGO_TARGET_DIR)/release/foretoken-bench models "$(MODELS)" --tokens 64 --repeats 2; echo)
	@for draft in starter-draft ngram; do \
		echo "draft: $$draft"; $(CARGO_TARGET_DIR)/release/foretoken-cli bench --target starter --draft $$draft; \
	done
	@for model in $(RANDOM_MODELS); do \
		echo; $(CARGO_TARGET_DIR)/release/foretoken-bench random $$model --verify-cost || exit 1; \
	done

# The window is driven as in the tests, in a release build.
bench-ui: setup-tests $(PAGE) ## compare the speed of window and terminal (MODELS=FOLDER: also with real models), and measure painting
	@cargo build --release $(CARGO_ALL) --bins
	@cargo build $(CARGO_ALL) --examples
	@FORETOKEN_APPLICATION=$(CARGO_TARGET_DIR)/release/foretoken FORETOKEN_BENCH_MODELS="$(MODELS)" $(CARGO_TARGET_DIR)/debug/examples/bench_ui

PAIR :=
bench-server: setup-tests model $(PAGE) ## compare the speed of server and terminal (PAIR="TARGET DRAFT"), and ask it by 32 clients at once
	@cargo build --release $(CARGO_ALL) --bins
	@cargo build $(CARGO_ALL) --examples
	@FORETOKEN_APPLICATION=$(CARGO_TARGET_DIR)/release/foretoken $(CARGO_TARGET_DIR)/debug/examples/bench_server $(PAIR)

pictures: setup-tests model $(PAGE) ## make the pictures for the documents, and those the heatmap is compared with
	@cargo build --release $(CARGO_ALL) --bins
	@FORETOKEN_APPLICATION=$(CARGO_TARGET_DIR)/release/foretoken FORETOKEN_KEEP_PICTURES=1 cargo test $(CARGO_ALL) --test desktop -- seeing:: a_fresh_start_is

BUNDLE = $(CARGO_TARGET_DIR)/dist/bundle
# Others than the system's own: BUNDLES=appimage. CHANNEL=FILE adds a release channel (docs/release.md).
BUNDLES :=
CHANNEL :=
SMOLLM2 := smollm2/SmolLM2-135M-Instruct-Q4_1.gguf
bundle: setup model $(PAGE) ## make an installable package in target/dist/bundle, with SmolLM2 if it could be downloaded
	@[ -f $(SMOLLM2) ] || echo "SmolLM2 is missing, so the package starts with the tiny starter model."
	@rm -rf $(BUNDLE)/deb
	cd src-tauri && npx --yes @tauri-apps/cli@2.12 build $(if $(BUNDLES),--bundles $(BUNDLES)) \
		$$([ ! -f ../$(SMOLLM2) ] || echo --config smollm2.conf.json) \
		$(if $(CHANNEL),--config $(abspath $(CHANNEL))) -- --profile dist --locked -p foretoken -p foretoken-cli
	@scripts/check-libraries.sh $(addprefix $(CARGO_TARGET_DIR)/dist/,foretoken foretoken-cli)
	@[ ! -d $(BUNDLE)/deb ] || scripts/finish-debian.sh $(BUNDLE)/deb/*.deb $(CARGO_TARGET_DIR)/dist/foretoken-cli

bundle-windows: setup model $(PAGE) ## make an installer for Windows in target/dist/bundle, on Linux
	@scripts/setup.sh windows
	@scripts/windows/bundle.sh

release: bundle ## gather packages, the terminal, what they are made of, notes and checksums in target/release-files
	@scripts/setup.sh release
	@scripts/release.sh

cuda-build: ## build foretoken-cli for NVIDIA GPUs, on Linux; needs neither a GPU nor CUDA
	@scripts/setup.sh terminal
	@scripts/test-cuda-stubs.sh && scripts/cuda.sh build

# CHECK="--models 8B:Q8_0 --json" passes options on.
CHECK :=
gpu-check: ## compare this computer's GPU with its CPU: same text, accuracy, speed (creates 15 GB of files)
	@scripts/setup.sh terminal
	@cargo build --release --locked -p foretoken-cli
	@exec $(CARGO_TARGET_DIR)/release/foretoken-cli gpu-check --device gpu $(CHECK)

# The same of candle's kernels.
gpu-check-cuda: cuda-build
	@exec $(CARGO_TARGET_DIR)/cuda/release/foretoken-cli gpu-check --device cuda $(CHECK)

gpu-check-metal:
	@scripts/setup.sh terminal
	@cargo build --release --locked -p foretoken-cli --features metal
	@exec $(CARGO_TARGET_DIR)/release/foretoken-cli gpu-check --device metal $(CHECK)
