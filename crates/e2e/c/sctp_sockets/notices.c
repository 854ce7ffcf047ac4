/* Notifications: what each says, who asked for it, and their order (RFC 6458 section 6). */
#include "associations.h"

/* A pair whose both ends are told of this kind, by SCTP_EVENT, from the beginning on. */
static struct pair pair_told(int type) {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    subscribe(listener, type);
    subscribe(client, type);
    return pair_of(listener, client);
}

CASE(none_by_default, "sctp(7)") {
    struct pair p = pair();
    check_nothing_yet(p.client);
    check_nothing_yet(p.server);
    struct sctp_event_subscribe e;
    memset(&e, 7, sizeof e);
    must_get(p.client, SCTP_EVENTS, &e);
    for (size_t i = 0; i < sizeof e; i++)
        check_eq(((char *)&e)[i], 0);
}
CASE(comm_up, "RFC 6458 6.1.1") {
    struct pair p = pair_told(SCTP_ASSOC_CHANGE);
    int fds[2] = {p.client, p.server};
    for (int i = 0; i < 2; i++) {
        struct sctp_assoc_change *c = change(fds[i], SCTP_COMM_UP);
        check_eq(c->sac_type, SCTP_ASSOC_CHANGE);
        check_eq(c->sac_error, 0);
        check_eq(c->sac_outbound_streams, 10);
        check_eq(c->sac_inbound_streams, 10);
        check(c->sac_assoc_id > SCTP_ALL_ASSOC);
        check_nothing_yet(fds[i]);
    }
}
CASE(comm_up_streams_agreed, "RFC 6458 6.1.1") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    subscribe(listener, SCTP_ASSOC_CHANGE);
    subscribe(client, SCTP_ASSOC_CHANGE);
    must_set(client, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_num_ostreams = 20, .sinit_max_instreams = 7}));
    must_set(listener, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_num_ostreams = 9, .sinit_max_instreams = 5}));
    struct pair p = pair_of(listener, client);
    struct sctp_assoc_change *c = change(p.server, SCTP_COMM_UP);
    check_eq(c->sac_outbound_streams, 7);
    check_eq(c->sac_inbound_streams, 5);
    struct sctp_status s = {0};
    await(({ must_get(p.client, SCTP_STATUS, &s); s.sstat_outstrms == 5; }));
    check_eq(s.sstat_instrms, 7);
}
CASE(comm_up_before_data, "RFC 6458 6.1.1") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    subscribe(listener, SCTP_ASSOC_CHANGE);
    check_eq(connect_to(client, listener), 0);
    check_send(client, "at once");
    int server = must(accept(listener, NULL, NULL));
    change(server, SCTP_COMM_UP);
    check_receive(server, "at once");
}
CASE(notification_has_no_label, "RFC 6458 6") {
    int b = many_socket(1), a = socket_of(SOCK_SEQPACKET);
    check_eq(connect_to(a, b), 0);
    struct got *g = receive(b);
    check(g->flags & MSG_NOTIFICATION);
    check(g->flags & MSG_EOR);
    check(!g->has_sndrcv);
}
CASE(notification_from, "recvmsg(2)") {
    int b = listening(SOCK_SEQPACKET), kinds[] = {SCTP_ASSOC_CHANGE, SCTP_SHUTDOWN_EVENT, SCTP_ASSOC_CHANGE};
    subscribe(b, SCTP_ASSOC_CHANGE);
    subscribe(b, SCTP_SHUTDOWN_EVENT);
    struct many m = {.a = bound(SOCK_SEQPACKET), .b = b};
    check_eq(connect_to(m.a, m.b), 0);
    struct address a = name_of(m.a);
    check_eq(close(m.a), 0);
    sleep_ms(20);
    for (int i = 0; i < 3; i++) {
        struct got *g = receive(m.b);
        check(g->flags & MSG_NOTIFICATION);
        check_eq(g->notice.sn_header.sn_type, kinds[i]);
        check_eq(g->from.len, a.len);
        check(same_address(&g->from, &a));
    }
}
CASE(notification_in_parts, "RFC 6458 6") {
    struct pair p = pair_told(SCTP_ASSOC_CHANGE);
    struct sctp_assoc_change c;
    struct got *g = receive_some(p.client, 8, 0);
    check_eq(g->n, 8);
    check(g->flags & MSG_NOTIFICATION);
    check(!(g->flags & MSG_EOR));
    memcpy(&c, g->data, 8);
    check_eq(c.sac_length, sizeof c);
    g = receive_some(p.client, 100, 0);
    check(g->flags & MSG_NOTIFICATION);
    check(g->flags & MSG_EOR);
    check_eq(g->n, sizeof c - 8);
}
CASE(read_gets_notifications_too, "RFC 6458 6") {
    struct pair p = pair_told(SCTP_ASSOC_CHANGE);
    union sctp_notification n;
    check_eq(read(p.client, &n, sizeof n), sizeof(struct sctp_assoc_change));
    check_eq(n.sn_assoc_change.sac_state, SCTP_COMM_UP);
}
CASE(shutdown_in_order, "RFC 6458 6.1.5") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    subscribe(listener, SCTP_ASSOC_CHANGE);
    subscribe(listener, SCTP_SHUTDOWN_EVENT);
    struct pair p = pair_of(listener, client);
    check_send(p.client, "one");
    check_send(p.client, "two");
    check_eq(close(p.client), 0);
    change(p.server, SCTP_COMM_UP);
    check_receive(p.server, "one");
    check_receive(p.server, "two");
    struct sctp_shutdown_event *e = &notice(p.server, SCTP_SHUTDOWN_EVENT)->sn_shutdown_event;
    check_eq(e->sse_length, sizeof *e);
    change(p.server, SCTP_SHUTDOWN_COMP);
    check_end(p.server);
}
CASE(shutdown_in_order_many, "RFC 6458 6.1.5") {
    int a = socket_of(SOCK_SEQPACKET), b = many_socket(1);
    subscribe(b, SCTP_SHUTDOWN_EVENT);
    struct address to = name_of(b);
    check_eq(sendto(a, "one", 3, 0, &to.sa, to.len), 3);
    check_eq(close(a), 0);
    sctp_assoc_t assoc = change(b, SCTP_COMM_UP)->sac_assoc_id;
    check_receive(b, "one");
    check_eq(notice(b, SCTP_SHUTDOWN_EVENT)->sn_shutdown_event.sse_assoc_id, assoc);
    check_eq(change(b, SCTP_SHUTDOWN_COMP)->sac_assoc_id, assoc);
    check_nothing_yet(b);
}
CASE(lost_by_abort, "RFC 6458 6.1.1 SCTP_COMM_LOST") {
    struct pair p = pair_told(SCTP_ASSOC_CHANGE);
    change(p.client, SCTP_COMM_UP);
    change(p.server, SCTP_COMM_UP);
    struct linger l = {1, 0};
    check_eq(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    check_eq(close(p.client), 0);
    check_readable(p.server);
    struct got *g = receive_some(p.server, 1000, 0);
    if (g->n < 0) {
        check_eq(errno, ECONNRESET);
        g = receive_some(p.server, 1000, 0);
    }
    check(g->n >= (ssize_t)sizeof(struct sctp_assoc_change));
    check_eq(g->notice.sn_assoc_change.sac_state, SCTP_COMM_LOST);
}
CASE(lost_says_why, "RFC 6458 6.1.1 sac_info") {
    struct many m = many();
    check(send_to_assoc(m.a, m.in_a, SCTP_ABORT, "the reason") >= 0);
    struct sctp_assoc_change *c = change(m.b, SCTP_COMM_LOST);
    if (by_packets()) {
        check(c->sac_length > sizeof *c);
        check(memmem(c->sac_info, c->sac_length - sizeof *c, "the reason", 10));
    }
}
CASE(cant_start, "RFC 6458 6.1.1 SCTP_CANT_STR_ASSOC") {
    int fd = socket_of(SOCK_SEQPACKET);
    subscribe(fd, SCTP_ASSOC_CHANGE);
    struct address a = nobody();
    check_errno(connect(fd, &a.sa, a.len), ECONNREFUSED);
    change(fd, SCTP_CANT_STR_ASSOC);
}
CASE(events_by_structure, "RFC 6458 6.2.1") {
    int listener = listening(SOCK_STREAM);
    must_set(listener, SCTP_EVENTS, ((struct sctp_event_subscribe){.sctp_data_io_event = 1, .sctp_association_event = 1, .sctp_shutdown_event = 1}));
    struct sctp_event_subscribe e = {0};
    must_get(listener, SCTP_EVENTS, &e);
    check_eq(e.sctp_data_io_event, 1);
    check_eq(e.sctp_association_event, 1);
    check_eq(e.sctp_shutdown_event, 1);
    check_eq(e.sctp_address_event, 0);
    struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
    change(p.server, SCTP_COMM_UP);
    check_send(p.client, "x");
    check(check_receive(p.server, "x")->has_sndrcv);
    check_eq(close(p.client), 0);
    notice(p.server, SCTP_SHUTDOWN_EVENT);
    change(p.server, SCTP_SHUTDOWN_COMP);
}
CASE(events_short_structure, "RFC 6458 6.2.1") {
    int fd = socket_of(SOCK_STREAM);
    char old[8] = {1, 1};
    check_eq(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, old, sizeof old), 0);
    struct sctp_event_subscribe e = {0};
    must_get(fd, SCTP_EVENTS, &e);
    check_eq(e.sctp_association_event, 1);
    check_eq(e.sctp_send_failure_event, 0);
    char room[4] = {9, 9, 9, 9};
    socklen_t len = 2;
    check_eq(getsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, room, &len), 0);
    check_eq(len, 2);
    check_eq(room[1], 1);
    check_eq(room[2], 9);
    char large[200] = {0};
    check_errno(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, large, sizeof large), EINVAL);
}
CASE(event_on_and_off, "RFC 6458 6.2.2") {
    int fd = socket_of(SOCK_STREAM);
    for (int type = SCTP_ASSOC_CHANGE; type <= SCTP_SN_TYPE_MAX; type++) {
        struct sctp_event e = {.se_type = type, .se_on = 7};
        must_get(fd, SCTP_EVENT, &e);
        check_eq(e.se_on, 0);
        subscribe(fd, type);
        must_get(fd, SCTP_EVENT, &e);
        check_eq(e.se_on, 1);
        must_set(fd, SCTP_EVENT, ((struct sctp_event){.se_type = type, .se_on = 0}));
        must_get(fd, SCTP_EVENT, &e);
        check_eq(e.se_on, 0);
    }
}
CASE(event_is_seen_in_events, "RFC 6458 6.2.2") {
    int fd = socket_of(SOCK_STREAM);
    subscribe(fd, SCTP_SHUTDOWN_EVENT);
    struct sctp_event_subscribe e = {0};
    must_get(fd, SCTP_EVENTS, &e);
    check_eq(e.sctp_shutdown_event, 1);
    check_eq(e.sctp_association_event, 0);
}
CASE(event_unknown, "RFC 6458 6.2.2") {
    int fd = socket_of(SOCK_STREAM);
    check_errno(set(fd, SCTP_EVENT, ((struct sctp_event){.se_type = SCTP_SN_TYPE_MAX + 1, .se_on = 1})), EINVAL);
    check_errno(set(fd, SCTP_EVENT, ((struct sctp_event){.se_type = 5, .se_on = 1})), EINVAL);
    check_errno(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, "xx", 2), EINVAL);
}
CASE(event_of_one_association, "RFC 6458 6.2.2") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    must_set(server, SCTP_EVENT, ((struct sctp_event){.se_assoc_id = m.in_b, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1}));
    struct sctp_event e = {.se_assoc_id = n.in_b, .se_type = SCTP_SHUTDOWN_EVENT};
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 0);
    check_eq(send_to_assoc(n.a, n.in_a, SCTP_EOF, ""), 0);
    change(server, SCTP_SHUTDOWN_COMP);
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    notice(server, SCTP_SHUTDOWN_EVENT);
    change(server, SCTP_SHUTDOWN_COMP);
}
CASE(event_of_current, "RFC 6458 6.2.2 SCTP_CURRENT_ASSOC") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server);
    must_set(server, SCTP_EVENT, ((struct sctp_event){.se_assoc_id = SCTP_CURRENT_ASSOC, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1}));
    struct many n = many_of(many_socket(0), server);
    struct sctp_event e = {.se_assoc_id = n.in_b, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 7};
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 0);
    e.se_assoc_id = m.in_b;
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 1);
}
CASE(event_of_future, "RFC 6458 6.2.2 SCTP_FUTURE_ASSOC") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server);
    subscribe(server, SCTP_SHUTDOWN_EVENT);
    struct many n = many_of(many_socket(0), server);
    struct sctp_event e = {.se_assoc_id = m.in_b, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 7};
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 0);
    e.se_assoc_id = n.in_b;
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 1);
}
CASE(event_of_all, "RFC 6458 6.2.2 SCTP_ALL_ASSOC") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server);
    must_set(server, SCTP_EVENT, ((struct sctp_event){.se_assoc_id = SCTP_ALL_ASSOC, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1}));
    struct many n = many_of(many_socket(0), server);
    struct sctp_event e = {.se_assoc_id = m.in_b, .se_type = SCTP_SHUTDOWN_EVENT};
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 1);
    e.se_assoc_id = n.in_b, e.se_on = 0;
    must_get(server, SCTP_EVENT, &e);
    check_eq(e.se_on, 1);
}
CASE(adaptation, "RFC 6458 6.1.6, 8.1.10") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(client, SCTP_ADAPTATION_LAYER, ((struct sctp_setadaptation){0x11223344}));
    must_set(listener, SCTP_ADAPTATION_LAYER, ((struct sctp_setadaptation){0x55667788}));
    subscribe(listener, SCTP_ASSOC_CHANGE);
    subscribe(listener, SCTP_ADAPTATION_INDICATION);
    subscribe(client, SCTP_ADAPTATION_INDICATION);
    struct pair p = pair_of(listener, client);
    change(p.server, SCTP_COMM_UP);
    check_eq(notice(p.server, SCTP_ADAPTATION_INDICATION)->sn_adaptation_event.sai_adaptation_ind, 0x11223344);
    check_eq(notice(p.client, SCTP_ADAPTATION_INDICATION)->sn_adaptation_event.sai_adaptation_ind, 0x55667788);
}
CASE(sender_dry_at_once, "RFC 6458 6.1.9") {
    struct pair p = pair();
    subscribe(p.client, SCTP_SENDER_DRY_EVENT);
    struct sctp_sender_dry_event *e = &notice(p.client, SCTP_SENDER_DRY_EVENT)->sn_sender_dry_event;
    check_eq(e->sender_dry_length, sizeof *e);
}
CASE(sender_dry_after_data, "RFC 6458 6.1.9") {
    struct pair p = pair();
    subscribe(p.client, SCTP_SENDER_DRY_EVENT);
    notice(p.client, SCTP_SENDER_DRY_EVENT);
    check_send(p.client, "x");
    check_receive(p.server, "x");
    notice(p.client, SCTP_SENDER_DRY_EVENT);
    check_nothing_yet(p.client);
}
CASE(no_authentication, "RFC 6458 6.1.8 SCTP_AUTH_NO_AUTH") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    subscribe(client, SCTP_AUTHENTICATION_EVENT);
    struct pair p = pair_of(listener, client);
    struct sctp_authkey_event *e = &notice(p.client, SCTP_AUTHENTICATION_EVENT)->sn_authkey_event;
    check_eq(e->auth_indication, SCTP_AUTH_NO_AUTH);
    check_eq(e->auth_length, sizeof *e);
}
/* Sends more than the peer takes, then the peer goes: what was not delivered comes back. */
static void stuff_and_kill(struct pair p) {
    stuff(p.client, 5000);
    struct linger l = {1, 0};
    check_eq(setsockopt(p.server, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    check_eq(close(p.server), 0);
    check_readable(p.client);
}
/* Skips the error of a reset association, once. */
static struct got *receive_past_reset(int fd) {
    struct got *g = receive_some(fd, sizeof g->data - 1, 0);
    if (g->n < 0 && errno == ECONNRESET)
        g = receive_some(fd, sizeof g->data - 1, 0);
    return g;
}
CASE(send_failed, "RFC 6458 6.1.4") {
    struct pair p = pair();
    subscribe(p.client, SCTP_SEND_FAILED);
    stuff_and_kill(p);
    struct got *g = receive_past_reset(p.client);
    if (!by_packets() && g->n <= 0)
        return;
    check(g->n > (ssize_t)sizeof(struct sctp_send_failed));
    struct sctp_send_failed *f = &g->notice.sn_send_failed;
    check_eq(f->ssf_type, SCTP_SEND_FAILED);
    check_eq(f->ssf_length, g->n);
    check(f->ssf_flags == SCTP_DATA_SENT || f->ssf_flags == SCTP_DATA_UNSENT);
}
CASE(send_failed_event, "RFC 6458 6.1.11") {
    struct pair p = pair();
    subscribe(p.client, SCTP_SEND_FAILED_EVENT);
    stuff_and_kill(p);
    struct got *g = receive_past_reset(p.client);
    if (!by_packets() && g->n <= 0)
        return;
    check(g->n > (ssize_t)sizeof(struct sctp_send_failed_event));
    struct sctp_send_failed_event *f = &g->notice.sn_send_failed_event;
    check_eq(f->ssf_type, SCTP_SEND_FAILED_EVENT);
    check_eq(f->ssf_length, g->n);
    check_eq(f->ssfe_info.snd_sid, 0);
}
/* Both ends allow streams to be reset, and are told of it. */
static struct pair resettable(int type) {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM), fds[2] = {listener, client};
    for (int i = 0; i < 2; i++) {
        must_set(fds[i], SCTP_RECONFIG_SUPPORTED, assoc_value(0, 1));
        must_set(fds[i], SCTP_ENABLE_STREAM_RESET, assoc_value(0, SCTP_ENABLE_STRRESET_MASK));
        subscribe(fds[i], type);
    }
    return pair_of(listener, client);
}
CASE(stream_reset, "RFC 6525 6.1.1") {
    struct pair p = resettable(SCTP_STREAM_RESET_EVENT);
    want_rcvinfo(p.server);
    check_eq(send_on(p.client, 2, 0, "before"), 6);
    check_receive(p.server, "before");
    struct {
        struct sctp_reset_streams r;
        uint16_t list[1];
    } ask = {{.srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1}, {2}};
    await(setsockopt(p.client, IPPROTO_SCTP, SCTP_RESET_STREAMS, &ask, sizeof ask.r + 2) == 0 || errno != EAGAIN);
    check_eq(notice(p.server, SCTP_STREAM_RESET_EVENT)->sn_strreset_event.strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN,
             SCTP_STREAM_RESET_INCOMING_SSN);
    struct sctp_stream_reset_event *e = &notice(p.client, SCTP_STREAM_RESET_EVENT)->sn_strreset_event;
    check_eq(e->strreset_flags, SCTP_STREAM_RESET_OUTGOING_SSN);
    check_eq(e->strreset_length, sizeof *e + 2);
    check_eq(e->strreset_stream_list[0], 2);
    check_eq(send_on(p.client, 2, 0, "after"), 5);
    check_eq(check_receive(p.server, "after")->rcv.rcv_ssn, 0);
}
CASE(stream_reset_by_the_peer, "RFC 6525 6.1.1") {
    struct pair p = resettable(SCTP_STREAM_RESET_EVENT);
    must_set(p.client, SCTP_RESET_STREAMS, ((struct sctp_reset_streams){.srs_flags = SCTP_STREAM_RESET_INCOMING}));
    check(notice(p.server, SCTP_STREAM_RESET_EVENT)->sn_strreset_event.strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN);
}
CASE(stream_reset_not_allowed, "RFC 6525 6.3.1") {
    struct pair p = pair();
    check_errno(set(p.client, SCTP_RESET_STREAMS, ((struct sctp_reset_streams){.srs_flags = SCTP_STREAM_RESET_OUTGOING})), ENOPROTOOPT);
    check_errno(set(p.client, SCTP_ADD_STREAMS, ((struct sctp_add_streams){.sas_outstrms = 1})), ENOPROTOOPT);
    check_errno(set(p.client, SCTP_RESET_ASSOC, (sctp_assoc_t){0}), ENOPROTOOPT);
}
CASE(streams_added, "RFC 6525 6.1.3") {
    struct pair p = resettable(SCTP_STREAM_CHANGE_EVENT);
    check_errno(send_on(p.client, 12, 0, "x"), EINVAL);
    must_set(p.client, SCTP_ADD_STREAMS, ((struct sctp_add_streams){.sas_outstrms = 5}));
    struct sctp_stream_change_event *e = &notice(p.server, SCTP_STREAM_CHANGE_EVENT)->sn_strchange_event;
    check_eq(e->strchange_length, sizeof *e);
    notice(p.client, SCTP_STREAM_CHANGE_EVENT);
    check_eq(send_on(p.client, 12, 0, "new stream"), 10);
    check_receive(p.server, "new stream");
}
CASE(association_reset, "RFC 6525 6.1.2") {
    struct pair p = resettable(SCTP_ASSOC_RESET_EVENT);
    must_set(p.client, SCTP_RESET_ASSOC, (sctp_assoc_t){0});
    struct sctp_assoc_reset_event *e = &notice(p.server, SCTP_ASSOC_RESET_EVENT)->sn_assocreset_event;
    check_eq(e->assocreset_length, sizeof *e);
    check_eq(e->assocreset_flags, 0);
    notice(p.client, SCTP_ASSOC_RESET_EVENT);
    check_send(p.client, "goes on");
    check_receive(p.server, "goes on");
}
CASE(partial_delivery_ended, "RFC 6458 6.1.7") {
    struct pair p = pair();
    must_set(p.server, SCTP_PARTIAL_DELIVERY_POINT, 1000);
    subscribe(p.server, SCTP_PARTIAL_DELIVERY_EVENT);
    char *text = patterned(200000, 1);
    check_eq(send(p.client, text, 200000, 0), 200000);
    struct got *g = receive_some(p.server, 1000, 0);
    check_eq(g->n, 1000);
    check(!(g->flags & MSG_EOR));
    struct linger l = {1, 0};
    check_eq(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    check_eq(close(p.client), 0);
    for (;;) {
        g = receive_some(p.server, 100000, 0);
        if (g->n <= 0 || g->flags & (MSG_NOTIFICATION | MSG_EOR))
            break;
    }
    if (g->n < 0) {
        check_eq(errno, ECONNRESET);
        g = receive_some(p.server, 1000, 0);
    }
    if (g->n > 0 && g->flags & MSG_NOTIFICATION)
        check_eq(g->notice.sn_header.sn_type, SCTP_PARTIAL_DELIVERY_EVENT);
}
CASE(peeled_keeps_subscription, "RFC 6458 9.2") {
    struct many m = many();
    subscribe(m.b, SCTP_SHUTDOWN_EVENT);
    must_set(m.b, SCTP_EVENT, ((struct sctp_event){.se_assoc_id = m.in_b, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1}));
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    notice(fd, SCTP_SHUTDOWN_EVENT);
    change(fd, SCTP_SHUTDOWN_COMP);
}

SUITE(ENTRY(none_by_default), BOTH(comm_up), ENTRY(comm_up_streams_agreed), ENTRY(comm_up_before_data),
      ENTRY(notification_has_no_label), BOTH(notification_from), ENTRY(notification_in_parts), ENTRY(read_gets_notifications_too),
      BOTH(shutdown_in_order), BOTH(shutdown_in_order_many), ENTRY(lost_by_abort), ENTRY(lost_says_why), ENTRY(cant_start),
      ENTRY(events_by_structure), ENTRY(events_short_structure), ENTRY(event_on_and_off), ENTRY(event_is_seen_in_events),
      ENTRY(event_unknown), ENTRY(event_of_one_association), ENTRY(event_of_current), ENTRY(event_of_future), ENTRY(event_of_all),
      ENTRY(adaptation), ENTRY(sender_dry_at_once), ENTRY(sender_dry_after_data), ENTRY(no_authentication), ENTRY(send_failed),
      ENTRY(send_failed_event), ENTRY(stream_reset), ENTRY(stream_reset_by_the_peer), ENTRY(stream_reset_not_allowed),
      ENTRY(streams_added), ENTRY(association_reset), ENTRY(partial_delivery_ended), ENTRY(peeled_keeps_subscription))
