# Headwater. `make help` names the targets.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# For example --locked --offline.
CARGOFLAGS ?=
# What `make bench` measures; everything when empty.
BENCH ?=

VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)
SONAME := libheadwater.so.0
BUILT := $(or $(CARGO_TARGET_DIR),target)/release
ROOT := $(DESTDIR)$(PREFIX)

HEADERS := headwater.h stropts.h
SYS_HEADERS := sad.h strlog.h stropts.h
MAN1 := headwater.1 headwater-streams.1
MAN3 := streams_pipe.3
MAN7 := headwater.7 streams.7

# Where the pinned toolchain is installed under the name `stable` only, that one is used.
PINNED := $(shell sed -n 's/^channel = "\(.*\)"$$/\1/p' rust-toolchain.toml)
TOOLCHAINS := $(shell rustup toolchain list 2>/dev/null)
ifneq ($(TOOLCHAINS),)
ifeq ($(filter $(PINNED)-%,$(TOOLCHAINS)),)
ifneq ($(filter stable-%,$(TOOLCHAINS)),)
ifneq ($(findstring rustc $(PINNED) ,$(shell rustc +stable --version 2>/dev/null)),)
export RUSTUP_TOOLCHAIN := stable
endif
endif
endif
endif

.PHONY: help build test loom lint bench demo install uninstall clean

help:
	@echo 'make build     target/release/headwater and target/release/libheadwater.so'
	@echo 'make test      every test'
	@echo 'make loom      the memory-model checks of the channel'
	@echo 'make lint      formatting and clippy'
	@echo 'make demo      what acceleration does, in a minute or two'
	@echo 'make bench     the measurements in full; BENCH="sockets --quick" chooses'
	@echo 'make install   into PREFIX (/usr/local) below DESTDIR; uninstall takes it back'

build:
	$(CARGO) build --release $(CARGOFLAGS)
	ln -sf libheadwater.so $(BUILT)/$(SONAME)

# End-to-end tests use what `build` left in target/release.
test: build
	$(CARGO) test --workspace --release $(CARGOFLAGS)

loom:
	RUSTFLAGS='--cfg loom' CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/loom \
		$(CARGO) test -p headwater-channel --release --lib $(CARGOFLAGS) loom

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets $(CARGOFLAGS) -- -D warnings
	@! grep -rnE '(core|std)::sync::atomic' crates/*/src --include=*.rs | grep -v '^crates/channel/src/sync.rs:' || \
		{ echo 'atomics come from headwater_channel::sync only, so that loom can take their place' >&2; exit 1; }

bench: build
	$(BUILT)/headwater bench $(BENCH)

demo: build
	$(BUILT)/headwater demo

# Built only where missing, so that root need not have a toolchain.
$(BUILT)/headwater $(BUILT)/libheadwater.so:
	$(MAKE) build

install: $(BUILT)/headwater $(BUILT)/libheadwater.so
	install -D -m 755 $(BUILT)/headwater $(ROOT)/bin/headwater
	install -D -m 755 -t $(ROOT)/libexec/headwater $(BUILT)/headwater-echo $(BUILT)/headwater-raw $(BUILT)/headwater-perftest
	install -D -m 755 $(BUILT)/libheadwater.so $(ROOT)/lib/libheadwater.so.$(VERSION)
	ln -sf libheadwater.so.$(VERSION) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/libheadwater.so
	ln -sf $(SONAME) $(ROOT)/lib/libstreams.so
	install -D -m 644 -t $(ROOT)/include $(addprefix include/,$(HEADERS))
	install -D -m 644 -t $(ROOT)/include/sys $(addprefix include/sys/,$(SYS_HEADERS))
	install -d $(ROOT)/lib/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' headwater.pc.in > $(ROOT)/lib/pkgconfig/headwater.pc
	chmod 644 $(ROOT)/lib/pkgconfig/headwater.pc
	install -D -m 644 -t $(ROOT)/share/man/man1 $(addprefix man/,$(MAN1))
	install -D -m 644 -t $(ROOT)/share/man/man3 $(addprefix man/,$(MAN3))
	install -D -m 644 -t $(ROOT)/share/man/man7 $(addprefix man/,$(MAN7))

uninstall:
	rm -f $(ROOT)/bin/headwater $(ROOT)/lib/libheadwater.so $(ROOT)/lib/$(SONAME) $(ROOT)/lib/libheadwater.so.$(VERSION)
	rm -f $(ROOT)/lib/libstreams.so $(ROOT)/lib/pkgconfig/headwater.pc
	rm -f $(addprefix $(ROOT)/include/,$(HEADERS)) $(addprefix $(ROOT)/include/sys/,$(SYS_HEADERS))
	rm -f $(addprefix $(ROOT)/share/man/man1/,$(MAN1)) $(addprefix $(ROOT)/share/man/man3/,$(MAN3))
	rm -f $(addprefix $(ROOT)/share/man/man7/,$(MAN7))
	rm -rf $(ROOT)/libexec/headwater

clean:
	$(CARGO) clean
