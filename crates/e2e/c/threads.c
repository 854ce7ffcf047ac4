/* Threads that share a connection: readers, writers, closers, and those that are cancelled. */
#include "common.h"
#include <sys/epoll.h>

static int shared_fd;

static void *writer(void *n) {
    send_noise(shared_fd, 0, (size_t)n);
    return NULL;
}
static void *reader(void *n) {
    recv_noise(shared_fd, 0, (size_t)n);
    return NULL;
}

/* One thread for each direction. */
static void duplex_server(int fd) {
    pthread_t a, b;
    size_t n = 8 << 20;
    shared_fd = fd;
    assert(pthread_create(&a, NULL, writer, (void *)n) == 0);
    assert(pthread_create(&b, NULL, reader, (void *)n) == 0);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    say("done");
    together();
}
static void duplex_client(int fd) { duplex_server(fd); }

/* Two threads on each side of one direction, with messages that are never torn because each is one small call. */
enum { EACH = 20000 };
struct note {
    uint32_t from, number;
};
static void *note_writer(void *from) {
    for (uint32_t i = 0; i < EACH; i++) {
        struct note m = {(uint32_t)(uintptr_t)from, i};
        send_all(shared_fd, &m, sizeof m);
    }
    return NULL;
}
static uint32_t notes_seen[2][EACH];
static void *note_reader(void *arg) {
    (void)arg;
    for (;;) {
        struct note m;
        ssize_t n = recv(shared_fd, &m, sizeof m, MSG_WAITALL);
        if (must(n) == 0)
            return NULL;
        if (n != sizeof m || m.from > 1 || m.number >= EACH) {
            fprintf(stderr, "torn: %zd %u %u\n", n, m.from, m.number);
            _exit(1);
        }
        __atomic_fetch_add(&notes_seen[m.from][m.number], 1, __ATOMIC_RELAXED);
    }
}
static void crowd_server(int fd) {
    pthread_t t[2];
    shared_fd = fd;
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&t[i], NULL, note_reader, NULL) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    int wrong = 0;
    for (int i = 0; i < EACH; i++)
        wrong += notes_seen[0][i] != 1 || notes_seen[1][i] != 1;
    say("lost or doubled: %d", wrong);
    tell_peer();
}
static void crowd_client(int fd) {
    pthread_t t[2];
    shared_fd = fd;
    for (uintptr_t i = 0; i < 2; i++)
        assert(pthread_create(&t[i], NULL, note_writer, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    shutdown(fd, SHUT_WR);
    await_peer();
}

static void *block_in_recv(void *arg) {
    char c;
    recv(shared_fd, &c, 1, 0);
    return arg;
}
static void *block_in_epoll(void *arg) {
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, shared_fd, &e));
    epoll_wait(ep, &e, 1, -1);
    return arg;
}
static void *block_in_poll(void *arg) {
    struct pollfd p = {shared_fd, POLLIN, 0};
    poll(&p, 1, -1);
    return arg;
}
static void *block_in_write(void *arg) {
    static char big[32 << 20];
    write(shared_fd, big, sizeof big);
    return arg;
}

static void cancel(const char *what, pthread_t t) {
    void *r;
    pthread_cancel(t);
    pthread_join(t, &r);
    say("%s: %s", what, r == PTHREAD_CANCELED ? "cancelled" : "ended");
}
static void cancelled(const char *what, void *(*work)(void *)) { cancel(what, start_sleeper(work, NULL)); }
/* One that never sleeps. */
static void cancelled_busy(const char *what, void *(*work)(void *)) {
    pthread_t t;
    assert(pthread_create(&t, NULL, work, NULL) == 0);
    usleep(50000);
    cancel(what, t);
}

/* Cancelled threads leave a connection that works. */
static void cancel_server(int fd) {
    shared_fd = fd;
    for (int i = 0; i < 3; i++) {
        cancelled("recv", block_in_recv);
        cancelled("epoll_wait", block_in_epoll);
        cancelled("poll", block_in_poll);
    }
    together();
    for (int i = 0; i < 20; i++) {
        recv_noise(fd, i * 1000, 1000);
        send_noise(fd, i * 1000, 1000);
    }
    tell_peer();
}
static void cancel_client(int fd) {
    together();
    for (int i = 0; i < 20; i++) {
        send_noise(fd, i * 1000, 1000);
        recv_noise(fd, i * 1000, 1000);
    }
    await_peer();
}

