/* Endpoints of connectionless service, and datagrams of text or of a number. */
#ifndef DATAGRAMS_H
#define DATAGRAMS_H

#include "endpoints.h"

/* A t_unitdata with room in all its buffers. */
struct datagram {
    struct t_unitdata unit;
    int flags;
    char addr[2048], opt[2048], data[70000];
};
static UNUSED struct t_unitdata *with_room(struct datagram *d, unsigned data_room) {
    d->unit.addr = room(d->addr, sizeof d->addr);
    d->unit.opt = room(d->opt, sizeof d->opt);
    d->unit.udata = room(d->data, data_room);
    d->flags = -77;
    return &d->unit;
}
static UNUSED int send_to(int fd, const struct address *to, const void *data, unsigned len) {
    struct t_unitdata u = {.addr = given(to), .udata = given_bytes(data, len)};
    return t_sndudata(fd, &u);
}
static UNUSED int receive(int fd, struct datagram *d) { return t_rcvudata(fd, with_room(d, sizeof d->data), &d->flags); }

#define send_text(FD, TO, TEXT) check_eq(send_to(FD, TO, TEXT, strlen(TEXT)), 0)
/* The next datagram is this text, whole. */
#define receive_text(FD, D, TEXT) \
    do { \
        must_t(receive(FD, D)); \
        check_eq((D)->flags, 0); \
        check_netbuf((D)->unit.udata, TEXT); \
    } while (0)

static UNUSED int endpoint(struct address *at) {
    int fd = open_endpoint();
    *at = bind_at(fd, unused_address(), 0);
    return fd;
}
static UNUSED int comes_from(const struct datagram *d, const struct address *a) {
    struct address from = address_of(&d->unit.addr);
    return same_address(&from, a);
}
/* Where nobody is any more. */
static UNUSED struct address deserted(void) {
    struct address at;
    must_t(t_close(endpoint(&at)));
    return at;
}
static UNUSED unsigned largest(void) { return provider->info.tsdu; }

/* A datagram that carries its number, and is filled by it. */
static UNUSED void numbered(char *data, unsigned len, int number) {
    memset(data, number * 31, len);
    memcpy(data, &number, len < sizeof number ? len : sizeof number);
}
static UNUSED void send_numbered(int fd, const struct address *to, unsigned len, int number) {
    char data[70000];
    numbered(data, len, number);
    if (send_to(fd, to, data, len) < 0)
        fail("t_sndudata number %d of %u bytes: expected success, saw %s", number, len, fault());
}
static UNUSED void receive_numbered(int fd, unsigned len, int number) {
    static __thread struct datagram d;
    static __thread char expected[70000];
    if (receive(fd, &d) < 0)
        fail("t_rcvudata number %d: expected a datagram, saw %s", number, fault());
    numbered(expected, len, number);
    if (d.unit.udata.len != len || memcmp(d.data, expected, len)) {
        int seen;
        memcpy(&seen, d.data, sizeof seen);
        fail("expected datagram number %d of %u bytes, saw %d of %u", number, len, seen, d.unit.udata.len);
    }
}

#endif
