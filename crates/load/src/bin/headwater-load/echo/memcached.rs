//! A client for memcached's text protocol: threads with a connection each, one key each, and every answer compared.

use std::io::{self, Read, Write};
use std::thread;

use crate::echo::client::measure;
use crate::echo::options::Options;
use crate::echo::result::Measured;
use crate::net::Stream;
use crate::pattern::{Pattern, Place};

#[derive(Clone, Copy)]
pub enum Op {
    Get,
    Set,
}

pub fn run(options: &Options, op: Op) -> io::Result<Measured> {
    let parts: Vec<io::Result<Measured>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..options.connections)
            .map(|number| scope.spawn(move || client(options, op, number)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client thread panicked"))
            .collect()
    });
    let mut whole = Measured {
        verified: true,
        ..Measured::default()
    };
    for part in parts {
        let part = part?;
        whole.messages += part.messages;
        whole.all_messages += part.all_messages;
        whole.bytes += part.bytes;
        whole.time = whole.time.max(part.time);
        whole.latency.merge(&part.latency);
        whole.verified &= part.verified;
        whole.congestion = part.congestion;
        // Each thread saw the whole process.
        whole.usage = part.usage;
    }
    Ok(whole)
}

fn client(options: &Options, op: Op, number: usize) -> io::Result<Measured> {
    let mut stream = options.connect()?;
    let value: String = Pattern::new(options.size)
        .piece(Place::default(), options.size)
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect();
    let key = format!("key-{number}");
    let set = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
    let get = format!("get {key}\r\n");
    let held = format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len());
    exchange(&mut stream, &set, b"STORED\r\n")?;
    let (request, answer) = match op {
        Op::Get => (get, held.into_bytes()),
        Op::Set => (set, b"STORED\r\n".to_vec()),
    };
    let mut measured = measure(options, || exchange(&mut stream, &request, &answer))?;
    measured.bytes = measured.messages * options.size as u64;
    measured.congestion = stream.congestion();
    Ok(measured)
}

fn exchange(stream: &mut Stream, request: &str, expected: &[u8]) -> io::Result<bool> {
    stream.write_all(request.as_bytes())?;
    let mut answer = [0; 16 * 1024];
    let answer = answer
        .get_mut(..expected.len())
        .ok_or(io::ErrorKind::InvalidInput)?;
    stream.read_exact(answer)?;
    Ok(answer == expected)
}
