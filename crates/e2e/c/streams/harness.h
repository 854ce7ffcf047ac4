/* Conformance cases: a table of {name, manual page, function} per file, each case run in a process of its own.
 *
 *     CASE(pop_empty, "streamio(7I)") {
 *         int fd = open_stream("/dev/echo");
 *         check_errno(ioctl(fd, I_POP, 0), EINVAL);
 *     }
 *     CASES(ENTRY(pop_empty), ...)
 *
 * Without arguments the program lists `name<TAB>page`; with a name it runs that case: silent and 0 if it passed, else it
 * says what was expected and what was seen. Nothing hangs: an alarm ends each case, children included.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stropts.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Before a case counts as hanging. Machines are slow at times; but where cases are to fail, nobody wants to wait for long. */
#define SECONDS (getenv("SECONDS_OF_A_CASE") ? atoi(getenv("SECONDS_OF_A_CASE")) : 10)
/* Before what has to come counts as missing, in milliseconds: the limit of every wait for something that is to come, however soon. The
 * case still says then what it missed. */
#define PATIENCE (SECONDS * 500)
#define UNUSED __attribute__((unused))

struct test {
    const char *name, *page;
    void (*run)(void);
};

#define CASE(NAME, PAGE) \
    static const char page_of_##NAME[] = PAGE; \
    static void NAME(void)
#define ENTRY(NAME) {#NAME, page_of_##NAME, NAME}

/* --- saying what went wrong --- */

/* The line last checked, for the alarm. */
static const char *volatile harness_at = "the start";
static volatile int harness_line;

/* Ends the case (in a child: the child, which `join` then reports). Async-signal-safe apart from the text. */
static UNUSED void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...) {
    char text[2000];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof text - 1, format, list);
    va_end(list);
    if (n > (int)sizeof text - 2)
        n = sizeof text - 2;
    text[n++] = '\n';
    for (char *p = text; n > 0;) {
        ssize_t w = write(STDOUT_FILENO, p, n);
        if (w <= 0)
            break;
        p += w, n -= w;
    }
    _exit(1);
}

static UNUSED void harness_late(int signal) {
    (void)signal;
    fail("line %d: still not done after %d s: %s", harness_line, SECONDS, harness_at);
}

static UNUSED void harness_crash(int signal) {
    fail("line %d: %s in: %s", harness_line, strsignal(signal), harness_at);
}

#define AT(TEXT) (harness_at = (TEXT), harness_line = __LINE__)

