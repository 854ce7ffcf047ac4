# Headwater. `make help` names the targets.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# How long `make fuzz` takes for each parser. Bash's own SECONDS is none of ours.
SECONDS = 60
# How many sequences of calls it compares, instead of for how long.
SEQUENCES ?=
# Which kinds of sequences of calls it compares.
MIXES ?= transfer ready blocked processes urgent stdio options all streams xti
# For example --locked --offline.
CARGOFLAGS ?=
# What `make bench` measures; everything when empty.
BENCH ?=
# Which faults are planted by `make faults`; all when empty.
FAULTS ?=

VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)
SONAME := libheadwater.so.0
BUILT := $(or $(CARGO_TARGET_DIR),target)/release
# Where tests note that they were not run: each has a working folder of its own.
NOT_RUN := $(if $(filter /%,$(CARGO_TARGET_DIR)),,$(CURDIR)/)$(or $(CARGO_TARGET_DIR),target)/not-run
ROOT := $(DESTDIR)$(PREFIX)

HEADERS := headwater.h stropts.h xti.h xti_inet.h tiuser.h netconfig.h netdir.h
SYS_HEADERS := conf.h ddi.h sad.h stream.h strlog.h stropts.h tihdr.h timod.h tiuser.h tpicommon.h xti_sctp.h
# What `headwater bench` and `headwater demo` start.
TOOLS := headwater-bench headwater-load
# Other names by which programs link the library.
LINKS := libstreams.so libxti.so
MAN1 := headwater.1 headwater-streams.1
MAN3 := streams_pipe.3 t_open.3 t_connect.3 t_snd.3 t_sndrel.3 t_sndudata.3 t_optmgmt.3 t_look.3 t_alloc.3 netconfig.3 netdir.3
MAN7 := headwater.7 sctp_sockets.7 streams.7 streams_modules.7 xti.7 transports.7
MAN9 := $(addsuffix .9f,OTHERQ allocb bufcall canputnext cmn_err getmajor kmem_alloc linkb putnext putq qprocson strqget timeout)
# Pages that only lead to another: name=page.
MAN3_LINKS := $(addsuffix =t_open,t_close t_bind t_unbind t_getinfo t_getstate t_getprotaddr t_getname t_sync) \
	$(addsuffix =t_connect,t_rcvconnect t_listen t_accept) \
	$(addsuffix =t_snd,t_sndv t_rcv t_rcvv) \
	$(addsuffix =t_sndrel,t_rcvrel t_sndreldata t_rcvreldata t_snddis t_rcvdis) \
	$(addsuffix =t_sndudata,t_sndvudata t_rcvudata t_rcvvudata t_rcvuderr) \
	$(addsuffix =t_look,t_error t_strerror t_sysconf) t_free=t_alloc \
	$(addsuffix =netconfig,setnetconfig getnetconfig endnetconfig getnetconfigent freenetconfigent setnetpath getnetpath \
		endnetpath nc_perror nc_sperror) \
	$(addsuffix =netdir,netdir_getbyname netdir_getbyaddr netdir_free netdir_options netdir_perror netdir_sperror \
		taddr2uaddr uaddr2taddr)
MAN9_LINKS := $(addsuffix =allocb,esballoc testb dupb copyb freeb) $(addsuffix =bufcall,esbbcall unbufcall) \
	$(addsuffix =linkb,unlinkb rmvb freemsg dupmsg copymsg adjmsg pullupmsg msgpullup msgdsize datamsg pcmsg) \
	$(addsuffix =putnext,put qreply putctl putctl1 putnextctl putnextctl1) \
	$(addsuffix =putq,putbq insq getq rmvq flushq flushband qsize) \
	$(addsuffix =canputnext,bcanputnext canput bcanput qenable enableok noenable) strqset=strqget \
	$(addsuffix =OTHERQ,RD WR backq SAMESTR weldq unweldq) $(addsuffix =qprocson,qprocsoff freezestr unfreezestr) \
	$(addsuffix =timeout,itimeout untimeout drv_hztousec drv_usectohz drv_usecwait drv_getparm) \
	$(addsuffix =kmem_alloc,kmem_zalloc kmem_free) $(addsuffix =getmajor,getminor makedevice)

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

