/* Two processes and a loopback TCP connection between them: what every case in this folder starts from.
 *
 * A case is a pair of functions, one for each end. Both ends first play ping-pong, so that where the library is loaded each
 * direction is in shared memory when the case begins. What a case says is printed at the end, the server's words first: it
 * must be the same natively and accelerated. */
#pragma once

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "thread_state.h"

#define UNUSED __attribute__((unused))
#define MS 1000000ull

struct end_case {
    const char *name;
    void (*server)(int fd);
    void (*client)(int fd);
};

/* Pipes between the ends, beside the connection. */
static int to_peer, from_peer;
static pid_t peer_pid;

UNUSED static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

#define must(call) ({ __typeof__(call) r_ = (call); if (r_ < 0) fail(#call); r_; })

/* One line of the comparison. */
UNUSED static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* A result and, if it is negative, its errno. */
UNUSED static void say_result(const char *what, long r) {
    if (r < 0)
        say("%s: %s", what, strerrorname_np(errno));
    else
        say("%s: %ld", what, r);
}

/* The other end gets past its next await_peer(). */
UNUSED static void tell_peer(void) { must(write(to_peer, "", 1)); }

UNUSED static void await_peer(void) {
    char c;
    struct pollfd p = {from_peer, POLLIN, 0};
    while (poll(&p, 1, 20000) < 0 && errno == EINTR) {
    }
    if (!p.revents)
        fail("the other end is stuck");
    if (read(from_peer, &c, 1) != 1)
        fail("the other end has gone");
}

UNUSED static void together(void) {
    tell_peer();
    await_peer();
}

UNUSED static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

UNUSED static void await_sleep(const volatile int *thread) {
    for (uint64_t stop = now() + 20000 * MS; *thread == 0 || state_of(*thread) != 'S'; usleep(1000))
        if (now() > stop)
            fail("it does not sleep");
}

/* A thread that has gone to sleep in what it runs. */
struct sleeper {
    void *(*run)(void *);
    void *arg;
    volatile int thread;
};
UNUSED static void *run_sleeper(void *arg) {
    struct sleeper s = *(struct sleeper *)arg;
    ((struct sleeper *)arg)->thread = syscall(SYS_gettid);
    return s.run(s.arg);
}
UNUSED static pthread_t start_sleeper(void *(*run)(void *), void *arg) {
    struct sleeper s = {run, arg, 0};
    pthread_t t;
    must(-pthread_create(&t, NULL, run_sleeper, &s));
    await_sleep(&s.thread);
    return t;
}

/* Byte `at` of a stream that both ends know. */
UNUSED static unsigned char noise(uint64_t at) {
    uint64_t x = at * 0x9e3779b97f4a7c15ull;
    return (x >> 56) ^ (x >> 31) ^ at;
}

UNUSED static void fill(void *to, uint64_t at, size_t n) {
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = noise(at + i);
}

/* Checks bytes of that stream; a wrong one ends the program. */
UNUSED static void check(const void *from, uint64_t at, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)from)[i] != noise(at + i)) {
            fprintf(stderr, "wrong byte at %llu\n", (unsigned long long)(at + i));
            fflush(stdout);
            _exit(1);
        }
}

UNUSED static void send_all(int fd, const void *from, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t r = write(fd, (const char *)from + done, n - done);
        if (r < 0 && errno == EINTR)
            continue;
        done += must(r);
    }
}

UNUSED static void recv_all(int fd, void *to, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t r = read(fd, (char *)to + done, n - done);
        if (r < 0 && errno == EINTR)
            continue;
        if (r == 0) {
            errno = 0;
            fail("early end of stream");
        }
        done += must(r);
    }
}

/* Sends or receives a piece of the known stream. */
UNUSED static void send_noise(int fd, uint64_t at, size_t n) {
    char buf[16384];
    while (n > 0) {
        size_t k = n < sizeof buf ? n : sizeof buf;
        fill(buf, at, k);
        send_all(fd, buf, k);
        at += k, n -= k;
    }
}

UNUSED static void recv_noise(int fd, uint64_t at, size_t n) {
    char buf[16384];
    while (n > 0) {
        size_t k = n < sizeof buf ? n : sizeof buf;
        recv_all(fd, buf, k);
        check(buf, at, k);
        at += k, n -= k;
    }
}

/* Reads the known stream to its end and returns how much there was. */
UNUSED static uint64_t recv_noise_to_end(int fd, uint64_t at) {
    char buf[16384];
    uint64_t total = 0;
    for (;;) {
        ssize_t r = read(fd, buf, sizeof buf);
        if (r < 0 && errno == EINTR)
            continue;
        if (must(r) == 0)
            return total;
        check(buf, at + total, r);
        total += r;
    }
}

/* Bounded wait for events on one descriptor; the events that came. */
UNUSED static int wait_for(int fd, int events) {
    struct pollfd p = {fd, events, 0};
    int n;
    do
        n = poll(&p, 1, 10000);
    while (n < 0 && errno == EINTR);
    if (n == 0) {
        errno = ETIMEDOUT;
        fail("wait_for");
    }
    return p.revents;
}

/* Waits until `n` bytes can be read without blocking. */
UNUSED static void await_bytes(int fd, int n) {
    int have = 0;
    for (uint64_t end = now() + 10000 * MS; have < n && now() < end;) {
        must(ioctl(fd, FIONREAD, &have));
        usleep(100);
    }
    if (have < n) {
        errno = ETIMEDOUT;
        fail("await_bytes");
    }
}

