//! Data of TCP: what is held for more to go with it, urgent bytes, and full buffers.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use headwater_host::sys;
use headwater_providers::inet::tcp::Tcp;
use headwater_providers::provider::{Event, Provider, Sending};
use headwater_tpi::error::TFLOW;
use headwater_tpi::option::{
    INET_TCP, List, T_NEGOTIATE, T_SUCCESS, T_TCP_NODELAY, XTI_GENERIC, XTI_SNDBUF,
};

use crate::sockets::{bytes, io};
use crate::waiting::until;
use crate::{EXPEDITED, PLAIN, PUSH, connected, endpoint_to_plain, receive};

#[test]
fn the_kernel_gathers_large_sends_on_while_it_has_no_room() {
    let (mut tcp, mut peer) = connected();
    let gathers = |tcp: &Tcp| {
        sys::sockopt::<i32>(tcp.descriptor(), libc::IPPROTO_TCP, libc::TCP_CORK) == Ok(1)
    };
    let block = vec![5; 20_000];
    let mut room = vec![0; 1 << 20];
    // A pause of this thread's ends a run.
    until(
        "large sends that are gathered when the buffer is full",
        || {
            while tcp.send(&io(&block), Sending::default()) == Ok(block.len()) {}
            if gathers(&tcp) {
                return Some(());
            }
            let _ = peer.read(&mut room).unwrap();
            None
        },
    );
    // A wait for room sends what there is, and the run goes on behind it.
    tcp.flush();
    assert!(!gathers(&tcp));
    until("a large send that is gathered behind a wait", || {
        let _ = peer.read(&mut room).unwrap();
        tcp.send(&io(&block), Sending::default()).ok()
    });
    assert!(gathers(&tcp), "a wait for room has ended the run");
    tcp.finish(false);
    assert!(!gathers(&tcp));
}

/// Sends until what is sent is gathered.
fn gather(tcp: &mut Tcp, peer: &mut std::net::TcpStream) {
    let mut room = vec![0; 1 << 20];
    until("large sends that are gathered", || {
        let sent = tcp.send(&io(&room[..20_000]), Sending::default());
        assert!(sent.is_ok() || sent.is_err_and(|e| e.tli == TFLOW));
        let gathers = sys::sockopt::<i32>(tcp.descriptor(), libc::IPPROTO_TCP, libc::TCP_CORK);
        if gathers == Ok(0) {
            assert!(peer.read(&mut room).unwrap() > 0);
        }
        (gathers == Ok(1)).then_some(())
    });
}

fn of_socket(tcp: &Tcp, name: i32) -> i32 {
    sys::sockopt(tcp.descriptor(), libc::SOL_SOCKET, name).unwrap()
}

const SO_BUF_LOCK: i32 = 72;

#[test]
fn large_sends_within_the_host_bound_the_send_buffer_until_the_connection_is_over() {
    let (mut tcp, mut peer) = connected();
    gather(&mut tcp, &mut peer);
    // A kernel that gives less goes on sizing it.
    let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    let is_bounded = most.trim().parse::<i32>().unwrap() >= 512 << 10;
    assert_eq!(of_socket(&tcp, SO_BUF_LOCK) & 1, is_bounded as i32);
    assert!(!is_bounded || of_socket(&tcp, libc::SO_SNDBUF) == 1 << 20);
    tcp.disconnect(&[]).unwrap();
    assert_eq!(of_socket(&tcp, SO_BUF_LOCK) & 1, 0);
}

#[test]
fn large_sends_leave_a_send_buffer_that_was_sized() {
    let (mut tcp, mut peer) = connected();
    let mut list = List::new();
    list.push_number(XTI_GENERIC, XTI_SNDBUF, 0, 2 << 20);
    tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    let before = of_socket(&tcp, libc::SO_SNDBUF);
    gather(&mut tcp, &mut peer);
    assert_eq!(of_socket(&tcp, libc::SO_SNDBUF), before);
    // It was the user's, and stays.
    tcp.disconnect(&[]).unwrap();
    assert_eq!(of_socket(&tcp, SO_BUF_LOCK) & 1, 1);
}

#[test]
fn a_client_talks_to_a_plain_server() {
    let (mut tcp, mut peer) = connected();
    assert_eq!(tcp.remote(), Some(bytes(peer.local_addr().unwrap())));
    assert_eq!(tcp.local(), Some(bytes(peer.peer_addr().unwrap())));
    for piece in [&b"one "[..], b"two ", b"three"] {
        assert_eq!(tcp.send(&io(piece), PLAIN), Ok(piece.len()));
    }
    tcp.flush();
    let mut got = [0; 13];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"one two three");
    peer.write_all(b"answer").unwrap();
    assert_eq!(receive(&mut tcp, 6), b"answer");
}

#[test]
fn only_what_follows_close_behind_is_held() {
    let (mut tcp, mut peer) = connected();
    let mut got = [0; 1];
    // Alone: at once.
    tcp.send(&io(b"1"), PLAIN).unwrap();
    peer.read_exact(&mut got).unwrap();
    // Behind another: held until somebody flushes.
    std::thread::sleep(Duration::from_millis(1));
    tcp.send(&io(b"2"), PLAIN).unwrap();
    tcp.send(&io(b"3"), PLAIN).unwrap();
    peer.read_exact(&mut got).unwrap();
    peer.set_nonblocking(true).unwrap();
    if let Err(e) = peer.read_exact(&mut got) {
        assert_eq!(e.kind(), ErrorKind::WouldBlock);
        tcp.flush();
        until("held byte", || peer.read_exact(&mut got).ok());
    }
    assert_eq!(&got, b"3");
    // Pushed: at once, behind what was held.
    for (piece, how) in [(b"4", PLAIN), (b"5", PLAIN), (b"6", PUSH)] {
        tcp.send(&io(piece), how).unwrap();
    }
    let mut three = [0; 3];
    peer.set_nonblocking(false).unwrap();
    peer.read_exact(&mut three).unwrap();
    assert_eq!(&three, b"456");
}

