//! What a provider tells its user: indications, confirmations and acknowledgements.

use crate::prim::*;
use crate::request::data_flag;
use crate::wire::{Checked, Malformed, message, prim_of};

/// What a provider is and can do: T_INFO_ACK, the source of struct t_info. Sizes are in bytes, T_INFINITE or T_INVALID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pub tsdu: i32,
    pub etsdu: i32,
    pub cdata: i32,
    pub ddata: i32,
    pub addr: i32,
    pub opt: i32,
    pub tidu: i32,
    /// T_COTS, T_COTS_ORD or T_CLTS.
    pub serv: i32,
    /// A TS_ state.
    pub state: u32,
    /// SENDZERO and the like.
    pub provider_flag: i32,
}

/// A primitive from the provider, read in place. Data of T_DATA_IND, T_UNITDATA_IND and the like follows in M_DATA blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indication<'a> {
    ConnInd {
        src: &'a [u8],
        opts: &'a [u8],
        seq: i32,
    },
    ConnCon {
        res: &'a [u8],
        opts: &'a [u8],
    },
    DisconInd {
        reason: i32,
        seq: i32,
    },
    DataInd {
        more: bool,
    },
    ExdataInd {
        more: bool,
    },
    OptdataInd {
        more: bool,
        expedited: bool,
        opts: &'a [u8],
    },
    UnitdataInd {
        src: &'a [u8],
        opts: &'a [u8],
    },
    UderrorInd {
        dest: &'a [u8],
        opts: &'a [u8],
        error: i32,
    },
    OrdrelInd,
    InfoAck(Info),
    /// `qlen` is CONIND_number.
    BindAck {
        addr: &'a [u8],
        qlen: u32,
    },
    ErrorAck {
        prim: i32,
        tli: i32,
        unix: i32,
    },
    OkAck {
        prim: i32,
    },
    OptmgmtAck {
        flags: i32,
        opts: &'a [u8],
    },
    AddrAck {
        local: &'a [u8],
        remote: &'a [u8],
    },
    /// `bits` are TC1_ bits: which of the other two count.
    CapabilityAck {
        bits: u32,
        info: Info,
        acceptor: u32,
    },
}

