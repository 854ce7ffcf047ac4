/* Programs that wait by system calls of their own, and read and write by the C library's functions: Rust's rustix is so. */
#include "common.h"
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* A system call that passes through no function. */
static long inline_call(long n, long a, long b, long c, long d) {
    long r;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
    return r;
}

static int inline_set(int fd, uint32_t events) {
    struct epoll_event e = {events, {.u64 = 42}};
    int ep = inline_call(SYS_epoll_create1, 0, 0, 0, 0);
    must((int)inline_call(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fd, (long)&e));
    return ep;
}

static void inline_wait(int ep) {
    struct epoll_event e = {0, {0}};
    int n = inline_call(SYS_epoll_wait, ep, (long)&e, 1, 20000);
    if (n != 1 || e.data.u64 != 42) {
        errno = n == 0 ? ETIMEDOUT : EPROTO;
        fail("inline wait");
    }
}

/* Reads what there is, as an event loop does: first the call, then the wait. */
static void loop_recv(int fd, int ep, uint64_t at, size_t n) {
    char buf[4096];
    while (n > 0) {
        ssize_t r = recv(fd, buf, n < sizeof buf ? n : sizeof buf, 0);
        if (r < 0 && errno == EAGAIN) {
            inline_wait(ep);
            continue;
        }
        check(buf, at, must(r));
        at += r, n -= r;
    }
}

/* As a loop that is told first. */
static void told_recv(int fd, int ep, uint64_t at, size_t n) {
    char buf[4096];
    while (n > 0) {
        inline_wait(ep);
        ssize_t r = must(recv(fd, buf, sizeof buf, 0));
        check(buf, at, r);
        at += r, n -= r;
    }
}

static void loop_send(int fd, int ep, uint64_t at, size_t n) {
    char buf[4096];
    while (n > 0) {
        size_t k = n < sizeof buf ? n : sizeof buf;
        fill(buf, at, k);
        ssize_t r = send(fd, buf, k, 0);
        if (r < 0 && errno == EAGAIN) {
            inline_wait(ep);
            continue;
        }
        at += must(r), n -= r;
    }
}

/* The peer answers each message after a while, so that it is waited for. */
static void slow_echo(int fd, int rounds) {
    char buf[100];
    for (int i = 0; i < rounds; i++) {
        recv_all(fd, buf, sizeof buf);
        usleep(1000);
        send_all(fd, buf, sizeof buf);
    }
}

/* A connection that has been carried before anybody waits so. */
static void carried_server(int fd) {
    int ep = inline_set(fd, EPOLLIN | EPOLLET);
    nonblocking(fd, 1);
    for (int i = 0; i < 100; i++) {
        loop_send(fd, ep, 0, 100);
        loop_recv(fd, ep, 0, 100);
    }
    say("done");
}
static void carried_client(int fd) { slow_echo(fd, 100); }

/* Requests go by the kernel then, answers need not: what has been read is acknowledged without them, or a sender that asks for
   no TCP_NODELAY would wait for that. */
static void acknowledged_server(int fd) {
    char buf[100];
    for (int i = 0; i < 50; i++) {
        recv_all(fd, buf, sizeof buf);
        send_all(fd, buf, sizeof buf);
    }
    int ep = inline_set(fd, EPOLLIN);
    nonblocking(fd, 1);
    for (int i = 0; i < 50; i++) {
        loop_recv(fd, ep, 0, 100);
        send_noise(fd, 0, 100);
    }
}
static void acknowledged_client(int fd) {
    int late = 0;
    for (int i = 0; i < 100; i++) {
        int n = 0;
        send_noise(fd, 0, 100);
        recv_noise(fd, 0, 100);
        must(ioctl(fd, SIOCOUTQ, &n));
        late += n > 0;
    }
    say("answered and not acknowledged: %d", late);
}

/* One that begins so, on either end. */
static void young(int edge, int told) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    pid_t pid = must(fork());
    int client = pid == 0;
    int fd = client ? connect_to(&at) : must(accept(l, NULL, NULL));
    int ep = inline_set(fd, EPOLLIN | (edge ? EPOLLET : 0));
    int both = inline_set(fd, EPOLLOUT);
    nonblocking(fd, 1);
    for (int i = 0; i < 200; i++) {
        if (client)
            loop_send(fd, both, 0, 100);
        (told ? told_recv : loop_recv)(fd, ep, 0, 100);
        if (!client)
            usleep(500), loop_send(fd, both, 0, 100);
    }
    if (client)
        _exit(0);
    int status = -1;
    must(waitpid(pid, &status, 0));
    say("status %x", status);
}
static void edges_server(int fd) { young(1, 0), exit(fd < 0); }
static void edges_client(int fd) { recv(fd, &fd, 1, 0); }
static void levels_server(int fd) { young(0, 1), exit(fd < 0); }
static void levels_client(int fd) { recv(fd, &fd, 1, 0); }

