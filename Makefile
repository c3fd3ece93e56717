# SPDX-License-Identifier: MIT
# A thin front for Meson. `make demo` and `make check` install what is missing on Debian 12.

BUILD ?= build
# One more than there are processors: tests wait, for a machine to boot or for a time to be over.
JOBS  ?= $(shell echo $$(($$(nproc) + 1)))

SHELL := /bin/bash

.PHONY: all outage help demo check check-asan check-tidy fuzz bench install clean setup setup-build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) $(if $(V),-v,--quiet) | grep -v 'no work to do' || test $${PIPESTATUS[0]} -eq 0

# Neither tests nor manual pages.
outage: $(BUILD)/build.ninja
	@ninja -C $(BUILD) $(if $(V),-v,--quiet) outage lazyfs

help:
	@echo "make demo       installs what is missing, builds build/outage, shows what it does"
	@echo "make check      the same, and runs all tests"
	@echo "make            builds only"
	@echo "make outage     builds the program alone, without tests"
	@echo "make check-asan, check-tidy, fuzz, bench, install, clean"

# $(1): directory, $(2): environment, $(3): options
configure = $(2) meson setup $(1) $(3) >$(1).log 2>&1 || { cat $(1).log; tail -n 20 $(1)/meson-logs/meson-log.txt 2>/dev/null; rm -rf $(1) $(1).log; exit 1; }; rm -f $(1).log

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: run tools/setup first" >&2; exit 1; }
	@$(call configure,$(BUILD),,$(if $(PREFIX),--prefix=$(PREFIX)))

build-asan/build.ninja:
	@$(call configure,build-asan,,-Db_sanitize=address$(,)undefined -Db_lundef=false)

build-fuzz/build.ninja:
	@$(call configure,build-fuzz,CC=clang,-Db_sanitize=address$(,)undefined -Db_lundef=false -Dfuzz=true)

, := ,

setup:
	@tools/setup test
setup-build:
	@tools/setup build

demo: setup-build
	@$(MAKE) --no-print-directory all
	@tools/demo $(BUILD)/outage

fuzz: build-fuzz/build.ninja
	@ninja -C build-fuzz --quiet

check: setup
	@echo "building, with the fuzz targets: this takes a minute"
	@$(MAKE) --no-print-directory all fuzz
	@tests/run -j $(JOBS) --build $(BUILD) --fuzz build-fuzz

check-asan: setup
	@$(MAKE) --no-print-directory build-asan/build.ninja
	@ninja -C build-asan --quiet
	@ASAN_OPTIONS=abort_on_error=0:detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		tests/run -j $(JOBS) --build build-asan

check-tidy: setup
	@$(MAKE) --no-print-directory all
	@tools/tidy $(BUILD)

bench: setup-build
	@$(MAKE) --no-print-directory all
	@bench/run $(BUILD)

install: all
	@meson install -C $(BUILD)

clean:
	@rm -rf build build-asan build-fuzz
