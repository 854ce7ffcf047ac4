/* An echo server over liburing, as its manual pages have one made: accept, recv and send are requests, one ring for all. It serves
 * as many connections as it is told, then ends. */
#include <arpa/inet.h>
#include "ring.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPT, RECV, SEND };

struct request {
    int what, fd, sent, received;
    char data[4096];
};

static struct io_uring ring;

static struct io_uring_sqe *next(struct request *r, int what) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    r->what = what;
    if (sqe == NULL)
        exit(3);
    return sqe;
}

static void take(struct request *r) {
    struct io_uring_sqe *sqe = next(r, RECV);
    io_uring_prep_recv(sqe, r->fd, r->data, sizeof r->data, 0);
    io_uring_sqe_set_data(sqe, r);
}

static void give(struct request *r) {
    struct io_uring_sqe *sqe = next(r, SEND);
    io_uring_prep_send(sqe, r->fd, r->data + r->sent, r->received - r->sent, 0);
    io_uring_sqe_set_data(sqe, r);
}

static void accept_one(struct request *r) {
    struct io_uring_sqe *sqe = next(r, ACCEPT);
    io_uring_prep_accept(sqe, r->fd, NULL, NULL, 0);
    io_uring_sqe_set_data(sqe, r);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int left = atoi(argv[2]), yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct request listening = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    setsockopt(listening.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listening.fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(listening.fd, 64) < 0)
        return perror("listen"), 1;
    if (init_ring(64, &ring) < 0)
        return 4;
    accept_one(&listening);
    while (left > 0) {
        struct io_uring_cqe *cqe;
        if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_peek_cqe(&ring, &cqe) < 0)
            return 5;
        struct request *r = io_uring_cqe_get_data(cqe);
        int result = cqe->res;
        io_uring_cqe_seen(&ring, cqe);
        if (r->what == ACCEPT && result >= 0) {
            struct request *young = calloc(1, sizeof *young);
            young->fd = result;
            take(young);
            accept_one(r);
        } else if (r->what == RECV && result > 0) {
            r->received = result, r->sent = 0;
            give(r);
        } else if (r->what == SEND && result > 0) {
            r->sent += result;
            r->sent < r->received ? give(r) : take(r);
        } else {
            close(r->fd);
            free(r);
            left--;
        }
    }
    io_uring_queue_exit(&ring);
    return 0;
}
