/* Calls that move data, with their flags and options. */
#include "common.h"
#include <sys/sendfile.h>

enum { PIECE = 100 };

/* Sends PIECE bytes of the stream each time it is told to. */
static void sender(int fd, int times) {
    for (int i = 0; i < times; i++) {
        await_peer();
        send_noise(fd, i * PIECE, PIECE);
        tell_peer();
    }
    await_peer();
}

static void peek_server(int fd) {
    char buf[300];
    say_result("nothing", recv(fd, buf, 10, MSG_PEEK | MSG_DONTWAIT));
    together();
    say_result("peek", recv(fd, buf, 40, MSG_PEEK));
    check(buf, 0, 40);
    say_result("peek again", recv(fd, buf, 300, MSG_PEEK));
    check(buf, 0, 100);
    recv_noise(fd, 0, 30);
    say_result("peek the rest", recv(fd, buf, 300, MSG_PEEK | MSG_DONTWAIT));
    check(buf, 30, 70);
    together();
    await_bytes(fd, 170);
    say_result("peek over two", recv(fd, buf, 300, MSG_PEEK));
    check(buf, 30, 170);
    struct iovec v[3] = {{buf, 10}, {buf + 10, 100}, {buf + 110, 190}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
    say_result("peek with recvmsg", recvmsg(fd, &m, MSG_PEEK));
    check(buf, 30, 170);
    recv_noise(fd, 30, 170);
    tell_peer();
    say_result("peek that waits", recv(fd, buf, 300, MSG_PEEK));
    await_peer();
    recv_noise(fd, 200, 100);
    tell_peer();
}
static void peek_client(int fd) { sender(fd, 3); }

static void waitall_server(int fd) {
    char buf[1000];
    tell_peer();
    say_result("all of 250", recv(fd, buf, 250, MSG_WAITALL));
    check(buf, 0, 250);
    await_peer();
    say_result("not more than there is", recv(fd, buf, 1000, 0));
    check(buf, 250, 50);
    tell_peer();
    say_result("up to the end", recv(fd, buf, 1000, MSG_WAITALL));
    check(buf, 300, 100);
    say_result("end", recv(fd, buf, 1000, MSG_WAITALL));
    await_peer();
}
static void waitall_client(int fd) {
    await_peer();
    for (int i = 0; i < 3; i++) {
        send_noise(fd, i * 100, 100);
        usleep(20000);
    }
    together();
    send_noise(fd, 300, 100);
    shutdown(fd, SHUT_WR);
    tell_peer();
}

static void peek_all_server(int fd) {
    char buf[1000];
    tell_peer();
    say_result("peek all of 250", recv(fd, buf, 250, MSG_PEEK | MSG_WAITALL));
    check(buf, 0, 250);
    recv_noise(fd, 0, 300);
    await_peer();
}
static void peek_all_client(int fd) {
    await_peer();
    for (int i = 0; i < 3; i++) {
        send_noise(fd, i * 100, 100);
        usleep(20000);
    }
    tell_peer();
}

/* What is unread came by the kernel, then by shared memory, then by the kernel again. */
static void peek_paths_server(int fd) {
    static char buf[1000];
    struct iovec all[300];
    for (int first = 1; first <= 51; first += 50) {
        int at = first == 1 ? 0 : 350;
        await_bytes(fd, 50);
        recv_noise(fd, at, 50);
        together();
        await_bytes(fd, 300);
        say_result("peek", recv(fd, buf, 1000, MSG_PEEK | MSG_DONTWAIT));
        check(buf, at + 50, 300);
        memset(buf, 7, sizeof buf);
        say_result("a part", recv(fd, buf, 270, MSG_PEEK));
        check(buf, at + 50, 270);
        say("no more: %d", buf[270] == 7);
        say_result("length", recv(fd, NULL, 1000, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT));
        say_result("all", recv(fd, buf, 290, MSG_PEEK | MSG_WAITALL));
        check(buf, at + 50, 290);
        memset(buf, 7, sizeof buf);
        all[0] = (struct iovec){buf, first};
        for (int i = 1; i < 300; i++)
            all[i] = (struct iovec){buf + first + (i - 1) * 2, 2};
        struct msghdr m = {.msg_iov = all, .msg_iovlen = 300};
        say_result("many buffers", recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT));
        check(buf, at + 50, 300);
        m.msg_iovlen = 30;
        say_result("fewer", recvmsg(fd, &m, MSG_PEEK | MSG_WAITALL));
        recv_noise(fd, at + 50, 300);
        together();
    }
    tell_peer();
    say_result("all, later", recv(fd, buf, 150, MSG_PEEK | MSG_WAITALL));
    check(buf, 700, 150);
    recv_noise(fd, 700, 150);
    tell_peer();
}
/* By the kernel, since that copies nothing. */
static void send_by_kernel(int fd, uint64_t at, size_t n) {
    char buf[200];
    fill(buf, at, n);
    must(send(fd, buf, n, MSG_ZEROCOPY));
}
static void peek_paths_client(int fd) {
    for (int at = 0; at < 700; at += 350) {
        send_by_kernel(fd, at, 50);
        together();
        send_by_kernel(fd, at + 50, 100);
        send_noise(fd, at + 150, 100);
        send_by_kernel(fd, at + 250, 100);
        together();
    }
    await_peer();
    usleep(20000);
    send_noise(fd, 700, 50);
    usleep(20000);
    /* Refused, with nothing sent. */
    say_result("bad", send(fd, NULL, 50, MSG_ZEROCOPY));
    usleep(20000);
    send_by_kernel(fd, 750, 100);
    await_peer();
}

