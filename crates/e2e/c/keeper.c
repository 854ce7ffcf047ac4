/* An end goes while its peer reads nothing. The peer has just done something for which a connection leaves shared memory, so
 * that what is unread has to go by the kernel, which has not room for all of it. With TCP nobody waits for a reader then. */
#include "common.h"

/* As much as is taken at once. */
static uint64_t fill_up(int fd) {
    static char buf[250000];
    int small = 4096;
    must(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    nonblocking(fd, 1);
    fill(buf, 0, sizeof buf);
    return must(write(fd, buf, sizeof buf));
}

static void fill_and_meet(int fd) {
    uint64_t n = fill_up(fd);
    must(write(to_peer, &n, sizeof n));
    await_peer();
}

/* The peer: reads only when the other end says that it has gone, or is gone. */
static void read_late(int fd, int gone) {
    uint64_t n;
    char c;
    if (read(from_peer, &n, sizeof n) != sizeof n)
        fail("how many?");
    must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
    tell_peer();
    if (gone) {
        struct pollfd p = {from_peer, POLLIN, 0};
        if (poll(&p, 1, 20000) != 1)
            fail("the other end stays");
        say_result("gone", read(from_peer, &c, 1));
    } else {
        await_peer();
    }
    say("whole: %d", recv_noise_to_end(fd, 0) == n);
}

static void close_server(int fd) { read_late(fd, 0); }
static void close_client(int fd) {
    fill_and_meet(fd);
    say_result("close", close(fd));
    say_result("children", waitpid(-1, NULL, WNOHANG | __WALL));
    tell_peer();
}

static void shutdown_server(int fd) {
    read_late(fd, 0);
    send_noise(fd, 0, 30000);
}
static void shutdown_client(int fd) {
    fill_and_meet(fd);
    say_result("shutdown", shutdown(fd, SHUT_WR));
    say_result("write", send(fd, "x", 1, MSG_NOSIGNAL));
    say_result("again", shutdown(fd, SHUT_WR));
    tell_peer();
    nonblocking(fd, 0);
    say("answer of %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}

static void exit_server(int fd) { read_late(fd, 1); }
static void exit_client(int fd) { fill_and_meet(fd); }

static void exec_server(int fd) { read_late(fd, 1); }
static void exec_client(int fd) {
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    fill_and_meet(fd);
    execl("/bin/true", "true", NULL);
}

/* A program that wants to wait for its peer, for a while, does. */
static void linger_server(int fd) { read_late(fd, 0); }
static void linger_client(int fd) {
    struct linger second = {1, 1};
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &second, sizeof second));
    fill_and_meet(fd);
    say_result("close", close(fd));
    tell_peer();
}

CASES(CASE(close), CASE(shutdown), CASE(exit), CASE(exec), CASE(linger))
