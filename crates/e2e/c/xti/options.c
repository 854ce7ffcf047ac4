/* Options: t_optmgmt() with its four requests, the status of each option, and options on other calls. */
#include "endpoints.h"

_Static_assert(T_NEGOTIATE == 4 && T_CHECK == 8 && T_DEFAULT == 16 && T_CURRENT == 0x80, "requests");
_Static_assert(T_SUCCESS == 32 && T_FAILURE == 64 && T_PARTSUCCESS == 0x100, "statuses");
_Static_assert(T_READONLY == 0x200 && T_NOTSUPPORT == 0x400, "statuses");
_Static_assert(INET_TCP == T_INET_TCP && INET_UDP == T_INET_UDP && INET_IP == T_INET_IP, "levels, old and new names");
_Static_assert(TCP_NODELAY == T_TCP_NODELAY && TCP_MAXSEG == T_TCP_MAXSEG && TCP_KEEPALIVE == T_TCP_KEEPALIVE, "names");
_Static_assert(UDP_CHECKSUM == T_UDP_CHECKSUM && IP_TOS == T_IP_TOS && IP_TTL == T_IP_TTL, "names");
_Static_assert(IP_REUSEADDR == T_IP_REUSEADDR && IP_DONTROUTE == T_IP_DONTROUTE, "names");
_Static_assert(IP_BROADCAST == T_IP_BROADCAST, "names");
_Static_assert(sizeof(struct t_opthdr) == 16, "struct t_opthdr");

/* --- lists --- */

struct list {
    unsigned len;
    _Alignas(8) char at[4096];
};
static void add(struct list *l, unsigned level, unsigned name, const void *value, unsigned len) {
    struct t_opthdr h = {.len = sizeof h + len, .level = level, .name = name, .status = 0};
    l->len = T_ALIGN(l->len);
    memcpy(l->at + l->len, &h, sizeof h);
    if (len)
        memcpy(l->at + l->len + sizeof h, value, len);
    l->len += h.len;
}
static struct list one(unsigned level, unsigned name, const void *value, unsigned len) {
    struct list l = {.len = 0};
    add(&l, level, name, value, len);
    return l;
}
static struct list one_int(unsigned level, unsigned name, t_scalar_t value) {
    return one(level, name, &value, sizeof value);
}
static struct list header(unsigned level, unsigned name) { return one(level, name, NULL, 0); }

/* An answer: the overall result, and the list. */
struct answer {
    int flags;
    struct netbuf opt;
    _Alignas(8) char at[4096];
};
static int ask(int fd, int request, const struct list *l, struct answer *a) {
    struct t_optmgmt req = {.opt = given_bytes(l->at, l->len), .flags = request};
    struct t_optmgmt ret = {.opt = room(a->at, sizeof a->at), .flags = -77};
    int r = t_optmgmt(fd, &req, &ret);
    a->flags = ret.flags, a->opt = ret.opt;
    return r;
}
static const char *status_name(int status) {
    static const struct named names[] = {NAMED(T_SUCCESS),  NAMED(T_FAILURE),    NAMED(T_PARTSUCCESS),
                                         NAMED(T_READONLY), NAMED(T_NOTSUPPORT)};
    return name_in(names, sizeof names / sizeof *names, status);
}
/* Option number `i` of an answer; NULL beyond the last. */
static struct t_opthdr *nth(struct answer *a, int i) {
    struct t_opthdr *h = T_OPT_FIRSTHDR(&a->opt);
    while (h && i-- > 0)
        h = T_OPT_NEXTHDR(&a->opt, h);
    return h;
}
static int count(struct answer *a) {
    int n = 0;
    while (nth(a, n))
        n++;
    return n;
}
static struct t_opthdr *find(struct answer *a, unsigned level, unsigned name) {
    for (int i = 0; nth(a, i); i++)
        if (nth(a, i)->level == level && nth(a, i)->name == name)
            return nth(a, i);
    return NULL;
}
/* A value by its length: 1, 4 or 8 bytes. */
static long value_of(struct t_opthdr *h) {
    unsigned len = h->len - sizeof *h;
    long wide;
    t_scalar_t narrow;
    if (len == 1)
        return *(unsigned char *)T_OPT_DATA(h);
    if (len == sizeof narrow) {
        memcpy(&narrow, T_OPT_DATA(h), len);
        return narrow;
    }
    if (len != sizeof wide)
        fail("option 0x%x of level 0x%x: a value of %u bytes", h->name, h->level, len);
    memcpy(&wide, T_OPT_DATA(h), len);
    return wide;
}

