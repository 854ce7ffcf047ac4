/* Options that ask the kernel for something of its own queues and segments. */
#include "common.h"
#include <sys/epoll.h>

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif
#define ULP 31
#define REPAIR 19
#define INQ 36

static void exchange(int fd, int first) {
    for (int i = 0; i < 20; i++) {
        if (first)
            send_noise(fd, i * 777, 777);
        recv_noise(fd, i * 777, 777);
        if (!first)
            send_noise(fd, i * 777, 777);
    }
}

/* The other end of second_server. */
static int second_client(int fd, int option, int value) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    if (option)
        say_result("before connect", setsockopt(s, SOL_SOCKET, option, &value, sizeof value));
    must(connect(s, (struct sockaddr *)&at, sizeof at));
    return s;
}

/* Control messages come with what the kernel delivers. */
static void inquiry_server(int fd) {
    int one = 1, s = second_server(fd);
    say_result("TCP_INQ", setsockopt(s, IPPROTO_TCP, INQ, &one, sizeof one));
    tell_peer();
    await_bytes(s, 100);
    char buf[60], control[200];
    struct iovec v = {buf, sizeof buf};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    say_result("recvmsg", recvmsg(s, &m, 0));
    check(buf, 0, sizeof buf);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        int n = 0;
        if (c->cmsg_level == IPPROTO_TCP)
            memcpy(&n, CMSG_DATA(c), sizeof n);
        say("level %d type %d: %d", c->cmsg_level, c->cmsg_type, n);
    }
    recv_noise(s, 60, 40);
    exchange(s, 1);
    close(s);
}
static void inquiry_client(int fd) {
    int s = second_client(fd, 0, 0);
    await_peer();
    send_noise(s, 0, 100);
    exchange(s, 0);
    close(s);
}

/* Each byte is answered by itself, to the end. */
static void bounce(int fd) {
    char c;
    while (read(fd, &c, 1) == 1)
        send_all(fd, &c, 1);
}

/* Does a message come with the time of its arrival? */
static int is_stamped(int fd) {
    char c = 'x', control[200];
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    send_all(fd, &c, 1);
    if (must(recvmsg(fd, &m, 0)) != 1)
        fail("early end");
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS)
            return 1;
    return 0;
}

/* The first ones of a machine lack it: the kernel begins to look at the clock when somebody asks. */
static void stamps(int fd) {
    int n = 0;
    for (uint64_t end = now() + 10000 * MS; !is_stamped(fd) && now() < end;) {
    }
    for (int i = 0; i < 40; i++)
        n += is_stamped(fd);
    say("with the time: %d of 40", n);
}
static void stamps_server(int fd) {
    int s = second_server(fd);
    bounce(s);
    close(s);
}
static void stamps_client(int fd) {
    int s = second_client(fd, SO_TIMESTAMPNS, 1);
    stamps(s);
    close(s);
}

static void stamps_late_server(int fd) { bounce(fd); }
static void stamps_late_client(int fd) {
    int one = 1;
    say_result("SO_TIMESTAMPNS", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one));
    stamps(fd);
}

/* The kernel may map what it has got into the program; the rest, and it says how much that is, is to be read by copying. */
static void mapped(int fd, void *at, size_t room, size_t n, int tell) {
    struct tcp_zerocopy_receive z = {.address = (uintptr_t)at, .length = room};
    socklen_t len = sizeof z;
    await_bytes(fd, n);
    say_result("TCP_ZEROCOPY_RECEIVE", getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &z, &len));
    if (tell)
        say("%u mapped, %u to be read", z.length, z.recv_skip_hint);
    check(at, 0, z.length);
    recv_noise(fd, z.length, n - z.length);
}
static void zerocopy_server(int fd) {
    size_t room = 1 << 16;
    void *at = mmap(NULL, room, PROT_READ, MAP_SHARED, fd, 0);
    say("room: %d", at != MAP_FAILED);
    /* Less than a page is not mapped; of more it depends on where it lies. */
    mapped(fd, at, room, 100, 1);
    tell_peer();
    mapped(fd, at, room, 50000, 0);
    tell_peer();
    exchange(fd, 1);
}
static void zerocopy_client(int fd) {
    send_noise(fd, 0, 100);
    await_peer();
    send_noise(fd, 0, 50000);
    await_peer();
    exchange(fd, 0);
}

/* A peek goes on where the last one stopped. */
static void peeks(int fd) {
    unsigned char a[10] = {0}, b[10] = {0};
    await_bytes(fd, 100);
    say_result("peek", recv(fd, a, sizeof a, MSG_PEEK));
    say_result("peek", recv(fd, b, sizeof b, MSG_PEEK));
    say("%02x%02x %02x%02x", a[0], a[1], b[0], b[1]);
    recv_noise(fd, 0, 100);
}
static void peek_offset_server(int fd) {
    int zero = 0;
    say_result("SO_PEEK_OFF", setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &zero, sizeof zero));
    tell_peer();
    peeks(fd);
    zero = -1;
    say_result("and back", setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &zero, sizeof zero));
    exchange(fd, 1);
}
static void peek_offset_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    exchange(fd, 0);
}