static void trunc_server(int fd) {
    char buf[300];
    together();
    memset(buf, 7, sizeof buf);
    say_result("discard", recv(fd, buf, 30, MSG_TRUNC));
    say("untouched: %d", buf[0] == 7 && buf[29] == 7);
    recv_noise(fd, 30, 20);
    say_result("discard without a buffer", recv(fd, NULL, 40, MSG_TRUNC));
    recv_noise(fd, 90, 10);
    tell_peer();
}
static void trunc_client(int fd) { sender(fd, 1); }

static void dontwait_server(int fd) {
    char buf[300];
    say_result("read", recv(fd, buf, 10, MSG_DONTWAIT));
    nonblocking(fd, 1);
    say_result("O_NONBLOCK", read(fd, buf, 10));
    nonblocking(fd, 0);
    int on = 1;
    must(ioctl(fd, FIONBIO, &on));
    say_result("FIONBIO", read(fd, buf, 10));
    on = 0;
    must(ioctl(fd, FIONBIO, &on));
    tell_peer();
    say_result("blocking again", read(fd, buf, 300));
    check(buf, 0, 100);
    await_peer();
    int other = must(dup(fd));
    nonblocking(other, 1);
    say_result("shared with a dup", read(fd, buf, 10));
    must(fcntl(fd, F_SETFL, O_RDWR));
    say("flags %x %x", must(fcntl(other, F_GETFL)) & O_NONBLOCK, must(fcntl(fd, F_GETFD)));
    close(other);
    together();
    say_result("some", recv(fd, buf, 300, MSG_DONTWAIT | MSG_WAITALL));
    tell_peer();
}
static void dontwait_client(int fd) { sender(fd, 2); }

static void timeouts_server(int fd) {
    char buf[100];
    struct timeval t = {0, 50000};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    uint64_t begun = now();
    say_result("nothing in time", read(fd, buf, 10));
    say("waited: %d", now() - begun >= 45 * MS);
    together();
    begun = now();
    say_result("a part in time", recv(fd, buf, 100, MSG_WAITALL));
    say("waited: %d", now() - begun >= 45 * MS);
    t.tv_usec = 0;
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    tell_peer();
    say_result("no limit", read(fd, buf, 10));
    tell_peer();
    await_peer();
}
static void timeouts_client(int fd) {
    static char big[16 << 20];
    struct timeval t = {0, 50000};
    await_peer();
    send_noise(fd, 0, 60);
    together();
    usleep(100000);
    send_noise(fd, 60, 10);
    await_peer();
    must(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t));
    uint64_t begun = now();
    ssize_t n = must(write(fd, big, sizeof big));
    say("a part in time: %d, waited: %d", n < (ssize_t)sizeof big, now() - begun >= 45 * MS);
    tell_peer();
}

