/* Steps for transport endpoints. */
#include <xti.h>
#include <sys/xti_sctp.h>

/* How an endpoint is that t_open makes: as it comes, and its calls are function calls; converted into a stream; with a module
 * above timod that hands everything on; opened as a stream, with such a module below timod; or as it comes, until the step
 * `t_turn` converts it, and puts a module there or takes it away again. */
enum { BY_CALLS, BY_MESSAGES, BELOW_A_MODULE, ABOVE_A_MODULE, CONVERTED };

static const char *const providers[] = {"ticlts", "ticots", "ticotsord", "tcp", "udp", "udp2", "sctp_t"};
enum { TICLTS, TICOTS, TICOTSORD, TCP, UDP, UDP2, SCTP_T, PROVIDERS };
enum { INET = TCP, ADDRESSES = 6, LONGEST = 300 };

/* Of all processes: what was bound. */
struct known_address {
    unsigned len;
    char at[64];
};
static struct netbuf stored(struct known_address *k) { return (struct netbuf){.len = k->len, .buf = k->at}; }
static void store(struct known_address *k, struct netbuf n) {
    k->len = n.len <= sizeof k->at ? n.len : 0;
    memcpy(k->at, n.buf, k->len);
}
_Static_assert(sizeof(struct known_address[PROVIDERS][ADDRESSES]) <= SHARED, "fits");
static struct known_address *known_address(int provider, long which) {
    return (struct known_address *)shared + provider * ADDRESSES + which % ADDRESSES;
}

/* What lies in a slot, and the requests that were heard there. */
static int provider_of[SLOTS], heard_of[SLOTS], sequence[SLOTS][8];
/* Who is connected with whom, by what was asked for and granted: whom each called; or who called, and where that was heard. */
static struct known_address own_of[SLOTS], called_by[SLOTS], caller_of[SLOTS], heard_at[SLOTS], callers[SLOTS][8];
static void connects(int slot, struct netbuf to) {
    store(&called_by[slot], to);
    caller_of[slot].len = 0;
}
static void accepts(int slot, int on, int which) {
    caller_of[on] = callers[slot][which];
    heard_at[on] = own_of[slot];
    called_by[on].len = 0;
}

static const char *reason(int t) {
    static const char *const names[] = {
        "0", "TBADADDR", "TBADOPT", "TACCES", "TBADF", "TNOADDR", "TOUTSTATE", "TBADSEQ", "TSYSERR", "TLOOK", "TBADDATA",
        "TBUFOVFLW", "TFLOW", "TNODATA", "TNODIS", "TNOUDERR", "TBADFLAG", "TNOREL", "TNOTSUPPORT", "TSTATECHNG",
        "TNOSTRUCTYPE", "TBADNAME", "TBADQLEN", "TADDRBUSY", "TINDOUT", "TPROVMISMATCH", "TRESQLEN", "TRESADDR", "TQFULL", "TPROTO"};
    return t >= 0 && t < (int)(sizeof names / sizeof *names) ? names[t] : "T?";
}

/* Why a call on this descriptor failed. */
static long failed(int f) {
    int t = t_errno, e = errno;
    tell(" %s", reason(t));
    if (t == TSYSERR)
        tell(" %s", strerrorname_np(e) ?: "?");
    if (t == TLOOK)
        tell(" %x", t_look(f));
    return TOLD;
}
static long answer(int slot, int r) { return r < 0 ? failed(fd[slot]) : r; }

static struct netbuf space(char *at, long n) { return (struct netbuf){.maxlen = place(n), .buf = at}; }
static struct netbuf filled(char *at, long n) { return (struct netbuf){.len = place(n), .buf = at}; }

/* Which of those that were bound. */
static void tell_address(int slot, struct netbuf n) {
    int p = provider_of[slot];
    for (int i = 0; n.len && i < ADDRESSES; i++) {
        struct known_address *k = known_address(p, i);
        if (k->len == n.len && !memcmp(k->at, n.buf, n.len)) {
            tell(" @%d", i);
            return;
        }
    }
    tell(n.len ? " @?" : " @");
}

/* An address to bind to: one of those that were, or one to be remembered. */
static struct netbuf address(int slot, long which, char *at) {
    int p = provider_of[slot];
    struct known_address *k = known_address(p, place(which));
    unsigned len = 0;
    if (which < 0)
        return filled(at, 0);
    if (k->len)
        memcpy(at, k->at, len = k->len);
    else if (p < INET)
        len = sprintf(at, "steps-%ld", which % ADDRESSES);
    else {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        memcpy(at, &a, len = sizeof a);
    }
    return filled(at, len);
}

