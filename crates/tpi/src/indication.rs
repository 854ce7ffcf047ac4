//! What a provider tells its user: indications, confirmations and acknowledgements.

use crate::prim::*;
use crate::wire::{Checked, Malformed, Message, prim_of, primitives};

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

primitives! {
    /// A primitive from the provider, read in place. Data of T_DATA_IND, T_UNITDATA_IND and the like follows in M_DATA blocks.
    Indication<'a> {
        T_CONN_IND[6] => ConnInd { src: &'a [u8] = part(1), opts: &'a [u8] = part(3), seq: i32 = signed(5) },
        T_CONN_CON[5] => ConnCon { res: &'a [u8] = part(1), opts: &'a [u8] = part(3) },
        T_DISCON_IND[3] => DisconInd { reason: i32 = signed(1), seq: i32 = signed(2) },
        T_DATA_IND[2] => DataInd { more: bool = more(1) },
        T_EXDATA_IND[2] => ExdataInd { more: bool = more(1) },
        T_OPTDATA_IND[4] => OptdataInd {
            more: bool = bit(1, T_ODF_MORE),
            expedited: bool = bit(1, T_ODF_EX),
            opts: &'a [u8] = part(2)
        },
        T_UNITDATA_IND[5] => UnitdataInd { src: &'a [u8] = part(1), opts: &'a [u8] = part(3) },
        T_UDERROR_IND[6] => UderrorInd { dest: &'a [u8] = part(1), opts: &'a [u8] = part(3), error: i32 = signed(5) },
        T_ORDREL_IND[1] => OrdrelInd,
        T_INFO_ACK[11] => InfoAck { info: Info = info(0) },
        /// `qlen` is CONIND_number.
        T_BIND_ACK[4] => BindAck { addr: &'a [u8] = part(1), qlen: u32 = unsigned(3) },
        T_ERROR_ACK[4] => ErrorAck { prim: i32 = signed(1), tli: i32 = signed(2), unix: i32 = signed(3) },
        T_OK_ACK[2] => OkAck { prim: i32 = signed(1) },
        T_OPTMGMT_ACK[4] => OptmgmtAck { opts: &'a [u8] = part(1), flags: i32 = signed(3) },
        T_ADDR_ACK[5] => AddrAck { local: &'a [u8] = part(1), remote: &'a [u8] = part(3) },
        /// `bits` are TC1_ bits: which of the other two count.
        T_CAPABILITY_ACK[14] => CapabilityAck {
            bits: u32 = unsigned(1),
            info: Info = info(2),
            acceptor: u32 = unsigned(13)
        },
    }
}

impl Indication<'_> {
    /// Whether it goes in an M_PCPROTO block instead of M_PROTO: the acknowledgements. T_CAPABILITY_ACK goes in
    /// M_PROTO when its question did.
    pub fn is_high(&self) -> bool {
        matches!(
            self,
            Indication::InfoAck { .. }
                | Indication::BindAck { .. }
                | Indication::ErrorAck { .. }
                | Indication::OkAck { .. }
                | Indication::OptmgmtAck { .. }
                | Indication::AddrAck { .. }
                | Indication::CapabilityAck { .. }
        )
    }
}

impl Checked<'_> {
    /// `start`: where the struct T_info_ack begins.
    fn info(&self, start: usize) -> Result<Info, Malformed> {
        let field = |index| self.signed(start + index);
        Ok(Info {
            tsdu: field(1)?,
            etsdu: field(2)?,
            cdata: field(3)?,
            ddata: field(4)?,
            addr: field(5)?,
            opt: field(6)?,
            tidu: field(7)?,
            serv: field(8)?,
            state: self.unsigned(start + 9)?,
            provider_flag: field(10)?,
        })
    }
}

impl Message<'_> {
    fn info(&mut self, start: usize, info: Info) {
        self.signed(start, T_INFO_ACK);
        let fields = [
            info.tsdu,
            info.etsdu,
            info.cdata,
            info.ddata,
            info.addr,
            info.opt,
            info.tidu,
            info.serv,
            info.state.cast_signed(),
            info.provider_flag,
        ];
        for (field, index) in fields.into_iter().zip(start + 1..) {
            self.signed(index, field);
        }
    }
}
