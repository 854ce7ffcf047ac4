/* What is done about signals while a connection is used: handlers that use it too, what the program is told of them, faults of
 * its own, default actions. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "signals.h"
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* A storm of signals whose handler writes to the very connection, while data flows both ways. Handler's and main program's
 * messages are whole and each kind is in order. */
struct message {
    uint32_t kind, number;
    unsigned char body[56];
};
static int storm_fd;
static volatile uint32_t storm_sent, storm_over;
static void send_message(int fd, uint32_t kind, uint32_t number) {
    struct message m = {kind, number, {0}};
    memset(m.body, number, sizeof m.body);
    send_all(fd, &m, sizeof m);
}
static void storm(int n) {
    (void)n;
    int e = errno;
    if (!storm_over) {
        send_message(storm_fd, 2, storm_sent);
        storm_sent++;
    }
    errno = e;
}
static void storm_server(int fd) {
    uint32_t next[3] = {0};
    uint64_t bytes = 0;
    for (;;) {
        struct message m;
        recv_all(fd, &m, sizeof m);
        if (m.kind == 3)
            break;
        if (m.kind < 1 || m.kind > 2 || m.number != next[m.kind]++ || m.body[0] != (m.number & 255) ||
            m.body[55] != (m.number & 255)) {
            say("bad message after %u and %u: kind %u number %u", next[1], next[2], m.kind, m.number);
            _exit(1);
        }
        bytes += sizeof m;
        if (m.kind == 1 && m.number % 16 == 0)
            send_noise(fd, m.number, 64);
    }
    say("main messages %u, handler's: %d", next[1], next[2] > 50);
}
static void storm_client(int fd) {
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
    storm_fd = fd;
    handle(SIGALRM, storm, SA_RESTART);
    must(setitimer(ITIMER_REAL, &often, NULL));
    for (uint32_t i = 0; i < 20000; i++) {
        send_message(fd, 1, i);
        if (i % 16 == 0)
            recv_noise(fd, i, 64);
    }
    while (storm_sent <= 50)
        usleep(1000);
    storm_over = 1;
    must(setitimer(ITIMER_REAL, &never, NULL));
    send_message(fd, 3, 0);
}

/* SIGIO announces data, whichever way it comes. */
static void sigio_server(int fd) {
    sigset_t io;
    struct timespec t = {5, 0};
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    sigprocmask(SIG_BLOCK, &io, NULL);
    must(fcntl(fd, F_SETOWN, getpid()));
    must(fcntl(fd, F_SETFL, must(fcntl(fd, F_GETFL)) | O_ASYNC | O_NONBLOCK));
    tell_peer();
    say("signal: %d", sigtimedwait(&io, NULL, &t) == SIGIO);
    await_peer();
    char buf[100];
    say_result("data", read(fd, buf, 100));
    tell_peer();
}
static void sigio_client(int fd) {
    await_peer();
    send_noise(fd, 0, 100);
    tell_peer();
    await_peer();
}

/* What sigaction says of handlers is what the program set. */
static void siginfo(int n, siginfo_t *info, void *context) {
    (void)context;
    signals += n == SIGUSR2 && info->si_pid == getpid() && info->si_value.sival_int == 42 ? 100 : 0;
}
static void handlers_server(int fd) {
    struct sigaction a = {.sa_handler = count, .sa_flags = SA_RESTART}, b;
    sigaddset(&a.sa_mask, SIGUSR2);
    must(sigaction(SIGUSR1, &a, NULL));
    must(sigaction(SIGUSR1, NULL, &b));
    say("handler %d flags %x mask %d", b.sa_handler == count, b.sa_flags & ~0x04000000, sigismember(&b.sa_mask, SIGUSR2));
    say("signal says %d", signal(SIGUSR1, SIG_IGN) == count);
    say("then ignored %d", signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    a = (struct sigaction){.sa_sigaction = siginfo, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    must(sigaction(SIGUSR2, &a, NULL));
    must(sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42}));
    must(sigaction(SIGUSR2, NULL, &b));
    say("information %d, reset %d", signals, b.sa_handler == SIG_DFL);
    say_result("SIGKILL", sigaction(SIGKILL, &a, NULL));
    say_result("signal 99", sigaction(99, &a, NULL));
    send_noise(fd, 0, 10);
}
static void handlers_client(int fd) { recv_noise(fd, 0, 10); }

