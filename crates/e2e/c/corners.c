/* What calls say of arguments and moments at the edge of what they take. */
#include "common.h"
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#ifndef SO_RCVTIMEO_NEW
#define SO_RCVTIMEO_NEW 66
#define SO_SNDTIMEO_NEW 67
#endif
#ifndef SIOCOUTQNSD
#define SIOCOUTQNSD 0x894b
#endif


/* What the compiler must not know. */
static volatile int below = -1;

/* ---- time limits that are none */
static const struct timespec wrong[] = {{-1, 0}, {0, -1}, {0, 1000000000}, {1, 4000000000}, {-1, 999999999}};
enum { WRONG = sizeof wrong / sizeof wrong[0] };

static void time_limits(int fd) {
    int ep = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    for (int i = 0; i < WRONG; i++) {
        struct pollfd p = {fd, POLLIN, 0};
        struct timespec t = wrong[i];
        fd_set in;
        FD_ZERO(&in);
        FD_SET(fd, &in);
        say("%ld.%ld", (long)t.tv_sec, (long)t.tv_nsec);
        say_result("ppoll", ppoll(&p, 1, &t, NULL));
        say_result("by number", syscall(SYS_ppoll, &p, 1, &t, NULL, 8));
        say("left %ld.%ld", (long)t.tv_sec, (long)t.tv_nsec);
        say_result("pselect", pselect(fd + 1, &in, NULL, NULL, &t, NULL));
        say_result("by number", syscall(SYS_pselect6, fd + 1, &in, NULL, NULL, &t, NULL));
        say("left %ld.%ld, set %d", (long)t.tv_sec, (long)t.tv_nsec, FD_ISSET(fd, &in));
        say_result("epoll_pwait2", epoll_pwait2(ep, &e, 1, &t, NULL));
        struct mmsghdr m[2] = {0};
        say_result("recvmmsg", recvmmsg(fd, m, 2, 0, &t));
        struct timeval v[] = {{t.tv_sec, t.tv_nsec / 1000}, {t.tv_sec, t.tv_nsec / 1000}};
        if (t.tv_nsec < 0)
            v[0].tv_usec = v[1].tv_usec = -1;
        if (v[0].tv_sec < 0 || v[0].tv_usec < 0) {
            say_result("select", select(fd + 1, &in, NULL, NULL, &v[0]));
            say_result("by number", syscall(SYS_select, fd + 1, &in, NULL, NULL, &v[1]));
            say("left %ld.%ld and %ld.%ld, set %d", (long)v[0].tv_sec, (long)v[0].tv_usec, (long)v[1].tv_sec,
                (long)v[1].tv_usec, FD_ISSET(fd, &in));
        }
    }
    close(ep);
}
static void mask_sizes(int fd) {
    struct pollfd p = {fd, POLLOUT, 0};
    sigset_t none;
    sigemptyset(&none);
    struct timespec t = {1, 0};
    say_result("ppoll, size of mask", syscall(SYS_ppoll, &p, 1, &t, &none, 16));
    say_result("ppoll, no mask", syscall(SYS_ppoll, &p, 1, &t, NULL, 16));
    struct {
        sigset_t *mask;
        size_t size;
    } pair = {&none, 16}, nothing = {NULL, 16};
    fd_set out;
    FD_ZERO(&out);
    FD_SET(fd, &out);
    say_result("pselect6, size of mask", syscall(SYS_pselect6, fd + 1, NULL, &out, NULL, &t, &pair));
    say_result("pselect6, no mask", syscall(SYS_pselect6, fd + 1, NULL, &out, NULL, &t, &nothing));
    struct timespec zero = {0, 0};
    p.events = POLLIN;
    say_result("ppoll, nothing", syscall(SYS_ppoll, &p, 1, &zero, NULL, 8));
    struct epoll_event e = {.events = EPOLLOUT};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    say_result("epoll_pwait, size of mask", syscall(SYS_epoll_pwait, ep, &e, 1, 0, &none, 16));
    say_result("epoll_wait for none", epoll_wait(ep, &e, 0, 0));
    say_result("epoll_wait for -1", epoll_wait(ep, &e, below, 0));
    say_result("epoll_wait on the connection", epoll_wait(fd, &e, 1, 0));
    close(ep);
}
static void long_limits(int fd) {
    fd_set out;
    FD_ZERO(&out);
    FD_SET(fd, &out);
    struct timeval v = {1l << 60, 3000000};
    say_result("select for ever", select(fd + 1, NULL, &out, NULL, &v));
    say("left: %d", v.tv_sec > 1000000);
    struct pollfd p = {fd, POLLOUT, 0};
    struct timespec t = {1l << 60, 999999999};
    say_result("ppoll for ever", ppoll(&p, 1, &t, NULL));
    say_result("by number", syscall(SYS_ppoll, &p, 1, &t, NULL, 8));
    say("left: %d", t.tv_sec > 1000000);
    t = (struct timespec){1l << 60, 999999999};
    FD_SET(fd, &out);
    say_result("pselect for ever", pselect(fd + 1, NULL, &out, NULL, &t, NULL));
    v = (struct timeval){0, 2500000};
    FD_SET(fd, &out);
    say_result("more than a second of microseconds", select(fd + 1, NULL, &out, NULL, &v));
    say("left: %ld", (long)v.tv_sec);
}
static void times_server(int fd) {
    time_limits(fd);
    mask_sizes(fd);
    long_limits(fd);
    tell_peer();
}
static void times_client(int fd) {
    (void)fd;
    await_peer();
}

