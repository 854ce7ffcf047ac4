/* How connections end: half by half, by close, with data unread, by exit and by being killed. */
#include "common.h"
#include <sys/prctl.h>

static volatile sig_atomic_t pipes_broken;
static void note_pipe(int n) {
    (void)n;
    pipes_broken++;
}

static void count_pipes(void) {
    struct sigaction a = {.sa_handler = note_pipe};
    must(sigaction(SIGPIPE, &a, NULL));
}

/* Reads to the end or an error, checking; says which it was. The amount is said only if `all` is due. */
static void read_out(int fd, uint64_t at, long all) {
    char buf[5000];
    uint64_t total = 0;
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        check(buf, at + total, n);
        total += n;
    }
    if (all >= 0)
        say("read %llu of %ld", (unsigned long long)total, all);
    say_result("then", n);
    say_result("and again", read(fd, buf, sizeof buf));
}

/* Half-close, then an answer: the way of many simple protocols. */
static void half_server(int fd) {
    say("request of %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    send_noise(fd, 0, 300000);
    say_result("shutdown", shutdown(fd, SHUT_WR));
    await_peer();
}
static void half_client(int fd) {
    send_noise(fd, 0, 200000);
    say_result("shutdown", shutdown(fd, SHUT_WR));
    say_result("write after shutdown", send(fd, "x", 1, MSG_NOSIGNAL));
    say("answer of %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    tell_peer();
}

/* Both directions end at once, with data under way. */
static void both_halves_server(int fd) {
    send_noise(fd, 0, 100000);
    say_result("shutdown", shutdown(fd, SHUT_WR));
    read_out(fd, 0, 100000);
    say_result("shutdown again", shutdown(fd, SHUT_WR));
    together();
}
static void both_halves_client(int fd) { both_halves_server(fd); }

/* After SHUT_RD what has come is still there, then reads end; the peer may go on. */
static void read_half_server(int fd) {
    char buf[100];
    together();
    say_result("shutdown", shutdown(fd, SHUT_RD));
    recv_noise(fd, 0, 100);
    say_result("end", read(fd, buf, 100));
    send_noise(fd, 0, 1000);
    together();
    say_result("later data is read", recv(fd, buf, 100, MSG_DONTWAIT));
    tell_peer();
}
static void read_half_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    recv_noise(fd, 0, 1000);
    await_peer();
    send_noise(fd, 100, 100);
    tell_peer();
    await_peer();
}

/* A child shuts the receiving while its parent, which has just looked, asks again at once. */
static void read_half_by_child_server(int fd) {
    char buf[100];
    int go[2], gone[2];
    must(pipe(go));
    must(pipe(gone));
    together();
    pid_t pid = must(fork());
    if (pid == 0) {
        if (read(go[0], buf, 1) == 1 && shutdown(fd, SHUT_RD) == 0)
            must(write(gone[1], "x", 1));
        _exit(0);
    }
    struct pollfd p = {fd, POLLIN, 0};
    poll(&p, 1, 1);
    for (int i = 0; i < 3; i++)
        say_result("nothing yet", recv(fd, buf, 100, MSG_DONTWAIT));
    must(write(go[1], "x", 1));
    must(read(gone[0], buf, 1));
    say_result("end", recv(fd, buf, 100, MSG_DONTWAIT));
    must(waitpid(pid, NULL, 0));
    together();
}
static void read_half_by_child_client(int fd) {
    (void)fd;
    together();
    together();
}

static void *block_in_read(void *arg) {
    char c;
    return (void *)(long)read(*(int *)arg, &c, 1);
}

/* shutdown ends a read in which another thread is blocked. */
static void wake_by_shutdown_server(int fd) {
    pthread_t t = start_sleeper(block_in_read, &fd);
    void *r;
    say_result("shutdown", shutdown(fd, SHUT_RDWR));
    pthread_join(t, &r);
    say("read: %ld", (long)r);
    await_peer();
}
static void wake_by_shutdown_client(int fd) {
    read_out(fd, 0, 0);
    tell_peer();
}

/* Everything written before a close is readable, then comes the end. */
static void close_after_write_server(int fd) {
    await_peer();
    read_out(fd, 0, 150000);
}
static void close_after_write_client(int fd) {
    send_noise(fd, 0, 150000);
    close(fd);
    tell_peer();
}

/* close with unread data resets the connection. */
static void unread_server(int fd) {
    char c;
    together();
    wait_for(fd, POLLERR | POLLHUP | POLLRDHUP);
    say_result("read", read(fd, &c, 1));
    say_result("again", read(fd, &c, 1));
    say_result("write", send(fd, "x", 1, MSG_NOSIGNAL));
}
static void unread_client(int fd) {
    await_peer();
    (void)0;
    tell_peer();
    close(fd);
}
static void unread_rest_server(int fd) {
    send_noise(fd, 0, 5000);
    unread_server(fd);
}
static void unread_rest_client(int fd) {
    await_bytes(fd, 5000);
    recv_noise(fd, 0, 100);
    unread_client(fd);
}

/* So does exit. */
static void unread_exit_server(int fd) { unread_rest_server(fd); }
static void unread_exit_client(int fd) {
    await_bytes(fd, 5000);
    together();
    exit(0);
}

/* A write to a peer that has closed: taken, then reset, then EPIPE and SIGPIPE. */
static void pipe_server(int fd) {
    count_pipes();
    together();
    wait_for(fd, POLLRDHUP);
    say_result("first write", write(fd, "x", 1));
    for (int i = 0; i < 100 && !(wait_for(fd, POLLRDHUP) & POLLERR); i++)
        usleep(1000);
    say_result("second write", write(fd, "x", 1));
    say("signals %d", pipes_broken);
    say_result("third, without signal", send(fd, "x", 1, MSG_NOSIGNAL));
    say("signals %d", pipes_broken);
    struct iovec v = {"x", 1};
    say_result("writev", writev(fd, &v, 1));
    say("signals %d", pipes_broken);
    char c;
    say_result("read", read(fd, &c, 1));
}
static void pipe_client(int fd) {
    await_peer();
    close(fd);
    tell_peer();
}

/* A writer that knows nothing of its peer's end finds out within a bounded number of writes. */
static void blind_writer_server(int fd) {
    char buf[1000] = {0};
    count_pipes();
    await_peer();
    int e = 0;
    for (int i = 0; i < 100000 && !e; i++)
        if (write(fd, buf, sizeof buf) < 0)
            e = errno;
    say("found out: %d", e == EPIPE || e == ECONNRESET);
    send(fd, buf, 1, MSG_NOSIGNAL);
    say_result("later", send(fd, buf, 1, MSG_NOSIGNAL));
}
static void blind_writer_client(int fd) {
    close(fd);
    tell_peer();
}

/* A blocked writer is told when its reader goes. */
static void blocked_writer_server(int fd) {
    static char buf[32 << 20];
    count_pipes();
    tell_peer();
    ssize_t n = write(fd, buf, sizeof buf);
    say("not all: %d", n < (ssize_t)sizeof buf);
    if (n >= 0)
        n = write(fd, buf, sizeof buf);
    say("error: %d", n < 0 && (errno == EPIPE || errno == ECONNRESET));
}
static void blocked_writer_client(int fd) {
    await_peer();
    await_bytes(fd, 60000);
    usleep(50000);
    close(fd);
}

/* Killed with data in flight: all of it is readable, then comes an end of some kind, soon. */
static void killed_server(int fd) {
    uint64_t total = 0, begun = 0;
    char buf[7000];
    await_peer();
    kill(peer_pid, SIGKILL);
    begun = now();
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        check(buf, total, n);
        total += n;
    }
    say("all that was written: %d", total == 120000);
    say("end: %d, soon: %d", n == 0 || errno == ECONNRESET, now() - begun < 2000 * MS);
}
static void killed_client(int fd) {
    send_noise(fd, 0, 120000);
    tell_peer();
    pause();
}

