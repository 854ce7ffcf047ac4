//! Every transport from Rust: a server that echoes in a thread of its own, a client that asks it, and datagrams.
//!
//! `cargo run -p headwater-examples --bin transports`

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use headwater_xti::api::{Connection, Datagrams, Error, Listener, inet};

/// Any free port of this host.
fn any_port() -> Vec<u8> {
    inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Echoes until the client releases its direction, then releases the other one.
fn serve(listener: Listener) -> Result<(), Error> {
    let connection = listener.accept()?;
    let mut room = [0; 1024];
    while let Some(got) = connection.receive(&mut room)? {
        connection.send(&room[..got.len])?;
    }
    connection.release()
}

/// What comes back until the server releases.
fn ask(device: &str, server: &[u8], question: &[u8]) -> Result<Vec<u8>, Error> {
    let connection = Connection::connect(device, server)?;
    connection.send(question)?;
    connection.release()?;
    let (mut answer, mut room) = (Vec::new(), [0; 1024]);
    while let Some(got) = connection.receive(&mut room)? {
        answer.extend_from_slice(&room[..got.len]);
    }
    Ok(answer)
}

/// `address`: None where any address is one of this host.
fn connections(device: &str, address: Option<&[u8]>) -> Result<(), Error> {
    let listener = Listener::bind(device, address, 5)?;
    let server = listener.address().to_vec();
    let serving = thread::spawn(move || serve(listener));
    let answer = ask(device, &server, b"is anybody there?")?;
    println!("{device}: {}", String::from_utf8_lossy(&answer));
    serving.join().expect("the server does not panic")
}

fn datagrams(device: &str, address: Option<&[u8]>) -> Result<(), Error> {
    let (here, there) = (
        Datagrams::bind(device, address)?,
        Datagrams::bind(device, address)?,
    );
    for text in ["one", "two", "three"] {
        here.send_to(there.address(), text.as_bytes())?;
    }
    let mut room = [0; 1024];
    for _ in 0..3 {
        let (got, from) = there.receive_from(&mut room)?;
        assert_eq!(from, here.address());
        println!("{device}: {}", String::from_utf8_lossy(&room[..got.len]));
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    connections("/dev/ticotsord", None)?;
    connections("/dev/tcp", Some(&any_port()))?;
    datagrams("/dev/ticlts", None)?;
    datagrams("/dev/udp", Some(&any_port()))?;
    let nobody = Connection::connect("/dev/ticotsord", b"nobody has this address");
    println!("nobody: errno {}", nobody.expect_err("it is true").unix);
    Ok(())
}