static void peek_offset_before_server(int fd) {
    int s = second_server(fd);
    exchange(s, 1);
    send_noise(s, 0, 100);
    await_peer();
    close(s);
}
static void peek_offset_before_client(int fd) {
    int s = second_client(fd, SO_PEEK_OFF, 0);
    exchange(s, 0);
    peeks(s);
    tell_peer();
    close(s);
}

/* What is unread when an option is set comes all the same, though its sender makes no call any more. */
static void unread_server(int fd) {
    static const int options[] = {SO_TIMESTAMPNS, SO_MAX_PACING_RATE, SO_PEEK_OFF};
    int values[] = {1, 100000000, 0};
    for (int i = 0; i < 3; i++) {
        int s = second_server(fd);
        exchange(s, 1);
        await_bytes(s, 100);
        int r = setsockopt(s, SOL_SOCKET, options[i], &values[i], sizeof values[i]);
        /* As by kernels before 6.9. */
        say("set: %d", r == 0 || (options[i] == SO_PEEK_OFF && errno == EOPNOTSUPP));
        recv_noise(s, 0, 100);
        tell_peer();
        exchange(s, 1);
        close(s);
    }
}
static void unread_client(int fd) {
    for (int i = 0; i < 3; i++) {
        int s = second_client(fd, 0, 0);
        exchange(s, 0);
        send_noise(s, 0, 100);
        await_peer();
        exchange(s, 0);
        close(s);
    }
}

/* SIGIO is asked for while something is unread: that can be waited for and read, and what comes next is told by the signal. */
static volatile sig_atomic_t told_of_io;
static void on_io(int n) {
    (void)n;
    told_of_io++;
}
static void signalled_unread_server(int fd) {
    signal(SIGIO, on_io);
    for (int i = 0; i < 2; i++) {
        int s = second_server(fd), on = 1, n = 0, ep = must(epoll_create1(0));
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = 5};
        exchange(s, 1);
        await_bytes(s, 3000);
        must(fcntl(s, F_SETOWN, getpid()));
        must(i == 0 ? fcntl(s, F_SETFL, O_ASYNC) : ioctl(s, FIOASYNC, &on));
        say("poll: %d", wait_for(s, POLLIN));
        must(epoll_ctl(ep, EPOLL_CTL_ADD, s, &e));
        say_result("epoll", epoll_wait(ep, &e, 1, 2000));
        must(ioctl(s, FIONREAD, &n));
        say("unread: %d", n);
        char look[100];
        say_result("look", recv(s, look, sizeof look, MSG_PEEK | MSG_DONTWAIT));
        recv_noise(s, 0, 1000);
        say("poll: %d", wait_for(s, POLLIN));
        recv_noise(s, 1000, 2000);
        say_result("nothing", recv(s, look, sizeof look, MSG_DONTWAIT));
        told_of_io = 0;
        tell_peer();
        for (int k = 0; k < 2000 && !told_of_io; k++)
            usleep(1000);
        say("told: %d", told_of_io > 0);
        recv_noise(s, 3000, 50);
        exchange(s, 1);
        close(ep), close(s);
    }
}
static void signalled_unread_client(int fd) {
    for (int i = 0; i < 2; i++) {
        int s = second_client(fd, 0, 0);
        exchange(s, 0);
        send_noise(s, 0, 3000);
        await_peer();
        send_noise(s, 3000, 50);
        exchange(s, 0);
        close(s);
    }
}

/* Looking at a connection's inside for a moment, where that is permitted, leaves it whole. */
static void repair_server(int fd) {
    int on = 1, off = -1;
    exchange(fd, 1);
    int r = setsockopt(fd, IPPROTO_TCP, REPAIR, &on, sizeof on);
    if (r == 0)
        must(setsockopt(fd, IPPROTO_TCP, REPAIR, &off, sizeof off));
    say_result("repair", r);
    exchange(fd, 1);
}
static void repair_client(int fd) {
    exchange(fd, 0);
    exchange(fd, 0);
}

/* A program that would have the kernel encrypt does so by itself where the kernel can't. */
static void encryption_server(int fd) {
    int r = setsockopt(fd, IPPROTO_TCP, ULP, "tls", 4);
    say("by the kernel, or not at all: %d", r == 0 || errno == ENOENT);
    send_noise(fd, 0, 2 << 20);
    exchange(fd, 1);
    int s = second_server(fd);
    r = setsockopt(s, IPPROTO_TCP, ULP, "tls", 4);
    say("by the kernel, or not at all: %d", r == 0 || errno == ENOENT);
    exchange(s, 1);
    close(s);
}
static void encryption_client(int fd) {
    recv_noise(fd, 0, 2 << 20);
    exchange(fd, 0);
    int s = second_client(fd, 0, 0);
    exchange(s, 0);
    close(s);
}

CASES(CASE(inquiry), CASE(stamps), CASE(stamps_late), CASE(zerocopy), CASE(peek_offset), CASE(peek_offset_before), CASE(unread), CASE(signalled_unread), CASE(repair), CASE(encryption))
