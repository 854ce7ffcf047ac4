//! Small C programs that use one connection in every way there is: what they say natively they say accelerated.

use std::collections::HashMap;

use headwater_e2e::{Lab, both, compile, lab};

/// Runs a case of `c/FILE.c` both ways; both of its processes carried traffic, unless they were killed.
fn same(file: &str, case: &str, flags: &[&str]) -> Lab {
    let program = compile::program(file, flags);
    let lab = both(|lab: &Lab| {
        let mut command = lab.command(&program);
        command.arg(case);
        lab.run(command).text()
    });
    let warm = lab
        .lines()
        .iter()
        .any(|l| l.accelerated > 0 && l.shm_tx > 0 && l.shm_rx > 0);
    assert!(
        warm,
        "the case began on the kernel path\n{}",
        lab.lines_text()
    );
    lab
}

macro_rules! cases {
    ($file:ident: $($case:ident),* $(,)?) => {
        mod $file {
            $(#[test]
            fn $case() {
                crate::same(stringify!($file), stringify!($case), &[]);
            })*
        }
    };
}

cases!(epoll: level, edge, oneshot, oneshot_taken, exclusive, out_full, rdhup, rdhup_edge, two_sets, nested, dup, dup_stays, fork_set, stall, stall_level,
    short_read, pwait2, beside, beside_room, moved);
cases!(epoll_sets: refused, beside, looked_at, by_other_number, closed_here, crowd, by_child, by_parent, left_apart, while_asleep, drained, levels, edges, first, once, asleep);
cases!(epoll_threads: add_while_asleep, change_while_asleep, pool, others, errors, ends, closed, many, early);
cases!(poll: polls, beside, ppolls, selects, room, ends, large, directions);
cases!(transfer: messages, peek, waitall, peek_all, peek_paths, trunc, dontwait, timeouts, counts, vectors, file, urgent,
    pieces, empty);
cases!(ends: half, both_halves, read_half, read_half_by_child, wake_by_shutdown, close_after_write, unread, unread_rest, unread_exit, pipe,
    blind_writer, blocked_writer, killed, killed_reader, killed_stream, stopped, both_full, both_full_poll);
cases!(refused: dup3, dup2, close_range, shutdown, sendmmsg, disconnect, disconnect_full);
cases!(strays: closed_by_stdio, closed_round, closed_round_last, made_anew);
cases!(splice: half_closed, stalled, stalled_nonblocking, waits, narrow, into, into_full, proxy, stdio_half_closed, stdio_stalled,
    sendfile_half_closed, sendfile_by_number, sendfile_stalled, sendfile_waits, sendfile_refused);
cases!(keeper: close, shutdown, exit, exec, linger);
cases!(options: inquiry, stamps, stamps_late, zerocopy, peek_offset, peek_offset_before, unread, signalled_unread, repair, encryption);
cases!(corners: times, limits, mmsg, flags, arrays, addresses, endings, sendfile, numbers, mark, inline, reset, asked, all, limits_before);
cases!(select: wide, exceptions, closed);
cases!(signals: eintr, restart, interrupt, partial, partial_restart, jump, jump_close, jump_inside, jump_busy, anew,
    anew_by_kernel);
cases!(signal_actions: storm, sigio, handlers, resethand, nodefer, wrong_pointer, wrong_structure, defaults, masked);
cases!(takeover: handler, close, file, shutdown);
cases!(threads: duplex, crowd, cancel, cancel_close, cancel_writer, cancel_busy, cancel_peeker, close_blocked, close_blocked_cold,
    fork_busy, real_time);
cases!(late: low_water, low_water_peek, low_water_before, low_water_between, send);
cases!(held: calls);
cases!(descriptors: dups, fetch, fetch_child, fetch_elsewhere, fork, fork_per_connection, vfork, stdio, dprintf, stdio_later,
    stdio_early, close_all, dup2_high, few);
cases!(handed_on: system, spawn, spawn_bare, spawn_bare_cloexec, exec, exec_bare, execl_bare, vfork_exec, vfork_exec_bare,
    exec_unread, exec_busy, exec_busy_known, exec_shut, exec_shut_known, vfork_shut, vfork_shut_known, spawn_shut,
    spawn_shut_known, exec_fails, exec_resets, pass, pass_keep, pass_known, pass_half_closed, pass_busy, pass_stalled,
    pass_stalled_at_limit, pass_many, pass_mmsg);
