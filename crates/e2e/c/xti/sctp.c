/* /dev/sctp_t: what it has beyond other connections. A case that ends in _shm goes between endpoints of this host without
 * packets, one that ends in _udp by packets, encapsulated, though both ends are here. */
#include "tpi.h"
#include <sys/epoll.h>
#include <sys/xti_sctp.h>

/* Makes CASE(NAME##_shm) and CASE(NAME##_udp) of one body. */
#define BY_BOTH(NAME, PAGE) \
    static void NAME(void); \
    CASE(NAME##_shm, PAGE) { by("shm"), NAME(); } \
    CASE(NAME##_udp, PAGE) { by("udp"), NAME(); } \
    static void NAME(void)
#define BOTH(NAME) FOR(SCTP, NAME##_shm), FOR(SCTP, NAME##_udp)

/* --- options --- */

struct answer {
    int flags, status;
    unsigned len;
    _Alignas(8) char bytes[2048];
    char *value;
};

/* One option of SCTP, with its answer. */
static int ask(int fd, int request, unsigned name, const void *value, unsigned len, struct answer *a) {
    _Alignas(8) char list[1024];
    struct t_opthdr *h = (void *)list;
    *h = (struct t_opthdr){.len = sizeof *h + len, .level = T_INET_SCTP, .name = name};
    if (len)
        memcpy(T_OPT_DATA(h), value, len);
    struct t_optmgmt req = {given_bytes(list, h->len), request}, ret = {room(a->bytes, sizeof a->bytes), 0};
    if (t_optmgmt(fd, &req, &ret) < 0)
        return -1;
    h = (void *)a->bytes;
    a->flags = ret.flags, a->status = h->status, a->len = h->len - sizeof *h, a->value = (char *)T_OPT_DATA(h);
    return 0;
}
static struct answer set_bytes(int fd, unsigned name, const void *value, unsigned len) {
    struct answer a;
    must_t(ask(fd, T_NEGOTIATE, name, value, len, &a));
    return a;
}
static int set(int fd, unsigned name, t_uscalar_t value) { return set_bytes(fd, name, &value, sizeof value).status; }
static unsigned get(int fd, unsigned name) {
    struct answer a;
    must_t(ask(fd, T_CURRENT, name, NULL, 0, &a));
    check_eq(a.len, sizeof(t_uscalar_t));
    t_uscalar_t value;
    memcpy(&value, a.value, sizeof value);
    return value;
}
static struct t_sctp_status status_of(int fd) {
    struct t_sctp_status s;
    struct answer a;
    must_t(ask(fd, T_CURRENT, T_SCTP_STATUS, NULL, 0, &a));
    check_eq(a.status, T_READONLY);
    memset(&s, 0, sizeof s);
    memcpy(&s, a.value, a.len < sizeof s ? a.len : sizeof s);
    check_eq(a.len, offsetof(struct t_sctp_status, st_path) + s.st_npaths * sizeof(struct t_sctp_path));
    return s;
}
static struct t_sctp_rcvinfo last_of(int fd) {
    struct t_sctp_rcvinfo r;
    struct answer a;
    must_t(ask(fd, T_CURRENT, T_SCTP_RCVINFO, NULL, 0, &a));
    check_eq(a.len, sizeof r);
    memcpy(&r, a.value, sizeof r);
    return r;
}

CASE(options_have_defaults, "docs/sctp.md options") {
    static const struct {
        unsigned name, value;
    } all[] = {
        {T_SCTP_NODELAY, T_NO},          {T_SCTP_SID, 0},            {T_SCTP_PPI, 0},           {T_SCTP_COOKIE_LIFE, 60000},
        {T_SCTP_SACK_DELAY, 200},        {T_SCTP_RTO_INITIAL, 1000}, {T_SCTP_RTO_MIN, 1000},    {T_SCTP_RTO_MAX, 60000},
        {T_SCTP_HB, T_YES},              {T_SCTP_HB_ITVL, 30000},    {T_SCTP_OSTREAMS, 10},     {T_SCTP_ISTREAMS, 2048},
        {T_SCTP_PATH_MAX_RETRANS, 5},    {T_SCTP_MAX_BURST, 4},      {T_SCTP_LIFETIME, 0},      {T_SCTP_RECVOPT, T_NO},
        {T_SCTP_ASSOC_MAX_RETRANS, 10},  {T_SCTP_ECN, T_NO},         {T_SCTP_PARTIAL, T_YES},   {T_SCTP_INTERLEAVE, T_NO},
        {T_SCTP_MAX_INIT_RETRIES, 8},    {T_SCTP_CKSUM_TYPE, T_SCTP_CSUM_CRC32C},
    };
    int fd = bound();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_eq(get(fd, all[i].name), all[i].value);
    struct answer a;
    must_t(ask(fd, T_DEFAULT, T_ALLOPT, NULL, 0, &a));
}
CASE(options_keep_what_was_set, "docs/sctp.md options") {
    int fd = bound();
    check_eq(set(fd, T_SCTP_RTO_MIN, 50), T_SUCCESS);
    check_eq(get(fd, T_SCTP_RTO_MIN), 50);
    check_eq(set(fd, T_SCTP_PPI, 0xfedcba98u), T_SUCCESS);
    check_eq(get(fd, T_SCTP_PPI), 0xfedcba98u);
    check_eq(set(fd, T_SCTP_LIFETIME, 40), T_SUCCESS);
    check_eq(get(fd, T_SCTP_PR), T_SCTP_PR_LIFETIME);
    check_eq(set(fd, T_SCTP_PR, T_SCTP_PR_NONE), T_SUCCESS);
    check_eq(get(fd, T_SCTP_LIFETIME), 0);
    check_eq(set(fd, T_SCTP_SACK_DELAY, 5000), T_PARTSUCCESS);
    check_eq(get(fd, T_SCTP_SACK_DELAY), 500);
    check_eq(set(fd, T_SCTP_TSN, 1), T_READONLY);
    check_eq(set(fd, 4711, 1), T_NOTSUPPORT);
    check_eq(set(fd, T_SCTP_RESET_ASSOC, T_YES), T_FAILURE);
    check_eq(status_of(fd).st_state, T_SCTP_CLOSED);
    t_uscalar_t bad = 7;
    struct answer a;
    check_t(ask(fd, T_NEGOTIATE, T_SCTP_HB, &bad, sizeof bad, &a), TBADOPT);
}

/* --- messages --- */

BY_BOTH(messages_keep_their_boundaries, "RFC 9260 2.3") {
    struct pair p = connected();
    char buf[100];
    int flags = -1;
    snd(p.client, "one", 0);
    snd(p.client, "and two", 0);
    check_eq(t_rcv(p.server, buf, 2, &flags), 2);
    check_eq(flags, T_MORE);
    check_eq(t_rcv(p.server, buf, sizeof buf, &flags), 1);
    check_eq(flags, 0);
    check_eq(t_rcv(p.server, buf, sizeof buf, &flags), 7);
    check_eq(flags, 0);
}
BY_BOTH(more_joins_pieces, "XNS 5.2 t_snd() T_MORE") {
    struct pair p = connected();
    set(p.client, T_SCTP_SID, 2);
    snd(p.client, "be", T_MORE);
    /* A message keeps the stream that it began on. */
    set(p.client, T_SCTP_SID, 3);
    snd(p.client, "gin", T_MORE);
    snd(p.client, "ning", 0);
    snd(p.client, "next", 0);
    char buf[20];
    int flags, have = 0;
    do {
        have += must_t(t_rcv(p.server, buf + have, sizeof buf - have, &flags));
        check_eq(last_of(p.server).rcv_sid, 2);
    } while (flags & T_MORE);
    check_bytes(buf, "beginning", have);
    check_eq(have, 9);
    rcv(p.server, "next", 0);
    check_eq(last_of(p.server).rcv_sid, 3);
}
BY_BOTH(streams_and_protocols_arrive, "RFC 9260 3.3.1") {
    struct pair p = connected();
    static const struct {
        unsigned sid, ppi, ssn;
    } all[] = {{0, 0, 0}, {9, 0x80000001u, 0}, {0, 7, 1}, {9, 0, 1}, {1, 1, 0}, {9, 2, 2}};
    size_t n = sizeof all / sizeof *all;
    for (size_t i = 0; i < n; i++) {
        check_eq(set(p.client, T_SCTP_SID, all[i].sid), T_SUCCESS);
        check_eq(set(p.client, T_SCTP_PPI, all[i].ppi), T_SUCCESS);
        snd(p.client, "x", 0);
    }
    unsigned tsn = 0;
    for (size_t i = 0; i < n; i++) {
        rcv(p.server, "x", 0);
        struct t_sctp_rcvinfo r = last_of(p.server);
        check_eq(r.rcv_sid, all[i].sid);
        check_eq(r.rcv_ppi, all[i].ppi);
        check_eq(r.rcv_ssn, all[i].ssn);
        check_eq(r.rcv_unordered, T_NO);
        check(i == 0 || r.rcv_tsn == tsn + 1);
        tsn = r.rcv_tsn;
        check_eq(get(p.server, T_SCTP_TSN), tsn);
        check_eq(get(p.server, T_SCTP_SSN), r.rcv_ssn);
    }
}
BY_BOTH(expedited_is_unordered, "RFC 9260 6.6") {
    struct pair p = connected();
    set(p.client, T_SCTP_SID, 4);
    set(p.client, T_SCTP_PPI, 44);
    check_eq(snd_text(p.client, "urgent", T_EXPEDITED), 6);
    check_event(p.server, T_EXDATA);
    rcv(p.server, "urgent", T_EXPEDITED);
    struct t_sctp_rcvinfo r = last_of(p.server);
    check_eq(r.rcv_unordered, T_YES);
    check_eq(r.rcv_sid, 4);
    check_eq(r.rcv_ppi, 44);
    snd(p.client, "plain", 0);
    rcv(p.server, "plain", 0);
    check_eq(last_of(p.server).rcv_ssn, 0);
}
BY_BOTH(empty_messages_are_refused, "RFC 9260 3.3.10.9") {
    struct pair p = connected();
    check_t(t_snd(p.client, "", 0, 0), TBADDATA);
    check_echo(p.client, p.server);
}
BY_BOTH(great_messages, "RFC 9260 6.9") {
    enum { GREAT = 300000 };
    struct pair p = connected();
    static char from[GREAT], to[GREAT];
    fill_wave(from, 0, GREAT);
    set_nonblock(p.client, 1);
    set_nonblock(p.server, 1);
    for (int round = 0; round < 3; round++) {
        size_t sent = 0, have = 0;
        int flags = T_MORE;
        for (long until = now_ms() + PATIENCE; flags & T_MORE;) {
            if (now_ms() > until)
                fail("%zu bytes sent and %zu received, and no more", sent, have);
            int n = sent < GREAT ? t_snd(p.client, from + sent, GREAT - sent, 0) : 0;
            sent += n > 0 ? n : 0;
            n = t_rcv(p.server, to + have, GREAT - have, &flags);
            if (n < 0)
                flags = T_MORE;
            have += n > 0 ? n : 0;
        }
        check_eq(have, GREAT);
        check_wave(to, 0, GREAT);
    }
}
BY_BOTH(receivers_hold_senders_back, "RFC 9260 6.1") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent > 1000);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 65536);
    check_event(p.client, T_GODATA);
    check_eq(snd_text(p.client, "goes on", 0), 7);
    rcv(p.server, "goes on", 0);
}
BY_BOTH(threads_wake_each_other, "poll(2)") {
    struct pair p = connected();
    check_eq(events(p.server, POLLIN, 0), 0);
    check(events(p.server, POLLOUT, PATIENCE) & POLLOUT);
    snd(p.client, "x", 0);
    check(events(p.server, POLLIN, PATIENCE) & POLLIN);
    rcv(p.server, "x", 0);
    check_eq(events(p.server, POLLIN, 0), 0);
}

