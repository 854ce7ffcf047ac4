/* Modules on transport streams: XTI through timod and through modules that pass on, modules that come in the middle of things,
 * and what streamio(7I) says of an endpoint. */
#include "ways.h"
#include <stdatomic.h>
#include <sys/epoll.h>

/* A case for endpoints of either kind that goes by messages. */
#define BY_MESSAGES(NAME, PAGE) \
    static void NAME(void); \
    CASE(NAME##_nullmod, PAGE) { \
        way = NULLMOD_PUSHED; \
        NAME(); \
    } \
    CASE(NAME##_timod, PAGE) { \
        way = TIMOD_PUSHED; \
        NAME(); \
    } \
    static void NAME(void)
#define FOR_BOTH(GROUP, NAME) FOR(GROUP, NAME##_nullmod), FOR(GROUP, NAME##_timod)

/* --- XTI by messages --- */

BY_MESSAGES(local_calls, "timod(7M), XNS 5.2 local management") {
    struct t_info info;
    int fd = open_endpoint();
    must_t(t_getinfo(fd, &info));
    check_eq(info.servtype, provider->info.servtype);
    check_eq(info.addr, provider->info.addr);
    check_eq(info.tsdu, provider->info.tsdu);
    check_state(fd, T_UNBND);
    struct address at = bind_at(fd, unused_address(), 0), own = own_address(fd);
    check(same_address(&at, &own));
    check_state(fd, T_IDLE);
    check_eq(t_sync(fd), T_IDLE);
    check_t(t_bind(fd, NULL, NULL), TOUTSTATE);
    must_t(t_unbind(fd));
    check_t(t_unbind(fd), TOUTSTATE);
    check_state(fd, T_UNBND);
    must_t(t_close(fd));
    check_t(t_getstate(fd), TBADF);
}
BY_MESSAGES(binds_busy, "timod(7M), XNS 5.2 t_bind()") {
    struct address at;
    int first = listener_at(&at, is_in(COTS)), second = open_endpoint();
    struct t_bind req = {given(&at), is_in(COTS)};
    check_t(t_bind(second, &req, NULL), TADDRBUSY);
    check_state(second, T_UNBND);
    must_t(t_close(first));
}
BY_MESSAGES(connects, "timod(7M), XNS 5.2 t_connect(), t_accept()") {
    struct pair p = connected();
    check_state(p.client, T_DATAXFER);
    check_state(p.server, T_DATAXFER);
    check_state(p.listener, T_IDLE);
    for (int i = 0; i < 20; i++)
        check_echo(p.client, p.server);
    struct address peer = peer_address(p.client);
    check(same_address(&peer, &p.at));
}
static void connect_here(void *with) {
    int fd = connect_new(with);
    snd(fd, "from the child", 0);
    rcv(fd, "to the child", 0);
}
BY_MESSAGES(waits_for_a_connection, "timod(7M), XNS 5.2 t_listen()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = spawn(connect_here, &at);
    int fd = serve(listener);
    rcv(fd, "from the child", 0);
    snd(fd, "to the child", 0);
    join(child);
}
BY_MESSAGES(accepts_on_itself, "timod(7M), XNS 5.2 t_accept()") {
    struct address at;
    int listener = listener_at(&at, 1), client = connecting(&at);
    accept_at(listener, listen_for(listener), listener);
    confirm(client);
    check_echo(client, listener);
}
BY_MESSAGES(rejects, "timod(7M), XNS 5.2 t_snddis()") {
    struct address at;
    int listener = listener_at(&at, 1), client = connecting(&at);
    check_eq(reject(listener, listen_for(listener), NULL), 0);
    check_disconnect(client);
    must_t(t_rcvdis(client, NULL));
    check_state(client, T_IDLE);
}
BY_MESSAGES(connects_to_nobody, "timod(7M), XNS 5.2 t_connect() TLOOK") {
    struct address at = deserted_address();
    int fd = bound();
    struct t_call call = call_to(&at);
    struct t_discon d = {.reason = 0};
    check_t(t_connect(fd, &call, NULL), TLOOK);
    check_look(fd, T_DISCONNECT);
    must_t(t_rcvdis(fd, &d));
    check(d.reason != 0);
    check_t(t_rcvdis(fd, &d), TOUTSTATE);
}
BY_MESSAGES(moves_data, "timod(7M), XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    pid_t child = must(fork());
    if (child == 0) {
        snd_wave(p.client, 0, 1 << 20, 10000);
        rcv(p.client, "done", 0);
        _exit(0);
    }
    must_t(t_close(p.client));
    rcv_wave(p.server, 0, 1 << 20, 7000);
    snd(p.server, "done", 0);
    join(child);
}
BY_MESSAGES(keeps_boundaries, "timod(7M), XNS 5.2 T_MORE") {
    struct pair p = connected();
    int flags = 0, have;
    char text[20] = "";
    snd(p.client, "one ", T_MORE);
    snd(p.client, "record", 0);
    snd(p.client, "next", 0);
    check_eq(have = t_rcv(p.server, text, 2, &flags), 2);
    while (flags & T_MORE && have < 10)
        have += must_t(t_rcv(p.server, text + have, 20 - have, &flags));
    check_eq(flags, 0);
    check_str(text, "one record");
    rcv(p.server, "next", 0);
}
BY_MESSAGES(expedited, "timod(7M), XNS 5.2 T_EXPEDITED") {
    struct pair p = connected();
    snd(p.client, "!", T_EXPEDITED);
    check_event(p.server, T_EXDATA);
    rcv(p.server, "!", T_EXPEDITED);
    check_echo(p.client, p.server);
    snd(p.server, "!", T_EXPEDITED);
    check_event(p.client, T_EXDATA);
    rcv(p.client, "!", T_EXPEDITED);
    /* All was received: it is no abortive end. */
    must_t(t_close(p.client));
    if (is_in(TCP))
        check_event(p.server, T_ORDREL);
}
BY_MESSAGES(expedited_goes_ahead_by_packets, "timod(7M), RFC 9260 6.6") {
    by("udp");
    struct pair p = connected();
    snd(p.client, "normal", 0);
    snd(p.client, "urgent", T_EXPEDITED);
    await(t_look(p.server) == T_EXDATA);
    rcv(p.server, "urgent", T_EXPEDITED);
    rcv(p.server, "normal", 0);
}
BY_MESSAGES(looked_for_over_and_over_by_packets, "poll(2), epoll_wait(2), XNS 5.2 TNODATA") {
    by("udp");
    struct pair p = connected();
    snd(p.client, "a", 0);
    await(events(p.server, POLLIN, 0));
    rcv(p.server, "a", 0);
    struct epoll_event want = {EPOLLIN, {.fd = p.server}}, told;
    int set = must(epoll_create1(0));
    must(epoll_ctl(set, EPOLL_CTL_ADD, p.server, &want));
    snd(p.client, "b", 0);
    await(epoll_wait(set, &told, 1, 0) == 1);
    rcv(p.server, "b", 0);
    set_nonblock(p.server, 1);
    snd(p.client, "c", 0);
    char text[8];
    int flags;
    await(t_rcv(p.server, text, sizeof text, &flags) == 1);
}
BY_MESSAGES(runs_full, "timod(7M), XNS 5.2 TFLOW") {
    struct pair p = connected_nonblock();
    int flags;
    char c;
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent >= 1000);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 5000);
    check(events(p.client, POLLOUT, PATIENCE) & POLLOUT);
}
BY_MESSAGES(releases_when_full, "timod(7M), XNS 5.2 t_sndrel()") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    check_ok(t_sndrel(p.client));
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 5000);
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
}
BY_MESSAGES(releases, "timod(7M), XNS 5.2 t_sndrel()") {
    struct pair p = connected();
    int flags;
    char c;
    snd(p.client, "last", 0);
    must_t(t_sndrel(p.client));
    check_state(p.client, T_OUTREL);
    rcv(p.server, "last", 0);
    check_t(t_rcv(p.server, &c, 1, &flags), TLOOK);
    check_look(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    check_state(p.server, T_INREL);
    snd(p.server, "still", 0);
    must_t(t_sndrel(p.server));
    check_state(p.server, T_IDLE);
    rcv(p.client, "still", 0);
    check_event(p.client, T_ORDREL);
    must_t(t_rcvrel(p.client));
    check_state(p.client, T_IDLE);
}
BY_MESSAGES(disconnects, "timod(7M), XNS 5.2 t_snddis()") {
    struct pair p = connected();
    must_t(t_snddis(p.client, NULL));
    check_state(p.client, T_IDLE);
    check_event(p.server, T_DISCONNECT);
    check_t(t_snd(p.server, "x", 1, 0), TLOOK);
    must_t(t_rcvdis(p.server, NULL));
    check_state(p.server, T_IDLE);
}
BY_MESSAGES(out_of_state, "timod(7M), XNS 5.2 TOUTSTATE") {
    int fd = bound(), flags;
    char c;
    check_t(t_snd(fd, "x", 1, 0), TOUTSTATE);
    check_t(t_rcv(fd, &c, 1, &flags), TOUTSTATE);
    check_t(t_snddis(fd, NULL), TOUTSTATE);
    check_t(t_rcvconnect(fd, NULL), TOUTSTATE);
    check_state(fd, T_IDLE);
}
BY_MESSAGES(datagrams, "timod(7M), XNS 5.2 t_sndudata()") {
    int a = bound(), b = bound(), flags;
    struct address one = own_address(a), two = own_address(b), from;
    char text[100] = "";
    struct t_unitdata out = {.addr = given(&two), .udata = given_text("0123456789")};
    struct t_unitdata in = {.addr = room(from.at, sizeof from.at), .udata = room(text, 4)};
    must_t(t_sndudata(a, &out));
    /* By messages it says so later where it could not be sent. */
    check_eq(t_look(a), 0);
    must_t(t_rcvudata(b, &in, &flags));
    check_eq(flags, T_MORE);
    from.len = in.addr.len;
    check(same_address(&from, &one));
    in.udata.maxlen = sizeof text;
    must_t(t_rcvudata(b, &in, &flags));
    check_eq(flags, 0);
    check_netbuf(in.udata, "456789");
    check_eq(in.addr.len, 0);
    set_nonblock(b, 1);
    check_t(t_rcvudata(b, &in, &flags), TNODATA);
}
BY_MESSAGES(undelivered, "timod(7M), XNS 5.2 t_rcvuderr()") {
    int fd = bound(), gone = bound();
    struct address to = own_address(gone), seen;
    must_t(t_close(gone));
    struct t_unitdata out = {.addr = given(&to), .udata = given_text("x")};
    struct t_uderr e = {.addr = room(seen.at, sizeof seen.at)};
    must_t(t_sndudata(fd, &out));
    check_event(fd, T_UDERR);
    must_t(t_rcvuderr(fd, &e));
    seen.len = e.addr.len;
    check(same_address(&seen, &to));
    check_t(t_rcvuderr(fd, &e), TNOUDERR);
}
BY_MESSAGES(options, "timod(7M), XNS 5.2 t_optmgmt()") {
    int fd = bound();
    struct {
        struct t_opthdr head;
        t_scalar_t value;
    } o = {{sizeof o, XTI_GENERIC, XTI_RCVBUF, 0}, 30000}, seen;
    struct t_optmgmt req = {.opt = given_bytes(&o, sizeof o), .flags = T_NEGOTIATE};
    struct t_optmgmt ret = {.opt = room(&seen, sizeof seen)};
    must_t(t_optmgmt(fd, &req, &ret));
    check_eq(ret.flags, T_SUCCESS);
    check_eq(seen.head.status, T_SUCCESS);
    o.head.len = 3;
    check_t(t_optmgmt(fd, &req, &ret), TBADOPT);
    req.flags = 0x4000;
    check_t(t_optmgmt(fd, &req, &ret), TBADFLAG);
}
BY_MESSAGES(connects_with_data, "timod(7M), XNS 5.2 t_connect()") {
    struct address at;
    int listener = listener_at(&at, 1), client = bound_flags(O_NONBLOCK);
    struct call in;
    struct t_call out = call_to(&at);
    out.udata = given_text("call");
    check_t(t_connect(client, &out, NULL), TNODATA);
    must_t(t_listen(listener, roomy(&in)));
    check_netbuf(in.call.udata, "call");
    struct t_call answer = {.udata = given_text("answer"), .sequence = in.call.sequence};
    int server = open_endpoint();
    must_t(t_accept(listener, server, &answer));
    check_event(client, T_CONNECT);
    set_nonblock(client, 0);
    must_t(t_rcvconnect(client, roomy(&in)));
    check_netbuf(in.call.udata, "answer");
}

/* --- one end by messages, and in the middle of things --- */

struct looks {
    int set;
    atomic_int fd;
};
static void look_by_a_set(void *with) {
    struct looks *l = with;
    for (unsigned i = 0; l->fd != -2; i++) {
        struct epoll_event seen[4], want = {i % 2 ? EPOLLIN : EPOLLIN | EPOLLOUT, {.fd = l->fd}};
        check(epoll_wait(l->set, seen, 4, 0) >= 0);
        // The number is closed meanwhile, or anything.
        epoll_ctl(l->set, EPOLL_CTL_MOD, l->fd, &want);
    }
}
/* What is sent and received takes connections over, while a set asks the endpoints in it, which may become streams then. */
static void use_while_a_set_looks(int pushes) {
    struct looks l = {must(epoll_create1(0)), -1};
    pthread_t t = start(look_by_a_set, &l);
    // Under a tracer fewer than that.
    for (long until = now_ms() + SECONDS * 500, round = 0; round < 200 && now_ms() < until; round++) {
        struct pair p = connected();
        struct epoll_event want = {EPOLLIN | EPOLLOUT, {.fd = p.server}};
        must(epoll_ctl(l.set, EPOLL_CTL_ADD, p.server, &want));
        l.fd = p.server;
        for (int i = 0; i < 20; i++) {
            if (pushes && i == round % 10)
                must(ioctl(p.server, I_PUSH, "nullmod"));
            check_echo(p.client, p.server);
        }
        must_t(t_close(p.client)), must_t(t_close(p.server)), must_t(t_close(p.listener));
    }
    l.fd = -2;
    finish(t);
}
BY_MESSAGES(used_while_a_set_looks, "epoll(7)") { use_while_a_set_looks(0); }
CASE(pushed_while_a_set_looks, "epoll(7), streamio(7I) I_PUSH") { use_while_a_set_looks(1); }
/* What a set has been asked and has told of an endpoint holds for the stream that it becomes. */
CASE(pushed_in_a_set, "epoll(7), streamio(7I) I_PUSH") {
    struct pair p = connected();
    int level = must(epoll_create1(0)), once = must(epoll_create1(0)), copy = must(dup(p.server));
    struct epoll_event want = {EPOLLIN, {.u64 = 77}}, seen[2];
    must(epoll_ctl(level, EPOLL_CTL_ADD, p.server, &want));
    want.data.u64 = 78;
    must(epoll_ctl(level, EPOLL_CTL_ADD, copy, &want));
    want = (struct epoll_event){EPOLLIN | EPOLLONESHOT, {.u64 = 79}};
    must(epoll_ctl(once, EPOLL_CTL_ADD, p.server, &want));
    snd(p.client, "one", 0);
    check_eq(epoll_wait(once, seen, 2, PATIENCE), 1);
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    must(ioctl(p.server, I_PUSH, "nullmod"));
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    check_eq(epoll_wait(level, seen, 2, PATIENCE), 2);
    check_eq(seen[0].data.u64 + seen[1].data.u64, 77 + 78);
    rcv(p.server, "one", 0);
    check_eq(epoll_wait(level, seen, 2, 0), 0);
    snd(p.client, "two", 0);
    check_eq(epoll_wait(level, seen, 2, PATIENCE), 2);
    check_eq(seen[0].data.u64 + seen[1].data.u64, 77 + 78);
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    must(epoll_ctl(once, EPOLL_CTL_MOD, p.server, &want));
    check_eq(epoll_wait(once, seen, 2, PATIENCE), 1);
    check_eq(seen[0].data.u64, 79);
    must(epoll_ctl(level, EPOLL_CTL_DEL, copy, NULL));
    check_eq(epoll_wait(level, seen, 2, 0), 1);
    check_errno(epoll_ctl(level, EPOLL_CTL_ADD, p.server, &want), EEXIST);
}
CASE(pushed_when_connected, "streamio(7I) I_PUSH") {
    struct pair p = connected();
    snd(p.client, "before", 0);
    push(p.server, "nullmod");
    check_state(p.server, T_DATAXFER);
    snd(p.client, "after", 0);
    rcv(p.server, "before", 0);
    rcv(p.server, "after", 0);
    check_echo(p.client, p.server);
    pop(p.server);
    check_echo(p.server, p.client);
}
CASE(pushed_with_a_rest, "streamio(7I) I_PUSH") {
    struct pair p = connected();
    int flags;
    char text[4] = "";
    snd(p.client, "012345", 0);
    check_eq(t_rcv(p.server, text, 3, &flags), 3);
    push(p.server, "nullmod");
    rcv(p.server, "345", 0);
}
CASE(pushed_with_much, "streamio(7I) I_PUSH") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    push(p.server, "nullmod");
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 5000);
    check_echo((set_nonblock(p.client, 0), p.client), p.server);
}
CASE(pushed_when_datagrams_wait, "streamio(7I) I_PUSH") {
    int fd = bound(), flags;
    struct address own = own_address(fd), from;
    char text[100];
    struct t_unitdata u = {.addr = given(&own), .udata = given_text("datagram")};
    for (int i = 0; i < 5; i++)
        must_t(t_sndudata(fd, &u));
    push(fd, "nullmod");
    for (int i = 0; i < 5; i++) {
        struct t_unitdata in = {.addr = room(from.at, sizeof from.at), .udata = room(text, sizeof text)};
        must_t(t_rcvudata(fd, &in, &flags));
        check_netbuf(in.udata, "datagram");
        from.len = in.addr.len;
        check(same_address(&from, &own));
    }
}
CASE(pushed_on_a_listener, "streamio(7I) I_PUSH") {
    struct address at;
    int listener = listener_at(&at, 2), first = connecting(&at);
    push(listener, "nullmod");
    int second = connecting(&at), a = listen_for(listener), b = listen_for(listener);
    int one = accepted(listener, a), two = accepted(listener, b);
    confirm(first);
    confirm(second);
    check_echo(first, one);
    check_echo(second, two);
}
CASE(accepted_across, "XNS 5.2 t_accept()") {
    struct address at;
    int listener = listener_at(&at, 2), server = open_endpoint();
    push(server, "nullmod");
    int first = connecting(&at);
    accept_at(listener, listen_for(listener), server);
    confirm(first);
    check_echo(first, server);
    push(listener, "nullmod");
    int second = connecting(&at), direct = serve(listener);
    confirm(second);
    check_echo(second, direct);
}

