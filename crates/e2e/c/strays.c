/* Bytes that reach the kernel round the library. The kernel alone delivers them; where a direction is in shared memory their place
 * in the stream is unknown, and the reader is told of a reset. What it must not do is wait for ever, or spin. */
#include "echo.h"
#include <dirent.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mntent.h>
#include <mqueue.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* write(2) that no library sees. */
static long bare_write(int fd, const void *from, size_t n) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_write), "D"(fd), "S"(from), "d"(n) : "rcx", "r11", "memory");
    return r;
}

/* The stream comes whole to the byte that went round, then that byte or a reset. */
static void told(int fd, size_t n) {
    char c;
    recv_noise(fd, 0, n);
    ssize_t r = read(fd, &c, 1);
    say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
}

static void byte_server(int fd) {
    told(fd, 1000);
    tell_peer();
}
static void byte_client(int fd) {
    send_noise(fd, 0, 1000);
    must(bare_write(fd, "x", 1));
    await_peer();
}

static void byte_polled_server(int fd) {
    char c;
    nonblocking(fd, 1);
    wait_for(fd, POLLIN);
    for (;;) {
        ssize_t r = read(fd, &c, 1);
        if (r < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
            continue;
        }
        say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
        break;
    }
    tell_peer();
}
static void byte_polled_client(int fd) {
    must(bare_write(fd, "x", 1));
    await_peer();
}

/* The same when the peer has gone since. */
static void byte_and_end_server(int fd) {
    tell_peer();
    wait_for(fd, POLLRDHUP);
    told(fd, 50000);
}
static void byte_and_end_client(int fd) {
    await_peer();
    send_noise(fd, 0, 50000);
    must(bare_write(fd, "x", 1));
    close(fd);
}

static void bare_close(int fd) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
    (void)r;
}

/* A number that was a connection's is a file's now. */
static void use_file(int number, int fd) {
    char word[6] = "";
    say("the same number: %d", fd == number);
    say_result("write", write(fd, "words", 5));
    say_result("pread", pread(fd, word, 5, 0));
    must(lseek(fd, 1, SEEK_SET));
    say_result("read", read(fd, word, 4));
    say("%s", word);
    say_result("close", close(fd));
}
static int fresh_file(void) { return must(open(".", O_TMPFILE | O_RDWR, 0600)); }

/* The C library closes what it was given by fdopen(). */
static void closed_by_stdio_server(int fd) {
    char line[100] = "";
    int copy = must(dup(fd));
    FILE *f = fdopen(copy, "r+");
    must(fputs("a line\n", f));
    must(fflush(f));
    say("%s", fgets(line, sizeof line, f));
    say_result("fileno", fileno(f) == copy);
    must(fclose(f));
    use_file(copy, fresh_file());
    exchange(fd, 20);
}
WITH_ECHO(closed_by_stdio)

/* A duplicate is closed by a system call that the library does not see. */
static void closed_round_server(int fd) {
    for (int i = 0; i < 5; i++) {
        int copy = must(dup(fd)), p[2];
        bare_close(copy);
        switch (i) {
        case 0:
            use_file(copy, fresh_file());
            break;
        case 1:
            use_file(copy, must(memfd_create("file", 0)));
            break;
        case 2:
            must(pipe(p));
            must(write(p[1], "words", 5));
            char word[6] = "";
            must(read(p[0], word, 5));
            say("%d %s", p[0] == copy, word);
            close(p[0]), close(p[1]);
            break;
        case 3:
            must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
            must(write(p[1], "words", 5));
            say("%d %zd", p[0] == copy, read(p[0], word, 5));
            close(p[0]), close(p[1]);
            break;
        case 4: {
            int again = must(dup(1));
            say("%d", again == copy);
            say_result("standard output is no socket", recv(again, word, 5, 0));
            close(again);
        }
        }
        exchange(fd, 20);
    }
}
WITH_ECHO(closed_round)

/* All that makes descriptors, under the number of a duplicate that was closed round the library: what is written there is not for
 * the connection. Not everybody may make each of them. */
