//! A connection goes on in the image after exec(2).

use headwater_host::handed::{self, Sort, identity};
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_streams::head::life;
use headwater_streams::pipe::Pipe;

use super::{Link, Phase};
use crate::loopback::Owned;

impl Link {
    /// Fields for [`Link::restore`], joined by colons.
    pub fn save(&self) -> Option<String> {
        if self.phase == Phase::Calling {
            return None;
        }
        let pipe = self.head.pipe()?;
        let [first, second] = pipe.both_bells().ok()?;
        for fd in [pipe.memfd, first, second] {
            sys::fcntl(fd, libc::F_SETFD, 0).ok()?;
        }
        let flags = [
            self.is_open(),
            self.released,
            self.peer_released,
            self.parted,
            self.over,
        ];
        let flags = flags
            .into_iter()
            .rev()
            .fold(0, |all, flag| all << 1 | flag as u32);
        let side = self.head.side();
        let (memfd, is) = (pipe.memfd, identity(pipe.memfd));
        let [local, remote] = [self.local.as_deref().unwrap_or(&[]), &self.remote].map(to_hex);
        Some(format!(
            "{side}:{memfd}:{is}:{first}:{second}:{flags}:{local}:{remote}"
        ))
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Link> {
        let fields: Vec<&str> = saved.split(':').collect();
        let [side, memfd, is, first, second, flags, local, remote] = fields[..] else {
            return None;
        };
        let number = |text: &str| text.parse::<i32>().ok();
        let is = is.parse().ok()?;
        let memfd = number(memfd)?;
        let side = number(side)? as u32 & 1;
        let socket = Owned::copy_of(fd).ok()?;
        let known = life::borrow_pipe(is);
        let pipe = match &known {
            Some(known) => known.pipe(),
            None => {
                let take = |fd, is, sort| handed::take(fd, is, sort).map(Owned);
                // Bells are all one file to fstat.
                let bell = |text| {
                    let fd = number(text)?;
                    take(fd, identity(fd), Sort::Bell)
                };
                let memfd = take(memfd, is, Sort::Memory)?;
                Pipe::open_hidden(false, memfd, [bell(first)?, bell(second)?]).ok()?
            }
        };
        let head = life::adopt_hidden(pipe, side, socket.number()).ok()?;
        let flags = number(flags)?;
        let phase = if flags & 1 != 0 {
            Phase::Open
        } else {
            Phase::Asked
        };
        let holders = head.words().holders.load(Ordering::Relaxed);
        let mut link = Link::new(head, socket, phase, from_hex(remote)?);
        head.words().holders.store(holders.max(1), Ordering::SeqCst);
        [link.released, link.peer_released, link.parted, link.over] =
            [2, 4, 8, 16].map(|bit| flags & bit != 0);
        link.local = Some(from_hex(local)?).filter(|local| !local.is_empty());
        Some(link)
    }
}

/// A descriptor that stays open, as the next image is told of it: its number, and what tells it from another file.
pub fn named(fd: i32) -> String {
    format!("{fd}.{}", identity(fd))
}

/// What [`named`] has said, hidden. `None`: it is not there any more.
pub fn taken(text: &str, sort: Sort) -> Option<i32> {
    let (fd, is) = text.split_once('.')?;
    handed::take(fd.parse().ok()?, is.parse().ok()?, sort)
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
        .collect()
}
