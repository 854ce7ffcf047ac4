/* One-to-one sockets without the bounds of messages: HW_SCTP_BYTE_STREAM, HEADWATER_SCTP_BYTE_STREAM. */
#include "associations.h"
#include <headwater.h>
#include <poll.h>

static struct pair byte_pair(void) {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(listener, HW_SCTP_BYTE_STREAM, 1);
    must_set(client, HW_SCTP_BYTE_STREAM, 1);
    return pair_of(listener, client);
}
/* The next bytes, however many calls it takes; none of them says that a message ends. */
static void receive_bytes(int fd, const char *want, size_t n) {
    for (size_t have = 0; have < n;) {
        struct got *g = receive_some(fd, n - have < 500000 ? n - have : 500000, 0);
        if (g->n <= 0)
            fail("recvmsg after %zu of %zu bytes: saw %zd, errno %d", have, n, g->n, errno);
        check_eq(g->flags & (MSG_EOR | MSG_NOTIFICATION | MSG_TRUNC), 0);
        check_bytes(g->data, want + have, g->n);
        have += g->n;
    }
}
static void send_all(int fd, const char *at, size_t n, size_t piece) {
    for (size_t done = 0; done < n;) {
        ssize_t sent = send(fd, at + done, n - done < piece ? n - done : piece, 0);
        if (sent <= 0)
            fail("send after %zu of %zu bytes: saw %zd, errno %d", done, n, sent, errno);
        done += sent;
    }
}