#[test]
fn nothing_is_held_with_nodelay() {
    let (mut tcp, mut peer) = connected();
    let mut list = List::new();
    list.push_number(INET_TCP, T_TCP_NODELAY, 0, 1);
    assert_eq!(
        tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap().0,
        T_SUCCESS as u32
    );
    for _ in 0..100 {
        tcp.send(&io(b"x"), PLAIN).unwrap();
        let mut got = [0; 1];
        peer.read_exact(&mut got).unwrap();
    }
}

#[test]
fn every_byte_arrives_once_and_in_order_whatever_the_sizes() {
    let (mut tcp, mut peer) = connected();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    let mut sent = Vec::new();
    let mut seed = 1u32;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let len = match seed >> 24 & 15 {
            0 => 20_000,
            1 => 9000,
            n => n as usize * 7 + 1,
        };
        let data: Vec<u8> = (0..len).map(|i| (i as u32 ^ seed) as u8).collect();
        let mut done = 0;
        while done < len {
            match tcp.send(&io(&data[done..]), PLAIN) {
                Ok(n) => done += n,
                Err(r) => {
                    assert_eq!(r.tli, TFLOW);
                    std::thread::yield_now();
                }
            }
        }
        sent.extend_from_slice(&data);
    }
    tcp.release().unwrap();
    until("release", || {
        tcp.flush();
        reader.is_finished().then_some(())
    });
    assert!(reader.join().unwrap() == sent);
}

#[test]
fn a_full_kernel_is_flow_control_and_held_data_survives_a_close() {
    let (mut tcp, mut peer) = connected();
    let mut sent = 0usize;
    let block = [7; 1000];
    loop {
        match tcp.send(&io(&block), PLAIN) {
            Ok(n) => sent += n,
            Err(r) => {
                assert_eq!(r.tli, TFLOW);
                break;
            }
        }
    }
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all.len()
    });
    tcp.close();
    drop(tcp);
    assert_eq!(reader.join().unwrap(), sent);
}

#[test]
fn urgent_bytes_overtake_and_are_told_apart() {
    let (mut tcp, mut peer) = connected();
    tcp.send(&io(b"!"), EXPEDITED).unwrap();
    let mut byte = [0u8];
    until("urgent byte", || {
        // SAFETY: one writable byte.
        let n = unsafe {
            libc::recv(
                peer.as_raw_fd(),
                byte.as_mut_ptr() as *mut _,
                1,
                libc::MSG_OOB,
            )
        };
        (n == 1).then_some(())
    });
    assert_eq!(&byte, b"!");
    peer.write_all(b"normal").unwrap();
    // SAFETY: one readable byte.
    unsafe {
        libc::send(
            peer.as_raw_fd(),
            b"u".as_ptr() as *const _,
            1,
            libc::MSG_OOB,
        )
    };
    until("ExData", || {
        (tcp.peek() == Some(Event::ExData)).then_some(())
    });
    let mut room = [0; 16];
    let mut got = Vec::new();
    let mut urgent = Vec::new();
    until("both", || {
        if let Ok(r) = tcp.receive(&io(&room)) {
            (if r.expedited { &mut urgent } else { &mut got }).extend_from_slice(&room[..r.len]);
        }
        let _ = &mut room;
        (got.len() == 6 && urgent.len() == 1).then_some(())
    });
    assert_eq!((&got[..], &urgent[..]), (&b"normal"[..], &b"u"[..]));
    assert_eq!(tcp.peek(), None);
}

#[test]
fn the_end_of_a_run_of_large_sends_goes_out_without_another_call() {
    let (endpoint, mut peer) = endpoint_to_plain();
    let block = vec![7; 20_000];
    for _ in 0..10 {
        assert_eq!(endpoint.send(&io(&block), PLAIN), Ok(block.len()));
    }
    let mut all = vec![0; 10 * block.len()];
    peer.read_exact(&mut all).unwrap();
    assert!(all.iter().all(|&b| b == 7));
    endpoint.let_go();
}

#[test]
fn a_small_message_behind_a_run_of_large_ones_keeps_its_place() {
    let (mut tcp, mut peer) = connected();
    let block = vec![1; 16 << 10];
    for _ in 0..5 {
        assert_eq!(tcp.send(&io(&block), PLAIN), Ok(block.len()));
    }
    assert_eq!(tcp.send(&io(b"end"), PLAIN), Ok(3));
    tcp.flush();
    let mut all = vec![0; 5 * block.len() + 3];
    peer.read_exact(&mut all).unwrap();
    assert_eq!(&all[all.len() - 3..], b"end");
}

#[test]
fn held_data_goes_out_without_another_call() {
    let (e, mut peer) = endpoint_to_plain();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    for round in 0..200u8 {
        for _ in 0..round % 7 + 1 {
            e.send(&io(&[round]), PLAIN).unwrap();
        }
        for _ in 0..round % 7 + 1 {
            let mut got = [0];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(got[0], round);
        }
    }
}
