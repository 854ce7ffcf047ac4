/* Options level by level: what those of XTI_GENERIC, TCP, UDP and IP take, say and do. */
#include "options.h"

/* --- XTI_GENERIC --- */

CASE(generic_lowat, "XNS 5.2 XTI_RCVLOWAT") {
    int fd = bound();
    check_eq(by_default(fd, XTI_GENERIC, XTI_RCVLOWAT), 1);
    negotiate(fd, XTI_GENERIC, XTI_RCVLOWAT, 1);
    check_eq(current(fd, XTI_GENERIC, XTI_RCVLOWAT), 1);
}
CASE(generic_sndlowat, "XNS 5.2 XTI_SNDLOWAT") {
    int fd = bound();
    struct answer a;
    struct list l = header(XTI_GENERIC, XTI_SNDLOWAT);
    must_t(ask(fd, T_CURRENT, &l, &a));
    check_either(nth(&a, 0)->status, T_SUCCESS, T_NOTSUPPORT);
    l = one_int(XTI_GENERIC, XTI_SNDLOWAT, 1);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check(nth(&a, 0)->status != 0);
}
CASE(generic_debug, "XNS 5.2 XTI_DEBUG") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(XTI_GENERIC, XTI_DEBUG, T_YES);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check_eq(count(&a), 1);
    check(nth(&a, 0)->status != 0);
    l = header(XTI_GENERIC, XTI_DEBUG);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
}
CASE(generic_linger, "XNS 5.2 XTI_LINGER") {
    int fd = bound();
    struct answer a;
    struct t_linger on = {T_YES, 3}, seen;
    struct t_opthdr *h = ask_one(fd, T_NEGOTIATE, one(XTI_GENERIC, XTI_LINGER, &on, sizeof on), &a, T_SUCCESS);
    check_eq(h->len, sizeof *h + sizeof on);
    h = ask_one(fd, T_CURRENT, header(XTI_GENERIC, XTI_LINGER), &a, T_SUCCESS);
    memcpy(&seen, T_OPT_DATA(h), sizeof seen);
    check_eq(seen.l_onoff, T_YES);
    check_eq(seen.l_linger, 3);
    h = ask_one(fd, T_DEFAULT, header(XTI_GENERIC, XTI_LINGER), &a, T_SUCCESS);
    memcpy(&seen, T_OPT_DATA(h), sizeof seen);
    check_eq(seen.l_onoff, T_NO);
}
CASE(generic_unspec, "XNS 5.2 T_UNSPEC") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, T_UNSPEC);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check_either(nth(&a, 0)->status, T_SUCCESS, T_PARTSUCCESS);
    check(current(fd, XTI_GENERIC, XTI_RCVBUF) > 0);
}
CASE(wide_values, "XNS 5.2 t_optmgmt(): values of 8 bytes") {
    int fd = bound();
    struct answer a;
    long wide = 30000;
    ask_one(fd, T_NEGOTIATE, one(XTI_GENERIC, XTI_RCVBUF, &wide, sizeof wide), &a, T_SUCCESS);
    check(value_of(nth(&a, 0)) >= 30000);
    check(current(fd, XTI_GENERIC, XTI_RCVBUF) >= 30000);
    if (is_in(TCP)) {
        wide = T_YES;
        ask_one(fd, T_NEGOTIATE, one(T_INET_TCP, T_TCP_NODELAY, &wide, sizeof wide), &a, T_SUCCESS);
        check_eq(current(fd, T_INET_TCP, T_TCP_NODELAY), T_YES);
    }
}
CASE(buffers_hold, "XNS 5.2 XTI_RCVBUF, XTI_SNDBUF") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent >= 1000);
    rcv_wave((set_nonblock(p.server, 0), p.server), 0, sent, 4000);
}

