/* Asynchronous mode, events, interrupted calls, and one process that serves many by poll. */
#include "endpoints.h"
#include <sys/epoll.h>

/* --- nothing to do now --- */

CASE(nothing_to_receive, "XNS 5.2 t_rcv() TNODATA") {
    struct pair p = connected_nonblock();
    char c;
    int flags;
    struct t_iovec v = {&c, 1};
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
    check_t(t_rcvv(p.server, &v, 1, &flags), TNODATA);
    check_t(t_rcv(p.client, &c, 1, &flags), TNODATA);
    check_state(p.server, T_DATAXFER);
    snd(p.client, "x", 0);
    check_readable(p.server);
    check_eq(t_rcv(p.server, &c, 1, &flags), 1);
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
}
CASE(nothing_to_receive_after_release, "XNS 5.2 t_rcv() TNODATA") {
    struct pair p = connected_nonblock();
    char c;
    int flags;
    check_ok(t_sndrel(p.client));
    /* Of SCTP the other end's transport has answered. */
    check_look(p.client, is_in(SCTP) ? T_ORDREL : 0);
    check_t(t_rcv(p.client, &c, 1, &flags), is_in(SCTP) ? TLOOK : TNODATA);
    check_state(p.client, T_OUTREL);
}
CASE(nowhere_to_send, "XNS 5.2 t_sndv() TFLOW") {
    struct pair p = connected_nonblock();
    char c = 'x';
    struct t_iovec v = {&c, 1};
    fill_endpoint(p.client, 1);
    check_t(t_snd(p.client, &c, 1, 0), TFLOW);
    check_t(t_sndv(p.client, &v, 1, 0), TFLOW);
    check_state(p.client, T_DATAXFER);
}
CASE(mode_changes_at_any_time, "XNS 5.2 fcntl(2) O_NONBLOCK") {
    struct pair p = connected();
    char c;
    int flags;
    for (int i = 0; i < 3; i++) {
        set_nonblock(p.server, 1);
        check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
        set_nonblock(p.server, 0);
        snd(p.client, "x", 0);
        check_eq(t_rcv(p.server, &c, 1, &flags), 1);
    }
    set_nonblock(p.listener, 1);
    struct call call;
    check_t(t_listen(p.listener, roomy(&call)), TNODATA);
}
CASE(mode_is_of_the_open_file, "XNS 5.2 dup(2)") {
    struct pair p = connected();
    int copy = must(dup(p.server)), flags;
    char c;
    set_nonblock(copy, 1);
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
    check_t(t_rcv(copy, &c, 1, &flags), TNODATA);
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
}
CASE(events_one_after_another, "XNS 5.2 t_look()") {
    struct pair p = connected();
    snd(p.client, "data", 0);
    check_event(p.server, T_DATA);
    rcv(p.server, "data", 0);
    check_look(p.server, 0);
    check_ok(t_snddis(p.client, NULL));
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, NULL));
    check_look(p.server, 0);
    bind_at(open_endpoint(), unused_address(), 0);
    int fd = connecting(&p.at);
    check_event(p.listener, T_LISTEN);
    int server = serve(p.listener);
    check_look(p.listener, 0);
    check_event(fd, T_CONNECT);
    check_look(server, 0);
}
CASE(data_that_came_with_the_connection, "XNS 5.2 t_look()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    snd(server, "welcome", 0);
    check_event(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, NULL));
    check_event(fd, T_DATA);
    set_nonblock(fd, 0);
    rcv(fd, "welcome", 0);
}
CASE(disconnect_after_an_untaken_connection, "XNS 5.2 t_rcvconnect() TLOOK") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    check_event(fd, T_CONNECT);
    check_ok(t_snddis(server, NULL));
    /* The confirmation may be taken first or be gone. */
    for (int event; (event = next_event(fd)) == T_CONNECT;)
        t_rcvconnect(fd, NULL);
    check_look(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
}
CASE(release_of_an_untaken_connection, "XNS 5.2 t_rcvconnect()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    snd(server, "bye", 0);
    check_ok(t_sndrel(server));
    confirm(fd);
    rcv(fd, "bye", 0);
    check_event(fd, T_ORDREL);
    check_ok(t_rcvrel(fd));
    check_state(fd, T_INREL);
}

