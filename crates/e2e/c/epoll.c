/* epoll sets with a connection in them. */
#include "common.h"
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set_with(int fd, uint32_t events, uint64_t data) {
    int ep = must(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event e = {events, {.u64 = data}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    return ep;
}

static void change(int ep, int fd, uint32_t events, uint64_t data) {
    struct epoll_event e = {events, {.u64 = data}};
    must(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
}

/* Waits and says what came: events by name, data. Returns the events of the first. */
static uint32_t show(const char *what, int ep, int timeout) {
    struct epoll_event e[8];
    int n = epoll_wait(ep, e, 8, timeout);
    if (n < 0) {
        say_result(what, n);
        return 0;
    }
    say("%s: %d event%s", what, n, n == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        say("  %s%s%s%s%s%s data %llx", e[i].events & EPOLLIN ? " IN" : "", e[i].events & EPOLLOUT ? " OUT" : "",
            e[i].events & EPOLLRDHUP ? " RDHUP" : "", e[i].events & EPOLLHUP ? " HUP" : "",
            e[i].events & EPOLLERR ? " ERR" : "", e[i].events & EPOLLPRI ? " PRI" : "",
            (unsigned long long)e[i].data.u64);
    return n > 0 ? e[0].events : 0;
}

/* A client that sends 100 bytes each time it is told to, until its end is told to leave. */
static void sender(int fd, int times) {
    for (int i = 0; i < times; i++) {
        await_peer();
        send_noise(fd, i * 100, 100);
        tell_peer();
    }
    await_peer();
}

static void ask(void) { together(); }

static void level_server(int fd) {
    int ep = set_with(fd, EPOLLIN, 7);
    show("idle", ep, 0);
    ask();
    show("data", ep, 5000);
    recv_noise(fd, 0, 40);
    show("rest", ep, 5000);
    show("rest again", ep, 0);
    recv_noise(fd, 40, 60);
    show("drained", ep, 20);
    tell_peer();
}
static void level_client(int fd) { sender(fd, 1); }

static void edge_server(int fd) {
    int ep = set_with(fd, EPOLLIN | EPOLLET, 1ull << 63 | 5);
    ask();
    show("data", ep, 5000);
    show("told once", ep, 30);
    ask();
    show("more", ep, 5000);
    recv_noise(fd, 0, 200);
    show("drained", ep, 30);
    ask();
    show("after", ep, 5000);
    recv_noise(fd, 200, 50);
    show("a partial read is no edge", ep, 30);
    recv_noise(fd, 250, 50);
    tell_peer();
}
static void edge_client(int fd) { sender(fd, 3); }

static void oneshot_server(int fd) {
    int ep = set_with(fd, EPOLLIN | EPOLLONESHOT, 1);
    ask();
    show("once", ep, 5000);
    ask();
    show("off", ep, 30);
    change(ep, fd, EPOLLIN | EPOLLONESHOT, 2);
    show("on again", ep, 5000);
    recv_noise(fd, 0, 200);
    change(ep, fd, EPOLLIN | EPOLLONESHOT, 3);
    show("drained", ep, 30);
    ask();
    show("new", ep, 5000);
    recv_noise(fd, 200, 100);
    tell_peer();
}
static void oneshot_client(int fd) { sender(fd, 3); }

static void exclusive_server(int fd) {
    int a = set_with(fd, EPOLLIN | EPOLLEXCLUSIVE, 1);
    ask();
    show("data", a, 5000);
    recv_noise(fd, 0, 100);
    show("drained", a, 30);
    struct epoll_event e = {EPOLLIN, {.u64 = 9}};
    say_result("MOD", epoll_ctl(a, EPOLL_CTL_MOD, fd, &e));
    ask();
    show("more", a, 5000);
    recv_noise(fd, 100, 100);
    tell_peer();
}
static void exclusive_client(int fd) { sender(fd, 2); }

static void out_full_server(int fd) {
    await_peer();
    tell_peer();
    uint64_t n;
    must(read(from_peer, &n, sizeof n));
    recv_noise(fd, 0, n);
    await_peer();
}
static void out_full_client(int fd) {
    int level = set_with(fd, EPOLLOUT, 1), edge = set_with(fd, EPOLLOUT | EPOLLET, 2);
    show("room", level, 0);
    show("room, edge", edge, 0);
    show("room, no second edge", edge, 0);
    uint64_t n = send_until_full(fd, 0);
    say("more than 64 KiB fit: %d", n > 65536);
    show("full", level, 30);
    show("full, edge", edge, 30);
    together();
    must(write(to_peer, &n, sizeof n));
    show("room again", level, 5000);
    show("room again, edge", edge, 5000);
    tell_peer();
}

static void rdhup_server(int fd) {
    char c;
    int ep = set_with(fd, EPOLLIN | EPOLLRDHUP, 1), plain = set_with(fd, EPOLLIN, 2);
    ask();
    wait_for(fd, POLLRDHUP);
    show("data and half-close", ep, 5000);
    show("without RDHUP", plain, 5000);
    recv_noise(fd, 0, 100);
    show("half-close", ep, 5000);
    say_result("read", read(fd, &c, 1));
    show("half-close stays", ep, 0);
    send_noise(fd, 0, 1000);
    ask();
    shutdown(fd, SHUT_WR);
    show("both halves", ep, 5000);
}
static void rdhup_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    must(shutdown(fd, SHUT_WR));
    tell_peer();
    recv_noise(fd, 0, 1000);
    together();
    say("then %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}

static void rdhup_edge_server(int fd) {
    int ep = set_with(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, 1);
    ask();
    show("data", ep, 5000);
    recv_noise(fd, 0, 100);
    show("drained", ep, 30);
    together();
    show("half-close", ep, 5000);
    show("told once", ep, 30);
    char c;
    say_result("read", read(fd, &c, 1));
    close(fd);
}
static void rdhup_edge_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    together();
    must(shutdown(fd, SHUT_WR));
    tell_peer();
    say("then %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}

static void two_sets_server(int fd) {
    int a = set_with(fd, EPOLLIN, 1), b = set_with(fd, EPOLLIN | EPOLLET, 2), c = set_with(fd, EPOLLOUT, 3);
    ask();
    show("a", a, 5000);
    show("b", b, 5000);
    show("c", c, 0);
    show("a", a, 0);
    show("b", b, 0);
    recv_noise(fd, 0, 100);
    show("a", a, 0);
    ask();
    show("b", b, 5000);
    show("a", a, 5000);
    must(epoll_ctl(a, EPOLL_CTL_DEL, fd, NULL));
    show("a without it", a, 0);
    recv_noise(fd, 100, 100);
    ask();
    show("b", b, 5000);
    tell_peer();
}
static void two_sets_client(int fd) { sender(fd, 3); }

static void nested_server(int fd) {
    int inner = set_with(fd, EPOLLIN, 1), outer = set_with(inner, EPOLLIN, 2);
    struct pollfd p = {inner, POLLIN, 0};
    show("outer idle", outer, 0);
    ask();
    show("outer", outer, 5000);
    say("poll on the inner: %d", poll(&p, 1, 5000));
    show("inner", inner, 0);
    recv_noise(fd, 0, 100);
    show("outer drained", outer, 30);
    p.revents = 0;
    say("poll drained: %d", poll(&p, 1, 30));
    tell_peer();
    show("outer, asleep first", outer, 5000);
    show("inner", inner, 0);
    recv_noise(fd, 100, 100);
    await_peer();
    say("poll drained: %d", poll(&p, 1, 30));
    tell_peer();
    say("poll, asleep first: %d", poll(&p, 1, 5000));
    recv_noise(fd, 200, 100);
    await_peer();
    tell_peer();
}
static void nested_client(int fd) { sender(fd, 3); }

static void dup_server(int fd) {
    int other = must(dup(fd)), ep = set_with(fd, EPOLLIN, 1);
    struct epoll_event e[2] = {{EPOLLIN, {.u64 = 2}}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, other, &e[0]));
    ask();
    int n = epoll_wait(ep, e, 2, 5000), seen = 0;
    for (int k = 0; k < n; k++)
        seen |= e[k].data.u64;
    say("both reported: %d", seen);
    recv_noise(other, 0, 100);
    show("drained", ep, 30);
    must(epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
    close(fd);
    ask();
    show("the dup", ep, 5000);
    recv_noise(other, 100, 100);
    send_noise(other, 0, 10);
    tell_peer();
}
static void dup_client(int fd) {
    sender(fd, 2);
    recv_noise(fd, 0, 10);
}

/* A registration lives until the last descriptor of its description is closed. */
static void dup_stays_server(int fd) {
    int other = must(dup(fd)), ep = set_with(fd, EPOLLIN, 1);
    close(fd);
    ask();
    show("of a closed number", ep, 5000);
    recv_noise(other, 0, 100);
    tell_peer();
}
static void dup_stays_client(int fd) { sender(fd, 1); }

static void fork_set_server(int fd) {
    int ep = set_with(fd, EPOLLIN, 1), status;
    pid_t pid = must(fork());
    if (pid == 0) {
        struct epoll_event e;
        if (epoll_wait(ep, &e, 1, 5000) != 1 || e.data.u64 != 1)
            _exit(1);
        recv_noise(fd, 0, 100);
        if (epoll_wait(ep, &e, 1, 30) != 0)
            _exit(2);
        send_noise(fd, 0, 10);
        _exit(0);
    }
    ask();
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    show("parent, drained by the child", ep, 30);
    ask();
    show("parent", ep, 5000);
    recv_noise(fd, 100, 100);
    tell_peer();
}
static void fork_set_client(int fd) {
    sender(fd, 2);
    recv_noise(fd, 0, 10);
}

/* A non-blocking stream whose reader stops reading now and then, for longer than anybody's patience. */
static void stall_server(int fd) {
    uint64_t at = 0;
    for (int i = 0; i < 6; i++) {
        /* All that is there, and once more whatever that lets through. */
        usleep(350000);
        for (int more = 0; more < 40 && at < 8ull << 21; more++) {
            char buf[65536];
            ssize_t n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
            if (n < 0 && errno == EAGAIN) {
                usleep(1000);
                continue;
            }
            check(buf, at, must(n));
            at += n;
        }
    }
    recv_noise(fd, at, (8ull << 21) - at);
    say("received");
    tell_peer();
}
static void stall_client(int fd) {
    char buf[20000];
    int ep = set_with(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 1), dry = 0;
    struct epoll_event e;
    nonblocking(fd, 1);
    for (uint64_t at = 0; at < 8ull << 21;) {
        size_t k = (8ull << 21) - at < sizeof buf ? (8ull << 21) - at : sizeof buf;
        fill(buf, at, k);
        ssize_t n = write(fd, buf, k);
        if (n < 0 && errno == EAGAIN) {
            int ready = epoll_wait(ep, &e, 1, 3000);
            if (ready == 0 && ++dry == 2) {
                say("no word of room at %llu", (unsigned long long)at);
                return;
            }
        } else
            at += must(n);
    }
    say("sent");
    await_peer();
}
static void stall_level_server(int fd) { stall_server(fd); }
static void stall_level_client(int fd) {
    char buf[20000];
    int ep = set_with(fd, EPOLLIN, 1);
    struct epoll_event e;
    nonblocking(fd, 1);
    for (uint64_t at = 0; at < 8ull << 21;) {
        size_t k = (8ull << 21) - at < sizeof buf ? (8ull << 21) - at : sizeof buf;
        fill(buf, at, k);
        ssize_t n = write(fd, buf, k);
        if (n < 0 && errno == EAGAIN) {
            change(ep, fd, EPOLLIN | EPOLLOUT, 2);
            if (epoll_wait(ep, &e, 1, 5000) != 1) {
                say("no word of room at %llu", (unsigned long long)at);
                return;
            }
            change(ep, fd, EPOLLIN, 1);
        } else
            at += must(n);
    }
    say("sent");
    await_peer();
}

/* A short read means that there is no more for now (epoll(7)): who goes by that, edge-triggered, must not be left waiting,
 * by whichever paths the bytes came. */
static void short_read_server(int fd) {
    char buf[50000];
    int ep = set_with(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, 1), ready = 0;
    struct epoll_event e;
    uint64_t at = 0;
    nonblocking(fd, 1);
    tell_peer();
    /* Edges that come while the program does not read count for later. */
    struct pollfd p = {from_peer, POLLIN, 0};
    while (poll(&p, 1, 0) == 0)
        ready |= epoll_wait(ep, &e, 1, 20) == 1;
    await_peer();
    ready |= epoll_wait(ep, &e, 1, 0) == 1;
    while (at < 1 << 20) {
        if (!ready && epoll_wait(ep, &e, 1, 3000) != 1) {
            say("left waiting at %llu", (unsigned long long)at);
            return;
        }
        ssize_t n = read(fd, buf, sizeof buf);
        if (n > 0) {
            check(buf, at, n);
            at += n;
        }
        ready = n == sizeof buf;
    }
    say("all");
    tell_peer();
}
static void short_read_client(int fd) {
    char buf[10000];
    await_peer();
    nonblocking(fd, 1);
    for (uint64_t at = 0; at < 1 << 20;) {
        size_t k = (1 << 20) - at < sizeof buf ? (1 << 20) - at : sizeof buf;
        fill(buf, at, k);
        ssize_t n = write(fd, buf, k);
        if (n < 0 && errno == EAGAIN)
            wait_for(fd, POLLOUT);
        else
            at += must(n);
    }
    tell_peer();
    await_peer();
}

/* Taken over between the shot and the program's next MOD: the registration stays silent until then. */
static void oneshot_taken_server(int fd) {
    struct sockaddr_in at;
    struct epoll_event e = {EPOLLIN | EPOLLONESHOT, {.u64 = 7}};
    int l = listen_somewhere(&at), client = connect_to(&at), server = must(accept(l, NULL, NULL));
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, server, &e));
    send_noise(client, 0, 64);
    say("shot: %d", epoll_wait(ep, &e, 1, 5000));
    for (int i = 0; i < WARM; i++) {
        recv_noise(server, 0, 64);
        send_noise(server, 0, 64);
        recv_noise(client, 0, 64);
        send_noise(client, 0, 64);
    }
    say("silent: %d", epoll_wait(ep, &e, 1, 100));
    e = (struct epoll_event){EPOLLIN | EPOLLONESHOT, {.u64 = 8}};
    must(epoll_ctl(ep, EPOLL_CTL_MOD, server, &e));
    say("again: %d", epoll_wait(ep, &e, 1, 5000));
    say("data: %d", (int)e.data.u64);
    close(client), close(server), close(l), close(ep);
    tell_peer();
    (void)fd;
}
static void oneshot_taken_client(int fd) {
    await_peer();
    (void)fd;
}

/* epoll_pwait2 waits for as long as it was told, to less than a millisecond. Of many waits the shortest shows it: others may be
 * held up. */
static int shorter_than_a_millisecond(int ep) {
    struct timespec wait = {0, 100000};
    struct epoll_event e;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 300 && least >= MS; i++) {
        uint64_t begun = now();
        assert(epoll_pwait2(ep, &e, 1, &wait, NULL) == 0);
        uint64_t lasted = now() - begun;
        assert(lasted >= 100000);
        least = lasted < least ? lasted : least;
    }
    return least < MS;
}
static void pwait2_server(int fd) {
    struct epoll_event e = {EPOLLIN, {.u64 = 7}};
    int ours = must(epoll_create1(0)), other = must(epoll_create1(0));
    int pipes[2];
    must(pipe2(pipes, O_CLOEXEC));
    must(epoll_ctl(ours, EPOLL_CTL_ADD, fd, &e));
    must(epoll_ctl(other, EPOLL_CTL_ADD, pipes[0], &e));
    say("nothing: %d", shorter_than_a_millisecond(other));
    say("a connection: %d", shorter_than_a_millisecond(ours));
    for (int i = 0; i < 2; i++) {
        int ep = i ? ours : other;
        say_result("negative", epoll_pwait2(ep, &e, 1, &(struct timespec){-1, 0}, NULL));
        say_result("too many nanoseconds", epoll_pwait2(ep, &e, 1, &(struct timespec){0, 1000000000}, NULL));
    }
    tell_peer();
    say_result("for ever", epoll_pwait2(ours, &e, 1, NULL, NULL));
    recv_noise(fd, 0, 10);
}
static void pwait2_client(int fd) {
    await_peer();
    send_noise(fd, 0, 10);
}

/* Whose data a wait for all that is ready brings, by bits. */
static int reported(int ep) {
    struct epoll_event e[8];
    int seen = 0;
    for (int n = must(epoll_wait(ep, e, 8, 1000)); n-- > 0;)
        seen |= e[n].data.u64;
    return seen;
}

/* While data lies unread, each call tells of all that was ready a little before it; and where there is room for one, of each in
 * turn. */
static void beside_server(int fd) {
    int pipes[2], ep = set_with(fd, EPOLLIN, 1);
    char c;
    must(pipe(pipes));
    struct epoll_event e = {EPOLLIN, {.u64 = 2}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e));
    ask();
    for (int i = 0; i < 20; i++) {
        say("data: %d", reported(ep));
        must(write(pipes[1], "", 1));
        usleep(20);
        say("both: %d", reported(ep));
        int seen = 0;
        for (int k = 0; k < 4 && seen != 3; k++) {
            usleep(20);
            must(epoll_wait(ep, &e, 1, 1000));
            seen |= e.data.u64;
        }
        say("in turn: %d", seen);
        must(read(pipes[0], &c, 1));
    }
    recv_noise(fd, 0, 100);
    tell_peer();
}
static void beside_client(int fd) { sender(fd, 1); }

/* What comes in the moment in which room alone is told is an edge of its own. Connections that change to shared memory meanwhile. */
static void beside_room_end(int fd, int client) {
    struct epoll_event e = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = 1}};
    char buf[100];
    int ep = must(epoll_create1(0)), yes = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
    nonblocking(fd, 1);
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    for (int i = 0; i < 40; i++) {
        if (client)
            send_all(fd, buf, sizeof buf);
        e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        must(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
        do {
            if (must(epoll_wait(ep, &e, 1, 10000)) == 0)
                fail("an edge was lost");
        } while (!(e.events & EPOLLIN) || recv(fd, buf, sizeof buf, 0) < 0);
        if (!client)
            send_all(fd, buf, sizeof buf);
    }
    close(ep), close(fd);
}
static void beside_room_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), status = -1;
    pid_t pid = must(fork());
    for (int i = 0; i < 500; i++)
        beside_room_end(pid == 0 ? connect_to(&at) : must(accept(l, NULL, NULL)), pid == 0);
    if (pid == 0)
        _exit(0);
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exit(fd < 0);
}
static void beside_room_client(int fd) { recv(fd, &fd, 1, 0); }

