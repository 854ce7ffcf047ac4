/* Options: t_optmgmt() with its four requests, the status of each option, and options on other calls. */
#include "options.h"

_Static_assert(T_NEGOTIATE == 4 && T_CHECK == 8 && T_DEFAULT == 16 && T_CURRENT == 0x80, "requests");
_Static_assert(T_SUCCESS == 32 && T_FAILURE == 64 && T_PARTSUCCESS == 0x100, "statuses");
_Static_assert(T_READONLY == 0x200 && T_NOTSUPPORT == 0x400, "statuses");
_Static_assert(INET_TCP == T_INET_TCP && INET_UDP == T_INET_UDP && INET_IP == T_INET_IP, "levels, old and new names");
_Static_assert(TCP_NODELAY == T_TCP_NODELAY && TCP_MAXSEG == T_TCP_MAXSEG && TCP_KEEPALIVE == T_TCP_KEEPALIVE, "names");
_Static_assert(UDP_CHECKSUM == T_UDP_CHECKSUM && IP_TOS == T_IP_TOS && IP_TTL == T_IP_TTL, "names");
_Static_assert(IP_REUSEADDR == T_IP_REUSEADDR && IP_DONTROUTE == T_IP_DONTROUTE, "names");
_Static_assert(IP_BROADCAST == T_IP_BROADCAST, "names");
_Static_assert(sizeof(struct t_opthdr) == 16, "struct t_opthdr");

/* --- the requests --- */