/* Signals that strike again and again inside calls on a busy connection: each comes once, with what it was sent with, and finds
 * the handler that the program installed for it. */
static volatile sig_atomic_t struck, odd;
static void strike(int (*send_one)(int number), void (*each)(int fd, int number), int fd) {
    for (int i = 0; i < 400; i++) {
        int before = struck;
        must(send_one(i));
        for (int n = 0; struck == before || n < 3; n++)
            each(fd, n);
    }
}
static char large[1 << 18];
static void exchange_one(int fd, int n) {
    (void)n;
    send(fd, large, sizeof large, MSG_DONTWAIT);
    recv(fd, large, sizeof large, MSG_DONTWAIT);
}
static void echo_to_end(int fd) {
    static char buf[1 << 18];
    ssize_t n;
    while ((n = must(read(fd, buf, sizeof buf))) > 0)
        send_all(fd, buf, n);
}
/* The peer sends what it is asked for, so that it comes at any moment. */
static int ask_peer(int n) {
    struct { int to, signal, value; } request = {getpid(), n % 2 ? SIGTERM : SIGUSR2, n};
    return write(to_peer, &request, sizeof request);
}
static void send_asked(int fd) {
    struct { int to, signal, value; } request;
    (void)fd;
    while (read(from_peer, &request, sizeof request) == sizeof request)
        must(sigqueue(request.to, request.signal, (union sigval){.sival_int = request.value}));
}
static volatile sig_atomic_t next_value;
static void once(int n, siginfo_t *info, void *context) {
    struct sigaction a;
    (void)context;
    sigaction(n, NULL, &a);
    odd += a.sa_handler != SIG_DFL || !(a.sa_flags & SA_RESETHAND) || info->si_pid != peer_pid || info->si_code != SI_QUEUE ||
           info->si_signo != n || info->si_value.sival_int != next_value;
    next_value++;
    a.sa_sigaction = once;
    sigaction(n, &a, NULL);
    struck++;
}
static void *echo_thread(void *fd) {
    echo_to_end(*(int *)fd);
    return NULL;
}
static void resethand_server(int fd) {
    struct sigaction a = {.sa_sigaction = once, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_RESTART};
    must(sigaction(SIGTERM, &a, NULL));
    must(sigaction(SIGUSR2, &a, NULL));
    strike(ask_peer, exchange_one, fd);
    close(to_peer);
    shutdown(fd, SHUT_WR);
    while (must(read(fd, large, sizeof large)) > 0) {
    }
    say("struck %d, not as sent %d", struck, odd);
}
static void resethand_client(int fd) {
    pthread_t t;
    pthread_create(&t, NULL, echo_thread, &fd);
    send_asked(fd);
    pthread_join(t, NULL);
}

/* SA_NODEFER lets a handler interrupt itself; without it, or where its own mask says so, it does not. */
static volatile sig_atomic_t nested, deepest, more;
static void nesting(int n) {
    int now_in = ++nested;
    deepest = deepest > now_in ? deepest : now_in;
    if (more-- > 0)
        raise(n);
    nested--;
    struck++;
}
static void nodefer_server(int fd) {
    struct sigaction a = {.sa_handler = nesting, .sa_flags = SA_NODEFER | SA_RESTART}, b;
    for (int round = 0; round < 3; round++) {
        sigemptyset(&a.sa_mask);
        if (round == 1)
            sigaddset(&a.sa_mask, SIGUSR1);
        if (round == 2)
            a.sa_flags = SA_RESTART;
        must(sigaction(SIGUSR1, &a, NULL));
        must(sigaction(SIGUSR1, NULL, &b));
        struck = deepest = 0, more = 2;
        raise(SIGUSR1);
        say("ran %d times, %d deep, flags %x", struck, deepest, b.sa_flags & ~0x04000000);
    }
    say("held: %d", sigset(SIGUSR1, SIG_HOLD) == nesting);
    say("was held: %d", sigset(SIGUSR1, count) == SIG_HOLD);
    say("now: %d", sigset(SIGUSR1, SIG_DFL) == count);
    send_noise(fd, 0, 10);
}
static void nodefer_client(int fd) { recv_noise(fd, 0, 10); }