/* It was disconnected while its peer's release waited to be taken: by messages its address is let go by then. */
static char nameless[SLOTS];
OP(t_open) { /* slot, provider, non-blocking */
    nameless[a[0]] = 0;
    char path[40];
    int flags = O_RDWR | (a[2] ? O_NONBLOCK : 0), n;
    snprintf(path, sizeof path, "/dev/%s", providers[a[1] % PROVIDERS]);
    int f = way == ABOVE_A_MODULE ? open(path, flags) : t_open(path, flags, NULL);
    if (f < 0)
        return failed(f);
    if (way == BY_MESSAGES && ioctl(f, I_GRDOPT, &n))
        tell(" no stream");
    if (way == BELOW_A_MODULE && push(f))
        tell(" can't push");
    if (way == ABOVE_A_MODULE && (push(f) || ioctl(f, I_PUSH, "timod") || t_sync(f) < 0))
        tell(" can't push timod");
    provider_of[a[0]] = a[1] % PROVIDERS;
    heard_of[a[0]] = 0;
    own_of[a[0]].len = called_by[a[0]].len = caller_of[a[0]].len = 0;
    return put(a[0], f);
}
OP(t_turn) { /* slot */
    char top[FMNAMESZ + 1];
    int f = fd[a[0]];
    if (way != CONVERTED)
        return fcntl(f, F_GETFD) < 0 ? -1 : 0;
    if (ioctl(f, I_LOOK, top) == 0 && !strcmp(top, "nullmod"))
        return ioctl(f, I_POP, 0);
    return push(f);
}
OP(t_bind) { /* slot, address (-1: any), qlen */
    char given[80], seen[LONGEST];
    struct t_bind req = {address(a[0], a[1], given), a[2]}, ret = {.addr = space(seen, sizeof seen)};
    if (t_bind(fd[a[0]], a[1] < 0 && !a[2] ? NULL : &req, &ret) < 0)
        return failed(fd[a[0]]);
    struct known_address *k = known_address(provider_of[a[0]], place(a[1]));
    if (a[1] >= 0 && !k->len && ret.addr.len <= sizeof k->at)
        memcpy(k->at, seen, k->len = ret.addr.len);
    store(&own_of[a[0]], ret.addr);
    tell_address(a[0], ret.addr);
    tell(" qlen %u", ret.qlen);
    return 0;
}
OP(t_unbind) { return answer(a[0], t_unbind(fd[a[0]])); }
OP(t_close) {
    int f = fd[a[0]];
    fd[a[0]] = -1;
    return t_close(f) < 0 ? failed(f) : 0;
}
OP(t_look) { return answer(a[0], t_look(fd[a[0]])); }
OP(t_getstate) { return answer(a[0], t_getstate(fd[a[0]])); }
OP(t_sync) { return answer(a[0], t_sync(fd[a[0]])); }
OP(t_getinfo) {
    struct t_info i;
    int r = t_getinfo(fd[a[0]], &i);
    if (r == 0)
        tell(" %04x", hash(&i, sizeof i));
    return answer(a[0], r);
}
/* Does the end of a connection wait to be taken? */
static int is_ending(int slot) { return !!(t_look(fd[slot]) & (T_DISCONNECT | T_ORDREL)); }
/* Is there a connection to send on, and no end of it to be taken before? */
static int is_sending(int slot) {
    int state = t_getstate(fd[slot]), p = provider_of[slot];
    if (p != TICOTS && p != TICOTSORD && p != TCP && p != SCTP_T)
        return state == T_IDLE;
    return (state == T_DATAXFER || state == T_INREL) && !is_ending(slot);
}
OP(t_poll) { /* slot, events, milliseconds; of room only where data can be sent: by messages a stream takes primitives at any time */
    struct pollfd p = {fd[a[0]], a[1] & ~(is_sending(a[0]) ? 0 : POLLOUT | POLLWRNORM), 0x55};
    int r = poll(&p, 1, a[2]);
    tell(" %x", p.revents);
    return r;
}

OP(t_epoll_wait) { /* set's slot, room, milliseconds; of room as t_poll */
    struct epoll_event e[SLOTS];
    int r = epoll_wait(fd[a[0]], e, a[1], a[2]), n = 0;
    for (int i = 0; i < r; i++) {
        if (!is_sending(e[i].data.u64 & 15))
            e[i].events &= ~(EPOLLOUT | EPOLLWRNORM);
        if (e[i].events)
            e[n++] = e[i];
    }
    return told_by_set(e, r < 0 ? r : n);
}

