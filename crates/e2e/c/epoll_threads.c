/* epoll sets that change while somebody sleeps on them, and sets of many members. */
#include "common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static int ctl(int ep, int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event e = {events, {.u64 = data}};
    return epoll_ctl(ep, op, fd, &e);
}

/* What a thread that waits on a set got. */
struct waiter {
    int ep, timeout, n;
    struct epoll_event e;
    pthread_t thread;
};

static void *wait_in_thread(void *arg) {
    struct waiter *w = arg;
    w->n = epoll_wait(w->ep, &w->e, 1, w->timeout);
    return NULL;
}

static void begin(struct waiter *w, int ep) {
    *w = (struct waiter){.ep = ep, .timeout = 5000};
    assert(pthread_create(&w->thread, NULL, wait_in_thread, w) == 0);
    usleep(50000); /* Most likely asleep by now; the result does not depend on it. */
}

static void finish(const char *what, struct waiter *w) {
    pthread_join(w->thread, NULL);
    say("%s: %d event(s), data %llx", what, w->n, w->n == 1 ? (unsigned long long)w->e.data.u64 : 0);
}

static void sender(int fd, int times) {
    for (int i = 0; i < times; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
}

static void add_while_asleep_server(int fd) {
    struct waiter w;
    int ep = must(epoll_create1(0));
    together();
    begin(&w, ep);
    must(ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 3));
    finish("added with data", &w);
    recv_noise(fd, 0, 100);
    tell_peer();
}
static void add_while_asleep_client(int fd) { sender(fd, 1); }

static void change_while_asleep_server(int fd) {
    struct waiter w;
    int ep = must(epoll_create1(0));
    must(ctl(ep, EPOLL_CTL_ADD, fd, 0, 1));
    together();
    begin(&w, ep);
    must(ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN, 2));
    finish("changed with data", &w);
    must(ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 4));
    begin(&w, ep);
    finish("once", &w);
    recv_noise(fd, 0, 100);
    begin(&w, ep);
    together();
    must(ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 5));
    finish("enabled again", &w);
    recv_noise(fd, 100, 100);
    must(ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 6));
    begin(&w, ep);
    together();
    finish("data while asleep", &w);
    recv_noise(fd, 200, 100);
    tell_peer();
}
static void change_while_asleep_client(int fd) { sender(fd, 3); }

/* Several threads take turns on one set with ONESHOT, as thread pools do. */
enum { POOL = 3, JOBS = 2000 };
static int pool_ep, pool_fd, pool_done;
static uint64_t pool_at;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

static void *pool_worker(void *arg) {
    (void)arg;
    while (!__atomic_load_n(&pool_done, __ATOMIC_SEQ_CST)) {
        struct epoll_event e;
        int n = epoll_wait(pool_ep, &e, 1, 100);
        if (n != 1)
            continue;
        char buf[256];
        pthread_mutex_lock(&pool_lock);
        ssize_t r = recv(pool_fd, buf, sizeof buf, MSG_DONTWAIT);
        if (r > 0) {
            check(buf, pool_at, r);
            pool_at += r;
            send_all(pool_fd, buf, r);
            if (pool_at == JOBS * 100)
                __atomic_store_n(&pool_done, 1, __ATOMIC_SEQ_CST);
        }
        pthread_mutex_unlock(&pool_lock);
        must(ctl(pool_ep, EPOLL_CTL_MOD, pool_fd, EPOLLIN | EPOLLONESHOT, 1));
    }
    return NULL;
}
static void pool_server(int fd) {
    pthread_t t[POOL];
    pool_fd = fd;
    pool_ep = must(epoll_create1(0));
    must(ctl(pool_ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT, 1));
    for (int i = 0; i < POOL; i++)
        assert(pthread_create(&t[i], NULL, pool_worker, NULL) == 0);
    for (int i = 0; i < POOL; i++)
        pthread_join(t[i], NULL);
    say("echoed %llu", (unsigned long long)pool_at);
}
static void pool_client(int fd) {
    for (int i = 0; i < JOBS; i++) {
        send_noise(fd, i * 100, 100);
        recv_noise(fd, i * 100, 100);
    }
}

