/* Signals during calls on a connection: what they interrupt, what is begun anew, and handlers that jump out. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "signals.h"
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>

/* A thread that interrupts the main one until told to stop. */
static pthread_t main_thread;
static volatile int stop_poking, tell_after; /* so many signals were handled: then the peer is told */
static void *poke(void *arg) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!stop_poking) {
        usleep(20000);
        pthread_kill(main_thread, *(int *)arg);
        if (tell_after && signals >= tell_after)
            tell_after = 0, tell_peer();
    }
    return NULL;
}

static pthread_t begin_poking(int *n) {
    pthread_t t;
    main_thread = pthread_self();
    stop_poking = 0;
    assert(pthread_create(&t, NULL, poke, n) == 0);
    return t;
}

static void end_poking(pthread_t t) {
    stop_poking = 1;
    pthread_join(t, NULL);
}

/* Without SA_RESTART each wait ends with EINTR. */
static void eintr_server(int fd) {
    char buf[100];
    int usr = SIGUSR1;
    struct pollfd p = {fd, POLLIN, 0};
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    handle(SIGUSR1, count, 0);
    pthread_t t = begin_poking(&usr);
    say_result("read", read(fd, buf, 100));
    say_result("recvmsg", recvmsg(fd, &(struct msghdr){.msg_iov = &(struct iovec){buf, 9}, .msg_iovlen = 1}, 0));
    say_result("poll", poll(&p, 1, 5000));
    say_result("epoll_wait", epoll_wait(ep, &e, 1, 5000));
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    say_result("select", select(fd + 1, &in, NULL, NULL, NULL));
    say_result("recv, all", recv(fd, buf, 100, MSG_WAITALL));
    end_poking(t);
    say("handled: %d", signals >= 6);
    together();
    say_result("data", read(fd, buf, 100));
    tell_peer();
}
static void eintr_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
}

/* With it a read goes on; poll and its kind do not. */
static void restart_server(int fd) {
    char buf[100];
    int usr = SIGUSR1;
    struct pollfd p = {fd, POLLIN, 0};
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    handle(SIGUSR1, count, SA_RESTART);
    pthread_t t = begin_poking(&usr);
    say_result("poll", poll(&p, 1, 5000));
    say_result("epoll_wait", epoll_wait(ep, &e, 1, 5000));
    tell_after = signals + 3;
    say_result("read", read(fd, buf, 100));
    end_poking(t);
    check(buf, 0, 100);
    struct timeval limit = {20, 0};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    t = begin_poking(&usr);
    say_result("with a time limit it is not restarted", read(fd, buf, 100));
    end_poking(t);
    await_peer();
    tell_peer();
}
static void restart_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    together();
}

/* siginterrupt turns restarting off and on; signal() has it on. */
static void interrupt_server(int fd) {
    char buf[100];
    int usr = SIGUSR1;
    signal(SIGUSR1, count);
    siginterrupt(SIGUSR1, 1);
    pthread_t t = begin_poking(&usr);
    say_result("read", read(fd, buf, 100));
    end_poking(t);
    siginterrupt(SIGUSR1, 0);
    tell_after = signals + 3;
    t = begin_poking(&usr);
    say_result("read", read(fd, buf, 100));
    end_poking(t);
}
static void interrupt_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
}

/* A large write that is interrupted has a partial count; the stream stays whole. */
static void partial_server(int fd) {
    say("received all: %d", recv_noise_to_end(fd, 0) == 24u << 20);
    tell_peer();
}
static void partial_client(int fd) {
    static char buf[1 << 20];
    int usr = SIGUSR1;
    handle(SIGUSR1, count, 0);
    pthread_t t = begin_poking(&usr);
    for (uint64_t at = 0; at < 24u << 20;) {
        size_t k = (24u << 20) - at < sizeof buf ? (24u << 20) - at : sizeof buf;
        fill(buf, at, k);
        ssize_t n = write(fd, buf, k);
        if (n < 0 && errno == EINTR)
            continue;
        at += must(n);
    }
    end_poking(t);
    shutdown(fd, SHUT_WR);
    await_peer();
}

