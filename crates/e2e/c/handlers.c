/* What signal-safety(7) allows in a signal handler: the calls of a connection's whole life. */
#include "common.h"
#include "handler.h"
#include <mqueue.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

/* Other names, of which no header speaks, of those that are called with checks. */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
int __xstat(int, const char *, struct stat *), __lxstat(int, const char *, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __xstat64(int, const char *, struct stat *), __lxstat64(int, const char *, struct stat *);
int __fxstatat64(int, int, const char *, struct stat *, int);
__sighandler_t bsd_signal(int, __sighandler_t);
void __longjmp_chk(struct __jmp_buf_tag *, int) __attribute__((noreturn));

/* One thing to do in the handler, on what is in these. */
static int fds[8];
static struct sockaddr_in place;
static char bytes[1 << 16];
static struct pollfd many[300];
static fd_set in_set, out_set;
static struct epoll_event events[20];

/* Both ends of a connection, from the first call to the last. */
static struct iovec halves[2] = {{bytes, 50}, {bytes + 50, 50}};
static struct msghdr message = {.msg_iov = halves, .msg_iovlen = 2};
static struct sockaddr_in other;
static socklen_t length = sizeof other;
static int one = 1, number;
static off_t at;
static struct timespec soon = {0, 1000000};
static void sets(void) {
    FD_ZERO(&in_set);
    FD_ZERO(&out_set);
    FD_SET(fds[1], &in_set);
    FD_SET(fds[2], &out_set);
}
static pid_t child(void) {
    pid_t pid = fork();
    if (pid == 0)
        INSIDE(_exit(0));
    return pid;
}
static void life(void) {
    place = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    WORKS(fds[0] = socket(AF_INET, SOCK_STREAM, 0));
    WORKS(setsockopt(fds[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    WORKS(bind(fds[0], (struct sockaddr *)&place, sizeof place));
    WORKS(listen(fds[0], 5));
    length = sizeof place;
    WORKS(getsockname(fds[0], (struct sockaddr *)&place, &length));
    WORKS(fds[1] = socket(AF_INET, SOCK_STREAM, 0));
    WORKS(connect(fds[1], (struct sockaddr *)&place, sizeof place));
    length = sizeof other;
    WORKS(fds[2] = accept4(fds[0], (struct sockaddr *)&other, &length, SOCK_CLOEXEC));
    WORKS(fds[3] = epoll_create1(0));
    events[0] = (struct epoll_event){EPOLLIN, {.u64 = 7}};
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_ADD, fds[1], &events[0]));
    /* On the way into shared memory, whichever call takes the steps. */
    for (int i = 0; i < WARM; i++) {
        WORKS(write(fds[1], bytes, 64));
        WORKS(read(fds[2], bytes, 64));
        WORKS(write(fds[2], bytes, 64));
        WORKS(read(fds[1], bytes, 64));
    }
    WORKS(send(fds[1], bytes, 100, MSG_NOSIGNAL));
    WORKS(recv(fds[2], bytes, 10, MSG_PEEK));
    WORKS(recvfrom(fds[2], bytes, 100, 0, NULL, NULL));
    WORKS(sendto(fds[1], bytes, 100, 0, NULL, 0));
    WORKS(readv(fds[2], halves, 2));
    WORKS(writev(fds[2], halves, 2));
    WORKS(recvmsg(fds[1], &message, MSG_WAITALL));
    WORKS(sendmsg(fds[1], &message, 0));
    for (int i = 0; i < 300; i++)
        many[i] = (struct pollfd){fds[i % 3], POLLIN, 0};
    WORKS(poll(many, 3, 1));
    WORKS(read(fds[2], bytes, 100));
    WORKS(poll(many, 3, 1));
    WORKS(poll(many, 300, 1));
    WORKS(ppoll(many, 64, &soon, NULL));
    sets();
    WORKS(select(64, &in_set, &out_set, NULL, &(struct timeval){0, 1000}));
    FD_ZERO(&out_set);
    WORKS(pselect(64, &in_set, &out_set, NULL, &soon, NULL));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    WORKS(write(fds[2], bytes, 100));
    WORKS(epoll_pwait(fds[3], events, 20, 1, NULL));
    WORKS(read(fds[1], bytes, 100));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    events[0] = (struct epoll_event){EPOLLIN | EPOLLOUT | EPOLLET, {.u64 = 7}};
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_MOD, fds[1], &events[0]));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_DEL, fds[1], &events[0]));
    /* Until both rings and the kernel's buffers are full, and empty again. */
    WORKS(fcntl(fds[1], F_SETFL, O_NONBLOCK));
    while (DO(write(fds[1], bytes, sizeof bytes)) > 0) {
    }
    WORKS(poll(many + 1, 1, 1));
    DO(recv(fds[1], bytes, 1, MSG_DONTWAIT));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    WORKS(ioctl(fds[1], FIONREAD, &number));
    WORKS(sockatmark(fds[1]));
    WORKS(getpeername(fds[1], (struct sockaddr *)&other, &length));
    WORKS(fds[4] = dup(fds[1]));
    WORKS(dup2(fds[1], fds[4]));
    WORKS(fds[5] = fcntl(fds[1], F_DUPFD_CLOEXEC, 20));
    WORKS(close(fds[4]));
    WORKS(close(fds[5]));
    WORKS(fds[6] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    WORKS(sendfile(fds[1], fds[6], &at, 40000));
    WORKS(sendfile(fds[1], fds[6], &at, 1000000));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    number = DO(child());
    must(waitpid(number, NULL, 0));
    /* Back to the kernel with bytes in the ring, which the peer is to have first. */
    WORKS(write(fds[1], bytes, sizeof bytes));
    must(pipe2(&fds[4], O_CLOEXEC | O_NONBLOCK));
    WORKS(fcntl(fds[2], F_SETFL, O_NONBLOCK));
    DO(splice(fds[2], NULL, fds[5], NULL, 1000, SPLICE_F_NONBLOCK));
    DO(sendfile(fds[5], fds[2], NULL, 1000));
    WORKS(write(fds[1], bytes, 1));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    close(fds[4]), close(fds[5]), close(fds[6]);
    WORKS(shutdown(fds[1], SHUT_WR));
    WORKS(close(fds[2]));
    WORKS(close(fds[1]));
    WORKS(close(fds[3]));
    WORKS(close(fds[0]));
}