/* ---- time limits of a socket */
static void limit(int fd, const char *what, int option, struct timeval v, socklen_t len) {
    say_result(what, setsockopt(fd, SOL_SOCKET, option, &v, len));
    memset(&v, 0x55, sizeof v);
    len = sizeof v;
    int r = getsockopt(fd, SOL_SOCKET, option, &v, &len);
    say("%d: %ld.%06ld, %u", r, (long)v.tv_sec, (long)v.tv_usec, len);
}
static void receive_soon(int fd) {
    char c;
    uint64_t begun = now();
    say_result("recv", recv(fd, &c, 1, 0));
    say("at once: %d", now() - begun < 3000 * MS);
}
static void limits_server(int fd) {
    static const int options[] = {SO_RCVTIMEO, SO_RCVTIMEO_NEW, SO_SNDTIMEO, SO_SNDTIMEO_NEW};
    for (int i = 0; i < 4; i++) {
        int o = options[i];
        limit(fd, "-1 s", o, (struct timeval){-1, 0}, sizeof(struct timeval));
        if (i < 2)
            receive_soon(fd);
        limit(fd, "-1 us", o, (struct timeval){0, -1}, sizeof(struct timeval));
        limit(fd, "10^6 us", o, (struct timeval){0, 1000000}, sizeof(struct timeval));
        limit(fd, "too short", o, (struct timeval){1, 0}, 4);
        limit(fd, "too long", o, (struct timeval){1, 0}, 40);
        limit(fd, "for ever", o, (struct timeval){0x7fffffffffffffff, 0}, sizeof(struct timeval));
        limit(fd, "1 us", o, (struct timeval){0, 1}, sizeof(struct timeval));
        if (i < 2)
            receive_soon(fd);
        limit(fd, "20 ms", o, (struct timeval){0, 20000}, sizeof(struct timeval));
        if (i < 2)
            receive_soon(fd);
        limit(fd, "none", o, (struct timeval){0, 0}, sizeof(struct timeval));
    }
    static const int marks[] = {-1, 0, 1 << 30, 5, 1};
    for (int i = 0; i < 5; i++) {
        int v = marks[i];
        socklen_t len = sizeof v;
        say_result("SO_RCVLOWAT", setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &v, sizeof v));
        must(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &v, &len));
        say("%d -> %d", marks[i], v);
    }
    say_result("shorter", setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(char){1}, 1));
    tell_peer();
    await_peer();
}
static void limits_client(int fd) {
    (void)fd;
    await_peer();
    tell_peer();
}

