/* A server that echoes, from one epoll set and without blocking, until SIGTERM. */
#pragma once

#include "common.h"
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

static int listen_at(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, l = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    must(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    must(bind(l, (struct sockaddr *)&at, sizeof at));
    must(listen(l, 512));
    return l;
}

/* Serves what comes to the listener `l`. */
static int serve(int l) {
    static struct peer peers[65536];
    int ep = must(epoll_create1(0));
    struct epoll_event e = {EPOLLIN, {.fd = l}};
    must(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e));
    struct sigaction a = {.sa_handler = stop};
    must(sigaction(SIGTERM, &a, NULL));
    while (!over) {
        struct epoll_event ready[64];
        /* Looks again: SIGTERM may come just before the call. */
        int n = epoll_wait(ep, ready, 64, 1000);
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
