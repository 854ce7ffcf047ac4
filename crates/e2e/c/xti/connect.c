/* Making connections: the active side, refusals, and what goes with a connect or a disconnect. */
#include "../streams/refuse.h"
#include "endpoints.h"

/* A thread that listens and accepts once. */
struct acceptor {
    int listener, delay, fd;
};
static void accept_once(void *with) {
    struct acceptor *a = with;
    sleep_ms(a->delay);
    a->fd = serve(a->listener);
}

/* --- connecting --- */

CASE(connect_waits, "XNS 5.2 t_connect()") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 30, -1};
    pthread_t t = start(accept_once, &a);
    int fd = bound();
    struct t_call call = call_to(&at);
    check_ok(t_connect(fd, &call, NULL));
    check_state(fd, T_DATAXFER);
    check_look(fd, 0);
    finish(t);
    check_state(a.fd, T_DATAXFER);
    check_state(a.listener, T_IDLE);
    check_echo(fd, a.fd);
}
CASE(connect_does_not_wait, "XNS 5.2 t_connect() TNODATA") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK);
    struct t_call call = call_to(&at);
    check_t(t_connect(fd, &call, NULL), TNODATA);
    check_state(fd, T_OUTCON);
    int server = serve(listener);
    check_event(fd, T_CONNECT);
    check_state(fd, T_OUTCON);
    check_ok(t_rcvconnect(fd, NULL));
    check_state(fd, T_DATAXFER);
    check_look(fd, 0);
    check_echo(fd, server);
}
CASE(connect_event_wakes_poll, "XNS 5.2 t_connect(), poll(2)") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    check_readable(fd);
    check_look(fd, T_CONNECT);
    check_look(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, NULL));
    check_eq(events(fd, POLLIN, 0), 0);
    check_echo(server, fd);
}
CASE(rcvconnect_too_early, "XNS 5.2 t_rcvconnect() TNODATA") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    check_t(t_rcvconnect(fd, NULL), TNODATA);
    check_state(fd, T_OUTCON);
    check_look(fd, 0);
    check_eq(events(fd, POLLIN, 0), 0);
    int server = serve(listener);
    confirm(fd);
    check_echo(fd, server);
}
CASE(rcvconnect_waits, "XNS 5.2 t_rcvconnect()") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 50, -1};
    int fd = connecting(&at);
    pthread_t t = start(accept_once, &a);
    set_nonblock(fd, 0);
    check_ok(t_rcvconnect(fd, NULL));
    check_state(fd, T_DATAXFER);
    finish(t);
    check_echo(fd, a.fd);
}
CASE(connect_says_who_answered, "XNS 5.2 t_connect() rcvcall") {
    struct address at, who;
    struct acceptor a = {listener_at(&at, 1), 0, -1};
    pthread_t t = start(accept_once, &a);
    int fd = bound();
    struct call call;
    struct t_call to = call_to(&at);
    check_ok(t_connect(fd, &to, roomy(&call)));
    who = address_of(&call.call.addr);
    check(same_address(&who, &at));
    check_eq(call.call.udata.len, 0);
    finish(t);
}
CASE(rcvconnect_says_who_answered, "XNS 5.2 t_rcvconnect()") {
    struct address at, who;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    struct call call;
    serve(listener);
    check_event(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, roomy(&call)));
    who = address_of(&call.call.addr);
    check(same_address(&who, &at));
    check_eq(call.call.udata.len, 0);
}
CASE(connect_from_a_chosen_address, "XNS 5.2 t_connect()") {
    struct address at, from, seen;
    int listener = listener_at(&at, 1), fd = open_flags(O_NONBLOCK);
    struct call call;
    struct t_call to = call_to(&at);
    from = bind_at(fd, unused_address(), 0);
    check_t(t_connect(fd, &to, NULL), TNODATA);
    must_t(t_listen(listener, roomy(&call)));
    seen = address_of(&call.call.addr);
    check(same_address(&seen, &from));
}
static void connect_and_talk(void *with) {
    int fd = connect_new(with);
    snd(fd, "from the child", 0);
    rcv(fd, "from the parent", 0);
}
CASE(connect_between_processes, "XNS 5.2 t_connect()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = spawn(connect_and_talk, &at);
    int fd = serve(listener);
    rcv(fd, "from the child", 0);
    snd(fd, "from the parent", 0);
    join(child);
}
CASE(connect_again_and_again, "XNS 5.2 t_connect()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK);
    struct t_call to = call_to(&at);
    for (int i = 0; i < 20; i++) {
        check_t(t_connect(fd, &to, NULL), TNODATA);
        int server = serve(listener);
        check_event(fd, T_CONNECT);
        check_ok(t_rcvconnect(fd, NULL));
        snd(fd, "again", 0);
        rcv(server, "again", 0);
        must_t(t_snddis(server, NULL));
        check_event(fd, T_DISCONNECT);
        check_ok(t_rcvdis(fd, NULL));
        check_state(fd, T_IDLE);
        must_t(t_close(server));
    }
}
CASE(connect_with_little_room, "XNS 5.2 t_connect() TBUFOVFLW") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 0, -1};
    pthread_t t = start(accept_once, &a);
    int fd = bound();
    char little[2] = "";
    struct t_call to = call_to(&at), got = {.addr = room(little, 1)};
    check_t(t_connect(fd, &to, &got), TBUFOVFLW);
    check_eq(little[1], 0);
    check_state(fd, T_DATAXFER);
    finish(t);
    check_echo(fd, a.fd);
}
CASE(rcvconnect_with_little_room, "XNS 5.2 t_rcvconnect() TBUFOVFLW") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    char little[1];
    struct t_call got = {.addr = room(little, 1)};
    check_event(fd, T_CONNECT);
    check_t(t_rcvconnect(fd, &got), TBUFOVFLW);
    check_state(fd, T_DATAXFER);
    set_nonblock(fd, 0);
    check_echo(fd, server);
}
CASE(connect_to_bad_addresses, "XNS 5.2 t_connect() TBADADDR") {
    int fd = bound();
    struct address at = {.len = 0};
    struct t_call to = call_to(&at);
    check_t(t_connect(fd, &to, NULL), TBADADDR);
    at.len = 1025;
    to = call_to(&at);
    check_t(t_connect(fd, &to, NULL), TBADADDR);
    check_state(fd, T_IDLE);
    if (is_in(TCP)) {
        at = inet_address("127.0.0.1", 1);
        to = call_to(&at), to.addr.len = 5;
        check_t(t_connect(fd, &to, NULL), TBADADDR);
        ((struct sockaddr *)(void *)at.at)->sa_family = 99;
        to = call_to(&at);
        check_t(t_connect(fd, &to, NULL), TBADADDR);
        check_state(fd, T_IDLE);
    }
}
CASE(connect_with_malformed_options, "XNS 5.2 t_connect() TBADOPT") {
    struct address at;
    listener_at(&at, 1);
    int fd = bound();
    struct t_call to = call_to(&at);
    to.opt = given_text("abc");
    check_t(t_connect(fd, &to, NULL), TBADOPT);
    struct t_opthdr wild = {.len = 4000, .level = XTI_GENERIC, .name = XTI_DEBUG};
    to.opt = given_bytes(&wild, sizeof wild);
    check_t(t_connect(fd, &to, NULL), TBADOPT);
    check_state(fd, T_IDLE);
}
CASE(connect_with_options, "XNS 5.2 t_connect() opt") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK);
    struct {
        struct t_opthdr header;
        t_uscalar_t value[2];
    } option = {{.len = sizeof(struct t_opthdr) + 4, .level = XTI_GENERIC, .name = XTI_SNDBUF}, {16384, 0}};
    struct t_call to = call_to(&at);
    to.opt = given_bytes(&option, option.header.len);
    check_t(t_connect(fd, &to, NULL), TNODATA);
    struct call heard, answer;
    must_t(t_listen(listener, roomy(&heard)));
    check(heard.call.opt.len <= sizeof heard.opt);
    int server = accepted(listener, heard.call.sequence);
    check_event(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, roomy(&answer)));
    for (struct t_opthdr *o = T_OPT_FIRSTHDR(&answer.call.opt); o; o = T_OPT_NEXTHDR(&answer.call.opt, o))
        check(o->len >= sizeof *o && o->len <= answer.call.opt.len);
    set_nonblock(fd, 0);
    check_echo(fd, server);
}
CASE(connect_on_a_listener_that_is_called, "XNS 5.2 t_connect() TLOOK") {
    struct address at;
    int listener = listener_at(&at, 1);
    connecting(&at);
    check_event(listener, T_LISTEN);
    struct t_call to = call_to(&at);
    check_t(t_connect(listener, &to, NULL), TLOOK);
    check_look(listener, T_LISTEN);
    check_state(listener, T_IDLE);
}
CASE(connect_interrupted, "XNS 5.2 t_connect() TSYSERR EINTR") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound();
    struct t_call to = call_to(&at);
    pid_t poker = start_poking(SIGUSR1);
    check_sys(t_connect(fd, &to, NULL), EINTR);
    end_poking(poker);
    check_state(fd, T_OUTCON);
    int server = serve(listener);
    check_ok(t_rcvconnect(fd, NULL));
    check_echo(fd, server);
}