/* A call that sends and has sent a part is not restarted, but says how much went. */
enum { PIECE = 8 << 20, INTO_A_PIPE = 1 << 20 };
static char *piece_at(uint64_t at) {
    static char buf[PIECE];
    fill(buf, at, PIECE);
    return buf;
}
static int file_at(uint64_t at) {
    int file = must(memfd_create("piece", MFD_CLOEXEC));
    assert(write(file, piece_at(at), PIECE) == PIECE);
    return file;
}
static ssize_t by_write(int fd, uint64_t at) { return write(fd, piece_at(at), PIECE); }
static ssize_t by_send(int fd, uint64_t at) { return send(fd, piece_at(at), PIECE, 0); }
static ssize_t by_sendto(int fd, uint64_t at) { return sendto(fd, piece_at(at), PIECE, MSG_NOSIGNAL, NULL, 0); }
static ssize_t by_writev(int fd, uint64_t at) {
    char *b = piece_at(at);
    struct iovec v[3] = {{b, 1000}, {b + 1000, PIECE / 2}, {b + 1000 + PIECE / 2, PIECE / 2 - 1000}};
    return writev(fd, v, 3);
}
static ssize_t by_sendmsg(int fd, uint64_t at) {
    char *b = piece_at(at);
    struct iovec v[2] = {{b, PIECE / 2}, {b + PIECE / 2, PIECE / 2}};
    return sendmsg(fd, &(struct msghdr){.msg_iov = v, .msg_iovlen = 2}, 0);
}
static ssize_t by_sendmmsg(int fd, uint64_t at) {
    enum { MESSAGES = 512, EACH = PIECE / MESSAGES };
    struct iovec v[MESSAGES];
    struct mmsghdr m[MESSAGES];
    char *b = piece_at(at);
    for (int i = 0; i < MESSAGES; i++) {
        v[i] = (struct iovec){b + i * EACH, EACH};
        m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = v + i, .msg_iovlen = 1}};
    }
    int n = sendmmsg(fd, m, MESSAGES, 0);
    say("some messages: %d", n > 0 && n < MESSAGES);
    ssize_t sent = n;
    if (n >= 0)
        sent = 0;
    for (int i = 0; i < n; i++)
        sent += m[i].msg_len;
    return sent;
}
static ssize_t by_sendfile(int fd, uint64_t at) {
    int file = file_at(at);
    off_t from = 0;
    ssize_t n = sendfile(fd, file, &from, PIECE);
    say("the file's place: %d", n >= 0 && from == n);
    close(file);
    return n;
}
static ssize_t by_splice(int fd, uint64_t at) {
    int p[2];
    must(pipe(p));
    must(fcntl(p[1], F_SETPIPE_SZ, INTO_A_PIPE));
    assert(write(p[1], piece_at(at), INTO_A_PIPE) == INTO_A_PIPE);
    ssize_t n = splice(p[0], NULL, fd, NULL, PIECE, 0);
    close(p[0]), close(p[1]);
    return n;
}
static const struct sending {
    const char *name;
    ssize_t (*send)(int fd, uint64_t at);
} sendings[] = {{"write", by_write},       {"send", by_send},         {"sendto", by_sendto},     {"writev", by_writev},
                {"sendmsg", by_sendmsg},   {"sendmmsg", by_sendmmsg}, {"sendfile", by_sendfile}, {"splice", by_splice}};
/* Signals come so many milliseconds apart: a blocked sender is in the ring, or gone on by the kernel. */
static const int patience[] = {40, 400};
enum { SENDINGS = sizeof sendings / sizeof *sendings };

static void small_buffers(int fd) {
    int small = 16384;
    must(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    must(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
}
static void partial_restart_server(int fd) {
    uint64_t at = 0, to;
    small_buffers(fd);
    together();
    for (int i = 0; i < 2 * SENDINGS; i++) {
        await_peer();
        assert(read(from_peer, &to, sizeof to) == sizeof to);
        recv_noise(fd, at, to - at);
        at = to;
        tell_peer();
    }
}
/* Again and again: one that comes before anything was sent ends nothing. */
static void *poke_late(void *ms) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!stop_poking) {
        usleep(*(const int *)ms * 1000);
        pthread_kill(main_thread, SIGUSR1);
    }
    return NULL;
}
static void partial_restart_client(int fd) {
    uint64_t at = 0;
    small_buffers(fd);
    together();
    handle(SIGUSR1, count, SA_RESTART);
    main_thread = pthread_self();
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SENDINGS; i++) {
            pthread_t t;
            stop_poking = 0;
            assert(pthread_create(&t, NULL, poke_late, (void *)&patience[k]) == 0);
            ssize_t n = sendings[i].send(fd, at);
            end_poking(t);
            if (n < 0)
                say_result(sendings[i].name, n);
            else
                say("%s sent a part: %d", sendings[i].name, n > 0 && n < PIECE);
            at += n > 0 ? n : 0;
            tell_peer();
            must(write(to_peer, &at, sizeof at));
            await_peer();
        }
    say("handled: %d", signals >= 2 * SENDINGS);
}

