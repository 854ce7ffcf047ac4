//! The chat server: one loop over all connections.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;

use headwater_load::wrong_bytes;

use super::waiter::Waiter;
use super::{BUFFER, Place, Speech, each_message};
use crate::net::{Stream, Unsent};
use crate::poll::Event;
use crate::speed::message::{Message, word_of};
use crate::speed::options::Options;
use crate::speed::report::Told;
use crate::sys;

struct Guest {
    /// None when it has left.
    socket: Option<Stream>,
    unread: Vec<u8>,
    unsent: Unsent,
    /// What it says next; before its arrival nobody knows who it is.
    next: Option<Speech>,
}

struct Server<'a> {
    options: &'a Options,
    waiter: Waiter,
    guests: Vec<Guest>,
    /// The guests of each room, by member.
    rooms: Vec<Vec<Option<usize>>>,
    message: Message,
    buffer: Vec<u8>,
    arrived: usize,
    present: usize,
    delivered: u64,
}

/// Waits until all members are there, and serves them until they have left.
pub fn serve(place: &Place, options: &Options) -> io::Result<String> {
    let mut server = Server {
        options,
        waiter: Waiter::new(options.poll)?,
        guests: Vec::new(),
        rooms: vec![vec![None; options.members]; options.rooms],
        message: Message::new(options.size, 0),
        buffer: vec![0; BUFFER],
        arrived: 0,
        present: options.rooms * options.members,
        delivered: 0,
    };
    for guest in 0..server.present {
        let socket = place.accept()?;
        socket.set_nonblocking()?;
        server.waiter.add(socket.as_raw_fd(), guest)?;
        server.guests.push(Guest {
            socket: Some(socket),
            unread: Vec::new(),
            unsent: Unsent::default(),
            next: None,
        });
    }
    let used = sys::usage();
    let mut events = Vec::new();
    while server.present > 0 {
        server.waiter.wait(&mut events)?;
        for event in &events {
            server.turn(event)?;
        }
    }
    let told = Told {
        all_messages: server.delivered,
        spent: sys::usage().since(used),
        ..Told::default()
    };
    told.line()
}

impl Server<'_> {
    fn turn(&mut self, event: &Event) -> io::Result<()> {
        let guest = event.token as usize;
        if event.writable {
            self.send(guest, Unsent::go_on)?;
        }
        if !event.readable {
            return Ok(());
        }
        if !self.receive(guest)? {
            self.waiter.remove(guest);
            self.guests[guest].socket = None;
            self.present -= 1;
            return Ok(());
        }
        let mut unread = std::mem::take(&mut self.guests[guest].unread);
        each_message(&mut unread, self.options.size, |message| {
            self.hear(guest, message)
        })?;
        self.guests[guest].unread = unread;
        Ok(())
    }

    /// Takes what is there of a guest's messages; false where it has left.
    fn receive(&mut self, guest: usize) -> io::Result<bool> {
        let guest = &mut self.guests[guest];
        let Some(socket) = &mut guest.socket else {
            return Ok(true);
        };
        match socket.read(&mut self.buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => guest.unread.extend_from_slice(&self.buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn hear(&mut self, guest: usize, message: &[u8]) -> io::Result<()> {
        let expected = match self.guests[guest].next {
            Some(speech) => speech,
            None => Speech {
                number: 0,
                ..Speech::of(word_of(message))
            },
        };
        self.message.check_whole(message, expected.word())?;
        self.guests[guest].next = Some(Speech {
            number: expected.number + 1,
            ..expected
        });
        match expected.number {
            0 => self.welcome(guest, expected),
            _ => self.pass_on(expected, message),
        }
    }

    /// Seats an arrival; tells everybody once all are there.
    fn welcome(&mut self, guest: usize, arrival: Speech) -> io::Result<()> {
        let room = self.rooms.get_mut(arrival.room);
        let seat = room.and_then(|room| room.get_mut(arrival.member));
        *seat.ok_or_else(|| wrong_bytes("a seat that there is not"))? = Some(guest);
        self.arrived += 1;
        if self.arrived < self.guests.len() {
            return Ok(());
        }
        for guest in 0..self.guests.len() {
            let Some(next) = self.guests[guest].next else {
                continue;
            };
            let answer = self
                .message
                .stamped(Speech { number: 0, ..next }.word())
                .to_vec();
            self.say(guest, &answer)?;
        }
        Ok(())
    }

    fn pass_on(&mut self, speech: Speech, message: &[u8]) -> io::Result<()> {
        for member in 0..self.options.members {
            let Some(guest) = self.rooms[speech.room][member] else {
                continue;
            };
            match self.options.spoil {
                Some(spoilt) if spoilt == self.delivered => {
                    let mut wrong = message.to_vec();
                    wrong[message.len() / 2] ^= 1;
                    self.say(guest, &wrong)?;
                }
                _ => self.say(guest, message)?,
            }
            self.delivered += 1;
        }
        Ok(())
    }

    fn say(&mut self, guest: usize, bytes: &[u8]) -> io::Result<()> {
        self.send(guest, |unsent, socket| unsent.send(socket, bytes))
    }

    /// Writes what `send` can, if the guest is still there, and waits for room where some is left.
    fn send(
        &mut self,
        guest: usize,
        send: impl FnOnce(&mut Unsent, &mut Stream) -> io::Result<Option<bool>>,
    ) -> io::Result<()> {
        let entry = &mut self.guests[guest];
        let Some(socket) = &mut entry.socket else {
            return Ok(());
        };
        match send(&mut entry.unsent, socket)? {
            Some(waits) => self.waiter.want_write(socket.as_raw_fd(), guest, waits),
            None => Ok(()),
        }
    }
}
