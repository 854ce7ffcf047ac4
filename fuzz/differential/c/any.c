/* Steps for descriptors of any kind, and for processes. */

OP(pipe) {
    int p[2];
    if (pipe(p))
        return -1;
    put(a[0], p[0]);
    return put(a[1], p[1]);
}
OP(write) { return write(fd[a[0]], bytes(a[1]), a[1]); }
OP(writev) { /* slot, three lengths */
    struct iovec v[3];
    char *b = bytes(a[1] + a[2] + a[3]);
    for (int i = 0; i < 3; b += v[i++].iov_len)
        v[i] = (struct iovec){b, a[i + 1]};
    return writev(fd[a[0]], v, 3);
}
OP(read) {
    char *b = empty(a[1]);
    ssize_t r = read(fd[a[0]], b, a[1]);
    came(b, r, a[1]);
    return r;
}
OP(readv) { /* slot, two rooms */
    char *b = empty(a[1] + a[2]);
    struct iovec v[2] = {{b, a[1]}, {b + a[1], a[2]}};
    ssize_t r = readv(fd[a[0]], v, 2);
    came(b, r, a[1] + a[2]);
    return r;
}

/* ---- waiting ---- */

static int limit(long ms) { return ms < 0 ? -1 : (int)ms; }

/* A time of milliseconds; -1 is none, and what is less is wrong in its own way. */
static struct timespec *during(long ms, struct timespec *t) {
    static const struct timespec wrong[] = {{0, -1}, {-1, 0}, {0, 1000000000}, {-1, 999999999}};
    *t = ms < -1 ? wrong[(-2 - ms) % 4] : (struct timespec){0, ms * 1000000};
    return ms == -1 ? NULL : t;
}

/* The mask of a wait: none, an empty one, one that keeps the signals of scripts away. */
static sigset_t *masking(long which, sigset_t *mask) {
    sigemptyset(mask);
    if (which == 2)
        sigaddset(mask, SIGUSR1);
    return which > 0 ? mask : NULL;
}
OP(block) { /* keeps the signals of scripts from this thread, or no longer */
    sigset_t mask;
    return pthread_sigmask(a[0] ? SIG_BLOCK : SIG_UNBLOCK, masking(2, &mask), NULL);
}

/* Each number after the first is a slot and, above it, events. */
static nfds_t polled(const long *a, struct pollfd *p) {
    nfds_t n = 0;
    for (int i = 1; i < 4; i++)
        if (a[i] >= 0)
            p[n++] = (struct pollfd){fd[a[i] & 15], a[i] >> 4 & 0xffff, 0x55};
    return n;
}
static void happened(struct pollfd *p, nfds_t n, int r) {
    for (nfds_t i = 0; r >= 0 && i < n; i++)
        tell(" %x", p[i].revents);
}
OP(poll) {
    struct pollfd p[3];
    nfds_t n = polled(a, p);
    int r = poll(p, n, limit(a[0]));
    happened(p, n, r);
    return r;
}
OP(ppoll) { /* the same, and a mask */
    struct pollfd p[3];
    nfds_t n = polled(a, p);
    struct timespec t;
    sigset_t mask;
    int r = ppoll(p, n, during(a[0], &t), masking(a[4], &mask));
    happened(p, n, r);
    return r;
}
static int sets(const long *a, fd_set *s) {
    int most = 0;
    for (int k = 0; k < 3; k++) {
        FD_ZERO(&s[k]);
        for (int i = 0; i < SLOTS; i++)
            if (a[k + 1] >> i & 1 && fd[i] >= 0) {
                FD_SET(fd[i], &s[k]);
                most = fd[i] >= most ? fd[i] + 1 : most;
            }
    }
    return most;
}
static void set(fd_set *s, int r) {
    for (int k = 0; r >= 0 && k < 3; k++) {
        unsigned seen = 0;
        for (int i = 0; i < SLOTS; i++)
            if (fd[i] >= 0 && FD_ISSET(fd[i], &s[k]))
                seen |= 1u << i;
        tell(" %x", seen);
    }
}
OP(select) { /* milliseconds, three sets of slots, how far below 0 their size is */
    fd_set s[3];
    int n = sets(a, s);
    struct timespec t;
    int forever = !during(a[0], &t);
    struct timeval coarse = {t.tv_sec, a[0] < 0 ? t.tv_nsec : t.tv_nsec / 1000};
    int r = select(a[4] > 0 ? -a[4] : n, &s[0], &s[1], &s[2], forever ? NULL : &coarse);
    set(s, r);
    return r;
}
OP(pselect) { /* the same, and a mask */
    fd_set s[3];
    int n = sets(a, s);
    struct timespec t;
    sigset_t mask;
    int r = pselect(n, &s[0], &s[1], &s[2], during(a[0], &t), masking(a[4], &mask));
    set(s, r);
    return r;
}
OP(epoll_create) { return put(a[0], epoll_create1(0)); }
OP(epoll_ctl) { /* set's slot, operation, slot, events */
    struct epoll_event e = {.events = (unsigned)a[3], .data.u64 = a[2] | 0xABC00};
    return epoll_ctl(fd[a[0]], a[1], fd[a[2]], &e);
}
/* One slot may have two registrations: of what its number was before, and of what it is. */
static int by_slot(const void *a, const void *b) {
    const struct epoll_event *x = a, *y = b;
    if (x->data.u64 != y->data.u64)
        return x->data.u64 < y->data.u64 ? -1 : 1;
    return x->events < y->events ? -1 : x->events > y->events;
}
static int told_by_set(struct epoll_event *e, int r) {
    if (r > 0)
        qsort(e, r, sizeof *e, by_slot);
    for (int i = 0; i < r; i++)
        tell(" %llx:%x", (unsigned long long)e[i].data.u64, e[i].events);
    return r;
}
OP(epoll_wait) { /* set's slot, room, milliseconds */
    struct epoll_event e[SLOTS];
    return told_by_set(e, epoll_wait(fd[a[0]], e, a[1], limit(a[2])));
}
OP(epoll_pwait) { /* set's slot, room, milliseconds, mask */
    struct epoll_event e[SLOTS];
    sigset_t mask;
    return told_by_set(e, epoll_pwait(fd[a[0]], e, a[1], limit(a[2]), masking(a[3], &mask)));
}
OP(epoll_pwait2) {
    struct epoll_event e[SLOTS];
    struct timespec t;
    sigset_t mask;
    return told_by_set(e, epoll_pwait2(fd[a[0]], e, a[1], during(a[2], &t), masking(a[3], &mask)));
}
OP(epoll_little) { /* set's slot, room for some only: what is told in all by enough calls */
    struct epoll_event e[SLOTS], all[SLOTS];
    int n = 0;
    for (int calls = 0; calls < 3 * SLOTS; calls++) {
        int r = epoll_wait(fd[a[0]], e, a[1], 0);
        if (r < 0)
            return r;
        if (r == 0)
            break;
        if (r > a[1])
            tell(" too many");
        for (int i = 0; i < r; i++) {
            int k = 0;
            while (k < n && all[k].data.u64 != e[i].data.u64)
                k++;
            if (k == SLOTS)
                continue;
            if (k == n)
                all[n++] = (struct epoll_event){.data.u64 = e[i].data.u64};
            all[k].events |= e[i].events;
        }
    }
    return told_by_set(all, n);
}

