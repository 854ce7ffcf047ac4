/* Handlers while a call waits: with SA_RESTART it goes on waiting, without it ends with EINTR, as signal(7) has it of read(2) and
 * getmsg(2). A case that ends in _messages is for endpoints that go by messages, one that ends in _udp for SCTP by packets. */
#include <fcntl.h>
#include <stropts.h>
#include <xti.h>

static int by_messages;
static int opened_in_some_way(const char *path, int flags, struct t_info *info) {
    int fd = t_open(path, flags, info);
    if (fd >= 0 && by_messages && (ioctl(fd, I_PUSH, "nullmod") < 0 || t_sync(fd) != T_UNBND))
        return -1;
    return fd;
}
#define t_open opened_in_some_way
#include "endpoints.h"

#define WAITS(NAME, PAGE) \
    static void body_of_##NAME(void); \
    CASE(NAME, PAGE) { body_of_##NAME(); } \
    CASE(NAME##_messages, PAGE) { by_messages = 1, body_of_##NAME(); } \
    static void body_of_##NAME(void)
#define WAITS_ALSO_BY_PACKETS(NAME, PAGE) \
    static void body_of_##NAME(void); \
    CASE(NAME##_udp, PAGE) { by("udp"), body_of_##NAME(); } \
    WAITS(NAME, PAGE)
#define FOR_EACH(GROUP, NAME) FOR(GROUP, NAME), FOR(GROUP, NAME##_messages)
#define FOR_CONNECTIONS(NAME) FOR_EACH(COTS, NAME), FOR(SCTP, NAME##_udp)

/* A thread that makes this one run a handler time and again, and only then does what ends the wait. */
struct poking {
    pthread_t whom, thread;
    void (*then)(void *);
    void *with;
};
static void poke_first(void *with) {
    struct poking *p = with;
    for (int i = 0; i < 12; i++) {
        sleep_ms(4);
        pthread_kill(p->whom, SIGUSR1);
    }
    p->then(p->with);
}
static void set_handler(int flags) {
    struct sigaction a = {.sa_sigaction = harness_catch, .sa_flags = SA_SIGINFO | flags};
    must(sigaction(SIGUSR1, &a, NULL));
}
/* Handlers restart calls from here on. `fd` is waited for by poll(2) first, which any handler ends. */
static void begin_poking(struct poking *p, int fd, void (*then)(void *), void *with) {
    sigset_t usr1;
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    set_handler(SA_RESTART);
    events(fd, POLLPRI, 1);
    *p = (struct poking){.whom = pthread_self(), .then = then, .with = with};
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    p->thread = start(poke_first, p);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
}
static void end(struct poking *p) {
    finish(p->thread);
    check(caught[SIGUSR1] > 0);
}
/* The call ends with EINTR, and what it leaves behind ends no other. */
#define check_ends(CALL) \
    do { \
        pid_t poker_ = start_poking(SIGUSR1); \
        check_sys(CALL, EINTR); \
        end_poking(poker_); \
    } while (0)

static void connect_late(void *with) { connecting(with); }
WAITS_ALSO_BY_PACKETS(listen_restarts, "XNS 5.2 t_listen() EINTR, signal(7) SA_RESTART") {
    struct address at;
    struct poking p;
    struct call call;
    int listener = listener_at(&at, 1);
    check_ends(t_listen(listener, roomy(&call)));
    begin_poking(&p, listener, connect_late, &at);
    must_t(t_listen(listener, roomy(&call)));
    end(&p);
}

static void serve_late(void *with) { serve(*(int *)with); }
WAITS_ALSO_BY_PACKETS(connect_restarts, "XNS 5.2 t_connect() EINTR, signal(7) SA_RESTART") {
    struct address at;
    struct poking p;
    int listener = listener_at(&at, 1), fd = bound();
    begin_poking(&p, fd, serve_late, &listener);
    connect_to(fd, &at);
    end(&p);
}
WAITS(rcvconnect_restarts, "XNS 5.2 t_rcvconnect() EINTR, signal(7) SA_RESTART") {
    struct address at;
    struct poking p;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    set_nonblock(fd, 0);
    check_ends(t_rcvconnect(fd, NULL));
    begin_poking(&p, fd, serve_late, &listener);
    check_ok(t_rcvconnect(fd, NULL));
    end(&p);
}

static void snd_late(void *with) { snd(*(int *)with, "x", 0); }
WAITS_ALSO_BY_PACKETS(rcv_restarts, "XNS 5.2 t_rcv() EINTR, signal(7) SA_RESTART") {
    struct pair c = connected();
    struct poking p;
    char byte;
    int flags;
    check_ends(t_rcv(c.server, &byte, 1, &flags));
    begin_poking(&p, c.server, snd_late, &c.client);
    check_eq(t_rcv(c.server, &byte, 1, &flags), 1);
    end(&p);
}
WAITS_ALSO_BY_PACKETS(rcvv_restarts, "XNS 5.2 t_rcvv() EINTR, signal(7) SA_RESTART") {
    struct pair c = connected();
    struct poking p;
    char byte;
    struct t_iovec to = {&byte, 1};
    int flags;
    check_ends(t_rcvv(c.server, &to, 1, &flags));
    begin_poking(&p, c.server, snd_late, &c.client);
    check_eq(t_rcvv(c.server, &to, 1, &flags), 1);
    end(&p);
}

struct drain {
    int fd;
    size_t until;
};
static void drain_late(void *with) {
    struct drain *d = with;
    rcv_wave(d->fd, 0, d->until, 1 << 16);
}
WAITS_ALSO_BY_PACKETS(snd_restarts, "XNS 5.2 t_snd() EINTR, signal(7) SA_RESTART") {
    enum { MORE = 100000 };
    static char more[MORE];
    struct pair c = connected_nonblock();
    struct poking p;
    size_t sent = fill_endpoint(c.client, 1000);
    set_nonblock(c.client, 0);
    set_nonblock(c.server, 0);
    struct drain d = {c.server, sent + MORE};
    fill_wave(more, sent, MORE);
    begin_poking(&p, c.client, drain_late, &d);
    check_eq(t_snd(c.client, more, MORE, 0), MORE);
    end(&p);
}

struct letter {
    int fd;
    struct address to;
};
static int send_letter(struct letter *l) {
    char data[8000] = "";
    struct t_unitdata u = {.addr = given(&l->to), .udata = given_bytes(data, sizeof data)};
    return t_sndudata(l->fd, &u);
}
static int receive_letter(int fd) {
    static char addr[2048], data[8000];
    struct t_unitdata u = {.addr = room(addr, sizeof addr), .udata = room(data, sizeof data)};
    int flags;
    return t_rcvudata(fd, &u, &flags);
}
static int receive_letter_in_parts(int fd) {
    static char addr[2048], data[8000];
    struct t_unitdata u = {.addr = room(addr, sizeof addr)};
    struct t_iovec to = {data, sizeof data};
    int flags;
    return t_rcvvudata(fd, &u, &to, 1, &flags);
}
static void send_late(void *with) { check_ok(send_letter(with)); }
WAITS(rcvudata_restarts, "XNS 5.2 t_rcvudata() EINTR, signal(7) SA_RESTART") {
    struct poking p;
    int fd = open_endpoint();
    struct letter l = {bound(), bind_at(fd, unused_address(), 0)};
    check_ends(receive_letter(fd));
    begin_poking(&p, fd, send_late, &l);
    must_t(receive_letter(fd));
    end(&p);
}
WAITS(rcvvudata_restarts, "XNS 5.2 t_rcvvudata() EINTR, signal(7) SA_RESTART") {
    struct poking p;
    int fd = open_endpoint();
    struct letter l = {bound(), bind_at(fd, unused_address(), 0)};
    check_ends(receive_letter_in_parts(fd));
    begin_poking(&p, fd, send_late, &l);
    check(receive_letter_in_parts(fd) >= 0);
    end(&p);
}

static void receive_late(void *with) {
    int fd = *(int *)with;
    must_t(receive_letter(fd));
    set_nonblock(fd, 1);
    for (int i = 0; i < 20 && receive_letter(fd) == 0; i++)
        ;
    set_nonblock(fd, 0);
}
WAITS(sndudata_restarts, "XNS 5.2 t_sndudata() EINTR, signal(7) SA_RESTART") {
    struct poking p;
    int fd = open_endpoint();
    struct letter l = {bound_flags(O_NONBLOCK), bind_at(fd, unused_address(), 0)};
    while (send_letter(&l) == 0)
        ;
    check_eq(t_errno, TFLOW);
    set_nonblock(l.fd, 0);
    check_ends(send_letter(&l));
    begin_poking(&p, l.fd, receive_late, &fd);
    check_ok(send_letter(&l));
    end(&p);
}

SUITE(FOR_CONNECTIONS(listen_restarts), FOR_CONNECTIONS(connect_restarts), FOR_EACH(LOOP, rcvconnect_restarts),
      FOR_CONNECTIONS(rcv_restarts), FOR_CONNECTIONS(rcvv_restarts), FOR_CONNECTIONS(snd_restarts),
      FOR_EACH(CLTS, rcvudata_restarts), FOR_EACH(CLTS, rcvvudata_restarts), FOR_EACH(LOSSLESS, sndudata_restarts))
