/* Processes that forbid themselves system calls: each of their calls on a connection makes its own and no other, and what was
 * on its way arrives. */
#include "confine.h"
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>

/* Strict mode: read, write and the raw exit. */
static void strict_client(int fd) {
    await_peer();
    await_bytes(fd, MANY);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    recv_noise(fd, 0, MANY);
    exchange(fd, 20);
    syscall(SYS_exit, 0);
}
FED(strict)

static void filter_client(int fd) {
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_close);
    recv_noise(fd, 0, MANY);
    exchange(fd, 20);
    must(close(fd));
    exit(0);
}
FED(filter)

/* By syscall(2), and with an attempt before that only asks. */
static void by_number_client(int fd) {
    struct sock_fprog p = filter_of(LIST(SYS_read, SYS_write));
    say_result("asks", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
    say_result("asks", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
    exchange(fd, 2);
    await_peer();
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p));
    recv_noise(fd, 0, MANY);
    exchange(fd, 20);
    _exit(0);
}
static void by_number_server(int fd) {
    for (int i = 0; i < 2; i++) {
        recv_noise(fd, i * 777, 777);
        send_noise(fd, i * 777, 777);
    }
    feed(fd);
}

/* Each way to receive finds the same bytes. */
static void receives_client(int fd) {
    char a[10], b[20];
    struct iovec v[2] = {{a, 10}, {b, 20}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_recvfrom, SYS_readv, SYS_recvmsg, SYS_sendto, SYS_writev, SYS_sendmsg, SYS_ioctl);
    int n = 0, bad = 0;
    bad |= ioctl(fd, FIONREAD, &n) || n != MANY;
    bad |= recv(fd, a, 10, MSG_PEEK) != 10, check(a, 0, 10);
    bad |= recv(fd, a, 10, 0) != 10, check(a, 0, 10);
    bad |= readv(fd, v, 2) != 30, check(a, 10, 10), check(b, 20, 20);
    bad |= recvmsg(fd, &m, 0) != 30, check(a, 40, 10), check(b, 50, 20);
    bad |= recv(fd, NULL, 30, MSG_TRUNC) != 30;
    recv_noise(fd, 100, MANY - 100);
    fill(a, 0, 10), fill(b, 10, 20);
    bad |= send(fd, a, 10, 0) != 10 || write(fd, b, 20) != 20;
    recv_noise(fd, 0, 30);
    bad |= writev(fd, v, 2) != 30, recv_noise(fd, 0, 30);
    m.msg_controllen = 0;
    bad |= sendmsg(fd, &m, 0) != 30, recv_noise(fd, 0, 30);
    exchange(fd, 3);
    _exit(bad);
}
FED(receives)

/* What sendfile(2) does not move, as it may refuse to of any descriptor, the caller copies. */
static void sends_client(int fd) {
    static char buf[MANY];
    int p[2], at = 0;
    must(pipe(p));
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_sendfile);
    while (at < MANY) {
        ssize_t n = at % 2 ? syscall(SYS_sendfile, p[1], fd, NULL, 999) : sendfile(p[1], fd, NULL, 999);
        if (n < 0 && errno == EINVAL) {
            n = must(read(fd, buf, 999));
            send_all(p[1], buf, n);
        }
        at += must(n);
    }
    recv_all(p[0], buf, MANY);
    check(buf, 0, MANY);
    exchange(fd, 3);
    _exit(0);
}
FED(sends)

/* More than there was: a call that waits for all, and one that must not wait. */
static void across_client(int fd) {
    static char buf[MANY + 1000];
    await_peer();
    await_bytes(fd, MANY);
    nonblocking(fd, 1);
    ALLOW(SYS_read, SYS_write, SYS_recvfrom, SYS_fcntl, SYS_poll);
    int bad = read(fd, buf, sizeof buf) != MANY;
    check(buf, 0, MANY);
    bad |= read(fd, buf, 1) != -1 || errno != EAGAIN;
    bad |= fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0;
    exchange(fd, 2);
    _exit(bad);
}
FED(across)