/* ---- descriptors ---- */

OP(close) {
    int r = close(fd[a[0]]);
    fd[a[0]] = -1;
    return r;
}
OP(close_range) { /* from one slot to another, flags: all numbers between, which are ours alone */
    int from = fd[a[0]], to = fd[a[1]];
    if (from < 0 || to >= HIGH || (to < from && to >= 0))
        return 0;
    int r = close_range(from, to < 0 ? HIGH - 1 : to, a[2]);
    /* Of several threads this one alone has closed them. */
    int apart = a[2] & CLOSE_RANGE_UNSHARE && threads > 1;
    for (int i = 0; r == 0 && !apart && !(a[2] & CLOSE_RANGE_CLOEXEC) && i < SLOTS; i++)
        if (fd[i] >= from && fd[i] <= (to < 0 ? HIGH - 1 : to))
            fd[i] = -1;
    return r;
}
OP(dup) { return put(a[0], dup(fd[a[1]])); }
OP(dup2) { /* onto a slot that is in use, from another */
    return dup2(fd[a[1]], fd[a[0]]) < 0 ? -1 : 0;
}
OP(dup3) { return dup3(fd[a[1]], fd[a[0]], a[2]) < 0 ? -1 : 0; }
OP(dupfd) { return put(a[0], fcntl(fd[a[1]], F_DUPFD_CLOEXEC, 50)); }
OP(nonblock) { /* slot, on, way */
    int on = a[1];
    if (a[2])
        return ioctl(fd[a[0]], FIONBIO, &on);
    int flags = fcntl(fd[a[0]], F_GETFL);
    return flags < 0 ? -1 : fcntl(fd[a[0]], F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
OP(getfl) { return fcntl(fd[a[0]], F_GETFL); }
OP(cloexec) { return fcntl(fd[a[0]], F_SETFD, a[1] ? FD_CLOEXEC : 0); }
OP(number) { /* slot, request */
    int n = 0x7777;
    int r = ioctl(fd[a[0]], a[1], &n);
    if (r >= 0)
        tell(" %d", n);
    return r;
}
OP(stat) {
    struct stat s;
    int r = fstat(fd[a[0]], &s);
    if (r >= 0)
        tell(" %o", s.st_mode & S_IFMT);
    return r;
}

/* ---- processes and threads ---- */

static void act(int process);

OP(fork) { /* the number of the child */
    int child = fork();
    if (child == 0) {
        act(a[0]);
        _exit(0);
    }
    return child < 0 ? -1 : 0;
}
OP(exit) {
    if (a[0])
        _exit(0);
    exit(0);
}
OP(exec) {
    (void)a;
    char text[40 + 3 * SLOTS * 4], *argv[] = {"steps", text, NULL};
    int at = sprintf(text, "%d %d %d %d", me, threads, restarts, slow);
    for (int i = 0; i < SLOTS; i++)
        at += sprintf(text + at, " %d", fd[i] >= 0 && !(fcntl(fd[i], F_GETFD) & FD_CLOEXEC) ? fd[i] : -1);
    execv("/proc/self/exe", argv);
    return -1;
}
OP(signal) { /* the thread that gets it */
    return a[0] < threads ? pthread_kill(thread[a[0]], SIGUSR1) : -1;
}
OP(pipes) { /* SIGPIPE is ignored, is what it is by default, or is handled */
    struct sigaction action = {.sa_handler = a[0] == 2 ? on_signal : a[0] == 1 ? SIG_DFL : SIG_IGN};
    return sigaction(SIGPIPE, &action, NULL);
}
OP(handled) {
    (void)a;
    return handled;
}
OP(kill) { /* done by whoever reads the script */
    (void)a;
    return 0;
}