/* --- an endpoint as a stream --- */

CASE(is_a_stream, "isastream(3C)") {
    int fd = open_endpoint();
    check_eq(isastream(fd), 1);
    check_state(fd, T_UNBND);
}
CASE(lists_modules, "streamio(7I) I_LIST, I_LOOK") {
    int fd = bound(), before = ioctl(fd, I_LIST, NULL);
    char name[FMNAMESZ + 1] = "";
    check_either(before, 2, 1);
    push(fd, "nullmod");
    check_eq(ioctl(fd, I_LIST, NULL), before + 1);
    check_eq(ioctl(fd, I_LOOK, name), 0);
    check_str(name, "nullmod");
    check_eq(ioctl(fd, I_FIND, "nullmod"), 1);
    pop(fd);
    check_eq(ioctl(fd, I_LIST, NULL), before);
    check_state(fd, T_IDLE);
}
CASE(bad_stream_calls, "streamio(7I)") {
    int fd = bound();
    check_errno(ioctl(fd, I_PUSH, "nosuchmodule"), EINVAL);
    check_errno2(ioctl(fd, 'S' << 8 | 99, 0), EINVAL, ENOTTY);
    check_state(fd, T_IDLE);
}
CASE(signals_data, "streamio(7I) I_SETSIG") {
    struct pair p = connected();
    catch_signal(SIGPOLL);
    check_eq(ioctl(p.server, I_SETSIG, S_INPUT | S_RDNORM), 0);
    snd(p.client, "x", 0);
    await(caught[SIGPOLL] > 0);
    rcv(p.server, "x", 0);
}
CASE(signals_a_connection, "streamio(7I) I_SETSIG") {
    struct address at;
    int listener = listener_at(&at, 1);
    catch_signal(SIGPOLL);
    check_eq(ioctl(listener, I_SETSIG, S_INPUT | S_RDNORM), 0);
    int client = connecting(&at);
    await(caught[SIGPOLL] > 0);
    check_look(listener, T_LISTEN);
    serve(listener);
    confirm(client);
}
CASE(signals_a_datagram, "streamio(7I) I_SETSIG") {
    int fd = bound(), flags;
    struct address own = own_address(fd);
    char text[10];
    struct t_unitdata u = {.addr = given(&own), .udata = given_text("x")};
    catch_signal(SIGPOLL);
    check_eq(ioctl(fd, I_SETSIG, S_INPUT | S_RDNORM), 0);
    must_t(t_sndudata(fd, &u));
    await(caught[SIGPOLL] > 0);
    u = (struct t_unitdata){.udata = room(text, sizeof text)};
    must_t(t_rcvudata(fd, &u, &flags));
}

