/* XTI cases: one suite, instantiated for each provider of a case's group.
 *
 *     CASE(bind_twice, "XNS 5.2 t_bind() TOUTSTATE") {
 *         int fd = bound();
 *         check_t(t_bind(fd, NULL, NULL), TOUTSTATE);
 *     }
 *     SUITE(FOR(ALL, bind_twice), ONCE(strerror_unknown), ...)
 *
 * The program lists `bind_twice@tcp` and so on; `provider` says in a case which one it runs for. A listener and its clients
 * may live in one process: `connected()` makes a connection in asynchronous mode, then leaves both ends synchronous.
 */
#ifndef ENDPOINTS_H
#define ENDPOINTS_H

#include "../streams/peers.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <xti.h>
#include <xti_inet.h>

enum { TICOTS = 1, TICOTSORD = 2, TCP = 4, TICLTS = 8, UDP = 16, SCTP = 32, UDP2 = 64 };
#define COTS (TICOTS | TICOTSORD | TCP | SCTP)
#define ORD (TICOTSORD | TCP | SCTP)
#define LOOP (TICOTS | TICOTSORD)
#define CLTS (TICLTS | UDP)
#define LOCAL (TICOTS | TICOTSORD | TICLTS)
/* Whose datagrams are never lost on the way. /dev/udp2 is a kind of UDP in all else. */
#define LOSSLESS (TICLTS | UDP2)
#define INET (TCP | UDP | SCTP)
#define ALL (COTS | CLTS)

struct provider {
    const char *name;
    int group;
    struct t_info info;
};
static const struct provider providers[] = {
    {"ticots", TICOTS, {1024, 1024, T_INFINITE, T_INFINITE, 1024, 1024, T_COTS, T_SENDZERO}},
    {"ticotsord", TICOTSORD, {1024, 1024, T_INFINITE, T_INFINITE, 1024, 1024, T_COTS_ORD, T_SENDZERO}},
    {"tcp", TCP, {28, 1024, 0, T_INFINITE, T_INVALID, T_INVALID, T_COTS_ORD, 0}},
    {"sctp_t", SCTP, {224, 4096, T_INFINITE, T_INFINITE, T_INVALID, T_INVALID, T_COTS_ORD, 0}},
    {"ticlts", TICLTS, {1024, 1024, 65000, T_INVALID, T_INVALID, T_INVALID, T_CLTS, T_SENDZERO}},
    {"udp", UDP, {28, 1024, 65507, T_INVALID, T_INVALID, T_INVALID, T_CLTS, T_SENDZERO}},
    {"udp2", UDP | UDP2, {28, 1024, 65507, T_INVALID, T_INVALID, T_INVALID, T_CLTS, T_SENDZERO}},
};
#define PROVIDERS (sizeof providers / sizeof *providers)

/* The provider of the running case, and the case's name with it. */
static const struct provider *provider = &providers[1];
static const char *this_case = "";

/* --- names of numbers --- */

