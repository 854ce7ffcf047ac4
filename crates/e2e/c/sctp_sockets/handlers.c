/* An association's life in signal handlers (signal-safety(7)). What is opened there, and what goes by packets, needs more than the
 * smallest stack. */
#include "associations.h"
#include "../handler.h"

/* What the calls are made with: functions inside functions see globals alone. */
static int fds[5];
static struct address at;
static char bytes[1 << 16];
static _Alignas(8) char control[512];
static struct iovec part = {bytes, 1000};
static struct msghdr message;
static struct pollfd polled;
static struct epoll_event event;

/* The 8 KiB that have to do hold the kernel's frame too. */
static size_t small(void) { return by_packets() ? 12288 : 8192; }
static size_t roomy(void) { return 24576; }

static void without(void) { message = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1}; }
static void with(size_t room) {
    without();
    message.msg_control = control, message.msg_controllen = room;
}
static void labelled(void) {
    with(CMSG_SPACE(sizeof(struct sctp_sndinfo)));
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = IPPROTO_SCTP, c->cmsg_type = SCTP_SNDINFO, c->cmsg_len = CMSG_LEN(sizeof(struct sctp_sndinfo));
    memset(CMSG_DATA(c), 0, sizeof(struct sctp_sndinfo));
}
static void arrives(void) {
    polled = (struct pollfd){fds[2], POLLIN, 0};
    check_eq(DO(poll(&polled, 1, PATIENCE)), 1);
}

/* From the first descriptor to the second. */
static void carry(int from, int to) {
    fds[1] = from, fds[2] = to;
    for (int i = 0; i < 30; i++) {
        without();
        WORKS(send(fds[1], bytes, 100, MSG_NOSIGNAL));
        WORKS(sendmsg(fds[1], &message, 0));
        labelled();
        WORKS(sendmsg(fds[1], &message, 0));
        WORKS(write(fds[1], bytes, 30000));
        for (int left = 4; left > 0;) {
            arrives();
            with(sizeof control);
            WORKS(recvmsg(fds[2], &message, MSG_DONTWAIT));
            left -= !!(message.msg_flags & MSG_EOR);
        }
    }
    WORKS(send(fds[1], bytes, 100, 0));
    WORKS(epoll_wait(fds[3], &event, 1, PATIENCE));
    WORKS(read(fds[2], bytes, 100));
}
static void fill_and_drain(void) {
    while (DO(send(fds[1], bytes, 5000, MSG_DONTWAIT)) > 0) {
    }
    check_eq(errno, EAGAIN);
    arrives();
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
}
/* A thread of the library's is begun when it is needed first, and not in a handler. */
static void begin_thread_outside(void) {
    struct pair p = pair();
    while (send(p.client, bytes, 5000, MSG_DONTWAIT) > 0) {
    }
    check_eq(close(p.client) + close(p.server) + close(p.listener), 0);
}

CASE(carries, "signal-safety(7)") {
    begin_thread_outside();
    struct pair p = pair();
    want_rcvinfo(p.server);
    fds[3] = must(epoll_create1(EPOLL_CLOEXEC));
    event = (struct epoll_event){EPOLLIN, {.u64 = 7}};
    check_eq(epoll_ctl(fds[3], EPOLL_CTL_ADD, p.server, &event), 0);
    check_eq(epoll_ctl(fds[3], EPOLL_CTL_ADD, p.client, &event), 0);
    take_room(small());
    carry(p.client, p.server);
    carry(p.server, p.client);
    fill_and_drain();
    WORKS(close(fds[1]));
    WORKS(close(fds[2]));
    tell_deepest();
}
CASE(opens, "signal-safety(7)") {
    begin_thread_outside();
    take_room(roomy());
    at = loopback(0);
    WORKS(fds[0] = socket(family, SOCK_STREAM, IPPROTO_SCTP));
    WORKS(bind(fds[0], &at.sa, at.len));
    WORKS(listen(fds[0], 5));
    WORKS(getsockname(fds[0], &at.sa, &at.len));
    WORKS(fds[1] = socket(family, SOCK_STREAM, IPPROTO_SCTP));
    WORKS(connect(fds[1], &at.sa, at.len));
    WORKS(fds[2] = accept(fds[0], NULL, NULL));
    WORKS(send(fds[1], bytes, 100, 0));
    WORKS(recv(fds[2], bytes, 100, 0));
    WORKS(shutdown(fds[1], SHUT_WR));
    check_eq(DO(recv(fds[2], bytes, 100, 0)), 0);
    WORKS(close(fds[2]));
    WORKS(close(fds[1]));
    WORKS(close(fds[0]));
    tell_deepest();
}
SUITE(BOTH(carries), BOTH(opens))