/* A connection of which both ends wish for buffers of this size, before they are connected or behind that. */
static void wish(int fd, int size) {
    negotiate(fd, XTI_GENERIC, XTI_SNDBUF, size);
    negotiate(fd, XTI_GENERIC, XTI_RCVBUF, size);
}
static struct pair with_buffers(int size, int before) {
    struct pair p;
    p.listener = listener_at(&p.at, 1);
    p.client = bound_flags(O_NONBLOCK);
    p.server = open_flags(O_NONBLOCK);
    if (before)
        wish(p.client, size), wish(p.server, size);
    struct t_call call = call_to(&p.at);
    check_t(t_connect(p.client, &call, NULL), TNODATA);
    accept_at(p.listener, listen_for(p.listener), p.server);
    check_event(p.client, T_CONNECT);
    check_eq(t_rcvconnect(p.client, NULL), 0);
    if (!before)
        wish(p.client, size), wish(p.server, size);
    return p;
}
/* Both directions hold as much; what they hold can be received. */
static void check_held(struct pair p, size_t least, size_t most) {
    int ends[] = {p.client, p.server};
    for (int i = 0; i < 2; i++) {
        size_t sent = fill_endpoint(ends[i], 1000);
        check(sent >= least && sent <= most);
        rcv_wave(ends[1 - i], 0, sent, 4000);
        snd(ends[i], "room again", 0);
        rcv(ends[1 - i], "room again", 0);
    }
    must_t(t_close(p.client)), must_t(t_close(p.server)), must_t(t_close(p.listener));
}
CASE(buffers_size_connections, "XNS 5.2 XTI_RCVBUF, XTI_SNDBUF") {
    for (int before = 0; before < 2; before++) {
        check_held(with_buffers(4000, before), 4000, 8000);
        check_held(with_buffers(20000, before), 20000, 40000);
    }
    check_held(with_buffers(131071, 1), 131071, 2 * 131071);
    check_held(with_buffers(1 << 20, 1), 1 << 20, 2 << 20);
    check_held(with_buffers(4000, 1), 4000, 8000);
    struct pair p = connected_nonblock();
    check_held(p, 65536, 2 * 65536);
}
CASE(buffers_of_one_end, "XNS 5.2 XTI_SNDBUF") {
    struct pair p = connected_nonblock();
    negotiate(p.client, XTI_GENERIC, XTI_SNDBUF, 1000);
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent < 65536);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 4000);
    set_nonblock(p.server, 1);
    check(fill_endpoint(p.server, 1000) > 65536);
}
CASE(buffers_are_granted_within_limits, "XNS 5.2 XTI_RCVBUF T_PARTSUCCESS") {
    int fd = open_endpoint();
    struct answer a;
    ask_one(fd, T_NEGOTIATE, one_int(XTI_GENERIC, XTI_RCVBUF, 60 << 20), &a, T_PARTSUCCESS);
    long granted = current(fd, XTI_GENERIC, XTI_RCVBUF);
    check(granted >= 1 << 20 && granted < 60 << 20);
}
static void check_mailbox(int before, int size, int least, int most) {
    char data[1000] = "";
    struct address at;
    int fd = open_endpoint(), from = bound_flags(O_NONBLOCK), sent = 0;
    if (before)
        negotiate(fd, XTI_GENERIC, XTI_RCVBUF, size);
    at = bind_at(fd, unused_address(), 0);
    if (!before)
        negotiate(fd, XTI_GENERIC, XTI_RCVBUF, size);
    struct t_unitdata u = {.addr = given(&at), .udata = given_bytes(data, sizeof data)};
    while (t_sndudata(from, &u) == 0)
        sent += sizeof data;
    check_eq(t_errno, TFLOW);
    check(sent >= least && sent <= most);
    must_t(t_close(fd)), must_t(t_close(from));
}
CASE(buffers_size_mailboxes, "XNS 5.2 XTI_RCVBUF") {
    check_mailbox(1, 8000, 6000, 8000);
    check_mailbox(0, 8000, 6000, 8000);
    check_mailbox(1, 131071, 110000, 131071);
    check_mailbox(1, 200000, 160000, 200000);
}
CASE(room_to_wait_for, "XNS 5.2 XTI_SNDLOWAT") {
    struct pair p = connected_nonblock();
    negotiate(p.client, XTI_GENERIC, XTI_SNDLOWAT, 80000);
    check_eq(current(p.client, XTI_GENERIC, XTI_SNDLOWAT), 80000);
    size_t sent = fill_endpoint(p.client, 1000);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent - 30000, 1000);
    check_eq(events(p.client, POLLOUT, 0), 0);
    check_t(snd_text(p.client, "x", 0), TFLOW);
    check_look(p.client, 0);
    rcv_wave(p.server, sent - 30000, sent, 1000);
    check_eq(events(p.client, POLLOUT, 0), POLLOUT);
    check_look(p.client, T_GODATA);
    snd(p.client, "x", 0);
    rcv(p.server, "x", 0);
}

