/* Every call in every state: where it is not allowed it says TOUTSTATE and changes nothing; and on what is no endpoint, TBADF. */
#include "endpoints.h"

/* --- the calls --- */

enum {
    IN_UNBND = 1 << T_UNBND,
    IN_IDLE = 1 << T_IDLE,
    IN_OUTCON = 1 << T_OUTCON,
    IN_INCON = 1 << T_INCON,
    IN_DATAXFER = 1 << T_DATAXFER,
    IN_OUTREL = 1 << T_OUTREL,
    IN_INREL = 1 << T_INREL,
    ANY_STATE = ~0
};

static char scratch[2048];
static struct t_bind a_bind, another_bind;
static struct t_call a_call;
static struct t_iovec a_vector = {scratch, 1};
static int some_flags, an_endpoint;

static int call_accept(int fd) { return t_accept(fd, an_endpoint, &a_call); }
static int call_alloc(int fd) { return t_alloc(fd, T_BIND, T_ALL) ? 0 : -1; }
static int call_bind(int fd) { return t_bind(fd, NULL, NULL); }
static int call_connect(int fd) { return t_connect(fd, &a_call, NULL); }
static int call_getinfo(int fd) {
    struct t_info info;
    return t_getinfo(fd, &info);
}
static int call_getprotaddr(int fd) { return t_getprotaddr(fd, &a_bind, &another_bind); }
static int call_listen(int fd) {
    struct call call;
    return t_listen(fd, roomy(&call));
}
static int call_optmgmt(int fd) {
    struct t_opthdr all = {.len = sizeof all, .level = XTI_GENERIC, .name = T_ALLOPT};
    struct t_optmgmt req = {given_bytes(&all, sizeof all), T_CURRENT}, ret = {room(scratch, sizeof scratch), 0};
    return t_optmgmt(fd, &req, &ret);
}
static int call_rcv(int fd) { return t_rcv(fd, scratch, 1, &some_flags); }
static int call_rcvconnect(int fd) { return t_rcvconnect(fd, NULL); }
static int call_rcvdis(int fd) { return t_rcvdis(fd, NULL); }
static int call_rcvreldata(int fd) { return t_rcvreldata(fd, NULL); }
static struct t_unitdata a_datagram(void) {
    return (struct t_unitdata){.addr = room(scratch, 100), .udata = room(scratch + 100, 100)};
}
static int call_rcvudata(int fd) {
    struct t_unitdata u = a_datagram();
    return t_rcvudata(fd, &u, &some_flags);
}
static int call_rcvvudata(int fd) {
    struct t_unitdata u = a_datagram();
    return t_rcvvudata(fd, &u, &a_vector, 1, &some_flags);
}
static int call_rcvuderr(int fd) { return t_rcvuderr(fd, NULL); }
static int call_rcvv(int fd) { return t_rcvv(fd, &a_vector, 1, &some_flags); }
static int call_snd(int fd) { return t_snd(fd, "x", 1, 0); }
static int call_snd_expedited(int fd) { return t_snd(fd, "x", 1, T_EXPEDITED); }
static int call_snddis(int fd) { return t_snddis(fd, NULL); }
static int call_sndreldata(int fd) { return t_sndreldata(fd, NULL); }
static int call_sndudata(int fd) {
    struct t_unitdata u = {.addr = a_call.addr, .udata = given_text("x")};
    return t_sndudata(fd, &u);
}
static int call_sndvudata(int fd) {
    struct t_unitdata u = {.addr = a_call.addr};
    return t_sndvudata(fd, &u, &a_vector, 1);
}
static int call_sndv(int fd) { return t_sndv(fd, &a_vector, 1, 0); }

/* What a call is for: a service that has it not says TNOTSUPPORT. */
enum { EVERY, CONNECTIONS, RELEASES, DATAGRAMS };