OP(t_getprotaddr) { /* slot, room */
    char here[LONGEST], there[LONGEST];
    struct t_bind b = {.addr = space(here, a[1])}, p = {.addr = space(there, a[1])};
    /* By messages what a connection has of these is not known any more as soon as its end waits, be it behind data. */
    if (t_look(fd[a[0]]) > 0 || nameless[a[0]])
        return 0;
    int r = t_getprotaddr(fd[a[0]], &b, &p);
    if (r == 0 && !t_look(fd[a[0]])) {
        tell_address(a[0], b.addr);
        /* Until the user knows that there is a connection, the other end is who was called, or who has answered. */
        if (t_getstate(fd[a[0]]) != T_OUTCON)
            tell_address(a[0], p.addr);
    }
    return answer(a[0], r);
}

/* ---- connections ---- */

/* A request or its confirmation, with so much room for data. */
static void tell_call(int slot, const struct t_call *c, long n) {
    tell_address(slot, c->addr);
    tell(" data %u", c->udata.len);
    if (n >= 0)
        came(c->udata.buf, c->udata.len, n);
}
static struct t_call call_for(char *addr, long n) {
    return (struct t_call){.addr = space(addr, LONGEST), .udata = space(empty(place(n)), n)};
}
OP(t_connect) { /* slot, address, bytes of data, room */
    char to[80], by[LONGEST];
    struct t_call call = {.addr = address(a[0], a[1], to), .udata = filled(bytes(place(a[2])), a[2])}, got = call_for(by, a[3]);
    int r = t_connect(fd[a[0]], &call, a[3] < 0 ? NULL : &got);
    if (r == 0 || t_errno == TNODATA)
        connects(a[0], call.addr);
    if (r == 0 && a[3] >= 0)
        tell_call(a[0], &got, a[3]);
    return answer(a[0], r);
}
OP(t_rcvconnect) { /* slot, room */
    char by[LONGEST];
    struct t_call got = call_for(by, a[1]);
    int r = t_rcvconnect(fd[a[0]], a[1] < 0 ? NULL : &got);
    if (r == 0 && a[1] >= 0)
        tell_call(a[0], &got, a[1]);
    return answer(a[0], r);
}
OP(t_listen) { /* slot, room */
    char from[LONGEST];
    struct t_call got = call_for(from, a[1]);
    int r = t_listen(fd[a[0]], &got), t = t_errno;
    if (r == 0 || t == TBUFOVFLW) {
        int which = heard_of[a[0]]++ & 7;
        sequence[a[0]][which] = got.sequence;
        store(&callers[a[0]][which], got.addr);
    }
    if (r == 0)
        tell_call(a[0], &got, a[1]);
    t_errno = t;
    return answer(a[0], r);
}
/* Of the request that was heard so many before the last. */
static int heard_before(int slot, long back) {
    return back < 0 || heard_of[slot] <= back ? -7777 : sequence[slot][(heard_of[slot] - 1 - back) & 7];
}
OP(t_accept) { /* slot, slot to accept on, which request, bytes of data */
    struct t_call call = {.udata = filled(bytes(place(a[3])), a[3]), .sequence = heard_before(a[0], a[2])};
    int r = t_accept(fd[a[0]], fd[a[1]], &call);
    if (r == 0)
        accepts(a[0], a[1], (heard_of[a[0]] - 1 - a[2]) & 7);
    return answer(a[0], r);
}
OP(t_snddis) { /* slot, which request (-1: the connection), bytes of data */
    if (t_getstate(fd[a[0]]) == T_OUTREL && t_look(fd[a[0]]) > 0)
        nameless[a[0]] = 1;
    struct t_call call = {.udata = filled(bytes(place(a[2])), a[2]), .sequence = heard_before(a[0], a[1])};
    return answer(a[0], t_snddis(fd[a[0]], a[1] < 0 && a[2] <= 0 ? NULL : &call));
}
OP(t_rcvdis) { /* slot, room */
    char *b = empty(place(a[1]));
    struct t_discon d = {.udata = space(b, a[1])};
    int r = t_rcvdis(fd[a[0]], a[1] < 0 ? NULL : &d);
    if (r == 0 && a[1] >= 0) {
        int back = 0;
        while (back < 8 && heard_before(a[0], back) != d.sequence)
            back++;
        tell(" %s which %d", strerrorname_np(d.reason) ?: "0", back < 8 ? back : -1);
        came(b, d.udata.len, a[1]);
    }
    return answer(a[0], r);
}
OP(t_sndrel) { return answer(a[0], t_sndrel(fd[a[0]])); }
OP(t_rcvrel) { return answer(a[0], t_rcvrel(fd[a[0]])); }
OP(t_sndreldata) { /* slot, bytes */
    struct t_discon d = {.udata = filled(bytes(place(a[1])), a[1])};
    return answer(a[0], t_sndreldata(fd[a[0]], &d));
}
OP(t_rcvreldata) { /* slot, room */
    char *b = empty(place(a[1]));
    struct t_discon d = {.udata = space(b, a[1])};
    int r = t_rcvreldata(fd[a[0]], &d);
    if (r == 0)
        came(b, d.udata.len, a[1]);
    return answer(a[0], r);
}