/* A wrong pointer is EFAULT, whatever the program does about SIGSEGV, and nothing is lost by it. */
static sigjmp_buf out_of_fault;
static void leave_fault(int n) {
    signals++;
    siglongjmp(out_of_fault, n);
}
static int ends_by(void (*f)(void)) {
    int status;
    pid_t pid = must(fork());
    if (pid == 0) {
        f();
        _exit(0);
    }
    must(waitpid(pid, &status, 0));
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
static int *volatile nowhere;
static void fault(void) { *nowhere = 1; }
static void raise_fault(void) { raise(SIGSEGV); }
static void wrong_pointers(int fd, char *wrong) {
    char buf[100];
    int refused = 0;
    await_bytes(fd, 100);
    for (int i = 1; i <= 40; i++) {
        refused += read(fd, wrong, i) < 0 && errno == EFAULT;
        refused += write(fd, wrong, i) < 0 && errno == EFAULT;
    }
    say("of few bytes: %d", refused);
    say_result("read", read(fd, wrong, 100));
    say_result("recv", recv(fd, wrong, 100, MSG_PEEK));
    recv_noise(fd, 0, 100);
    say_result("write", write(fd, wrong, 100));
    say_result("send", send(fd, wrong, 1 << 20, MSG_DONTWAIT));
    say_result("writev", writev(fd, (struct iovec[]){{wrong, 50}, {buf, 50}}, 2));
    send_noise(fd, 0, 100);
}
static void wrong_pointer_server(int fd) {
    char *wrong = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction a;
    must(sigaction(SIGSEGV, NULL, &a));
    say("before: default %d, flags %x", a.sa_handler == SIG_DFL, a.sa_flags);
    wrong_pointers(fd, wrong);
    say("a fault ends it by %d, raise by %d", ends_by(fault), ends_by(raise_fault));
    handle(SIGSEGV, leave_fault, SA_NODEFER);
    must(sigaction(SIGSEGV, NULL, &a));
    say("then: own %d, flags %x", a.sa_handler == leave_fault, a.sa_flags & ~0x04000000);
    wrong_pointers(fd, wrong);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(out_of_fault, 1) == 0)
            fault();
    say("own faults: %d", signals);
    say("default again: %d", signal(SIGSEGV, SIG_DFL) == leave_fault);
    say("a fault ends it by %d", ends_by(fault));
    wrong_pointers(fd, wrong);
}
static void wrong_pointer_client(int fd) {
    for (int i = 0; i < 3; i++) {
        send_noise(fd, 0, 100);
        recv_noise(fd, 0, 100);
    }
}

