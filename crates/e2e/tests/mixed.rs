//! Programs with the library beside programs without it, and machines on which it cannot work: the same results, by the
//! kernel's path.

use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, Mode, PATIENCE, accelerated, lab, native, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

#[derive(Clone, Copy)]
struct Sides {
    server: bool,
    client: bool,
}

const BOTH: Sides = Sides {
    server: true,
    client: true,
};
const SERVER: Sides = Sides {
    server: true,
    client: false,
};
const CLIENT: Sides = Sides {
    server: false,
    client: true,
};

fn echo(lab: &Lab, sides: Sides, style: &str) -> String {
    echo_of(lab, sides, style, |_| ())
}

/// The same, with something done to each command first.
fn echo_of(lab: &Lab, sides: Sides, style: &str, alter: impl Fn(&mut Command)) -> String {
    let port = network::free_port();
    let command = |with: bool| -> Command {
        let mut c = if with {
            lab.command(PYTHON)
        } else {
            lab.plain(PYTHON)
        };
        alter(&mut c);
        c
    };
    let mut c = command(sides.server);
    c.arg(lab::source("py/echo_server.py"))
        .arg(style)
        .arg(port.to_string());
    let server = lab.serve(c, port);
    let mut c = command(sides.client);
    let clients = if style == "epoll" { "epoll" } else { "threads" };
    c.arg(lab::source("py/echo_client.py"))
        .arg(clients)
        .arg(port.to_string());
    let said = lab.run(c).text();
    server.stop(libc::SIGTERM);
    said
}

/// The same as natively, and nothing accelerated; the lab is prepared by `prepare` first.
fn by_the_kernel(sides: Sides, prepare: impl Fn(&Lab)) {
    for style in ["epoll", "threads"] {
        let (_, expected) = native(|lab| echo(lab, BOTH, style));
        let (lab, seen) = accelerated(|lab| {
            prepare(lab);
            echo(lab, sides, style)
        });
        assert_eq!(seen, expected, "{}", lab.lines_text());
        lab.assert_not_carried();
    }
}

#[test]
fn only_the_server_has_the_library() {
    needs!("python3");
    by_the_kernel(SERVER, |_| ());
}

#[test]
fn only_the_client_has_the_library() {
    needs!("python3");
    by_the_kernel(CLIENT, |_| ());
}

#[test]
fn each_side_has_a_folder_of_its_own() {
    needs!("python3");
    // As in two containers that share the network only.
    let (_, expected) = native(|lab| echo(lab, BOTH, "threads"));
    let (lab, seen) = accelerated(|lab| {
        let port = network::free_port();
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/echo_server.py"))
            .arg("threads")
            .arg(port.to_string());
        c.env("HEADWATER_DIR", lab.path("elsewhere"));
        let server = lab.serve(c, port);
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/echo_client.py"))
            .arg("threads")
            .arg(port.to_string());
        let said = lab.run(c).text();
        server.stop(libc::SIGTERM);
        said
    });
    assert_eq!(seen, expected);
    lab.assert_not_carried();
}

#[test]
fn the_runtime_folder_is_refused() {
    needs!("python3");
    by_the_kernel(BOTH, |lab| {
        std::fs::write(lab.path("run"), "not a folder").unwrap()
    });
    by_the_kernel(BOTH, |lab| {
        std::os::unix::fs::symlink("/tmp", lab.path("run")).unwrap()
    });
    by_the_kernel(BOTH, |lab| lab.set("HEADWATER_DIR", "/proc/no/such/folder"));
}

#[test]
fn the_board_is_garbage() {
    needs!("python3");
    for bytes in [
        vec![],
        vec![0xa5; 100],
        headwater_e2e::lab::noise(1 << 20),
        vec![0; 1 << 20],
    ] {
        let (_, expected) = native(|lab| echo(lab, BOTH, "threads"));
        let (lab, seen) = accelerated(|lab| {
            echo(lab, BOTH, "threads");
            std::fs::write(board(lab), &bytes).unwrap();
            echo(lab, BOTH, "threads")
        });
        assert_eq!(seen, expected, "{}", lab.lines_text());
    }
}

/// The file of the board, which accelerated programs have made.
fn board(lab: &Lab) -> std::path::PathBuf {
    let files = std::fs::read_dir(lab.path("run")).expect("the runtime folder");
    files
        .flatten()
        .map(|f| f.path())
        .find(|f| {
            f.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("board"))
        })
        .expect("a board")
}