CASE(negotiates, "XNS 5.2 t_optmgmt() T_NEGOTIATE") {
    int fd = bound();
    struct answer a;
    struct t_opthdr *h = ask_one(fd, T_NEGOTIATE, one_int(XTI_GENERIC, XTI_RCVBUF, 30000), &a, T_SUCCESS);
    check(value_of(h) >= 30000);
    check(current(fd, XTI_GENERIC, XTI_RCVBUF) >= 30000);
    check_state(fd, T_IDLE);
}
CASE(negotiates_when_unbound, "XNS 5.2 t_optmgmt()") {
    int fd = open_endpoint();
    negotiate(fd, XTI_GENERIC, XTI_SNDBUF, 40000);
    check_state(fd, T_UNBND);
    bind_at(fd, unused_address(), 0);
    check(current(fd, XTI_GENERIC, XTI_SNDBUF) >= 40000);
}
CASE(negotiates_when_connected, "XNS 5.2 t_optmgmt()") {
    struct pair p = connected();
    negotiate(p.client, XTI_GENERIC, XTI_SNDBUF, 40000);
    check(current(p.client, XTI_GENERIC, XTI_SNDBUF) >= 40000);
    check_state(p.client, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(checks, "XNS 5.2 t_optmgmt() T_CHECK") {
    int fd = bound();
    struct answer a;
    long before = current(fd, XTI_GENERIC, XTI_RCVBUF);
    ask_one(fd, T_CHECK, header(XTI_GENERIC, XTI_RCVBUF), &a, T_SUCCESS);
    ask_one(fd, T_CHECK, one_int(XTI_GENERIC, XTI_RCVBUF, before + 30000), &a, T_SUCCESS);
    check_eq(current(fd, XTI_GENERIC, XTI_RCVBUF), before);
    ask_one(fd, T_CHECK, header(XTI_GENERIC, 0x7777), &a, T_NOTSUPPORT);
}
CASE(tells_defaults, "XNS 5.2 t_optmgmt() T_DEFAULT") {
    int fd = bound();
    long first = by_default(fd, XTI_GENERIC, XTI_SNDBUF);
    check(first > 0);
    negotiate(fd, XTI_GENERIC, XTI_SNDBUF, 30000);
    check_eq(by_default(fd, XTI_GENERIC, XTI_SNDBUF), first);
}
CASE(tells_what_is, "XNS 5.2 t_optmgmt() T_CURRENT") {
    int fd = bound();
    struct answer a;
    struct list l = header(XTI_GENERIC, XTI_RCVBUF);
    add(&l, XTI_GENERIC, XTI_SNDBUF, NULL, 0);
    add(&l, XTI_GENERIC, XTI_RCVLOWAT, NULL, 0);
    must_t(ask(fd, T_CURRENT, &l, &a));
    check_eq(count(&a), 3);
    check_eq(a.flags, T_SUCCESS);
    check_eq(nth(&a, 0)->name, XTI_RCVBUF);
    check_eq(nth(&a, 1)->name, XTI_SNDBUF);
    check_eq(nth(&a, 2)->name, XTI_RCVLOWAT);
    for (int i = 0; i < 3; i++)
        check(value_of(nth(&a, i)) > 0);
}
CASE(unknown_name, "XNS 5.2 t_optmgmt() T_NOTSUPPORT") {
    int fd = bound();
    struct answer a;
    ask_one(fd, T_CURRENT, header(XTI_GENERIC, 0x7777), &a, T_NOTSUPPORT);
    ask_one(fd, T_DEFAULT, header(XTI_GENERIC, 0x7777), &a, T_NOTSUPPORT);
    ask_one(fd, T_NEGOTIATE, one_int(XTI_GENERIC, 0x7777, 1), &a, T_NOTSUPPORT);
    ask_one(fd, T_CHECK, one_int(own_level(), 0x7777, 1), &a, T_NOTSUPPORT);
}
/* An option of a level that the provider does not have. */
static void check_not_a_level(int fd, struct list l) {
    struct answer a;
    check_t(ask(fd, T_NEGOTIATE, &l, &a), TBADOPT);
    check_t(ask(fd, T_CHECK, &l, &a), TBADOPT);
    check_t(ask(fd, T_CURRENT, &l, &a), TBADOPT);
    check_t(ask(fd, T_DEFAULT, &l, &a), TBADOPT);
}
CASE(unknown_level, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound();
    check_not_a_level(fd, one_int(0x5555, 1, 1));
    check_not_a_level(fd, header(0x5555, 1));
    check_not_a_level(fd, header(0x5555, T_ALLOPT));
}
CASE(level_of_another_provider, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound();
    if (!is_in(TCP))
        check_not_a_level(fd, one_int(T_INET_TCP, T_TCP_NODELAY, T_YES));
    if (!is_in(UDP))
        check_not_a_level(fd, one_int(T_INET_UDP, T_UDP_CHECKSUM, T_YES));
    if (!is_in(INET))
        check_not_a_level(fd, header(T_INET_IP, T_IP_TOS));
}
CASE(worst_of_several, "XNS 5.2 t_optmgmt(): the overall result") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(XTI_GENERIC, 0x7777, 5);
    t_scalar_t size = 30000;
    add(&l, XTI_GENERIC, XTI_RCVBUF, &size, sizeof size);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check_eq(count(&a), 2);
    check_eq(nth(&a, 0)->status, T_NOTSUPPORT);
    check_eq(nth(&a, 1)->status, T_SUCCESS);
    check_eq(a.flags, T_NOTSUPPORT);
    check(current(fd, XTI_GENERIC, XTI_RCVBUF) >= 30000);
}
CASE(levels_mixed, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound(), before = current(fd, XTI_GENERIC, XTI_RCVLOWAT);
    struct answer a;
    struct list l = header(XTI_GENERIC, XTI_RCVBUF);
    add(&l, T_INET_IP, T_IP_TTL, NULL, 0);
    check_t(ask(fd, T_CURRENT, &l, &a), TBADOPT);
    check_t(ask(fd, T_DEFAULT, &l, &a), TBADOPT);
    l = one_int(XTI_GENERIC, XTI_RCVLOWAT, before + 10);
    add(&l, T_INET_IP, T_ALLOPT, NULL, 0);
    check_t(ask(fd, T_NEGOTIATE, &l, &a), TBADOPT);
    check_eq(current(fd, XTI_GENERIC, XTI_RCVLOWAT), before);
}
CASE(all_of_a_level, "XNS 5.2 t_optmgmt() T_ALLOPT") {
    int fd = bound();
    struct answer a;
    static const int requests[] = {T_CURRENT, T_DEFAULT};
    for (int r = 0; r < 2; r++) {
        struct list l = header(XTI_GENERIC, T_ALLOPT);
        must_t(ask(fd, requests[r], &l, &a));
        check(find(&a, XTI_GENERIC, XTI_RCVBUF) && find(&a, XTI_GENERIC, XTI_SNDBUF));
        check(find(&a, XTI_GENERIC, XTI_RCVLOWAT) != NULL);
        check(!find(&a, XTI_GENERIC, T_ALLOPT));
        for (int i = 0; nth(&a, i); i++) {
            check_eq(nth(&a, i)->level, XTI_GENERIC);
            check(nth(&a, i)->status != 0);
        }
    }
}
CASE(all_of_inet_levels, "XNS 5.2 t_optmgmt() T_ALLOPT") {
    int fd = bound();
    struct answer a;
    struct list l = header(own_level(), T_ALLOPT);
    must_t(ask(fd, T_CURRENT, &l, &a));
    if (is_in(TCP))
        check(find(&a, T_INET_TCP, T_TCP_NODELAY) && find(&a, T_INET_TCP, T_TCP_MAXSEG) &&
              find(&a, T_INET_TCP, T_TCP_KEEPALIVE));
    else
        check(find(&a, T_INET_UDP, T_UDP_CHECKSUM) != NULL);
    l = header(T_INET_IP, T_ALLOPT);
    must_t(ask(fd, T_CURRENT, &l, &a));
    check(find(&a, T_INET_IP, T_IP_TOS) && find(&a, T_INET_IP, T_IP_TTL) && find(&a, T_INET_IP, T_IP_REUSEADDR));
    check_eq(find(&a, T_INET_IP, T_IP_TTL)->len, sizeof(struct t_opthdr) + 1);
}
CASE(all_to_default, "XNS 5.2 t_optmgmt() T_NEGOTIATE T_ALLOPT") {
    int fd = bound();
    struct answer a;
    negotiate(fd, T_INET_TCP, T_TCP_NODELAY, T_YES);
    struct list l = header(T_INET_TCP, T_ALLOPT);
    must_t(ask(fd, T_NEGOTIATE, &l, &a));
    check(find(&a, T_INET_TCP, T_TCP_NODELAY) != NULL);
    check_eq(current(fd, T_INET_TCP, T_TCP_NODELAY), T_NO);
}

/* --- what is wrong --- */

CASE(malformed, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound();
    struct answer a;
    static const unsigned lengths[] = {0, 1, 15, 21, 4000, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 30000);
        memcpy(l.at, &lengths[i], sizeof lengths[i]);
        harness_line = i;
        check_t(ask(fd, T_NEGOTIATE, &l, &a), TBADOPT);
        check_t(ask(fd, T_CURRENT, &l, &a), TBADOPT);
    }
    check_state(fd, T_IDLE);
}
CASE(cut_off, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 30000);
    for (l.len = 1; l.len < 16; l.len++)
        check_t(ask(fd, T_NEGOTIATE, &l, &a), TBADOPT);
}
CASE(second_is_malformed, "XNS 5.2 t_optmgmt() TBADOPT") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 50000);
    t_scalar_t value = 1;
    unsigned second = l.len, bad = 7;
    long before = current(fd, XTI_GENERIC, XTI_RCVBUF);
    add(&l, XTI_GENERIC, XTI_SNDBUF, &value, sizeof value);
    memcpy(l.at + second, &bad, sizeof bad);
    check_t(ask(fd, T_NEGOTIATE, &l, &a), TBADOPT);
    check_eq(current(fd, XTI_GENERIC, XTI_RCVBUF), before);
}
CASE(bad_flags, "XNS 5.2 t_optmgmt() TBADFLAG") {
    int fd = bound();
    struct answer a;
    struct list l = header(XTI_GENERIC, XTI_RCVBUF);
    check_t(ask(fd, 0, &l, &a), TBADFLAG);
    check_t(ask(fd, T_SUCCESS, &l, &a), TBADFLAG);
    check_t(ask(fd, T_NEGOTIATE | T_CHECK, &l, &a), TBADFLAG);
    check_t(ask(fd, 0x40000, &l, &a), TBADFLAG);
}
CASE(bad_descriptor, "XNS 5.2 t_optmgmt() TBADF") {
    struct answer a;
    struct list l = header(XTI_GENERIC, XTI_RCVBUF);
    check_t(ask(999, T_CURRENT, &l, &a), TBADF);
    check_t(ask(0, T_CURRENT, &l, &a), TBADF);
}
CASE(little_room, "XNS 5.2 t_optmgmt() TBUFOVFLW") {
    int fd = bound();
    char small[12];
    struct list l = header(XTI_GENERIC, XTI_RCVBUF);
    struct t_optmgmt req = {.opt = given_bytes(l.at, l.len), .flags = T_CURRENT};
    struct t_optmgmt ret = {.opt = room(small, sizeof small)};
    check_t(t_optmgmt(fd, &req, &ret), TBUFOVFLW);
    check_state(fd, T_IDLE);
}
CASE(answer_not_wanted, "XNS 5.2 t_optmgmt()") {
    int fd = bound();
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 30000);
    struct t_optmgmt req = {.opt = given_bytes(l.at, l.len), .flags = T_NEGOTIATE}, ret = {.opt = {.maxlen = 0}};
    must_t(t_optmgmt(fd, &req, &ret));
    check_eq(ret.flags, T_SUCCESS);
    check_eq(ret.opt.len, 0);
    check(current(fd, XTI_GENERIC, XTI_RCVBUF) >= 30000);
}
CASE(same_struct_both_ways, "XNS 5.2 t_optmgmt()") {
    int fd = bound();
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 30000);
    struct t_optmgmt both = {.opt = {.maxlen = sizeof l.at, .len = l.len, .buf = l.at}, .flags = T_NEGOTIATE};
    must_t(t_optmgmt(fd, &both, &both));
    check_eq(both.flags, T_SUCCESS);
    check_eq(((struct t_opthdr *)(void *)l.at)->status, T_SUCCESS);
}
CASE(bad_value, "XNS 5.2 t_optmgmt() T_FAILURE") {
    int fd = bound();
    struct answer a;
    struct list l = one_int(T_INET_TCP, T_TCP_NODELAY, 77);
    if (ask(fd, T_NEGOTIATE, &l, &a) < 0)
        check_eq(t_errno, TBADOPT);
    else
        check(nth(&a, 0)->status == T_FAILURE || nth(&a, 0)->status == T_SUCCESS);
    l = one(T_INET_TCP, T_TCP_NODELAY, "abc", 3);
    if (ask(fd, T_NEGOTIATE, &l, &a) < 0)
        check_eq(t_errno, TBADOPT);
    else
        check_eq(nth(&a, 0)->status, T_FAILURE);
}

