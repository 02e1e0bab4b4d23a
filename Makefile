# Foretoken's commands. `make run` and `make test` do their own set-up on a bare machine.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Tools that scripts/setup.sh may have put here come first.
export PATH := $(CURDIR)/.tools/node/bin:$(PATH)
NPM := npm --prefix ui --silent

PAGE_SOURCES := $(shell find ui/src ui/public ui/index.html ui/package-lock.json ui/vite.config.ts -type f 2>/dev/null)
# Always all crates at once: a choice of them would build the libraries again with other features.
CARGO_ALL := --workspace --locked

.PHONY: help setup setup-tests page run test check bench bundle

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

setup: ## install what building needs
	@scripts/setup.sh

setup-tests: ## install what testing needs
	@scripts/setup.sh tests

run: setup ui/dist/index.html ## build and open the window (or chat here, without a display)
	@echo "Building Foretoken; the first time this takes some minutes."
	@cargo build --release $(CARGO_ALL) --bins
	@if [ "$$(uname -s)" = Linux ] && [ -z "$$DISPLAY$$WAYLAND_DISPLAY" ]; then \
		echo "There is no display here, so this is the chat in the terminal (foretoken-cli chat)."; \
		exec target/release/foretoken-cli chat; \
	else \
		exec target/release/foretoken; \
	fi

page: setup ui/dist/index.html ## build the page, which the window's binary holds

ui/dist/index.html: $(PAGE_SOURCES)
	@echo "Building the page"
	@$(NPM) run build >&2

test: setup-tests ui/dist/index.html ## everything that CI runs
	@echo "== Format and lints"
	cargo fmt --all --check
	cargo clippy $(CARGO_ALL) --all-targets -- -D warnings
	@echo "== The page: lints, types, unit tests"
	$(NPM) run lint
	$(NPM) run check
	$(NPM) test
	@echo "== Rust: all crates, and the real window"
	cargo build $(CARGO_ALL) --bins
	cargo test $(CARGO_ALL)
	@echo "== The generated TypeScript is up to date"
	git diff --exit-code -- ui/src/bindings

check: setup ui/dist/index.html ## the quick part: formats, lints, types
	cargo fmt --all --check
	cargo clippy $(CARGO_ALL) --all-targets -- -D warnings
	$(NPM) run lint
	$(NPM) run check

bench: setup ui/dist/index.html ## plain decoding against speculative, on the starter pair
	@cargo build --release $(CARGO_ALL) --bins
	@for draft in starter-draft ngram; do \
		echo "draft: $$draft"; target/release/foretoken-cli bench --target starter --draft $$draft; \
	done

bundle: setup ui/dist/index.html ## an installable package in target/dist/bundle
	cd src-tauri && npx --yes @tauri-apps/cli@2 build -- --profile dist
