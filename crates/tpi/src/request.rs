//! What a transport user asks of its provider.

use crate::prim::*;
use crate::wire::{Checked, Malformed, message, prim_of};

/// A primitive from the user, read in place. Data of T_DATA_REQ, T_UNITDATA_REQ and the like follows in M_DATA blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    Conn {
        dest: &'a [u8],
        opts: &'a [u8],
    },
    ConnRes {
        acceptor: u32,
        opts: &'a [u8],
        seq: i32,
    },
    Discon {
        seq: i32,
    },
    Data {
        more: bool,
    },
    Exdata {
        more: bool,
    },
    OptData {
        more: bool,
        expedited: bool,
        opts: &'a [u8],
    },
    Info,
    /// `qlen` is CONIND_number.
    Bind {
        addr: &'a [u8],
        qlen: u32,
    },
    Unbind,
    Unitdata {
        dest: &'a [u8],
        opts: &'a [u8],
    },
    Optmgmt {
        flags: i32,
        opts: &'a [u8],
    },
    Ordrel,
    Addr,
    /// `bits` are TC1_ bits.
    Capability {
        bits: u32,
    },
}

impl<'a> Request<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Request<'a>, Malformed> {
        let prim = prim_of(bytes)?;
        let checked = |words| Checked::new(bytes, prim, words);
        Ok(match prim {
            T_CONN_REQ => {
                let at = checked(5)?;
                Request::Conn {
                    dest: at.part(1)?,
                    opts: at.part(3)?,
                }
            }
            T_CONN_RES => {
                let at = checked(5)?;
                Request::ConnRes {
                    acceptor: at.unsigned(1),
                    opts: at.part(2)?,
                    seq: at.signed(4),
                }
            }
            T_DISCON_REQ => Request::Discon {
                seq: checked(2)?.signed(1),
            },
            T_DATA_REQ => Request::Data {
                more: checked(2)?.flag(1),
            },
            T_EXDATA_REQ => Request::Exdata {
                more: checked(2)?.flag(1),
            },
            T_OPTDATA_REQ => {
                let at = checked(4)?;
                let flags = at.unsigned(1);
                let (more, expedited) = (flags & T_ODF_MORE != 0, flags & T_ODF_EX != 0);
                Request::OptData {
                    more,
                    expedited,
                    opts: at.part(2)?,
                }
            }
            T_INFO_REQ => Request::Info,
            T_BIND_REQ => {
                let at = checked(4)?;
                Request::Bind {
                    addr: at.part(1)?,
                    qlen: at.unsigned(3),
                }
            }
            T_UNBIND_REQ => Request::Unbind,
            T_UNITDATA_REQ => {
                let at = checked(5)?;
                Request::Unitdata {
                    dest: at.part(1)?,
                    opts: at.part(3)?,
                }
            }
            T_OPTMGMT_REQ => {
                let at = checked(4)?;
                Request::Optmgmt {
                    opts: at.part(1)?,
                    flags: at.signed(3),
                }
            }
            T_ORDREL_REQ => Request::Ordrel,
            T_ADDR_REQ => Request::Addr,
            T_CAPABILITY_REQ => Request::Capability {
                bits: checked(2)?.unsigned(1),
            },
            other => return Err(Malformed::Unknown(other)),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let prim = self.prim().cast_unsigned();
        match *self {
            Request::Conn { dest, opts } | Request::Unitdata { dest, opts } => {
                message(&[prim, 0, 0, 0, 0], &[(1, dest), (3, opts)])
            }
            Request::ConnRes {
                acceptor,
                opts,
                seq,
            } => message(&[prim, acceptor, 0, 0, seq.cast_unsigned()], &[(2, opts)]),
            Request::Discon { seq } => message(&[prim, seq.cast_unsigned()], &[]),
            Request::Data { more } | Request::Exdata { more } => message(&[prim, more.into()], &[]),
            Request::OptData {
                more,
                expedited,
                opts,
            } => message(&[prim, data_flag(more, expedited), 0, 0], &[(2, opts)]),
            Request::Bind { addr, qlen } => message(&[prim, 0, 0, qlen], &[(1, addr)]),
            Request::Optmgmt { flags, opts } => {
                message(&[prim, 0, 0, flags.cast_unsigned()], &[(1, opts)])
            }
            Request::Capability { bits } => message(&[prim, bits], &[]),
            Request::Info | Request::Unbind | Request::Ordrel | Request::Addr => {
                message(&[prim], &[])
            }
        }
    }

    /// PRIM_type.
    pub fn prim(&self) -> i32 {
        match self {
            Request::Conn { .. } => T_CONN_REQ,
            Request::ConnRes { .. } => T_CONN_RES,
            Request::Discon { .. } => T_DISCON_REQ,
            Request::Data { .. } => T_DATA_REQ,
            Request::Exdata { .. } => T_EXDATA_REQ,
            Request::OptData { .. } => T_OPTDATA_REQ,
            Request::Info => T_INFO_REQ,
            Request::Bind { .. } => T_BIND_REQ,
            Request::Unbind => T_UNBIND_REQ,
            Request::Unitdata { .. } => T_UNITDATA_REQ,
            Request::Optmgmt { .. } => T_OPTMGMT_REQ,
            Request::Ordrel => T_ORDREL_REQ,
            Request::Addr => T_ADDR_REQ,
            Request::Capability { .. } => T_CAPABILITY_REQ,
        }
    }

    /// Whether it goes in an M_PCPROTO block instead of M_PROTO. T_CAPABILITY_REQ may go in either, and its answer comes
    /// in the same.
    pub fn is_high(&self) -> bool {
        matches!(
            self,
            Request::Info | Request::Addr | Request::Capability { .. }
        )
    }
}

pub(crate) fn data_flag(more: bool, expedited: bool) -> u32 {
    let set = |on, bit| if on { bit } else { 0 };
    set(more, T_ODF_MORE) | set(expedited, T_ODF_EX)
}