/* --- options with messages --- */

struct labelled {
    struct T_optdata_req req;
    struct t_opthdr sid;
    t_uscalar_t sid_value;
    struct t_opthdr ppi;
    t_uscalar_t ppi_value;
};
BY_BOTH(options_go_with_messages, "TPI 2.0 T_OPTDATA_REQ") {
    struct pair p = connected();
    struct primitive m;
    check_eq(set(p.server, T_SCTP_RECVOPT, T_YES), T_SUCCESS);
    must(ioctl(p.client, I_POP, 0));
    must(ioctl(p.server, I_POP, 0));
    unsigned header = sizeof(struct t_opthdr) + sizeof(t_uscalar_t);
    struct labelled l = {
        .req = {.PRIM_type = T_OPTDATA_REQ, .OPT_length = 2 * header, .OPT_offset = offsetof(struct labelled, sid)},
        .sid = {.len = header, .level = T_INET_SCTP, .name = T_SCTP_SID},
        .sid_value = 5,
        .ppi = {.len = header, .level = T_INET_SCTP, .name = T_SCTP_PPI},
        .ppi_value = 55,
    };
    tpi_put(p.client, &l, sizeof l, "labelled", 8);
    tpi_data(p.client, "plain", 5, 0);
    for (int i = 0; i < 2; i++) {
        tpi_get(p.server, &m, T_OPTDATA_IND);
        check_bytes(m.data, i ? "plain" : "labelled", i ? 5 : 8);
        unsigned seen = 0, offset = m.p.optdata_ind.OPT_offset, end = offset + m.p.optdata_ind.OPT_length;
        for (; offset < end; seen++) {
            struct t_opthdr h;
            t_uscalar_t value;
            memcpy(&h, m.bytes + offset, sizeof h);
            memcpy(&value, m.bytes + offset + sizeof h, sizeof value);
            check_eq(h.level, T_INET_SCTP);
            if (h.name == T_SCTP_SID)
                check_eq(value, i ? 0 : 5);
            if (h.name == T_SCTP_PPI)
                check_eq(value, i ? 0 : 55);
            offset += h.len;
        }
        check_eq(seen, 4);
    }
}

