/* Sockets that several processes have: clients and servers in processes of their own. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "associations.h"
#include "../streams/refuse.h"

/* --- a client in a process of its own, made before anything is shared --- */

static UNUSED void say(int fd, const char *text) { check_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text)); }

/* Echoes until the peer ends. */
static UNUSED void echo(int fd) {
    static char data[600000];
    ssize_t n;
    while ((n = must(recv(fd, data, sizeof data, 0))) > 0)
        check_eq(send(fd, data, n, 0), n);
}

static UNUSED int connected(struct address to) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect(fd, &to.sa, to.len), 0);
    return fd;
}

struct talk {
    struct address to;
    int rounds;
};
/* Connects, has `rounds` messages echoed, ends its direction, and sees the end. */
static UNUSED void converse(void *with) {
    struct talk *talk = with;
    int fd = connected(talk->to);
    for (int i = 0; i < talk->rounds; i++) {
        char text[40];
        sprintf(text, "message %d", i);
        say(fd, text);
        check_receive(fd, text);
    }
    check_eq(shutdown(fd, SHUT_WR), 0);
    check_end(fd);
}

static UNUSED void serve(void *with) { echo(*(int *)with); }

static UNUSED void work(void *with) {
    for (int i = 0; i < 2; i++) {
        int fd = must(accept(*(int *)with, NULL, NULL));
        echo(fd);
        check_eq(close(fd), 0);
    }
}

struct pipeline {
    struct turn turn;
    int fd;
};

static UNUSED void wait_for_death(void *with) {
    (void)with;
    for (;;)
        pause();
}

#endif