/* What is lacking for a connection is told at once, and nobody was called. */
CASE(connect_for_want_of_a_descriptor, "XNS 5.2 t_connect() TSYSERR") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound();
    struct t_call to = call_to(&at);
    refuse(SYS_eventfd2, ENOMEM);
    check_sys(t_connect(fd, &to, NULL), ENOMEM);
    check_state(fd, T_IDLE);
    check_look(fd, 0);
    struct call call;
    set_nonblock(listener, 1);
    check_t(t_listen(listener, roomy(&call)), TNODATA);
}

/* --- refusals --- */

CASE(connect_refused, "XNS 5.2 t_connect() TLOOK") {
    struct address at = deserted_address();
    struct t_call to = call_to(&at);
    struct t_discon why = {.reason = -77};
    int fd = bound();
    for (int i = 0; i < 3; i++) {
        check_t(t_connect(fd, &to, NULL), TLOOK);
        check_look(fd, T_DISCONNECT);
        check_state(fd, T_OUTCON);
        check_ok(t_rcvdis(fd, &why));
        check(why.reason != -77);
        if (is_in(TCP))
            check_eq(why.reason, ECONNREFUSED);
        check_state(fd, T_IDLE);
        check_look(fd, 0);
    }
}
CASE(connect_refused_later, "XNS 5.2 t_connect() T_DISCONNECT") {
    struct address at = deserted_address();
    int fd = connecting(&at);
    check_readable(fd);
    check_event(fd, T_DISCONNECT);
    check_state(fd, T_OUTCON);
    check_t(t_rcvconnect(fd, NULL), TLOOK);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
    check_eq(events(fd, POLLIN, 0), 0);
}
CASE(connect_after_a_refusal, "XNS 5.2 t_connect()") {
    struct address nobody = deserted_address(), at;
    int listener = listener_at(&at, 1), fd = connecting(&nobody);
    check_event(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, NULL));
    struct t_call to = call_to(&at);
    check_t(t_connect(fd, &to, NULL), TNODATA);
    int server = serve(listener);
    confirm(fd);
    check_echo(fd, server);
}
CASE(connect_to_one_that_does_not_listen, "XNS 5.2 t_bind() qlen 0") {
    struct address at = bind_at(open_endpoint(), unused_address(), 0);
    int fd = connecting(&at);
    check_event(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
}
CASE(connect_rejected, "XNS 5.2 t_snddis()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    struct t_discon why = {.reason = -77};
    check_ok(reject(listener, listen_for(listener), NULL));
    check_state(listener, T_IDLE);
    check_disconnect(fd);
    check_ok(t_rcvdis(fd, &why));
    check(why.reason != -77);
    check_state(fd, T_IDLE);
}
static void connect_rejected_by(void *with) {
    struct t_call to = call_to(with);
    int fd = bound();
    check_t(t_connect(fd, &to, NULL), TLOOK);
    check_look(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
}
CASE(connect_rejected_while_waiting, "XNS 5.2 t_connect() TLOOK") {
    struct address at;
    int listener = listener_at(&at, 1);
    pthread_t t = start(connect_rejected_by, &at);
    check_ok(reject(listener, listen_for(listener), NULL));
    finish(t);
}
CASE(connect_rejected_with_data, "XNS 5.2 t_snddis() udata") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    char text[2000];
    struct t_discon why = {.udata = room(text, sizeof text)};
    check_ok(reject(listener, listen_for(listener), "come back tomorrow"));
    check_event(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, &why));
    check_netbuf(why.udata, "come back tomorrow");
}
CASE(connect_to_a_listener_that_closes, "XNS 5.2 t_close()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    check_event(listener, T_LISTEN);
    must_t(t_close(listener));
    check_disconnect(fd);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
}
CASE(connect_taken_back, "XNS 5.2 t_snddis()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    check_ok(t_snddis(fd, NULL));
    check_state(fd, T_IDLE);
    check_look(fd, 0);
    must_t(t_close(listener));
    struct t_call to = call_to(&at);
    check_t2(t_connect(fd, &to, NULL), TNODATA, TLOOK);
    check_event(fd, T_DISCONNECT);
}