cases!(wide: reads, reads_new, scans, scans_new, broken, broken_new, pieces, pieces_new, writes, writes_new, lacks, lacks_new, bytes, bytes_new,
    turns, turns_new, reopens, reopens_new, reopens_wide, reopens_wide_new, reopens_nothing, reopens_nothing_new, reopens_no_file,
    reopens_no_file_new, standard, standard_new, many, many_new, cancelled, cancelled_new);
cases!(round: names, found, vectors, prints, passes, asynchronous, submitted, standard, standard_by_dup, numbers, waits, made, cloned,
    more_numbers, listens, images);
cases!(unseen: crossing, silent, blocks, carried, acknowledged, edges, levels, room, tags);
cases!(confine: strict, filter, by_number, receives, sends, across, waitall, polls, selects, sets, shared, bystander,
    descriptors, busy, closed, unseen, messages, messages_all, splices, numbers, room, files, older);
cases!(confine_beside: accepts, handlers, once, later, first, mixed, beside_recv, beside_read, beside_readv, beside_recvmsg,
    beside_all, beside_look, beside_splice, beside_write, beside_writev, beside_room, beside_poll, beside_ppoll, beside_select,
    beside_pselect, beside_set, beside_poll_in_time, beside_set_in_time, beside_select_in_time);

/// Why a reader was told of a reset stands in its line.
#[test]
fn strays_are_counted() {
    for case in ["byte", "byte_polled", "byte_and_end"] {
        let said = same("strays", case, &[]).lines_text();
        assert!(said.contains("\"uncounted\":1"), "{case}\n{said}");
    }
}

/// Who finds something at each call for long has not waited by system calls of its own. Why it was carried late is said.
#[test]
fn who_waits_late_is_carried() {
    let lab = same("unseen", "late", &[]);
    let said = lab.lines_text();
    assert!(lab.lines().iter().all(|line| line.fallback == 0), "{said}");
    assert!(said.contains("\"unseen-waits\":1"), "{said}");
}

/// A program that encrypts by itself where the kernel does not stays in shared memory.
#[test]
fn encryption_is_the_programs_own() {
    let program = compile::program("options", &[]);
    let (lab, _) = headwater_e2e::accelerated(|lab: &Lab| {
        let mut command = lab.command(&program);
        command.arg("encryption");
        lab.run(command).text()
    });
    lab.assert_carried(2 << 20);
}

/// Of 800 KiB that a child serves once its parent has closed the connection, most.
#[test]
fn a_connection_is_carried_once_its_holder_is_alone() {
    same("takeover", "late_parent", &[]).assert_part_carried(500 << 10);
}

/// The same once a wait for it was seen.
#[test]
fn a_connection_is_carried_once_it_is_waited_for() {
    same("takeover", "late_wait", &[]).assert_part_carried(500 << 10);
}

/// A connection's whole life inside a signal handler. What is built without optimisation, as this program when it is run by
/// itself, needs more stack than the 8 KiB that have to do.
#[test]
fn handlers() {
    let case = match headwater_e2e::cases::is_unoptimised() {
        true => "roomy",
        false => "small_stack",
    };
    same("handlers", case, &[]);
    same("handlers_peers", case, &[]);
}

/// Connections in images that their holder starts.
mod exec {
    use headwater_e2e::{Lab, both, compile};

    /// Runs a case both ways: the connection stays carried, whatever was started.
    fn stays(case: &str) -> Lab {
        let program = compile::program("exec", &[]);
        let lab = both(|lab: &Lab| {
            let mut command = lab.command(&program);
            command.arg(case);
            lab.run(command).text()
        });
        let text = lab.lines_text();
        assert!(lab.lines().iter().any(|l| l.shm_rx > 0), "{text}");
        for reason in ["exec", "passed-on"] {
            assert!(
                !text.contains(&format!("\"{reason}\":")),
                "{reason}\n{text}"
            );
        }
        lab
    }

