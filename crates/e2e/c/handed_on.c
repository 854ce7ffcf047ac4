/* Descriptors of a connection that are handed on: to programs that are started, by exec or posix_spawn, and to processes that
 * are passed them. */
#include "echo.h"
#include <spawn.h>
#include <sys/resource.h>
#include <sys/un.h>

extern char **environ;

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
        execve("/proc/self/exe", (char *[]){"handed_on", "nothing", NULL}, environ);
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
        execve("/proc/self/exe", (char *[]){"handed_on", "stranger", NULL}, env);
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
/* Where no number is left, the library may have no relay: then it says so, and nothing is passed. */
static void pass_at_limit(int over, int fd) {
    struct rlimit was, none;
    must(getrlimit(RLIMIT_NOFILE, &was));
    none = was;
    none.rlim_cur = 0;
    must(setrlimit(RLIMIT_NOFILE, &none));
    ssize_t passed = try_to_pass(over, fd);
    if (passed < 0 && errno != ENOBUFS)
        fail("sendmsg");
    must(setrlimit(RLIMIT_NOFILE, &was));
    if (passed < 0)
        pass_descriptor(over, fd);
}
static void pass_to_reader_by(int fd, const char *n, void (*pass)(int over, int fd)) {
    int s[2];
    char c;
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
    pid_t pid = must(fork());
    if (pid == 0) {
        must(dup2(s[0], 0));
        execve("/proc/self/exe", (char *[]){"handed_on", "reader", (char *)n, NULL}, bare_environment);
        _exit(9);
    }
    close(s[0]);
    pass(s[1], fd);
    close(fd);
    say("read: %zd", read(s[1], &c, 1));
    tell_peer();
    say("reader: %d", ended_well(pid));
}
static void pass_to_reader(int fd, const char *n) { pass_to_reader_by(fd, n, pass_descriptor); }
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
static void pass_stalled_at_limit_server(int fd) {
    usleep(400000);
    pass_to_reader_by(fd, "1000000", pass_at_limit);
}
#define pass_stalled_at_limit_client pass_stalled_client

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
        execve("/proc/self/exe", (char *[]){"handed_on", "heir", "5000", NULL}, env);
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
    char *argv[] = {"handed_on", "filter", "5000", NULL};
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
        execve("/proc/self/exe", (char *[]){"handed_on", "crowd_reader", word, NULL}, bare_environment);
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

int main(int argc, char **argv) {
    static const struct end_case cases[] = {
      CASE(system), CASE(spawn), CASE(spawn_bare), CASE(spawn_bare_cloexec), CASE(exec), CASE(exec_bare), CASE(execl_bare),
      CASE(vfork_exec), CASE(vfork_exec_bare), CASE(exec_unread), CASE(exec_fails), CASE(exec_resets), CASE(pass), CASE(pass_keep),
      CASE(pass_known), CASE(pass_half_closed), CASE(pass_busy), CASE(exec_busy), CASE(exec_busy_known), CASE(exec_shut),
      CASE(exec_shut_known), CASE(vfork_shut), CASE(vfork_shut_known), CASE(spawn_shut), CASE(spawn_shut_known), CASE(pass_stalled),
      CASE(pass_stalled_at_limit), CASE(pass_many), CASE(pass_mmsg)};
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