.PHONY: help build test loom fuzz faults soak lint bench compare demo install uninstall clean

help:
	@echo 'make build     target/release/headwater and target/release/libheadwater.so; headwater-bench, and headwater-load, which it starts'
	@echo 'make test      every test; installs what they use; STRICT=1 fails where something is missing'
	@echo 'make loom      the memory-model checks of the channel'
	@echo 'make fuzz      the parsers of foreign bytes, SECONDS=60 each; sequences of calls, natively and with the library, as long'
	@echo 'make compare   those sequences alone; MIXES="transfer ready blocked" for some kinds; "streams xti" compare by calls, by messages'
	@echo '               and with modules pushed; NEAR=1 changes kept sequences a little, in mixes over sockets'
	@echo 'make faults    takes back one mend after the other, and looks how long those sequences take to tell: SECONDS=600 each at most;'
	@echo '               FAULTS="NAME..." for some of fuzz/differential/faults, TOGETHER=12 for so many of a mix at a time,'
	@echo '               NEAR=1 by sequences near those that are kept'
	@echo 'make soak      what takes long: ten thousand kills under load; a million connections through a server that reloads;'
	@echo '               calls of ours failing, in two hundred runs of each program (HEADWATER_FAULTS=all: in all, for 15 hours); half an hour'
	@echo '               of each kind of sequences of calls; ten million mutations by a hostile peer, under AddressSanitizer'
	@echo 'make lint      formatting and clippy'
	@echo 'make demo      what acceleration does, in two minutes'
	@echo 'make bench     the measurements in full; BENCH="sockets --quick" chooses'
	@echo 'make install   into PREFIX (/usr/local) below DESTDIR; uninstall takes it back'

# Said before anything is installed. Root's path has no toolchain of somebody else's.
cargo = @command -v $(CARGO) >/dev/null || { echo 'No $(CARGO) in the path: rustup brings it, https://rustup.rs' >&2; exit 1; }

# What ships; the examples' long links are not waited for.
build:
	$(cargo)
	$(CARGO) build --release -p headwater -p libheadwater -p headwater-bench -p headwater-load $(CARGOFLAGS)
	ln -sf libheadwater.so $(BUILT)/$(SONAME)

# End-to-end tests use what `build` left in target/release. What can't run for want of a program or of root is in a table at
# the end; STRICT=1 fails there instead.
test: export HEADWATER_NOT_RUN := $(NOT_RUN)
test: export STRICT := $(STRICT)
# Where Debian puts servers, and an ordinary user's shell does not look.
test: export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin
# The programs come first: an answer is given before the long build, not after it.
test:
	$(cargo)
	scripts/programs install
	$(MAKE) --no-print-directory build
	rm -f "$$HEADWATER_NOT_RUN"
	$(CARGO) test --workspace --profile testing --no-fail-fast $(CARGOFLAGS); status=$$?; \
		scripts/programs table "$$HEADWATER_NOT_RUN"; exit $$status

loom:
	RUSTFLAGS='--cfg loom' CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/loom \
		$(CARGO) test -p headwater-channel --release --lib $(CARGOFLAGS) loom

# With cargo-fuzz and a nightly compiler where they are installed, else by plain loops over bytes by chance. Then sequences of calls.
fuzz: build
	@if $(CARGO) +nightly fuzz --version >/dev/null 2>&1; then \
		for target in $$(cd fuzz && $(CARGO) +nightly fuzz list); do \
			ASAN_OPTIONS=detect_leaks=0 $(CARGO) +nightly fuzz run $$target -- -max_total_time=$(SECONDS) || exit 1; \
		done; \
	else \
		HEADWATER_FUZZ_SECONDS=$(SECONDS) $(CARGO) test -p headwater-fuzz --profile testing $(CARGOFLAGS) || exit 1; \
	fi
	$(MAKE) compare

