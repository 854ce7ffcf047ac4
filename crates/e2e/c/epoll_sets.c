/* Sets in sets, and sets that poll and select wait for. */
#include "common.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>

static int set_with(int fd, unsigned events) {
    int ep = must(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event e = {.events = events, .data.u32 = fd};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    return ep;
}
/* A hundred bytes whenever the peer asks, so many times; then it is done. */
static void send_each_time(int fd, int times) {
    for (int i = 0; i < times; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
    }
    await_peer();
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

/* One arrival is one edge, also where it comes while a new registration is looked at for the first time. */
static void first_server(int fd) {
    struct epoll_event e;
    int told = 0, again = 0;
    for (int i = 0; i < 400; i++) {
        int inner = set_with(fd, EPOLLIN | (i % 2 ? EPOLLET : 0)), outer = set_with(inner, EPOLLIN | EPOLLET);
        int set = i % 2 ? inner : outer;
        tell_peer();
        told += must(epoll_wait(set, &e, 1, 5000));
        await_peer();
        again += must(epoll_wait(set, &e, 1, 0));
        recv_noise(fd, i * 100, 100);
        close(outer), close(inner);
    }
    say("told: %d, again: %d", told, again);
    tell_peer();
}
static void first_client(int fd) {
    for (int i = 0; i < 400; i++) {
        await_peer();
        for (uint64_t until = now() + i % 20 * 500; now() < until;) {
        }
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
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

/* A child changes the set that it shares with its parent. */
static int by_data(const void *a, const void *b) {
    const struct epoll_event *x = a, *y = b;
    return (x->data.u32 > y->data.u32) - (x->data.u32 < y->data.u32);
}
static void show_wait(const char *what, int ep, int ms) {
    struct epoll_event e[4];
    int n = epoll_wait(ep, e, 4, ms);
    if (n > 1)
        qsort(e, n, sizeof *e, by_data);
    printf("%s: %d", what, n);
    for (int i = 0; i < n; i++)
        printf(" %x:%u", e[i].events, (unsigned)e[i].data.u32);
    putchar('\n');
    fflush(stdout);
}
static void by_child(int ep, int op, int fd, unsigned events, unsigned data) {
    int status;
    fflush(stdout);
    pid_t pid = must(fork());
    if (pid == 0) {
        struct epoll_event e = {.events = events, .data.u32 = data};
        _exit(epoll_ctl(ep, op, fd, &e) < 0 ? errno : 0);
    }
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
}
static void by_child_server(int fd) {
    int ep = must(epoll_create1(0)), event = must(eventfd(0, 0));
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 99};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, event, &e));
    show_wait("empty", ep, 0);
    /* It adds. */
    by_child(ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1);
    show_wait("added", ep, 0);
    tell_peer();
    show_wait("added, data", ep, 5000);
    recv_noise(fd, 0, 100);
    show_wait("added, drained", ep, 0);
    e = (struct epoll_event){.events = EPOLLIN | EPOLLOUT, .data.u32 = 2};
    say_result("changed by the parent", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
    show_wait("changed", ep, 5000);
    tell_peer();
    wait_for(fd, POLLIN);
    show_wait("changed, data", ep, 5000);
    recv_noise(fd, 100, 100);
    /* It changes. */
    by_child(ep, EPOLL_CTL_MOD, fd, EPOLLIN, 3);
    show_wait("changed by the child", ep, 0);
    tell_peer();
    show_wait("changed by the child, data", ep, 5000);
    recv_noise(fd, 200, 100);
    show_wait("changed by the child, drained", ep, 0);
    /* It takes out. */
    by_child(ep, EPOLL_CTL_DEL, fd, 0, 0);
    tell_peer();
    wait_for(fd, POLLIN);
    show_wait("taken out", ep, 20);
    recv_noise(fd, 300, 100);
    say_result("no more", epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
    /* And what the parent had put in. */
    e = (struct epoll_event){.events = EPOLLIN, .data.u32 = 4};
    say_result("again", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    tell_peer();
    show_wait("again, data", ep, 5000);
    recv_noise(fd, 400, 100);
    by_child(ep, EPOLL_CTL_DEL, fd, 0, 0);
    tell_peer();
    wait_for(fd, POLLIN);
    show_wait("taken out", ep, 20);
    recv_noise(fd, 500, 100);
    say_result("again", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    by_child(ep, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT, 5);
    show_wait("changed by the child", ep, 5000);
    tell_peer();
    await_peer();
}
static void by_child_client(int fd) {
    send_each_time(fd, 6);
    tell_peer();
}

/* What a child changes of one connection, beside another, in a set that has both, and in one that it leaves alone; also what it fails
 * to change. */
static void left_apart_server(int fd) {
    static const unsigned asked[] = {EPOLLIN | EPOLLOUT, EPOLLOUT, EPOLLIN | EPOLLOUT | EPOLLET, EPOLLIN};
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    for (unsigned i = 0; i < sizeof asked / sizeof *asked * 2; i++) {
        int one, its, other, others, set = must(epoll_create1(0)), untouched = must(epoll_create1(0));
        unsigned events = asked[i / 2];
        warm_pair(&at, l, &one, &its);
        warm_pair(&at, l, &other, &others);
        struct epoll_event first = {.events = events, .data.u32 = 1}, second = {.events = EPOLLIN, .data.u32 = 2};
        must(epoll_ctl(set, EPOLL_CTL_ADD, one, &first));
        must(epoll_ctl(set, EPOLL_CTL_ADD, other, &second));
        must(epoll_ctl(untouched, EPOLL_CTL_ADD, one, &first));
        say("-- %x, %u", events, i % 2);
        show_wait("before", set, 0);
        show_wait("before, untouched", untouched, 0);
        by_child(set, i % 2 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, one, events, 1);
        send_noise(others, 0, 100);
        wait_for(other, POLLIN);
        if (!(events & EPOLLET))
            show_wait("data of the other", set, 0);
        recv_noise(other, 0, 100);
        send_noise(its, 0, 100);
        wait_for(one, POLLIN);
        show_wait("data", set, 0);
        show_wait("data, untouched", untouched, 0);
        recv_noise(one, 0, 100);
        if (!(events & EPOLLET)) {
            show_wait("drained", set, 0);
            show_wait("drained, untouched", untouched, 0);
        }
        close(one), close(its), close(other), close(others), close(set), close(untouched);
    }
    (void)fd;
}
static void left_apart_client(int fd) { (void)fd; }

/* A child that sleeps in the set, and one that adds while the parent does. */
static void while_asleep_server(int fd) {
    int ep = must(epoll_create1(0)), status;
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 1};
    show_wait("empty", ep, 0);
    fflush(stdout);
    pid_t pid = must(fork());
    if (pid == 0) {
        usleep(50000);
        must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
        tell_peer();
        _exit(0);
    }
    show_wait("asleep", ep, 5000);
    recv_noise(fd, 0, 100);
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    tell_peer();
    show_wait("again", ep, 5000);
    recv_noise(fd, 100, 100);
    tell_peer();
    await_peer();
}
static void while_asleep_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    await_peer();
    send_noise(fd, 100, 100);
    await_peer();
    tell_peer();
}

/* More sets than anybody looks after. */
static void crowd_server(int fd) {
    enum { MANY = 4200 };
    struct rlimit most;
    must(getrlimit(RLIMIT_NOFILE, &most));
    if (most.rlim_max < MANY + 200)
        fail("a limit of 4400 descriptors is needed");
    most.rlim_cur = most.rlim_max < 8192 ? most.rlim_max : 8192;
    must(setrlimit(RLIMIT_NOFILE, &most));
    int first = must(epoll_create1(0)), last = first;
    for (int i = 0; i < MANY; i++)
        last = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 7};
    must(epoll_ctl(first, EPOLL_CTL_ADD, fd, &e));
    must(epoll_ctl(last, EPOLL_CTL_ADD, fd, &e));
    show_wait("empty", last, 0);
    for (int i = 0; i < 3; i++) {
        tell_peer();
        show_wait("data", last, 5000);
        show_wait("first", first, 5000);
        recv_noise(fd, i * 100, 100);
        show_wait("drained", last, 0);
        show_wait("first", first, 0);
    }
    tell_peer();
}
static void crowd_client(int fd) {
    send_each_time(fd, 3);
}

/* What a parent puts into a set that its child has: the child is told of it by the program's data, or not at all. */
static void by_parent_server(int fd) {
    int ep = must(epoll_create1(0)), go[2];
    must(pipe(go));
    struct pollfd asked = {ep, POLLIN, 0};
    must(poll(&asked, 1, 0));
    pid_t pid = must(fork());
    if (pid == 0) {
        char c;
        struct epoll_event e;
        if (read(go[0], &c, 1) != 1)
            _exit(1);
        int n = epoll_wait(ep, &e, 1, 0);
        if (n == 0)
            n = epoll_wait(ep, &e, 1, 60);
        _exit(n < 0 || (n > 0 && e.data.u64 != 77));
    }
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLEXCLUSIVE, .data.u64 = 77};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    must(write(go[1], "", 1));
    int status = 0;
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    tell_peer();
}
static void by_parent_client(int fd) {
    (void)fd;
    await_peer();
}

/* A set lives on by another number, and its first one may be anything, another set too. */
static void by_other_number_server(int fd) {
    for (int how = 0; how < 3; how++) {
        int ep = set_with(fd, EPOLLIN), ends[2], none[2];
        must(pipe(ends));
        must(pipe(none));
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = 99};
        must(epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &e));
        int other = how == 0 ? must(dup(ep)) : how == 1 ? must(fcntl(ep, F_DUPFD_CLOEXEC, 50)) : must(dup2(ep, 60));
        if (how < 2)
            must(close(ep));
        else
            must(dup2(none[0], ep));
        int reused = set_with(none[0], EPOLLIN);
        show_wait("nothing", other, 0);
        must(write(ends[1], "x", 1));
        show_wait("pipe", other, 5000);
        must(epoll_ctl(other, EPOLL_CTL_DEL, ends[0], NULL));
        show_wait("deleted", other, 0);
        tell_peer();
        show_wait("data", other, 5000);
        show_wait("the other set", reused, 0);
        recv_noise(fd, how * 100, 100);
        e = (struct epoll_event){.events = EPOLLIN | EPOLLOUT, .data.u32 = 98};
        must(epoll_ctl(other, EPOLL_CTL_MOD, fd, &e));
        show_wait("room", other, 5000);
        must(close(other));
        must(close(reused));
    }
    tell_peer();
}
static void by_other_number_client(int fd) {
    send_each_time(fd, 3);
}

