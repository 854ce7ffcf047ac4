//! Sockets of former connections, kept by the listener that accepted them: a caller who has been here asks again by the same
//! socket, for the same pipe, and nothing has to be made or passed. They stay in the listener's epoll set.
//!
//! Closed with the listener, and for good when the process is copied: a request must not come to somebody who does not look.

use headwater_host::guarded::Private;
use headwater_streams::pipe::Pipe;

use super::{Owned, pool};

/// Sockets kept; the oldest goes first.
const MOST: usize = 32;

pub struct Line {
    pub socket: Owned,
    pub pipe: &'static Pipe,
}

/// `None` once it is closed.
pub struct IdleSockets(Private<Option<Vec<Line>>>);

impl IdleSockets {
    pub fn new(open: bool) -> IdleSockets {
        let idle_sockets = IdleSockets(Private::new(None));
        idle_sockets.0.with(|lines| *lines = open.then(Vec::new));
        idle_sockets
    }

    pub fn is_open(&self) -> bool {
        self.0.with(|lines| lines.is_some())
    }

    /// Keeps a socket whose connection is over, or gives it back.
    pub fn give(&self, socket: Owned, pipe: &'static Pipe) -> Result<(), Owned> {
        let mut given = Some(Line { socket, pipe });
        let oldest = self.0.with(|lines| {
            let lines = lines.as_mut()?;
            lines.extend(given.take());
            (lines.len() > MOST).then(|| lines.remove(0))
        });
        oldest.into_iter().for_each(Line::end);
        given.map_or(Ok(()), |line| Err(line.socket))
    }

    /// Something came by the socket `fd`.
    pub fn take(&self, fd: i32) -> Option<Line> {
        self.0.with(|lines| {
            let mut found = lines
                .as_mut()?
                .extract_if(.., |line| line.socket.number() == fd);
            found.next()
        })
    }

    pub fn close(&self) {
        self.0
            .with(Option::take)
            .into_iter()
            .flatten()
            .for_each(Line::end);
    }
}

impl Line {
    /// The caller has gone, or there are too many.
    pub fn end(self) {
        drop(self.socket);
        pool::forget(self.pipe);
    }
}
