//! What a transport user asks of its provider.

use crate::prim::*;
use crate::wire::{Checked, Malformed, Message, prim_of, primitives};

primitives! {
    /// A primitive from the user, read in place. Data of T_DATA_REQ, T_UNITDATA_REQ and the like follows in M_DATA blocks.
    Request<'a> {
        T_CONN_REQ[5] => Conn { dest: &'a [u8] = part(1), opts: &'a [u8] = part(3) },
        T_CONN_RES[5] => ConnRes { acceptor: u32 = unsigned(1), opts: &'a [u8] = part(2), seq: i32 = signed(4) },
        T_DISCON_REQ[2] => Discon { seq: i32 = signed(1) },
        T_DATA_REQ[2] => Data { more: bool = more(1) },
        T_EXDATA_REQ[2] => Exdata { more: bool = more(1) },
        T_OPTDATA_REQ[4] => OptData {
            more: bool = bit(1, T_ODF_MORE),
            expedited: bool = bit(1, T_ODF_EX),
            opts: &'a [u8] = part(2)
        },
        T_INFO_REQ[1] high => Info,
        /// `qlen` is CONIND_number.
        T_BIND_REQ[4] => Bind { addr: &'a [u8] = part(1), qlen: u32 = unsigned(3) },
        T_UNBIND_REQ[1] => Unbind,
        T_UNITDATA_REQ[5] => Unitdata { dest: &'a [u8] = part(1), opts: &'a [u8] = part(3) },
        T_OPTMGMT_REQ[4] => Optmgmt { opts: &'a [u8] = part(1), flags: i32 = signed(3) },
        T_ORDREL_REQ[1] => Ordrel,
        T_ADDR_REQ[1] high => Addr,
        /// `bits` are TC1_ bits.
        T_CAPABILITY_REQ[2] high => Capability { bits: u32 = unsigned(1) },
    }
}