/* Other descriptors of the set are seen even if the connection is always ready, and wake a sleeper. */
static void others_server(int fd) {
    int ep = must(epoll_create1(0)), bell = must(eventfd(0, EFD_NONBLOCK)), pipes[2];
    int timer = must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    must(pipe(pipes));
    must(ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1));
    must(ctl(ep, EPOLL_CTL_ADD, bell, EPOLLIN, 2));
    must(ctl(ep, EPOLL_CTL_ADD, timer, EPOLLIN, 4));
    must(ctl(ep, EPOLL_CTL_ADD, pipes[0], EPOLLIN, 8));
    together();
    struct itimerspec in20 = {.it_value = {0, 20 * MS}};
    must(timerfd_settime(timer, 0, &in20, NULL));
    must(eventfd_write(bell, 1));
    must(write(pipes[1], "", 1));
    int seen = 0;
    struct epoll_event e;
    for (uint64_t end = now() + 5000 * MS; seen != 15 && now() < end;)
        if (epoll_wait(ep, &e, 1, 1000) == 1)
            seen |= e.data.u64;
    say("beside a connection that is always ready: %d", seen);
    recv_noise(fd, 0, 100);
    eventfd_t v;
    char c;
    must(eventfd_read(bell, &v));
    must(read(pipes[0], &c, 1));
    must(read(timer, &v, 8));
    struct waiter w;
    begin(&w, ep);
    must(eventfd_write(bell, 1));
    finish("event while asleep", &w);
    must(eventfd_read(bell, &v));
    must(timerfd_settime(timer, 0, &in20, NULL));
    begin(&w, ep);
    finish("timer while asleep", &w);
    must(read(timer, &v, 8));
    begin(&w, ep);
    together();
    finish("connection while asleep", &w);
    recv_noise(fd, 100, 100);
    tell_peer();
}
static void others_client(int fd) { sender(fd, 2); }

static void errors_server(int fd) {
    int ep = must(epoll_create1(0)), other = must(epoll_create1(0));
    say_result("MOD of a stranger", ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN, 1));
    say_result("DEL of a stranger", epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
    say_result("ADD", ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1));
    say_result("ADD twice", ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1));
    say_result("DEL", epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
    say_result("DEL twice", epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
    say_result("MOD after DEL", ctl(ep, EPOLL_CTL_MOD, fd, EPOLLIN, 1));
    say_result("ADD again", ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, 2));
    say_result("bad op", ctl(ep, 77, fd, EPOLLIN, 1));
    say_result("closed number", ctl(ep, EPOLL_CTL_ADD, 999, EPOLLIN, 1));
    say_result("not a set", ctl(fd, EPOLL_CTL_ADD, fd, EPOLLIN, 1));
    say_result("no room", epoll_wait(ep, NULL, 0, 0));
    say_result("no set", epoll_wait(fd, &(struct epoll_event){0}, 1, 0));
    say_result("into itself", ctl(other, EPOLL_CTL_ADD, other, EPOLLIN, 1));
    uint64_t begun = now();
    struct epoll_event e;
    say_result("nothing", epoll_wait(ep, &e, 1, 40));
    say("waited: %d", now() - begun >= 39 * MS);
    together();
    say_result("something", epoll_wait(ep, &e, 1, 5000));
    say("data %llu", (unsigned long long)e.data.u64);
    recv_noise(fd, 0, 100);
    close(ep);
    tell_peer();
}
static void errors_client(int fd) { sender(fd, 1); }

