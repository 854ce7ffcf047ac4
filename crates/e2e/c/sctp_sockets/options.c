/* Options of sockets: defaults, what is set is got, ranges, lengths, FUTURE and CURRENT and ALL (RFC 6458 section 8). */
#include "associations.h"

/* Too short a value, or room for one, is EINVAL. */
static void refuses_short(int fd, int name, size_t size) {
    char value[256] = {0};
    check_errno(setsockopt(fd, IPPROTO_SCTP, name, value, size - 1), EINVAL);
    socklen_t len = size - 1;
    check_errno(getsockopt(fd, IPPROTO_SCTP, name, value, &len), EINVAL);
}
/* An option of struct sctp_assoc_value. */
static void holds_value(int name, unsigned before, unsigned value) {
    int fd = socket_of(SOCK_SEQPACKET);
    check_eq(get_value(fd, name, SCTP_FUTURE_ASSOC), before);
    must_set(fd, name, assoc_value(SCTP_FUTURE_ASSOC, value));
    check_eq(get_value(fd, name, SCTP_FUTURE_ASSOC), value);
    check_errno(set(fd, name, assoc_value(7777, value)), EINVAL);
    check_errno(get(fd, name, &assoc_value(7777, 0)), EINVAL);
    char short_value[4] = {0};
    check_errno(setsockopt(fd, IPPROTO_SCTP, name, short_value, 3), EINVAL);
}
static void holds_int(int name, int before, int value) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(get_int(fd, name), before);
    must_set(fd, name, value);
    check_eq(get_int(fd, name), value);
    refuses_short(fd, name, sizeof(int));
}

