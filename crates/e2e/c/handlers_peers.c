/* What two processes do with a connection between them, all of it in signal handlers on a small stack: meeting, passing it on,
 * starting others with it, and going. */
#include "common.h"
#include "handler.h"

static struct sockaddr_in place;
static int listener, over[2], fd, number;
static char bytes[1 << 18];

/* One end of a connection that is carried. */
static void exchange(int first) {
    if (first)
        WORKS(write(fd, bytes, 64));
    WORKS(read(fd, bytes, 64));
    if (!first)
        WORKS(write(fd, bytes, 64));
}
static void meet_here(void) {
    WORKS(fd = accept(listener, NULL, NULL));
    for (int i = 0; i < WARM; i++)
        exchange(0);
}
static void meet_there(void) {
    WORKS(fd = socket(AF_INET, SOCK_STREAM, 0));
    WORKS(connect(fd, (struct sockaddr *)&place, sizeof place));
    for (int i = 0; i < WARM; i++)
        exchange(1);
}
static void expect_end(void) {
    if (DO(read(fd, bytes, sizeof bytes)) != 0)
        fail("no end");
    WORKS(close(fd));
}

/* What a child does, in a handler or else; it passed. */
static void await_child(pid_t pid) {
    int status;
    must(waitpid(pid, &status, 0));
    if (status != 0)
        fprintf(stderr, "child: %x\n", status), _exit(1);
}

static void whole_here(void) { WORKS(close(fd)); }
static void whole_there(void) { expect_end(); }

/* To a third process. */
static char control[CMSG_SPACE(sizeof(int))];
static struct iovec letter = {bytes, 1};
static struct msghdr rights = {.msg_iov = &letter, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
static pid_t third;
static void start_third(void (*does)(void)) {
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, over));
    third = must(fork());
    if (third != 0)
        return;
    WORKS(recvmsg(over[1], &rights, 0));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&rights)), sizeof fd);
    does();
    WORKS(close(fd));
    _exit(0);
}
static void exchange_all(void) {
    for (int i = 0; i < WARM; i++)
        exchange(0);
}
static struct mmsghdr letters;
static void hand_over(int many) {
    struct cmsghdr *c = CMSG_FIRSTHDR(&rights);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    letters.msg_hdr = rights;
    if (many)
        WORKS(sendmmsg(over[0], &letters, 1, 0));
    else
        WORKS(sendmsg(over[0], &rights, 0));
    WORKS(close(fd));
    close(over[0]), close(over[1]);
    await_child(third);
}
static void pass_here(void) { hand_over(0); }
static void pass_many_here(void) { hand_over(1); }
static void pass_there(void) {
    for (int i = 0; i < WARM; i++)
        exchange(1);
    expect_end();
}

/* To images of children. */
static char name[16];
static char *arguments[] = {"handlers_peers", "image", name, NULL};
static int (*start)(void);
#define STARTS(how, call)                                                                                              \
    static int by_##how(void) {                                                                                        \
        INSIDE(call);                                                                                                  \
        return 1;                                                                                                      \
    }
static int self;
STARTS(execl, execl("/proc/self/exe", "handlers_peers", "image", name, NULL))
STARTS(execle, execle("/proc/self/exe", "handlers_peers", "image", name, NULL, environ))
STARTS(execlp, execlp("/proc/self/exe", "handlers_peers", "image", name, NULL))
STARTS(execv, execv("/proc/self/exe", arguments))
STARTS(execve, execve("/proc/self/exe", arguments, environ))
STARTS(execvp, execvp("/proc/self/exe", arguments))
STARTS(execvpe, execvpe("/proc/self/exe", arguments, environ))
STARTS(fexecve, fexecve(self, arguments, environ))
STARTS(execveat, execveat(self, "", arguments, environ, AT_EMPTY_PATH))
static int (*const starts[])(void) = {by_execl,  by_execle,  by_execlp,  by_execv,   by_execve,
                                      by_execvp, by_execvpe, by_fexecve, by_execveat};
enum { STARTS_OF_ALL_KINDS = sizeof starts / sizeof starts[0] };
static pid_t image(void) {
    pid_t pid = INSIDE(fork());
    if (pid == 0) {
        start();
        INSIDE(_Exit(1));
    }
    return pid;
}
static void images_here(void) {
    self = must(open("/proc/self/exe", O_RDONLY));
    snprintf(name, sizeof name, "%d", fd);
    for (int i = 0; i < STARTS_OF_ALL_KINDS; i++) {
        start = starts[i];
        await_child(DO(image()));
        exchange(0);
    }
    WORKS(close(fd));
    close(self);
}
static void images_there(void) {
    for (int i = 0; i < 2 * STARTS_OF_ALL_KINDS; i++)
        exchange(1);
    expect_end();
}

