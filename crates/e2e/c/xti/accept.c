/* Listening and accepting: several calls at once, the accepting endpoint, rejection, and calls that are taken back. */
#include "endpoints.h"

/* A listener with `n` clients that have called, in this order. */
struct calls {
    struct address at, from[8];
    int listener, client[8];
};
static struct calls called(unsigned qlen, int n) {
    struct calls c;
    c.listener = listener_at(&c.at, qlen);
    for (int i = 0; i < n; i++) {
        c.client[i] = connecting(&c.at);
        c.from[i] = own_address(c.client[i]);
    }
    return c;
}
/* t_accept may fail with TLOOK while another call waits to be listened to; else it has to work. */
static int accepted_or_look(int listener, int sequence) {
    int fd = open_endpoint();
    struct t_call call = {.sequence = sequence};
    if (t_accept(listener, fd, &call) == 0)
        return fd;
    if (t_errno != TLOOK || t_look(listener) != T_LISTEN)
        fail("t_accept: expected success, or TLOOK for T_LISTEN, saw %s", fault());
    t_close(fd);
    return -1;
}

/* --- t_listen --- */

CASE(listen_says_who_calls, "XNS 5.2 t_listen()") {
    struct calls c = called(1, 1);
    struct call call;
    check_ok(t_listen(c.listener, roomy(&call)));
    check_state(c.listener, T_INCON);
    struct address from = address_of(&call.call.addr);
    check(same_address(&from, &c.from[0]));
    check_eq(call.call.udata.len, 0);
    check(call.call.sequence != -77);
    check(call.call.sequence != -1);
}
CASE(listen_event, "XNS 5.2 t_look() T_LISTEN") {
    struct calls c = called(2, 1);
    check_readable(c.listener);
    check_look(c.listener, T_LISTEN);
    check_look(c.listener, T_LISTEN);
    check_state(c.listener, T_IDLE);
    listen_for(c.listener);
    check_look(c.listener, 0);
    check_eq(events(c.listener, POLLIN, 0), 0);
}
CASE(listen_finds_nobody, "XNS 5.2 t_listen() TNODATA") {
    struct address at;
    struct call call;
    int listener = listener_at(&at, 1);
    set_nonblock(listener, 1);
    check_t(t_listen(listener, roomy(&call)), TNODATA);
    check_state(listener, T_IDLE);
    check_eq(events(listener, POLLIN, 0), 0);
}
static void call_later(void *with) {
    sleep_ms(50);
    connecting(with);
}
CASE(listen_waits, "XNS 5.2 t_listen()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pthread_t t = start(call_later, &at);
    listen_for(listener);
    check_state(listener, T_INCON);
    finish(t);
}
CASE(listen_without_a_queue, "XNS 5.2 t_listen() TBADQLEN") {
    struct call call;
    int fd = bound();
    check_t(t_listen(fd, roomy(&call)), TBADQLEN);
    check_state(fd, T_IDLE);
}
CASE(listen_with_little_room, "XNS 5.2 t_listen() TBUFOVFLW") {
    struct calls c = called(1, 1);
    char little[2] = "";
    struct t_call call = {.addr = room(little, 1), .sequence = -77};
    check_t(t_listen(c.listener, &call), TBUFOVFLW);
    check_eq(little[1], 0);
    check_state(c.listener, T_INCON);
    check(call.sequence != -77);
    check_ok(reject(c.listener, call.sequence, NULL));
    check_state(c.listener, T_IDLE);
    check_disconnect(c.client[0]);
}
CASE(listen_accept_after_little_room, "XNS 5.2 t_listen() TBUFOVFLW") {
    struct calls c = called(1, 1);
    char little[1];
    struct t_call call = {.addr = room(little, 1)};
    check_t(t_listen(c.listener, &call), TBUFOVFLW);
    int server = accepted(c.listener, call.sequence);
    confirm(c.client[0]);
    check_echo(c.client[0], server);
}
CASE(listen_not_wanting_the_address, "XNS 5.2 t_listen() maxlen 0") {
    struct calls c = called(1, 1);
    struct t_call call = {.sequence = -77};
    check_ok(t_listen(c.listener, &call));
    check_eq(call.addr.len, 0);
    int server = accepted(c.listener, call.sequence);
    confirm(c.client[0]);
    check_echo(server, c.client[0]);
}
/* Of who can't be listened to now poll(2) says nothing, and it does as soon as he can. */
CASE(poll_with_a_full_queue, "XNS 5.2 t_listen() TQFULL, poll(2)") {
    struct calls c = called(1, 3);
    struct pollfd p = {c.listener, POLLIN, 0};
    for (int i = 0; i < 3; i++) {
        check_readable(c.listener);
        int sequence = listen_for(c.listener);
        check_eq(poll(&p, 1, 0), 0);
        if (i == 1)
            check_ok(t_snddis(c.listener, &(struct t_call){.sequence = sequence}));
        else
            accepted(c.listener, sequence);
    }
    check_eq(poll(&p, 1, 0), 0);
}
CASE(listen_with_a_full_queue, "XNS 5.2 t_listen() TQFULL") {
    struct calls c = called(2, 2);
    struct call call;
    int first = listen_for(c.listener), second = listen_for(c.listener);
    check(first != second);
    check_t(t_listen(c.listener, roomy(&call)), TQFULL);
    check_state(c.listener, T_INCON);
    int a = accepted(c.listener, first), b = accepted(c.listener, second);
    confirm(c.client[0]);
    confirm(c.client[1]);
    check_echo(c.client[0], a);
    check_echo(c.client[1], b);
}
CASE(listen_in_order_of_arrival, "XNS 5.2 t_listen()") {
    struct calls c = called(8, 8);
    for (int i = 0; i < 8; i++) {
        struct call call;
        check_ok(t_listen(c.listener, roomy(&call)));
        struct address from = address_of(&call.call.addr);
        check(same_address(&from, &c.from[i]));
    }
    check_state(c.listener, T_INCON);
}
CASE(listen_interrupted, "XNS 5.2 t_listen() TSYSERR EINTR") {
    struct address at;
    struct call call;
    int listener = listener_at(&at, 1);
    pid_t poker = start_poking(SIGUSR1);
    check_sys(t_listen(listener, roomy(&call)), EINTR);
    end_poking(poker);
    check_state(listener, T_IDLE);
}

