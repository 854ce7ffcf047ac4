/* Ends of XTI over tcp and udp whose other end is a program's without it, and cases over both families of addresses. */
#ifndef INTEROP_H
#define INTEROP_H

#include "endpoints.h"

static int family = AF_INET;

/* A case over IPv4 and IPv6. */
static UNUSED void over(int which, int group) {
    family = which;
    for (size_t i = 0; i < PROVIDERS; i++)
        if (providers[i].group == group)
            provider = &providers[i];
}
#define BOTH_FAMILIES(GROUP, NAME, PAGE) \
    static void NAME(void); \
    CASE(NAME##_v4, PAGE) { \
        over(AF_INET, GROUP); \
        NAME(); \
    } \
    CASE(NAME##_v6, PAGE) { \
        over(AF_INET6, GROUP); \
        NAME(); \
    } \
    static void NAME(void)
#define FAMILIES(NAME) ONCE(NAME##_v4), ONCE(NAME##_v6)
/* A case of UDP over udp2 too. */
#define UDP2_TOO(NAME, PAGE) \
    CASE(NAME##_udp2_v4, PAGE) { \
        over(AF_INET, UDP | UDP2); \
        NAME(); \
    } \
    CASE(NAME##_udp2_v6, PAGE) { \
        over(AF_INET6, UDP | UDP2); \
        NAME(); \
    }
#define FAMILIES_OF_BOTH(NAME) FAMILIES(NAME), ONCE(NAME##_udp2_v4), ONCE(NAME##_udp2_v6)

static UNUSED const char *host(void) { return family == AF_INET ? "127.0.0.1" : "::1"; }

/* The loop-back interface at a port. */
static UNUSED struct address local_at(int port) {
    if (family == AF_INET)
        return inet_address(host(), port);
    struct address a = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 s = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memcpy(a.at, &s, sizeof s);
    return a;
}
static UNUSED int port_of(const struct address *a) { /* at the same place in both families */
    struct sockaddr_in s;
    memcpy(&s, a->at, sizeof s);
    return ntohs(s.sin_port);
}
#define check_same(A, B) \
    do { \
        struct address a_ = (A), b_ = (B); \
        check_eq(((struct sockaddr *)(void *)a_.at)->sa_family, family); \
        check_eq(((struct sockaddr *)(void *)b_.at)->sa_family, family); \
        check_eq(port_of(&a_), port_of(&b_)); \
    } while (0)

/* --- XTI ends --- */

static UNUSED int xti_open(int flags) {
    char path[20];
    snprintf(path, sizeof path, "/dev/%s%s", provider->name, family == AF_INET6 ? "6" : "");
    return must_t(t_open(path, O_RDWR | flags, NULL));
}
static UNUSED int xti_bound(struct address *at, int qlen) {
    int fd = xti_open(0);
    *at = bind_at(fd, local_at(0), qlen);
    return fd;
}
static UNUSED int xti_connected(const struct address *to) {
    struct address own;
    int fd = xti_bound(&own, 0);
    connect_to(fd, to);
    return fd;
}
static UNUSED int xti_serve(int listener) {
    int sequence = listen_for(listener), fd = xti_open(0);
    accept_at(listener, sequence, fd);
    return fd;
}
/* `n` connections: all calls are taken before the first is accepted, which would say TLOOK. */
static UNUSED void xti_serve_all(int listener, int *fd, int n) {
    int sequence[20];
    for (int i = 0; i < n; i++)
        sequence[i] = listen_for(listener);
    for (int i = 0; i < n; i++)
        accept_at(listener, sequence[i], fd[i] = xti_open(0));
}
static UNUSED void xti_echo(int fd) {
    static char data[20000];
    int flags, n;
    while ((n = t_rcv(fd, data, sizeof data, &flags)) >= 0)
        check_eq(t_snd(fd, data, n, 0), n);
    check_eq(t_errno, TLOOK);
    check_look(fd, T_ORDREL);
    must_t(t_rcvrel(fd));
    must_t(t_sndrel(fd));
    check_state(fd, T_IDLE);
}

struct arrived {
    unsigned len;
    int flags;
    struct address from;
    char data[70000];
};
static UNUSED struct arrived *arrive(int fd) {
    static struct arrived a;
    struct t_unitdata u = {.addr = room(a.from.at, sizeof a.from.at), .udata = room(a.data, sizeof a.data)};
    must_t(t_rcvudata(fd, &u, &a.flags));
    a.len = u.udata.len, a.from.len = u.addr.len;
    return &a;
}
static UNUSED void depart(int fd, const struct address *to, const void *data, unsigned len) {
    struct t_unitdata u = {.addr = given(to), .udata = given_bytes(data, len)};
    must_t(t_sndudata(fd, &u));
}

#endif
