//! What a provider tells its user: indications, confirmations and acknowledgements.

use crate::prim::*;
use crate::wire::{Checked, Malformed, Message, prim_of, primitives};

/// A struct of which each field is a word, and its words in a structure.
macro_rules! info {
    ($(#[$about:meta])* $info:ident { $($(#[$doc:meta])* $field:ident: $type:ty = $kind:ident($at:literal),)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $info {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Checked<'_> {
            /// `start`: where the struct T_info_ack begins.
            fn info(&self, start: usize) -> Result<$info, Malformed> {
                Ok($info { $($field: self.$kind(start + $at)?),* })
            }
        }

        impl Message<'_> {
            fn info(&mut self, start: usize, info: $info) {
                self.signed(start, T_INFO_ACK);
                $(self.$kind(start + $at, info.$field);)*
            }
        }
    };
}

info! {
    /// What a provider is and can do: T_INFO_ACK, the source of struct t_info. Sizes are in bytes, T_INFINITE or T_INVALID.
    Info {
        tsdu: i32 = signed(1),
        etsdu: i32 = signed(2),
        cdata: i32 = signed(3),
        ddata: i32 = signed(4),
        addr: i32 = signed(5),
        opt: i32 = signed(6),
        tidu: i32 = signed(7),
        /// T_COTS, T_COTS_ORD or T_CLTS.
        serv: i32 = signed(8),
        /// A TS_ state.
        state: u32 = unsigned(9),
        /// SENDZERO and the like.
        provider_flag: i32 = signed(10),
    }
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
        T_INFO_ACK[11] high => InfoAck { info: Info = info(0) },
        /// `qlen` is CONIND_number.
        T_BIND_ACK[4] high => BindAck { addr: &'a [u8] = part(1), qlen: u32 = unsigned(3) },
        T_ERROR_ACK[4] high => ErrorAck { prim: i32 = signed(1), tli: i32 = signed(2), unix: i32 = signed(3) },
        T_OK_ACK[2] high => OkAck { prim: i32 = signed(1) },
        T_OPTMGMT_ACK[4] high => OptmgmtAck { opts: &'a [u8] = part(1), flags: i32 = signed(3) },
        T_ADDR_ACK[5] high => AddrAck { local: &'a [u8] = part(1), remote: &'a [u8] = part(3) },
        /// `bits` are TC1_ bits: which of the other two count.
        T_CAPABILITY_ACK[14] high => CapabilityAck {
            bits: u32 = unsigned(1),
            info: Info = info(2),
            acceptor: u32 = unsigned(13)
        },
    }
}
