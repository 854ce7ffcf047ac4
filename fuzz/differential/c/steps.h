/* Runs steps in lock-step, and prints what each did: what one call after the other returned, and what was heard of calls that
 * had been waiting. The same steps on sockets print the same natively and with the library; those on streams and on transport
 * endpoints print the same whichever way these are made: "way N" in the script says how.
 *
 *     steps < SCRIPT
 *
 * A step is a line: process, thread, name, numbers. Processes share nothing but what they inherit and pass on; each has two
 * threads where the first line says "threads 2". Descriptors are named by the slot they lie in. What there are for steps is in
 * any.c, and for each surface in sockets.c, streams.c and xti.c; this file is before them, steps.c behind.
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
#include <spawn.h>
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
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#ifndef SIOCOUTQNSD
#define SIOCOUTQNSD 0x894B
#endif

enum { PROCESSES = 3, THREADS = 2, SLOTS = 12, ARGS = 8, MOST = 65536, HIGH = 100, SHARED = 65536 };

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
static int me, threads = 1, restarts, slow, way;
static int fd[SLOTS];
static pthread_t thread[THREADS];
static volatile int handled;
/* Of all processes: as much as SHARED says, all zero at first. */
static void *shared;

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

static long put(int slot, int f) {
    if (f < 0)
        return -1;
    if (fd[slot] >= 0)
        close(fd[slot]);
    fd[slot] = f;
    return 0;
}

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

/* What a step returns that has told by itself why it failed. */
enum { TOLD = -2 };

struct op {
    const char *name;
    long (*run)(const long *);
};
#define OP(NAME) \
    static long op_##NAME(const long *); \
    __attribute__((used, section("ops"))) static const struct op entry_##NAME = {#NAME, op_##NAME}; \
    static long op_##NAME(const long *a)

