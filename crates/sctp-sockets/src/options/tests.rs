use core::time::Duration;
use std::sync::Arc;

use headwater_sctp::config::Allowed;

use super::*;
use crate::Style;

fn socket(style: Style, v6: bool) -> Core {
    Core::new(v6, style, Options::new(style), Arc::default())
}

fn one() -> Core {
    socket(Style::One, false)
}

fn many() -> Core {
    socket(Style::Many, false)
}

/// getsockopt with as much room as was passed.
fn get_raw(core: &mut Core, level: i32, name: i32, passed: &[u8]) -> Result<Vec<u8>, i32> {
    let mut value = passed.to_vec();
    core.get_option(level, name, &mut value, passed.len())?;
    Ok(value)
}

fn get<T: Layout>(core: &mut Core, name: i32, passed: &T) -> Result<T, i32> {
    let told = get_raw(core, SOL_SCTP, name, passed.bytes())?;
    assert_eq!(told.len(), size_of::<T>(), "option {name}");
    Ok(T::read(&told).unwrap())
}

fn set<T: Layout>(core: &mut Core, name: i32, value: &T) -> Result<(), i32> {
    core.set_option(SOL_SCTP, name, value.bytes())
}

/// What was set is told, and less than a whole value is EINVAL both ways.
fn told_again<T: Layout + PartialEq + core::fmt::Debug>(core: &mut Core, name: i32, value: T) {
    let short = &value.bytes()[..value.bytes().len() - 1];
    let was = get(core, name, &value).unwrap();
    assert_eq!(
        core.set_option(SOL_SCTP, name, short),
        Err(libc::EINVAL),
        "option {name}"
    );
    assert_eq!(get(core, name, &value), Ok(was), "option {name}");
    assert_eq!(set(core, name, &value), Ok(()), "option {name}");
    assert_eq!(get(core, name, &value), Ok(value), "option {name}");
    assert_eq!(
        get_raw(core, SOL_SCTP, name, short),
        Err(libc::EINVAL),
        "option {name}"
    );
}

fn value(assoc_id: i32, assoc_value: u32) -> sctp_assoc_value {
    sctp_assoc_value {
        assoc_id,
        assoc_value,
    }
}