/* A wrong pointer to a structure is EFAULT, or a fault of the program's own, whose handler jumps out of the call. Then nothing is held:
 * another thread uses the connection, a fork comes through, and close ends it. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        volatile int out_ = 1;                                                                                         \
        if (sigsetjmp(out_of_fault, 1) == 0)                                                                           \
            out_ = (call) < 0 && errno == EFAULT;                                                                      \
        say("%s: %d", #call, out_);                                                                                    \
        goes_on(fd);                                                                                                   \
    } while (0)
static void *uses(void *fd) {
    send_noise(*(int *)fd, 0, 100);
    recv_noise(*(int *)fd, 0, 100);
    return NULL;
}
static void goes_on(int fd) {
    pthread_t t;
    must(-pthread_create(&t, NULL, uses, &fd));
    pthread_join(t, NULL);
    uses(&fd);
}
static void nothing(void) {}
static void wrong_structure_server(int fd) {
    char *wrong = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), buf[100];
    struct msghdr within = {.msg_iov = (void *)wrong, .msg_iovlen = 2};
    int ep = must(epoll_create1(0));
    struct epoll_event e = {EPOLLIN, {.fd = fd}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    handle(SIGSEGV, leave_fault, SA_NODEFER);
    for (int i = 0; i < 2; i++) {
        REFUSED(readv(fd, (void *)wrong, 2));
        REFUSED(writev(fd, (void *)wrong, 2));
        REFUSED(recvmsg(fd, (void *)wrong, MSG_DONTWAIT));
        REFUSED(sendmsg(fd, (void *)wrong, 0));
        REFUSED(recvmsg(fd, &within, MSG_DONTWAIT));
        REFUSED(sendmsg(fd, &within, 0));
        REFUSED(sendmmsg(fd, (void *)wrong, 2, 0));
        REFUSED(poll((void *)wrong, 3, 0));
        REFUSED(ppoll((void *)wrong, 3, NULL, NULL));
        REFUSED(select(fd + 1, (void *)wrong, NULL, NULL, NULL));
        REFUSED(epoll_ctl(ep, EPOLL_CTL_MOD, fd, (void *)wrong));
        REFUSED(getsockname(fd, (void *)buf, (void *)wrong));
        REFUSED(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, wrong, sizeof(int)));
        REFUSED(ioctl(fd, FIONREAD, wrong));
        say("fork: %d", ends_by(nothing));
    }
    handle(SIGSEGV, SIG_DFL, 0);
    close(ep);
    shutdown(fd, SHUT_WR);
    char c;
    say_result("end", read(fd, &c, 1));
}
static void wrong_structure_client(int fd) {
    char buf[100];
    for (;;) {
        ssize_t r = recv(fd, buf, 100, MSG_WAITALL);
        if (r <= 0) {
            say_result("end", r);
            return;
        }
        send_all(fd, buf, r);
    }
}

/* Default actions: of a child of vfork, whose memory is its parent's, and of a signal that a wait alone lets through. */
static void resets(void) {
    if (vfork() == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGUSR1, SIG_DFL);
        execl("/bin/true", "true", NULL);
        _exit(9);
    }
    must(wait(NULL));
}
static void block(int n, sigset_t *before) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, n);
    must(sigprocmask(SIG_BLOCK, &set, before));
    raise(n);
}
static void suspended(void) {
    sigset_t before;
    block(SIGTERM, &before);
    sigsuspend(&before);
    say("went on");
}
static void polled(void) {
    sigset_t before;
    block(SIGUSR1, &before);
    ppoll(NULL, 0, NULL, &before);
    say("went on");
}
static void terminated(void) { raise(SIGTERM); }
static void defaults_server(int fd) {
    recv_noise(fd, 0, 100);
    handle(SIGTERM, count, 0);
    handle(SIGUSR1, count, SA_RESTART);
    resets();
    raise(SIGTERM);
    raise(SIGUSR1);
    say("handled: %d", signals);
    signal(SIGTERM, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    say("a signal ends it by %d", ends_by(terminated));
    say("sigsuspend ends it by %d", ends_by(suspended));
    say("ppoll ends it by %d", ends_by(polled));
    send_noise(fd, 0, 100);
}
static void defaults_client(int fd) {
    send_noise(fd, 0, 100);
    recv_noise(fd, 0, 100);
}

/* A signal that the mask of a wait keeps away, while that is woken for nothing: it comes when the call is over, and ends nothing. */
static volatile int masked_began, masked_thread, handled_in_wait;
static int masked_ep, masked_fd, masked_pipe[2];
static void in_wait(int n) {
    (void)n;
    handled_in_wait = masked_began;
}
static long masked_ppoll(const sigset_t *mask) {
    struct pollfd p[2] = {{masked_fd, POLLPRI, 0}, {masked_pipe[0], POLLIN, 0}};
    return ppoll(p, 2, NULL, mask);
}
static long masked_pselect(const sigset_t *mask) {
    fd_set in, urgent;
    FD_ZERO(&in);
    FD_ZERO(&urgent);
    FD_SET(masked_pipe[0], &in);
    FD_SET(masked_fd, &urgent);
    return pselect((masked_fd > masked_pipe[0] ? masked_fd : masked_pipe[0]) + 1, &in, NULL, &urgent, NULL, mask);
}
static long masked_epoll(const sigset_t *mask) {
    struct epoll_event e[2];
    return epoll_pwait(masked_ep, e, 2, -1, mask);
}
static long masked_epoll2(const sigset_t *mask) {
    struct epoll_event e[2];
    return epoll_pwait2(masked_ep, e, 2, NULL, mask);
}
static const struct masked {
    const char *name;
    int is_set, is_late;
    long (*call)(const sigset_t *mask);
} masks[] = {{"ppoll", 0, 0, masked_ppoll},
             {"pselect", 0, 0, masked_pselect},
             {"epoll_pwait", 1, 0, masked_epoll},
             {"epoll_pwait2", 1, 0, masked_epoll2},
             {"epoll_pwait, which gets the connection", 1, 1, masked_epoll}};
static void *wait_masked(void *which) {
    const struct masked *m = which;
    sigset_t mask;
    sigemptyset(&mask), sigaddset(&mask, SIGUSR1);
    masked_thread = gettid();
    masked_began = 1;
    long r = m->call(&mask);
    masked_began = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    say("%s: %ld, blocked then: %d", m->name, r, sigismember(&mask, SIGUSR1));
    return NULL;
}
static void masked_server(int fd) {
    struct epoll_event urgent = {EPOLLPRI, {.u64 = 1}}, piped = {EPOLLIN, {.u64 = 2}};
    char c;
    masked_fd = fd;
    handle(SIGUSR1, in_wait, 0);
    must(pipe(masked_pipe));
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        pthread_t t;
        masked_ep = must(epoll_create1(0));
        must(epoll_ctl(masked_ep, EPOLL_CTL_ADD, masked_pipe[0], &piped));
        if (!masks[i].is_late)
            must(epoll_ctl(masked_ep, EPOLL_CTL_ADD, fd, &urgent));
        masked_thread = handled_in_wait = 0;
        assert(pthread_create(&t, NULL, wait_masked, (void *)&masks[i]) == 0);
        await_sleep(&masked_thread);
        assert(pthread_kill(t, SIGUSR1) == 0);
        if (masks[i].is_late)
            must(epoll_ctl(masked_ep, EPOLL_CTL_ADD, fd, &urgent));
        /* Data, which it does not wait for. */
        for (int n = 0; n < 3; n++) {
            tell_peer();
            recv_noise(fd, 0, 10);
            await_sleep(&masked_thread);
        }
        say("handled in the wait: %d", handled_in_wait);
        assert(write(masked_pipe[1], "", 1) == 1);
        pthread_join(t, NULL);
        say("handled at its end: %d", handled_in_wait);
        assert(read(masked_pipe[0], &c, 1) == 1);
        close(masked_ep);
    }
    tell_peer();
}
static void masked_client(int fd) {
    for (size_t n = 0; n < 3 * sizeof masks / sizeof *masks; n++) {
        await_peer();
        send_noise(fd, 0, 10);
    }
    await_peer();
}

CASES(CASE(storm), CASE(sigio), CASE(handlers), CASE(resethand), CASE(nodefer), CASE(wrong_pointer), CASE(wrong_structure),
      CASE(defaults), CASE(masked))
