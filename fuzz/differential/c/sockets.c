/* Steps for sockets. */

/* What is written goes out at once: how long the kernel gathers is a matter of time. */
static int at_once(int f) {
    int on = 1;
    if (f >= 0)
        setsockopt(f, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return f;
}

static socklen_t loopback(struct sockaddr_in *a) {
    memset(a, 0, sizeof *a);
    a->sin_family = AF_INET;
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *a;
}


/* ---- opening ---- */

OP(listen) { /* slot, backlog */
    struct sockaddr_in to;
    socklen_t len = loopback(&to);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, (struct sockaddr *)&to, len) || listen(s, a[1]))
        return -1;
    return put(a[0], s);
}
OP(connect) { /* slot, listener's slot, non-blocking */
    struct sockaddr_in to;
    socklen_t len = sizeof to;
    if (getsockname(fd[a[1]], (struct sockaddr *)&to, &len))
        return -1;
    int s = socket(AF_INET, SOCK_STREAM | (a[2] ? SOCK_NONBLOCK : 0), 0);
    int r = connect(s, (struct sockaddr *)&to, len), e = errno;
    put(a[0], at_once(s));
    errno = e;
    return r;
}
OP(accept) { return put(a[0], at_once(accept(fd[a[1]], NULL, NULL))); }
OP(accept4) { return put(a[0], at_once(accept4(fd[a[1]], NULL, NULL, SOCK_NONBLOCK))); }
static struct sockaddr_storage loopback6(const struct in6_addr *at) {
    struct sockaddr_storage a = {0};
    *(struct sockaddr_in6 *)&a = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = *at};
    return a;
}
static struct sockaddr_storage loopback4(void) {
    struct sockaddr_storage a = {0};
    loopback((struct sockaddr_in *)&a);
    return a;
}
/* Listens at one address, and calls there by another, which gets its port: the ends lie in these slots then. */
static long meet(const long *a, struct sockaddr_storage at, struct sockaddr_storage to) {
    socklen_t len = sizeof at;
    int l = socket(at.ss_family, SOCK_STREAM, 0), c = socket(to.ss_family, SOCK_STREAM, 0), off = 0;
    if (at.ss_family == AF_INET6 && setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off))
        return -1;
    if (bind(l, (struct sockaddr *)&at, sizeof at) || listen(l, 5) || getsockname(l, (struct sockaddr *)&at, &len))
        return -1;
    /* A port is in one place in the addresses of both families. */
    ((struct sockaddr_in *)&to)->sin_port = ((struct sockaddr_in *)&at)->sin_port;
    if (connect(c, (struct sockaddr *)&to, sizeof to))
        return -1;
    put(a[0], at_once(c));
    put(a[1], at_once(accept(l, NULL, NULL)));
    return close(l);
}
OP(pair) { return meet(a, loopback4(), loopback4()); } /* both ends' slots */
OP(pair6) { /* both ends' slots, the way: both by IPv6; the caller by IPv4, whom the other sees mapped */
    struct sockaddr_storage own = loopback6(&in6addr_loopback);
    return a[2] ? meet(a, loopback6(&in6addr_any), loopback4()) : meet(a, own, own);
}
OP(warm) { /* both ends' slots: enough is exchanged for a connection to be carried */
    char c[64];
    for (int i = 0; i < 8; i++)
        for (int end = 0; end < 2; end++)
            if (write(fd[a[end]], "warm", 4) != 4 || read(fd[a[!end]], c, 4) != 4)
                return -1;
    return 0;
}

/* ---- sending ---- */