/* --- streams --- */

BY_BOTH(streams_are_agreed_on, "RFC 9260 5.1.1") {
    struct address at;
    int listener = open_endpoint();
    set(listener, T_SCTP_ISTREAMS, 4);
    at = bind_at(listener, unused_address(), 1);
    int client = bound_flags(O_NONBLOCK);
    set(client, T_SCTP_OSTREAMS, 9);
    set(client, T_SCTP_ISTREAMS, 3);
    struct t_call call = call_to(&at);
    check_t(t_connect(client, &call, NULL), TNODATA);
    int server = serve(listener);
    confirm(client);
    check_eq(get(client, T_SCTP_OSTREAMS), 4);
    check_eq(get(client, T_SCTP_ISTREAMS), 3);
    check_eq(get(server, T_SCTP_OSTREAMS), 3);
    check_eq(get(server, T_SCTP_ISTREAMS), 4);
    check_eq(set(client, T_SCTP_SID, 4), T_FAILURE);
    check_eq(set(client, T_SCTP_SID, 3), T_SUCCESS);
    snd(client, "x", 0);
    rcv(server, "x", 0);
    check_eq(last_of(server).rcv_sid, 3);
}
/* Sends until a message is the first of its stream again. Each end attends to what the other asks when it is used. */
static void begin_anew(struct pair p) {
    long until = now_ms() + PATIENCE;
    for (int ssn = -1; ssn != 0; sleep_ms(1)) {
        check(now_ms() < until);
        t_look(p.client), t_look(p.server);
        snd(p.client, "x", 0);
        rcv(p.server, "x", 0);
        ssn = last_of(p.server).rcv_ssn;
    }
}
BY_BOTH(streams_begin_anew, "RFC 6525 4.1") {
    struct pair p = connected();
    t_uscalar_t one = 3, all = T_SCTP_ALL_STREAMS;
    set(p.client, T_SCTP_SID, 3);
    for (unsigned i = 0; i < 3; i++) {
        snd(p.client, "x", 0);
        rcv(p.server, "x", 0);
        check_eq(last_of(p.server).rcv_ssn, i);
    }
    check_eq(set_bytes(p.client, T_SCTP_RESET_OUT, &one, sizeof one).status, T_SUCCESS);
    begin_anew(p);
    check_eq(set_bytes(p.server, T_SCTP_RESET_IN, &all, sizeof all).status, T_SUCCESS);
    begin_anew(p);
}
BY_BOTH(streams_are_added, "RFC 6525 4.5") {
    struct pair p = connected();
    unsigned out = get(p.client, T_SCTP_OSTREAMS), in = get(p.server, T_SCTP_ISTREAMS);
    struct t_sctp_add_streams more = {.as_out = 5, .as_in = 0};
    check_eq(set_bytes(p.client, T_SCTP_ADD_STREAMS, &more, sizeof more).status, T_SUCCESS);
    await((t_look(p.client), t_look(p.server), get(p.client, T_SCTP_OSTREAMS) == out + 5 && get(p.server, T_SCTP_ISTREAMS) == in + 5));
    check_eq(get(p.client, T_SCTP_OSTREAMS), out + 5);
    check_eq(get(p.server, T_SCTP_ISTREAMS), in + 5);
    check_eq(set(p.client, T_SCTP_SID, out + 4), T_SUCCESS);
    snd(p.client, "x", 0);
    rcv(p.server, "x", 0);
    check_eq(last_of(p.server).rcv_sid, out + 4);
}

