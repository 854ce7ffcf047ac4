//! Numbers of <sys/tihdr.h>: primitives, service types, sizes without a number, and flag bits.

named! {
    NAMES:
    T_CONN_REQ = 0,
    T_CONN_RES = 1,
    T_DISCON_REQ = 2,
    T_DATA_REQ = 3,
    T_EXDATA_REQ = 4,
    T_INFO_REQ = 5,
    T_BIND_REQ = 6,
    T_UNBIND_REQ = 7,
    T_UNITDATA_REQ = 8,
    T_OPTMGMT_REQ = 9,
    T_ORDREL_REQ = 10,
    T_CONN_IND = 11,
    T_CONN_CON = 12,
    T_DISCON_IND = 13,
    T_DATA_IND = 14,
    T_EXDATA_IND = 15,
    T_INFO_ACK = 16,
    T_BIND_ACK = 17,
    T_ERROR_ACK = 18,
    T_OK_ACK = 19,
    T_UNITDATA_IND = 20,
    T_UDERROR_IND = 21,
    T_OPTMGMT_ACK = 22,
    T_ORDREL_IND = 23,
    T_OPTDATA_REQ = 24,
    T_ADDR_REQ = 25,
    T_OPTDATA_IND = 26,
    T_ADDR_ACK = 27,
    T_CAPABILITY_REQ = 28,
    T_CAPABILITY_ACK = 29,
}

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
