/* write and writev: what messages they make, empty writes, flow control's errors, the other end gone. */
#include "harness.h"

static char pattern[1 << 20];
static void fill(void) {
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (char)(i * 31 + i / 251);
}

/* Reads n bytes of the pattern from `at` on. */
static void read_pattern(int fd, size_t at, size_t n) {
    static char in[70000];
    for (size_t done = 0; done < n;) {
        size_t most = n - done < sizeof in ? n - done : sizeof in;
        ssize_t r = must(read(fd, in, most));
        check(r > 0);
        check_bytes(in, pattern + at + done, r);
        done += r;
    }
}

CASE(one_message, "write(2)") {
    int fd = open_stream("/dev/echo");
    check_eq(write(fd, "data", 4), 4);
    check_message(fd, NULL, "data", 0);
    check_nothing(fd);
}
CASE(message_per_write, "write(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "one", 3), 3);
    check_eq(write(fd[0], "two", 3), 3);
    check_message(fd[1], NULL, "one", 0);
    check_message(fd[1], NULL, "two", 0);
}
CASE(all_small_sizes, "write(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, 0);
    for (int n = 1; n <= 2048; n += n < 130 ? 1 : 61) {
        check_eq(write(fd[0], pattern, n), n);
        check_eq(write(fd[1], pattern + n, n), n);
        read_pattern(fd[1], 0, n);
        read_pattern(fd[0], n, n);
    }
}
CASE(all_small_sizes_driver, "write(2)") {
    int fd = open_stream("/dev/echo");
    fill();
    push(fd, "bufmod");
    for (int n = 1; n <= 2048; n += 61) {
        check_eq(write(fd, pattern + n, n), n);
        read_pattern(fd, n, n);
    }
}
static void write_pattern(void *with) {
    int *fd = with;
    must(close(fd[1]));
    check_eq(write(fd[0], pattern, sizeof pattern), (long)sizeof pattern);
}
CASE(large_is_split, "write(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, 0);
    pid_t child = spawn(write_pattern, fd);
    read_pattern(fd[1], 0, sizeof pattern);
    join(child);
}
CASE(large_through_modules, "write(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, 0);
    push(fd[1], "bufmod");
    pid_t child = spawn(write_pattern, fd);
    read_pattern(fd[1], 0, sizeof pattern);
    join(child);
}
static void write_pattern_holding_both(void *with) {
    check_eq(write(*(int *)with, pattern, sizeof pattern), (long)sizeof pattern);
}
CASE(large_to_modules_of_the_parent, "write(2), fork(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, 0);
    push(fd[1], "bufmod");
    pid_t child = spawn(write_pattern_holding_both, fd);
    read_pattern(fd[1], 0, sizeof pattern);
    join(child);
}
CASE(holds_64k, "write(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, O_NONBLOCK);
    for (int i = 0; i < 64; i++)
        check_eq(write(fd[0], pattern + 1024 * i, 1024), 1024);
    read_pattern(fd[1], 0, 65536);
}
CASE(empty_on_driver, "write(2)") {
    int fd = open_stream("/dev/echo");
    check_eq(write(fd, "", 0), 0);
    check_message(fd, NULL, "", 0);
}
CASE(empty_on_pipe, "write(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "", 0), 0);
    check_eq(write(fd[0], NULL, 0), 0);
    check_nothing(fd[1]);
}
CASE(empty_on_pipe_asked_for, "streamio(7I) SNDZERO") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[0], I_SWROPT, SNDZERO));
    check_eq(write(fd[0], "", 0), 0);
    check_eq(write(fd[0], "data", 4), 4);
    check_message(fd[1], NULL, "", 0);
    check_message(fd[1], NULL, "data", 0);
    check_eq(write(fd[1], "", 0), 0);
    check_nothing(fd[0]);
}
CASE(empty_no_longer_asked_for, "streamio(7I) SNDZERO") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[0], I_SWROPT, SNDZERO));
    must(ioctl(fd[0], I_SWROPT, 0));
    check_eq(write(fd[0], "", 0), 0);
    check_nothing(fd[1]);
}
CASE(empty_through_modules, "streamio(7I) SNDZERO") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "nullmod");
    must(ioctl(fd[0], I_SWROPT, SNDZERO));
    check_eq(write(fd[0], "", 0), 0);
    check_message(fd[1], NULL, "", 0);
}
CASE(vectors, "writev(2)") {
    int fd = open_stream("/dev/echo");
    struct iovec v[] = {{"abc", 3}, {NULL, 0}, {"de", 2}, {"f", 1}};
    check_eq(writev(fd, v, 4), 6);
    check_message(fd, NULL, "abcdef", 0);
    check_nothing(fd);
}
CASE(vectors_pipe, "writev(2)") {
    int fd[2];
    struct iovec v[] = {{"abc", 3}, {NULL, 0}, {"de", 2}, {"f", 1}};
    pipe_flags(fd, 0);
    check_eq(writev(fd[0], v, 4), 6);
    check_eq(writev(fd[0], v, 1), 3);
    check_message(fd[1], NULL, "abcdef", 0);
    check_message(fd[1], NULL, "abc", 0);
    check_nothing(fd[1]);
}
CASE(vectors_large, "writev(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, 0);
    struct iovec v[] = {{pattern, 10000}, {pattern + 10000, 1}, {pattern + 10001, 20000}};
    check_eq(writev(fd[0], v, 3), 30001);
    read_pattern(fd[1], 0, 30001);
}
CASE(vectors_empty, "writev(2)") {
    int fd[2];
    struct iovec v[] = {{"", 0}, {NULL, 0}};
    pipe_flags(fd, 0);
    check_eq(writev(fd[0], v, 2), 0);
    check_nothing(fd[1]);
}
CASE(vectors_bad, "writev(2) EINVAL") {
    int fd = open_stream("/dev/echo");
    struct iovec v[] = {{"abc", (size_t)-1}, {"de", 2}};
    check_errno(writev(fd, v, 2), EINVAL);
    check_errno(writev(fd, v, -1), EINVAL);
    check_errno(writev(fd, v, 100000), EINVAL);
    check_nothing(fd);
}
CASE(fault, "write(2) EFAULT") {
    int fd[2], echo = open_stream("/dev/echo");
    pipe_flags(fd, 0);
    check_errno(write(echo, NULL, 4), EFAULT);
    check_errno(write(echo, (void *)8, 4), EFAULT);
    check_errno(write(fd[0], NULL, 4), EFAULT);
    check_errno(write(fd[0], (void *)8, 4), EFAULT);
    check_nothing(fd[1]);
    check_nothing(echo);
}
CASE(direction, "write(2) EBADF") {
    check_errno(write(open_stream_flags("/dev/echo", O_RDONLY), "x", 1), EBADF);
}
CASE(full, "write(2) EAGAIN") {
    int fd[2];
    ssize_t n;
    size_t sent = 0;
    fill();
    pipe_flags(fd, O_NONBLOCK);
    while ((n = write(fd[0], pattern + sent, 1000)) > 0) {
        check_eq(n, 1000);
        check((sent += n) < sizeof pattern - 1000);
    }
    check_eq(errno, EAGAIN);
    read_pattern(fd[1], 0, sent);
    check_eq(write(fd[0], pattern, 1000), 1000);
}
CASE(full_part_of_large, "write(2)") {
    int fd[2];
    fill();
    pipe_flags(fd, O_NONBLOCK);
    ssize_t n = must(write(fd[0], pattern, sizeof pattern));
    check(n >= 4096 && n < (ssize_t)sizeof pattern);
    check_errno(write(fd[0], pattern + n, sizeof pattern - n), EAGAIN);
    read_pattern(fd[1], 0, n);
}
CASE(full_driver, "write(2) EAGAIN") {
    int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    ssize_t n;
    size_t sent = 0;
    fill();
    while ((n = write(fd, pattern + sent, 512)) > 0)
        check((sent += n) < sizeof pattern - 512);
    check_eq(errno, EAGAIN);
    read_pattern(fd, 0, sent);
    check_eq(write(fd, pattern, 512), 512);
}
static void read_some_later(void *with) {
    sleep_ms(50);
    size_t *n = ((void **)with)[1];
    read_pattern(*((int **)with)[0], 0, *n);
}
CASE(full_blocks, "write(2)") {
    int fd[2];
    size_t sent = 0;
    ssize_t n;
    fill();
    pipe_flags(fd, O_NONBLOCK);
    while ((n = write(fd[0], pattern + sent, 1000)) > 0)
        sent += n;
    void *with[] = {&fd[1], &sent};
    set_nonblock(fd[1], 0);
    pid_t child = spawn(read_some_later, with);
    set_nonblock(fd[0], 0);
    check_eq(write(fd[0], "after", 5), 5);
    join(child);
    check_read(fd[1], "after");
}
CASE(full_interrupted, "write(2) EINTR") {
    int fd[2];
    fill();
    pipe_flags(fd, O_NONBLOCK);
    while (write(fd[0], pattern, 1000) > 0)
        ;
    set_nonblock(fd[0], 0);
    catch_signal(SIGUSR1);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec in = {.it_value.tv_nsec = 30000000, .it_interval.tv_nsec = 30000000};
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &in, NULL));
    check_errno(write(fd[0], pattern, 1000), EINTR);
    check(caught[SIGUSR1] > 0);
}
CASE(other_end_gone, "write(2) EPIPE") {
    int fd[2];
    pipe_flags(fd, 0);
    catch_signal(SIGPIPE);
    must(close(fd[1]));
    check_errno(write(fd[0], "x", 1), EPIPE);
    check_eq(caught[SIGPIPE], 1);
    check_errno(writev(fd[0], &(struct iovec){"x", 1}, 1), EPIPE);
    check_eq(caught[SIGPIPE], 2);
}
CASE(other_end_gone_ignored, "write(2) EPIPE") {
    int fd[2];
    pipe_flags(fd, 0);
    signal(SIGPIPE, SIG_IGN);
    must(close(fd[1]));
    check_errno(write(fd[0], "x", 1), EPIPE);
}
CASE(other_end_gone_with_modules, "write(2) EPIPE") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "nullmod");
    catch_signal(SIGPIPE);
    must(close(fd[1]));
    await(events(fd[0], POLLIN, 0) & POLLHUP);
    check_errno(write(fd[0], "x", 1), EPIPE);
    check_eq(caught[SIGPIPE], 1);
}
static void write_and_die(void *with) {
    signal(SIGPIPE, SIG_DFL);
    (void)!write(*(int *)with, "x", 1);
    fail("the child outlived its write");
}
CASE(other_end_gone_kills, "write(2) SIGPIPE") {
    int fd[2], status;
    pipe_flags(fd, 0);
    must(close(fd[1]));
    pid_t child = spawn(write_and_die, &fd[0]);
    check_eq(waitpid(child, &status, 0), child);
    check(WIFSIGNALED(status));
    check_eq(WTERMSIG(status), SIGPIPE);
}
static void close_later(void *with) {
    sleep_ms(50);
    must(close(((int *)with)[1]));
}
CASE(other_end_goes_while_blocked, "write(2) EPIPE") {
    int fd[2];
    fill();
    pipe_flags(fd, O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
    while (write(fd[0], pattern, 1000) > 0)
        ;
    set_nonblock(fd[0], 0);
    pid_t child = spawn(close_later, fd);
    must(close(fd[1]));
    check_errno(write(fd[0], pattern, 1000), EPIPE);
    join(child);
}
CASE(still_readable_after_close, "write(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "left", 4), 4);
    check_eq(write(fd[1], "lost", 4), 4);
    must(close(fd[0]));
    check_read(fd[1], "left");
    check_read(fd[1], "");
}

CASES(ENTRY(one_message), ENTRY(message_per_write), ENTRY(all_small_sizes), ENTRY(all_small_sizes_driver),
      ENTRY(large_is_split), ENTRY(large_through_modules), ENTRY(large_to_modules_of_the_parent), ENTRY(holds_64k),
      ENTRY(empty_on_driver), ENTRY(empty_on_pipe), ENTRY(empty_on_pipe_asked_for), ENTRY(empty_no_longer_asked_for),
      ENTRY(empty_through_modules), ENTRY(vectors), ENTRY(vectors_pipe), ENTRY(vectors_large), ENTRY(vectors_empty),
      ENTRY(vectors_bad), ENTRY(fault), ENTRY(direction), ENTRY(full), ENTRY(full_part_of_large), ENTRY(full_driver),
      ENTRY(full_blocks), ENTRY(full_interrupted), ENTRY(other_end_gone), ENTRY(other_end_gone_ignored),
      ENTRY(other_end_gone_with_modules), ENTRY(other_end_gone_kills), ENTRY(other_end_goes_while_blocked),
      ENTRY(still_readable_after_close))