/* --- interrupted calls --- */

CASE(receive_interrupted, "XNS 5.2 t_rcv() TSYSERR EINTR") {
    struct pair p = connected();
    char c;
    int flags;
    pid_t poker = start_poking(SIGUSR1);
    check_sys(t_rcv(p.server, &c, 1, &flags), EINTR);
    end_poking(poker);
    check_state(p.server, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(send_interrupted, "XNS 5.2 t_snd() TSYSERR EINTR") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    char next = wave(sent);
    set_nonblock(p.client, 0);
    set_nonblock(p.server, 0);
    pid_t poker = start_poking(SIGUSR1);
    int n;
    while ((n = t_snd(p.client, &next, 1, 0)) == 1)
        next = wave(++sent);
    check_eq(t_errno, TSYSERR);
    check_eq(errno, EINTR);
    end_poking(poker);
    rcv_wave(p.server, 0, sent, 65536);
    check_echo(p.client, p.server);
}
CASE(rcvconnect_interrupted, "XNS 5.2 t_rcvconnect() TSYSERR EINTR") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    set_nonblock(fd, 0);
    pid_t poker = start_poking(SIGUSR1);
    check_sys(t_rcvconnect(fd, NULL), EINTR);
    end_poking(poker);
    check_state(fd, T_OUTCON);
    int server = serve(listener);
    check_ok(t_rcvconnect(fd, NULL));
    check_echo(fd, server);
}

/* --- threads --- */

struct conversation {
    struct address at;
    int number;
};
static void converse(void *with) {
    struct conversation *c = with;
    int fd = connect_new(&c->at);
    for (int i = 0; i < 50; i++) {
        char text[40], back[40] = "";
        int n = snprintf(text, sizeof text, "%d says %d", c->number, i);
        snd(fd, text, 0);
        rcv_all(fd, back, n, 0);
        check_str(back, text);
    }
    must_t(t_snddis(fd, NULL));
    must_t(t_close(fd));
}
static void echo_until_gone(void *with) {
    int fd = *(int *)with, flags, n;
    char text[100];
    while ((n = t_rcv(fd, text, sizeof text, &flags)) > 0)
        check_eq(t_snd(fd, text, n, 0), n);
    check_eq(t_errno, TLOOK);
    check_event(fd, T_DISCONNECT);
}
CASE(threads_serve_threads, "XNS 5.2 t_listen()") {
    enum { N = 8 };
    struct conversation c[N];
    pthread_t client[N], server[N];
    int listener = listener_at(&c[0].at, N), sequence[N], fd[N];
    for (int i = 0; i < N; i++) {
        c[i] = (struct conversation){c[0].at, i};
        client[i] = start(converse, &c[i]);
    }
    for (int i = 0; i < N; i++)
        sequence[i] = listen_for(listener);
    for (int i = 0; i < N; i++) {
        fd[i] = accepted(listener, sequence[i]);
        server[i] = start(echo_until_gone, &fd[i]);
    }
    for (int i = 0; i < N; i++) {
        finish(client[i]);
        finish(server[i]);
    }
}
static void receive_one(void *with) {
    char c;
    int flags;
    check_eq(must_t(t_rcv(*(int *)with, &c, 1, &flags)), 1);
}
CASE(threads_wait_for_one_endpoint, "XNS 5.2 t_rcv()") {
    struct pair p = connected();
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(receive_one, &p.server);
    for (int i = 0; i < 4; i++)
        snd(p.client, "x", 0);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
    check_look(p.server, 0);
}
static void send_ten(void *with) {
    for (int i = 0; i < 1000; i++)
        snd(*(int *)with, "0123456789", 0);
}
CASE(threads_send_whole_tsdus, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(send_ten, &p.client);
    for (int i = 0; i < 4000; i++)
        rcv(p.server, "0123456789", 0);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}