/* Asks for a single option and expects it back with this status. */
#define ask_one(FD, REQUEST, LIST, ANSWER, STATUS) ask_one_at(__LINE__, FD, REQUEST, LIST, ANSWER, STATUS)
static struct t_opthdr *ask_one_at(int line, int fd, int request, struct list l, struct answer *a, int status) {
    struct t_opthdr asked, *h;
    memcpy(&asked, l.at, sizeof asked);
    harness_line = line, harness_at = "t_optmgmt";
    if (ask(fd, request, &l, a) < 0)
        fail("line %d: t_optmgmt of 0x%x/0x%x: expected success, saw %s", line, asked.level, asked.name, fault());
    h = nth(a, 0);
    if (!h || nth(a, 1) || h->level != asked.level || h->name != asked.name)
        fail("line %d: expected one option 0x%x/0x%x back, saw %d", line, asked.level, asked.name, count(a));
    if ((int)h->status != status || a->flags != status)
        fail("line %d: option 0x%x/0x%x: expected %s, saw %s, overall %s", line, asked.level, asked.name,
             status_name(status), status_name(h->status), status_name(a->flags));
    return h;
}
static long current(int fd, unsigned level, unsigned name) {
    struct answer a;
    int status = level == T_INET_TCP && name == T_TCP_MAXSEG ? T_READONLY : T_SUCCESS;
    return value_of(ask_one(fd, T_CURRENT, header(level, name), &a, status));
}
static long by_default(int fd, unsigned level, unsigned name) {
    struct answer a;
    return value_of(ask_one(fd, T_DEFAULT, header(level, name), &a, T_SUCCESS));
}
static void negotiate(int fd, unsigned level, unsigned name, t_scalar_t value) {
    struct answer a;
    ask_one(fd, T_NEGOTIATE, one_int(level, name, value), &a, T_SUCCESS);
}
static unsigned own_level(void) { return is_in(TCP) ? T_INET_TCP : is_in(UDP) ? T_INET_UDP : XTI_GENERIC; }

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
      FOR(ALL, answer_not_wanted), FOR(ALL, same_struct_both_ways), FOR(TCP, bad_value), FOR(ALL, generic_lowat),
      FOR(ALL, generic_sndlowat), FOR(ALL, generic_debug), FOR(COTS, generic_linger), FOR(ALL, generic_unspec),
      FOR(ALL, wide_values), FOR(COTS, buffers_hold), FOR(LOOP, buffers_size_connections),
      FOR(LOOP, buffers_of_one_end), FOR(LOOP | TICLTS, buffers_are_granted_within_limits), FOR(LOSSLESS, buffers_size_mailboxes),
      FOR(LOOP, room_to_wait_for), FOR(LOOP, data_to_wait_for), FOR(LOOP, data_that_is_waited_for),
      FOR(LOOP, no_more_to_wait_for), FOR(TICLTS, datagrams_to_wait_for), FOR(TCP, tcp_nodelay), FOR(TCP, tcp_nodelay_sends),
      FOR(TCP, tcp_maxseg), FOR(TCP, tcp_keepalive), FOR(UDP, udp_checksum), FOR(INET & ~SCTP, ip_ttl), FOR(INET & ~SCTP, ip_tos),
      FOR(INET & ~SCTP, ip_two_of_one_byte), FOR(INET & ~SCTP, ip_switches), FOR(UDP, ip_broadcast), FOR(INET & ~SCTP, ip_options),
      FOR(TCP, ip_reuseaddr_lets_a_listener_come_back), FOR(UDP, ttl_arrives), FOR(UDP, options_of_one_datagram),
      FOR(TCP, options_of_a_connect), FOR(TCP, options_of_an_accept), FOR(COTS, bad_options_of_a_connect),
      FOR(COTS, bad_options_of_an_accept), FOR(COTS, accepted_inherits_nothing_bad))
