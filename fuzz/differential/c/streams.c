/* Steps for streams. */
#include <stropts.h>

/* How a stream is that a step makes: as it comes, with a module that hands everything on, with one that was popped again, or the
 * one, then the other, as the step `turn` comes. */
enum { PLAIN, PUSHED, POPPED, TURNED };

static int push(int f) { return ioctl(f, I_PUSH, "nullmod"); }

static long made(int slot, int f) {
    if (f < 0)
        return -1;
    /* ENXIO: the other end is closed. */
    if ((way == PUSHED || way == POPPED) && push(f) && errno != ENXIO)
        tell(" can't push %s", strerrorname_np(errno));
    if (way == POPPED && ioctl(f, I_POP, 0) && errno != ENXIO)
        tell(" can't pop %s", strerrorname_np(errno));
    return put(slot, f);
}

OP(streams_pipe) { /* both ends' slots */
    int p[2];
    if (streams_pipe(p))
        return -1;
    long r = made(a[0], p[0]);
    return made(a[1], p[1]) ?: r;
}
OP(sopen) { /* slot, what, flags */
    static const char *const names[] = {"/dev/echo", "/dev/nuls", "/dev/loop", "/dev/fifo", "/dev/fifo.one", "/dev/fifo.two", "attached.0", "attached.1"};
    int f = open(names[a[1] & 7], a[2]);
    if (f >= 0 && !isastream(f)) {
        /* The file itself. */
        close(f);
        errno = ENOSTR;
        return -1;
    }
    return made(a[0], f);
}
OP(turn) { /* slot */
    char top[FMNAMESZ + 1];
    if (way != TURNED)
        return fcntl(fd[a[0]], F_GETFD) < 0 ? -1 : 0;
    if (ioctl(fd[a[0]], I_LOOK, top) == 0 && !strcmp(top, "nullmod"))
        return ioctl(fd[a[0]], I_POP, 0) && errno != ENXIO ? -1 : 0;
    return push(fd[a[0]]) && errno != ENXIO ? -1 : 0;
}
OP(join) { /* two slots with the driver loop */
    int minor = ioctl(fd[a[1]], 'l' << 8 | 2, 0);
    struct strioctl s = {'l' << 8 | 1, 5, sizeof minor, (char *)&minor};
    return minor < 0 ? -1 : ioctl(fd[a[0]], I_STR, &s);
}
OP(fattach) { /* slot, name */
    char name[] = "attached.0";
    name[9] += a[1] & 1;
    close(open(name, O_CREAT | O_RDWR, 0600));
    return fattach(fd[a[0]], name);
}
OP(fdetach) { /* name */
    char name[] = "attached.0";
    name[9] += a[0] & 1;
    return fdetach(name);
}

/* A part of a message to send: -1 none, -2 no buffer. */
static struct strbuf *part(struct strbuf *s, long n, char *at) {
    *s = (struct strbuf){.len = n, .buf = at};
    return n < -1 ? NULL : s;
}
OP(putmsg) { /* slot, control, data, flags */
    struct strbuf c, d;
    char *b = bytes(MOST);
    return putmsg(fd[a[0]], part(&c, a[1], b + 11), part(&d, a[2], b), a[3]);
}
OP(putpmsg) { /* slot, control, data, band, flags */
    struct strbuf c, d;
    char *b = bytes(MOST);
    return putpmsg(fd[a[0]], part(&c, a[1], b + 11), part(&d, a[2], b), a[3], a[4]);
}

