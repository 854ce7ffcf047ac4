/* One-to-many sockets (RFC 6458 section 3): associations by sending, by their numbers, peeled off, ended one by one. */
#include "associations.h"

CASE(implicit_set_up, "RFC 6458 3.2") {
    int a = socket_of(SOCK_SEQPACKET), b = many_socket(1);
    struct address to = name_of(b);
    check_eq(sendto(a, "hello", 5, 0, &to.sa, to.len), 5);
    sctp_assoc_t assoc = change(b, SCTP_COMM_UP)->sac_assoc_id;
    struct got *g = check_receive(b, "hello");
    check(g->has_rcv);
    check_eq(g->rcv.rcv_assoc_id, assoc);
    struct address from = name_of(a);
    check_eq(g->from.in.sin_port, from.in.sin_port);
    check_eq(g->from.sa.sa_family, family);
}
CASE(implicit_set_up_nonblocking, "RFC 6458 3.2") {
    int a = socket_of(SOCK_SEQPACKET), b = many_socket(1);
    set_nonblock(a, 1);
    struct address to = name_of(b);
    check_eq(sendto(a, "hello", 5, 0, &to.sa, to.len), 5);
    change(b, SCTP_COMM_UP);
    check_receive(b, "hello");
}
CASE(implicit_set_up_once, "RFC 6458 3.2") {
    int a = socket_of(SOCK_SEQPACKET), b = many_socket(1);
    struct address to = name_of(b);
    check_eq(sendto(a, "one", 3, 0, &to.sa, to.len), 3);
    check_eq(sendto(a, "two", 3, 0, &to.sa, to.len), 3);
    change(b, SCTP_COMM_UP);
    check_receive(b, "one");
    check_receive(b, "two");
    unsigned count = 77;
    must_get(a, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 1);
}
CASE(implicit_set_up_with_init, "RFC 6458 5.3.1") {
    int a = many_socket(0), b = many_socket(1);
    struct address to = name_of(b);
    struct sctp_initmsg init = {.sinit_num_ostreams = 3, .sinit_max_instreams = 4};
    check_eq(send_parts(a, &to, "hello", 0, PART(SCTP_INIT, init)), 5);
    check_eq(change(b, SCTP_COMM_UP)->sac_inbound_streams, 3);
    check_receive(b, "hello");
    struct sctp_assoc_change *up = change(a, SCTP_COMM_UP);
    check_eq(up->sac_outbound_streams, 3);
    check_eq(up->sac_inbound_streams, 4);
}
CASE(implicit_set_up_by_one_to_one, "RFC 6458 4.1.5") {
    int listener = listening(SOCK_STREAM), a = socket_of(SOCK_STREAM);
    struct address to = name_of(listener);
    check_eq(sendto(a, "hello", 5, 0, &to.sa, to.len), 5);
    check_receive(must(accept(listener, NULL, NULL)), "hello");
    check_send(a, "no address");
}
CASE(implicit_set_up_refused, "RFC 6458 6.1.1 SCTP_CANT_STR_ASSOC") {
    int a = many_socket(0);
    struct address to = nobody();
    ssize_t n = sendto(a, "hello", 5, MSG_NOSIGNAL, &to.sa, to.len);
    check(n == 5 || (n < 0 && errno == ECONNREFUSED));
    change(a, SCTP_CANT_STR_ASSOC);
}
CASE(set_up_with_one_who_does_not_listen, "RFC 6458 3.1.3") {
    int a = many_socket(0), b = many_socket(0);
    struct address to = name_of(b);
    check_eq(connect(a, &to.sa, to.len), -1);
    check_eq(errno, ECONNREFUSED);
    check_errno2(receive_some(b, 100, MSG_DONTWAIT)->n, EAGAIN, ENOTCONN);
}
CASE(listen_none, "RFC 6458 3.1.3") {
    int a = many_socket(0), b = many_socket(1);
    check_eq(listen(b, 0), 0);
    check_errno(connect_to(a, b), ECONNREFUSED);
    change(a, SCTP_CANT_STR_ASSOC);
    check_eq(listen(b, 3), 0);
    check_eq(connect_to(a, b), 0);
    change(a, SCTP_COMM_UP);
    change(b, SCTP_COMM_UP);
}
CASE(connect_many, "RFC 6458 3.1.6") {
    struct many m = many();
    check_eq(send_to_assoc(m.a, m.in_a, 0, "by number"), 9);
    check_eq(check_receive(m.b, "by number")->rcv.rcv_assoc_id, m.in_b);
    check_eq(send_to_assoc(m.b, m.in_b, 0, "and back"), 8);
    check_eq(check_receive(m.a, "and back")->rcv.rcv_assoc_id, m.in_a);
}
CASE(connect_many_again, "connect(2)") {
    struct many m = many();
    check_errno(connect_to(m.a, m.b), EISCONN);
}
CASE(connect_many_later, "RFC 6458 3.1.6") {
    int a = many_socket(0), b = many_socket(1);
    set_nonblock(a, 1);
    check_errno(connect_to(a, b), EINPROGRESS);
    check_readable(a);
    change(a, SCTP_COMM_UP);
    check_readable(b);
    change(b, SCTP_COMM_UP);
}
CASE(both_ways_listen, "RFC 6458 3.1.3") {
    struct many m = many_of(many_socket(1), many_socket(1));
    struct address a = name_of(m.a), b = name_of(m.b);
    check_eq(sendto(m.b, "to a", 4, 0, &a.sa, a.len), 4);
    check_eq(check_receive(m.a, "to a")->rcv.rcv_assoc_id, m.in_a);
    check_eq(sendto(m.a, "to b", 4, 0, &b.sa, b.len), 4);
    check_eq(check_receive(m.b, "to b")->rcv.rcv_assoc_id, m.in_b);
}
CASE(ten_peers, "RFC 6458 3") {
    int server = many_socket(1), client[10];
    struct address to = name_of(server);
    for (int i = 0; i < 10; i++) {
        client[i] = socket_of(SOCK_SEQPACKET);
        want_rcvinfo(client[i]);
        char text = '0' + i;
        check_eq(sendto(client[i], &text, 1, 0, &to.sa, to.len), 1);
    }
    sctp_assoc_t seen[10];
    for (int n = 0; n < 10;) {
        struct got *g = receive(server);
        if (g->flags & MSG_NOTIFICATION)
            continue;
        check(g->has_rcv);
        for (int i = 0; i < n; i++)
            check(seen[i] != g->rcv.rcv_assoc_id);
        seen[n++] = g->rcv.rcv_assoc_id;
        char text[3] = {g->data[0], '!', 0};
        check_eq(send_to_assoc(server, g->rcv.rcv_assoc_id, 0, text), 2);
    }
    for (int i = 0; i < 10; i++) {
        char text[3] = {'0' + i, '!', 0};
        check_receive(client[i], text);
    }
    unsigned count = 0;
    must_get(server, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 10);
}
CASE(association_numbers, "RFC 6458 8.2.5, 8.2.6") {
    int server = many_socket(1);
    unsigned count = 77;
    must_get(server, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 0);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    struct {
        unsigned count;
        sctp_assoc_t ids[8];
    } list;
    socklen_t len = sizeof list;
    check_eq(getsockopt(server, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &len), 0);
    check_eq(list.count, 2);
    check_eq(len, 12);
    check((list.ids[0] == m.in_b && list.ids[1] == n.in_b) || (list.ids[1] == m.in_b && list.ids[0] == n.in_b));
    len = 8;
    check_errno(getsockopt(server, IPPROTO_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &len), EINVAL);
}
CASE(association_numbers_one, "sctp(7)") {
    struct pair p = pair();
    unsigned list[4];
    check_errno(get(p.client, SCTP_GET_ASSOC_NUMBER, &list), EOPNOTSUPP);
    check_errno(get(p.client, SCTP_GET_ASSOC_ID_LIST, &list), EOPNOTSUPP);
}
CASE(unknown_number, "RFC 6458 5.3.4") {
    struct many m = many();
    struct sctp_sndinfo info = {.snd_assoc_id = 99999};
    check_eq(send_parts(m.a, NULL, "x", MSG_NOSIGNAL, PART(SCTP_SNDINFO, info)), -1);
    check(errno == EPIPE || errno == EINVAL || errno == ENOTCONN);
}
CASE(no_number_no_address, "RFC 6458 3.1.4") {
    int a = bound(SOCK_SEQPACKET);
    check_errno2(send(a, "x", 1, MSG_NOSIGNAL), EPIPE, ENOTCONN);
}
CASE(eof_ends_one, "RFC 6458 5.3.4 SCTP_EOF") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    check_eq(change(server, SCTP_SHUTDOWN_COMP)->sac_assoc_id, m.in_b);
    check_eq(change(m.a, SCTP_SHUTDOWN_COMP)->sac_assoc_id, m.in_a);
    check_eq(send_to_assoc(n.a, n.in_a, 0, "the other"), 9);
    check_receive(server, "the other");
}
CASE(eof_after_data, "RFC 6458 5.3.4 SCTP_EOF") {
    struct many m = many();
    must_set(m.b, SCTP_EVENT, ((struct sctp_event){.se_assoc_id = SCTP_ALL_ASSOC, .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1}));
    check_eq(send_to_assoc(m.a, m.in_a, 0, "first"), 5);
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    check_receive(m.b, "first");
    check_eq(notice(m.b, SCTP_SHUTDOWN_EVENT)->sn_shutdown_event.sse_assoc_id, m.in_b);
    change(m.b, SCTP_SHUTDOWN_COMP);
    change(m.a, SCTP_SHUTDOWN_COMP);
}
CASE(eof_with_data, "sctp(7)") {
    struct many m = many();
    check_errno(send_to_assoc(m.a, m.in_a, SCTP_EOF, "data"), EINVAL);
}
CASE(eof_then_send, "RFC 6458 5.3.4 SCTP_EOF") {
    struct many m = many();
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    struct sctp_sndinfo info = {.snd_assoc_id = m.in_a};
    check_eq(send_parts(m.a, NULL, "x", MSG_NOSIGNAL, PART(SCTP_SNDINFO, info)), -1);
    check(errno == EPIPE || errno == ESHUTDOWN || errno == ENOTCONN || errno == EINVAL);
}
CASE(eof_and_again, "RFC 6458 3.2") {
    int server = many_socket(1), client = many_socket(0);
    for (int i = 0; i < 10; i++) {
        struct many m = many_of(client, server);
        check_eq(send_to_assoc(m.a, m.in_a, 0, "round"), 5);
        check_receive(server, "round");
        check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
        change(server, SCTP_SHUTDOWN_COMP);
        change(client, SCTP_SHUTDOWN_COMP);
    }
    unsigned count = 77;
    must_get(server, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 0);
}
CASE(abort_ends_one, "RFC 6458 5.3.4 SCTP_ABORT") {
    struct many m = many();
    check(send_to_assoc(m.a, m.in_a, SCTP_ABORT, "because") >= 0);
    check_eq(change(m.b, SCTP_COMM_LOST)->sac_assoc_id, m.in_b);
    check_eq(change(m.a, SCTP_COMM_LOST)->sac_assoc_id, m.in_a);
    unsigned count = 77;
    must_get(m.b, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 0);
}
CASE(abort_and_again, "RFC 6458 5.3.4 SCTP_ABORT") {
    int server = many_socket(1), client = many_socket(0);
    for (int i = 0; i < 5; i++) {
        struct many m = many_of(client, server);
        check(send_to_assoc(m.a, m.in_a, SCTP_ABORT, "") >= 0);
        change(server, SCTP_COMM_LOST);
        change(client, SCTP_COMM_LOST);
    }
}
CASE(sendall, "RFC 6458 5.3.4 SCTP_SENDALL") {
    int server = many_socket(1), client[4];
    for (int i = 0; i < 4; i++)
        client[i] = many_of(many_socket(0), server).a;
    struct sctp_sndinfo info = {.snd_flags = SCTP_SENDALL};
    check_eq(send_parts(server, NULL, "to all", 0, PART(SCTP_SNDINFO, info)), 6);
    for (int i = 0; i < 4; i++)
        check_receive(client[i], "to all");
}
CASE(close_ends_all, "RFC 6458 3.1.5") {
    int server = many_socket(1), client[4];
    for (int i = 0; i < 4; i++)
        client[i] = many_of(many_socket(0), server).a;
    check_eq(close(server), 0);
    for (int i = 0; i < 4; i++)
        change(client[i], SCTP_SHUTDOWN_COMP);
}
CASE(close_delivers, "RFC 6458 3.1.5") {
    struct many m = many();
    check_eq(send_to_assoc(m.a, m.in_a, 0, "before"), 6);
    check_eq(close(m.a), 0);
    check_receive(m.b, "before");
    change(m.b, SCTP_SHUTDOWN_COMP);
}
CASE(autoclose, "RFC 6458 8.1.8") {
    int a = many_socket(0), b = many_socket(1);
    must_set(a, SCTP_AUTOCLOSE, 1);
    check_eq(get_int(a, SCTP_AUTOCLOSE), 1);
    struct many m = many_of(a, b);
    change(m.b, SCTP_SHUTDOWN_COMP);
    change(m.a, SCTP_SHUTDOWN_COMP);
}
CASE(autoclose_one, "RFC 6458 8.1.8") {
    int fd = socket_of(SOCK_STREAM), value = 0;
    check_errno(set(fd, SCTP_AUTOCLOSE, 1), EOPNOTSUPP);
    check_errno(get(fd, SCTP_AUTOCLOSE, &value), EOPNOTSUPP);
}
CASE(peeloff, "RFC 6458 9.2") {
    struct many m = many();
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_send(fd, "from the peeled");
    check_receive(m.a, "from the peeled");
    check_eq(send_to_assoc(m.a, m.in_a, 0, "to the peeled"), 13);
    check_receive(fd, "to the peeled");
    check_nothing_yet(m.b);
    struct address a = peer_of(fd), b = name_of(m.a);
    check(same_address(&a, &b));
    unsigned count = 77;
    must_get(m.b, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 0);
}
CASE(peeloff_takes_what_waits, "RFC 6458 9.2") {
    struct many m = many();
    check_eq(send_to_assoc(m.a, m.in_a, 0, "one"), 3);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "two"), 3);
    check_readable(m.b);
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_receive(fd, "one");
    check_receive(fd, "two");
}
CASE(peeloff_leaves_others, "RFC 6458 9.2") {
    int server = many_socket(1);
    struct many m = many_of(many_socket(0), server), n = many_of(many_socket(0), server);
    int fd = must(sctp_peeloff(server, m.in_b));
    check_eq(send_to_assoc(n.a, n.in_a, 0, "stays"), 5);
    check_eq(check_receive(server, "stays")->rcv.rcv_assoc_id, n.in_b);
    check_eq(close(fd), 0);
    change(m.a, SCTP_SHUTDOWN_COMP);
    check_eq(send_to_assoc(server, n.in_b, 0, "too"), 3);
    check_receive(n.a, "too");
}
CASE(peeloff_outlives, "RFC 6458 9.2") {
    struct many m = many();
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_eq(close(m.b), 0);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "still"), 5);
    check_receive(fd, "still");
}
CASE(peeloff_flags, "sctp_peeloff_flags(3)") {
    struct many m = many();
    sctp_peeloff_flags_arg_t asked = {{m.in_b, 0}, SOCK_NONBLOCK | SOCK_CLOEXEC};
    int fd = must(get(m.b, SCTP_SOCKOPT_PEELOFF_FLAGS, &asked));
    check_eq(asked.p_arg.sd, fd);
    check(fcntl(fd, F_GETFL) & O_NONBLOCK);
    check(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    char room[8];
    check_errno(recv(fd, room, sizeof room, 0), EAGAIN);
}
CASE(peeloff_by_the_caller, "RFC 6458 9.2") {
    struct many m = many();
    int fd = must(sctp_peeloff(m.a, m.in_a));
    check_send(fd, "hello");
    check_receive(m.b, "hello");
}
CASE(peeloff_unknown, "RFC 6458 9.2") {
    struct many m = many();
    check_errno(sctp_peeloff(m.b, 99999), EINVAL);
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_errno(sctp_peeloff(m.b, m.in_b), EINVAL);
    (void)fd;
}
CASE(peeloff_one, "RFC 6458 9.2") {
    struct pair p = pair();
    check_errno2(sctp_peeloff(p.client, 0), EINVAL, EOPNOTSUPP);
}
CASE(peeloff_ends, "RFC 6458 9.2") {
    struct many m = many();
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_eq(send_to_assoc(m.a, m.in_a, SCTP_EOF, ""), 0);
    change(fd, SCTP_SHUTDOWN_COMP);
    change(m.a, SCTP_SHUTDOWN_COMP);
}
CASE(one_and_many, "RFC 6458 3.4") {
    int server = many_socket(1), client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, server), 0);
    check_send(client, "hello");
    sctp_assoc_t assoc = change(server, SCTP_COMM_UP)->sac_assoc_id;
    check_receive(server, "hello");
    check_eq(send_to_assoc(server, assoc, 0, "answer"), 6);
    check_receive(client, "answer");
    check_eq(close(client), 0);
    change(server, SCTP_SHUTDOWN_COMP);
}
CASE(many_and_one, "RFC 6458 3.4") {
    int listener = listening(SOCK_STREAM), client = many_socket(0);
    check_eq(connect_to(client, listener), 0);
    sctp_assoc_t assoc = change(client, SCTP_COMM_UP)->sac_assoc_id;
    int server = must(accept(listener, NULL, NULL));
    check_eq(send_to_assoc(client, assoc, 0, "hello"), 5);
    check_receive(server, "hello");
    check_eq(close(server), 0);
    change(client, SCTP_SHUTDOWN_COMP);
}
CASE(many_has_no_peer, "RFC 6458 3.1.6") {
    struct many m = many();
    struct address a = {.len = sizeof a.storage};
    check_errno(getpeername(m.a, &a.sa, &a.len), ENOTCONN);
}
CASE(receive_without_associations, "recvmsg(2)") {
    int fd = many_socket(1);
    check_errno(receive_some(fd, 100, MSG_DONTWAIT)->n, EAGAIN);
}
CASE(receive_expects_nobody, "RFC 6458 3.1.4") {
    int fd = bound(SOCK_SEQPACKET);
    char room[16];
    check_errno(recv(fd, room, sizeof room, 0), ENOTCONN);
    check_errno(receive_some(fd, 100, 0)->n, ENOTCONN);
    check_errno(receive_some(fd, 100, MSG_DONTWAIT)->n, EAGAIN);
    struct many m = many();
    check_eq(send_to_assoc(m.b, m.in_b, SCTP_EOF, ""), 0);
    change(m.a, SCTP_SHUTDOWN_COMP);
    check_errno(receive_some(m.a, 100, 0)->n, ENOTCONN);
}
CASE(peeloff_takes_the_peer, "RFC 6458 9.2") {
    struct many m = many();
    struct address to = name_of(m.a);
    int fd = must(sctp_peeloff(m.b, m.in_b));
    check_errno(sendto(m.b, "x", 1, MSG_NOSIGNAL, &to.sa, to.len), EADDRNOTAVAIL);
    check_errno(connect(m.b, &to.sa, to.len), EADDRNOTAVAIL);
    check_send(fd, "still here");
    check_receive(m.a, "still here");
    check_eq(close(fd), 0);
    change(m.a, SCTP_SHUTDOWN_COMP);
}
/* The same port again, to the same peer: another association each time. */
CASE(rebind_and_reconnect, "RFC 6458 3.1.2") {
    int server = many_socket(1);
    struct address from = {0};
    for (int i = 0; i < 6; i++) {
        int client = socket_of(SOCK_SEQPACKET);
        check_eq(bind_to(client, i ? from : loopback(0)), 0);
        from = name_of(client);
        subscribe(client, SCTP_ASSOC_CHANGE);
        if (i % 2)
            check_eq(listen(client, 5), 0);
        (void)(i % 2 ? many_of(server, client) : many_of(client, server));
        check_eq(sendto(server, "x", 1, 0, &from.sa, from.len), 1);
        check_receive(client, "x");
        check_eq(close(client), 0);
        change(server, SCTP_SHUTDOWN_COMP);
    }
}
CASE(shutdown_many, "RFC 6458 3.1.5") {
    int fd = many_socket(1);
    int r = shutdown(fd, SHUT_WR);
    check(r == 0 || errno == EOPNOTSUPP || errno == ENOTCONN);
    struct many m = many();
    check_errno2(shutdown(m.a, SHUT_WR), EOPNOTSUPP, ENOTCONN);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "alive"), 5);
    check_receive(m.b, "alive");
}
static int ready_for(int fd, int events, int ms) {
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) > 0 ? p.revents : 0;
}
static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
CASE(poll_for_room, "poll(2) POLLOUT") {
    struct many m = many();
    char *text = patterned(30000, 1);
    text[30000] = 0;
    for (size_t i = 0; i < 30000; i++)
        text[i] |= 1;
    set_nonblock(m.a, 1);
    int sent = 0;
    check(ready_for(m.a, POLLOUT, 0) & POLLOUT);
    do {
        while (send_to_assoc(m.a, m.in_a, 0, text) >= 0)
            sent++;
        check_eq(errno, EAGAIN);
    } while (ready_for(m.a, POLLOUT, 300));
    for (int i = 0; i < sent; i++)
        check_receive(m.b, text);
    check(ready_for(m.a, POLLOUT, 5000) & POLLOUT);
    check(send_to_assoc(m.a, m.in_a, 0, text) > 0);
    check_receive(m.b, text);
}
CASE(connect_times_out, "sctp(7) max_init_retransmits") {
    int errors[2], types[] = {SOCK_STREAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        struct address a = address("192.0.2.1", 7);
        int fd = must(socket(AF_INET, types[i], IPPROTO_SCTP));
        must_set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 50, .srto_min = 50, .srto_max = 50}));
        must_set(fd, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_max_attempts = 2, .sinit_max_init_timeo = 50}));
        check_eq(connect(fd, &a.sa, a.len), -1);
        errors[i] = errno;
    }
    check_eq(errors[1], errors[0]);
}
CASE(connect_beside_unread, "connect(2)") {
    struct many m = many();
    check_eq(send_to_assoc(m.b, m.in_b, 0, "unread"), 6);
    struct address a = address("192.0.2.1", 7);
    must_set(m.a, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 200, .srto_min = 200, .srto_max = 200}));
    must_set(m.a, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_max_attempts = 3, .sinit_max_init_timeo = 200}));
    double before = cpu_time();
    check_eq(connect(m.a, &a.sa, a.len), -1);
    check(cpu_time() - before < 0.2);
    change(m.a, SCTP_CANT_STR_ASSOC);
    check_receive(m.a, "unread");
}
CASE(peeked_of_one_who_has_gone, "recv(2) MSG_PEEK") {
    struct many m = many();
    struct address from = name_of(m.a);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "last"), 4);
    check_eq(receive_some(m.b, 100, MSG_PEEK)->n, 4);
    check_eq(close(m.a), 0);
    sleep_ms(300);
    check_eq(receive_some(m.b, 100, MSG_PEEK)->n, 4);
    struct got *g = check_receive(m.b, "last");
    check_eq(g->from.in.sin_port, from.in.sin_port);
    check(g->has_rcv);
    check_eq(g->rcv.rcv_assoc_id, m.in_b);
    change(m.b, SCTP_SHUTDOWN_COMP);
}

