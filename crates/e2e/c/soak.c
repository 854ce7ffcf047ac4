/* Many connections: soak server PORT | soak client PORT FIRST COUNT CONCURRENT SERVER-PID.
 *
 * The server echoes, from one epoll set, until SIGTERM. The client makes COUNT connections in sequence, each with another
 * pattern of exchanges, then CONCURRENT ones at once, and says how many descriptors and segments it and the server have
 * after half of the sequence and at the end. */
#include "common.h"
#include <dirent.h>
#include <sys/epoll.h>

static volatile sig_atomic_t over;
static void stop(int n) {
    (void)n;
    over = 1;
}

struct peer {
    char *waiting;
    size_t n, room;
    int ended;
};

static void serve_ready(int ep, int fd, struct peer *p, uint32_t events) {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !p->ended) {
        if (p->room < p->n + 65536)
            p->waiting = realloc(p->waiting, p->room = p->n + 65536);
        ssize_t r = recv(fd, p->waiting + p->n, 65536, MSG_DONTWAIT);
        if (r == 0 || (r < 0 && errno != EAGAIN))
            p->ended = 1;
        else if (r > 0)
            p->n += r;
    }
    ssize_t w = p->n ? send(fd, p->waiting, p->n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (w > 0)
        memmove(p->waiting, p->waiting + w, p->n -= w);
    if ((w < 0 && errno != EAGAIN) || (p->ended && !p->n)) {
        free(p->waiting);
        memset(p, 0, sizeof *p);
        close(fd);
        return;
    }
    struct epoll_event e = {(p->ended ? 0 : EPOLLIN) | (p->n ? EPOLLOUT : 0), {.fd = fd}};
    must(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
}

static int server(int port) {
    static struct peer peers[65536];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, l = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), ep = must(epoll_create1(0));
    must(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    must(bind(l, (struct sockaddr *)&at, sizeof at));
    struct epoll_event e = {EPOLLIN, {.fd = l}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e));
    struct sigaction a = {.sa_handler = stop};
    must(sigaction(SIGTERM, &a, NULL));
    must(listen(l, 512));
    while (!over) {
        struct epoll_event ready[64];
        int n = epoll_wait(ep, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = ready[i].data.fd;
            if (fd != l) {
                serve_ready(ep, fd, &peers[fd], ready[i].events);
                continue;
            }
            while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                e = (struct epoll_event){EPOLLIN, {.fd = fd}};
                must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
            }
        }
    }
    return 0;
}

static int descriptors(int pid) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int segments(int pid) {
    char line[512];
    int n = 0;
    snprintf(line, sizeof line, "/proc/%d/maps", pid);
    FILE *f = fopen(line, "r");
    while (fgets(line, sizeof line, f))
        n += strstr(line, "memfd:") != NULL;
    fclose(f);
    return n;
}

static void report(const char *when, int server) {
    say("%s descriptors %d %d segments %d %d", when, descriptors(getpid()), descriptors(server), segments(getpid()),
        segments(server));
}

/* One connection's life; its kind decides how much is said and how it ends. */
static void one_connection(const struct sockaddr_in *at, int kind) {
    int fd = connect_to(at), rounds = kind % 13, size = kind % 7 * 150 + 1;
    for (int i = 0; i < rounds; i++) {
        send_noise(fd, kind + i, size);
        recv_noise(fd, kind + i, size);
    }
    if (kind % 50 == 0) {
        send_noise(fd, kind, 100000);
        recv_noise(fd, kind, 100000);
    }
    if (kind % 11 == 3) {
        /* Data behind which nobody waits. */
        send_noise(fd, 0, 500);
    } else if (kind % 11 == 4) {
        struct linger hard = {1, 0};
        must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    } else if (kind % 2) {
        char c;
        shutdown(fd, SHUT_WR);
        if (read(fd, &c, 1) != 0)
            fail("no end");
    }
    close(fd);
}

/* Descriptors that may stay open for later connections. */
enum { KEPT = 180 };

static int client(int port, int first, int count, int concurrent, int server) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int *fds = calloc(concurrent, sizeof *fds);
    for (int i = 0; i < count; i++) {
        if (i == count / 2)
            report("half", server);
        one_connection(&at, first + i);
    }
    report("end", server);
    for (int burst = 0; concurrent && burst < 5; burst++) {
        for (int i = 0; i < concurrent; i++)
            fds[i] = connect_to(&at);
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < concurrent; i++)
                send_noise(fds[i], i + round, 300);
            for (int i = 0; i < concurrent; i++)
                recv_noise(fds[i], i + round, 300);
        }
        if (burst == 0)
            report("crowd", server);
        for (int i = 0; i < concurrent; i++)
            close(fds[i]);
    }
    report("crowds", server);
    /* Ordinary work goes on until what is kept of the crowd is given up. */
    uint64_t deadline = now() + 10000 * MS;
    for (int i = 0; concurrent && now() < deadline; i++) {
        one_connection(&at, i);
        if (descriptors(getpid()) < KEPT && descriptors(server) < KEPT)
            break;
        usleep(10000);
    }
    report("after", server);
    return 0;
}

int main(int argc, char **argv) {
    int n[6] = {0};
    for (int i = 2; i < argc && i < 7; i++)
        n[i - 2] = atoi(argv[i]);
    return argc > 1 && argv[1][0] == 's' ? server(n[0]) : client(n[0], n[1], n[2], n[3], n[4]);
}
