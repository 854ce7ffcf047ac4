/* The kernel's asynchronous interface by libaio, whose functions make system calls of their own. */
#include "echo.h"
#include <libaio.h>

static io_context_t context;

static void begin(struct iocb *request) {
    if (!context && io_setup(4, &context) != 0)
        fail("io_setup");
    if (io_submit(context, 1, &request) != 1)
        fail("io_submit");
}

static long end(void) {
    struct io_event e;
    struct timespec t = {20, 0};
    if (io_getevents(context, 1, 1, &e, &t) != 1)
        fail("io_getevents");
    return e.res;
}

/* Data that was on its way to the program already. */
static void reads_server(int fd) {
    char buf[100];
    exchange(fd, 2);
    send_noise(fd, 0, 100);
    await_bytes(fd, 100);
    for (int n = 0; n < 100;) {
        struct iocb r;
        io_prep_pread(&r, fd, buf + n, 100 - n, 0);
        begin(&r);
        n += must(end());
    }
    check(buf, 0, 100);
    exchange(fd, 2);
}
WITH_ECHO(reads)

static void writes_server(int fd) {
    char buf[100];
    struct iocb w;
    fill(buf, 0, 100);
    exchange(fd, 2);
    for (int i = 0; i < 10; i++) {
        io_prep_pwrite(&w, fd, buf, 100, 0);
        begin(&w);
        say("wrote %ld", end());
        recv_noise(fd, 0, 100);
    }
    exchange(fd, 2);
}
WITH_ECHO(writes)

/* The answer comes after the wait has begun. */
static void polls_server(int fd) {
    struct iocb p;
    exchange(fd, 2);
    for (int i = 0; i < 10; i++) {
        io_prep_poll(&p, fd, POLLIN);
        begin(&p);
        send_noise(fd, 0, 100);
        say("ready %lx", end());
        recv_noise(fd, 0, 100);
    }
    exchange(fd, 2);
}
WITH_ECHO(polls)

CASES(CASE(reads), CASE(writes), CASE(polls))
