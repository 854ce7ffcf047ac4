/* SCTP sockets: what the cases share. A case is written against RFC 6458 and sctp(7), as any program is: it includes
 * <netinet/sctp.h>, links libsctp, and knows nothing of who serves it.
 *
 *     CASE(bind_twice, "RFC 6458 4.1.2") {
 *         int fd = bound(SOCK_STREAM);
 *         check_errno(bind_to(fd, any()), EINVAL);
 *     }
 *     SUITE(BOTH(bind_twice), ENTRY(something_else), ...)
 *
 * BOTH runs a case over IPv4, and as `bind_twice@6` over IPv6. Ports are chosen by the system under test.
 */
#ifndef ASSOCIATIONS_H
#define ASSOCIATIONS_H

#include "../streams/peers.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int family = AF_INET;

#define BOTH(NAME) ENTRY(NAME), {#NAME "@6", page_of_##NAME, NAME}
#define SUITE(...) \
    static const struct test harness_tests[] = {__VA_ARGS__}; \
    int main(int argc, char **argv) { \
        if (argc > 1 && strstr(argv[1], "@6")) \
            family = AF_INET6; \
        return harness_main(harness_tests, sizeof harness_tests / sizeof *harness_tests, argc, argv); \
    }

/* Do packets carry what is sent? Else it may be shared memory, where nothing is ever lost, late or retransmitted. */
static UNUSED int by_packets(void) {
    const char *link = getenv("HEADWATER_SCTP_LINK");
    return link && strcmp(link, "auto") && strcmp(link, "shm");
}

/* --- addresses --- */

struct address {
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage storage;
    };
    socklen_t len;
};

static UNUSED struct address address(const char *text, int port) {
    struct address a = {.len = sizeof a.in};
    if (strchr(text, ':')) {
        a.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        a.len = sizeof a.in6;
        check_eq(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
    } else {
        a.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        check_eq(inet_pton(AF_INET, text, &a.in.sin_addr), 1);
    }
    return a;
}
static UNUSED struct address loopback(int port) { return address(family == AF_INET6 ? "::1" : "127.0.0.1", port); }
static UNUSED struct address any(void) { return address(family == AF_INET6 ? "::" : "0.0.0.0", 0); }
static UNUSED int port_in(const struct address *a) { return ntohs(a->in.sin_port); }
static UNUSED struct address name_of(int fd) {
    struct address a = {.len = sizeof a.storage};
    check_eq(getsockname(fd, &a.sa, &a.len), 0);
    return a;
}
static UNUSED struct address peer_of(int fd) {
    struct address a = {.len = sizeof a.storage};
    check_eq(getpeername(fd, &a.sa, &a.len), 0);
    return a;
}
static UNUSED int same_address(const struct address *a, const struct address *b) {
    if (a->sa.sa_family != b->sa.sa_family || a->in.sin_port != b->in.sin_port)
        return 0;
    if (a->sa.sa_family == AF_INET)
        return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
    return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16);
}

/* --- options --- */

#define set(FD, NAME, VALUE) \
    ({ \
        __typeof__(VALUE) set_ = (VALUE); \
        setsockopt(FD, IPPROTO_SCTP, NAME, &set_, sizeof set_); \
    })
#define get(FD, NAME, VALUE) \
    ({ \
        socklen_t get_ = sizeof *(VALUE); \
        getsockopt(FD, IPPROTO_SCTP, NAME, VALUE, &get_); \
    })
#define must_set(FD, NAME, VALUE) check_eq(set(FD, NAME, VALUE), 0)
#define must_get(FD, NAME, VALUE) check_eq(get(FD, NAME, VALUE), 0)
static UNUSED int get_int(int fd, int name) {
    int value = -77;
    must_get(fd, name, &value);
    return value;
}
#define assoc_value(ASSOC, VALUE) ((struct sctp_assoc_value){.assoc_id = (ASSOC), .assoc_value = (VALUE)})
static UNUSED unsigned get_value(int fd, int name, sctp_assoc_t assoc) {
    struct sctp_assoc_value value = assoc_value(assoc, 77777);
    must_get(fd, name, &value);
    return value.assoc_value;
}
static UNUSED int get_socket_int(int fd, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    check_eq(getsockopt(fd, SOL_SOCKET, name, &value, &len), 0);
    return value;
}
static UNUSED void set_socket_int(int fd, int name, int value) {
    check_eq(setsockopt(fd, SOL_SOCKET, name, &value, sizeof value), 0);
}
#define subscribe(FD, TYPE) must_set(FD, SCTP_EVENT, ((struct sctp_event){.se_type = (TYPE), .se_on = 1}))
#define want_rcvinfo(FD) must_set(FD, SCTP_RECVRCVINFO, 1)
static UNUSED void want_sndrcv(int fd) { must_set(fd, SCTP_EVENTS, ((struct sctp_event_subscribe){.sctp_data_io_event = 1})); }

