/* Driving TPI by hand: primitives put and got, and what a case expects of the answers. */
#ifndef TPI_H
#define TPI_H

#include "endpoints.h"
#include <stddef.h>
#include <sys/tihdr.h>

/* --- messages --- */

#define NO_DATA (-1)

struct primitive {
    int hipri, len, data_len, more; /* more: what getmsg returned */
    union {
        union T_primitives p;
        _Alignas(8) char bytes[8192];
    };
    char data[70000];
};

static UNUSED int tpi_try_put(int fd, const void *ctl, int len, const void *data, int data_len, int flags) {
    struct strbuf c = out_buf(ctl, len), d = out_buf(data, data_len);
    return putmsg(fd, len >= 0 ? &c : NULL, data_len >= 0 ? &d : NULL, flags);
}
#define tpi_put(FD, CTL, LEN, DATA, DATA_LEN) check_eq(tpi_try_put(FD, CTL, LEN, DATA, DATA_LEN, 0), 0)
#define tpi_put_high(FD, CTL, LEN) check_eq(tpi_try_put(FD, CTL, LEN, NULL, NO_DATA, RS_HIPRI), 0)
#define put_struct(FD, STRUCT) tpi_put(FD, &(STRUCT), (int)sizeof(STRUCT), NULL, NO_DATA)

/* Now or -1. */
static UNUSED int tpi_try_get(int fd, struct primitive *m) {
    struct strbuf c = in_buf(m->bytes, sizeof m->bytes), d = in_buf(m->data, sizeof m->data);
    int flags = 0;
    memset(m->bytes, 0, 64);
    int r = getmsg(fd, &c, &d, &flags);
    m->hipri = flags == RS_HIPRI, m->len = c.len, m->data_len = d.len, m->more = r;
    return r;
}

/* The next message, which is this primitive. */
#define tpi_get(FD, M, TYPE) tpi_next(__LINE__, FD, M, TYPE, #TYPE)
static UNUSED void tpi_next(int line, int fd, struct primitive *m, int type, const char *name) {
    harness_at = name, harness_line = line;
    if (!(events(fd, READABLE, PATIENCE) & (READABLE | POLLERR | POLLHUP)))
        fail("line %d: expected %s, saw nothing", line, name);
    if (tpi_try_get(fd, m) < 0)
        fail("line %d: expected %s, saw errno %d: %s", line, name, errno, strerror(errno));
    if (m->len < 4 || m->p.type != type)
        fail("line %d: expected %s (%d), saw control of %d bytes, primitive %d (error: prim %d, TLI %d, UNIX %d), "
             "data of %d bytes",
             line, name, type, m->len, m->len < 4 ? -1 : m->p.type, m->p.error_ack.ERROR_prim, m->p.error_ack.TLI_error,
             m->p.error_ack.UNIX_error, m->data_len);
}
#define tpi_ok(FD, PRIM) \
    do { \
        struct primitive ok_; \
        tpi_get(FD, &ok_, T_OK_ACK); \
        check_eq(ok_.p.ok_ack.CORRECT_prim, PRIM); \
        check(ok_.hipri); \
        check_eq(ok_.len, (int)sizeof(struct T_ok_ack)); \
    } while (0)
#define tpi_error(FD, PRIM, TLI) \
    do { \
        struct primitive error_; \
        tpi_get(FD, &error_, T_ERROR_ACK); \
        check_eq(error_.p.error_ack.ERROR_prim, PRIM); \
        check_eq(error_.p.error_ack.TLI_error, TLI); \
        check(error_.hipri); \
        if ((TLI) != TSYSERR) \
            check_eq(error_.p.error_ack.UNIX_error, 0); \
    } while (0)
#define tpi_nothing(FD) check_eq(events(FD, READABLE, 30), 0)

/* An address or options inside a primitive. */
static UNUSED struct address part(const struct primitive *m, int length, int offset) {
    struct address a = {.len = length};
    if (length < 0 || length > (int)sizeof a.at || (length && (offset < 4 || offset + length > m->len)))
        fail("a part of %d bytes at %d in a primitive of %d", length, offset, m->len);
    memcpy(a.at, m->bytes + offset, length);
    return a;
}

/* --- requests --- */