static void counts_server(int fd) {
    int n = -1;
    must(ioctl(fd, FIONREAD, &n));
    say("idle %d", n);
    together();
    await_bytes(fd, 100);
    must(ioctl(fd, FIONREAD, &n));
    say("data %d", n);
    recv_noise(fd, 0, 33);
    must(ioctl(fd, FIONREAD, &n));
    say("rest %d", n);
    recv_noise(fd, 33, 67);
    must(ioctl(fd, FIONREAD, &n));
    say("drained %d", n);
    tell_peer();
}
static void counts_client(int fd) {
    sender(fd, 1);
    int n = -1;
    for (uint64_t end = now() + 5000 * MS; n != 0 && now() < end;)
        must(ioctl(fd, TIOCOUTQ, &n));
    say("unsent %d", n);
}

static struct iovec too_many[5000];

static void vectors_server(int fd) {
    enum { MANY = 200 };
    char buf[3000];
    struct iovec v[MANY];
    tell_peer();
    for (int i = 0; i < MANY; i++)
        v[i] = (struct iovec){buf + i * 5, i % 7 == 0 ? 0 : 5};
    await_peer();
    await_bytes(fd, 1000);
    ssize_t n = must(readv(fd, v, MANY));
    say("readv filled the vectors: %zd", n);
    uint64_t at = 0;
    for (int i = 0; i < MANY; i++) {
        check(v[i].iov_base, at, v[i].iov_len);
        at += v[i].iov_len;
    }
    recv_noise(fd, at, 1000 - at);
    struct iovec two[2] = {{buf, 10}, {buf + 10, 2990}};
    char control[64];
    struct sockaddr_in from;
    struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = two, .msg_iovlen = 2,
                       .msg_control = control, .msg_controllen = sizeof control, .msg_flags = -1};
    together();
    n = 0;
    while (n < 400) {
        two[0] = (struct iovec){buf + n, 10};
        two[1] = (struct iovec){buf + n + 10, 2900 - n};
        n += must(recvmsg(fd, &m, 0));
    }
    check(buf, 1000, n);
    say("recvmsg %zd, name %d, control %zd, flags %x", n, m.msg_namelen, m.msg_controllen, m.msg_flags);
    socklen_t len = sizeof from;
    tell_peer();
    say_result("recvfrom", recvfrom(fd, buf, 50, MSG_WAITALL, (struct sockaddr *)&from, &len));
    check(buf, 1400, 50);
    struct mmsghdr mm[2] = {{.msg_hdr = {.msg_iov = two, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = two, .msg_iovlen = 1}}};
    two[0] = (struct iovec){buf, 50};
    await_bytes(fd, 50);
    say_result("recvmmsg", recvmmsg(fd, mm, 1, 0, NULL));
    say("length %u", mm[0].msg_len);
    check(buf, 1450, 50);
    say_result("readv of nothing", readv(fd, v, 0));
    say_result("readv of too many", readv(fd, too_many, 5000));
    say_result("read of nothing", read(fd, buf, 0));
    tell_peer();
}
static void vectors_client(int fd) {
    enum { MANY = 200 };
    char buf[1000];
    struct iovec v[MANY];
    await_peer();
    fill(buf, 0, sizeof buf);
    for (int i = 0; i < MANY; i++)
        v[i] = (struct iovec){buf + i * 5, 5};
    say_result("writev", writev(fd, v, MANY));
    together();
    fill(buf, 1000, 400);
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 40};
    say_result("sendmsg", sendmsg(fd, &m, 0));
    struct mmsghdr mm[2] = {{.msg_hdr = {.msg_iov = v + 40, .msg_iovlen = 20}}, {.msg_hdr = {.msg_iov = v + 60, .msg_iovlen = 20}}};
    say_result("sendmmsg", sendmmsg(fd, mm, 2, 0));
    say("lengths %u %u", mm[0].msg_len, mm[1].msg_len);
    together();
    fill(buf, 1400, 100);
    say_result("sendto", sendto(fd, buf, 60, MSG_NOSIGNAL, NULL, 0));
    say_result("send", send(fd, buf + 60, 40, MSG_MORE));
    say_result("send of nothing", send(fd, buf, 0, 0));
    say_result("writev of nothing", writev(fd, v, 0));
    say_result("writev of too many", writev(fd, too_many, 5000));
    int off = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off));
    await_peer();
}

