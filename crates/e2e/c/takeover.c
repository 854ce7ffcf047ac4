/* What a program may do while its connections are on their way from the kernel into shared memory. The moment is short, so
 * each case goes through it with many connections. */
#include "common.h"
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>

static int listener;
static struct sockaddr_in place;

/* The ends agree where the other connections of the case are made. */
static void serve_more(void) {
    listener = listen_somewhere(&place);
    must(write(to_peer, &place, sizeof place));
}
static void find_server(void) {
    if (read(from_peer, &place, sizeof place) != sizeof place)
        fail("the server's address");
}
static int next_connection(int server) { return server ? must(accept(listener, NULL, NULL)) : connect_to(&place); }

/* As ping_pong, but with a peer that may leave at any time. False: it did. */
static int exchange(int fd, int first, int rounds) {
    char buf[64];
    for (int i = 0; i < 2 * rounds; i++) {
        ssize_t n;
        if ((i + first) % 2)
            n = send(fd, buf, sizeof buf, MSG_NOSIGNAL);
        else
            n = recv(fd, buf, sizeof buf, MSG_WAITALL);
        if (n < 0 && errno == EINTR)
            i--;
        else if (n <= 0)
            return 0;
    }
    return 1;
}

/* A handler that looks into the very connection, forks, or leaves by a jump. */
static volatile int used = -1, may_jump;
static volatile sig_atomic_t looked, forked, jumped;
static sigjmp_buf away;
static void meddle(int n) {
    static int turn;
    char c;
    (void)n;
    int e = errno;
    if (++turn % 15 == 0) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
        forked++;
    } else if (turn % 5 == 0 && may_jump) {
        may_jump = 0;
        jumped++;
        siglongjmp(away, 1);
    } else if (used >= 0) {
        recv(used, &c, 1, MSG_PEEK | MSG_DONTWAIT);
        looked++;
    }
    errno = e;
}
static void meddled(int server) {
    struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
    struct sigaction a = {.sa_handler = meddle, .sa_flags = SA_RESTART};
    must(sigaction(SIGALRM, &a, NULL));
    for (volatile int i = 0; i < 1500; i++) {
        volatile int fd = next_connection(server);
        used = fd;
        must(setitimer(ITIMER_REAL, &often, NULL));
        if (sigsetjmp(away, 1) == 0) {
            may_jump = 1;
            exchange(fd, !server, 8);
        }
        may_jump = 0;
        used = -1;
        must(setitimer(ITIMER_REAL, &never, NULL));
        close(fd);
    }
    say("through, with handlers: %d", looked + forked + jumped > 10);
}
static void handler_server(int fd) {
    serve_more();
    meddled(1);
    send_noise(fd, 0, 100);
}
static void handler_client(int fd) {
    find_server();
    meddled(0);
    recv_noise(fd, 0, 100);
}

/* A thread closes a connection that another one uses. Later ones, with the same numbers, are not disturbed. */
static void *closes(void *arg) {
    int fd = *(int *)arg;
    for (volatile int i = rand() % 4000 + 1; i; i--) {
    }
    close(fd);
    return NULL;
}
static void closed(int server) {
    for (int i = 0; i < 600; i++) {
        int fd = next_connection(server);
        pthread_t t;
        if (i % 2 == server) {
            pthread_create(&t, NULL, closes, &fd);
            exchange(fd, !server, 6);
            pthread_join(t, NULL);
            continue;
        }
        exchange(fd, !server, 6);
        close(fd);
    }
    int fd = next_connection(server);
    ping_pong(fd, !server, 20);
    close(fd);
    say("done");
}
static void close_server(int fd) {
    serve_more();
    closed(1);
    send_noise(fd, 0, 100);
}
static void close_client(int fd) {
    find_server();
    closed(0);
    recv_noise(fd, 0, 100);
}

/* One thread sends a file while another takes the connection over by what it receives. */
#ifndef FILES
#define FILES 120
#endif
enum { PIECES = 60, PIECE = 700 };
static void *sends_file(void *arg) {
    int fd = *(int *)arg, file = must(memfd_create("file", MFD_CLOEXEC));
    static char bytes[PIECES * PIECE];
    fill(bytes, 0, sizeof bytes);
    must(write(file, bytes, sizeof bytes));
    off_t at = 0;
    while (at < (off_t)sizeof bytes)
        must(sendfile(fd, file, &at, PIECE));
    close(file);
    return NULL;
}
static void file_server(int fd) {
    serve_more();
    for (int i = 0; i < FILES; i++) {
        int one = next_connection(1);
        char c;
        pthread_t t;
        pthread_create(&t, NULL, sends_file, &one);
        while (read(one, &c, 1) == 1)
            must(write(one, "", 0));
        pthread_join(t, NULL);
        close(one);
    }
    send_noise(fd, 0, 100);
}
static void file_client(int fd) {
    find_server();
    for (int i = 0; i < FILES; i++) {
        int one = next_connection(0);
        for (int k = 0; k < PIECES; k++) {
            recv_noise(one, k * PIECE, PIECE);
            send_all(one, "x", 1);
        }
        close(one);
    }
    recv_noise(fd, 0, 100);
    say("files whole");
}