/* ---- several messages by one call */
static void several(int fd, int n, int each, int flags, struct timespec *within) {
    struct mmsghdr m[8];
    struct iovec v[8];
    static char buf[8][200];
    memset(m, 0, sizeof m);
    for (int i = 0; i < n; i++) {
        v[i] = (struct iovec){buf[i], each};
        m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
        m[i].msg_len = 77;
    }
    int r = recvmmsg(fd, m, n, flags, within);
    say_result("recvmmsg", r);
    for (int i = 0; i < n; i++)
        say("%d: %u, flags %x", i, m[i].msg_len, m[i].msg_hdr.msg_flags);
}
static void mmsg_server(int fd) {
    struct timespec t = {0, 0}, longer = {5, 0};
    for (int i = 0; i < 2; i++) {
        await_bytes(fd, 100);
        several(fd, 4, 10, 0, NULL);
        several(fd, 4, 20, MSG_DONTWAIT, NULL);
        several(fd, 4, 20, MSG_DONTWAIT, NULL);
        tell_peer();
        await_bytes(fd, 100);
        several(fd, 4, 30, MSG_WAITFORONE, NULL);
        several(fd, 4, 30, MSG_WAITFORONE | MSG_DONTWAIT, NULL);
        tell_peer();
        await_bytes(fd, 100);
        several(fd, 8, 10, 0, &t);
        several(fd, 8, 10, MSG_DONTWAIT, &longer);
        several(fd, 8, 10, MSG_DONTWAIT | MSG_PEEK, &longer);
        several(fd, 0, 10, 0, NULL);
        tell_peer();
    }
    await_peer();
}
static void mmsg_client(int fd) {
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            send_noise(fd, 0, 100);
            await_peer();
        }
    tell_peer();
}

/* ---- receiving with odd flags and buffers */
static void flags_server(int fd) {
    char buf[64];
    await_bytes(fd, 100);
    memset(buf, 'x', sizeof buf);
    say_result("peek, truncate", recv(fd, buf, 10, MSG_PEEK | MSG_TRUNC));
    say("%c %c", buf[0], buf[9]);
    say_result("truncate", recv(fd, buf, 10, MSG_TRUNC));
    say("%c %c", buf[0], buf[9]);
    struct msghdr m = {0};
    say_result("recvmsg without buffers", recvmsg(fd, &m, 0));
    struct iovec none = {NULL, 0};
    m.msg_iov = &none, m.msg_iovlen = 1;
    say_result("recvmsg of nothing", recvmsg(fd, &m, 0));
    say_result("recv of nothing", recv(fd, NULL, 0, 0));
    say_result("truncate into nowhere", recv(fd, NULL, 20, MSG_TRUNC));
    recv_noise(fd, 30, 70);
    say_result("recvmsg without buffers, nothing there", recvmsg(fd, &(struct msghdr){0}, MSG_DONTWAIT));
    say_result("recv of nothing, nothing there", recv(fd, buf, 0, MSG_DONTWAIT));
    say_result("error queue", recv(fd, buf, 10, MSG_ERRQUEUE));
    tell_peer();
    await_peer();
    say_result("OOB without", recv(fd, buf, 10, MSG_OOB));
    tell_peer();
    await_peer();
}
static void flags_client(int fd) {
    send_noise(fd, 0, 100);
    await_peer();
    tell_peer();
    await_peer();
    tell_peer();
}