/* ---- data ---- */

/* Who is bound to any address is known by his port. */
static int is_same(int provider, struct netbuf a, struct netbuf b) {
    if (provider >= INET)
        return ((struct sockaddr_in *)a.buf)->sin_port == ((struct sockaddr_in *)b.buf)->sin_port;
    return a.len == b.len && !memcmp(a.buf, b.buf, a.len);
}
static int is_known_as(int provider, struct known_address *a, struct known_address *b) {
    return a->len && b->len && is_same(provider, stored(a), stored(b));
}
/* Has the one called, and the other heard of it and accepted? */
static int has_called(int slot, int other) {
    int p = provider_of[slot];
    return is_known_as(p, &called_by[slot], &heard_at[other]) && is_known_as(p, &own_of[slot], &caller_of[other]);
}
static int is_other_end(int slot, int other) {
    return provider_of[slot] == provider_of[other] && (has_called(slot, other) || has_called(other, slot));
}
/* Its own other end? By messages that is not known any more as soon as an end waits. */
static int is_with_itself(int slot) {
    char at[LONGEST], to[LONGEST];
    struct t_bind here = {.addr = space(at, LONGEST)}, there = {.addr = space(to, LONGEST)};
    return t_getprotaddr(fd[slot], &here, &there) == 0 && here.addr.len && there.addr.len &&
        is_same(provider_of[slot], here.addr, there.addr);
}
/* These flags; nothing is expedited by packets of SCTP, which come to who is connected with itself: by messages it goes ahead of
 * what came before it, else it is received as it came. */
static int sending(int slot, long flags) {
    if (provider_of[slot] != SCTP_T || !(flags & T_EXPEDITED) || !is_with_itself(slot))
        return flags;
    return flags & ~T_EXPEDITED;
}
OP(t_snd) { return answer(a[0], t_snd(fd[a[0]], bytes(a[1]), a[1], sending(a[0], a[2]))); }
OP(t_sndv) { /* slot, three lengths, flags */
    struct t_iovec v[3];
    char *b = bytes(a[1] + a[2] + a[3]);
    for (int i = 0; i < 3; b += v[i++].iov_len)
        v[i] = (struct t_iovec){b, a[i + 1]};
    return answer(a[0], t_sndv(fd[a[0]], v, 3, sending(a[0], a[4])));
}
/* TCP has no boundaries: as much as is there. */
static int received(int slot, int r, char *b, long room, int *flags) {
    if (provider_of[slot] != TCP)
        return r;
    while (r > 0 && r < room && t_look(fd[slot]) == (*flags & T_EXPEDITED ? T_EXDATA : T_DATA)) {
        int n = t_rcv(fd[slot], b + r, room - r, flags);
        if (n <= 0)
            break;
        r += n;
    }
    *flags &= ~T_MORE;
    return r;
}
OP(t_rcv) { /* slot, room */
    char *b = empty(a[1]);
    int flags = 0x7700, r = t_rcv(fd[a[0]], b, a[1], &flags), t = t_errno;
    if (r >= 0) {
        r = received(a[0], r, b, a[1], &flags);
        tell(" flags %x", flags);
    }
    came(b, r, a[1]);
    t_errno = t;
    return answer(a[0], r);
}
OP(t_rcvv) { /* slot, two rooms */
    char *b = empty(a[1] + a[2]);
    struct t_iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    int flags = 0x7700, r = t_rcvv(fd[a[0]], v, 2, &flags), t = t_errno;
    if (r >= 0) {
        r = received(a[0], r, b, a[1] + a[2], &flags);
        tell(" flags %x", flags);
    }
    came(b, r, a[1] + a[2]);
    t_errno = t;
    return answer(a[0], r);
}
/* Sends until there is no room, which is not after the same number of bytes for all ways; then the other end takes everything, and
 * there is room again. What waits in queues comes as soon as it can. */
