//! sockmod(7M), as far as a TPI stream has a use for it: programs push it and ask for SI_GETUDATA. Everything else passes.

use core::ffi::c_int;
use std::cell::RefCell;

use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_IOCTL, M_PCPROTO};
use headwater_streams::drivers::reply;
use headwater_streams::exec::{Info, Module, OpenFlag, Queue};
use headwater_tpi::{Indication, Request};

use super::id;

/// ioctl: gives a struct si_udata, of the provider's sizes.
const SI_GETUDATA: c_int = (b'I' as c_int) << 8 | 110;

pub struct Sockmod {
    /// SI_GETUDATA, while T_INFO_ACK is awaited.
    asked: RefCell<Option<Message>>,
}

impl Module for Sockmod {
    const INFO: Info = Info::new(id::SOCKMOD, c"sockmod");

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        if flag != OpenFlag::Module {
            return Err(libc::EINVAL);
        }
        Ok(Sockmod {
            asked: RefCell::new(None),
        })
    }

    fn wput(&self, q: Queue, m: Message) {
        let asked = m.kind() == M_IOCTL && reply::command(&m) == Some(SI_GETUDATA);
        if !asked || reply::is_transparent(&m) {
            return q.putnext(m);
        }
        self.asked.replace(Some(m));
        q.putnext(Message::from_bytes(M_PCPROTO, &Request::Info.encode()));
    }

    fn rput(&self, q: Queue, m: Message) {
        let is_info = m.kind() == M_PCPROTO;
        match Indication::decode(m.bytes()) {
            Ok(Indication::InfoAck { info }) if is_info && self.asked.borrow().is_some() => {
                let (state, options) = (0, 0);
                let udata = [
                    info.tidu, info.addr, info.opt, info.etsdu, info.serv, state, options,
                    info.tsdu,
                ];
                if let Some(ioctl) = self.asked.take() {
                    reply::give_bytes(q.write(), ioctl, 0, &udata.map(i32::to_ne_bytes).concat());
                }
            }
            _ => q.putnext(m),
        }
    }
}
