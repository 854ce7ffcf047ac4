/* Processes that are killed at any moment, and those that see it:
 * kills server PORT WORKERS | kills client KIND READY SEED PORT... | kills pair
 *
 * The server keeps so many workers at one listener, and starts another for each one that is killed. A client exchanges what it can
 * check with all ports; of an end that is killed it may see what TCP shows, which is the end of file or a reset, and
 * then connects anew. It says so when it has made READY exchanges. Whoever waits for 20 seconds fails. */
#include "serve.h"
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { BOUND = 20, PIECE = 16384 };

static void die_with(pid_t parent) {
    must(prctl(PR_SET_PDEATHSIG, SIGKILL));
    if (getppid() != parent)
        _exit(0);
}

static pid_t start_worker(int l) {
    pid_t master = getpid(), worker = must(fork());
    if (worker == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        die_with(master);
        exit(serve(l));
    }
    say("child %d", worker);
    return worker;
}

static int server(int port, int workers) {
    int l = listen_at(port), status;
    sigset_t news;
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, SIGTERM);
    sigprocmask(SIG_BLOCK, &news, NULL);
    for (int i = 0; i < workers; i++)
        start_worker(l);
    while (sigwaitinfo(&news, NULL) != SIGTERM)
        while (waitpid(-1, &status, WNOHANG) > 0) {
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                fail("a worker ended by itself");
            start_worker(l);
        }
    return 0;
}

static uint64_t chance;
static uint64_t by_chance(uint64_t below) {
    chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
    return (chance >> 11) % below;
}

struct link {
    struct sockaddr_in at;
    int fd;
    uint64_t sent, got;
};

static int connect_again(struct link *l) {
    alarm(BOUND);
    for (;;) {
        l->fd = must(socket(AF_INET, SOCK_STREAM, 0));
        l->sent = l->got = 0;
        if (connect(l->fd, (struct sockaddr *)&l->at, sizeof l->at) == 0)
            return l->fd;
        if (errno != ECONNREFUSED && errno != ECONNRESET)
            fail("connect");
        /* The next server is not there yet. */
        close(l->fd);
        poll(NULL, 0, 1);
    }
}

/* What may be seen of an end that was killed; nothing else. */
static int is_loss(ssize_t r) { return r == 0 || errno == ECONNRESET || errno == EPIPE; }

static size_t some_size(void) {
    switch (by_chance(64)) {
    case 0:
        return 1 + by_chance(400000);
    case 1 ... 4:
        return 1 + by_chance(60000);
    default:
        return 1 + by_chance(600);
    }
}

/* Sends so much and receives it again, never more under way than a peer takes without being read; false when the other end has
 * gone. */
static int exchange_blocking(struct link *l, size_t n) {
    static unsigned char buf[PIECE];
    while (n > 0) {
        size_t k = n < PIECE ? n : PIECE;
        fill(buf, l->sent, k);
        for (size_t done = 0; done < k;) {
            ssize_t w = send(l->fd, buf + done, k - done, MSG_NOSIGNAL);
            if (w < 0 && is_loss(w))
                return 0;
            done += must(w), l->sent += w;
        }
        while (l->got < l->sent) {
            ssize_t r = recv(l->fd, buf, PIECE, 0);
            if (r <= 0 && is_loss(r))
                return 0;
            check(buf, l->got, must(r));
            l->got += r;
        }
        n -= k;
    }
    return 1;
}

