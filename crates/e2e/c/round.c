/* Ways round the functions of a carried connection: other names, other functions, calls by number. */
#include "echo.h"
#include <aio.h>
#include <dlfcn.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Names that the C library exports without declaring them. */
extern ssize_t __read(int, void *, size_t), __write(int, const void *, size_t), __send(int, const void *, size_t, int);
extern int __close(int), __poll(struct pollfd *, nfds_t, int), __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);
extern int __fcntl(int, int, ...), __dup2(int, int), __connect(int, const struct sockaddr *, socklen_t);
extern int __vdprintf_chk(int, int, const char *, va_list);

/* Takes back `n` bytes that went round, whatever their way was. */
static void back(int fd, int n) { recv_noise(fd, 0, n); }

static void names_server(int fd) {
    char buf[100];
    fill(buf, 0, 100);
    must(__write(fd, buf, 50)), must(__send(fd, buf + 50, 50, 0));
    await_bytes(fd, 100);
    struct pollfd p = {fd, POLLIN, 0};
    say("poll %d", __poll(&p, 1, 10000));
    say("read %zd", __read(fd, buf, 100));
    check(buf, 0, 100);
    must(__write(fd, buf, 10));
    fd_set r;
    FD_ZERO(&r);
    FD_SET(fd, &r);
    say("select %d", __select(fd + 1, &r, NULL, NULL, NULL));
    back(fd, 10);
    int other = must(__fcntl(fd, F_DUPFD, 60));
    exchange(other, 2);
    say("dup2 %d", __dup2(other, 70));
    must(__close(other));
    exchange(70, 2);
    must(__close(70));
    exchange(fd, 2);
}
WITH_ECHO(names)

/* Functions that are looked for in the C library itself, as by Python's ctypes, and the other ways. */
static void found_server(int fd) {
    void *library = dlopen("libc.so.6", RTLD_LAZY), *all = dlopen(NULL, RTLD_LAZY);
    void *places[] = {library, all, RTLD_DEFAULT, RTLD_NEXT};
    for (int i = 0; i < 4; i++) {
        ssize_t (*give)(int, const void *, size_t, int) = dlsym(places[i], "send");
        ssize_t (*take)(int, void *, size_t) = dlsym(places[i], "read");
        int (*duplicate)(int) = dlsym(places[i], "dup"), (*leave)(int) = dlsym(places[i], "close");
        char buf[100];
        say("error %d", dlerror() != NULL);
        fill(buf, 0, 100);
        say("send %zd", give(fd, buf, 100, 0));
        await_bytes(fd, 100);
        int other = must(duplicate(fd));
        say("read %zd", take(other, buf, 100));
        check(buf, 0, 100);
        say("close %d", leave(other));
    }
    say("none %d", dlsym(library, "t_no_such_function") != NULL);
    say("error %d", dlerror() != NULL);
    say("not by name %d", dlsym(RTLD_DEFAULT, "found_server") != NULL);
    dlerror();
    say("other %d", dlsym(library, "strlen") == dlsym(RTLD_DEFAULT, "strlen"));
    dlclose(library), dlclose(all);
    exchange(fd, 2);
}
WITH_ECHO(found)

/* preadv2 and pwritev2 without a position. */
static void vectors_server(int fd) {
    char a[30], b[70];
    struct iovec v[2] = {{a, 30}, {b, 70}};
    fill(a, 0, 30), fill(b, 30, 70);
    say("writes %zd", pwritev2(fd, v, 2, -1, 0));
    await_bytes(fd, 100);
    say("reads %zd", preadv2(fd, v, 2, -1, 0));
    check(a, 0, 30), check(b, 30, 70);
    say_result("nothing", preadv2(fd, v, 2, -1, RWF_NOWAIT));
    say_result("at 0", preadv2(fd, v, 2, 0, 0));
    say_result("at 0", pwritev2(fd, v, 2, 0, 0));
    say_result("pread", pread(fd, a, 30, 0));
    say("by number %ld", syscall(SYS_pwritev2, fd, v, 2L, -1L, -1L, 0L));
    await_bytes(fd, 100);
    say("by number %ld", syscall(SYS_preadv2, fd, v, 2L, -1L, -1L, 0L));
    check(a, 0, 30), check(b, 30, 70);
    exchange(fd, 3);
}
WITH_ECHO(vectors)

static int print(int fd, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = __vdprintf_chk(fd, 1, format, args);
    va_end(args);
    return n;
}

static void prints_server(int fd) {
    char buf[20];
    exchange(fd, 2);
    say("prints %d", print(fd, "%d bottles", 99));
    recv_all(fd, buf, 10);
    say("%.10s", buf);
    exchange(fd, 2);
}
WITH_ECHO(prints)