static const struct {
    const char *name;
    int (*call)(int fd);
    int service, states;
} calls[] = {
    {"t_accept", call_accept, CONNECTIONS, IN_INCON},
    {"t_alloc", call_alloc, EVERY, ANY_STATE},
    {"t_bind", call_bind, EVERY, IN_UNBND},
    {"t_connect", call_connect, CONNECTIONS, IN_IDLE},
    {"t_getinfo", call_getinfo, EVERY, ANY_STATE},
    {"t_getprotaddr", call_getprotaddr, EVERY, ANY_STATE},
    {"t_getstate", t_getstate, EVERY, ANY_STATE},
    {"t_listen", call_listen, CONNECTIONS, IN_IDLE | IN_INCON},
    {"t_look", t_look, EVERY, ANY_STATE},
    {"t_optmgmt", call_optmgmt, EVERY, ANY_STATE},
    {"t_rcv", call_rcv, CONNECTIONS, IN_DATAXFER | IN_OUTREL},
    {"t_rcvconnect", call_rcvconnect, CONNECTIONS, IN_OUTCON},
    {"t_rcvdis", call_rcvdis, CONNECTIONS, IN_OUTCON | IN_INCON | IN_DATAXFER | IN_OUTREL | IN_INREL},
    {"t_rcvrel", t_rcvrel, RELEASES, IN_DATAXFER | IN_OUTREL},
    {"t_rcvreldata", call_rcvreldata, RELEASES, IN_DATAXFER | IN_OUTREL},
    {"t_rcvudata", call_rcvudata, DATAGRAMS, IN_IDLE},
    {"t_rcvvudata", call_rcvvudata, DATAGRAMS, IN_IDLE},
    {"t_rcvuderr", call_rcvuderr, DATAGRAMS, IN_IDLE},
    {"t_rcvv", call_rcvv, CONNECTIONS, IN_DATAXFER | IN_OUTREL},
    {"t_snd", call_snd, CONNECTIONS, IN_DATAXFER | IN_INREL},
    {"t_snd of expedited data", call_snd_expedited, CONNECTIONS, IN_DATAXFER | IN_INREL},
    {"t_snddis", call_snddis, CONNECTIONS, IN_OUTCON | IN_INCON | IN_DATAXFER | IN_OUTREL | IN_INREL},
    {"t_sndrel", t_sndrel, RELEASES, IN_DATAXFER | IN_INREL},
    {"t_sndreldata", call_sndreldata, RELEASES, IN_DATAXFER | IN_INREL},
    {"t_sndudata", call_sndudata, DATAGRAMS, IN_IDLE},
    {"t_sndvudata", call_sndvudata, DATAGRAMS, IN_IDLE},
    {"t_sndv", call_sndv, CONNECTIONS, IN_DATAXFER | IN_INREL},
    {"t_sync", t_sync, EVERY, ANY_STATE},
    {"t_unbind", t_unbind, EVERY, IN_IDLE},
};
#define CALLS (sizeof calls / sizeof *calls)

static int has(int service) {
    return service == EVERY || (service == CONNECTIONS && is_in(COTS)) || (service == RELEASES && is_in(ORD)) ||
           (service == DATAGRAMS && is_in(CLTS));
}

/* Arguments with which every call could work. */
static void prepare_arguments(void) {
    static struct address at;
    static char here[2048], there[2048];
    at = deserted_address();
    a_call = call_to(&at);
    a_call.sequence = 1;
    a_bind.addr = room(here, sizeof here);
    another_bind.addr = room(there, sizeof there);
    an_endpoint = open_endpoint();
}

/* Does each call that this state does not allow; each leaves state and event as they were. Says all that is wrong. */
static void refuses_in(int fd, int state) {
    prepare_arguments();
    check_state(fd, state);
    int event = t_look(fd), wrong = 0;
    char said[1800] = "";
    for (size_t i = 0; i < CALLS; i++) {
        if ((calls[i].states & (1 << state)) || !has(calls[i].service))
            continue;
        AT(calls[i].name);
        t_errno = 0;
        int result = calls[i].call(fd), code = t_errno, now = t_getstate(fd), pending = t_look(fd);
        if (result == -1 && code == TOUTSTATE && now == state && pending == event)
            continue;
        wrong++;
        size_t n = strlen(said);
        snprintf(said + n, sizeof said - n, "\n  %s: result %d, %s, then %s, %s", calls[i].name, result, error_name(code),
                 state_name(now), event_name(pending));
        if (now != state)
            break;
    }
    if (wrong)
        fail("in %s, %s: expected TOUTSTATE, and no change:%s", state_name(state), event_name(event), said);
}
/* Each call of another service, in any state. */
static void does_not_support(int fd) {
    prepare_arguments();
    int state = t_getstate(fd), event = t_look(fd);
    for (size_t i = 0; i < CALLS; i++)
        if (!has(calls[i].service)) {
            AT(calls[i].name);
            t_errno = 0;
            int result = calls[i].call(fd);
            if (result != -1 || t_errno != TNOTSUPPORT || t_getstate(fd) != state || t_look(fd) != event)
                fail("%s in %s: expected TNOTSUPPORT, saw result %d, %s, then %s", calls[i].name, state_name(state), result,
                     error_name(t_errno), state_name(t_getstate(fd)));
        }
}

