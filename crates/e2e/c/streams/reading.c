/* read and readv: the read modes, what becomes of control parts, empty messages, boundaries. */
#include "harness.h"

static int in_mode(int mode) {
    int fd = open_stream("/dev/echo");
    check_eq(ioctl(fd, I_SRDOPT, mode), 0);
    return fd;
}

/* read of at most n bytes returns exactly this text. */
#define check_read_of(FD, N, EXPECTED) \
    do { \
        char some_[8192]; \
        ssize_t count_ = must(read(FD, some_, N)); \
        some_[count_] = 0; \
        check_str(some_, EXPECTED); \
    } while (0)

#define write_text(FD, TEXT) check_eq(write(FD, TEXT, strlen(TEXT)), (long)strlen(TEXT))

/* Nothing left for read. */
#define check_drained(FD) \
    do { \
        set_nonblock(FD, 1); \
        check_errno(read(FD, (char[9]){0}, 9), EAGAIN); \
    } while (0)

/* --- byte-stream mode --- */

CASE(normal_joins, "read(2) RNORM") {
    int fd = in_mode(RNORM);
    write_text(fd, "one");
    write_text(fd, "two");
    write_text(fd, "three");
    check_read(fd, "onetwothree");
    check_drained(fd);
}
CASE(normal_joins_pipe, "read(2) RNORM") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "one");
    write_text(fd[0], "two");
    check_read_of(fd[1], 4, "onet");
    write_text(fd[0], "three");
    check_read(fd[1], "wothree");
    check_drained(fd[1]);
}
CASE(normal_bytewise, "read(2) RNORM") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "abc");
    write_text(fd[0], "de");
    for (const char *c = "abcde"; *c; c++)
        check_read_of(fd[1], 1, ((char[2]){*c}));
    check_drained(fd[1]);
}
CASE(normal_joins_behind_a_rest, "read(2) RNORM, getmsg(2) MOREDATA") {
    int fd[2], flags = 0;
    char some[9];
    struct strbuf data = {.maxlen = 3, .buf = some};
    pipe_flags(fd, 0);
    putpmsg(fd[0], NULL, &(struct strbuf){.len = 5, .buf = "first"}, 2, MSG_BAND);
    write_text(fd[0], "second");
    check_eq(getmsg(fd[1], NULL, &data, &flags), MOREDATA);
    check_read(fd[1], "stsecond");
    check_drained(fd[1]);
}
CASE(normal_joins_a_part_pipe, "read(2) RNORM") {
    int fd[2];
    pipe_flags(fd, 0);
    putpmsg(fd[0], NULL, &(struct strbuf){.len = 5, .buf = "first"}, 2, MSG_BAND);
    putpmsg(fd[0], NULL, &(struct strbuf){.len = 6, .buf = "second"}, 2, MSG_BAND);
    write_text(fd[0], "third");
    check_read_of(fd[1], 8, "firstsec");
    check_read(fd[1], "ondthird");
    check_drained(fd[1]);
}
CASE(normal_stops_behind_a_rest, "read(2) RNORM, getmsg(2) MOREDATA") {
    int fd[2], flags = 0;
    char some[9];
    struct strbuf data = {.maxlen = 3, .buf = some}, control = {.len = 2, .buf = "cc"};
    pipe_flags(fd, 0);
    write_text(fd[0], "first");
    check_eq(putmsg(fd[0], &control, &(struct strbuf){.len = 6, .buf = "second"}, 0), 0);
    check_read_of(fd[1], 3, "fir");
    check_read(fd[1], "st");
    check_errno(read(fd[1], some, 9), EBADMSG);
    data.maxlen = 9;
    control = (struct strbuf){.maxlen = 1, .buf = (char[9]){0}};
    check_eq(getmsg(fd[1], &control, &data, &flags), MORECTL);
}
CASE(normal_short_amount, "read(2) RNORM") {
    int fd = in_mode(RNORM);
    write_text(fd, "three");
    check_read_of(fd, 100, "three");
}
CASE(normal_empty_message, "read(2) RNORM") {
    int fd = in_mode(RNORM);
    put(fd, NULL, "", 0);
    write_text(fd, "after");
    check_read(fd, "");
    check_read(fd, "after");
}
CASE(normal_stops_at_empty_message, "read(2) RNORM") {
    int fd = in_mode(RNORM);
    write_text(fd, "before");
    put(fd, NULL, "", 0);
    write_text(fd, "after");
    check_read(fd, "before");
    check_read(fd, "");
    check_read(fd, "after");
}
CASE(normal_stops_at_empty_message_pipe, "read(2) RNORM") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "before");
    put(fd[0], NULL, "", 0);
    write_text(fd[0], "after");
    check_read(fd[1], "before");
    check_read(fd[1], "");
    check_read(fd[1], "after");
}

