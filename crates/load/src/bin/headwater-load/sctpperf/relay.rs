//! A long wire: forwards the datagrams of one peer to another UDP port of this address, each a while later.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::sctpperf::Options;

type Late = (Instant, Vec<u8>);

/// From `--port` to `--to-port`, for ever.
pub fn run(options: &Options) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let here = |port: u16| format!("{}:{port}", options.at);
    let outer = UdpSocket::bind(here(options.port)).map_err(text)?;
    let inner = UdpSocket::bind(here(0)).map_err(text)?;
    println!("ready");
    let mut first = vec![0; 1 << 16];
    let (len, peer) = outer.recv_from(&mut first).map_err(text)?;
    outer.connect(peer).map_err(text)?;
    let server: SocketAddr = here(options.to_port)
        .parse()
        .map_err(|_| "no address".to_string())?;
    inner.connect(server).map_err(text)?;
    inner.send(&first[..len]).map_err(text)?;
    let back = carry(&inner, &outer, options.delay).map_err(text)?;
    let forth = carry(&outer, &inner, options.delay).map_err(text)?;
    let _ = (back.join(), forth.join());
    Ok(String::new())
}

fn carry(
    from: &UdpSocket,
    to: &UdpSocket,
    delay: Duration,
) -> std::io::Result<thread::JoinHandle<()>> {
    let (from, to) = (from.try_clone()?, to.try_clone()?);
    let (sender, receiver) = channel();
    thread::spawn(move || take(&from, &sender, delay));
    Ok(thread::spawn(move || give(&to, &receiver)))
}

fn take(from: &UdpSocket, queue: &Sender<Late>, delay: Duration) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        // A peer that is gone makes errors; the next datagram may be of one that is there.
        if let Ok(len) = from.recv(&mut buffer)
            && queue
                .send((Instant::now() + delay, buffer[..len].to_vec()))
                .is_err()
        {
            return;
        }
    }
}

fn give(to: &UdpSocket, queue: &Receiver<Late>) {
    while let Ok((due, bytes)) = queue.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let _ = to.send(&bytes);
    }
}