/* Room for a part: -1 takes none, -2 is no buffer. */
static struct strbuf *room(struct strbuf *s, long n, char *at) {
    *s = (struct strbuf){.maxlen = n, .len = 0x5555, .buf = at};
    return n < -1 ? NULL : s;
}
static void got(const char *what, const struct strbuf *s, long n) {
    if (n < -1)
        return;
    tell(" %s %d", what, s->len);
    if (n >= 0)
        came(s->buf, s->len, n);
}
static long place(long n) { return n < 0 ? 0 : n; }
OP(getmsg) { /* slot, rooms for control and data, flags */
    struct strbuf c, d;
    char *b = empty(place(a[1]) + place(a[2]) + 64);
    int flags = a[3];
    int r = getmsg(fd[a[0]], room(&c, a[1], b), room(&d, a[2], b + place(a[1]) + 64), &flags);
    if (r < 0)
        return r;
    got("control", &c, a[1]);
    got("data", &d, a[2]);
    tell(" flags %x", flags);
    return r;
}
OP(getpmsg) { /* slot, rooms for control and data, band, flags */
    struct strbuf c, d;
    char *b = empty(place(a[1]) + place(a[2]) + 64);
    int band = a[3], flags = a[4];
    int r = getpmsg(fd[a[0]], room(&c, a[1], b), room(&d, a[2], b + place(a[1]) + 64), &band, &flags);
    if (r < 0)
        return r;
    got("control", &c, a[1]);
    got("data", &d, a[2]);
    tell(" band %d flags %x", band, flags);
    return r;
}
OP(peek) { /* slot, rooms for control and data, flags */
    char *b = empty(place(a[1]) + place(a[2]) + 64);
    struct strpeek p;
    room(&p.ctlbuf, a[1], b);
    room(&p.databuf, a[2], b + place(a[1]) + 64);
    p.flags = a[3];
    int r = ioctl(fd[a[0]], I_PEEK, &p);
    if (r > 0) {
        got("control", &p.ctlbuf, a[1]);
        got("data", &p.databuf, a[2]);
        tell(" flags %x", p.flags);
    }
    return r;
}
OP(nread) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_NREAD, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(fionread) {
    int n = 0x7777, r = ioctl(fd[a[0]], FIONREAD, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(flush) { return ioctl(fd[a[0]], I_FLUSH, a[1]); }
OP(flushband) { /* slot, how, band */
    struct bandinfo b = {a[2], a[1]};
    return ioctl(fd[a[0]], I_FLUSHBAND, &b);
}
OP(ckband) { return ioctl(fd[a[0]], I_CKBAND, a[1]); }
OP(getband) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_GETBAND, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(atmark) { return ioctl(fd[a[0]], I_ATMARK, a[1]); }
OP(srdopt) { return ioctl(fd[a[0]], I_SRDOPT, a[1]); }
OP(grdopt) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_GRDOPT, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(swropt) { return ioctl(fd[a[0]], I_SWROPT, a[1]); }
OP(gwropt) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_GWROPT, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(canput) { return ioctl(fd[a[0]], I_CANPUT, a[1]); }
OP(setcltime) { /* slot, milliseconds */
    int n = a[1];
    return ioctl(fd[a[0]], I_SETCLTIME, &n);
}
OP(getcltime) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_GETCLTIME, &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(istr) { /* slot, command, bytes */
    struct strioctl s = {a[1], 5, a[2], bytes(a[2])};
    int r = ioctl(fd[a[0]], I_STR, &s);
    if (r >= 0)
        tell(" %d", s.ic_len);
    return r;
}
OP(transparent) { /* slot, command that nobody knows */
    int n = 0;
    return ioctl(fd[a[0]], a[1], &n);
}
OP(sendfd) { /* slot: a file whose contents say by which step it was sent */
    int file = memfd_create("sent", 0);
    if (pwrite(file, bytes(20), 20, 0) != 20)
        return -1;
    int r = ioctl(fd[a[0]], I_SENDFD, file), e = errno;
    close(file);
    errno = e;
    return r;
}
OP(recvfd) {
    struct strrecvfd f;
    int r = ioctl(fd[a[0]], I_RECVFD, &f);
    if (r < 0)
        return r;
    char *b = empty(20);
    came(b, pread(f.fd, b, 20, 0), 20);
    tell(" of %d %d", (int)f.uid, (int)f.gid);
    close(f.fd);
    return r;
}
OP(isastream) { return isastream(fd[a[0]]); }

static volatile int polled_signals;
static void on_poll(int signal) {
    (void)signal;
    polled_signals = 1;
}
OP(setsig) { /* slot, events */
    struct sigaction action = {.sa_handler = on_poll, .sa_flags = SA_RESTART};
    sigaction(SIGPOLL, &action, NULL);
    return ioctl(fd[a[0]], I_SETSIG, a[1]);
}
OP(getsig) {
    int n = 0x7777, r = ioctl(fd[a[0]], I_GETSIG, &n);
    if (r >= 0)
        tell(" %x", n);
    return r;
}
OP(signalled) { /* since this was asked last; what others do at a stream may be told some milliseconds late */
    (void)a;
    for (int i = 0; i < 10 && !polled_signals; i++)
        usleep(2000);
    int was = polled_signals;
    polled_signals = 0;
    return was;
}
