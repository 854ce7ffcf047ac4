/* A TLI program: <tiuser.h>, buffers of char, structures by t_alloc, the old names and habits. */
#include <tiuser.h>
/* What programs of that time declare for themselves, and what is still right beside the header. */
extern int t_errno;
extern char *t_errlist[];
extern int t_nerr;
extern char *t_alloc();
extern int t_open(), t_close();
#include "endpoints.h"
#include <stropts.h>
#include <sys/timod.h>

_Static_assert(__builtin_types_compatible_p(__typeof__(((struct netbuf *)0)->buf), char *), "buffers of char");
_Static_assert(T_BIND_STR == T_BIND && T_CALL_STR == T_CALL && T_UNITDATA_STR == T_UNITDATA, "names of structures");

/* A structure, as TLI programs get them. */
static void *allocated(int fd, int kind, int fields) {
    char *s = t_alloc(fd, kind, fields);
    if (s == NULL)
        fail("t_alloc of %d: expected a structure, saw %s", kind, fault());
    return s;
}

/* --- errors --- */

/* What `run` writes to standard error. */
static const char *said(void (*run)(void)) {
    static char text[1000];
    int fd[2], old = must(dup(2));
    must(pipe(fd));
    must(dup2(fd[1], 2));
    run();
    must(dup2(old, 2));
    close(fd[1]);
    ssize_t n = must(read(fd[0], text, sizeof text - 1));
    text[n] = 0;
    return text;
}
static void say_bad_address(void) {
    t_errno = TBADADDR;
    check_eq(t_error("program"), 0);
}
static void say_system_error(void) {
    t_errno = TSYSERR, errno = EPIPE;
    t_error("program");
}
static void say_without_a_name(void) {
    t_errno = TNODATA;
    t_error("");
}
static void say_with_null(void) {
    t_errno = TNODATA;
    t_error(NULL);
}
static void say_unknown(void) {
    t_errno = 4711;
    t_error("program");
}
CASE(error_line, "TLI t_error(3N)") {
    char expected[300];
    snprintf(expected, sizeof expected, "program: %s\n", t_errlist[TBADADDR]);
    check_str(said(say_bad_address), expected);
}
CASE(error_line_of_the_system, "TLI t_error(3N): TSYSERR") {
    const char *text = said(say_system_error);
    check(!strncmp(text, "program: ", 9));
    check(strstr(text, strerror(EPIPE)) != NULL);
    check_eq(text[strlen(text) - 1], '\n');
}
CASE(error_line_without_a_name, "TLI t_error(3N)") {
    char expected[300];
    snprintf(expected, sizeof expected, "%s\n", t_errlist[TNODATA]);
    check_str(said(say_without_a_name), expected);
    check_str(said(say_with_null), expected);
}
CASE(error_line_of_an_unknown_number, "TLI t_error(3N)") { check(strstr(said(say_unknown), "4711") != NULL); }
CASE(error_keeps_t_errno, "TLI t_error(3N)") {
    said(say_bad_address);
    check_eq(t_errno, TBADADDR);
}
CASE(error_list, "TLI t_errlist, t_nerr") {
    check(t_nerr > TPROTO);
    for (int i = 1; i < t_nerr; i++) {
        check(t_errlist[i] != NULL && t_errlist[i][0] != 0);
        check_str(t_errlist[i], t_strerror(i));
        for (int k = 1; k < i; k++)
            check(strcmp(t_errlist[i], t_errlist[k]) != 0);
    }
}
CASE(error_number, "TLI t_errno") {
    t_errno = 0;
    check_eq(t_close(999), -1);
    check_eq(t_errno, TBADF);
    check_eq(t_bind(open_endpoint(), NULL, NULL), 0);
    check_eq(t_errno, TBADF); /* a success leaves it */
}

/* --- structures --- */

