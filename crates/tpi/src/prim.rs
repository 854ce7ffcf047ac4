//! Numbers of <sys/tihdr.h>: primitives, service types, sizes without a number, and flag bits.

pub const T_CONN_REQ: i32 = 0;
pub const T_CONN_RES: i32 = 1;
pub const T_DISCON_REQ: i32 = 2;
pub const T_DATA_REQ: i32 = 3;
pub const T_EXDATA_REQ: i32 = 4;
pub const T_INFO_REQ: i32 = 5;
pub const T_BIND_REQ: i32 = 6;
pub const T_UNBIND_REQ: i32 = 7;
pub const T_UNITDATA_REQ: i32 = 8;
pub const T_OPTMGMT_REQ: i32 = 9;
pub const T_ORDREL_REQ: i32 = 10;
pub const T_CONN_IND: i32 = 11;
pub const T_CONN_CON: i32 = 12;
pub const T_DISCON_IND: i32 = 13;
pub const T_DATA_IND: i32 = 14;
pub const T_EXDATA_IND: i32 = 15;
pub const T_INFO_ACK: i32 = 16;
pub const T_BIND_ACK: i32 = 17;
pub const T_ERROR_ACK: i32 = 18;
pub const T_OK_ACK: i32 = 19;
pub const T_UNITDATA_IND: i32 = 20;
pub const T_UDERROR_IND: i32 = 21;
pub const T_OPTMGMT_ACK: i32 = 22;
pub const T_ORDREL_IND: i32 = 23;
pub const T_OPTDATA_REQ: i32 = 24;
pub const T_ADDR_REQ: i32 = 25;
pub const T_OPTDATA_IND: i32 = 26;
pub const T_ADDR_ACK: i32 = 27;
pub const T_CAPABILITY_REQ: i32 = 28;
pub const T_CAPABILITY_ACK: i32 = 29;

/// SERV_type: connections.
pub const T_COTS: i32 = 1;
/// SERV_type: connections with orderly release.
pub const T_COTS_ORD: i32 = 2;
/// SERV_type: datagrams.
pub const T_CLTS: i32 = 3;

/// A size without limit.
pub const T_INFINITE: i32 = -1;
/// A size of something that the provider has not.
pub const T_INVALID: i32 = -2;

/// PROVIDER_flag: data units of no bytes may be sent.
pub const SENDZERO: i32 = 0x001;
/// PROVIDER_flag: expedited data stays in its place among the data.
pub const EXPINLINE: i32 = 0x002;
/// PROVIDER_flag: options are struct t_opthdr lists.
pub const XPG4_1: i32 = 0x004;

/// DATA_flag of T_OPTDATA: the data unit goes on.
pub const T_ODF_MORE: u32 = 0x1;
/// DATA_flag of T_OPTDATA: the data is expedited.
pub const T_ODF_EX: u32 = 0x2;

/// CAP_bits1: the T_INFO_ACK part is wanted or there.
pub const TC1_INFO: u32 = 0x1;
/// CAP_bits1: ACCEPTOR_id is wanted or there.
pub const TC1_ACCEPTOR_ID: u32 = 0x2;

/// SEQ_number of a disconnection that answers no connect indication.
pub const NO_SEQUENCE: i32 = -1;

/// The name of a primitive, as in <sys/tihdr.h>.
pub fn name(prim: i32) -> Option<&'static str> {
    usize::try_from(prim)
        .ok()
        .and_then(|number| NAMES.get(number))
        .copied()
}

const NAMES: [&str; 30] = [
    "T_CONN_REQ",
    "T_CONN_RES",
    "T_DISCON_REQ",
    "T_DATA_REQ",
    "T_EXDATA_REQ",
    "T_INFO_REQ",
    "T_BIND_REQ",
    "T_UNBIND_REQ",
    "T_UNITDATA_REQ",
    "T_OPTMGMT_REQ",
    "T_ORDREL_REQ",
    "T_CONN_IND",
    "T_CONN_CON",
    "T_DISCON_IND",
    "T_DATA_IND",
    "T_EXDATA_IND",
    "T_INFO_ACK",
    "T_BIND_ACK",
    "T_ERROR_ACK",
    "T_OK_ACK",
    "T_UNITDATA_IND",
    "T_UDERROR_IND",
    "T_OPTMGMT_ACK",
    "T_ORDREL_IND",
    "T_OPTDATA_REQ",
    "T_ADDR_REQ",
    "T_OPTDATA_IND",
    "T_ADDR_ACK",
    "T_CAPABILITY_REQ",
    "T_CAPABILITY_ACK",
];