OP(send) { return send(fd[a[0]], bytes(a[1]), a[1], a[2]); }
OP(sendto) { /* slot, bytes, flags, length of the address */
    struct sockaddr_in to;
    loopback(&to);
    return sendto(fd[a[0]], bytes(a[1]), a[1], a[2], (struct sockaddr *)&to, a[3]);
}
OP(sendmsg) { /* slot, two lengths, flags */
    char *b = bytes(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    return sendmsg(fd[a[0]], &m, a[3]);
}
OP(sendmmsg) { /* slot, two lengths, flags */
    char *b = bytes(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
    int r = sendmmsg(fd[a[0]], m, 2, a[3]);
    for (int i = 0; i < r; i++)
        tell(" %u", m[i].msg_len);
    return r;
}
OP(sendfile) { /* slot, bytes, from */
    int file = memfd_create("file", 0);
    if (write(file, bytes(MOST), MOST) != MOST)
        return -1;
    off_t at = a[2];
    long r = sendfile(fd[a[0]], file, &at, a[1]);
    int e = errno;
    tell(" at %ld", (long)at);
    close(file);
    errno = e;
    return r;
}
/* Are these the ends of one connection? */
static int are_ends(int f, int g) {
    struct sockaddr_storage names[4];
    memset(names, 0, sizeof names);
    for (int i = 0; i < 4; i++) {
        socklen_t len = sizeof *names;
        int of = i < 2 ? f : g;
        if (i % 2 ? getpeername(of, (struct sockaddr *)&names[i], &len) : getsockname(of, (struct sockaddr *)&names[i], &len))
            return 0;
    }
    return !memcmp(&names[0], &names[3], sizeof *names) && !memcmp(&names[1], &names[2], sizeof *names);
}
/* What there is to receive, of so many bytes, is taken in pieces of that length; how it ended. Does it go on as it began? Behind a
 * shutdown an end is no end: more comes as there is room for it. */
static const char *drained(int f, long piece, size_t want, size_t *taken, int *spoilt) {
    char b[5000];
    ssize_t n;
    for (int tries = 0; tries < 100; tries++) {
        while ((n = recv(f, b, piece, MSG_DONTWAIT)) > 0) {
            tries = 0;
            for (ssize_t i = 0; i < n; i++)
                *spoilt |= b[i] != (char)((*taken)++ * 7);
        }
        if ((n < 0 && errno != EAGAIN) || *taken >= want)
            break;
        usleep(1000);
    }
    return n == 0 ? "end" : strerrorname_np(errno);
}
OP(pour) { /* slot, bytes of each piece, the other end's slot, bytes that this takes at a time, what is done when it is full */
    enum { NOTHING, CLOSES, SHUTS, OTHER_CLOSES };
    char b[5000];
    size_t sent = 0, taken = 0, before = 0;
    ssize_t n;
    int f = fd[a[0]], g = fd[a[2]], spoilt = 0, ignored = 0;
    /* How much fits is not the same in a ring: nothing of it may be left for other steps. */
    if (f == g || !are_ends(f, g))
        return 0;
    tell(" %s", drained(g, a[3], 0, &before, &ignored));
    do {
        for (long i = 0; i < a[1]; i++)
            b[i] = (char)((sent + i) * 7);
        n = send(f, b, a[1], MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? n : 0;
    } while (n > 0 && sent < 64 << 20);
    tell(" %s", n < 0 ? strerrorname_np(errno) : "no end");
    if (a[4] == CLOSES)
        op_close((long[]){a[0]});
    if (a[4] == SHUTS)
        tell(" %d", shutdown(f, SHUT_WR));
    if (a[4] == OTHER_CLOSES) {
        op_close((long[]){a[2]});
        return 0;
    }
    const char *end = drained(g, a[3], sent, &taken, &spoilt);
    tell(" %s", end);
    /* What a reset loses has arrived by a ring. */
    if (strcmp(end, "ECONNRESET"))
        tell(" %s", taken == sent ? "all" : "not all");
    if (spoilt)
        tell(" and other data");
    return 0;
}
OP(piped) { /* slot, bytes in a pipe, bytes asked for, the way: from the pipe, into it */
    char b[MOST];
    int p[2];
    if (pipe2(p, O_NONBLOCK))
        return -1;
    ssize_t n = write(p[1], bytes(a[1]), a[1]);
    int from = a[3] ? fd[a[0]] : p[0], to = a[3] ? p[1] : fd[a[0]];
    ssize_t r = splice(from, NULL, to, NULL, a[2], SPLICE_F_NONBLOCK);
    int e = errno;
    /* How much of it is taken at a time is a matter of the pipe's pages. */
    ssize_t left = read(p[0], b, sizeof b);
    if (!a[3] || r < 0 || n < 0)
        tell(" left %zd", left);
    tell(" %04x", left > 0 ? hash(b, left) : 0);
    close(p[0]);
    close(p[1]);
    errno = e;
    return r;
}

/* ---- receiving ---- */

OP(recv) { /* slot, room, flags */
    char *b = empty(a[1]);
    ssize_t r = recv(fd[a[0]], b, a[1], a[2]);
    came(b, r, a[1]);
    return r;
}
OP(recvfrom) {
    char *b = empty(a[1]);
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    ssize_t r = recvfrom(fd[a[0]], b, a[1], a[2], (struct sockaddr *)&from, &len);
    came(b, r, a[1]);
    if (r >= 0)
        tell(" name %u", len);
    return r;
}
OP(recvmsg) { /* slot, two rooms, flags */
    char *b = empty(a[1] + a[2]);
    char control[128];
    struct sockaddr_storage from;
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof control,
                       .msg_name = &from, .msg_namelen = sizeof from};
    ssize_t r = recvmsg(fd[a[0]], &m, a[3]);
    came(b, r, a[1] + a[2]);
    if (r >= 0)
        tell(" flags %x name %u control %zu", m.msg_flags, m.msg_namelen, m.msg_controllen);
    return r;
}
OP(recvmmsg) { /* slot, two rooms, flags, milliseconds (-1: for ever) */
    char *b = empty(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
    struct timespec t;
    int r = recvmmsg(fd[a[0]], m, 2, a[3], during(a[4], &t));
    for (int i = 0; i < r; i++)
        tell(" %u:%04x", m[i].msg_len, hash(v[i].iov_base, m[i].msg_len < v[i].iov_len ? m[i].msg_len : v[i].iov_len));
    return r;
}
OP(splice) { /* from, to, bytes, flags */
    return splice(fd[a[0]], NULL, fd[a[1]], NULL, a[2], a[3]);
}

/* ---- descriptors ---- */

OP(shutdown) { return shutdown(fd[a[0]], a[1]); }
OP(getopt) { /* slot, level, option, room */
    unsigned char value[64];
    memset(value, 0xEE, sizeof value);
    socklen_t len = a[3];
    int r = getsockopt(fd[a[0]], a[1], a[2], value, &len);
    if (r >= 0)
        tell(" %u:%04x", len, hash(value, len));
    return r;
}
OP(setopt) { /* slot, level, option, value, length */
    int value[2] = {a[3], a[3]};
    return setsockopt(fd[a[0]], a[1], a[2], value, a[4]);
}
OP(timeout) { /* slot, option, milliseconds */
    struct timeval t = {0, a[2] * 1000};
    return setsockopt(fd[a[0]], SOL_SOCKET, a[1], &t, sizeof t);
}
OP(limit) { /* slot, option, seconds, microseconds, length */
    struct timeval t = {a[2], a[3]};
    return setsockopt(fd[a[0]], SOL_SOCKET, a[1], &t, a[4]);
}
OP(linger) {
    struct linger l = {a[1], a[2]};
    return setsockopt(fd[a[0]], SOL_SOCKET, SO_LINGER, &l, sizeof l);
}
OP(own) { /* SIGURG comes here */
    return fcntl(fd[a[0]], F_SETOWN, getpid());
}
OP(atmark) { return sockatmark(fd[a[0]]); }
OP(names) { /* slot */
    struct sockaddr_in here, there;
    socklen_t n = sizeof here, m = sizeof there;
    int r = getsockname(fd[a[0]], (struct sockaddr *)&here, &n);
    if (r < 0)
        return r;
    tell(" %u", n);
    r = getpeername(fd[a[0]], (struct sockaddr *)&there, &m);
    if (r >= 0)
        tell(" %u", m);
    return r;
}
OP(give) { /* slot: sends it to whoever takes it */
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &fd[a[0]], sizeof(int));
    return sendmsg(passing[0], &m, MSG_DONTWAIT);
}
OP(take) {
    char control[CMSG_SPACE(sizeof(int))] = {0}, x;
    struct iovec v = {&x, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(passing[1], &m, MSG_DONTWAIT) < 0)
        return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int f = -1;
    if (c)
        memcpy(&f, CMSG_DATA(c), sizeof f);
    return put(a[0], f);
}