/* The end after a cancelled wait is an end for the peer too. */
static void cancel_close_server(int fd) {
    shared_fd = fd;
    cancelled("recv", block_in_recv);
    cancelled("poll", block_in_poll);
    must(close(fd));
    tell_peer();
    await_peer();
    must(open("/dev/null", O_RDONLY));
}
static void cancel_close_client(int fd) {
    char c;
    await_peer();
    wait_for(fd, POLLIN);
    say_result("end", read(fd, &c, 1));
    tell_peer();
}

/* A cancelled writer: what it wrote arrives, the rest of the program goes on. */
static void cancel_writer_server(int fd) {
    shared_fd = fd;
    cancelled("write", block_in_write);
    shutdown(fd, SHUT_WR);
    recv_noise(fd, 0, 1000);
    tell_peer();
}
static void cancel_writer_client(int fd) {
    char buf[65536];
    uint64_t n = 0;
    ssize_t r;
    send_noise(fd, 0, 1000);
    usleep(100000);
    while ((r = must(read(fd, buf, sizeof buf))) > 0)
        n += r;
    say("a part: %d", n > 0 && n < 32 << 20);
    await_peer();
}

/* A thread that never blocks is cancelled at its next call all the same. */
static void *chatter(void *arg) {
    char c = 0;
    for (;;) {
        if (write(shared_fd, &c, 1) != 1 || read(shared_fd, &c, 1) != 1)
            return arg;
    }
}
static void *hoarder(void *arg) {
    char c;
    for (;;)
        recv(shared_fd, &c, 1, MSG_PEEK);
    return arg;
}
static void cancel_busy_server(int fd) {
    shared_fd = fd;
    cancelled_busy("ping-pong", chatter);
    shutdown(fd, SHUT_WR);
    char buf[100];
    while (must(read(fd, buf, sizeof buf)) > 0) {
    }
    tell_peer();
}
static void cancel_busy_client(int fd) {
    char c;
    while (must(read(fd, &c, 1)) == 1)
        send_all(fd, &c, 1);
    shutdown(fd, SHUT_WR);
    await_peer();
}
static void cancel_peeker_server(int fd) {
    shared_fd = fd;
    together();
    await_bytes(fd, 100);
    cancelled_busy("peeking", hoarder);
    recv_noise(fd, 0, 100);
    tell_peer();
}
static void cancel_peeker_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
}

/* A number is closed while another thread is blocked on it, and then given to another connection: the blocked thread must
 * not take the new connection's bytes. */
static void *read_one(void *arg) {
    char c = 0;
    ssize_t n = recv(*(int *)arg, &c, 1, 0);
    return (void *)(n == 1 ? (long)c : n);
}
static void close_blocked_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a, b, old = fd;
    pthread_t t = start_sleeper(read_one, &old);
    void *r;
    close(fd);
    /* The new connection most likely gets the number. */
    warm_pair(&at, l, &a, &b);
    say("number reused: %d", a == fd || b == fd);
    for (int i = 0; i < 200; i++) {
        send_noise(a, i * 100, 100);
        recv_noise(b, i * 100, 100);
        send_noise(b, i * 100, 100);
        recv_noise(a, i * 100, 100);
    }
    tell_peer();
    pthread_join(t, &r);
    say("the blocked thread got: %c", (int)(long)r);
    send_noise(a, 0, 100);
    recv_noise(b, 0, 100);
}
static void close_blocked_client(int fd) {
    await_peer();
    send_all(fd, "z", 1);
    char c;
    say("then the end: %zd", read(fd, &c, 1));
}

