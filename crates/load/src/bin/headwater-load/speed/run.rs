//! `run`: makes the connections, and the server as a child.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use crate::speed::options::{Carrier, Options};
use crate::speed::report::Report;
use crate::speed::shared::{self, InPlace};
use crate::speed::wire::End;
use crate::speed::{child, client, server};
use crate::sys;

pub fn run(options: &Options) -> io::Result<Report> {
    match options.carrier {
        Carrier::Tcp => over_tcp(options),
        Carrier::Unix => over_pairs(options, UnixStream::pair),
        Carrier::Eventfd | Carrier::Futex => over_pairs(options, || shared::pair(options)),
        Carrier::InPlace => over_pairs(options, || {
            let (first, second) = shared::pair(options)?;
            Ok((InPlace(first), InPlace(second)))
        }),
    }
}

fn over_tcp(options: &Options) -> io::Result<Report> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let prepared = |stream: TcpStream| stream.set_nodelay(true).map(|()| stream);
    let server = child::fork(|| {
        sys::pin(&options.server_cpus)?;
        let accepted =
            (0..options.threads).map(|_| listener.accept().and_then(|(s, _)| prepared(s)));
        server::serve(accepted.collect::<io::Result<_>>()?, options)
    })?;
    sys::pin(&options.client_cpus)?;
    let connected = (0..options.threads).map(|_| TcpStream::connect(address).and_then(prepared));
    client::converse(connected.collect::<io::Result<_>>()?, options, server)
}

/// Over connections whose both ends are made before the fork.
fn over_pairs<E: End>(
    options: &Options,
    pair: impl Fn() -> io::Result<(E, E)>,
) -> io::Result<Report> {
    let pairs = (0..options.threads).map(|_| pair());
    let (ours, theirs): (Vec<E>, Vec<E>) =
        pairs.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
    // Each process keeps its own ends only, so that the other notices when it is gone.
    let (mut ours, mut theirs) = (Some(ours), Some(theirs));
    let server = child::fork(|| {
        drop(ours.take());
        sys::pin(&options.server_cpus)?;
        server::serve(theirs.take().unwrap_or_default(), options)
    })?;
    drop(theirs);
    sys::pin(&options.client_cpus)?;
    client::converse(ours.unwrap_or_default(), options, server)
}