static void waitall_client(int fd) {
    static char buf[MANY + 777];
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_write, SYS_recvfrom, SYS_read);
    send_noise(fd, MANY, 777);
    int bad = recv(fd, buf, sizeof buf, MSG_WAITALL) != sizeof buf;
    check(buf, 0, sizeof buf);
    _exit(bad);
}
FED(waitall)

/* What is left is ready, and waits end when something comes. */
static void polls_client(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_poll);
    int bad = poll(&p, 1, -1) != 1 || p.revents != (POLLIN | POLLOUT);
    recv_noise(fd, 0, MANY);
    bad |= poll(&p, 1, 0) != 1 || p.revents != POLLOUT;
    p.events = POLLIN;
    bad |= poll(&p, 1, 0) != 0;
    send_noise(fd, 0, 10);
    bad |= poll(&p, 1, 10000) != 1 || p.revents != POLLIN;
    recv_noise(fd, 0, 10);
    _exit(bad);
}
FED(polls)

static void selects_client(int fd) {
    fd_set r;
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_pselect6, SYS_select);
    FD_ZERO(&r);
    FD_SET(fd, &r);
    int bad = select(fd + 1, &r, NULL, NULL, NULL) != 1 || !FD_ISSET(fd, &r);
    recv_noise(fd, 0, MANY);
    struct timeval none = {0, 0};
    bad |= select(fd + 1, &r, NULL, NULL, &none) != 0 || FD_ISSET(fd, &r);
    send_noise(fd, 0, 10);
    FD_SET(fd, &r);
    bad |= select(fd + 1, &r, NULL, NULL, NULL) != 1;
    recv_noise(fd, 0, 10);
    _exit(bad);
}
FED(selects)

/* A set gives the program its own data, and what it asks for later counts too. */
static void sets_client(int fd) {
    int ep = must(epoll_create1(0)), edges = must(epoll_create1(0)), none = must(epoll_create1(0));
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, edge = {EPOLLIN | EPOLLET, {.u64 = 43}}, out = {EPOLLOUT, {.u64 = 44}}, got[4];
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    must(epoll_ctl(edges, EPOLL_CTL_ADD, fd, &edge));
    must(epoll_ctl(none, EPOLL_CTL_ADD, fd, &e));
    must(epoll_ctl(none, EPOLL_CTL_DEL, fd, NULL));
    for (int i = 0; i < 3; i++) {
        /* The sets are in use when the process confines itself. */
        epoll_wait(ep, got, 4, 0), epoll_wait(none, got, 4, 0);
    }
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_epoll_wait, SYS_epoll_ctl);
    int bad = 0;
    bad |= epoll_wait(ep, got, 4, -1) != 1 || got[0].data.u64 != 42 || got[0].events != EPOLLIN ? 1 : 0;
    bad |= epoll_wait(edges, got, 4, -1) != 1 || got[0].data.u64 != 43 ? 2 : 0;
    bad |= epoll_wait(none, got, 4, 0) != 0 ? 4 : 0;
    bad |= epoll_ctl(none, EPOLL_CTL_ADD, fd, &e) || epoll_wait(none, got, 4, 0) != 1 ? 8 : 0;
    bad |= epoll_ctl(none, EPOLL_CTL_MOD, fd, &out) || epoll_wait(none, got, 4, 0) != 1 || got[0].events != EPOLLOUT ? 16 : 0;
    recv_noise(fd, 0, MANY);
    bad |= epoll_wait(ep, got, 4, 0) != 0 ? 32 : 0;
    send_noise(fd, 0, 10);
    bad |= epoll_wait(ep, got, 4, 10000) != 1 || got[0].data.u64 != 42 ? 64 : 0;
    bad |= epoll_wait(edges, got, 4, 10000) != 1 || got[0].data.u64 != 43 ? 128 : 0;
    recv_noise(fd, 0, 10);
    _exit(bad);
}
FED(sets)