/* --- the accepting endpoint --- */

CASE(accept_on_an_unbound_one, "XNS 5.2 t_accept()") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener), fd = open_endpoint();
    struct t_call call = {.sequence = sequence};
    check_ok(t_accept(c.listener, fd, &call));
    check_state(fd, T_DATAXFER);
    check_state(c.listener, T_IDLE);
    struct address own = own_address(fd), peer = peer_address(fd);
    check(same_address(&own, &c.at));
    check(same_address(&peer, &c.from[0]));
    confirm(c.client[0]);
    check_echo(c.client[0], fd);
}
CASE(accept_on_a_bound_one, "XNS 5.2 t_accept()") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener), fd = bound();
    struct t_call call = {.sequence = sequence};
    if (t_accept(c.listener, fd, &call) < 0) {
        check(is_in(TCP));
        check_eq(t_errno, TRESADDR);
        check_state(c.listener, T_INCON);
        check_state(fd, T_IDLE);
        fd = accepted(c.listener, sequence);
    }
    check_state(fd, T_DATAXFER);
    confirm(c.client[0]);
    check_echo(c.client[0], fd);
}
CASE(accept_on_the_listener, "XNS 5.2 t_accept() fd == resfd") {
    struct calls c = called(1, 1);
    struct t_call call = {.sequence = listen_for(c.listener)};
    check_ok(t_accept(c.listener, c.listener, &call));
    check_state(c.listener, T_DATAXFER);
    confirm(c.client[0]);
    check_echo(c.client[0], c.listener);
}
CASE(accept_on_the_listener_again, "XNS 5.2 t_accept() fd == resfd") {
    struct address at;
    int listener = listener_at(&at, 1);
    for (int i = 0; i < 3; i++) {
        int client = connecting(&at);
        struct t_call call = {.sequence = listen_for(listener)};
        check_ok(t_accept(listener, listener, &call));
        confirm(client);
        check_echo(client, listener);
        check_ok(t_snddis(client, NULL));
        check_event(listener, T_DISCONNECT);
        check_ok(t_rcvdis(listener, NULL));
        check_state(listener, T_IDLE);
        must_t(t_close(client));
    }
}
CASE(accept_on_the_listener_after_release, "XNS 5.2 t_accept() fd == resfd") {
    struct address at;
    int listener = listener_at(&at, 1);
    for (int i = 0; i < 3; i++) {
        int client = connecting(&at);
        struct t_call call = {.sequence = listen_for(listener)};
        check_ok(t_accept(listener, listener, &call));
        confirm(client);
        must_t(t_sndrel(client));
        check_event(listener, T_ORDREL);
        must_t(t_rcvrel(listener));
        must_t(t_sndrel(listener));
        check_event(client, T_ORDREL);
        must_t(t_rcvrel(client));
        check_state(listener, T_IDLE);
        must_t(t_close(client));
    }
}
CASE(accept_on_the_listener_with_others_heard, "XNS 5.2 t_accept() TINDOUT") {
    struct calls c = called(3, 2);
    int first = listen_for(c.listener), second = listen_for(c.listener);
    struct t_call call = {.sequence = first};
    check_t(t_accept(c.listener, c.listener, &call), TINDOUT);
    check_state(c.listener, T_INCON);
    check_ok(reject(c.listener, second, NULL));
    check_ok(t_accept(c.listener, c.listener, &call));
    confirm(c.client[0]);
    check_echo(c.client[0], c.listener);
}
CASE(accept_on_the_listener_with_others_waiting, "XNS 5.2 t_accept() TLOOK") {
    struct calls c = called(3, 2);
    int first = listen_for(c.listener);
    check_event(c.listener, T_LISTEN);
    struct t_call call = {.sequence = first};
    check_t2(t_accept(c.listener, c.listener, &call), TLOOK, TINDOUT);
    check_state(c.listener, T_INCON);
    check_ok(reject(c.listener, listen_for(c.listener), NULL));
    check_ok(t_accept(c.listener, c.listener, &call));
    confirm(c.client[0]);
}
CASE(accept_on_a_listener_of_ones_own, "XNS 5.2 t_accept() TRESQLEN") {
    struct calls c = called(1, 1);
    struct address other;
    int sequence = listen_for(c.listener), fd = listener_at(&other, 1);
    struct t_call call = {.sequence = sequence};
    check_t(t_accept(c.listener, fd, &call), TRESQLEN);
    check_state(c.listener, T_INCON);
    check_state(fd, T_IDLE);
    int server = accepted(c.listener, sequence);
    confirm(c.client[0]);
    check_echo(c.client[0], server);
}
CASE(accept_on_a_connected_one, "XNS 5.2 t_accept() TOUTSTATE") {
    struct pair p = connected();
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    struct t_call call = {.sequence = sequence};
    check_t(t_accept(c.listener, p.server, &call), TOUTSTATE);
    check_state(c.listener, T_INCON);
    check_state(p.server, T_DATAXFER);
    check_echo(p.client, p.server);
    accepted(c.listener, sequence);
}
CASE(accept_on_another_provider, "XNS 5.2 t_accept() TPROVMISMATCH") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    struct t_call call = {.sequence = sequence};
    for (size_t i = 0; i < PROVIDERS; i++) {
        char path[40];
        snprintf(path, sizeof path, "/dev/%s", providers[i].name);
        if (&providers[i] == provider)
            continue;
        int fd = must_t(t_open(path, O_RDWR, NULL));
        check_t(t_accept(c.listener, fd, &call), TPROVMISMATCH);
        check_state(fd, T_UNBND);
        check_state(c.listener, T_INCON);
    }
    accepted(c.listener, sequence);
}
CASE(accept_on_no_endpoint, "XNS 5.2 t_accept() TBADF") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    struct t_call call = {.sequence = sequence};
    check_t(t_accept(c.listener, -1, &call), TBADF);
    check_t(t_accept(c.listener, 987, &call), TBADF);
    check_t(t_accept(c.listener, must(open("/dev/null", O_RDWR)), &call), TBADF);
    check_state(c.listener, T_INCON);
    accepted(c.listener, sequence);
}
CASE(accept_with_a_bad_sequence, "XNS 5.2 t_accept() TBADSEQ") {
    struct calls c = called(2, 1);
    int sequence = listen_for(c.listener), fd = open_endpoint();
    struct t_call call = {.sequence = sequence + 1000};
    check_t(t_accept(c.listener, fd, &call), TBADSEQ);
    call.sequence = -1;
    check_t(t_accept(c.listener, fd, &call), TBADSEQ);
    check_state(c.listener, T_INCON);
    check_state(fd, T_UNBND);
    accept_at(c.listener, sequence, fd);
    call.sequence = sequence;
    check_t(t_accept(c.listener, open_endpoint(), &call), TOUTSTATE);
}
CASE(accept_twice, "XNS 5.2 t_accept() TBADSEQ") {
    struct calls c = called(2, 2);
    int first = listen_for(c.listener);
    listen_for(c.listener);
    accepted(c.listener, first);
    struct t_call call = {.sequence = first};
    check_t(t_accept(c.listener, open_endpoint(), &call), TBADSEQ);
    check_state(c.listener, T_INCON);
}
CASE(accept_before_listening, "XNS 5.2 t_accept() TOUTSTATE") {
    struct calls c = called(1, 1);
    struct t_call call = {.sequence = 1};
    int fd = open_endpoint();
    check_event(c.listener, T_LISTEN);
    check_t(t_accept(c.listener, fd, &call), TOUTSTATE);
    check_state(fd, T_UNBND);
    check_event(c.listener, T_LISTEN);
}
CASE(accept_keeps_the_mode, "XNS 5.2 t_accept() O_NONBLOCK") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener), fd = open_flags(O_NONBLOCK), flags;
    char text[10];
    accept_at(c.listener, sequence, fd);
    check(fcntl(fd, F_GETFL) & O_NONBLOCK);
    check_t(t_rcv(fd, text, sizeof text, &flags), TNODATA);
    check(!(fcntl(c.listener, F_GETFL) & O_NONBLOCK));
}
CASE(accept_without_a_delay, "XNS 5.2 t_accept() O_NONBLOCK") {
    struct calls c = called(1, 1);
    set_nonblock(c.listener, 1);
    check_event(c.listener, T_LISTEN);
    int server = serve(c.listener);
    confirm(c.client[0]);
    check_echo(c.client[0], server);
}
CASE(accept_with_malformed_options, "XNS 5.2 t_accept() TBADOPT") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener), fd = open_endpoint();
    struct t_call call = {.opt = given_text("abc"), .sequence = sequence};
    check_t(t_accept(c.listener, fd, &call), TBADOPT);
    check_state(c.listener, T_INCON);
    accept_at(c.listener, sequence, fd);
}
CASE(accept_closes_on_exec_as_it_did, "XNS 5.2 t_accept()") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener), fd = open_endpoint();
    must(fcntl(fd, F_SETFD, FD_CLOEXEC));
    accept_at(c.listener, sequence, fd);
    check_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

