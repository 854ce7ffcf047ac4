/* splice() out of a connection and into it, with what is in shared memory, in the kernel and in both; and sendfile() out of one. */
#include "common.h"
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

/* Splices to the end of the stream, checking; how much that was. */
static uint64_t splice_to_end(int fd, uint64_t at, int flags) {
    int p[2];
    char buf[65536];
    uint64_t total = 0;
    must(pipe(p));
    for (;;) {
        ssize_t n = splice(fd, NULL, p[1], NULL, 50000, flags);
        if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
            continue;
        }
        if (must(n) == 0)
            break;
        recv_all(p[0], buf, n);
        check(buf, at + total, n);
        total += n;
    }
    close(p[0]), close(p[1]);
    return total;
}

/* The peer sends, then half-closes and waits for an answer. */
static void half_closed_server(int fd) {
    wait_for(fd, POLLRDHUP);
    say("request of %llu", (unsigned long long)splice_to_end(fd, 0, 0));
    send_noise(fd, 0, 30000);
}
static void half_closed_client(int fd) {
    send_noise(fd, 0, 5000);
    must(shutdown(fd, SHUT_WR));
    say("answer of %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}

/* The reader stood still for so long that the writer went on by TCP: part of the stream is here, part there. */
static void stalled_server(int fd) {
    usleep(400000);
    say("all: %llu", (unsigned long long)splice_to_end(fd, 0, 0));
}
static void stalled_client(int fd) { send_noise(fd, 0, 1 << 20); }

static void stalled_nonblocking_server(int fd) {
    usleep(400000);
    nonblocking(fd, 1);
    say("all: %llu", (unsigned long long)splice_to_end(fd, 0, SPLICE_F_NONBLOCK | SPLICE_F_MOVE));
}
static void stalled_nonblocking_client(int fd) { send_noise(fd, 0, 1 << 20); }

/* A blocked splice() is woken; one that must not wait does not. */
static void waits_server(int fd) {
    int p[2];
    char c;
    must(pipe(p));
    nonblocking(fd, 1);
    say_result("nothing", splice(fd, NULL, p[1], NULL, 100, 0));
    say_result("nothing", splice(fd, NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
    nonblocking(fd, 0);
    for (int i = 0; i < 20; i++) {
        tell_peer();
        say_result("one", splice(fd, NULL, p[1], NULL, 100, 0));
        must(read(p[0], &c, 1));
        check(&c, i, 1);
    }
    tell_peer();
    say_result("end", splice(fd, NULL, p[1], NULL, 100, 0));
}
static void waits_client(int fd) {
    for (int i = 0; i < 20; i++) {
        await_peer();
        usleep(1000);
        send_noise(fd, i, 1);
    }
    await_peer();
    close(fd);
}

/* A pipe with little room takes what it can, and nothing is lost. */
static void narrow_server(int fd) {
    int p[2];
    char buf[65536];
    uint64_t at = 0;
    must(pipe(p));
    int room = must(fcntl(p[1], F_SETPIPE_SZ, 4096));
    await_bytes(fd, 100000);
    for (int n; at < 100000; at += n) {
        n = must(splice(fd, NULL, p[1], NULL, 50000, SPLICE_F_NONBLOCK));
        if (n > room)
            say("more than there is room: %d", n);
        ssize_t more = splice(fd, NULL, p[1], NULL, 50000, SPLICE_F_NONBLOCK);
        if (more > 0)
            n += more;
        else if (errno != EAGAIN)
            say_result("full", more);
        recv_all(p[0], buf, n);
        check(buf, at, n);
    }
    say_result("no pipe", splice(fd, NULL, must(memfd_create("file", 0)), NULL, 10, 0));
    loff_t offset = 0;
    say_result("an offset", splice(fd, &offset, p[1], NULL, 10, 0));
    tell_peer();
}
static void narrow_client(int fd) {
    send_noise(fd, 0, 100000);
    await_peer();
}

/* Into a connection, between ordinary writes. */
static void into_server(int fd) {
    int p[2];
    char buf[20000];
    uint64_t at = 0;
    must(pipe(p));
    for (int i = 0; i < 50; i++) {
        fill(buf, at, sizeof buf);
        send_all(p[1], buf, sizeof buf);
        for (size_t n = sizeof buf; n > 0;) {
            ssize_t r = must(splice(p[0], NULL, fd, NULL, n, SPLICE_F_MORE));
            n -= r, at += r;
        }
        send_noise(fd, at, 777);
        at += 777;
    }
    shutdown(fd, SHUT_WR);
    say("back: %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}
static void into_client(int fd) {
    say("all: %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    send_noise(fd, 0, 100);
}

/* An edge-triggered set is told when there is room again behind a connection that a splice has filled. */
static void into_full_server(int fd) {
    static char buf[4096];
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET}, told;
    int p[2], set = must(epoll_create1(0)), nonblocking = 1;
    must(pipe(p));
    must(ioctl(fd, FIONBIO, &nonblocking));
    must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say_result("at first", epoll_wait(set, &told, 1, 1000));
    for (ssize_t n = 0; n >= 0 || errno != EAGAIN;) {
        int held;
        must(ioctl(p[0], FIONREAD, &held));
        if (held == 0)
            send_all(p[1], buf, sizeof buf);
        n = splice(p[0], NULL, fd, NULL, sizeof buf, SPLICE_F_NONBLOCK);
    }
    say_result("full", epoll_wait(set, &told, 1, 0));
    tell_peer();
    say_result("room again", epoll_wait(set, &told, 1, 10000));
    say("events %x", told.events);
    shutdown(fd, SHUT_WR);
}
static void into_full_client(int fd) {
    await_peer();
    char buf[65536];
    while (must(recv(fd, buf, sizeof buf, 0)) > 0)
        ;
}

/* A proxy of one connection: back to where it came from. */
static void proxy_server(int fd) {
    int p[2];
    must(pipe(p));
    for (;;) {
        ssize_t n = must(splice(fd, NULL, p[1], NULL, 65536, SPLICE_F_MOVE));
        if (n == 0)
            break;
        while (n > 0)
            n -= must(splice(p[0], NULL, fd, NULL, n, SPLICE_F_MOVE));
    }
}
static void *writes(void *arg) {
    send_noise(*(int *)arg, 0, 4 << 20);
    shutdown(*(int *)arg, SHUT_WR);
    return NULL;
}
static void proxy_client(int fd) {
    pthread_t t;
    pthread_create(&t, NULL, writes, &fd);
    say("back: %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    pthread_join(t, NULL);
}

/* The C library reads a FILE by calls of its own. */
static void stdio_half_closed_server(int fd) {
    char buf[9000];
    wait_for(fd, POLLRDHUP);
    FILE *f = fdopen(fd, "r+");
    say("read %zu", fread(buf, 1, sizeof buf, f));
    check(buf, 0, 5000);
    say("end %d", !!feof(f));
    say_result("flush", fflush(f));
    clearerr(f);
    say("written %zu", fwrite(buf, 1, 3000, f));
    fclose(f);
}
static void stdio_half_closed_client(int fd) {
    send_noise(fd, 0, 5000);
    must(shutdown(fd, SHUT_WR));
    say("answer of %llu", (unsigned long long)recv_noise_to_end(fd, 0));
}
static void stdio_stalled_server(int fd) {
    static char buf[1 << 20];
    usleep(400000);
    FILE *f = fdopen(fd, "r");
    say("read %zu", fread(buf, 1, sizeof buf, f));
    check(buf, 0, sizeof buf);
    fclose(f);
}
static void stdio_stalled_client(int fd) { send_noise(fd, 0, 1 << 20); }

/* ---- sendfile() from a connection, which the kernel does into a pipe alone */
typedef ssize_t sending(int out, int from, off_t *offset, size_t n);
static ssize_t by_number(int out, int from, off_t *offset, size_t n) { return syscall(SYS_sendfile, out, from, offset, n); }

static void hears(int signal) { (void)signal; }
static void interrupt_soon(void) {
    struct sigaction a = {.sa_handler = hears};
    struct itimerval soon = {.it_value.tv_usec = 50000};
    must(sigaction(SIGALRM, &a, NULL));
    must(setitimer(ITIMER_REAL, &soon, NULL));
}

static void sent_to_end(int fd, sending *send) {
    int p[2];
    char buf[3000];
    uint64_t at = 0;
    must(pipe(p));
    wait_for(fd, POLLRDHUP);
    for (ssize_t n; (n = must(send(p[1], fd, NULL, sizeof buf))) > 0; at += n) {
        recv_all(p[0], buf, n);
        check(buf, at, n);
    }
    say("request of %llu", (unsigned long long)at);
    say_result("end", send(p[1], fd, NULL, 10));
    send_noise(fd, 0, 30000);
}
static void sendfile_half_closed_server(int fd) { sent_to_end(fd, sendfile); }
static void sendfile_by_number_server(int fd) { sent_to_end(fd, by_number); }
static void sendfile_half_closed_client(int fd) { half_closed_client(fd); }
static void sendfile_by_number_client(int fd) { half_closed_client(fd); }

static void sendfile_stalled_server(int fd) {
    int p[2];
    char buf[65536];
    uint64_t at = 0;
    must(pipe(p));
    usleep(400000);
    for (ssize_t n; (n = must(sendfile(p[1], fd, NULL, 50000))) > 0; at += n) {
        recv_all(p[0], buf, n);
        check(buf, at, n);
    }
    say("all: %llu", (unsigned long long)at);
}
static void sendfile_stalled_client(int fd) { send_noise(fd, 0, 1 << 20); }

/* Where it waits, and where it does not: the connection's O_NONBLOCK counts for its bytes, the pipe's for the pipe's room. */
static void sendfile_waits_server(int fd) {
    int p[2], narrow[2];
    char buf[8192];
    struct timeval limit = {.tv_usec = 50000}, none = {0};
    must(pipe(p));
    must(pipe(narrow));
    int room = must(fcntl(narrow[1], F_SETPIPE_SZ, 4096));
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    say_result("in the time", sendfile(p[1], fd, NULL, 100));
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
    interrupt_soon();
    say_result("interrupted", sendfile(p[1], fd, NULL, 100));
    nonblocking(fd, 1);
    say_result("nothing", sendfile(p[1], fd, NULL, 100));
    nonblocking(fd, 0);
    nonblocking(p[1], 1);
    for (int i = 0; i < 20; i++) {
        tell_peer();
        say_result("one", sendfile(p[1], fd, NULL, 100));
        recv_all(p[0], buf, 1);
        check(buf, i, 1);
    }
    tell_peer();
    await_bytes(fd, 10000);
    nonblocking(fd, 1);
    int n = must(sendfile(narrow[1], fd, NULL, 10000));
    if (n > room)
        say("more than there is room: %d", n);
    recv_all(narrow[0], buf, n);
    check(buf, 20, n);
    memset(buf, 0, room);
    send_all(narrow[1], buf, room);
    interrupt_soon();
    say_result("no room", sendfile(narrow[1], fd, NULL, 100));
    nonblocking(narrow[1], 1);
    say_result("no room now", sendfile(narrow[1], fd, NULL, 100));
    recv_noise(fd, 20 + n, 10000 - n);
    signal(SIGPIPE, SIG_IGN);
    close(p[0]);
    say_result("no reader", sendfile(p[1], fd, NULL, 100));
    tell_peer();
}
static void sendfile_waits_client(int fd) {
    for (int i = 0; i < 20; i++) {
        await_peer();
        usleep(1000);
        send_noise(fd, i, 1);
    }
    await_peer();
    send_noise(fd, 20, 10000);
    await_peer();
}

/* What is refused takes nothing. */
static void refuses(int fd, sending *send) {
    int p[2], pair[2], file = must(memfd_create("file", 0));
    off_t at = 0;
    must(pipe(p));
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    say_result("nothing", send(p[1], fd, NULL, 0));
    say_result("nothing into a file", send(file, fd, NULL, 0));
    say_result("nothing into itself", send(fd, fd, NULL, 0));
    say_result("a position", send(p[1], fd, &at, 10));
    say_result("nothing at a position", send(p[1], fd, &at, 0));
    at = -1;
    say_result("before the beginning", send(fd, fd, &at, 10));
    say_result("into a file", send(file, fd, NULL, 10));
    say_result("into a socket", send(pair[0], fd, NULL, 10));
    say_result("into itself", send(fd, fd, NULL, 10));
    say_result("into what is read", send(p[0], fd, NULL, 10));
    say_result("into nothing", send(-1, fd, NULL, 10));
    say_result("too much", send(p[1], fd, NULL, -1));
    say_result("too much by splice", splice(fd, NULL, p[1], NULL, -1, 0));
    say_result("copy_file_range", copy_file_range(fd, NULL, file, NULL, 10, 0));
    say_result("copy_file_range to it", copy_file_range(file, NULL, fd, NULL, 10, 0));
    say_result("tee", tee(fd, p[1], 10, 0));
    say_result("vmsplice", vmsplice(fd, &(struct iovec){&at, 8}, 1, 0));
}
static void sendfile_refused_server(int fd) {
    await_bytes(fd, 5000);
    refuses(fd, sendfile);
    refuses(fd, by_number);
    recv_noise(fd, 0, 5000);
    tell_peer();
}
static void sendfile_refused_client(int fd) {
    send_noise(fd, 0, 5000);
    await_peer();
}

CASES(CASE(half_closed), CASE(stalled), CASE(stalled_nonblocking), CASE(waits), CASE(narrow), CASE(into), CASE(into_full),
      CASE(proxy), CASE(stdio_half_closed), CASE(stdio_stalled), CASE(sendfile_half_closed),
      CASE(sendfile_by_number), CASE(sendfile_stalled), CASE(sendfile_waits), CASE(sendfile_refused))