/* --- message modes --- */

CASE(nondiscard, "read(2) RMSGN") {
    int fd = in_mode(RMSGN);
    write_text(fd, "abcdef");
    write_text(fd, "next");
    check_read_of(fd, 4, "abcd");
    check_read_of(fd, 100, "ef");
    check_read_of(fd, 100, "next");
}
CASE(nondiscard_pipe, "read(2) RMSGN") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGN));
    write_text(fd[0], "abcdef");
    write_text(fd[0], "next");
    check_read_of(fd[1], 4, "abcd");
    check_read_of(fd[1], 100, "ef");
    check_read_of(fd[1], 100, "next");
    check_drained(fd[1]);
}
CASE(discard, "read(2) RMSGD") {
    int fd = in_mode(RMSGD);
    write_text(fd, "abcdef");
    write_text(fd, "next");
    check_read_of(fd, 4, "abcd");
    check_read_of(fd, 100, "next");
    check_drained(fd);
}
CASE(discard_pipe, "read(2) RMSGD") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGD));
    write_text(fd[0], "abcdef");
    write_text(fd[0], "next");
    check_read_of(fd[1], 4, "abcd");
    check_read_of(fd[1], 100, "next");
    check_drained(fd[1]);
}
CASE(exact_amount, "read(2) RMSGD") {
    int fd = in_mode(RMSGD);
    write_text(fd, "four");
    write_text(fd, "next");
    check_read_of(fd, 4, "four");
    check_read_of(fd, 4, "next");
}
CASE(nondiscard_empty_message, "read(2) RMSGN") {
    int fd = in_mode(RMSGN);
    put(fd, NULL, "", 0);
    write_text(fd, "after");
    check_read(fd, "");
    check_read(fd, "after");
}
CASE(discard_empty_message_pipe, "read(2) RMSGD") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGD));
    put(fd[0], NULL, "", 0);
    put(fd[0], NULL, "", 0);
    write_text(fd[0], "after");
    check_read(fd[1], "");
    check_read(fd[1], "");
    check_read(fd[1], "after");
}
CASE(mode_changes_between, "streamio(7I) I_SRDOPT") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "abc");
    write_text(fd[0], "def");
    write_text(fd[0], "ghi");
    must(ioctl(fd[1], I_SRDOPT, RMSGN));
    check_read_of(fd[1], 2, "ab");
    must(ioctl(fd[1], I_SRDOPT, RNORM));
    check_read_of(fd[1], 2, "cd");
    must(ioctl(fd[1], I_SRDOPT, RMSGD));
    check_read_of(fd[1], 1, "e");
    check_read_of(fd[1], 9, "ghi");
}
CASE(boundaries_through_modules, "read(2) RMSGN") {
    int fd = in_mode(RMSGN);
    push(fd, "bufmod");
    push(fd, "sc");
    write_text(fd, "one");
    write_text(fd, "two");
    check_read(fd, "one");
    check_read(fd, "two");
}

/* --- control parts --- */

