//! The structs of <linux/sctp.h>, field by field with their offsets in C.
//!
//! Padding is spelt out, so that every byte of a struct is its own to read and write; addresses are plain bytes, which lie at C's
//! offsets without C's alignment.

#![allow(non_camel_case_types)]

use super::{AssocT, Layout, Storage};

/// Defines structs with their sizes and offsets in C, which are checked.
macro_rules! layout {
    ($($name:ident $size:literal $($packed:ident)? { $($at:literal $field:ident: $kind:ty,)* })*) => {$(
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(C $(, $packed)?)]
        pub struct $name {
            $(pub $field: $kind,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            assert!(0 $(+ size_of::<$kind>())* == $size, "padding");
            $(assert!(core::mem::offset_of!($name, $field) == $at);)*
        };

        // SAFETY: integers and arrays of bytes only, and no padding, as was just checked.
        unsafe impl Layout for $name {}

        impl Default for $name {
            fn default() -> $name {
                <$name as Layout>::zero()
            }
        }
    )*};
}

layout! {
    sctp_initmsg 8 {
        0 sinit_num_ostreams: u16, 2 sinit_max_instreams: u16, 4 sinit_max_attempts: u16,
        6 sinit_max_init_timeo: u16,
    }
    sctp_sndrcvinfo 32 {
        0 sinfo_stream: u16, 2 sinfo_ssn: u16, 4 sinfo_flags: u16, 6 pad: [u8; 2], 8 sinfo_ppid: u32,
        12 sinfo_context: u32, 16 sinfo_timetolive: u32, 20 sinfo_tsn: u32, 24 sinfo_cumtsn: u32,
        28 sinfo_assoc_id: AssocT,
    }
    sctp_sndinfo 16 {
        0 snd_sid: u16, 2 snd_flags: u16, 4 snd_ppid: u32, 8 snd_context: u32, 12 snd_assoc_id: AssocT,
    }
    sctp_rcvinfo 28 {
        0 rcv_sid: u16, 2 rcv_ssn: u16, 4 rcv_flags: u16, 6 pad: [u8; 2], 8 rcv_ppid: u32, 12 rcv_tsn: u32,
        16 rcv_cumtsn: u32, 20 rcv_context: u32, 24 rcv_assoc_id: AssocT,
    }
    sctp_nxtinfo 16 {
        0 nxt_sid: u16, 2 nxt_flags: u16, 4 nxt_ppid: u32, 8 nxt_length: u32, 12 nxt_assoc_id: AssocT,
    }
    sctp_prinfo 8 {
        0 pr_policy: u16, 2 pad: [u8; 2], 4 pr_value: u32,
    }
    sctp_authinfo 2 {
        0 auth_keynumber: u16,
    }
    sctp_assoc_change 20 {
        0 sac_type: u16, 2 sac_flags: u16, 4 sac_length: u32, 8 sac_state: u16, 10 sac_error: u16,
        12 sac_outbound_streams: u16, 14 sac_inbound_streams: u16, 16 sac_assoc_id: AssocT,
    }
    sctp_paddr_change 148 {
        0 spc_type: u16, 2 spc_flags: u16, 4 spc_length: u32, 8 spc_aaddr: Storage, 136 spc_state: i32,
        140 spc_error: i32, 144 spc_assoc_id: AssocT,
    }
    sctp_remote_error 16 {
        0 sre_type: u16, 2 sre_flags: u16, 4 sre_length: u32, 8 sre_error: u16, 10 pad: [u8; 2],
        12 sre_assoc_id: AssocT,
    }
    sctp_send_failed 48 {
        0 ssf_type: u16, 2 ssf_flags: u16, 4 ssf_length: u32, 8 ssf_error: u32, 12 ssf_info: sctp_sndrcvinfo,
        44 ssf_assoc_id: AssocT,
    }
    sctp_send_failed_event 32 {
        0 ssf_type: u16, 2 ssf_flags: u16, 4 ssf_length: u32, 8 ssf_error: u32, 12 ssfe_info: sctp_sndinfo,
        28 ssf_assoc_id: AssocT,
    }
    sctp_shutdown_event 12 {
        0 sse_type: u16, 2 sse_flags: u16, 4 sse_length: u32, 8 sse_assoc_id: AssocT,
    }
    sctp_adaptation_event 16 {
        0 sai_type: u16, 2 sai_flags: u16, 4 sai_length: u32, 8 sai_adaptation_ind: u32,
        12 sai_assoc_id: AssocT,
    }
    sctp_pdapi_event 24 {
        0 pdapi_type: u16, 2 pdapi_flags: u16, 4 pdapi_length: u32, 8 pdapi_indication: u32,
        12 pdapi_assoc_id: AssocT, 16 pdapi_stream: u32, 20 pdapi_seq: u32,
    }
    sctp_authkey_event 20 {
        0 auth_type: u16, 2 auth_flags: u16, 4 auth_length: u32, 8 auth_keynumber: u16,
        10 auth_altkeynumber: u16, 12 auth_indication: u32, 16 auth_assoc_id: AssocT,
    }
    sctp_sender_dry_event 12 {
        0 sender_dry_type: u16, 2 sender_dry_flags: u16, 4 sender_dry_length: u32,
        8 sender_dry_assoc_id: AssocT,
    }
    sctp_stream_reset_event 12 {
        0 strreset_type: u16, 2 strreset_flags: u16, 4 strreset_length: u32, 8 strreset_assoc_id: AssocT,
    }
    sctp_assoc_reset_event 20 {
        0 assocreset_type: u16, 2 assocreset_flags: u16, 4 assocreset_length: u32,
        8 assocreset_assoc_id: AssocT, 12 assocreset_local_tsn: u32, 16 assocreset_remote_tsn: u32,
    }
    sctp_stream_change_event 16 {
        0 strchange_type: u16, 2 strchange_flags: u16, 4 strchange_length: u32, 8 strchange_assoc_id: AssocT,
        12 strchange_instrms: u16, 14 strchange_outstrms: u16,
    }
    sctp_rtoinfo 16 {
        0 srto_assoc_id: AssocT, 4 srto_initial: u32, 8 srto_max: u32, 12 srto_min: u32,
    }
    sctp_assocparams 20 {
        0 sasoc_assoc_id: AssocT, 4 sasoc_asocmaxrxt: u16, 6 sasoc_number_peer_destinations: u16,
        8 sasoc_peer_rwnd: u32, 12 sasoc_local_rwnd: u32, 16 sasoc_cookie_life: u32,
    }
    sctp_setpeerprim 132 {
        0 sspp_assoc_id: AssocT, 4 sspp_addr: Storage,
    }
    sctp_prim 132 {
        0 ssp_assoc_id: AssocT, 4 ssp_addr: Storage,
    }
    sctp_paddrparams 156 packed {
        0 spp_assoc_id: AssocT, 4 spp_address: Storage, 132 spp_hbinterval: u32, 136 spp_pathmaxrxt: u16,
        138 spp_pathmtu: u32, 142 spp_sackdelay: u32, 146 spp_flags: u32, 150 spp_ipv6_flowlabel: u32,
        154 spp_dscp: u8, 155 pad: [u8; 1],
    }
    sctp_authchunk 1 {
        0 sauth_chunk: u8,
    }
    sctp_hmacalgo 4 {
        0 shmac_num_idents: u32,
    }
    sctp_authkey 8 {
        0 sca_assoc_id: AssocT, 4 sca_keynumber: u16, 6 sca_keylength: u16,
    }
    sctp_authkeyid 8 {
        0 scact_assoc_id: AssocT, 4 scact_keynumber: u16, 6 pad: [u8; 2],
    }
    sctp_sack_info 12 {
        0 sack_assoc_id: AssocT, 4 sack_delay: u32, 8 sack_freq: u32,
    }
    sctp_assoc_value 8 {
        0 assoc_id: AssocT, 4 assoc_value: u32,
    }
    sctp_stream_value 8 {
        0 assoc_id: AssocT, 4 stream_id: u16, 6 stream_value: u16,
    }
    sctp_paddrinfo 152 {
        0 spinfo_assoc_id: AssocT, 4 spinfo_address: Storage, 132 spinfo_state: i32, 136 spinfo_cwnd: u32,
        140 spinfo_srtt: u32, 144 spinfo_rto: u32, 148 spinfo_mtu: u32,
    }
    sctp_status 176 {
        0 sstat_assoc_id: AssocT, 4 sstat_state: i32, 8 sstat_rwnd: u32, 12 sstat_unackdata: u16,
        14 sstat_penddata: u16, 16 sstat_instrms: u16, 18 sstat_outstrms: u16,
        20 sstat_fragmentation_point: u32, 24 sstat_primary: sctp_paddrinfo,
    }
    sctp_authchunks 8 {
        0 gauth_assoc_id: AssocT, 4 gauth_number_of_chunks: u32,
    }
    sctp_getaddrs_old 16 {
        0 assoc_id: AssocT, 4 addr_num: i32, 8 addrs: u64,
    }
    sctp_assoc_stats 256 {
        0 sas_assoc_id: AssocT, 4 pad: [u8; 4], 8 sas_obs_rto_ipaddr: Storage, 136 sas_maxrto: u64,
        144 sas_isacks: u64, 152 sas_osacks: u64, 160 sas_opackets: u64, 168 sas_ipackets: u64,
        176 sas_rtxchunks: u64, 184 sas_outofseqtsns: u64, 192 sas_idupchunks: u64, 200 sas_gapcnt: u64,
        208 sas_ouodchunks: u64, 216 sas_iuodchunks: u64, 224 sas_oodchunks: u64, 232 sas_iodchunks: u64,
        240 sas_octrlchunks: u64, 248 sas_ictrlchunks: u64,
    }
    sctp_paddrthlds 144 {
        0 spt_assoc_id: AssocT, 4 pad: [u8; 4], 8 spt_address: Storage, 136 spt_pathmaxrxt: u16,
        138 spt_pathpfthld: u16, 140 pad1: [u8; 4],
    }
    sctp_paddrthlds_v2 144 {
        0 spt_assoc_id: AssocT, 4 pad: [u8; 4], 8 spt_address: Storage, 136 spt_pathmaxrxt: u16,
        138 spt_pathpfthld: u16, 140 spt_pathcpthld: u16, 142 pad1: [u8; 2],
    }
    sctp_prstatus 24 {
        0 sprstat_assoc_id: AssocT, 4 sprstat_sid: u16, 6 sprstat_policy: u16, 8 sprstat_abandoned_unsent: u64,
        16 sprstat_abandoned_sent: u64,
    }
    sctp_default_prinfo 12 {
        0 pr_assoc_id: AssocT, 4 pr_value: u32, 8 pr_policy: u16, 10 pad: [u8; 2],
    }
    sctp_reset_streams 8 {
        0 srs_assoc_id: AssocT, 4 srs_flags: u16, 6 srs_number_streams: u16,
    }
    sctp_add_streams 8 {
        0 sas_assoc_id: AssocT, 4 sas_instrms: u16, 6 sas_outstrms: u16,
    }
    sctp_event 8 {
        0 se_assoc_id: AssocT, 4 se_type: u16, 6 se_on: u8, 7 pad: [u8; 1],
    }
    sctp_udpencaps 144 {
        0 sue_assoc_id: AssocT, 4 pad: [u8; 4], 8 sue_address: Storage, 136 sue_port: u16, 138 pad1: [u8; 6],
    }
    sctp_probeinterval 144 {
        0 spi_assoc_id: AssocT, 4 pad: [u8; 4], 8 spi_address: Storage, 136 spi_interval: u32,
        140 pad1: [u8; 4],
    }
}