/* ---- vectors that are too long, and others */
static void arrays_server(int fd) {
    char a[10], b[10];
    struct iovec over[] = {{a, 10}, {b, 0x7fffffffffffffff}}, negative[] = {{a, 10}, {b, (size_t)-1}};
    static struct iovec many[1025];
    for (int i = 0; i < 1025; i++)
        many[i] = (struct iovec){a, 0};
    await_bytes(fd, 30);
    nonblocking(fd, 1);
    say_result("readv, negative", readv(fd, negative, 2));
    say_result("readv of -1", readv(fd, negative, below));
    say_result("readv of 0", readv(fd, over, 0));
    say_result("readv of 1025", readv(fd, many, 1025));
    say_result("readv of 1024", readv(fd, many, 1024));
    say_result("writev, negative", writev(fd, negative, 2));
    say_result("writev of -1", writev(fd, negative, below));
    say_result("writev of 0", writev(fd, over, 0));
    say_result("writev of 1025", writev(fd, many, 1025));
    say_result("writev of 1024", writev(fd, many, 1024));
    struct msghdr m = {.msg_iov = many, .msg_iovlen = 1025};
    say_result("sendmsg of 1025", sendmsg(fd, &m, 0));
    say_result("recvmsg of 1025", recvmsg(fd, &m, 0));
    m.msg_iovlen = 2, m.msg_iov = negative;
    say_result("sendmsg, negative", sendmsg(fd, &m, 0));
    say_result("recvmsg, negative", recvmsg(fd, &m, 0));
    say_result("preadv", preadv(fd, over, 1, 0));
    say_result("pwritev", pwritev(fd, over, 1, 0));
    say_result("pread", pread(fd, a, 10, 0));
    say_result("pwrite", pwrite(fd, a, 10, 0));
    say_result("lseek", lseek(fd, 0, SEEK_SET));
    say_result("readv", readv(fd, over, 1));
    nonblocking(fd, 0);
    recv_noise(fd, 10, 20);
    tell_peer();
    await_peer();
}
static void arrays_client(int fd) {
    send_noise(fd, 0, 30);
    await_peer();
    tell_peer();
}

/* ---- addresses, where a connection needs none */
static void addresses_server(int fd) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    static const int lengths[] = {-1, 0, 1, 15, 16, 128, 129, 4000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        say("%d", lengths[i]);
        say_result("sendto", sendto(fd, "", 1, 0, (struct sockaddr *)&to, lengths[i]));
        struct iovec v = {"", 1};
        struct msghdr m = {.msg_name = &to, .msg_namelen = lengths[i], .msg_iov = &v, .msg_iovlen = 1};
        say_result("sendmsg", sendmsg(fd, &m, 0));
        struct mmsghdr mm = {.msg_hdr = m};
        say_result("sendmmsg", sendmmsg(fd, &mm, 1, 0));
    }
    say_result("sendto nowhere", sendto(fd, "", 1, 0, NULL, 16));
    tell_peer();
    await_peer();
    await_bytes(fd, 3);
    char c;
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    say_result("recvfrom", recvfrom(fd, &c, 1, 0, (struct sockaddr *)&from, &len));
    say("length %u", len);
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &v, .msg_iovlen = 1};
    say_result("recvmsg", recvmsg(fd, &m, 0));
    say("length %u", m.msg_namelen);
    m.msg_namelen = -1;
    say_result("recvmsg", recvmsg(fd, &m, 0));
    say("length %d", (int)m.msg_namelen);
    tell_peer();
    await_peer();
}
static void addresses_client(int fd) {
    await_peer();
    char buf[200];
    int n = 0;
    nonblocking(fd, 1);
    for (int r; (r = recv(fd, buf, sizeof buf, 0)) > 0;)
        n += r;
    say("came %d", n);
    send_noise(fd, 0, 3);
    tell_peer();
    await_peer();
    tell_peer();
}

/* ---- sending nothing, and sending after the end */
static void endings_server(int fd) {
    say_result("send nothing", send(fd, "", 0, 0));
    say_result("write nothing", write(fd, "", 0));
    say_result("nothing, urgent", send(fd, "", 0, MSG_OOB));
    must(shutdown(fd, SHUT_WR));
    say_result("send nothing", send(fd, "", 0, MSG_NOSIGNAL));
    say_result("write nothing", write(fd, "", 0));
    say_result("sendmsg of nothing", sendmsg(fd, &(struct msghdr){0}, MSG_NOSIGNAL));
    say_result("writev of nothing", writev(fd, NULL, 0));
    say_result("send", send(fd, "x", 1, MSG_NOSIGNAL));
    say_result("sendto", sendto(fd, "x", 1, MSG_NOSIGNAL, NULL, 0));
    tell_peer();
    await_peer();
}
static void endings_client(int fd) {
    await_peer();
    char c;
    say_result("end", recv(fd, &c, 1, 0));
    tell_peer();
}

