# Drover's short commands over Meson and Ninja. `make help` lists them.

BUILD  ?= build
ASAN   ?= build-asan
TSAN   ?= build-tsan
FUZZ   ?= build-fuzz
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
PYTHON := /usr/bin/python3
JOBS   ?= $(shell nproc)

.PHONY: setup-build help setup build demo demo-cloud check check-unit check-system check-long lint format dist-agent bench bench-peers bench-far bench-sim fuzz docs dist packages install clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | \
		while IFS='|' read -r target text; do printf '%-20s %s\n' "$$target" "$$text"; done

setup: ## install all Debian packages of tools/packages.txt (root, or sudo); quick when they are there
	@tools/setup

setup-build:
	@tools/setup build

build: setup-build ## programs and manual pages into build/; installs the packages that building needs
	@tools/check-layers
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) -j$(JOBS) programs
	@tools/link-programs $(BUILD)

# Only what the demo starts: on a bare machine it does not wait for manual pages and the other commands.
demo: setup-build ## a server, two agents and a dataset of two thousand real files, in a temporary folder; under a minute
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) -j$(JOBS) src/cli/drover src/server/droverd src/agent/drover-agent src/agent/drover-shepherd src/agent/drover-init src/move/drover-mover
	@tools/link-programs $(BUILD)
	@tools/demo/demo --build $(BUILD)

demo-cloud: build ## a server without machines gets 300 jobs, starts machines for them, and stops these; about a minute
	@tools/demo/demo-cloud --build $(BUILD)

check: setup ## all rings of tests; the last line is "N passed, N failed, N skipped"
	@tools/check --build $(BUILD) --asan $(ASAN)

check-unit: setup ## the unit tests alone, under ASan and UBSan
	@tools/check --build $(BUILD) --asan $(ASAN) unit

check-system: setup ## the system tests alone: real daemons in temporary folders
	@tools/check --build $(BUILD) --asan $(ASAN) system

check-long: setup ## everything, with more seeds and rounds, the daemons under ASan and TSan too
	@DROVER_CHECK_LONG=1 tools/check --build $(BUILD) --asan $(ASAN) --tsan $(TSAN)

lint: setup ## layers, clang-format, cppcheck, clang-tidy, shellcheck
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@tools/lint --build $(BUILD)

format: ## write every C file as .clang-format says
	@git ls-files '*.c' '*.h' | xargs clang-format -i

bench: setup build ## a table of measurements, also in build/bench.json
	@ninja -C $(BUILD) -j$(JOBS)
	@tools/bench --build $(BUILD)

bench-peers: setup build ## the same jobs through Slurm, Grid Engine, GNU parallel, xargs and Drover, and the same transfers by curl, sftp, xrdcp and Drover
	@ninja -C $(BUILD) -j$(JOBS)
	@tools/bench-peers --build $(BUILD)
	@tools/bench-transfers --build $(BUILD)

bench-far: setup build ## transfers over an emulated link (root; TUN devices, iptables) by curl and by Drover
	@ninja -C $(BUILD) -j$(JOBS)
	@tools/bench-transfers --far --build $(BUILD)

bench-sim: setup build ## Drover beside EASY and its like in the simulator: TRACES="a.swf b.swf", or the cut-outs in tests/data
	@ninja -C $(BUILD) -j$(JOBS) src/cli/drover-sim
	@tools/link-programs $(BUILD)
	@tools/bench-sim --build $(BUILD) $(TRACES)

fuzz: setup ## fuzz every parser for FUZZ_SECONDS each (clang's libFuzzer)
	@test -f $(FUZZ)/build.ninja || CC=clang meson setup $(FUZZ) -Dfuzzer=true -Ddocs=false \
		-Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false \
		-Dc_args="-fsanitize=fuzzer-no-link -Wno-unknown-warning-option"
	@ninja -C $(FUZZ) -j$(JOBS)
	@tools/fuzz --build $(FUZZ) --seconds $(FUZZ_SECONDS)

docs: build ## the guides and all manual pages as HTML, into build/site/
	@tools/site $(BUILD) && echo $(BUILD)/site/index.html

dist: ## the sources as build/dist/drover-VERSION.tar.xz; the same bytes for the same sources
	@tools/dist $(BUILD)/dist

dist-agent: build ## the agent with all libraries that it needs, for other Linux systems, into build/dist/
	@tools/agent-tarball $(BUILD) $(BUILD)/dist

packages: setup ## Debian packages of server, agent, client, Python module and documentation, into build/packages/
	@DEB_BUILD_OPTIONS="parallel=$(JOBS) $$DEB_BUILD_OPTIONS" tools/packages $(BUILD)/packages

install: build ## into $(DESTDIR)$(PREFIX): programs, manual pages, systemd units, completion
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@DESTDIR="$(DESTDIR)" meson install --no-rebuild -C $(BUILD)

clean: ## remove what was built
	@rm -rf $(BUILD) $(ASAN) $(TSAN) $(FUZZ)