# Sequences of calls, on the plain kernel and with the library; on streams and transport endpoints, made in several ways.
compare: build
	for mix in $(MIXES); do \
		$(CARGO) run -q -p headwater-differential --profile testing $(CARGOFLAGS) -- --mix $$mix \
			$(if $(SEQUENCES),--sequences $(SEQUENCES),--seconds $(SECONDS)) $(if $(NEAR),--near) || exit 1; \
	done

# Each fault of fuzz/differential/faults, planted in a copy of the tree; by seeds that are new, not by the kept ones.
faults: SECONDS = 600
faults: TOGETHER ?= 1
faults:
	$(CARGO) run -q -p headwater-differential --bin headwater-faults --profile testing $(CARGOFLAGS) -- --seconds $(SECONDS) --together $(TOGETHER) $(if $(NEAR),--near) $(FAULTS)

# RUSTC_BOOTSTRAP: the sanitizer's option is not stable, its runtime comes with the toolchain. It keeps what was freed for a while:
# little, since the test looks whether memory grows.
ASAN := detect_leaks=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64
ENEMY := HEADWATER_MUTATIONS=10000000 ASAN_OPTIONS=$(ASAN) RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address --cfg asan' \
	CARGO_TARGET_DIR=$(or $(CARGO_TARGET_DIR),target)/asan $(CARGO) test --target x86_64-unknown-linux-gnu
SOAK := $(CARGO) test --profile testing -p headwater-e2e $(CARGOFLAGS)
soak:
	$(cargo)
	scripts/programs install nginx
	$(MAKE) --no-print-directory build
	@echo 'Ten thousand kills under load: 3 minutes. What is left goes on, and holds no more.'
	HEADWATER_ROUNDS=10000 $(SOAK) --test kills -- --nocapture
	@echo 'A million connections through an nginx that reloads after each ten thousand: 4 minutes.'
	HEADWATER_CONNECTIONS=1000000 $(SOAK) --test reloads -- --nocapture
	@echo 'What a connection takes.'
	$(SOAK) --test memory -- --nocapture
	@echo 'Two hundred runs of each program, a system call of ours failing in each: half an hour. HEADWATER_FAULTS=all takes 15 hours.'
	HEADWATER_FAULTS=$${HEADWATER_FAULTS:-200} $(SOAK) --test faults -- --nocapture
	@echo 'Sequences of calls, natively and with the library: half an hour for each kind.'
	$(MAKE) compare SECONDS=1800
	@echo 'Ten million mutations by a hostile peer.'
	$(ENEMY) -p headwater-sockets --test enemy $(CARGOFLAGS) -- --nocapture

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --profile testing --workspace --all-targets $(CARGOFLAGS) -- -D warnings
	@! grep -rnE '(core|std)::sync::atomic' crates/*/src --include=*.rs | grep -v '^crates/channel/src/sync.rs:' || \
		{ echo 'atomics come from headwater_channel::sync only, so that loom can take their place' >&2; exit 1; }
	@! grep -rnE 'std::env::vars?(_os)?\(|libc::getenv\(' $(addprefix crates/,channel host ipnet providers sctp-sockets sctp-stack sockets executive streams endpoints xti libheadwater) --include=*.rs | \
		grep -vE '^crates/(host/src/env.rs|[a-z-]+/(tests|build.rs))' || \
		{ echo 'variables are read by headwater_host::env alone, which trusts none in a set-user-ID program' >&2; exit 1; }
	@! grep -rnE 'atfork\(|::pthread_create\(|libc::SO_PEERCRED|libc::SCM_RIGHTS' crates/*/src --include=*.rs | \
		grep -vE '^crates/(host/src/(lifecycle|peer|worker)|channel/src/pass|libheadwater/src/passed|sockets/src/handover)\.rs:|^crates/(e2e|bench|load|testkit)/' || \
		{ echo 'forks are for headwater_host::lifecycle, threads for its worker, peers for its peer, descriptors for headwater_channel::pass' >&2; exit 1; }
	@! git ls-files -z '*.rs' '*.c' '*.h' | xargs -0 wc -l | awk '$$1 > 700 && $$2 != "total"' | grep . || \
		{ echo 'these are over 700 lines: two things live in each' >&2; exit 1; }
	@! git ls-files -z '*.md' | LC_ALL=C.UTF-8 xargs -0 grep -nE '^.{121,}' | grep -vE '^[^:]+:[0-9]+: *\|' || \
		{ echo 'these lines of documents are over 120 columns; only rows of tables may be' >&2; exit 1; }