/* ---- sendfile and what it refuses */
static void sendfile_server(int fd) {
    char path[] = "/tmp/headwater-corners-XXXXXX";
    int file = must(mkstemp(path)), pipes[2];
    unlink(path);
    must(pipe(pipes));
    char page[4096];
    fill(page, 0, sizeof page);
    must(write(file, page, sizeof page));
    off_t at = -1;
    errno = 77;
    say_result("before the beginning", sendfile(fd, file, &at, 10));
    say("at %ld", (long)at);
    at = 5000;
    errno = 77;
    say_result("behind the end", sendfile(fd, file, &at, 10));
    say("at %ld, %d", (long)at, errno);
    at = 0;
    say_result("nothing", sendfile(fd, file, &at, 0));
    say_result("from a pipe", sendfile(fd, pipes[0], NULL, 10));
    say_result("from a pipe at", sendfile(fd, pipes[0], &at, 10));
    say_result("from itself", sendfile(fd, fd, NULL, 10));
    say_result("from nowhere", sendfile(fd, -1, NULL, 10));
    int writing = must(open("/dev/null", O_WRONLY));
    say_result("from one for writing", sendfile(fd, writing, NULL, 10));
    say_result("at its end", sendfile(fd, file, NULL, 10));
    must(lseek(file, 0, SEEK_SET));
    errno = 77;
    say_result("all", sendfile(fd, file, NULL, 100000));
    say("errno %d, stands at %ld", errno, (long)lseek(file, 0, SEEK_CUR));
    at = 4000;
    errno = 77;
    say_result("the rest", sendfile(fd, file, &at, 100000));
    say("errno %d, at %ld", errno, (long)at);
    must(shutdown(fd, SHUT_WR));
    at = 0;
    say_result("after the end", sendfile(fd, file, &at, 10));
    say("at %ld", (long)at);
    await_peer();
}
static void sendfile_client(int fd) {
    recv_noise(fd, 0, 4096);
    recv_noise(fd, 4000, 96);
    say("more: %d", (int)recv(fd, &(char){0}, 1, 0));
    tell_peer();
}

/* ---- numbers */
static void numbers_server(int fd) {
    say_result("close_range upside down", syscall(SYS_close_range, 20, 10, 0));
    say_result("close_range", close_range(20, 10, 0));
    int n = -1;
    say_result("SIOCOUTQNSD", ioctl(fd, SIOCOUTQNSD, &n));
    say("%d", n);
    say_result("FIONREAD", ioctl(fd, FIONREAD, &n));
    say("%d", n);
    say_result("fcntl", fcntl(fd, 9999, 0));
    say_result("ioctl", ioctl(fd, 0x12345678, &n));
    say_result("dup2 beyond", dup2(fd, 1 << 30));
    say_result("dup2 below", dup2(fd, -1));
    say_result("F_DUPFD beyond", fcntl(fd, F_DUPFD, 1 << 30));
    say_result("F_DUPFD below", fcntl(fd, F_DUPFD, -1));
    send_noise(fd, 0, 10);
    await_peer();
}
static void numbers_client(int fd) {
    recv_noise(fd, 0, 10);
    tell_peer();
}