SUITE(FOR_BOTH(ALL, local_calls), FOR_BOTH(ALL, binds_busy), FOR_BOTH(COTS, connects),
      FOR_BOTH(COTS, waits_for_a_connection), FOR_BOTH(COTS, accepts_on_itself), FOR_BOTH(COTS, rejects),
      FOR_BOTH(COTS, connects_to_nobody), FOR_BOTH(COTS, moves_data), FOR_BOTH(LOOP, keeps_boundaries),
      FOR_BOTH(COTS, expedited), FOR_BOTH(SCTP, expedited_goes_ahead_by_packets),
      FOR_BOTH(SCTP, looked_for_over_and_over_by_packets), FOR_BOTH(COTS, runs_full),
      FOR_BOTH(ORD & ~SCTP, releases_when_full),
      FOR_BOTH(ORD & ~SCTP, releases), FOR_BOTH(COTS, disconnects), FOR_BOTH(COTS, out_of_state),
      FOR_BOTH(CLTS, datagrams), FOR_BOTH(CLTS, undelivered), FOR_BOTH(ALL, options),
      FOR_BOTH(LOOP, connects_with_data), FOR_BOTH(COTS, used_while_a_set_looks), FOR(COTS, pushed_in_a_set),
      FOR(COTS, pushed_while_a_set_looks), FOR(COTS, pushed_when_connected), FOR(COTS, pushed_with_a_rest),
      FOR(COTS, pushed_with_much), FOR(CLTS, pushed_when_datagrams_wait), FOR(COTS, pushed_on_a_listener),
      FOR(COTS, accepted_across), FOR(ALL, is_a_stream), FOR(ALL, lists_modules), FOR(ALL, bad_stream_calls),
      FOR(COTS, signals_data), FOR(COTS, signals_a_connection), FOR(CLTS, signals_a_datagram))