/* --- sockets --- */

static UNUSED int socket_of(int type) { return must(socket(family, type, IPPROTO_SCTP)); }
static UNUSED int bind_to(int fd, struct address a) { return bind(fd, &a.sa, a.len); }
static UNUSED int bound(int type) {
    int fd = socket_of(type);
    check_eq(bind_to(fd, loopback(0)), 0);
    return fd;
}
static UNUSED int listening(int type) {
    int fd = bound(type);
    check_eq(listen(fd, 50), 0);
    return fd;
}
static UNUSED int connect_to(int fd, int listener) {
    struct address a = name_of(listener);
    return connect(fd, &a.sa, a.len);
}
/* A port of the loopback address on which nobody listens. */
static UNUSED struct address nobody(void) {
    int fd = bound(SOCK_STREAM);
    struct address a = name_of(fd);
    check_eq(close(fd), 0);
    return a;
}

/* Two one-to-one sockets of one association; the listener may be closed. */
struct pair {
    int listener, client, server;
};
static UNUSED struct pair pair_of(int listener, int client) {
    check_eq(connect_to(client, listener), 0);
    return (struct pair){listener, client, must(accept(listener, NULL, NULL))};
}
static UNUSED struct pair pair(void) { return pair_of(listening(SOCK_STREAM), socket_of(SOCK_STREAM)); }

/* --- receiving --- */

struct got {
    ssize_t n;
    int flags;
    struct address from;
    int has_sndrcv, has_rcv, has_nxt;
    struct sctp_sndrcvinfo sndrcv;
    struct sctp_rcvinfo rcv;
    struct sctp_nxtinfo nxt;
    union {
        char data[600000];
        union sctp_notification notice;
    };
};

/* One recvmsg. */
static UNUSED struct got *receive_some(int fd, size_t room, int flags) {
    static _Thread_local struct got g;
    _Alignas(8) char control[512];
    memset(&g, 0, offsetof(struct got, data) + 64);
    struct iovec v = {g.data, room};
    struct msghdr m = {.msg_name = &g.from.storage, .msg_namelen = sizeof g.from.storage, .msg_iov = &v, .msg_iovlen = 1,
                       .msg_control = control, .msg_controllen = sizeof control};
    g.n = recvmsg(fd, &m, flags);
    if (g.n < 0)
        return &g;
    g.flags = m.msg_flags, g.from.len = m.msg_namelen;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != IPPROTO_SCTP)
            continue;
        if (c->cmsg_type == SCTP_SNDRCV)
            g.has_sndrcv = 1, memcpy(&g.sndrcv, CMSG_DATA(c), sizeof g.sndrcv);
        if (c->cmsg_type == SCTP_RCVINFO)
            g.has_rcv = 1, memcpy(&g.rcv, CMSG_DATA(c), sizeof g.rcv);
        if (c->cmsg_type == SCTP_NXTINFO)
            g.has_nxt = 1, memcpy(&g.nxt, CMSG_DATA(c), sizeof g.nxt);
    }
    if (g.n < (ssize_t)sizeof g.data)
        g.data[g.n] = 0;
    return &g;
}
static UNUSED struct got *receive(int fd) {
    struct got *g = receive_some(fd, sizeof g->data - 1, 0);
    if (g->n < 0)
        fail("recvmsg: expected something, saw errno %d: %s (after %s, line %d)", errno, strerror(errno), harness_at,
             harness_line);
    return g;
}

