/* What only udp2 has: two ways in, by shared memory and by the kernel, that a program must not be able to tell apart. */
#include "datagrams.h"
#include <poll.h>
#include <sys/epoll.h>

/* The next datagram's length; its bytes in `data`. */
static int receive_bytes(int fd, void *data, unsigned len) {
    int flags;
    struct t_unitdata u = {.udata = room(data, len)};
    return t_rcvudata(fd, &u, &flags) < 0 ? -1 : (int)u.udata.len;
}
static int plain(void) { return must(socket(AF_INET, SOCK_DGRAM, 0)); }
static void send_plainly(int s, const struct address *to, const char *text) {
    check_eq(sendto(s, text, strlen(text), 0, (struct sockaddr *)to->at, to->len), strlen(text));
}

/* A process that sends by both ways, in turn, each when it is asked to, a little later: the two know no order between them. */
static int asking[2];
static void ask(void) { check_eq(write(asking[1], "?", 1), 1); }
static void await_asking(void) {
    char c;
    check_eq(read(asking[0], &c, 1), 1);
    sleep_ms(2);
}
static pid_t send_by_both(const struct address *to, int rounds) {
    must(pipe(asking));
    pid_t child = branch();
    if (child) {
        ask();
        return child;
    }
    struct address own;
    int fd = endpoint(&own), s = plain();
    for (int i = 0; i < rounds; i++) {
        await_asking();
        must_t(send_to(fd, to, "ring", 4));
        await_asking();
        send_plainly(s, to, "kernel");
    }
    _exit(0);
}
static void reap(pid_t child) {
    int status;
    must(waitpid(child, &status, 0));
    check_eq(status, 0);
}

CASE(blocked_reader_wakes_for_both, "XNS 5.2 t_rcvudata()") {
    struct address at;
    int fd = endpoint(&at);
    pid_t child = send_by_both(&at, 30);
    char data[100];
    for (int i = 0; i < 60; i++) {
        check_eq(must_t(receive_bytes(fd, data, sizeof data)), i % 2 ? 6 : 4);
        ask();
    }
    reap(child);
}
CASE(poll_sees_both, "XNS 5.2 poll()") {
    struct address at;
    int fd = endpoint(&at);
    set_nonblock(fd, 1);
    pid_t child = send_by_both(&at, 30);
    char data[100];
    for (int i = 0; i < 60; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        check_eq(poll(&p, 1, PATIENCE), 1);
        check_eq(p.revents, POLLIN);
        check_eq(must_t(receive_bytes(fd, data, sizeof data)), i % 2 ? 6 : 4);
        ask();
    }
    check_t(receive_bytes(fd, data, sizeof data), TNODATA);
    reap(child);
}
/* In a set since before it was bound, edge by edge or not. */
static void epoll_sees_both(unsigned mode) {
    struct address at;
    int fd = open_flags(O_NONBLOCK), set = must(epoll_create1(0)), seen = 0;
    struct epoll_event event = {.events = EPOLLIN | mode, .data.fd = fd};
    must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    at = bind_at(fd, unused_address(), 0);
    pid_t child = send_by_both(&at, 30);
    char data[100];
    while (seen < 60) {
        check_eq(epoll_wait(set, &event, 1, PATIENCE), 1);
        check_eq(event.data.fd, fd);
        for (; receive_bytes(fd, data, sizeof data) > 0; seen++)
            ask();
        check_eq(t_errno, TNODATA);
    }
    reap(child);
}
CASE(epoll_sees_both_levels, "epoll(7)") { epoll_sees_both(0); }
CASE(epoll_sees_both_edges, "epoll(7)") { epoll_sees_both(EPOLLET); }