CASE(control_refused, "read(2) EBADMSG") {
    int fd = in_mode(RNORM);
    put(fd, "control", "data", 0);
    check_errno(read(fd, (char[9]){0}, 9), EBADMSG);
    check_message(fd, "control", "data", 0);
}
CASE(control_refused_message_modes, "read(2) EBADMSG") {
    int fd = in_mode(RMSGN);
    put(fd, "control", NULL, 0);
    check_errno(read(fd, (char[9]){0}, 9), EBADMSG);
    must(ioctl(fd, I_SRDOPT, RMSGD | RPROTNORM));
    check_errno(read(fd, (char[9]){0}, 9), EBADMSG);
    check_message(fd, "control", NULL, 0);
}
CASE(control_refused_pipe, "read(2) EBADMSG") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "control", "data", 0);
    check_errno(read(fd[1], (char[9]){0}, 9), EBADMSG);
    check_message(fd[1], "control", "data", 0);
}
CASE(high_refused, "read(2) EBADMSG") {
    int fd = in_mode(RNORM);
    write_text(fd, "data");
    put_high(fd, "high", NULL);
    check_errno(read(fd, (char[9]){0}, 9), EBADMSG);
    check_message(fd, "high", NULL, -1);
    check_read(fd, "data");
}
CASE(stops_at_control, "read(2) RNORM") {
    int fd = in_mode(RNORM);
    write_text(fd, "data");
    put(fd, "control", NULL, 0);
    check_read(fd, "data");
    check_errno(read(fd, (char[9]){0}, 9), EBADMSG);
}
CASE(stops_at_control_pipe, "read(2) RNORM") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "da");
    write_text(fd[0], "ta");
    put(fd[0], "control", NULL, 0);
    write_text(fd[0], "rest");
    check_read(fd[1], "data");
    check_errno(read(fd[1], (char[9]){0}, 9), EBADMSG);
    check_message(fd[1], "control", NULL, 0);
    check_read(fd[1], "rest");
}
CASE(control_as_data, "read(2) RPROTDAT") {
    int fd = in_mode(RMSGN | RPROTDAT);
    put(fd, "control+", "data", 0);
    write_text(fd, "next");
    check_read(fd, "control+data");
    check_read(fd, "next");
}
CASE(control_as_data_in_parts, "read(2) RPROTDAT") {
    int fd = in_mode(RMSGN | RPROTDAT);
    put(fd, "control+", "data", 0);
    check_read_of(fd, 5, "contr");
    check_read_of(fd, 5, "ol+da");
    check_read_of(fd, 5, "ta");
    check_drained(fd);
}
CASE(control_as_data_discarding, "read(2) RPROTDAT RMSGD") {
    int fd = in_mode(RMSGD | RPROTDAT);
    put(fd, "control+", "data", 0);
    write_text(fd, "next");
    check_read_of(fd, 5, "contr");
    check_read_of(fd, 5, "next");
}
CASE(control_as_data_stream, "read(2) RPROTDAT RNORM") {
    int fd = in_mode(RNORM | RPROTDAT);
    put(fd, "control", NULL, 0);
    check_read(fd, "control");
}
CASE(control_as_data_pipe, "read(2) RPROTDAT") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGN | RPROTDAT));
    put(fd[0], "control+", "data", 0);
    check_read(fd[1], "control+data");
    check_drained(fd[1]);
}
CASE(control_discarded, "read(2) RPROTDIS") {
    int fd = in_mode(RMSGN | RPROTDIS);
    put(fd, "control", "data", 0);
    put(fd, "c2", "abcdef", 0);
    check_read(fd, "data");
    check_read_of(fd, 3, "abc");
    check_read_of(fd, 9, "def");
}
CASE(control_discarded_pipe, "read(2) RPROTDIS") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RNORM | RPROTDIS));
    put(fd[0], "control", "data", 0);
    check_read(fd[1], "data");
    check_drained(fd[1]);
}
CASE(control_discarded_behind_data_pipe, "read(2) RPROTDIS") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RNORM | RPROTDIS));
    write_text(fd[0], "before");
    put(fd[0], "control", "data", 0);
    write_text(fd[0], "behind");
    check_read(fd[1], "beforedatabehind");
    check_drained(fd[1]);
}
CASE(control_discarded_behind_a_rest, "read(2) RPROTDIS, getmsg(2) MORECTL") {
    int fd = open("/dev/fifo", O_RDWR | O_NONBLOCK), flags = 0;
    struct strbuf control = {.maxlen = 3, .buf = (char[9]){0}};
    must(ioctl(fd, I_SRDOPT, RNORM | RPROTDIS));
    put(fd, "control", NULL, 0);
    check_eq(getmsg(fd, &control, NULL, &flags), MORECTL);
    write_text(fd, "data");
    check_read(fd, "data");
    check_drained(fd);
}
CASE(control_of_high_priority_discarded, "read(2) RPROTDIS") {
    int fd = in_mode(RMSGD | RPROTDIS);
    putpmsg(fd, NULL, &(struct strbuf){.len = 6, .buf = "banded"}, 255, MSG_BAND);
    put_high(fd, "control", "high");
    check_read(fd, "high");
    check_read(fd, "banded");
}
CASE(high_as_data, "read(2) RPROTDAT") {
    int fd = in_mode(RMSGN | RPROTDAT);
    write_text(fd, "normal");
    put_high(fd, "high", NULL);
    check_read(fd, "high");
    check_read(fd, "normal");
}

