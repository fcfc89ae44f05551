# libhappy: GNU make 4.3 or later, no configure step. `make help` lists targets and knobs.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all
.PHONY: FORCE
FORCE:

# ---- knobs --------------------------------------------------------------------------------------

# Only knobs that a user may set are assigned with ?=, so that the environment reaches them too.
#: SAN       sanitizers: SAN=address,undefined or SAN=thread; each has a build folder of its own
SAN ?=
#: CARES     static (default) or shared; shared is for systems without a position-independent libcares.a
CARES ?= static
#: WERROR    1: warnings are errors (default with g++ 12, and in check); 0: they are not
ifndef WERROR
WERROR := $(if $(filter 12,$(shell $(CXX) -dumpversion 2>/dev/null)),1,0)
endif
#: V         1: show the commands
V ?= 0
#: SEED      the first connection that make sim simulates (default: 1)
SEED ?= 1
#: RUNS      how many connections make sim simulates (default: 20000)
RUNS ?= 20000
#: ARGS      arguments for unit-tests (make unit ARGS='[race]') and for the lab (make netns ARGS=...), bench and peers
ARGS ?=
#: PEERS     short: of make peers only what ends within three minutes
PEERS ?=
#: FUZZ      the targets of make fuzz, by name (default: all)
FUZZ ?=
#: FUZZ_SECONDS  how long each of them runs (default: 60)
FUZZ_SECONDS ?= 60
#: CXXFLAGS  optimisation and debugging, for C too (default: -O2 -g)
CXXFLAGS ?= -O2 -g
#: LDFLAGS   additional flags for every link
LDFLAGS ?=
#: PREFIX    where install puts things (default: /usr/local)
PREFIX ?= /usr/local
#: LIBDIR    the libraries' place (default: PREFIX/lib, below /usr PREFIX/lib/MULTIARCH)
LIBDIR ?= $(PREFIX)/lib$(if $(filter /usr,$(PREFIX)),$(MULTIARCH:%=/%))
#: DESTDIR   staging root for packagers; no file mentions it
DESTDIR ?=

# LD_PRELOAD cannot carry spaces, and a relative path would be another one in every folder.
ifneq ($(words $(PREFIX)),1)
$(error PREFIX is '$(PREFIX)': a path without spaces, please)
endif
ifneq ($(words $(LIBDIR)),1)
$(error LIBDIR is '$(LIBDIR)': a path without spaces, please)
endif
ifeq ($(filter /%,$(PREFIX)),)
$(error PREFIX is '$(PREFIX)': an absolute path, please)
endif

ifeq ($(origin CC),default)
CC := gcc
endif
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy

# Asked for only by install: the name of Debian's architecture folder, empty elsewhere.
MULTIARCH = $(shell $(CC) -print-multiarch 2>/dev/null)

# ---- sources and where their objects go ---------------------------------------------------------

comma := ,
variant := $(if $(SAN),$(if $(filter address$(comma)undefined,$(SAN)),asan-ubsan,$(if \
             $(filter thread,$(SAN)),tsan,$(if $(filter control,$(SAN)),control,san-$(subst $(comma),-,$(SAN))))))
out := build$(variant:%=/%)

