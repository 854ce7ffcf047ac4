//! Connections of which both ends are ours, in two processes, so that shared memory carries them.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::Ordering;
use std::time::Instant;

use headwater_providers::inet::tcp::Tcp;
use headwater_providers::provider::{Event, Provider};
use headwater_sockets::conn::{self, Conn};
use headwater_sockets::segment::{Tx, View, WITHDRAWS};
use headwater_sockets::{life, switch};
use headwater_tpi::error::{TFLOW, TLOOK};
use headwater_tpi::option::XTI_SNDLOWAT;

use crate::sockets::io;
use crate::waiting::until;
use crate::{PLAIN, PUSH, event, listener, loopback, negotiate, receive, request};

const ROUNDS: usize = 2000;

/// More than the kernel takes, and less than a ring does.
const MUCH: usize = 200_000;

#[test]
fn a_connection_between_two_of_ours_is_taken_over_by_shared_memory() {
    both("carried_server", "carried_client");
}

#[test]
#[ignore = "run by another test"]
fn carried_server() {
    let Ok(file) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = serve(file);
    for _ in 0..ROUNDS {
        let got = receive(&mut tcp, 1);
        tcp.send(&io(&got), PUSH).unwrap();
    }
    assert!(is_carried(&tcp));
    let sent = hear("full");
    // More than half of the ring: then a sender goes on that wants no more room.
    let first = receive(&mut tcp, 150_000).len();
    tcp.send(&io(b"x"), PUSH).unwrap();
    hear("go on");
    let total = first + receive_all(&mut tcp);
    assert_eq!(total, sent + 1 + 64 * ROUNDS);
    tcp.take();
    tcp.send(&io(b"bye"), PLAIN).unwrap();
    tcp.release().unwrap();
    tcp.connection_over();
    tcp.close();
}

#[test]
#[ignore = "run by another test"]
fn carried_client() {
    let Ok(port) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = call(port);
    let begun = Instant::now();
    for i in 0..ROUNDS {
        tcp.send(&io(&[i as u8]), PUSH).unwrap();
        assert_eq!(receive(&mut tcp, 1), [i as u8]);
    }
    println!(
        "{} ns for one exchange",
        begun.elapsed().as_nanos() / ROUNDS as u128
    );
    assert!(is_carried(&tcp));
    negotiate(&mut tcp, XTI_SNDLOWAT, 64 << 20);
    let block = vec![7; 20_000];
    let mut sent = 0;
    while let Ok(n) = tcp.send(&io(&block), PLAIN) {
        sent += n;
    }
    say("full", sent);
    assert_eq!(receive(&mut tcp, 1), b"x");
    for _ in 0..3 {
        assert_eq!(tcp.send(&io(&block), PLAIN).unwrap_err().tli, TFLOW);
        assert!(carried(&tcp).1.out_ring().unread() > 0);
    }
    say("go on", 0);
    until("room", || tcp.send(&io(b"x"), PUSH).ok());
    negotiate(&mut tcp, XTI_SNDLOWAT, 1);
    for _ in 0..ROUNDS {
        until("room", || tcp.send(&io(&[7; 64]), PLAIN).ok());
    }
    tcp.release().unwrap();
    assert_eq!(receive(&mut tcp, 3), b"bye");
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.connection_over();
    assert!(!is_carried(&tcp));
    tcp.close();
}

#[test]
fn a_release_comes_behind_what_the_peer_wants_by_the_kernel() {
    both("releasing_server", "late_client");
}

#[test]
#[ignore = "run by another test"]
fn releasing_server() {
    let Ok(file) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = serve(file);
    for _ in 0..10 {
        let got = receive(&mut tcp, 1);
        tcp.send(&io(&got), PUSH).unwrap();
    }
    // All answers have been read.
    receive(&mut tcp, 1);
    let (c, v) = carried(&tcp);
    let _ = headwater_host::sys::set_sockopt(c.fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &4096);
    let by_ring = || Tx(v.out().send.tx.load(Ordering::Acquire)).by_ring();
    until("the ring", || {
        (by_ring() || switch::try_switch(&v)).then_some(())
    });
    let mut left = MUCH;
    until("room", || {
        left -= tcp.send(&io(&vec![7; left]), PUSH).unwrap_or(0);
        (left == 0).then_some(())
    });
    until("the peer's wish", || {
        switch::must_withdraw(&v).then_some(())
    });
    tcp.release().unwrap();
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.connection_over();
    tcp.close();
}

