/* Asks a daytime server (RFC 867) for the time, by the Transport Level Interface.
 *
 *     cc -o daytime_client daytime_client.c $(pkg-config --cflags --libs headwater)
 *     ./daytime_client ticotsord localhost daytime   # or: tcp localhost 1313
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiuser.h>
#include <unistd.h>

#include "lookup.h"

/* With the peer's reason, if that is what happened. */
static void fail(int fd, const char *what) {
    struct t_discon why = {.reason = 0};
    if (t_errno == TLOOK && t_look(fd) == T_DISCONNECT && t_rcvdis(fd, &why) == 0)
        fprintf(stderr, "%s: disconnected: %s\n", what, strerror(why.reason));
    else
        t_error(what);
    exit(1);
}

/* Shows what comes until the server releases the connection, or, where that can't be, until the line ends. */
static void show(int fd, const struct t_info *info) {
    char text[256];
    int n, flags, ended = 0;
    while (!ended && (n = t_rcv(fd, text, sizeof text, &flags)) >= 0) {
        fwrite(text, 1, n, stdout);
        ended = info->servtype == T_COTS && memchr(text, '\n', n) != NULL;
    }
    if (ended)
        t_snddis(fd, NULL);
    else if (t_errno != TLOOK || t_look(fd) != T_ORDREL || t_rcvrel(fd) < 0 || t_sndrel(fd) < 0)
        fail(fd, "t_rcv");
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: daytime_client TRANSPORT HOST SERVICE\n");
        return 2;
    }
    struct netconfig *transport = find_transport(argv[1]);
    struct netbuf *server = find_address(transport, argv[2], argv[3]);
    struct t_info info;
    int fd = t_open(transport->nc_device, O_RDWR, &info);
    if (fd < 0)
        fail(fd, transport->nc_device);
    if (t_bind(fd, NULL, NULL) < 0)
        fail(fd, "t_bind");
    struct t_call *call = (struct t_call *)t_alloc(fd, T_CALL, T_ADDR);
    if (call == NULL)
        fail(fd, "t_alloc");
    memcpy(call->addr.buf, server->buf, server->len);
    call->addr.len = server->len;
    if (t_connect(fd, call, NULL) < 0)
        fail(fd, argv[3]);
    show(fd, &info);
    t_free((char *)call, T_CALL);
    t_close(fd);
    return 0;
}