shim_sources   := $(sort $(wildcard shim/*.cc shim/*.c))
engine_sources := $(sort $(wildcard resolver/*.cc racer/*.cc))
netlink_sources := $(sort $(wildcard resolver/netlink/*.cc))
fuzz_sources   := $(sort $(filter-out tests/fuzz/libfuzzer.cc,$(wildcard tests/fuzz/*.cc)))
unit_sources   := $(sort $(wildcard tests/unit/*.cc tests/support/*.cc)) $(fuzz_sources)
sim_sources    := $(sort $(wildcard tests/sim/*.cc))
# What of the shim is pure enough for the unit tests to link: nothing here defines a hooked name.
SHIM_TESTABLE  := shim/config.cc shim/control_messages.cc shim/policy.cc shim/translated.cc
victim_sources := $(sort $(wildcard tests/netns/victims/*.c))

objects = $(patsubst %,$(out)/obj/%.o,$(basename $1))
shim_objects   := $(call objects,$(shim_sources))
engine_objects := $(call objects,$(engine_sources))
netlink_objects := $(call objects,$(netlink_sources))
unit_objects   := $(call objects,$(unit_sources) $(wildcard $(SHIM_TESTABLE)))
sim_objects    := $(call objects,$(sim_sources))
victims        := $(victim_sources:tests/netns/victims/%.c=build/tests/victims/%)
bench_tools    := $(patsubst tests/bench/%.c,build/tests/bench/%,$(filter-out %/empty.c,$(wildcard tests/bench/*.c))) \
                  build/tests/bench/empty.so
lab            := $(patsubst tests/netns/%.cc,build/tests/%,$(wildcard tests/netns/tundelay.cc)) $(victims) build/tests/libnss_lab.so.2

# ---- flags --------------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wconversion $(if $(filter 1,$(WERROR)),-Werror)
# SAN=control: no sanitizer, but all calls go to the functions of a sanitizer that the program has; what fails with
# this one too is the sanitizer's own (tests/netns/sanitizer.py). UBSan looks at vtables through a pipe, for which a
# program short of descriptors has no room.
sanitize := $(if $(filter control,$(SAN)),-DHAPPY_BELOW_SANITIZER=1,$(if \
              $(SAN),-fsanitize=$(SAN) -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -O1))

# Sanitized objects never reach a user's process, so the checks that abort are on in them alone.
common := -I. -fPIC -fvisibility=hidden -fno-plt -pthread $(warnings) $(CPPFLAGS) $(CXXFLAGS) $(sanitize) \
          $(if $(filter-out control,$(SAN)),-DHAPPY_DEBUG=1)

# The shim runs in every process: nothing that would need libstdc++ or a lock, and no TLS that is
# allocated late. Cancellation unwinds through a hook that blocks, hence the tables (x86-64's default,
# not every architecture's). Fortified headers would define inline the very functions that it hooks.
# In string.c a loop that is memcpy() must not become a call of it.
flags_shim = -fasynchronous-unwind-tables -ftls-model=initial-exec -U_FORTIFY_SOURCE $(if $(filter \
             shim/string.c,$1),-ffreestanding -fno-tree-loop-distribute-patterns)
cxx_shim       := -fno-exceptions -fno-rtti -fno-threadsafe-statics

# All of the engine's code comes to lie in memory, for a lookup or two: it is to be small.
small := $(if $(SAN)$(filter -O0 -O1 -Og,$(CXXFLAGS)),,-Os)
cxx_resolver := $(small)
cxx_racer    := $(small)

# Without what a C program's start files would bring: they import and run code for nothing that is here.
# A library without them has no way to undo its fork handlers, so it stays for as long as the process.
shim_link := -nostartfiles -Wl,-z,nodelete -Wl,-z,noseparate-code

hardened := -Wl,-z,now -Wl,-z,relro -Wl,-z,defs -Wl,-z,noexecstack -Wl,--hash-style=gnu -Wl,--as-needed

ifeq ($(CARES),static)
cares := -l:libcares.a
else ifeq ($(CARES),shared)
cares := -lcares
else
$(error CARES is '$(CARES)': static or shared)
endif

# Debian's archives of libnl are not position-independent: it stays shared, in an object of its own.
libnl := -lnl-3 -lnl-genl-3
libnl_headers := -isystem /usr/include/libnl3
$(netlink_objects): folder_flags = $(libnl_headers)

folder = $(firstword $(subst /, ,$1))
compile_cxx = $(CXX) -std=c++20 $(common) $(flags_$(folder)) $(cxx_$(folder))
compile_c   = $(CC) -std=gnu11 $(common) $(flags_$(folder))
compile     = $(if $(filter %.c,$1),$(compile_c),$(compile_cxx))

# Catch2 2 compiles into main.o (25 s when optimised, 8 s when not), 3 is a library.
catch := $(if $(wildcard /usr/include/catch2/catch_all.hpp),-lCatch2)
cxx_tests = $(if $(filter tests/unit/main.cc,$1),-O0)

quiet := $(if $(filter 1,$(V)),,@)
say = @printf '  %-6s %s\n' $1 $2

# As many jobs as processors for what builds by itself, unless the caller gave a number.
jobs = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- build --------------------------------------------------------------------------------------

##@ Build
.PHONY: all lab unit-tests
all: $(out)/libhappy.so $(out)/libhappy-engine.so $(out)/libhappy-netlink.so $(out)/happy-pref64 build/happy-run build/happy-knobs ## The libraries, usable from the build folder by scripts/happy-run

lab: $(lab) ## The programs that the lab under tests/netns needs

unit-tests: $(out)/unit-tests $(out)/sim ## The unit tests and the simulation, not run

# The C driver, so that libstdc++ cannot become NEEDED: a leftover reference to it is a link error.
$(out)/libhappy.so: $(shim_objects) shim/libhappy.map
	$(call say,LINK,$@)
	$(quiet)$(CC) -shared -o $@ $(shim_objects) -static-libgcc -pthread $(sanitize) $(hardened) $(shim_link) \
	  -Wl,--version-script=shim/libhappy.map -Wl,-soname,libhappy.so $(LDFLAGS)

# Everything but libc is inside and hidden: a program's own c-ares or older libstdc++ cannot clash.
$(out)/libhappy-engine.so: $(engine_objects) racer/libhappy-engine.map
	$(call say,LINK,$@)
	$(if $(filter static,$(CARES)),@[ "$$($(CC) -print-file-name=libcares.a)" != libcares.a ] || { echo \
	  'libhappy: no libcares.a here: scripts/install-packages build (or make CARES=shared)' >&2; exit 1; })
	$(quiet)$(CXX) -shared -o $@ $(engine_objects) $(cares) -static-libstdc++ -static-libgcc -pthread \
	  $(sanitize) $(hardened) -Wl,--exclude-libs,ALL -Wl,--version-script=racer/libhappy-engine.map \
	  -Wl,-soname,libhappy-engine.so $(LDFLAGS)

# What needs libnl, loaded by the engine when a question for netlink comes up.
$(out)/libhappy-netlink.so: $(netlink_objects) resolver/netlink/libhappy-netlink.map
	$(call say,LINK,$@)
	$(quiet)$(CXX) -shared -o $@ $(netlink_objects) $(libnl) -static-libstdc++ -static-libgcc -pthread \
	  $(sanitize) $(hardened) -Wl,--exclude-libs,ALL -Wl,--version-script=resolver/netlink/libhappy-netlink.map \
	  -Wl,-soname,libhappy-netlink.so $(LDFLAGS)

pref64_parts := $(call objects,resolver/address_scope.cc resolver/pref64_file.cc resolver/pref64_option.cc \
                  resolver/prefix_discovery.cc resolver/prefix_table.cc resolver/translation.cc)
$(out)/happy-pref64: scripts/happy-pref64.cc $(pref64_parts) $(netlink_objects) $(out)/flags
	$(call say,CXX,$<)
	$(quiet)$(CXX) -std=c++20 -I. $(warnings) $(CPPFLAGS) $(CXXFLAGS) $(sanitize) -MMD -MP -MF $@.d -o $@ $< \
	  $(pref64_parts) $(netlink_objects) $(libnl) -pthread $(LDFLAGS)

build/happy-run: scripts/happy-run
	@mkdir -p $(@D) && ln -sfn ../scripts/happy-run $@

# The table of shim/config.cc for what cannot read C++: happy-run and the README.
build/obj/list-knobs: scripts/list-knobs.cc shim/config.cc shim/config.h shim/abi.h build/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(quiet)$(CXX) -std=c++20 -I. $(warnings) $(CPPFLAGS) $(CXXFLAGS) -o $@ scripts/list-knobs.cc shim/config.cc

build/happy-knobs: build/obj/list-knobs
	$(quiet)$< shell >$@

$(out)/unit-tests: $(unit_objects) $(engine_objects) $(netlink_objects)
	$(call say,LINK,$@)
	$(quiet)$(CXX) -o $@ $^ $(catch) $(cares) $(libnl) -pthread $(sanitize) $(LDFLAGS)

$(out)/sim: $(sim_objects) $(engine_objects)
	$(call say,LINK,$@)
	$(quiet)$(CXX) -o $@ $^ $(cares) -pthread $(sanitize) $(LDFLAGS)

$(out)/obj/%.o: %.cc $(out)/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(quiet)$(call compile,$<) $(folder_flags) -MMD -MP -c -o $@ $<

$(out)/obj/%.o: %.c $(out)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(quiet)$(call compile,$<) -MMD -MP -c -o $@ $<

build/tests/%: tests/netns/%.cc build/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(quiet)$(CXX) -std=c++20 -I. $(warnings) -O2 -g -MMD -MP -MF $@.d -o $@ $< -pthread

build/tests/victims/%: tests/netns/victims/%.c build/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(quiet)$(CC) -std=gnu11 -Wall $(if $(filter 1,$(WERROR)),-Werror) -O2 -g -MMD -MP -MF $@.d -o $@ $< -pthread

build/tests/libnss_lab.so.2: tests/netns/nss_lab.c build/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(quiet)$(CC) -shared -fPIC -std=gnu11 -Wall $(if $(filter 1,$(WERROR)),-Werror) -O2 -g -o $@ $<

build/tests/bench/empty.so: tests/bench/empty.c build/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(quiet)$(CC) -shared -fPIC -O2 -o $@ $<

build/tests/bench/%: tests/bench/%.c build/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(quiet)$(CC) -std=gnu11 -Wall $(if $(filter 1,$(WERROR)),-Werror) -O2 -g -MMD -MP -MF $@.d -o $@ $< -pthread

# Compiled apart, by clang with libFuzzer's instruments. A target may use whatever the engine's resolver has.
fuzz_clang  := clang++-14
fuzz_flags  := -std=c++20 -I. -g -O1 -pthread -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
fuzzers     := $(fuzz_sources:tests/fuzz/%.cc=build/fuzz/%)
fuzz_common := $(patsubst %.cc,build/fuzz/obj/%.o,$(wildcard resolver/*.cc) shim/config.cc tests/fuzz/libfuzzer.cc)

.SECONDARY: $(fuzz_common) $(fuzz_sources:%.cc=build/fuzz/obj/%.o)
build/fuzz/obj/%.o: %.cc build/flags
	$(call say,CLANG,$<)
	@mkdir -p $(@D)
	$(quiet)$(fuzz_clang) $(fuzz_flags) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

build/fuzz/%: build/fuzz/obj/tests/fuzz/%.o $(fuzz_common)
	$(call say,LINK,$@)
	$(quiet)$(fuzz_clang) $(fuzz_flags) -fsanitize=fuzzer -o $@ $^ $(cares)

all_flags = $(CXX) $(CC) $(common) $(flags_shim) $(cxx_shim) $(small) $(hardened) $(shim_link) $(cares) $(libnl) $(LDFLAGS)

# Changes only when a flag does, and everything compiled depends on it.
$(sort $(out)/flags build/flags): Makefile FORCE
	@command -v $(firstword $(CXX)) >/dev/null || { echo \
	  'libhappy: no $(firstword $(CXX)) here: scripts/install-packages build' >&2; exit 1; }
	@mkdir -p $(@D)
	@echo '$(all_flags)' | cmp -s - $@ || echo '$(all_flags)' >$@

-include $(patsubst %.o,%.d,$(sort $(shim_objects) $(engine_objects) $(netlink_objects) $(unit_objects) $(sim_objects)) $(fuzz_common) \
           $(fuzz_sources:%.cc=build/fuzz/obj/%.o)) $(lab:%=%.d) $(bench_tools:%=%.d)

# ---- tests --------------------------------------------------------------------------------------

##@ Test
.PHONY: check unit sim study mutate spec netns matrix golden golden-update wrapper demo bench peers
check: ## Packages, build and every test; the last line counts them
	@tests/run-all

unit: $(out)/unit-tests ## Unit tests of one variant: make unit ARGS='[race]', make unit SAN=thread
	@tests/run-unit $< $(ARGS)

sim: $(out)/sim ## Simulated connections: make sim SEED=7 RUNS=100000; a failure prints the command that shows it again
	@$< --seed $(SEED) --runs $(RUNS) $(ARGS)

study: $(out)/sim ## Time to connect over the simulation's networks, by several ways: the README's table
	@$< --study --seed $(SEED) --runs $(RUNS)

mutate: unit-tests ## Whether unit tests and simulation notice a changed order, plan or race (15 minutes)
	@tests/sim/mutate $(ARGS)

spec: ## Which tests prove which requirement: make spec ARGS='ATTEMPT-5'; one without a test fails
	@tests/spec/check $(ARGS)

netns: all lab node-clients $(if $(SAN),control) ## Unmodified programs in the lab of network namespaces; with SAN see tests/netns/sanitizer.py
	@HAPPY_LIB=$(abspath $(out)/libhappy.so) /usr/bin/python3 tests/netns/run.py $(ARGS)

.PHONY: control
control:
	@$(MAKE) --no-print-directory SAN=control all

node_clients := build/tests/node/node_modules/.package-lock.json

node-clients: $(node_clients) ## Node's clients from the npm registry, for netns

# Without npm or its registry the cases that need them say so, and no other.
$(node_clients): $(addprefix tests/netns/node/,package.json package-lock.json clients.js)
	$(call say,NPM,$@)
	@mkdir -p build/tests/node && cp $^ build/tests/node
	$(quiet)cd build/tests/node && { npm ci --ignore-scripts --silent && touch ../../../$@ || \
	  echo 'libhappy: npm cannot install them: the cases node_* will fail' >&2; }

matrix: all lab ## The programs of today in broken networks, bare and with libhappy: make matrix ARGS='v6-drop --programs nc,curl'
	@scripts/install-packages check
	@/usr/bin/python3 tests/netns/matrix.py $(ARGS)

golden: all ## The binary contract: exports, NEEDED, constructors, includes
	@CARES=$(CARES) tests/golden/check $(out)

golden-update: all ## Writes what the libraries have now into tests/golden
	@tests/golden/check --update $(out)

peers: all lab ## Other people's suites (CPython, OpenSSH, stress-ng) bare and with libhappy, test by test; PEERS=short in 3 min
	@scripts/install-packages peers
	@/usr/bin/python3 tests/peers/run.py $(if $(filter short,$(PEERS)),--short) $(ARGS)

fuzz: $(fuzzers) ## Every parser under libFuzzer for FUZZ_SECONDS each; only some: make fuzz FUZZ='svcb srv'
	@tests/fuzz/run $(FUZZ_SECONDS) $(or $(FUZZ),$(notdir $(fuzzers)))

bench: all lab $(out)/sim $(bench_tools) ## What libhappy costs, against the goals: make bench ARGS='--strict --json FILE'
	@scripts/install-packages bench
	@/usr/bin/python3 tests/bench/run.py $(ARGS)

wrapper: ## Tests of the scripts that users call
	@status=0; for test in tests/scripts/*.sh; do $$test || status=1; done; exit $$status

demo: ## Installs packages, builds, and shows programs with and without libhappy in broken networks
	@scripts/install-packages build demo
	@$(MAKE) --no-print-directory $(jobs) all lab
	@scripts/happy-demo

# ---- documentation ------------------------------------------------------------------------------

##@ Documentation
.PHONY: docs
docs: build/obj/list-knobs ## Writes the table of knobs into README.md; check fails where it is stale
	@scripts/update-docs

# ---- style --------------------------------------------------------------------------------------

##@ Style
tidy_sources := $(shim_sources) $(engine_sources) $(netlink_sources) $(unit_sources) $(sim_sources) $(wildcard tests/netns/*.cc scripts/*.cc)
all_sources  := $(sort $(tidy_sources) $(victim_sources))
# Recursive, so that headers and later test folders need no line here.
format_files  = $(sort $(shell find shim resolver racer scripts tests -name '*.cc' -o -name '*.h' -o -name '*.c'))

.PHONY: lint format format-check tidy compile_commands.json
lint: format-check tidy ## Layout (clang-format) and clang-tidy

format: ## Lays out all sources
	@$(CLANG_FORMAT) -i $(format_files)

format-check: ## Says which sources are not laid out as .clang-format wants
	@case "$$($(CLANG_FORMAT) --version)" in *'version 14.'*) ;; *' version '*) \
	  echo 'not checked: only clang-format 14 lays out as .clang-format was written for'; exit 0 ;; esac; \
	status=0; for file in $(format_files); do \
	  $(CLANG_FORMAT) --dry-run -Werror "$$file" 2>/dev/null || { echo "$$file: run make format"; status=1; }; \
	done; exit $$status

tidy: compile_commands.json ## clang-tidy over everything
	@printf '%s\n' $(tidy_sources) | xargs -P $$(nproc) -n 1 $(CLANG_TIDY) --quiet -p .

compile_commands.json: ## For clangd and clang-tidy
	@{ echo '['; printf '{"directory": "%s", "file": "%s", "command": "%s"},\n' $(foreach s,$(all_sources), \
	  '$(CURDIR)' '$s' '$(call compile,$s) $(libnl_headers) -c $s') | sed '$$s/,$$//'; echo ']'; } >$@

# ---- install ------------------------------------------------------------------------------------

##@ Install
.PHONY: install uninstall clean help
# What happy-run puts into LD_PRELOAD. Where the folder is the one that the loader calls $LIB, the
# token is kept: a 32-bit program then looks for its own library instead of being handed this one.
preload = $(if $(MULTIARCH),$(patsubst %/lib/$(MULTIARCH),%/$$LIB,$(LIBDIR)),$(LIBDIR))/libhappy.so

# So that the bare name is found too; only root may, and a staged tree has its own time for it.
ldconfig = $(if $(DESTDIR),,@[ "$$(id -u)" -ne 0 ] || PATH="$$PATH:/sbin:/usr/sbin" ldconfig || :)

# $(call place,MODE,FILE,TARGET). Renamed into place: with the library in /etc/ld.so.preload every program that starts
# meanwhile looks for it, and has to find a whole one.
place = install -m $(1) '$(2)' '$(DESTDIR)$(3).new' && mv -f '$(DESTDIR)$(3).new' '$(DESTDIR)$(3)'

install: all ## Into PREFIX, LIBDIR, below DESTDIR
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(LIBDIR)'
	$(call place,0644,$(out)/libhappy-netlink.so,$(LIBDIR)/libhappy-netlink.so)
	$(call place,0644,$(out)/libhappy-engine.so,$(LIBDIR)/libhappy-engine.so)
	$(call place,0644,$(out)/libhappy.so,$(LIBDIR)/libhappy.so)
	sed -e "s|^\(happy_run_installed_library=\).*|\1'"'$(preload)'"'|" \
	  -e "s|^\(happy_run_installed_folder=\).*|\1'$(LIBDIR)'|" \
	  -e "s|^\(happy_run_installed_programs=\).*|\1'$(PREFIX)/bin'|" \
	  -e '/^  \. "$$happy_run_folder\/happy-knobs"$$/{r build/happy-knobs' -e 'd}' \
	  scripts/happy-run >$(out)/happy-run.installed
	$(call place,0755,$(out)/happy-run.installed,$(PREFIX)/bin/happy-run)
	$(call place,0755,$(out)/happy-pref64,$(PREFIX)/bin/happy-pref64)
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	sed -e 's|@bindir@|$(PREFIX)/bin|' scripts/happy-pref64.service >$(out)/happy-pref64.service
	$(call place,0644,$(out)/happy-pref64.service,$(PREFIX)/lib/systemd/system/happy-pref64.service)
	$(ldconfig)

uninstall: ## Removes what install put there
	rm -f '$(DESTDIR)$(PREFIX)/bin/happy-run' '$(DESTDIR)$(LIBDIR)/libhappy.so' \
	  '$(DESTDIR)$(PREFIX)/bin/happy-pref64' '$(DESTDIR)$(PREFIX)/lib/systemd/system/happy-pref64.service' \
	  '$(DESTDIR)$(LIBDIR)/libhappy-engine.so' '$(DESTDIR)$(LIBDIR)/libhappy-netlink.so'
	$(ldconfig)

clean: ## Removes everything that make made
	rm -rf build compile_commands.json

help: ## This text
	@awk -F ':.*## ' '/^##@/ { print "\n" substr($$0, 5) } /^[a-z_.-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 } \
	  /^#: / { knobs = knobs "\n  " substr($$0, 4) } END { print "\nKnobs" knobs }' Makefile