BY_BOTH(no_room_takes_nothing, "XNS 5.2 t_rcv() T_MORE") {
    struct pair p = connected();
    char b[10];
    int flags = 0;
    set_nonblock(p.server, 1);
    check_t(t_rcv(p.server, b, 0, &flags), TNODATA);
    snd(p.client, "data", 0);
    check_event(p.server, T_DATA);
    for (int i = 0; i < 2; i++) {
        check_eq(t_rcv(p.server, b, 0, &flags), 0);
        check_eq(flags, T_MORE);
    }
    rcv(p.server, "data", 0);
    snd(p.client, "now", T_EXPEDITED);
    check_event(p.server, T_EXDATA);
    check_eq(t_rcv(p.server, b, 0, &flags), 0);
    check_eq(flags, T_MORE | T_EXPEDITED);
    rcv(p.server, "now", T_EXPEDITED);
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_t(t_rcv(p.server, b, 0, &flags), TLOOK);
}

/* --- the end --- */

BY_BOTH(shutdown_ends_both_directions, "RFC 9260 9.2") {
    for (int i = 0; i < 2; i++) {
        struct pair p = connected();
        int first = i ? p.server : p.client, other = i ? p.client : p.server;
        snd(other, "on its way", 0);
        snd(first, "last", 0);
        check_ok(t_sndrel(first));
        check_t(snd_text(first, "more", 0), TOUTSTATE);
        rcv(other, "last", 0);
        check_event(other, T_ORDREL);
        check_ok(t_rcvrel(other));
        check_state(other, T_INREL);
        check_t(snd_text(other, "more", 0), TOUTSTATE);
        rcv(first, "on its way", 0);
        /* Without a t_sndrel() of the other: a SHUTDOWN is answered by the transport. */
        check_event(first, T_ORDREL);
        check_ok(t_rcvrel(first));
        check_state(first, T_IDLE);
        check_ok(t_sndrel(other));
        check_state(other, T_IDLE);
        check_ok(t_close(first));
        check_ok(t_close(other));
    }
}
/* Whatever its program does, which can't send any more. */
BY_BOTH(shutdown_is_answered_by_the_transport, "RFC 9260 9.2") {
    struct pair p = connected();
    snd(p.client, "last", 0);
    check_ok(t_sndrel(p.client));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
    check_t(snd_text(p.server, "more", 0), TLOOK);
    check_t(snd_text(p.server, "more", T_EXPEDITED), TLOOK);
    check_state(p.server, T_DATAXFER);
    rcv(p.server, "last", 0);
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_t(snd_text(p.server, "more", 0), TOUTSTATE);
    check_ok(t_sndrel(p.server));
    check_state(p.server, T_IDLE);
}
struct releasing {
    int fd, left;
};
static void release_soon(void *with) {
    struct releasing *r = with;
    sleep_ms(r->left);
    check_ok(t_sndrel(r->fd));
}
/* Who closes shuts down. */
BY_BOTH(shutdown_is_answered_behind_a_refused_send, "RFC 9260 9.2") {
    struct pair p = connected();
    check_ok(t_close(p.client));
    check_event(p.server, T_ORDREL);
    check_t(snd_text(p.server, "too late", 0), TLOOK);
    check_ok(t_sndrel(p.server));
    check_ok(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
    check_look(p.server, 0);
}
BY_BOTH(shutdown_wakes_who_waits, "XNS 5.2 t_rcv() TLOOK") {
    struct pair p = connected();
    struct releasing r = {p.client, 30};
    char b[10];
    int flags;
    pthread_t t = start(release_soon, &r);
    check_t(t_rcv(p.client, b, sizeof b, &flags), TLOOK);
    finish(t);
    check_look(p.client, T_ORDREL);
    struct pair q = connected();
    r.fd = q.client;
    int set = must(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event in = {.events = EPOLLIN};
    must(epoll_ctl(set, EPOLL_CTL_ADD, q.client, &in));
    t = start(release_soon, &r);
    check_eq(epoll_wait(set, &in, 1, PATIENCE), 1);
    finish(t);
    check_look(q.client, T_ORDREL);
}
BY_BOTH(aborts_are_told, "RFC 9260 9.1") {
    struct pair p = connected();
    struct t_discon d = {.udata = room(NULL, 0)};
    check_ok(t_snddis(p.client, NULL));
    check_state(p.client, T_IDLE);
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, &d));
    check_eq(d.reason, ECONNRESET);
    check_state(p.server, T_IDLE);
}
BY_BOTH(nobody_refuses, "RFC 9260 8.4") {
    struct address at = deserted_address();
    struct t_discon d = {.udata = room(NULL, 0)};
    int fd = bound();
    struct t_call call = call_to(&at);
    check_t(t_connect(fd, &call, NULL), TLOOK);
    check_look(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, &d));
    check_eq(d.reason, ECONNREFUSED);
    check_state(fd, T_IDLE);
}
BY_BOTH(connects_again, "XNS 5.2 t_connect()") {
    struct pair p = connected();
    check_ok(t_snddis(p.client, NULL));
    begin_call(p.client, &p.at);
    int server = serve(p.listener);
    confirm(p.client);
    check_echo(p.client, server);
}
BY_BOTH(connect_data_is_refused, "docs/sctp.md") {
    struct pair p = connected();
    int fd = bound();
    struct t_call call = call_to(&p.at);
    call.udata = given_text("hello");
    check_t(t_connect(fd, &call, NULL), TBADDATA);
    check_state(fd, T_IDLE);
}
enum { MANY = 300 };
/* Connects, sends, and leaves: by exit alone, or with the endpoint closed or released before. */
static pid_t sends_and_leaves(const struct address *at, int how) {
    pid_t child = branch();
    if (child == 0) {
        int fd = connect_new(at);
        for (int i = 0; i < MANY; i++)
            snd(fd, "a piece", 0);
        if (how == 1)
            check_ok(t_close(fd));
        if (how == 2)
            check_ok(t_sndrel(fd));
        _exit(0);
    }
    return child;
}
static void receives_all(int server) {
    for (int i = 0; i < MANY; i++)
        rcv(server, "a piece", 0);
    check_event(server, T_ORDREL);
}
BY_BOTH(what_was_sent_survives_the_process, "XNS 5.2 t_close()") {
    for (int how = 0; how < 3; how++) {
        struct address at;
        int listener = listener_at(&at, 1);
        pid_t child = sends_and_leaves(&at, how);
        int server = serve(listener);
        receives_all(server);
        join(child);
        check_ok(t_close(server));
        check_ok(t_close(listener));
    }
}
/* By packets an association is there before it is accepted: who began it may have sent everything, and left. */
CASE(what_was_sent_waits_to_be_accepted, "XNS 5.2 t_listen()") {
    by("udp");
    for (int how = 0; how < 3; how++)
        for (int told = 0; told < 2; told++) {
            struct address at;
            int listener = listener_at(&at, 1), sequence = 0;
            pid_t child = sends_and_leaves(&at, how);
            if (told)
                sequence = listen_for(listener);
            join(child);
            if (told)
                check_look(listener, 0);
            else
                sequence = listen_for(listener);
            int server = accepted(listener, sequence);
            receives_all(server);
            check_ok(t_rcvrel(server));
            check_ok(t_sndrel(server));
            check_state(server, T_IDLE);
            check_ok(t_close(server));
            check_ok(t_close(listener));
        }
}
CASE(killed_peers_disconnect, "docs/sctp.md") {
    by("shm");
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = branch();
    if (child == 0) {
        int fd = connect_new(&at);
        snd(fd, "here", 0);
        pause();
    }
    int server = serve(listener);
    rcv(server, "here", 0);
    must(kill(child, SIGKILL));
    check_event(server, T_DISCONNECT);
}