/* How a connection ends, as a set tells it. */
static void ends_server(int fd) {
    struct epoll_event e;
    int ep = must(epoll_create1(0));
    must(ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, 1));
    together();
    int n = epoll_wait(ep, &e, 1, 5000);
    say("reset: %d %x", n, e.events);
    char c;
    say_result("read", read(fd, &c, 1));
    say_result("read", read(fd, &c, 1));
}
static void ends_client(int fd) {
    struct linger hard = {1, 0};
    await_peer();
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    close(fd);
    tell_peer();
}

static void closed_server(int fd) {
    struct epoll_event e;
    int ep = must(epoll_create1(0));
    must(ctl(ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, 1));
    epoll_wait(ep, &e, 1, 0);
    together();
    uint32_t events = 0;
    char c;
    for (int i = 0; i < 50 && !(events & EPOLLIN); i++)
        if (epoll_wait(ep, &e, 1, 5000) == 1)
            events = e.events;
    say("closed, edge: %x", events & (EPOLLIN | EPOLLERR | EPOLLHUP));
    say_result("read", read(fd, &c, 1));
    close(fd);
    say_result("a closed number is in no set", epoll_wait(ep, &e, 1, 0));
}
static void closed_client(int fd) {
    await_peer();
    close(fd);
    tell_peer();
}

/* Each of many ready members is told of before one is told of twice too often. */
static void many_server(int fd) {
    enum { N = 40 };
    struct sockaddr_in at;
    int l = listen_somewhere(&at), c[N], s[N], seen[N] = {0};
    (void)fd;
    for (int i = 0; i < N; i++)
        warm_pair(&at, l, &c[i], &s[i]);
    int ep = must(epoll_create1(0));
    for (int i = 0; i < N; i++) {
        must(ctl(ep, EPOLL_CTL_ADD, s[i], EPOLLIN, i));
        send_noise(c[i], 0, 50);
    }
    int distinct = 0;
    for (int calls = 0; calls < 20 * N && distinct < N; calls++) {
        struct epoll_event e[4];
        int n = must(epoll_wait(ep, e, 4, 1000));
        for (int k = 0; k < n; k++)
            distinct += !seen[e[k].data.u32]++;
    }
    say("%d of %d seen", distinct, N);
    for (int i = 0; i < N; i++) {
        recv_noise(s[i], 0, 50);
        close(i & 1 ? c[i] : s[i]);
    }
    for (int i = 0; i < N; i++)
        close(i & 1 ? s[i] : c[i]);
}
static void many_client(int fd) { (void)fd; }

/* A socket that was in a set before it was connected, level- and edge-triggered. */
static void early_server(int fd) {
    (void)fd;
    for (int edge = 0; edge < 2; edge++) {
        struct sockaddr_in at;
        struct epoll_event e;
        int l = listen_somewhere(&at), ep = must(epoll_create1(0));
        int c = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        must(ctl(ep, EPOLL_CTL_ADD, c, EPOLLIN | EPOLLRDHUP | (edge ? EPOLLET : 0), 5));
        if (connect(c, (struct sockaddr *)&at, sizeof at) < 0 && errno != EINPROGRESS)
            fail("connect");
        int s = must(accept(l, NULL, NULL)), good = 0;
        for (int i = 0; i < 40; i++) {
            send_noise(c, i, 64);
            recv_noise(s, i, 64);
            send_noise(s, i, 64);
            int events = 0;
            for (int tries = 0; tries < 10 && good == i && !(events & EPOLLIN); tries++)
                if (epoll_wait(ep, &e, 1, 500) == 1 && e.data.u64 == 5)
                    events = e.events;
            good += events & EPOLLIN ? 1 : 0;
            recv_noise(c, i, 64);
        }
        say("told of %d answers", good);
        close(c);
        close(s);
        close(l);
        close(ep);
    }
}
static void early_client(int fd) { (void)fd; }

CASES(CASE(early), CASE(add_while_asleep), CASE(change_while_asleep), CASE(pool), CASE(others), CASE(errors), CASE(ends),
      CASE(closed), CASE(many))