/* The next thing is this whole message. */
#define check_receive(FD, TEXT) receive_text(__LINE__, FD, TEXT)
static UNUSED struct got *receive_text(int line, int fd, const char *text) {
    harness_at = "recvmsg", harness_line = line;
    struct got *g = receive(fd);
    if (g->flags & MSG_NOTIFICATION)
        fail("line %d: expected \"%s\", saw a notification of type 0x%x", line, text, g->notice.sn_header.sn_type);
    if (g->n != (ssize_t)strlen(text) || memcmp(g->data, text, g->n) || !(g->flags & MSG_EOR))
        fail("line %d: expected \"%s\" with MSG_EOR, saw %zd bytes \"%.100s\", flags 0x%x", line, text, g->n, g->data,
             g->flags);
    return g;
}
/* The end of the association: 0, no message of 0 bytes. */
#define check_end(FD) \
    do { \
        char end_[8]; \
        check_eq(recv(FD, end_, sizeof end_, 0), 0); \
    } while (0)
#define check_nothing_yet(FD) check_errno(receive_some(FD, 1000, MSG_DONTWAIT)->n, EAGAIN)

static UNUSED const char *notice_name(int type) {
    static const char *const names[] = {"DATA_IO", "ASSOC_CHANGE", "PEER_ADDR_CHANGE", "SEND_FAILED", "REMOTE_ERROR", "SHUTDOWN_EVENT",
        "PARTIAL_DELIVERY", "ADAPTATION", "AUTHENTICATION", "SENDER_DRY", "STREAM_RESET", "ASSOC_RESET", "STREAM_CHANGE", "SEND_FAILED_EVENT"};
    return type >= SCTP_SN_TYPE_BASE && type <= SCTP_SN_TYPE_MAX ? names[type - SCTP_SN_TYPE_BASE] : "unknown";
}

/* The next thing is a notification of this type. */
#define notice(FD, TYPE) notice_at(__LINE__, FD, TYPE)
static UNUSED union sctp_notification *notice_at(int line, int fd, int type) {
    harness_at = notice_name(type), harness_line = line;
    struct got *g = receive_some(fd, sizeof g->data - 1, 0);
    if (g->n < 0)
        fail("line %d: expected %s, saw errno %d: %s", line, notice_name(type), errno, strerror(errno));
    if (!(g->flags & MSG_NOTIFICATION))
        fail("line %d: expected %s, saw %zd bytes \"%.50s\", flags 0x%x", line, notice_name(type), g->n, g->data, g->flags);
    int seen = g->notice.sn_header.sn_type;
    if (seen != type)
        fail("line %d: expected %s, saw %s (state %d)", line, notice_name(type), notice_name(seen),
             seen == SCTP_ASSOC_CHANGE ? g->notice.sn_assoc_change.sac_state : -1);
    if (!(g->flags & MSG_EOR) || g->notice.sn_header.sn_length != g->n)
        fail("line %d: %s of %zd bytes, sn_length %u, flags 0x%x", line, notice_name(type), g->n,
             g->notice.sn_header.sn_length, g->flags);
    return &g->notice;
}
#define change(FD, STATE) change_at(__LINE__, FD, STATE, #STATE)
static UNUSED struct sctp_assoc_change *change_at(int line, int fd, int state, const char *name) {
    struct sctp_assoc_change *c = &notice_at(line, fd, SCTP_ASSOC_CHANGE)->sn_assoc_change;
    if (c->sac_state != state)
        fail("line %d: expected ASSOC_CHANGE %s, saw state %d", line, name, c->sac_state);
    return c;
}

/* --- sending --- */

#define check_send(FD, TEXT) check_eq(send(FD, TEXT, strlen(TEXT), 0), (ssize_t)strlen(TEXT))

/* One sendmsg with control messages, up to three, each of them one struct; `to` may be NULL. */
struct part {
    int type;
    const void *data;
    size_t len;
};
#define PART(TYPE, STRUCT) ((struct part){TYPE, &(STRUCT), sizeof(STRUCT)})
#define send_parts(FD, TO, TEXT, FLAGS, ...) \
    ({ \
        struct part parts_[] = {__VA_ARGS__}; \
        send_with(FD, TO, TEXT, strlen(TEXT), FLAGS, parts_, sizeof parts_ / sizeof *parts_); \
    })
