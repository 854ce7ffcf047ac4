/* Images that a process starts, and what they have of its connection: most never touch it, some go on with it. */
#include "echo.h"
#include <spawn.h>
#include <sys/epoll.h>

extern char **environ;

/* This program again, as another image that works on `fd`. */
static pid_t start(const char *work, int fd, char **env) {
    char number[12];
    snprintf(number, sizeof number, "%d", fd);
    pid_t pid = must(fork());
    if (pid == 0) {
        execve("/proc/self/exe", (char *[]){"exec", "image", (char *)work, number, NULL}, env);
        _exit(9);
    }
    return pid;
}

static char *bare[] = {"PATH=/bin:/usr/bin", NULL};

/* What programs start all day. */
static void everything(int fd) {
    pid_t pid;
    char word[10] = "";
    char *argv[] = {"true", NULL};
    say("system: %d", system("exit 3"));
    exchange(fd, 5);
    FILE *f = popen("echo word", "r");
    say("popen: %s", fgets(word, sizeof word, f) ? "word" : "nothing");
    pclose(f);
    exchange(fd, 5);
    say("posix_spawn: %d", posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
    say("child: %d", ended_well(pid));
    exchange(fd, 5);
    say("posix_spawnp: %d", posix_spawnp(&pid, "true", NULL, NULL, argv, environ));
    say("child: %d", ended_well(pid));
    exchange(fd, 5);
    pid = must(fork());
    if (pid == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    say("child: %d", ended_well(pid));
    exchange(fd, 5);
    pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    say("child: %d", ended_well(pid));
    exchange(fd, 5);
    /* As a search along PATH does. */
    say_result("execve", execve("/no/such/program", argv, environ));
    exchange(fd, 5);
}
static void untouched_server(int fd) {
    everything(fd);
    everything(fd);
}
WITH_ECHO(untouched)

/* The same beside a thread that keeps the connection busy. */
static void *busy(void *arg) {
    exchange(*(int *)arg, 3000);
    return NULL;
}
static void untouched_busy_server(int fd) {
    pthread_t thread;
    pthread_create(&thread, NULL, busy, &fd);
    for (int i = 0; i < 10; i++) {
        say("system: %d", system("/bin/true; exit 2"));
        pid_t pid;
        char *argv[] = {"true", NULL};
        posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
        say("child: %d", ended_well(pid));
    }
    pthread_join(thread, NULL);
}
WITH_ECHO(untouched_busy)

/* Connections that are not carried yet when a program is started are carried afterwards. */
static void cold_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a, b;
    (void)fd;
    a = connect_to(&at);
    b = must(accept(l, NULL, NULL));
    say("system: %d", system("true"));
    for (int i = 0; i < 40; i++) {
        send_noise(a, i, 6400);
        recv_noise(b, i, 6400);
        send_noise(b, i, 6400);
        recv_noise(a, i, 6400);
    }
    close(a), close(b), close(l);
}
WITH_ECHO(cold)

/* A child that serves the connection, as its standard input and output. */
static pid_t serve(int fd, char **env) {
    pid_t pid = must(fork());
    if (pid == 0) {
        must(dup2(fd, 0)), must(dup2(fd, 1));
        close(fd);
        execve("/proc/self/exe", (char *[]){"exec", "image", "cat", NULL}, env);
        _exit(9);
    }
    return pid;
}
static void asker_client(int fd) {
    exchange(fd, 300);
    shutdown(fd, SHUT_WR);
    char c;
    say_result("end", read(fd, &c, 1));
}
static void served_server(int fd) {
    pid_t pid = serve(fd, environ);
    close(fd);
    say("child: %d", ended_well(pid));
}
#define served_client asker_client

static void served_bare_server(int fd) {
    pid_t pid = serve(fd, bare);
    close(fd);
    say("child: %d", ended_well(pid));
}
#define served_bare_client asker_client

/* By a child of vfork, which has copies that its parent does not have. */
static void served_vfork_server(int fd) {
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    pid_t pid = vfork();
    if (pid == 0) {
        int copy = dup(fd);
        dup2(copy, 0), dup2(0, 1);
        close(copy);
        execve("/proc/self/exe", (char *[]){"exec", "image", "cat", NULL}, environ);
        _exit(9);
    }
    close(fd);
    say("child: %d", ended_well(pid));
}
#define served_vfork_client asker_client

/* The shell hands it on, never using it itself. */
static void shell_number_server(int fd) {
    char command[200];
    snprintf(command, sizeof command, "true; /proc/%d/exe image echo %d", getpid(), fd);
    say("system: %d", system(command));
}
#define shell_number_client asker_client

static void shell_stdio_server(int fd) {
    char command[200];
    snprintf(command, sizeof command, "true; /proc/%d/exe image getchar <&%d >&%d", getpid(), fd, fd);
    say("system: %d", system(command));
}
#define shell_stdio_client asker_client

static void shell_server(int fd) {
    char command[200];
    snprintf(command, sizeof command, "true; /proc/%d/exe image cat <&%d >&%d", getpid(), fd, fd);
    int before = dup(1);
    say("system: %d", system(command));
    close(before);
}
#define shell_client asker_client

/* ... to a program without the library. */
static void shell_bare_server(int fd) {
    char command[200];
    snprintf(command, sizeof command, "true; env -i cat <&%d >&%d", fd, fd);
    say("system: %d", system(command));
}
#define shell_bare_client asker_client

/* With bytes unread, some of them taken by the former image. */
static void unread(int fd, char **env, const char *work) {
    await_peer();
    await_bytes(fd, 20000);
    recv_noise(fd, 0, 1000);
    pid_t pid = start(work, fd, env);
    close(fd);
    say("child: %d", ended_well(pid));
}
static void unread_server(int fd) { unread(fd, environ, "echo"); }
#define unread_client left_unread
static void unread_poll_server(int fd) { unread(fd, environ, "poll"); }
#define unread_poll_client left_unread
static void unread_epoll_server(int fd) { unread(fd, environ, "epoll"); }
#define unread_epoll_client left_unread
static void unread_select_server(int fd) { unread(fd, environ, "select"); }
#define unread_select_client left_unread
static void unread_stdio_server(int fd) { unread(fd, environ, "stdio"); }
#define unread_stdio_client left_unread
static void unread_again_server(int fd) { unread(fd, environ, "again"); }
#define unread_again_client left_unread
static void unread_bare_server(int fd) { unread(fd, environ, "bare"); }
#define unread_bare_client left_unread
static void unread_closing_server(int fd) { unread(fd, environ, "closing"); }
#define unread_closing_client left_unread

/* What a child of vfork does with its numbers before it executes. */
enum move { CLOSE, RANGE, LOOP, DUP3, NUMBER, AGAIN, OVER };

/* Children of vfork, which has its parent's memory and numbers of its own; `over` is one that it puts the connection in place of. */
static void vforked(int fd, enum move move, int over, char **env) {
    char number[12];
    char *argv[] = {"exec", "image", "cat", NULL, NULL};
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    pid_t pid = vfork();
    if (pid == 0) {
        int to = 0;
        if (move == NUMBER || move == AGAIN) {
            to = must(fcntl(fd, F_DUPFD, 50));
            close(fd);
        }
        if (move == AGAIN) {
            int again = must(fcntl(to, F_DUPFD, 60));
            close(to);
            to = again;
        }
        if (move == OVER)
            must(dup2(fd, to = over));
        if (to) {
            snprintf(number, sizeof number, "%d", to);
            argv[2] = "echo", argv[3] = number;
        } else if (move == DUP3) {
            must(dup3(fd, 0, 0)), must(dup3(fd, 1, 0));
        } else {
            must(dup2(fd, 0)), must(dup2(fd, 1));
        }
        if (move == RANGE)
            must(close_range(3, ~0u, 0));
        for (int i = 3; move == LOOP && i < 3000; i++)
            close(i);
        if (move != NUMBER && move != AGAIN)
            close(fd);
        execve("/proc/self/exe", argv, env);
        _exit(9);
    }
    close(fd);
    say("child: %d", ended_well(pid));
}
static void vfork_unread(int fd, enum move move, char **env) {
    await_peer();
    await_bytes(fd, 20000);
    recv_noise(fd, 0, 1000);
    vforked(fd, move, -1, env);
}
#define VFORKED(name, move, env)                                                                                       \
    static void name##_server(int fd) { vfork_unread(fd, move, env); }                                                 \
    static void name##_client(int fd) { left_unread(fd); }
VFORKED(vforked_close, CLOSE, environ)
VFORKED(vforked_close_bare, CLOSE, bare)
VFORKED(vforked_range, RANGE, environ)
VFORKED(vforked_range_bare, RANGE, bare)
VFORKED(vforked_loop, LOOP, environ)
VFORKED(vforked_dup3_bare, DUP3, bare)
VFORKED(vforked_number, NUMBER, environ)
VFORKED(vforked_number_bare, NUMBER, bare)
VFORKED(vforked_again, AGAIN, environ)
VFORKED(vforked_again_bare, AGAIN, bare)

/* In place of another connection, which its parent goes on with. */
static void vfork_over(int fd, char **env) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a = connect_to(&at), b = must(accept(l, NULL, NULL));
    for (int i = 0; i < 20; i++) {
        send_noise(a, i, 6400), recv_noise(b, i, 6400);
        send_noise(b, i, 6400), recv_noise(a, i, 6400);
    }
    send_noise(a, 7, 5000);
    await_peer();
    await_bytes(fd, 20000);
    recv_noise(fd, 0, 1000);
    vforked(fd, OVER, b, env);
    recv_noise(b, 7, 5000);
    send_noise(b, 8, 5000), recv_noise(a, 8, 5000);
    close(a), close(b), close(l);
}
static void vforked_over_server(int fd) { vfork_over(fd, environ); }
#define vforked_over_client left_unread
static void vforked_over_bare_server(int fd) { vfork_over(fd, bare); }
#define vforked_over_bare_client left_unread

