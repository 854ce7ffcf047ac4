/* Connections that are closed under calls in the middle of their work: what these look at stays as long as they look. */
#include "common.h"
#include "held.h"
#include <sys/epoll.h>
#include <sys/select.h>

enum { COPIES = 3, AGAIN = 1000, AT_ONCE = 50 };

static char byte;
static void in_recv(int fd, int other) { recv(fd, &byte, 1, MSG_DONTWAIT); (void)other; }
static void in_peek(int fd, int other) { recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK); (void)other; }
static void in_send(int fd, int other) { send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL); (void)other; }
static void in_writev(int fd, int other) {
    struct iovec v[2] = {{"a", 1}, {"b", 1}};
    writev(fd, v, 2);
    (void)other;
}
static void in_exchange(int fd, int other) {
    char buf[64];
    send(other, "something", 9, MSG_DONTWAIT | MSG_NOSIGNAL);
    recv(fd, buf, sizeof buf, MSG_DONTWAIT);
}
static void in_recv_asleep(int fd, int other) { recv(fd, &byte, 1, 0); (void)other; }
static void in_poll(int fd, int other) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    poll(&p, 1, 0);
    (void)other;
}
static void in_poll_asleep(int fd, int other) {
    struct pollfd p = {fd, POLLIN, 0};
    poll(&p, 1, 20000);
    (void)other;
}
static void in_select(int fd, int other) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    select(fd + 1, &set, NULL, NULL, &(struct timeval){0});
    (void)other;
}
static void in_epoll(int fd, int set) {
    struct epoll_event e;
    epoll_wait(set, &e, 1, 0);
    (void)fd;
}
static void in_epoll_asleep(int fd, int set) {
    struct epoll_event e;
    epoll_wait(set, &e, 1, 20000);
    (void)fd;
}
static void in_splice(int fd, int pipe) { splice(fd, NULL, pipe, NULL, 1, SPLICE_F_NONBLOCK | SPLICE_F_MOVE); }
static void in_ioctl(int fd, int other) {
    int n;
    ioctl(fd, FIONREAD, &n);
    (void)other;
}
static void in_accept(int fd, int other) {
    int s = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (s >= 0)
        close(s);
    (void)other;
}

static const struct {
    void (*call)(int fd, int other);
    /* Asleep in an epoll set, in an empty one, with a pipe, without blocking. */
    enum { PLAIN, WITH_SET, WITH_PIPE, WITH_PEER, BLOCKING } with;
} kinds[] = {
    {in_recv, PLAIN},        {in_peek, PLAIN},       {in_send, PLAIN},     {in_writev, PLAIN},
    {in_exchange, WITH_PEER}, {in_recv_asleep, BLOCKING}, {in_poll, PLAIN}, {in_poll_asleep, BLOCKING},
    {in_select, PLAIN},      {in_epoll, WITH_SET},   {in_epoll_asleep, WITH_SET}, {in_splice, WITH_PIPE},
    {in_ioctl, PLAIN},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What a child has had in common with us is not used again: its memory is given back. */
static void give_up(void) {
    fflush(stdout);
    pid_t pid = must(fork());
    if (pid == 0)
        exit(0);
    must(waitpid(pid, NULL, 0));
}

static void calls_server(int fd) {
    static int ends[KINDS * COPIES][2];
    int listening[COPIES], n = 0;
    struct sockaddr_in at, other;
    (void)fd;
    int l = listen_somewhere(&at);
    for (int i = 0; i < KINDS * COPIES; i++) {
        warm_pair(&at, l, &ends[i][0], &ends[i][1]);
        struct pollfd p = {ends[i][1], POLLIN | POLLOUT, 0};
        must(poll(&p, 1, 0));
    }
    give_up();
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < COPIES; i++, n++) {
            int s = ends[n][1], with = 0, pipes[2];
            struct epoll_event e = {.events = EPOLLIN};
            switch (kinds[k].with) {
            case WITH_SET:
                with = must(epoll_create1(EPOLL_CLOEXEC));
                must(epoll_ctl(with, EPOLL_CTL_ADD, s, &e));
                break;
            case WITH_PIPE:
                must(pipe2(pipes, O_CLOEXEC));
                with = pipes[1];
                break;
            case WITH_PEER:
                with = ends[n][0];
                /* fall through */
            case PLAIN:
                nonblocking(s, 1);
                break;
            case BLOCKING:
                break;
            }
            hold_in("call", kinds[k].call, s, with);
        }
    for (int i = 0; i < COPIES; i++) {
        listening[i] = listen_somewhere(&other);
        nonblocking(listening[i], 1);
        hold_in("accept", in_accept, listening[i], 0);
    }
    held_begin();
    for (int i = 0; i < COPIES; i++)
        must(close(listening[i]));
    for (int i = 0; i < KINDS * COPIES; i++) {
        must(close(ends[i][1]));
        must(close(ends[i][0]));
    }
    for (int i = 0; i < AGAIN / AT_ONCE; i++) {
        int more[AT_ONCE][2];
        for (int j = 0; j < AT_ONCE; j++)
            warm_pair(&at, l, &more[j][0], &more[j][1]);
        give_up();
        for (int j = 0; j < AT_ONCE; j++) {
            must(close(more[j][0]));
            must(close(more[j][1]));
        }
    }
    held_end();
    close(l);
    say("all went on");
    together();
}
static void calls_client(int fd) {
    (void)fd;
    struct pollfd p = {from_peer, POLLIN, 0};
    must(poll(&p, 1, 80000));
    together();
}

CASES(CASE(calls))
