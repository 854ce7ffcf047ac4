/* Modules on transport streams: XTI through timod and through modules that pass on, timod's ioctls, tirdwr, and what
 * streamio(7I) says of an endpoint. */
#include "../streams/refuse.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stropts.h>
#include <sys/epoll.h>
#include <sys/timod.h>
#include <xti.h>

/* How the endpoints of a case come to be; its helpers open them all this way. */
static enum { BY_T_OPEN, NULLMOD_PUSHED, TIMOD_PUSHED } way;
static int opened_in_some_way(const char *path, int flags, struct t_info *info) {
    int fd = way == TIMOD_PUSHED ? open(path, flags) : t_open(path, flags, info);
    if (fd < 0 || way == BY_T_OPEN)
        return fd;
    if (ioctl(fd, I_PUSH, way == TIMOD_PUSHED ? "timod" : "nullmod") < 0 || t_sync(fd) != T_UNBND)
        return -1;
    return info && t_getinfo(fd, info) < 0 ? -1 : fd;
}
#define t_open opened_in_some_way
#include "tpi.h"

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
BY_MESSAGES(runs_full, "timod(7M), XNS 5.2 TFLOW") {
    struct pair p = connected_nonblock();
    int flags;
    char c;
    check_t(t_rcv(p.server, &c, 1, &flags), TNODATA);
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent >= 1000);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 5000);
    check(events(p.client, POLLOUT, 5000) & POLLOUT);
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
    check_eq(epoll_wait(once, seen, 2, 5000), 1);
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    must(ioctl(p.server, I_PUSH, "nullmod"));
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    check_eq(epoll_wait(level, seen, 2, 5000), 2);
    check_eq(seen[0].data.u64 + seen[1].data.u64, 77 + 78);
    rcv(p.server, "one", 0);
    check_eq(epoll_wait(level, seen, 2, 0), 0);
    snd(p.client, "two", 0);
    check_eq(epoll_wait(level, seen, 2, 5000), 2);
    check_eq(seen[0].data.u64 + seen[1].data.u64, 77 + 78);
    check_eq(epoll_wait(once, seen, 2, 0), 0);
    must(epoll_ctl(once, EPOLL_CTL_MOD, p.server, &want));
    check_eq(epoll_wait(once, seen, 2, 5000), 1);
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

/* --- the ioctl of sockmod --- */

/* As <sys/sockmod.h> of System V has it. */
#define SI_GETUDATA ('I' << 8 | 110)
struct si_udata {
    int tidusize, addrsize, optsize, etsdusize, servtype, so_state, so_options, tsdusize;
};

CASE(si_getudata, "sockmod SI_GETUDATA") {
    char path[40];
    struct t_info info;
    struct si_udata u;
    snprintf(path, sizeof path, "/dev/%s", provider->name);
    int fd = must(open(path, O_RDWR));
    check_eq(ioctl(fd, I_PUSH, "sockmod"), 0);
    for (int i = 0; i < 3; i++) {
        memset(&u, 0x55, sizeof u);
        struct strioctl s = {.ic_cmd = SI_GETUDATA, .ic_timout = 5, .ic_len = sizeof u, .ic_dp = (char *)&u};
        check_eq(ioctl(fd, I_STR, &s), 0);
        check_eq(s.ic_len, sizeof u);
        must_t(t_getinfo(open_endpoint(), &info));
        check_eq(u.addrsize, info.addr);
        check_eq(u.optsize, info.options);
        check_eq(u.etsdusize, info.etsdu);
        check_eq(u.servtype, info.servtype);
        check_eq(u.tsdusize, info.tsdu);
        check(u.tidusize > 0);
        check(u.so_state == 0 && u.so_options == 0);
    }
    /* What it does not know goes past it, and so does TPI. */
    struct strioctl unknown = {.ic_cmd = 'I' << 8 | 99, .ic_timout = 5, .ic_len = 0};
    check_errno(ioctl(fd, I_STR, &unknown), EINVAL);
    check_errno(ioctl(fd, SI_GETUDATA, &u), EINVAL);
    struct T_info_req request = {.PRIM_type = T_INFO_REQ};
    struct strbuf control = out_buf(&request, sizeof request);
    check_eq(putmsg(fd, &control, NULL, RS_HIPRI), 0);
    struct T_info_ack answer;
    int flags = RS_HIPRI;
    control = in_buf(&answer, sizeof answer);
    check_eq(getmsg(fd, &control, NULL, &flags), 0);
    check_eq(answer.PRIM_type, T_INFO_ACK);
    check_eq(ioctl(fd, I_POP, 0), 0);
    struct strioctl gone = {.ic_cmd = SI_GETUDATA, .ic_timout = 5, .ic_len = sizeof u, .ic_dp = (char *)&u};
    check_errno(ioctl(fd, I_STR, &gone), EINVAL);
}