/* siglongjmp out of a blocked call; the connection goes on. */
static sigjmp_buf away;
static void jump(int n) {
    (void)n;
    siglongjmp(away, 1);
}
static void jump_server(int fd) {
    static volatile int jumps;
    struct itimerval soon = {.it_value = {0, 15000}}, never = {0};
    static struct pollfd p;
    static struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    static int ep;
    ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    p = (struct pollfd){fd, POLLIN, 0};
    handle(SIGALRM, jump, 0);
    for (jumps = 0; jumps < 12;) {
        char buf[10];
        if (sigsetjmp(away, 1) == 0) {
            must(setitimer(ITIMER_REAL, &soon, NULL));
            switch (jumps % 3) {
            case 0: read(fd, buf, 10); break;
            case 1: poll(&p, 1, -1); break;
            case 2: epoll_wait(ep, &e, 1, -1); break;
            }
            say("came back without a jump");
        } else
            jumps++;
    }
    must(setitimer(ITIMER_REAL, &never, NULL));
    say("jumps %d", jumps);
    together();
    say("epoll %d", epoll_wait(ep, &e, 1, 5000));
    for (int i = 0; i < 50; i++) {
        recv_noise(fd, i * 1000, 1000);
        send_noise(fd, i * 1000, 1000);
    }
    tell_peer();
}
static void jump_client(int fd) {
    await_peer();
    tell_peer();
    for (int i = 0; i < 50; i++) {
        send_noise(fd, i * 1000, 1000);
        recv_noise(fd, i * 1000, 1000);
    }
    await_peer();
}

/* A close after a jump out of a blocked call, from a frame as deep as the call's was: the peer sees the end. */
__attribute__((noinline)) static void deep(int depth, void (*work)(int), int fd) {
    volatile char room[512];
    room[0] = depth;
    if (depth)
        deep(depth - 1, work, fd);
    else
        work(fd);
    room[1] = room[0];
}
static void read_one(int fd) {
    char c;
    read(fd, &c, 1);
}
static void close_it(int fd) { must(close(fd)); }
static void jump_close_server(int fd) {
    struct itimerval soon = {.it_value = {0, 30000}};
    handle(SIGALRM, jump, 0);
    if (sigsetjmp(away, 1) == 0) {
        must(setitimer(ITIMER_REAL, &soon, NULL));
        deep(1, read_one, fd);
        say("came back without a jump");
    }
    int other = must(dup(fd));
    close(other);
    deep(5, close_it, fd);
    tell_peer();
    await_peer();
    must(open("/dev/null", O_RDONLY));
}
static void jump_close_client(int fd) {
    char c;
    await_peer();
    wait_for(fd, POLLIN);
    say_result("end", read(fd, &c, 1));
    tell_peer();
}

/* A jump inside the handler, while the call below it goes on waiting, and a close by that handler's end. */
static void jump_within(int n) {
    static sigjmp_buf here;
    (void)n;
    if (sigsetjmp(here, 1) == 0)
        siglongjmp(here, 1);
}
static void jump_inside_server(int fd) {
    char buf[10];
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {0};
    handle(SIGALRM, jump_within, SA_RESTART);
    must(setitimer(ITIMER_REAL, &often, NULL));
    tell_peer();
    recv_noise(fd, 0, 10);
    must(setitimer(ITIMER_REAL, &never, NULL));
    send_noise(fd, 0, 10);
    say_result("end", read(fd, buf, 10));
}
static void jump_inside_client(int fd) {
    await_peer();
    usleep(50000);
    send_noise(fd, 0, 10);
    recv_noise(fd, 0, 10);
}

