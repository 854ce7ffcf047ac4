/* One-to-one sockets: socket, bind, listen, connect, accept, names (RFC 6458 section 4). */
#include "../streams/refuse.h"
#include "associations.h"

CASE(socket_stream, "RFC 6458 4.1.1") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(get_socket_int(fd, SO_TYPE), SOCK_STREAM);
    check_eq(get_socket_int(fd, SO_PROTOCOL), IPPROTO_SCTP);
    check_eq(get_socket_int(fd, SO_DOMAIN), family);
}
CASE(socket_seqpacket, "RFC 6458 3.1.1") {
    int fd = socket_of(SOCK_SEQPACKET);
    check_eq(get_socket_int(fd, SO_TYPE), SOCK_SEQPACKET);
    check_eq(get_socket_int(fd, SO_PROTOCOL), IPPROTO_SCTP);
    check_eq(get_socket_int(fd, SO_DOMAIN), family);
}
CASE(socket_flags, "socket(2)") {
    int fd = must(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP));
    check(fcntl(fd, F_GETFL) & O_NONBLOCK);
    check(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int plain = socket_of(SOCK_STREAM);
    check(!(fcntl(plain, F_GETFL) & O_NONBLOCK));
    check(!(fcntl(plain, F_GETFD) & FD_CLOEXEC));
}
CASE(socket_datagram_refused, "socket(2)") {
    check_errno2(socket(family, SOCK_DGRAM, IPPROTO_SCTP), EPROTONOSUPPORT, ESOCKTNOSUPPORT);
}
CASE(socket_unix_refused, "socket(2)") { check_errno(socket(AF_UNIX, SOCK_STREAM, IPPROTO_SCTP), EPROTONOSUPPORT); }
CASE(socket_numbers_are_lowest, "socket(2)") {
    int a = socket_of(SOCK_STREAM), b = socket_of(SOCK_STREAM);
    check(b > a);
    check_eq(close(a), 0);
    check_eq(socket_of(SOCK_SEQPACKET), a);
}
CASE(socket_is_a_socket, "stat(2)") {
    struct stat s;
    int fd = socket_of(SOCK_STREAM);
    check_eq(fstat(fd, &s), 0);
    check(S_ISSOCK(s.st_mode));
    check_errno(lseek(fd, 0, SEEK_SET), ESPIPE);
}

CASE(bind_chooses_port, "RFC 6458 4.1.2") {
    int fd = bound(SOCK_STREAM);
    struct address a = name_of(fd);
    check_eq(a.sa.sa_family, family);
    check_eq(a.len, family == AF_INET ? sizeof a.in : sizeof a.in6);
    check(port_in(&a) >= 1024);
}
CASE(bind_any, "RFC 6458 4.1.2") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(bind_to(fd, any()), 0);
    struct address a = name_of(fd), zero = any();
    zero.in.sin_port = a.in.sin_port;
    check(port_in(&a) > 0);
    check(same_address(&a, &zero));
}
CASE(bind_given_port, "RFC 6458 4.1.2") {
    struct address to = nobody();
    int fd = socket_of(SOCK_STREAM);
    check_eq(bind(fd, &to.sa, to.len), 0);
    struct address a = name_of(fd);
    check(same_address(&a, &to));
}
CASE(bind_twice, "RFC 6458 4.1.2") {
    int fd = bound(SOCK_STREAM);
    check_errno(bind_to(fd, any()), EINVAL);
}
CASE(bind_in_use, "bind(2)") {
    int fd = bound(SOCK_STREAM), other = socket_of(SOCK_STREAM);
    struct address a = name_of(fd);
    check_errno(bind(other, &a.sa, a.len), EADDRINUSE);
    check_eq(close(fd), 0);
    check_eq(bind(other, &a.sa, a.len), 0);
}
CASE(bind_in_use_by_any, "bind(2)") {
    int fd = socket_of(SOCK_STREAM), other = socket_of(SOCK_STREAM);
    check_eq(bind_to(fd, any()), 0);
    struct address a = loopback(0), b = name_of(fd);
    a.in.sin_port = b.in.sin_port;
    check_errno(bind(other, &a.sa, a.len), EADDRINUSE);
}
CASE(bind_in_use_by_the_other_style, "bind(2)") {
    int fd = listening(SOCK_SEQPACKET), other = socket_of(SOCK_STREAM);
    struct address a = name_of(fd);
    check_errno(bind(other, &a.sa, a.len), EADDRINUSE);
}
CASE(bind_port_is_not_tcps, "RFC 9260 3") {
    int tcp = must(socket(family, SOCK_STREAM, 0));
    struct address a = loopback(0);
    check_eq(bind(tcp, &a.sa, a.len), 0);
    check_eq(listen(tcp, 1), 0);
    a = name_of(tcp);
    int fd = socket_of(SOCK_STREAM);
    check_eq(bind(fd, &a.sa, a.len), 0);
    check_eq(listen(fd, 1), 0);
    check_errno(connect_to(fd, tcp), EISCONN);
}
CASE(bind_not_ours, "bind(2)") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = address(family == AF_INET ? "192.0.2.77" : "2001:db8::77", 0);
    check_errno(bind(fd, &a.sa, a.len), EADDRNOTAVAIL);
}
CASE(bind_short_address, "bind(2)") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = loopback(0);
    check_errno(bind(fd, &a.sa, sizeof(sa_family_t)), EINVAL);
}
CASE(bind_other_family, "bind(2)") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct address a = address("::1", 0);
    check_errno2(bind(fd, &a.sa, a.len), EINVAL, EAFNOSUPPORT);
}
CASE(bind_multicast, "RFC 6458 4.1.2") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = address("224.0.0.7", 0);
    check_errno2(bind(fd, &a.sa, a.len), EADDRNOTAVAIL, EINVAL);
}