static void file_server(int fd) {
    say("received %llu", (unsigned long long)recv_noise_to_end(fd, 0));
    tell_peer();
}
static void file_client(int fd) {
    enum { SIZE = 3 << 20 };
    int file = must(memfd_create("file", 0));
    char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(ftruncate(file, SIZE));
    fill(at, 0, SIZE);
    off_t offset = 0;
    while (offset < 1 << 20)
        must(sendfile(fd, file, &offset, (1 << 20) - offset));
    say("file position %lld", (long long)lseek(file, 0, SEEK_CUR));
    must(lseek(file, offset, SEEK_SET));
    nonblocking(fd, 1);
    for (off_t done = offset; done < SIZE;) {
        ssize_t n = sendfile(fd, file, NULL, SIZE);
        if (n < 0 && errno == EAGAIN) {
            wait_for(fd, POLLOUT);
            continue;
        }
        done += must(n);
    }
    say("file position %lld", (long long)lseek(file, 0, SEEK_CUR));
    say_result("at the end", sendfile(fd, file, NULL, 100));
    int closed = must(dup(file));
    close(closed);
    say_result("no file", sendfile(fd, closed, NULL, 100));
    shutdown(fd, SHUT_WR);
    await_peer();
}

/* Bytes out of band go with the kernel; what follows them goes on in order. */
static void urgent_server(int fd) {
    char c;
    recv_noise(fd, 0, 100);
    wait_for(fd, POLLPRI);
    say_result("urgent", recv(fd, &c, 1, MSG_OOB));
    say("byte %c", c);
    recv_noise(fd, 100, 1000);
    send_noise(fd, 0, 100);
    recv_noise(fd, 1100, 1000);
    send_noise(fd, 100, 100);
    await_peer();
}
static void urgent_client(int fd) {
    send_noise(fd, 0, 100);
    say_result("urgent", send(fd, "!", 1, MSG_OOB));
    send_noise(fd, 100, 1000);
    recv_noise(fd, 0, 100);
    send_noise(fd, 1100, 1000);
    recv_noise(fd, 100, 100);
    tell_peer();
}

/* With _FORTIFY_SOURCE and lengths that the compiler does not know, these are the checking aliases. */
static void fortified_server(int fd) {
    char buf[200];
    volatile size_t n = 100;
    struct pollfd p[2] = {{fd, POLLIN, 0}, {-1, 0, 0}};
    volatile nfds_t entries = 2;
    struct timespec t = {5, 0};
    together();
    say("poll %d", poll(p, entries, 5000));
    say("ppoll %d", ppoll(p, entries, &t, NULL));
    say_result("read", read(fd, buf, n));
    check(buf, 0, n);
    tell_peer();
    n = 50;
    say_result("recv", recv(fd, buf, n, MSG_WAITALL));
    say_result("recvfrom", recvfrom(fd, buf + 50, n, MSG_WAITALL, NULL, NULL));
    check(buf, 100, 100);
    await_peer();
    say_result("nothing", recv(fd, buf, n, MSG_DONTWAIT));
    tell_peer();
}
static void fortified_client(int fd) { sender(fd, 2); }

