/* A daytime server (RFC 867) as System V's programmers' guides have it: the Transport Level Interface, a process for each
 * client. Any daytime client can use it over tcp; so can `nc`.
 *
 *     cc -o daytime_server daytime_server.c $(pkg-config --cflags --libs headwater)
 *     ./daytime_server ticotsord daytime             # or: tcp 1313
 *     ./daytime_server -n 3 tcp 1313                 # ends after three clients
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tiuser.h>
#include <unistd.h>

#include "lookup.h"

static void fail(const char *what) {
    t_error(what);
    exit(1);
}

static int listen_at(struct netconfig *transport, struct netbuf *address) {
    int fd = t_open(transport->nc_device, O_RDWR, NULL);
    if (fd < 0)
        fail(transport->nc_device);
    struct t_bind *bound = (struct t_bind *)t_alloc(fd, T_BIND, T_ADDR);
    if (bound == NULL)
        fail("t_alloc");
    /* One indication at a time: t_accept then never has to make way for the next one. More clients wait meanwhile. */
    struct t_bind wanted = {.addr = *address, .qlen = 1};
    if (t_bind(fd, &wanted, bound) < 0)
        fail("t_bind");
    print_address("daytime_server: listening at", transport, &bound->addr);
    t_free((char *)bound, T_BIND);
    return fd;
}

/* The connection, or -1 if the client has gone away meanwhile. */
static int accept_on_new(int listener, struct netconfig *transport, struct t_call *call) {
    int fd = t_open(transport->nc_device, O_RDWR, NULL);
    if (fd < 0)
        fail(transport->nc_device);
    if (t_bind(fd, NULL, NULL) < 0)
        fail("t_bind");
    if (t_accept(listener, fd, call) == 0)
        return fd;
    if (t_errno != TLOOK || t_look(listener) != T_DISCONNECT)
        fail("t_accept");
    t_rcvdis(listener, NULL);
    t_close(fd);
    return -1;
}

/* In a process of its own. */
static void serve(int fd) {
    struct t_info info;
    /* The child has a copy of the endpoint; t_sync tells the library to look at it. */
    if (t_sync(fd) < 0 || t_getinfo(fd, &info) < 0)
        fail("t_sync");
    time_t now = time(NULL);
    char text[64];
    size_t n = strftime(text, sizeof text, "%A, %B %d, %Y %H:%M:%S-%Z\r\n", localtime(&now));
    if (t_snd(fd, text, n, 0) < 0)
        fail("t_snd");
    if (info.servtype == T_COTS_ORD)
        t_sndrel(fd);
    /* The client says when it has seen all: t_rcv fails with TLOOK. */
    char ignored[64];
    int flags;
    while (t_rcv(fd, ignored, sizeof ignored, &flags) >= 0)
        ;
    if (t_errno == TLOOK && t_look(fd) == T_ORDREL)
        t_rcvrel(fd);
    else if (t_errno == TLOOK && t_look(fd) == T_DISCONNECT)
        t_rcvdis(fd, NULL);
    else
        fail("t_rcv");
    t_close(fd);
}

int main(int argc, char **argv) {
    long clients = -1;
    int option;
    while ((option = getopt(argc, argv, "n:")) == 'n')
        clients = atol(optarg);
    if (option != -1 || argc - optind != 2) {
        fprintf(stderr, "usage: daytime_server [-n CLIENTS] TRANSPORT SERVICE\n");
        return 2;
    }
    struct netconfig *transport = find_transport(argv[optind]);
    int listener = listen_at(transport, find_address(transport, HOST_ANY, argv[optind + 1]));
    struct t_call *call = (struct t_call *)t_alloc(listener, T_CALL, T_ADDR);
    if (call == NULL)
        fail("t_alloc");
    signal(SIGCHLD, SIG_IGN);
    while (clients != 0) {
        if (t_listen(listener, call) < 0)
            fail("t_listen");
        int fd = accept_on_new(listener, transport, call);
        if (fd < 0)
            continue;
        if (clients > 0)
            clients--;
        switch (fork()) {
        case -1:
            perror("fork");
            break;
        case 0:
            t_close(listener);
            serve(fd);
            return 0;
        }
        t_close(fd);
    }
    t_close(listener);
    return 0;
}