/* Killed with unread data: the peer, asleep in every kind of wait, is told. */
static void killed_reader_server(int fd) {
    send_noise(fd, 0, 1000);
    together();
    uint64_t begun = now();
    kill(peer_pid, SIGKILL);
    struct pollfd p = {fd, POLLIN, 0};
    say("poll: %d", poll(&p, 1, 5000));
    char c;
    ssize_t n = read(fd, &c, 1);
    say("end: %d, soon: %d", n == 0 || errno == ECONNRESET, now() - begun < 2000 * MS);
    send(fd, &c, 1, MSG_NOSIGNAL);
    usleep(10000);
    say_result("write", send(fd, &c, 1, MSG_NOSIGNAL));
}
static void killed_reader_client(int fd) {
    await_bytes(fd, 1000);
    together();
    pause();
}

/* Killed while a stream runs in both directions. */
static void *pour(void *arg) {
    uint64_t at = 0;
    char buf[3000];
    for (;;) {
        fill(buf, at, sizeof buf);
        ssize_t n = send(*(int *)arg, buf, sizeof buf, MSG_NOSIGNAL);
        if (n < 0)
            return NULL;
        at += n;
    }
}
static void killed_stream_server(int fd) {
    pthread_t t;
    char buf[3000];
    uint64_t total = 0;
    ssize_t n;
    assert(pthread_create(&t, NULL, pour, &fd) == 0);
    while (total < 3 << 20) {
        n = must(read(fd, buf, sizeof buf));
        check(buf, total, n);
        total += n;
    }
    kill(peer_pid, SIGKILL);
    uint64_t begun = now();
    while ((n = read(fd, buf, sizeof buf)) > 0) {
        check(buf, total, n);
        total += n;
    }
    say("reader: %d", n == 0 || errno == ECONNRESET);
    pthread_join(t, NULL);
    say("soon: %d", now() - begun < 2000 * MS);
}
static void killed_stream_client(int fd) {
    pthread_t t;
    char buf[3000];
    assert(pthread_create(&t, NULL, pour, &fd) == 0);
    for (uint64_t at = 0;;) {
        ssize_t n = must(read(fd, buf, sizeof buf));
        check(buf, at, n);
        at += n;
    }
}

