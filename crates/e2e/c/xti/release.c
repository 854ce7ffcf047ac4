/* The end of a connection: orderly release, and every other end. */
#include "endpoints.h"

/* --- orderly release --- */

CASE(release_step_by_step, "XNS 5.2 t_sndrel(), t_rcvrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_state(p.client, T_OUTREL);
    check_event(p.server, T_ORDREL);
    check_state(p.server, T_DATAXFER);
    check_ok(t_rcvrel(p.server));
    check_state(p.server, T_INREL);
    check_look(p.server, 0);
    check_ok(t_sndrel(p.server));
    check_state(p.server, T_IDLE);
    check_event(p.client, T_ORDREL);
    check_state(p.client, T_OUTREL);
    check_ok(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
    check_look(p.client, 0);
    check_look(p.server, 0);
}
CASE(release_keeps_the_address, "XNS 5.2 t_rcvrel()") {
    struct pair p = connected();
    struct address before = own_address(p.client), after;
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_ok(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
    after = own_address(p.client);
    check(same_address(&before, &after));
}
CASE(release_by_the_server, "XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
    check_state(p.client, T_IDLE);
}
/* What is to be seen stays to be seen while the peer goes on. */
static void release_often(void *to) {
    struct t_call call = call_to(to);
    for (int i = 0; i < 300; i++) {
        int fd = bound();
        must_t(t_connect(fd, &call, NULL));
        must_t(t_sndrel(fd));
        int event;
        while ((event = t_look(fd)) == 0)
            ;
        for (int k = 0; k < 20000 && event == T_ORDREL; k++)
            event = t_look(fd);
        check_eq(event, T_ORDREL);
        must_t(t_rcvrel(fd));
        must_t(t_close(fd));
    }
}
CASE(release_seen_stays, "XNS 5.2 t_look(), t_rcvrel()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = spawn(release_often, &at);
    for (int i = 0; i < 300; i++) {
        int fd = accepted(listener, listen_for(listener));
        check_event(fd, T_ORDREL);
        must_t(t_rcvrel(fd));
        must_t(t_sndrel(fd));
        must_t(t_close(fd));
    }
    join(child);
}
CASE(release_at_once, "XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_ok(t_sndrel(p.server));
    check_state(p.server, T_OUTREL);
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(release_one_way, "XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    for (int i = 0; i < 10; i++) {
        snd(p.server, "still talking", 0);
        rcv(p.client, "still talking", 0);
    }
    check_state(p.client, T_OUTREL);
    check_state(p.server, T_INREL);
    check_ok(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
}
CASE(release_not_taken_yet, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    if (is_in(SCTP)) {
        check_t(snd_text(p.server, "sent in T_DATAXFER", 0), TLOOK);
    } else {
        snd(p.server, "sent in T_DATAXFER", 0);
        rcv(p.client, "sent in T_DATAXFER", 0);
    }
    check_state(p.server, T_DATAXFER);
    check_event(p.server, T_ORDREL);
}
CASE(release_after_the_data, "XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    snd(p.client, "first", 0);
    snd(p.client, "second", 0);
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_DATA);
    check_t(t_rcvrel(p.server), TNOREL);
    rcv(p.server, "first", 0);
    check_event(p.server, T_DATA);
    rcv(p.server, "second", 0);
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
}
CASE(release_looks_from_rcv, "XNS 5.2 t_rcv() TLOOK") {
    struct pair p = connected();
    char text[20];
    struct t_iovec v = {text, sizeof text};
    int flags;
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_t(t_rcv(p.server, text, sizeof text, &flags), TLOOK);
    check_t(t_rcvv(p.server, &v, 1, &flags), TLOOK);
    check_look(p.server, T_ORDREL);
    check_state(p.server, T_DATAXFER);
}
static void release_later(void *with) {
    sleep_ms(40);
    check_ok(t_sndrel(*(int *)with));
}
CASE(release_wakes_rcv, "XNS 5.2 t_rcv() TLOOK") {
    struct pair p = connected();
    char text[20];
    int flags;
    pthread_t t = start(release_later, &p.client);
    check_t(t_rcv(p.server, text, sizeof text, &flags), TLOOK);
    check_look(p.server, T_ORDREL);
    finish(t);
}
CASE(release_with_nothing_to_take, "XNS 5.2 t_rcvrel() TNOREL") {
    struct pair p = connected();
    check_t(t_rcvrel(p.client), TNOREL);
    check_t(t_rcvreldata(p.client, NULL), TNOREL);
    check_state(p.client, T_DATAXFER);
    check_ok(t_sndrel(p.client));
    if (is_in(SCTP)) {
        /* The other end's transport has answered, though its user has nothing taken. */
        check_ok(t_rcvrel(p.client));
        check_state(p.client, T_IDLE);
        check_ok(t_rcvrel(p.server));
        return;
    }
    check_t(t_rcvrel(p.client), TNOREL);
    check_state(p.client, T_OUTREL);
}
CASE(release_ends_sending, "XNS 5.2 t_snd() TOUTSTATE") {
    struct pair p = connected();
    struct t_iovec v = {"x", 1};
    check_ok(t_sndrel(p.client));
    check_t(snd_text(p.client, "x", 0), TOUTSTATE);
    check_t(t_sndv(p.client, &v, 1, 0), TOUTSTATE);
    check_t(t_sndrel(p.client), TOUTSTATE);
    check_state(p.client, T_OUTREL);
}
CASE(release_ends_receiving, "XNS 5.2 t_rcv() TOUTSTATE") {
    struct pair p = connected();
    char c;
    int flags;
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_t(t_rcv(p.server, &c, 1, &flags), TOUTSTATE);
    check_t(t_rcvrel(p.server), TOUTSTATE);
    check_state(p.server, T_INREL);
}
CASE(release_with_data_unsupported, "XNS 5.2 t_sndreldata() TBADDATA") {
    struct pair p = connected();
    struct t_discon bye = {.udata = given_text("x")};
    check_t(t_sndreldata(p.client, &bye), TBADDATA);
    check_state(p.client, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(release_by_reldata, "XNS 5.2 t_sndreldata(), t_rcvreldata()") {
    struct pair p = connected();
    char text[20];
    struct t_discon bye = {.reason = 5}, heard = {.udata = room(text, sizeof text)};
    check_ok(t_sndreldata(p.client, &bye));
    check_state(p.client, T_OUTREL);
    check_event(p.server, T_ORDREL);
    heard.udata.len = 7;
    check_ok(t_rcvreldata(p.server, &heard));
    check_eq(heard.udata.len, 0);
    check_state(p.server, T_INREL);
    check_ok(t_sndreldata(p.server, NULL));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvreldata(p.client, NULL));
    check_state(p.client, T_IDLE);
    check_state(p.server, T_IDLE);
}
CASE(release_unsupported, "XNS 5.2 t_sndrel() TNOTSUPPORT") {
    struct pair p = connected();
    struct t_discon d;
    memset(&d, 0, sizeof d);
    check_t(t_sndrel(p.client), TNOTSUPPORT);
    check_t(t_rcvrel(p.client), TNOTSUPPORT);
    check_t(t_sndreldata(p.client, &d), TNOTSUPPORT);
    check_t(t_rcvreldata(p.client, &d), TNOTSUPPORT);
    check_state(p.client, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(release_then_connect_again, "XNS 5.2 t_rcvrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_ok(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_eq(peer_address(p.client).len, 0);
    must_t(t_unbind(p.client));
    bind_at(p.client, unused_address(), 0);
    begin_call(p.client, &p.at);
    int server = serve(p.listener);
    confirm(p.client);
    check_echo(p.client, server);
}
CASE(release_of_a_great_amount, "XNS 5.2 t_sndrel()") {
    enum { SIZE = 3 << 20 };
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        snd_wave(p.client, 0, SIZE, 30011);
        check_ok(t_sndrel(p.client));
        check_event(p.client, T_ORDREL);
        check_ok(t_rcvrel(p.client));
        check_ok(t_close(p.client));
        _exit(0);
    }
    must_t(t_close(p.client));
    rcv_wave(p.server, 0, SIZE, 65536);
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_ok(t_sndrel(p.server));
    check_state(p.server, T_IDLE);
    join(child);
}
CASE(release_and_close, "XNS 5.2 t_close()") {
    struct pair p = connected();
    snd(p.client, "last words", 0);
    check_ok(t_sndrel(p.client));
    check_ok(t_close(p.client));
    rcv(p.server, "last words", 0);
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
}
CASE(abort_after_release, "XNS 5.2 t_snddis() T_OUTREL, T_INREL") {
    for (int i = 0; i < 2; i++) {
        struct pair p = connected();
        check_ok(t_sndrel(p.client));
        check_event(p.server, T_ORDREL);
        check_ok(t_rcvrel(p.server));
        int first = i ? p.client : p.server, other = i ? p.server : p.client;
        check_ok(t_snddis(first, NULL));
        check_state(first, T_IDLE);
        check_event(other, T_DISCONNECT);
        check_ok(t_rcvdis(other, NULL));
        check_state(other, T_IDLE);
    }
}
CASE(abort_after_the_whole_release, "XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    check_ok(t_sndrel(p.server));
    check_ok(t_close(p.server));
    check_event(p.client, T_ORDREL);
    check_ok(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
    check_look(p.client, 0);
}

/* --- abortive ends --- */

CASE(disconnect_looks_from_all_calls, "XNS 5.2 TLOOK") {
    struct pair p = connected();
    char c;
    int flags;
    struct t_iovec v = {&c, 1};
    check_ok(t_snddis(p.client, NULL));
    check_event(p.server, T_DISCONNECT);
    check_t(snd_text(p.server, "x", 0), TLOOK);
    check_t(snd_text(p.server, "x", T_EXPEDITED), TLOOK);
    check_t(t_sndv(p.server, &v, 1, 0), TLOOK);
    check_t(t_rcv(p.server, &c, 1, &flags), TLOOK);
    check_t(t_rcvv(p.server, &v, 1, &flags), TLOOK);
    check_t(t_snddis(p.server, NULL), TLOOK);
    check_state(p.server, T_DATAXFER);
    check_look(p.server, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, NULL));
    check_state(p.server, T_IDLE);
}
CASE(disconnect_looks_from_release, "XNS 5.2 t_sndrel(), t_rcvrel() TLOOK") {
    struct pair p = connected();
    check_ok(t_snddis(p.client, NULL));
    check_event(p.server, T_DISCONNECT);
    check_t(t_sndrel(p.server), TLOOK);
    check_t(t_rcvrel(p.server), TLOOK);
    check_t(t_sndreldata(p.server, NULL), TLOOK);
    check_t(t_rcvreldata(p.server, NULL), TLOOK);
    check_ok(t_rcvdis(p.server, NULL));
}
CASE(disconnect_may_drop_data, "XNS 5.2 t_snddis()") {
    struct pair p = connected();
    char text[20] = "";
    int flags, event;
    snd(p.client, "perhaps", 0);
    check_event(p.server, T_DATA);
    check_ok(t_snddis(p.client, NULL));
    while ((event = next_event(p.server)) == T_DATA)
        if (t_rcv(p.server, text, sizeof text, &flags) > 0)
            check_bytes(text, "perhaps", 7);
    check_eq(event, T_DISCONNECT);
    check_ok(t_rcvdis(p.server, NULL));
    check_state(p.server, T_IDLE);
}
CASE(disconnect_drops_what_one_has, "XNS 5.2 t_snddis()") {
    struct pair p = connected();
    snd(p.client, "unread", 0);
    check_event(p.server, T_DATA);
    check_ok(t_snddis(p.server, NULL));
    check_state(p.server, T_IDLE);
    check_look(p.server, 0);
    check_event(p.client, T_DISCONNECT);
}
CASE(close_ends_the_connection, "XNS 5.2 t_close()") {
    struct pair p = connected();
    snd(p.client, "all", 0);
    snd(p.client, "there", 0);
    check_ok(t_close(p.client));
    rcv(p.server, "all", 0);
    rcv(p.server, "there", 0);
    check_gone(p.server);
}
CASE(close_with_unread_data, "XNS 5.2 t_close()") {
    struct pair p = connected();
    snd(p.client, "unread", 0);
    check_event(p.server, T_DATA);
    check_ok(t_close(p.server));
    check_event(p.client, T_DISCONNECT);
    check_ok(t_rcvdis(p.client, NULL));
    check_state(p.client, T_IDLE);
}
CASE(send_to_a_closed_peer, "XNS 5.2 t_snd() TLOOK") {
    struct pair p = connected();
    check_ok(t_close(p.server));
    check_gone(p.client);
    if (t_look(p.client) == T_ORDREL)
        check_ok(t_rcvrel(p.client));
    for (long until = now_ms() + PATIENCE; t_look(p.client) != T_DISCONNECT && now_ms() < until;) {
        t_snd(p.client, "x", 1, 0);
        sleep_ms(1);
    }
    check_look(p.client, T_DISCONNECT);
    check_t(snd_text(p.client, "x", 0), TLOOK);
    check_ok(t_rcvdis(p.client, NULL));
}
static void close_later(void *with) {
    sleep_ms(40);
    check_ok(t_snddis(*(int *)with, NULL));
}
CASE(disconnect_wakes_rcv, "XNS 5.2 t_rcv() TLOOK") {
    struct pair p = connected();
    char c;
    int flags;
    pthread_t t = start(close_later, &p.client);
    check_t(t_rcv(p.server, &c, 1, &flags), TLOOK);
    check_look(p.server, T_DISCONNECT);
    finish(t);
}
CASE(disconnect_wakes_snd, "XNS 5.2 t_snd() TLOOK") {
    struct pair p = connected_nonblock();
    fill_endpoint(p.client, 1000);
    set_nonblock(p.client, 0);
    pthread_t t = start(close_later, &p.server);
    int n;
    while ((n = t_snd(p.client, "xxxx", 4, 0)) > 0)
        ;
    check_eq(n, -1);
    check_eq(t_errno, TLOOK);
    check_look(p.client, T_DISCONNECT);
    finish(t);
}

/* --- a peer that is killed --- */

/* A child that plays the client, and a server's endpoint of our own. */
static struct {
    struct address at;
    void (*play)(int);
} child_plays;
static void play_client(void *with) {
    (void)with;
    child_plays.play(connect_new(&child_plays.at));
}
static int served(void (*play)(int), pid_t *child) {
    int listener = listener_at(&child_plays.at, 1);
    child_plays.play = play;
    *child = spawn(play_client, NULL);
    int fd = serve(listener);
    must_t(t_close(listener));
    return fd;
}
static void send_and_stay(int fd) {
    for (int i = 0; i < 100; i++)
        snd(fd, "0123456789", 0);
    rcv(fd, "go", 0);
    for (int i = 0; i < 100; i++)
        snd(fd, "0123456789", 0);
    raise(SIGKILL);
}
CASE(peer_is_killed_after_sending, "XNS 5.2 T_DISCONNECT") {
    pid_t child;
    int fd = served(send_and_stay, &child), status;
    for (int i = 0; i < 100; i++)
        rcv(fd, "0123456789", 0);
    snd(fd, "go", 0);
    check_eq(waitpid(child, &status, 0), child);
    long begun = now_ms();
    /* What it had coalesced and not yet sent went with it; what arrived is whole and in order. */
    size_t bytes = 0;
    for (;;) {
        char text[10];
        int flags, event = next_event(fd);
        if (event != T_DATA)
            break;
        int n = must_t(t_rcv(fd, text, sizeof text, &flags));
        check_bytes(text, "0123456789" + bytes % 10, n < (int)(10 - bytes % 10) ? n : (int)(10 - bytes % 10));
        bytes += n;
    }
    check_killed(fd);
    check(now_ms() - begun < 2000);
    if (!is_in(TCP))
        check_eq(bytes, 1000);
    check(bytes <= 1000);
}
static void stay(int fd) {
    (void)fd;
    sleep_ms(100000);
}
CASE(peer_is_killed_idle, "XNS 5.2 T_DISCONNECT") {
    pid_t child;
    int fd = served(stay, &child);
    struct t_discon why = {.reason = -77};
    slay(child);
    long begun = now_ms();
    check_killed(fd);
    check(now_ms() - begun < 2000);
    if (t_look(fd) == T_DISCONNECT) {
        check_ok(t_rcvdis(fd, &why));
        check(why.reason != -77);
        check_state(fd, T_IDLE);
    }
}
CASE(peer_is_killed_while_one_waits, "XNS 5.2 t_rcv() TLOOK") {
    pid_t child;
    int fd = served(stay, &child), flags;
    char c;
    if (branch() == 0) {
        sleep_ms(50);
        kill(child, SIGKILL);
        _exit(0);
    }
    check_t(t_rcv(fd, &c, 1, &flags), TLOOK);
    check_killed(fd);
}
CASE(peer_is_killed_while_one_polls, "poll(2)") {
    pid_t child;
    int fd = served(stay, &child);
    if (branch() == 0) {
        sleep_ms(50);
        kill(child, SIGKILL);
        _exit(0);
    }
    check_readable(fd);
    check_killed(fd);
}
CASE(peer_is_killed_while_one_sends, "XNS 5.2 t_snd() TLOOK") {
    pid_t child;
    int fd = served(stay, &child), n;
    if (branch() == 0) {
        sleep_ms(50);
        kill(child, SIGKILL);
        _exit(0);
    }
    while ((n = t_snd(fd, "some data", 9, 0)) > 0)
        ;
    check_eq(n, -1);
    check_eq(t_errno, TLOOK);
    check_event(fd, T_DISCONNECT);
}
static void send_for_ever(int fd) { snd_wave(fd, 0, (size_t)1 << 40, 5003); }
CASE(peer_is_killed_while_it_sends, "XNS 5.2 T_DISCONNECT") {
    pid_t child;
    int fd = served(send_for_ever, &child);
    static char in[131071];
    size_t have = 0;
    rcv_wave(fd, 0, have = 1 << 20, 131071);
    slay(child);
    long begun = now_ms();
    for (;;) {
        int flags, n = t_rcv(fd, in, sizeof in, &flags);
        if (n < 0)
            break;
        check_wave(in, have, n);
        have += n;
    }
    check_eq(t_errno, TLOOK);
    check_killed(fd);
    check(now_ms() - begun < 2000);
}
static void release_and_stay(int fd) {
    snd(fd, "end", 0);
    check_ok(t_sndrel(fd));
    sleep_ms(100000);
}
CASE(peer_is_killed_after_its_release, "XNS 5.2 T_DISCONNECT") {
    pid_t child;
    int fd = served(release_and_stay, &child);
    rcv(fd, "end", 0);
    check_event(fd, T_ORDREL);
    check_ok(t_rcvrel(fd));
    slay(child);
    for (long until = now_ms() + PATIENCE; t_look(fd) != T_DISCONNECT && now_ms() < until;) {
        t_snd(fd, "x", 1, 0);
        sleep_ms(1);
    }
    check_look(fd, T_DISCONNECT);
    check_ok(t_rcvdis(fd, NULL));
    check_state(fd, T_IDLE);
}
static struct address hidden_listener;
static void listen_and_stay(void *with) {
    struct turn *ready = with;
    int fd = open_endpoint();
    bind_at(fd, hidden_listener, 1);
    turn_give(*ready);
    sleep_ms(100000);
}
CASE(listener_is_killed, "XNS 5.2 t_connect() T_DISCONNECT") {
    struct turn ready = turn_new();
    hidden_listener = unused_address();
    pid_t child = spawn(listen_and_stay, &ready);
    turn_take(ready);
    int fd = connecting(&hidden_listener);
    slay(child);
    long begun = now_ms();
    check_event(fd, T_DISCONNECT);
    check(now_ms() - begun < 2000);
    check_ok(t_rcvdis(fd, NULL));
    struct t_call to = call_to(&hidden_listener);
    check_t2(t_connect(fd, &to, NULL), TNODATA, TLOOK);
    check_event(fd, T_DISCONNECT);
}

/* Fills the way to a peer that takes nothing by small sends, which are gathered, and leaves. */
static void fills_and_leaves(const struct address *at, int how, int tell) {
    int fd = connect_new(at);
    char byte = 0;
    int flags;
    for (int i = 0; i < 50; i++) {
        check_eq(t_snd(fd, &byte, 1, 0), 1);
        check_eq(t_rcv(fd, &byte, 1, &flags), 1);
    }
    must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    size_t n = fill_endpoint(fd, 100);
    must(write(tell, &n, sizeof n));
    if (how == 1)
        check_ok(t_close(fd));
    if (how == 2) {
        check_ok(t_sndrel(fd));
        check_ok(t_close(fd));
    }
    if (how == 3 || how == 4) {
        must(fcntl(fd, F_SETFD, how == 3 ? 0 : FD_CLOEXEC));
        execl("/bin/true", "true", NULL);
    }
    _exit(0);
}
CASE(what_is_gathered_behind_a_full_way_arrives, "XNS 5.2 t_snd()") {
    for (int how = 0; how < 5; how++) {
        struct address at;
        int listener = listener_at(&at, 1), told[2], flags;
        must(pipe(told));
        pid_t child = branch();
        if (child == 0)
            fills_and_leaves(&at, how, told[1]);
        int server = serve(listener);
        char byte;
        for (int i = 0; i < 50; i++) {
            check_eq(t_rcv(server, &byte, 1, &flags), 1);
            check_eq(t_snd(server, &byte, 1, 0), 1);
        }
        size_t n;
        check_eq(read(told[0], &n, sizeof n), sizeof n);
        join(child);
        check(n > 200000);
        rcv_wave(server, 0, n, 7000);
        check_event(server, T_ORDREL);
        check_ok(t_close(server));
        check_ok(t_close(listener));
    }
}
/* A great send behind small ones that do not go is held with them, or finds no room, and then poll tells of none. */
CASE(a_great_send_waits_behind_what_is_gathered, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    static char data[20000];
    for (int i = 0; i < 30; i++)
        check_echo(p.client, p.server);
    must(fcntl(p.client, F_SETFL, fcntl(p.client, F_GETFL) | O_NONBLOCK));
    struct pollfd room = {p.client, POLLOUT, 0};
    static const unsigned sizes[] = {100, 100, 100, 3000, 100, 100, 100, 20000};
    size_t n = 0;
    for (int i = 0, refused = 0; refused < 8; i = (i + 1) % 8) {
        fill_wave(data, n, sizes[i]);
        int sent = t_snd(p.client, data, sizes[i], 0);
        refused = sent > 0 ? 0 : refused + 1;
        if (sent > 0)
            n += sent;
        else {
            check_eq(t_errno, TFLOW);
            check_eq(poll(&room, 1, 0), 0);
        }
    }
    rcv_wave(p.server, 0, n, 7000);
}

SUITE(FOR(TCP, what_is_gathered_behind_a_full_way_arrives), FOR(TCP, a_great_send_waits_behind_what_is_gathered), FOR(ORD, release_step_by_step), FOR(ORD, release_keeps_the_address), FOR(ORD, release_by_the_server), FOR(ORD, release_seen_stays), FOR(ORD, release_at_once), FOR(ORD & ~SCTP, release_one_way),
      FOR(ORD, release_not_taken_yet), FOR(ORD, release_after_the_data), FOR(ORD, release_looks_from_rcv),
      FOR(ORD, release_wakes_rcv), FOR(ORD, release_with_nothing_to_take), FOR(ORD, release_ends_sending),
      FOR(ORD, release_ends_receiving), FOR(ORD, release_with_data_unsupported), FOR(ORD, release_by_reldata),
      FOR(TICOTS, release_unsupported), FOR(ORD, release_then_connect_again), FOR(ORD, release_of_a_great_amount),
      FOR(ORD, release_and_close), FOR(ORD & ~SCTP, abort_after_release), FOR(ORD, abort_after_the_whole_release),
      FOR(COTS, disconnect_looks_from_all_calls), FOR(ORD, disconnect_looks_from_release), FOR(COTS, disconnect_may_drop_data),
      FOR(COTS, disconnect_drops_what_one_has), FOR(COTS, close_ends_the_connection), FOR(COTS, close_with_unread_data),
      FOR(COTS & ~SCTP, send_to_a_closed_peer), FOR(COTS, disconnect_wakes_rcv), FOR(COTS, disconnect_wakes_snd),
      FOR(COTS, peer_is_killed_after_sending), FOR(COTS, peer_is_killed_idle), FOR(COTS, peer_is_killed_while_one_waits),
      FOR(COTS, peer_is_killed_while_one_polls), FOR(COTS, peer_is_killed_while_one_sends),
      FOR(COTS, peer_is_killed_while_it_sends), FOR(ORD, peer_is_killed_after_its_release), FOR(LOOP, listener_is_killed))
