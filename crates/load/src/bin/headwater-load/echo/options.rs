//! The command line.

use std::io;
use std::time::Duration;

use crate::net::{Setup, Stream};
use crate::until::Until;

pub const USAGE: &str =
    "usage: headwater-load echo server echo|epoll|sink ADDR [--until-eof] [--connections N]
       headwater-load echo client rtt|stream|connect|once|forks|fan|idle|memcached-get|memcached-set ADDR
                      [--size BYTES] [--seconds S | --count N] [--connections N] [--rate N]
       headwater-load echo calls|forks [--seconds S | --count N]
       headwater-load echo nothing | spin
       with any: [--cpu N] [--nodelay] [--cubic]";

#[derive(Clone)]
pub struct Options {
    pub role: String,
    pub mode: String,
    pub address: String,
    pub size: usize,
    pub until: Until,
    pub connections: usize,
    /// Requests a second; one after the other without it.
    pub rate: Option<f64>,
    pub setup: Setup,
    pub cpu: Option<usize>,
    /// A server ends, and prints its result, when its standard input does.
    pub until_eof: bool,
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            role: words.next().unwrap_or_default(),
            mode: String::new(),
            address: String::new(),
            size: 64,
            until: Until::Time(Duration::from_secs(1)),
            connections: 1,
            rate: None,
            setup: Setup::default(),
            cpu: None,
            until_eof: false,
        };
        match options.role.as_str() {
            "server" | "client" => {
                options.mode = words.next().ok_or("which mode?")?;
                options.address = words.next().ok_or("which address?")?;
            }
            "calls" | "forks" | "nothing" | "spin" => {}
            _ => return Err("server, client, calls, forks, nothing or spin?".to_string()),
        }
        while let Some(word) = words.next() {
            let mut number = || -> Result<f64, String> {
                let value = words.next().unwrap_or_default();
                value
                    .parse()
                    .ok()
                    .filter(|n: &f64| *n >= 0.0)
                    .ok_or(format!("{word} wants a number"))
            };
            match word.as_str() {
                "--size" => options.size = (number()? as usize).max(1),
                "--seconds" => options.until = Until::Time(Duration::from_secs_f64(number()?)),
                "--count" => options.until = Until::Count(number()? as u64),
                "--connections" => options.connections = (number()? as usize).max(1),
                "--rate" => options.rate = Some(number()?.max(1.0)),
                "--cpu" => options.cpu = Some(number()? as usize),
                "--nodelay" => options.setup.nodelay = true,
                "--cubic" => options.setup.cubic = true,
                "--until-eof" => options.until_eof = true,
                _ => return Err(format!("what is {word}?")),
            }
        }
        Ok(options)
    }

    pub fn connect(&self) -> io::Result<Stream> {
        Stream::connect(&self.address, self.setup)
    }

    /// How much to run before measuring, so that connections are set up and buffers have grown.
    pub fn warm_up(&self) -> Until {
        self.until.warm_up(Duration::from_millis(200))
    }
}