/* Many small buffers in one call, on a connection that has left the rings for good. */
static void pieces_server(int fd) {
    char buf[1000];
    struct iovec v[200];
    for (int i = 0; i < 200; i++)
        v[i] = (struct iovec){buf + 5 * i, 5};
    await_peer();
    recv(fd, buf, 1, MSG_OOB);
    recv_noise(fd, 0, 3);
    await_bytes(fd, 1000);
    nonblocking(fd, 1);
    say_result("readv", readv(fd, v, 200));
    check(buf, 3, 1000);
    nonblocking(fd, 0);
    fill(buf, 0, 1000);
    nonblocking(fd, 1);
    say_result("writev", writev(fd, v, 200));
    tell_peer();
    await_peer();
}
static void pieces_client(int fd) {
    must(send(fd, "!", 1, MSG_OOB));
    send_noise(fd, 0, 1003);
    tell_peer();
    recv_noise(fd, 0, 1000);
    await_peer();
    tell_peer();
}

/* Calls for no bytes at all. */
static void empty_server(int fd) {
    char c;
    say_result("read, nothing there", read(fd, &c, 0));
    say_result("recv, nothing there", recv(fd, &c, 0, MSG_DONTWAIT));
    say_result("peek, nothing there", recv(fd, &c, 0, MSG_DONTWAIT | MSG_PEEK));
    together();
    say_result("recv", recv(fd, &c, 0, 0));
    say_result("peek", recv(fd, &c, 0, MSG_PEEK));
    say_result("readv", readv(fd, &(struct iovec){&c, 0}, 1));
    say_result("write", write(fd, &c, 0));
    recv_noise(fd, 0, 100);
    tell_peer();
    await_peer();
    wait_for(fd, POLLRDHUP);
    say_result("recv at the end", recv(fd, &c, 0, 0));
    say_result("peek at the end", recv(fd, &c, 0, MSG_PEEK));
}
static void empty_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
    shutdown(fd, SHUT_WR);
    tell_peer();
}

/* A message after the other, as long as there are bytes. */
static void say_messages(const char *what, int fd, unsigned n, int flags, struct timespec *timeout) {
    char room[4][100];
    struct iovec v[4];
    struct mmsghdr m[4] = {0};
    for (int i = 0; i < 4; i++)
        v[i] = (struct iovec){room[i], 100}, m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
    int got = recvmmsg(fd, m, n, flags, timeout);
    say_result(what, got);
    for (int i = 0; i < got; i++)
        say("  %u, first %d", m[i].msg_len, m[i].msg_len ? (unsigned char)room[i][0] : -1);
}

static void messages_server(int fd) {
    struct timespec none = {0, 0}, long_one = {20, 0};
    await_bytes(fd, 250);
    say_messages("three", fd, 3, MSG_WAITFORONE, NULL);
    together();
    await_bytes(fd, 250);
    say_messages("no more", fd, 4, MSG_WAITFORONE, NULL);
    say_messages("nothing", fd, 4, MSG_DONTWAIT, NULL);
    together();
    await_bytes(fd, 250);
    say_messages("one", fd, 3, 0, &none);
    say_messages("two", fd, 2, 0, &long_one);
    tell_peer();
    say_messages("ends", fd, 4, 0, NULL);
}
static void messages_client(int fd) {
    send_noise(fd, 0, 250);
    together();
    send_noise(fd, 1000, 250);
    together();
    send_noise(fd, 2000, 250);
    await_peer();
    send_noise(fd, 3000, 150);
    shutdown(fd, SHUT_WR);
}

CASES(CASE(messages), CASE(fortified), CASE(peek), CASE(waitall), CASE(peek_all), CASE(peek_paths), CASE(trunc), CASE(dontwait), CASE(timeouts),
      CASE(counts), CASE(vectors), CASE(file), CASE(urgent), CASE(pieces), CASE(empty))
