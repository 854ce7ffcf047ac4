//! The loop-back providers, by threads and by real processes.

mod connections;
mod data;
mod datagrams;
mod exec;
mod figures;
#[path = "../common/processes.rs"]
mod processes;
#[path = "../common/sockets.rs"]
mod sockets;

use std::time::{Duration, Instant};

use headwater_providers::loopback::connection::Circuit;
use headwater_providers::provider::{Arrived, Event, Provider, Received, Sending, Waiter};
use headwater_streams::head::arming::Want;
use headwater_tpi::error::{TFLOW, TNODATA};
use libc::iovec;
use sockets::io;

const PATIENCE: u64 = 20;

fn sleep_at(p: &dyn Provider, want: Want) {
    let deadline = Some(headwater_host::sys::now() + 100_000_000);
    match p.waiter() {
        Waiter::Head(head) => {
            let bits = if want == Want::ROOM {
                libc::POLLOUT
            } else {
                libc::POLLIN
            } as u32;
            let _ = head.wait(want, deadline, &mut [], || head.events(bits) != 0);
        }
        Waiter::Poll(fd) => {
            let mut fds = [libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            }];
            let _ = headwater_host::sys::ppoll(&mut fds, Some(100_000_000));
        }
        Waiter::Both { .. } => unreachable!("these have a ring or a descriptor"),
    }
}

fn event(p: &mut dyn Provider) -> Event {
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    loop {
        if let Some(event) = p.peek() {
            return event;
        }
        assert!(Instant::now() < until, "no event");
        sleep_at(p, Want::DATA);
    }
}

fn arrived(p: &mut dyn Provider) -> Arrived {
    event(p);
    p.take().expect("an event other than data")
}

fn send_how(p: &mut dyn Provider, data: &[u8], how: Sending) -> Result<usize, i32> {
    p.send(&io(data), how).map_err(|e| e.tli)
}

fn send(p: &mut dyn Provider, data: &[u8]) {
    let mut done = 0;
    loop {
        match send_how(p, &data[done..], Sending::default()) {
            Ok(n) => done += n,
            Err(e) => assert_eq!(e, TFLOW),
        }
        if done == data.len() {
            return;
        }
        sleep_at(p, Want::ROOM);
    }
}

fn receive_now(p: &mut dyn Provider, most: usize) -> Result<(Vec<u8>, Received), i32> {
    let mut buf = vec![0; most];
    let got = p
        .receive(&[iovec {
            iov_base: buf.as_mut_ptr() as *mut _,
            iov_len: most,
        }])
        .map_err(|e| e.tli)?;
    buf.truncate(got.len);
    Ok((buf, got))
}

fn receive(p: &mut dyn Provider, most: usize) -> (Vec<u8>, Received) {
    loop {
        match receive_now(p, most) {
            Err(TNODATA) => sleep_at(p, Want::DATA),
            got => return got.expect("data"),
        }
    }
}

fn unit(p: &mut dyn Provider) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let (bytes, got) = receive(p, 100_000);
        all.extend(bytes);
        if !got.more {
            return all;
        }
    }
}

fn bound(orderly: bool, qlen: u32) -> (Circuit, Vec<u8>) {
    let mut c = Circuit::open(orderly).unwrap();
    let (addr, granted) = c.bind(None, qlen).unwrap();
    assert_eq!(granted, qlen);
    (c, addr)
}

fn accept(listener: &mut Circuit, on: &mut Circuit, opts: &[u8], data: &[u8]) {
    let Arrived::Request { seq, .. } = arrived(listener) else {
        panic!("no request")
    };
    let request = listener.take_request(seq).unwrap();
    on.adopt(request, opts, data).map_err(|(e, _)| e).unwrap();
}

/// Two ends of a connection in this process, the caller's first.
fn pair(orderly: bool) -> (Circuit, Circuit) {
    let (mut listener, addr) = bound(orderly, 1);
    let (mut here, _) = bound(orderly, 0);
    here.connect(&addr, &[], &[]).unwrap();
    let mut there = Circuit::open(orderly).unwrap();
    accept(&mut listener, &mut there, &[], &[]);
    assert!(matches!(arrived(&mut here), Arrived::Confirmed { by, .. } if by == addr));
    (here, there)
}
