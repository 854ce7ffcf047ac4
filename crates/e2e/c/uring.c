/* io_uring: by liburing, whose system calls nobody sees, and by syscall(2), as libuv makes them. */
#include "echo.h"
#include "ring.h"
#include <sys/epoll.h>

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
    must(init_ring(8, &ring));
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
    must(init_ring(8, &ring));
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
    unsigned flags, registered;
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

/* Since Linux 6.6. */
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif

static struct own_ring make_ring_of(unsigned flags) {
    struct io_uring_params p = {.flags = flags};
    struct own_ring r = {.fd = setup_ring(8, &p), .flags = flags};
    /* An older kernel. */
    if (r.fd < 0 && flags != 0)
        return make_ring_of(0);
    must(r.fd);
    size_t sq = p.sq_off.array + p.sq_entries * 4, cq = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *at = map_ring(r.fd, sq > cq ? sq : cq, IORING_OFF_SQ_RING);
    r.sqes = map_ring(r.fd, p.sq_entries * (flags & IORING_SETUP_SQE128 ? 128 : 64), IORING_OFF_SQES);
    r.head = (void *)(at + p.sq_off.head), r.tail = (void *)(at + p.sq_off.tail), r.mask = (void *)(at + p.sq_off.ring_mask);
    r.array = (void *)(at + p.sq_off.array), r.done = (void *)(at + p.cq_off.head), r.come = (void *)(at + p.cq_off.tail);
    r.come_mask = (void *)(at + p.cq_off.ring_mask), r.cqes = (void *)(at + p.cq_off.cqes);
    return r;
}

static struct own_ring make_ring(void) { return make_ring_of(0); }

/* Puts a request behind the others, for the next call. */
static void put(struct own_ring *r, struct io_uring_sqe *sqe) {
    unsigned at = *r->tail & *r->mask;
    sqe->user_data = 4711;
    r->sqes[r->flags & IORING_SETUP_SQE128 ? at * 2 : at] = *sqe;
    if (!(r->flags & IORING_SETUP_NO_SQARRAY))
        r->array[at] = at;
    __atomic_store_n(r->tail, *r->tail + 1, __ATOMIC_RELEASE);
}

static void enter(struct own_ring *r, int n) {
    unsigned flags = IORING_ENTER_GETEVENTS | (r->registered ? IORING_ENTER_REGISTERED_RING : 0);
    if (r->flags & IORING_SETUP_SQPOLL)
        flags |= IORING_ENTER_SQ_WAKEUP;
    must(syscall(SYS_io_uring_enter, r->registered ? (int)r->registered - 1 : r->fd, n, n, flags, NULL, 0L));
}

static int result(struct own_ring *r) {
    struct io_uring_cqe c = r->cqes[*r->done & *r->come_mask];
    if (__atomic_load_n(r->come, __ATOMIC_ACQUIRE) == *r->done || c.user_data != 4711)
        fail("completion");
    __atomic_store_n(r->done, *r->done + 1, __ATOMIC_RELEASE);
    return c.res;
}

