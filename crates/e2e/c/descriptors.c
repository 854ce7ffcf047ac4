/* Descriptors of a connection that are copied, inherited, used by the C library's streams, closed in bulk or run out. */
#include "echo.h"
#include <sys/resource.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <dirent.h>

/* A number is as good as another, and the connection ends with the last. */
static void dups_server(int fd) {
    int a = must(dup(fd)), b = must(fcntl(fd, F_DUPFD_CLOEXEC, 50)), c = must(dup2(fd, 70)), d = must(dup3(fd, 71, O_CLOEXEC));
    say("numbers %d %d %d, flags %d %d", b >= 50, c, d, fcntl(b, F_GETFD), fcntl(d, F_GETFD));
    exchange(a, 3), exchange(b, 3);
    close(fd);
    exchange(c, 3), exchange(d, 3), exchange(a, 3);
    close(a), close(d);
    exchange(b, 3);
    say("dup2 over one of its own: %d", must(dup2(b, c)) == c);
    exchange(c, 3);
    close(b);
    exchange(c, 3);
    int null = must(open("/dev/null", O_RDWR));
    must(dup2(null, c)); /* closes the last */
    close(c), close(null);
    say_result("closed twice", close(c));
}
WITH_ECHO(dups)

/* Parent and child use one connection in turn, then only the child. */
static void fork_server(int fd) {
    int p[2];
    must(pipe(p));
    exchange(fd, 5);
    pid_t pid = must(fork());
    if (pid == 0) {
        exchange(fd, 5);
        must(write(p[1], "", 1));
        _exit(0);
    }
    char c;
    must(read(p[0], &c, 1));
    exchange(fd, 5);
    say("child: %d", ended_well(pid));
    exchange(fd, 5);
    pid = must(fork());
    if (pid == 0) {
        usleep(50000);
        exchange(fd, 20);
        _exit(0);
    }
    close(fd);
    say("child: %d", ended_well(pid));
}
WITH_ECHO(fork)

/* accept in the parent, everything else in a child; the way of fork servers. */
static void fork_per_connection_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    (void)fd;
    for (int i = 0; i < 5; i++) {
        pid_t client = must(fork());
        if (client == 0) {
            close(l);
            int c = connect_to(&at);
            exchange(c, 40);
            shutdown(c, SHUT_WR);
            char b;
            _exit(read(c, &b, 1) != 0);
        }
        int s = must(accept(l, NULL, NULL));
        pid_t child = must(fork());
        if (child == 0) {
            char buf[1000];
            ssize_t n;
            close(l);
            while ((n = must(read(s, buf, sizeof buf))) > 0)
                send_all(s, buf, n);
            exit(0);
        }
        close(s);
        say("%d %d", ended_well(client), ended_well(child));
    }
}
static void fork_per_connection_client(int fd) { (void)fd; }

/* A child of vfork closes and execs; the parent's connection does not notice. */
static void vfork_server(int fd) {
    for (int i = 0; i < 3; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            close(fd);
            for (int n = 3; n < 1024; n++)
                close(n);
            execl("/bin/true", "true", NULL);
            _exit(9);
        }
        say("child: %d", ended_well(pid));
        exchange(fd, 10);
    }
}
WITH_ECHO(vfork)

/* The C library's streams on a connection. */
static void stdio_server(int fd) {
    FILE *f = fdopen(fd, "r+");
    char line[200];
    for (int i = 0; i < 20; i++) {
        assert(fgets(line, sizeof line, f));
        fseek(f, 0, SEEK_CUR);
        fprintf(f, "%d: %s", i, line);
        fflush(f);
    }
    fclose(f);
}
static void lines(int fd) {
    char buf[200];
    for (int i = 0; i < 20; i++) {
        char want[200];
        int n = snprintf(buf, sizeof buf, "line number %d\n", i);
        send_all(fd, buf, n);
        n = snprintf(want, sizeof want, "%d: line number %d\n", i, i);
        recv_all(fd, buf, n);
        assert(memcmp(buf, want, n) == 0);
    }
    say("end %zd", read(fd, buf, 1));
}
static void stdio_client(int fd) { lines(fd); }

static void dprintf_server(int fd) {
    char buf[200];
    for (int i = 0; i < 20; i++) {
        ssize_t n = must(read(fd, buf, 199));
        buf[n] = 0;
        dprintf(fd, "%d: %s", i, buf);
    }
    close(fd);
}
static void dprintf_client(int fd) { lines(fd); }

