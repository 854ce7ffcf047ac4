//! timod(7M): the ioctls by which TLI asks its provider. A primitive goes down, its acknowledgement comes back as the
//! ioctl's answer. Everything else passes.

use core::ffi::c_int;
use std::cell::{Cell, RefCell};

use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_IOCDATA, M_IOCTL, M_PCPROTO, M_PROTO, Plain};
use headwater_streams::drivers::reply::{self, Argument};
use headwater_streams::exec::{Info, Module, OpenFlag, Queue};
use headwater_tpi::prim::*;
use headwater_tpi::{Indication, Request};

use super::{id, proto};

const TIMOD: c_int = (b'T' as c_int) << 8;
/// ioctl: T_INFO_REQ, T_INFO_ACK.
pub const TI_GETINFO: c_int = TIMOD | 140;
/// ioctl: T_OPTMGMT_REQ, T_OPTMGMT_ACK.
pub const TI_OPTMGMT: c_int = TIMOD | 141;
/// ioctl: T_BIND_REQ, T_BIND_ACK.
pub const TI_BIND: c_int = TIMOD | 142;
/// ioctl: T_UNBIND_REQ, T_OK_ACK.
pub const TI_UNBIND: c_int = TIMOD | 143;
/// ioctl: a struct netbuf, by its address, that is filled in; through I_STR the address alone.
pub const TI_GETMYNAME: c_int = TIMOD | 144;
pub const TI_GETPEERNAME: c_int = TIMOD | 145;
/// ioctl: struct ti_sync_req, struct ti_sync_ack.
pub const TI_SYNC: c_int = TIMOD | 148;
/// ioctl: T_ADDR_REQ, T_ADDR_ACK.
pub const TI_GETADDRS: c_int = TIMOD | 149;
/// ioctl: T_CAPABILITY_REQ, T_CAPABILITY_ACK.
pub const TI_CAPABILITY: c_int = TIMOD | 150;

/// The primitive that each asks with, but for the two of names.
const ASKS: [(c_int, i32); 7] = [
    (TI_GETINFO, T_INFO_REQ),
    (TI_OPTMGMT, T_OPTMGMT_REQ),
    (TI_BIND, T_BIND_REQ),
    (TI_UNBIND, T_UNBIND_REQ),
    (TI_SYNC, T_INFO_REQ),
    (TI_GETADDRS, T_ADDR_REQ),
    (TI_CAPABILITY, T_CAPABILITY_REQ),
];

/// struct netbuf
#[derive(Clone, Copy)]
#[repr(C)]
struct NetBuf {
    maxlen: u32,
    len: u32,
    buf: usize,
}

// SAFETY: integers without padding.
unsafe impl Plain for NetBuf {}

/// The one ioctl that is on its way.
enum Asked {
    Nothing,
    /// The acknowledgement of `prim` is awaited.
    Prim {
        prim: i32,
        cmd: c_int,
        ioctl: Message,
    },
    /// T_ADDR_ACK is awaited, for a transparent request.
    Name {
        cmd: c_int,
        ioctl: Message,
        to: NetBuf,
    },
    /// The name is being copied out; then this is.
    Copied(NetBuf),
}

pub struct Timod {
    asked: RefCell<Asked>,
    /// CONIND_number of the last T_BIND_ACK.
    qlen: Cell<u32>,
}

impl Module for Timod {
    const INFO: Info = Info::new(id::TIMOD, c"timod");

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        if flag != OpenFlag::Module {
            return Err(libc::EINVAL);
        }
        Ok(Timod {
            asked: RefCell::new(Asked::Nothing),
            qlen: Cell::new(0),
        })
    }

    fn wput(&self, q: Queue, m: Message) {
        match (m.kind(), reply::command(&m)) {
            (M_IOCTL | M_IOCDATA, Some(cmd @ (TI_GETMYNAME | TI_GETPEERNAME))) => {
                self.name(q, cmd, m)
            }
            (M_IOCTL, Some(cmd)) => match ASKS.iter().find(|asks| asks.0 == cmd) {
                Some(&(cmd, prim)) => self.ask(q, cmd, prim, m),
                None => q.putnext(m),
            },
            _ => q.putnext(m),
        }
    }

    fn rput(&self, q: Queue, m: Message) {
        if !matches!(m.kind(), M_PROTO | M_PCPROTO) {
            return q.putnext(m);
        }
        let Ok(indication) = Indication::decode(m.bytes()) else {
            return q.putnext(m);
        };
        if let Indication::BindAck { qlen, .. } = indication {
            self.qlen.set(qlen);
        }
        match self.asked.replace(Asked::Nothing) {
            Asked::Prim { prim, cmd, ioctl } if answers(&indication, prim) => {
                self.answer(q.write(), cmd, ioctl, &indication, m.bytes());
            }
            Asked::Name { cmd, ioctl, to } if answers(&indication, T_ADDR_REQ) => {
                self.answer_name(q.write(), cmd, ioctl, to, &indication);
            }
            other => {
                self.asked.replace(other);
                q.putnext(m);
            }
        }
    }
}

