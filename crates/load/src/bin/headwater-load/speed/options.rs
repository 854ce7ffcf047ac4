//! The command line.

use std::time::Duration;

pub const USAGE: &str = "usage: headwater-load speed run tcp|unix|eventfd|futex|in-place [--threads N] [--ahead N] [--latencies]
       headwater-load speed copy
       headwater-load speed chat tcp|unix [--rooms N] [--members N] [--clients N] [--poll]
       with run and copy: [--slots N] [--slot BYTES] [--windows N]
       with any: [--size BYTES] [--seconds S | --count N] [--server-cpus LIST] [--client-cpus LIST]
                 [--class normal|batch|fifo|rr] [--nice N] [--on-eof] [--spoil N]";

/// The bytes of a slot that no message gets: its frame's header and the room that a ring keeps free.
pub const SLOT_OVERHEAD: usize = 32;
/// The numbers at both ends of a message.
pub const SHORTEST: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Run,
    Copy,
    Chat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    Tcp,
    Unix,
    Eventfd,
    Futex,
    InPlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Normal,
    Batch,
    Fifo,
    RoundRobin,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub mode: Mode,
    pub carrier: Carrier,
    pub size: usize,
    pub until: Until,
    /// Connections, each with a thread at both ends.
    pub threads: usize,
    /// Messages that a client may have under way.
    pub ahead: usize,
    pub latencies: bool,
    /// A ring is so many slots of so many bytes; a message that is larger than a slot goes in several frames.
    pub slots: usize,
    pub slot: usize,
    /// Rings that a connection uses in turn, in each direction.
    pub windows: usize,
    pub rooms: usize,
    /// Of each room.
    pub members: usize,
    /// Processes that the members are in.
    pub clients: usize,
    /// The chat server waits by poll(2) instead of epoll(7).
    pub poll: bool,
    pub server_cpus: Vec<usize>,
    pub client_cpus: Vec<usize>,
    pub class: Class,
    pub nice: i32,
    pub on_eof: bool,
    /// For tests: the server changes a byte of this message before it sends it back.
    pub spoil: Option<u64>,
}

/// When a client has measured enough.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Until {
    Time(Duration),
    /// Messages of each connection.
    Count(u64),
}

impl Until {
    /// How much to run before measuring, so that connections are set up and waits have learnt how long they may be.
    pub fn warm_up(self) -> Until {
        match self {
            Until::Time(time) => Until::Time((time / 5).min(Duration::from_millis(100))),
            Until::Count(count) => Until::Count((count / 10).max(20)),
        }
    }

