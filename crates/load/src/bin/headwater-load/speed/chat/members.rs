//! The members of some rooms, in one process and one loop. Each checks everything that it hears.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

use headwater_load::latency::Recorder;
use headwater_load::network::loopback_bytes;
use headwater_load::wrong_bytes;

use super::waiter::Waiter;
use super::{BUFFER, Place, Speech, each_message};
use crate::net::Stream;
use crate::poll::Event;
use crate::speed::message::{Message, word_of};
use crate::speed::options::Options;
use crate::speed::report::{Told, latencies};
use crate::sys::{self, Usage};

/// What every member has said on average before measuring begins: a connection may be carried otherwise from its first
/// messages on.
const EACH: usize = 3;

struct Member {
    socket: Stream,
    me: Speech,
    /// What each member of the room says next.
    expected: Vec<u64>,
    unread: Vec<u8>,
    since: Instant,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Arriving,
    Warming,
    Measuring,
    /// Nobody speaks any more, but not everything has arrived.
    Ending,
}

struct Talk {
    message: Message,
    members: usize,
    part: Part,
    welcomed: usize,
    spoken: u64,
    delivered: u64,
    /// When this part began, and what had been delivered.
    begun: (Instant, u64),
    /// What the loop-back device had sent when measuring began.
    loopback: u64,
    used: Usage,
    told: Told,
    round_trip: Recorder,
}

/// Takes part until `options.until()`, and until everything that was said has been heard.
pub fn chat(
    place: &Place,
    options: &Options,
    rooms: impl Iterator<Item = usize>,
) -> io::Result<Told> {
    let mut talk = Talk {
        message: Message::new(options.size, 0),
        members: options.members,
        part: Part::Arriving,
        welcomed: 0,
        spoken: 0,
        delivered: 0,
        begun: (Instant::now(), 0),
        loopback: 0,
        used: Usage::default(),
        told: Told::default(),
        round_trip: Recorder::new(),
    };
    let (mut waiter, mut all) = (Waiter::new(false)?, Vec::new());
    for room in rooms {
        for member in 0..options.members {
            let mut arrived = talk.arrive(place, room, member)?;
            waiter.add(arrived.socket.as_raw_fd(), all.len())?;
            arrived.say(&mut talk.message)?;
            all.push(arrived);
        }
    }
    let (mut events, mut buffer) = (Vec::<Event>::new(), vec![0; BUFFER]);
    while !talk.is_over() {
        waiter.wait(&mut events)?;
        for event in &events {
            all[event.token as usize].listen(&mut talk, &mut buffer)?;
        }
        talk.look_at_clock(options, &mut all)?;
    }
    talk.told.all_messages = talk.delivered;
    talk.told.spent = sys::usage().since(talk.used);
    talk.told.latencies = latencies([("round_trip", &talk.round_trip)]);
    Ok(talk.told)
}

impl Talk {
    fn arrive(&self, place: &Place, room: usize, member: usize) -> io::Result<Member> {
        Ok(Member {
            socket: place.connect()?,
            me: Speech {
                room,
                member,
                number: 0,
            },
            expected: vec![1; self.members],
            unread: Vec::new(),
            since: Instant::now(),
        })
    }

    fn is_over(&self) -> bool {
        self.part == Part::Ending && self.delivered == self.spoken * self.members as u64
    }

    /// Goes from part to part.
    fn look_at_clock(&mut self, options: &Options, all: &mut [Member]) -> io::Result<()> {
        let (now, (begun, before)) = (Instant::now(), self.begun);
        let count = self.delivered - before;
        let warm = self.delivered >= (EACH * all.len() * self.members) as u64;
        match self.part {
            Part::Arriving if self.welcomed == all.len() => {
                self.used = sys::usage();
                self.enter(Part::Warming, now);
                for member in all {
                    self.speak(member)?;
                }
            }
            Part::Warming if warm && options.warm_up().reached(now - begun, count) => {
                self.loopback = loopback_bytes();
                self.enter(Part::Measuring, now);
            }
            Part::Measuring if options.until().reached(now - begun, count) => {
                self.told.messages = count;
                self.told.seconds = (now - begun).as_secs_f64();
                self.told.loopback_bytes = loopback_bytes() - self.loopback;
                self.enter(Part::Ending, now);
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, part: Part, now: Instant) {
        self.part = part;
        self.begun = (now, self.delivered);
    }

    fn speak(&mut self, member: &mut Member) -> io::Result<()> {
        member.me.number += 1;
        self.spoken += 1;
        member.since = Instant::now();
        member.say(&mut self.message)
    }
}

impl Member {
    fn say(&mut self, message: &mut Message) -> io::Result<()> {
        self.socket.write_all(message.stamped(self.me.word()))
    }

    fn listen(&mut self, talk: &mut Talk, buffer: &mut [u8]) -> io::Result<()> {
        let count = self.socket.read(buffer)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut unread = std::mem::take(&mut self.unread);
        unread.extend_from_slice(&buffer[..count]);
        let size = talk.message.size();
        each_message(&mut unread, size, |message| self.hear(talk, message))?;
        self.unread = unread;
        Ok(())
    }

    fn hear(&mut self, talk: &mut Talk, message: &[u8]) -> io::Result<()> {
        let heard = Speech::of(word_of(message));
        if talk.part == Part::Arriving {
            talk.message.check_whole(message, self.me.word())?;
            talk.welcomed += 1;
            return Ok(());
        }
        let next = self.expected.get_mut(heard.member);
        let next = next.ok_or_else(|| wrong_bytes("a member that is not in the room"))?;
        let expected = Speech {
            room: self.me.room,
            member: heard.member,
            number: *next,
        };
        talk.message.check_whole(message, expected.word())?;
        *next += 1;
        talk.delivered += 1;
        if heard.member == self.me.member {
            self.heard_myself(talk)?;
        }
        Ok(())
    }

    fn heard_myself(&mut self, talk: &mut Talk) -> io::Result<()> {
        if talk.part == Part::Measuring {
            talk.round_trip.record_time(self.since.elapsed());
        }
        match talk.part {
            Part::Ending => Ok(()),
            _ => talk.speak(self),
        }
    }
}