/* --- user data of connect --- */

CASE(connect_carries_data, "XNS 5.2 t_connect() udata") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK), server = open_endpoint();
    struct t_call to = call_to(&at);
    struct call heard, answer;
    to.udata = given_text("let me in");
    check_t(t_connect(fd, &to, NULL), TNODATA);
    must_t(t_listen(listener, roomy(&heard)));
    check_netbuf(heard.call.udata, "let me in");
    struct t_call yes = {.udata = given_text("welcome"), .sequence = heard.call.sequence};
    check_ok(t_accept(listener, server, &yes));
    check_event(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, roomy(&answer)));
    check_netbuf(answer.call.udata, "welcome");
    set_nonblock(fd, 0);
    check_echo(fd, server);
}
static void accept_with_data(void *with) {
    struct call heard;
    struct acceptor *a = with;
    must_t(t_listen(a->listener, roomy(&heard)));
    struct t_call yes = {.udata = given_text("hello yourself"), .sequence = heard.call.sequence};
    a->fd = open_endpoint();
    must_t(t_accept(a->listener, a->fd, &yes));
}
CASE(connect_brings_data_back, "XNS 5.2 t_connect() rcvcall udata") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 0, -1};
    pthread_t t = start(accept_with_data, &a);
    int fd = bound();
    struct call answer;
    struct t_call to = call_to(&at);
    to.udata = given_text("hello");
    check_ok(t_connect(fd, &to, roomy(&answer)));
    check_netbuf(answer.call.udata, "hello yourself");
    finish(t);
}
CASE(connect_carries_most_data, "XNS 5.2 t_info connect") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK), server = open_endpoint();
    char most[1025];
    fill_wave(most, 0, sizeof most);
    struct t_call to = call_to(&at);
    struct call heard, answer;
    to.udata = given_bytes(most, 1025);
    check_t(t_connect(fd, &to, NULL), TBADDATA);
    check_state(fd, T_IDLE);
    to.udata = given_bytes(most, 1024);
    check_t(t_connect(fd, &to, NULL), TNODATA);
    must_t(t_listen(listener, roomy(&heard)));
    check_eq(heard.call.udata.len, 1024);
    check_wave(heard.udata, 0, 1024);
    struct t_call yes = {.udata = given_bytes(most, 1025), .sequence = heard.call.sequence};
    check_t(t_accept(listener, server, &yes), TBADDATA);
    check_state(listener, T_INCON);
    yes.udata = given_bytes(most, 1024);
    check_ok(t_accept(listener, server, &yes));
    check_event(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, roomy(&answer)));
    check_eq(answer.call.udata.len, 1024);
    check_wave(answer.udata, 0, 1024);
}
CASE(connect_with_unwanted_data, "XNS 5.2 t_connect() TBADDATA") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound_flags(O_NONBLOCK), server = open_endpoint();
    struct t_call to = call_to(&at);
    to.udata = given_text("x");
    check_t(t_connect(fd, &to, NULL), TBADDATA);
    check_state(fd, T_IDLE);
    to.udata.len = 0;
    check_t(t_connect(fd, &to, NULL), TNODATA);
    struct t_call yes = {.udata = given_text("x"), .sequence = listen_for(listener)};
    check_t(t_accept(listener, server, &yes), TBADDATA);
    check_state(listener, T_INCON);
    check_state(server, T_UNBND);
    yes.udata.len = 0;
    check_ok(t_accept(listener, server, &yes));
    confirm(fd);
    check_echo(fd, server);
}
CASE(connect_with_little_room_for_data, "XNS 5.2 t_rcvconnect() TBUFOVFLW") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 0, -1};
    pthread_t t = start(accept_with_data, &a);
    int fd = bound();
    char little[4] = "";
    struct t_call to = call_to(&at), got = {.udata = room(little, 3)};
    check_t(t_connect(fd, &to, &got), TBUFOVFLW);
    check_eq(little[3], 0);
    check_state(fd, T_DATAXFER);
    finish(t);
    check_echo(fd, a.fd);
}
CASE(connect_data_not_wanted, "XNS 5.2 t_connect() maxlen 0") {
    struct address at;
    struct acceptor a = {listener_at(&at, 1), 0, -1};
    pthread_t t = start(accept_with_data, &a);
    int fd = bound();
    struct t_call to = call_to(&at), got = {.sequence = 0};
    check_ok(t_connect(fd, &to, &got));
    check_eq(got.addr.len, 0);
    check_eq(got.udata.len, 0);
    finish(t);
    check_echo(fd, a.fd);
}