/* A number is closed while it is in a set, and another process has the connection yet: the kernel tells of it as before. */
static void closed_here_server(int fd) {
    int go[2];
    must(pipe(go));
    pid_t pid = must(fork());
    if (pid == 0) {
        int ep = set_with(fd, EPOLLIN);
        must(close(fd));
        must(write(go[1], "", 1));
        show_wait("after the close", ep, 5000);
        fflush(stdout);
        _exit(0);
    }
    char c;
    must(read(go[0], &c, 1));
    tell_peer();
    int status = 0;
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    recv_noise(fd, 0, 100);
    tell_peer();
}
static void closed_here_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    await_peer();
}

/* A one-shot member, looked at from other sets: an edge-triggered one is told of it once, however often it looks, and whoever waits
   on the set itself has it yet, once. */
static void looked_at_server(int fd) {
    unsigned modes[] = {EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT};
    for (int n = 0; n < 3; n++) {
        int inner = set_with(fd, EPOLLIN | EPOLLOUT | modes[n]);
        int outer = set_with(inner, EPOLLIN | EPOLLET), level = set_with(inner, EPOLLIN);
        struct epoll_event e;
        say("mode %x", modes[n]);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 3; i++) {
                say("outer %d", must(epoll_wait(outer, &e, 1, 0)));
                say("level %d", must(epoll_wait(level, &e, 1, 0)));
            }
            say("inner %d", must(epoll_wait(inner, &e, 1, 0)));
            say("inner %d", must(epoll_wait(inner, &e, 1, 0)));
            say("level %d", must(epoll_wait(level, &e, 1, 0)));
            e = (struct epoll_event){.events = EPOLLIN | modes[n], .data.u32 = fd};
            must(epoll_ctl(inner, EPOLL_CTL_MOD, fd, &e));
            tell_peer();
            show_wait("inner", inner, 5000);
            recv_noise(fd, n * 300 + round * 100, 100);
            e.events |= EPOLLOUT;
            must(epoll_ctl(inner, EPOLL_CTL_MOD, fd, &e));
        }
        must(close(outer));
        must(close(level));
        must(close(inner));
    }
    tell_peer();
}
static void looked_at_client(int fd) {
    send_each_time(fd, 9);
}

