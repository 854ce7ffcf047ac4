//! The chat: rooms of 20 members, and a server that waits for all connections by epoll or by poll.

use super::Work;
use super::way::{Runs, Way};
use crate::experiment::{ACCELERATED_NODELAY, TCP_NODELAY, UNIX, Unit};

pub const ROOMS: [usize; 3] = [1, 8, 32];
pub const MEMBERS: usize = 20;
/// What the server waits by.
pub const CALLS: [&str; 2] = ["epoll", "poll"];
const SIZE: usize = 100;
/// Processes that the members of the last cell are in.
const CLIENTS: usize = 4;

pub fn name(rooms: usize, call: &str) -> String {
    format!("chat-{rooms}-rooms-{call}")
}

pub fn works() -> Vec<Box<dyn Work>> {
    let cell = |rooms: usize, call: &str| Runs {
        unit: Unit::Rate,
        words: words(rooms, call),
        ends: (2 * rooms * MEMBERS) as u64,
        ..Runs::new(
            name(rooms, call),
            vec![
                Way::new(TCP_NODELAY, "chat tcp"),
                Way::new(UNIX, "chat unix"),
                Way::new(ACCELERATED_NODELAY, "chat tcp"),
            ],
        )
    };
    let all = ROOMS
        .into_iter()
        .flat_map(|rooms| CALLS.map(|call| cell(rooms, call)));
    let spread = Runs {
        name: format!("{}-{CLIENTS}-clients", name(8, "epoll")),
        words: format!("{} --clients {CLIENTS}", words(8, "epoll")),
        ..cell(8, "epoll")
    };
    all.chain([spread]).map(Runs::boxed).collect()
}

fn words(rooms: usize, call: &str) -> String {
    let poll = if call == "poll" { "--poll" } else { "" };
    format!("--size {SIZE} --rooms {rooms} --members {MEMBERS} {poll}")
}