    pub fn reached(self, elapsed: Duration, count: u64) -> bool {
        match self {
            Until::Time(time) => elapsed >= time,
            Until::Count(limit) => count >= limit,
        }
    }
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mode = match words.next().as_deref() {
            Some("run") => Mode::Run,
            Some("copy") => Mode::Copy,
            Some("chat") => Mode::Chat,
            _ => return Err("run, copy or chat?".to_string()),
        };
        let carrier = match mode {
            Mode::Copy => Carrier::Futex,
            _ => carrier(&words.next().ok_or("which carrier?")?)?,
        };
        let mut options = Options {
            mode,
            carrier,
            size: 70,
            until: Until::Time(Duration::from_secs(1)),
            threads: 1,
            ahead: 1,
            latencies: false,
            slots: 4,
            slot: 64 << 10,
            windows: 1,
            rooms: 1,
            members: 20,
            clients: 1,
            poll: false,
            server_cpus: Vec::new(),
            client_cpus: Vec::new(),
            class: Class::Normal,
            nice: 0,
            on_eof: false,
            spoil: None,
        };
        while let Some(word) = words.next() {
            options.take(&word, &mut words)?;
        }
        options.check()?;
        Ok(options)
    }

    fn take(&mut self, word: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
        match word {
            "--latencies" => self.latencies = true,
            "--poll" => self.poll = true,
            "--on-eof" => self.on_eof = true,
            _ => {
                let value = words.next().ok_or(format!("{word} wants a value"))?;
                self.set(word, &value)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, word: &str, value: &str) -> Result<(), String> {
        match word {
            "--size" => self.size = number(value)?,
            "--seconds" => self.until = Until::Time(seconds(value)?),
            "--count" => self.until = Until::Count(number(value)?),
            "--threads" => self.threads = number(value)?,
            "--ahead" => self.ahead = number(value)?,
            "--slots" => self.slots = number(value)?,
            "--slot" => self.slot = number(value)?,
            "--windows" => self.windows = number(value)?,
            "--rooms" => self.rooms = number(value)?,
            "--members" => self.members = number(value)?,
            "--clients" => self.clients = number(value)?,
            "--server-cpus" => self.server_cpus = list(value)?,
            "--client-cpus" => self.client_cpus = list(value)?,
            "--class" => self.class = class(value)?,
            "--nice" => self.nice = number(value)?,
            "--spoil" => self.spoil = Some(number(value)?),
            _ => return Err(format!("what is {word}?")),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            self.threads,
            self.ahead,
            self.slots,
            self.windows,
            self.rooms,
            self.members,
            self.clients,
        ];
        if counts.contains(&0) {
            return Err("a count of nothing".to_string());
        }
        if self.size < SHORTEST {
            return Err(format!("a message has at least {SHORTEST} bytes"));
        }
        if self.slot <= SLOT_OVERHEAD {
            return Err(format!("a slot has more than {SLOT_OVERHEAD} bytes"));
        }
        if self.carrier == Carrier::InPlace && self.size > self.payload() {
            return Err("a message that is read in place fits into a slot".to_string());
        }
        let sockets = matches!(self.carrier, Carrier::Tcp | Carrier::Unix);
        if self.mode == Mode::Chat && !sockets {
            return Err("a chat goes over tcp or unix".to_string());
        }
        Ok(())
    }

    /// The bytes of a message that a slot takes.
    pub fn payload(&self) -> usize {
        self.slot - SLOT_OVERHEAD
    }

    /// The bytes of a ring: its slots, and never less than a page.
    pub fn ring(&self) -> usize {
        (self.slots * self.slot).max(4096).next_power_of_two()
    }
}

fn carrier(word: &str) -> Result<Carrier, String> {
    Ok(match word {
        "tcp" => Carrier::Tcp,
        "unix" => Carrier::Unix,
        "eventfd" => Carrier::Eventfd,
        "futex" => Carrier::Futex,
        "in-place" => Carrier::InPlace,
        _ => return Err("tcp, unix, eventfd, futex or in-place?".to_string()),
    })
}

fn class(word: &str) -> Result<Class, String> {
    Ok(match word {
        "normal" => Class::Normal,
        "batch" => Class::Batch,
        "fifo" => Class::Fifo,
        "rr" => Class::RoundRobin,
        _ => return Err("normal, batch, fifo or rr?".to_string()),
    })
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn seconds(word: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(word)?).map_err(|error| error.to_string())
}

/// Numbers with commas.
fn list(word: &str) -> Result<Vec<usize>, String> {
    word.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split(' ').map(str::to_string))
    }

    #[test]
    fn a_ring_is_as_large_as_its_slots_and_at_least_a_page() {
        let ring = |words: &str| parse(&format!("run futex {words}")).unwrap().ring();
        assert_eq!(ring("--slots 1024 --slot 65536"), 64 << 20);
        assert_eq!(ring("--slots 2 --slot 256"), 4096);
        assert_eq!(ring("--slots 152 --slot 1024"), 256 << 10);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(parse("run doors").is_err());
        assert!(parse("run tcp --size 8").is_err());
        assert!(parse("run tcp --threads 0").is_err());
        assert!(parse("run in-place --size 1000 --slot 1024").is_err());
        assert!(parse("chat futex").is_err());
        assert!(parse("run tcp --size").is_err());
    }

    #[test]
    fn cpus_are_a_list() {
        let options = parse("run tcp --server-cpus 0 --client-cpus 1,3").unwrap();
        assert_eq!(
            (options.server_cpus, options.client_cpus),
            (vec![0], vec![1, 3])
        );
    }
}