/* --- on other calls --- */

/* The TTL with which a plain socket sees the next datagram. */
static int seen_ttl(int s) {
    char data[100], control[100];
    struct iovec v = {data, sizeof data};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    must(recvmsg(s, &m, 0));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
            int ttl;
            memcpy(&ttl, CMSG_DATA(c), sizeof ttl);
            return ttl;
        }
    fail("a datagram without its TTL");
}
static int plain_receiver(struct address *at) {
    int s = must(socket(AF_INET, SOCK_DGRAM, 0)), on = 1;
    socklen_t len = sizeof at->at;
    *at = inet_address("127.0.0.1", 0);
    must(bind(s, (struct sockaddr *)at->at, at->len));
    must(getsockname(s, (struct sockaddr *)at->at, &len));
    must(setsockopt(s, IPPROTO_IP, IP_RECVTTL, &on, sizeof on));
    return s;
}
CASE(ttl_arrives, "XNS 5.2 T_IP_TTL") {
    struct address to;
    int s = plain_receiver(&to), fd = bound();
    struct t_unitdata u = {.addr = given(&to), .udata = given_text("x")};
    struct answer a;
    unsigned char ttl = 9;
    ask_one(fd, T_NEGOTIATE, one(T_INET_IP, T_IP_TTL, &ttl, 1), &a, T_SUCCESS);
    must_t(t_sndudata(fd, &u));
    check_eq(seen_ttl(s), 9);
}
CASE(options_of_one_datagram, "XNS 5.2 t_sndudata()") {
    struct address to;
    int s = plain_receiver(&to), fd = bound();
    long usual = current(fd, T_INET_IP, T_IP_TTL);
    struct t_unitdata plain = {.addr = given(&to), .udata = given_text("x")}, special = plain;
    unsigned char ttl = 9;
    struct list l = one(T_INET_IP, T_IP_TTL, &ttl, 1);
    special.opt = given_bytes(l.at, l.len);
    must_t(t_sndudata(fd, &plain));
    must_t(t_sndudata(fd, &special));
    must_t(t_sndudata(fd, &plain));
    check_eq(seen_ttl(s), usual);
    check_eq(seen_ttl(s), 9);
    check_eq(seen_ttl(s), usual);
}
CASE(options_of_a_connect, "XNS 5.2 t_connect()") {
    struct address at;
    int listener = listener_at(&at, 1), client = bound_flags(O_NONBLOCK);
    struct list l = one_int(T_INET_TCP, T_TCP_NODELAY, T_YES);
    struct t_call call = call_to(&at);
    call.opt = given_bytes(l.at, l.len);
    check_t(t_connect(client, &call, NULL), TNODATA);
    int server = serve(listener);
    confirm(client);
    check_eq(current(client, T_INET_TCP, T_TCP_NODELAY), T_YES);
    check_echo(client, server);
}
CASE(options_of_an_accept, "XNS 5.2 t_accept()") {
    struct address at;
    int listener = listener_at(&at, 1), client = connecting(&at), server = open_endpoint();
    struct list l = one_int(T_INET_TCP, T_TCP_NODELAY, T_YES);
    struct t_call call = {.sequence = listen_for(listener)};
    call.opt = given_bytes(l.at, l.len);
    must_t(t_accept(listener, server, &call));
    confirm(client);
    check_eq(current(server, T_INET_TCP, T_TCP_NODELAY), T_YES);
    check_echo(client, server);
}
CASE(bad_options_of_a_connect, "XNS 5.2 t_connect() TBADOPT") {
    struct address at;
    int listener = listener_at(&at, 1), client = bound_flags(O_NONBLOCK);
    struct list l = one_int(XTI_GENERIC, XTI_RCVBUF, 30000);
    unsigned bad = 3;
    memcpy(l.at, &bad, sizeof bad);
    struct t_call call = call_to(&at);
    call.opt = given_bytes(l.at, l.len);
    check_t(t_connect(client, &call, NULL), TBADOPT);
    check_state(client, T_IDLE);
    check_look(listener, 0);
}
CASE(bad_options_of_an_accept, "XNS 5.2 t_accept() TBADOPT") {
    struct address at;
    int listener = listener_at(&at, 1), client = connecting(&at), server = open_endpoint();
    struct t_call call = {.sequence = listen_for(listener)};
    struct t_opthdr bad = {.len = 900, .level = XTI_GENERIC, .name = XTI_RCVBUF};
    call.opt = given_bytes(&bad, sizeof bad);
    check_t(t_accept(listener, server, &call), TBADOPT);
    check_state(listener, T_INCON);
    call.opt.len = 0;
    must_t(t_accept(listener, server, &call));
    confirm(client);
    check_echo(client, server);
}
CASE(accepted_inherits_nothing_bad, "XNS 5.2 t_optmgmt()") {
    struct pair p = connected();
    struct answer a;
    struct list l = header(XTI_GENERIC, T_ALLOPT);
    must_t(ask(p.server, T_CURRENT, &l, &a));
    check(find(&a, XTI_GENERIC, XTI_RCVBUF) != NULL);
    if (is_in(TCP))
        check_eq(current(p.server, T_INET_TCP, T_TCP_NODELAY), T_NO);
}

SUITE(FOR(ALL, negotiates), FOR(ALL, negotiates_when_unbound), FOR(COTS, negotiates_when_connected), FOR(ALL, checks),
      FOR(ALL, tells_defaults), FOR(ALL, tells_what_is), FOR(ALL, unknown_name), FOR(ALL, unknown_level),
      FOR(ALL, level_of_another_provider), FOR(ALL, worst_of_several), FOR(ALL, levels_mixed), FOR(ALL, all_of_a_level),
      FOR(INET & ~SCTP, all_of_inet_levels), FOR(TCP, all_to_default), FOR(ALL, malformed), FOR(ALL, cut_off),
      FOR(ALL, second_is_malformed), FOR(ALL, bad_flags), FOR(ALL, bad_descriptor), FOR(ALL, little_room),
      FOR(ALL, answer_not_wanted), FOR(ALL, same_struct_both_ways), FOR(TCP, bad_value), FOR(UDP, ttl_arrives),
      FOR(UDP, options_of_one_datagram), FOR(TCP, options_of_a_connect), FOR(TCP, options_of_an_accept),
      FOR(COTS, bad_options_of_a_connect), FOR(COTS, bad_options_of_an_accept),
      FOR(COTS, accepted_inherits_nothing_bad))