/* A child that shares the connection confines itself, and uses it; then its parent goes on. */
static void shared_client(int fd) {
    await_peer();
    pid_t pid = must(fork());
    if (pid == 0) {
        ALLOW(SYS_read, SYS_write);
        recv_noise(fd, 0, MANY);
        exchange(fd, 20);
        _exit(0);
    }
    int status = -1;
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    exchange(fd, 20);
}
FED(shared)

/* A child that has nothing to do with it: all is there for the parent. */
static void bystander_client(int fd) {
    int ends[2];
    char c;
    must(pipe(ends));
    await_peer();
    await_bytes(fd, MANY);
    pid_t pid = must(fork());
    if (pid == 0) {
        ALLOW(SYS_write);
        write(ends[1], "", 1);
        _exit(0);
    }
    must(read(ends[0], &c, 1));
    int status = -1;
    must(waitpid(pid, &status, 0));
    say("child: %x", status);
    recv_noise(fd, 0, MANY);
    exchange(fd, 20);
}
FED(bystander)

/* Descriptors of the connection that come and go afterwards; fork; the end by exit(3). */
static void descriptors_client(int fd) {
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_dup, SYS_dup2, SYS_close, SYS_clone, SYS_wait4, SYS_fcntl, SYS_set_robust_list, SYS_gettid,
          SYS_rseq);
    int other = dup(fd), third = dup2(fd, 90), status = -1;
    close(fd);
    recv_noise(other, 0, 1000);
    recv_noise(third, 1000, MANY - 1000);
    close(other);
    exchange(third, 2);
    if (fork() == 0) {
        exchange(third, 2);
        _exit(0);
    }
    wait4(-1, &status, 0, NULL);
    exchange(third, 2);
    _exit(status != 0);
}
FED(descriptors)

/* The peer sends without pause while the process confines itself, in both directions at once. */
static void busy_client(int fd) {
    await_peer();
    recv_noise(fd, 0, 100000);
    ALLOW(SYS_read, SYS_write);
    recv_noise(fd, 100000, 3000000);
    send_noise(fd, 0, 1000);
    _exit(0);
}
static void busy_server(int fd) {
    tell_peer();
    send_noise(fd, 0, 3100000);
    recv_noise(fd, 0, 1000);
    char c;
    say_result("end", read(fd, &c, 1));
}

/* The peer has closed already: all of it comes, then the end. */
static void closed_client(int fd) {
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write);
    _exit(recv_noise_to_end(fd, 0) != MANY);
}
static void closed_server(int fd) {
    send_noise(fd, 0, MANY);
    shutdown(fd, SHUT_WR);
    tell_peer();
    char c;
    say_result("end", read(fd, &c, 1));
}

/* Unseen by the library: read stays read and write stays write, also of a connection that it looks after. */
static void unseen_client(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), ends[2];
    char c = 0;
    must(pipe(ends));
    await_peer();
    pid_t pid = must(fork());
    if (pid == 0) {
        int young = connect_to(&at);
        struct sock_fprog p = filter_of(LIST(SYS_read, SYS_write));
        must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        inline_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&p);
        int bad = write(young, "a", 1) != 1 || read(young, &c, 1) != 1 || c != 'b';
        bad |= write(ends[1], "c", 1) != 1 || read(ends[0], &c, 1) != 1 || c != 'c';
        inline_call(SYS_exit_group, bad, 0, 0);
    }
    int young = must(accept(l, NULL, NULL)), status = -1;
    must(read(young, &c, 1));
    must(write(young, "b", 1));
    must(waitpid(pid, &status, 0));
    say("child: %x, %c", status, c);
    recv_noise(fd, 0, MANY);
}
FED(unseen)