impl<'a> Indication<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Indication<'a>, Malformed> {
        let prim = prim_of(bytes)?;
        let checked = |words| Checked::new(bytes, prim, words);
        Ok(match prim {
            T_CONN_IND => {
                let at = checked(6)?;
                Indication::ConnInd {
                    src: at.part(1)?,
                    opts: at.part(3)?,
                    seq: at.signed(5),
                }
            }
            T_CONN_CON => {
                let at = checked(5)?;
                Indication::ConnCon {
                    res: at.part(1)?,
                    opts: at.part(3)?,
                }
            }
            T_DISCON_IND => {
                let at = checked(3)?;
                Indication::DisconInd {
                    reason: at.signed(1),
                    seq: at.signed(2),
                }
            }
            T_DATA_IND => Indication::DataInd {
                more: checked(2)?.flag(1),
            },
            T_EXDATA_IND => Indication::ExdataInd {
                more: checked(2)?.flag(1),
            },
            T_OPTDATA_IND => {
                let at = checked(4)?;
                let flags = at.unsigned(1);
                let (more, expedited) = (flags & T_ODF_MORE != 0, flags & T_ODF_EX != 0);
                Indication::OptdataInd {
                    more,
                    expedited,
                    opts: at.part(2)?,
                }
            }
            T_UNITDATA_IND => {
                let at = checked(5)?;
                Indication::UnitdataInd {
                    src: at.part(1)?,
                    opts: at.part(3)?,
                }
            }
            T_UDERROR_IND => {
                let at = checked(6)?;
                Indication::UderrorInd {
                    dest: at.part(1)?,
                    opts: at.part(3)?,
                    error: at.signed(5),
                }
            }
            T_ORDREL_IND => Indication::OrdrelInd,
            T_INFO_ACK => Indication::InfoAck(Info::read(&checked(INFO_WORDS)?, 0)),
            T_BIND_ACK => {
                let at = checked(4)?;
                Indication::BindAck {
                    addr: at.part(1)?,
                    qlen: at.unsigned(3),
                }
            }
            T_ERROR_ACK => {
                let at = checked(4)?;
                Indication::ErrorAck {
                    prim: at.signed(1),
                    tli: at.signed(2),
                    unix: at.signed(3),
                }
            }
            T_OK_ACK => Indication::OkAck {
                prim: checked(2)?.signed(1),
            },
            T_OPTMGMT_ACK => {
                let at = checked(4)?;
                Indication::OptmgmtAck {
                    opts: at.part(1)?,
                    flags: at.signed(3),
                }
            }
            T_ADDR_ACK => {
                let at = checked(5)?;
                Indication::AddrAck {
                    local: at.part(1)?,
                    remote: at.part(3)?,
                }
            }
            T_CAPABILITY_ACK => {
                let at = checked(INFO_WORDS + 3)?;
                let (bits, acceptor) = (at.unsigned(1), at.unsigned(INFO_WORDS + 2));
                Indication::CapabilityAck {
                    bits,
                    info: Info::read(&at, 2),
                    acceptor,
                }
            }
            other => return Err(Malformed::Unknown(other)),
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let prim = self.prim().cast_unsigned();
        match *self {
            Indication::ConnInd {
                src: addr,
                opts,
                seq: last,
            }
            | Indication::UderrorInd {
                dest: addr,
                opts,
                error: last,
            } => message(
                &[prim, 0, 0, 0, 0, last.cast_unsigned()],
                &[(1, addr), (3, opts)],
            ),
            Indication::ConnCon {
                res: first,
                opts: second,
            }
            | Indication::UnitdataInd {
                src: first,
                opts: second,
            }
            | Indication::AddrAck {
                local: first,
                remote: second,
            } => message(&[prim, 0, 0, 0, 0], &[(1, first), (3, second)]),
            Indication::DisconInd { reason, seq } => {
                message(&[prim, reason.cast_unsigned(), seq.cast_unsigned()], &[])
            }
            Indication::DataInd { more } | Indication::ExdataInd { more } => {
                message(&[prim, more.into()], &[])
            }
            Indication::OptdataInd {
                more,
                expedited,
                opts,
            } => message(&[prim, data_flag(more, expedited), 0, 0], &[(2, opts)]),
            Indication::OrdrelInd => message(&[prim], &[]),
            Indication::InfoAck(info) => message(&info.words(), &[]),
            Indication::BindAck { addr, qlen } => message(&[prim, 0, 0, qlen], &[(1, addr)]),
            Indication::ErrorAck {
                prim: refused,
                tli,
                unix,
            } => message(
                &[
                    prim,
                    refused.cast_unsigned(),
                    tli.cast_unsigned(),
                    unix.cast_unsigned(),
                ],
                &[],
            ),
            Indication::OkAck { prim: done } => message(&[prim, done.cast_unsigned()], &[]),
            Indication::OptmgmtAck { flags, opts } => {
                message(&[prim, 0, 0, flags.cast_unsigned()], &[(1, opts)])
            }
            Indication::CapabilityAck {
                bits,
                info,
                acceptor,
            } => {
                let mut words = vec![prim, bits];
                words.extend(info.words());
                words.push(acceptor);
                message(&words, &[])
            }
        }
    }

    /// PRIM_type.
    pub fn prim(&self) -> i32 {
        match self {
            Indication::ConnInd { .. } => T_CONN_IND,
            Indication::ConnCon { .. } => T_CONN_CON,
            Indication::DisconInd { .. } => T_DISCON_IND,
            Indication::DataInd { .. } => T_DATA_IND,
            Indication::ExdataInd { .. } => T_EXDATA_IND,
            Indication::OptdataInd { .. } => T_OPTDATA_IND,
            Indication::UnitdataInd { .. } => T_UNITDATA_IND,
            Indication::UderrorInd { .. } => T_UDERROR_IND,
            Indication::OrdrelInd => T_ORDREL_IND,
            Indication::InfoAck(_) => T_INFO_ACK,
            Indication::BindAck { .. } => T_BIND_ACK,
            Indication::ErrorAck { .. } => T_ERROR_ACK,
            Indication::OkAck { .. } => T_OK_ACK,
            Indication::OptmgmtAck { .. } => T_OPTMGMT_ACK,
            Indication::AddrAck { .. } => T_ADDR_ACK,
            Indication::CapabilityAck { .. } => T_CAPABILITY_ACK,
        }
    }

    /// Whether it goes in an M_PCPROTO block instead of M_PROTO: the acknowledgements. T_CAPABILITY_ACK goes in
    /// M_PROTO when its question did.
    pub fn is_high(&self) -> bool {
        matches!(
            self,
            Indication::InfoAck(_)
                | Indication::BindAck { .. }
                | Indication::ErrorAck { .. }
                | Indication::OkAck { .. }
                | Indication::OptmgmtAck { .. }
                | Indication::AddrAck { .. }
                | Indication::CapabilityAck { .. }
        )
    }
}

/// The size of struct T_info_ack, PRIM_type included.
const INFO_WORDS: usize = 11;

impl Info {
    /// `start`: where the struct T_info_ack begins.
    fn read(at: &Checked<'_>, start: usize) -> Info {
        let field = |index| at.signed(start + index);
        Info {
            tsdu: field(1),
            etsdu: field(2),
            cdata: field(3),
            ddata: field(4),
            addr: field(5),
            opt: field(6),
            tidu: field(7),
            serv: field(8),
            state: at.unsigned(start + 9),
            provider_flag: field(10),
        }
    }

    fn words(&self) -> [u32; INFO_WORDS] {
        let Info {
            tsdu,
            etsdu,
            cdata,
            ddata,
            addr,
            opt,
            tidu,
            serv,
            state,
            provider_flag,
        } = *self;
        let state = state.cast_signed();
        [
            T_INFO_ACK,
            tsdu,
            etsdu,
            cdata,
            ddata,
            addr,
            opt,
            tidu,
            serv,
            state,
            provider_flag,
        ]
        .map(i32::cast_unsigned)
    }
}