static void send_bytes(int fd, int n) {
    static char text[1 << 16];
    check_eq(t_snd(fd, text, n, 0), n);
}
static void receive_bytes(int fd, int n) {
    static char text[1 << 16];
    int flags;
    check_eq(t_rcv(fd, text, sizeof text, &flags), n);
}
static void check_nothing_there(int fd) {
    char text[10];
    int flags;
    check_eq(events(fd, READABLE, 0), 0);
    check_look(fd, 0);
    check_t(t_rcv(fd, text, sizeof text, &flags), TNODATA);
}
CASE(data_to_wait_for, "XNS 5.2 XTI_RCVLOWAT") {
    struct pair p = connected_nonblock();
    negotiate(p.server, XTI_GENERIC, XTI_RCVLOWAT, 1000);
    check_eq(current(p.server, XTI_GENERIC, XTI_RCVLOWAT), 1000);
    send_bytes(p.client, 600);
    check_nothing_there(p.server);
    send_bytes(p.client, 400);
    check_readable(p.server);
    check_look(p.server, T_DATA);
    receive_bytes(p.server, 600);
    check_nothing_there(p.server);
    send_bytes(p.client, 600);
    receive_bytes(p.server, 400);
    /* What ends the connection shows what is before it. */
    must_t(t_snddis(p.client, NULL));
    check_readable(p.server);
    /* The other direction has no mark. */
    struct pair q = connected_nonblock();
    negotiate(q.server, XTI_GENERIC, XTI_RCVLOWAT, 1000);
    send_bytes(q.server, 1);
    receive_bytes(q.client, 1);
    negotiate(q.server, XTI_GENERIC, XTI_RCVLOWAT, 1);
    send_bytes(q.client, 1);
    receive_bytes(q.server, 1);
}
CASE(data_that_is_waited_for, "XNS 5.2 XTI_RCVLOWAT") {
    struct pair p = connected();
    negotiate(p.server, XTI_GENERIC, XTI_RCVLOWAT, 1000);
    if (branch() == 0) {
        for (int i = 0; i < 10; i++)
            send_bytes(p.client, 100), sleep_ms(2);
        pause();
    }
    receive_bytes(p.server, 100);
    /* The others were there by then. */
    negotiate(p.server, XTI_GENERIC, XTI_RCVLOWAT, 1);
    set_nonblock(p.server, 1);
    for (int i = 0; i < 9; i++)
        receive_bytes(p.server, 100);
}
CASE(no_more_to_wait_for, "XNS 5.2 XTI_RCVLOWAT") {
    struct pair p = connected_nonblock();
    negotiate(p.server, XTI_GENERIC, XTI_RCVLOWAT, 110000);
    fill_endpoint(p.client, 1000);
    check_readable(p.server);
    check_look(p.server, T_DATA);
    receive_bytes(p.server, 1000);
}
CASE(datagrams_to_wait_for, "XNS 5.2 XTI_RCVLOWAT") {
    char text[2000] = "";
    int fd = open_endpoint(), from = bound_flags(O_NONBLOCK);
    struct address at = bind_at(fd, unused_address(), 0);
    set_nonblock(fd, 1);
    negotiate(fd, XTI_GENERIC, XTI_RCVLOWAT, 2000);
    struct t_unitdata u = {.addr = given(&at), .udata = given_bytes(text, 1000)}, got = {.udata = {.maxlen = sizeof text, .buf = text}};
    int flags;
    must_t(t_sndudata(from, &u));
    check_eq(events(fd, READABLE, 0), 0);
    check_look(fd, 0);
    check_t(t_rcvudata(fd, &got, &flags), TNODATA);
    must_t(t_sndudata(from, &u));
    check_readable(fd);
    check_look(fd, T_DATA);
    must_t(t_rcvudata(fd, &got, &flags));
    check_eq(got.udata.len, 1000);
}

/* --- TCP --- */