/* ---- urgent data behind other data */
static int at_mark(int fd) {
    int n = -1;
    must(ioctl(fd, SIOCATMARK, &n));
    return n;
}
static void await_urgent(int fd) {
    struct pollfd p = {fd, POLLPRI, 0};
    if (poll(&p, 1, 10000) != 1)
        fail("no urgent data");
    say("%x", p.revents);
}
static void mark_server(int fd) {
    char buf[100];
    await_urgent(fd);
    struct pollfd p = {fd, POLLIN | POLLPRI | POLLOUT, 0};
    say_result("poll", poll(&p, 1, 1000));
    say("%x", p.revents);
    struct epoll_event e = {.events = EPOLLIN | EPOLLPRI | EPOLLOUT};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    say_result("epoll", epoll_wait(ep, &e, 1, 1000));
    say("%x", e.events);
    say("mark %d", at_mark(fd));
    say_result("peek", recv(fd, buf, sizeof buf, MSG_OOB | MSG_PEEK));
    say_result("before", recv(fd, buf, sizeof buf, 0));
    check(buf, 0, 20);
    say("mark %d", at_mark(fd));
    say_result("urgent", recv(fd, buf, sizeof buf, MSG_OOB));
    say("%c", buf[0]);
    say_result("again", recv(fd, buf, sizeof buf, MSG_OOB));
    say("mark %d", at_mark(fd));
    tell_peer();
    say_result("after", recv(fd, buf, 10, MSG_WAITALL));
    check(buf, 20, 10);
    say("mark %d", at_mark(fd));
    tell_peer();
    close(ep);
    /* in line */
    int one = 1;
    must(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one));
    await_urgent(fd);
    say("mark %d", at_mark(fd));
    say_result("urgent", recv(fd, buf, sizeof buf, MSG_OOB));
    say_result("before", recv(fd, buf, sizeof buf, 0));
    say("mark %d", at_mark(fd));
    say_result("from the mark", recv(fd, buf, sizeof buf, 0));
    say("%c", buf[0]);
    say("mark %d", at_mark(fd));
    tell_peer();
    await_peer();
}
static void inline_server(int fd) {
    char buf[100];
    int one = 1;
    must(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one));
    tell_peer();
    await_urgent(fd);
    say("mark %d", sockatmark(fd));
    say_result("urgent", recv(fd, buf, sizeof buf, MSG_OOB));
    say_result("before", recv(fd, buf, sizeof buf, 0));
    check(buf, 0, 20);
    say("mark %d", sockatmark(fd));
    tell_peer();
    await_bytes(fd, 11);
    say_result("from the mark", recv(fd, buf, sizeof buf, 0));
    say("%c", buf[0]);
    check(buf + 1, 20, 10);
    say("mark %d", sockatmark(fd));
    tell_peer();
    await_peer();
}
static void inline_client(int fd) {
    await_peer();
    send_noise(fd, 0, 20);
    must(send(fd, "U", 1, MSG_OOB));
    await_peer();
    send_noise(fd, 20, 10);
    await_peer();
    tell_peer();
}
static void mark_client(int fd) {
    send_noise(fd, 0, 20);
    must(send(fd, "U", 1, MSG_OOB));
    await_peer();
    send_noise(fd, 20, 10);
    await_peer();
    send_noise(fd, 0, 20);
    must(send(fd, "V", 1, MSG_OOB));
    await_peer();
    tell_peer();
}

/* ---- a reset behind what is unread */
static void reset_server(int fd) {
    char buf[100];
    await_bytes(fd, 50);
    tell_peer();
    await_peer();
    wait_for(fd, POLLRDHUP);
    usleep(20000);
    struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
    say_result("poll", poll(&p, 1, 1000));
    say("%x", p.revents);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    say_result("epoll", epoll_wait(ep, &e, 1, 1000));
    say("%x", e.events);
    close(ep);
    say_result("recv", recv(fd, buf, 20, 0));
    int error = 0;
    socklen_t len = sizeof error;
    must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
    say("SO_ERROR %s", error ? strerrorname_np(error) : "none");
    say_result("recv", recv(fd, buf, 20, 0));
    must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
    say("SO_ERROR %s", error ? strerrorname_np(error) : "none");
    say_result("recv", recv(fd, buf, 20, 0));
    say_result("recv", recv(fd, buf, 20, 0));
    must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
    say("SO_ERROR %s", error ? strerrorname_np(error) : "none");
    say_result("send", send(fd, buf, 20, MSG_NOSIGNAL));
    p.revents = 0;
    poll(&p, 1, 1000);
    say("%x", p.revents);
}
static void reset_client(int fd) {
    struct linger now = {1, 0};
    send_noise(fd, 0, 50);
    await_peer();
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    close(fd);
    tell_peer();
}