/* --- several calls --- */

CASE(accept_in_any_order, "XNS 5.2 t_accept()") {
    static const int order[3] = {1, 2, 0};
    struct calls c = called(3, 3);
    int sequence[3], server[3];
    for (int i = 0; i < 3; i++)
        sequence[i] = listen_for(c.listener);
    for (int i = 0; i < 3; i++) {
        check_state(c.listener, T_INCON);
        server[order[i]] = accepted(c.listener, sequence[order[i]]);
    }
    check_state(c.listener, T_IDLE);
    for (int i = 0; i < 3; i++) {
        confirm(c.client[i]);
        struct address peer = peer_address(server[i]);
        check(same_address(&peer, &c.from[i]));
        check_echo(c.client[i], server[i]);
    }
}
CASE(accept_while_others_call, "XNS 5.2 t_accept() TLOOK") {
    struct calls c = called(4, 3);
    int sequence[3], server[3], heard = 0, done = 0;
    while (done < 3) {
        if (heard == done)
            sequence[heard++] = listen_for(c.listener);
        server[done] = accepted_or_look(c.listener, sequence[done]);
        if (server[done] >= 0)
            done++;
        else
            sequence[heard++] = listen_for(c.listener);
    }
    check_state(c.listener, T_IDLE);
    for (int i = 0; i < 3; i++) {
        confirm(c.client[i]);
        check_echo(c.client[i], server[i]);
    }
}
CASE(accept_some_reject_some, "XNS 5.2 t_snddis()") {
    struct calls c = called(3, 3);
    int sequence[3];
    for (int i = 0; i < 3; i++)
        sequence[i] = listen_for(c.listener);
    check_ok(reject(c.listener, sequence[1], NULL));
    check_state(c.listener, T_INCON);
    int server = accepted(c.listener, sequence[2]);
    check_state(c.listener, T_INCON);
    check_ok(reject(c.listener, sequence[0], NULL));
    check_state(c.listener, T_IDLE);
    check_disconnect(c.client[0]);
    check_disconnect(c.client[1]);
    confirm(c.client[2]);
    check_echo(server, c.client[2]);
}
CASE(reject_with_a_bad_sequence, "XNS 5.2 t_snddis() TBADSEQ") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    check_t(reject(c.listener, sequence + 1000, NULL), TBADSEQ);
    check_t(t_snddis(c.listener, NULL), TBADSEQ);
    check_state(c.listener, T_INCON);
    check_ok(reject(c.listener, sequence, NULL));
    check_t(reject(c.listener, sequence, NULL), TOUTSTATE);
}
CASE(serve_one_after_another, "XNS 5.2 t_listen()") {
    struct address at;
    int listener = listener_at(&at, 1), used[20];
    for (int i = 0; i < 20; i++) {
        int client = connecting(&at);
        struct call call;
        check_ok(t_listen(listener, roomy(&call)));
        used[i] = call.call.sequence;
        int server = accepted(listener, used[i]);
        confirm(client);
        check_echo(client, server);
        must_t(t_close(client));
        check_gone(server);
        must_t(t_close(server));
    }
    check_state(listener, T_IDLE);
}
static void call_until_accepted(void *with) {
    int fd = bound();
    struct t_call to = call_to(with);
    for (;;) {
        if (t_connect(fd, &to, NULL) == 0)
            break;
        check_eq(t_errno, TLOOK);
        check_look(fd, T_DISCONNECT);
        must_t(t_rcvdis(fd, NULL));
        sleep_ms(5);
    }
    snd(fd, "served?", 0);
    rcv(fd, "served.", 0);
}
CASE(more_callers_than_the_queue_is_long, "XNS 5.2 t_bind() qlen") {
    struct address at;
    int listener = listener_at(&at, 2);
    pid_t child[6];
    for (int i = 0; i < 6; i++)
        child[i] = spawn(call_until_accepted, &at);
    for (int i = 0; i < 6; i++) {
        int sequence = listen_for(listener), fd;
        while ((fd = accepted_or_look(listener, sequence)) < 0)
            check_ok(reject(listener, listen_for(listener), NULL));
        rcv(fd, "served?", 0);
        snd(fd, "served.", 0);
    }
    for (int i = 0; i < 6; i++)
        join(child[i]);
}
CASE(listeners_of_one_process, "XNS 5.2 t_listen()") {
    struct calls a = called(1, 1), b = called(1, 1);
    int second = serve(b.listener), first = serve(a.listener);
    confirm(a.client[0]);
    confirm(b.client[0]);
    check_echo(a.client[0], first);
    check_echo(b.client[0], second);
}

