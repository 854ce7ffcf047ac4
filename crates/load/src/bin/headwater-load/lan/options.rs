//! The command line.

use std::time::Duration;

pub const USAGE: &str = "usage: headwater-load lan serve exchange|connects|stream ADDR [SIZES]
       headwater-load lan drive exchange|connects|stream ADDR [SIZES] [TIMES]
       headwater-load lan raw exchange|stream [SIZES] [TIMES] [--server-cpu N] [--client-cpu N]
       headwater-load lan post pipe|ring|posted [--request BYTES] [TIMES] [--server-cpu N] [--client-cpu N]
       SIZES: [--request BYTES] [--response BYTES] [--burst REQUESTS] [--count WRITES] [--read BYTES] [--buffers BYTES]
       TIMES: [--seconds S] [--within SHARE]
       with serve and drive: [--nodelay] [--cubic]";

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Role {
    Serve,
    Drive,
    Raw,
    Post,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    Exchange,
    Connects,
    Stream,
}

/// What carries the messages of `post`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wire {
    Pipe,
    Ring,
    Posted,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub role: Role,
    pub work: Work,
    pub wire: Wire,
    pub address: String,
    /// Bytes of a request, of a stream's write, of a posted message.
    pub request: usize,
    pub response: usize,
    /// Requests that one response answers.
    pub burst: usize,
    /// Writes of a connection; none: as many as fit into the time.
    pub count: Option<u64>,
    /// The receiver's buffer.
    pub read: usize,
    /// Socket buffers, or the ring; none: as they come.
    pub buffers: Option<usize>,
    /// How long at most.
    pub time: Duration,
    /// How narrow the mean's interval has to be, as a share of the mean, to end earlier.
    pub within: Option<f64>,
    pub nodelay: bool,
    pub cubic: bool,
    pub server_cpu: Option<usize>,
    pub client_cpu: Option<usize>,
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let role = words.next().unwrap_or_default();
        let what = words.next().unwrap_or_default();
        let mut options = Options::new(&role, &what)?;
        if matches!(options.role, Role::Serve | Role::Drive) {
            options.address = words.next().ok_or("which address?")?;
        }
        while let Some(word) = words.next() {
            options.set(&word, &mut words)?;
        }
        Ok(options)
    }

    fn new(role: &str, what: &str) -> Result<Options, String> {
        let role = match role {
            "serve" => Role::Serve,
            "drive" => Role::Drive,
            "raw" => Role::Raw,
            "post" => Role::Post,
            _ => return Err("serve, drive, raw or post?".to_string()),
        };
        let (work, wire) = match (role, what) {
            (Role::Post, "pipe") => (Work::Stream, Wire::Pipe),
            (Role::Post, "ring") => (Work::Stream, Wire::Ring),
            (Role::Post, "posted") => (Work::Stream, Wire::Posted),
            (Role::Post, _) => return Err("pipe, ring or posted?".to_string()),
            (_, "exchange") => (Work::Exchange, Wire::Ring),
            (Role::Serve | Role::Drive, "connects") => (Work::Connects, Wire::Ring),
            (_, "stream") => (Work::Stream, Wire::Ring),
            _ => return Err("exchange, connects or stream?".to_string()),
        };
        Ok(Options {
            role,
            work,
            wire,
            address: String::new(),
            request: 1,
            response: 1,
            burst: 1,
            count: None,
            read: 64 * 1024,
            buffers: None,
            time: Duration::from_secs(1),
            within: None,
            nodelay: false,
            cubic: false,
            server_cpu: None,
            client_cpu: None,
        })
    }

    fn set(&mut self, word: &str, words: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut number = || -> Result<f64, String> {
            let value = words.next().unwrap_or_default().parse().ok();
            value
                .filter(|n: &f64| *n >= 0.0 && n.is_finite())
                .ok_or(format!("{word} wants a number"))
        };
        // Nothing is not a message.
        let size = |number: f64| (number as usize).max(1);
        match word {
            "--request" => self.request = size(number()?),
            "--response" => self.response = size(number()?),
            "--burst" => self.burst = size(number()?),
            "--count" => self.count = Some(number()?.max(1.0) as u64),
            "--read" => self.read = size(number()?),
            "--buffers" => self.buffers = Some(size(number()?)),
            "--seconds" => self.time = Duration::from_secs_f64(number()?.min(1e6)),
            "--within" => self.within = Some(number()?),
            "--server-cpu" => self.server_cpu = Some(number()? as usize),
            "--client-cpu" => self.client_cpu = Some(number()? as usize),
            "--nodelay" => self.nodelay = true,
            "--cubic" => self.cubic = true,
            _ => return Err(format!("what is {word}?")),
        }
        Ok(())
    }

    /// How long to run before measuring, so that connections are set up and buffers have grown.
    pub fn warm_up(&self) -> Duration {
        (self.time / 5).min(Duration::from_millis(200))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split(' ').map(str::to_string))
    }

    #[test]
    fn a_command_names_its_role_its_work_and_its_sizes() {
        let options = parse("drive exchange 127.0.0.1:1 --request 64 --burst 500 --within 0.02");
        let options = options.unwrap();
        assert_eq!((options.role, options.work), (Role::Drive, Work::Exchange));
        assert_eq!((options.request, options.response), (64, 1));
        assert_eq!((options.burst, options.within), (500, Some(0.02)));
        let post = parse("post posted --request 4096 --seconds 0.1").unwrap();
        assert_eq!((post.role, post.wire), (Role::Post, Wire::Posted));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "measure",
            "drive exchange",
            "drive trips 127.0.0.1:1",
            "raw connects",
            "post exchange",
            "raw stream --seconds -1",
            "raw stream --seconds nan",
            "raw stream --sizes 1",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }
}
