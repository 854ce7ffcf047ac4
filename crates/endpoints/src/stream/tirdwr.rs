//! tirdwr(7M): read(2) and write(2) on an established connection.

use core::ffi::c_int;
use std::cell::Cell;

use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_DATA, M_HANGUP, M_PCPROTO, M_PROTO};
use headwater_streams::exec::{Info, Module, OpenFlag, Queue};
use headwater_tpi::prim::NO_SEQUENCE;
use headwater_tpi::state::State;
use headwater_tpi::{Indication, Request};

use super::{STREAMS, acceptor, id};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// May send more.
    There,
    /// T_ORDREL_IND has come.
    Released,
    /// T_DISCON_IND has come.
    Gone,
}

/// What a message of the provider is to a reader.
enum Reads {
    As(Message),
    Nothing,
    Hangup,
    Error,
}

pub struct Tirdwr {
    peer: Cell<Peer>,
    /// Something came that can't be read or written: EPROTO for good.
    spoiled: Cell<bool>,
}

impl Module for Tirdwr {
    const INFO: Info = Info::new(id::TIRDWR, c"tirdwr");

    /// EPROTO unless there is a connection, and nothing but data waits at the head.
    fn open(q: Queue, _: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        if flag != OpenFlag::Module {
            return Err(libc::EINVAL);
        }
        let module = Tirdwr {
            peer: Cell::new(Peer::There),
            spoiled: Cell::new(false),
        };
        use State::{DataXfer, WindOrdrel, WreqOrdrel};
        let end = STREAMS.enter().get(&acceptor(q)).map(|open| open.end);
        let state = end.map(|end| end.state());
        let connected = matches!(state, None | Some(Ok(DataXfer | WindOrdrel | WreqOrdrel)));
        // The peer may have gone since; what tells that waits at the head.
        let waits = q.next().is_some_and(|head| head.first().is_some());
        if !connected && !waits || !module.convert_waiting(q) {
            return Err(libc::EPROTO);
        }
        Ok(module)
    }

    /// What the peer's end of the connection asks for; a connection that both ends hold is ended.
    fn close(&self, q: Queue, _: c_int) {
        let request = match self.peer.get() {
            Peer::There => Request::Discon { seq: NO_SEQUENCE },
            Peer::Released => Request::Ordrel,
            Peer::Gone => return,
        };
        // Other processes have the connection: it is not ours to end.
        let end = STREAMS.enter().get(&acceptor(q)).map(|open| open.end);
        if end.is_some_and(|end| !end.is_last_holder()) {
            return;
        }
        self.peer.set(Peer::Gone);
        self.spoiled.set(true);
        q.write()
            .putnext(Message::from_bytes(M_PROTO, &request.encode()));
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_DATA if self.spoiled.get() || m.data_len() == 0 => {}
            M_PROTO | M_PCPROTO => match Request::decode(m.bytes()) {
                Ok(Request::Data { .. }) => q.putnext(m),
                _ => self.spoil(q.read()),
            },
            _ => q.putnext(m),
        }
    }

    fn rput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_DATA | M_PROTO | M_PCPROTO if self.spoiled.get() => {}
            M_PROTO | M_PCPROTO => match self.read_as(m) {
                Reads::As(m) => q.putnext(m),
                Reads::Nothing => {}
                Reads::Hangup => q.putnext(Message::new(M_HANGUP, 0)),
                Reads::Error => self.spoil(q),
            },
            M_HANGUP => {
                self.peer.set(Peer::Gone);
                q.putnext(m);
            }
            _ => q.putnext(m),
        }
    }
}

impl Tirdwr {
    fn spoil(&self, q: Queue) {
        let errno = libc::EPROTO as u8;
        self.spoiled.set(true);
        q.putnext(Message::error(errno, errno));
    }

    fn read_as(&self, mut m: Message) -> Reads {
        match Indication::decode(m.bytes()) {
            // A message of no bytes would be the end.
            Ok(Indication::DataInd { .. }) => match m.take_rest() {
                Some(data) if data.data_len() > 0 => Reads::As(data),
                _ => Reads::Nothing,
            },
            Ok(Indication::OrdrelInd) => {
                self.peer.set(Peer::Released);
                Reads::As(Message::data(&[]))
            }
            Ok(Indication::DisconInd { .. }) => {
                self.peer.set(Peer::Gone);
                Reads::Hangup
            }
            Ok(Indication::OkAck { .. }) => Reads::Nothing,
            _ => Reads::Error,
        }
    }

    /// T_DATA_IND that wait at the head already become data. False, and all is as it was, if something else waits there.
    fn convert_waiting(&self, q: Queue) -> bool {
        let Some(head) = q.next() else { return true };
        let mut waiting = Vec::new();
        while let Some(m) = head.getq() {
            waiting.push(m);
        }
        let is_data = |m: &Message| match m.kind() {
            M_PROTO | M_PCPROTO => {
                let told = Indication::decode(m.bytes());
                matches!(told, Ok(Indication::DataInd { .. }))
            }
            _ => true,
        };
        let good = waiting.iter().all(is_data);
        for m in waiting {
            let reads = match m.kind() {
                M_PROTO | M_PCPROTO if good => self.read_as(m),
                _ => Reads::As(m),
            };
            if let Reads::As(m) = reads {
                head.putq(m);
            }
        }
        good
    }
}