/* Room, where it is waited for so. */
static void room_server(int fd) {
    int ep = inline_set(fd, EPOLLOUT | EPOLLET);
    nonblocking(fd, 1);
    loop_send(fd, ep, 0, 8 << 20);
    say("sent");
}
static void room_client(int fd) {
    usleep(300000);
    recv_noise(fd, 0, 8 << 20);
    say("all there");
}

/* A set that is made by the C library's functions gives the program's own data, whoever waits. */
static void tags_server(int fd) {
    struct epoll_event e = {EPOLLIN, {.u64 = 42}};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    nonblocking(fd, 1);
    for (int i = 0; i < 100; i++) {
        send_noise(fd, 0, 100);
        loop_recv(fd, ep, 0, 100);
    }
    say("done");
}
static void tags_client(int fd) { slow_echo(fd, 100); }

/* Both ends change to such waits at once, in the middle of an exchange, on many connections: what one publishes just before the other
 * stops looking comes through. */
static void crossing_end(int fd, int client) {
    int yes = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
    for (int i = 0; i < 30; i++) {
        if (client)
            send_noise(fd, 0, 100);
        recv_noise(fd, 0, 100);
        if (!client)
            send_noise(fd, 0, 100);
    }
    int ep = inline_set(fd, EPOLLIN | EPOLLET);
    nonblocking(fd, 1);
    for (int i = 0; i < 5; i++) {
        if (client)
            loop_send(fd, ep, 0, 100);
        loop_recv(fd, ep, 0, 100);
        if (!client)
            loop_send(fd, ep, 0, 100);
    }
    close(ep), close(fd);
}
static void crossing_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), status = -1;
    pid_t pid = must(fork());
    for (int i = 0; i < 300; i++)
        crossing_end(pid == 0 ? connect_to(&at) : must(accept(l, NULL, NULL)), pid == 0);
    if (pid == 0)
        _exit(0);
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exit(fd < 0);
}
static void crossing_client(int fd) { recv(fd, &fd, 1, 0); }

/* A connection in a set of the C library's that is long not waited for, since there is always something: it is taken over once it is. */
static void late_server(int fd) {
    struct sockaddr_in at;
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    char buf[100];
    int l = listen_somewhere(&at), status = -1;
    pid_t pid = must(fork());
    if (pid == 0) {
        int c = connect_to(&at);
        for (int i = 0; i < 100; i++)
            send_noise(c, 0, 100);
        for (int i = 0; i < 100; i++)
            recv_noise(c, 0, 100);
        for (int i = 0; i < 300; i++) {
            /* The other end does wait now, however busy the machine. */
            if (i < 5)
                usleep(10000);
            send_noise(c, 0, 100);
            recv_noise(c, 0, 100);
        }
        _exit(0);
    }
    int c = must(accept(l, NULL, NULL)), ep = must(epoll_create1(0));
    nonblocking(c, 1);
    must(epoll_ctl(ep, EPOLL_CTL_ADD, c, &e));
    for (int there = 0; there < 100 * 100; must(ioctl(c, FIONREAD, &there)))
        usleep(1000);
    for (int i = 0; i < 400; i++) {
        while (i >= 100 && recv(c, buf, sizeof buf, MSG_PEEK) < (int)sizeof buf)
            must(epoll_wait(ep, &e, 1, 5000));
        recv_noise(c, 0, 100);
        send_noise(c, 0, 100);
    }
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exit(fd < 0);
}
static void late_client(int fd) { recv(fd, &fd, 1, 0); }

static void set_inline(int fd, int on) { must((int)inline_call(SYS_fcntl, fd, F_SETFL, O_RDWR | (on ? O_NONBLOCK : 0), 0)); }

/* O_NONBLOCK that nobody sees set, after calls that blocked. */
static void silent_server(int fd) {
    char buf[100];
    for (int i = 0; i < 20; i++) {
        send_noise(fd, 0, 100);
        recv_noise(fd, 0, 100);
    }
    int ep = inline_set(fd, EPOLLIN | EPOLLET);
    set_inline(fd, 1);
    say_result("nothing", recv(fd, buf, sizeof buf, 0));
    for (int i = 0; i < 50; i++) {
        loop_send(fd, ep, 0, 100);
        loop_recv(fd, ep, 0, 100);
    }
}
static void silent_client(int fd) { slow_echo(fd, 70); }

/* And cleared, before any call. */
static void blocks_server(int fd) {
    nonblocking(fd, 1);
    set_inline(fd, 0);
    for (int i = 0; i < 50; i++) {
        send_noise(fd, 0, 100);
        recv_noise(fd, 0, 100);
    }
    say("done");
}
static void blocks_client(int fd) { slow_echo(fd, 50); }

CASES(CASE(crossing), CASE(silent), CASE(blocks), CASE(carried), CASE(acknowledged), CASE(edges), CASE(levels), CASE(room), CASE(tags), CASE(late))