    macro_rules! staying {
        ($($case:ident),* $(,)?) => {
            $(#[test]
            fn $case() {
                stays(stringify!($case));
            })*
        };
    }

    staying!(
        untouched,
        untouched_busy,
        shell_number,
        unread,
        unread_poll,
        unread_epoll,
        unread_select,
        unread_again,
        unread_closing,
        unread_moved,
        vforked_number,
        vforked_again,
        vforked_over,
        in_place,
        turns,
        heir,
        killed
    );

    #[test]
    fn cold() {
        // Both ends of a connection in one process, which were Tracked when it started a program.
        let lab = stays("cold");
        let most = lab.lines().iter().map(|l| l.shm_rx).max();
        assert!(most > Some(400_000), "{}", lab.lines_text());
    }
}

/// Images without the library, after which the connection comes back to shared memory.
mod comeback {
    use headwater_e2e::{Lab, both, compile};

    fn run(case: &str, end: &str) -> Lab {
        let program = compile::program("comeback", &[]);
        both(|lab: &Lab| {
            let mut command = lab.command(&program);
            command.arg(format!("{case}_{end}"));
            lab.run(command).text()
        })
    }

    macro_rules! returning {
        ($($case:ident),* $(,)?) => {
            $(mod $case {
                #[test]
                fn accepted() {
                    super::comes_back(stringify!($case), "accepted");
                }
                #[test]
                fn connected() {
                    super::comes_back(stringify!($case), "connected");
                }
            })*
        };
    }

    /// Of what goes last, 64 MB each way, much goes by the rings, at both ends: how soon depends on the load.
    fn comes_back(case: &str, end: &str) {
        let lab = run(case, end);
        let lines = lab.lines();
        let carried = lines
            .iter()
            .filter(|l| l.shm_rx > 12 << 20 && l.shm_tx > 12 << 20);
        assert_eq!(carried.count(), 2, "{}", lab.lines_text());
    }

    returning!(
        untouched, shell, spawned, reads, writes, unread, waiting, used, flowing, both, polled,
        released, shared,
    );

    /// As long as somebody has it who goes round the library, nothing goes by the rings.
    #[test]
    fn kept() {
        for end in ["accepted", "connected"] {
            let lab = run("kept", end);
            let most = lab.lines().iter().map(|l| l.shm_rx.max(l.shm_tx)).max();
            assert!(most < Some(100_000), "{}", lab.lines_text());
        }
    }
}

/// Those that go on by the kernel: the image has no library, or standard input and output.
mod exec_by_kernel {
    cases!(exec: served, served_bare, served_vfork, shell, shell_bare, shell_stdio, unread_stdio, unread_bare,
        vforked_close, vforked_close_bare, vforked_range, vforked_range_bare, vforked_loop, vforked_dup3_bare, vforked_number_bare,
        vforked_again_bare, vforked_over_bare, unread_vforking, unread_vforking_bare,
        set_forked, set_forked_bare, set_vforked, set_vforked_bare, set_passed, set_passed_bare);
}

/// io_uring, by liburing and by numbers; where the kernel has none or liburing is not there, these are left out.
mod uring {
    use headwater_e2e::{Lab, both, compile};
    use headwater_testkit::needs;

    macro_rules! rings {
        ($($case:ident),*) => {$(
            #[test]
            fn $case() {
                needs!("liburing-dev");
                super::same("uring", stringify!($case), &["-O1", "-luring"]);
            }
        )*};
    }

    rings!(
        liburing,
        later,
        named,
        passed,
        set_waits,
        closes,
        chain,
        accepts,
        files,
        polled,
        polled_first,
        registered
    );

    /// The connection stays carried.
    macro_rules! carried {
        ($($case:ident: $bytes:expr),*) => {$(
            #[test]
            fn $case() {
                needs!("liburing-dev");
                let lab = super::same("uring", stringify!($case), &["-O1", "-luring"]);
                let most = lab.lines().iter().map(|l| l.shm_tx).max();
                assert!(most > Some($bytes), "{}", lab.lines_text());
            }
        )*};
    }

    carried!(sets: 200_000, sets_wide: 200_000, sets_in_order: 200_000, sets_of_many: 200_000, in_handler: 200_000, forks: 60_000,
        refused: 200_000);