/* An image in between that never uses it. */
static void unread_vforking_server(int fd) { unread(fd, environ, "vforking"); }
#define unread_vforking_client left_unread
static void unread_vforking_bare_server(int fd) { unread(fd, environ, "vforking bare"); }
#define unread_vforking_bare_client left_unread
static void unread_moved_server(int fd) { unread(fd, environ, "moved"); }
#define unread_moved_client left_unread

/* Images that get an epoll set, whose members they know by the program's data alone. */
enum way { FORK, VFORK, PASS };

static void show(const char *who, int ep) {
    struct epoll_event e = {0};
    int n = epoll_wait(ep, &e, 1, 10000);
    say("%s: %d %llx %x", who, n, (unsigned long long)e.data.u64, n > 0 ? e.events : 0);
}
static void set_for(int fd, enum way way, char **env) {
    char number[12], *argv[] = {"exec", "image", "set", number, NULL};
    int over[2], go[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, over)), must(pipe(go));
    must(dup2(go[1], 40));
    close(go[1]);
    pid_t pid = way == PASS ? must(fork()) : -1;
    if (pid == 0) {
        snprintf(number, sizeof number, "%d", receive_descriptor(over[1]));
        execve("/proc/self/exe", argv, env);
        _exit(9);
    }
    int ep = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x1234567};
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    for (int i = 0; i < 20; i++) {
        tell_peer();
        must(epoll_wait(ep, &e, 1, 10000));
        recv_noise(fd, i, 100);
        send_noise(fd, i, 100);
    }
    if (way == PASS)
        pass_descriptor(over[0], ep);
    else
        snprintf(number, sizeof number, "%d", ep);
    if (way == FORK)
        pid = must(fork());
    if (way == VFORK)
        pid = vfork();
    if (pid == 0) {
        execve("/proc/self/exe", argv, env);
        _exit(9);
    }
    close(40);
    char c;
    say("ready: %zd", read(go[0], &c, 1));
    tell_peer();
    say("child: %d", ended_well(pid));
    show("own", ep);
    recv_noise(fd, 20, 100);
    tell_peer();
    show("own", ep);
    recv_noise(fd, 21, 100);
}
static void asked(int fd) {
    for (int i = 0; i < 22; i++) {
        await_peer();
        send_noise(fd, i, 100);
        if (i < 20)
            recv_noise(fd, i, 100);
    }
    char c;
    say_result("end", read(fd, &c, 1));
}
#define SET_FOR(name, way, env)                                                                                        \
    static void name##_server(int fd) { set_for(fd, way, env); }                                                       \
    static void name##_client(int fd) { asked(fd); }