CASE(listen_binds, "RFC 6458 4.1.3") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(listen(fd, 1), 0);
    struct address a = name_of(fd);
    check(port_in(&a) > 0);
    struct address to = loopback(port_in(&a));
    int client = socket_of(SOCK_STREAM);
    check_eq(connect(client, &to.sa, to.len), 0);
    must(accept(fd, NULL, NULL));
}
CASE(listen_twice, "listen(2)") {
    int fd = listening(SOCK_STREAM);
    check_eq(listen(fd, 10), 0);
    pair_of(fd, socket_of(SOCK_STREAM));
}
CASE(listen_is_told, "socket(7) SO_ACCEPTCONN") {
    int fd = bound(SOCK_STREAM);
    check_eq(get_socket_int(fd, SO_ACCEPTCONN), 0);
    check_eq(listen(fd, 1), 0);
    check_eq(get_socket_int(fd, SO_ACCEPTCONN), 1);
}
CASE(listen_negative, "listen(2)") {
    int listener = bound(SOCK_STREAM);
    check_eq(listen(listener, -1), 0);
    for (int i = 0; i < 40; i++)
        check_eq(connect_to(socket_of(SOCK_STREAM), listener), 0);
    for (int i = 0; i < 40; i++)
        must(accept(listener, NULL, NULL));
}
/* As many as the backlog says wait, and no more: the others are refused, until somebody was accepted. */
static int crowd(int listener, int most) {
    for (int i = 0; i < most; i++)
        if (connect_to(socket_of(SOCK_STREAM), listener) < 0) {
            check_eq(errno, ECONNREFUSED);
            return i;
        }
    return most;
}
CASE(connect_full_backlog, "RFC 6458 4.1.3, 4.1.5") {
    for (int backlog = 1; backlog <= 3; backlog++) {
        int listener = bound(SOCK_STREAM);
        check_eq(listen(listener, backlog), 0);
        check_eq(crowd(listener, 20), backlog);
        int later = socket_of(SOCK_STREAM);
        set_nonblock(later, 1);
        check_errno2(connect_to(later, listener), ECONNREFUSED, EINPROGRESS);
        if (errno == EINPROGRESS) {
            check(events(later, POLLOUT, PATIENCE) & (POLLOUT | POLLERR | POLLHUP));
            check_eq(get_socket_int(later, SO_ERROR), ECONNREFUSED);
        }
        must(accept(listener, NULL, NULL));
        check_eq(connect_to(later, listener) == 0 || errno == EINPROGRESS, 1);
        for (int i = 0; i < backlog; i++)
            must(accept(listener, NULL, NULL));
        set_nonblock(listener, 1);
        check_errno(accept(listener, NULL, NULL), EAGAIN);
        check_eq(crowd(listener, backlog), backlog);
    }
}
CASE(listen_connected, "RFC 6458 4.1.3") {
    struct pair p = pair();
    check_errno2(listen(p.client, 1), EINVAL, EISCONN);
}