static UNUSED void tpi_bind_req(int fd, const struct address *a, int qlen) {
    struct {
        struct T_bind_req req;
        char addr[2048];
    } m = {.req = {.PRIM_type = T_BIND_REQ, .ADDR_length = a->len, .ADDR_offset = a->len ? sizeof m.req : 0,
                   .CONIND_number = qlen}};
    memcpy(m.addr, a->at, a->len);
    tpi_put(fd, &m, (int)sizeof m.req + a->len, NULL, NO_DATA);
}
static UNUSED struct address tpi_bind(int fd, const struct address *a, int qlen) {
    struct primitive m;
    tpi_bind_req(fd, a, qlen);
    tpi_get(fd, &m, T_BIND_ACK);
    check(m.hipri);
    if (qlen)
        check_eq(m.p.bind_ack.CONIND_number, qlen);
    return part(&m, m.p.bind_ack.ADDR_length, m.p.bind_ack.ADDR_offset);
}
static UNUSED void tpi_unbind_req(int fd) {
    struct T_unbind_req m = {.PRIM_type = T_UNBIND_REQ};
    put_struct(fd, m);
}
static UNUSED struct T_info_ack tpi_info(int fd) {
    struct T_info_req req = {.PRIM_type = T_INFO_REQ};
    struct primitive m;
    tpi_put_high(fd, &req, (int)sizeof req);
    tpi_get(fd, &m, T_INFO_ACK);
    check(m.hipri);
    check_eq(m.len, (int)sizeof(struct T_info_ack));
    return m.p.info_ack;
}
#define tpi_state(FD) ((int)tpi_info(FD).CURRENT_state)
static UNUSED struct primitive addresses(int fd) {
    struct T_addr_req req = {.PRIM_type = T_ADDR_REQ};
    struct primitive m;
    put_struct(fd, req);
    tpi_get(fd, &m, T_ADDR_ACK);
    return m;
}

static UNUSED void tpi_conn_req(int fd, const struct address *to, const void *data, int data_len) {
    struct {
        struct T_conn_req req;
        char addr[2048];
    } m = {.req = {.PRIM_type = T_CONN_REQ, .DEST_length = to->len, .DEST_offset = sizeof m.req}};
    memcpy(m.addr, to->at, to->len);
    tpi_put(fd, &m, (int)sizeof m.req + to->len, data, data_len);
}

/* T_CONN_RES by I_FDINSERT, which fills in ACCEPTOR_id. */
static UNUSED int tpi_try_accept(int listener, int on, int seq, const void *data, int data_len) {
    struct T_conn_res res = {.PRIM_type = T_CONN_RES, .SEQ_number = seq};
    struct strfdinsert insert = {.ctlbuf = out_buf(&res, sizeof res), .databuf = out_buf(data, data_len), .flags = 0,
                                 .fildes = on, .offset = offsetof(struct T_conn_res, ACCEPTOR_id)};
    return ioctl(listener, I_FDINSERT, &insert);
}
static UNUSED void tpi_accept(int listener, int on, int seq) {
    check_eq(tpi_try_accept(listener, on, seq, NULL, NO_DATA), 0);
    tpi_ok(listener, T_CONN_RES);
}
static UNUSED void tpi_discon_req(int fd, int seq, const void *data, int data_len) {
    struct T_discon_req m = {.PRIM_type = T_DISCON_REQ, .SEQ_number = seq};
    tpi_put(fd, &m, (int)sizeof m, data, data_len);
}
static UNUSED void tpi_data(int fd, const void *data, int data_len, int more) {
    struct T_data_req m = {.PRIM_type = T_DATA_REQ, .MORE_flag = more};
    tpi_put(fd, &m, (int)sizeof m, data, data_len);
}
static UNUSED void tpi_ordrel_req(int fd) {
    struct T_ordrel_req m = {.PRIM_type = T_ORDREL_REQ};
    put_struct(fd, m);
}
static UNUSED int tpi_try_unitdata(int fd, const struct address *to, const void *data, int data_len) {
    struct {
        struct T_unitdata_req req;
        char addr[2048];
    } m = {.req = {.PRIM_type = T_UNITDATA_REQ, .DEST_length = to->len, .DEST_offset = sizeof m.req}};
    memcpy(m.addr, to->at, to->len);
    return tpi_try_put(fd, &m, sizeof m.req + to->len, data, data_len, 0);
}

/* --- whole steps --- */

