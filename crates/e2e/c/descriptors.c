/* Descriptors of a connection that are copied, inherited, passed on, closed in bulk or run out. */
#include "echo.h"
#include <spawn.h>
#include <sys/resource.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <dirent.h>

extern char **environ;

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

/* Programs that inherit the descriptor by accident never touch it; the parent goes on. */
static void system_server(int fd) {
    for (int i = 0; i < 2; i++) {
        exchange(fd, 10);
        say("system: %d", system("exit 3"));
        exchange(fd, 10);
        FILE *f = popen("echo word", "r");
        char word[10] = "";
        say("popen: %s", fgets(word, sizeof word, f) ? "word" : "nothing");
        pclose(f);
        exchange(fd, 10);
        pid_t pid;
        char *argv[] = {"true", NULL};
        say("posix_spawn: %d", posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
        say("child: %d", ended_well(pid));
        exchange(fd, 10);
    }
}
WITH_ECHO(system)

/* Programs that are meant to use it, without the library: as standard input and output. */
static char *bare_environment[] = {"PATH=/bin:/usr/bin", NULL};

static void spawn_cat(int fd, char **env) {
    posix_spawn_file_actions_t actions;
    char *argv[] = {"cat", NULL};
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    say("spawn: %d", posix_spawn(&pid, "/bin/cat", &actions, NULL, argv, env));
    close(fd);
    say("child: %d", ended_well(pid));
}
static void asker(int fd) {
    exchange(fd, 30);
    shutdown(fd, SHUT_WR);
    char c;
    say_result("end", read(fd, &c, 1));
}
static void spawn_bare_server(int fd) { spawn_cat(fd, bare_environment); }
static void spawn_bare_client(int fd) { asker(fd); }
static void spawn_server(int fd) {
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    spawn_cat(fd, environ);
}
static void spawn_client(int fd) { asker(fd); }
static void spawn_bare_cloexec_server(int fd) {
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    spawn_cat(fd, bare_environment);
}
static void spawn_bare_cloexec_client(int fd) { asker(fd); }

enum how { EXECVE, EXECL, VFORK_EXECVE };
static void exec_cat(int fd, enum how how, char **env) {
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    pid_t pid = must(how == VFORK_EXECVE ? vfork() : fork());
    if (pid == 0) {
        dup2(fd, 0);
        dup2(fd, 1);
        if (how == EXECL)
            execle("/bin/cat", "cat", NULL, env);
        else
            execve("/bin/cat", (char *[]){"cat", NULL}, env);
        _exit(9);
    }
    close(fd);
    say("child: %d", ended_well(pid));
}
static void exec_bare_server(int fd) { exec_cat(fd, EXECVE, bare_environment); }
static void exec_bare_client(int fd) { asker(fd); }
static void exec_server(int fd) { exec_cat(fd, EXECVE, environ); }
static void exec_client(int fd) { asker(fd); }
static void execl_bare_server(int fd) { exec_cat(fd, EXECL, bare_environment); }
static void execl_bare_client(int fd) { asker(fd); }
static void vfork_exec_server(int fd) { exec_cat(fd, VFORK_EXECVE, environ); }
static void vfork_exec_client(int fd) { asker(fd); }
static void vfork_exec_bare_server(int fd) { exec_cat(fd, VFORK_EXECVE, bare_environment); }
static void vfork_exec_bare_client(int fd) { asker(fd); }

/* exec with data unread in the ring: the next image, without the library, reads it all, in order. */
static void exec_unread_server(int fd) {
    await_peer();
    await_bytes(fd, 20000);
    recv_noise(fd, 0, 1000);
    exec_cat(fd, EXECVE, bare_environment);
}
#define exec_unread_client left_unread

/* A failed exec changes nothing. */
static void exec_fails_server(int fd) {
    exchange(fd, 10);
    say_result("execve", execve("/no/such/program", (char *[]){"x", NULL}, environ));
    exchange(fd, 10);
}
WITH_ECHO(exec_fails)

/* An exec closes a connection with something unread: that resets it, unless the exec fails. */
static void exec_resets_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    pid_t pid = must(fork());
    if (pid == 0) {
        int s = must(accept4(l, NULL, NULL, SOCK_CLOEXEC));
        ping_pong(s, 0, WARM);
        await_bytes(s, 1000);
        execve("/no/such/program", (char *[]){"x", NULL}, environ);
        recv_noise(s, 0, 500);
        send_noise(s, 0, 100);
        execve("/proc/self/exe", (char *[]){"descriptors", "nothing", NULL}, environ);
        _exit(9);
    }
    close(l);
    say("child: %d", ended_well(pid));
    tell_peer();
    recv_noise_to_end(fd, 0);
}
static void exec_resets_client(int fd) {
    struct sockaddr_in at;
    char c;
    recv_all(fd, &at, sizeof at);
    int s = connect_to(&at);
    ping_pong(s, 1, WARM);
    send_noise(s, 0, 1000);
    recv_noise(s, 0, 100);
    await_peer();
    say("told: %x", wait_for(s, POLLIN | POLLOUT | POLLRDHUP) & (POLLERR | POLLHUP));
    say_result("read", read(s, &c, 1));
    close(s);
}