CASE(rtoinfo, "RFC 6458 8.1.1") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_rtoinfo r = {0};
    must_get(fd, SCTP_RTOINFO, &r);
    check_either(r.srto_initial, 3000, 1000);
    check_eq(r.srto_max, 60000);
    check_eq(r.srto_min, 1000);
    must_set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 2000, .srto_max = 5000, .srto_min = 500}));
    must_get(fd, SCTP_RTOINFO, &r);
    check_eq(r.srto_initial, 2000);
    check_eq(r.srto_max, 5000);
    check_eq(r.srto_min, 500);
    refuses_short(fd, SCTP_RTOINFO, sizeof r);
}
CASE(rtoinfo_zero_keeps, "RFC 6458 8.1.1") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 2000}));
    struct sctp_rtoinfo r = {0};
    must_get(fd, SCTP_RTOINFO, &r);
    check_eq(r.srto_initial, 2000);
    check_eq(r.srto_max, 60000);
    check_eq(r.srto_min, 1000);
}
CASE(rtoinfo_range, "RFC 6458 8.1.1") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_max = 1000, .srto_min = 2000})), EINVAL);
    check_errno(set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_min = 70000})), EINVAL);
}
CASE(rtoinfo_inherited, "RFC 6458 8.1.1") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    struct sctp_rtoinfo asked = {.srto_initial = 2000, .srto_max = 5000, .srto_min = 500}, r = {0};
    must_set(listener, SCTP_RTOINFO, asked);
    struct pair p = pair_of(listener, client);
    must_get(p.server, SCTP_RTOINFO, &r);
    check_eq(r.srto_max, 5000);
    must_get(p.client, SCTP_RTOINFO, &r);
    check_eq(r.srto_max, 60000);
}
CASE(numbers_of_associations, "RFC 6458 8") {
    struct many m = many();
    struct sctp_rtoinfo r = {.srto_assoc_id = m.in_a, .srto_max = 7000};
    must_set(m.a, SCTP_RTOINFO, r);
    must_get(m.a, SCTP_RTOINFO, &r);
    check_eq(r.srto_max, 7000);
    r = (struct sctp_rtoinfo){.srto_assoc_id = SCTP_FUTURE_ASSOC};
    must_get(m.a, SCTP_RTOINFO, &r);
    check_eq(r.srto_max, 60000);
    r.srto_assoc_id = 88888;
    check_errno(get(m.a, SCTP_RTOINFO, &r), EINVAL);
    check_errno(set(m.a, SCTP_RTOINFO, r), EINVAL);
    r.srto_assoc_id = SCTP_ALL_ASSOC;
    check_errno(get(m.a, SCTP_RTOINFO, &r), EINVAL);
}
CASE(numbers_are_ignored_by_one_to_one, "RFC 6458 8") {
    struct pair p = pair();
    struct sctp_rtoinfo r = {.srto_assoc_id = 88888, .srto_max = 7000};
    must_set(p.client, SCTP_RTOINFO, r);
    r.srto_assoc_id = 0;
    must_get(p.client, SCTP_RTOINFO, &r);
    check_eq(r.srto_max, 7000);
}
CASE(associnfo, "RFC 6458 8.1.2") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_assocparams a = {0};
    must_get(fd, SCTP_ASSOCINFO, &a);
    check_eq(a.sasoc_asocmaxrxt, 10);
    check_eq(a.sasoc_cookie_life, 60000);
    must_set(fd, SCTP_ASSOCINFO, ((struct sctp_assocparams){.sasoc_asocmaxrxt = 7, .sasoc_cookie_life = 30000}));
    must_get(fd, SCTP_ASSOCINFO, &a);
    check_eq(a.sasoc_asocmaxrxt, 7);
    check_eq(a.sasoc_cookie_life, 30000);
    refuses_short(fd, SCTP_ASSOCINFO, sizeof a);
}
CASE(associnfo_of_an_association, "RFC 6458 8.1.2") {
    struct pair p = pair();
    struct sctp_assocparams a = {0};
    must_get(p.client, SCTP_ASSOCINFO, &a);
    check_eq(a.sasoc_number_peer_destinations, 1);
    check(a.sasoc_peer_rwnd > 0);
    check(a.sasoc_local_rwnd > 0);
}
CASE(initmsg, "RFC 6458 8.1.3") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_initmsg i = {0};
    must_get(fd, SCTP_INITMSG, &i);
    check_eq(i.sinit_num_ostreams, 10);
    int most = i.sinit_max_instreams;
    check_either(most, 65535, 2048);
    check_eq(i.sinit_max_attempts, 8);
    must_set(fd, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_num_ostreams = 30, .sinit_max_attempts = 3}));
    must_get(fd, SCTP_INITMSG, &i);
    check_eq(i.sinit_num_ostreams, 30);
    check_eq(i.sinit_max_instreams, most);
    check_eq(i.sinit_max_attempts, 3);
    refuses_short(fd, SCTP_INITMSG, sizeof i);
}
CASE(initmsg_counts, "RFC 6458 8.1.3") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(client, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_num_ostreams = 100}));
    struct pair p = pair_of(listener, client);
    struct sctp_status s = {0};
    must_get(p.client, SCTP_STATUS, &s);
    check_eq(s.sstat_outstrms, 100);
    check_eq(s.sstat_instrms, 10);
    must_get(p.server, SCTP_STATUS, &s);
    check_eq(s.sstat_instrms, 100);
    check_eq(send_on(p.client, 99, 0, "x"), 1);
    check_receive(p.server, "x");
}
CASE(nodelay, "RFC 6458 8.1.5") { holds_int(SCTP_NODELAY, 0, 1); }
CASE(nodelay_is_inherited, "RFC 6458 8.1.5") {
    int listener = listening(SOCK_STREAM);
    must_set(listener, SCTP_NODELAY, 1);
    struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
    check_eq(get_int(p.server, SCTP_NODELAY), 1);
    check_eq(get_int(p.client, SCTP_NODELAY), 0);
}
CASE(disable_fragments, "RFC 6458 8.1.11") { holds_int(SCTP_DISABLE_FRAGMENTS, 0, 1); }
CASE(mapped_addresses, "RFC 6458 8.1.15") {
    family = AF_INET6;
    holds_int(SCTP_I_WANT_MAPPED_V4_ADDR, 1, 0);
}
CASE(fragment_interleave, "RFC 6458 8.1.20") { holds_int(SCTP_FRAGMENT_INTERLEAVE, 0, 1); }
CASE(partial_delivery_point, "RFC 6458 8.1.21") { holds_int(SCTP_PARTIAL_DELIVERY_POINT, 0, 4000); }
CASE(partial_delivery_point_too_large, "RFC 6458 8.1.21") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_PARTIAL_DELIVERY_POINT, 100000000), EINVAL);
}
CASE(adaptation_layer, "RFC 6458 8.1.10") { holds_int(SCTP_ADAPTATION_LAYER, 0, 0x1234); }
CASE(recvrcvinfo, "RFC 6458 8.1.29") { holds_int(SCTP_RECVRCVINFO, 0, 1); }
CASE(recvnxtinfo, "RFC 6458 8.1.30") { holds_int(SCTP_RECVNXTINFO, 0, 1); }
CASE(context, "RFC 6458 8.1.24") { holds_value(SCTP_CONTEXT, 0, 4711); }
CASE(max_burst, "RFC 6458 8.1.22") { holds_value(SCTP_MAX_BURST, 4, 8); }
CASE(max_burst_as_int, "sctp(7)") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_MAX_BURST, 6);
    check_eq(get_value(fd, SCTP_MAX_BURST, 0), 6);
}
CASE(maxseg, "RFC 6458 8.1.16") { holds_value(SCTP_MAXSEG, 0, 1000); }
CASE(maxseg_as_int, "sctp(7)") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_MAXSEG, 900);
    check_eq(get_int(fd, SCTP_MAXSEG), 900);
    must_set(fd, SCTP_MAXSEG, 0);
    check_eq(get_int(fd, SCTP_MAXSEG), 0);
}
CASE(maxseg_range, "RFC 6458 8.1.16") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_MAXSEG, assoc_value(0, 1)), EINVAL);
    check_errno(set(fd, SCTP_MAXSEG, assoc_value(0, 100000)), EINVAL);
}
CASE(delayed_sack, "RFC 6458 8.1.19") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_sack_info s = {0};
    must_get(fd, SCTP_DELAYED_SACK, &s);
    check_eq(s.sack_delay, 200);
    check_eq(s.sack_freq, 2);
    must_set(fd, SCTP_DELAYED_SACK, ((struct sctp_sack_info){.sack_delay = 100, .sack_freq = 4}));
    must_get(fd, SCTP_DELAYED_SACK, &s);
    check_eq(s.sack_delay, 100);
    check_eq(s.sack_freq, 4);
    check_errno(set(fd, SCTP_DELAYED_SACK, ((struct sctp_sack_info){.sack_delay = 501})), EINVAL);
}
CASE(delayed_sack_zero_keeps, "RFC 6458 8.1.19") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_sack_info s = {.sack_freq = 5};
    must_set(fd, SCTP_DELAYED_SACK, s);
    must_get(fd, SCTP_DELAYED_SACK, &s);
    check_eq(s.sack_delay, 200);
    check_eq(s.sack_freq, 5);
}
CASE(peer_addr_params, "RFC 6458 8.1.12") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_paddrparams a = {0};
    must_get(fd, SCTP_PEER_ADDR_PARAMS, &a);
    check_eq(a.spp_hbinterval, 30000);
    check_eq(a.spp_pathmaxrxt, 5);
    check_eq(a.spp_sackdelay, 200);
    check(a.spp_flags & SPP_HB_ENABLE);
    must_set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_hbinterval = 5000, .spp_pathmaxrxt = 3, .spp_flags = SPP_HB_ENABLE}));
    must_get(fd, SCTP_PEER_ADDR_PARAMS, &a);
    check_eq(a.spp_hbinterval, 5000);
    check_eq(a.spp_pathmaxrxt, 3);
    must_set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_flags = SPP_HB_DISABLE}));
    must_get(fd, SCTP_PEER_ADDR_PARAMS, &a);
    check(a.spp_flags & SPP_HB_DISABLE);
    check(!(a.spp_flags & SPP_HB_ENABLE));
}
CASE(peer_addr_params_refused, "RFC 6458 8.1.12") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_flags = SPP_HB})), EINVAL);
    check_errno(set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_flags = SPP_PMTUD})), EINVAL);
    check_errno(set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_flags = SPP_SACKDELAY})), EINVAL);
    check_errno(set(fd, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_sackdelay = 501, .spp_flags = SPP_SACKDELAY_ENABLE})), EINVAL);
    refuses_short(fd, SCTP_PEER_ADDR_PARAMS, 140);
}
/* How many bytes of data go into a packet when packets are to have this size. */
static int fits(int point, int mtu) { return point < mtu && point > mtu - 120; }
static int point_of(int fd) {
    struct sctp_status s = {0};
    must_get(fd, SCTP_STATUS, &s);
    return s.sstat_fragmentation_point;
}
CASE(path_mtu_is_fixed, "RFC 6458 8.1.12 SPP_PMTUD_DISABLE") {
    if (!by_packets())
        return;
    unsigned sizes[] = {1000, 5000, 60000};
    for (int at = 0; at < 3; at++) {
        unsigned mtu = sizes[at];
        struct sctp_paddrparams a = {.spp_flags = SPP_PMTUD_DISABLE, .spp_pathmtu = mtu};
        int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
        must_set(listener, SCTP_PEER_ADDR_PARAMS, a);
        must_set(client, SCTP_PEER_ADDR_PARAMS, a);
        struct pair p = pair_of(listener, client), q = pair();
        must_set(q.client, SCTP_PEER_ADDR_PARAMS, a);
        int each[] = {p.client, p.server, q.client};
        for (int i = 0; i < 3; i++) {
            struct sctp_paddrparams told = {0};
            must_get(each[i], SCTP_PEER_ADDR_PARAMS, &told);
            check_eq(told.spp_pathmtu, mtu);
            check(told.spp_flags & SPP_PMTUD_DISABLE);
            if (!fits(point_of(each[i]), mtu))
                fail("socket %d: %d bytes in a packet of %u", i, point_of(each[i]), mtu);
        }
        check_send(p.client, "whole");
        check_receive(p.server, "whole");
        check_eq(send(q.client, patterned(20000, 1), 20000, 0), 20000);
        check_eq(receive_pattern(q.server, 20000, 1, 20000), 1);
        check(fits(point_of(q.client), mtu));
    }
}
CASE(thresholds, "RFC 7829 7.3") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_paddrthlds t = {0};
    must_get(fd, SCTP_PEER_ADDR_THLDS, &t);
    check_eq(t.spt_pathmaxrxt, 5);
    check_eq(t.spt_pathpfthld, 0);
    must_set(fd, SCTP_PEER_ADDR_THLDS, ((struct sctp_paddrthlds){.spt_pathmaxrxt = 4, .spt_pathpfthld = 2}));
    must_get(fd, SCTP_PEER_ADDR_THLDS, &t);
    check_eq(t.spt_pathmaxrxt, 4);
    check_eq(t.spt_pathpfthld, 2);
    refuses_short(fd, SCTP_PEER_ADDR_THLDS, sizeof t);
}
CASE(thresholds_v2, "RFC 7829 7.3") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_paddrthlds_v2 t = {.spt_pathmaxrxt = 6, .spt_pathpfthld = 3, .spt_pathcpthld = 9};
    must_set(fd, SCTP_PEER_ADDR_THLDS_V2, t);
    t = (struct sctp_paddrthlds_v2){0};
    must_get(fd, SCTP_PEER_ADDR_THLDS_V2, &t);
    check_eq(t.spt_pathmaxrxt, 6);
    check_eq(t.spt_pathpfthld, 3);
    check_eq(t.spt_pathcpthld, 9);
    t.spt_pathpfthld = 10;
    check_errno(set(fd, SCTP_PEER_ADDR_THLDS_V2, t), EINVAL);
}
CASE(expose_pf_state, "RFC 7829 7.4") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, assoc_value(0, 1));
    check(get_value(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, 0) >= 1);
    check_errno(set(fd, SCTP_EXPOSE_POTENTIALLY_FAILED_STATE, assoc_value(0, 9)), EINVAL);
}
CASE(pr_supported, "RFC 7496 4.5") { holds_value(SCTP_PR_SUPPORTED, 1, 0); }
CASE(reconfig_supported, "sctp(7) SCTP_RECONFIG_SUPPORTED") {
    /* Linux begins with what a sysctl says. */
    unsigned before = get_value(socket_of(SOCK_STREAM), SCTP_RECONFIG_SUPPORTED, 0);
    holds_value(SCTP_RECONFIG_SUPPORTED, before, !before);
}
CASE(asconf_supported, "sctp(7) SCTP_ASCONF_SUPPORTED") { holds_value(SCTP_ASCONF_SUPPORTED, 0, 1); }
CASE(auth_supported, "sctp(7) SCTP_AUTH_SUPPORTED") { holds_value(SCTP_AUTH_SUPPORTED, 0, 1); }
CASE(ecn_supported, "sctp(7) SCTP_ECN_SUPPORTED") {
    int fd = socket_of(SOCK_STREAM);
    unsigned before = get_value(fd, SCTP_ECN_SUPPORTED, 0);
    check(before <= 1);
    must_set(fd, SCTP_ECN_SUPPORTED, assoc_value(0, 0));
    check_eq(get_value(fd, SCTP_ECN_SUPPORTED, 0), 0);
}
CASE(interleaving_supported, "RFC 8260 4.3.1") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(get_value(fd, SCTP_INTERLEAVING_SUPPORTED, 0), 0);
    check_errno(set(fd, SCTP_INTERLEAVING_SUPPORTED, assoc_value(0, 1)), EPERM);
    must_set(fd, SCTP_FRAGMENT_INTERLEAVE, 2);
    int r = set(fd, SCTP_INTERLEAVING_SUPPORTED, assoc_value(0, 1));
    check(r == 0 || errno == EPERM);
    if (r == 0)
        check_eq(get_value(fd, SCTP_INTERLEAVING_SUPPORTED, 0), 1);
}
CASE(enable_stream_reset, "RFC 6525 6.3.1") {
    holds_value(SCTP_ENABLE_STREAM_RESET, 0, SCTP_ENABLE_STRRESET_MASK);
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_ENABLE_STREAM_RESET, assoc_value(0, 8)), EINVAL);
}
CASE(default_prinfo, "RFC 6458 8.1.32") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_default_prinfo i = {0};
    must_get(fd, SCTP_DEFAULT_PRINFO, &i);
    check_eq(i.pr_policy, SCTP_PR_SCTP_NONE);
    must_set(fd, SCTP_DEFAULT_PRINFO, ((struct sctp_default_prinfo){.pr_policy = SCTP_PR_SCTP_RTX, .pr_value = 4}));
    must_get(fd, SCTP_DEFAULT_PRINFO, &i);
    check_eq(i.pr_policy, SCTP_PR_SCTP_RTX);
    check_eq(i.pr_value, 4);
    check_errno(set(fd, SCTP_DEFAULT_PRINFO, ((struct sctp_default_prinfo){.pr_policy = 0x77})), EINVAL);
    refuses_short(fd, SCTP_DEFAULT_PRINFO, sizeof i);
}
CASE(default_send_param_refused, "RFC 6458 8.1.13") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_DEFAULT_SEND_PARAM, ((struct sctp_sndrcvinfo){.sinfo_flags = 0x0800})), EINVAL);
    check_errno(set(fd, SCTP_DEFAULT_SNDINFO, ((struct sctp_sndinfo){.snd_flags = 0x0800})), EINVAL);
    refuses_short(fd, SCTP_DEFAULT_SEND_PARAM, sizeof(struct sctp_sndrcvinfo));
    refuses_short(fd, SCTP_DEFAULT_SNDINFO, sizeof(struct sctp_sndinfo));
}
CASE(schedulers, "RFC 8260 4.3.2") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(get_value(fd, SCTP_STREAM_SCHEDULER, 0), SCTP_SS_FCFS);
    for (int s = SCTP_SS_FCFS; s <= SCTP_SS_MAX; s++) {
        must_set(fd, SCTP_STREAM_SCHEDULER, assoc_value(0, s));
        check_eq(get_value(fd, SCTP_STREAM_SCHEDULER, 0), s);
    }
    check_errno(set(fd, SCTP_STREAM_SCHEDULER, assoc_value(0, 99)), EINVAL);
}
CASE(auto_asconf, "RFC 6458 8.1.23") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(bind_to(fd, any()), 0);
    check_eq(get_int(fd, SCTP_AUTO_ASCONF), 0);
    must_set(fd, SCTP_AUTO_ASCONF, 1);
    check_eq(get_int(fd, SCTP_AUTO_ASCONF), 1);
    check_errno(set(bound(SOCK_STREAM), SCTP_AUTO_ASCONF, 1), EINVAL);
}
CASE(reuse_port, "RFC 6458 8.1.27") {
    int a = socket_of(SOCK_STREAM), b = socket_of(SOCK_STREAM);
    must_set(a, SCTP_REUSE_PORT, 1);
    must_set(b, SCTP_REUSE_PORT, 1);
    check_eq(get_int(a, SCTP_REUSE_PORT), 1);
    check_eq(bind_to(a, loopback(0)), 0);
    check_eq(bind_to(b, name_of(a)), 0);
    check_errno(set(a, SCTP_REUSE_PORT, 1), EFAULT);
}
CASE(reuse_port_needs_both, "RFC 6458 8.1.27") {
    int a = bound(SOCK_STREAM), b = socket_of(SOCK_STREAM);
    must_set(b, SCTP_REUSE_PORT, 1);
    check_errno(bind_to(b, name_of(a)), EADDRINUSE);
}
CASE(reuse_port_of_many, "RFC 6458 8.1.27") { check_errno(set(socket_of(SOCK_SEQPACKET), SCTP_REUSE_PORT, 1), EOPNOTSUPP); }
CASE(encapsulation_port, "RFC 6951 6.1") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_udpencaps u = {.sue_port = htons(9899)};
    must_set(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, u);
    u.sue_port = 0;
    must_get(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &u);
    check_eq(u.sue_port, htons(9899));
    refuses_short(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, sizeof u);
}
CASE(probe_interval, "sctp(7) SCTP_PLPMTUD_PROBE_INTERVAL") {
    int fd = socket_of(SOCK_STREAM);
    struct sctp_probeinterval i = {.spi_interval = 10000};
    must_set(fd, SCTP_PLPMTUD_PROBE_INTERVAL, i);
    i.spi_interval = 1;
    must_get(fd, SCTP_PLPMTUD_PROBE_INTERVAL, &i);
    check_eq(i.spi_interval, 10000);
    i.spi_interval = 100;
    check_errno(set(fd, SCTP_PLPMTUD_PROBE_INTERVAL, i), EINVAL);
}
CASE(unknown_option, "setsockopt(2) ENOPROTOOPT") {
    int fd = socket_of(SOCK_STREAM), value = 0;
    check_errno(set(fd, 9999, 1), ENOPROTOOPT);
    check_errno(get(fd, 9999, &value), ENOPROTOOPT);
}
CASE(option_without_memory, "setsockopt(2) EFAULT") {
    int fd = socket_of(SOCK_STREAM);
    check_errno2(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, NULL, sizeof(int)), EFAULT, EINVAL);
    socklen_t len = sizeof(int);
    check_errno2(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, NULL, &len), EFAULT, EINVAL);
}
CASE(negative_length, "getsockopt(2) EINVAL") {
    int fd = socket_of(SOCK_STREAM), value;
    socklen_t len = -1;
    check_errno(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, &len), EINVAL);
}
CASE(read_only_options, "RFC 6458 8.2") {
    struct pair p = pair();
    char value[512] = {0};
    check_errno2(setsockopt(p.client, IPPROTO_SCTP, SCTP_STATUS, value, sizeof(struct sctp_status)), ENOPROTOOPT, EOPNOTSUPP);
    check_errno2(setsockopt(p.client, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, value, sizeof(struct sctp_paddrinfo)), ENOPROTOOPT, EOPNOTSUPP);
    check_errno2(setsockopt(p.client, IPPROTO_SCTP, SCTP_LOCAL_AUTH_CHUNKS, value, 20), ENOPROTOOPT, EOPNOTSUPP);
}
CASE(buffers, "socket(7) SO_SNDBUF, SO_RCVBUF") {
    int fd = socket_of(SOCK_STREAM);
    check(get_socket_int(fd, SO_SNDBUF) >= 100000);
    check(get_socket_int(fd, SO_RCVBUF) >= 100000);
    set_socket_int(fd, SO_SNDBUF, 50000);
    set_socket_int(fd, SO_RCVBUF, 60000);
    check(get_socket_int(fd, SO_SNDBUF) >= 50000 && get_socket_int(fd, SO_SNDBUF) <= 100000);
    check(get_socket_int(fd, SO_RCVBUF) >= 60000 && get_socket_int(fd, SO_RCVBUF) <= 120000);
}
CASE(timeouts, "socket(7) SO_RCVTIMEO, SO_SNDTIMEO") {
    int fd = socket_of(SOCK_STREAM);
    struct timeval t = {1, 500000}, seen = {0};
    socklen_t len = sizeof seen;
    check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
    check_eq(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &seen, &len), 0);
    check_eq(seen.tv_sec, 1);
    check(seen.tv_usec >= 490000 && seen.tv_usec <= 510000);
    check_eq(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &seen, &len), 0);
    check_eq(seen.tv_sec, 0);
}
CASE(linger, "socket(7) SO_LINGER") {
    int fd = socket_of(SOCK_STREAM);
    struct linger l = {7, 7}, asked = {1, 3};
    socklen_t len = sizeof l;
    check_eq(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len), 0);
    check_eq(l.l_onoff, 0);
    check_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &asked, sizeof asked), 0);
    check_eq(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len), 0);
    check_eq(l.l_onoff, 1);
    check_eq(l.l_linger, 3);
}
CASE(options_of_ip, "ip(7)") {
    int fd = socket_of(SOCK_STREAM), on = 1, tos = 0x10;
    check_eq(setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos), 0);
    check_eq(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on), 0);
}
CASE(v6only, "ipv6(7) IPV6_V6ONLY") {
    int fd = must(socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP)), on = 1, seen = 7;
    socklen_t len = sizeof seen;
    check_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
    check_eq(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &seen, &len), 0);
    check_eq(seen, 1);
}

