/* Sets in sets, and sets that poll and select wait for. */
#include "common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

static int set_with(int fd, unsigned events) {
    int ep = must(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event e = {.events = events, .data.u32 = fd};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    return ep;
}
/* What poll, select and a wait say of a set, and a wait on the innermost one. */
static void ask(const char *what, int outer, int inner, int ms) {
    struct pollfd p = {outer, POLLIN | POLLOUT | POLLRDNORM, 0};
    int n = poll(&p, 1, ms);
    printf("%s: poll %d %x", what, n, p.revents);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(outer, &in);
    struct timeval none = {0, 0};
    printf(", select %d", select(outer + 1, &in, NULL, NULL, &none));
    struct epoll_event e;
    n = epoll_wait(outer, &e, 1, 0);
    printf(", outer %d", n);
    if (n > 0)
        printf(" %x", e.events);
    if (inner != outer) {
        n = epoll_wait(inner, &e, 1, 0);
        printf(", inner %d", n);
        if (n > 0)
            printf(" %x", e.events);
    }
    putchar('\n');
}

static void drained_server(int fd) {
    int inner = set_with(fd, EPOLLIN);
    ask("before", inner, inner, 0);
    tell_peer();
    ask("data", inner, inner, 5000);
    recv_noise(fd, 0, 100);
    ask("drained", inner, inner, 0);
    ask("drained", inner, inner, 20);
    await_peer();
    tell_peer();
    ask("again", inner, inner, 5000);
    ask("still", inner, inner, 5000);
    recv_noise(fd, 100, 50);
    ask("some left", inner, inner, 0);
    recv_noise(fd, 150, 50);
    ask("drained", inner, inner, 0);
    tell_peer();
    await_peer();
}
static void drained_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
    send_noise(fd, 100, 100);
    await_peer();
    tell_peer();
}

static void levels_server(int fd) {
    int inner = set_with(fd, EPOLLIN), middle = set_with(inner, EPOLLIN), outer = set_with(middle, EPOLLIN);
    for (int i = 0; i < 20; i++) {
        ask("before", outer, inner, i % 2 * 5);
        tell_peer();
        ask("data", outer, inner, 5000);
        ask("middle", middle, inner, 5000);
        recv_noise(fd, i * 100, 100);
        ask("drained", outer, inner, 0);
    }
    /* Asleep already. */
    struct epoll_event e;
    for (int i = 20; i < 40; i++) {
        tell_peer();
        say_result("asleep", epoll_wait(outer, &e, 1, 5000));
        recv_noise(fd, i * 100, 100);
        say_result("no more", epoll_wait(outer, &e, 1, 0));
    }
    tell_peer();
    say("end: %d", wait_for(outer, POLLIN) == POLLIN);
}
static void levels_client(int fd) {
    for (int i = 0; i < 40; i++) {
        await_peer();
        usleep(i >= 20 ? 3000 : 0);
        send_noise(fd, i * 100, 100);
    }
    await_peer();
}

/* An edge of a set is something new in it. */
static void edges_server(int fd) {
    int inner = set_with(fd, EPOLLIN), outer = set_with(inner, EPOLLIN | EPOLLET);
    struct epoll_event e;
    say_result("before", epoll_wait(outer, &e, 1, 0));
    for (int i = 0; i < 10; i++) {
        tell_peer();
        say_result("data", epoll_wait(outer, &e, 1, 5000));
        await_peer();
        say_result("told", epoll_wait(outer, &e, 1, 20));
        say_result("inside", epoll_wait(inner, &e, 1, 0));
        say_result("told", epoll_wait(outer, &e, 1, 0));
        if (i % 3 == 2)
            recv_noise(fd, (i - 2) * 100, 300);
    }
    tell_peer();
    await_peer();
}
static void edges_client(int fd) {
    for (int i = 0; i < 10; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
    tell_peer();
}

/* Looking at a set takes nothing out of it that is told once. */
static void once_server(int fd) {
    int inner = set_with(fd, EPOLLIN | EPOLLET), outer = set_with(inner, EPOLLIN);
    int event = must(eventfd(0, EFD_NONBLOCK)), other = must(eventfd(0, EFD_NONBLOCK));
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = 1001};
    must(epoll_ctl(inner, EPOLL_CTL_ADD, event, &e));
    e = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 1002};
    must(epoll_ctl(inner, EPOLL_CTL_ADD, other, &e));
    await_peer();
    must(eventfd_write(event, 1));
    must(eventfd_write(other, 1));
    struct pollfd p = {outer, POLLIN, 0};
    for (int i = 0; i < 3; i++)
        say_result("poll", poll(&p, 1, 1000));
    struct epoll_event many[8];
    int n = epoll_wait(inner, many, 8, 1000);
    say("told: %d", n);
    unsigned sum = 0;
    for (int i = 0; i < n; i++)
        sum += many[i].data.u32;
    say("all three: %d", sum == 1001 + 1002 + (unsigned)fd);
    for (int i = 0; i < 3; i++)
        say_result("nothing more", poll(&p, 1, 0));
    say_result("nothing more", epoll_wait(inner, many, 8, 0));
    e = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 1003};
    must(epoll_ctl(inner, EPOLL_CTL_MOD, other, &e));
    say_result("again", poll(&p, 1, 0));
    must(epoll_ctl(inner, EPOLL_CTL_DEL, other, NULL));
    say_result("out", poll(&p, 1, 0));
    recv_noise(fd, 0, 100);
    tell_peer();
    await_peer();
}
static void once_client(int fd) {
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
    tell_peer();
}

/* Somebody sleeps in the inner set while others look at the outer one. */
static int woken;
static void *sleeper(void *set) {
    struct epoll_event e;
    int n = epoll_wait(*(int *)set, &e, 1, 10000);
    __atomic_store_n(&woken, 1 + n, __ATOMIC_SEQ_CST);
    return NULL;
}
static void asleep_server(int fd) {
    int inner = set_with(fd, EPOLLIN), outer = set_with(inner, EPOLLIN);
    struct pollfd p = {outer, POLLIN, 0};
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        woken = 0;
        pthread_create(&thread, NULL, sleeper, &inner);
        usleep(1000);
        tell_peer();
        while (!__atomic_load_n(&woken, __ATOMIC_SEQ_CST))
            poll(&p, 1, 1);
        pthread_join(thread, NULL);
        say("told: %d", woken - 1);
        recv_noise(fd, i, 1);
    }
    tell_peer();
    await_peer();
}
static void asleep_client(int fd) {
    for (int i = 0; i < 20; i++) {
        await_peer();
        send_noise(fd, i, 1);
    }
    await_peer();
    tell_peer();
}

CASES(CASE(drained), CASE(levels), CASE(edges), CASE(once), CASE(asleep))