#[test]
fn files_must_stay_small() {
    needs!("python3");
    use std::os::unix::process::CommandExt;
    let limit = |c: &mut Command| {
        let small = libc::rlimit {
            rlim_cur: 65536,
            rlim_max: 65536,
        };
        // SAFETY: setrlimit may be called between fork and exec.
        unsafe {
            c.pre_exec(move || match libc::setrlimit(libc::RLIMIT_FSIZE, &small) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
    };
    for with_board in [false, true] {
        let (_, expected) = native(|lab| echo_of(lab, BOTH, "threads", limit));
        let (lab, seen) = accelerated(|lab| {
            if with_board {
                echo(lab, BOTH, "threads");
            }
            let before = lab.lines().len();
            let seen = echo_of(lab, BOTH, "threads", limit);
            let lines = &lab.lines()[before..];
            assert!(lines.iter().all(|l| l.accelerated == 0 && l.shm_tx == 0));
            seen
        });
        assert_eq!(seen, expected, "{}", lab.lines_text());
    }
}

#[test]
fn the_port_is_denied() {
    needs!("python3");
    by_the_kernel(BOTH, |lab| lab.set("HEADWATER_DENY_PORTS", "1-65535"));
    by_the_kernel(BOTH, |lab| lab.set("HEADWATER_PORTS", "1"));
}

#[test]
fn the_program_is_denied() {
    needs!("python3");
    by_the_kernel(BOTH, |lab| lab.set("HEADWATER_DENY_PROGRAMS", "python3*"));
}

/// A listener of a killed process stays on the board for a while; who listens there now does not know the library.
#[test]
fn a_killed_server_is_replaced_by_a_plain_one() {
    needs!("python3");
    let serve = |lab: &Lab, port: u16, with: bool| {
        let mut c = if with {
            lab.command(PYTHON)
        } else {
            lab.plain(PYTHON)
        };
        c.arg(lab::source("py/echo_server.py"))
            .arg("threads")
            .arg(port.to_string());
        lab.serve(c, port)
    };
    let ask = |lab: &Lab, port: u16| {
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/echo_client.py"))
            .arg("serial")
            .arg(port.to_string());
        lab.run(c).text()
    };
    let lab = Lab::new(Mode::Accelerated);
    let port = network::free_port();
    let first = serve(&lab, port, true);
    let expected = ask(&lab, port);
    lab.assert_carried(6 << 20);
    drop(first);
    let before = lab.lines().len();
    let second = serve(&lab, port, false);
    assert_eq!(ask(&lab, port), expected);
    let after = lab.lines().split_off(before);
    assert!(
        after.iter().all(|l| l.accelerated == 0),
        "{}",
        lab.lines_text()
    );
    drop(second);
    let third = serve(&lab, port, true);
    assert_eq!(ask(&lab, port), expected);
    third.stop(libc::SIGTERM);
    assert!(
        lab.lines().last().unwrap().accelerated > 0,
        "{}",
        lab.lines_text()
    );
}

/// One port, two listeners with SO_REUSEPORT, of which one knows the library: each connection finds its own way.
#[test]
fn listeners_with_and_without_the_library_share_a_port() {
    needs!("python3");
    let serve = |lab: &Lab, port: u16, with: bool| {
        let mut c = if with {
            lab.command(PYTHON)
        } else {
            lab.plain(PYTHON)
        };
        c.arg(lab::source("py/echo_server.py"))
            .arg("workers_reuseport")
            .arg(port.to_string());
        lab.serve(c, port)
    };
    let work = |lab: &Lab| {
        let port = network::free_port();
        let servers = [serve(lab, port, true), serve(lab, port, false)];
        let ask = |_| {
            let mut c = lab.command(PYTHON);
            c.arg(lab::source("py/echo_client.py"))
                .arg("serial")
                .arg(port.to_string());
            lab.run(c).text()
        };
        let said: Vec<String> = (0..4).map(ask).collect();
        for server in servers {
            server.stop(libc::SIGTERM);
        }
        said
    };
    headwater_e2e::both(work);
}

/// Users who do not name each other stay with the kernel.
#[test]
fn another_user_is_refused() {
    needs!("root", "python3");
    let other = |lab: &Lab, command: &mut Command| {
        lab.as_user(command, 65534, 65534);
        command.env("HEADWATER_DIR", lab.path("theirs"));
        command.env_remove("HEADWATER_STATS_FILE");
    };
    let (_, expected) = native(|lab| echo(lab, BOTH, "threads"));
    let (lab, seen) = accelerated(|lab| {
        let port = network::free_port();
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/echo_server.py"))
            .arg("threads")
            .arg(port.to_string());
        let server = lab.serve(c, port);
        let mut c = lab.command(PYTHON);
        c.arg(lab.copy(&lab::source("py/echo_client.py")))
            .arg("threads")
            .arg(port.to_string());
        other(lab, &mut c);
        let said = lab.run(c).text();
        server.stop(libc::SIGTERM);
        said
    });
    assert_eq!(seen, expected);
    lab.assert_not_carried();
}

/// A process that writes garbage into the shared segment harms that connection, not the program.
#[test]
fn garbage_in_the_segment_costs_one_connection() {
    needs!("python3");
    let lab = Lab::new(Mode::Accelerated);
    let port = network::free_port();
    let mut c = lab.command(PYTHON);
    c.arg(lab::source("py/echo_server.py"))
        .arg("threads")
        .arg(port.to_string());
    let mut server = lab.serve(c, port);
    for seed in 0..24u64 {
        let mut c = lab.command(PYTHON);
        c.arg(lab::source("py/garbage_client.py"))
            .arg(port.to_string());
        c.args([server.pid().to_string(), seed.to_string()]);
        let said = lab.run(c).text();
        assert!(said.contains("survived"), "{said}");
        assert!(
            server.alive(),
            "the server died: {:?}",
            server.wait_within(headwater_e2e::PATIENCE)
        );
    }
    let mut c = lab.command(PYTHON);
    c.arg(lab::source("py/echo_client.py"))
        .arg("serial")
        .arg(port.to_string());
    lab.run(c).ok();
    server.stop(libc::SIGTERM);
}

/// A library that differs from the one under test in the version of what processes share.
fn other_version() -> Vec<u8> {
    const MARK: &[u8] = b"headwater's ABI:";
    let mut bytes = std::fs::read(lab::library()).expect("the library is there");
    let find = |from: usize| {
        let rest = &bytes[from..];
        // SAFETY: two slices.
        let at = unsafe {
            libc::memmem(
                rest.as_ptr().cast(),
                rest.len(),
                MARK.as_ptr().cast(),
                MARK.len(),
            )
        };
        (!at.is_null()).then(|| at as usize - bytes.as_ptr() as usize + MARK.len())
    };
    let at = find(0).expect("the version stands in the file");
    assert_eq!(find(at), None, "once");
    bytes[at] += 100;
    bytes
}

/// Connects, exchanges messages, says so by a file, waits for another and goes on.
const LONG_CLIENT: &str = "
import os, socket, sys, time
port, half, go = int(sys.argv[1]), sys.argv[2], sys.argv[3]
end = socket.create_connection(('127.0.0.1', port))
def exchange():
    for i in range(500):
        end.sendall(bytes([i % 256]) * 300)
        back = b''
        while len(back) < 300:
            back += end.recv(300 - len(back))
        assert back == bytes([i % 256]) * 300
exchange()
open(half, 'w').close()
while not os.path.exists(go):
    time.sleep(0.002)
exchange()
";

/// As `make install` does it, by rename: who runs goes on, the new meet the new in shared memory, and the old by the kernel's path.
#[test]
fn a_new_version_is_installed_under_running_programs() {
    needs!("python3");
    let (lab, pids) = accelerated(|lab: &Lab| {
        let installed = lab.path("libheadwater.so");
        std::fs::copy(lab::library(), &installed).expect("the lab's folder");
        let serve = || {
            let port = network::free_port();
            let mut c = lab.command(PYTHON);
            c.arg(lab::source("py/echo_server.py"))
                .args(["threads", &port.to_string()])
                .env("LD_PRELOAD", &installed);
            (lab.serve(c, port), port)
        };
        let call = |port: u16, name: &str, go: &str| {
            let mut c = lab.command(PYTHON);
            c.args(["-c", LONG_CLIENT, &port.to_string(), name, go])
                .env("LD_PRELOAD", &installed);
            lab.start(c)
        };
        let (old_server, old_port) = serve();
        let old = call(old_port, "half", "go");
        let begun = Instant::now();
        while !lab.path("half").exists() {
            assert!(begun.elapsed() < PATIENCE, "{}", old.said());
            std::thread::sleep(Duration::from_millis(2));
        }

        let new = lab.path("libheadwater.so.new");
        std::fs::write(&new, other_version()).expect("the lab's folder");
        std::fs::rename(&new, &installed).expect("the lab's folder");
        let (new_server, new_port) = serve();
        let between = call(old_port, "between", "half");
        let among = call(new_port, "among", "half");
        let pids = [old.pid(), between.pid(), among.pid()];
        between.finish().ok();
        among.finish().ok();
        std::fs::write(lab.path("go"), "").expect("the lab's folder");
        old.finish().ok();
        old_server.stop(libc::SIGTERM);
        new_server.stop(libc::SIGTERM);
        pids
    });
    let carried = pids.map(|pid| {
        let lines = lab.lines();
        let line = lines.iter().find(|l| l.pid == u64::from(pid));
        line.unwrap_or_else(|| panic!("{}", lab.lines_text()))
            .shm_tx
            > 290_000
    });
    assert_eq!(carried, [true, false, true], "{}", lab.lines_text());
}