#[test]
#[ignore = "run by another test"]
fn late_client() {
    let Ok(port) = std::env::var("XTI_TEST_PORT") else {
        return;
    };
    let mut tcp = call(port);
    for i in 0..10 {
        tcp.send(&io(&[i]), PUSH).unwrap();
        assert_eq!(receive(&mut tcp, 1), [i]);
    }
    tcp.send(&io(b"."), PUSH).unwrap();
    let (c, v) = carried(&tcp);
    until("all of it", || (v.in_ring().unread() == MUCH).then_some(()));
    life::passing_on(c.fd());
    let begun = || Tx(v.inn().send.tx.load(Ordering::Acquire)).has(WITHDRAWS);
    until("the release", || begun().then_some(()));
    assert_eq!(receive_all(&mut tcp), MUCH);
    tcp.take();
    tcp.release().unwrap();
    tcp.connection_over();
    tcp.close();
}

/// The two ends of a test, which learns the port by a file.
fn both(server: &str, client: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("port");
    let mut server = helper(server, folder.path(), file.to_str().unwrap());
    let port = until("port", || {
        std::fs::read_to_string(&file)
            .ok()
            .filter(|t| t.ends_with('\n'))
    });
    let mut client = helper(client, folder.path(), port.trim());
    assert!(client.wait().unwrap().success());
    assert!(server.wait().unwrap().success());
}

fn helper(name: &str, folder: &Path, port: &str) -> process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            &format!("carried::{name}"),
            "--nocapture",
        ])
        .env("HEADWATER_DIR", folder.join("run"))
        .env("XTI_TEST_PORT", port)
        .spawn()
        .unwrap()
}

/// Tells the port by `file`, and accepts.
fn serve(file: String) -> Tcp {
    start_fast_sockets();
    let (mut listener, port) = listener(1);
    std::fs::write(file, format!("{port}\n")).unwrap();
    let seq = request(&mut listener);
    let pending = listener.take_request(seq).unwrap();
    let mut tcp = Tcp::open(false).unwrap();
    tcp.adopt(pending, &[], &[]).map_err(|e| e.0).unwrap();
    tcp
}

fn call(port: String) -> Tcp {
    start_fast_sockets();
    let mut tcp = Tcp::open(false).unwrap();
    tcp.bind(None, 0).unwrap();
    tcp.connect(&loopback(port.parse().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    tcp.take();
    tcp
}

fn start_fast_sockets() {
    headwater_host::process::identify();
    headwater_sockets::start();
    headwater_host::process::enable(true);
}

fn is_carried(tcp: &Tcp) -> bool {
    tcp.inner()
        .is_some_and(headwater_sockets::options::is_carried)
}

fn carried(tcp: &Tcp) -> (&'static Conn, View<'static>) {
    let c = conn::get(tcp.inner().unwrap()).unwrap();
    // SAFETY: nobody closes it meanwhile.
    (c, unsafe { c.view_held() }.unwrap())
}

/// A number that the client tells the server past the connection, by a file.
fn word(name: &str) -> PathBuf {
    Path::new(&std::env::var("HEADWATER_DIR").unwrap()).with_file_name(name)
}

fn say(name: &str, number: usize) {
    std::fs::write(word(name), format!("{number}\n")).unwrap();
}

fn hear(name: &str) -> usize {
    until(name, || {
        let said = std::fs::read_to_string(word(name)).ok()?;
        said.strip_suffix('\n')?.parse().ok()
    })
}

fn receive_all(tcp: &mut Tcp) -> usize {
    let room = vec![0; 65536];
    let mut total = 0;
    until("end", || match tcp.receive(&io(&room)) {
        Ok(r) => {
            total += r.len;
            None
        }
        Err(r) => (r.tli == TLOOK).then_some(()),
    });
    assert_eq!(tcp.peek(), Some(Event::OrdRel));
    total
}
