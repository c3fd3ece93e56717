# SPDX-License-Identifier: MIT
# A thin front for Meson. `make demo` and `make check` install what is missing on Debian 12.

BUILD ?= build
# One more than there are processors: tests wait, for a machine to boot or for a time to be over.
JOBS  ?= $(shell echo $$(($$(nproc) + 1)))

SHELL := /bin/bash

# Each minute it says how far it is.
ninja = $(if $(V),,tools/aloud 'building $1' )ninja -C $1 $(if $(V),-v)

.PHONY: all outage help demo check check-long check-asan check-tidy fuzz bench install uninstall clean setup setup-build

all: configure
	@$(call ninja,$(BUILD))

# Neither tests nor manual pages.
outage: configure
	@$(call ninja,$(BUILD)) outage lazyfs

help:
	@echo "make demo       installs what is missing, builds build/outage, shows what it does"
	@echo "make check      the same, and runs all tests"
	@echo "make            builds only"
	@echo "make outage     builds the program alone, without tests"
	@echo "make install    installs it below PREFIX, which is /usr/local by default; make uninstall"
	@echo "make check-long, check-asan, check-tidy, fuzz, bench, clean"

# Each build is configured first, and anew when the machine's packages have changed.
.PHONY: configure configure-asan configure-fuzz
configure:
	@tools/configure $(BUILD) $(if $(PREFIX),-Dprefix="$$(realpath -m '$(PREFIX)')")
configure-asan:
	@tools/configure build-asan -Db_sanitize=address,undefined -Db_lundef=false
configure-fuzz:
	@CC=clang tools/configure build-fuzz -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true

setup:
	@tools/setup test
setup-build:
	@tools/setup build

# The plugins and the agent are parts of the program; the tests are not.
demo: setup-build
	@echo "building: this takes a minute or two"
	@$(MAKE) --no-print-directory outage
	@tools/demo $(BUILD)/outage

fuzz: configure-fuzz
	@$(call ninja,build-fuzz)

check: setup
	@echo "building, with the fuzz targets: this takes a minute"
	@$(MAKE) --no-print-directory all fuzz
	@tests/run -j $(JOBS) --build $(BUILD) --fuzz build-fuzz

# What takes too long for every day: large samples on healthy file systems, hours of model tests.
check-long: setup
	@$(MAKE) --no-print-directory all fuzz
	@OUTAGE_TEST_LONG=1 TEST_TIMEOUT=14400 tests/run -j $(JOBS) --build $(BUILD) --fuzz build-fuzz

check-asan: setup
	@$(MAKE) --no-print-directory configure-asan
	@$(call ninja,build-asan)
	@ASAN_OPTIONS=abort_on_error=0:detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		tests/run -j $(JOBS) --build build-asan

check-tidy: setup
	@$(MAKE) --no-print-directory all
	@tools/tidy $(BUILD)

bench: setup-build
	@$(MAKE) --no-print-directory all
	@bench/run $(BUILD)

# Below PREFIX, which is /usr/local unless one is given now or was before; DESTDIR is put in front of it.
destdir = $(if $(DESTDIR),"$$(realpath -m '$(DESTDIR)')")
install: all
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir $(destdir))
uninstall: all
	@tools/uninstall $(BUILD) $(destdir)

clean:
	@rm -rf build build-asan build-fuzz