/* --- states --- */

CASE(in_unbnd, "XNS 5.2 TOUTSTATE in T_UNBND") {
    int fd = open_endpoint();
    refuses_in(fd, T_UNBND);
    bind_at(fd, unused_address(), 0);
}
CASE(in_idle, "XNS 5.2 TOUTSTATE in T_IDLE") {
    int fd = bound();
    struct address before = own_address(fd);
    refuses_in(fd, T_IDLE);
    struct address after = own_address(fd);
    check(same_address(&before, &after));
}
CASE(in_idle_listening, "XNS 5.2 TOUTSTATE in T_IDLE") {
    struct address at;
    int listener = listener_at(&at, 2);
    refuses_in(listener, T_IDLE);
    int client = connecting(&at);
    check_event(listener, T_LISTEN);
    refuses_in(listener, T_IDLE);
    int server = serve(listener);
    confirm(client);
    check_echo(client, server);
}
CASE(in_outcon, "XNS 5.2 TOUTSTATE in T_OUTCON") {
    struct address at;
    int listener = listener_at(&at, 2), client = connecting(&at);
    if (is_in(TCP))
        check_event(client, T_CONNECT); /* the kernel answers for the listener */
    refuses_in(client, T_OUTCON);
    int server = serve(listener);
    check_event(client, T_CONNECT);
    refuses_in(client, T_OUTCON);
    confirm(client);
    check_echo(client, server);
}
CASE(in_outcon_refused, "XNS 5.2 TOUTSTATE in T_OUTCON") {
    struct address at = deserted_address();
    int client = connecting(&at);
    check_event(client, T_DISCONNECT);
    refuses_in(client, T_OUTCON);
    check_ok(t_rcvdis(client, NULL));
    check_state(client, T_IDLE);
}
CASE(in_incon, "XNS 5.2 TOUTSTATE in T_INCON") {
    struct address at;
    int listener = listener_at(&at, 2), client = connecting(&at), sequence = listen_for(listener);
    refuses_in(listener, T_INCON);
    int server = accepted(listener, sequence);
    confirm(client);
    check_echo(client, server);
}
CASE(in_dataxfer, "XNS 5.2 TOUTSTATE in T_DATAXFER") {
    struct pair p = connected();
    refuses_in(p.client, T_DATAXFER);
    refuses_in(p.server, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(in_dataxfer_with_data, "XNS 5.2 TOUTSTATE in T_DATAXFER") {
    struct pair p = connected();
    snd(p.client, "waits", 0);
    check_event(p.server, T_DATA);
    refuses_in(p.server, T_DATAXFER);
    rcv(p.server, "waits", 0);
}
CASE(in_dataxfer_disconnected, "XNS 5.2 TOUTSTATE in T_DATAXFER") {
    struct pair p = connected();
    check_ok(t_snddis(p.client, NULL));
    check_event(p.server, T_DISCONNECT);
    refuses_in(p.server, T_DATAXFER);
    check_ok(t_rcvdis(p.server, NULL));
    refuses_in(p.server, T_IDLE);
    refuses_in(p.client, T_IDLE);
}
CASE(in_outrel, "XNS 5.2 TOUTSTATE in T_OUTREL") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    refuses_in(p.client, T_OUTREL);
    if (is_in(SCTP)) {
        check_t(snd_text(p.server, "late", 0), TLOOK);
        return;
    }
    snd(p.server, "late", 0);
    rcv(p.client, "late", 0);
}
CASE(in_outrel_released, "XNS 5.2 TOUTSTATE in T_OUTREL") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_ok(t_sndrel(p.server));
    check_event(p.client, T_ORDREL);
    refuses_in(p.client, T_OUTREL);
    check_ok(t_rcvrel(p.client));
    refuses_in(p.client, T_IDLE);
}
CASE(in_inrel, "XNS 5.2 TOUTSTATE in T_INREL") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    check_ok(t_rcvrel(p.server));
    refuses_in(p.server, T_INREL);
    snd(p.server, "late", 0);
    rcv(p.client, "late", 0);
}
CASE(in_any_state_it_describes, "XNS 5.2 t_getinfo(), t_optmgmt()") {
    struct pair p = connected();
    prepare_arguments();
    int fd[] = {open_endpoint(), bound(), p.client, p.server, p.listener, connecting(&p.at)};
    for (size_t i = 0; i < sizeof fd / sizeof *fd; i++) {
        int state = t_getstate(fd[i]);
        check_eq(call_getinfo(fd[i]), 0);
        check_eq(call_getprotaddr(fd[i]), 0);
        check_eq(call_alloc(fd[i]), 0);
        check_eq(must_t(call_optmgmt(fd[i])), 0);
        check_eq(t_sync(fd[i]), state);
        check_state(fd[i], state);
    }
}