/* What one end takes back to the kernel, while a set is looked at, is told with the rest, and the rest once. */
static void moved_server(int fd) {
    static char much[18432], none[] = "true", *words[] = {none, NULL}, *variables[] = {NULL};
    struct sockaddr_in at;
    struct epoll_event e[8];
    int l = listen_somewhere(&at), near = connect_to(&at), far = must(accept4(l, NULL, NULL, SOCK_CLOEXEC));
    int ready = must(eventfd(1, EFD_CLOEXEC)), ep = set_with(ready, EPOLLIN, 100), events = 0, told = 0;
    for (int i = 0; i < 40; i++) {
        send_noise(near, i * 100, 100), recv_noise(far, i * 100, 100);
        send_noise(far, i * 100, 100), recv_noise(near, i * 100, 100);
    }
    /* With it comes the acknowledgement that Nagle's algorithm waits for. */
    send_noise(near, 0, 100), recv_noise(far, 0, 100);
    for (int i = 0; i < 2; i++) {
        struct epoll_event one = {EPOLLIN | EPOLLOUT | EPOLLET, {.u64 = i}};
        must(epoll_ctl(ep, EPOLL_CTL_ADD, i ? far : near, &one));
    }
    send_all(far, much, sizeof much);
    pid_t pid;
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, variables) != 0)
        fail("posix_spawn");
    int n = must(epoll_wait(ep, e, 8, 1000));
    for (int i = 0; i < n; i++)
        told += e[i].data.u64 == 100, events |= e[i].data.u64 == 0 ? e[i].events : 0;
    say("told %d, near %x, %d events", told, events, n);
    must(waitpid(pid, NULL, 0));
    recv_all(near, much, sizeof much);
    exit(fd < 0);
}
static void moved_client(int fd) { recv(fd, &fd, 1, 0); }

CASES(CASE(beside_room), CASE(moved), CASE(pwait2), CASE(beside), CASE(short_read), CASE(stall), CASE(stall_level), CASE(level), CASE(edge), CASE(oneshot), CASE(oneshot_taken), CASE(exclusive), CASE(out_full), CASE(rdhup), CASE(rdhup_edge),
      CASE(two_sets), CASE(nested), CASE(dup), CASE(dup_stays), CASE(fork_set))