/* A reader that is blocked when its peer moves to a stream of the C library. */
static void stdio_later_server(int fd) {
    send_noise(fd, 0, 100);
    FILE *f = fdopen(fd, "r+");
    await_peer();
    usleep(50000);
    fputc('z', f);
    fflush(f);
    say("back: %c", fgetc(f));
    fclose(f);
}
static void stdio_later_client(int fd) {
    char c;
    recv_noise(fd, 0, 100);
    tell_peer();
    say_result("z", read(fd, &c, 1));
    send_all(fd, &c, 1);
    say_result("end", read(fd, &c, 1));
}

/* A FILE that is there before its connection, and reads what answers to calls of other kinds. */
static void stdio_early_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    int s = must(accept(l, NULL, NULL));
    close(l);
    for (int i = 0; i < 40; i++)
        recv_noise(s, i, 100);
    send_noise(s, 0, 5000);
    char c;
    say_result("more", read(s, &c, 1));
    send_noise(s, 5000, 3000);
    shutdown(s, SHUT_WR);
    say_result("end", read(s, &c, 1));
    close(s);
}
static void stdio_early_client(int fd) {
    struct sockaddr_in at;
    static char all[9000];
    recv_all(fd, &at, sizeof at);
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    FILE *f = fdopen(s, "r+");
    must(connect(fileno(f), (struct sockaddr *)&at, sizeof at));
    for (int i = 0; i < 40; i++) {
        send_noise(s, i, 100);
        usleep(500);
    }
    say("read: %zu", fread(all, 1, 5000, f));
    fputc('m', f);
    fflush(f);
    say("read: %zu", fread(all + 5000, 1, sizeof all - 5000, f));
    check(all, 0, 8000);
    fclose(f);
}

/* Close-all loops, as daemons do, spare nothing that the connection needs. */
static void close_all_server(int fd) {
    must(dup2(from_peer, 40)), must(dup2(to_peer, 41)), must(dup2(fd, 42));
    exchange(42, 5);
    for (int n = 3; n < 40; n++)
        close(n);
    for (int n = 43; n < (int)sysconf(_SC_OPEN_MAX) && n < 70000; n++)
        close(n);
    exchange(42, 20);
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(d));)
        if (atoi(e->d_name) > 42 && atoi(e->d_name) != dirfd(d))
            close(atoi(e->d_name));
    closedir(d);
    exchange(42, 20);
    say_result("close_range", close_range(43, ~0u, 0));
    exchange(42, 20);
    closefrom(43);
    exchange(42, 20);
    /* New connections work afterwards. */
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a, b;
    warm_pair(&at, l, &a, &b);
    send_noise(a, 0, 1000);
    recv_noise(b, 0, 1000);
    say_result("close_range of all", close_range(42, 42, 0));
}
WITH_ECHO(close_all)

/* dup2 onto many numbers, where the limit leaves room for the library's beyond them. */
static void dup2_high_server(int fd) {
    int good = 0;
    for (int n = 60; n < 1000; n++)
        good += dup2(1, n) == n;
    say("numbers taken: %d", good);
    exchange(fd, 20);
    for (int n = 60; n < 1000; n++)
        close(n);
    exchange(fd, 20);
}
WITH_ECHO(dup2_high)

/* With few descriptors left everything still works, by whatever path, and the program has all that it is due. */
static void few_server(int fd) {
    struct rlimit few = {40, 40};
    struct sockaddr_in at;
    must(setrlimit(RLIMIT_NOFILE, &few));
    int l = listen_somewhere(&at), a[40], b[40], n = 0;
    for (;;) {
        a[n] = socket(AF_INET, SOCK_STREAM, 0);
        if (a[n] < 0)
            break;
        if (connect(a[n], (struct sockaddr *)&at, sizeof at) < 0)
            fail("connect");
        b[n] = accept(l, NULL, NULL);
        if (b[n] < 0) {
            close(a[n]);
            break;
        }
        for (int i = 0; i < WARM; i++) {
            send_noise(a[n], i, 64);
            recv_noise(b[n], i, 64);
            send_noise(b[n], i, 64);
            recv_noise(a[n], i, 64);
        }
        n++;
    }
    say("enough connections: %d, %s", n >= 12, strerrorname_np(errno));
    for (int i = 0; i < n; i++)
        close(a[i]), close(b[i]);
    exchange(fd, 20);
}
WITH_ECHO(few)

