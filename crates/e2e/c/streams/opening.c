/* Opening streams, copies of their descriptors, and closing. */
#include "harness.h"
#include <pthread.h>
#include <sys/sad.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

CASE(open_unknown, "open(2) ENOENT") {
    check_errno2(open("/dev/nosuchstream", O_RDWR), ENOENT, ENXIO);
}
CASE(open_own_stream_each, "clone(7D)") {
    int a = open_stream("/dev/echo"), b = open_stream("/dev/echo");
    put(a, NULL, "mine", 0);
    check_nothing(b);
    check_message(a, NULL, "mine", 0);
}
CASE(open_modes, "open(2)") {
    int fd = open_stream_flags("/dev/echo", O_RDONLY | O_NONBLOCK);
    check_eq(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
    fd = open_stream_flags("/dev/echo", O_WRONLY);
    check_eq(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_WRONLY);
    fd = open_stream_flags("/dev/echo", O_RDWR);
    check_eq(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
}
CASE(open_cloexec, "open(2)") {
    check_eq(fcntl(open_stream("/dev/echo"), F_GETFD), 0);
    check_eq(fcntl(open_stream_flags("/dev/echo", O_RDWR | O_CLOEXEC), F_GETFD), FD_CLOEXEC);
}
CASE(isastream_says, "isastream(3C)") {
    int fd[2], plain[2];
    pipe_flags(fd, 0);
    check_eq(isastream(fd[0]), 1);
    check_eq(isastream(fd[1]), 1);
    check_eq(isastream(open_stream("/dev/echo")), 1);
    check_eq(isastream(must(open("/dev/null", O_RDWR))), 0);
    must(pipe(plain));
    check_eq(isastream(plain[0]), 0);
}
CASE(isastream_closed, "isastream(3C) EBADF") {
    int fd = open_stream("/dev/echo");
    must(close(fd));
    check_errno(isastream(fd), EBADF);
    check_errno(isastream(-1), EBADF);
}
CASE(dup_shares, "dup(2)") {
    int fd = open_stream("/dev/echo"), copy = must(dup(fd));
    push(copy, "nullmod");
    check_eq(ioctl(fd, I_FIND, "nullmod"), 1);
    put(fd, NULL, "shared", 0);
    must(close(fd));
    check_message(copy, NULL, "shared", 0);
    check_eq(isastream(copy), 1);
}
CASE(dup2_replaces, "dup(2)") {
    int fd = open_stream("/dev/echo"), file = must(open("/dev/null", O_RDWR));
    check_eq(dup2(fd, file), file);
    check_eq(isastream(file), 1);
    check_eq(write(file, "text", 4), 4);
    check_read(fd, "text");
    int null = must(open("/dev/null", O_RDWR));
    check_eq(dup2(null, file), file);
    check_eq(isastream(file), 0);
    check_eq(isastream(fd), 1);
}
CASE(closed_is_ebadf, "ioctl(2) EBADF") {
    int fd = open_stream("/dev/echo"), n;
    must(close(fd));
    check_errno(ioctl(fd, I_NREAD, &n), EBADF);
    check_errno(write(fd, "x", 1), EBADF);
    check_errno(read(fd, &n, 1), EBADF);
    check_errno(close(fd), EBADF);
}
CASE(reopened_number, "close(2)") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    put(fd, NULL, "lost", 0);
    must(close(fd));
    check_eq(open("/dev/echo", O_RDWR), fd);
    check_eq(ioctl(fd, I_LIST, NULL), 1);
    check_nothing(fd);
}
CASE(number_of_a_plain_file, "close(2)") {
    int fd = open_stream("/dev/echo");
    must(close(fd));
    check_eq(open("/dev/null", O_RDWR), fd);
    check_eq(isastream(fd), 0);
    check_eq(write(fd, "x", 1), 1);
    check_eq(read(fd, (char[1]){0}, 1), 0);
}
CASE(not_a_stream, "streamio(7I) ENOTTY") {
    int fd = must(open("/dev/null", O_RDWR)), n;
    check_errno2(ioctl(fd, I_NREAD, &n), ENOTTY, ENOSTR);
    check_errno2(ioctl(fd, I_PUSH, "nullmod"), ENOTTY, ENOSTR);
}
CASE(lseek_refused, "lseek(2) ESPIPE") {
    int fd[2];
    pipe_flags(fd, 0);
    check_errno(lseek(fd[0], 0, SEEK_SET), ESPIPE);
    check_errno(lseek(fd[1], 1, SEEK_CUR), ESPIPE);
}
CASE(socket_calls_refused, "send(2), recvmmsg(2) ENOTSOCK") {
    int fd[2];
    char byte;
    struct iovec v = {&byte, 1};
    struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
    pipe_flags(fd, O_NONBLOCK);
    check_errno(send(fd[0], "x", 1, 0), ENOTSOCK);
    check_errno(sendto(fd[0], "x", 1, 0, NULL, 0), ENOTSOCK);
    check_errno(sendmsg(fd[0], &m.msg_hdr, 0), ENOTSOCK);
    check_errno(sendmmsg(fd[0], &m, 1, 0), ENOTSOCK);
    check_errno(recv(fd[1], &byte, 1, 0), ENOTSOCK);
    check_errno(recvfrom(fd[1], &byte, 1, 0, NULL, NULL), ENOTSOCK);
    check_errno(recvmsg(fd[1], &m.msg_hdr, 0), ENOTSOCK);
    check_errno(recvmmsg(fd[1], &m, 1, 0, NULL), ENOTSOCK);
    check_nothing(fd[1]);
}

/* --- what close does with messages on their way down --- */

/* A pipe whose writing end has messages in a module's queue, no descriptor without O_NONBLOCK; how many bytes are in it. */
static long stuffed(int fd[2]) {
    char kilo[1000];
    long sent = 0;
    ssize_t n;
    memset(kilo, 'k', sizeof kilo);
    pipe_flags(fd, O_NONBLOCK);
    push(fd[0], "bufmod");
    while ((n = write(fd[0], kilo, sizeof kilo)) > 0)
        sent += n;
    check_eq(errno, EAGAIN);
    return sent;
}

/* Bytes up to the end of the file. */
static void *count_to_end(void *with) {
    static long count;
    char buf[4096];
    ssize_t n;
    sleep_ms(50);
    while ((n = read(*(int *)with, buf, sizeof buf)) > 0)
        count += n;
    check_eq(n, 0);
    return &count;
}
CASE(close_waits_for_messages, "streamio(7I) I_SETCLTIME") {
    int fd[2];
    long sent = stuffed(fd);
    pthread_t reader;
    void *count;
    set_nonblock(fd[0], 0);
    set_nonblock(fd[1], 0);
    check_eq(pthread_create(&reader, NULL, count_to_end, &fd[1]), 0);
    must(close(fd[0]));
    check_eq(pthread_join(reader, &count), 0);
    check_eq(*(long *)count, sent);
}
CASE(close_gives_up, "streamio(7I) I_SETCLTIME") {
    int fd[2], ms = 200;
    long sent = stuffed(fd);
    set_nonblock(fd[0], 0);
    set_nonblock(fd[1], 0);
    check_eq(ioctl(fd[0], I_SETCLTIME, &ms), 0);
    long begun = now_ms();
    must(close(fd[0]));
    check(now_ms() - begun >= 150);
    check(*(long *)count_to_end(&fd[1]) <= sent);
}
CASE(close_does_not_wait, "close(2) O_NONBLOCK") {
    int fd[2];
    long sent = stuffed(fd);
    must(close(fd[0]));
    set_nonblock(fd[1], 0);
    check(*(long *)count_to_end(&fd[1]) <= sent);
}

/* --- names that no file has --- */

/* Of the C library of old, in no header any more. */
int __xstat(int, const char *, struct stat *), __lxstat(int, const char *, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);

static const char *const ours[] = {"/dev/tcp",  "/dev/inet/udp", "/dev/streams/ticots", "/dev/streams/inet/tcp6", "/dev/echo",
                                   "/dev/sad/admin", "/dev/streams/mux"};
static const char *const others[] = {"/dev/nosuchstream", "/dev/streams/nosuch", "/dev/inet/echo", "/dev/clone", "/dev/fifo.",
                                     "/dev/tcp/below", "/nowhere/dev/tcp", "/dev/streams", ""};
#define EACH(LIST, NAME) \
    for (size_t i = 0; i < sizeof LIST / sizeof *LIST; i++) \
        for (const char *NAME = LIST[i]; NAME; NAME = NULL)

CASE(names_that_open_may_be_accessed, "access(2)") {
    EACH(ours, name) {
        check_eq(access(name, F_OK), 0);
        check_eq(access(name, R_OK | W_OK), 0);
        check_errno(access(name, X_OK), EACCES);
        check_errno(access(name, 1 << 10), EINVAL);
        check_eq(euidaccess(name, R_OK), 0);
        check_eq(eaccess(name, W_OK), 0);
        check_eq(faccessat(AT_FDCWD, name, R_OK, AT_EACCESS), 0);
        check_eq(faccessat(-1, name, R_OK, 0), 0);
        close(open_stream(name));
    }
    EACH(others, name) {
        check(open(name, O_RDWR) < 0 && access(name, F_OK) < 0 && euidaccess(name, F_OK) < 0);
        check(faccessat(AT_FDCWD, name, F_OK, 0) < 0);
    }
    check_errno(access(NULL, F_OK), EFAULT);
}

static void same(const struct stat *a, const struct stat *b) {
    check_eq(a->st_mode, b->st_mode);
    check_eq(a->st_rdev, b->st_rdev);
    check_eq(a->st_ino, b->st_ino);
    check_eq(a->st_dev, b->st_dev);
}

CASE(names_that_open_have_a_status, "stat(2)") {
    struct stat first, other;
    struct statx x;
    EACH(ours, name) {
        check_eq(stat(name, &first), 0);
        check(S_ISCHR(first.st_mode) && first.st_nlink == 1);
        check_eq(lstat(name, &other), 0);
        same(&first, &other);
        check_eq(fstatat(-1, name, &other, AT_SYMLINK_NOFOLLOW), 0);
        same(&first, &other);
        check_eq(__xstat(1, name, &other), 0);
        same(&first, &other);
        check_eq(__lxstat(1, name, &other), 0);
        same(&first, &other);
        check_eq(__fxstatat(1, AT_FDCWD, name, &other, 0), 0);
        same(&first, &other);
        check_eq(stat64(name, (struct stat64 *)&other), 0);
        same(&first, &other);
        check_eq(statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &x), 0);
        check_eq(x.stx_mode, first.st_mode);
        check_eq(makedev(x.stx_rdev_major, x.stx_rdev_minor), first.st_rdev);
        check_errno(stat(name, NULL), EFAULT);
        close(open_stream(name));
        check_eq(stat(name, &other), 0);
        same(&first, &other);
    }
    EACH(others, name) {
        check(stat(name, &other) < 0 && lstat(name, &other) < 0 && fstatat(AT_FDCWD, name, &other, 0) < 0);
        check(statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &x) < 0);
    }
    check_errno(stat("/dev/nosuchstream", &other), ENOENT);
    check_eq(stat("/dev/null", &other), 0);
    check_eq(other.st_rdev, makedev(1, 3));
}

