/* Local management: opening, describing, structures, errors. */
#include "endpoints.h"

/* --- the header --- */

_Static_assert(T_LISTEN == 1 && T_CONNECT == 2 && T_DATA == 4 && T_EXDATA == 8 && T_DISCONNECT == 16, "events");
_Static_assert(T_UDERR == 64 && T_ORDREL == 128 && T_GODATA == 256 && T_GOEXDATA == 512, "events");
_Static_assert(T_MORE == 1 && T_EXPEDITED == 2 && T_PUSH == 4, "flags");
_Static_assert(T_COTS == 1 && T_COTS_ORD == 2 && T_CLTS == 3, "service types");
_Static_assert(T_SENDZERO == 1 && T_ORDRELDATA == 2, "flags of t_info");
_Static_assert(T_BIND == 1 && T_OPTMGMT == 2 && T_CALL == 3 && T_DIS == 4 && T_UNITDATA == 5 && T_UDERROR == 6 && T_INFO == 7,
               "structures");
_Static_assert(T_ADDR == 1 && T_OPT == 2 && T_UDATA == 4 && T_ALL == 0xffff, "fields");
_Static_assert(TBADADDR == 1 && TOUTSTATE == 6 && TLOOK == 9 && TNOTSUPPORT == 18 && TPROTO == 29, "errors");
_Static_assert(sizeof(t_scalar_t) == 4 && sizeof(t_uscalar_t) == 4, "scalars");
_Static_assert(T_INFINITE == -1 && T_INVALID == -2, "sizes");

/* --- t_open --- */

