//! Associations over UDP, by threads and by real processes.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use headwater_host::process;
use headwater_sctp_stack::{
    AssocConfig, Association, Down, Event, Outgoing, Port, Via, Want, stack, stat,
};

const LONG: Option<Duration> = Some(Duration::from_secs(20));

/// One test at a time: they count descriptors, and fork. Our UDP port is nobody else's.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    udp_port();
    turn
}

fn udp_port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        let port = match std::env::var("HEADWATER_SCTP_UDP_PORT") {
            Ok(port) => port.parse().unwrap(),
            Err(_) => free_udp_port(),
        };
        // SAFETY: nobody else reads the environment now.
        unsafe {
            std::env::set_var("HEADWATER_SCTP_UDP_PORT", port.to_string());
            std::env::set_var("HEADWATER_SCTP_LINK", "udp");
        }
        process::identify();
        port
    })
}

fn free_udp_port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

fn here() -> [IpAddr; 1] {
    ["127.0.0.1".parse().unwrap()]
}

fn listener(port: u16) -> Port {
    let mut listener = Port::bind(&here(), port, &AssocConfig::default()).unwrap();
    listener.listen(200).unwrap();
    listener
}

fn accept(port: &Port) -> Association {
    assert_eq!(port.wait(LONG), Ok(true), "nobody came");
    port.accept().unwrap()
}

fn connect(port: u16, via: u16) -> Association {
    try_to_connect(port, via).unwrap()
}

fn try_to_connect(port: u16, via: u16) -> Result<Association, i32> {
    let client = Association::connect(&here(), port, &AssocConfig::default(), Via::Udp(via))?;
    client.established(LONG).map(|()| client)
}

fn pair() -> (Association, Association) {
    let port = listener(0);
    let client = connect(port.port(), udp_port());
    (client, accept(&port))
}

/// Sends a message of any length, in parts if need be.
fn send(to: &Association, stream: u16, data: &[u8]) {
    let message = Outgoing {
        stream,
        ..Default::default()
    };
    let mut parts = data.chunks(100_000).peekable();
    while let Some(part) = parts.next() {
        loop {
            match to.send(&message, part, parts.peek().is_some()) {
                Ok(()) => break,
                Err(libc::EAGAIN) => assert_eq!(to.wait(Want::WRITABLE, LONG), Ok(true), "no room"),
                Err(errno) => panic!("send: errno {errno}"),
            }
        }
    }
}

/// A whole message; `None`: the end.
fn receive(from: &Association) -> Option<(u16, Vec<u8>)> {
    let mut message = Vec::new();
    let mut buffer = vec![0; 70_000];
    loop {
        match from.receive(&mut buffer) {
            Ok(Some(got)) => {
                message.extend_from_slice(&buffer[..got.len]);
                if got.end {
                    return Some((got.stream, message));
                }
            }
            Ok(None) => return None,
            Err(libc::EAGAIN) => {
                assert_eq!(from.wait(Want::READABLE, LONG), Ok(true), "nothing came")
            }
            Err(errno) => panic!("receive: errno {errno}"),
        }
    }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(31) + seed + i / 251) as u8)
        .collect()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Until it holds, or it is too late.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

// ---- other processes ----