/* The messages of one call: of what is left, and of what comes by the kernel behind it. */
static int lengths(int fd, struct mmsghdr *m, int n, int flags, const int *wanted, uint64_t *at) {
    static char room[4][MANY];
    static struct iovec v[4];
    for (int i = 0; i < n; i++) {
        v[i] = (struct iovec){room[i], m[i].msg_len};
        m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
    }
    int got = recvmmsg(fd, m, n, flags, NULL), bad = 0;
    for (int i = 0; wanted[i]; i++)
        bad |= i >= got || (int)m[i].msg_len != wanted[i];
    for (int i = 0; i < got; i++) {
        check(room[i], *at, m[i].msg_len);
        if (!(flags & MSG_PEEK))
            *at += m[i].msg_len;
    }
    return bad || (got >= 0 && wanted[got]);
}
#define WANTED(...) ((const int[]){__VA_ARGS__, 0})
static void messages_client(int fd) {
    uint64_t at = 0;
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_recvmmsg);
    struct mmsghdr two[2] = {{.msg_len = 100}, {.msg_len = 50}}, one[1] = {{.msg_len = 500}};
    int bad = lengths(fd, two, 2, 0, WANTED(100, 50), &at) ? 1 : 0;
    two[0].msg_len = 100, two[1].msg_len = 50;
    bad |= lengths(fd, two, 2, MSG_DONTWAIT, WANTED(100, 50), &at) ? 2 : 0;
    one[0].msg_len = 500;
    bad |= lengths(fd, one, 1, MSG_WAITFORONE, WANTED(500), &at) ? 4 : 0;
    /* All that there is, and no more. */
    struct mmsghdr rest[3] = {{.msg_len = MANY - 1000}, {.msg_len = MANY}, {.msg_len = 10}};
    bad |= lengths(fd, rest, 3, MSG_WAITFORONE, WANTED(MANY - 1000, 200), &at) ? 8 : 0;
    struct mmsghdr none[1] = {{.msg_len = 10}};
    bad |= recvmmsg(fd, none, 1, MSG_DONTWAIT, NULL) != -1 || errno != EAGAIN ? 16 : 0;
    exchange(fd, 3);
    _exit(bad);
}
FED(messages)

/* The rest and what comes behind it in one message, which is waited for. */
static void messages_all_client(int fd) {
    uint64_t at = 0;
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_write, SYS_recvmmsg, SYS_read);
    send_noise(fd, MANY, 1000);
    struct mmsghdr m[2] = {{.msg_len = MANY - 100}, {.msg_len = 1100}};
    int bad = lengths(fd, m, 2, MSG_WAITALL, WANTED(MANY - 100, 1100), &at);
    _exit(bad);
}
FED(messages_all)

/* Into a pipe, by the call itself. */
static void spliced(int from, int to, int pipe_end, uint64_t at, int n) {
    for (int got = 0; got < n;) {
        ssize_t r = splice(from, NULL, to, NULL, n - got, 0);
        if (r <= 0)
            _exit(77);
        recv_noise(pipe_end, at + got, r);
        got += r;
    }
}
static void splices_client(int fd) {
    int ends[2];
    char c;
    must(pipe(ends));
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_splice, SYS_close, SYS_dup2, SYS_ioctl);
    int bad = splice(fd, NULL, ends[1], NULL, 0, 0) != 0 ? 1 : 0, left = 0;
    spliced(fd, ends[1], ends[0], 0, 1000);
    bad |= ioctl(fd, FIONREAD, &left) || left != MANY - 1000 ? 2 : 0;
    recv_noise(fd, 1000, 1000);
    /* Out of it and into it at once. */
    bad |= write(ends[1], "abc", 3) != 3 || splice(ends[0], NULL, fd, NULL, 3, 0) != 3 ? 4 : 0;
    spliced(fd, ends[1], ends[0], 2000, MANY - 2000);
    /* Now by the kernel. */
    ssize_t n = splice(fd, NULL, ends[1], NULL, 3, 0);
    bad |= n <= 0 || read(ends[0], &c, 1) != 1 || c != 'a' ? 8 : 0;
    _exit(bad);
}
FED(splices)