/* What a write said it took comes before the end of the stream that another thread makes of it. */
static void *shuts(void *arg) {
    for (volatile int i = rand() % 200000 + 1; i; i--) {
    }
    must(shutdown(*(int *)arg, SHUT_WR));
    return NULL;
}
static void shutdown_server(int fd) {
    serve_more();
    for (int i = 0; i < 200; i++) {
        int one = next_connection(1);
        uint64_t sent = 0;
        char buf[100];
        pthread_t t;
        ping_pong(one, 0, WARM);
        pthread_create(&t, NULL, shuts, &one);
        for (;;) {
            fill(buf, sent, sizeof buf);
            ssize_t n = send(one, buf, sizeof buf, MSG_NOSIGNAL);
            if (n < 0)
                break;
            sent += n;
        }
        pthread_join(t, NULL);
        must(write(to_peer, &sent, sizeof sent));
        await_peer();
        close(one);
    }
    send_noise(fd, 0, 100);
}
static void shutdown_client(int fd) {
    int lost = 0;
    find_server();
    for (int i = 0; i < 200; i++) {
        int one = next_connection(0);
        uint64_t sent = 0;
        ping_pong(one, 1, WARM);
        uint64_t got = recv_noise_to_end(one, 0);
        must(read(from_peer, &sent, sizeof sent));
        lost += got != sent;
        tell_peer();
        close(one);
    }
    recv_noise(fd, 0, 100);
    say("streams that were cut: %d", lost);
}

/* A server forks for a connection, and is late to close its own copy: the takeover follows at once. */
enum { SHARED_ROUNDS = 520, ALONE_ROUNDS = 100, ALONE_PIECE = 8192 };
static void late_parent_server(int fd) {
    int shared[2], closed[2], status;
    char c;
    serve_more();
    int one = next_connection(1);
    must(pipe(shared)), must(pipe(closed));
    pid_t child = must(fork());
    if (child == 0) {
        ping_pong(one, 0, SHARED_ROUNDS);
        must(write(shared[1], "", 1));
        must(read(closed[0], &c, 1));
        for (int i = 0; i < ALONE_ROUNDS; i++) {
            recv_noise(one, i, ALONE_PIECE);
            send_all(one, "x", 1);
        }
        exit(0);
    }
    must(read(shared[0], &c, 1));
    close(one);
    must(write(closed[1], "", 1));
    must(waitpid(child, &status, 0));
    say("child: %d", status);
    send_noise(fd, 0, 100);
}
static void late_parent_client(int fd) {
    find_server();
    int one = next_connection(0);
    char c;
    ping_pong(one, 1, SHARED_ROUNDS);
    for (int i = 0; i < ALONE_ROUNDS; i++) {
        send_noise(one, i, ALONE_PIECE);
        must(read(one, &c, 1));
    }
    close(one);
    recv_noise(fd, 0, 100);
}

/* A server finds what it reads for long, then waits for it in its set: the takeover follows at once. */
static void spin_receive(int fd, uint64_t at, size_t n) {
    char buf[ALONE_PIECE];
    for (size_t got = 0; got < n;) {
        ssize_t k = recv(fd, buf, n - got, 0);
        if (k < 0 && errno == EAGAIN)
            continue;
        check(buf, at + got, must(k));
        got += k;
    }
}
static void late_wait_server(int fd) {
    serve_more();
    int one = next_connection(1), set = must(epoll_create1(0));
    struct epoll_event e = {EPOLLIN, {.fd = one}};
    must(epoll_ctl(set, EPOLL_CTL_ADD, one, &e));
    must(fcntl(one, F_SETFL, O_NONBLOCK));
    for (int i = 0; i < SHARED_ROUNDS; i++) {
        spin_receive(one, 1000 + i, 64);
        send_noise(one, 1000 + i, 64);
    }
    must(epoll_wait(set, &e, 1, -1));
    for (int i = 0; i < ALONE_ROUNDS; i++) {
        spin_receive(one, i, ALONE_PIECE);
        send_all(one, "x", 1);
    }
    close(one);
    send_noise(fd, 0, 100);
}
static void late_wait_client(int fd) { late_parent_client(fd); }

CASES(CASE(handler), CASE(close), CASE(file), CASE(shutdown), CASE(late_parent), CASE(late_wait))
