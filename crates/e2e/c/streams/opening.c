/* Opening streams, copies of their descriptors, and closing. */
#include "harness.h"
#include <pthread.h>

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

CASES(ENTRY(open_unknown), ENTRY(open_own_stream_each), ENTRY(open_modes), ENTRY(open_cloexec), ENTRY(isastream_says),
      ENTRY(isastream_closed), ENTRY(dup_shares), ENTRY(dup2_replaces), ENTRY(closed_is_ebadf), ENTRY(reopened_number),
      ENTRY(number_of_a_plain_file), ENTRY(not_a_stream), ENTRY(lseek_refused), ENTRY(close_waits_for_messages),
      ENTRY(close_gives_up), ENTRY(close_does_not_wait))