/* --- disconnecting --- */

CASE(disconnect_tells_the_peer, "XNS 5.2 t_snddis()") {
    struct pair p = connected();
    struct t_discon why = {.reason = -77};
    check_ok(t_snddis(p.client, NULL));
    check_state(p.client, T_IDLE);
    check_readable(p.server);
    check_event(p.server, T_DISCONNECT);
    check_state(p.server, T_DATAXFER);
    check_ok(t_rcvdis(p.server, &why));
    check(why.reason != -77);
    check_state(p.server, T_IDLE);
    check_look(p.server, 0);
    check_eq(events(p.server, POLLIN, 0), 0);
}
CASE(disconnect_by_the_server, "XNS 5.2 t_snddis()") {
    struct pair p = connected();
    struct t_call call = {.sequence = 12345};
    check_ok(t_snddis(p.server, &call));
    check_state(p.server, T_IDLE);
    check_event(p.client, T_DISCONNECT);
    check_ok(t_rcvdis(p.client, NULL));
    check_state(p.client, T_IDLE);
}
CASE(disconnect_has_a_reason, "XNS 5.2 t_rcvdis() reason") {
    struct pair p = connected();
    struct t_discon why = {.reason = -77};
    must_t(t_snddis(p.client, NULL));
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, &why));
    check_eq(why.reason, ECONNRESET);
    check_eq(why.udata.len, 0);
}
CASE(disconnect_carries_data, "XNS 5.2 t_snddis() udata") {
    struct pair p = connected();
    char text[2000];
    struct t_call bye = {.udata = given_text("good bye")};
    struct t_discon why = {.udata = room(text, sizeof text)};
    check_ok(t_snddis(p.client, &bye));
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, &why));
    check_netbuf(why.udata, "good bye");
}
CASE(disconnect_carries_most_data, "XNS 5.2 t_info discon") {
    struct pair p = connected();
    char most[1025], text[2000];
    fill_wave(most, 0, sizeof most);
    struct t_call bye = {.udata = given_bytes(most, 1025)};
    struct t_discon why = {.udata = room(text, sizeof text)};
    check_t(t_snddis(p.server, &bye), TBADDATA);
    check_state(p.server, T_DATAXFER);
    bye.udata = given_bytes(most, 1024);
    check_ok(t_snddis(p.server, &bye));
    check_event(p.client, T_DISCONNECT);
    check_ok(t_rcvdis(p.client, &why));
    check_eq(why.udata.len, 1024);
    check_wave(text, 0, 1024);
}
CASE(disconnect_with_unwanted_data, "XNS 5.2 t_snddis() TBADDATA") {
    struct pair p = connected();
    struct t_call bye = {.udata = given_text("x")};
    check_t(t_snddis(p.client, &bye), TBADDATA);
    check_state(p.client, T_DATAXFER);
    check_echo(p.client, p.server);
    bye.udata.len = 0;
    check_ok(t_snddis(p.client, &bye));
}
CASE(rcvdis_with_little_room, "XNS 5.2 t_rcvdis() TBUFOVFLW") {
    struct pair p = connected();
    char little[4] = "";
    struct t_call bye = {.udata = given_text("good bye")};
    struct t_discon why = {.udata = room(little, 3)};
    check_ok(t_snddis(p.client, &bye));
    check_event(p.server, T_DISCONNECT);
    check_t(t_rcvdis(p.server, &why), TBUFOVFLW);
    check_eq(little[3], 0);
    check_state(p.server, T_IDLE);
    check_look(p.server, 0);
    check_t(t_rcvdis(p.server, NULL), TOUTSTATE);
}
CASE(rcvdis_not_wanting_data, "XNS 5.2 t_rcvdis() maxlen 0") {
    struct pair p = connected();
    struct t_call bye = {.udata = given_text("good bye")};
    struct t_discon why = {.reason = -77};
    check_ok(t_snddis(p.client, &bye));
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, &why));
    check_eq(why.udata.len, 0);
    check_state(p.server, T_IDLE);
}
CASE(rcvdis_of_nothing, "XNS 5.2 t_rcvdis() TNODIS") {
    struct pair p = connected();
    check_t(t_rcvdis(p.client, NULL), TNODIS);
    check_t(t_rcvdis(p.server, NULL), TNODIS);
    snd(p.client, "data", 0);
    check_event(p.server, T_DATA);
    check_t(t_rcvdis(p.server, NULL), TNODIS);
    rcv(p.server, "data", 0);
    check_echo(p.client, p.server);
}
CASE(rcvdis_of_nothing_while_connecting, "XNS 5.2 t_rcvdis() TNODIS") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at);
    check_t(t_rcvdis(fd, NULL), TNODIS);
    check_state(fd, T_OUTCON);
    listen_for(listener);
    check_t(t_rcvdis(listener, NULL), TNODIS);
    check_state(listener, T_INCON);
}
CASE(disconnect_keeps_the_address, "XNS 5.2 t_snddis()") {
    struct pair p = connected();
    struct address before = own_address(p.client);
    check_ok(t_snddis(p.client, NULL));
    check_eq(peer_address(p.client).len, 0);
    struct address after = own_address(p.client);
    check(same_address(&before, &after));
    check_event(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, NULL));
    check_eq(peer_address(p.server).len, 0);
}
/* Whether or not the user knows of it yet. */
CASE(rejection_keeps_the_address, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), other = open_endpoint();
    struct address before = own_address(fd);
    struct t_bind there = {given(&before), 1};
    check_ok(reject(listener, listen_for(listener), NULL));
    check_t(t_bind(other, &there, NULL), TADDRBUSY);
    check_disconnect(fd);
    check_t(t_bind(other, &there, NULL), TADDRBUSY);
    check_ok(t_rcvdis(fd, NULL));
    check_t(t_bind(other, &there, NULL), TADDRBUSY);
    struct address after = own_address(fd);
    check(same_address(&before, &after));
}