CASE(tcp_nodelay, "XNS 5.2 T_TCP_NODELAY") {
    int fd = bound();
    check_eq(current(fd, INET_TCP, TCP_NODELAY), T_NO);
    check_eq(by_default(fd, T_INET_TCP, T_TCP_NODELAY), T_NO);
    negotiate(fd, T_INET_TCP, T_TCP_NODELAY, T_YES);
    check_eq(current(fd, T_INET_TCP, T_TCP_NODELAY), T_YES);
    negotiate(fd, INET_TCP, TCP_NODELAY, T_NO);
    check_eq(current(fd, T_INET_TCP, T_TCP_NODELAY), T_NO);
}
CASE(tcp_nodelay_sends, "XNS 5.2 T_TCP_NODELAY") {
    struct pair p = connected();
    negotiate(p.client, T_INET_TCP, T_TCP_NODELAY, T_YES);
    for (int i = 0; i < 50; i++)
        check_echo(p.client, p.server);
    negotiate(p.client, T_INET_TCP, T_TCP_NODELAY, T_NO);
    check_echo(p.client, p.server);
}
CASE(tcp_maxseg, "XNS 5.2 T_TCP_MAXSEG T_READONLY") {
    struct pair p = connected();
    struct answer a;
    long size = current(p.client, T_INET_TCP, T_TCP_MAXSEG);
    check(size > 0);
    ask_one(p.client, T_NEGOTIATE, one_int(T_INET_TCP, T_TCP_MAXSEG, 600), &a, T_READONLY);
    check_eq(current(p.client, T_INET_TCP, T_TCP_MAXSEG), size);
    ask_one(p.client, T_CHECK, one_int(T_INET_TCP, T_TCP_MAXSEG, 600), &a, T_READONLY);
}
CASE(tcp_keepalive, "XNS 5.2 T_TCP_KEEPALIVE") {
    int fd = bound();
    struct answer a;
    struct t_kpalive on = {T_YES, 5}, seen;
    ask_one(fd, T_NEGOTIATE, one(T_INET_TCP, T_TCP_KEEPALIVE, &on, sizeof on), &a, T_SUCCESS);
    struct t_opthdr *h = ask_one(fd, T_CURRENT, header(T_INET_TCP, T_TCP_KEEPALIVE), &a, T_SUCCESS);
    check_eq(h->len, sizeof *h + sizeof seen);
    memcpy(&seen, T_OPT_DATA(h), sizeof seen);
    check_eq(seen.kp_onoff, T_YES);
    check_eq(seen.kp_timeout, 5);
    h = ask_one(fd, T_DEFAULT, header(T_INET_TCP, T_TCP_KEEPALIVE), &a, T_SUCCESS);
    memcpy(&seen, T_OPT_DATA(h), sizeof seen);
    check_eq(seen.kp_onoff, T_NO);
    struct t_kpalive unspecified = {T_YES, T_UNSPEC};
    ask_one(fd, T_NEGOTIATE, one(T_INET_TCP, T_TCP_KEEPALIVE, &unspecified, sizeof on), &a, T_SUCCESS);
}

/* --- UDP, IP --- */

