/* io_uring: by liburing, whose system calls nobody sees, and by syscall(2), as libuv makes them. */
#include "echo.h"
#include <liburing.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

static int finish(struct io_uring *ring) {
    struct io_uring_cqe *cqe;
    must(io_uring_submit(ring));
    must(io_uring_wait_cqe(ring, &cqe));
    int r = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    return r;
}

/* A ring of liburing's beside a connection that is carried, with bytes on their way. */
static void liburing_server(int fd) {
    struct io_uring ring;
    char buf[1000];
    exchange(fd, 2);
    send_noise(fd, 0, 1000);
    await_bytes(fd, 1000);
    must(io_uring_queue_init(8, &ring, 0));
    for (int n = 0; n < 1000;) {
        io_uring_prep_recv(io_uring_get_sqe(&ring), fd, buf + n, sizeof buf - n, 0);
        n += must(finish(&ring));
    }
    check(buf, 0, 1000);
    for (int i = 0; i < 20; i++) {
        fill(buf, i, 100);
        io_uring_prep_send(io_uring_get_sqe(&ring), fd, buf, 100, 0);
        say("sent %d", finish(&ring));
        io_uring_prep_recv(io_uring_get_sqe(&ring), fd, buf, 100, MSG_WAITALL);
        say("received %d", finish(&ring));
        check(buf, i, 100);
    }
    exchange(fd, 2);
    io_uring_queue_exit(&ring);
}
WITH_ECHO(liburing)

/* Connections that come after it. */
static void later_server(int fd) {
    struct io_uring ring;
    struct sockaddr_in at;
    char buf[100];
    must(io_uring_queue_init(8, &ring, 0));
    int l = listen_somewhere(&at);
    pid_t pid = must(fork());
    if (pid == 0) {
        int young = connect_to(&at);
        exchange(young, 40);
        _exit(0);
    }
    int young = must(accept(l, NULL, NULL)), status = -1;
    for (uint64_t n = 0; n < 40 * 777;) {
        io_uring_prep_recv(io_uring_get_sqe(&ring), young, buf, sizeof buf, 0);
        int r = must(finish(&ring));
        io_uring_prep_send(io_uring_get_sqe(&ring), young, buf, r, 0);
        if (finish(&ring) != r)
            fail("send");
        n += r;
    }
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exchange(fd, 2);
}
WITH_ECHO(later)

/* A ring made by numbers alone. */
struct own_ring {
    int fd;
    unsigned *head, *tail, *mask, *array, *done, *come, *come_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static void *map_ring(int fd, size_t n, off_t at) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, at);
    if (p == MAP_FAILED)
        fail("mmap");
    return p;
}

static struct own_ring make_ring(void) {
    struct io_uring_params p = {0};
    struct own_ring r = {.fd = must(syscall(SYS_io_uring_setup, 8, &p))};
    size_t sq = p.sq_off.array + p.sq_entries * 4, cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *at = map_ring(r.fd, sq > cq ? sq : cq, IORING_OFF_SQ_RING);
    r.sqes = map_ring(r.fd, p.sq_entries * sizeof *r.sqes, IORING_OFF_SQES);
    r.head = (void *)(at + p.sq_off.head), r.tail = (void *)(at + p.sq_off.tail), r.mask = (void *)(at + p.sq_off.ring_mask);
    r.array = (void *)(at + p.sq_off.array), r.done = (void *)(at + p.cq_off.head), r.come = (void *)(at + p.cq_off.tail);
    r.come_mask = (void *)(at + p.cq_off.ring_mask), r.cqes = (void *)(at + p.cq_off.cqes);
    return r;
}

static int submit(struct own_ring *r, struct io_uring_sqe *sqe) {
    unsigned at = *r->tail & *r->mask;
    sqe->user_data = 4711;
    r->sqes[at] = *sqe, r->array[at] = at;
    __atomic_store_n(r->tail, *r->tail + 1, __ATOMIC_RELEASE);
    must(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0L));
    struct io_uring_cqe c = r->cqes[*r->done & *r->come_mask];
    if (__atomic_load_n(r->come, __ATOMIC_ACQUIRE) == *r->done || c.user_data != 4711)
        fail("completion");
    __atomic_store_n(r->done, *r->done + 1, __ATOMIC_RELEASE);
    return c.res;
}