/* A jump out of a handler that struck anywhere inside a busy loop of calls. What a jump cut short may be lost to the program,
 * never to the connection: each message is self-describing. */
static void jump_busy_server(int fd) {
    char buf[64];
    for (;;) {
        recv_all(fd, buf, 64);
        send_all(fd, buf, 64);
        if (buf[0] == 'q')
            return;
    }
}
static void jump_busy_client(int fd) {
    static volatile uint64_t sent, received;
    static volatile int jumps;
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
    static char buf[64];
    handle(SIGALRM, jump, 0);
    must(setitimer(ITIMER_REAL, &often, NULL));
    uint64_t end = now() + 400 * MS, latest = end + 20000 * MS;
    /* A busy machine may give it less than its time for so many. */
    while (now() < end || (jumps <= 10 && now() < latest)) {
        if (sigsetjmp(away, 1))
            jumps++;
        /* Non-blocking, so that a jump that swallowed a count costs no hang. */
        char m[64] = "m";
        if (sent < received + 100000 && send(fd, m, 64, MSG_DONTWAIT) == 64)
            sent += 64;
        ssize_t n = recv(fd, buf, 64, MSG_DONTWAIT);
        if (n > 0)
            received += n;
    }
    must(setitimer(ITIMER_REAL, &never, NULL));
    say("jumped: %d", jumps > 10);
    /* The stream must still work: whole messages were sent or none. */
    memset(buf, 0, 64);
    nonblocking(fd, 0);
    buf[0] = 'q';
    send_all(fd, buf, 64);
    for (uint64_t stop = now() + 5000 * MS; now() < stop;) {
        if (recv(fd, buf, 1, MSG_WAITALL) != 1)
            break;
        if (buf[0] == 'q') {
            say("alive");
            return;
        }
    }
    say("not alive");
}

/* A call that waits, and that a handler with SA_RESTART has begin anew: on what its number stands for by then. */
enum { CRUMB = 40 };
static char crumbs[CRUMB];
static struct iovec in_two[2] = {{crumbs, CRUMB / 2}, {crumbs + CRUMB / 2, CRUMB / 2}};
static struct msghdr as_message = {.msg_iov = in_two, .msg_iovlen = 2};
static ssize_t anew_read(int fd) { return read(fd, crumbs, CRUMB); }
static ssize_t anew_readv(int fd) { return readv(fd, in_two, 2); }
static ssize_t anew_preadv2(int fd) { return preadv2(fd, in_two, 2, -1, 0); }
static ssize_t anew_recv(int fd) { return recv(fd, crumbs, CRUMB, 0); }
static ssize_t anew_recvfrom(int fd) { return recvfrom(fd, crumbs, CRUMB, 0, NULL, NULL); }
static ssize_t anew_recvmsg(int fd) { return recvmsg(fd, &as_message, 0); }
static ssize_t anew_recvmmsg(int fd) {
    struct mmsghdr m = {.msg_hdr = as_message};
    int n = recvmmsg(fd, &m, 1, 0, NULL);
    return n == 1 ? (int)m.msg_len : n;
}
static ssize_t anew_out_of(int fd) {
    int p[2];
    must(pipe(p));
    ssize_t n = splice(fd, NULL, p[1], NULL, CRUMB, 0);
    int e = errno;
    close(p[0]), close(p[1]);
    errno = e;
    return n;
}
static ssize_t anew_write(int fd) { return write(fd, crumbs, CRUMB); }
static ssize_t anew_writev(int fd) { return writev(fd, in_two, 2); }
static ssize_t anew_pwritev2(int fd) { return pwritev2(fd, in_two, 2, -1, 0); }
static ssize_t anew_send(int fd) { return send(fd, crumbs, CRUMB, 0); }
static ssize_t anew_sendto(int fd) { return sendto(fd, crumbs, CRUMB, 0, NULL, 0); }
static ssize_t anew_sendmsg(int fd) { return sendmsg(fd, &as_message, 0); }
static ssize_t anew_sendmmsg(int fd) {
    struct mmsghdr m = {.msg_hdr = as_message};
    int n = sendmmsg(fd, &m, 1, 0);
    return n == 1 ? (int)m.msg_len : n;
}
static ssize_t anew_sendfile(int fd) {
    off_t from = 0;
    int file = must(memfd_create("file", 0));
    assert(write(file, crumbs, CRUMB) == CRUMB);
    ssize_t n = sendfile(fd, file, &from, CRUMB);
    int e = errno;
    close(file);
    errno = e;
    return n;
}
static ssize_t anew_into(int fd) {
    int p[2];
    must(pipe(p));
    assert(write(p[1], crumbs, CRUMB) == CRUMB);
    ssize_t n = splice(p[0], NULL, fd, NULL, CRUMB, 0);
    int e = errno;
    close(p[0]), close(p[1]);
    errno = e;
    return n;
}
static const struct anew {
    const char *name;
    int sends;
    ssize_t (*call)(int fd);
} anews[] = {{"read", 0, anew_read},         {"readv", 0, anew_readv},         {"preadv2", 0, anew_preadv2},
             {"recv", 0, anew_recv},         {"recvfrom", 0, anew_recvfrom},   {"recvmsg", 0, anew_recvmsg},
             {"recvmmsg", 0, anew_recvmmsg}, {"splice out", 0, anew_out_of},   {"write", 1, anew_write},
             {"writev", 1, anew_writev},     {"pwritev2", 1, anew_pwritev2},   {"send", 1, anew_send},
             {"sendto", 1, anew_sendto},     {"sendmsg", 1, anew_sendmsg},     {"sendmmsg", 1, anew_sendmmsg},
             {"sendfile", 1, anew_sendfile}, {"splice into", 1, anew_into}};