/* --- bands, the amount, vectors --- */

CASE(bands_first, "read(2)") {
    int fd = in_mode(RMSGN);
    write_text(fd, "normal");
    put(fd, NULL, "one", 1);
    put(fd, NULL, "two", 2);
    check_read(fd, "two");
    check_read(fd, "one");
    check_read(fd, "normal");
}
CASE(bands_first_pipe, "read(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGN));
    write_text(fd[0], "normal");
    put(fd[0], NULL, "two", 2);
    check_read(fd[1], "two");
    check_read(fd[1], "normal");
}
CASE(amount_zero, "read(2)") {
    int fd = in_mode(RMSGD), empty = in_mode(RNORM);
    write_text(fd, "kept");
    check_eq(read(fd, (char[1]){0}, 0), 0);
    check_eq(read(fd, NULL, 0), 0);
    check_read(fd, "kept");
    set_nonblock(empty, 1);
    check_eq(read(empty, NULL, 0), 0);
}
CASE(vectors, "readv(2)") {
    int fd = in_mode(RNORM);
    char a[3], b[4], c[10];
    struct iovec v[] = {{a, 3}, {b, 4}, {c, 10}};
    write_text(fd, "abcde");
    write_text(fd, "fghij");
    check_eq(readv(fd, v, 3), 10);
    check_bytes(a, "abc", 3);
    check_bytes(b, "defg", 4);
    check_bytes(c, "hij", 3);
}
CASE(vectors_pipe, "readv(2)") {
    int fd[2];
    char a[3], b[4], c[10];
    struct iovec v[] = {{a, 3}, {NULL, 0}, {b, 4}, {c, 10}};
    pipe_flags(fd, 0);
    write_text(fd[0], "abcde");
    write_text(fd[0], "fghij");
    check_eq(readv(fd[1], v, 4), 10);
    check_bytes(a, "abc", 3);
    check_bytes(b, "defg", 4);
    check_bytes(c, "hij", 3);
}
CASE(vectors_keep_boundaries, "readv(2) RMSGN") {
    int fd[2];
    char a[3], b[3];
    struct iovec v[] = {{a, 3}, {b, 3}};
    pipe_flags(fd, 0);
    must(ioctl(fd[1], I_SRDOPT, RMSGN));
    write_text(fd[0], "abcd");
    write_text(fd[0], "next");
    check_eq(readv(fd[1], v, 2), 4);
    check_bytes(b, "d", 1);
    check_eq(readv(fd[1], v, 2), 4);
    check_bytes(a, "nex", 3);
}
CASE(vectors_bad, "readv(2) EINVAL") {
    int fd = in_mode(RNORM);
    char a[3];
    struct iovec v[] = {{a, -1}, {a, 1}};
    write_text(fd, "abcd");
    check_errno(readv(fd, v, -1), EINVAL);
    check_errno(readv(fd, v, 100000), EINVAL);
    check_errno(readv(fd, v, 2), EINVAL);
    check_read(fd, "abcd");
}

/* --- errors, waiting, the end --- */

