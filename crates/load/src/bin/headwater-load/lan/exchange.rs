//! Requests and responses on one connection: some requests one after the other, then one response to all of them.

use std::io::{self, Read, Write};

use crate::lan::link::Link;
use crate::lan::measure::measure;
use crate::lan::options::Options;
use crate::lan::result::Driven;
use crate::pattern::{Pattern, Place};

pub fn drive(options: &Options, mut open: impl FnMut() -> io::Result<Link>) -> io::Result<Driven> {
    let mut link = open()?;
    let mut talk = Talk::new(options);
    let driven = measure(options, options.burst as u64, || {
        talk.ask(&mut link)?;
        talk.hear(&mut link, options.response)
    })?;
    Ok(Driven {
        congestion: link.congestion(),
        ..driven
    })
}

/// One end's view of a connection: where both directions are in the pattern.
pub struct Talk {
    pattern: Pattern,
    sent: Place,
    received: Place,
    buffer: Vec<u8>,
    request: usize,
    response: usize,
    burst: usize,
    /// Bytes received so far.
    pub bytes: u64,
}

impl Talk {
    pub fn new(options: &Options) -> Talk {
        Talk {
            pattern: Pattern::new(options.request.max(options.response).max(options.read)),
            sent: Place::default(),
            received: Place::default(),
            buffer: vec![0; options.read],
            request: options.request,
            response: options.response,
            burst: options.burst,
            bytes: 0,
        }
    }

    /// On a new connection both directions begin anew.
    pub fn begin(&mut self) {
        self.sent = Place::default();
        self.received = Place::default();
    }

    #[inline]
    pub fn ask(&mut self, link: &mut impl Write) -> io::Result<()> {
        (0..self.burst).try_for_each(|_| self.say(link, self.request))
    }

    #[inline]
    pub fn answer(&mut self, link: &mut impl Write) -> io::Result<()> {
        self.say(link, self.response)
    }

    fn say(&mut self, link: &mut impl Write, len: usize) -> io::Result<()> {
        link.write_all(self.pattern.piece(self.sent, len))?;
        self.sent.advance(len);
        Ok(())
    }

    /// Takes so many bytes; false where they are wrong.
    #[inline]
    pub fn hear(&mut self, link: &mut impl Read, len: usize) -> io::Result<bool> {
        let heard = self.hear_all(link, len)?;
        heard.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Takes the requests of one burst, and whether they were right; None where the other end has closed before them.
    pub fn hear_burst(&mut self, link: &mut impl Read) -> io::Result<Option<bool>> {
        self.hear_all(link, self.request * self.burst)
    }

    #[inline]
    fn hear_all(&mut self, link: &mut impl Read, len: usize) -> io::Result<Option<bool>> {
        let (mut heard, mut all_right) = (0, true);
        while heard < len {
            match self.hear_some(link, len - heard)? {
                Some((more, right)) => {
                    heard += more;
                    all_right &= right;
                }
                None if heard == 0 => return Ok(None),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(Some(all_right))
    }

    /// One read: how many bytes came, and whether they were right. None at the end of the stream.
    #[inline]
    pub fn hear_some(
        &mut self,
        link: &mut impl Read,
        most: usize,
    ) -> io::Result<Option<(usize, bool)>> {
        let room = most.min(self.buffer.len());
        let len = link.read(&mut self.buffer[..room])?;
        if len == 0 {
            return Ok(None);
        }
        let right = self.pattern.matches(self.received, &self.buffer[..len]);
        self.received.advance(len);
        self.bytes += len as u64;
        Ok(Some((len, right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Options {
        let words = format!("raw exchange {words}");
        crate::Words::read(words.split(' ').map(str::to_string)).unwrap()
    }

    #[test]
    fn a_burst_is_heard_as_a_whole_however_it_comes() {
        let options = options("--request 700 --burst 9 --read 1000");
        let (mut asker, mut hearer) = (Talk::new(&options), Talk::new(&options));
        let mut wire = Vec::new();
        asker.ask(&mut wire).unwrap();
        asker.ask(&mut wire).unwrap();
        let mut wire = wire.as_slice();
        assert_eq!(hearer.hear_burst(&mut wire).unwrap(), Some(true));
        assert_eq!(wire.len(), 6300);
        assert_eq!(hearer.hear_burst(&mut wire).unwrap(), Some(true));
        assert_eq!(hearer.hear_burst(&mut wire).unwrap(), None);
        assert_eq!(hearer.bytes, 12_600);
    }

    #[test]
    fn a_wrong_byte_and_half_a_burst_are_noticed() {
        let options = options("--request 700 --burst 9");
        let mut wire = Vec::new();
        Talk::new(&options).ask(&mut wire).unwrap();
        assert!(Talk::new(&options).hear_burst(&mut &wire[..5000]).is_err());
        wire[6000] ^= 1;
        let heard = Talk::new(&options).hear_burst(&mut wire.as_slice());
        assert_eq!(heard.unwrap(), Some(false));
    }
}