CASE(alloc_bind, "TLI t_alloc(3N)") {
    int fd = open_endpoint();
    struct t_bind *b = allocated(fd, T_BIND, T_ALL);
    check(b->addr.buf != NULL);
    check_eq(b->addr.maxlen, provider->info.addr);
    check_eq(b->addr.len, 0);
    check_eq(b->qlen, 0);
    b->addr.buf[0] = 'c', b->addr.buf[b->addr.maxlen - 1] = 'z';
    check_eq(t_free((char *)b, T_BIND), 0);
}
CASE(alloc_call, "TLI t_alloc(3N)") {
    int fd = open_endpoint();
    struct t_call *c = allocated(fd, T_CALL, T_ADDR);
    check(c->addr.buf != NULL && c->opt.buf == NULL && c->udata.buf == NULL);
    check_eq(c->opt.maxlen, 0);
    t_free(c, T_CALL);
    c = allocated(fd, T_CALL, T_ADDR | T_OPT);
    check(c->addr.buf != NULL && c->opt.buf != NULL);
    check_eq(t_free(c, T_CALL), 0);
}
CASE(alloc_the_rest, "TLI t_alloc(3N)") {
    int fd = open_endpoint();
    struct t_optmgmt *o = allocated(fd, T_OPTMGMT, T_ALL);
    struct t_info *i = allocated(fd, T_INFO, 0);
    check_eq(o->opt.maxlen, provider->info.options);
    check_eq(t_getinfo(fd, i), 0);
    check_eq(i->servtype, provider->info.servtype);
    t_free(o, T_OPTMGMT), t_free(i, T_INFO);
    if (is_in(CLTS)) {
        struct t_unitdata *u = allocated(fd, T_UNITDATA, T_ALL);
        struct t_uderr *e = allocated(fd, T_UDERROR, T_ALL);
        check_eq(u->udata.maxlen, provider->info.tsdu);
        check_eq(e->addr.maxlen, provider->info.addr);
        t_free(u, T_UNITDATA), t_free(e, T_UDERROR);
    } else {
        struct t_discon *d = allocated(fd, T_DIS, T_ALL);
        if (is_in(LOOP))
            check_eq(d->udata.maxlen, provider->info.discon);
        t_free(d, T_DIS);
    }
}
CASE(alloc_of_any_service, "TLI t_alloc(3N)") {
    static const int kinds[] = {T_BIND, T_OPTMGMT, T_CALL, T_DIS, T_UNITDATA, T_UDERROR, T_INFO};
    int fd = open_endpoint();
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        must_t(t_free(allocated(fd, kinds[i], T_ALL), kinds[i]));
        must_t(t_free(allocated(fd, kinds[i], 0), kinds[i]));
    }
    struct t_unitdata *u = allocated(fd, T_UNITDATA, T_ADDR);
    check_eq(u->addr.maxlen, provider->info.addr);
    t_free(u, T_UNITDATA);
}
CASE(alloc_unknown, "TLI t_alloc(3N)") {
    int fd = open_endpoint();
    check(t_alloc(fd, 99, T_ALL) == NULL);
    check_eq(t_errno, TNOSTRUCTYPE);
    check(t_alloc(999, T_BIND, T_ALL) == NULL);
    check_eq(t_errno, TBADF);
    check_eq(t_free(malloc(64), 99), -1);
    check_eq(t_errno, TNOSTRUCTYPE);
}

/* --- programs --- */

/* The server of the manuals: one connection at a time, each on a new endpoint, by a child. */
struct service {
    int listener, clients;
};
static const char greeting[] = "Wed Nov 11 11:11:11 1987\n";
static void serve_daytime(void *with) {
    struct service *s = with;
    for (int i = 0; i < s->clients; i++) {
        struct t_call *call = allocated(s->listener, T_CALL, T_ALL);
        must_t(t_listen(s->listener, call));
        int fd = must_t(t_open((char *)device(), O_RDWR, (struct t_info *)NULL));
        must_t(t_bind(fd, (struct t_bind *)NULL, (struct t_bind *)NULL));
        must_t(t_accept(s->listener, fd, call));
        t_free((char *)call, T_CALL);
        pid_t child = must(fork());
        if (child == 0) {
            check_eq(t_close(s->listener), 0);
            check_eq(t_sync(fd), T_DATAXFER);
            check_eq(t_snd(fd, (char *)greeting, sizeof greeting - 1, 0), sizeof greeting - 1);
            must_t(t_sndrel(fd));
            char c;
            int flags = 0;
            check_t(t_rcv(fd, &c, 1, &flags), TLOOK);
            check_look(fd, T_ORDREL);
            must_t(t_rcvrel(fd));
            must_t(t_close(fd));
            _exit(0);
        }
        t_close(fd);
        join(child);
    }
}
CASE(daytime, "TLI programmer's guide: connection mode") {
    struct address at;
    struct service s = {listener_at(&at, 1), 3};
    pid_t child = spawn(serve_daytime, &s);
    for (int i = 0; i < s.clients; i++) {
        int fd = must_t(t_open(device(), O_RDWR, NULL)), flags = 0, n;
        char text[100] = "", *to = text;
        must_t(t_bind(fd, NULL, NULL));
        struct t_call *call = allocated(fd, T_CALL, T_ADDR);
        memcpy(call->addr.buf, at.at, at.len);
        call->addr.len = at.len;
        must_t(t_connect(fd, call, NULL));
        t_free(call, T_CALL);
        while ((n = t_rcv(fd, to, 7, &flags)) > 0)
            to += n;
        check_eq(t_errno, TLOOK);
        check_look(fd, T_ORDREL);
        check_str(text, greeting);
        must_t(t_rcvrel(fd));
        must_t(t_sndrel(fd));
        must_t(t_close(fd));
    }
    join(child);
}

