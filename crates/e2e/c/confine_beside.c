/* What else there is in a process that forbids itself system calls: handlers, sets, listeners and connections that come
 * afterwards, and threads that wait meanwhile. */
#include "confine.h"
#include <sys/epoll.h>
#include <sys/select.h>

/* A listener and its connections: accepts afterwards. */
static void accepts_client(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    await_peer();
    recv_noise(fd, 0, MANY);
    pid_t pid = must(fork());
    if (pid == 0) {
        int young = connect_to(&at);
        exchange(young, 30);
        exit(0);
    }
    ALLOW(SYS_read, SYS_write, SYS_accept, SYS_close, SYS_wait4);
    int young = accept(l, NULL, NULL), status = -1;
    for (int i = 0; i < 30; i++) {
        recv_noise(young, i * 777, 777);
        send_noise(young, i * 777, 777);
    }
    wait4(pid, &status, 0, NULL);
    _exit(status != 0);
}
FED(accepts)

/* Handlers are the kernel's to call, and what their flags ask for its to do; so are those that come later. */
static volatile int depth, deepest, handled;
static void counts_depth(int n) {
    handled++;
    if (++depth > deepest)
        deepest = depth;
    if (handled == 1)
        inline_call(SYS_tgkill, getpid(), inline_call(SYS_gettid, 0, 0, 0), n);
    depth--;
}
static void handle(int n, int flags) {
    struct sigaction a = {.sa_handler = counts_depth, .sa_flags = flags};
    must(sigaction(n, &a, NULL));
}
static int raised(int n) {
    handled = deepest = 0;
    inline_call(SYS_tgkill, inline_call(SYS_getpid, 0, 0, 0), inline_call(SYS_gettid, 0, 0, 0), n);
    return handled * 10 + deepest;
}
static void handlers_client(int fd) {
    struct sigaction old;
    await_peer();
    await_bytes(fd, MANY);
    handle(SIGUSR1, 0);
    handle(SIGUSR2, SA_NODEFER);
    handle(SIGWINCH, SA_RESETHAND | SA_RESTART);
    signal(SIGTERM, SIG_DFL);
    ALLOW(SYS_read, SYS_write, SYS_tgkill, SYS_gettid, SYS_getpid, SYS_rt_sigreturn, SYS_rt_sigaction);
    /* Once each time; within the first one; and never again. */
    int bad = raised(SIGUSR1) != 21 ? 1 : 0;
    bad |= raised(SIGUSR2) != 22 ? 2 : 0;
    bad |= raised(SIGWINCH) != 11 || raised(SIGWINCH) != 0 ? 4 : 0;
    recv_noise(fd, 0, MANY);
    handle(SIGUSR1, SA_NODEFER);
    bad |= raised(SIGUSR1) != 22 ? 8 : 0;
    bad |= sigaction(SIGUSR2, NULL, &old) || old.sa_handler != counts_depth || !(old.sa_flags & SA_NODEFER) ? 16 : 0;
    bad |= sigaction(SIGWINCH, NULL, &old) || old.sa_handler != SIG_DFL ? 32 : 0;
    exchange(fd, 3);
    _exit(bad);
}
FED(handlers)

/* The filter has no call for handlers but their return. */
static void once_client(int fd) {
    await_peer();
    await_bytes(fd, MANY);
    handle(SIGUSR1, SA_RESETHAND | SA_NODEFER | SA_RESTART);
    int pid = getpid(), tid = syscall(SYS_gettid);
    ALLOW(SYS_read, SYS_write, SYS_tgkill, SYS_rt_sigreturn);
    handled = 1;
    inline_call(SYS_tgkill, pid, tid, SIGUSR1);
    recv_noise(fd, 0, MANY);
    exchange(fd, 3);
    _exit(handled != 2);
}
FED(once)