/* The number is the one by which sad(7D) knows the device, also if it is asked for first. */
CASE(the_number_of_a_device, "sad(7D)") {
    struct stat tcp, echo, other;
    check_eq(stat("/dev/inet/udp2", &tcp), 0);
    /* Before there are streams a driver is found below its own folder alone. */
    check_errno(stat("/dev/echo", &other), ENOENT);
    check_eq(stat("/dev/streams/echo", &echo), 0);
    int sad = open_stream("/dev/sad/user");
    check_eq(stat("/dev/echo", &other), 0);
    same(&echo, &other);
    struct strapush pushed = {.sap_major = major(tcp.st_rdev), .sap_minor = 0};
    check_errno(ioctl(sad, SAD_GAP, &pushed), ENODEV);
    pushed.sap_major = major(echo.st_rdev);
    check_errno(ioctl(sad, SAD_GAP, &pushed), ENODEV);
    pushed = (struct strapush){.sap_cmd = SAP_ALL, .sap_major = major(echo.st_rdev), .sap_npush = 1, .sap_list = {"sc"}};
    check_eq(ioctl(open_stream("/dev/sad/admin"), SAD_SAP, &pushed), 0);
    check_eq(ioctl(open_stream("/dev/echo"), I_FIND, "sc"), 1);
}

