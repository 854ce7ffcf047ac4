/* Runs steps in lock-step, and prints what each did: what one kernel call after the other returned, and what was heard of calls
 * that had been waiting. The same steps, natively and with the library, print the same.
 *
 *     steps < SCRIPT
 *
 * A step is a line: process, thread, name, numbers. Processes share nothing but what they inherit and pass on; each has two
 * threads where the first line says "threads 2". Descriptors are named by the slot they lie in.
 *
 * The process that reads the script does nothing else: it gives each step to the thread that is to do it, and waits until it
 * has done it, or sleeps in it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifndef SIOCOUTQNSD
#define SIOCOUTQNSD 0x894B
#endif

enum { PROCESSES = 3, THREADS = 2, SLOTS = 12, ARGS = 8, MOST = 65536, HIGH = 100 };

struct step {
    int number, process, thread, op;
    long a[ARGS];
};

/* What a thread says: what a step did, or (number -1) who it is. */
struct said {
    int number, process, thread, pid, tid;
    char text[400];
};

/* Where steps come from, what is said goes to; a pair of sockets through which descriptors are passed. */
static int orders[PROCESSES][THREADS][2], answers[2], passing[2];
static int me, threads = 1, restarts, slow;
static int fd[SLOTS];
static pthread_t thread[THREADS];
static volatile int handled;

static __thread struct step *now;
static __thread char told[400];

/* Adds to what the step did. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
    size_t at = strlen(told);
    va_list args;
    va_start(args, format);
    vsnprintf(told + at, sizeof told - at, format, args);
    va_end(args);
}

static unsigned hash(const void *from, size_t n) {
    unsigned h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)from)[i]) * 16777619u;
    return h & 0xffff;
}

/* What this step sends. */
static char *bytes(size_t n) {
    static __thread char buffer[MOST];
    for (size_t i = 0; i < n && i < MOST; i++)
        buffer[i] = (char)(now->number * 37 + i);
    return buffer;
}

/* Where this step receives. */
static char *empty(size_t n) {
    static __thread char buffer[MOST + 64];
    memset(buffer, 0xEE, (n < MOST ? n : MOST) + 64);
    return buffer;
}

/* What came there, and whether anything beyond it was touched. */
static void came(const char *buffer, ssize_t n, size_t room) {
    size_t have = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
    tell(" %04x", hash(buffer, have));
    for (size_t i = have; i < room + 64; i++)
        if (buffer[i] != (char)0xEE) {
            tell(" beyond");
            break;
        }
}

/* What is written goes out at once: how long the kernel gathers is a matter of time. */
static int at_once(int f) {
    int on = 1;
    if (f >= 0)
        setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return f;
}

static long put(int slot, int f) {
    if (f < 0)
        return -1;
    if (fd[slot] >= 0)
        close(fd[slot]);
    fd[slot] = f;
    return 0;
}

static socklen_t loopback(struct sockaddr_in *a) {
    memset(a, 0, sizeof *a);
    a->sin_family = AF_INET;
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *a;
}

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

#define OP(name) static long op_##name(const long *a)

/* ---- opening ---- */

OP(listen) { /* slot, backlog */
    struct sockaddr_in to;
    socklen_t len = loopback(&to);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (struct sockaddr *)&to, len) || listen(s, a[1]))
        return -1;
    return put(a[0], s);
}
OP(connect) { /* slot, listener's slot, non-blocking */
    struct sockaddr_in to;
    socklen_t len = sizeof to;
    if (getsockname(fd[a[1]], (struct sockaddr *)&to, &len))
        return -1;
    int s = socket(AF_INET, SOCK_STREAM | (a[2] ? SOCK_NONBLOCK : 0), 0);
    int r = connect(s, (struct sockaddr *)&to, len), e = errno;
    put(a[0], at_once(s));
    errno = e;
    return r;
}
OP(accept) { return put(a[0], at_once(accept(fd[a[1]], NULL, NULL))); }
OP(accept4) { return put(a[0], at_once(accept4(fd[a[1]], NULL, NULL, SOCK_NONBLOCK))); }
OP(pair) { /* both ends' slots */
    struct sockaddr_in to;
    socklen_t len = loopback(&to);
    int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(l, (struct sockaddr *)&to, len) || listen(l, 5) || getsockname(l, (struct sockaddr *)&to, &len) ||
        connect(c, (struct sockaddr *)&to, len))
        return -1;
    put(a[0], at_once(c));
    put(a[1], at_once(accept(l, NULL, NULL)));
    return close(l);
}
OP(warm) { /* both ends' slots: enough is exchanged for a connection to be carried */
    char c[64];
    for (int i = 0; i < 8; i++)
        for (int end = 0; end < 2; end++)
            if (write(fd[a[end]], "warm", 4) != 4 || read(fd[a[!end]], c, 4) != 4)
                return -1;
    return 0;
}
OP(pipe) {
    int p[2];
    if (pipe(p))
        return -1;
    put(a[0], p[0]);
    return put(a[1], p[1]);
}