/* A set of sockets or foreign descriptors alone is the kernel's, also beside what goes on with us, if there is such a thing here. */
static void mixed_client(int fd) {
    int set = must(epoll_create1(0)), other = must(epoll_create1(0)), more = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), ends[2];
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, got[4];
    must(pipe(ends));
    must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
    must(epoll_ctl(other, EPOLL_CTL_ADD, ends[0], &e));
    epoll_wait(set, got, 4, 0);
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_epoll_wait);
    int bad = epoll_wait(other, got, 4, 0) != 0 || write(ends[1], "", 1) != 1 || epoll_wait(other, got, 4, -1) != 1 ? 4 : 0;
    bad |= epoll_wait(set, got, 4, 10000) != 1 || got[0].data.u64 != 42 ? 1 : 0;
    recv_noise(fd, 0, MANY);
    send_noise(fd, 0, 10);
    bad |= epoll_wait(set, got, 4, 10000) != 1 || got[0].data.u64 != 42 ? 2 : 0;
    recv_noise(fd, 0, 10);
    inline_call(SYS_exit_group, bad, more, 0);
}
FED(mixed)

/* Sets, listeners and connections that come afterwards. */
static void later_client(int fd) {
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, got[4];
    struct sockaddr_in at, older;
    socklen_t len = sizeof at;
    int l = listen_somewhere(&older);
    await_peer();
    await_bytes(fd, MANY);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ALLOW(SYS_read, SYS_write, SYS_socket, SYS_bind, SYS_listen, SYS_getsockname, SYS_connect, SYS_accept, SYS_epoll_create1,
          SYS_epoll_ctl, SYS_epoll_wait, SYS_setsockopt, SYS_close);
    int set = epoll_create1(0), m = socket(AF_INET, SOCK_STREAM, 0), many = MANY;
    int bad = epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) || epoll_wait(set, got, 4, -1) != 1 || got[0].data.u64 != 42 ? 1 : 0;
    bad |= setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &many, sizeof many) ? 2 : 0;
    recv_noise(fd, 0, MANY);
    bad |= epoll_wait(set, got, 4, 0) != 0 ? 4 : 0;
    bad |= bind(m, (void *)&at, sizeof at) || listen(m, 4) || getsockname(m, (void *)&at, &len) ? 8 : 0;
    for (int i = 0; i < 2; i++) {
        int young = socket(AF_INET, SOCK_STREAM, 0);
        bad |= connect(young, (void *)(i ? &older : &at), sizeof at) ? 16 : 0;
        int other = accept(i ? l : m, NULL, NULL);
        e.data.u64 = 43 + i;
        bad |= epoll_ctl(set, EPOLL_CTL_ADD, other, &e) ? 32 : 0;
        send_noise(young, 0, 777);
        bad |= epoll_wait(set, got, 4, 10000) != 1 || got[0].data.u64 != 43 + (uint64_t)i ? 64 : 0;
        recv_noise(other, 0, 777);
        close(young);
        close(other);
    }
    _exit(bad);
}
FED(later)

/* A process that has had no socket before. */
static int alone(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, got[4];
    socklen_t len = sizeof at;
    handle(SIGUSR2, SA_NODEFER | SA_RESETHAND);
    ALLOW(SYS_read, SYS_write, SYS_socket, SYS_bind, SYS_listen, SYS_getsockname, SYS_connect, SYS_accept, SYS_epoll_create1,
          SYS_epoll_ctl, SYS_epoll_wait, SYS_tgkill, SYS_gettid, SYS_getpid, SYS_rt_sigreturn);
    int l = socket(AF_INET, SOCK_STREAM, 0), young = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0);
    int bad = bind(l, (void *)&at, sizeof at) || listen(l, 4) || getsockname(l, (void *)&at, &len) ? 1 : 0;
    bad |= epoll_ctl(set, EPOLL_CTL_ADD, l, &e) ? 2 : 0;
    bad |= connect(young, (void *)&at, sizeof at) || epoll_wait(set, got, 4, -1) != 1 ? 4 : 0;
    int other = accept(l, NULL, NULL);
    for (int i = 0; i < 30; i++) {
        send_noise(young, 0, 777);
        recv_noise(other, 0, 777);
    }
    handled = 1;
    inline_call(SYS_tgkill, inline_call(SYS_getpid, 0, 0, 0), inline_call(SYS_gettid, 0, 0, 0), SIGUSR2);
    return bad | (handled != 2 ? 8 : 0);
}
static void first_client(int fd) {
    await_peer();
    recv_noise(fd, 0, MANY);
    pid_t pid = must(fork());
    if (pid == 0) {
        close(fd);
        execl("/proc/self/exe", "confine_beside", "alone", (char *)0);
        _exit(1);
    }
    int status = -1;
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    exchange(fd, 20);
}
FED(first)

