//! What statistics say of connections is true of them.

use std::os::unix::process::ExitStatusExt;

use headwater_e2e::{Lab, Line, lab, network};
use headwater_testkit::needs;

const PYTHON: &str = "/usr/bin/python3";

/// Which sides have the library.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Both,
    Server,
    Client,
}

/// One connection with so many bytes back and forth, which then stays open for a while. Lines of the server and of the client.
fn connection(with: With, rounds: u32, seconds: f32) -> Vec<Line> {
    let lab = Lab::new(headwater_e2e::Mode::Accelerated);
    let port = network::free_port();
    let command = |side: &str, without: With| {
        let mut c = match with == without {
            true => lab.plain(PYTHON),
            false => lab.command(PYTHON),
        };
        c.arg(lab::source("py/rounds.py")).args([
            side,
            &port.to_string(),
            &rounds.to_string(),
            &seconds.to_string(),
        ]);
        c
    };
    let server = lab.serve(command("serve", With::Client), port);
    lab.run(command("call", With::Server)).ok();
    server.finish().ok();
    lab.lines()
}

fn says(line: &Line, reason: &str) -> bool {
    line.text
        .contains(&format!("\"fallback_reasons\":{{\"{reason}\":1}}"))
}

#[test]
fn a_quiet_connection_that_was_open_for_long_is_not_called_short_lived() {
    needs!("python3");
    let lines = connection(With::Both, 1, 1.5);
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(says(&line, "few-calls"), "{}", line.text);
    }
}

#[test]
fn a_server_says_that_its_client_has_no_library() {
    needs!("python3");
    let lines = connection(With::Server, 50, 0.0);
    assert_eq!((lines.len(), lines[0].fallback), (1, 1));
    assert!(says(&lines[0], "no-offer"), "{}", lines[0].text);
}

#[test]
fn a_client_says_that_its_server_has_no_library() {
    needs!("python3");
    let lines = connection(With::Client, 50, 0.0);
    assert_eq!(
        (lines.len(), lines[0].fallback),
        (1, 1),
        "{}",
        lines[0].text
    );
    assert!(says(&lines[0], "no-listener"), "{}", lines[0].text);
}

#[test]
fn what_was_taken_over_and_carried_nothing_is_not_called_accelerated() {
    needs!("python3");
    // Around the number of calls after which connections are taken over.
    let mut switches = Vec::new();
    for rounds in [1, 2, 3, 4, 5, 200] {
        let lines = connection(With::Both, rounds, 0.0);
        assert_eq!(lines.len(), 2);
        for line in lines {
            let carried = (line.shm_tx + line.shm_rx > 0) as u64;
            let taken_over = !line.text.contains("\"switches\":0,");
            switches.push((taken_over, carried > 0));
            assert_eq!(line.accelerated, carried, "{rounds}: {}", line.text);
            assert_eq!(line.fallback, 1 - carried, "{rounds}: {}", line.text);
        }
    }
    for both in [(false, false), (true, true)] {
        assert!(switches.contains(&both), "{switches:?}");
    }
}

/// Reads nothing of many small messages until all have come.
const READS_LATE: &str = r#"
import array, fcntl, socket, sys, termios, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    with listener.accept()[0] as s:
        left = int(sys.argv[2])
        waiting = array.array("i", [0])
        while waiting[0] < left:
            time.sleep(0.001)
            fcntl.ioctl(s, termios.FIONREAD, waiting)
        while left > 0:
            left -= len(s.recv(1000))
        s.sendall(b"!")
        while s.recv(1000):
            pass
"#;

const SENDS_EARLY: &str = r#"
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    for _ in range(int(sys.argv[2])):
        s.sendall(b".")
    s.recv(1)
    for _ in range(100):
        s.sendall(b".")
"#;

/// As where both have one CPU: the reader's first call comes when its client has made thousands.
#[test]
fn a_client_that_is_thousands_of_calls_ahead_of_its_server_is_taken_over() {
    needs!("python3");
    let carried = || {
        let lab = Lab::new(headwater_e2e::Mode::Accelerated);
        let port = network::free_port();
        let command = |program: &str| {
            let mut c = lab.command(PYTHON);
            c.args(["-c", program, &port.to_string(), "8300"]);
            c
        };
        let server = lab.serve(command(READS_LATE), port);
        lab.run(command(SENDS_EARLY)).ok();
        server.finish().ok();
        let lines = lab.lines();
        lines.len() == 2 && lines.iter().all(|line| line.accelerated == 1)
    };
    // A client that rests for a tenth of a second behind the last few of them gives up.
    assert!((0..5).any(|_| carried()));
}