CASE(full_until_somebody_reads, "XNS 5.2 t_sndudata() TFLOW, T_GODATA") {
    struct address at, own;
    int to = endpoint(&at), fd = endpoint(&own), sent = 0, seen = 0;
    char data[1000] = "";
    set_nonblock(fd, 1);
    set_nonblock(to, 1);
    for (; send_to(fd, &at, &sent, sizeof sent) == 0; sent++)
        ;
    check_eq(t_errno, TFLOW);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    check_eq(poll(&p, 1, 20), 0);
    for (int number; receive_bytes(to, data, sizeof data) > 0; seen++) {
        memcpy(&number, data, sizeof number);
        check_eq(number, seen);
    }
    check_eq(seen, sent);
    check_eq(poll(&p, 1, PATIENCE), 1);
    check_eq(p.revents, POLLOUT);
    check_look(fd, T_GODATA);
    must_t(send_to(fd, &at, "again", 5));
    check_eq(must_t(receive_bytes(to, data, sizeof data)), 5);
}
CASE(full_ring_hinders_no_plain_program, "XNS 5.2 t_sndudata()") {
    struct address at, own, other = inet_address("127.0.0.1", 0);
    int to = endpoint(&at), fd = endpoint(&own), s = plain();
    socklen_t len = other.len;
    char data[100];
    must(bind(s, (struct sockaddr *)other.at, other.len));
    must(getsockname(s, (struct sockaddr *)other.at, &len));
    set_nonblock(fd, 1);
    while (send_to(fd, &at, "x", 1) == 0)
        ;
    check_eq(t_errno, TFLOW);
    must_t(send_to(fd, &other, "to the socket", 13));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, 1);
    check_eq(must(recv(s, data, sizeof data, 0)), 13);
    send_plainly(s, &own, "and back");
    set_nonblock(fd, 0);
    check_eq(must_t(receive_bytes(fd, data, sizeof data)), 8);
    must_t(t_close(to));
}
CASE(port_is_taken, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at;
    int fd = endpoint(&at), s = plain(), other = open_endpoint();
    check_eq(bind(s, (struct sockaddr *)at.at, at.len), -1);
    check_eq(errno, EADDRINUSE);
    struct t_bind req = {given(&at), 0};
    check_t(t_bind(other, &req, NULL), TADDRBUSY);
    must_t(t_unbind(fd));
    must_t(t_bind(other, &req, NULL));
}
CASE(receiver_killed, "XNS 5.2 t_rcvuderr()") {
    struct address at, own, dest;
    int fd = endpoint(&own), spare = endpoint(&at);
    must_t(t_close(spare));
    pid_t child = branch();
    if (child == 0) {
        int to = open_endpoint();
        bind_at(to, at, 0);
        for (;;)
            pause();
    }
    /* Until it is there, and then until it is full. */
    set_nonblock(fd, 1);
    for (long until = now_ms() + PATIENCE; send_to(fd, &at, "data", 4) == 0 || t_errno == TLOOK;) {
        check(now_ms() < until);
        if (t_look(fd) == T_UDERR)
            must_t(t_rcvuderr(fd, NULL));
    }
    check_eq(t_errno, TFLOW);
    must(kill(child, SIGKILL));
    must(waitpid(child, NULL, 0));
    for (long until = now_ms() + PATIENCE; t_look(fd) != T_UDERR; send_to(fd, &at, "data", 4))
        check(now_ms() < until);
    struct t_uderr e = {.addr = room(dest.at, sizeof dest.at)};
    must_t(t_rcvuderr(fd, &e));
    check_eq(e.error, ECONNREFUSED);
    dest.len = e.addr.len;
    check(same_address(&dest, &at));
}

SUITE(FOR(UDP2, blocked_reader_wakes_for_both), FOR(UDP2, poll_sees_both), FOR(UDP2, epoll_sees_both_levels),
      FOR(UDP2, epoll_sees_both_edges), FOR(UDP2, full_until_somebody_reads),
      FOR(UDP2, full_ring_hinders_no_plain_program), FOR(UDP2, port_is_taken), FOR(UDP2, receiver_killed))