/* SCM_RIGHTS to a process without the library, which goes on with the stream. */
/* Run as another image: takes a descriptor from its standard input and echoes. */
static int stranger(void) {
    int fd = receive_descriptor(0);
    char buf[1000];
    ssize_t n;
    while ((n = must(read(fd, buf, sizeof buf))) > 0)
        send_all(fd, buf, n);
    return 0;
}
static void pass_to_stranger(int fd, char **env, int keep) {
    int s[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
    pid_t pid = must(fork());
    if (pid == 0) {
        must(dup2(s[0], 0));
        execve("/proc/self/exe", (char *[]){"descriptors", "stranger", NULL}, env);
        _exit(9);
    }
    close(s[0]);
    await_peer();
    await_bytes(fd, 20000);
    recv_noise(fd, 0, 1000);
    pass_descriptor(s[1], fd);
    if (!keep)
        close(fd);
    say("child: %d", ended_well(pid));
    if (keep)
        close(fd);
}
static void pass_server(int fd) { pass_to_stranger(fd, bare_environment, 0); }
static void pass_client(int fd) { exec_unread_client(fd); }
static void pass_keep_server(int fd) { pass_to_stranger(fd, bare_environment, 1); }
static void pass_keep_client(int fd) { exec_unread_client(fd); }
static void pass_known_server(int fd) { pass_to_stranger(fd, environ, 0); }
static void pass_known_client(int fd) { exec_unread_client(fd); }

/* The same, where the ring holds bytes that the peer can't take back now: it has ended its sending, is busy elsewhere, or has gone
 * on by TCP behind them. A stranger that reads `n` bytes and checks them, says so to who started it, and sends them back if
 * they are not too many. */
static int reader(size_t n) {
    static char buf[1 << 20];
    int fd = receive_descriptor(0);
    recv_all(fd, buf, n);
    check(buf, 0, n);
    must(write(0, "", 1));
    if (n < 100000)
        send_all(fd, buf, n);
    char c;
    return read(fd, &c, 1) != 0;
}
static void pass_to_reader(int fd, const char *n) {
    int s[2];
    char c;
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
    pid_t pid = must(fork());
    if (pid == 0) {
        must(dup2(s[0], 0));
        execve("/proc/self/exe", (char *[]){"descriptors", "reader", (char *)n, NULL}, bare_environment);
        _exit(9);
    }
    close(s[0]);
    pass_descriptor(s[1], fd);
    close(fd);
    say("read: %zd", read(s[1], &c, 1));
    tell_peer();
    say("reader: %d", ended_well(pid));
}
static void pass_half_closed_server(int fd) {
    wait_for(fd, POLLRDHUP);
    pass_to_reader(fd, "5000");
}
static void pass_half_closed_client(int fd) {
    send_noise(fd, 0, 5000);
    must(shutdown(fd, SHUT_WR));
    say("back: %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    await_peer();
}
static void pass_busy_server(int fd) {
    await_bytes(fd, 5000);
    pass_to_reader(fd, "5000");
}
static void pass_busy_client(int fd) {
    send_noise(fd, 0, 5000);
    await_peer();
    recv_noise(fd, 0, 5000);
    must(shutdown(fd, SHUT_WR));
    char c;
    say_result("end", read(fd, &c, 1));
}
static void pass_stalled_server(int fd) {
    usleep(400000);
    pass_to_reader(fd, "1000000");
}
static void pass_stalled_client(int fd) {
    send_noise(fd, 0, 1000000);
    must(shutdown(fd, SHUT_WR));
    char c;
    say_result("end", read(fd, &c, 1));
    await_peer();
}

/* The same for a program that inherits the connection, which nobody else has by then, as its standard input. */
static int heir(size_t n, int out, int done) {
    static char buf[1 << 20];
    recv_all(0, buf, n);
    check(buf, 0, n);
    must(write(done, "", 1));
    send_all(out, buf, n);
    char c;
    return read(0, &c, 1) != 0;
}
static void leave_to_heir(int fd, char **env) {
    int alone[2], done[2];
    char c;
    must(pipe(alone));
    must(pipe(done));
    await_bytes(fd, 5000);
    pid_t pid = must(fork());
    if (pid == 0) {
        close(alone[1]);
        must(read(alone[0], &c, 1));
        must(dup2(fd, 0));
        close(fd);
        must(dup2(done[1], 1));
        execve("/proc/self/exe", (char *[]){"descriptors", "heir", "5000", NULL}, env);
        _exit(9);
    }
    close(fd);
    close(alone[1]);
    close(done[1]);
    say("read: %zd", read(done[0], &c, 1));
    tell_peer();
    say("child: %d", ended_well(pid));
}
static void exec_busy_server(int fd) { leave_to_heir(fd, bare_environment); }
static void exec_busy_client(int fd) { pass_busy_client(fd); }
static void exec_busy_known_server(int fd) { leave_to_heir(fd, environ); }
static void exec_busy_known_client(int fd) { pass_busy_client(fd); }

/* The same as standard input and output where the peer has shut its sending, and the parent keeps the connection. */
enum heirs { BY_FORK, BY_VFORK, BY_SPAWN };
static void leave_shut_to_heir(int fd, enum heirs how, char **env) {
    char *argv[] = {"descriptors", "filter", "5000", NULL};
    posix_spawn_file_actions_t actions;
    int done[2];
    pid_t pid;
    char c;
    must(pipe2(done, O_CLOEXEC));
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    await_peer();
    if (how == BY_SPAWN) {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fd, 0);
        posix_spawn_file_actions_adddup2(&actions, fd, 1);
        posix_spawn_file_actions_adddup2(&actions, done[1], 2);
        say("posix_spawn: %d", posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, env));
        posix_spawn_file_actions_destroy(&actions);
        say("flags: %d", fcntl(fd, F_GETFD));
    } else if ((pid = must(how == BY_FORK ? fork() : vfork())) == 0) {
        must(dup2(fd, 0));
        must(dup2(fd, 1));
        must(dup2(done[1], 2));
        if (how == BY_VFORK) close_range(3, ~0u, 0);
        execve("/proc/self/exe", argv, env);
        _exit(9);
    }
    close(done[1]);
    say("read: %zd", read(done[0], &c, 1));
    say("child: %d", ended_well(pid));
    say_result("rest", recv(fd, &c, 1, 0));
    must(shutdown(fd, SHUT_WR));
    tell_peer();
}
static void shut_heir_client(int fd) {
    char c;
    send_noise(fd, 0, 5000);
    must(shutdown(fd, SHUT_WR));
    tell_peer();
    recv_noise(fd, 0, 5000);
    say_result("end", read(fd, &c, 1));
    await_peer();
}
static void exec_shut_server(int fd) { leave_shut_to_heir(fd, BY_FORK, bare_environment); }
static void exec_shut_client(int fd) { shut_heir_client(fd); }
static void exec_shut_known_server(int fd) { leave_shut_to_heir(fd, BY_FORK, environ); }
static void exec_shut_known_client(int fd) { shut_heir_client(fd); }
static void vfork_shut_server(int fd) { leave_shut_to_heir(fd, BY_VFORK, bare_environment); }
static void vfork_shut_client(int fd) { shut_heir_client(fd); }
static void vfork_shut_known_server(int fd) { leave_shut_to_heir(fd, BY_VFORK, environ); }
static void vfork_shut_known_client(int fd) { shut_heir_client(fd); }
static void spawn_shut_server(int fd) { leave_shut_to_heir(fd, BY_SPAWN, bare_environment); }
static void spawn_shut_client(int fd) { shut_heir_client(fd); }
static void spawn_shut_known_server(int fd) { leave_shut_to_heir(fd, BY_SPAWN, environ); }
static void spawn_shut_known_client(int fd) { shut_heir_client(fd); }