/* --- calls that end --- */

CASE(caller_leaves_after_being_heard, "XNS 5.2 t_listen() T_DISCONNECT") {
    struct calls c = called(2, 1);
    int sequence = listen_for(c.listener), fd = open_endpoint();
    struct t_discon why = {.sequence = -77};
    check_ok(t_snddis(c.client[0], NULL));
    check_event(c.listener, T_DISCONNECT);
    check_state(c.listener, T_INCON);
    struct t_call call = {.sequence = sequence};
    struct call next;
    check_t(t_accept(c.listener, fd, &call), TLOOK);
    check_t(t_listen(c.listener, roomy(&next)), TLOOK);
    check_state(fd, T_UNBND);
    check_ok(t_rcvdis(c.listener, &why));
    check_eq(why.sequence, sequence);
    check_state(c.listener, T_IDLE);
    check_look(c.listener, 0);
}
CASE(caller_leaves_with_data, "XNS 5.2 t_rcvdis()") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    char text[1100];
    struct t_call bye = {.udata = given_text("too slow")};
    struct t_discon why = {.udata = room(text, sizeof text)};
    check_ok(t_snddis(c.client[0], &bye));
    check_event(c.listener, T_DISCONNECT);
    check_ok(t_rcvdis(c.listener, &why));
    check_eq(why.sequence, sequence);
    if (why.udata.len)
        check_netbuf(why.udata, "too slow");
}
CASE(one_of_several_callers_leaves, "XNS 5.2 t_rcvdis() sequence") {
    struct calls c = called(3, 3);
    int sequence[3];
    struct t_discon why;
    memset(&why, 0, sizeof why);
    for (int i = 0; i < 3; i++)
        sequence[i] = listen_for(c.listener);
    must_t(t_close(c.client[1]));
    check_event(c.listener, T_DISCONNECT);
    check_ok(t_rcvdis(c.listener, &why));
    check_eq(why.sequence, sequence[1]);
    check_state(c.listener, T_INCON);
    struct t_call call = {.sequence = sequence[1]};
    check_t(t_accept(c.listener, open_endpoint(), &call), TBADSEQ);
    int a = accepted(c.listener, sequence[0]), b = accepted(c.listener, sequence[2]);
    check_state(c.listener, T_IDLE);
    confirm(c.client[0]);
    confirm(c.client[2]);
    check_echo(c.client[0], a);
    check_echo(c.client[2], b);
}
CASE(caller_leaves_before_being_heard, "XNS 5.2 t_listen()") {
    struct calls c = called(2, 1);
    check_event(c.listener, T_LISTEN);
    check_ok(t_snddis(c.client[0], NULL));
    set_nonblock(c.listener, 1);
    struct call call;
    if (t_listen(c.listener, roomy(&call)) == 0) {
        check_event(c.listener, T_DISCONNECT);
        check_ok(t_rcvdis(c.listener, NULL));
    } else if (t_errno == TLOOK)
        check_ok(t_rcvdis(c.listener, NULL));
    check_state(c.listener, T_IDLE);
    check_t(t_listen(c.listener, roomy(&call)), TNODATA);
    int next = connecting(&c.at), server = serve(c.listener);
    confirm(next);
    check_echo(next, server);
}
static void call_and_stay(void *with) {
    connecting(with);
    sleep_ms(100000);
}
CASE(caller_is_killed, "XNS 5.2 t_rcvdis()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = spawn(call_and_stay, &at);
    int sequence = listen_for(listener);
    struct t_discon why = {.sequence = -77};
    slay(child);
    long begun = now_ms();
    check_event(listener, T_DISCONNECT);
    check(now_ms() - begun < 2000);
    check_ok(t_rcvdis(listener, &why));
    check_eq(why.sequence, sequence);
    check_state(listener, T_IDLE);
}
CASE(listener_closes_with_calls_heard, "XNS 5.2 t_close()") {
    struct calls c = called(2, 2);
    listen_for(c.listener);
    must_t(t_close(c.listener));
    for (int i = 0; i < 2; i++) {
        check_disconnect(c.client[i]);
        check_ok(t_rcvdis(c.client[i], NULL));
        check_state(c.client[i], T_IDLE);
    }
}
CASE(connections_outlive_the_listener, "XNS 5.2 t_close()") {
    struct pair p = connected();
    must_t(t_close(p.listener));
    check_echo(p.client, p.server);
    int fd = connecting(&p.at);
    check_event(fd, T_DISCONNECT);
    check_echo(p.client, p.server);
}
CASE(unbind_with_a_call_waiting, "XNS 5.2 t_unbind() TLOOK") {
    struct calls c = called(1, 1);
    check_event(c.listener, T_LISTEN);
    check_t(t_unbind(c.listener), TLOOK);
    check_state(c.listener, T_IDLE);
    check_look(c.listener, T_LISTEN);
    int server = serve(c.listener);
    confirm(c.client[0]);
    check_echo(c.client[0], server);
}
CASE(unbind_with_a_call_heard, "XNS 5.2 t_unbind() TOUTSTATE") {
    struct calls c = called(1, 1);
    int sequence = listen_for(c.listener);
    check_t(t_unbind(c.listener), TOUTSTATE);
    accepted(c.listener, sequence);
    check_ok(t_unbind(c.listener));
    int fd = connecting(&c.at);
    check_event(fd, T_DISCONNECT);
}
CASE(data_sent_before_the_accept, "XNS 5.2 t_accept()") {
    struct calls c = called(1, 1);
    confirm(c.client[0]);
    snd(c.client[0], "early", 0);
    int server = serve(c.listener);
    rcv(server, "early", 0);
    check_echo(server, c.client[0]);
}