/* A copy of a descriptor of this process, by the way of those of another's. */
static void fetch_server(int fd) {
    int self = must(pidfd_open(getpid(), 0)), copy = must(pidfd_getfd(self, fd, 0));
    say("flags %d", fcntl(copy, F_GETFD));
    exchange(fd, 3), exchange(copy, 3);
    close(fd);
    exchange(copy, 3);
    fd = must(syscall(SYS_pidfd_getfd, self, (long)copy, 0L));
    exchange(fd, 3);
    close(copy);
    exchange(fd, 20);
    say_result("closed", pidfd_getfd(self, copy, 0));
}
WITH_ECHO(fetch)

/* The copy is from a child, which has the connection by fork, and by a number that is not its parent's any more. */
static void fetch_child_server(int fd) {
    int other = must(dup2(fd, 77)), p[2];
    must(pipe(p));
    pid_t pid = must(fork());
    if (pid == 0) {
        char c;
        close(p[1]);
        close(fd);
        _exit(read(p[0], &c, 1) != 0);
    }
    close(p[0]);
    exchange(fd, 3);
    close(other);
    int child = must(pidfd_open(pid, 0)), copy = must(pidfd_getfd(child, 77, 0));
    exchange(copy, 3);
    close(fd);
    exchange(copy, 20);
    close(p[1]);
    say("child: %d", ended_well(pid));
    exchange(copy, 20);
    close(copy);
}
WITH_ECHO(fetch_child)

/* Who has no part in the connection takes a copy, which holds it open. */
static void fetch_elsewhere_server(int fd) {
    int to[2], from[2];
    char c;
    must(pipe(to)), must(pipe(from));
    pid_t pid = must(fork());
    if (pid == 0) {
        int numbers[2], peer;
        struct sockaddr_in at;
        socklen_t len = sizeof at;
        close(fd), close(to[1]), close(from[0]);
        must(read(to[0], numbers, sizeof numbers));
        int parent = must(pidfd_open(getppid(), 0)), copy = must(pidfd_getfd(parent, numbers[0], 0));
        must(write(from[1], "", 1));
        peer = getpeername(copy, (struct sockaddr *)&at, &len) == 0 && ntohs(at.sin_port) == numbers[1];
        must(read(to[0], &c, 1));
        _exit(!peer);
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    close(to[0]), close(from[1]);
    struct sockaddr_in at;
    int l = listen_somewhere(&at), a = must(socket(AF_INET, SOCK_STREAM, 0));
    socklen_t len = sizeof at;
    must(connect(a, (struct sockaddr *)&at, sizeof at));
    int b = must(accept(l, NULL, NULL));
    for (int i = 0; i < WARM; i++) {
        send_noise(a, i, 64), recv_noise(b, i, 64);
        send_noise(b, i, 64), recv_noise(a, i, 64);
    }
    must(getpeername(b, (struct sockaddr *)&at, &len));
    must(write(to[1], ((int[]){b, ntohs(at.sin_port)}), 2 * sizeof(int)));
    must(read(from[0], &c, 1));
    for (int i = 0; i < WARM; i++) {
        send_noise(a, i, 6400), recv_noise(b, i, 6400);
        send_noise(b, i, 6400), recv_noise(a, i, 6400);
    }
    send_noise(b, 0, 100);
    close(b);
    recv_noise(a, 0, 100);
    nonblocking(a, 1);
    say_result("held open", read(a, &c, 1));
    nonblocking(a, 0);
    close(to[1]);
    say_result("end", read(a, &c, 1));
    say("child: %d", ended_well(pid));
    exchange(fd, 20);
}
WITH_ECHO(fetch_elsewhere)

int main(int argc, char **argv) {
    static const struct end_case cases[] = {
      CASE(dups), CASE(fetch), CASE(fetch_child), CASE(fetch_elsewhere), CASE(fork), CASE(fork_per_connection), CASE(vfork),
      CASE(stdio), CASE(dprintf), CASE(stdio_later), CASE(stdio_early), CASE(close_all), CASE(dup2_high), CASE(few)};
    struct rlimit limit;
    if (argc > 1 && strcmp(argv[1], "dup2_high") == 0) {
        must(getrlimit(RLIMIT_NOFILE, &limit));
        limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
        must(setrlimit(RLIMIT_NOFILE, &limit));
    }
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