SUITE(FOR(COTS, connect_waits), FOR(COTS, connect_does_not_wait), FOR(COTS, connect_event_wakes_poll),
      FOR(LOOP, rcvconnect_too_early), FOR(COTS, rcvconnect_waits), FOR(COTS, connect_says_who_answered),
      FOR(COTS, rcvconnect_says_who_answered), FOR(COTS, connect_from_a_chosen_address), FOR(COTS, connect_between_processes),
      FOR(COTS, connect_again_and_again), FOR(COTS, connect_with_little_room), FOR(COTS, rcvconnect_with_little_room),
      FOR(COTS, connect_to_bad_addresses), FOR(COTS, connect_with_malformed_options), FOR(COTS, connect_with_options),
      FOR(COTS, connect_on_a_listener_that_is_called), FOR(LOOP, connect_interrupted), FOR(LOOP, connect_for_want_of_a_descriptor), FOR(COTS, connect_refused),
      FOR(COTS, connect_refused_later), FOR(COTS, connect_after_a_refusal), FOR(COTS, connect_to_one_that_does_not_listen),
      FOR(COTS, connect_rejected), FOR(LOOP, connect_rejected_while_waiting), FOR(LOOP, connect_rejected_with_data),
      FOR(COTS, connect_to_a_listener_that_closes), FOR(COTS, connect_taken_back), FOR(LOOP, connect_carries_data),
      FOR(LOOP, connect_brings_data_back), FOR(LOOP, connect_carries_most_data), FOR(TCP, connect_with_unwanted_data),
      FOR(LOOP, connect_with_little_room_for_data), FOR(LOOP, connect_data_not_wanted), FOR(COTS, disconnect_tells_the_peer),
      FOR(COTS, disconnect_by_the_server), FOR(TCP, disconnect_has_a_reason), FOR(LOOP, disconnect_carries_data),
      FOR(LOOP, disconnect_carries_most_data), FOR(TCP, disconnect_with_unwanted_data), FOR(LOOP, rcvdis_with_little_room),
      FOR(LOOP, rcvdis_not_wanting_data), FOR(COTS, rcvdis_of_nothing), FOR(LOOP, rcvdis_of_nothing_while_connecting),
      FOR(COTS, disconnect_keeps_the_address),
      FOR(COTS, rejection_keeps_the_address))