/* --- addresses --- */

static struct address several(int port, int n) {
    struct address all = {.len = 0};
    for (int i = 0; i < n; i++) {
        char host[20];
        snprintf(host, sizeof host, "127.0.0.%d", i + 1);
        struct address one = inet_address(host, port);
        memcpy(all.at + all.len, one.at, one.len);
        all.len += one.len;
    }
    return all;
}
BY_BOTH(several_addresses, "RFC 9260 6.4") {
    struct address given_at = several(0, 3);
    int listener = open_endpoint();
    struct address at = bind_at(listener, given_at, 1);
    check_eq(at.len, 3 * sizeof(struct sockaddr_in));
    struct address own = own_address(listener);
    check_eq(own.len, at.len);
    check_bytes(own.at, at.at, at.len);
    int client = connecting(&at);
    int server = serve(listener);
    confirm(client);
    check_echo(client, server);
    struct address alone = {.len = sizeof(struct sockaddr_in)};
    memcpy(alone.at, at.at + alone.len, alone.len);
    struct address peer = peer_address(client);
    check(peer.len >= alone.len);
}
CASE(addresses_have_one_port, "docs/sctp.md") {
    struct address a = several(1000, 1), b = several(1001, 1);
    memcpy(a.at + a.len, b.at, b.len);
    a.len += b.len;
    int fd = open_endpoint();
    struct t_bind req = {given(&a), 0};
    check_t(t_bind(fd, &req, NULL), TBADADDR);
    a = inet_address("192.0.2.1", 0);
    req.addr = given(&a);
    check_t(t_bind(fd, &req, NULL), TNOADDR);
}
BY_BOTH(ports_belong_to_one, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at;
    int listener = listener_at(&at, 1), fd = open_endpoint();
    struct t_bind req = {given(&at), 1};
    check_t(t_bind(fd, &req, NULL), TADDRBUSY);
    check_ok(t_close(listener));
    check_ok(t_bind(fd, &req, NULL));
}
BY_BOTH(ipv6, "RFC 9260 3.3.2") {
    struct address at = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memcpy(at.at, &here, sizeof here);
    int listener = must_t(t_open("/dev/sctp6_t", O_RDWR, NULL));
    at = bind_at(listener, at, 1);
    int client = must_t(t_open("/dev/sctp6_t", O_RDWR | O_NONBLOCK, NULL));
    must_t(t_bind(client, NULL, NULL));
    struct t_call call = call_to(&at);
    check_t(t_connect(client, &call, NULL), TNODATA);
    int server = serve(listener);
    confirm(client);
    check_echo(client, server);
    check_eq(peer_address(client).len, sizeof here);
}
CASE(has_another_name, "docs/sctp.md") {
    must_t(t_open("/dev/sctp", O_RDWR, NULL));
    must_t(t_open("/dev/inet/sctp_t", O_RDWR, NULL));
}