/* The same with a connection whose bytes come by the kernel: a fresh one, and one that a standard stream has taken over. */
static void reuse_while_blocked(int old, int peer, FILE *by) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a, b;
    pthread_t t = start_sleeper(read_one, &old);
    void *r;
    close(old);
    a = connect_to(&at);
    b = must(accept(l, NULL, NULL));
    say("number reused: %d", a == old || b == old);
    for (int i = 0; i < 20; i++) {
        send_noise(a, i * 100, 100);
        recv_noise(b, i * 100, 100);
        send_noise(b, i * 100, 100);
        recv_noise(a, i * 100, 100);
    }
    send_noise(a, 0, 100);
    send_noise(b, 0, 100);
    if (by) {
        fputc('z', by);
        fflush(by);
    } else
        send_all(peer, "z", 1);
    pthread_join(t, &r);
    say("the blocked thread got: %c", (int)(long)r);
    recv_noise(b, 0, 100);
    recv_noise(a, 0, 100);
    close(a);
    close(b);
    close(l);
}
static void close_blocked_cold_server(int fd) {
    struct sockaddr_in at;
    (void)fd;
    int l = listen_somewhere(&at), c = connect_to(&at), s = must(accept(l, NULL, NULL));
    reuse_while_blocked(s, c, NULL);
    close(c);
    c = connect_to(&at);
    s = must(accept(l, NULL, NULL));
    for (int i = 0; i < WARM; i++) {
        send_noise(c, i, 64);
        recv_noise(s, i, 64);
        send_noise(s, i, 64);
        recv_noise(c, i, 64);
    }
    reuse_while_blocked(s, c, fdopen(c, "r+"));
}
static void close_blocked_cold_client(int fd) { (void)fd; }

/* fork by one thread while others keep a connection busy. */
static volatile int forks_over;
static void *forker(void *arg) {
    for (int i = 0; i < 30; i++) {
        int status = -1;
        pid_t pid = must(fork());
        if (pid == 0)
            _exit(7);
        must(waitpid(pid, &status, 0));
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            fprintf(stderr, "child: %x\n", status);
            _exit(1);
        }
    }
    forks_over = 1;
    return arg;
}
static void fork_busy_server(int fd) {
    char buf[64];
    pthread_t t;
    assert(pthread_create(&t, NULL, forker, NULL) == 0);
    for (uint64_t at = 0;; at += 64) {
        recv_all(fd, buf, 64);
        check(buf, at, 64);
        buf[0] = forks_over;
        send_all(fd, buf, 64);
        if (buf[0])
            break;
    }
    pthread_join(t, NULL);
    say("done");
}
static void fork_busy_client(int fd) {
    char buf[64];
    uint64_t at = 0;
    do {
        send_noise(fd, at, 64);
        recv_all(fd, buf, 64);
        check(buf + 1, at + 1, 63);
        at += 64;
    } while (buf[0] != 1);
}

/* Two real-time threads of different priorities on one CPU send and receive on one connection: the higher one comes when the lower
 * one holds what it needs, and is not to wait for it by spinning (SCHED_FIFO, where that is permitted). */
enum { LETTER = 64, LETTERS = 3000 };
static int fifo_fd;
static volatile int fifo_over;
static void real_time(int priority) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){.sched_priority = priority});
}
static void *low_sender(void *unused) {
    char letter[LETTER] = {0};
    real_time(10);
    while (!fifo_over)
        send_all(fifo_fd, letter, LETTER);
    return unused;
}
static void *high_sender(void *unused) {
    char letter[LETTER] = {0};
    real_time(20);
    for (int i = 0; i < LETTERS; i++) {
        usleep(i % 70);
        send_all(fifo_fd, letter, LETTER);
    }
    fifo_over = 1;
    return unused;
}
static void *low_reader(void *unused) {
    char c[LETTER];
    real_time(10);
    while (read(fifo_fd, c, sizeof c) > 0) {
    }
    return unused;
}
static void *high_reader(void *unused) {
    char c[LETTER];
    real_time(20);
    do
        usleep(30);
    while (read(fifo_fd, c, sizeof c) > 0);
    return unused;
}
static void two_threads(int fd, void *(*low)(void *), void *(*high)(void *)) {
    pthread_t a, b;
    fifo_fd = fd;
    must(-pthread_create(&a, NULL, low, NULL));
    must(-pthread_create(&b, NULL, high, NULL));
    pthread_join(b, NULL);
    pthread_join(a, NULL);
}
static void real_time_server(int fd) {
    two_threads(fd, low_sender, high_sender);
    must(shutdown(fd, SHUT_WR));
    await_peer();
    say("sent");
}
static void real_time_client(int fd) {
    two_threads(fd, low_reader, high_reader);
    char c;
    say_result("end", read(fd, &c, 1));
    tell_peer();
}

CASES(CASE(duplex), CASE(crowd), CASE(cancel), CASE(cancel_close), CASE(cancel_writer), CASE(cancel_busy), CASE(cancel_peeker),
      CASE(close_blocked), CASE(close_blocked_cold), CASE(fork_busy), CASE(real_time))