/* --- ioctls of timod --- */

static int timod_ioctl(int fd, int command, void *with, int in, int *out) {
    struct strioctl s = {.ic_cmd = command, .ic_timout = 5, .ic_len = in, .ic_dp = with};
    int r = ioctl(fd, I_STR, &s);
    *out = s.ic_len;
    return r;
}
static int with_timod(void) {
    way = TIMOD_PUSHED;
    return open_endpoint();
}
CASE(ti_getinfo, "timod(7M) TI_GETINFO") {
    int fd = with_timod(), len;
    union T_primitives m = {.info_req = {.PRIM_type = T_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_GETINFO, &m, sizeof m.info_req, &len), 0);
    check_eq(len, sizeof m.info_ack);
    check_eq(m.type, T_INFO_ACK);
    check_eq(m.info_ack.SERV_type, provider->info.servtype);
    check_eq(m.info_ack.CURRENT_state, TS_UNBND);
}
CASE(ti_on_a_t_open_endpoint, "timod(7M) TI_GETINFO") {
    int fd = open_endpoint(), len;
    union T_primitives m = {.info_req = {.PRIM_type = T_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_GETINFO, &m, sizeof m.info_req, &len), 0);
    check_eq(m.info_ack.SERV_type, provider->info.servtype);
    check_state(fd, T_UNBND);
}
CASE(ti_bind, "timod(7M) TI_BIND, TI_UNBIND") {
    int fd = with_timod(), len;
    struct address any = unused_address();
    struct {
        union T_primitives m;
        char more[2048];
    } u = {.m.bind_req = {T_BIND_REQ, any.len, sizeof(struct T_bind_req), is_in(COTS)}};
    memcpy((char *)&u + sizeof(struct T_bind_req), any.at, any.len);
    check_eq(timod_ioctl(fd, TI_BIND, &u, sizeof(struct T_bind_req) + any.len, &len), 0);
    check_eq(u.m.type, T_BIND_ACK);
    check(len > (int)sizeof(struct T_bind_ack));
    check_eq(t_sync(fd), T_IDLE);
    struct T_bind_req again = {T_BIND_REQ, 0, 0, 0};
    check_eq(timod_ioctl(fd, TI_BIND, &again, sizeof again, &len) & 0xff, TOUTSTATE);
    u.m.unbind_req = (struct T_unbind_req){T_UNBIND_REQ};
    check_eq(timod_ioctl(fd, TI_UNBIND, &u, sizeof(struct T_unbind_req), &len), 0);
    check_eq(t_sync(fd), T_UNBND);
    u.m.unbind_req = (struct T_unbind_req){T_UNBIND_REQ};
    check_eq(timod_ioctl(fd, TI_UNBIND, &u, sizeof(struct T_unbind_req), &len) & 0xff, TOUTSTATE);
}
CASE(ti_optmgmt, "timod(7M) TI_OPTMGMT") {
    int fd = with_timod(), len;
    struct {
        struct T_optmgmt_req req;
        struct t_opthdr head;
        char more[100];
    } u = {{T_OPTMGMT_REQ, sizeof u.head, sizeof u.req, T_CURRENT}, {sizeof u.head, XTI_GENERIC, XTI_RCVBUF, 0}, ""};
    check_eq(timod_ioctl(fd, TI_OPTMGMT, &u, sizeof u.req + sizeof u.head, &len), 0);
    check_eq(u.req.PRIM_type, T_OPTMGMT_ACK);
    check(len > (int)(sizeof u.req + sizeof u.head));
    u.req = (struct T_optmgmt_req){T_OPTMGMT_REQ, sizeof u.head, sizeof u.req, 0x4000};
    check_eq(timod_ioctl(fd, TI_OPTMGMT, &u, sizeof u.req + sizeof u.head, &len) & 0xff, TBADFLAG);
}
CASE(ti_sync, "timod(7M) TI_SYNC") {
    int fd = with_timod(), len;
    bind_at(fd, unused_address(), 0);
    union {
        struct ti_sync_req req;
        struct ti_sync_ack ack;
    } u = {.req = {TSRF_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_SYNC, &u, sizeof u.req, &len), 0);
    check_eq(u.ack.tsa_info.SERV_type, provider->info.servtype);
    check_eq(u.ack.tsa_info.CURRENT_state, TS_IDLE);
}
CASE(ti_capability, "timod(7M) TI_CAPABILITY") {
    int fd = with_timod(), len;
    union T_primitives m = {.capability_req = {T_CAPABILITY_REQ, TC1_INFO}};
    check_eq(timod_ioctl(fd, TI_CAPABILITY, &m, sizeof m.capability_req, &len), 0);
    check_eq(m.type, T_CAPABILITY_ACK);
    check_eq(m.capability_ack.CAP_bits1 & TC1_INFO, TC1_INFO);
    check_eq(m.capability_ack.INFO_ack.SERV_type, provider->info.servtype);
}
CASE(ti_getaddrs, "timod(7M) TI_GETADDRS") {
    int fd = with_timod(), len;
    struct address at = bind_at(fd, unused_address(), 0);
    struct {
        union T_primitives m;
        char more[4096];
    } u = {.m.addr_req = {T_ADDR_REQ}};
    check_eq(timod_ioctl(fd, TI_GETADDRS, &u, sizeof u.m.addr_req, &len), 0);
    check_eq(u.m.type, T_ADDR_ACK);
    check_eq(u.m.addr_ack.LOCADDR_length, at.len);
    check_bytes((char *)&u + u.m.addr_ack.LOCADDR_offset, at.at, at.len);
}
CASE(ti_getmyname, "timod(7M) TI_GETMYNAME, TI_GETPEERNAME") {
    way = TIMOD_PUSHED;
    struct pair p = connected();
    struct address own = own_address(p.client), seen;
    struct netbuf b = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.client, TI_GETMYNAME, &b), 0);
    seen.len = b.len;
    check(same_address(&seen, &own));
    b = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.client, TI_GETPEERNAME, &b), 0);
    seen.len = b.len;
    check(same_address(&seen, &p.at));
}
CASE(ti_malformed, "timod(7M)") {
    int fd = with_timod(), len, words[8] = {99, 4000, -5, 7};
    static const int commands[] = {TI_GETINFO, TI_OPTMGMT, TI_BIND, TI_UNBIND, TI_SYNC, TI_GETADDRS, TI_CAPABILITY};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int in = 0; in <= (int)sizeof words; in += in < 4 ? 1 : 7) {
            harness_line = commands[i];
            int r = timod_ioctl(fd, commands[i], words, in, &len);
            if (r == 0 && commands[i] != TI_SYNC)
                fail("ioctl 0x%x with %d bytes that are no primitive of it: expected an error", commands[i], in);
            memcpy(words, (int[8]){99, 4000, -5, 7}, sizeof words);
        }
    check_state(fd, T_UNBND);
}