static struct {
    const struct anew *call;
    int fd;
    ssize_t result;
    int error;
    volatile int thread, returned, apart_from;
} waiting;
static void *wait_anew(void *arg) {
    cpu_set_t cpus;
    (void)arg;
    /* Where there is another CPU than the other end's, it pays to look for what that does. */
    must(sched_getaffinity(0, sizeof cpus, &cpus));
    if (CPU_COUNT(&cpus) > 1)
        CPU_CLR(waiting.apart_from, &cpus), must(sched_setaffinity(0, sizeof cpus, &cpus));
    waiting.thread = gettid();
    waiting.result = waiting.call->call(waiting.fd);
    waiting.error = errno;
    waiting.returned = 1;
    return NULL;
}
/* What becomes of the number meanwhile, or of the connection. */
static int in_message;
static const char *const becomes[] = {"closed", "closed, and known by another number", "another connection", "a pipe", "non-blocking",
                                      "closed, and full for long", "closed, and under way in a message of a child",
                                      "given a time limit, and so"};
enum { FULL_FOR_LONG = 5, IN_MESSAGE, LIMITED };
/* The call waits on for what the kernel has then. The message is never taken. */
static void close_behind_a_message(int fd) {
    int pair[2], go[2];
    char c;
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    must(pipe(go));
    int child = must(fork());
    if (child == 0) {
        assert(read(go[0], &c, 1) == 1);
        pass_descriptor(pair[0], fd);
        _exit(0);
    }
    must(close(fd));
    assert(write(go[1], "", 1) == 1);
    must(waitpid(child, NULL, 0));
    usleep(20000);
    close(pair[0]), close(go[0]), close(go[1]);
    in_message = pair[1];
}
static void fill_to_the_last_crumb(int fd, int patience) {
    char piece[8192] = {0};
    nonblocking(fd, 1);
    for (size_t n = sizeof piece; n >= CRUMB; n = n > CRUMB && n < 8 * CRUMB ? CRUMB : n / 8)
        do
            while (write(fd, piece, n) > 0)
                ;
        while (poll(&(struct pollfd){fd, POLLOUT, 0}, 1, patience) > 0);
    nonblocking(fd, 0);
}
/* Until the thread sleeps in its call, or has returned. Some calls open descriptors before they wait, which would get the number. */
static void await_anew(void) {
    for (uint64_t stop = now() + 20000 * MS; !waiting.returned && (!waiting.thread || state_of(waiting.thread) != 'S'); usleep(1000))
        if (now() > stop)
            fail("it does not sleep");
}
/* Until the other end is gone. */
static void *send_much(void *fd) {
    static char much[4 << 20];
    send(*(int *)fd, much, sizeof much, MSG_NOSIGNAL);
    return NULL;
}
/* False: there was room after all, since full means full for a while. */
static int begins_anew(const struct anew *call, int what, int patience, const struct sockaddr_in *at, int l) {
    int a, b, c, d, p[2], copy = -1, waited;
    pthread_t t, beside = 0;
    warm_pair(at, l, &a, &b), warm_pair(at, l, &c, &d);
    must(pipe(p));
    if (call->sends)
        small_buffers(a), small_buffers(b);
    /* Another call fills it, and the kernel after a while. */
    if (what == FULL_FOR_LONG)
        beside = start_sleeper(send_much, &a);
    else if (call->sends)
        fill_to_the_last_crumb(a, patience);
    else
        send_noise(d, 0, 30), assert(write(p[1], crumbs, 7) == 7);
    if (!call->sends)
        assert(recv(b, crumbs, CRUMB, MSG_DONTWAIT) == -1);
    waiting.apart_from = sched_getcpu();
    waiting.call = call, waiting.fd = a, waiting.thread = waiting.returned = 0;
    assert(pthread_create(&t, NULL, wait_anew, NULL) == 0);
    await_anew();
    if (what == 1)
        copy = must(dup(a));
    switch (what) {
    case 0: case 1: must(close(a)); break;
    case 2: must(dup2(c, a)); break;
    case 3: must(dup2(p[!!call->sends], a)); break;
    case 4: nonblocking(a, 1); break;
    case FULL_FOR_LONG: must(close(a)), usleep(300000); break;
    case LIMITED: must(setsockopt(a, SOL_SOCKET, call->sends ? SO_SNDTIMEO : SO_RCVTIMEO, &(struct timeval){50, 0}, sizeof(struct timeval)));
    }
    if (what >= IN_MESSAGE)
        close_behind_a_message(a);
    /* It does not look again and again. */
    if (what >= FULL_FOR_LONG)
        await_anew();
    /* What it is by now makes no difference to a call that nothing has begin anew. */
    usleep(2000);
    waited = !waiting.returned;
    for (int left = 2000; left > 0 && !waiting.returned; left--) {
        pthread_kill(t, SIGUSR1);
        usleep(2000);
    }
    if (!waiting.returned)
        fail("it waits on");
    pthread_join(t, NULL);
    if (what >= IN_MESSAGE)
        close(in_message);
    else if (what >= 2 && what != FULL_FOR_LONG)
        close(a);
    if (copy >= 0)
        close(copy);
    close(b), close(c), close(d), close(p[0]), close(p[1]);
    if (what == FULL_FOR_LONG)
        pthread_join(beside, NULL);
    /* What there is room for goes before the number is asked for again; only another connection or a pipe has some of its own. */
    return waited && !((what < 2 || what >= 4) && call->sends && waiting.result > 0);
}
static void begin_anew(int first, int end) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    handle(SIGUSR1, count, SA_RESTART);
    for (int what = first; what < end; what++) {
        say("%s", becomes[what]);
        for (size_t i = 0; i < sizeof anews / sizeof *anews; i++) {
            /* A writer who is full goes on by the kernel after a while; on a busy machine that comes first. */
            int tries = 0;
            int is_first = anews[i].call == anew_write || anews[i].call == anew_sendmmsg;
            /* What these await takes its time: of sends two will do. */
            if (what >= FULL_FOR_LONG && anews[i].sends ? !is_first : what == FULL_FOR_LONG)
                continue;
            while (!begins_anew(&anews[i], what, what == FULL_FOR_LONG || tries < 3 ? 5 : 300, &at, l))
                assert(++tries < 50);
            errno = waiting.error;
            say_result(anews[i].name, waiting.result);
        }
    }
}
static void anew_server(int fd) { begin_anew(0, FULL_FOR_LONG), send_noise(fd, 0, 100); }
static void anew_client(int fd) { recv_noise(fd, 0, 100); }

/* The same, where the connection goes on by the kernel. */
static void anew_by_kernel_server(int fd) { begin_anew(FULL_FOR_LONG, LIMITED + 1), send_noise(fd, 0, 100); }
static void anew_by_kernel_client(int fd) { recv_noise(fd, 0, 100); }

CASES(CASE(eintr), CASE(restart), CASE(interrupt), CASE(partial), CASE(partial_restart), CASE(jump), CASE(jump_close),
      CASE(jump_inside), CASE(jump_busy), CASE(anew), CASE(anew_by_kernel))