SET_FOR(set_forked, FORK, environ)
SET_FOR(set_forked_bare, FORK, bare)
SET_FOR(set_vforked, VFORK, environ)
SET_FOR(set_vforked_bare, VFORK, bare)
SET_FOR(set_passed, PASS, environ)
SET_FOR(set_passed_bare, PASS, bare)

/* The same image goes on as another one, its other threads wherever they are. */
static void *reader(void *arg) {
    char c;
    for (;;)
        recv(*(int *)arg, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return NULL;
}
static void in_place_server(int fd) {
    pid_t pid = must(fork());
    if (pid == 0) {
        pthread_t thread;
        await_peer();
        await_bytes(fd, 20000);
        recv_noise(fd, 0, 1000);
        pthread_create(&thread, NULL, reader, &fd);
        usleep(2000);
        char number[12];
        snprintf(number, sizeof number, "%d", fd);
        execl("/proc/self/exe", "exec", "image", "echo", number, NULL);
        _exit(9);
    }
    close(fd);
    say("child: %d", ended_well(pid));
}
#define in_place_client unread_client

/* Parent and image use the connection in turn. */
static void turns_server(int fd) {
    for (int i = 0; i < 4; i++) {
        exchange(fd, 20);
        say("child: %d", ended_well(start("turn", fd, environ)));
    }
    exchange(fd, 20);
}
WITH_ECHO(turns)

/* The parent closes first: the connection goes on with an image that has not used it yet. */
static void heir_server(int fd) {
    int p[2];
    must(pipe(p));
    must(dup2(p[0], 30));
    close(p[0]);
    fcntl(p[1], F_SETFD, FD_CLOEXEC);
    pid_t pid = start("late", fd, environ);
    close(fd);
    await_peer();
    /* New connections come and go meanwhile. */
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a, b;
    for (int i = 0; i < 5; i++) {
        warm_pair(&at, l, &a, &b);
        close(a), close(b);
    }
    must(write(p[1], "", 1));
    say("child: %d", ended_well(pid));
}
static void heir_client(int fd) {
    send_noise(fd, 0, 30000);
    tell_peer();
    recv_noise(fd, 0, 30000);
    shutdown(fd, SHUT_WR);
    char c;
    say_result("end", read(fd, &c, 1));
}

/* Images that use the connection, taking nothing, are killed at any moment; parent and peer notice nothing. */
static void killed_server(int fd) {
    unsigned seed = 1;
    for (int i = 0; i < 30; i++) {
        pid_t pid = start("pest", fd, environ);
        uint64_t end = now() + rand_r(&seed) % 20000 * 1000ull;
        do
            exchange(fd, 3);
        while (now() < end);
        kill(pid, SIGKILL);
        int status;
        must(waitpid(pid, &status, 0));
        if (!WIFSIGNALED(status))
            say("child: %d", status);
        exchange(fd, 3);
    }
}
static void killed_client(int fd) { echo_some(fd); }

static void bounded(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    if (poll(&p, 1, 10000) != 1)
        fail("poll");
}

static int image(const char *work, int fd) {
    char buf[4096];
    ssize_t n;
    if (strcmp(work, "cat") == 0) {
        while ((n = must(read(0, buf, sizeof buf))) > 0)
            send_all(1, buf, n);
        return 0;
    }
    if (strcmp(work, "getchar") == 0) {
        for (int c; (c = getchar()) != EOF;) {
            putchar(c);
            fflush(stdout);
        }
        return 0;
    }
    if (strcmp(work, "poll") == 0)
        bounded(fd);
    if (strcmp(work, "select") == 0) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        struct timeval t = {10, 0};
        if (select(fd + 1, &set, NULL, NULL, &t) != 1)
            fail("select");
    }
    if (strcmp(work, "epoll") == 0) {
        int ep = must(epoll_create1(EPOLL_CLOEXEC));
        struct epoll_event e = {.events = EPOLLIN, .data.u64 = 7};
        nonblocking(fd, 1);
        must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
        for (;;) {
            if (epoll_wait(ep, &e, 1, 10000) != 1 || e.data.u64 != 7)
                fail("epoll_wait");
            n = read(fd, buf, sizeof buf);
            if (n == 0)
                return 0;
            for (ssize_t done = 0; done < n;) {
                ssize_t r = write(fd, buf + done, n - done);
                if (r < 0 && errno != EAGAIN)
                    fail("write");
                done += r > 0 ? r : 0;
            }
        }
    }
    if (strcmp(work, "stdio") == 0) {
        FILE *f = fdopen(fd, "r+");
        for (int c, i = 0; (c = fgetc(f)) != EOF; i++) {
            if (i == 0)
                fseek(f, 0, SEEK_CUR);
            ungetc(c, f);
            break;
        }
        n = fread(buf, 1, 1, f);
        send_all(fd, buf, n);
        while ((n = fread(buf, 1, 1, f)) > 0)
            send_all(fd, buf, n);
        return 0;
    }
    if (strcmp(work, "again") == 0) {
        /* Another image after this one, by another number. */
        int other = must(fcntl(fd, F_DUPFD, 50));
        close(fd);
        pid_t pid = start("poll", other, environ);
        close(other);
        return !ended_well(pid);
    }
    if (strcmp(work, "bare") == 0) {
        pid_t pid = start("echo", fd, bare);
        close(fd);
        return !ended_well(pid);
    }
    if (strcmp(work, "vforking") == 0 || strcmp(work, "vforking bare") == 0) {
        vforked(fd, CLOSE, -1, work[8] ? bare : environ);
        return 0;
    }
    if (strcmp(work, "set") == 0) {
        must(write(40, "", 1));
        show("image", fd);
        return 0;
    }
    if (strcmp(work, "moved") == 0) {
        int other = must(dup(fd));
        close(fd);
        fd = other;
    }
    if (strcmp(work, "closing") == 0) {
        /* As daemons do, and descriptors of the library are in the way. */
        for (int i = 3; i < 1024; i++)
            if (i != fd)
                close(i);
    }
    if (strcmp(work, "turn") == 0) {
        sent = 1 << 20;
        exchange(fd, 20);
        return 0;
    }
    if (strcmp(work, "late") == 0) {
        must(read(30, buf, 1));
        close(30);
    }
    if (strcmp(work, "pest") == 0) {
        nonblocking(fd, 0);
        for (;;) {
            struct pollfd p = {fd, POLLIN, 0};
            recv(fd, buf, sizeof buf, MSG_PEEK | MSG_DONTWAIT);
            poll(&p, 1, 1);
        }
    }
    echo(fd);
    return 0;
}