/* What a connection may meet beside that; the names that differ for it are all of them called. */
static struct mmsghdr several[2] = {{.msg_hdr = {.msg_iov = halves, .msg_iovlen = 1}},
                                    {.msg_hdr = {.msg_iov = halves + 1, .msg_iovlen = 1}}};
static int two[2];
static void drain(int fd) {
    two[1] = fd;
    while (DO(recv(two[1], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
}
/* Between two descriptors that bytes go through: a connection's ends, or what only looks like them. */
static void exchange_all_ways(int a, int b) {
    two[0] = a, two[1] = b;
    length = sizeof number;
    WORKS(getsockopt(two[0], SOL_SOCKET, SO_ERROR, &number, &length));
    WORKS(sendmmsg(two[0], several, 2, 0));
    WORKS(recvmmsg(two[1], several, 2, MSG_WAITFORONE, NULL));
    drain(b);
    WORKS(pwritev2(two[0], halves, 2, -1, 0));
    WORKS(preadv2(two[1], halves, 2, -1, 0));
    WORKS(write(two[0], bytes, 900));
    WORKS(__read_chk(two[1], bytes, 100, sizeof bytes));
    WORKS(__recv_chk(two[1], bytes, 100, sizeof bytes, 0));
    WORKS(__recvfrom_chk(two[1], bytes, 100, sizeof bytes, 0, NULL, NULL));
    WORKS(syscall(SYS_read, two[1], bytes, 100));
    WORKS(syscall(SYS_readv, two[1], halves, 2));
    WORKS(syscall(SYS_recvfrom, two[1], bytes, 100, 0, NULL, NULL));
    WORKS(syscall(SYS_recvmsg, two[1], &message, 0));
    WORKS(syscall(SYS_write, two[0], bytes, 100));
    WORKS(syscall(SYS_writev, two[0], halves, 2));
    WORKS(syscall(SYS_sendto, two[0], bytes, 100, 0, NULL, 0));
    WORKS(syscall(SYS_sendmsg, two[0], &message, 0));
    many[0] = (struct pollfd){b, POLLIN, 0};
    WORKS(syscall(SYS_poll, many, 1, 1));
    WORKS(__poll_chk(many, 1, 1, sizeof many));
    WORKS(__ppoll_chk(many, 1, &soon, NULL, sizeof many));
    WORKS(number = syscall(SYS_dup, two[0]));
    WORKS(syscall(SYS_close, number));
    WORKS(fds[3] = epoll_create(1));
    events[0] = (struct epoll_event){EPOLLIN, {.u64 = 7}};
    WORKS(syscall(SYS_epoll_ctl, fds[3], EPOLL_CTL_ADD, two[1], events));
    WORKS(syscall(SYS_epoll_wait, fds[3], events, 20, 1));
    WORKS(epoll_pwait2(fds[3], events, 20, &soon, NULL));
    drain(b);
    WORKS(epoll_pwait2(fds[3], events, 20, &soon, NULL));
    WORKS(close(fds[3]));
    WORKS(fds[6] = openat(AT_FDCWD, "/proc/self/exe", O_RDONLY | O_CLOEXEC));
    at = 0;
    WORKS(syscall(SYS_sendfile, two[0], fds[6], &at, 4000));
    WORKS(close(fds[6]));
    drain(b);
    WORKS(dup3(two[0], 60, O_CLOEXEC));
    WORKS(syscall(SYS_dup2, two[0], 60));
    WORKS(close_range(60, 70, 0));
    WORKS(dup2(two[0], 60));
    DO((closefrom(60), 0));
    WORKS(write(two[0], bytes, 10));
    WORKS(read(two[1], bytes, 10));
}

/* Whether a name is there. */
static struct stat status;
static struct statx long_status;
static void questions(const char *name) {
    WORKS(access(name, R_OK));
    WORKS(eaccess(name, R_OK));
    WORKS(euidaccess(name, R_OK));
    WORKS(faccessat(AT_FDCWD, name, R_OK, AT_EACCESS));
    WORKS(stat(name, &status));
    WORKS(stat64(name, (struct stat64 *)&status));
    WORKS(lstat(name, &status));
    WORKS(lstat64(name, (struct stat64 *)&status));
    WORKS(fstatat(AT_FDCWD, name, &status, 0));
    WORKS(fstatat64(AT_FDCWD, name, (struct stat64 *)&status, 0));
    WORKS(statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &long_status));
    WORKS(__xstat(1, name, &status));
    WORKS(__xstat64(1, name, &status));
    WORKS(__lxstat(1, name, &status));
    WORKS(__lxstat64(1, name, &status));
    WORKS(__fxstatat(1, AT_FDCWD, name, &status, 0));
    WORKS(__fxstatat64(1, AT_FDCWD, name, &status, 0));
}

/* Descriptors of other kinds, which may get the number of a connection that was closed. */
static sigset_t none;
static void others(void) {
    number = 0;
#define MAKES(call) (WORKS(number = call), WORKS(close(number)))
    MAKES(eventfd(0, EFD_CLOEXEC));
    MAKES(timerfd_create(CLOCK_MONOTONIC, 0));
    MAKES(signalfd(-1, &none, 0));
    MAKES(inotify_init());
    MAKES(inotify_init1(0));
    MAKES(pidfd_open(getpid(), 0));
    MAKES(memfd_create("x", 0));
    MAKES(open("/dev/null", O_RDWR));
    MAKES(open64("/dev/null", O_RDWR));
    MAKES(openat64(AT_FDCWD, "/dev/null", O_RDWR));
    MAKES(creat("/dev/null", 0600));
    MAKES(creat64("/dev/null", 0600));
    MAKES(__open_2("/dev/null", O_RDWR));
    MAKES(__open64_2("/dev/null", O_RDWR));
    MAKES(__openat_2(AT_FDCWD, "/dev/null", O_RDWR));
    MAKES(__openat64_2(AT_FDCWD, "/dev/null", O_RDWR));
    WORKS(pipe(two));
    WORKS(close(two[0]));
    WORKS(close(two[1]));
    WORKS(pipe2(two, O_CLOEXEC));
    WORKS(close(two[0]));
    WORKS(close(two[1]));
    WORKS(prctl(PR_GET_DUMPABLE));
    questions("/dev/null");
    /* Not everybody may. */
#define TRIES(call) (DO(number = call) < 0 ? 0 : close(number))
    TRIES(pidfd_getfd(-1, 0, 0));
    TRIES(fanotify_init(0, O_RDONLY));
    TRIES(mq_open("/nothing", O_RDONLY));
    TRIES(open_by_handle_at(-1, NULL, 0));
    TRIES(open_tree(AT_FDCWD, ".", 0));
    TRIES(fsopen("tmpfs", 0));
    TRIES(fsmount(-1, 0, 0));
    TRIES(fspick(AT_FDCWD, ".", 0));
}

/* What handlers do to signals, and where they go by a jump. */
/* sigset and siginterrupt are out of fashion. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static struct sigaction old;
static sigjmp_buf here;
static void sighandler(int n) { (void)n; }
#define JUMPS(name, jump)                                                                                              \
    static int name(void) {                                                                                            \
        if (sigsetjmp(here, 0) == 0)                                                                                   \
            INSIDE(jump(here, 1));                                                                                     \
        return 0;                                                                                                      \
    }
JUMPS(by_longjmp, longjmp)
JUMPS(by_plain, _longjmp)
JUMPS(by_siglongjmp, siglongjmp)
JUMPS(by_checked, __longjmp_chk)
static void signals(void) {
    old.sa_handler = sighandler;
    WORKS(sigaction(SIGUSR2, &old, NULL));
    WORKS(sigaction(SIGUSR2, NULL, &old));
#define SETS(call) (DO((call) == SIG_ERR) ? fail(#call) : (void)0)
    SETS(signal(SIGUSR2, sighandler));
    SETS(ssignal(SIGUSR2, sighandler));
    SETS(bsd_signal(SIGUSR2, sighandler));
    SETS(sysv_signal(SIGUSR2, sighandler));
    SETS(sigset(SIGUSR2, sighandler));
    SETS(signal(SIGUSR2, SIG_IGN));
    WORKS(siginterrupt(SIGUSR2, 1));
    WORKS(by_longjmp());
    WORKS(by_plain());
    WORKS(by_siglongjmp());
    WORKS(by_checked());
}

/* The rest of what is called by its number, from a connection's first call to its last. */
static struct {
    const sigset_t *mask;
    size_t size;
} no_mask = {NULL, 8};
static struct timeval moment = {0, 1000};
static void by_numbers(void) {
    place.sin_port = 0;
    WORKS(fds[0] = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    WORKS(syscall(SYS_bind, fds[0], &place, sizeof place));
    WORKS(syscall(SYS_listen, fds[0], 5));
    length = sizeof place;
    WORKS(syscall(SYS_getsockname, fds[0], &place, &length));
    WORKS(fds[1] = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    WORKS(syscall(SYS_connect, fds[1], &place, sizeof place));
    WORKS(fds[2] = syscall(SYS_accept, fds[0], NULL, NULL));
    for (int i = 0; i < WARM; i++) {
        WORKS(syscall(SYS_write, fds[1], bytes, 64));
        WORKS(syscall(SYS_read, fds[2], bytes, 64));
        WORKS(syscall(SYS_write, fds[2], bytes, 64));
        WORKS(syscall(SYS_read, fds[1], bytes, 64));
    }
    WORKS(syscall(SYS_sendmmsg, fds[1], several, 2, 0));
    WORKS(syscall(SYS_recvmmsg, fds[2], several, 2, MSG_WAITFORONE, NULL));
    drain(fds[2]);
    WORKS(syscall(SYS_pwritev2, fds[1], halves, 2, -1L, -1L, 0));
    WORKS(syscall(SYS_preadv2, fds[2], halves, 2, -1L, -1L, 0));
    sets();
    WORKS(syscall(SYS_select, 64, &in_set, &out_set, NULL, &moment));
    moment.tv_usec = 1000;
    FD_ZERO(&out_set);
    FD_SET(fds[1], &in_set);
    WORKS(syscall(SYS_select, 64, &in_set, &out_set, NULL, &moment));
    FD_SET(fds[1], &in_set);
    WORKS(syscall(SYS_pselect6, 64, &in_set, NULL, NULL, &soon, &no_mask));
    soon.tv_nsec = 1000000;
    for (int i = 0; i < 300; i++)
        many[i] = (struct pollfd){fds[i % 3], POLLIN, 0};
    WORKS(syscall(SYS_ppoll, many, 300, &soon, NULL, 8));
    soon.tv_nsec = 1000000;
    WORKS(fds[3] = syscall(SYS_epoll_create1, 0));
    events[0] = (struct epoll_event){EPOLLIN, {.u64 = 7}};
    WORKS(syscall(SYS_epoll_ctl, fds[3], EPOLL_CTL_ADD, fds[1], events));
    WORKS(syscall(SYS_epoll_pwait, fds[3], events, 20, 1, NULL, 8));
    WORKS(syscall(SYS_epoll_pwait2, fds[3], events, 20, &soon, NULL, 8));
    soon.tv_nsec = 1000000;
    WORKS(syscall(SYS_dup3, fds[1], 60, O_CLOEXEC));
    WORKS(syscall(SYS_close_range, 60, 70, 0));
    WORKS(number = syscall(SYS_fcntl, fds[1], F_DUPFD, 60));
    WORKS(syscall(SYS_close, number));
    WORKS(syscall(SYS_ioctl, fds[1], FIONREAD, &number));
    length = sizeof other;
    WORKS(syscall(SYS_getpeername, fds[1], &other, &length));
    length = sizeof number;
    WORKS(syscall(SYS_getsockopt, fds[1], SOL_SOCKET, SO_ERROR, &number, &length));
    WORKS(syscall(SYS_setsockopt, fds[1], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one));
    WORKS(syscall(SYS_pipe2, &fds[4], O_CLOEXEC | O_NONBLOCK));
    WORKS(syscall(SYS_write, fds[1], bytes, 5000));
    WORKS(syscall(SYS_splice, fds[2], NULL, fds[5], NULL, 1000, SPLICE_F_NONBLOCK));
    WORKS(syscall(SYS_splice, fds[4], NULL, fds[1], NULL, 1000, SPLICE_F_NONBLOCK));
    drain(fds[2]);
    WORKS(syscall(SYS_shutdown, fds[1], SHUT_WR));
    DO(syscall(SYS_accept4, -1, NULL, NULL, 0));
    for (number = 0; number < 6; number++)
        WORKS(syscall(SYS_close, fds[number]));
}

/* What takes a connection to the kernel, with bytes in its ring. */
static struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
static void to_the_kernel(int way) {
    int l = listen_somewhere(&place);
    signal(SIGIO, SIG_IGN);
    warm_pair(&place, l, &fds[1], &fds[2]);
    WORKS(write(fds[1], bytes, 3000));
    switch (way) {
    case 0: WORKS(send(fds[1], "u", 1, MSG_OOB)); break;
    case 1: WORKS(setsockopt(fds[2], SOL_SOCKET, SO_TIMESTAMP, &one, sizeof one)); break;
    case 2: WORKS(setsockopt(fds[1], SOL_SOCKET, SO_MAX_PACING_RATE, &(int){1 << 30}, sizeof(int))); break;
    case 3: WORKS(fcntl(fds[2], F_SETOWN, getpid())); WORKS(fcntl(fds[2], F_SETFL, O_ASYNC)); break;
    case 4: DO(setsockopt(fds[2], SOL_SOCKET, SO_PEEK_OFF, &(int){10}, sizeof(int))); break;
    case 5: WORKS(connect(fds[1], &unspecified, sizeof unspecified)); break;
    }
    WORKS(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT));
    if (way != 5) {
        WORKS(write(fds[1], bytes, 100));
        WORKS(read(fds[2], bytes, 100));
        WORKS(write(fds[2], bytes, 100));
        WORKS(read(fds[1], bytes, 100));
    }
    WORKS(close(fds[1]));
    WORKS(close(fds[2]));
    close(l);
}

static void all_ways(void) {
    int l = listen_somewhere(&place);
    warm_pair(&place, l, &fds[1], &fds[2]);
    exchange_all_ways(fds[1], fds[2]);
    exchange_all_ways(fds[2], fds[1]);
    close(fds[1]), close(fds[2]), close(l);
    WORKS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    exchange_all_ways(fds[0], fds[1]);
    close(fds[0]), close(fds[1]);
    by_numbers();
    for (int way = 0; way < 6; way++)
        to_the_kernel(way);
    others();
    signals();
}

/* All of it three times: in a program whose first listener a handler makes, in one that has just made one elsewhere, as the library
 * begins, and in one that has everything. */
static void lives(const char *room) {
    take_room(atoi(room));
    life();
    close(listen_somewhere(&place));
    life();
    life();
    all_ways();
    tell_deepest();
}
static void small_stack_server(int fd) {
    say("status %x", run_fresh("lives", "8192"));
    send_noise(fd, 0, 100);
}
static void small_stack_client(int fd) { recv_noise(fd, 0, 100); }
/* For a library that was built without optimisation. */
static void roomy_server(int fd) {
    say("status %x", run_fresh("lives", "65536"));
    send_noise(fd, 0, 100);
}
static void roomy_client(int fd) { recv_noise(fd, 0, 100); }

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(small_stack), CASE(roomy)};
    if (argc > 2) {
        lives(argv[2]);
        return 0;
    }
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