static void serve_questions(void *with) {
    int fd = *(int *)with, flags = 0;
    struct t_unitdata *u = allocated(fd, T_UNITDATA, T_ALL);
    for (int i = 0; i < 3; i++) {
        must_t(t_rcvudata(fd, u, &flags));
        for (unsigned k = 0; k < u->udata.len; k++)
            u->udata.buf[k] ^= 0x20;
        u->opt.len = 0;
        must_t(t_sndudata(fd, u));
    }
}
CASE(transaction_server, "TLI programmer's guide: connectionless mode") {
    int server = open_endpoint(), client = bound(), flags = 0;
    struct address at = bind_at(server, unused_address(), 0);
    pid_t child = spawn(serve_questions, &server);
    t_close(server);
    for (int i = 0; i < 3; i++) {
        struct t_unitdata *u = allocated(client, T_UNITDATA, T_ALL);
        memcpy(u->addr.buf, at.at, u->addr.len = at.len);
        memcpy(u->udata.buf, "question", u->udata.len = 8);
        must_t(t_sndudata(client, u));
        must_t(t_rcvudata(client, u, &flags));
        check_netbuf(u->udata, "QUESTION");
        check_eq(t_free(u, T_UNITDATA), 0);
    }
    join(child);
}
CASE(undelivered, "TLI t_rcvuderr(3N)") {
    int client = bound(), gone = bound(), flags = 0;
    struct address at = own_address(gone);
    t_close(gone);
    struct t_unitdata *u = allocated(client, T_UNITDATA, T_ALL);
    memcpy(u->addr.buf, at.at, u->addr.len = at.len);
    u->udata.len = 1;
    must_t(t_sndudata(client, u));
    check_t(t_rcvudata(client, u, &flags), TLOOK);
    struct t_uderr *e = allocated(client, T_UDERROR, T_ALL);
    must_t(t_rcvuderr(client, e));
    check(e->error != 0);
    check_eq(e->addr.len, at.len);
}

/* Takes all calls that there are, then accepts them: t_accept says TLOOK while another waits. */
static int accept_all(int listener, int *server, int served) {
    struct t_call *call[8];
    int heard = 0;
    for (int next = 0; next < heard || t_look(listener) == T_LISTEN;) {
        if (t_look(listener) == T_LISTEN) {
            call[heard] = allocated(listener, T_CALL, T_ALL);
            must_t(t_listen(listener, call[heard++]));
            continue;
        }
        int fd = must_t(t_open(device(), O_RDWR | O_NDELAY, NULL));
        if (t_accept(listener, fd, call[next]) < 0) {
            check_eq(t_errno, TLOOK);
            must_t(t_close(fd));
            continue;
        }
        server[served++] = fd, next++;
    }
    return served;
}
/* A client got its answer, or sends its question; a server answers. 1: an answer came. */
static int handle(int fd, int is_client) {
    char c;
    int flags;
    switch (t_look(fd)) {
    case T_CONNECT:
        must_t(t_rcvconnect(fd, NULL));
        check_eq(t_snd(fd, "q", 1, 0), 1);
        return 0;
    case T_DATA:
        check_eq(t_rcv(fd, &c, 1, &flags), 1);
        check_eq(c, is_client ? 'a' : 'q');
        if (!is_client)
            check_eq(t_snd(fd, "a", 1, 0), 1);
        return is_client;
    }
    return 0;
}
/* The advanced example: many endpoints, asynchronous, driven by poll. */
CASE(event_driven, "TLI programmer's guide: asynchronous mode") {
    int listener = must_t(t_open(device(), O_RDWR | O_NDELAY, NULL)), fd[6], served = 0, done = 0;
    struct address at = bind_at(listener, unused_address(), 3);
    for (int i = 0; i < 3; i++)
        fd[i] = connecting(&at), fd[3 + i] = -1;
    for (int turn = 0; done < 3; turn++) {
        struct pollfd p[7] = {{.fd = listener, .events = POLLIN}};
        for (int i = 0; i < 6; i++)
            p[1 + i] = (struct pollfd){.fd = fd[i], .events = POLLIN};
        check(poll(p, 7, PATIENCE) > 0);
        check(turn < 10000);
        if (p[0].revents)
            served = accept_all(listener, fd + 3, served);
        for (int i = 0; i < 6; i++)
            if (p[1 + i].fd >= 0 && p[1 + i].revents)
                done += handle(fd[i], i < 3);
    }
}
CASE(rejected, "TLI t_rcvdis(3N)") {
    struct address at;
    int listener = listener_at(&at, 1), client = connecting(&at);
    check_eq(reject(listener, listen_for(listener), NULL), 0);
    check_disconnect(client);
    struct t_discon *d = allocated(client, T_DIS, T_ALL);
    must_t(t_rcvdis(client, d));
    check_eq(t_free((char *)d, T_DIS), 0);
    check_state(client, T_IDLE);
}
CASE(default_options, "TLI t_optmgmt(3N) T_DEFAULT") {
    int fd = bound();
    struct t_optmgmt *o = allocated(fd, T_OPTMGMT, T_ALL);
    o->flags = T_DEFAULT, o->opt.len = 0;
    if (t_optmgmt(fd, o, o) < 0)
        check(t_errno == TBADOPT || t_errno == TBADFLAG);
    check_state(fd, T_IDLE);
}