CASE(option, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    int fd = socket_of(SOCK_STREAM), many = socket_of(SOCK_SEQPACKET), value;
    check_eq(get_int(fd, HW_SCTP_BYTE_STREAM), 0);
    must_set(fd, HW_SCTP_BYTE_STREAM, 5);
    check_eq(get_int(fd, HW_SCTP_BYTE_STREAM), 1);
    must_set(fd, HW_SCTP_BYTE_STREAM, 0);
    check_eq(get_int(fd, HW_SCTP_BYTE_STREAM), 0);
    check_errno(set(fd, HW_SCTP_BYTE_STREAM, (char)1), EINVAL);
    check_errno(set(many, HW_SCTP_BYTE_STREAM, 1), EOPNOTSUPP);
    check_errno(get(many, HW_SCTP_BYTE_STREAM, &value), EOPNOTSUPP);
    struct pair p = byte_pair();
    check_eq(get_int(p.server, HW_SCTP_BYTE_STREAM), 1);
}
CASE(one_receive_takes_what_is_there, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    for (int i = 0; i < 2; i++) {
        check_send(p.client, "one");
        check_send(p.client, "two");
        check_send(p.client, "three");
        await_arrival(p.client);
        await(({ int n = 0; ioctl(p.server, FIONREAD, &n); n == 11; }));
        struct got *g = receive(p.server);
        check_eq(g->n, 11);
        check_bytes(g->data, "onetwothree", 11);
        check_eq(g->flags, 0);
    }
    check_nothing_yet(p.server);
    check_send(p.server, "back");
    receive_bytes(p.client, "back", 4);
}
CASE(bounds_are_anywhere, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    size_t n = 100000;
    char *all = patterned(n, 3);
    for (size_t done = 0, size = 1; done < n; done += size, size = size % 977 + 1) {
        size = size < n - done ? size : n - done;
        send_all(p.client, all + done, size, size);
    }
    for (size_t done = 0, room = 1; done < n; room = room % 1409 + 1) {
        struct got *g = receive_some(p.server, room, 0);
        check(g->n > 0 && done + g->n <= n);
        check_bytes(g->data, all + done, g->n);
        done += g->n;
    }
    check_nothing_yet(p.server);
}
CASE(a_send_of_any_length, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    size_t n = 3 << 20;
    char *all = patterned(n, 5);
    if (forked() == 0) {
        close(p.server), close(p.listener);
        check_eq(send(p.client, all, n, 0), (ssize_t)n);
        _exit(0);
    }
    receive_bytes(p.server, all, n);
}
CASE(who_may_not_wait_sends_a_part, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    size_t n = 64 << 20, sent = 0;
    char *all = patterned(n, 5);
    set_nonblock(p.client, 1);
    for (;;) {
        ssize_t some = send(p.client, all + sent, n - sent, 0);
        if (some < 0)
            break;
        check(some > 0);
        sent += some;
    }
    check_eq(errno, EAGAIN);
    check(sent > 0 && sent < n);
    receive_bytes(p.server, all, sent);
    check_eq(poll(&(struct pollfd){p.client, POLLOUT, 0}, 1, PATIENCE), 1);
    set_nonblock(p.client, 0);
    check_send(p.client, "behind");
    receive_bytes(p.server, "behind", 6);
}
CASE(no_bytes, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    check_eq(send(p.client, "", 0, 0), 0);
    check_send(p.client, "x");
    receive_bytes(p.server, "x", 1);
    check_nothing_yet(p.server);
}
CASE(peek, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    check_send(p.client, "one");
    check_send(p.client, "two");
    await(receive_some(p.server, 100, MSG_PEEK | MSG_DONTWAIT)->n == 6 || by_packets());
    if (by_packets())
        await_arrival(p.client);
    struct got *g = receive_some(p.server, 2, MSG_PEEK);
    check_eq(g->n, 2);
    check_eq(g->flags, 0);
    receive_bytes(p.server, "onetwo", 6);
}
CASE(the_end_comes_behind_all_bytes, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    check_send(p.client, "one");
    check_send(p.client, "two");
    check_eq(shutdown(p.client, SHUT_WR), 0);
    receive_bytes(p.server, "onetwo", 6);
    check_end(p.server);
}
CASE(notifications_come_by_themselves, "RFC 6458 6") {
    struct pair p = byte_pair();
    subscribe(p.server, SCTP_SHUTDOWN_EVENT);
    check_send(p.client, "one");
    check_send(p.client, "two");
    check_eq(shutdown(p.client, SHUT_WR), 0);
    receive_bytes(p.server, "onetwo", 6);
    notice(p.server, SCTP_SHUTDOWN_EVENT);
}
CASE(only_one_end, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(client, HW_SCTP_BYTE_STREAM, 1);
    struct pair p = pair_of(listener, client);
    char *all = patterned(2000, 9);
    send_all(p.client, all, 2000, 10);
    int messages = 0;
    for (size_t have = 0; have < 2000; messages++) {
        struct got *g = receive(p.server);
        check(g->flags & MSG_EOR);
        check_bytes(g->data, all + have, g->n);
        have += g->n;
    }
    /* What waits is joined. */
    check(messages <= 200);
    check(!by_packets() || messages < 200);
    check_send(p.server, "one");
    check_send(p.server, "two");
    receive_bytes(p.client, "onetwo", 6);
}
CASE(nodelay, "RFC 6458 8.1.5") {
    struct pair p = byte_pair();
    must_set(p.client, SCTP_NODELAY, 1);
    for (int i = 0; i < 50; i++) {
        check_send(p.client, "x");
        receive_bytes(p.server, "x", 1);
        check_send(p.client, "a");
        check_send(p.client, "b");
        receive_bytes(p.server, "ab", 2);
    }
}
CASE(turned_off_again, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    check_send(p.client, "one");
    check_send(p.client, "two");
    receive_bytes(p.server, "onet", 4);
    must_set(p.client, HW_SCTP_BYTE_STREAM, 0);
    must_set(p.server, HW_SCTP_BYTE_STREAM, 0);
    check_receive(p.server, "wo");
    check_send(p.client, "three");
    check_send(p.client, "four");
    check_receive(p.server, "three");
    check_receive(p.server, "four");
}
CASE(a_child_receives_so_too, "sctp_sockets(7) HW_SCTP_BYTE_STREAM") {
    struct pair p = byte_pair();
    check_send(p.client, "one");
    check_send(p.client, "two");
    await_arrival(p.client);
    pid_t child = forked();
    if (child == 0) {
        receive_bytes(p.server, "onetwo", 6);
        send_all(p.server, "threefour", 9, 5);
        _exit(0);
    }
    receive_bytes(p.client, "threefour", 9);
    join(child);
}
CASE(by_the_variable, "headwater(7) HEADWATER_SCTP_BYTE_STREAM") {
    setenv("HEADWATER_SCTP_BYTE_STREAM", "1", 1);
    struct pair p = pair();
    check_eq(get_int(p.client, HW_SCTP_BYTE_STREAM), 1);
    check_send(p.client, "one");
    check_send(p.client, "two");
    receive_bytes(p.server, "onetwo", 6);
    struct many m = many();
    check_eq(send_to_assoc(m.a, m.in_a, 0, "one"), 3);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "two"), 3);
    check_receive(m.b, "one");
    check_receive(m.b, "two");
}

SUITE(BOTH(option), BOTH(one_receive_takes_what_is_there), ENTRY(bounds_are_anywhere), ENTRY(a_send_of_any_length),
      ENTRY(who_may_not_wait_sends_a_part), ENTRY(no_bytes), ENTRY(peek), ENTRY(the_end_comes_behind_all_bytes),
      ENTRY(notifications_come_by_themselves), ENTRY(only_one_end), ENTRY(nodelay), ENTRY(turned_off_again),
      ENTRY(a_child_receives_so_too), ENTRY(by_the_variable))