/* The descriptor in a message of many: somebody else uses it. */
static void passes_server(int fd) {
    int ends[2];
    char data[2], room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {data, 1};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}},
                           {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room}}};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m[1].msg_hdr);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    exchange(fd, 2);
    say("sent %d", sendmmsg(ends[0], m, 2, 0));
    recv(ends[1], data, 1, 0);
    struct msghdr got = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    must(recvmsg(ends[1], &got, 0));
    int passed;
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&got)), sizeof passed);
    exchange(passed, 2);
    close(passed);
    exchange(fd, 2);
}
WITH_ECHO(passes)

static void await_aio(struct aiocb *a) {
    const struct aiocb *list[1] = {a};
    while (aio_error(a) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
}

/* Threads of the C library. */
static void asynchronous_server(int fd) {
    char in[100], out[100];
    struct aiocb w = {.aio_fildes = fd, .aio_buf = out, .aio_nbytes = 100}, r = {.aio_fildes = fd, .aio_buf = in, .aio_nbytes = 100};
    fill(out, 0, 100);
    exchange(fd, 2);
    must(aio_write(&w));
    await_aio(&w);
    say("wrote %zd", aio_return(&w));
    await_bytes(fd, 100);
    must(aio_read(&r));
    await_aio(&r);
    say("read %zd", aio_return(&r));
    check(in, 0, 100);
    struct aiocb *list[1] = {&w};
    w.aio_lio_opcode = LIO_WRITE;
    must(lio_listio(LIO_WAIT, list, 1, NULL));
    say("wrote %zd", aio_return(&w));
    back(fd, 100);
    exchange(fd, 2);
}
WITH_ECHO(asynchronous)

/* Requests of the kernel's own asynchronous interface. */
static void submitted_server(int fd) {
    aio_context_t context = 0;
    char out[100];
    struct iocb w = {.aio_fildes = fd, .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (uintptr_t)out, .aio_nbytes = 100}, *list[1] = {&w};
    struct io_event e;
    fill(out, 0, 100);
    exchange(fd, 2);
    must(syscall(SYS_io_setup, 4, &context));
    must(syscall(SYS_io_submit, context, 1, list));
    must(syscall(SYS_io_getevents, context, 1, 1, &e, NULL));
    say("wrote %lld", (long long)e.res);
    back(fd, 100);
    exchange(fd, 2);
}
WITH_ECHO(submitted)

/* The C library's streams on a connection that takes a standard number. */
static void standard_server(int fd) {
    int in = must(dup(0)), out = must(dup(1));
    char line[40] = "", *ends = NULL;
    exchange(fd, 2);
    must(dup2(fd, 0)), must(dup2(fd, 1));
    printf("hello %d\n", 42);
    fflush(stdout);
    ends = fgets(line, sizeof line, stdin);
    must(dup2(in, 0)), must(dup2(out, 1));
    say("%d %s", ends != NULL, line);
    exchange(fd, 2);
}
WITH_ECHO(standard)

static void standard_by_dup_server(int fd) {
    int out = must(dup(1));
    exchange(fd, 2);
    close(1);
    must(dup(fd));
    printf("hello %d\n", 42);
    fflush(stdout);
    must(dup2(out, 1));
    char line[9];
    recv_all(fd, line, 9);
    say("%.8s", line);
    exchange(fd, 2);
}
WITH_ECHO(standard_by_dup)

static void numbers_server(int fd) {
    char buf[100];
    fill(buf, 0, 100);
    struct iovec v = {buf, 100};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    struct mmsghdr mm = {.msg_hdr = m};
    must(syscall(SYS_write, fd, buf, 100L)), back(fd, 100);
    must(syscall(SYS_writev, fd, &v, 1L)), back(fd, 100);
    must(syscall(SYS_sendto, fd, buf, 100L, 0L, NULL, 0L)), back(fd, 100);
    must(syscall(SYS_sendmsg, fd, &m, 0L)), back(fd, 100);
    must(syscall(SYS_sendmmsg, fd, &mm, 1L, 0L)), back(fd, 100);
    send_noise(fd, 0, 600);
    await_bytes(fd, 600);
    say("%ld", syscall(SYS_read, fd, buf, 100L)), check(buf, 0, 100);
    say("%ld", syscall(SYS_readv, fd, &v, 1L)), check(buf, 100, 100);
    say("%ld", syscall(SYS_recvfrom, fd, buf, 100L, 0L, NULL, NULL)), check(buf, 200, 100);
    say("%ld", syscall(SYS_recvmsg, fd, &m, 0L)), check(buf, 300, 100);
    say("%ld", syscall(SYS_recvmmsg, fd, &mm, 1L, 0L, NULL)), check(buf, 400, 100);
    int n = 0;
    must(syscall(SYS_ioctl, fd, (long)FIONREAD, &n)), say("unread %d", n);
    must(syscall(SYS_fcntl, fd, (long)F_SETFL, (long)O_RDWR | O_NONBLOCK));
    recv_noise(fd, 500, 100);
    say_result("nothing", read(fd, buf, 1));
    must(syscall(SYS_fcntl, fd, (long)F_SETFL, (long)O_RDWR));
    int file = must(memfd_create("file", 0));
    must(write(file, "0123456789", 10));
    off_t at = 2;
    say("sendfile %ld", syscall(SYS_sendfile, fd, file, &at, 8L));
    recv_all(fd, buf, 8);
    say("%.8s", buf);
    long a = must(syscall(SYS_dup, fd)), b = must(syscall(SYS_dup3, fd, 80L, 0L));
    exchange(a, 2), exchange(b, 2);
#ifdef SYS_dup2
    must(syscall(SYS_dup2, a, b)), exchange(b, 2);
#endif
    must(syscall(SYS_close, a)), must(syscall(SYS_close_range, b, b, 0L));
    exchange(fd, 2);
    must(syscall(SYS_shutdown, fd, (long)SHUT_WR));
    say_result("end", read(fd, buf, 1));
}
WITH_ECHO(numbers)

/* Waits by number see what is in shared memory, and give back the program's data. */
static void waits_server(int fd) {
    struct timespec t = {10, 0}, none = {0, 0};
    struct epoll_event e = {EPOLLIN, {.u64 = 0x123456789abcdef}}, got[4];
    fd_set r;
    struct pollfd p = {fd, POLLIN, 0};
    long ep = must(syscall(SYS_epoll_create1, 0L));
    must(syscall(SYS_epoll_ctl, ep, (long)EPOLL_CTL_ADD, fd, &e));
    for (int i = 0; i < 3; i++) {
        say("quiet %ld", syscall(SYS_ppoll, &p, 1L, &none, NULL, 8L));
        send_noise(fd, 0, 10);
        say("ppoll %ld", syscall(SYS_ppoll, &p, 1L, &t, NULL, 8L)), say("%x", p.revents);
        FD_ZERO(&r);
        FD_SET(fd, &r);
        say("pselect %ld", syscall(SYS_pselect6, fd + 1L, &r, NULL, NULL, &t, NULL));
        memset(got, 0, sizeof got);
        say("epoll %ld", syscall(SYS_epoll_pwait, ep, got, 4L, 10000L, NULL, 8L)), say("%llx", (unsigned long long)got[0].data.u64);
        memset(got, 0, sizeof got);
        say("epoll %ld", syscall(SYS_epoll_pwait2, ep, got, 4L, &t, NULL, 8L)), say("%llx", (unsigned long long)got[0].data.u64);
#ifdef SYS_poll
        p.revents = 0;
        say("poll %ld", syscall(SYS_poll, &p, 1L, 10000L)), say("%x", p.revents);
        memset(got, 0, sizeof got);
        say("epoll %ld", syscall(SYS_epoll_wait, ep, got, 4L, 10000L)), say("%llx", (unsigned long long)got[0].data.u64);
        FD_ZERO(&r);
        FD_SET(fd, &r);
        struct timeval v = {10, 0};
        say("select %ld", syscall(SYS_select, fd + 1L, &r, NULL, NULL, &v));
#endif
        back(fd, 10);
    }
    exchange(fd, 2);
}
WITH_ECHO(waits)

/* A connection that is made and accepted by number is like any other; a child that comes by number too. */
static void made_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    long pid = must(syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL));
    if (pid == 0) {
        int young = must(syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
        must(syscall(SYS_connect, young, &at, (long)sizeof at));
        exchange(young, 30);
        syscall(SYS_exit_group, 0L);
    }
    int young = must(syscall(SYS_accept4, l, NULL, NULL, 0L)), status = -1;
    char buf[1000];
    ssize_t r;
    uint64_t n = 0;
    while ((r = read(young, buf, sizeof buf)) > 0)
        send_all(young, buf, r), n += r;
    must(waitpid(pid, &status, 0));
    say("echoed %llu, status %x", (unsigned long long)n, status);
    exchange(fd, 2);
}
WITH_ECHO(made)