/* A filter for all threads (SECCOMP_FILTER_FLAG_TSYNC), while another one waits: that goes on by its own call. */
enum { MUCH = 16 << 20 };
enum way { RECV, READ, READV, RECVMSG, ALL, LOOK, SPLICE, WRITE, WRITEV, ROOM, POLL, PPOLL, SELECT, PSELECT, SET, IN_TIME, SET_IN_TIME, SELECT_IN_TIME };
static struct other {
    enum way way;
    int call, fd, set;
} other;

/* A pipe that has no room before 400 ms are over. */
static int full_pipe(void) {
    static char much[1 << 16];
    int ends[2];
    must(pipe(ends));
    must(fcntl(ends[1], F_SETPIPE_SZ, 4096));
    if (write(ends[1], much, 4096) != 4096)
        fail("write");
    if (must(fork()) == 0) {
        usleep(400000);
        inline_call(SYS_read, ends[0], (long)much, sizeof much);
        inline_call(SYS_exit_group, 0, 0, 0);
    }
    return ends[1];
}
static int waits_as(const struct other *o) {
    static char buf[64], much[MUCH];
    struct pollfd p = {o->fd, POLLIN, 0}, room = {o->fd, POLLOUT, 0};
    struct timespec t = {20, 0};
    struct timeval v = {20, 0}, soon = {0, 400000};
    struct iovec iov = {buf, sizeof buf}, all = {much, sizeof much};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    struct epoll_event e;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(o->fd, &in);
    switch (o->way) {
    case RECV: return recv(o->fd, buf, sizeof buf, 0) == 50;
    case READ: return read(o->fd, buf, sizeof buf) == 50;
    case READV: return readv(o->fd, &iov, 1) == 50;
    case RECVMSG: return recvmsg(o->fd, &m, 0) == 50;
    case ALL: return recv(o->fd, buf, 50, MSG_WAITALL) == 50;
    case LOOK: return recv(o->fd, buf, sizeof buf, MSG_PEEK) == 50;
    case SPLICE: return splice(o->fd, NULL, o->set, NULL, 50, 0)  == 50;
    case WRITE: return write(o->fd, much, sizeof much) == sizeof much;
    case WRITEV: return writev(o->fd, &all, 1) == sizeof much;
    case ROOM: return poll(&room, 1, -1) == 1 && room.revents == POLLOUT;
    case POLL: return poll(&p, 1, -1) == 1 && p.revents == POLLIN;
    case PPOLL: return ppoll(&p, 1, &t, NULL) == 1 && p.revents == POLLIN;
    /* Linux says how much of the time is left. */
    case SELECT: return select(o->fd + 1, &in, NULL, NULL, &v) == 1 && FD_ISSET(o->fd, &in) && v.tv_sec < 20 && v.tv_sec > 10;
    case PSELECT: return pselect(o->fd + 1, &in, NULL, NULL, &t, NULL) == 1 && FD_ISSET(o->fd, &in);
    case SET: return epoll_wait(o->set, &e, 1, -1) == 1 && e.data.u32 == 77;
    case IN_TIME: return poll(&p, 1, 400) == 0;
    case SET_IN_TIME: return epoll_wait(o->set, &e, 1, 400) == 0;
    case SELECT_IN_TIME: return select(o->fd + 1, &in, NULL, NULL, &soon) == 0 && !FD_ISSET(o->fd, &in);
    }
    return 0;
}
static volatile int waiter;
static void *waits(void *unused) {
    (void)unused;
    waiter = inline_call(SYS_gettid, 0, 0, 0);
    int right = waits_as(&other);
    inline_call(SYS_write, 1, (long)(right ? "right\n" : "wrong\n"), 6);
    inline_call(SYS_exit_group, !right, 0, 0);
    return NULL;
}
static void wait_beside(int fd, enum way way, int call) {
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 77};
    other = (struct other){way, call, fd, must(epoll_create1(0))};
    must(epoll_ctl(other.set, EPOLL_CTL_ADD, fd, &e));
    if (way == SPLICE)
        other.set = full_pipe();
    struct sock_fprog p = filter_of(LIST(SYS_write, SYS_futex, SYS_pause, SYS_restart_syscall, call));
    pthread_t t;
    must(pthread_create(&t, NULL, waits, NULL));
    await_sleep(&waiter);
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p));
    tell_peer();
    for (;;)
        inline_call(SYS_pause, 0, 0, 0);
}
static void late_server(int fd) {
    await_peer();
    usleep(100000);
    send_noise(fd, 0, 50);
    char c;
    say_result("after", recv(fd, &c, 1, 0));
}
#define BESIDE(name, way, call)                                                                                        \
    static void name##_server(int fd) { late_server(fd); }                                                            \
    static void name##_client(int fd) { wait_beside(fd, way, call); }