OP(t_flood) { /* slot, bytes of each piece, the slot of the other end */
    char b[5000];
    size_t sent = 0, taken = 0;
    int flags, n, spoilt = 0;
    struct pollfd in = {fd[a[2]], POLLIN, 0}, out = {fd[a[0]], POLLOUT, 0};
    int here = fcntl(fd[a[0]], F_GETFL), there = fcntl(fd[a[2]], F_GETFL);
    if (here < 0 || there < 0 || !(here & there & O_NONBLOCK) || !is_other_end(a[0], a[2]))
        return 0;
    /* Who is left full by nobody who receives says so sooner or later. */
    int state = t_getstate(fd[a[2]]);
    if (state != T_DATAXFER && state != T_OUTREL)
        return 0;
    do {
        for (long i = 0; i < a[1]; i++)
            b[i] = (char)((sent + i) * 7);
        n = t_snd(fd[a[0]], b, a[1], 0);
        sent += n > 0 ? n : 0;
    } while (n > 0 && sent < 64 << 20);
    if (sent == 0 || t_errno != TFLOW)
        return failed(fd[a[0]]);
    do
        while ((n = t_rcv(fd[a[2]], b, sizeof b, &flags)) >= 0)
            for (int i = 0; i < n; i++)
                spoilt |= b[i] != (char)(taken++ * 7);
    while (t_errno == TNODATA && taken < sent && poll(&in, 1, 1000) == 1);
    tell(" %s%s", taken == sent ? "all" : "not all", spoilt ? " and other data" : "");
    if (taken == sent)
        tell(" room %d look %d", poll(&out, 1, 1000), t_look(fd[a[0]]));
    return answer(a[2], n);
}
OP(t_urgent) { /* slot, the slot of the other end, room: an urgent byte, which is received at once */
    int flags = 0, n, here = fcntl(fd[a[0]], F_GETFL), there = fcntl(fd[a[1]], F_GETFL), state = t_getstate(fd[a[1]]);
    if (here < 0 || there < 0 || !(here & there & O_NONBLOCK) || (state != T_DATAXFER && state != T_OUTREL))
        return 0;
    if (!is_other_end(a[0], a[1]))
        return 0;
    if (t_snd(fd[a[0]], bytes(1), 1, T_EXPEDITED) < 0)
        return failed(fd[a[0]]);
    /* By messages it is told some milliseconds late. */
    for (int i = 0; i < 1000 && t_look(fd[a[1]]) != T_EXDATA; i++)
        usleep(1000);
    tell(" look %x", t_look(fd[a[1]]));
    char *b = empty(5000);
    n = received(a[1], t_rcv(fd[a[1]], b, a[2], &flags), b, a[2], &flags);
    if (n >= 0)
        tell(" flags %x", flags);
    came(b, n, a[2]);
    return answer(a[1], n);
}

/* ---- datagrams ---- */

