/* What an association tells of itself and is told: state, paths, keys, streams, priorities, limits (RFC 6458 section 8). */
#include "associations.h"

static struct sctp_status status_of(int fd, sctp_assoc_t assoc) {
    struct sctp_status s = {.sstat_assoc_id = assoc};
    must_get(fd, SCTP_STATUS, &s);
    return s;
}

CASE(status, "RFC 6458 8.2.1") {
    struct pair p = pair();
    struct sctp_status s = status_of(p.client, 0);
    check_eq(s.sstat_state, SCTP_ESTABLISHED);
    check_eq(s.sstat_instrms, 10);
    check_eq(s.sstat_outstrms, 10);
    check(s.sstat_rwnd > 0);
    check(s.sstat_fragmentation_point > 500);
    check_eq(s.sstat_penddata, 0);
    struct address primary = {.storage = s.sstat_primary.spinfo_address}, peer = peer_of(p.client);
    check(same_address(&primary, &peer));
    check_eq(s.sstat_primary.spinfo_state, SCTP_ACTIVE);
    check(s.sstat_primary.spinfo_mtu > 500);
    check(s.sstat_primary.spinfo_cwnd > 0);
}
CASE(status_of_none, "RFC 6458 8.2.1") {
    struct sctp_status s = {0};
    check_errno2(get(socket_of(SOCK_STREAM), SCTP_STATUS, &s), EINVAL, ENOTCONN);
    check_errno(get(socket_of(SOCK_SEQPACKET), SCTP_STATUS, &s), EINVAL);
}
CASE(status_by_number, "RFC 6458 8.2.1") {
    struct many m = many();
    check_eq(status_of(m.a, m.in_a).sstat_state, SCTP_ESTABLISHED);
    check_eq(status_of(m.a, m.in_a).sstat_assoc_id, m.in_a);
    struct sctp_status s = {.sstat_assoc_id = 9999};
    check_errno(get(m.a, SCTP_STATUS, &s), EINVAL);
    s.sstat_assoc_id = m.in_a;
    socklen_t len = sizeof s - 8;
    check_errno(getsockopt(m.a, IPPROTO_SCTP, SCTP_STATUS, &s, &len), EINVAL);
}
CASE(status_counts, "RFC 6458 8.2.1") {
    struct pair p = pair();
    for (int i = 0; i < 3; i++)
        check_send(p.client, "waits");
    check(status_of(p.client, 0).sstat_unackdata <= 3);
    for (int i = 0; i < 3; i++)
        check_receive(p.server, "waits");
    check_eq(status_of(p.server, 0).sstat_penddata, 0);
    await(status_of(p.client, 0).sstat_unackdata == 0);
}
CASE(status_after_shutdown, "RFC 6458 8.2.1") {
    struct pair p = pair();
    check_eq(shutdown(p.client, SHUT_WR), 0);
    struct sctp_status s = {0};
    if (get(p.client, SCTP_STATUS, &s) == 0)
        check(s.sstat_state != SCTP_ESTABLISHED);
    else
        check(errno == EINVAL || errno == ENOTCONN);
}
CASE(peer_address_info, "RFC 6458 8.2.2") {
    struct pair p = pair();
    struct address peer = peer_of(p.client);
    struct sctp_paddrinfo i = {.spinfo_address = peer.storage};
    must_get(p.client, SCTP_GET_PEER_ADDR_INFO, &i);
    check_eq(i.spinfo_state, SCTP_ACTIVE);
    check(i.spinfo_rto > 0);
    check(i.spinfo_mtu > 500);
    check(i.spinfo_cwnd > 0);
    struct address stranger = address(family == AF_INET ? "192.0.2.9" : "2001:db8::9", port_in(&peer));
    i.spinfo_address = stranger.storage;
    check_errno(get(p.client, SCTP_GET_PEER_ADDR_INFO, &i), EINVAL);
}
CASE(primary_address, "RFC 6458 8.1.9") {
    struct pair p = pair();
    struct address peer = peer_of(p.client);
    struct sctp_prim prim = {0};
    must_get(p.client, SCTP_PRIMARY_ADDR, &prim);
    struct address seen = {.storage = prim.ssp_addr};
    check(same_address(&seen, &peer));
    prim.ssp_addr = peer.storage;
    must_set(p.client, SCTP_PRIMARY_ADDR, prim);
    struct address stranger = address(family == AF_INET ? "192.0.2.9" : "2001:db8::9", port_in(&peer));
    prim.ssp_addr = stranger.storage;
    check_errno(set(p.client, SCTP_PRIMARY_ADDR, prim), EINVAL);
}
CASE(peer_primary_without_asconf, "RFC 6458 8.3.1") {
    struct pair p = pair();
    struct sctp_setpeerprim prim = {.sspp_addr = name_of(p.client).storage};
    check_errno(set(p.client, SCTP_SET_PEER_PRIMARY_ADDR, prim), EPERM);
}
CASE(peer_addr_params, "RFC 6458 8.1.12") {
    struct pair p = pair();
    struct sctp_paddrparams a = {.spp_address = peer_of(p.client).storage, .spp_hbinterval = 7000, .spp_pathmaxrxt = 2, .spp_flags = SPP_HB_ENABLE};
    must_set(p.client, SCTP_PEER_ADDR_PARAMS, a);
    a = (struct sctp_paddrparams){.spp_address = a.spp_address};
    must_get(p.client, SCTP_PEER_ADDR_PARAMS, &a);
    check_eq(a.spp_hbinterval, 7000);
    check_eq(a.spp_pathmaxrxt, 2);
    struct address stranger = address(family == AF_INET ? "192.0.2.9" : "2001:db8::9", 5);
    a.spp_address = stranger.storage;
    check_errno(get(p.client, SCTP_PEER_ADDR_PARAMS, &a), EINVAL);
    check_errno(set(p.client, SCTP_PEER_ADDR_PARAMS, a), EINVAL);
}
CASE(heartbeat_on_demand, "RFC 6458 8.1.12 SPP_HB_DEMAND") {
    struct pair p = pair();
    must_set(p.client, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_address = peer_of(p.client).storage, .spp_flags = SPP_HB_DEMAND}));
    check_send(p.client, "x");
    check_receive(p.server, "x");
}
CASE(thresholds_of_a_path, "RFC 7829 7.3") {
    struct pair p = pair();
    struct sctp_paddrthlds t = {.spt_address = peer_of(p.client).storage, .spt_pathmaxrxt = 9, .spt_pathpfthld = 1};
    must_set(p.client, SCTP_PEER_ADDR_THLDS, t);
    t.spt_pathmaxrxt = 0;
    must_get(p.client, SCTP_PEER_ADDR_THLDS, &t);
    check_eq(t.spt_pathmaxrxt, 9);
    check_eq(t.spt_pathpfthld, 1);
}
CASE(statistics, "sctp(7) SCTP_GET_ASSOC_STATS") {
    struct pair p = pair();
    struct sctp_assoc_stats s = {0}, t = {0};
    must_get(p.client, SCTP_GET_ASSOC_STATS, &s);
    for (int i = 0; i < 5; i++) {
        check_send(p.client, "x");
        check_receive(p.server, "x");
    }
    must_get(p.client, SCTP_GET_ASSOC_STATS, &t);
    if (by_packets()) {
        check_eq(t.sas_oodchunks - s.sas_oodchunks, 5);
        check(t.sas_opackets > s.sas_opackets);
    }
    struct sctp_assoc_stats none = {0};
    check_errno(get(socket_of(SOCK_STREAM), SCTP_GET_ASSOC_STATS, &none), EINVAL);
}
CASE(inherited_later_changes_are_not, "RFC 6458 8") {
    int a = many_socket(0), b = many_socket(1);
    struct many m = many_of(a, b);
    must_set(a, SCTP_MAX_BURST, assoc_value(SCTP_FUTURE_ASSOC, 9));
    check_eq(get_value(a, SCTP_MAX_BURST, m.in_a), 4);
    must_set(a, SCTP_MAX_BURST, assoc_value(SCTP_CURRENT_ASSOC, 7));
    check_eq(get_value(a, SCTP_MAX_BURST, m.in_a), 7);
    check_eq(get_value(a, SCTP_MAX_BURST, SCTP_FUTURE_ASSOC), 9);
    must_set(a, SCTP_MAX_BURST, assoc_value(SCTP_ALL_ASSOC, 5));
    check_eq(get_value(a, SCTP_MAX_BURST, m.in_a), 5);
    check_eq(get_value(a, SCTP_MAX_BURST, SCTP_FUTURE_ASSOC), 5);
    must_set(a, SCTP_MAX_BURST, assoc_value(m.in_a, 6));
    check_eq(get_value(a, SCTP_MAX_BURST, m.in_a), 6);
}
CASE(context_of_each, "RFC 6458 8.1.24") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    must_set(server, SCTP_CONTEXT, assoc_value(m.in_b, 11));
    must_set(server, SCTP_CONTEXT, assoc_value(n.in_b, 22));
    check_eq(send_to_assoc(m.a, m.in_a, 0, "m"), 1);
    check_eq(check_receive(server, "m")->rcv.rcv_context, 11);
    check_eq(send_to_assoc(n.a, n.in_a, 0, "n"), 1);
    check_eq(check_receive(server, "n")->rcv.rcv_context, 22);
}
CASE(default_sndinfo_of_each, "RFC 6458 8.1.31") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    must_set(server, SCTP_DEFAULT_SNDINFO, ((struct sctp_sndinfo){.snd_sid = 3, .snd_assoc_id = m.in_b}));
    struct address a = name_of(m.a), b = name_of(n.a);
    check_eq(sendto(server, "x", 1, 0, &a.sa, a.len), 1);
    check_eq(check_receive(m.a, "x")->rcv.rcv_sid, 3);
    check_eq(sendto(server, "y", 1, 0, &b.sa, b.len), 1);
    check_eq(check_receive(n.a, "y")->rcv.rcv_sid, 0);
}
CASE(scheduler_of_an_association, "RFC 8260 4.3.2") {
    struct pair p = pair();
    must_set(p.client, SCTP_STREAM_SCHEDULER, assoc_value(0, SCTP_SS_PRIO));
    check_eq(get_value(p.client, SCTP_STREAM_SCHEDULER, 0), SCTP_SS_PRIO);
    struct sctp_stream_value v = {.stream_id = 2, .stream_value = 7};
    must_set(p.client, SCTP_STREAM_SCHEDULER_VALUE, v);
    v.stream_value = 0;
    must_get(p.client, SCTP_STREAM_SCHEDULER_VALUE, &v);
    check_eq(v.stream_value, 7);
    v.stream_id = 999;
    check_errno(get(p.client, SCTP_STREAM_SCHEDULER_VALUE, &v), EINVAL);
    check_eq(send_on(p.client, 2, 0, "x"), 1);
    check_receive(p.server, "x");
}
CASE(reliability_status, "RFC 7496 4.2, 4.3") {
    struct pair p = pair();
    struct sctp_prinfo pr = {.pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 10000};
    check_eq(send_parts(p.client, NULL, "x", 0, PART(SCTP_PRINFO, pr)), 1);
    check_receive(p.server, "x");
    struct sctp_prstatus s = {.sprstat_policy = SCTP_PR_SCTP_ALL};
    must_get(p.client, SCTP_PR_ASSOC_STATUS, &s);
    check_eq(s.sprstat_abandoned_sent + s.sprstat_abandoned_unsent, 0);
    s.sprstat_policy = SCTP_PR_SCTP_TTL;
    must_get(p.client, SCTP_PR_ASSOC_STATUS, &s);
    must_get(p.client, SCTP_PR_STREAM_STATUS, &s);
    s.sprstat_policy = 0x77;
    check_errno(get(p.client, SCTP_PR_ASSOC_STATUS, &s), EINVAL);
    s = (struct sctp_prstatus){.sprstat_policy = SCTP_PR_SCTP_TTL, .sprstat_sid = 999};
    check_errno(get(p.client, SCTP_PR_STREAM_STATUS, &s), EINVAL);
}
CASE(lifetime_ends, "RFC 3758, RFC 7496 4.2") {
    struct pair p = pair();
    int before = stuff(p.client, 5000), late = 0;
    struct sctp_prinfo pr = {.pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 1};
    while (send_parts(p.client, NULL, "late", MSG_DONTWAIT, PART(SCTP_PRINFO, pr)) > 0 && late < 1000)
        late++;
    sleep_ms(10);
    for (int i = 0; i < before; i++)
        receive_pattern(p.server, 5000, 1, 10000);
    set_nonblock(p.client, 0);
    check_send(p.client, "kept");
    for (;;) {
        struct got *g = receive(p.server);
        if (!strcmp(g->data, "kept"))
            break;
        check_str(g->data, "late");
    }
}
CASE(prio_gives_way, "RFC 7496 3.3") {
    struct pair p = pair();
    struct sctp_default_prinfo d = {.pr_policy = SCTP_PR_SCTP_PRIO, .pr_value = 9};
    must_set(p.client, SCTP_DEFAULT_PRINFO, d);
    check_send(p.client, "x");
    check_receive(p.server, "x");
}
CASE(streams_reset_unknown, "RFC 6525 6.3.2") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM), fds[2] = {listener, client};
    for (int i = 0; i < 2; i++) {
        must_set(fds[i], SCTP_RECONFIG_SUPPORTED, assoc_value(0, 1));
        must_set(fds[i], SCTP_ENABLE_STREAM_RESET, assoc_value(0, SCTP_ENABLE_STRRESET_MASK));
    }
    struct pair p = pair_of(listener, client);
    struct {
        struct sctp_reset_streams r;
        uint16_t list[1];
    } ask = {{.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1}, {999}};
    check_errno(setsockopt(p.client, IPPROTO_SCTP, SCTP_RESET_STREAMS, &ask, sizeof ask.r + 2), EINVAL);
    check_errno(setsockopt(p.client, IPPROTO_SCTP, SCTP_RESET_STREAMS, &ask, sizeof ask.r - 1), EINVAL);
    check_errno(set(p.client, SCTP_ADD_STREAMS, ((struct sctp_add_streams){0})), EINVAL);
    check_errno(set(p.client, SCTP_RESET_STREAMS, ((struct sctp_reset_streams){.srs_assoc_id = 0, .srs_flags = 0})), EINVAL);
}