int main(int argc, char **argv) {
    static const struct end_case cases[] = {
        CASE(untouched), CASE(untouched_busy), CASE(cold), CASE(served), CASE(served_bare), CASE(served_vfork), CASE(shell),
        CASE(shell_bare), CASE(shell_number), CASE(shell_stdio),
         CASE(unread), CASE(unread_poll), CASE(unread_epoll), CASE(unread_select), CASE(unread_stdio),
        CASE(unread_again), CASE(unread_bare), CASE(unread_closing), CASE(in_place), CASE(turns), CASE(heir), CASE(killed),
        CASE(vforked_close), CASE(vforked_close_bare), CASE(vforked_range), CASE(vforked_range_bare), CASE(vforked_loop),
        CASE(vforked_dup3_bare), CASE(vforked_number), CASE(vforked_number_bare), CASE(vforked_again), CASE(vforked_again_bare),
        CASE(vforked_over), CASE(vforked_over_bare), CASE(unread_vforking), CASE(unread_vforking_bare), CASE(unread_moved),
        CASE(set_forked), CASE(set_forked_bare), CASE(set_vforked), CASE(set_vforked_bare), CASE(set_passed), CASE(set_passed_bare)};
    if (argc > 2 && strcmp(argv[1], "image") == 0)
        return image(argv[2], argc > 3 ? atoi(argv[3]) : 0);
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
