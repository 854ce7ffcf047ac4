/* An echo server over libuv, and a client of it: `uv_echo serve PORT`, `uv_echo call PORT`, which sends a piece after the other on each of
 * eight connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { CONNECTIONS = 8, PIECES = 200, PIECE = 10000 };

struct end {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    int number, sent, received;
    unsigned long long sum;
    char out[PIECE];
};

static void must(int r, const char *what) {
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", what, uv_strerror(r));
        exit(1);
    }
}

static void room(uv_handle_t *h, size_t n, uv_buf_t *b) {
    (void)h;
    *b = uv_buf_init(malloc(n), n);
}

static void freed(uv_handle_t *h) { free(h); }

/* ---- serve ---- */

struct answer {
    uv_write_t write;
    uv_buf_t data;
};

static void answered(uv_write_t *w, int status) {
    must(status, "write");
    struct answer *a = (struct answer *)w;
    free(a->data.base);
    free(a);
}

static void echo(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    if (n <= 0) {
        free(b->base);
        if (n < 0)
            uv_close((uv_handle_t *)s, freed);
        return;
    }
    struct answer *a = malloc(sizeof *a);
    a->data = uv_buf_init(b->base, n);
    must(uv_write(&a->write, s, &a->data, 1, answered), "write");
}

static void come(uv_stream_t *listening, int status) {
    must(status, "listen");
    uv_tcp_t *young = malloc(sizeof *young);
    must(uv_tcp_init(listening->loop, young), "init");
    must(uv_accept(listening, (uv_stream_t *)young), "accept");
    must(uv_read_start((uv_stream_t *)young, room, echo), "read");
}

static void stop(uv_signal_t *s, int number) {
    (void)number;
    uv_stop(s->loop);
}

/* ---- call ---- */

static void send_piece(struct end *e);

static void written(uv_write_t *w, int status) {
    (void)w;
    must(status, "write");
}

static void came(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    struct end *e = s->data;
    must(n, "read");
    for (ssize_t i = 0; i < n; i++)
        e->sum = e->sum * 31 + (unsigned char)b->base[i];
    free(b->base);
    e->received += n;
    if (e->received < e->sent * PIECE)
        return;
    if (e->sent < PIECES) {
        send_piece(e);
        return;
    }
    printf("connection %d: %d bytes, sum %llx\n", e->number, e->received, e->sum);
    uv_close((uv_handle_t *)s, NULL);
}

static void send_piece(struct end *e) {
    uv_buf_t b = uv_buf_init(e->out, PIECE);
    memset(e->out, e->number + e->sent++, PIECE);
    must(uv_write(&e->write, (uv_stream_t *)&e->tcp, &b, 1, written), "write");
}

static void connected(uv_connect_t *c, int status) {
    must(status, "connect");
    struct end *e = c->data;
    must(uv_read_start((uv_stream_t *)&e->tcp, room, came), "read");
    send_piece(e);
}

int main(int argc, char **argv) {
    uv_loop_t *loop = uv_default_loop();
    struct sockaddr_in at;
    if (argc != 3)
        return 2;
    must(uv_ip4_addr("127.0.0.1", atoi(argv[2]), &at), "address");
    if (strcmp(argv[1], "serve") == 0) {
        static uv_tcp_t listening;
        static uv_signal_t end;
        must(uv_tcp_init(loop, &listening), "init");
        must(uv_tcp_bind(&listening, (struct sockaddr *)&at, 0), "bind");
        must(uv_signal_init(loop, &end), "signal");
        must(uv_signal_start(&end, stop, SIGTERM), "signal");
        must(uv_listen((uv_stream_t *)&listening, 64, come), "listen");
        return uv_run(loop, UV_RUN_DEFAULT) < 0;
    }
    static struct end ends[CONNECTIONS];
    /* One after the other, so that what is printed has an order. */
    for (int i = 0; i < CONNECTIONS; i++) {
        struct end *e = &ends[i];
        e->number = i, e->tcp.data = e->connect.data = e;
        must(uv_tcp_init(loop, &e->tcp), "init");
        must(uv_tcp_connect(&e->connect, &e->tcp, (struct sockaddr *)&at, connected), "connect");
        if (i % 2)
            uv_run(loop, UV_RUN_DEFAULT);
    }
    return 0;
}
