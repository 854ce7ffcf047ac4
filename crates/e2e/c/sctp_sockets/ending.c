/* How associations end: shutdown, close, linger, abort, processes that die (RFC 6458 4.1.6, 4.1.7, 8.1.4). */
#include "associations.h"

static void linger(int fd, int seconds) {
    struct linger l = {1, seconds};
    check_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
}
/* The peer has aborted: ECONNRESET once, then the end. */
#define check_reset(FD) \
    do { \
        check_errno(receive_some(FD, 100, 0)->n, ECONNRESET); \
        check_end(FD); \
    } while (0)

CASE(close_ends, "RFC 6458 4.1.6") {
    struct pair p = pair();
    check_eq(close(p.client), 0);
    check_end(p.server);
    check_end(p.server);
}
CASE(close_delivers_first, "RFC 6458 4.1.6") {
    struct pair p = pair();
    for (int i = 0; i < 50; i++)
        check_send(p.client, "message");
    check_eq(close(p.client), 0);
    for (int i = 0; i < 50; i++)
        check_receive(p.server, "message");
    check_end(p.server);
}
CASE(close_delivers_big, "RFC 6458 4.1.6") {
    struct pair p = pair();
    char *text = patterned(150000, 3);
    check_eq(send(p.client, text, 150000, 0), 150000);
    check_eq(close(p.client), 0);
    receive_pattern(p.server, 150000, 3, 500000);
    check_end(p.server);
}
CASE(close_unread_aborts, "RFC 6458 4.1.6") {
    struct pair p = pair();
    check_send(p.client, "nobody reads this");
    check_readable(p.server);
    check_eq(close(p.server), 0);
    check_reset(p.client);
}
CASE(close_is_no_error_of_the_peer, "SO_ERROR") {
    struct pair p = pair();
    check_eq(close(p.server), 0);
    check_end(p.client);
    check_eq(get_socket_int(p.client, SO_ERROR), 0);
}
CASE(close_twice, "close(2)") {
    struct pair p = pair();
    check_eq(close(p.client), 0);
    check_errno(close(p.client), EBADF);
    check_errno(send(p.client, "x", 1, 0), EBADF);
}
CASE(shutdown_write, "RFC 6458 4.1.7") {
    struct pair p = pair();
    check_send(p.client, "last");
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_errno(send(p.client, "x", 1, MSG_NOSIGNAL), EPIPE);
    check_receive(p.server, "last");
    check_end(p.server);
    check_end(p.client);
}
CASE(shutdown_both, "RFC 6458 4.1.7") {
    struct pair p = pair();
    check_eq(shutdown(p.client, SHUT_RDWR), 0);
    check_errno(send(p.client, "x", 1, MSG_NOSIGNAL), EPIPE);
    check_end(p.server);
    check_end(p.client);
}
CASE(shutdown_read, "RFC 6458 4.1.7") {
    struct pair p = pair();
    check_eq(shutdown(p.client, SHUT_RD), 0);
    check_send(p.client, "may still send");
    check_receive(p.server, "may still send");
}
CASE(shutdown_lets_what_is_sent_come, "RFC 6458 4.1.7") {
    struct pair p = pair();
    check_send(p.server, "on its way");
    check_readable(p.client);
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_receive(p.client, "on its way");
    check_end(p.client);
    check_end(p.server);
}
CASE(shutdown_not_connected, "shutdown(2)") {
    check_errno(shutdown(socket_of(SOCK_STREAM), SHUT_WR), ENOTCONN);
    check_errno(shutdown(pair().client, 17), EINVAL);
}
CASE(shutdown_then_close, "RFC 6458 4.1.7") {
    struct pair p = pair();
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_eq(close(p.client), 0);
    check_end(p.server);
}
CASE(no_half_close, "RFC 9260 9.2") {
    struct pair p = pair();
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_end(p.server);
    check_eq(send(p.server, "x", 1, MSG_NOSIGNAL), -1);
    check(errno == EPIPE || errno == ESHUTDOWN || errno == ENOTCONN);
}
CASE(send_to_the_gone_is_sigpipe, "send(2) EPIPE") {
    struct pair p = pair();
    check_eq(close(p.server), 0);
    check_end(p.client);
    catch_signal(SIGPIPE);
    check_errno(send(p.client, "x", 1, MSG_NOSIGNAL), EPIPE);
    check_eq(caught[SIGPIPE], 0);
    check_errno(send(p.client, "x", 1, 0), EPIPE);
    check_eq(caught[SIGPIPE], 1);
    check_errno(write(p.client, "x", 1), EPIPE);
    check_eq(caught[SIGPIPE], 2);
}
CASE(send_before_connect, "send(2)") {
    int fd = socket_of(SOCK_STREAM);
    check_errno2(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE, ENOTCONN);
}
CASE(send_on_a_listener, "sctp(7)") {
    int fd = listening(SOCK_STREAM);
    check_errno2(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE, ENOTCONN);
}
CASE(receive_before_connect, "recv(2) ENOTCONN") {
    int fd = socket_of(SOCK_STREAM);
    char room[4];
    check_errno(recv(fd, room, sizeof room, 0), ENOTCONN);
    check_errno(recv(listening(SOCK_STREAM), room, sizeof room, 0), ENOTCONN);
}
CASE(linger_zero_aborts, "RFC 6458 8.1.4") {
    struct pair p = pair();
    linger(p.client, 0);
    check_eq(close(p.client), 0);
    check_reset(p.server);
}
CASE(linger_zero_forgets_what_was_sent, "RFC 6458 8.1.4") {
    struct pair p = pair();
    int n = stuff(p.client, 1000);
    linger(p.client, 0);
    check_eq(close(p.client), 0);
    int m = 0;
    struct got *g;
    while ((g = receive_some(p.server, 10000, 0))->n > 0)
        m++;
    check(g->n == 0 || errno == ECONNRESET);
    check(m <= n);
}
CASE(linger_waits, "RFC 6458 8.1.4") {
    struct pair p = pair();
    linger(p.client, 3);
    check_send(p.client, "x");
    check_receive(p.server, "x");
    check_eq(close(p.client), 0);
    check_end(p.server);
}
CASE(abort_by_the_peer_is_so_error, "SO_ERROR") {
    struct pair p = pair();
    linger(p.server, 0);
    check_eq(close(p.server), 0);
    check(events(p.client, POLLIN, PATIENCE) & (POLLERR | POLLHUP | POLLIN));
    check_eq(get_socket_int(p.client, SO_ERROR), ECONNRESET);
    check_eq(get_socket_int(p.client, SO_ERROR), 0);
    check_end(p.client);
}
CASE(abort_then_send, "send(2)") {
    struct pair p = pair();
    linger(p.server, 0);
    check_eq(close(p.server), 0);
    check_readable(p.client);
    check_errno2(send(p.client, "x", 1, MSG_NOSIGNAL), ECONNRESET, EPIPE);
    check_errno(send(p.client, "x", 1, MSG_NOSIGNAL), EPIPE);
}
CASE(abort_of_one_not_accepted, "RFC 6458 4.1.6") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, listener), 0);
    check_eq(close(listener), 0);
    check_readable(client);
    ssize_t n = receive_some(client, 10, 0)->n;
    check(n == 0 || errno == ECONNRESET);
}
CASE(both_close, "RFC 9260 9.2") {
    for (int i = 0; i < 20; i++) {
        struct pair p = pair();
        check_send(p.client, "x");
        check_receive(p.server, "x");
        check_eq(shutdown(p.client, SHUT_WR), 0);
        check_eq(shutdown(p.server, SHUT_WR), 0);
        check_end(p.client);
        check_end(p.server);
        check_eq(close(p.client) | close(p.server) | close(p.listener), 0);
    }
}
CASE(reader_wakes, "recv(2)") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    struct pair p = pair_of(listener, client);
    pid_t child = must(fork());
    if (child == 0) {
        close(p.server), close(p.listener);
        sleep_ms(30);
        shutdown(p.client, SHUT_WR);
        _exit(0);
    }
    check_end(p.server);
    join(child);
}
/* The child connects, says so, and waits. */
static void connect_and_wait(void *listener) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    check_send(fd, "here");
    for (;;)
        pause();
}
CASE(peer_killed, "close(2)") {
    int listener = listening(SOCK_STREAM);
    pid_t child = spawn(connect_and_wait, &listener);
    int server = must(accept(listener, NULL, NULL));
    check_receive(server, "here");
    must_set(server, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_hbinterval = 100, .spp_pathmaxrxt = 1, .spp_flags = SPP_HB_ENABLE}));
    must_set(server, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_initial = 100, .srto_min = 100, .srto_max = 200}));
    must_set(server, SCTP_ASSOCINFO, ((struct sctp_assocparams){.sasoc_asocmaxrxt = 1}));
    slay(child);
    ssize_t n = receive_some(server, 10, 0)->n;
    check(n == 0 || errno == ECONNRESET || errno == ETIMEDOUT);
}
CASE(peer_killed_many, "RFC 6458 6.1.1 SCTP_COMM_LOST") {
    int server = many_socket(1);
    pid_t child = spawn(connect_and_wait, &server);
    sctp_assoc_t assoc = change(server, SCTP_COMM_UP)->sac_assoc_id;
    check_receive(server, "here");
    must_set(server, SCTP_PEER_ADDR_PARAMS, ((struct sctp_paddrparams){.spp_assoc_id = assoc, .spp_hbinterval = 100, .spp_pathmaxrxt = 1, .spp_flags = SPP_HB_ENABLE}));
    must_set(server, SCTP_RTOINFO, ((struct sctp_rtoinfo){.srto_assoc_id = assoc, .srto_initial = 100, .srto_min = 100, .srto_max = 200}));
    must_set(server, SCTP_ASSOCINFO, ((struct sctp_assocparams){.sasoc_assoc_id = assoc, .sasoc_asocmaxrxt = 1}));
    slay(child);
    check_eq(change(server, SCTP_COMM_LOST)->sac_assoc_id, assoc);
    unsigned count = 7;
    must_get(server, SCTP_GET_ASSOC_NUMBER, &count);
    check_eq(count, 0);
}
static void connect_and_exit(void *listener) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    check_send(fd, "one");
    check_send(fd, "two");
}
CASE(exit_delivers, "exit(3)") {
    int listener = listening(SOCK_STREAM);
    pid_t child = spawn(connect_and_exit, &listener);
    int server = must(accept(listener, NULL, NULL));
    join(child);
    check_receive(server, "one");
    check_receive(server, "two");
    check_end(server);
}
CASE(exit_delivers_before_accept, "exit(3)") {
    int listener = listening(SOCK_STREAM);
    join(spawn(connect_and_exit, &listener));
    int server = must(accept(listener, NULL, NULL));
    check_receive(server, "one");
    check_receive(server, "two");
    check_end(server);
}
CASE(server_killed_then_again, "kill(2)") {
    for (int i = 0; i < 3; i++) {
        int listener = listening(SOCK_STREAM);
        pid_t child = spawn(connect_and_wait, &listener);
        int server = must(accept(listener, NULL, NULL));
        check_receive(server, "here");
        slay(child);
        linger(server, 0);
        check_eq(close(server), 0);
        check_eq(close(listener), 0);
    }
}
CASE(descriptors_do_not_leak, "close(2)") {
    struct pair p = pair();
    check_eq(close(p.client) | close(p.server) | close(p.listener), 0);
    int first = must(dup(0));
    check_eq(close(first), 0);
    for (int i = 0; i < 100; i++) {
        p = pair();
        check_eq(close(p.client) | close(p.server) | close(p.listener), 0);
    }
    int again = must(dup(0));
    check_eq(again, first);
}

SUITE(BOTH(close_ends), BOTH(close_delivers_first), ENTRY(close_delivers_big), ENTRY(close_unread_aborts),
      ENTRY(close_is_no_error_of_the_peer), ENTRY(close_twice), BOTH(shutdown_write), ENTRY(shutdown_both), ENTRY(shutdown_read),
      ENTRY(shutdown_lets_what_is_sent_come), ENTRY(shutdown_not_connected), ENTRY(shutdown_then_close), ENTRY(no_half_close),
      ENTRY(send_to_the_gone_is_sigpipe), ENTRY(send_before_connect), ENTRY(send_on_a_listener), ENTRY(receive_before_connect),
      BOTH(linger_zero_aborts), ENTRY(linger_zero_forgets_what_was_sent), ENTRY(linger_waits), ENTRY(abort_by_the_peer_is_so_error),
      ENTRY(abort_then_send), ENTRY(abort_of_one_not_accepted), ENTRY(both_close), ENTRY(reader_wakes), ENTRY(peer_killed),
      ENTRY(peer_killed_many), ENTRY(exit_delivers), ENTRY(exit_delivers_before_accept), ENTRY(server_killed_then_again),
      ENTRY(descriptors_do_not_leak))