static int l, ends[2], itself;
static char template[30];
static char *like(const char *name) { return strcpy(template, name); }
static int beside(int a, int b) { return close(b), a; }
static int number_of(FILE *f) { return f ? fileno(f) : -1; }
static int by_opendir(void) {
    DIR *d = opendir(".");
    return d ? dirfd(d) : -1;
}
static int by_openpty(void) {
    int a, b;
    return openpty(&a, &b, NULL, NULL, NULL) < 0 ? -1 : beside(a, b);
}
static int by_forkpty(void) {
    int a;
    pid_t pid = forkpty(&a, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    return pid < 0 ? -1 : a;
}
static int by_socketpair(void) {
    int p[2];
    return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, p) < 0 ? -1 : beside(p[0], p[1]);
}
static int by_clone(long number) {
    int made = -1;
    /* struct clone_args of <linux/sched.h>: flags, where the descriptor goes, and in the fifth place the signal. */
    uint64_t a[8] = {CLONE_PIDFD, (uintptr_t)&made, 0, 0, SIGCHLD};
    long pid = number == SYS_clone3 ? syscall(number, a, sizeof a) : syscall(number, (long)(CLONE_PIDFD | SIGCHLD), NULL, &made, NULL, NULL);
    if (pid == 0)
        syscall(SYS_exit_group, 0L);
    if (pid > 0)
        must(waitpid(pid, NULL, 0));
    return made;
}
static int by_perf(void) {
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_CPU_CLOCK};
    return syscall(SYS_perf_event_open, &a, 0L, -1L, -1L, 0L);
}
/* In a message to a socket of another kind: one, or one of many, by name or number. */
static int by_message(int way) {
    char data = 'd', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&data, 1};
    struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room}};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m.msg_hdr);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &itself, sizeof itself);
    must(sendmsg(ends[0], &m.msg_hdr, 0));
    switch (way) {
    case 0:
        must(recvmsg(ends[1], &m.msg_hdr, 0));
        break;
    case 1:
        must(recvmmsg(ends[1], &m, 1, 0, NULL));
        break;
    case 2:
        must(syscall(SYS_recvmsg, ends[1], &m.msg_hdr, 0L));
        break;
    default:
        must(syscall(SYS_recvmmsg, ends[1], &m, 1L, 0L, NULL));
    }
    int got;
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m.msg_hdr)), sizeof got);
    return got;
}
static void anew(int fd, const char *what, int (*make)(void)) {
    int copy = must(dup(fd));
    bare_close(copy);
    int made = make();
    say("%s", what);
    if (made < 0)
        return say_result("not here", made);
    say("the same number: %d", made == copy);
    say_result("write", write(made, "stray", 5));
    close(made);
    exchange(fd, 2);
}
#define ANEW(call)                                                                                                     \
    ({                                                                                                                 \
        int make_(void) { return (call); }                                                                             \
        anew(fd, #call, make_);                                                                                        \
    })
/* What reads and writes has a file, which is its own; the rest refuses to be written. */
static void made_anew_server(int fd) {
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "made-listener"};
    must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    l = must(socket(AF_UNIX, SOCK_STREAM, 0));
    must(bind(l, (struct sockaddr *)&at, sizeof at));
    must(listen(l, 5));
    for (int i = 0; i < 3; i++) {
        int young = must(socket(AF_UNIX, SOCK_STREAM, 0));
        must(connect(young, (struct sockaddr *)&at, sizeof at));
    }
    itself = must(pidfd_open(getpid(), 0));
    ANEW(number_of(fopen("made-1", "w")));
    ANEW(number_of(fopen64("made-1", "w")));
    ANEW(number_of(setmntent("made-1", "w")));
    ANEW(number_of(tmpfile()));
    ANEW(number_of(tmpfile64()));
    ANEW(number_of(freopen("made-1", "w", fopen("/dev/null", "r"))));
    ANEW(by_opendir());
    ANEW(mkstemp(like("made-XXXXXX")));
    ANEW(mkstemp64(like("made-XXXXXX")));
    ANEW(mkstemps(like("made-XXXXXX.c"), 2));
    ANEW(mkstemps64(like("made-XXXXXX.c"), 2));
    ANEW(mkostemp(like("made-XXXXXX"), O_CLOEXEC));
    ANEW(mkostemp64(like("made-XXXXXX"), O_CLOEXEC));
    ANEW(mkostemps(like("made-XXXXXX.c"), 2, O_CLOEXEC));
    ANEW(mkostemps64(like("made-XXXXXX.c"), 2, O_CLOEXEC));
    ANEW(shm_open("/headwater-made", O_RDWR | O_CREAT, 0600));
    shm_unlink("/headwater-made");
    ANEW(mq_open("/headwater-made", O_RDWR | O_CREAT, 0600, NULL));
    mq_unlink("/headwater-made");
    ANEW(posix_openpt(O_RDWR | O_NOCTTY));
    ANEW(getpt());
    ANEW(by_openpty());
    ANEW(by_forkpty());
    ANEW(inotify_init());
    ANEW(fanotify_init(0, O_RDONLY));
    ANEW(pidfd_open(getpid(), 0));
    ANEW(pidfd_getfd(itself, itself, 0));
    ANEW(open_tree(AT_FDCWD, ".", 0));
    ANEW(fsopen("tmpfs", 0));
    ANEW(fspick(AT_FDCWD, ".", 0));
    ANEW(openat(AT_FDCWD, "made-1", O_WRONLY));
    ANEW(fcntl(itself, F_DUPFD, 0));
    ANEW(fcntl(itself, F_DUPFD_CLOEXEC, 0));
    ANEW(dup(itself));
    ANEW(accept(l, NULL, NULL));
    ANEW(by_message(0));
    ANEW(by_message(1));
    /* By number. */
    ANEW(by_message(2));
    ANEW(by_message(3));
    ANEW(syscall(SYS_accept, l, NULL, NULL));
    ANEW(syscall(SYS_accept4, l, NULL, NULL, 0L));
    ANEW(syscall(SYS_dup, itself));
    ANEW(syscall(SYS_fcntl, itself, (long)F_DUPFD, 0L));
    ANEW(syscall(SYS_openat2, (long)AT_FDCWD, "made-1", &((struct open_how){.flags = O_WRONLY}), sizeof(struct open_how)));
    ANEW(syscall(SYS_openat, (long)AT_FDCWD, "made-1", (long)O_WRONLY));
    ANEW(syscall(SYS_memfd_create, "made", 0L));
    ANEW(syscall(SYS_memfd_secret, 0L));
    ANEW(syscall(SYS_eventfd2, 0L, 0L));
    ANEW(syscall(SYS_timerfd_create, (long)CLOCK_MONOTONIC, 0L));
    ANEW(syscall(SYS_inotify_init1, 0L));
    ANEW(syscall(SYS_pidfd_open, (long)getpid(), 0L));
    ANEW(syscall(SYS_pidfd_getfd, itself, itself, 0L));
    ANEW(syscall(SYS_userfaultfd, (long)O_CLOEXEC));
    ANEW(syscall(SYS_landlock_create_ruleset, &((uint64_t){1}), sizeof(uint64_t), 0L));
    ANEW(syscall(SYS_epoll_create1, 0L));
    ANEW(by_perf());
    ANEW(by_socketpair());
    ANEW(by_clone(SYS_clone));
    ANEW(by_clone(SYS_clone3));
#ifdef SYS_creat
    ANEW(syscall(SYS_creat, "made-1", 0600L));
    ANEW(syscall(SYS_eventfd, 0L));
    ANEW(syscall(SYS_inotify_init));
#endif
}
WITH_ECHO(made_anew)

/* So is the last number, of a connection in shared memory and of one that is not there yet. */
static void closed_round_last_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    int s = must(accept(l, NULL, NULL));
    char c;
    must(read(s, &c, 1));
    bare_close(s);
    use_file(s, fresh_file());
    bare_close(fd);
    use_file(fd, fresh_file());
    tell_peer();
}
static void closed_round_last_client(int fd) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    int s = connect_to(&at);
    must(write(s, "c", 1));
    char c;
    say_result("end of the cold one", read(s, &c, 1));
    say_result("end of the warm one", read(fd, &c, 1));
    await_peer();
}

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(byte), CASE(byte_polled), CASE(byte_and_end), CASE(closed_by_stdio),
                                            CASE(closed_round), CASE(closed_round_last), CASE(made_anew)};
    alarm(20);
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
