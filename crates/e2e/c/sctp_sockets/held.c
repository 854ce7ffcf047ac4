/* Sockets that are closed under calls in the middle of their work: what these look at stays as long as they look. */
#include "associations.h"
#include "../held.h"

enum { COPIES = 3, AGAIN = 1000 };

static void in_recvmsg(int fd, int other) {
    char text[20];
    struct sctp_sndrcvinfo info;
    int flags = MSG_DONTWAIT;
    sctp_recvmsg(fd, text, sizeof text, NULL, NULL, &info, &flags), (void)other;
}
static void in_recv(int fd, int other) { recv(fd, (char[20]){0}, 20, MSG_DONTWAIT), (void)other; }
static void in_recv_asleep(int fd, int other) { recv(fd, (char[20]){0}, 20, 0), (void)other; }
static void in_sendmsg(int fd, int other) { sctp_sendmsg(fd, "some", 4, NULL, 0, 0, 0, 0, 0, 0), (void)other; }
static void in_exchange(int fd, int other) {
    send(other, "something", 9, MSG_DONTWAIT | MSG_NOSIGNAL);
    recv(fd, (char[20]){0}, 20, MSG_DONTWAIT);
}
static void in_poll(int fd, int other) { poll(&(struct pollfd){fd, POLLIN | POLLOUT, 0}, 1, 0), (void)other; }
static void in_poll_asleep(int fd, int other) { poll(&(struct pollfd){fd, POLLIN, 0}, 1, 20000), (void)other; }
static void in_epoll(int fd, int set) {
    struct epoll_event e;
    epoll_wait(set, &e, 1, 0), (void)fd;
}
static void in_status(int fd, int other) {
    struct sctp_status status = {0};
    socklen_t len = sizeof status;
    getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &len), (void)other;
}

static const struct {
    const char *name;
    void (*call)(int fd, int other);
    enum { PLAIN, BLOCKING, WITH_SET } with;
} kinds[] = {
    {"sctp_recvmsg", in_recvmsg, PLAIN},     {"recv", in_recv, PLAIN}, {"recv asleep", in_recv_asleep, BLOCKING},
    {"sctp_sendmsg", in_sendmsg, PLAIN},     {"both", in_exchange, PLAIN}, {"poll", in_poll, PLAIN},
    {"poll asleep", in_poll_asleep, BLOCKING}, {"epoll_wait", in_epoll, WITH_SET}, {"SCTP_STATUS", in_status, PLAIN},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void close_all(const struct pair *p) {
    check_eq(close(p->server), 0);
    check_eq(close(p->client), 0);
}

CASE(calls, "RFC 6458 4.1.7") {
    /* With packets one of the threads may sleep at the links for all, and nothing comes while a handler holds it. */
    if (by_packets())
        return;
    static struct pair pairs[KINDS * COPIES];
    int listener = listening(SOCK_STREAM);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < KINDS * COPIES; i++) {
        pairs[i] = pair_of(listener, socket_of(SOCK_STREAM));
        set_nonblock(pairs[i].server, kinds[i / COPIES].with != BLOCKING);
    }
    for (int i = 0; i < KINDS * COPIES; i++) {
        int other = pairs[i].client;
        if (kinds[i / COPIES].with == WITH_SET) {
            struct epoll_event e = {.events = EPOLLIN};
            other = must(epoll_create1(EPOLL_CLOEXEC));
            check_eq(epoll_ctl(other, EPOLL_CTL_ADD, pairs[i].server, &e), 0);
        }
        hold_in(kinds[i / COPIES].name, kinds[i / COPIES].call, pairs[i].server, other);
    }
    held_begin();
    for (int i = 0; i < KINDS * COPIES; i++)
        close_all(&pairs[i]);
    for (int i = 0; i < AGAIN; i++) {
        struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
        check_eq(send(p.client, "through", 7, 0), 7);
        check_receive(p.server, "through");
        close_all(&p);
    }
    held_end();
}

CASES(ENTRY(calls))
