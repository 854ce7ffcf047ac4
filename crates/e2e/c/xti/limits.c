/* Where a process runs out of descriptors, or memory: calls say so, and none waits for what can't come. */
#include "../streams/refuse.h"
#include "endpoints.h"
#include <sys/resource.h>

#define LIMIT 400
static void limit(int most) {
    struct rlimit l;
    check_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
    l.rlim_cur = most;
    check_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* A process with all the room that it wants, which calls when it is told to. */
static struct address called;
static struct turn next, done;
static void call_in_turn(void *unused) {
    (void)unused;
    for (;;) {
        turn_take(next);
        connecting(&called);
        turn_give(done);
    }
}
static int listener_with_callers(void) {
    int listener = listener_at(&called, 1);
    next = turn_new(), done = turn_new();
    spawn(call_in_turn, NULL);
    return listener;
}
/* Listens for a call and accepts it; -1: a call failed with EMFILE. */
static int serve_or_say(int listener) {
    struct call call;
    turn_give(next);
    turn_take(done);
    if (t_listen(listener, roomy(&call)) < 0) {
        check_eq(t_errno, TSYSERR);
        check_eq(errno, EMFILE);
        return -1;
    }
    int fd = t_open(device(), O_RDWR, NULL);
    if (fd >= 0 && t_bind(fd, NULL, NULL) == 0 && t_accept(listener, fd, &call.call) == 0)
        return fd;
    check_eq(t_errno, TSYSERR);
    check_eq(errno, EMFILE);
    if (fd >= 0)
        t_close(fd);
    return -1;
}
CASE(listen_and_accept, "XNS 5.2 t_listen() TSYSERR") {
    int listener = listener_with_callers(), served[LIMIT], n = 0;
    limit(LIMIT);
    while ((served[n] = serve_or_say(listener)) >= 0)
        check(++n < LIMIT);
    check(n > 0);
    for (int i = 0; i < n; i++)
        check_eq(t_snd(served[i], "here", 4, 0), 4);
}
static int listen_at_last(int listener) {
    struct call call;
    return t_listen(listener, roomy(&call)) == 0 || t_errno == TLOOK;
}
static void listens_without_any_left(void) {
    int listener = listener_with_callers(), held[LIMIT], n = 0, fd;
    limit(LIMIT);
    while ((fd = t_open(device(), O_RDWR, NULL)) >= 0) {
        held[n++] = fd;
        if (t_bind(fd, NULL, NULL) < 0)
            break;
    }
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        held[n++] = fd;
    struct call call;
    turn_give(next);
    turn_take(done);
    check_sys(t_listen(listener, roomy(&call)), EMFILE);
    while (n > 0)
        close(held[--n]);
    set_nonblock(listener, 1);
    turn_give(next);
    turn_take(done);
    await(listen_at_last(listener));
}

CASE(listen_without_any_left, "XNS 5.2 t_listen() TSYSERR") { listens_without_any_left(); }
CASE(listen_without_any_left_by_packets, "XNS 5.2 t_listen() TSYSERR") {
    by("udp");
    listens_without_any_left();
}

CASE(listen_where_no_number_can_be_moved, "XNS 5.2 t_listen()") {
    int listener = listener_with_callers();
    struct call call;
    refuse_some(SYS_fcntl, 1, F_DUPFD_CLOEXEC, EMFILE);
    turn_give(next);
    turn_take(done);
    must_t(t_listen(listener, roomy(&call)));
}
/* Whoever could not be told of is told of later. */
CASE(listen_once_there_is_room, "XNS 5.2 t_listen() TSYSERR") {
    int listener = listener_with_callers();
    set_nonblock(listener, 1);
    for (int left = 0; left < 12; left++) {
        int held[LIMIT], n = 0;
        struct call call;
        limit(LIMIT);
        while ((held[n] = open("/dev/null", O_RDONLY)) >= 0)
            n++;
        for (int i = 0; i < left; i++)
            close(held[--n]);
        turn_give(next);
        turn_take(done);
        check_readable(listener);
        int told = t_listen(listener, roomy(&call));
        if (told < 0) {
            check_eq(t_errno, TSYSERR);
            check_eq(errno, EMFILE);
        }
        while (n > 0)
            close(held[--n]);
        if (told < 0) {
            check_readable(listener);
            must_t(t_listen(listener, roomy(&call)));
        }
        check_eq(reject(listener, call.call.sequence, NULL), 0);
    }
}
CASE(listen_once_there_is_memory, "XNS 5.2 t_listen() TSYSERR") {
    int listener = listener_with_callers();
    struct call call;
    set_nonblock(listener, 1);
    starve();
    turn_give(next);
    turn_take(done);
    int told = -1;
    for (int i = 0; i < 3 && told < 0; i++) {
        check_readable(listener);
        told = t_listen(listener, roomy(&call));
        if (told < 0) {
            check_eq(t_errno, TSYSERR);
            check_eq(errno, ENOMEM);
        }
    }
    feed();
    if (told < 0) {
        check_readable(listener);
        must_t(t_listen(listener, roomy(&call)));
    }
    check_eq(reject(listener, call.call.sequence, NULL), 0);
}
/* Who was told of somebody can let him in. */
CASE(accept_without_memory, "XNS 5.2 t_accept()") {
    int listener = listener_with_callers();
    struct call call;
    int fd = must_t(t_open(device(), O_RDWR, NULL));
    must_t(t_bind(fd, NULL, NULL));
    turn_give(next);
    turn_take(done);
    must_t(t_listen(listener, roomy(&call)));
    starve();
    must_t(t_accept(listener, fd, &call.call));
    feed();
    check_eq(t_snd(fd, "here", 4, 0), 4);
}

SUITE(FOR(COTS, listen_and_accept), FOR(COTS, listen_where_no_number_can_be_moved), FOR(COTS, listen_once_there_is_room),
      FOR(COTS, listen_once_there_is_memory), FOR(COTS, accept_without_memory),
      FOR(COTS, listen_without_any_left), FOR(SCTP, listen_without_any_left_by_packets))
