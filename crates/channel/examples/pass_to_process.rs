//! Gives one end of a channel to another program, over a UNIX socket that is its standard input.

use std::error::Error;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use headwater_channel::{Channel, Fds, ReceiveError};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("child") => child(),
        _ => parent(),
    }
}

fn parent() -> Result<(), Box<dyn Error>> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("child")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;

    let (near, far) = Channel::pair(64 << 10)?;
    far.into_fds().send_over(&ours)?;

    let mut buf = [0; 100];
    for word in ["one", "two", "three"] {
        near.send(word.as_bytes())?;
        let n = near.recv(&mut buf)?;
        println!("{word} -> {}", String::from_utf8_lossy(&buf[..n]));
    }
    // The child learns of the end by it.
    drop(near);
    assert!(child.wait()?.success());
    Ok(())
}

fn child() -> Result<(), Box<dyn Error>> {
    let end = Channel::from_fds(Fds::receive_from(std::io::stdin())?)?;
    let mut buf = [0; 100];
    loop {
        match end.recv(&mut buf) {
            Ok(n) => {
                buf[..n].make_ascii_uppercase();
                end.send(&buf[..n])?;
            }
            Err(ReceiveError::Closed) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}
