//! A small service on messages with a control part, a kind and a band; with a deadline for the answers.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use headwater_channel::{Channel, ReceiveError};

type Failure = Box<dyn Error + Send + Sync>;

const PUT: u8 = 1;
const LIST: u8 = 2;
const DONE: u8 = 3;

/// A band for what the client wants to see first. The channel keeps the order of sending; a program can sort by it.
const URGENT: u8 = 1;

fn main() -> Result<(), Failure> {
    let (client, server) = Channel::pair(64 << 10)?;
    let server = thread::spawn(move || serve(server));

    client.send_message(b"colour", b"green", PUT, 0)?;
    client.send_message(b"shape", b"round", PUT, 0)?;
    client.send_message(b"", b"", LIST, 0)?;
    client.finish_sending()?;

    let deadline = Instant::now() + Duration::from_secs(5);
    let (mut name, mut value) = ([0; 100], [0; 1000]);
    loop {
        let m = client.recv_message_deadline(&mut name, &mut value, deadline)?;
        if m.kind == DONE {
            break println!("band {}: {} bytes stored", m.band, m.data);
        }
        let name = String::from_utf8_lossy(&name[..m.control]);
        println!("{name} is {}", String::from_utf8_lossy(&value[..m.data]));
    }
    server.join().expect("the server ends")?;
    Ok(())
}

fn serve(end: Channel) -> Result<(), Failure> {
    let mut store = Vec::new();
    let (mut name, mut value) = ([0; 100], [0; 1000]);
    loop {
        let m = match end.recv_message(&mut name, &mut value) {
            Ok(m) => m,
            Err(ReceiveError::Closed) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        match m.kind {
            PUT => store.push((name[..m.control].to_vec(), value[..m.data].to_vec())),
            LIST => {
                for (name, value) in &store {
                    end.send_message(name, value, PUT, 0)?;
                }
                let all: Vec<u8> = store.iter().flat_map(|(_, value)| value.clone()).collect();
                end.send_message(b"", &all, DONE, URGENT)?;
            }
            other => return Err(format!("unknown kind {other}").into()),
        }
    }
}