/* --- authentication --- */

/* The key of this number, which says that it is `length` bytes long, and is 16. */
static int set_key_of(int fd, int number, int length) {
    _Alignas(8) char bytes[sizeof(struct sctp_authkey) + 16];
    struct sctp_authkey *k = (void *)bytes;
    *k = (struct sctp_authkey){.sca_keynumber = number, .sca_keylength = length};
    memcpy(k->sca_key, "0123456789abcdef", 16);
    return setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_KEY, bytes, sizeof bytes);
}
static int set_key(int fd, int number) { return set_key_of(fd, number, 16); }
/* A socket that signs DATA, with key 1. */
static int signing(int fd) {
    must_set(fd, SCTP_AUTH_SUPPORTED, assoc_value(0, 1));
    must_set(fd, SCTP_AUTH_CHUNK, ((struct sctp_authchunk){0}));
    check_eq(set_key(fd, 1), 0);
    must_set(fd, SCTP_AUTH_ACTIVE_KEY, ((struct sctp_authkeyid){.scact_keynumber = 1}));
    return fd;
}
CASE(auth_not_agreed, "RFC 6458 8.1.18, sctp(7)") {
    struct pair p = pair();
    check_errno(set_key(p.client, 1), EACCES);
    check_errno(set(p.client, SCTP_AUTH_ACTIVE_KEY, ((struct sctp_authkeyid){.scact_keynumber = 0})), EACCES);
    check_errno(set(p.client, SCTP_AUTH_DELETE_KEY, ((struct sctp_authkeyid){.scact_keynumber = 1})), EACCES);
}
CASE(auth_chunks_refused, "RFC 6458 8.3.2") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_AUTH_SUPPORTED, assoc_value(0, 1));
    int never[] = {1, 2, 14, 15};
    for (int i = 0; i < 4; i++)
        check_errno(set(fd, SCTP_AUTH_CHUNK, ((struct sctp_authchunk){never[i]})), EINVAL);
    must_set(fd, SCTP_AUTH_CHUNK, ((struct sctp_authchunk){0}));
    struct {
        struct sctp_authchunks c;
        uint8_t list[256];
    } seen = {{0}, {0}};
    socklen_t len = sizeof seen;
    check_eq(getsockopt(fd, IPPROTO_SCTP, SCTP_LOCAL_AUTH_CHUNKS, &seen, &len), 0);
    check(seen.c.gauth_number_of_chunks >= 1);
    check(memchr(seen.c.gauth_chunks, 0, seen.c.gauth_number_of_chunks));
}
CASE(hmac_ident, "RFC 6458 8.1.17") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_AUTH_SUPPORTED, assoc_value(0, 1));
    struct {
        struct sctp_hmacalgo h;
        uint16_t list[8];
    } h = {{.shmac_num_idents = 2}, {SCTP_AUTH_HMAC_ID_SHA256, SCTP_AUTH_HMAC_ID_SHA1}};
    check_eq(setsockopt(fd, IPPROTO_SCTP, SCTP_HMAC_IDENT, &h, sizeof h.h + 4), 0);
    memset(&h, 0, sizeof h);
    socklen_t len = sizeof h;
    check_eq(getsockopt(fd, IPPROTO_SCTP, SCTP_HMAC_IDENT, &h, &len), 0);
    check_eq(h.h.shmac_num_idents, 2);
    check_eq(h.list[0], SCTP_AUTH_HMAC_ID_SHA256);
    h.h.shmac_num_idents = 1;
    check_errno(setsockopt(fd, IPPROTO_SCTP, SCTP_HMAC_IDENT, &h, sizeof h.h + 2), EINVAL);
}
CASE(auth_keys, "RFC 6458 8.1.18, 8.3.3, 8.3.4") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_AUTH_SUPPORTED, assoc_value(0, 1));
    struct sctp_authkeyid id = {.scact_keynumber = 5};
    check_errno(set(fd, SCTP_AUTH_ACTIVE_KEY, id), EINVAL);
    check_eq(set_key(fd, 5), 0);
    must_set(fd, SCTP_AUTH_ACTIVE_KEY, id);
    id.scact_keynumber = 0;
    must_get(fd, SCTP_AUTH_ACTIVE_KEY, &id);
    check_eq(id.scact_keynumber, 5);
    check_errno(set(fd, SCTP_AUTH_DELETE_KEY, id), EINVAL);
    check_errno(set(fd, SCTP_AUTH_DEACTIVATE_KEY, id), EINVAL);
    id.scact_keynumber = 0;
    must_set(fd, SCTP_AUTH_ACTIVE_KEY, id);
    id.scact_keynumber = 5;
    must_set(fd, SCTP_AUTH_DELETE_KEY, id);
    check_errno(set(fd, SCTP_AUTH_DELETE_KEY, id), EINVAL);
}
CASE(auth_key_short, "RFC 6458 8.1.18") {
    int fd = socket_of(SOCK_STREAM);
    must_set(fd, SCTP_AUTH_SUPPORTED, assoc_value(0, 1));
    check_errno(set_key_of(fd, 1, 200), EINVAL);
}
CASE(signed_data, "RFC 4895, RFC 6458 8.3") {
    struct pair p = pair_of(signing(listening(SOCK_STREAM)), signing(socket_of(SOCK_STREAM)));
    check_send(p.client, "signed");
    check_receive(p.server, "signed");
    check_send(p.server, "back");
    check_receive(p.client, "back");
    struct {
        struct sctp_authchunks c;
        uint8_t list[256];
    } seen = {{0}, {0}};
    socklen_t len = sizeof seen;
    check_eq(getsockopt(p.client, IPPROTO_SCTP, SCTP_PEER_AUTH_CHUNKS, &seen, &len), 0);
    if (by_packets())
        check(memchr(seen.c.gauth_chunks, 0, seen.c.gauth_number_of_chunks));
}
CASE(key_of_a_message, "RFC 6458 5.3.8") {
    struct pair p = pair_of(signing(listening(SOCK_STREAM)), signing(socket_of(SOCK_STREAM)));
    check_eq(set_key(p.client, 2), 0);
    check_eq(set_key(p.server, 2), 0);
    struct sctp_authinfo info = {.auth_keynumber = 2};
    check_eq(send_parts(p.client, NULL, "by two", 0, PART(SCTP_AUTHINFO, info)), 6);
    check_receive(p.server, "by two");
    info.auth_keynumber = 77;
    check_errno(send_parts(p.client, NULL, "by none", 0, PART(SCTP_AUTHINFO, info)), EINVAL);
}
CASE(key_by_sendv, "RFC 6458 9.12") {
    struct pair p = pair_of(signing(listening(SOCK_STREAM)), signing(socket_of(SOCK_STREAM)));
    struct iovec v = {"text", 4};
    struct sctp_authinfo info = {.auth_keynumber = 1};
    check_eq(sctp_sendv(p.client, &v, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_AUTHINFO, 0), 4);
    check_receive(p.server, "text");
}
CASE(key_freed, "RFC 6458 6.1.8 SCTP_AUTH_FREE_KEY") {
    struct pair p = pair_of(signing(listening(SOCK_STREAM)), signing(socket_of(SOCK_STREAM)));
    subscribe(p.client, SCTP_AUTHENTICATION_EVENT);
    check_eq(set_key(p.client, 2), 0);
    must_set(p.client, SCTP_AUTH_ACTIVE_KEY, ((struct sctp_authkeyid){.scact_keynumber = 2}));
    must_set(p.client, SCTP_AUTH_DEACTIVATE_KEY, ((struct sctp_authkeyid){.scact_keynumber = 1}));
    struct sctp_authkey_event *e = &notice(p.client, SCTP_AUTHENTICATION_EVENT)->sn_authkey_event;
    if (e->auth_indication == SCTP_AUTH_NEW_KEY)
        e = &notice(p.client, SCTP_AUTHENTICATION_EVENT)->sn_authkey_event;
    check_eq(e->auth_indication, SCTP_AUTH_FREE_KEY);
    check_eq(e->auth_keynumber, 1);
}
CASE(adaptation_and_streams_survive_peeloff, "RFC 6458 9.2") {
    struct many m = many();
    int fd = must(sctp_peeloff(m.b, m.in_b));
    struct sctp_status s = status_of(fd, 0);
    check_eq(s.sstat_state, SCTP_ESTABLISHED);
    check_eq(s.sstat_outstrms, 10);
}

SUITE(BOTH(status), ENTRY(status_of_none), ENTRY(status_by_number), ENTRY(status_counts), ENTRY(status_after_shutdown),
      BOTH(peer_address_info), BOTH(primary_address), ENTRY(peer_primary_without_asconf), BOTH(peer_addr_params),
      ENTRY(heartbeat_on_demand), ENTRY(thresholds_of_a_path), ENTRY(statistics), ENTRY(inherited_later_changes_are_not),
      ENTRY(context_of_each), ENTRY(default_sndinfo_of_each), ENTRY(scheduler_of_an_association), ENTRY(reliability_status),
      ENTRY(lifetime_ends), ENTRY(prio_gives_way), ENTRY(streams_reset_unknown), ENTRY(auth_not_agreed),
      ENTRY(auth_chunks_refused), ENTRY(hmac_ident), ENTRY(auth_keys), ENTRY(auth_key_short), ENTRY(signed_data),
      ENTRY(key_of_a_message), ENTRY(key_by_sendv), ENTRY(key_freed), ENTRY(adaptation_and_streams_survive_peeloff))