/* The address, as t_getname gives it. */
static struct address name_of(int fd, int which) {
    struct address a;
    struct netbuf name = room(a.at, sizeof a.at);
    must_t(t_getname(fd, &name, which));
    a.len = name.len;
    return a;
}
CASE(names_of_an_endpoint, "TLI t_getname(3N)") {
    char little[1];
    int fd = open_endpoint();
    check_eq(name_of(fd, LOCALNAME).len, 0);
    check_eq(name_of(fd, REMOTENAME).len, 0);
    struct address at = bind_at(fd, unused_address(), 0), own = name_of(fd, LOCALNAME);
    check(same_address(&own, &at));
    check_eq(name_of(fd, REMOTENAME).len, 0);
    struct netbuf name = room(little, sizeof little), none = {0};
    check_t(t_getname(fd, &name, LOCALNAME), TBUFOVFLW);
    check_t(t_getname(fd, &none, LOCALNAME), TBUFOVFLW);
    check_ok(t_getname(fd, &none, REMOTENAME));
    check_t(t_getname(fd, &name, 2), TBADFLAG);
    check_t(t_getname(fd, NULL, LOCALNAME), TSYSERR);
    check_eq(errno, EFAULT);
    check_t(t_getname(0, &name, LOCALNAME), TBADF);
    check_state(fd, T_IDLE);
}
static void check_names(struct pair p) {
    struct address own = name_of(p.client, LOCALNAME), peer = name_of(p.client, REMOTENAME);
    struct address servers = name_of(p.server, LOCALNAME), client = name_of(p.server, REMOTENAME);
    check(same_address(&peer, &p.at));
    check(same_address(&servers, &p.at));
    check(same_address(&client, &own));
    check_eq(name_of(p.listener, REMOTENAME).len, 0);
}
CASE(names_of_a_connection, "TLI t_getname(3N)") { check_names(connected()); }
CASE(names_by_messages, "TLI t_getname(3N) timod(7M)") {
    struct pair p = connected();
    struct address seen, own = name_of(p.client, LOCALNAME);
    struct netbuf name = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.client, TI_GETMYNAME, &name), 0);
    seen.len = name.len;
    check(same_address(&seen, &own));
    name = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.server, TI_GETPEERNAME, &name), 0);
    seen.len = name.len;
    check(same_address(&seen, &own));
    check_names(p);
}

SUITE(ONCE(error_line), ONCE(error_line_of_the_system), ONCE(error_line_without_a_name),
      ONCE(error_line_of_an_unknown_number), ONCE(error_keeps_t_errno), ONCE(error_list), ONCE(error_number),
      FOR(ALL, alloc_bind), FOR(COTS, alloc_call), FOR(ALL, alloc_the_rest), FOR(ALL, alloc_of_any_service),
      FOR(ALL, alloc_unknown), FOR(ORD, daytime),
      FOR(CLTS, transaction_server), FOR(CLTS, undelivered), FOR(COTS, event_driven), FOR(COTS, rejected),
      FOR(ALL, default_options), FOR(ALL, names_of_an_endpoint), FOR(COTS, names_of_a_connection), FOR(COTS, names_by_messages))