/// Is this what a request of number `prim` waits for?
fn answers(indication: &Indication<'_>, prim: i32) -> bool {
    match *indication {
        Indication::ErrorAck { prim: refused, .. } => refused == prim,
        Indication::OkAck { prim: done } => done == prim,
        Indication::InfoAck { .. } => prim == T_INFO_REQ,
        Indication::BindAck { .. } => prim == T_BIND_REQ,
        Indication::OptmgmtAck { .. } => prim == T_OPTMGMT_REQ,
        Indication::AddrAck { .. } => prim == T_ADDR_REQ,
        Indication::CapabilityAck { .. } => prim == T_CAPABILITY_REQ,
        _ => false,
    }
}

impl Timod {
    fn ask(&self, q: Queue, cmd: c_int, prim: i32, m: Message) {
        let data = m.to_data();
        let request = match cmd {
            TI_SYNC => Ok(Request::Info),
            _ => Request::decode(&data),
        };
        match request {
            Ok(request) if request.prim() == prim && !reply::is_transparent(&m) => {
                self.asked.replace(Asked::Prim {
                    prim,
                    cmd,
                    ioctl: m,
                });
                send(q, &request);
            }
            _ => reply::refuse(q, m, libc::EINVAL),
        }
    }

    fn answer(
        &self,
        q: Queue,
        cmd: c_int,
        ioctl: Message,
        indication: &Indication<'_>,
        bytes: &[u8],
    ) {
        match indication {
            // The TLI error in the low byte, errno in the next.
            Indication::ErrorAck { tli, unix, .. } => {
                reply::done(q, ioctl, tli & 0xff | (unix & 0xff) << 8)
            }
            Indication::AddrAck { local, remote } if cmd != TI_GETADDRS => {
                let name = if cmd == TI_GETMYNAME { local } else { remote };
                reply::give_bytes(q, ioctl, 0, name);
            }
            _ if cmd == TI_SYNC => {
                let flags = 0u32;
                let both = [bytes, &self.qlen.get().to_ne_bytes(), &flags.to_ne_bytes()].concat();
                reply::give_bytes(q, ioctl, 0, &both);
            }
            _ => reply::give_bytes(q, ioctl, 0, bytes),
        }
    }

    /// TI_GETMYNAME, TI_GETPEERNAME: netbuf in, T_ADDR_REQ, address out, netbuf out.
    fn name(&self, q: Queue, cmd: c_int, m: Message) {
        if m.kind() == M_IOCTL && !reply::is_transparent(&m) {
            self.asked.replace(Asked::Prim {
                prim: T_ADDR_REQ,
                cmd,
                ioctl: m,
            });
            return send(q, &Request::Addr);
        }
        if m.kind() == M_IOCDATA
            && let Asked::Copied(to) = self.asked.replace(Asked::Nothing)
        {
            return reply::give(q, m, to);
        }
        if let Argument::Is(to, ioctl) = reply::argument::<NetBuf>(q, m) {
            self.asked.replace(Asked::Name { cmd, ioctl, to });
            send(q, &Request::Addr);
        }
    }

    fn answer_name(
        &self,
        q: Queue,
        cmd: c_int,
        ioctl: Message,
        to: NetBuf,
        indication: &Indication<'_>,
    ) {
        let name = match *indication {
            Indication::AddrAck { local, .. } if cmd == TI_GETMYNAME => local,
            Indication::AddrAck { remote, .. } => remote,
            _ => return reply::refuse(q, ioctl, libc::EPROTO),
        };
        if name.len() > to.maxlen as usize {
            return reply::refuse(q, ioctl, libc::EINVAL);
        }
        let Some(step) = reply::step(&ioctl) else {
            return;
        };
        let filled = NetBuf {
            len: name.len() as u32,
            ..to
        };
        if name.is_empty() {
            return reply::give(q, ioctl, filled);
        }
        self.asked.replace(Asked::Copied(filled));
        reply::copy_out(q, ioctl, to.buf, name, step);
    }
}

fn send(q: Queue, request: &Request<'_>) {
    q.putnext(proto(request.is_high(), &request.encode()));
}