SUITE(FOR(COTS, listen_says_who_calls), FOR(COTS, listen_event), FOR(COTS, listen_finds_nobody), FOR(COTS, listen_waits),
      FOR(COTS, listen_without_a_queue), FOR(COTS, listen_with_little_room), FOR(COTS, listen_accept_after_little_room),
      FOR(COTS, listen_not_wanting_the_address), FOR(COTS, poll_with_a_full_queue), FOR(COTS, listen_with_a_full_queue), FOR(COTS, listen_in_order_of_arrival),
      FOR(COTS, listen_interrupted), FOR(COTS, accept_on_an_unbound_one), FOR(COTS, accept_on_a_bound_one),
      FOR(COTS, accept_on_the_listener), FOR(COTS, accept_on_the_listener_again), FOR(ORD, accept_on_the_listener_after_release),
      FOR(COTS, accept_on_the_listener_with_others_heard), FOR(COTS, accept_on_the_listener_with_others_waiting),
      FOR(COTS, accept_on_a_listener_of_ones_own), FOR(COTS, accept_on_a_connected_one), FOR(COTS, accept_on_another_provider),
      FOR(COTS, accept_on_no_endpoint), FOR(COTS, accept_with_a_bad_sequence), FOR(COTS, accept_twice),
      FOR(COTS, accept_before_listening), FOR(COTS, accept_keeps_the_mode), FOR(COTS, accept_without_a_delay),
      FOR(COTS, accept_with_malformed_options), FOR(COTS, accept_closes_on_exec_as_it_did), FOR(COTS, accept_in_any_order),
      FOR(COTS, accept_while_others_call), FOR(COTS, accept_some_reject_some), FOR(COTS, reject_with_a_bad_sequence),
      FOR(COTS, serve_one_after_another), FOR(LOOP, more_callers_than_the_queue_is_long), FOR(COTS, listeners_of_one_process),
      FOR(LOOP, caller_leaves_after_being_heard), FOR(LOOP, caller_leaves_with_data), FOR(LOOP, one_of_several_callers_leaves),
      FOR(LOOP, caller_leaves_before_being_heard), FOR(LOOP, caller_is_killed), FOR(COTS, listener_closes_with_calls_heard),
      FOR(COTS, connections_outlive_the_listener), FOR(COTS, unbind_with_a_call_waiting), FOR(COTS, unbind_with_a_call_heard),
      FOR(TCP, data_sent_before_the_accept))