#[test]
fn structs_that_were_set_are_told() {
    let mut core = many();
    let c = &mut core;
    told_again(
        c,
        SCTP_RTOINFO,
        sctp_rtoinfo {
            srto_assoc_id: 0,
            srto_initial: 500,
            srto_max: 900,
            srto_min: 100,
        },
    );
    told_again(
        c,
        SCTP_ASSOCINFO,
        sctp_assocparams {
            sasoc_asocmaxrxt: 4,
            sasoc_cookie_life: 7000,
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_INITMSG,
        sctp_initmsg {
            sinit_num_ostreams: 3,
            sinit_max_instreams: 4,
            sinit_max_attempts: 5,
            sinit_max_init_timeo: 600,
        },
    );
    told_again(c, SCTP_ADAPTATION_LAYER, 77u32);
    told_again(
        c,
        SCTP_DEFAULT_SEND_PARAM,
        sctp_sndrcvinfo {
            sinfo_stream: 3,
            sinfo_flags: SCTP_UNORDERED,
            sinfo_ppid: 9,
            sinfo_context: 8,
            sinfo_timetolive: 100,
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_DEFAULT_SNDINFO,
        sctp_sndinfo {
            snd_sid: 2,
            snd_flags: SCTP_UNORDERED,
            snd_ppid: 5,
            snd_context: 6,
            snd_assoc_id: 0,
        },
    );
    told_again(
        c,
        SCTP_DEFAULT_PRINFO,
        sctp_default_prinfo {
            pr_policy: SCTP_PR_SCTP_RTX,
            pr_value: 4,
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_EVENT,
        sctp_event {
            se_type: SCTP_SHUTDOWN_EVENT,
            se_on: 1,
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_DELAYED_SACK,
        sctp_sack_info {
            sack_assoc_id: 0,
            sack_delay: 300,
            sack_freq: 4,
        },
    );
    told_again(
        c,
        SCTP_REMOTE_UDP_ENCAPS_PORT,
        sctp_udpencaps {
            sue_port: 9899u16.to_be(),
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_PLPMTUD_PROBE_INTERVAL,
        sctp_probeinterval {
            spi_interval: 5000,
            ..Default::default()
        },
    );
    told_again(
        c,
        SCTP_PEER_ADDR_THLDS_V2,
        sctp_paddrthlds_v2 {
            spt_pathmaxrxt: 7,
            spt_pathpfthld: 2,
            spt_pathcpthld: 3,
            ..Default::default()
        },
    );
    assert_eq!(c.options.config.potentially_failed, 2);
    assert_eq!(c.options.encap, Some(9899));
    assert_eq!(c.options.config.rto.min, Duration::from_millis(100));
}

#[test]
fn numbers_that_were_set_are_told() {
    let mut core = many();
    for (name, first, number) in [
        (SCTP_NODELAY, 0, 1),
        (SCTP_AUTOCLOSE, 0, 30),
        (SCTP_DISABLE_FRAGMENTS, 0, 1),
        (SCTP_I_WANT_MAPPED_V4_ADDR, 1, 0),
        (SCTP_FRAGMENT_INTERLEAVE, 0, 2),
        (SCTP_PARTIAL_DELIVERY_POINT, 0, 5000),
        (SCTP_AUTO_ASCONF, 0, 1),
        (SCTP_RECVRCVINFO, 0, 1),
        (SCTP_RECVNXTINFO, 0, 1),
    ] {
        assert_eq!(get(&mut core, name, &0i32), Ok(first), "option {name}");
        told_again(&mut core, name, number);
    }
    for (name, first, number) in [
        (SCTP_MAXSEG, 0, 600),
        (SCTP_MAX_BURST, 4, 9),
        (SCTP_CONTEXT, 0, 7),
        (SCTP_PR_SUPPORTED, 1, 0),
        (SCTP_RECONFIG_SUPPORTED, 1, 0),
        (SCTP_ASCONF_SUPPORTED, 0, 1),
        (SCTP_AUTH_SUPPORTED, 1, 1),
        (SCTP_INTERLEAVING_SUPPORTED, 0, 1),
        (SCTP_ECN_SUPPORTED, 0, 0),
        (SCTP_ENABLE_STREAM_RESET, 0, 7),
        (SCTP_STREAM_SCHEDULER, 0, 2),
        (SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 0, 2),
    ] {
        assert_eq!(
            get(&mut core, name, &value(0, 0)),
            Ok(value(0, first)),
            "option {name}"
        );
        told_again(&mut core, name, value(0, number));
    }
    assert!(
        core.options.exposure == EXPOSE_ON
            && core.options.config.allowed.has(Allowed::MORE_STREAMS)
    );
    assert_eq!(core.options.config.partial_delivery_point, 5000);
}

#[test]
fn an_int_stands_for_those_to_come() {
    let mut core = many();
    for name in [SCTP_MAXSEG, SCTP_MAX_BURST] {
        set(&mut core, name, &555u32).unwrap();
        assert_eq!(get(&mut core, name, &0u32), Ok(555));
    }
    set(&mut core, SCTP_DELAYED_SACK, &value(0, 0)).unwrap();
    let told = get(&mut core, SCTP_DELAYED_SACK, &sctp_sack_info::default()).unwrap();
    assert_eq!((told.sack_delay, told.sack_freq), (0, 1));
    assert_eq!(core.options.config.sack_every, 1);
}

#[test]
fn defaults_are_linux_s() {
    let mut core = one();
    let rto = get(&mut core, SCTP_RTOINFO, &sctp_rtoinfo::default()).unwrap();
    assert_eq!(
        (rto.srto_initial, rto.srto_min, rto.srto_max),
        (3000, 1000, 60_000)
    );
    let init = get(&mut core, SCTP_INITMSG, &sctp_initmsg::default()).unwrap();
    assert_eq!(
        (init.sinit_num_ostreams, init.sinit_max_instreams),
        (10, 65_535)
    );
    assert_eq!(
        (init.sinit_max_attempts, init.sinit_max_init_timeo),
        (8, 60_000)
    );
    let path = get(
        &mut core,
        SCTP_PEER_ADDR_PARAMS,
        &sctp_paddrparams::default(),
    )
    .unwrap();
    let (interval, errors, flags) = (path.spp_hbinterval, path.spp_pathmaxrxt, path.spp_flags);
    assert_eq!((interval, errors), (30_000, 5));
    assert_eq!(
        flags,
        SPP_HB_ENABLE | SPP_PMTUD_ENABLE | SPP_SACKDELAY_ENABLE
    );
}

#[test]
fn path_parameters_change_what_their_flags_name() {
    let mut core = one();
    let asked = |flags: u32| sctp_paddrparams {
        spp_hbinterval: 5000,
        spp_pathmtu: 1000,
        spp_sackdelay: 100,
        spp_flags: flags,
        ..Default::default()
    };
    let mut tell = |flags: u32| {
        set(&mut core, SCTP_PEER_ADDR_PARAMS, &asked(flags))?;
        get(
            &mut core,
            SCTP_PEER_ADDR_PARAMS,
            &sctp_paddrparams::default(),
        )
    };
    let told = tell(0).unwrap();
    assert_eq!({ told.spp_hbinterval }, 30_000);
    let told = tell(SPP_HB_ENABLE | SPP_PMTUD_DISABLE | SPP_SACKDELAY_ENABLE).unwrap();
    assert_eq!(
        ({ told.spp_hbinterval }, { told.spp_pathmtu }),
        (5000, 1000)
    );
    assert_eq!({ told.spp_sackdelay }, 100);
    assert_eq!(
        { told.spp_flags },
        SPP_HB_ENABLE | SPP_PMTUD_DISABLE | SPP_SACKDELAY_ENABLE
    );
    let told = tell(SPP_HB_ENABLE | SPP_HB_TIME_IS_ZERO).unwrap();
    assert_eq!({ told.spp_hbinterval }, 0);
    for both in [SPP_HB, SPP_PMTUD, SPP_SACKDELAY, SPP_HB_DEMAND] {
        assert_eq!(tell(both), Err(libc::EINVAL));
    }
    let (config, bytes) = (core.options.config.clone(), asked(0));
    assert_eq!((config.probe_mtu, config.most_mtu), (false, 1000 - 48));
    let old = &bytes.bytes()[..152];
    assert_eq!(
        core.set_option(SOL_SCTP, SCTP_PEER_ADDR_PARAMS, old),
        Ok(())
    );
    assert_eq!(
        get_raw(&mut core, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, old)
            .unwrap()
            .len(),
        152
    );
}

#[test]
fn numbers_out_of_range_change_nothing() {
    let mut core = many();
    let rto = sctp_rtoinfo {
        srto_min: 5000,
        srto_max: 4000,
        ..Default::default()
    };
    assert_eq!(set(&mut core, SCTP_RTOINFO, &rto), Err(libc::EINVAL));
    let late = sctp_sack_info {
        sack_delay: 501,
        ..Default::default()
    };
    assert_eq!(set(&mut core, SCTP_DELAYED_SACK, &late), Err(libc::EINVAL));
    for (name, bad) in [
        (SCTP_MAXSEG, 100),
        (SCTP_MAXSEG, 70_000),
        (SCTP_ENABLE_STREAM_RESET, 8),
        (SCTP_STREAM_SCHEDULER, 5),
        (SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 3),
    ] {
        assert_eq!(
            set(&mut core, name, &value(0, bad)),
            Err(libc::EINVAL),
            "option {name}"
        );
    }
    let without = set(&mut core, SCTP_INTERLEAVING_SUPPORTED, &value(0, 1));
    assert_eq!(without, Err(libc::EPERM));
    assert_eq!(
        set(&mut core, SCTP_PARTIAL_DELIVERY_POINT, &1_000_000u32),
        Err(libc::EINVAL)
    );
    let often = sctp_probeinterval {
        spi_interval: 4999,
        ..Default::default()
    };
    assert_eq!(
        set(&mut core, SCTP_PLPMTUD_PROBE_INTERVAL, &often),
        Err(libc::EINVAL)
    );
}

#[test]
fn associations_that_are_not_there() {
    let mut core = many();
    let rto = sctp_rtoinfo {
        srto_assoc_id: 7,
        ..Default::default()
    };
    assert_eq!(set(&mut core, SCTP_RTOINFO, &rto), Err(libc::EINVAL));
    assert_eq!(get(&mut core, SCTP_RTOINFO, &rto), Err(libc::EINVAL));
    assert_eq!(
        set(&mut core, SCTP_CONTEXT, &value(7, 1)),
        Err(libc::EINVAL)
    );
    assert_eq!(
        set(&mut core, SCTP_CONTEXT, &value(SCTP_CURRENT_ASSOC, 1)),
        Ok(())
    );
    assert_eq!(core.options.context, 0);
    assert_eq!(
        set(&mut core, SCTP_CONTEXT, &value(SCTP_ALL_ASSOC, 1)),
        Ok(())
    );
    assert_eq!(core.options.context, 1);
    assert_eq!(
        set(&mut core, SCTP_MAXSEG, &value(SCTP_ALL_ASSOC, 600)),
        Err(libc::EINVAL)
    );
    assert_eq!(
        get(&mut core, SCTP_STATUS, &sctp_status::default()),
        Err(libc::EINVAL)
    );
    assert_eq!(get(&mut core, SCTP_GET_ASSOC_NUMBER, &9u32), Ok(0));
    assert_eq!(get(&mut core, SCTP_GET_ASSOC_ID_LIST, &9u32), Ok(0));
    // Of a one-to-one socket the number does not matter.
    let mut core = one();
    assert_eq!(set(&mut core, SCTP_RTOINFO, &rto), Ok(()));
    assert_eq!(set(&mut core, SCTP_CONTEXT, &value(7, 3)), Ok(()));
    assert_eq!(core.options.context, 3);
    assert_eq!(
        get(&mut core, SCTP_GET_ASSOC_NUMBER, &0u32),
        Err(libc::EOPNOTSUPP)
    );
    assert_eq!(set(&mut core, SCTP_AUTOCLOSE, &5u32), Err(libc::EOPNOTSUPP));
}

#[test]
fn addresses_that_are_no_peer_s() {
    let mut core = many();
    let address = storage("10.0.0.1".parse().unwrap(), 7);
    let prim = sctp_prim {
        ssp_assoc_id: 0,
        ssp_addr: address,
    };
    assert_eq!(set(&mut core, SCTP_PRIMARY_ADDR, &prim), Err(libc::EINVAL));
    let thresholds = sctp_paddrthlds {
        spt_address: address,
        ..Default::default()
    };
    assert_eq!(
        set(&mut core, SCTP_PEER_ADDR_THLDS, &thresholds),
        Err(libc::ENOENT)
    );
    let any = sctp_paddrthlds {
        spt_address: storage("0.0.0.0".parse().unwrap(), 0),
        spt_pathmaxrxt: 3,
        ..Default::default()
    };
    assert_eq!(set(&mut core, SCTP_PEER_ADDR_THLDS, &any), Ok(()));
    assert_eq!(core.options.config.path_retransmissions, 3);
}

#[test]
fn events_of_a_short_struct() {
    let mut core = many();
    let set = |core: &mut Core, wanted: &[u8]| core.set_option(SOL_SCTP, SCTP_EVENTS, wanted);
    assert_eq!(set(&mut core, &[1, 1, 0, 1]), Ok(()));
    assert!(core.options.data_io && core.options.events.has(SCTP_SEND_FAILED));
    assert_eq!(
        get_raw(&mut core, SOL_SCTP, SCTP_EVENTS, &[9; 5]),
        Ok(vec![1, 1, 0, 1, 0])
    );
    assert_eq!(
        get_raw(&mut core, SOL_SCTP, SCTP_EVENTS, &[9; 40])
            .unwrap()
            .len(),
        14
    );
    assert_eq!(set(&mut core, &[0]), Ok(()));
    assert!(!core.options.data_io && core.options.events.has(SCTP_ASSOC_CHANGE));
    assert_eq!(set(&mut core, &[0; 15]), Err(libc::EINVAL));
    assert_eq!(
        get_raw(&mut core, SOL_SCTP, SCTP_EVENTS, &[]),
        Err(libc::EINVAL)
    );
}

#[test]
fn keys_are_there_before_they_are_active() {
    let mut core = many();
    let c = &mut core;
    let number = |n: u16| sctp_authkeyid {
        scact_keynumber: n,
        ..Default::default()
    };
    assert_eq!(set(c, SCTP_AUTH_ACTIVE_KEY, &number(5)), Err(libc::EINVAL));
    let head = sctp_authkey {
        sca_assoc_id: 0,
        sca_keynumber: 5,
        sca_keylength: 3,
    };
    let key = |secret: &[u8]| [head.bytes(), secret].concat();
    assert_eq!(
        c.set_option(SOL_SCTP, SCTP_AUTH_KEY, &key(b"")),
        Err(libc::EINVAL)
    );
    assert_eq!(
        c.set_option(SOL_SCTP, SCTP_AUTH_KEY, &key(b"ab")),
        Err(libc::EINVAL)
    );
    assert_eq!(c.set_option(SOL_SCTP, SCTP_AUTH_KEY, &key(b"abcd")), Ok(()));
    assert_eq!(c.options.config.shared_keys, [(5, b"abc".to_vec())]);
    told_again(c, SCTP_AUTH_ACTIVE_KEY, number(5));
    assert_eq!(set(c, SCTP_AUTH_DELETE_KEY, &number(5)), Err(libc::EINVAL));
    assert_eq!(set(c, SCTP_AUTH_ACTIVE_KEY, &number(0)), Ok(()));
    assert_eq!(set(c, SCTP_AUTH_DEACTIVATE_KEY, &number(5)), Ok(()));
    assert_eq!(set(c, SCTP_AUTH_ACTIVE_KEY, &number(5)), Err(libc::EINVAL));
    assert_eq!(set(c, SCTP_AUTH_DELETE_KEY, &number(5)), Ok(()));
    assert!(c.options.config.shared_keys.is_empty() && c.options.config.authentication);
}

#[test]
fn chunks_and_algorithms_of_authentication() {
    let mut core = one();
    let c = &mut core;
    for kind in [0u8, 0, 193, 1] {
        let chunk = sctp_authchunk { sauth_chunk: kind };
        let legal = if kind == 1 { Err(libc::EINVAL) } else { Ok(()) };
        assert_eq!(set(c, SCTP_AUTH_CHUNK, &chunk), legal);
    }
    let told = get_raw(c, SOL_SCTP, SCTP_LOCAL_AUTH_CHUNKS, &[0; 64]).unwrap();
    assert_eq!(told, [&[0; 4][..], &2u32.to_ne_bytes(), &[0, 193]].concat());
    assert_eq!(
        get_raw(c, SOL_SCTP, SCTP_LOCAL_AUTH_CHUNKS, &[0; 9]),
        Err(libc::EINVAL)
    );
    assert_eq!(
        get_raw(c, SOL_SCTP, SCTP_PEER_AUTH_CHUNKS, &[0; 64]),
        Err(libc::EINVAL)
    );
    let hmacs = |ids: &[u16]| {
        let mut bytes = (ids.len() as u32).to_ne_bytes().to_vec();
        ids.iter().for_each(|id| bytes.extend(id.to_ne_bytes()));
        bytes
    };
    for (ids, legal) in [
        (&[3, 1][..], Ok(())),
        (&[3], Err(libc::EINVAL)),
        (&[1, 2], Err(libc::EOPNOTSUPP)),
        (&[], Err(libc::EINVAL)),
    ] {
        assert_eq!(c.set_option(SOL_SCTP, SCTP_HMAC_IDENT, &hmacs(ids)), legal);
    }
    let told = get_raw(c, SOL_SCTP, SCTP_HMAC_IDENT, &[0; 32]);
    assert_eq!(told, Ok(hmacs(&[3, 1])));
}

#[test]
fn streams_need_an_association() {
    let mut core = many();
    let c = &mut core;
    let reset = |count: u16, list: &[u8]| {
        let head = sctp_reset_streams {
            srs_assoc_id: 3,
            srs_flags: 1,
            srs_number_streams: count,
        };
        [head.bytes(), list].concat()
    };
    for bytes in [reset(0, &[]), reset(2, &[0; 3]), reset(1, &[0; 2])] {
        assert_eq!(
            c.set_option(SOL_SCTP, SCTP_RESET_STREAMS, &bytes),
            Err(libc::EINVAL)
        );
    }
    assert_eq!(set(c, SCTP_RESET_ASSOC, &3i32), Err(libc::EINVAL));
    assert_eq!(
        set(c, SCTP_ADD_STREAMS, &sctp_add_streams::default()),
        Err(libc::EINVAL)
    );
    let weight = sctp_stream_value {
        assoc_id: 0,
        stream_id: 2,
        stream_value: 7,
    };
    assert_eq!(set(c, SCTP_STREAM_SCHEDULER_VALUE, &weight), Ok(()));
    assert_eq!(
        get(c, SCTP_STREAM_SCHEDULER_VALUE, &weight),
        Err(libc::EINVAL)
    );
    assert_eq!(AssocOptions::of(&c.options).stream_values.get(&2), Some(&7));
}

#[test]
fn options_of_the_socket_level() {
    let mut core = socket(Style::Many, true);
    let c = &mut core;
    c.error = libc::ECONNRESET;
    let number = |c: &mut Core, name: i32| {
        let told = get_raw(c, libc::SOL_SOCKET, name, &[0; 4])?;
        Ok::<i32, i32>(i32::from_ne_bytes(told.try_into().unwrap()))
    };
    for (name, told) in [
        (libc::SO_ERROR, Ok(libc::ECONNRESET)),
        (libc::SO_ERROR, Ok(0)),
        (libc::SO_TYPE, Ok(libc::SOCK_SEQPACKET)),
        (libc::SO_PROTOCOL, Ok(132)),
        (libc::SO_DOMAIN, Ok(libc::AF_INET6)),
        (libc::SO_ACCEPTCONN, Ok(0)),
        (libc::SO_SNDBUF, Ok(212_992)),
        (libc::SO_PEERSEC, Err(libc::ENOPROTOOPT)),
    ] {
        assert_eq!(number(c, name), told, "option {name}");
    }
    let set =
        |c: &mut Core, name: i32, n: i32| c.set_option(libc::SOL_SOCKET, name, &n.to_ne_bytes());
    for (name, n, told) in [
        (libc::SO_SNDBUF, 100_000, 200_000),
        (libc::SO_RCVBUF, 4 << 20, 8 << 20),
        (libc::SO_SNDBUF, 1, 4608),
        (libc::SO_REUSEADDR, 1, 1),
        (libc::SO_KEEPALIVE, 1, 1),
    ] {
        assert_eq!(set(c, name, n), Ok(()));
        assert_eq!(number(c, name), Ok(told), "option {name}");
    }
    assert_eq!(c.options.config.send_buffer, 1 << 20);
    assert_eq!(c.options.config.receive_window, 8 << 20);
    assert_eq!(set(c, libc::SO_TYPE, 1), Err(libc::ENOPROTOOPT));
    let short = c.set_option(libc::SOL_SOCKET, libc::SO_SNDBUF, &[0; 3]);
    assert_eq!(short, Err(libc::EINVAL));
    assert_eq!(
        c.set_option(libc::IPPROTO_TCP, 1, &[1; 4]),
        Err(libc::ENOPROTOOPT)
    );
}

#[test]
fn linger_and_timeouts() {
    let mut core = one();
    let c = &mut core;
    let words = |a: i32, b: i32| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
    let set = |c: &mut Core, name: i32, value: &[u8]| c.set_option(libc::SOL_SOCKET, name, value);
    assert_eq!(
        set(c, libc::SO_LINGER, &words(1, 0)[..7]),
        Err(libc::EINVAL)
    );
    assert_eq!(set(c, libc::SO_LINGER, &words(1, 5)), Ok(()));
    assert_eq!(c.options.linger, Some(5));
    assert_eq!(
        get_raw(c, libc::SOL_SOCKET, libc::SO_LINGER, &[0; 8]),
        Ok(words(1, 5))
    );
    let time = |s: i64, us: i64| [s.to_ne_bytes(), us.to_ne_bytes()].concat();
    for (value, result, kept) in [
        (time(1, 500_000), Ok(()), Some(Duration::from_millis(1500))),
        (
            time(1, 1_000_000),
            Err(libc::EDOM),
            Some(Duration::from_millis(1500)),
        ),
        (time(-1, 0), Ok(()), Some(Duration::ZERO)),
        (time(0, 0), Ok(()), None),
    ] {
        assert_eq!(set(c, libc::SO_RCVTIMEO, &value), result);
        assert_eq!(c.options.receive_timeout, kept);
    }
    set(c, libc::SO_SNDTIMEO, &time(2, 3)).unwrap();
    assert_eq!(
        get_raw(c, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &[0; 16]),
        Ok(time(2, 3))
    );
}

#[test]
fn options_of_ip() {
    let mut v4 = one();
    let mut v6 = socket(Style::One, true);
    let (ip, ip6) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
    assert_eq!(v4.set_option(ip, libc::IP_TOS, &[16]), Ok(()));
    assert_eq!(
        get_raw(&mut v4, ip, libc::IP_TOS, &[0; 4]),
        Ok(vec![16, 0, 0, 0])
    );
    assert_eq!(
        get_raw(&mut v4, ip, libc::IP_TTL, &[0; 4]),
        Ok(vec![64, 0, 0, 0])
    );
    assert_eq!(
        v4.set_option(ip6, libc::IPV6_V6ONLY, &[1; 4]),
        Err(libc::ENOPROTOOPT)
    );
    assert_eq!(
        v6.set_option(ip6, libc::IPV6_V6ONLY, &1i32.to_ne_bytes()),
        Ok(())
    );
    assert!(v6.options.v6only);
    assert_eq!(v6.set_option(ip6, 9999, &[1; 4]), Err(libc::ENOPROTOOPT));
}

#[test]
fn what_can_only_be_set_or_only_be_told() {
    let mut core = one();
    for name in [
        SCTP_AUTH_KEY,
        SCTP_RESET_STREAMS,
        SCTP_ADD_STREAMS,
        SCTP_AUTH_CHUNK,
        99,
    ] {
        let told = get_raw(&mut core, SOL_SCTP, name, &[0; 256]);
        assert_eq!(told, Err(libc::ENOPROTOOPT), "option {name}");
    }
    for name in [SCTP_STATUS, SCTP_GET_ASSOC_STATS, SCTP_PEER_AUTH_CHUNKS, 99] {
        let done = core.set_option(SOL_SCTP, name, &[0; 256]);
        assert_eq!(done, Err(libc::ENOPROTOOPT), "option {name}");
    }
}