CASE(udp_checksum, "XNS 5.2 T_UDP_CHECKSUM") {
    int fd = bound();
    check_eq(by_default(fd, T_INET_UDP, T_UDP_CHECKSUM), T_YES);
    negotiate(fd, T_INET_UDP, T_UDP_CHECKSUM, T_NO);
    check_eq(current(fd, T_INET_UDP, T_UDP_CHECKSUM), T_NO);
    negotiate(fd, INET_UDP, UDP_CHECKSUM, T_YES);
    check_eq(current(fd, T_INET_UDP, T_UDP_CHECKSUM), T_YES);
}
static void one_byte(unsigned name, unsigned char value, unsigned char other) {
    int fd = bound();
    struct answer a;
    struct t_opthdr *h = ask_one(fd, T_NEGOTIATE, one(T_INET_IP, name, &value, 1), &a, T_SUCCESS);
    check_eq(h->len, sizeof *h + 1);
    check_eq(*T_OPT_DATA(h), value);
    check_eq(current(fd, T_INET_IP, name), value);
    negotiate(fd, INET_IP, name, other); /* four bytes do too */
    check_eq(current(fd, T_INET_IP, name), other);
}
CASE(ip_ttl, "XNS 5.2 T_IP_TTL") { one_byte(T_IP_TTL, 9, 77); }
CASE(ip_tos, "XNS 5.2 T_IP_TOS") { one_byte(T_IP_TOS, SET_TOS(T_ROUTINE, T_LDELAY), SET_TOS(T_ROUTINE, T_HITHRPT)); }
CASE(ip_two_of_one_byte, "XNS 5.2 T_OPT_NEXTHDR") {
    int fd = bound();
    struct answer a;
    unsigned char ttl = 5, tos = SET_TOS(T_ROUTINE, T_HIREL);
    struct list l = one(T_INET_IP, T_IP_TTL, &ttl, 1);
    add(&l, T_INET_IP, T_IP_TOS, &tos, 1);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check_eq(count(&a), 2);
    check_eq(value_of(nth(&a, 0)), 5);
    check_eq(value_of(nth(&a, 1)), tos);
    check_eq(a.flags, T_SUCCESS);
}
CASE(ip_switches, "XNS 5.2 T_IP_REUSEADDR, T_IP_DONTROUTE") {
    int fd = open_endpoint();
    static const unsigned names[] = {T_IP_REUSEADDR, T_IP_DONTROUTE};
    for (int i = 0; i < 2; i++) {
        negotiate(fd, T_INET_IP, names[i], T_YES);
        check_eq(current(fd, T_INET_IP, names[i]), T_YES);
        negotiate(fd, T_INET_IP, names[i], T_NO);
        check_eq(current(fd, T_INET_IP, names[i]), T_NO);
    }
}
CASE(ip_broadcast, "XNS 5.2 T_IP_BROADCAST") {
    int fd = bound();
    check_eq(by_default(fd, T_INET_IP, T_IP_BROADCAST), T_NO);
    negotiate(fd, T_INET_IP, T_IP_BROADCAST, T_YES);
    check_eq(current(fd, T_INET_IP, T_IP_BROADCAST), T_YES);
}
CASE(ip_options, "XNS 5.2 T_IP_OPTIONS") {
    int fd = bound();
    struct answer a;
    struct t_opthdr *h = ask_one(fd, T_CURRENT, header(T_INET_IP, T_IP_OPTIONS), &a, T_SUCCESS);
    check_eq(h->len, sizeof *h);
    static const unsigned char nops[] = {1, 1, 1, 0};
    ask_one(fd, T_NEGOTIATE, one(T_INET_IP, T_IP_OPTIONS, nops, sizeof nops), &a, T_SUCCESS);
    h = ask_one(fd, T_CURRENT, header(T_INET_IP, T_IP_OPTIONS), &a, T_SUCCESS);
    check_eq(h->len, sizeof *h + sizeof nops);
    check_bytes(T_OPT_DATA(h), nops, sizeof nops);
}
CASE(ip_reuseaddr_lets_a_listener_come_back, "XNS 5.2 T_IP_REUSEADDR") {
    struct pair p = connected();
    must_t(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
    must_t(t_rcvrel(p.client));
    must_t(t_close(p.client));
    must_t(t_close(p.server));
    must_t(t_close(p.listener));
    int fd = open_endpoint();
    negotiate(fd, T_INET_IP, T_IP_REUSEADDR, T_YES);
    bind_at(fd, p.at, 1);
}

SUITE(FOR(ALL, generic_lowat), FOR(ALL, generic_sndlowat), FOR(ALL, generic_debug), FOR(COTS, generic_linger),
      FOR(ALL, generic_unspec), FOR(ALL, wide_values), FOR(COTS, buffers_hold), FOR(LOOP, buffers_size_connections),
      FOR(LOOP, buffers_of_one_end), FOR(LOOP | TICLTS, buffers_are_granted_within_limits),
      FOR(LOSSLESS, buffers_size_mailboxes), FOR(LOOP, room_to_wait_for), FOR(LOOP, data_to_wait_for),
      FOR(LOOP, data_that_is_waited_for), FOR(LOOP, no_more_to_wait_for), FOR(TICLTS, datagrams_to_wait_for),
      FOR(TCP, tcp_nodelay), FOR(TCP, tcp_nodelay_sends), FOR(TCP, tcp_maxseg), FOR(TCP, tcp_keepalive),
      FOR(UDP, udp_checksum), FOR(INET & ~SCTP, ip_ttl), FOR(INET & ~SCTP, ip_tos),
      FOR(INET & ~SCTP, ip_two_of_one_byte), FOR(INET & ~SCTP, ip_switches), FOR(UDP, ip_broadcast),
      FOR(INET & ~SCTP, ip_options), FOR(TCP, ip_reuseaddr_lets_a_listener_come_back))
