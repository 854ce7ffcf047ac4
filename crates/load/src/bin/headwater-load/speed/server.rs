//! The server: reads a message and writes it back, in a thread for each connection.

use std::io;
use std::sync::Mutex;
use std::thread;

use crate::speed::child::give_up;
use crate::speed::message::{LAST, Message, START};
use crate::speed::options::Options;
use crate::speed::report::{Told, latencies};
use crate::speed::watch::{Watch, note, time};
use crate::speed::wire::{End, Reading, Writing};
use crate::sys::{self, Usage};

/// What this process has used between the first message that counts and the last one of all connections.
#[derive(Default)]
struct Account {
    begun: Option<Usage>,
    ended: Usage,
}

/// Serves all connections to their ends.
pub fn serve<E: End>(ends: Vec<E>, options: &Options) -> io::Result<String> {
    let account = &Mutex::new(Account::default());
    let mut total = Told::default();
    thread::scope(|scope| {
        let serve = |(connection, end)| {
            scope.spawn(move || {
                let served = serve_one(end, connection, options, account);
                // Other connections may wait for a client that has given up.
                served.unwrap_or_else(|error| give_up(&error.to_string()))
            })
        };
        let threads: Vec<_> = ends.iter().enumerate().map(serve).collect();
        for thread in threads {
            let (messages, watch) = thread.join().unwrap_or_else(|_| give_up("a thread failed"));
            total.messages += messages;
            let named = [("server_read", &watch.read), ("server_write", &watch.write)];
            total.latencies.extend(latencies(named));
        }
    });
    with(account, |account| {
        total.spent = account.ended.since(account.begun.unwrap_or_default());
    });
    total.line()
}

fn serve_one<E: End>(
    end: &E,
    connection: usize,
    options: &Options,
    account: &Mutex<Account>,
) -> io::Result<(u64, Watch)> {
    let (mut reader, mut writer) = end.halves(options.size);
    let message = Message::new(options.size, connection);
    let mut watch = Watch::default();
    let mut measuring = false;
    for number in 0.. {
        let asked = time(options.latencies);
        let bytes = reader.read()?;
        let came = time(options.latencies);
        let word = message.check(bytes, number)?;
        if word & START != 0 {
            measuring = true;
            with(account, |account| {
                account.begun.get_or_insert_with(sys::usage);
            });
        }
        let checked = time(options.latencies);
        match options.spoil {
            Some(spoilt) if spoilt == number => writer.write(&spoil(bytes))?,
            _ => writer.write(bytes)?,
        }
        let sent = time(options.latencies);
        reader.done();
        if measuring {
            note(&mut watch.read, asked, came);
            note(&mut watch.write, checked, sent);
        }
        if word & LAST != 0 {
            with(account, |account| account.ended = sys::usage());
            return Ok((number + 1, watch));
        }
    }
    Ok((0, watch))
}

fn with(account: &Mutex<Account>, act: impl FnOnce(&mut Account)) {
    match account.lock() {
        Ok(mut account) => act(&mut account),
        Err(_) => give_up("a thread failed"),
    }
}

fn spoil(bytes: &[u8]) -> Vec<u8> {
    let mut spoilt = bytes.to_vec();
    spoilt[bytes.len() / 2] ^= 1;
    spoilt
}
