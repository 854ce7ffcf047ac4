/* Connections to a web server, one after the other in each of a few threads: http COUNT STEP SEED PORT...
 *
 * Most make one request and are closed by the server, as it is asked to; some are kept for a few, some for many, or for long
 * ones, and each thread has one that it keeps for as long as the server does. Every byte is checked. Each STEP connections it
 * says how many there were. A connection that the server has closed before it answered is made again, as browsers do: so
 * workers leave that are replaced. Whoever waits for 30 seconds fails. */
#include "common.h"
#include <stdatomic.h>

enum { THREADS = 4, BOUND = 30, SMALL = 300, LARGE = 200000 };

static atomic_long made, again;
static long count, step, seed;
static int ports[8], n_ports;

struct http {
    int fd;
    uint64_t chance;
};

static uint64_t by_chance(struct http *h, uint64_t below) {
    h->chance ^= h->chance << 13, h->chance ^= h->chance >> 7, h->chance ^= h->chance << 17;
    return (h->chance >> 11) % below;
}

static void open_one(struct http *h) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval bound = {BOUND, 0};
    at.sin_port = htons(ports[by_chance(h, n_ports)]);
    h->fd = connect_to(&at);
    must(setsockopt(h->fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound));
    must(setsockopt(h->fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound));
}

static void close_one(struct http *h) {
    close(h->fd);
    h->fd = -1;
    long n = atomic_fetch_add(&made, 1) + 1;
    if (n % step == 0)
        say("connections %ld again %ld", n, atomic_load(&again));
}

/* recv and send that a signal does not end: with a time limit the kernel does not begin them again (signal(7)). */
static ssize_t receive(int fd, void *to, size_t room) {
    ssize_t r;
    while ((r = recv(fd, to, room, 0)) < 0 && errno == EINTR)
        ;
    return r;
}
static ssize_t send_request(int fd, const char *request, size_t n) {
    ssize_t r;
    while ((r = send(fd, request, n, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return r;
}

/* False when the server closed before it answered. */
static int ask(struct http *h, const char *how, size_t size) {
    char request[200], buf[16384], *body;
    int n = sprintf(request, "GET /%s HTTP/1.1\r\nHost: here\r\nConnection: %s\r\n\r\n", size == SMALL ? "small" : "large", how);
    size_t have = 0, got;
    if (send_request(h->fd, request, n) < 0) {
        if (errno != EPIPE && errno != ECONNRESET)
            fail("send");
        return 0;
    }
    do {
        ssize_t r = receive(h->fd, buf + have, sizeof buf - 1 - have);
        if (have == 0 && (r == 0 || (r < 0 && errno == ECONNRESET)))
            return 0;
        if (r == 0)
            errno = 0, fail("an answer ends in its head");
        buf[have += must(r)] = 0;
    } while (!(body = strstr(buf, "\r\n\r\n")));
    body += 4;
    if (strncmp(buf, "HTTP/1.1 200", 12) != 0)
        errno = 0, fail(buf);
    got = have - (body - buf);
    check(body, 0, got);
    while (got < size) {
        ssize_t r = receive(h->fd, buf, sizeof buf < size - got ? sizeof buf : size - got);
        if (r == 0)
            errno = 0, fail("an answer ends too early");
        check(buf, got, must(r));
        got += r;
    }
    return 1;
}

static void ask_until_answered(struct http *h, const char *how, size_t size) {
    while (!ask(h, how, size)) {
        atomic_fetch_add(&again, 1);
        close_one(h);
        open_one(h);
    }
}

static void *work(void *arg) {
    struct http h = {-1, (seed * THREADS + (long)arg + 1) * 0x9e3779b97f4a7c15ull}, kept = {-1, h.chance + 1};
    open_one(&kept);
    while (atomic_load(&made) < count) {
        int kind = by_chance(&h, 100), requests = 1;
        open_one(&h);
        if (kind >= 80)
            requests = kind >= 99 ? 8 : kind >= 95 ? 20 + by_chance(&h, 40) : 2 + by_chance(&h, 8);
        for (int i = 0; i < requests; i++)
            ask_until_answered(&h, requests > 1 ? "keep-alive" : "close", kind == 99 && i >= 4 ? LARGE : SMALL);
        close_one(&h);
        if (kind % 10 == 0)
            ask_until_answered(&kept, "keep-alive", SMALL);
    }
    close(kept.fd);
    return NULL;
}

static volatile sig_atomic_t over;
static void stop(int n) {
    (void)n;
    over = 1;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    if (argc < 5 || argc > 12)
        return 2;
    count = atol(argv[1]), step = atol(argv[2]), seed = atol(argv[3]);
    for (int i = 4; i < argc; i++)
        ports[n_ports++] = atoi(argv[i]);
    struct sigaction a = {.sa_handler = stop, .sa_flags = SA_RESTART};
    must(sigaction(SIGTERM, &a, NULL));
    for (long i = 0; i < THREADS; i++)
        must(-pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++)
        must(-pthread_join(threads[i], NULL));
    /* A little goes on, until SIGTERM, so that what was kept for more is given up. */
    struct http kept = {-1, 1};
    open_one(&kept);
    for (say("rests"); !over; poll(NULL, 0, 10))
        ask_until_answered(&kept, "keep-alive", SMALL);
    close(kept.fd);
    return 0;
}