/* --- links --- */

BY_BOTH(status_is_told, "docs/sctp.md T_SCTP_STATUS") {
    int by_udp = strstr(this_case, "_udp") != NULL;
    struct pair p = connected();
    struct t_sctp_status s = status_of(p.client);
    struct sockaddr_in peer;
    check_eq(s.st_state, T_SCTP_ESTABLISHED);
    check_eq(s.st_link, by_udp ? T_SCTP_LINK_UDP : T_SCTP_LINK_SHM);
    check_eq(s.st_npaths, 1);
    check_eq(s.st_path[0].path_state, T_SCTP_PATH_ACTIVE);
    check_eq(s.st_path[0].path_primary, T_YES);
    memcpy(&peer, s.st_path[0].path_addr, sizeof peer);
    check(!memcmp(&peer, p.at.at, 8));
    check(by_udp == (s.st_path[0].path_encap != 0));
}
static unsigned link_with(const char *rules) {
    by("shm");
    setenv("HEADWATER_SCTP_LINK", rules, 1);
    struct pair p = connected();
    check_echo(p.client, p.server);
    return status_of(p.client).st_link;
}
CASE(rules_go_by_destination, "HEADWATER_SCTP_LINK") {
    char rules[100];
    snprintf(rules, sizeof rules, "10.0.0.0/8=shm,127.0.0.0/8=udp:%d,*=shm", udp_port());
    check_eq(link_with(rules), T_SCTP_LINK_UDP);
}
CASE(rules_of_others_do_not_count, "HEADWATER_SCTP_LINK") { check_eq(link_with("10.0.0.0/8=udp,*=auto"), T_SCTP_LINK_SHM); }
CASE(rules_that_make_no_sense_do_not_count, "HEADWATER_SCTP_LINK") {
    check_eq(link_with("127.0.0.1=carrier-pigeon"), T_SCTP_LINK_SHM);
}
CASE(listeners_take_both_kinds, "docs/sctp.md") {
    char rules[100];
    by("shm");
    snprintf(rules, sizeof rules, "127.0.0.1=shm,127.0.0.2=udp:%d", udp_port());
    setenv("HEADWATER_SCTP_LINK", rules, 1);
    int listener = open_endpoint();
    struct address at = bind_at(listener, inet_address("0.0.0.0", 0), 4);
    int port = ntohs(((struct sockaddr_in *)at.at)->sin_port), client[2], server[2];
    for (int i = 0; i < 2; i++) {
        struct address to = inet_address(i ? "127.0.0.2" : "127.0.0.1", port);
        client[i] = connecting(&to);
        server[i] = serve(listener);
        confirm(client[i]);
        check_eq(status_of(server[i]).st_link, i ? T_SCTP_LINK_UDP : T_SCTP_LINK_SHM);
        check(same_address((struct address[]){peer_address(client[i])}, &to));
    }
    check_echo(client[0], server[0]);
    check_echo(client[1], server[1]);
}