struct named {
    int number;
    const char *name;
};
#define NAMED(X) {X, #X}
static UNUSED const char *name_in(const struct named *names, size_t n, int number) {
    static char unknown[4][24];
    static int next;
    for (size_t i = 0; i < n; i++)
        if (names[i].number == number)
            return names[i].name;
    char *text = unknown[next++ % 4];
    snprintf(text, sizeof unknown[0], "%d", number);
    return text;
}
static UNUSED const char *error_name(int number) {
    static const struct named names[] = {
        NAMED(TBADADDR),    NAMED(TBADOPT),    NAMED(TACCES),       NAMED(TBADF),       NAMED(TNOADDR),       NAMED(TOUTSTATE),
        NAMED(TBADSEQ),     NAMED(TSYSERR),    NAMED(TLOOK),        NAMED(TBADDATA),    NAMED(TBUFOVFLW),     NAMED(TFLOW),
        NAMED(TNODATA),     NAMED(TNODIS),     NAMED(TNOUDERR),     NAMED(TBADFLAG),    NAMED(TNOREL),        NAMED(TNOTSUPPORT),
        NAMED(TSTATECHNG),  NAMED(TNOSTRUCTYPE), NAMED(TBADNAME),   NAMED(TBADQLEN),    NAMED(TADDRBUSY),     NAMED(TINDOUT),
        NAMED(TPROVMISMATCH), NAMED(TRESQLEN), NAMED(TRESADDR),     NAMED(TQFULL),      NAMED(TPROTO),
    };
    return name_in(names, sizeof names / sizeof *names, number);
}
static UNUSED const char *state_name(int number) {
    static const struct named names[] = {NAMED(T_UNINIT), NAMED(T_UNBND), NAMED(T_IDLE), NAMED(T_OUTCON),
                                         NAMED(T_INCON), NAMED(T_DATAXFER), NAMED(T_OUTREL), NAMED(T_INREL)};
    return name_in(names, sizeof names / sizeof *names, number);
}
static UNUSED const char *event_name(int number) {
    static const struct named names[] = {{0, "no event"}, NAMED(T_LISTEN), NAMED(T_CONNECT), NAMED(T_DATA),
                                         NAMED(T_EXDATA), NAMED(T_DISCONNECT), NAMED(T_UDERR), NAMED(T_ORDREL),
                                         NAMED(T_GODATA), NAMED(T_GOEXDATA)};
    return name_in(names, sizeof names / sizeof *names, number);
}
/* What the last t_ call of this thread said. */
static UNUSED const char *fault(void) {
    static char text[200];
    int code = t_errno, system = errno;
    snprintf(text, sizeof text, "%s (errno %d: %s)", error_name(code), system, strerror(system));
    return text;
}

/* --- checks --- */