#define NEVER(name, way, call)                                                                                         \
    static void name##_server(int fd) { char c; await_peer(); say_result("after", recv(fd, &c, 1, 0)); }               \
    static void name##_client(int fd) { wait_beside(fd, way, call); }
static void reader_server(int fd) {
    static char buf[1 << 16];
    long all = 0, n;
    await_peer();
    usleep(100000);
    while ((n = read(fd, buf, sizeof buf)) > 0)
        all += n;
    say("read: %d", n == 0 && all >= 100000);
}
static void fill_it(int fd) {
    char buf[1000] = {0};
    nonblocking(fd, 1);
    while (write(fd, buf, sizeof buf) > 0) {
    }
    nonblocking(fd, 0);
}
#define WRITES(name, way, call)                                                                                        \
    static void name##_server(int fd) { reader_server(fd); }                                                          \
    static void name##_client(int fd) { wait_beside(fd, way, call); }
WRITES(beside_write, WRITE, SYS_write)
WRITES(beside_writev, WRITEV, SYS_writev)
static void beside_room_server(int fd) { reader_server(fd); }
static void beside_room_client(int fd) {
    fill_it(fd);
    wait_beside(fd, ROOM, SYS_poll);
}
BESIDE(beside_recv, RECV, SYS_recvfrom)
BESIDE(beside_read, READ, SYS_read)
BESIDE(beside_readv, READV, SYS_readv)
BESIDE(beside_recvmsg, RECVMSG, SYS_recvmsg)
BESIDE(beside_all, ALL, SYS_recvfrom)
BESIDE(beside_look, LOOK, SYS_recvfrom)
BESIDE(beside_splice, SPLICE, SYS_splice)
BESIDE(beside_poll, POLL, SYS_poll)
BESIDE(beside_ppoll, PPOLL, SYS_ppoll)
BESIDE(beside_select, SELECT, SYS_pselect6)
BESIDE(beside_pselect, PSELECT, SYS_pselect6)
BESIDE(beside_set, SET, SYS_epoll_wait)
NEVER(beside_poll_in_time, IN_TIME, SYS_poll)
NEVER(beside_set_in_time, SET_IN_TIME, SYS_epoll_wait)
NEVER(beside_select_in_time, SELECT_IN_TIME, SYS_pselect6)

int main(int argc, char **argv) {
    static const struct end_case cases[] = {
        CASE(accepts), CASE(handlers), CASE(once), CASE(later), CASE(first), CASE(mixed), CASE(beside_recv), CASE(beside_read),
        CASE(beside_readv), CASE(beside_recvmsg), CASE(beside_all), CASE(beside_look), CASE(beside_splice), CASE(beside_write),
        CASE(beside_writev), CASE(beside_room), CASE(beside_poll), CASE(beside_ppoll), CASE(beside_select), CASE(beside_pselect),
        CASE(beside_set), CASE(beside_poll_in_time), CASE(beside_set_in_time), CASE(beside_select_in_time)};
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return alone();
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