    /// liburing comes with a module of the program, as something that nobody else sees.
    #[test]
    fn of_a_module() {
        needs!("liburing-dev");
        let module = compile::program(
            "plugin",
            &["-O1", "-DMODULE", "-shared", "-fPIC", "-luring"],
        );
        let program = compile::program("plugin", &[]);
        let lab = both(|lab: &Lab| {
            let mut command = lab.command(&program);
            command.arg("loaded").env("MODULE", &module);
            lab.run(command).text()
        });
        assert!(
            lab.lines_text().contains("io-uring"),
            "{}",
            lab.lines_text()
        );
    }

    /// HEADWATER_URING=refuse.
    #[test]
    fn without() {
        needs!("liburing-dev");
        let program = compile::program("uring", &["-O1", "-luring"]);
        let lab = both(|lab: &Lab| {
            lab.set("HEADWATER_URING", "refuse");
            let mut command = lab.command(&program);
            command.arg("without");
            lab.run(command).text()
        });
        lab.assert_carried(2 * 300 * 777);
        assert!(
            !lab.lines_text().contains("io-uring"),
            "{}",
            lab.lines_text()
        );
    }
}

/// Requests of libaio: of the installed one, which makes its system calls by a function, and of older ones, which don't.
mod libaio {
    use headwater_e2e::{Lab, Mode, both, compile, lab};
    use headwater_testkit::needs;

    fn requests(case: &str) {
        super::same("libaio", case, &["-O1", "-laio"]);
        let program = compile::program("libaio", &["-O1", "-laio"]);
        let inline = compile::program("io_submit", &["-O1", "-shared", "-fPIC"]);
        let lab = both(|lab: &Lab| {
            let mut command = lab.command(&program);
            let ours = match lab.mode() {
                Mode::Native => String::new(),
                Mode::Accelerated => lab::library().display().to_string(),
            };
            let preloaded = format!("{ours} {}", inline.display());
            command.arg(case).env("LD_PRELOAD", preloaded);
            lab.run(command).text()
        });
        assert!(
            lab.lines_text().contains("\"option\":1"),
            "{}",
            lab.lines_text()
        );
    }

    macro_rules! cases {
        ($($case:ident),*) => {$(
            #[test]
            fn $case() {
                needs!("libaio-dev");
                requests(stringify!($case));
            }
        )*};
    }

    cases!(reads, writes, polls);
}

/// The aliases that check lengths, as distributions build their programs.
mod fortified {
    const FLAGS: &[&str] = &["-O2", "-D_FORTIFY_SOURCE=2", "-Wno-unused-result"];

    #[test]
    fn transfers() {
        for case in ["fortified", "peek", "vectors", "timeouts"] {
            super::same("transfer", case, FLAGS);
        }
    }

    #[test]
    fn streams_of_the_c_library() {
        for case in ["stdio", "dprintf"] {
            super::same("descriptors", case, FLAGS);
        }
        for case in ["reads", "scans", "writes"] {
            super::same("wide", case, FLAGS);
        }
    }
}

/// A case that no list names would pass by never being run.
#[test]
fn each_case_is_run() {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(str::to_string).collect()
    };
    let mut pieces = include_str!("calls.rs").split("\ncases!(");
    let mut rest = pieces.next().map(words).unwrap_or_default();
    let mut lists = HashMap::new();
    for piece in pieces {
        let (list, behind) = piece.split_once(");").unwrap();
        let (file, cases) = list.split_once(':').unwrap();
        lists.insert(file, words(cases));
        rest.extend(words(behind));
    }
    let mut count = 0;
    for entry in std::fs::read_dir(lab::source("c")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|x| x != "c") {
            continue;
        }
        let file = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().filter(|line| !line.contains("define"));
        for case in lines.flat_map(|line| line.split("CASE(").skip(1)) {
            let case = words(case).remove(0);
            let is_listed = lists.get(file).is_some_and(|list| list.contains(&case));
            assert!(is_listed || rest.contains(&case), "{file}: {case}");
            count += 1;
        }
    }
    assert!(count > 300, "{count} cases");
}