/* ---- signals asked for before there is a connection */
static volatile sig_atomic_t told;
static void on_io(int n) {
    (void)n;
    told++;
}
static void asked_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    int s = must(accept(l, NULL, NULL));
    for (int i = 0; i < 20; i++) {
        recv_noise(s, i, 64);
        send_noise(s, i, 64);
    }
    await_peer();
    send_noise(s, 0, 10);
    await_peer();
    close(s);
    close(l);
}
static void asked_client(int fd) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    signal(SIGIO, on_io);
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    must(fcntl(s, F_SETOWN, getpid()));
    must(fcntl(s, F_SETFL, O_ASYNC));
    while (connect(s, (struct sockaddr *)&at, sizeof at) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < 20; i++) {
        send_noise(s, i, 64);
        recv_noise(s, i, 64);
    }
    told = 0;
    tell_peer();
    for (uint64_t end = now() + 5000 * MS; !told && now() < end;)
        usleep(1000);
    say("told: %d", told > 0);
    recv_noise(s, 0, 10);
    tell_peer();
    close(s);
}

/* ---- a limit of less than none that was set before there was a connection */
static void no_time(int s) {
    static const struct timeval less = {-1, 0};
    must(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &less, sizeof less));
    must(setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &less, sizeof less));
    say_result("none", setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, -1}, sizeof less));
}
static void recv_when_there(int s, int i) {
    must(poll(&(struct pollfd){s, POLLIN, 0}, 1, -1));
    recv_noise(s, i, 64);
}
static void end_at_once(int s) {
    static char much[1 << 16];
    ssize_t n;
    receive_soon(s);
    uint64_t begun = now();
    while ((n = send(s, much, sizeof much, 0)) > 0) {
    }
    say_result("send", n);
    say("at once: %d", now() - begun < 3000 * MS);
}
static void limits_before_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    no_time(l);
    send_all(fd, &at, sizeof at);
    must(poll(&(struct pollfd){l, POLLIN, 0}, 1, -1));
    int s = must(accept(l, NULL, NULL));
    for (int i = 0; i < 20; i++) {
        recv_when_there(s, i);
        send_noise(s, i, 64);
    }
    end_at_once(s);
    tell_peer();
    await_peer();
    close(s);
    close(l);
}
static void limits_before_client(int fd) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    no_time(s);
    if (connect(s, (struct sockaddr *)&at, sizeof at) < 0) {
        /* The kernel has no time to wait for the answer either. */
        must(poll(&(struct pollfd){s, POLLOUT, 0}, 1, -1));
    }
    for (int i = 0; i < 20; i++) {
        send_noise(s, i, 64);
        recv_when_there(s, i);
    }
    await_peer();
    tell_peer();
    close(s);
}

/* ---- a handler in the middle of MSG_WAITALL */
static void all_server(int fd) {
    struct sigaction a = {.sa_handler = on_io};
    must(sigaction(SIGUSR1, &a, NULL));
    char buf[100];
    tell_peer();
    say_result("cut short", recv(fd, buf, 100, MSG_WAITALL));
    check(buf, 0, 40);
    say("handler: %d", told);
    tell_peer();
    say_result("the rest", recv(fd, buf, 60, MSG_WAITALL));
    check(buf, 40, 60);
    tell_peer();
}
static void all_client(int fd) {
    await_peer();
    send_noise(fd, 0, 40);
    usleep(100000);
    kill(peer_pid, SIGUSR1);
    await_peer();
    send_noise(fd, 40, 60);
    await_peer();
}

CASES(CASE(times), CASE(limits), CASE(mmsg), CASE(flags), CASE(arrays), CASE(addresses), CASE(endings), CASE(sendfile), CASE(numbers),
      CASE(mark), CASE(inline), CASE(reset), CASE(asked), CASE(all),
      CASE(limits_before))