CASE(connect_accept, "RFC 6458 4.1.4, 4.1.5") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, listener), 0);
    struct address from = {.len = sizeof from.storage};
    int server = must(accept(listener, &from.sa, &from.len));
    struct address a = name_of(client), b = peer_of(client), c = name_of(server), d = peer_of(server), l = name_of(listener);
    check(same_address(&from, &a));
    check(same_address(&d, &a));
    check(same_address(&b, &l));
    check(same_address(&c, &l));
    check_eq(a.len, from.len);
    check_eq(get_socket_int(server, SO_TYPE), SOCK_STREAM);
    check_eq(get_socket_int(client, SO_ERROR), 0);
}
CASE(connect_needs_no_accept, "sctp(7)") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, listener), 0);
    check_send(client, "early");
    int server = must(accept(listener, NULL, NULL));
    check_receive(server, "early");
    check_send(server, "answer");
    check_receive(client, "answer");
}
CASE(connect_bound, "RFC 6458 4.1.5") {
    int client = bound(SOCK_STREAM);
    struct address a = name_of(client);
    struct pair p = pair_of(listening(SOCK_STREAM), client);
    struct address b = peer_of(p.server);
    check(same_address(&a, &b));
}
CASE(connect_refused, "connect(2)") {
    struct address a = nobody();
    int fd = socket_of(SOCK_STREAM);
    check_errno(connect(fd, &a.sa, a.len), ECONNREFUSED);
    check_errno(getpeername(fd, &a.sa, &a.len), ENOTCONN);
}
static void connect_for_a_while(void *to) {
    struct address *a = to;
    check_eq(connect(socket_of(SOCK_STREAM), &a->sa, a->len), 0);
    pause();
}
CASE(connect_without_a_network, "connect(2)") {
    struct address a = nobody();
    /* Without it nobody can tell where a packet went. */
    refuse_some(SYS_setsockopt, 2, IPV6_RECVPKTINFO, ENOMEM);
    check_errno2(connect(socket_of(SOCK_STREAM), &a.sa, a.len), ENOMEM, ECONNREFUSED);
}
CASE(connect_without_a_network_of_that_version, "connect(2)") {
    struct address a = nobody();
    int fd = socket_of(SOCK_STREAM);
    refuse_some(SYS_socket, 0, AF_INET6, EACCES);
    check_errno2(connect(fd, &a.sa, a.len), family == AF_INET6 ? ENETUNREACH : ECONNREFUSED, ECONNREFUSED);
}
/* The peer has begun to wait: it is let in, or this end learns that it could not be. */
CASE(accept_for_want_of_a_descriptor, "accept(2)") {
    int listener = listening(SOCK_STREAM);
    struct address a = name_of(listener);
    pid_t client = spawn(connect_for_a_while, &a);
    refuse(SYS_eventfd2, EMFILE);
    check(accept(listener, NULL, NULL) >= 0 || errno == EMFILE);
    check_eq(kill(client, SIGKILL), 0);
}
CASE(connect_refused_by_bound, "connect(2)") {
    int quiet = bound(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    check_errno(connect_to(fd, quiet), ECONNREFUSED);
    check_eq(listen(quiet, 1), 0);
    check_eq(connect_to(fd, quiet), 0);
}
CASE(connect_refused_later, "connect(2) EINPROGRESS") {
    struct address a = nobody();
    int fd = socket_of(SOCK_STREAM);
    set_nonblock(fd, 1);
    check_errno2(connect(fd, &a.sa, a.len), EINPROGRESS, ECONNREFUSED);
    if (errno == EINPROGRESS) {
        check(events(fd, POLLOUT, PATIENCE) & (POLLOUT | POLLERR | POLLHUP));
        check_eq(get_socket_int(fd, SO_ERROR), ECONNREFUSED);
    }
    check_eq(get_socket_int(fd, SO_ERROR), 0);
}
CASE(connect_in_progress, "RFC 6458 4.1.5") {
    int listener = listening(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    set_nonblock(fd, 1);
    check_errno(connect_to(fd, listener), EINPROGRESS);
    check(events(fd, POLLOUT, PATIENCE) & POLLOUT);
    check_eq(get_socket_int(fd, SO_ERROR), 0);
    check_readable(listener);
    int server = must(accept(listener, NULL, NULL));
    check_send(fd, "hello");
    check_receive(server, "hello");
}
CASE(connect_again, "connect(2)") {
    struct pair p = pair();
    check_errno(connect_to(p.client, p.listener), EISCONN);
}
CASE(connect_listening, "connect(2)") {
    int a = listening(SOCK_STREAM), b = listening(SOCK_STREAM);
    check_errno2(connect_to(a, b), EISCONN, EOPNOTSUPP);
}
CASE(connect_bad_addresses, "connect(2)") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = loopback(7);
    check_errno(connect(fd, &a.sa, sizeof(sa_family_t) - 1), EINVAL);
    a.sa.sa_family = AF_UNIX;
    check_errno2(connect(fd, &a.sa, a.len), EINVAL, EAFNOSUPPORT);
}
CASE(connect_port_zero, "connect(2)") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = loopback(0);
    check_errno2(connect(fd, &a.sa, a.len), EINVAL, ECONNREFUSED);
}
CASE(connect_times_out, "sctp(7) max_init_retransmits") {
    struct address a = address("192.0.2.1", 7);
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    must_set(fd, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 50, .srto_min = 50, .srto_max = 50}));
    must_set(fd, SCTP_INITMSG, ((struct sctp_initmsg){.sinit_max_attempts = 2, .sinit_max_init_timeo = 50}));
    check_eq(connect(fd, &a.sa, a.len), -1);
    check(errno == ETIMEDOUT || errno == ENETUNREACH || errno == EHOSTUNREACH || errno == ECONNREFUSED);
}
CASE(connect_within_sndtimeo, "socket(7) SO_SNDTIMEO") {
    struct address a = address("192.0.2.1", 7);
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct timeval t = {0, 100000};
    check_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
    long begun = now_ms();
    check_eq(connect(fd, &a.sa, a.len), -1);
    check(errno == EINPROGRESS || errno == ENETUNREACH || errno == EHOSTUNREACH || errno == ECONNREFUSED);
    check(now_ms() - begun < 3000);
}
CASE(connect_after_close_of_server, "RFC 6458 4.1.5") {
    for (int i = 0; i < 20; i++) {
        struct pair p = pair();
        check_eq(close(p.server), 0);
        check_eq(close(p.client), 0);
        check_eq(close(p.listener), 0);
    }
}