SUITE(ENTRY(rtoinfo), ENTRY(rtoinfo_zero_keeps), ENTRY(rtoinfo_range), ENTRY(rtoinfo_inherited), ENTRY(numbers_of_associations),
      ENTRY(numbers_are_ignored_by_one_to_one), ENTRY(associnfo), ENTRY(associnfo_of_an_association), ENTRY(initmsg),
      ENTRY(initmsg_counts), ENTRY(nodelay), ENTRY(nodelay_is_inherited), ENTRY(disable_fragments), ENTRY(mapped_addresses),
      ENTRY(fragment_interleave), ENTRY(partial_delivery_point), ENTRY(partial_delivery_point_too_large), ENTRY(adaptation_layer),
      ENTRY(recvrcvinfo), ENTRY(recvnxtinfo), ENTRY(context), ENTRY(max_burst), ENTRY(max_burst_as_int), ENTRY(maxseg),
      ENTRY(maxseg_as_int), ENTRY(maxseg_range), ENTRY(delayed_sack), ENTRY(delayed_sack_zero_keeps), ENTRY(peer_addr_params),
      ENTRY(peer_addr_params_refused), ENTRY(path_mtu_is_fixed), ENTRY(thresholds), ENTRY(thresholds_v2), ENTRY(expose_pf_state), ENTRY(pr_supported),
      ENTRY(reconfig_supported), ENTRY(asconf_supported), ENTRY(auth_supported), ENTRY(ecn_supported),
      ENTRY(interleaving_supported), ENTRY(enable_stream_reset), ENTRY(default_prinfo), ENTRY(default_send_param_refused),
      ENTRY(schedulers), ENTRY(auto_asconf), ENTRY(reuse_port), ENTRY(reuse_port_needs_both), ENTRY(reuse_port_of_many),
      ENTRY(encapsulation_port), ENTRY(probe_interval), ENTRY(unknown_option), ENTRY(option_without_memory),
      ENTRY(negative_length), ENTRY(read_only_options), ENTRY(buffers), ENTRY(timeouts), ENTRY(linger), ENTRY(options_of_ip),
      ENTRY(v6only))