/// Serves connections one after the other, each to its end.
const SERVES: &str = r#"
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100) as listener:
    while True:
        with listener.accept()[0] as s:
            count = 0
            while data := s.recv(100):
                s.sendall(data)
                count += 1
            if count > 1:
                break
"#;

/// A thousand connections for a request each, and one that stays after a pause. Prints how many came in a second.
const STORM: &str = r#"
import socket, sys, time
address = ("127.0.0.1", int(sys.argv[1]))
begun = time.monotonic()
for _ in range(1000):
    with socket.create_connection(address) as s:
        s.sendall(b"?")
        s.recv(100)
print(int(1000 / (time.monotonic() - begun)))
time.sleep(0.5)
with socket.create_connection(address) as s:
    for _ in range(50):
        s.sendall(b"?")
        s.recv(100)
"#;

/// So many a second are a storm, where the least that is one is 480.
const STORMY: u32 = 700;

#[test]
fn a_storm_of_single_requests_is_left_alone_and_what_comes_after_it_is_carried() {
    needs!("python3");
    for _ in 0..5 {
        let lab = Lab::new(headwater_e2e::Mode::Accelerated);
        let port = network::free_port();
        let command = |program: &str| {
            let mut c = lab.command(PYTHON);
            c.args(["-c", program, &port.to_string()]);
            c
        };
        let server = lab.serve(command(SERVES), port);
        let rate = lab.run(command(STORM)).text();
        server.finish().ok();
        let lines = lab.lines();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|l| l.accelerated == 1), "{lines:?}");
        // On a machine that is too busy for a storm none is to be seen.
        if rate.trim().parse::<u32>().expect("a number") < STORMY {
            continue;
        }
        for line in lines {
            let left_alone = line.text.split_once("\"not-worth\":").map_or(0, |(_, n)| {
                let digits: String = n.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().expect("a number")
            });
            assert!(left_alone > 400, "{}", line.text);
        }
        return;
    }
    panic!("this machine makes no {STORMY} connections a second");
}

/// Sends back what one connection brings, then says what SIGTERM's action is and what a program that it starts has for it.
const WAITS: &str = r#"
import ctypes, os, signal, socket, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
s, _ = listener.accept()
for _ in range(50):
    s.sendall(s.recv(1))
libc = ctypes.CDLL(None)
libc.signal.restype = ctypes.c_void_p
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
had = [libc.signal(n, None) for n in (signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1)]
print("had", had, flush=True)
caught = "grep -E '^Sig(Ign|Cgt)' /proc/self/status"
print(subprocess.run(caught, shell=True, capture_output=True).stdout.decode(), flush=True)
os.kill(os.getpid(), signal.SIGHUP)
s.recv(1)
if len(sys.argv) > 2:
    os.kill(os.getpid(), int(sys.argv[2]))
signal.pause()
"#;

#[test]
fn a_program_that_a_signals_default_action_ends_leaves_a_line() {
    needs!("python3");
    for signal in [libc::SIGTERM, libc::SIGALRM, libc::SIGUSR1] {
        let work = |lab: &Lab| {
            let port = network::free_port();
            let mut c = lab.command(PYTHON);
            c.args(["-c", WAITS, &port.to_string(), &signal.to_string()]);
            let server = lab.serve(c, port);
            let mut c = lab.command(PYTHON);
            let port = port.to_string();
            c.arg(lab::source("py/rounds.py"))
                .args(["call", &port, "50"]);
            lab.run(c).ok();
            let ended = server.finish();
            let out = String::from_utf8_lossy(&ended.out).into_owned();
            (ended.status.signal(), out)
        };
        let lab = headwater_e2e::both(work);
        let by_signal = |l: &&Line| l.text.contains("\"end\":\"signal\"");
        let lines = lab.lines();
        let lines: Vec<&Line> = lines.iter().filter(by_signal).collect();
        assert_eq!(lines.len(), 1, "{}", lab.lines_text());
        let line = lines[0];
        assert_eq!(line.kernel_rx + line.shm_rx, 50, "{}", line.text);
        assert_eq!(line.accelerated, 1, "{}", line.text);
    }
}

const ENDED_BY_A_THREAD: &str = r#"
import ctypes, threading
libc = ctypes.CDLL(None)
def end():
    libc.prctl(15, b"VM Thread", 0, 0, 0)
    libc.exit(0)
threading.Thread(target=end).start()
threading.Event().wait()
"#;

#[test]
fn a_program_that_a_thread_ends_is_called_by_its_own_name() {
    needs!("python3");
    let lab = Lab::new(headwater_e2e::Mode::Accelerated);
    let mut c = lab.command(PYTHON);
    c.args(["-c", ENDED_BY_A_THREAD]);
    lab.run(c).ok();
    assert_eq!(lab.lines()[0].comm, "python3");
}