static int change(struct own_ring *r, int ep, int op, int fd, struct epoll_event *e) {
    struct io_uring_sqe sqe = {.opcode = IORING_OP_EPOLL_CTL, .fd = ep, .len = op, .off = fd, .addr = (uintptr_t)e};
    return submit(r, &sqe);
}

static int waits(int ep, int timeout) {
    struct epoll_event e = {0, {0}};
    int n = epoll_wait(ep, &e, 1, timeout);
    return n == 1 ? (int)e.data.u64 : n;
}

/* Changes of a set, as libuv makes them: the connection stays carried, and the set says what it is to say. */
static void sets_server(int fd) {
    struct own_ring r = make_ring();
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, other = {EPOLLIN, {.u64 = 43}};
    int ep = must(epoll_create1(0)), ends[2];
    must(pipe(ends));
    nonblocking(fd, 1);
    say("quiet %d", waits(ep, 0));
    for (int i = 0; i < 3; i++) {
        say("add %d", change(&r, ep, EPOLL_CTL_ADD, fd, &e));
        say("again %d", change(&r, ep, EPOLL_CTL_ADD, fd, &e));
        say("pipe %d", change(&r, ep, EPOLL_CTL_ADD, ends[0], &e));
        say("quiet %d", waits(ep, 0));
        send_noise(fd, 0, 100);
        say("told %d", waits(ep, 10000));
        say("change %d", change(&r, ep, EPOLL_CTL_MOD, fd, &other));
        say("told %d", waits(ep, 10000));
        await_bytes(fd, 100);
        recv_noise(fd, 0, 100);
        say("quiet %d", waits(ep, 0));
        say("delete %d", change(&r, ep, EPOLL_CTL_DEL, fd, NULL));
        say("again %d", change(&r, ep, EPOLL_CTL_DEL, fd, NULL));
        say("change %d", change(&r, ep, EPOLL_CTL_MOD, fd, &e));
        say("pipe %d", change(&r, ep, EPOLL_CTL_DEL, ends[0], NULL));
    }
    nonblocking(fd, 0);
    exchange(fd, 300);
}
WITH_ECHO(sets)

/* A socket that is named goes to TCP, with what was on its way to it. */
static void named_server(int fd) {
    struct own_ring r = make_ring();
    char buf[100];
    send_noise(fd, 0, 100);
    await_bytes(fd, 100);
    for (int n = 0; n < 100;) {
        struct io_uring_sqe sqe = {.opcode = IORING_OP_RECV, .fd = fd, .addr = (uintptr_t)(buf + n), .len = 100 - n};
        n += must(submit(&r, &sqe));
    }
    check(buf, 0, 100);
    struct io_uring_sqe sqe = {.opcode = IORING_OP_SEND, .fd = fd, .addr = (uintptr_t)buf, .len = 100};
    say("sent %d", submit(&r, &sqe));
    recv_noise(fd, 0, 100);
    exchange(fd, 10);
}
WITH_ECHO(named)

/* A program that does without where there is none: HEADWATER_URING=refuse says that. */
static void without_server(int fd) {
    struct io_uring ring;
    struct io_uring_params p = {0};
    char buf[777];
    int refused = getenv("HEADWATER_URING") != NULL, r = io_uring_queue_init(8, &ring, 0), n = syscall(SYS_io_uring_setup, 8, &p);
    if (refused ? r != -ENOSYS || n != -1 || errno != ENOSYS : r != 0 || n < 0)
        fail("a ring, or none");
    for (int i = 0; i < 300; i++) {
        if (refused) {
            exchange(fd, 1);
            continue;
        }
        fill(buf, 0, 777);
        io_uring_prep_send(io_uring_get_sqe(&ring), fd, buf, 777, 0);
        must(finish(&ring));
        for (int got = 0; got < 777; got += must(finish(&ring)))
            io_uring_prep_recv(io_uring_get_sqe(&ring), fd, buf + got, 777 - got, 0);
        check(buf, 0, 777);
    }
}
WITH_ECHO(without)

CASES(CASE(liburing), CASE(later), CASE(sets), CASE(named), CASE(without))