/* A t_ call that succeeds. */
#define must_t(CALL) \
    ({ \
        AT(#CALL); \
        __typeof__(CALL) got_ = (CALL); \
        if (got_ == (__typeof__(CALL))-1) \
            fail("line %d: %s: expected success, saw %s", __LINE__, #CALL, fault()); \
        got_; \
    })

/* A t_ call that returns 0. */
#define check_ok(CALL) \
    do { \
        AT(#CALL); \
        int seen_ = (CALL); \
        if (seen_ != 0) \
            fail("line %d: %s: expected 0, saw %d: %s", __LINE__, #CALL, seen_, fault()); \
    } while (0)

/* A t_ call that fails with this t_errno (or, `check_t2`, the second one). */
#define check_t(CALL, CODE) check_t2(CALL, CODE, CODE)
#define check_t2(CALL, CODE, OTHER) \
    do { \
        AT(#CALL); \
        t_errno = 0; \
        long long seen_ = (CALL); \
        if (seen_ != -1) \
            fail("line %d: %s: expected %s, saw success: %lld", __LINE__, #CALL, #CODE, seen_); \
        if (t_errno != (CODE) && t_errno != (OTHER)) \
            fail("line %d: %s: expected %s, saw %s", __LINE__, #CALL, #CODE, fault()); \
    } while (0)
/* A t_ call that fails with TSYSERR and this errno. */
#define check_sys(CALL, ERRNO) \
    do { \
        check_t(CALL, TSYSERR); \
        check_eq(errno, ERRNO); \
    } while (0)

#define check_state(FD, STATE) \
    do { \
        AT("t_getstate(" #FD ")"); \
        int state_ = t_getstate(FD); \
        if (state_ != (STATE)) \
            fail("line %d: the state of %s: expected %s, saw %s", __LINE__, #FD, #STATE, \
                 state_ < 0 ? fault() : state_name(state_)); \
    } while (0)
#define check_look(FD, EVENT) \
    do { \
        AT("t_look(" #FD ")"); \
        int event_ = t_look(FD); \
        if (event_ != (EVENT)) \
            fail("line %d: the event of %s: expected %s, saw %s", __LINE__, #FD, #EVENT, \
                 event_ < 0 ? fault() : event_name(event_)); \
    } while (0)
/* The next event, which may take a moment. */
static UNUSED int next_event(int fd) {
    long until = now_ms() + PATIENCE;
    for (;;) {
        int event = t_look(fd);
        if (event != 0 || now_ms() > until)
            return event;
        sleep_ms(1);
    }
}
#define check_event(FD, EVENT) \
    do { \
        AT("waiting for " #EVENT); \
        int event_ = next_event(FD); \
        if (event_ != (EVENT)) \
            fail("line %d: the next event of %s: expected %s, saw %s", __LINE__, #FD, #EVENT, \
                 event_ < 0 ? fault() : event_name(event_)); \
    } while (0)

/* --- addresses --- */

struct address {
    unsigned len;
    char at[2048];
};

static UNUSED int is_in(int group) { return (provider->group & group) != 0; }

static UNUSED struct address inet_address(const char *host, int port) {
    struct address a = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in s = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &s.sin_addr);
    memcpy(a.at, &s, sizeof s);
    return a;
}
static UNUSED struct address text_address(const char *text) {
    struct address a = {.len = strlen(text)};
    memcpy(a.at, text, a.len);
    return a;
}
/* An address that nobody has: of the inet providers it becomes one by being bound. */
static UNUSED struct address unused_address(void) {
    static _Atomic int count;
    char text[60];
    if (is_in(INET))
        return inet_address("127.0.0.1", 0);
    snprintf(text, sizeof text, "suite-%d-%d", getpid(), count++);
    return text_address(text);
}
static UNUSED int same_address(const struct address *a, const struct address *b) {
    if (is_in(INET)) {
        struct sockaddr_in x, y;
        memcpy(&x, a->at, sizeof x);
        memcpy(&y, b->at, sizeof y);
        return a->len >= 16 && b->len >= 16 && x.sin_family == y.sin_family && x.sin_port == y.sin_port &&
               x.sin_addr.s_addr == y.sin_addr.s_addr;
    }
    return a->len == b->len && !memcmp(a->at, b->at, a->len);
}

/* --- buffers --- */

static UNUSED struct netbuf given(const struct address *a) {
    return (struct netbuf){.maxlen = a->len, .len = a->len, .buf = (void *)a->at};
}
static UNUSED struct netbuf given_bytes(const void *from, unsigned len) {
    return (struct netbuf){.maxlen = len, .len = len, .buf = (void *)from};
}
static UNUSED struct netbuf given_text(const char *text) { return given_bytes(text, strlen(text)); }
static UNUSED struct netbuf room(void *to, unsigned maxlen) {
    return (struct netbuf){.maxlen = maxlen, .len = 0, .buf = to};
}

/* A t_call with room in all its buffers. */
struct call {
    struct t_call call;
    char addr[2048], opt[2048], udata[2048];
};
static UNUSED struct t_call *roomy(struct call *c) {
    memset(c, 0, sizeof *c);
    c->call.addr = room(c->addr, sizeof c->addr);
    c->call.opt = room(c->opt, sizeof c->opt);
    c->call.udata = room(c->udata, sizeof c->udata);
    c->call.sequence = -77;
    return &c->call;
}
static UNUSED struct address address_of(const struct netbuf *b) {
    struct address a = {.len = b->len};
    if (b->len <= sizeof a.at)
        memcpy(a.at, b->buf, b->len);
    return a;
}
static UNUSED struct t_call call_to(const struct address *a) { return (struct t_call){.addr = given(a)}; }
#define check_netbuf(SEEN, TEXT) \
    do { \
        struct netbuf seen_buf_ = (SEEN); \
        check_eq(seen_buf_.len, strlen(TEXT)); \
        check_bytes(seen_buf_.buf, TEXT, strlen(TEXT)); \
    } while (0)

/* --- endpoints --- */

static UNUSED const char *device(void) {
    static __thread char path[40];
    snprintf(path, sizeof path, "/dev/%s", provider->name);
    return path;
}
static UNUSED int open_flags(int flags) {
    AT("t_open");
    int fd = t_open(device(), O_RDWR | flags, NULL);
    if (fd < 0)
        fail("t_open %s: expected a descriptor, saw %s", device(), fault());
    return fd;
}
static UNUSED int open_endpoint(void) { return open_flags(0); }

/* Binds, and says where. */
static UNUSED struct address bind_at(int fd, struct address a, unsigned qlen) {
    struct address got;
    struct t_bind req = {given(&a), qlen}, ret = {room(got.at, sizeof got.at), 77};
    AT("t_bind");
    if (t_bind(fd, &req, &ret) < 0)
        fail("t_bind: expected success, saw %s", fault());
    got.len = ret.addr.len;
    if (is_in(COTS) && ret.qlen != qlen)
        fail("t_bind: expected qlen %u, saw %u", qlen, ret.qlen);
    return got;
}
/* An address where nobody listens, and nobody will. */
static UNUSED struct address deserted_address(void) {
    struct address a = unused_address();
    /* Of SCTP a port of its own, or clients that take any port take that one, and reach themselves. */
    if (is_in(SCTP))
        return bind_at(open_endpoint(), a, 0);
    if (is_in(TCP)) {
        int fd = must(socket(AF_INET, SOCK_STREAM, 0));
        socklen_t len = a.len;
        must(bind(fd, (struct sockaddr *)a.at, a.len));
        must(getsockname(fd, (struct sockaddr *)a.at, &len));
    }
    return a;
}
static UNUSED int bound_flags(int flags) {
    int fd = open_flags(flags);
    bind_at(fd, unused_address(), 0);
    return fd;
}
static UNUSED int bound(void) { return bound_flags(0); }
static UNUSED int listener_at(struct address *at, unsigned qlen) {
    int fd = open_endpoint();
    *at = bind_at(fd, unused_address(), qlen);
    return fd;
}
/* Calls, and waits for no answer. */
static UNUSED void begin_call(int fd, const struct address *to) {
    struct t_call call = call_to(to);
    set_nonblock(fd, 1);
    check_t(t_connect(fd, &call, NULL), TNODATA);
}
static UNUSED struct address own_address(int fd) {
    struct address a, b;
    struct t_bind own = {room(a.at, sizeof a.at), 0}, peer = {room(b.at, sizeof b.at), 0};
    must_t(t_getprotaddr(fd, &own, &peer));
    a.len = own.addr.len;
    return a;
}
static UNUSED struct address peer_address(int fd) {
    struct address a, b;
    struct t_bind own = {room(a.at, sizeof a.at), 0}, peer = {room(b.at, sizeof b.at), 0};
    must_t(t_getprotaddr(fd, &own, &peer));
    b.len = peer.addr.len;
    return b;
}

/* --- connections --- */

/* A bound client that is connecting to this address, and has O_NONBLOCK. */
static UNUSED int connecting(const struct address *to) {
    int fd = bound_flags(O_NONBLOCK);
    struct t_call call = call_to(to);
    check_t(t_connect(fd, &call, NULL), TNODATA);
    return fd;
}
/* Takes the confirmation of a connecting client, which becomes synchronous. */
static UNUSED void confirm(int client) {
    check_event(client, T_CONNECT);
    set_nonblock(client, 0);
    check_eq(t_rcvconnect(client, NULL), 0);
}
static UNUSED int listen_for(int listener) {
    struct call call;
    must_t(t_listen(listener, roomy(&call)));
    return call.call.sequence;
}
/* Accepts the call of this sequence number on an endpoint, and a fresh one. */
static UNUSED void accept_at(int listener, int sequence, int on) {
    struct t_call call = {.sequence = sequence};
    must_t(t_accept(listener, on, &call));
}
static UNUSED int accepted(int listener, int sequence) {
    int fd = open_endpoint();
    accept_at(listener, sequence, fd);
    return fd;
}
static UNUSED int serve(int listener) { return accepted(listener, listen_for(listener)); }
static UNUSED int reject(int listener, int sequence, const char *why) {
    struct t_call call = {.sequence = sequence};
    if (why)
        call.udata = given_text(why);
    return t_snddis(listener, &call);
}
/* Connects, waiting for the other side. */
static UNUSED void connect_to(int fd, const struct address *to) {
    struct t_call call = call_to(to);
    must_t(t_connect(fd, &call, NULL));
}
static UNUSED int connect_new(const struct address *to) {
    int fd = bound();
    connect_to(fd, to);
    return fd;
}

struct pair {
    int client, server, listener;
    struct address at;
};
static UNUSED struct pair connected(void) {
    struct pair p;
    p.listener = listener_at(&p.at, 4);
    p.client = connecting(&p.at);
    p.server = serve(p.listener);
    confirm(p.client);
    return p;
}
static UNUSED struct pair connected_nonblock(void) {
    struct pair p = connected();
    set_nonblock(p.client, 1);
    set_nonblock(p.server, 1);
    return p;
}
/* A client that waits for T_DISCONNECT. Over the kernel's TCP a client may be connected before it is rejected. */
#define check_disconnect(FD) \
    do { \
        if (is_in(TCP) && next_event(FD) == T_CONNECT) \
            check_eq(t_rcvconnect(FD, NULL), 0); \
        check_event(FD, T_DISCONNECT); \
    } while (0)
/* The end of a peer that closed without a release, "in an orderly or abortive manner" (t_close). */
#define check_gone(FD) check_end(FD, ORD)
/* How a process that has an endpoint may end. */
static UNUSED void end_by__exit(int fd) {
    (void)fd;
    _exit(0);
}
static UNUSED void end_by_exit(int fd) {
    (void)fd;
    exit(0);
}
static UNUSED void end_by_close(int fd) {
    must_t(t_close(fd));
    _exit(0);
}
static UNUSED void end_by_plain_close(int fd) {
    must(close(fd));
    _exit(0);
}
/* The end of a peer that was killed: over plain TCP its FIN cannot be told from a release. */
#define check_killed(FD) check_end(FD, TCP)
#define check_end(FD, ORDERLY) \
    do { \
        AT("waiting for the peer's end"); \
        int event_ = next_event(FD); \
        if (event_ != T_DISCONNECT && !(is_in(ORDERLY) && event_ == T_ORDREL)) \
            fail("line %d: the next event of %s: expected T_DISCONNECT, saw %s", __LINE__, #FD, \
                 event_ < 0 ? fault() : event_name(event_)); \
    } while (0)

/* --- data --- */

static UNUSED int snd_text(int fd, const char *text, int flags) { return t_snd(fd, (char *)text, strlen(text), flags); }
#define snd(FD, TEXT, FLAGS) \
    do { \
        int sent_ = must_t(snd_text(FD, TEXT, FLAGS)); \
        check_eq(sent_, strlen(TEXT)); \
    } while (0)

/* Receives exactly this many bytes, normal or expedited as `kind` says (0, T_EXPEDITED); the flags of the last piece. */
static UNUSED int rcv_all(int fd, void *to, unsigned n, int kind) {
    int flags = 0;
    for (unsigned have = 0; have < n;) {
        flags = 0;
        int got = t_rcv(fd, (char *)to + have, n - have, &flags);
        if (got < 0)
            fail("line %d: t_rcv after %u of %u bytes: expected data, saw %s%s%s", harness_line, have, n, fault(),
                 t_errno == TLOOK ? ", event " : "", t_errno == TLOOK ? event_name(t_look(fd)) : "");
        if ((flags & T_EXPEDITED) != kind)
            fail("line %d: t_rcv: expected %s data, saw flags 0x%x", harness_line, kind ? "expedited" : "normal", flags);
        have += got;
    }
    return flags;
}
/* The next bytes are this text, which may come in pieces; of the loop-back providers, the last piece ends a TSDU. */
#define rcv(FD, TEXT, KIND) \
    do { \
        char text_[8192] = ""; \
        AT("t_rcv of " #TEXT); \
        int flags_ = rcv_all(FD, text_, strlen(TEXT), KIND); \
        check_str(text_, TEXT); \
        if (!is_in(TCP)) \
            check_eq(flags_, KIND); \
    } while (0)
/* Receives one TSDU whole, in pieces of any size up to `piece`. */
static UNUSED unsigned rcv_tsdu(int fd, char *to, unsigned room, unsigned piece, int kind) {
    unsigned have = 0;
    for (;;) {
        int flags = 0, n = t_rcv(fd, to + have, piece < room - have ? piece : room - have, &flags);
        if (n < 0)
            fail("t_rcv after %u bytes of a TSDU: saw %s", have, fault());
        if ((flags & ~T_MORE) != kind)
            fail("t_rcv after %u bytes of a TSDU: saw flags 0x%x", have, flags);
        have += n;
        if (!(flags & T_MORE))
            return have;
    }
}
/* Both directions work. */
#define check_echo(A, B) \
    do { \
        snd(A, "over there", 0); \
        rcv(B, "over there", 0); \
        snd(B, "and back", 0); \
        rcv(A, "and back", 0); \
    } while (0)

/* Byte number i of a long transfer. */
static UNUSED char wave(size_t i) { return (char)(i * 7 + (i >> 8) * 13 + (i >> 16)); }
static UNUSED void fill_wave(char *to, size_t from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = wave(from + i);
}
static UNUSED void check_wave(const char *at, size_t from, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (at[i] != wave(from + i))
            fail("byte %zu of the transfer is spoiled: expected 0x%02x, saw 0x%02x", from + i,
                 (unsigned char)wave(from + i), (unsigned char)at[i]);
}
/* Receives bytes `from` to before `end` of a wave. */
static UNUSED void rcv_wave(int fd, size_t from, size_t end, unsigned piece) {
    static __thread char buf[1 << 17];
    while (from < end) {
        int flags = 0, n = t_rcv(fd, buf, piece < end - from ? piece : end - from, &flags);
        if (n < 0)
            fail("t_rcv at byte %zu: expected data, saw %s%s%s", from, fault(), t_errno == TLOOK ? ", event " : "",
                 t_errno == TLOOK ? event_name(t_look(fd)) : "");
        check_wave(buf, from, n);
        from += n;
    }
}
static UNUSED void snd_wave(int fd, size_t from, size_t end, unsigned piece) {
    static __thread char buf[1 << 17];
    while (from < end) {
        unsigned want = piece < end - from ? piece : end - from;
        fill_wave(buf, from, want);
        int n = t_snd(fd, buf, want, 0);
        if (n <= 0)
            fail("t_snd at byte %zu: expected success, saw %s", from, fault());
        from += n;
    }
}
/* Sends pieces of a wave until TFLOW (the endpoint has O_NONBLOCK); how many bytes went in. */
static UNUSED size_t fill_endpoint(int fd, unsigned piece) {
    static char buf[1 << 16];
    for (size_t sent = 0;;) {
        fill_wave(buf, sent, piece);
        t_errno = 0;
        int n = t_snd(fd, buf, piece, 0);
        if (n < 0 && t_errno == TFLOW)
            return sent;
        if (n <= 0)
            fail("t_snd at byte %zu: expected success or TFLOW, saw %d, %s", sent, n, fault());
        sent += n;
        if (sent > 1u << 30)
            fail("a gigabyte sent, and no TFLOW");
    }
}

/* For packets of SCTP: processes of other cases have the usual port, and the kernel gives those above 32768 to who asks for any. */
static UNUSED int udp_port(void) { return 10000 + getpid() % 22000; }
/* How associations of SCTP go; before anything is opened. */
static UNUSED void by(const char *link) {
    char port[20];
    snprintf(port, sizeof port, "%d", udp_port());
    setenv("HEADWATER_SCTP_UDP_PORT", port, 1);
    if (!strcmp(link, "udp"))
        snprintf(port, sizeof port, "udp:%d", udp_port());
    setenv("HEADWATER_SCTP_LINK", !strcmp(link, "udp") ? port : link, 1);
}

/* fork; the child dies with this process, or when it is late. */
static UNUSED pid_t branch(void) {
    pid_t parent = getpid(), child = must(fork());
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        alarm(SECONDS);
    }
    return child;
}

/* --- running --- */

struct suite_case {
    const char *name, *page;
    void (*run)(void);
    int group;
};
/* A case for each provider of a group; a case that is about none in particular. */
#define FOR(GROUP, NAME) {#NAME, page_of_##NAME, NAME, GROUP}
#define ONCE(NAME) {#NAME, page_of_##NAME, NAME, 0}

static int suite_main(const struct suite_case *cases, size_t n, int argc, char **argv) {
    struct test *tests = calloc(n * PROVIDERS, sizeof *tests);
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < (cases[i].group ? PROVIDERS : 1); j++) {
            if (cases[i].group && !(cases[i].group & providers[j].group))
                continue;
            char *name = malloc(120);
            snprintf(name, 120, "%s%s%s", cases[i].name, cases[i].group ? "@" : "", cases[i].group ? providers[j].name : "");
            tests[count++] = (struct test){name, cases[i].page, cases[i].run};
        }
    if (argc > 1) {
        const char *wanted = strchr(argv[1], '@');
        this_case = argv[1];
        for (size_t j = 0; wanted && j < PROVIDERS; j++)
            if (!strcmp(wanted + 1, providers[j].name))
                provider = &providers[j];
    }
    return harness_main(tests, count, argc, argv);
}
#define SUITE(...) \
    static const struct suite_case suite[] = {__VA_ARGS__}; \
    int main(int argc, char **argv) { return suite_main(suite, sizeof suite / sizeof *suite, argc, argv); }

#endif
