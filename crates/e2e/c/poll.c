/* poll and select, in all their spellings, on a connection. */
#include "common.h"
#include <sys/select.h>

/* A set of one or two descriptors. */
static void set_of(fd_set *set, int a, int b) {
    FD_ZERO(set);
    FD_SET(a, set);
    FD_SET(b, set);
}

static void show(const char *what, int n, const struct pollfd *p, int count) {
    if (n < 0) {
        say_result(what, n);
        return;
    }
    printf("%s: %d", what, n);
    for (int i = 0; i < count; i++)
        printf(" %x", p[i].revents);
    putchar('\n');
}

static void sender(int fd, int times) {
    for (int i = 0; i < times; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
}

static void polls_server(int fd) {
    int pipes[2];
    must(pipe(pipes));
    struct pollfd p[4] = {{fd, POLLIN, 0}, {-1, POLLIN, 0}, {pipes[0], POLLIN, 0}, {fd, POLLIN | POLLOUT, 0}};
    show("idle", poll(p, 3, 0), p, 3);
    uint64_t begun = now();
    show("idle for 30 ms", poll(p, 3, 30), p, 3);
    say("waited: %d", now() - begun >= 29 * MS);
    together();
    show("data", poll(p, 3, 5000), p, 3);
    show("data, twice in the set", poll(p, 4, 5000), p, 4);
    must(write(pipes[1], "", 1));
    usleep(20);
    show("both", poll(p, 3, 1000), p, 3);
    recv_noise(fd, 0, 100);
    show("pipe", poll(p, 3, 5000), p, 3);
    p[2].fd = 999;
    show("closed number", poll(p, 3, 5000), p, 3);
    p[2].fd = -5;
    tell_peer();
    show("asleep first", poll(p, 3, 5000), p, 3);
    recv_noise(fd, 100, 100);
    p[0].events = 0;
    await_peer();
    tell_peer();
    await_bytes(fd, 100);
    show("nothing asked for", poll(p, 1, 20), p, 1);
    p[0].events = POLLRDNORM | POLLWRNORM;
    show("other names", poll(p, 1, 5000), p, 1);
    recv_noise(fd, 200, 100);
    await_peer();
    tell_peer();
}
static void polls_client(int fd) { sender(fd, 3); }

static volatile sig_atomic_t signals;
static void count_signal(int n) {
    (void)n;
    signals++;
}

static void ppolls_server(int fd) {
    struct sigaction a = {.sa_handler = count_signal};
    struct pollfd p = {fd, POLLIN, 0};
    sigset_t block, none;
    must(sigaction(SIGUSR1, &a, NULL));
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigprocmask(SIG_BLOCK, &block, NULL);
    raise(SIGUSR1);
    struct timespec t = {0, 20 * MS}, longer = {5, 0};
    show("blocked", ppoll(&p, 1, &t, NULL), &p, 0);
    say("signals %d", signals);
    show("unblocked", ppoll(&p, 1, &longer, &none), &p, 0);
    say("signals %d", signals);
    tell_peer();
    show("data", ppoll(&p, 1, NULL, &none), &p, 1);
    await_peer();
    fd_set in;
    set_of(&in, fd, fd);
    say_result("pselect with data", pselect(fd + 1, &in, NULL, NULL, &longer, &none));
    recv_noise(fd, 0, 100);
    raise(SIGUSR1);
    set_of(&in, fd, fd);
    say_result("pselect unblocked", pselect(fd + 1, &in, NULL, NULL, &longer, &none));
    say("signals %d", signals);
    tell_peer();
}
static void ppolls_client(int fd) { sender(fd, 1); }

static void selects_server(int fd) {
    int pipes[2];
    must(pipe(pipes));
    fd_set in, out, bad;
    struct timeval t = {0, 30000};
    int high = (fd > pipes[0] ? fd : pipes[0]) + 1;
    set_of(&in, fd, pipes[0]);
    say_result("idle", select(high, &in, NULL, NULL, &t));
    say("set emptied: %d, time left: %d", !FD_ISSET(fd, &in) && !FD_ISSET(pipes[0], &in), t.tv_usec > 0);
    together();
    set_of(&in, fd, pipes[0]);
    set_of(&out, fd, fd);
    set_of(&bad, fd, fd);
    t = (struct timeval){5, 0};
    say_result("data and room", select(high, &in, &out, &bad, &t));
    say("in %d %d out %d bad %d", FD_ISSET(fd, &in), FD_ISSET(pipes[0], &in), FD_ISSET(fd, &out), FD_ISSET(fd, &bad));
    say("time left: %d", t.tv_sec >= 4);
    recv_noise(fd, 0, 100);
    tell_peer();
    set_of(&in, fd, fd);
    say_result("asleep first", select(high, &in, NULL, NULL, NULL));
    recv_noise(fd, 100, 100);
    await_peer();
    set_of(&in, fd, 60);
    t = (struct timeval){0, 0};
    say_result("closed number", select(61, &in, NULL, NULL, &t));
    together();
    shutdown(fd, SHUT_WR);
    wait_for(fd, POLLRDHUP);
    set_of(&in, fd, fd);
    say_result("end", select(high, &in, NULL, NULL, NULL));
    char c;
    say_result("read", read(fd, &c, 1));
}
static void selects_client(int fd) {
    for (int i = 0; i < 2; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
    shutdown(fd, SHUT_WR);
    tell_peer();
    say("end after %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}

static void room_server(int fd) {
    await_peer();
    tell_peer();
    uint64_t n;
    must(read(from_peer, &n, sizeof n));
    recv_noise(fd, 0, n);
    await_peer();
}
static void room_client(int fd) {
    struct pollfd p = {fd, POLLOUT | POLLIN, 0};
    fd_set out;
    struct timeval t = {0, 20000};
    show("room", poll(&p, 1, 0), &p, 1);
    uint64_t n = send_until_full(fd, 0);
    show("full", poll(&p, 1, 30), &p, 1);
    set_of(&out, fd, fd);
    say_result("full", select(fd + 1, NULL, &out, NULL, &t));
    together();
    must(write(to_peer, &n, sizeof n));
    show("room again", poll(&p, 1, 5000), &p, 1);
    set_of(&out, fd, fd);
    say_result("room again", select(fd + 1, NULL, &out, NULL, NULL));
    tell_peer();
}

static void ends_server(int fd) {
    struct pollfd p = {fd, POLLIN | POLLRDHUP, 0};
    char c;
    together();
    while (!(p.revents & POLLRDHUP))
        must(poll(&p, 1, 5000));
    show("half-closed, data", 1, &p, 1);
    recv_noise(fd, 0, 100);
    show("half-closed", poll(&p, 1, 5000), &p, 1);
    p.events = POLLOUT;
    show("still room", poll(&p, 1, 5000), &p, 1);
    say_result("read", read(fd, &c, 1));
    shutdown(fd, SHUT_WR);
    p.events = 0;
    show("closed", poll(&p, 1, 5000), &p, 1);
    tell_peer();
}
static void ends_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    shutdown(fd, SHUT_WR);
    tell_peer();
    await_peer();
    struct pollfd p = {fd, POLLIN | POLLRDHUP, 0};
    show("client", poll(&p, 1, 5000), &p, 1);
}

/* More descriptors than fit the stack, connections among pipes. */
static void large_server(int fd) {
    enum { N = 150 };
    struct pollfd p[N];
    int pipes[2];
    for (int i = 0; i < N; i++) {
        must(pipe(pipes));
        p[i] = (struct pollfd){pipes[0], POLLIN, 0};
    }
    p[120].fd = fd;
    say("idle: %d", poll(p, N, 10));
    tell_peer();
    say("data: %d", poll(p, N, 5000));
    say("where: %x %x", p[120].revents, p[0].revents);
    recv_noise(fd, 0, 100);
    await_peer();
    say("drained: %d", poll(p, N, 10));
    tell_peer();
}
static void large_client(int fd) { sender(fd, 1); }

/* Two threads sleep on one connection, one for each direction. */
static void *wait_for_room(void *arg) {
    struct pollfd p = {*(int *)arg, POLLOUT, 0};
    return (void *)(long)poll(&p, 1, 5000);
}
static void directions_server(int fd) {
    await_peer();
    uint64_t n;
    must(read(from_peer, &n, sizeof n));
    send_noise(fd, 0, 100);
    await_peer();
    recv_noise(fd, 0, n);
    await_peer();
}
static void directions_client(int fd) {
    uint64_t n = send_until_full(fd, 0);
    pthread_t t;
    void *r;
    assert(pthread_create(&t, NULL, wait_for_room, &fd) == 0);
    tell_peer();
    must(write(to_peer, &n, sizeof n));
    struct pollfd p = {fd, POLLIN, 0};
    say("data: %d", poll(&p, 1, 5000));
    recv_noise(fd, 0, 100);
    tell_peer();
    pthread_join(t, &r);
    say("room: %ld", (long)r);
    tell_peer();
}

static void await_half_close(int fd) {
    struct tcp_info info;
    socklen_t len = sizeof info;
    do
        must(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
    while (info.tcpi_state == TCP_ESTABLISHED);
}

/* While data lies unread, each call tells of all that was ready a little before it, whatever it is. */
static void beside_server(int fd) {
    int pipes[2];
    char c;
    must(pipe(pipes));
    struct pollfd p[2] = {{fd, POLLIN | POLLRDHUP, 0}, {pipes[0], POLLIN, 0}};
    fd_set set;
    together();
    for (int i = 0; i < 20; i++) {
        show("data", poll(p, 2, 5000), p, 2);
        must(write(pipes[1], "", 1));
        usleep(20);
        if (i % 2)
            show("both", poll(p, 2, 1000), p, 2);
        else {
            set_of(&set, fd, pipes[0]);
            say_result("both", select(pipes[0] + 1, &set, NULL, NULL, NULL));
        }
        must(read(pipes[0], &c, 1));
    }
    p[1].fd = 999;
    show("closed number", poll(p, 2, 1000), p, 2);
    close(pipes[0]);
    set_of(&set, fd, pipes[0]);
    say_result("closed number", select(pipes[0] + 1, &set, NULL, NULL, NULL));
    p[1].fd = -1;
    show("data alone", poll(p, 2, 1000), p, 2);
    together();
    await_half_close(fd);
    usleep(20);
    show("half-close", poll(p, 2, 1000), p, 2);
    recv_noise(fd, 0, 100);
    show("end", poll(p, 2, 1000), p, 2);
}
static void beside_client(int fd) {
    send_noise(fd, 0, 100);
    together();
    await_peer();
    must(shutdown(fd, SHUT_WR));
    tell_peer();
    recv_noise_to_end(fd, 0);
}

CASES(CASE(polls), CASE(beside), CASE(ppolls), CASE(selects), CASE(room), CASE(ends), CASE(large), CASE(directions))