CASE(open_describes, "XNS 5.2 t_open()") {
    struct t_info info;
    memset(&info, 77, sizeof info);
    must_t(t_open(device(), O_RDWR, &info));
    const struct t_info *expected = &provider->info;
    check_eq(info.servtype, expected->servtype);
    check_eq(info.addr, expected->addr);
    check_eq(info.options, expected->options);
    check_eq(info.tsdu, expected->tsdu);
    check_eq(info.etsdu, expected->etsdu);
    check_eq(info.connect, expected->connect);
    check_eq(info.discon, expected->discon);
    check_eq(info.flags, expected->flags);
}
CASE(open_leaves_unbound, "XNS 5.2 t_open()") {
    int fd = must_t(t_open(device(), O_RDWR, NULL));
    check(fd > 2);
    check_state(fd, T_UNBND);
    check_look(fd, 0);
}
CASE(open_unknown, "XNS 5.2 t_open() TBADNAME") {
    check_t2(t_open("/dev/nosuchtransport", O_RDWR, NULL), TBADNAME, TSYSERR);
    if (t_errno == TSYSERR)
        check_eq(errno, ENOENT);
    check_t2(t_open("", O_RDWR, NULL), TBADNAME, TSYSERR);
}
CASE(open_not_a_transport, "XNS 5.2 t_open() TBADNAME") {
    check_t2(t_open("/dev/null", O_RDWR, NULL), TBADNAME, TSYSERR);
    check_t2(t_open("/dev/echo", O_RDWR, NULL), TBADNAME, TSYSERR);
}
CASE(open_wants_both_ways, "XNS 5.2 t_open() TBADFLAG") {
    check_t(t_open(device(), O_RDONLY, NULL), TBADFLAG);
    check_t(t_open(device(), O_WRONLY, NULL), TBADFLAG);
    check_t(t_open(device(), O_RDONLY | O_NONBLOCK, NULL), TBADFLAG);
}
CASE(open_modes, "XNS 5.2 t_open() O_NONBLOCK") {
    check_eq(fcntl(open_endpoint(), F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
    check_eq(fcntl(open_flags(O_NONBLOCK), F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR | O_NONBLOCK);
}
CASE(open_aliases, "XNS 5.2 t_open()") {
    const char *folders[] = {"/dev/inet/", "/dev/streams/", "/dev/streams/inet/"};
    for (int i = 0; i < 3; i++) {
        char path[60];
        struct t_info info;
        snprintf(path, sizeof path, "%s%s", folders[i], provider->name);
        must_t(t_open(path, O_RDWR, &info));
        check_eq(info.servtype, provider->info.servtype);
    }
}
CASE(open_gives_own_endpoints, "XNS 5.2 t_open()") {
    int a = open_endpoint(), b = open_endpoint();
    check(a != b);
    bind_at(a, unused_address(), 0);
    check_state(a, T_IDLE);
    check_state(b, T_UNBND);
}
CASE(open_takes_the_lowest_number, "XNS 5.2 t_open()") {
    int a = open_endpoint();
    must_t(t_close(a));
    check_eq(open_endpoint(), a);
}
CASE(open_without_descriptors, "XNS 5.2 t_open() TSYSERR") {
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    check_sys(t_open(device(), O_RDWR, NULL), EMFILE);
}

/* --- t_getinfo, t_getstate, t_sync, t_look --- */

CASE(getinfo_as_opened, "XNS 5.2 t_getinfo()") {
    struct t_info opened, now;
    memset(&opened, 0, sizeof opened);
    memset(&now, 0, sizeof now);
    int fd = must_t(t_open(device(), O_RDWR, &opened));
    check_ok(t_getinfo(fd, &now));
    check_bytes(&now, &opened, sizeof now);
    bind_at(fd, unused_address(), 0);
    check_ok(t_getinfo(fd, &now));
    check_bytes(&now, &opened, sizeof now);
}
CASE(getinfo_connected, "XNS 5.2 t_getinfo()") {
    struct pair p = connected();
    struct t_info info;
    check_ok(t_getinfo(p.client, &info));
    check_eq(info.servtype, provider->info.servtype);
    check_eq(info.tsdu, provider->info.tsdu);
    check_ok(t_getinfo(p.server, &info));
    check_eq(info.etsdu, provider->info.etsdu);
}
CASE(getstate_follows, "XNS 5.2 t_getstate()") {
    int fd = open_endpoint();
    check_state(fd, T_UNBND);
    must_t(t_bind(fd, NULL, NULL));
    check_state(fd, T_IDLE);
    must_t(t_unbind(fd));
    check_state(fd, T_UNBND);
}
CASE(sync_says_the_state, "XNS 5.2 t_sync()") {
    int fd = open_endpoint();
    check_eq(t_sync(fd), T_UNBND);
    must_t(t_bind(fd, NULL, NULL));
    check_eq(t_sync(fd), T_IDLE);
}
CASE(sync_connected, "XNS 5.2 t_sync()") {
    struct pair p = connected();
    check_eq(t_sync(p.client), T_DATAXFER);
    check_eq(t_sync(p.server), T_DATAXFER);
    check_eq(t_sync(p.listener), T_IDLE);
    check_echo(p.client, p.server);
}
CASE(look_sees_nothing, "XNS 5.2 t_look()") {
    check_look(open_endpoint(), 0);
    check_look(bound(), 0);
}
CASE(copies_share_the_endpoint, "XNS 5.2 t_sync()") {
    int fd = open_endpoint(), copy = must(dup(fd));
    must_t(t_bind(fd, NULL, NULL));
    check_eq(t_sync(copy), T_IDLE);
    must_t(t_close(fd));
    check_state(copy, T_IDLE);
    must_t(t_unbind(copy));
}
CASE(copies_by_dup2, "XNS 5.2 t_sync()") {
    int fd = bound(), file = must(open("/dev/null", O_RDONLY));
    check_eq(dup2(fd, file), file);
    check_eq(t_sync(file), T_IDLE);
    must_t(t_close(file));
    check_state(fd, T_IDLE);
}

/* --- t_alloc, t_free --- */

#define check_buffer(NETBUF, SIZE) \
    do { \
        check((NETBUF).maxlen >= (unsigned)(SIZE)); \
        check((NETBUF).buf != NULL); \
        memset((NETBUF).buf, 1, (NETBUF).maxlen); \
    } while (0)
#define check_no_buffer(NETBUF) \
    do { \
        check_eq((NETBUF).maxlen, 0); \
        check((NETBUF).buf == NULL); \
    } while (0)
#define check_maybe(NETBUF, SIZE) \
    do { \
        if ((SIZE) == T_INVALID || (SIZE) == 0) \
            check_no_buffer(NETBUF); \
        else \
            check_buffer(NETBUF, (SIZE) == T_INFINITE ? 1024 : (SIZE)); \
    } while (0)
static void *alloc(int fd, int type, int fields) {
    t_errno = 0;
    void *got = (void *)t_alloc(fd, type, fields);
    if (!got)
        fail("t_alloc of structure %d, fields 0x%x: expected success, saw %s", type, fields, fault());
    return got;
}
#define check_no_alloc(FD, TYPE, FIELDS, CODE) check_t((t_alloc(FD, TYPE, FIELDS) != NULL) - 1, CODE)

CASE(alloc_bind, "XNS 5.2 t_alloc() T_BIND") {
    int fd = open_endpoint();
    struct t_bind *b = alloc(fd, T_BIND, T_ALL);
    check_buffer(b->addr, provider->info.addr);
    check_eq(b->addr.len, 0);
    check_ok(t_bind(fd, NULL, b));
    check(b->addr.len > 0);
    check_ok(t_free(b, T_BIND));
    b = alloc(fd, T_BIND, T_ADDR);
    check_buffer(b->addr, provider->info.addr);
    check_ok(t_free(b, T_BIND));
    b = alloc(fd, T_BIND, 0);
    check_no_buffer(b->addr);
    check_ok(t_free(b, T_BIND));
}
CASE(alloc_optmgmt, "XNS 5.2 t_alloc() T_OPTMGMT") {
    int fd = open_endpoint();
    struct t_optmgmt *o = alloc(fd, T_OPTMGMT, T_ALL);
    check_buffer(o->opt, provider->info.options);
    check_ok(t_free(o, T_OPTMGMT));
    o = alloc(fd, T_OPTMGMT, T_OPT);
    check_buffer(o->opt, provider->info.options);
    check_ok(t_free(o, T_OPTMGMT));
}
CASE(alloc_call, "XNS 5.2 t_alloc() T_CALL") {
    int fd = open_endpoint();
    struct t_call *c = alloc(fd, T_CALL, T_ALL);
    check_buffer(c->addr, provider->info.addr);
    check_buffer(c->opt, provider->info.options);
    check_maybe(c->udata, provider->info.connect);
    check_ok(t_free(c, T_CALL));
    c = alloc(fd, T_CALL, T_ADDR);
    check_buffer(c->addr, provider->info.addr);
    check_no_buffer(c->opt);
    check_no_buffer(c->udata);
    check_ok(t_free(c, T_CALL));
    c = alloc(fd, T_CALL, T_OPT);
    check_no_buffer(c->addr);
    check_buffer(c->opt, provider->info.options);
    check_ok(t_free(c, T_CALL));
    c = alloc(fd, T_CALL, T_ADDR | T_OPT);
    check_buffer(c->addr, provider->info.addr);
    check_buffer(c->opt, provider->info.options);
    check_no_buffer(c->udata);
    check_ok(t_free(c, T_CALL));
}
CASE(alloc_dis, "XNS 5.2 t_alloc() T_DIS") {
    int fd = open_endpoint();
    struct t_discon *d = alloc(fd, T_DIS, T_ALL);
    check_maybe(d->udata, provider->info.discon);
    check_ok(t_free(d, T_DIS));
    d = alloc(fd, T_DIS, 0);
    check_no_buffer(d->udata);
    check_ok(t_free(d, T_DIS));
}
CASE(alloc_unitdata, "XNS 5.2 t_alloc() T_UNITDATA") {
    int fd = open_endpoint();
    struct t_unitdata *u = alloc(fd, T_UNITDATA, T_ALL);
    check_buffer(u->addr, provider->info.addr);
    check_buffer(u->opt, provider->info.options);
    check_buffer(u->udata, provider->info.tsdu);
    check_ok(t_free(u, T_UNITDATA));
    u = alloc(fd, T_UNITDATA, T_UDATA);
    check_no_buffer(u->addr);
    check_no_buffer(u->opt);
    check_buffer(u->udata, provider->info.tsdu);
    check_ok(t_free(u, T_UNITDATA));
}
CASE(alloc_uderror, "XNS 5.2 t_alloc() T_UDERROR") {
    int fd = open_endpoint();
    struct t_uderr *u = alloc(fd, T_UDERROR, T_ALL);
    check_buffer(u->addr, provider->info.addr);
    check_buffer(u->opt, provider->info.options);
    check_ok(t_free(u, T_UDERROR));
}
CASE(alloc_info, "XNS 5.2 t_alloc() T_INFO") {
    int fd = open_endpoint();
    struct t_info *i = alloc(fd, T_INFO, T_ALL);
    check_ok(t_getinfo(fd, i));
    check_eq(i->servtype, provider->info.servtype);
    check_ok(t_free(i, T_INFO));
    check_ok(t_free(alloc(fd, T_INFO, 0), T_INFO));
}
CASE(alloc_user_data, "XNS 5.2 t_alloc() T_UDATA") {
    int fd = open_endpoint();
    struct t_call *c = alloc(fd, T_CALL, T_UDATA);
    check_no_buffer(c->addr);
    check_no_buffer(c->opt);
    check_buffer(c->udata, 1024);
    check_ok(t_free(c, T_CALL));
    struct t_discon *d = alloc(fd, T_DIS, T_UDATA);
    check_buffer(d->udata, 1024);
    check_ok(t_free(d, T_DIS));
}
CASE(alloc_user_data_unsupported, "XNS 5.2 t_alloc() TSYSERR EINVAL") {
    int fd = open_endpoint();
    check_no_alloc(fd, T_CALL, T_UDATA, TSYSERR);
    check_eq(errno, EINVAL);
    check_no_alloc(fd, T_DIS, T_UDATA, TSYSERR);
    check_eq(errno, EINVAL);
}
CASE(alloc_unknown, "XNS 5.2 t_alloc() TNOSTRUCTYPE") {
    int fd = open_endpoint();
    check_no_alloc(fd, 99, T_ALL, TNOSTRUCTYPE);
    check_no_alloc(fd, 0, T_ALL, TNOSTRUCTYPE);
    check_no_alloc(fd, -1, 0, TNOSTRUCTYPE);
}
CASE(alloc_of_the_other_service, "XNS 5.2 t_alloc() TNOSTRUCTYPE") {
    int fd = open_endpoint();
    if (is_in(COTS)) {
        check_no_alloc(fd, T_UNITDATA, T_ALL, TNOSTRUCTYPE);
        check_no_alloc(fd, T_UDERROR, T_ALL, TNOSTRUCTYPE);
    } else {
        check_no_alloc(fd, T_CALL, T_ALL, TNOSTRUCTYPE);
        check_no_alloc(fd, T_DIS, T_ALL, TNOSTRUCTYPE);
    }
}
CASE(alloc_in_any_state, "XNS 5.2 t_alloc()") {
    struct pair p = connected();
    check_ok(t_free(alloc(p.client, T_CALL, T_ALL), T_CALL));
    check_ok(t_free(alloc(p.server, T_BIND, T_ALL), T_BIND));
}
CASE(alloc_needs_an_endpoint, "XNS 5.2 t_alloc() TBADF") {
    check_no_alloc(-1, T_BIND, T_ALL, TBADF);
    check_no_alloc(1, T_BIND, T_ALL, TBADF);
}
CASE(free_of_an_unknown_structure, "XNS 5.2 t_free() TNOSTRUCTYPE") {
    void *b = alloc(open_endpoint(), T_BIND, T_ALL);
    check_t(t_free(b, 99), TNOSTRUCTYPE);
    check_ok(t_free(b, T_BIND));
}
CASE(free_without_the_buffer, "XNS 5.2 t_free()") {
    struct t_bind *b = alloc(open_endpoint(), T_BIND, T_ALL);
    void *kept = b->addr.buf;
    b->addr.buf = NULL;
    check_ok(t_free(b, T_BIND));
    memset(kept, 1, 16);
}

/* --- errors --- */

CASE(strerror_knows_all, "XNS 5.2 t_strerror()") {
    for (int i = 1; i <= 29; i++) {
        char text[300];
        check(t_strerror(i) != NULL);
        snprintf(text, sizeof text, "%s", t_strerror(i));
        check(strlen(text) > 3);
        for (int j = 1; j < i; j++)
            check(strcmp(t_strerror(j), text) != 0);
    }
}
CASE(strerror_unknown, "XNS 5.2 t_strerror()") {
    check(strstr(t_strerror(4711), "4711") != NULL);
    check(strstr(t_strerror(-3), "-3") != NULL);
}

/* What t_error(message) writes with this t_errno and errno. */
static const char *said(const char *message, int code, int system) {
    static char text[1000];
    int fd[2], saved = must(dup(2));
    must(pipe(fd));
    must(dup2(fd[1], 2));
    t_errno = code, errno = system;
    int result = t_error(message);
    must(dup2(saved, 2));
    close(fd[1]);
    check_eq(result, 0);
    int n = must(read(fd[0], text, sizeof text - 1));
    text[n] = 0;
    close(fd[0]);
    close(saved);
    return text;
}
CASE(error_writes, "XNS 5.2 t_error()") {
    char expected[400];
    snprintf(expected, sizeof expected, "my call: %s\n", t_strerror(TOUTSTATE));
    check_str(said("my call", TOUTSTATE, 0), expected);
    snprintf(expected, sizeof expected, "%s\n", t_strerror(TLOOK));
    check_str(said(NULL, TLOOK, 0), expected);
    check_str(said("", TLOOK, 0), expected);
}
CASE(error_writes_system_errors, "XNS 5.2 t_error() TSYSERR") {
    const char *text = said("my call", TSYSERR, ENOMEM);
    check_eq(strncmp(text, "my call: ", 9), 0);
    check(strstr(text, strerror(ENOMEM)) != NULL);
    check_eq(text[strlen(text) - 1], '\n');
}
static void fail_otherwise(void *with) {
    check_eq(t_errno, 0);
    check_t(t_close(-1), TBADF);
    check_eq(t_errno, TBADF);
    *(int **)with = &t_errno;
}
CASE(errno_of_each_thread, "XNS 5.2 t_errno") {
    int *other;
    check_t(t_open(device(), O_RDONLY, NULL), TBADFLAG);
    finish(start(fail_otherwise, &other));
    check_eq(t_errno, TBADFLAG);
    check(other != &t_errno);
}
CASE(errno_stays_after_success, "XNS 5.2 t_errno") {
    int fd = open_endpoint();
    check_t(t_unbind(fd), TOUTSTATE);
    check_ok(t_bind(fd, NULL, NULL));
    check_eq(t_errno, TOUTSTATE);
}
CASE(sysconf_iov_max, "XNS 5.2 t_sysconf()") {
    check_eq(t_sysconf(_SC_T_IOV_MAX), T_IOV_MAX);
    check(T_IOV_MAX >= 16);
}
CASE(sysconf_unknown, "XNS 5.2 t_sysconf() TBADFLAG") {
    check_t(t_sysconf(-5), TBADFLAG);
    check_t(t_sysconf(123456), TBADFLAG);
}

SUITE(FOR(ALL, open_describes), FOR(ALL, open_leaves_unbound), ONCE(open_unknown), ONCE(open_not_a_transport),
      FOR(ALL, open_wants_both_ways), FOR(ALL, open_modes), FOR(ALL, open_aliases), FOR(ALL, open_gives_own_endpoints),
      FOR(ALL, open_takes_the_lowest_number), FOR(ALL, open_without_descriptors), FOR(ALL, getinfo_as_opened),
      FOR(COTS, getinfo_connected), FOR(ALL, getstate_follows), FOR(ALL, sync_says_the_state),
      FOR(COTS, sync_connected), FOR(ALL, look_sees_nothing), FOR(ALL, copies_share_the_endpoint),
      FOR(ALL, copies_by_dup2), FOR(ALL, alloc_bind), FOR(ALL, alloc_optmgmt), FOR(COTS, alloc_call),
      FOR(COTS, alloc_dis), FOR(CLTS, alloc_unitdata), FOR(CLTS, alloc_uderror), FOR(ALL, alloc_info),
      FOR(LOOP, alloc_user_data), FOR(TCP, alloc_user_data_unsupported), FOR(ALL, alloc_unknown),
      FOR(ALL, alloc_of_the_other_service), FOR(COTS, alloc_in_any_state), ONCE(alloc_needs_an_endpoint),
      FOR(ALL, free_of_an_unknown_structure), FOR(ALL, free_without_the_buffer), ONCE(strerror_knows_all),
      ONCE(strerror_unknown), ONCE(error_writes), ONCE(error_writes_system_errors), ONCE(errno_of_each_thread),
      ONCE(errno_stays_after_success), ONCE(sysconf_iov_max), ONCE(sysconf_unknown))
