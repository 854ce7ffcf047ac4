//! Speed, by hand.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use headwater_providers::provider::Provider;

use crate::sockets::{bytes, io};
use crate::udp::{take, udp};
use crate::{PLAIN, endpoint_to_plain};

/// cargo test --release --test inet -- --ignored --nocapture
#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_send() {
    for size in [1, 16, 64, 256, 1024, 8192, 16384] {
        let data = vec![1; size];
        let count = (400_000_000 / size.max(64)).min(4_000_000);
        let (e, peer) = endpoint_to_plain();
        let reader = drain(peer);
        let begun = Instant::now();
        for _ in 0..count {
            while e.send(&io(&data), PLAIN).is_err() {
                std::thread::yield_now();
            }
        }
        e.flush();
        let ours = begun.elapsed();
        e.release().unwrap();
        reader.join().unwrap();
        let plain = |nodelay, count: usize| {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut out = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            out.set_nodelay(nodelay).unwrap();
            let reader = drain(server.accept().unwrap().0);
            let begun = Instant::now();
            for _ in 0..count {
                out.write_all(&data).unwrap();
            }
            let each = begun.elapsed().as_nanos() as f64 / count as f64;
            drop(out);
            reader.join().unwrap();
            each
        };
        let ours = ours.as_nanos() as f64 / count as f64;
        let (nagle, nodelay) = (plain(false, count / 4), plain(true, count / 16));
        println!(
            "{size:6} bytes: {ours:7.1} ns, plain send {nagle:7.1}, with NODELAY {nodelay:7.1}"
        );
    }
}

fn drain(mut peer: TcpStream) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut room = vec![0; 131_071];
        while peer.read(&mut room).unwrap() > 0 {}
    })
}

#[test]
#[ignore = "a measurement"]
fn nanoseconds_per_datagram() {
    for size in [1, 64, 256, 1024, 4096, 16384] {
        let ((mut a, _), (mut b, to)) = (udp(), udp());
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        let receiver = std::thread::spawn(move || {
            let mut room = vec![0; 65_536];
            let mut got = 0u64;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                got += take(&mut b, &mut room).is_some() as u64;
            }
            got
        });
        let data = vec![1; size];
        let (begun, mut sent) = (Instant::now(), 0u64);
        while begun.elapsed() < Duration::from_millis(500) {
            for _ in 0..64 {
                sent += a.send_to(&to, &[], &io(&data)).is_ok() as u64;
            }
        }
        a.flush();
        let took = begun.elapsed().as_secs_f64();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let got = receiver.join().unwrap();
        let (to_plain, from_ours) = datagrams_to_plain(&data);
        let (plain_sent, plain_got) = plain_datagrams(&data);
        let line = |what: &str, sent: f64, got: f64| {
            println!(
                "{size:6} bytes, {what}: sent {sent:6.0} k/s, delivered {got:6.0} k/s ({:4.1}% lost)",
                100.0 - got / sent * 100.0
            );
        };
        line(
            "ours to ours  ",
            sent as f64 / took / 1e3,
            got as f64 / took / 1e3,
        );
        line("ours to plain ", to_plain, from_ours);
        line("plain to plain", plain_sent, plain_got);
    }
}

fn counting(b: UdpSocket) -> std::thread::JoinHandle<u64> {
    b.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    std::thread::spawn(move || {
        let mut room = vec![0; 65_536];
        let mut got = 0u64;
        while b.recv_from(&mut room).is_ok() {
            got += 1;
        }
        got
    })
}

fn datagrams_to_plain(data: &[u8]) -> (f64, f64) {
    let b = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (mut a, to) = (udp().0, bytes(b.local_addr().unwrap()));
    let receiver = counting(b);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while begun.elapsed() < Duration::from_millis(500) {
        for _ in 0..64 {
            sent += a.send_to(&to, &[], &io(data)).is_ok() as u64;
        }
    }
    a.flush();
    let took = begun.elapsed().as_secs_f64() * 1e3;
    (sent as f64 / took, receiver.join().unwrap() as f64 / took)
}

fn plain_datagrams(data: &[u8]) -> (f64, f64) {
    let (a, b) = (
        UdpSocket::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let to = b.local_addr().unwrap();
    let receiver = counting(b);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while begun.elapsed() < Duration::from_millis(500) {
        for _ in 0..16 {
            sent += a.send_to(data, to).is_ok() as u64;
        }
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    (sent as f64 / took, receiver.join().unwrap() as f64 / took)
}

/// How long the last message of a burst is held, the machine being idle otherwise.
#[test]
#[ignore = "a measurement"]
fn microseconds_held() {
    for burst in [1, 2, 5, 20] {
        let (e, mut peer) = endpoint_to_plain();
        let (sent, sent_at) = std::sync::mpsc::channel::<Instant>();
        let reader = std::thread::spawn(move || {
            let (mut room, mut got, mut held) = ([0; 64], 0, Vec::new());
            while got < 1000 * burst {
                got += peer.read(&mut room).unwrap();
                let now = Instant::now();
                while held.len() < got / burst {
                    held.push(
                        now.saturating_duration_since(sent_at.recv().unwrap())
                            .as_micros(),
                    );
                }
            }
            held.sort_unstable();
            held
        });
        for _ in 0..1000 {
            for _ in 0..burst {
                e.send(&io(b"x"), PLAIN).unwrap();
            }
            sent.send(Instant::now()).unwrap();
            std::thread::sleep(Duration::from_micros(1500));
        }
        let held = reader.join().unwrap();
        println!(
            "bursts of {burst} bytes: median {} us, p99 {} us",
            held[500], held[990]
        );
    }
}