/* A child that comes by number shares the connection. */
static void cloned_server(int fd) {
    exchange(fd, 2);
    long pid = must(syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL));
    if (pid == 0) {
        exchange(fd, 20);
        close(fd);
        syscall(SYS_exit, 0L);
    }
    int status = -1;
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exchange(fd, 20);
}
WITH_ECHO(cloned)

/* The calls beside those that move data or wait. */
static void more_numbers_server(int fd) {
    int p[2], value = -1, on = 1;
    socklen_t n = sizeof value;
    struct sockaddr_in a, b;
    char buf[300];
    must(syscall(SYS_getsockopt, fd, (long)SOL_SOCKET, (long)SO_TYPE, &value, &n)), say("type %d", value == SOCK_STREAM);
    must(syscall(SYS_setsockopt, fd, (long)SOL_SOCKET, (long)SO_KEEPALIVE, &on, (long)sizeof on));
    must(syscall(SYS_getsockopt, fd, (long)SOL_SOCKET, (long)SO_KEEPALIVE, &value, &n)), say("keepalive %d", value);
    n = sizeof a, must(syscall(SYS_getsockname, fd, &a, &n)), must(getsockname(fd, (struct sockaddr *)&b, &n));
    say("name %d", memcmp(&a, &b, n));
    must(syscall(SYS_getpeername, fd, &a, &n)), must(getpeername(fd, (struct sockaddr *)&b, &n));
    say("peer %d", memcmp(&a, &b, n));
    say_result("bind", syscall(SYS_bind, fd, &a, (long)n));
    say_result("listen", syscall(SYS_listen, fd, 5L));
    say_result("connect", syscall(SYS_connect, fd, &a, (long)n));
    must(syscall(SYS_pipe2, p, (long)O_CLOEXEC));
    for (int i = 0; i < 3; i++) {
        send_noise(fd, 0, 300), await_bytes(fd, 300);
        say("splice %ld", syscall(SYS_splice, fd, NULL, p[1], NULL, 300L, 0L));
        say("splice %ld", syscall(SYS_splice, p[0], NULL, fd, NULL, 300L, 0L));
        recv_noise(fd, 0, 300);
    }
    long file = must(syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/exe", (long)O_RDONLY));
    say("file %ld", syscall(SYS_sendfile, fd, file, NULL, 4L));
    recv_all(fd, buf, 4);
    say("%.3s", buf + 1);
    exchange(fd, 5);
}
WITH_ECHO(more_numbers)

/* Both ends of a connection by number, of a listener that is one by number. */
static void listens_server(int fd) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    long l = must(syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
    must(syscall(SYS_bind, l, &at, (long)n));
    must(syscall(SYS_listen, l, 5L));
    must(syscall(SYS_getsockname, l, &at, &n));
    long a = must(syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
    must(syscall(SYS_connect, a, &at, (long)n));
    long b = must(syscall(SYS_accept, l, NULL, NULL));
    for (int i = 0; i < 50; i++) {
        send_noise(a, 0, 100), recv_noise(b, 0, 100);
        send_noise(b, 0, 100), recv_noise(a, 0, 100);
    }
    must(syscall(SYS_close, a));
    char c;
    say_result("end", read(b, &c, 1));
    exchange(fd, 2);
}
WITH_ECHO(listens)

/* Children and images by number use what they inherit. */
static long child(int way) {
    uint64_t a[8] = {[4] = SIGCHLD};
    switch (way) {
#ifdef SYS_fork
    case 0:
        return syscall(SYS_fork);
#endif
    case 1:
        return syscall(SYS_clone3, a, sizeof a);
    default:
        return syscall(SYS_clone, (long)SIGCHLD, NULL, NULL, NULL, NULL);
    }
}
static void images_server(int fd) {
    char number[12], *argv[] = {"round", "image", number, NULL}, *some[] = {"LC_ALL=C", NULL};
    sprintf(number, "%d", fd);
    exchange(fd, 2);
    for (int i = 0; i < 6; i++) {
        long pid = must(child(i % 3));
        if (pid == 0) {
            exchange(fd, 5);
            int exe = must(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
            if (i < 3)
                syscall(SYS_execve, "/proc/self/exe", argv, environ);
            else if (i < 5)
                syscall(SYS_execveat, exe, "", argv, environ, (long)AT_EMPTY_PATH);
            else
                syscall(SYS_execve, "/proc/self/exe", argv, some);
            fail("execve");
        }
        say("ended well: %d", ended_well(pid));
        exchange(fd, 5);
    }
}
WITH_ECHO(images)

int main(int argc, char **argv) {
    if (argc > 2) {
        exchange(atoi(argv[2]), 20);
        return 0;
    }
    static const struct end_case cases[] = {CASE(names), CASE(found), CASE(vectors), CASE(prints), CASE(passes), CASE(asynchronous), CASE(submitted), CASE(standard), CASE(standard_by_dup),
      CASE(numbers), CASE(waits), CASE(made), CASE(cloned), CASE(more_numbers), CASE(listens), CASE(images)};
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