#define check(EXPR) \
    do { \
        AT(#EXPR); \
        if (!(EXPR)) \
            fail("line %d: not so: %s (errno %d: %s)", __LINE__, #EXPR, errno, strerror(errno)); \
    } while (0)

/* Two integers. */
#define check_eq(SEEN, EXPECTED) \
    do { \
        AT(#SEEN); \
        long long seen_ = (SEEN); \
        int errno_ = errno; \
        long long expected_ = (EXPECTED); \
        if (seen_ != expected_) \
            fail("line %d: %s: expected %lld (%s), saw %lld (errno %d: %s)", __LINE__, #SEEN, expected_, \
                 #EXPECTED, seen_, errno_, strerror(errno_)); \
    } while (0)

/* One of two integers, the first being what this implementation does. */
#define check_either(SEEN, FIRST, SECOND) \
    do { \
        AT(#SEEN); \
        long long seen_ = (SEEN), a_ = (FIRST), b_ = (SECOND); \
        if (seen_ != a_ && seen_ != b_) \
            fail("line %d: %s: expected %lld or %lld, saw %lld (errno %d: %s)", __LINE__, #SEEN, a_, b_, \
                 seen_, errno, strerror(errno)); \
    } while (0)

/* A call that succeeds: anything but -1. */
#define must(CALL) \
    ({ \
        AT(#CALL); \
        __typeof__(CALL) got_ = (CALL); \
        if (got_ == (__typeof__(CALL))-1) \
            fail("line %d: %s: expected success, saw errno %d: %s", __LINE__, #CALL, errno, strerror(errno)); \
        got_; \
    })

/* A call that fails with -1 and this errno (or, `check_errno2`, the second one). */
#define check_errno(CALL, ERRNO) check_errno2(CALL, ERRNO, ERRNO)
#define check_errno2(CALL, ERRNO, OTHER) \
    do { \
        AT(#CALL); \
        errno = 0; \
        long long seen_ = (long long)(CALL); \
        int errno_ = errno; \
        if (seen_ != -1) \
            fail("line %d: %s: expected %s, saw success: %lld", __LINE__, #CALL, #ERRNO, seen_); \
        if (errno_ != (ERRNO) && errno_ != (OTHER)) \
            fail("line %d: %s: expected %s, saw errno %d: %s", __LINE__, #CALL, #ERRNO, errno_, strerror(errno_)); \
    } while (0)

#define check_str(SEEN, EXPECTED) \
    do { \
        AT(#SEEN); \
        const char *seen_ = (SEEN), *expected_ = (EXPECTED); \
        if (strcmp(seen_, expected_) != 0) \
            fail("line %d: %s: expected \"%s\", saw \"%.200s\"", __LINE__, #SEEN, expected_, seen_); \
    } while (0)

#define check_bytes(SEEN, EXPECTED, LENGTH) \
    do { \
        AT(#SEEN); \
        const char *seen_ = (const char *)(SEEN), *expected_ = (const char *)(EXPECTED); \
        for (size_t i_ = 0; i_ < (size_t)(LENGTH); i_++) \
            if (seen_[i_] != expected_[i_]) \
                fail("line %d: %s: byte %zu: expected 0x%02x, saw 0x%02x", __LINE__, #SEEN, i_, \
                     (unsigned char)expected_[i_], (unsigned char)seen_[i_]); \
    } while (0)

/* --- streams --- */

static UNUSED int open_stream_flags(const char *path, int flags) {
    AT("open");
    int fd = open(path, flags);
    if (fd < 0)
        fail("open %s: expected a descriptor, saw errno %d: %s", path, errno, strerror(errno));
    return fd;
}
static UNUSED int open_stream(const char *path) { return open_stream_flags(path, O_RDWR); }

/* The two ends of a STREAMS pipe; `O_NONBLOCK` or 0. */
static UNUSED void pipe_flags(int fd[2], int flags) {
    AT("streams_pipe");
    if (streams_pipe(fd) < 0)
        fail("streams_pipe: expected success, saw errno %d: %s", errno, strerror(errno));
    for (int i = 0; flags && i < 2; i++)
        if (fcntl(fd[i], F_SETFL, O_RDWR | flags) < 0)
            fail("fcntl F_SETFL: expected success, saw errno %d: %s", errno, strerror(errno));
}

#define push(FD, NAME) check_eq(ioctl(FD, I_PUSH, NAME), 0)
#define pop(FD) check_eq(ioctl(FD, I_POP, 0), 0)

static UNUSED void set_nonblock(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
        fail("fcntl: expected success, saw errno %d: %s", errno, strerror(errno));
}

/* --- messages --- */

static UNUSED struct strbuf out_buf(const void *from, int len) {
    return (struct strbuf){.maxlen = len, .len = len, .buf = (char *)from};
}
static UNUSED struct strbuf in_buf(void *to, int maxlen) {
    return (struct strbuf){.maxlen = maxlen, .len = -77, .buf = to};
}

/* putpmsg of two strings; NULL: no such part. */
static UNUSED int put_text(int fd, const char *ctl, const char *data, int band, int flags) {
    struct strbuf c = out_buf(ctl, ctl ? (int)strlen(ctl) : -1), d = out_buf(data, data ? (int)strlen(data) : -1);
    return putpmsg(fd, ctl ? &c : NULL, data ? &d : NULL, band, flags);
}
#define put(FD, CTL, DATA, BAND) check_eq(put_text(FD, CTL, DATA, BAND, MSG_BAND), 0)
#define put_high(FD, CTL, DATA) check_eq(put_text(FD, CTL, DATA, 0, MSG_HIPRI), 0)

/* What the last `get_any` returned; parts end with a NUL, absent ones are "". */
struct message {
    int result, band, flags, ctl_len, data_len;
    char ctl[8192], data[8192];
};

static UNUSED int get_flags(int fd, struct message *m, int band, int flags) {
    struct strbuf c = in_buf(m->ctl, sizeof m->ctl - 1), d = in_buf(m->data, sizeof m->data - 1);
    m->band = band, m->flags = flags;
    m->result = getpmsg(fd, &c, &d, &m->band, &m->flags);
    m->ctl_len = c.len, m->data_len = d.len;
    m->ctl[m->result >= 0 && c.len > 0 ? c.len : 0] = 0;
    m->data[m->result >= 0 && d.len > 0 ? d.len : 0] = 0;
    return m->result;
}
static UNUSED int get_any(int fd, struct message *m) { return get_flags(fd, m, 0, MSG_ANY); }

/* The next message is this: NULL for an absent part, -1 for high priority, else the band. */
#define check_message(FD, CTL, DATA, BAND) harness_message(__LINE__, FD, CTL, DATA, BAND)
static UNUSED void harness_message(int line, int fd, const char *ctl, const char *data, int band) {
    struct message m;
    harness_at = "getpmsg", harness_line = line;
    if (get_any(fd, &m) < 0)
        fail("line %d: getpmsg: expected a message, saw errno %d: %s", line, errno, strerror(errno));
    int seen_band = m.flags == MSG_HIPRI ? -1 : m.band;
    int same_ctl = ctl ? m.ctl_len == (int)strlen(ctl) && !strcmp(m.ctl, ctl) : m.ctl_len == -1;
    int same_data = data ? m.data_len == (int)strlen(data) && !strcmp(m.data, data) : m.data_len == -1;
    if (m.result != 0 || !same_ctl || !same_data || seen_band != band)
        fail("line %d: expected control \"%s\", data \"%s\", band %d; saw result %d, control %d \"%.100s\", data %d "
             "\"%.100s\", band %d",
             line, ctl ? ctl : "(none)", data ? data : "(none)", band, m.result, m.ctl_len, m.ctl, m.data_len, m.data,
             seen_band);
}

/* Nothing is to be read, now and at once. */
#define check_nothing(FD) \
    do { \
        struct message nothing_; \
        set_nonblock(FD, 1); \
        check_errno(get_any(FD, &nothing_), EAGAIN); \
    } while (0)

/* read(2) returns exactly this text. */
#define check_read(FD, EXPECTED) \
    do { \
        char text_[8192]; \
        ssize_t n_ = must(read(FD, text_, sizeof text_ - 1)); \
        text_[n_] = 0; \
        check_str(text_, EXPECTED); \
    } while (0)

/* I_STR of so many bytes, for as long as it takes by default; what the module or driver says. */
static UNUSED int i_str(int fd, int command, void *with, int length) {
    struct strioctl s = {.ic_cmd = command, .ic_len = length, .ic_dp = with};
    return ioctl(fd, I_STR, &s);
}

/* --- readiness --- */

/* revents within a time in milliseconds. */
static UNUSED int events(int fd, int wanted, int timeout) {
    struct pollfd p = {.fd = fd, .events = wanted};
    if (poll(&p, 1, timeout) < 0)
        fail("poll: expected success, saw errno %d: %s", errno, strerror(errno));
    return p.revents;
}
#define READABLE (POLLIN | POLLRDNORM | POLLRDBAND | POLLPRI)
#define check_readable(FD) check(events(FD, READABLE, PATIENCE) & READABLE)

/* --- children, signals, time --- */

/* Runs `run` in a child, which ends when it returns; it dies with this process. */
static UNUSED pid_t spawn(void (*run)(void *), void *with) {
    pid_t parent = getpid(), child = must(fork());
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        alarm(SECONDS);
        run(with);
        _exit(0);
    }
    return child;
}

/* fork(2) for who goes on alone: no child is left behind that hangs. */
static UNUSED pid_t forked(void) {
    pid_t child = must(fork());
    if (child == 0)
        alarm(SECONDS);
    return child;
}

/* The child has ended well; what it said is ours to say. */
#define join(CHILD) \
    do { \
        int status_; \
        pid_t child_ = (CHILD); \
        check_eq(waitpid(child_, &status_, 0), child_); \
        if (status_ != 0) \
            fail("line %d: a child ended with status 0x%x", __LINE__, status_); \
    } while (0)

/* Counts signals caught through `catch_signal`, which restarts nothing. */
static volatile sig_atomic_t caught[65];
static volatile siginfo_t caught_info;
static UNUSED void harness_catch(int signal, siginfo_t *info, void *context) {
    (void)context;
    caught_info = *info;
    caught[signal]++;
}
static UNUSED void catch_signal(int signal) {
    struct sigaction a = {.sa_sigaction = harness_catch, .sa_flags = SA_SIGINFO};
    if (sigaction(signal, &a, NULL) < 0)
        fail("sigaction: errno %d: %s", errno, strerror(errno));
}

static UNUSED long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
static UNUSED void sleep_ms(int ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* Waits, not for ever, until EXPR is so. */
#define await(EXPR) \
    do { \
        long until_ = now_ms() + SECONDS * 1000; \
        AT(#EXPR); \
        while (!(EXPR)) { \
            if (now_ms() > until_) \
                fail("line %d: not so within %d s: %s", __LINE__, SECONDS, #EXPR); \
            sleep_ms(1); \
        } \
    } while (0)

/* A stream whose other end is gone. */
static UNUSED int hung_up(void) {
    int fd[2];
    pipe_flags(fd, 0);
    must(close(fd[1]));
    await(events(fd[0], POLLIN, 0) & POLLHUP);
    return fd[0];
}

/* --- running --- */

static int harness_main(const struct test *tests, size_t n, int argc, char **argv) {
    if (argc < 2) {
        for (size_t i = 0; i < n; i++)
            printf("%s\t%s\n", tests[i].name, tests[i].page);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!strcmp(tests[i].name, argv[1])) {
            struct sigaction late = {.sa_handler = harness_late}, crash = {.sa_handler = harness_crash};
            sigaction(SIGALRM, &late, NULL);
            crash.sa_flags = SA_RESETHAND;
            for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, 0}; *s; s++)
                sigaction(*s, &crash, NULL);
            alarm(SECONDS);
            tests[i].run();
            return 0;
        }
    printf("no such case: %s\n", argv[1]);
    return 2;
}

#define CASES(...) \
    static const struct test harness_tests[] = {__VA_ARGS__}; \
    int main(int argc, char **argv) { \
        return harness_main(harness_tests, sizeof harness_tests / sizeof *harness_tests, argc, argv); \
    }

#endif