SUITE(FOR(SCTP, options_have_defaults), FOR(SCTP, options_keep_what_was_set), BOTH(messages_keep_their_boundaries),
      BOTH(more_joins_pieces), BOTH(streams_and_protocols_arrive), BOTH(expedited_is_unordered),
      BOTH(empty_messages_are_refused), BOTH(great_messages), BOTH(receivers_hold_senders_back), BOTH(threads_wake_each_other),
      BOTH(options_go_with_messages), BOTH(streams_are_agreed_on), BOTH(streams_begin_anew), BOTH(streams_are_added),
      BOTH(no_room_takes_nothing), BOTH(shutdown_ends_both_directions), BOTH(shutdown_is_answered_by_the_transport),
      BOTH(shutdown_is_answered_behind_a_refused_send),
      BOTH(shutdown_wakes_who_waits), BOTH(aborts_are_told), BOTH(nobody_refuses), BOTH(connects_again),
      BOTH(connect_data_is_refused), BOTH(what_was_sent_survives_the_process),
      FOR(SCTP, what_was_sent_waits_to_be_accepted), FOR(SCTP, killed_peers_disconnect),
      BOTH(several_addresses), FOR(SCTP, addresses_have_one_port), BOTH(ports_belong_to_one), BOTH(ipv6),
      FOR(SCTP, has_another_name), BOTH(status_is_told), FOR(SCTP, rules_go_by_destination),
      FOR(SCTP, rules_of_others_do_not_count), FOR(SCTP, rules_that_make_no_sense_do_not_count),
      FOR(SCTP, listeners_take_both_kinds))