CASE(nothing, "read(2) EAGAIN") {
    int fd[2], echo = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    char c;
    pipe_flags(fd, O_NONBLOCK);
    check_errno(read(echo, &c, 1), EAGAIN);
    check_errno(read(fd[0], &c, 1), EAGAIN);
    check_errno(readv(fd[0], &(struct iovec){&c, 1}, 1), EAGAIN);
}
CASE(fault, "read(2) EFAULT") {
    int fd[2], echo = in_mode(RNORM);
    pipe_flags(fd, 0);
    write_text(echo, "x");
    write_text(fd[0], "x");
    check_errno(read(echo, NULL, 10), EFAULT);
    check_errno(read(fd[1], NULL, 10), EFAULT);
    check_errno(read(fd[1], (void *)8, 10), EFAULT);
}
CASE(direction, "read(2) EBADF") {
    check_errno(read(open_stream_flags("/dev/echo", O_WRONLY), (char[1]){0}, 1), EBADF);
}
static void write_later(void *with) {
    sleep_ms(50);
    write_text(*(int *)with, "late");
}
CASE(waits, "read(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    pid_t child = spawn(write_later, &fd[1]);
    check_read(fd[0], "late");
    join(child);
}
CASE(waits_with_modules, "read(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "bufmod");
    pid_t child = spawn(write_later, &fd[1]);
    check_read(fd[0], "late");
    join(child);
}
CASE(interrupted, "read(2) EINTR") {
    int fd[2];
    char c;
    pipe_flags(fd, 0);
    catch_signal(SIGUSR1);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec in = {.it_value.tv_nsec = 30000000, .it_interval.tv_nsec = 30000000};
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &in, NULL));
    check_errno(read(fd[0], &c, 1), EINTR);
}
CASE(end, "read(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    write_text(fd[0], "last");
    write_text(fd[0], "words");
    must(close(fd[0]));
    check_read_of(fd[1], 6, "lastwo");
    check_read(fd[1], "rds");
    check_read(fd[1], "");
    check_read(fd[1], "");
}
static void close_later(void *with) {
    int *fd = with;
    sleep_ms(50);
    must(close(fd[1]));
}
CASE(end_wakes, "read(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    pid_t child = spawn(close_later, fd);
    must(close(fd[1]));
    check_read(fd[0], "");
    join(child);
}
CASE(positioned, "pread(2) ESPIPE") {
    int fd[2];
    char c;
    pipe_flags(fd, 0);
    write_text(fd[0], "x");
    check_errno(pread(fd[1], &c, 1, 0), ESPIPE);
    check_errno(pwrite(fd[1], &c, 1, 0), ESPIPE);
}

CASES(ENTRY(normal_joins), ENTRY(normal_joins_pipe), ENTRY(normal_bytewise),
      ENTRY(normal_joins_behind_a_rest), ENTRY(normal_joins_a_part_pipe), ENTRY(normal_stops_behind_a_rest), ENTRY(normal_short_amount),
      ENTRY(normal_empty_message), ENTRY(normal_stops_at_empty_message), ENTRY(normal_stops_at_empty_message_pipe),
      ENTRY(nondiscard), ENTRY(nondiscard_pipe), ENTRY(discard), ENTRY(discard_pipe), ENTRY(exact_amount),
      ENTRY(nondiscard_empty_message), ENTRY(discard_empty_message_pipe), ENTRY(mode_changes_between),
      ENTRY(boundaries_through_modules), ENTRY(control_refused), ENTRY(control_refused_message_modes),
      ENTRY(control_refused_pipe), ENTRY(high_refused), ENTRY(stops_at_control), ENTRY(stops_at_control_pipe),
      ENTRY(control_as_data), ENTRY(control_as_data_in_parts), ENTRY(control_as_data_discarding),
      ENTRY(control_as_data_stream), ENTRY(control_as_data_pipe), ENTRY(control_discarded), ENTRY(control_discarded_pipe),
      ENTRY(control_discarded_behind_data_pipe), ENTRY(control_discarded_behind_a_rest),
      ENTRY(control_of_high_priority_discarded), ENTRY(high_as_data), ENTRY(bands_first), ENTRY(bands_first_pipe), ENTRY(amount_zero), ENTRY(vectors),
      ENTRY(vectors_pipe), ENTRY(vectors_keep_boundaries), ENTRY(vectors_bad), ENTRY(nothing), ENTRY(fault),
      ENTRY(direction), ENTRY(waits), ENTRY(waits_with_modules), ENTRY(interrupted), ENTRY(end), ENTRY(end_wakes),
      ENTRY(positioned))