static int submit(struct own_ring *r, struct io_uring_sqe *sqe) {
    put(r, sqe);
    enter(r, 1);
    return result(r);
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
static void sets_by(struct own_ring r, int fd) {
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
static void sets_server(int fd) { sets_by(make_ring(), fd); }
WITH_ECHO(sets)

static void sets_wide_server(int fd) { sets_by(make_ring_of(IORING_SETUP_SQE128), fd); }
WITH_ECHO(sets_wide)

static void sets_in_order_server(int fd) { sets_by(make_ring_of(IORING_SETUP_NO_SQARRAY), fd); }
WITH_ECHO(sets_in_order)

/* Each of libuv's loops has a ring, of which some have not been used yet. */
static void sets_of_many_server(int fd) {
    make_ring();
    struct own_ring r = make_ring();
    make_ring();
    sets_by(r, fd);
}
WITH_ECHO(sets_of_many)

/* A child of fork goes on with its parent's ring, and a handler may be the first to submit. */
static struct own_ring handled;
static int handled_set, handled_fd, handled_said;
static void on_signal(int s) {
    (void)s;
    struct epoll_event e = {EPOLLIN, {.u64 = 42}};
    handled_said = change(&handled, handled_set, EPOLL_CTL_ADD, handled_fd, &e);
}
static void in_handler_server(int fd) {
    handled = make_ring(), handled_set = must(epoll_create1(0)), handled_fd = fd;
    say("quiet %d", waits(handled_set, 0));
    static char room[8192];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    must(sigaltstack(&stack, NULL));
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    must(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    say("said %d", handled_said);
    send_noise(fd, 0, 100);
    say("told %d", waits(handled_set, 10000));
    recv_noise(fd, 0, 100);
    nonblocking(fd, 0);
    exchange(fd, 300);
}
WITH_ECHO(in_handler)

/* Threads that submit while others fork: no child hangs. */
static volatile int forked_enough;
static void *submits(void *arg) {
    struct own_ring r = make_ring();
    struct epoll_event e = {EPOLLIN, {.u64 = 42}};
    int ep = must(epoll_create1(0)), fd = *(int *)arg;
    while (!forked_enough) {
        change(&r, ep, EPOLL_CTL_ADD, fd, &e);
        change(&r, ep, EPOLL_CTL_DEL, fd, NULL);
        struct io_uring_params p = {0};
        close(must(setup_ring(1, &p)));
    }
    return NULL;
}
static void forks_server(int fd) {
    pthread_t t;
    must(-pthread_create(&t, NULL, submits, &fd));
    for (int i = 0; i < 40; i++) {
        int status = -1;
        pid_t pid = must(fork());
        if (pid == 0) {
            alarm(20);
            struct own_ring r = make_ring();
            struct io_uring_sqe nothing = {.opcode = IORING_OP_NOP};
            _exit(submit(&r, &nothing));
        }
        must(waitpid(pid, &status, 0));
        if (status != 0)
            say("a child ends with %x", status), exit(1);
    }
    forked_enough = 1;
    pthread_join(t, NULL);
    exchange(fd, 100);
}
WITH_ECHO(forks)

/* The kernel itself tells what a set has: what the program put there, never something of ours. */
#define OP_EPOLL_WAIT 59
static void set_waits_server(int fd) {
    struct own_ring r = make_ring();
    struct epoll_event e = {EPOLLIN, {.u64 = 42}}, told = {0, {0}};
    int ep = must(epoll_create1(0));
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    say("quiet %d", waits(ep, 0));
    exchange(fd, 10);
    send_noise(fd, 0, 100);
    await_bytes(fd, 100);
    struct io_uring_sqe sqe = {.opcode = OP_EPOLL_WAIT, .fd = ep, .addr = (uintptr_t)&told, .len = 1};
    int n = submit(&r, &sqe);
    /* Since Linux 6.15. */
    if (n == -EINVAL)
        n = epoll_wait(ep, &told, 1, 10000);
    say("told %d: %llu", n, (unsigned long long)told.data.u64);
    recv_noise(fd, 0, 100);
    send_noise(fd, 100, 100);
    struct io_uring_sqe poll = {.opcode = IORING_OP_POLL_ADD, .fd = ep, .poll32_events = POLLIN};
    say("polled %d", submit(&r, &poll));
    say("told %d", waits(ep, 10000));
    recv_noise(fd, 100, 100);
    say("quiet %d", waits(ep, 0));
    e.data.u64 = 43;
    must(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
    send_noise(fd, 200, 100);
    say("told %d", waits(ep, 10000));
    recv_noise(fd, 200, 100);
    must(epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
    exchange(fd, 10);
}
WITH_ECHO(set_waits)

/* A close by the ring is one: the number is another's afterwards, and what was sent before arrives. */
static void closes_server(int fd) {
    struct own_ring r = make_ring();
    char buf[100];
    int copy = must(dup(fd));
    struct io_uring_sqe close_copy = {.opcode = IORING_OP_CLOSE, .fd = copy};
    say("closed %d", submit(&r, &close_copy));
    say("again %d", submit(&r, &close_copy));
    int ends[2];
    must(pipe(ends));
    say("the number is free %d", ends[0] == copy);
    must(write(ends[1], "pipe", 4));
    say("%.*s", (int)must(read(ends[0], buf, 100)), buf);
    exchange(fd, 100);
    send_noise(fd, sent, 1000);
    recv_noise(fd, sent, 1000);
    struct io_uring_sqe close_it = {.opcode = IORING_OP_CLOSE, .fd = fd};
    say("closed %d", submit(&r, &close_it));
    say_result("read", read(fd, buf, 100));
}
WITH_ECHO(closes)

/* A chain: the close comes after what is sent. */
static void chain_server(int fd) {
    struct own_ring r = make_ring();
    char buf[100];
    exchange(fd, 10);
    fill(buf, 0, 100);
    struct io_uring_sqe send = {.opcode = IORING_OP_SEND, .fd = fd, .addr = (uintptr_t)buf, .len = 100, .flags = IOSQE_IO_LINK};
    struct io_uring_sqe shut = {.opcode = IORING_OP_SHUTDOWN, .fd = fd, .len = SHUT_WR, .flags = IOSQE_IO_LINK};
    struct io_uring_sqe last = {.opcode = IORING_OP_CLOSE, .fd = fd};
    int kept = must(dup(fd));
    put(&r, &send), put(&r, &shut), put(&r, &last);
    enter(&r, 3);
    say("sent %d", result(&r));
    say("shut %d", result(&r));
    say("closed %d", result(&r));
    say_result("read", read(fd, buf, 100));
    recv_noise(kept, 0, 100);
    say_result("end", read(kept, buf, 100));
}
WITH_ECHO(chain)

/* close(2) that no library sees. */
static void close_round(int fd) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
    must(r);
}

/* A number that the ring gives out, under which something else was known until it was closed round us. */
static void accepts_server(int fd) {
    struct own_ring r = make_ring();
    struct sockaddr_in at;
    int l = listen_somewhere(&at), copy = must(dup(fd)), status = -1;
    exchange(fd, 10);
    pid_t pid = must(fork());
    if (pid == 0) {
        int young = connect_to(&at);
        exchange(young, 40);
        _exit(0);
    }
    close_round(copy);
    struct io_uring_sqe accept = {.opcode = IORING_OP_ACCEPT, .fd = l};
    int young = must(submit(&r, &accept));
    say("the number is free %d", young == copy);
    char buf[777];
    for (int i = 0; i < 40; i++) {
        recv_all(young, buf, 777);
        send_all(young, buf, 777);
    }
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    say_result("end", read(young, buf, 1));
    exchange(fd, 100);
}
WITH_ECHO(accepts)

/* Files that are registered, a ring that the kernel polls, and one that is registered itself: the requests are not seen. */
static void moves(struct own_ring *r, int fd, int at, int flags) {
    char buf[100];
    for (int i = 0; i < 20; i++) {
        fill(buf, i, 100);
        struct io_uring_sqe send = {.opcode = IORING_OP_SEND, .fd = at, .addr = (uintptr_t)buf, .len = 100, .flags = flags};
        say("sent %d", submit(r, &send));
        for (int n = 0; n < 100;) {
            struct io_uring_sqe recv = {.opcode = IORING_OP_RECV, .fd = at, .addr = (uintptr_t)(buf + n), .len = 100 - n, .flags = flags};
            n += must(submit(r, &recv));
        }
        check(buf, i, 100);
    }
    exchange(fd, 10);
}
static void files_server(int fd) {
    struct own_ring r = make_ring();
    int files[2] = {-1, fd};
    exchange(fd, 10);
    must(syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_FILES, files, 2));
    moves(&r, fd, 1, IOSQE_FIXED_FILE);
    must(syscall(SYS_io_uring_register, r.fd, IORING_UNREGISTER_FILES, NULL, 0));
}
WITH_ECHO(files)

static void polled_server(int fd) {
    exchange(fd, 10);
    struct own_ring r = make_ring_of(IORING_SETUP_SQPOLL);
    moves(&r, fd, fd, 0);
}
WITH_ECHO(polled)

/* One that is there before the sockets are. */
static void polled_first_server(int fd) {
    struct own_ring r = make_ring_of(IORING_SETUP_SQPOLL);
    struct sockaddr_in at;
    int l = listen_somewhere(&at), status = -1;
    pid_t pid = must(fork());
    if (pid == 0) {
        int young = connect_to(&at);
        exchange(young, 40);
        _exit(0);
    }
    int young = must(accept(l, NULL, NULL));
    char buf[777];
    for (int i = 0; i < 20; i++) {
        recv_all(young, buf, 777);
        send_all(young, buf, 777);
    }
    for (int n = 0, k; n < 20 * 777; n += k) {
        struct io_uring_sqe recv = {.opcode = IORING_OP_RECV, .fd = young, .addr = (uintptr_t)buf, .len = sizeof buf};
        k = must(submit(&r, &recv));
        send_all(young, buf, k);
    }
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    exchange(fd, 10);
}
WITH_ECHO(polled_first)

static void registered_server(int fd) {
    struct own_ring r = make_ring();
    struct io_uring_rsrc_update at = {.offset = -1U, .data = r.fd};
    exchange(fd, 10);
    if (syscall(SYS_io_uring_register, r.fd, IORING_REGISTER_RING_FDS, &at, 1) == 1)
        r.registered = at.offset + 1;
    moves(&r, fd, fd, 0);
}
WITH_ECHO(registered)

/* A ring that the kernel refuses changes nothing. */
static void refused_server(int fd) {
    struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF, .sq_thread_cpu = 1 << 20};
    say_result("a ring", setup_ring(8, &p));
    exchange(fd, 300);
}
WITH_ECHO(refused)

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

/* A message that the ring sends passes the connection on, with bytes on their way, to a process that makes its calls round the library. */
static void passed_server(int fd) {
    int pair[2], status = -1;
    char word = 0, control[CMSG_SPACE(sizeof fd)] = {0}, buf[5000];
    struct iovec iov = {&word, 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t pid = must(fork());
    if (pid == 0) {
        close(fd);
        must(syscall(SYS_recvmsg, pair[1], &message, 0));
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        for (int n = 0; n < 5000;)
            n += must(syscall(SYS_read, fd, buf + n, sizeof buf - n));
        check(buf, 0, 5000);
        _exit(syscall(SYS_write, fd, buf, 100) - 100);
    }
    exchange(fd, 40);
    send_noise(fd, 0, 5000);
    await_bytes(fd, 5000);
    struct own_ring r = make_ring();
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    struct io_uring_sqe sqe = {.opcode = IORING_OP_SENDMSG, .fd = pair[0], .addr = (uintptr_t)&message, .len = 1};
    say("sent %d", submit(&r, &sqe));
    must(waitpid(pid, &status, 0));
    say("status %x", status);
    recv_noise(fd, 0, 100);
    exchange(fd, 10);
}
WITH_ECHO(passed)

/* A program that does without where there is none: HEADWATER_URING=refuse says that. */
static void without_server(int fd) {
    struct io_uring ring;
    struct io_uring_params p = {0};
    char buf[777];
    int refused = getenv("HEADWATER_URING") != NULL, r = init_ring(8, &ring), n = setup_ring(8, &p);
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

CASES(CASE(liburing), CASE(later), CASE(sets), CASE(sets_wide), CASE(sets_in_order), CASE(sets_of_many), CASE(in_handler), CASE(forks),
      CASE(set_waits), CASE(closes), CASE(chain), CASE(accepts), CASE(files), CASE(polled), CASE(polled_first), CASE(registered), CASE(refused),
      CASE(named), CASE(passed), CASE(without))