/* --- a server by events --- */

/* Takes all calls that wait, then accepts them, unless others call in between. */
static int take_calls(int listener, int fd[]) {
    static int heard[64];
    static int calls;
    struct call call;
    int n = 0;
    while (t_listen(listener, roomy(&call)) == 0)
        heard[calls++] = call.call.sequence;
    check(t_errno == TNODATA || t_errno == TQFULL);
    while (calls > 0) {
        fd[n] = open_flags(O_NONBLOCK);
        struct t_call yes = {.sequence = heard[calls - 1]};
        if (t_accept(listener, fd[n], &yes) < 0) {
            check_eq(t_errno, TLOOK);
            check_look(listener, T_LISTEN);
            must_t(t_close(fd[n]));
            return n;
        }
        n++, calls--;
    }
    return n;
}
/* Serves until `n` clients have come and gone: echoes, and takes the end as it comes. */
static void serve_by_poll(int listener, int n) {
    struct pollfd p[64] = {{.fd = listener, .events = POLLIN}};
    int used = 1, gone = 0;
    set_nonblock(listener, 1);
    while (gone < n) {
        check(poll(p, used, PATIENCE) > 0);
        for (int i = used - 1; i > 0; i--) {
            if (!p[i].revents)
                continue;
            char text[1000];
            int flags, got = t_rcv(p[i].fd, text, sizeof text, &flags);
            if (got >= 0) {
                check_eq(must_t(t_snd(p[i].fd, text, got, 0)), got);
                continue;
            }
            if (t_errno == TNODATA)
                continue;
            check_eq(t_errno, TLOOK);
            int event = t_look(p[i].fd);
            if (event == T_ORDREL) {
                must_t(t_rcvrel(p[i].fd));
                must_t(t_sndrel(p[i].fd));
            } else {
                check_eq(event, T_DISCONNECT);
                must_t(t_rcvdis(p[i].fd, NULL));
            }
            check_state(p[i].fd, T_IDLE);
            must_t(t_close(p[i].fd));
            p[i] = p[--used], gone++;
        }
        if (p[0].revents) {
            int fd[64], calls = take_calls(listener, fd);
            for (int i = 0; i < calls; i++)
                p[used++] = (struct pollfd){.fd = fd[i], .events = POLLIN};
        }
    }
}
static void be_a_client(void *with) {
    struct conversation *c = with;
    struct t_call to = call_to(&c->at);
    int fd = bound();
    while (t_connect(fd, &to, NULL) < 0) {
        check_eq(t_errno, TLOOK);
        must_t(t_rcvdis(fd, NULL));
        sleep_ms(3);
    }
    for (int i = 0; i < 20; i++) {
        char text[40], back[40] = "";
        int n = snprintf(text, sizeof text, "client %d, %d", c->number, i);
        snd(fd, text, 0);
        rcv_all(fd, back, n, 0);
        check_str(back, text);
    }
    if (c->number % 2 && !is_in(TICOTS)) {
        must_t(t_sndrel(fd));
        check_event(fd, T_ORDREL);
        must_t(t_rcvrel(fd));
        check_state(fd, T_IDLE);
    } else
        must_t(t_snddis(fd, NULL));
}
CASE(one_server_of_many_clients, "XNS 5.2 t_listen(), poll(2)") {
    enum { N = 12 };
    struct conversation c[N];
    pid_t child[N];
    int listener = listener_at(&c[0].at, 16);
    for (int i = 0; i < N; i++) {
        c[i] = (struct conversation){c[0].at, i};
        child[i] = spawn(be_a_client, &c[i]);
    }
    serve_by_poll(listener, N);
    for (int i = 0; i < N; i++)
        join(child[i]);
}
CASE(many_clients_of_one_process, "XNS 5.2 t_connect(), poll(2)") {
    enum { N = 16 };
    struct address at;
    int listener = listener_at(&at, N), client[N], server[N], sequence[N];
    for (int i = 0; i < N; i++)
        client[i] = connecting(&at);
    for (int i = 0; i < N; i++)
        sequence[i] = listen_for(listener);
    for (int i = N - 1; i >= 0; i--)
        server[i] = accepted(listener, sequence[i]);
    for (int i = 0; i < N; i++) {
        check_readable(client[i]);
        confirm(client[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            char number[10];
            snprintf(number, sizeof number, "%d.%d", round, i);
            snd(client[i], number, 0);
        }
        for (int i = N - 1; i >= 0; i--) {
            char number[10], text[10] = "";
            snprintf(number, sizeof number, "%d.%d", round, i);
            check_readable(server[i]);
            rcv_all(server[i], text, strlen(number), 0);
            check_str(text, number);
        }
    }
}
CASE(edge_triggered, "epoll(7) EPOLLET") {
    struct pair p = connected_nonblock();
    struct epoll_event want = {EPOLLIN | EPOLLET, {.fd = p.server}}, seen;
    int set = must(epoll_create1(0));
    must(epoll_ctl(set, EPOLL_CTL_ADD, p.server, &want));
    while (epoll_wait(set, &seen, 1, 0) > 0)
        ;
    for (int i = 0; i < 5; i++) {
        char c;
        int flags;
        snd(p.client, "x", 0);
        check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
        while (t_rcv(p.server, &c, 1, &flags) >= 0)
            ;
        check_eq(t_errno, TNODATA);
    }
}
static int set_of(int fd, int events) {
    int set = must(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event e = {.events = events};
    must(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
    return set;
}
/* What poll(2) says of an endpoint, a set says of it whenever it was put there, and poll(2) of the set. */
static void check_in_sets(int fd, int old) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    int fresh = set_of(fd, EPOLLIN | EPOLLOUT), sets[] = {fresh, old};
    struct epoll_event e;
    must(poll(&p, 1, 0));
    for (int i = 0; i < 2; i++) {
        struct pollfd of_set = {sets[i], POLLIN, 0};
        /* Sooner the kernel is not asked again where something else is told. */
        usleep(10);
        e.events = 0;
        check_eq(epoll_wait(sets[i], &e, 1, 0), p.revents != 0);
        check_eq(e.events, p.revents);
        check_eq(must(poll(&of_set, 1, 0)), p.revents != 0);
    }
    must(close(fresh));
}
/* Another request is not heard of before the first is answered. */
static void check_nothing_behind_a_full_queue(struct address *at, int listener, int in_listener) {
    int other = bound();
    begin_call(other, at);
    struct pollfd p = {listener, POLLIN, 0};
    check_eq(poll(&p, 1, 20), 0);
    check_in_sets(listener, in_listener);
}
CASE(sets_say_what_poll_says, "epoll(7)") {
    char byte;
    int client = open_endpoint(), in_client = set_of(client, EPOLLIN | EPOLLOUT), flags;
    check_in_sets(client, in_client);
    bind_at(client, unused_address(), 0);
    check_in_sets(client, in_client);
    struct address at = {0};
    int listener = listener_at(&at, 1), in_listener = set_of(listener, EPOLLIN | EPOLLOUT);
    check_in_sets(listener, in_listener);
    begin_call(client, &at);
    int sequence = listen_for(listener), server = open_endpoint(), in_server = set_of(server, EPOLLIN | EPOLLOUT);
    check_in_sets(listener, in_listener);
    check_nothing_behind_a_full_queue(&at, listener, in_listener);
    accept_at(listener, sequence, server);
    check_in_sets(listener, in_listener);
    check_in_sets(server, in_server);
    check_readable(client);
    check_in_sets(client, in_client);
    confirm(client);
    /* A few are by TCP, then it may be carried. */
    for (int i = 0; i < 200; i++) {
        snd(client, "x", 0);
        check_event(server, T_DATA);
        if (i % 50 == 0)
            check_in_sets(server, in_server);
        check_eq(t_rcv(server, &byte, 1, &flags), 1);
        if (i % 50 == 0)
            check_in_sets(server, in_server);
    }
    check_in_sets(client, in_client);
    if (is_in(ORD)) {
        check_ok(t_sndrel(client));
        check_event(server, T_ORDREL);
        check_in_sets(server, in_server);
        check_ok(t_rcvrel(server));
        check_in_sets(server, in_server);
    }
    if (!is_in(SCTP)) {
        check_ok(t_snddis(server, NULL));
        check_event(client, T_DISCONNECT);
        check_in_sets(client, in_client);
        check_ok(t_rcvdis(client, NULL));
    }
    check_in_sets(client, in_client);
    check_in_sets(server, in_server);
}

/* Nothing is left to be told, whatever the one who shut down has not read; and nothing wakes who waits for more. */
static void check_behind_a_shutdown(const char *link) {
    by(link);
    struct pair p = connected();
    struct pollfd in = {p.server, POLLIN, 0};
    int set = set_of(p.server, EPOLLIN);
    struct epoll_event event;
    snd(p.server, "not read", 0);
    check_event(p.client, T_DATA);
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_eq(epoll_wait(set, &event, 1, PATIENCE), 1);
    check_ok(t_rcvrel(p.server));
    for (int i = 0; i < 2; i++) {
        check_eq(poll(&in, 1, 50), 0);
        check_eq(epoll_wait(set, &event, 1, 0), 0);
        check_look(p.server, 0);
        if (i == 0)
            check_ok(t_close(p.client));
    }
    check_ok(t_sndrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(nothing_comes_behind_a_shutdown_shm, "RFC 9260 9.2") { check_behind_a_shutdown("shm"); }
CASE(nothing_comes_behind_a_shutdown_udp, "RFC 9260 9.2") { check_behind_a_shutdown("udp"); }

/* Each piece of a message has its flags, whichever thread takes it. */
static int torn;
static void take_pieces(void *arg) {
    char piece[4];
    int fd = *(int *)arg, flags, n;
    while ((n = t_rcv(fd, piece, sizeof piece, &flags)) > 0 && !memchr(piece, '.', n))
        __atomic_fetch_add(&torn, flags != T_MORE, __ATOMIC_SEQ_CST);
}
CASE(threads_share_messages_of_a_stream, "XNS 5.2 t_rcv() T_MORE") {
    struct pair p = connected();
    must(ioctl(p.server, I_PUSH, "nullmod"));
    torn = 0;
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        t[i] = start(take_pieces, &p.server);
    for (int i = 0; i < 200000; i++)
        snd(p.client, "abcdef", T_MORE);
    snd(p.client, "........", 0);
    for (int i = 0; i < 2; i++)
        finish(t[i]);
    check_eq(torn, 0);
}

SUITE(FOR(COTS, nothing_to_receive), FOR(ORD, nothing_to_receive_after_release), FOR(COTS, nowhere_to_send),
      FOR(COTS, mode_changes_at_any_time), FOR(COTS, mode_is_of_the_open_file), FOR(COTS, events_one_after_another),
      FOR(COTS, data_that_came_with_the_connection), FOR(COTS, disconnect_after_an_untaken_connection),
      FOR(ORD, release_of_an_untaken_connection), FOR(COTS, receive_interrupted), FOR(COTS, send_interrupted),
      FOR(LOOP, rcvconnect_interrupted), FOR(COTS, threads_serve_threads), FOR(COTS, threads_wait_for_one_endpoint),
      FOR(LOOP, threads_send_whole_tsdus), FOR(COTS, one_server_of_many_clients), FOR(COTS, many_clients_of_one_process),
      FOR(COTS, edge_triggered), FOR(COTS, sets_say_what_poll_says), FOR(LOOP, threads_share_messages_of_a_stream),
      FOR(SCTP, nothing_comes_behind_a_shutdown_shm), FOR(SCTP, nothing_comes_behind_a_shutdown_udp))