/* --- calls of another service --- */

CASE(of_another_service, "XNS 5.2 TNOTSUPPORT") {
    does_not_support(bound());
}
CASE(of_another_service_connected, "XNS 5.2 TNOTSUPPORT") {
    struct pair p = connected();
    does_not_support(p.client);
    check_echo(p.client, p.server);
}

/* --- no endpoints --- */

static void no_endpoint(int fd) {
    prepare_arguments();
    for (size_t i = 0; i < CALLS; i++) {
        AT(calls[i].name);
        t_errno = 0;
        int result = calls[i].call(fd);
        if (result != -1 || t_errno != TBADF)
            fail("%s: expected TBADF, saw result %d, %s", calls[i].name, result, fault());
    }
    check_t(t_close(fd), TBADF);
}
CASE(on_no_descriptor, "XNS 5.2 TBADF") {
    no_endpoint(-1);
    no_endpoint(1000);
    no_endpoint(1 << 30);
}
CASE(on_a_closed_descriptor, "XNS 5.2 TBADF") {
    int fd = must(fcntl(bound(), F_DUPFD, 900));
    must_t(t_close(fd));
    no_endpoint(fd);
}
CASE(on_a_file, "XNS 5.2 TBADF") {
    int fd = must(open("file", O_RDWR | O_CREAT, 0600));
    no_endpoint(fd);
    check_eq(write(fd, "x", 1), 1);
}
CASE(on_a_socket, "XNS 5.2 TBADF") {
    no_endpoint(must(socket(AF_INET, SOCK_STREAM, 0)));
    no_endpoint(must(socket(AF_INET, SOCK_DGRAM, 0)));
    no_endpoint(must(socket(AF_UNIX, SOCK_STREAM, 0)));
}
CASE(on_a_pipe, "XNS 5.2 TBADF") {
    int fd[2];
    must(pipe(fd));
    no_endpoint(fd[0]);
    no_endpoint(fd[1]);
}
CASE(on_another_stream, "XNS 5.2 TBADF") {
    no_endpoint(open_stream("/dev/echo"));
}

SUITE(FOR(ALL, in_unbnd), FOR(ALL, in_idle), FOR(COTS, in_idle_listening), FOR(COTS, in_outcon), FOR(COTS, in_outcon_refused),
      FOR(COTS, in_incon), FOR(COTS, in_dataxfer), FOR(COTS, in_dataxfer_with_data), FOR(COTS, in_dataxfer_disconnected),
      FOR(ORD, in_outrel), FOR(ORD, in_outrel_released), FOR(ORD & ~SCTP, in_inrel), FOR(COTS, in_any_state_it_describes),
      FOR(ALL, of_another_service), FOR(COTS, of_another_service_connected), ONCE(on_no_descriptor),
      ONCE(on_a_closed_descriptor), ONCE(on_a_file), ONCE(on_a_socket), ONCE(on_a_pipe), ONCE(on_another_stream))