/* Many at once, by one message, and by several of one call: each with bytes unread whose sender is busy elsewhere. */
enum { CROWD = 12, EACH = 3000 };
static int crowd_reader(int messages) {
    static char buf[EACH];
    int fds[CROWD], n = 0;
    for (int i = 0; i < messages; i++) {
        char control[CMSG_SPACE(sizeof fds)], byte;
        struct msghdr m = {.msg_iov = &(struct iovec){&byte, 1}, .msg_iovlen = 1, .msg_control = control,
                           .msg_controllen = sizeof control};
        must(recvmsg(0, &m, 0));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        int more = c == NULL ? 0 : (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds + n, CMSG_DATA(c), more * sizeof(int));
        n += more;
    }
    for (int i = 0; i < n; i++) {
        recv_all(fds[i], buf, EACH);
        check(buf, i, EACH);
    }
    must(write(0, "", 1));
    for (int i = 0; i < n; i++) {
        fill(buf, i, EACH);
        send_all(fds[i], buf, EACH);
    }
    return n != CROWD;
}
static void pass_crowd(int fd, int messages) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at), fds[CROWD], s[2];
    char word[2] = {'0' + messages}, byte;
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
    send_all(fd, &at, sizeof at);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = must(accept4(l, NULL, NULL, SOCK_CLOEXEC));
        ping_pong(fds[i], 0, WARM);
    }
    pid_t pid = must(fork());
    if (pid == 0) {
        must(dup2(s[0], 0));
        execve("/proc/self/exe", (char *[]){"descriptors", "crowd_reader", word, NULL}, bare_environment);
        _exit(9);
    }
    close(s[0]);
    await_peer();
    int each = CROWD / messages;
    char control[messages][CMSG_SPACE(CROWD * sizeof(int))];
    struct mmsghdr all[messages];
    struct iovec one = {"", 1};
    memset(control, 0, sizeof control);
    for (int i = 0; i < messages; i++) {
        all[i].msg_hdr = (struct msghdr){.msg_iov = &one, .msg_iovlen = 1, .msg_control = control[i],
                                         .msg_controllen = CMSG_SPACE(each * sizeof(int))};
        struct cmsghdr *c = CMSG_FIRSTHDR(&all[i].msg_hdr);
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(each * sizeof(int));
        memcpy(CMSG_DATA(c), fds + i * each, each * sizeof(int));
    }
    if (messages == 1)
        say_result("passed", sendmsg(s[1], &all[0].msg_hdr, 0));
    else
        say_result("passed", sendmmsg(s[1], all, messages, 0));
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    struct pollfd p = {s[1], POLLIN, 0};
    say("read: %d", poll(&p, 1, 10000) == 1 && read(s[1], &byte, 1) == 1);
    tell_peer();
    say("reader: %d", ended_well(pid));
    close(l);
}
static void crowd_client(int fd) {
    struct sockaddr_in at;
    int fds[CROWD];
    recv_all(fd, &at, sizeof at);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = connect_to(&at);
        ping_pong(fds[i], 1, WARM);
    }
    for (int i = 0; i < CROWD; i++)
        send_noise(fds[i], i, EACH);
    tell_peer();
    await_peer();
    for (int i = 0; i < CROWD; i++) {
        recv_noise(fds[i], i, EACH);
        close(fds[i]);
    }
}
static void pass_many_server(int fd) { pass_crowd(fd, 1); }
static void pass_many_client(int fd) { crowd_client(fd); }
static void pass_mmsg_server(int fd) { pass_crowd(fd, 3); }
static void pass_mmsg_client(int fd) { crowd_client(fd); }

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
      CASE(dups), CASE(fetch), CASE(fetch_child), CASE(fetch_elsewhere),
      CASE(fork), CASE(fork_per_connection), CASE(vfork), CASE(system), CASE(spawn), CASE(spawn_bare),
      CASE(spawn_bare_cloexec), CASE(exec), CASE(exec_bare), CASE(execl_bare), CASE(vfork_exec), CASE(vfork_exec_bare),
      CASE(exec_unread), CASE(exec_fails), CASE(exec_resets), CASE(pass), CASE(pass_keep), CASE(pass_known), CASE(pass_half_closed),
      CASE(pass_busy), CASE(exec_busy), CASE(exec_busy_known), CASE(exec_shut), CASE(exec_shut_known), CASE(vfork_shut),
      CASE(vfork_shut_known), CASE(spawn_shut), CASE(spawn_shut_known), CASE(pass_stalled), CASE(pass_many), CASE(pass_mmsg), CASE(stdio), CASE(dprintf),
      CASE(stdio_later), CASE(stdio_early), CASE(close_all), CASE(dup2_high), CASE(few)};
    struct rlimit limit;
    if (argc > 1 && strcmp(argv[1], "dup2_high") == 0) {
        must(getrlimit(RLIMIT_NOFILE, &limit));
        limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
        must(setrlimit(RLIMIT_NOFILE, &limit));
    }
    if (argc > 1 && strcmp(argv[1], "nothing") == 0)
        return 0;
    if (argc > 1 && strcmp(argv[1], "stranger") == 0)
        return stranger();
    if (argc > 2 && strcmp(argv[1], "crowd_reader") == 0)
        return crowd_reader(atoi(argv[2]));
    if (argc > 2 && strcmp(argv[1], "heir") == 0)
        return heir(atoi(argv[2]), 0, 1);
    if (argc > 2 && strcmp(argv[1], "filter") == 0)
        return heir(atoi(argv[2]), 1, 2);
    if (argc > 2 && strcmp(argv[1], "reader") == 0)
        return reader(atoi(argv[2]));
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