static UNUSED struct address absent_address(void) {
    int fd = open_stream(device());
    struct address any = unused_address(), a = tpi_bind(fd, &any, is_in(COTS));
    close(fd);
    return a;
}
static UNUSED int tpi_bound(struct address *at) {
    int fd = open_stream(device());
    struct address any = unused_address();
    *at = tpi_bind(fd, &any, 0);
    return fd;
}
static UNUSED int tpi_listener(int qlen, struct address *at) {
    int fd = open_stream(device());
    struct address any = unused_address();
    *at = tpi_bind(fd, &any, qlen);
    return fd;
}

/* T_CONN_REQ acknowledged. */
static UNUSED int tpi_calling(const struct address *to) {
    struct address own;
    int fd = tpi_bound(&own);
    tpi_conn_req(fd, to, NULL, NO_DATA);
    tpi_ok(fd, T_CONN_REQ);
    return fd;
}
#define tpi_listen(FD) tpi_listen_at(__LINE__, FD)
static UNUSED int tpi_listen_at(int line, int fd) {
    struct primitive m;
    tpi_next(line, fd, &m, T_CONN_IND, "T_CONN_IND");
    return m.p.conn_ind.SEQ_number;
}

/* A connection, both ends by hand. */
struct ends {
    int listener, server, client;
    struct address at;
};
static UNUSED struct ends tpi_ends(void) {
    struct ends e;
    struct address own;
    struct primitive m;
    e.listener = tpi_listener(1, &e.at);
    e.client = tpi_calling(&e.at);
    int seq = tpi_listen(e.listener);
    e.server = tpi_bound(&own);
    tpi_accept(e.listener, e.server, seq);
    tpi_get(e.client, &m, T_CONN_CON);
    return e;
}

/* What of the last message of a byte stream was more than was asked for. */
static struct {
    int fd, len;
    char data[70000];
} surplus;

/* Receives `len` bytes in T_DATA_IND's, or M_DATA alone, however they are cut. */
static UNUSED void tpi_take(int fd, char *to, int len) {
    static struct primitive m;
    for (int have = 0, n; have < len; have += n) {
        if (surplus.len == 0 || surplus.fd != fd) {
            if (!(events(fd, READABLE, PATIENCE) & READABLE) || tpi_try_get(fd, &m) < 0)
                fail("waiting for data: %d of %d bytes, errno %d", have, len, errno);
            if ((m.len >= 4 && m.p.type != T_DATA_IND) || m.data_len <= 0)
                fail("expected T_DATA_IND, saw primitive %d, data of %d bytes", m.len < 4 ? -1 : m.p.type, m.data_len);
            surplus.fd = fd, surplus.len = m.data_len;
            memcpy(surplus.data, m.data, m.data_len);
        }
        n = surplus.len < len - have ? surplus.len : len - have;
        memcpy(to + have, surplus.data, n);
        memmove(surplus.data, surplus.data + n, surplus.len -= n);
    }
}
#define tpi_take_text(FD, TEXT) \
    do { \
        char text_[4096] = ""; \
        tpi_take(FD, text_, (int)strlen(TEXT)); \
        check_str(text_, TEXT); \
    } while (0)

/* The request was answered with an error, fatal or not, as CHOICES 31 lists them; never silence. */
#define tpi_refused(FD) tpi_refused_at(__LINE__, FD)
static UNUSED void tpi_refused_at(int line, int fd) {
    struct primitive m;
    harness_at = "T_ERROR_ACK or M_ERROR", harness_line = line;
    int seen = events(fd, READABLE, PATIENCE);
    if (!seen)
        fail("line %d: expected T_ERROR_ACK or M_ERROR, saw silence", line);
    if (tpi_try_get(fd, &m) < 0) {
        if (errno != EPROTO)
            fail("line %d: expected EPROTO, saw errno %d: %s", line, errno, strerror(errno));
        return;
    }
    if (m.len == 0 && m.data_len == 0 && seen & (POLLERR | POLLHUP))
        return;
    if (m.len < 4 || m.p.type != T_ERROR_ACK)
        fail("line %d: expected T_ERROR_ACK, saw primitive %d", line, m.len < 4 ? -1 : m.p.type);
    int tli = m.p.error_ack.TLI_error, unix_error = m.p.error_ack.UNIX_error;
    if (tli != TPROTO && tli != TNOTSUPPORT && tli != TOUTSTATE && tli != TBADADDR && tli != TBADOPT &&
        tli != TBADDATA && tli != TBADF && !(tli == TSYSERR && (unix_error == EINVAL || unix_error == EPROTO)))
        fail("line %d: expected a refusal of CHOICES 31, saw TLI %d, UNIX %d", line, tli, unix_error);
}

#endif