UNUSED static void nonblocking(int fd, int on) {
    int flags = must(fcntl(fd, F_GETFL));
    must(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

/* Writes until the connection takes no more; how much that was. Natively the kernel moves bytes on from the sender's to the
 * receiver's buffer, so full means full for a while. */
UNUSED static uint64_t send_until_full(int fd, uint64_t at) {
    char buf[8192];
    uint64_t total = 0;
    nonblocking(fd, 1);
    for (;;) {
        fill(buf, at + total, sizeof buf);
        ssize_t r = write(fd, buf, sizeof buf);
        if (r < 0 && errno == EAGAIN) {
            struct pollfd p = {fd, POLLOUT, 0};
            if (poll(&p, 1, 50) == 0)
                break;
            continue;
        }
        total += must(r);
    }
    return total;
}

UNUSED static void ping_pong(int fd, int first, int rounds) {
    char buf[64];
    int one = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    for (int i = 0; i < rounds; i++) {
        if (first)
            send_noise(fd, 1000 + i, sizeof buf);
        recv_noise(fd, 1000 + i, sizeof buf);
        if (!first)
            send_noise(fd, 1000 + i, sizeof buf);
    }
}

UNUSED static int listen_somewhere(struct sockaddr_in *at) {
    socklen_t len = sizeof *at;
    int l = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(l, (struct sockaddr *)at, sizeof *at));
    must(listen(l, 512));
    must(getsockname(l, (struct sockaddr *)at, &len));
    return l;
}

UNUSED static int connect_to(const struct sockaddr_in *at) {
    int fd = must(socket(AF_INET, SOCK_STREAM, 0));
    must(connect(fd, (const struct sockaddr *)at, sizeof *at));
    return fd;
}

enum { WARM = 12 };

/* Both ends of a warm connection inside this process. */
UNUSED static void warm_pair(const struct sockaddr_in *at, int l, int *client, int *server) {
    *client = connect_to(at);
    *server = must(accept(l, NULL, NULL));
    for (int i = 0; i < WARM; i++) {
        send_noise(*client, i, 64);
        recv_noise(*server, i, 64);
        send_noise(*server, i, 64);
        recv_noise(*client, i, 64);
    }
}

/* One more connection, that nothing has gone by yet; `fd` tells the other end where it is. */
UNUSED static int second_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    int s = must(accept(l, NULL, NULL));
    close(l);
    return s;
}

/* SCM_RIGHTS. */
UNUSED static ssize_t try_to_pass(int over, int fd) {
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr m = {.msg_iov = &(struct iovec){"", 1}, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    return sendmsg(over, &m, 0);
}
UNUSED static void pass_descriptor(int over, int fd) { must(try_to_pass(over, fd)); }
UNUSED static int receive_descriptor(int over) {
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct msghdr m = {.msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    int fd = -1;
    must(recvmsg(over, &m, 0));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c == NULL) {
        errno = 0;
        fail("nothing was passed");
    }
    memcpy(&fd, CMSG_DATA(c), sizeof(int));
    return fd;
}

/* Runs one case in two processes; the program's exit status. */
UNUSED static int run_case(const struct end_case *c) {
    int up[2], down[2];
    struct sockaddr_in at;
    must(pipe2(up, O_CLOEXEC));
    must(pipe2(down, O_CLOEXEC));
    int l = listen_somewhere(&at);
    int file = must(memfd_create("words", MFD_CLOEXEC));
    must(ftruncate(file, 1 << 16));
    const char *words = mmap(NULL, 1 << 16, PROT_READ, MAP_SHARED, file, 0);
    signal(SIGPIPE, SIG_IGN);
    pid_t parent = getpid();
    pid_t pid = must(fork());
    if (pid == 0) {
        close(l), close(up[0]), close(down[1]);
        must(dup2(file, 1));
        to_peer = up[1], from_peer = down[0], peer_pid = parent;
        int fd = connect_to(&at);
        ping_pong(fd, 1, WARM);
        c->client(fd);
        fflush(stdout);
        exit(0);
    }
    close(up[1]), close(down[0]), close(file);
    to_peer = down[1], from_peer = up[0], peer_pid = pid;
    int fd = must(accept(l, NULL, NULL));
    close(l);
    ping_pong(fd, 0, WARM);
    c->server(fd);
    close(fd);
    int status = 0;
    must(waitpid(pid, &status, 0));
    fputs(words, stdout);
    if (WIFSIGNALED(status))
        say("client: signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        say("client: status %d", WEXITSTATUS(status));
    fflush(stdout);
    return WIFEXITED(status) && WEXITSTATUS(status) ? 1 : 0;
}

UNUSED static int run_named(int argc, char **argv, const struct end_case *cases, size_t n) {
    for (size_t i = 0; argc > 1 && i < n; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            return run_case(&cases[i]);
    for (size_t i = 0; i < n; i++)
        puts(cases[i].name);
    return 2;
}

#define CASES(...)                                                                                                     \
    int main(int argc, char **argv) {                                                                                  \
        static const struct end_case cases[] = {__VA_ARGS__};                                                          \
        return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);                                           \
    }
#define CASE(name) {#name, name##_server, name##_client}