CASE(accept_not_listening, "accept(2)") { check_errno(accept(bound(SOCK_STREAM), NULL, NULL), EINVAL); }
CASE(accept_nobody, "accept(2)") {
    int fd = listening(SOCK_STREAM);
    set_nonblock(fd, 1);
    check_errno(accept(fd, NULL, NULL), EAGAIN);
}
CASE(accept_many, "RFC 6458 3.1.2") { check_errno2(accept(listening(SOCK_SEQPACKET), NULL, NULL), EOPNOTSUPP, EINVAL); }
CASE(accept4_flags, "accept4(2)") {
    int listener = listening(SOCK_STREAM), a = socket_of(SOCK_STREAM), b = socket_of(SOCK_STREAM);
    check_eq(connect_to(a, listener), 0);
    int s = must(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    check(fcntl(s, F_GETFL) & O_NONBLOCK);
    check(fcntl(s, F_GETFD) & FD_CLOEXEC);
    check_nothing_yet(s);
    set_nonblock(listener, 1);
    check_eq(connect_to(b, listener), 0);
    check_readable(listener);
    s = must(accept(listener, NULL, NULL));
    check(!(fcntl(s, F_GETFL) & O_NONBLOCK));
}
CASE(accept_short_room, "accept(2)") {
    int listener = listening(SOCK_STREAM);
    check_eq(connect_to(socket_of(SOCK_STREAM), listener), 0);
    char room[4] = "abc";
    socklen_t len = 2;
    must(accept(listener, (struct sockaddr *)room, &len));
    check_eq(len, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    check_eq(room[2], 'c');
}
static void call_it(void *listener) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    check_send(fd, "from the child");
    check_end(fd);
}
CASE(accept_waits, "accept(2)") {
    int listener = listening(SOCK_STREAM);
    pid_t child = spawn(call_it, &listener);
    int s = must(accept(listener, NULL, NULL));
    check_receive(s, "from the child");
    check_eq(close(s), 0);
    join(child);
}
CASE(accept_in_order, "RFC 6458 4.1.4") {
    int listener = listening(SOCK_STREAM), client[5];
    for (int i = 0; i < 5; i++) {
        char text[2] = {'0' + i, 0};
        client[i] = socket_of(SOCK_STREAM);
        check_eq(connect_to(client[i], listener), 0);
        check_send(client[i], text);
    }
    for (int i = 0; i < 5; i++) {
        char text[2] = {'0' + i, 0};
        int s = must(accept(listener, NULL, NULL));
        check_receive(s, text);
        check_eq(close(s), 0);
    }
}
CASE(accept_within_rcvtimeo, "socket(7) SO_RCVTIMEO") {
    int fd = listening(SOCK_STREAM);
    struct timeval t = {0, 50000};
    check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
    check_errno(accept(fd, NULL, NULL), EAGAIN);
}
CASE(accept_interrupted, "accept(2) EINTR") {
    int fd = listening(SOCK_STREAM);
    pid_t poker = start_poking(SIGUSR1);
    check_errno(accept(fd, NULL, NULL), EINTR);
    end_poking(poker);
}
CASE(accept_what_has_gone, "accept(2)") {
    int listener = listening(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, listener), 0);
    check_send(fd, "last words");
    check_eq(close(fd), 0);
    int s = must(accept(listener, NULL, NULL));
    check_receive(s, "last words");
    check_end(s);
}
CASE(accept_hundred, "RFC 6458 4.1.4") {
    int listener = listening(SOCK_STREAM);
    for (int i = 0; i < 100; i++) {
        struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
        check_send(p.client, "x");
        check_receive(p.server, "x");
        check_eq(close(p.client), 0);
        check_end(p.server);
        check_eq(close(p.server), 0);
    }
}