/// This program again, in the role of one of the processes below; killed and reaped at the latest when dropped.
struct Other {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Other {
    fn run(role: &str, udp_port: u16, argument: u16) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "in_a_role", "--ignored", "--nocapture", "-q"])
            .env("ROLE", format!("{role} {argument}"))
            .env("HEADWATER_SCTP_UDP_PORT", udp_port.to_string())
            .env("HEADWATER_SCTP_LINK", "udp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut other = Other { child, to, from };
        other.expect("ready");
        other
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "no {word:?}");
            if let Some(said) = line.trim().strip_prefix("say ") {
                assert_eq!(said, word);
                return;
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.to.write_all(b"end\n");
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(word: &str) {
    println!("\nsay {word}");
    std::io::stdout().flush().unwrap();
}

#[test]
#[ignore = "a part of other tests"]
fn in_a_role() {
    let role = std::env::var("ROLE").unwrap();
    let (role, argument) = role.split_once(' ').unwrap();
    let argument: u16 = argument.parse().unwrap();
    udp_port();
    match role {
        // Sends every message back, one association after the other.
        "echo" => {
            let port = listener(argument);
            say("ready");
            loop {
                let peer = accept(&port);
                while let Some((stream, message)) = receive(&peer) {
                    send(&peer, stream, &message);
                }
            }
        }
        "bind" => {
            let bound = Port::bind(&here(), argument, &AssocConfig::default());
            assert_eq!(bound.map(drop), Err(libc::EADDRINUSE));
            say("ready");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
        }
        // Sends, and ends at once.
        "leave" => {
            let client = connect(argument, udp_port());
            for i in 0..100 {
                send(&client, 0, &pattern(1000, i));
            }
            say("ready");
            std::process::exit(0);
        }
        other => panic!("no such role: {other}"),
    }
}

// ---- tests ----

#[test]
fn messages_of_any_length_arrive_whole_and_in_order() {
    let _alone = alone();
    let (client, server) = pair();
    let lengths = [1, 2, 1000, 1452, 1453, 16_384, 65_536, 1 << 20];
    let reader = std::thread::spawn(move || {
        for (i, &len) in lengths.iter().enumerate() {
            let (stream, message) = receive(&server).unwrap();
            assert_eq!((usize::from(stream), message.len()), (i % 3, len));
            assert!(message == pattern(len, i), "message {i}");
            send(&server, stream, &message);
        }
        assert!(receive(&server).is_none());
    });
    for (i, &len) in lengths.iter().enumerate() {
        send(&client, (i % 3) as u16, &pattern(len, i));
    }
    for (i, &len) in lengths.iter().enumerate() {
        assert!(receive(&client).unwrap().1 == pattern(len, i), "answer {i}");
    }
    client.shutdown().unwrap();
    reader.join().unwrap();
}

#[test]
fn a_stream_of_small_messages_loses_none() {
    let _alone = alone();
    let (client, server) = pair();
    let count = 200_000u32;
    let reader = std::thread::spawn(move || {
        for i in 0..count {
            let (_, message) = receive(&server).unwrap();
            assert_eq!(message[..4], i.to_be_bytes());
        }
    });
    let mut message = [0; 64];
    for i in 0..count {
        message[..4].copy_from_slice(&i.to_be_bytes());
        send(&client, 0, &message);
    }
    reader.join().unwrap();
}

#[test]
fn an_answer_comes_without_delay_though_messages_are_gathered() {
    let _alone = alone();
    let (client, server) = pair();
    let echo = std::thread::spawn(move || {
        while let Some((stream, message)) = receive(&server) {
            send(&server, stream, &message);
        }
    });
    for i in 0..1000 {
        send(&client, 0, &pattern(64, i));
        assert!(receive(&client).unwrap().1 == pattern(64, i));
    }
    client.shutdown().unwrap();
    assert!(receive(&client).is_none());
    echo.join().unwrap();
}

#[test]
fn a_port_is_had_once_on_a_host() {
    let _alone = alone();
    let port = listener(0);
    let single = listener(7001);
    for taken in [port.port(), 7001] {
        let again = Port::bind(&here(), taken, &AssocConfig::default());
        assert_eq!(again.map(drop), Err(libc::EADDRINUSE));
        drop(Other::run("bind", udp_port(), taken));
    }
    drop(single);
    drop(listener(7001));
}

#[test]
fn a_stranger_is_refused() {
    let _alone = alone();
    let client =
        Association::connect(&here(), 7009, &AssocConfig::default(), Via::Udp(udp_port())).unwrap();
    assert_eq!(client.established(LONG), Err(libc::ECONNREFUSED));
}

#[test]
fn packets_for_ports_of_others_are_forwarded() {
    let _alone = alone();
    let well_known = free_udp_port();
    let _holder = Other::run("echo", well_known, 7010);
    let _other = Other::run("echo", well_known, 7011);
    for port in [7010, 7011] {
        let client = connect(port, well_known);
        for i in 0..10 {
            send(&client, 0, &pattern(20_000, i));
            assert!(receive(&client).unwrap().1 == pattern(20_000, i));
        }
    }
}

#[test]
fn another_listener_takes_the_udp_port_over_when_its_holder_dies() {
    let _alone = alone();
    let well_known = free_udp_port();
    let mut holder = Other::run("echo", well_known, 7020);
    let _other = Other::run("echo", well_known, 7021);
    let before = connect(7021, well_known);
    holder.kill();
    let mut after = None;
    soon("it is reached", || {
        after = try_to_connect(7021, well_known).ok();
        after.is_some()
    });
    let after = after.unwrap();
    send(&before, 0, b"before");
    assert_eq!(receive(&before).unwrap().1, b"before");
    // The echo server serves one after the other.
    drop(before);
    send(&after, 0, b"after");
    assert_eq!(receive(&after).unwrap().1, b"after");
}

#[test]
fn a_killed_peer_is_missed() {
    let _alone = alone();
    let well_known = free_udp_port();
    let mut other = Other::run("echo", well_known, 7030);
    let mut config = AssocConfig::default();
    config.rto.initial = Duration::from_millis(50);
    config.rto.min = Duration::from_millis(20);
    config.rto.max = Duration::from_millis(50);
    config.association_retransmissions = 4;
    let client = Association::connect(&here(), 7030, &config, Via::Udp(well_known)).unwrap();
    client.established(LONG).unwrap();
    send(&client, 0, b"there?");
    assert_eq!(receive(&client).unwrap().1, b"there?");
    other.kill();
    send(&client, 0, b"still there?");
    let end = loop {
        assert_eq!(client.wait(Want::EVENT, LONG), Ok(true), "it is not missed");
        if let Some(Event::Down(why)) = client.event().unwrap() {
            break why;
        }
    };
    assert!(matches!(end, Down::Unreachable), "{end:?}");
    assert_eq!(client.receive(&mut [0; 10]).map(drop), Err(libc::ETIMEDOUT));
}

#[test]
fn what_was_sent_before_exit_arrives() {
    let _alone = alone();
    let port = listener(7040);
    let _other = Other::run("leave", udp_port(), 7040);
    let server = accept(&port);
    for i in 0..100 {
        assert!(receive(&server).unwrap().1 == pattern(1000, i));
    }
    assert!(receive(&server).is_none());
}

#[test]
fn a_hundred_associations_leave_nothing_behind() {
    let _alone = alone();
    drop(pair());
    soon("the first is gone", || {
        stack::current().unwrap().all().is_empty()
    });
    let before = descriptors();
    let port = listener(0);
    let clients: Vec<_> = (0..100).map(|_| connect(port.port(), udp_port())).collect();
    let servers: Vec<_> = (0..100).map(|_| accept(&port)).collect();
    for (i, client) in clients.iter().enumerate() {
        client.descriptor().unwrap();
        send(client, 0, &pattern(3000, i));
    }
    let mut got: Vec<_> = servers.iter().map(|s| receive(s).unwrap().1).collect();
    let mut sent: Vec<_> = (0..100).map(|i| pattern(3000, i)).collect();
    got.sort();
    sent.sort();
    assert!(got == sent);
    drop((clients, servers, port));
    soon("all are gone", || {
        stack::current().unwrap().all().is_empty()
    });
    assert_eq!(descriptors(), before);
}

#[test]
fn many_threads_wait_for_one_association_each() {
    let _alone = alone();
    let port = listener(0);
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let client = connect(port.port(), udp_port());
            let server = accept(&port);
            let echo = std::thread::spawn(move || {
                while let Some((stream, message)) = receive(&server) {
                    send(&server, stream, &message);
                }
            });
            std::thread::spawn(move || {
                for n in 0..200 {
                    send(&client, 0, &pattern(100 + n, i));
                    assert!(receive(&client).unwrap().1 == pattern(100 + n, i));
                }
                client.shutdown().unwrap();
                assert!(receive(&client).is_none());
                echo.join().unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn is_readable(fd: i32, timeout_ms: i32) -> bool {
    let mut set = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut set, 1, timeout_ms) == 1 }
}

#[test]
fn a_descriptor_is_readable_while_something_is_to_be_taken() {
    let _alone = alone();
    let (client, server) = pair();
    while client.event().unwrap().is_some() || server.event().unwrap().is_some() {}
    let fd = server.descriptor().unwrap();
    assert!(!is_readable(fd, 0));
    for _ in 0..3 {
        send(&client, 0, b"one");
        send(&client, 0, b"two");
        // Nobody is in a call now.
        client.hand_over();
        assert!(is_readable(fd, 20_000));
        assert_eq!(receive(&server).unwrap().1, b"one");
        assert_eq!(receive(&server).unwrap().1, b"two");
        assert!(!is_readable(fd, 0));
    }
    server.want_room(true);
    assert!(is_readable(fd, 0));
    server.want_room(false);
    assert!(!is_readable(fd, 0));
    drop(client);
    assert!(is_readable(fd, 20_000));
    assert!(receive(&server).is_none());
}

#[test]
fn both_versions_of_ip_are_spoken() {
    headwater_testkit::needs!("ipv6");
    let _alone = alone();
    let here: [IpAddr; 1] = ["::1".parse().unwrap()];
    let config = AssocConfig::default();
    let mut port = Port::bind(&here, 0, &config).unwrap();
    port.listen(1).unwrap();
    let client = Association::connect(&here, port.port(), &config, Via::Udp(udp_port())).unwrap();
    client.established(LONG).unwrap();
    send(&client, 0, &pattern(100_000, 6));
    let server = accept(&port);
    assert!(receive(&server).unwrap().1 == pattern(100_000, 6));
    assert_eq!(server.peer().unwrap(), (here.to_vec(), client.local_port()));
}

#[test]
fn a_wait_ends_in_time() {
    let _alone = alone();
    let (client, _server) = pair();
    assert_eq!(
        client.wait(Want::READABLE, Some(Duration::from_millis(20))),
        Ok(false)
    );
}

#[test]
fn associations_stay_with_the_parent() {
    let _alone = alone();
    let (client, server) = pair();
    // SAFETY: the child only makes calls that must fail, and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let sent = client.send(&Outgoing::default(), b"no", false);
        let waited = client.wait(Want::READABLE, LONG);
        let right =
            sent == Err(libc::EBADF) && waited == Err(libc::EBADF) && stack::existing().is_none();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = 0;
    // SAFETY: status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    send(&client, 0, b"still ours");
    assert_eq!(receive(&server).unwrap().1, b"still ours");
}

#[test]
fn a_process_tells_of_its_associations() {
    let _alone = alone();
    let (client, server) = pair();
    send(&client, 0, b"counted");
    receive(&server).unwrap();
    // Names of others may be no text.
    let name = [&b"\xff\xfe"[..], &std::process::id().to_ne_bytes()].concat();
    let name = <SocketAddr as SocketAddrExt>::from_abstract_name(name).unwrap();
    let _others = UnixListener::bind_addr(&name).unwrap();
    let me = (headwater_host::sys::getuid(), std::process::id());
    soon("it can be asked", || stat::processes().contains(&me));
    let told = stat::ask(me.0, me.1).unwrap();
    assert!(told[0].contains(&format!("\"pid\":{}", me.1)));
    let ours = format!("\"local_port\":{},", client.local_port());
    let line = told.iter().find(|line| line.contains(&ours)).unwrap();
    assert!(
        line.contains("\"state\":\"established\"") && line.contains("\"messages_out\":1,"),
        "{line}"
    );
}