OP(t_sndudata) { /* slot, address, bytes */
    char to[80];
    struct t_unitdata u = {.addr = address(a[0], a[1], to), .udata = filled(bytes(a[2]), a[2])};
    return answer(a[0], t_sndudata(fd[a[0]], &u));
}
OP(t_sndvudata) { /* slot, address, two lengths */
    char to[80], *b = bytes(a[2] + a[3]);
    struct t_unitdata u = {.addr = address(a[0], a[1], to)};
    struct t_iovec v[2] = {{b, a[2]}, {b + a[2], a[3]}};
    return answer(a[0], t_sndvudata(fd[a[0]], &u, v, 2));
}
OP(t_refused) { /* slot, bytes: a datagram to a port of nobody's, of which is known when it returns */
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof to;
    struct t_unitdata u = {.addr = filled((char *)&to, len), .udata = filled(bytes(a[1]), a[1])};
    if (provider_of[a[0]] != UDP && provider_of[a[0]] != UDP2)
        return 0;
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    bind(s, (struct sockaddr *)&to, len);
    getsockname(s, (struct sockaddr *)&to, &len);
    close(s);
    int r = t_sndudata(fd[a[0]], &u);
    if (r < 0)
        return failed(fd[a[0]]);
    for (int i = 0; i < 1000 && t_look(fd[a[0]]) != T_UDERR; i++)
        usleep(1000);
    tell(" look %x", t_look(fd[a[0]]));
    return r;
}
OP(t_rcvudata) { /* slot, room, room for the address */
    char from[LONGEST], *b = empty(a[1]);
    struct t_unitdata u = {.addr = space(from, a[2]), .udata = space(b, a[1])};
    int flags = 0x7700, r = t_rcvudata(fd[a[0]], &u, &flags);
    if (r == 0) {
        tell_address(a[0], u.addr);
        tell(" data %u flags %x options %u", u.udata.len, flags, u.opt.len);
        came(b, u.udata.len, a[1]);
    }
    return answer(a[0], r);
}
OP(t_rcvvudata) { /* slot, two rooms, room for the address */
    char from[LONGEST], *b = empty(a[1] + a[2]);
    struct t_unitdata u = {.addr = space(from, a[3])};
    struct t_iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    int flags = 0x7700, r = t_rcvvudata(fd[a[0]], &u, v, 2, &flags);
    if (r >= 0) {
        tell_address(a[0], u.addr);
        tell(" flags %x", flags);
        came(b, r, a[1] + a[2]);
    }
    return answer(a[0], r);
}
OP(t_rcvuderr) { /* slot, room for the address; -1: only the indication is cleared */
    char to[LONGEST];
    struct t_uderr e = {.addr = space(to, a[1])};
    int r = t_rcvuderr(fd[a[0]], a[1] < 0 ? NULL : &e);
    if (r == 0 && a[1] >= 0) {
        tell_address(a[0], e.addr);
        tell(" %s", strerrorname_np(e.error) ?: "0");
    }
    return answer(a[0], r);
}

/* ---- options ---- */

OP(t_optmgmt) { /* slot, flags, which, value, length of the value, room */
    static const int which[][2] = {
        {XTI_GENERIC, XTI_SNDBUF}, {XTI_GENERIC, XTI_RCVBUF}, {XTI_GENERIC, XTI_SNDLOWAT}, {XTI_GENERIC, XTI_RCVLOWAT},
        {XTI_GENERIC, XTI_DEBUG}, {XTI_GENERIC, XTI_LINGER}, {XTI_GENERIC, T_ALLOPT}, {T_INET_IP, T_IP_TTL}, {T_INET_IP, T_IP_TOS},
        {T_INET_IP, T_IP_BROADCAST}, {T_INET_IP, T_ALLOPT}, {T_INET_TCP, T_TCP_NODELAY}, {T_INET_TCP, T_TCP_KEEPALIVE},
        {T_INET_TCP, T_TCP_MAXSEG}, {T_INET_UDP, T_UDP_CHECKSUM}, {XTI_GENERIC, 0x4321}, {0x1234, 1},
        {T_INET_SCTP, T_SCTP_SID}, {T_INET_SCTP, T_SCTP_PPI}, {T_INET_SCTP, T_SCTP_RECVOPT}, {T_INET_SCTP, T_SCTP_OSTREAMS},
        {T_INET_SCTP, T_SCTP_HB}};
    const int *w = which[a[2] % (long)(sizeof which / sizeof *which)];
    struct {
        struct t_opthdr head;
        int value[4];
    } o = {{sizeof o.head + a[4], w[0], w[1], 0}, {a[3], a[3]}};
    char *b = empty(a[5]);
    struct t_optmgmt req = {filled((char *)&o, sizeof o.head + (a[4] & 15)), a[1]}, ret = {space(b, a[5]), 0};
    int r = t_optmgmt(fd[a[0]], &req, &ret);
    if (r < 0)
        return failed(fd[a[0]]);
    tell(" flags %x", ret.flags);
    /* What is the connection's may have been given up with it, as its addresses; how large its buffers are the kernel decides
     * as it goes. */
    int is_buffer = w[0] == XTI_GENERIC && (w[1] == XTI_SNDBUF || w[1] == XTI_RCVBUF || w[1] == T_ALLOPT);
    int is_tcp = provider_of[a[0]] == TCP, moves = is_buffer && t_getstate(fd[a[0]]) != T_IDLE;
    if (w[1] != T_TCP_MAXSEG && !(is_tcp && (moves || t_look(fd[a[0]]))))
        came(b, ret.opt.len, a[5]);
    return r;
}