CASE(names_unbound, "getsockname(2)") {
    int fd = socket_of(SOCK_STREAM);
    struct address a = name_of(fd), zero = any();
    check(same_address(&a, &zero));
    check_errno(getpeername(fd, &a.sa, &a.len), ENOTCONN);
}
CASE(names_short_room, "getsockname(2)") {
    int fd = bound(SOCK_STREAM);
    char room[8] = {0};
    socklen_t len = 4;
    check_eq(getsockname(fd, (struct sockaddr *)room, &len), 0);
    check(len >= sizeof(struct sockaddr_in));
    check_eq(*(sa_family_t *)room, family);
    check_eq(room[4], 0);
}
CASE(names_after_connect, "getsockname(2)") {
    struct pair p = pair();
    struct address a = name_of(p.client);
    check(port_in(&a) > 0);
    struct address l = loopback(port_in(&a));
    check(same_address(&a, &l));
}
CASE(reuse_address, "socket(7) SO_REUSEADDR") {
    int fd = socket_of(SOCK_STREAM);
    set_socket_int(fd, SO_REUSEADDR, 1);
    check_eq(get_socket_int(fd, SO_REUSEADDR), 1);
    struct address a = loopback(0);
    check_eq(bind(fd, &a.sa, a.len), 0);
    check_eq(listen(fd, 1), 0);
    a = name_of(fd);
    struct pair p = pair_of(fd, socket_of(SOCK_STREAM));
    check_eq(close(p.listener), 0);
    int again = socket_of(SOCK_STREAM);
    set_socket_int(again, SO_REUSEADDR, 1);
    check_eq(bind(again, &a.sa, a.len), 0);
}
CASE(listener_closed, "close(2)") {
    struct pair p = pair();
    struct address a = name_of(p.listener);
    check_eq(close(p.listener), 0);
    int fd = socket_of(SOCK_STREAM);
    check_errno(connect(fd, &a.sa, a.len), ECONNREFUSED);
    check_send(p.client, "still here");
    check_receive(p.server, "still here");
}