/* --- tirdwr --- */

static struct pair read_write_pair(void) {
    struct pair p = connected();
    push(p.client, "tirdwr");
    return p;
}
CASE(tirdwr_reads_and_writes, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    for (int i = 0; i < 20; i++) {
        check_eq(write(p.client, "request", 7), 7);
        rcv(p.server, "request", 0);
        snd(p.server, "response", 0);
        char text[9] = "";
        for (int have = 0; have < 8;)
            have += must(read(p.client, text + have, 8 - have));
        check_str(text, "response");
    }
}
CASE(tirdwr_on_both_ends, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    push(p.server, "tirdwr");
    check_eq(write(p.client, "hello", 5), 5);
    check_read(p.server, "hello");
    check_eq(write(p.server, "back", 4), 4);
    check_read(p.client, "back");
}
CASE(tirdwr_by_hand, "tirdwr(7M)") {
    struct ends e = tpi_ends();
    push(e.client, "tirdwr");
    check_eq(write(e.client, "hello", 5), 5);
    tpi_take_text(e.server, "hello");
    tpi_data(e.server, "back", 4, 0);
    check_read(e.client, "back");
}
CASE(tirdwr_finds_what_came_before, "tirdwr(7M)") {
    struct pair p = connected();
    snd(p.server, "early", 0);
    check_event(p.client, T_DATA);
    push(p.client, "tirdwr");
    check_read(p.client, "early");
}
static void write_wave(void *with) {
    static char data[1 << 18];
    int fd = *(int *)with;
    fill_wave(data, 0, sizeof data);
    for (size_t sent = 0; sent < sizeof data;)
        sent += must(write(fd, data + sent, sizeof data - sent));
    char c;
    check_eq(read(fd, &c, 1), 1);
}
CASE(tirdwr_moves_much, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    pid_t child = spawn(write_wave, &p.client);
    close(p.client);
    rcv_wave(p.server, 0, 1 << 18, 10000);
    snd(p.server, "x", 0);
    join(child);
}
static void read_unwatched(void *with) {
    int fd = *(int *)with;
    refuse(SYS_epoll_ctl, ENOMEM);
    check_read(fd, "first");
    check_read(fd, "second");
}
CASE(tirdwr_where_nothing_can_be_watched, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    pid_t child = spawn(read_unwatched, &p.client);
    close(p.client);
    for (int i = 0; i < 2; i++) {
        sleep_ms(100);
        snd(p.server, i ? "second" : "first", 0);
    }
    join(child);
}
CASE(tirdwr_with_stdio, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    FILE *out = fdopen(p.client, "r+");
    check(out != NULL);
    check(fprintf(out, "a line of %d\n", 42) > 0);
    check_eq(fflush(out), 0);
    rcv(p.server, "a line of 42\n", 0);
    snd(p.server, "answer\n", 0);
    char line[100];
    check(fgets(line, sizeof line, out) == line);
    check_str(line, "answer\n");
}
CASE(tirdwr_sees_the_end, "tirdwr(7M): T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    snd(p.server, "last", 0);
    must_t(t_sndrel(p.server));
    check_read(p.client, "last");
    check_eq(read(p.client, &c, 1), 0);
    check_eq(write(p.client, "still", 5), 5);
    rcv(p.server, "still", 0);
}
CASE(tirdwr_answers_the_end, "tirdwr(7M): close after T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    must_t(t_sndrel(p.server));
    check_eq(read(p.client, &c, 1), 0);
    check_eq(write(p.client, "bye", 3), 3);
    close(p.client);
    rcv(p.server, "bye", 0);
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(tirdwr_sees_a_disconnect, "tirdwr(7M): T_DISCON_IND") {
    struct pair p = read_write_pair();
    char c;
    signal(SIGPIPE, SIG_IGN);
    must_t(t_snddis(p.server, NULL));
    check(events(p.client, POLLIN, 5000) != 0);
    check_eq(read(p.client, &c, 1), 0);
    check(events(p.client, 0, 5000) & POLLHUP);
    check_errno2(write(p.client, "x", 1), EPIPE, ENXIO);
}
CASE(tirdwr_close_without_an_end, "tirdwr(7M): close") {
    struct pair p = read_write_pair();
    check_eq(write(p.client, "bye", 3), 3);
    rcv(p.server, "bye", 0);
    close(p.client);
    check_event(p.server, T_DISCONNECT);
}
CASE(tirdwr_popped, "tirdwr(7M): I_POP") {
    struct pair p = read_write_pair();
    check_eq(write(p.client, "by write", 8), 8);
    rcv(p.server, "by write", 0);
    pop(p.client);
    check_eq(t_sync(p.client), T_IDLE);
    check_event(p.server, T_DISCONNECT);
}
CASE(tirdwr_popped_after_the_end, "tirdwr(7M): I_POP after T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    must_t(t_sndrel(p.server));
    check_eq(read(p.client, &c, 1), 0);
    pop(p.client);
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(tirdwr_refuses_control, "tirdwr(7M): M_PROTO, CHOICES 32") {
    struct pair p = read_write_pair();
    struct T_ordrel_req m = {T_ORDREL_REQ};
    struct strbuf ctl = out_buf(&m, sizeof m);
    signal(SIGPIPE, SIG_IGN);
    putmsg(p.client, &ctl, NULL, 0);
    check(events(p.client, POLLIN, 5000) & POLLERR);
    check_errno(write(p.client, "x", 1), EPROTO);
}
CASE(tirdwr_and_expedited, "tirdwr(7M): T_EXDATA_IND") {
    struct pair p = read_write_pair();
    char c;
    snd(p.server, "!", T_EXPEDITED);
    check(events(p.client, POLLIN | POLLPRI, 5000) & POLLERR);
    check_errno(read(p.client, &c, 1), EPROTO);
}
CASE(tirdwr_polls, "tirdwr(7M), poll(2)") {
    struct pair p = read_write_pair();
    check_eq(events(p.client, POLLIN | POLLOUT, 0), POLLOUT);
    snd(p.server, "x", 0);
    check(events(p.client, POLLIN, 5000) & POLLIN);
    check_read(p.client, "x");
    check_eq(events(p.client, POLLIN, 0), 0);
}
CASE(tirdwr_and_a_plain_socket, "tirdwr(7M)") {
    struct address any = unused_address(), at;
    socklen_t len = sizeof at.at;
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    must(bind(s, (struct sockaddr *)any.at, any.len));
    must(listen(s, 1));
    must(getsockname(s, (struct sockaddr *)at.at, &len));
    at.len = len;
    int fd = connect_new(&at), peer = must(accept(s, NULL, NULL));
    push(fd, "tirdwr");
    check_eq(write(fd, "hello", 5), 5);
    char text[6] = "";
    check_eq(recv(peer, text, 5, MSG_WAITALL), 5);
    check_str(text, "hello");
    check_eq(send(peer, "back", 4, 0), 4);
    check_read(fd, "back");
    shutdown(peer, SHUT_WR);
    check_eq(read(fd, text, 1), 0);
    close(fd);
    check_eq(recv(peer, text, 1, 0), 0);
}

SUITE(FOR_BOTH(ALL, local_calls), FOR_BOTH(ALL, binds_busy), FOR_BOTH(COTS, connects),
      FOR_BOTH(COTS, waits_for_a_connection), FOR_BOTH(COTS, accepts_on_itself), FOR_BOTH(COTS, rejects),
      FOR_BOTH(COTS, connects_to_nobody), FOR_BOTH(COTS, moves_data), FOR_BOTH(LOOP, keeps_boundaries),
      FOR_BOTH(COTS, expedited), FOR_BOTH(COTS, runs_full), FOR_BOTH(ORD & ~SCTP, releases_when_full), FOR_BOTH(ORD & ~SCTP, releases), FOR_BOTH(COTS, disconnects),
      FOR_BOTH(COTS, out_of_state), FOR_BOTH(CLTS, datagrams), FOR_BOTH(CLTS, undelivered), FOR_BOTH(ALL, options),
      FOR_BOTH(LOOP, connects_with_data), FOR_BOTH(COTS, used_while_a_set_looks), FOR(COTS, pushed_in_a_set), FOR(COTS, pushed_while_a_set_looks), FOR(COTS, pushed_when_connected), FOR(COTS, pushed_with_a_rest),
      FOR(COTS, pushed_with_much), FOR(CLTS, pushed_when_datagrams_wait), FOR(COTS, pushed_on_a_listener),
      FOR(COTS, accepted_across), FOR(ALL, is_a_stream), FOR(ALL, lists_modules), FOR(ALL, bad_stream_calls),
      FOR(COTS, signals_data), FOR(COTS, signals_a_connection), FOR(CLTS, signals_a_datagram), FOR(ALL, si_getudata), FOR(ALL, ti_getinfo),
      FOR(ALL, ti_on_a_t_open_endpoint), FOR(ALL, ti_bind), FOR(ALL, ti_optmgmt), FOR(ALL, ti_sync),
      FOR(ALL, ti_capability), FOR(ALL, ti_getaddrs), FOR(COTS, ti_getmyname), FOR(ALL, ti_malformed),
      FOR(COTS, tirdwr_reads_and_writes), FOR(COTS, tirdwr_on_both_ends), FOR(COTS, tirdwr_by_hand),
      FOR(COTS, tirdwr_finds_what_came_before), FOR(COTS, tirdwr_moves_much), FOR(COTS, tirdwr_where_nothing_can_be_watched), FOR(COTS, tirdwr_with_stdio),
      FOR(ORD & ~SCTP, tirdwr_sees_the_end), FOR(ORD & ~SCTP, tirdwr_answers_the_end), FOR(COTS, tirdwr_sees_a_disconnect),
      FOR(COTS, tirdwr_close_without_an_end), FOR(COTS, tirdwr_popped), FOR(ORD, tirdwr_popped_after_the_end),
      FOR(COTS, tirdwr_refuses_control), FOR(COTS, tirdwr_and_expedited), FOR(COTS, tirdwr_polls),
      FOR(TCP, tirdwr_and_a_plain_socket))
