//! shutdown, close, linger.

use core::time::Duration;

use headwater_host::sys;
use headwater_sctp::Down;
use headwater_sctp_stack::until;

use super::{Core, For, Socket, State, Style, remote};

impl Socket {
    /// Of a one-to-one socket: SHUT_WR ends the association when everything is sent, SHUT_RD only what is received here. ENOTCONN.
    pub fn shutdown(&self, how: i32) -> sys::Result<()> {
        elsewhere!(self.shutdown(how));
        if !(libc::SHUT_RD..=libc::SHUT_RDWR).contains(&how) {
            return Err(libc::EINVAL);
        }
        let mut core = self.core.enter();
        core.gather();
        if core.style == Style::One && core.listening {
            // As tcp(7): it listens no more.
            if how != libc::SHUT_WR {
                core.stop();
            }
            drop(core);
            self.changed();
            return Ok(());
        }
        let style = core.style;
        match core.only().filter(|_| style == Style::One) {
            Some(assoc) if assoc.state == State::Up => {}
            // Both have shut down.
            Some(assoc) if matches!(assoc.down, Some(Down::Shutdown)) => return Ok(()),
            _ => return Err(libc::ENOTCONN),
        }
        if how != libc::SHUT_WR {
            core.read_shut = true;
        }
        if how != libc::SHUT_RD
            && let Some(assoc) = core.only()
        {
            assoc.released = true;
            assoc.body.shutdown();
        }
        drop(core);
        self.changed();
        Ok(())
    }

    /// The last descriptor is gone. What was sent is still delivered, unless SO_LINGER says 0 or something unread is lost: then the
    /// association is aborted. With another SO_LINGER it waits so long.
    pub fn close(&self) {
        if remote::closing(self) {
            return;
        }
        let mut core = self.core.enter();
        if core.closed {
            return;
        }
        let linger = core.options.linger;
        core.stop();
        core.end_all(linger == Some(0));
        let waits = linger.filter(|&s| s > 0);
        drop(core);
        if let Some(seconds) = waits {
            let until = until(Some(Duration::from_secs(seconds.into())));
            let _ = self.wait_for(until, For::News, false, |core| {
                core.gather();
                core.discard();
                let open = core.assocs.values().any(|a| a.state != State::Over);
                (!open).then_some(Ok(()))
            });
        }
        let mut core = self.core.enter();
        core.closed = true;
        core.tally.tell();
        core.ids_by_packets.clear();
        core.ids_by_memory.clear();
        let gone = (
            core::mem::take(&mut core.assocs),
            core.port.take(),
            core.memory_listener.take(),
            core::mem::take(&mut core.names),
        );
        drop(core);
        self.changed();
        drop(gone);
    }
}

impl Core {
    fn stop(&mut self) {
        self.listening = false;
        self.memory_listener = None;
        while let Some(id) = self.waiting.pop_front() {
            if let Some(mut assoc) = self.remove(id) {
                assoc.body.abort(b"");
            }
        }
        if let Some(port) = &mut self.port {
            let _ = port.listen(0);
        }
        self.changes += 1;
    }

    /// What still comes is for nobody, and would hold up the end behind it.
    fn discard(&mut self) {
        let mut bytes = vec![0u8; 64 << 10];
        let into = [sys::buffer(bytes.as_mut_ptr(), bytes.len())];
        for assoc in self.assocs.values_mut() {
            while assoc.body.readable() && matches!(assoc.body.receive(&into), Ok(Some(_))) {}
        }
    }

    fn end_all(&mut self, abort: bool) {
        for assoc in self.assocs.values_mut() {
            if assoc.state == State::Over {
                continue;
            }
            if abort || assoc.body.readable() {
                assoc.body.abort(b"");
            } else if !assoc.released {
                assoc.body.shutdown();
            }
        }
    }
}