/* The same port again, to the same peer, by another socket: the association before may still be saying good-bye. */
CASE(rebind_and_reconnect, "RFC 6458 4.1.5") {
    int listener = listening(SOCK_STREAM);
    struct address from = loopback(0);
    for (int i = 0; i < 8; i++) {
        int client = socket_of(SOCK_STREAM);
        set_socket_int(client, SO_REUSEADDR, 1);
        check_eq(bind_to(client, from), 0);
        from = name_of(client);
        struct pair p = pair_of(listener, client);
        check_send(p.client, "there");
        check_receive(p.server, "there");
        check_send(p.server, "and back");
        check_receive(p.client, "and back");
        int first = i % 2 ? p.client : p.server;
        check_eq(close(first), 0);
        if (i % 4 < 2)
            check_end(first == p.client ? p.server : p.client);
        check_eq(close(first == p.client ? p.server : p.client), 0);
    }
}
/* A socket whose association has ended is there for another. */
CASE(reconnect, "RFC 6458 4.1.5") {
    int listener = listening(SOCK_STREAM), client = bound(SOCK_STREAM);
    for (int i = 0; i < 6; i++) {
        struct pair p = pair_of(listener, client);
        check_send(p.client, "there");
        check_receive(p.server, "there");
        if (i % 3 == 2)
            check_eq(setsockopt(p.server, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)), 0);
        if (i % 3 == 0) {
            check_eq(shutdown(p.client, SHUT_WR), 0);
            check_end(p.server);
        }
        check_eq(close(p.server), 0);
        char byte;
        ssize_t n = recv(p.client, &byte, 1, 0);
        check(n == 0 || (n < 0 && errno == ECONNRESET));
    }
}

SUITE(BOTH(socket_stream), BOTH(socket_seqpacket), ENTRY(socket_flags), BOTH(socket_datagram_refused), ENTRY(socket_unix_refused),
      ENTRY(socket_numbers_are_lowest), ENTRY(socket_is_a_socket), BOTH(bind_chooses_port), BOTH(bind_any), BOTH(bind_given_port),
      ENTRY(bind_twice), BOTH(bind_in_use), BOTH(bind_in_use_by_any), ENTRY(bind_in_use_by_the_other_style), ENTRY(bind_port_is_not_tcps),
      BOTH(bind_not_ours), BOTH(bind_short_address), ENTRY(bind_other_family), ENTRY(bind_multicast), BOTH(listen_binds),
      ENTRY(listen_twice), ENTRY(listen_is_told), ENTRY(listen_connected), ENTRY(listen_negative),
      BOTH(connect_full_backlog), BOTH(connect_accept), BOTH(connect_needs_no_accept),
      BOTH(connect_bound), BOTH(connect_refused), BOTH(connect_without_a_network),
      BOTH(connect_without_a_network_of_that_version), ENTRY(accept_for_want_of_a_descriptor), ENTRY(connect_refused_by_bound), BOTH(connect_refused_later),
      BOTH(connect_in_progress), ENTRY(connect_again), ENTRY(connect_listening), ENTRY(connect_bad_addresses),
      ENTRY(connect_port_zero), ENTRY(connect_times_out), ENTRY(connect_within_sndtimeo), ENTRY(connect_after_close_of_server),
      ENTRY(accept_not_listening), ENTRY(accept_nobody), ENTRY(accept_many), ENTRY(accept4_flags), BOTH(accept_short_room),
      ENTRY(accept_waits), ENTRY(accept_in_order), ENTRY(accept_within_rcvtimeo), ENTRY(accept_interrupted),
      ENTRY(accept_what_has_gone), ENTRY(accept_hundred), BOTH(names_unbound), BOTH(names_short_room), ENTRY(names_after_connect),
      ENTRY(reuse_address), ENTRY(rebind_and_reconnect), ENTRY(reconnect), ENTRY(listener_closed))