/* Stopped is not dead: the stream waits and goes on. */
static void stopped_server(int fd) {
    send_noise(fd, 0, 10);
    await_peer();
    kill(peer_pid, SIGSTOP);
    struct pollfd p = {fd, POLLIN, 0};
    say("no end: %d", poll(&p, 1, 300));
    send_noise(fd, 10, 50000);
    kill(peer_pid, SIGCONT);
    recv_noise(fd, 0, 50000);
    tell_peer();
}
static void stopped_client(int fd) {
    recv_noise(fd, 0, 10);
    tell_peer();
    recv_noise(fd, 10, 50000);
    send_noise(fd, 0, 50000);
    await_peer();
}

/* Big writes in both directions before anybody reads: the kernel's buffers take that, so must we. */
static void both_full_server(int fd) {
    send_noise(fd, 0, 1 << 20);
    recv_noise(fd, 0, 1 << 20);
    say("done");
    together();
}
static void both_full_client(int fd) {
    both_full_server(fd);
}

static void nonblocking_full(int fd) {
    nonblocking(fd, 1);
    char buf[10000];
    for (uint64_t at = 0; at < 1 << 20;) {
        size_t k = (1 << 20) - at < sizeof buf ? (1 << 20) - at : sizeof buf;
        fill(buf, at, k);
        ssize_t n = write(fd, buf, k);
        if (n < 0 && errno == EAGAIN)
            wait_for(fd, POLLOUT);
        else
            at += must(n);
    }
    nonblocking(fd, 0);
    recv_noise(fd, 0, 1 << 20);
    say("done");
    together();
}
static void both_full_poll_server(int fd) { nonblocking_full(fd); }
static void both_full_poll_client(int fd) { nonblocking_full(fd); }

CASES(CASE(half), CASE(both_halves), CASE(read_half), CASE(read_half_by_child), CASE(wake_by_shutdown), CASE(close_after_write), CASE(unread),
      CASE(unread_rest), CASE(unread_exit), CASE(pipe), CASE(blind_writer), CASE(blocked_writer), CASE(killed),
      CASE(killed_reader), CASE(killed_stream), CASE(stopped), CASE(both_full), CASE(both_full_poll))