CASE(a_fifo_has_a_status, "stat(2)") {
    struct stat a, b, c;
    check_eq(access("/dev/fifo.a", R_OK | W_OK), 0);
    check_eq(stat("/dev/fifo.a", &a), 0);
    check_eq(stat("/dev/fifo.b", &b), 0);
    check_eq(stat("/dev/streams/fifo.a", &c), 0);
    check(S_ISFIFO(a.st_mode) && a.st_ino != b.st_ino);
    same(&a, &c);
    check_eq(stat("/dev/fifo", &b), 0);
    check(S_ISFIFO(b.st_mode));
}

CASE(questions_by_number, "syscall(2)") {
    struct stat first, other;
    open_stream("/dev/echo");
    check_eq(stat("/dev/tcp", &first), 0);
    check_eq(syscall(SYS_access, "/dev/tcp", R_OK), 0);
    check_eq(syscall(SYS_faccessat, AT_FDCWD, "/dev/tcp", R_OK), 0);
    check_eq(syscall(SYS_faccessat2, AT_FDCWD, "/dev/tcp", R_OK, AT_EACCESS), 0);
    check_eq(syscall(SYS_stat, "/dev/tcp", &other), 0);
    same(&first, &other);
    check_eq(syscall(SYS_lstat, "/dev/tcp", &other), 0);
    same(&first, &other);
    check_eq(syscall(SYS_newfstatat, AT_FDCWD, "/dev/tcp", &other, 0), 0);
    same(&first, &other);
    check_eq(syscall(SYS_newfstatat, open(".", O_RDONLY), "", &other, AT_EMPTY_PATH), 0);
    check(S_ISDIR(other.st_mode));
}

CASES(ENTRY(open_unknown), ENTRY(open_own_stream_each), ENTRY(open_modes), ENTRY(open_cloexec), ENTRY(isastream_says),
      ENTRY(isastream_closed), ENTRY(dup_shares), ENTRY(dup2_replaces), ENTRY(closed_is_ebadf), ENTRY(reopened_number),
      ENTRY(number_of_a_plain_file), ENTRY(not_a_stream), ENTRY(lseek_refused), ENTRY(socket_calls_refused), ENTRY(close_waits_for_messages),
      ENTRY(close_gives_up), ENTRY(close_does_not_wait), ENTRY(names_that_open_may_be_accessed),
      ENTRY(names_that_open_have_a_status), ENTRY(the_number_of_a_device), ENTRY(a_fifo_has_a_status), ENTRY(questions_by_number))