static UNUSED ssize_t send_with(int fd, const struct address *to, const void *data, size_t len, int flags, const struct part *parts,
                                size_t count) {
    _Alignas(8) char control[512] = {0};
    struct iovec v = {(void *)data, len};
    struct msghdr m = {.msg_name = to ? (void *)&to->storage : NULL, .msg_namelen = to ? to->len : 0, .msg_iov = &v, .msg_iovlen = len ? 1 : 0,
                       .msg_control = control, .msg_controllen = sizeof control};
    size_t used = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    for (size_t i = 0; i < count; i++, c = CMSG_NXTHDR(&m, c)) {
        c->cmsg_level = IPPROTO_SCTP, c->cmsg_type = parts[i].type, c->cmsg_len = CMSG_LEN(parts[i].len);
        memcpy(CMSG_DATA(c), parts[i].data, parts[i].len);
        used += CMSG_SPACE(parts[i].len);
    }
    m.msg_controllen = used;
    if (!used)
        m.msg_control = NULL;
    return sendmsg(fd, &m, flags);
}
/* On a stream, with sinfo_flags. */
static UNUSED ssize_t send_on(int fd, int stream, int flags, const char *text) {
    struct sctp_sndinfo info = {.snd_sid = stream, .snd_flags = flags};
    return send_parts(fd, NULL, text, 0, PART(SCTP_SNDINFO, info));
}

/* --- one-to-many --- */

/* Two one-to-many sockets of one association, both told of associations and of data's SCTP_RCVINFO. */
struct many {
    int a, b;
    sctp_assoc_t in_a, in_b;
};
static UNUSED int many_socket(int listens) {
    int fd = listens ? listening(SOCK_SEQPACKET) : bound(SOCK_SEQPACKET);
    subscribe(fd, SCTP_ASSOC_CHANGE);
    want_rcvinfo(fd);
    return fd;
}
static UNUSED struct many many_of(int a, int b) {
    struct address to = name_of(b);
    check_eq(connect(a, &to.sa, to.len), 0);
    struct many m = {.a = a, .b = b};
    m.in_a = change(a, SCTP_COMM_UP)->sac_assoc_id;
    m.in_b = change(b, SCTP_COMM_UP)->sac_assoc_id;
    check(m.in_a > SCTP_ALL_ASSOC);
    check(m.in_b > SCTP_ALL_ASSOC);
    return m;
}
static UNUSED struct many many(void) { return many_of(many_socket(0), many_socket(1)); }
static UNUSED ssize_t send_to_assoc(int fd, sctp_assoc_t assoc, int flags, const char *text) {
    struct sctp_sndinfo info = {.snd_flags = flags, .snd_assoc_id = assoc};
    return send_parts(fd, NULL, text, 0, PART(SCTP_SNDINFO, info));
}

/* --- bytes that tell their place --- */

static UNUSED void pattern(char *at, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        at[i] = (char)(seed + i * 7 + i / 251);
}
static UNUSED char *patterned(size_t n, unsigned seed) {
    char *p = malloc(n + 1);
    pattern(p, n, seed);
    return p;
}
/* Receives one message, however many parts it comes in; how many. */
static UNUSED int receive_pattern(int fd, size_t n, unsigned seed, size_t room) {
    char *want = patterned(n, seed);
    size_t have = 0;
    int parts = 0;
    for (;;) {
        struct got *g = receive_some(fd, room, 0);
        if (g->n < 0)
            fail("recvmsg after %zu of %zu bytes: errno %d: %s", have, n, errno, strerror(errno));
        if (g->flags & MSG_NOTIFICATION || have + g->n > n)
            fail("after %zu of %zu bytes: saw %zd bytes, flags 0x%x", have, n, g->n, g->flags);
        check_bytes(g->data, want + have, g->n);
        have += g->n, parts++;
        if (g->flags & MSG_EOR)
            break;
        if (!g->n)
            fail("the end after %zu of %zu bytes", have, n);
    }
    free(want);
    check_eq(have, n);
    return parts;
}

/* Waits until what was sent is at the peer: acknowledged, where there are packets. */
static UNUSED void await_arrival(int fd) {
    int n = 1;
    if (by_packets())
        await(ioctl(fd, TIOCOUTQ, &n) == 0 && n == 0);
}

/* Sends until there is no room, here nor at the peer: how many messages of this size. The socket becomes non-blocking. */
static UNUSED int stuff(int fd, size_t size) {
    char *text = patterned(size, 1);
    set_nonblock(fd, 1);
    int count = 0, before;
    do {
        before = count;
        while (send(fd, text, size, 0) >= 0)
            if (++count > 1000000)
                fail("a million messages sent, and no EAGAIN");
        check_eq(errno, EAGAIN);
        sleep_ms(by_packets() ? 220 : 0);
    } while (count != before);
    free(text);
    return count;
}

#endif