/* A set with room to tell of, at which nobody but poll has looked: who waits for something else on what is in it neither spins
 * nor outstays its limit. */
static void beside_server(int fd) {
    int set = set_with(fd, EPOLLIN | EPOLLOUT);
    struct pollfd p[] = {{set, POLLIN, 0}, {fd, POLLIN, 0}};
    say("the set: %d", poll(p, 1, 0));
    char c;
    tell_peer();
    say_result("first", recv(fd, &c, 1, 0));
    struct timeval limit = {0, 100000}, none = {0, 0};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    struct timespec from, to;
    must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from));
    say_result("in time", recv(fd, &c, 1, 0));
    say("poll: %d", poll(p + 1, 1, 100));
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
    tell_peer();
    say_result("later", recv(fd, &c, 1, 0));
    must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to));
    long used = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    say("%s", used < 100 ? "quiet" : "busy");
}
static void beside_client(int fd) {
    for (int i = 0; i < 2; i++) {
        await_peer();
        usleep(100000);
        must(send(fd, "x", 1, 0));
    }
}

/* What a send is refused for is nothing new to the other end: a set of which that has told its end already has told all. */
static void refused_server(int fd) {
    together();
    int inner = set_with(fd, EPOLLIN | EPOLLOUT), outer = set_with(inner, EPOLLIN | EPOLLET);
    struct epoll_event e;
    for (int i = 0; i < 4; i++) {
        say_result("outer", epoll_wait(outer, &e, 1, 0));
        say_result("inner", epoll_wait(inner, &e, 1, 0));
        struct pollfd p = {outer, POLLIN, 0};
        say("poll %d", poll(&p, 1, 20));
        together();
        together();
    }
    tell_peer();
}
static void refused_client(int fd) {
    shutdown(fd, SHUT_RDWR);
    together();
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    for (int i = 0; i < 4; i++) {
        await_peer(), tell_peer();
        say_result("send", i == 0 ? send(fd, "x", 1, MSG_NOSIGNAL) : i == 1 ? sendmsg(fd, &m, MSG_NOSIGNAL | MSG_OOB) : send(fd, "x", i == 2, MSG_NOSIGNAL | MSG_ZEROCOPY));
        await_peer(), tell_peer();
    }
    await_peer();
}

CASES(CASE(refused), CASE(beside), CASE(looked_at), CASE(by_other_number), CASE(closed_here), CASE(crowd), CASE(by_child), CASE(by_parent), CASE(left_apart), CASE(while_asleep), CASE(drained), CASE(levels), CASE(edges), CASE(first), CASE(once), CASE(asleep))
