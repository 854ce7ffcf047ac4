/* Calls that the kernel refuses, or does in part: what they leave undone is left as it was. And connect() to nobody, which undoes
 * what there was. */
#include "echo.h"
#include <sys/resource.h>

static void dup3_server(int fd) {
    say_result("dup3 with unknown flags", dup3(1, fd, 0x40000));
    exchange(fd, 20);
    say_result("dup3 with O_NONBLOCK", dup3(1, fd, O_NONBLOCK));
    exchange(fd, 20);
    say_result("dup3 onto itself", dup3(fd, fd, 0));
    exchange(fd, 20);
}
WITH_ECHO(dup3)

/* A number that the limit allowed once can't be replaced any more, but used. */
static void dup2_server(int fd) {
    struct rlimit limit;
    say_result("from nothing", dup2(999, fd));
    exchange(fd, 20);
    must(getrlimit(RLIMIT_NOFILE, &limit));
    int high = must(dup2(fd, 60));
    close(fd);
    limit.rlim_cur = 50;
    must(setrlimit(RLIMIT_NOFILE, &limit));
    say_result("beyond the limit", dup2(1, high));
    exchange(high, 20);
    say_result("close", close(high));
}
WITH_ECHO(dup2)

static void close_range_server(int fd) {
    say_result("unknown flags", close_range(fd, fd, 0x100));
    exchange(fd, 20);
    say_result("an empty range", close_range(fd, fd - 1, 0));
    exchange(fd, 20);
}
WITH_ECHO(close_range)

static void shutdown_server(int fd) {
    say_result("which half?", shutdown(fd, 17));
    say_result("which half?", shutdown(fd, -1));
    exchange(fd, 20);
}
WITH_ECHO(shutdown)

/* A short message is the last that sendmmsg() sends: the rest of it comes next in the stream. */
static void sendmmsg_server(int fd) {
    enum { ALL = 64 << 20, MANY = 16, LONG = 50000 };
    static char buf[MANY * LONG];
    nonblocking(fd, 1);
    tell_peer();
    for (uint64_t at = 0; at < ALL;) {
        struct mmsghdr m[MANY] = {0};
        struct iovec v[MANY];
        size_t total = 0;
        for (int i = 0; i < MANY; i++) {
            v[i].iov_base = buf + total;
            v[i].iov_len = i % 2 ? 3 : LONG;
            total += v[i].iov_len;
            m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
        }
        fill(buf, at, total);
        int n = sendmmsg(fd, m, MANY, 0);
        if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLOUT);
            continue;
        }
        must(n);
        for (int i = 0; i < n; i++) {
            at += m[i].msg_len;
            if (i < n - 1 && m[i].msg_len < v[i].iov_len)
                say("a short message amid others");
        }
    }
    close(fd);
}
static void sendmmsg_client(int fd) {
    await_peer();
    say("whole: %d", recv_noise_to_end(fd, 0) >= 64 << 20);
}

/* The same descriptor, connected anew: nothing of the first connection comes by the second, and nothing is lost there. */
static void reconnect(int fd, int unread) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    if (unread)
        await_bytes(fd, 30000);
    await_peer();
    send_noise(fd, 0, 20000);
    tell_peer();
    char buf[3000];
    ssize_t n;
    uint64_t total = 0;
    await_peer();
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        check(buf, total, n);
        total += n;
    }
    say_result("the first ends", n);
    int s = must(accept(l, NULL, NULL));
    for (int i = 0; i < 30; i++) {
        recv_noise(s, 5000 + i, 900);
        send_noise(s, 6000 + i, 900);
    }
    say("rest %llu", (unsigned long long)recv_noise_to_end(s, 0));
    close(s), close(l);
}
static void anew(int fd, int unread) {
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    if (unread)
        send_noise(fd, 0, 30000);
    tell_peer();
    await_peer();
    await_bytes(fd, 20000);
    say_result("too short", connect(fd, &nobody, 1));
    say_result("undone", connect(fd, &nobody, sizeof nobody));
    tell_peer();
    say_result("unread", recv(fd, &at, 1, MSG_DONTWAIT));
    say_result("sent", send(fd, "x", 1, MSG_NOSIGNAL));
    memset(&at, 0, sizeof at);
}
static void second(int fd, const struct sockaddr_in *to) {
    must(connect(fd, (const struct sockaddr *)to, sizeof *to));
    for (int i = 0; i < 30; i++) {
        send_noise(fd, 5000 + i, 900);
        recv_noise(fd, 6000 + i, 900);
    }
    send_noise(fd, 0, 300000);
    close(fd);
}
static void disconnect_server(int fd) { reconnect(fd, 0); }
static void disconnect_client(int fd) {
    struct sockaddr_in at;
    must(recv(fd, &at, sizeof at, MSG_PEEK | MSG_WAITALL));
    anew(fd, 0);
    second(fd, &at);
}
static void disconnect_full_server(int fd) { reconnect(fd, 1); }
static void disconnect_full_client(int fd) {
    struct sockaddr_in at;
    must(recv(fd, &at, sizeof at, MSG_PEEK | MSG_WAITALL));
    anew(fd, 1);
    second(fd, &at);
}

CASES(CASE(dup3), CASE(dup2), CASE(close_range), CASE(shutdown), CASE(sendmmsg), CASE(disconnect), CASE(disconnect_full))