/* Going with more than the kernel has room for, while the peer has just left shared memory and reads nothing. */
static int leave(void) { INSIDE(_exit(0)); }
static int leave_for_another(void) { return INSIDE(execl("/bin/true", "true", NULL)); }
static int close_it(void) { return close(fd); }
static int shut_it(void) { return shutdown(fd, SHUT_WR); }
static void go_full(int (*how)(void)) {
    int small = 4096;
    must(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    WORKS(fcntl(fd, F_SETFL, O_NONBLOCK));
    WORKS(number = write(fd, bytes, 250000));
    must(write(to_peer, &number, sizeof number));
    await_peer();
    start = how;
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    if (how == leave || how == leave_for_another) {
        pid_t pid = must(fork());
        if (pid == 0) {
            DO(start());
            _exit(1);
        }
        WORKS(close(fd));
        await_child(pid);
    } else {
        WORKS(start());
    }
    tell_peer();
}
static void meet_late(void) {
    long n = 0;
    if (read(from_peer, &number, sizeof number) != sizeof number)
        fail("how many?");
    WORKS(fcntl(fd, F_SETFL, O_ASYNC));
    tell_peer();
    await_peer();
    while (DO(read(fd, bytes, sizeof bytes)) > 0)
        n += result;
    if (n != number)
        fail("not the whole");
    WORKS(close(fd));
}
static void full_here(void) { go_full(close_it); }
static void full_there(void) { meet_late(); }
static void shut_here(void) {
    go_full(shut_it);
    WORKS(close(fd));
}
static void shut_there(void) { meet_late(); }
static void left_here(void) { go_full(leave); }
static void left_there(void) { meet_late(); }
static void other_here(void) { go_full(leave_for_another); }
static void other_there(void) { meet_late(); }

/* Going with bytes of the peer unread. */
static void unread_here(void) {
    await_peer();
    WORKS(shutdown(fd, SHUT_RDWR));
    WORKS(close(fd));
    tell_peer();
}
static void unread_there(void) {
    WORKS(write(fd, bytes, 1000));
    together();
    DO(read(fd, bytes, 1000));
    DO(send(fd, bytes, 1000, MSG_NOSIGNAL));
    WORKS(close(fd));
}

/* To a third process with bytes unread, of a peer that is busy elsewhere. */
static void read_what_was_left(void) {
    for (number = 0; number < 1000; number += result)
        if (DO(read(fd, bytes, 1000 - number)) <= 0)
            fail("not the whole");
}
static void relay_here(void) {
    await_peer();
    hand_over(0);
    tell_peer();
}
static void relay_there(void) {
    WORKS(write(fd, bytes, 1000));
    together();
    expect_end();
}

/* The peer is killed with bytes in shared memory. */
static void killed_here(void) {
    await_peer();
    must(write(to_peer, "", 1));
    must(waitpid(peer_pid, NULL, 0));
    WORKS(read(fd, bytes, 1000));
    DO(read(fd, bytes, 1000));
    DO(send(fd, bytes, 1000, MSG_NOSIGNAL));
    DO(send(fd, bytes, 1000, MSG_NOSIGNAL));
    WORKS(close(fd));
}
static void killed_there(void) {
    WORKS(write(fd, bytes, 1000));
    together();
    raise(SIGKILL);
}

static const struct {
    void (*here)(void), (*there)(void);
} acts[] = {{whole_here, whole_there}, {pass_here, pass_there}, {pass_many_here, pass_there}, {relay_here, relay_there}, {images_here, images_there}, {full_here, full_there},
            {shut_here, shut_there},   {left_here, left_there},     {other_here, other_there},   {unread_here, unread_there},
            {killed_here, killed_there}};
enum { ACTS = sizeof acts / sizeof acts[0] };

static void run_there(void) {
    for (int i = 0; i < ACTS; i++) {
        meet_there();
        acts[i].there();
    }
}
static void play(const char *room) {
    int up[2], down[2];
    signal(SIGPIPE, SIG_IGN);
    take_room(atoi(room));
    must(pipe2(up, O_CLOEXEC));
    must(pipe2(down, O_CLOEXEC));
    listener = listen_somewhere(&place);
    peer_pid = must(fork());
    if (peer_pid == 0) {
        close(listener), close(up[0]), close(down[1]);
        to_peer = up[1], from_peer = down[0];
        run_there();
        _exit(1);
    }
    close(up[1]), close(down[0]);
    to_peer = down[1], from_peer = up[0];
    for (int i = 0; i < ACTS; i++) {
        if (acts[i].there == pass_there)
            start_third(exchange_all);
        if (acts[i].here == relay_here)
            start_third(read_what_was_left);
        meet_here();
        acts[i].here();
    }
    tell_deepest();
}

static void small_stack_server(int fd) {
    say("status %x", run_fresh("play", "8192"));
    send_noise(fd, 0, 100);
}
static void small_stack_client(int fd) { recv_noise(fd, 0, 100); }
/* For a library that was built without optimisation. */
static void roomy_server(int fd) {
    say("status %x", run_fresh("play", "65536"));
    send_noise(fd, 0, 100);
}
static void roomy_client(int fd) { recv_noise(fd, 0, 100); }

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(small_stack), CASE(roomy)};
    if (argc > 2 && strcmp(argv[1], "image") == 0) {
        fd = atoi(argv[2]);
        recv_all(fd, bytes, 64);
        send_all(fd, bytes, 64);
        return 0;
    }
    if (argc > 2) {
        play(argv[2]);
        return 0;
    }
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