/* ---- sending ---- */

OP(write) { return write(fd[a[0]], bytes(a[1]), a[1]); }
OP(send) { return send(fd[a[0]], bytes(a[1]), a[1], a[2] | MSG_NOSIGNAL); }
OP(sendto) { /* slot, bytes, flags, length of the address */
    struct sockaddr_in to;
    loopback(&to);
    return sendto(fd[a[0]], bytes(a[1]), a[1], a[2] | MSG_NOSIGNAL, (struct sockaddr *)&to, a[3]);
}
OP(writev) { /* slot, three lengths */
    struct iovec v[3];
    char *b = bytes(a[1] + a[2] + a[3]);
    for (int i = 0; i < 3; b += v[i++].iov_len)
        v[i] = (struct iovec){b, a[i + 1]};
    return writev(fd[a[0]], v, 3);
}
OP(sendmsg) { /* slot, two lengths, flags */
    char *b = bytes(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    return sendmsg(fd[a[0]], &m, a[3] | MSG_NOSIGNAL);
}
OP(sendmmsg) { /* slot, two lengths, flags */
    char *b = bytes(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
    int r = sendmmsg(fd[a[0]], m, 2, a[3] | MSG_NOSIGNAL);
    for (int i = 0; i < r; i++)
        tell(" %u", m[i].msg_len);
    return r;
}
OP(sendfile) { /* slot, bytes, from */
    int file = memfd_create("file", 0);
    if (write(file, bytes(MOST), MOST) != MOST)
        return -1;
    off_t at = a[2];
    long r = sendfile(fd[a[0]], file, &at, a[1]);
    int e = errno;
    tell(" at %ld", (long)at);
    close(file);
    errno = e;
    return r;
}

/* ---- receiving ---- */

OP(read) {
    char *b = empty(a[1]);
    ssize_t r = read(fd[a[0]], b, a[1]);
    came(b, r, a[1]);
    return r;
}
OP(recv) { /* slot, room, flags */
    char *b = empty(a[1]);
    ssize_t r = recv(fd[a[0]], b, a[1], a[2]);
    came(b, r, a[1]);
    return r;
}
OP(recvfrom) {
    char *b = empty(a[1]);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    ssize_t r = recvfrom(fd[a[0]], b, a[1], a[2], (struct sockaddr *)&from, &len);
    came(b, r, a[1]);
    if (r >= 0)
        tell(" name %u", len);
    return r;
}
OP(readv) { /* slot, two rooms */
    char *b = empty(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    ssize_t r = readv(fd[a[0]], v, 2);
    came(b, r, a[1] + a[2]);
    return r;
}
OP(recvmsg) { /* slot, two rooms, flags */
    char *b = empty(a[1] + a[2]);
    char control[128];
    struct sockaddr_storage from;
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control,
                       .msg_name = &from, .msg_namelen = sizeof from};
    ssize_t r = recvmsg(fd[a[0]], &m, a[3]);
    came(b, r, a[1] + a[2]);
    if (r >= 0)
        tell(" flags %x name %u control %zu", m.msg_flags, m.msg_namelen, m.msg_controllen);
    return r;
}
OP(recvmmsg) { /* slot, two rooms, flags, milliseconds (-1: for ever) */
    char *b = empty(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
    struct timespec t = {0, a[4] * 1000000};
    int r = recvmmsg(fd[a[0]], m, 2, a[3], a[4] < 0 ? NULL : &t);
    for (int i = 0; i < r; i++)
        tell(" %u:%04x", m[i].msg_len, hash(v[i].iov_base, m[i].msg_len < v[i].iov_len ? m[i].msg_len : v[i].iov_len));
    return r;
}
OP(splice) { /* from, to, bytes, flags */
    return splice(fd[a[0]], NULL, fd[a[1]], NULL, a[2], a[3]);
}

/* ---- waiting ---- */

static int limit(long ms) { return ms < 0 ? -1 : (int)ms; }

/* Each number after the first is a slot and, above it, events. */
static nfds_t polled(const long *a, struct pollfd *p) {
    nfds_t n = 0;
    for (int i = 1; i < 4; i++)
        if (a[i] >= 0)
            p[n++] = (struct pollfd){fd[a[i] & 15], a[i] >> 4, 0x55};
    return n;
}
static void happened(struct pollfd *p, nfds_t n, int r) {
    for (nfds_t i = 0; r >= 0 && i < n; i++)
        tell(" %x", p[i].revents);
}
OP(poll) {
    struct pollfd p[3];
    nfds_t n = polled(a, p);
    int r = poll(p, n, limit(a[0]));
    happened(p, n, r);
    return r;
}
OP(ppoll) {
    struct pollfd p[3];
    nfds_t n = polled(a, p);
    struct timespec t = {0, a[0] * 1000000};
    int r = ppoll(p, n, a[0] < 0 ? NULL : &t, NULL);
    happened(p, n, r);
    return r;
}
static int sets(const long *a, fd_set *s) {
    int most = 0;
    for (int k = 0; k < 3; k++) {
        FD_ZERO(&s[k]);
        for (int i = 0; i < SLOTS; i++)
            if (a[k + 1] >> i & 1 && fd[i] >= 0) {
                FD_SET(fd[i], &s[k]);
                most = fd[i] >= most ? fd[i] + 1 : most;
            }
    }
    return most;
}
static void set(fd_set *s, int r) {
    for (int k = 0; r >= 0 && k < 3; k++) {
        unsigned seen = 0;
        for (int i = 0; i < SLOTS; i++)
            if (fd[i] >= 0 && FD_ISSET(fd[i], &s[k]))
                seen |= 1u << i;
        tell(" %x", seen);
    }
}
OP(select) { /* milliseconds, three sets of slots */
    fd_set s[3];
    int n = sets(a, s);
    struct timeval t = {0, a[0] * 1000};
    int r = select(n, &s[0], &s[1], &s[2], a[0] < 0 ? NULL : &t);
    set(s, r);
    return r;
}
OP(pselect) {
    fd_set s[3];
    int n = sets(a, s);
    struct timespec t = {0, a[0] * 1000000};
    int r = pselect(n, &s[0], &s[1], &s[2], a[0] < 0 ? NULL : &t, NULL);
    set(s, r);
    return r;
}
OP(epoll_create) { return put(a[0], epoll_create1(0)); }
OP(epoll_ctl) { /* set's slot, operation, slot, events */
    struct epoll_event e = {.events = (unsigned)a[3], .data.u64 = a[2] | 0xABC00};
    return epoll_ctl(fd[a[0]], a[1], fd[a[2]], &e);
}
static int by_slot(const void *a, const void *b) {
    unsigned long long x = ((const struct epoll_event *)a)->data.u64, y = ((const struct epoll_event *)b)->data.u64;
    return x < y ? -1 : x > y;
}
OP(epoll_wait) { /* set's slot, room, milliseconds */
    struct epoll_event e[4];
    int r = epoll_wait(fd[a[0]], e, a[1], limit(a[2]));
    if (r > 0)
        qsort(e, r, sizeof *e, by_slot);
    for (int i = 0; i < r; i++)
        tell(" %llx:%x", (unsigned long long)e[i].data.u64, e[i].events);
    return r;
}

/* ---- descriptors ---- */

OP(close) {
    int r = close(fd[a[0]]);
    fd[a[0]] = -1;
    return r;
}
OP(shutdown) { return shutdown(fd[a[0]], a[1]); }
OP(dup) { return put(a[0], dup(fd[a[1]])); }
OP(dup2) { /* onto a slot that is in use, from another */
    return dup2(fd[a[1]], fd[a[0]]) < 0 ? -1 : 0;
}
OP(dup3) { return dup3(fd[a[1]], fd[a[0]], a[2]) < 0 ? -1 : 0; }
OP(dupfd) { return put(a[0], fcntl(fd[a[1]], F_DUPFD_CLOEXEC, 50)); }
OP(nonblock) { /* slot, on, way */
    int on = a[1];
    if (a[2])
        return ioctl(fd[a[0]], FIONBIO, &on);
    int flags = fcntl(fd[a[0]], F_GETFL);
    return flags < 0 ? -1 : fcntl(fd[a[0]], F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
OP(getfl) { return fcntl(fd[a[0]], F_GETFL); }
OP(cloexec) { return fcntl(fd[a[0]], F_SETFD, a[1] ? FD_CLOEXEC : 0); }
OP(number) { /* slot, request */
    int n = 0x7777;
    int r = ioctl(fd[a[0]], a[1], &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(getopt) { /* slot, level, option, room */
    unsigned char value[64];
    memset(value, 0xEE, sizeof value);
    socklen_t len = a[3];
    int r = getsockopt(fd[a[0]], a[1], a[2], value, &len);
    if (r >= 0)
        tell(" %u:%04x", len, hash(value, len));
    return r;
}
OP(setopt) { /* slot, level, option, value, length */
    int value[2] = {a[3], a[3]};
    return setsockopt(fd[a[0]], a[1], a[2], value, a[4]);
}
OP(timeout) { /* slot, option, milliseconds */
    struct timeval t = {0, a[2] * 1000};
    return setsockopt(fd[a[0]], SOL_SOCKET, a[1], &t, sizeof t);
}
OP(linger) {
    struct linger l = {a[1], a[2]};
    return setsockopt(fd[a[0]], SOL_SOCKET, SO_LINGER, &l, sizeof l);
}
OP(names) { /* slot */
    struct sockaddr_in here, there;
    socklen_t n = sizeof here, m = sizeof there;
    int r = getsockname(fd[a[0]], (struct sockaddr *)&here, &n);
    if (r < 0)
        return r;
    tell(" %u", n);
    r = getpeername(fd[a[0]], (struct sockaddr *)&there, &m);
    if (r >= 0)
        tell(" %u", m);
    return r;
}
OP(stat) {
    struct stat s;
    int r = fstat(fd[a[0]], &s);
    if (r >= 0)
        tell(" %o", s.st_mode & S_IFMT);
    return r;
}
OP(give) { /* slot: sends it to whoever takes it */
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &fd[a[0]], sizeof(int));
    return sendmsg(passing[0], &m, MSG_DONTWAIT);
}
OP(take) {
    char control[CMSG_SPACE(sizeof(int))] = {0}, x;
    struct iovec v = {&x, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(passing[1], &m, MSG_DONTWAIT) < 0)
        return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int f = -1;
    if (c)
        memcpy(&f, CMSG_DATA(c), sizeof f);
    return put(a[0], f);
}

/* ---- processes and threads ---- */

static void act(int process);

OP(fork) { /* the number of the child */
    int child = fork();
    if (child == 0) {
        act(a[0]);
        _exit(0);
    }
    return child < 0 ? -1 : 0;
}
OP(exit) {
    if (a[0])
        _exit(0);
    exit(0);
}
OP(exec) {
    (void)a;
    char text[40 + 3 * SLOTS * 4], *argv[] = {"steps", text, NULL};
    int at = sprintf(text, "%d %d %d %d", me, threads, restarts, slow);
    for (int i = 0; i < SLOTS; i++)
        at += sprintf(text + at, " %d", fd[i] >= 0 && !(fcntl(fd[i], F_GETFD) & FD_CLOEXEC) ? fd[i] : -1);
    execv("/proc/self/exe", argv);
    return -1;
}
OP(signal) { /* the thread that gets it */
    return a[0] < threads ? pthread_kill(thread[a[0]], SIGUSR1) : -1;
}
OP(handled) {
    (void)a;
    return handled;
}
OP(kill) { /* done by whoever reads the script */
    (void)a;
    return 0;
}

#define ENTRY(name) {#name, op_##name}
static const struct {
    const char *name;
    long (*run)(const long *);
} ops[] = {
    ENTRY(listen), ENTRY(connect), ENTRY(accept), ENTRY(accept4), ENTRY(pair), ENTRY(warm), ENTRY(pipe), ENTRY(write), ENTRY(send),
    ENTRY(sendto), ENTRY(writev), ENTRY(sendmsg), ENTRY(sendmmsg), ENTRY(sendfile), ENTRY(read), ENTRY(recv), ENTRY(recvfrom),
    ENTRY(readv), ENTRY(recvmsg), ENTRY(recvmmsg), ENTRY(splice), ENTRY(poll), ENTRY(ppoll), ENTRY(select), ENTRY(pselect),
    ENTRY(epoll_create), ENTRY(epoll_ctl), ENTRY(epoll_wait), ENTRY(close), ENTRY(shutdown), ENTRY(dup), ENTRY(dup2), ENTRY(dup3),
    ENTRY(dupfd), ENTRY(nonblock), ENTRY(getfl), ENTRY(cloexec), ENTRY(number), ENTRY(getopt), ENTRY(setopt), ENTRY(timeout),
    ENTRY(linger), ENTRY(names), ENTRY(stat), ENTRY(give), ENTRY(take), ENTRY(fork), ENTRY(exit), ENTRY(exec), ENTRY(signal),
    ENTRY(handled), ENTRY(kill),
};
enum { OPS = sizeof ops / sizeof *ops };

static void say(int number, int t) {
    struct said s = {number, me, t, getpid(), syscall(SYS_gettid), ""};
    memcpy(s.text, told, sizeof told);
    if (syscall(SYS_write, answers[1], &s, sizeof s) != sizeof s)
        _exit(3);
}

static void *follow(void *which) {
    int t = (int)(long)which;
    struct step step;
    told[0] = 0;
    say(-1, t);
    while (syscall(SYS_read, orders[me][t][0], &step, sizeof step) == sizeof step) {
        if (step.op < 0)
            exit(0);
        now = &step;
        told[0] = 0;
        errno = 0;
        long r = ops[step.op].run(step.a);
        int e = errno;
        char what[400];
        memcpy(what, told, sizeof what);
        if (r < 0)
            snprintf(told, sizeof told, "%s", strerrorname_np(e) ?: "-1");
        else
            snprintf(told, sizeof told, "%ld%.380s", r, what);
        say(step.number, t);
    }
    return NULL;
}

static void act(int process) {
    me = process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    thread[0] = pthread_self();
    if (threads > 1)
        pthread_create(&thread[1], NULL, follow, (void *)1);
    follow(NULL);
}

static void handle(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = restarts ? SA_RESTART : 0};
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- who reads the script ---- */

static struct {
    int pid, pidfd;
    struct {
        int tid, busy;
    } t[THREADS];
} known[PROCESSES];

static int moved(int f) {
    int high = fcntl(f, F_DUPFD, HIGH);
    close(f);
    return high;
}

/* Does a thread sleep? */
static int sleeps(int process, int t) {
    char name[64], text[256];
    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", known[process].pid, known[process].t[t].tid);
    int f = open(name, O_RDONLY | O_CLOEXEC);
    if (f < 0)
        return 0;
    ssize_t n = read(f, text, sizeof text - 1);
    close(f);
    text[n < 0 ? 0 : n] = 0;
    char *end = strrchr(text, ')');
    return end && end[2] == 'S';
}

static int is_gone(int process) {
    struct pollfd p = {known[process].pidfd, POLLIN, 0};
    return known[process].pidfd >= 0 && poll(&p, 1, 0) == 1;
}

static void forget(int process) {
    if (known[process].pidfd >= 0)
        close(known[process].pidfd);
    memset(&known[process], 0, sizeof known[process]);
    known[process].pidfd = -1;
}

/* What is heard while a step is done: of itself, and of others, in their order. */
static char own[420], heard[PROCESSES * THREADS][420];
static int hears;

static int by_number(const void *a, const void *b) { return atoi(a) - atoi(b); }

static void print_heard(void) {
    printf("%s", own);
    qsort(heard, hears, sizeof *heard, by_number);
    for (int i = 0; i < hears; i++)
        printf(" | %s", heard[i]);
    own[0] = hears = 0;
}

static void take_in(int number) {
    struct said s;
    if (read(answers[0], &s, sizeof s) != sizeof s)
        exit(4);
    if (s.number < 0) {
        if (known[s.process].pid != s.pid) {
            known[s.process].pid = s.pid;
            known[s.process].pidfd = syscall(SYS_pidfd_open, s.pid, 0);
        }
        known[s.process].t[s.thread].tid = s.tid;
        known[s.process].t[s.thread].busy = 0;
        return;
    }
    known[s.process].t[s.thread].busy = 0;
    if (s.number == number)
        snprintf(own, sizeof own, " = %s", s.text);
    else
        snprintf(heard[hears++], sizeof *heard, "%d = %s", s.number, s.text);
}

static int comes(int ms) {
    struct pollfd p = {answers[0], POLLIN, 0};
    return poll(&p, 1, ms) == 1;
}

static int is_there(int process) {
    for (int t = 0; t < threads; t++)
        if (!known[process].t[t].tid)
            return 0;
    return 1;
}

static void await_process(int process, int number) {
    for (int i = 0; i < 1000 && !is_there(process); i++)
        if (comes(5))
            take_in(number);
}

/* Until everybody has done what he was told, or sleeps. */
static void settle(int number, int process, int t, int patience) {
    int calm = 0;
    if (slow)
        usleep(50000);
    for (int i = 0; i < 2000 && calm < (slow ? 40 : 3); i++) {
        while (comes(0)) {
            take_in(number);
            calm = 0;
        }
        int awake = 0, busy = 0;
        for (int p = 0; p < PROCESSES; p++)
            for (int k = 0; k < threads; k++)
                if (known[p].pid && known[p].t[k].busy) {
                    busy = 1;
                    awake |= !sleeps(p, k);
                }
        if (!busy)
            return;
        if (patience > 0 && known[process].t[t].busy) {
            /* It ends by itself. */
            int ms = patience;
            patience = 0;
            comes(ms);
            continue;
        }
        if (is_gone(process))
            return;
        calm = awake ? 0 : calm + 1;
        comes(awake ? 1 : 2);
    }
}

static int op_named(const char *name) {
    for (int i = 0; i < OPS; i++)
        if (!strcmp(ops[i].name, name))
            return i;
    return -1;
}

/* How long an operation may last that waits at most so long, in milliseconds; 0: it does not wait, or for ever. */
static int lasts(const char *name, const long *a) {
    long ms = 0;
    if (!strcmp(name, "poll") || !strcmp(name, "ppoll") || !strcmp(name, "select") || !strcmp(name, "pselect"))
        ms = a[0];
    if (!strcmp(name, "epoll_wait"))
        ms = a[2];
    return ms > 0 ? ms + (slow ? 200 : 60) : 0;
}

static void do_step(int number, int process, int t, const char *name, const long *a) {
    printf("%d %d %s", process, t, name);
    for (int i = 0; i < ARGS; i++)
        if (a[i] != -99)
            printf(" %ld", a[i]);
    struct step step = {number, process, t, op_named(name), {0}};
    memcpy(step.a, a, sizeof step.a);
    if (step.op < 0 || process >= PROCESSES || t >= threads) {
        printf(" = no such step\n");
        return;
    }
    if (!known[process].pid) {
        printf(" = nobody\n");
        return;
    }
    if (!strcmp(name, "kill")) {
        kill(known[process].pid, SIGKILL);
        while (!is_gone(process))
            usleep(200);
        forget(process);
        settle(number, 0, 0, 0);
        print_heard();
        printf("\n");
        return;
    }
    if (known[process].t[t].busy) {
        printf(" = busy\n");
        return;
    }
    if (!strcmp(name, "fork") && (a[0] >= PROCESSES || known[a[0]].pid)) {
        printf(" = taken\n");
        return;
    }
    known[process].t[t].busy = 1;
    if (write(orders[process][t][1], &step, sizeof step) != sizeof step)
        exit(4);
    if (!strcmp(name, "exec"))
        known[process].t[0].tid = known[process].t[1].tid = 0;
    if (!strcmp(name, "exec") || !strcmp(name, "fork"))
        await_process(!strcmp(name, "fork") ? (int)a[0] : process, number);
    if (!strcmp(name, "exit")) {
        for (int i = 0; i < 5000 && !is_gone(process); i++)
            usleep(200);
        printf(is_gone(process) ? "" : " = stays");
        forget(process);
        settle(number, 0, 0, 0);
        print_heard();
        printf("\n");
        return;
    }
    settle(number, process, t, lasts(name, a));
    if (known[process].pid && is_gone(process)) {
        printf(" = dead");
        forget(process);
    } else if (known[process].t[t].busy)
        printf(" = waits");
    print_heard();
    printf("\n");
    for (int p = 0; p < PROCESSES; p++)
        if (known[p].pid && is_gone(p)) {
            printf("process %d is dead\n", p);
            forget(p);
        }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        /* An actor after its exec: the descriptors of the protocol stayed where they were. */
        char *at = argv[1];
        me = strtol(at, &at, 10);
        threads = strtol(at, &at, 10);
        restarts = strtol(at, &at, 10);
        slow = strtol(at, &at, 10);
        for (int i = 0; i < SLOTS; i++)
            fd[i] = strtol(at, &at, 10);
        memcpy(orders, (int[PROCESSES][THREADS][2]){{{100, 101}, {102, 103}}, {{104, 105}, {106, 107}}, {{108, 109}, {110, 111}}}, sizeof orders);
        memcpy(answers, (int[]){112, 113}, sizeof answers);
        memcpy(passing, (int[]){114, 115}, sizeof passing);
        handle();
        act(me);
        return 0;
    }
    char line[512], name[64];
    int number = 0, begun = 0;
    setvbuf(stdout, NULL, _IOLBF, 4096);
    for (int i = 0; i < SLOTS; i++)
        fd[i] = -1;
    for (int p = 0; p < PROCESSES; p++) {
        known[p].pidfd = -1;
        for (int t = 0; t < THREADS; t++) {
            int made[2];
            if (pipe(made))
                return 4;
            orders[p][t][0] = moved(made[0]);
            orders[p][t][1] = moved(made[1]);
        }
    }
    int made[2];
    if (pipe(made))
        return 4;
    answers[0] = moved(made[0]);
    answers[1] = moved(made[1]);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, made))
        return 4;
    passing[0] = moved(made[0]);
    passing[1] = moved(made[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#ifdef SCRIPT
    FILE *script = fmemopen((void *)SCRIPT, strlen(SCRIPT), "r");
#else
    FILE *script = stdin;
#endif
    while (fgets(line, sizeof line, script)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "threads %d", &threads) == 1 || sscanf(line, "restarts %d", &restarts) == 1 ||
            sscanf(line, "slow %d", &slow) == 1)
            continue;
        if (!begun) {
            begun = 1;
            handle();
            fflush(stdout);
            int child = fork();
            if (child == 0) {
                close(0);
                open("/dev/null", O_RDONLY);
                act(0);
                _exit(0);
            }
            /* What is under way there ends with those who pass it on. */
            close(passing[0]);
            close(passing[1]);
            await_process(0, -2);
        }
        int process, t, at;
        long a[ARGS];
        for (int i = 0; i < ARGS; i++)
            a[i] = -99;
        if (sscanf(line, "%d %d %63s%n", &process, &t, name, &at) != 3) {
            printf("not a step: %s", line);
            return 4;
        }
        char *rest = line + at;
        for (int i = 0; i < ARGS; i++) {
            char *end;
            long value = strtol(rest, &end, 0);
            if (end == rest)
                break;
            a[i] = value;
            rest = end;
        }
        do_step(number++, process, t, name, a);
    }
    fflush(stdout);
    /* Children first: they are killed when their parents go. Who waits still has last words of the library's, if not of its own. */
    for (int p = PROCESSES - 1; p >= 0; p--) {
        if (!known[p].pid)
            continue;
        struct step last = {.op = -1};
        if (known[p].t[0].busy)
            kill(known[p].pid, SIGTERM);
        else if (write(orders[p][0][1], &last, sizeof last) != sizeof last)
            return 4;
        for (int i = 0; i < 250 && !is_gone(p); i++)
            usleep(200);
    }
    for (int p = 0; p < PROCESSES; p++)
        if (known[p].pid)
            kill(known[p].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return 0;
}