/* Numbers that the program closes or takes which it does not have. */
static void numbers_client(int fd) {
    int ends[2];
    must(pipe(ends));
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_splice, SYS_close, SYS_dup2);
    for (int i = 3; i < 4096; i++)
        if (i != fd && i != ends[0] && i != ends[1])
            close(i);
    spliced(fd, ends[1], ends[0], 0, 1000);
    /* One that is refused changes nothing. */
    int bad = dup2(5000, fd) != -1 || errno != EBADF;
    recv_noise(fd, 1000, 1000);
    /* Another description takes the place of all others. */
    for (int i = 3; i < 4096; i++)
        if (i != fd && i != ends[0] && i != ends[1])
            dup2(ends[0], i);
    recv_noise(fd, 2000, MANY - 2000);
    exchange(fd, 3);
    _exit(bad);
}
FED(numbers)

/* Room for writing is the kernel's to tell, whatever is left to read. */
static void room_client(int fd) {
    fd_set w;
    struct timespec second = {1, 0};
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_pselect6, SYS_select);
    FD_ZERO(&w);
    FD_SET(fd, &w);
    int bad = select(fd + 1, NULL, &w, NULL, NULL) != 1 || !FD_ISSET(fd, &w) ? 1 : 0;
    bad |= pselect(fd + 1, NULL, &w, NULL, &second, NULL) != 1 || !FD_ISSET(fd, &w) ? 2 : 0;
    recv_noise(fd, 0, MANY);
    _exit(bad);
}
FED(room)

/* Calls by syscall(2), of which the C library has functions that make others. */
static void older_client(int fd) {
    fd_set r;
    struct timeval second = {1, 0};
    int ends[2], status = -1;
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(munmap(page + 4096, 4096));
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_select, SYS_open, SYS_pipe, SYS_fork, SYS_wait4);
    for (int i = 0; i < 3; i++) {
        FD_ZERO(&r);
        FD_SET(fd, &r);
        if (syscall(SYS_select, fd + 1, i == 1 ? NULL : &r, i == 1 ? &r : NULL, NULL, &second) != 1 || !FD_ISSET(fd, &r))
            _exit(1);
        if (i == 1)
            recv_noise(fd, 0, MANY - 10);
    }
    /* No more of a set is read than there may be numbers. */
    fd_set *last = (fd_set *)(page + 4096 - sizeof r);
    FD_ZERO(last);
    FD_SET(fd, last);
    int bad = syscall(SYS_select, 1 << 20, last, NULL, NULL, &second) == 1 ? 0 : 8;
    bad |= syscall(SYS_open, "/dev/null", O_RDONLY) < 0 || syscall(SYS_pipe, ends) ? 2 : 0;
    pid_t pid = syscall(SYS_fork);
    if (pid == 0)
        inline_call(SYS_exit_group, 0, 0, 0);
    wait4(pid, &status, 0, NULL);
    recv_noise(fd, MANY - 10, 10);
    _exit(bad | (status ? 4 : 0));
}
FED(older)

/* A FILE made afterwards, and the connection passed on. */
static void files_client(int fd) {
    static char buf[MANY];
    int pair[2];
    char control[CMSG_SPACE(sizeof fd)] = {0}, c = 'x';
    struct iovec v = {&c, 1};
    struct mmsghdr m = {{.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control}, .msg_len = 0};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m.msg_hdr);
    *h = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    await_peer();
    await_bytes(fd, MANY);
    ALLOW(SYS_read, SYS_write, SYS_sendmmsg, SYS_fcntl, SYS_newfstatat, SYS_brk, SYS_mmap, SYS_getrandom);
    int bad = sendmmsg(pair[0], &m, 1, 0) != 1 ? 1 : 0;
    FILE *f = fdopen(fd, "r");
    bad |= !f || fread(buf, 1, MANY, f) != MANY ? 2 : 0;
    check(buf, 0, MANY);
    _exit(bad);
}
FED(files)

CASES(CASE(strict), CASE(filter), CASE(by_number), CASE(receives), CASE(sends), CASE(across), CASE(waitall),
      CASE(polls), CASE(selects), CASE(sets), CASE(shared), CASE(bystander), CASE(descriptors), CASE(busy),
      CASE(closed), CASE(unseen), CASE(messages), CASE(messages_all), CASE(splices), CASE(numbers), CASE(room),
      CASE(files), CASE(older))
