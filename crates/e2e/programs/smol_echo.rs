//! A program over smol: it waits by inline system calls (rustix), and reads and writes by the C library's functions.
//!
//! ```text
//! smol-echo serve PORT            answers each connection with its own bytes, from the first on
//! smol-echo serve-late PORT       the first hundred pieces of each connection by a thread that blocks, then by smol
//! smol-echo call PORT             eight connections at a time, a sum for each
//! smol-echo call-late PORT        likewise
//! ```

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use smol::Async;
use smol::io::{AsyncReadExt, AsyncWriteExt};

const CONNECTIONS: u8 = 8;
const PIECES: usize = 500;
/// Of those, by a thread that blocks.
const EARLY: usize = 100;
const PIECE: usize = 2000;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let usage = || io::Error::other("smol-echo serve|serve-late|call|call-late PORT");
    let [role, port] = words[..] else {
        return Err(usage());
    };
    let port = port.parse().map_err(|_| usage())?;
    let early = if role.ends_with("-late") { EARLY } else { 0 };
    match role.trim_end_matches("-late") {
        "serve" => serve(port, early),
        "call" => call(port, early),
        _ => Err(usage()),
    }
}

fn serve(port: u16, early: usize) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    if early == 0 {
        return smol::block_on(async {
            let listener = Async::new(listener)?;
            loop {
                let (connection, _) = listener.accept().await?;
                smol::spawn(answer(connection)).detach();
            }
        });
    }
    for connection in listener.incoming() {
        let mut connection = connection?;
        thread::spawn(move || {
            let mut piece = [0; PIECE];
            for _ in 0..early {
                connection.read_exact(&mut piece)?;
                connection.write_all(&piece)?;
            }
            smol::spawn(answer(Async::new(connection)?)).detach();
            io::Result::Ok(())
        });
    }
    Ok(())
}

async fn answer(mut connection: Async<TcpStream>) -> io::Result<()> {
    let mut piece = [0; PIECE];
    loop {
        let n = connection.read(&mut piece).await?;
        if n == 0 {
            return Ok(());
        }
        connection.write_all(&piece[..n]).await?;
    }
}

fn call(port: u16, early: usize) -> io::Result<()> {
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|name| smol::spawn(ask(port, name, early)))
        .collect();
    smol::block_on(async {
        for (name, task) in tasks.into_iter().enumerate() {
            println!("connection {name}: sum {}", task.await?);
        }
        Ok(())
    })
}

/// A piece after the other, each of which comes back.
async fn ask(port: u16, name: u8, early: usize) -> io::Result<u64> {
    let begun = smol::unblock(move || blocking(port, name, early)).await?;
    let (mut connection, mut sum) = (Async::new(begun.0)?, begun.1);
    let mut piece = [0; PIECE];
    for i in early..PIECES {
        connection.write_all(&filled(name, i)).await?;
        connection.read_exact(&mut piece).await?;
        sum = add(sum, &piece);
    }
    Ok(sum)
}

fn blocking(port: u16, name: u8, pieces: usize) -> io::Result<(TcpStream, u64)> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let (mut piece, mut sum) = ([0; PIECE], 0);
    for i in 0..pieces {
        connection.write_all(&filled(name, i))?;
        connection.read_exact(&mut piece)?;
        sum = add(sum, &piece);
    }
    Ok((connection, sum))
}

fn filled(name: u8, i: usize) -> [u8; PIECE] {
    core::array::from_fn(|at| (at + i) as u8 ^ name)
}

fn add(sum: u64, piece: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| sum.wrapping_mul(31).wrapping_add(byte.into());
    piece.iter().fold(sum, step)
}