SUITE(BOTH(implicit_set_up), ENTRY(implicit_set_up_nonblocking), ENTRY(implicit_set_up_once), BOTH(implicit_set_up_with_init),
      ENTRY(implicit_set_up_by_one_to_one), ENTRY(implicit_set_up_refused), ENTRY(set_up_with_one_who_does_not_listen),
      ENTRY(listen_none), BOTH(connect_many), ENTRY(connect_many_again), ENTRY(connect_many_later), BOTH(both_ways_listen),
      BOTH(ten_peers), ENTRY(association_numbers), ENTRY(association_numbers_one), ENTRY(unknown_number),
      ENTRY(no_number_no_address), BOTH(eof_ends_one), ENTRY(eof_after_data), ENTRY(eof_with_data), ENTRY(eof_then_send),
      ENTRY(eof_and_again), BOTH(abort_ends_one), ENTRY(abort_and_again), ENTRY(sendall), ENTRY(close_ends_all),
      ENTRY(close_delivers), ENTRY(autoclose), ENTRY(autoclose_one), BOTH(peeloff), ENTRY(peeloff_takes_what_waits),
      ENTRY(peeloff_leaves_others), ENTRY(peeloff_outlives), ENTRY(peeloff_flags), ENTRY(peeloff_by_the_caller),
      ENTRY(peeloff_unknown), ENTRY(peeloff_one), ENTRY(peeloff_ends), ENTRY(one_and_many), ENTRY(many_and_one),
      ENTRY(many_has_no_peer), ENTRY(receive_without_associations), BOTH(receive_expects_nobody),
      BOTH(peeloff_takes_the_peer), ENTRY(rebind_and_reconnect), ENTRY(shutdown_many),
      ENTRY(poll_for_room), ENTRY(connect_times_out), ENTRY(connect_beside_unread),
      ENTRY(peeked_of_one_who_has_gone))