bench: build
	$(BUILT)/headwater bench $(BENCH)

demo:
	$(cargo)
	scripts/programs install redis-server redis-tools nginx wrk
	$(MAKE) --no-print-directory build
	$(BUILT)/headwater demo

# Built only where missing, so that root need not have a toolchain.
$(addprefix $(BUILT)/,headwater libheadwater.so $(TOOLS)):
	$(MAKE) build

# Programs run and start all the while: what they load is there whole at every moment, and what they have mapped stays.
put = install -D -m 755 $(1) $(2).new && mv -f $(2).new $(2)
lead = ln -sf $(1) $(2).new && mv -fT $(2).new $(2)

install: $(addprefix $(BUILT)/,headwater libheadwater.so $(TOOLS))
	$(call put,$(BUILT)/headwater,$(ROOT)/bin/headwater)
	for tool in $(TOOLS); do $(call put,$(BUILT)/$$tool,$(ROOT)/libexec/headwater/$$tool) || exit 1; done
	$(call put,$(BUILT)/libheadwater.so,$(ROOT)/lib/libheadwater.so.$(VERSION))
	$(call lead,libheadwater.so.$(VERSION),$(ROOT)/lib/$(SONAME))
	for link in libheadwater.so $(LINKS); do $(call lead,$(SONAME),$(ROOT)/lib/$$link) || exit 1; done
	install -D -m 644 -t $(ROOT)/include $(addprefix include/,$(HEADERS))
	install -D -m 644 -t $(ROOT)/include/sys $(addprefix include/sys/,$(SYS_HEADERS))
	install -d $(ROOT)/lib/pkgconfig
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' headwater.pc.in > $(ROOT)/lib/pkgconfig/headwater.pc
	chmod 644 $(ROOT)/lib/pkgconfig/headwater.pc
	install -D -m 644 -t $(ROOT)/share/man/man1 $(addprefix man/,$(MAN1))
	install -D -m 644 -t $(ROOT)/share/man/man3 $(addprefix man/,$(MAN3))
	install -D -m 644 -t $(ROOT)/share/man/man7 $(addprefix man/,$(MAN7))
	for link in $(MAN3_LINKS); do \
		page=$(ROOT)/share/man/man3/$${link%=*}.3; echo ".so man3/$${link#*=}.3" > $$page && chmod 644 $$page || exit 1; \
	done
	install -D -m 644 -t $(ROOT)/share/man/man9 $(addprefix man/,$(MAN9))
	for link in $(MAN9_LINKS); do \
		page=$(ROOT)/share/man/man9/$${link%=*}.9f; echo ".so man9/$${link#*=}.9f" > $$page && chmod 644 $$page || exit 1; \
	done

uninstall:
	rm -f $(ROOT)/bin/headwater $(ROOT)/lib/libheadwater.so $(ROOT)/lib/$(SONAME) $(ROOT)/lib/libheadwater.so.$(VERSION)
	rm -f $(addprefix $(ROOT)/lib/,$(LINKS)) $(ROOT)/lib/pkgconfig/headwater.pc
	rm -f $(addprefix $(ROOT)/include/,$(HEADERS)) $(addprefix $(ROOT)/include/sys/,$(SYS_HEADERS))
	rm -f $(addprefix $(ROOT)/share/man/man1/,$(MAN1)) $(addprefix $(ROOT)/share/man/man3/,$(MAN3))
	for link in $(MAN3_LINKS); do rm -f $(ROOT)/share/man/man3/$${link%=*}.3; done
	rm -f $(addprefix $(ROOT)/share/man/man9/,$(MAN9))
	for link in $(MAN9_LINKS); do rm -f $(ROOT)/share/man/man9/$${link%=*}.9f; done
	rm -f $(addprefix $(ROOT)/share/man/man7/,$(MAN7))
	rm -rf $(ROOT)/libexec/headwater

clean:
	$(CARGO) clean