/* The same with both directions at once. */
static int exchange_polling(struct link *l, size_t n) {
    static unsigned char buf[4 * PIECE];
    uint64_t end = l->sent + n;
    while (l->got < end) {
        struct pollfd p = {l->fd, POLLIN | (l->sent < end ? POLLOUT : 0), 0};
        if (must(poll(&p, 1, -1)) == 1 && p.revents & POLLOUT) {
            size_t k = end - l->sent < sizeof buf ? end - l->sent : sizeof buf;
            fill(buf, l->sent, k);
            ssize_t w = send(l->fd, buf, k, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (w < 0 && errno != EAGAIN && is_loss(w))
                return 0;
            if (w > 0 || errno != EAGAIN)
                l->sent += must(w);
        }
        ssize_t r = recv(l->fd, buf, sizeof buf, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            continue;
        if (r <= 0 && is_loss(r))
            return 0;
        check(buf, l->got, must(r));
        l->got += r;
    }
    return 1;
}

static void count_exchange(int *left) {
    if ((*left)-- == 0)
        say("ready");
}

/* SIGTERM is blocked, so that no call is interrupted. */
static int goes_on(void) {
    sigset_t s;
    must(sigpending(&s));
    return !sigismember(&s, SIGTERM);
}

static int client(int polling, int ready, const int *ports, int n) {
    struct link links[8];
    for (int i = 0; i < n; i++) {
        links[i].at = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        connect_again(&links[i]);
    }
    while (goes_on()) {
        struct link *l = &links[by_chance(n)];
        alarm(BOUND);
        int lives = (polling ? exchange_polling : exchange_blocking)(l, some_size());
        count_exchange(&ready);
        if (!lives || by_chance(500) == 0) {
            close(l->fd);
            connect_again(l);
        }
    }
    return 0;
}

/* How far the reading child has come: it is in the read behind this. */
static volatile uint64_t *reading_at;

static void read_for_ever(struct link *l) {
    static unsigned char buf[PIECE];
    for (;;) {
        *reading_at = l->got;
        ssize_t r = recv(l->fd, buf, PIECE, 0);
        if (r <= 0 && is_loss(r))
            _exit(0);
        check(buf, l->got, must(r));
        l->got += r;
    }
}

/* The reader was killed, perhaps inside a read: whatever it has not taken is read to the end, and is the right piece. */
static void read_the_rest(struct link *l) {
    static unsigned char rest[4 << 20];
    size_t n = 0;
    shutdown(l->fd, SHUT_WR);
    for (;;) {
        ssize_t r = recv(l->fd, rest + n, sizeof rest - n, 0);
        if (r < 0 && is_loss(r))
            return;
        if (must(r) == 0)
            break;
        n += r;
        if (n == sizeof rest)
            fail("too much is left");
    }
    /* The server may have been killed too: then it ends earlier, with nothing wrong before. */
    for (uint64_t at = *reading_at; at <= *reading_at + PIECE; at++) {
        size_t same = 0;
        while (same < n && rest[same] == noise(at + same))
            same++;
        if (same == n)
            return;
    }
    errno = 0;
    fail("what is left behind a killed reader is wrong");
}

/* A connection that two processes share: this one writes, its child reads. */
static int shared_client(int ready, int port) {
    struct link l = {.at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    static unsigned char buf[PIECE];
    reading_at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (goes_on()) {
        int lives = 1, status;
        connect_again(&l);
        for (int i = 0; i < WARM && lives; i++)
            lives = exchange_blocking(&l, 64);
        if (!lives) {
            close(l.fd);
            continue;
        }
        *reading_at = l.got;
        pid_t parent = getpid(), child = must(fork());
        if (child == 0) {
            die_with(parent);
            alarm(0);
            read_for_ever(&l);
        }
        int end = must(syscall(SYS_pidfd_open, child, 0));
        say("child %d", child);
        for (;;) {
            size_t n = some_size() % PIECE + 1;
            struct pollfd p[2] = {{end, POLLIN, 0}, {l.fd, POLLOUT, 0}};
            alarm(BOUND);
            /* The reader keeps up, so that what is left when it is killed stays small. */
            must(poll(p, l.sent - *reading_at < 1 << 20 ? 2 : 1, l.sent - *reading_at < 1 << 20 ? -1 : 1));
            if (p[0].revents)
                break;
            if (!p[1].revents)
                continue;
            fill(buf, l.sent, n);
            ssize_t w = send(l.fd, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT);
            count_exchange(&ready);
            if (w > 0)
                l.sent += w;
            else if (errno != EAGAIN && is_loss(w))
                /* The child sees that too. */
                must(poll(p, 1, -1));
            else if (errno != EAGAIN)
                must(w);
        }
        alarm(BOUND);
        must(waitpid(child, &status, 0));
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            read_the_rest(&l);
        else if (status != 0)
            fail("the reader ended by itself");
        close(end);
        close(l.fd);
    }
    return 0;
}

/* What the ends of a pair do, each in a third of which another process has the server's end; false when the other end has gone. */
enum { THIRD = 20, EACH = 64 };

static int answer(struct link *l) {
    unsigned char buf[EACH];
    for (int i = 0; i < THIRD; i++) {
        for (size_t n = 0; n < EACH;) {
            ssize_t r = recv(l->fd, buf + n, EACH - n, 0);
            if (r <= 0 && is_loss(r))
                return 0;
            check(buf + n, l->got, must(r));
            l->got += r, n += r;
        }
        ssize_t w = send(l->fd, buf, EACH, MSG_NOSIGNAL);
        if (w < 0 && is_loss(w))
            return 0;
        l->sent += must(w);
    }
    return 1;
}

/* Two processes and a connection, later three, any of which may be killed: the others end, with what they have. */
static int pair(void) {
    struct link l = {0};
    int listener = listen_somewhere(&l.at);
    pid_t client = must(fork());
    if (client == 0) {
        close(listener);
        l.fd = must(socket(AF_INET, SOCK_STREAM, 0));
        if (connect(l.fd, (struct sockaddr *)&l.at, sizeof l.at) == 0)
            for (int i = 0; i < 3 * THIRD && exchange_blocking(&l, EACH); i++) {
            }
        exit(0);
    }
    struct pollfd p[2] = {{listener, POLLIN, 0}, {must(syscall(SYS_pidfd_open, client, 0)), POLLIN, 0}};
    must(poll(p, 2, -1));
    if (p[0].revents) {
        l.fd = must(accept(listener, NULL, NULL));
        int status = 0, lives = answer(&l);
        pid_t sharing = must(fork());
        if (sharing == 0)
            exit(!lives || !answer(&l));
        must(waitpid(sharing, &status, 0));
        l.got += THIRD * EACH, l.sent += THIRD * EACH;
        if (status == 0)
            answer(&l);
        close(l.fd);
    }
    close(listener);
    must(waitpid(client, NULL, 0));
    return 0;
}

int main(int argc, char **argv) {
    int n[8] = {0};
    if (argc == 2)
        return pair();
    if (argc < 4)
        return 2;
    for (int i = 2; i < argc && i < 10; i++)
        n[i - 2] = atoi(argv[i]);
    if (strcmp(argv[1], "server") == 0)
        return n[1] ? server(n[0], n[1]) : serve(listen_at(n[0]));
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    chance = n[2] * 2654435761u + 1;
    return n[0] == 2 ? shared_client(n[1], n[4]) : client(n[0], n[1], n + 3, argc - 5);
}
