/* TPI by hand: connections from their request to their end, the data between, and datagrams. */
#include "tpi.h"

/* --- connecting --- */

CASE(connects, "TPI 2.0 T_CONN_REQ") {
    struct address at, own;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_bound(&own);
    tpi_conn_req(client, &at, NULL, NO_DATA);
    tpi_ok(client, T_CONN_REQ);
    tpi_get(listener, &m, T_CONN_IND);
    check_eq(m.hipri, 0);
    struct address from = part(&m, m.p.conn_ind.SRC_length, m.p.conn_ind.SRC_offset);
    check(same_address(&from, &own));
    check_eq(tpi_state(listener), TS_WRES_CIND);
    if (!is_in(INET))
        check_eq(tpi_state(client), TS_WCON_CREQ);
    int server = tpi_bound(&own);
    if (is_in(TCP | SCTP))
        own = at;
    tpi_accept(listener, server, m.p.conn_ind.SEQ_number);
    check_eq(tpi_state(listener), TS_IDLE);
    check_eq(tpi_state(server), TS_DATA_XFER);
    tpi_get(client, &m, T_CONN_CON);
    check_eq(m.hipri, 0);
    struct address by = part(&m, m.p.conn_con.RES_length, m.p.conn_con.RES_offset);
    check(same_address(&by, &own));
    check_eq(tpi_state(client), TS_DATA_XFER);
}

CASE(accepts_by_capability, "TPI 2.0 T_CAPABILITY_ACK ACCEPTOR_id") {
    struct address at, own;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    int server = tpi_bound(&own);
    struct T_capability_req req = {.PRIM_type = T_CAPABILITY_REQ, .CAP_bits1 = TC1_ACCEPTOR_ID};
    put_struct(server, req);
    tpi_get(server, &m, T_CAPABILITY_ACK);
    struct T_conn_res res = {.PRIM_type = T_CONN_RES, .ACCEPTOR_id = m.p.capability_ack.ACCEPTOR_id, .SEQ_number = seq};
    put_struct(listener, res);
    tpi_ok(listener, T_CONN_RES);
    tpi_get(client, &m, T_CONN_CON);
    tpi_data(client, "hello", 5, 0);
    tpi_take_text(server, "hello");
}

CASE(accepts_on_unbound, "TPI 2.0 T_CONN_RES") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    int server = open_stream(device());
    tpi_accept(listener, server, seq);
    tpi_get(client, &m, T_CONN_CON);
    check_eq(tpi_state(server), TS_DATA_XFER);
    tpi_data(server, "hello", 5, 0);
    tpi_take_text(client, "hello");
}

CASE(accepts_on_itself, "TPI 2.0 T_CONN_RES") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    tpi_accept(listener, listener, seq);
    tpi_get(client, &m, T_CONN_CON);
    check_eq(tpi_state(listener), TS_DATA_XFER);
    tpi_data(client, "hello", 5, 0);
    tpi_take_text(listener, "hello");
}

CASE(bad_sequence, "TPI 2.0 T_CONN_RES") {
    struct address at, own;
    int listener = tpi_listener(1, &at);
    tpi_calling(&at);
    int seq = tpi_listen(listener), server = tpi_bound(&own);
    check_eq(tpi_try_accept(listener, server, seq + 4711, NULL, NO_DATA), 0);
    tpi_error(listener, T_CONN_RES, TBADSEQ);
    check_eq(tpi_state(listener), TS_WRES_CIND);
    tpi_accept(listener, server, seq);
}

CASE(bad_acceptor, "TPI 2.0 T_CONN_RES") {
    struct address at, own;
    int listener = tpi_listener(1, &at);
    tpi_calling(&at);
    int seq = tpi_listen(listener);
    struct T_conn_res res = {.PRIM_type = T_CONN_RES, .ACCEPTOR_id = 0xfffffff1, .SEQ_number = seq};
    put_struct(listener, res);
    tpi_error(listener, T_CONN_RES, TBADF);
    int server = tpi_bound(&own);
    tpi_accept(listener, server, seq);
}

CASE(bad_insert, "streamio(7I) I_FDINSERT") {
    struct address at;
    int listener = tpi_listener(1, &at);
    tpi_calling(&at);
    int seq = tpi_listen(listener), server = open_stream(device());
    struct T_conn_res res = {.PRIM_type = T_CONN_RES, .SEQ_number = seq};
    struct strfdinsert insert = {.ctlbuf = out_buf(&res, sizeof res), .databuf = out_buf(NULL, -1), .fildes = server,
                                 .offset = 3};
    check_errno(ioctl(listener, I_FDINSERT, &insert), EINVAL);
    insert.offset = 4096;
    check_errno(ioctl(listener, I_FDINSERT, &insert), EINVAL);
    insert.offset = offsetof(struct T_conn_res, ACCEPTOR_id), insert.fildes = 900;
    check_errno2(ioctl(listener, I_FDINSERT, &insert), EINVAL, EBADF);
    tpi_accept(listener, server, seq);
}

CASE(rejects, "TPI 2.0 T_DISCON_REQ") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    tpi_discon_req(listener, seq, NULL, NO_DATA);
    tpi_ok(listener, T_DISCON_REQ);
    check_eq(tpi_state(listener), TS_IDLE);
    check_readable(client);
    tpi_try_get(client, &m);
    if (m.len >= 4 && m.p.type == T_CONN_CON && is_in(INET)) /* CHOICES 16 */
        tpi_get(client, &m, T_DISCON_IND);
    check_eq(m.p.type, T_DISCON_IND);
    check_eq(m.p.discon_ind.SEQ_number, -1);
    check_eq(tpi_state(client), TS_IDLE);
}

CASE(rejects_bad_sequence, "TPI 2.0 T_DISCON_REQ") {
    struct address at;
    int listener = tpi_listener(1, &at);
    tpi_calling(&at);
    int seq = tpi_listen(listener);
    tpi_discon_req(listener, seq + 99, NULL, NO_DATA);
    tpi_error(listener, T_DISCON_REQ, TBADSEQ);
    check_eq(tpi_state(listener), TS_WRES_CIND);
}

CASE(connects_to_nobody, "TPI 2.0 T_DISCON_IND") {
    struct address absent = absent_address();
    struct primitive m;
    int client = tpi_calling(&absent);
    tpi_get(client, &m, T_DISCON_IND);
    check(m.p.discon_ind.DISCON_reason != 0);
    check_eq(tpi_state(client), TS_IDLE);
    tpi_conn_req(client, &absent, NULL, NO_DATA);
    tpi_ok(client, T_CONN_REQ);
    tpi_get(client, &m, T_DISCON_IND);
}

CASE(connects_to_bad_address, "TPI 2.0 T_CONN_REQ") {
    struct address own, bad = text_address("abc");
    int client = tpi_bound(&own);
    if (!is_in(INET))
        memset(bad.at, 'x', bad.len = 1025);
    tpi_conn_req(client, &bad, NULL, NO_DATA);
    tpi_error(client, T_CONN_REQ, TBADADDR);
    check_eq(tpi_state(client), TS_IDLE);
}

CASE(queues_requests, "TPI 2.0 T_CONN_IND SEQ_number") {
    struct address at, own;
    struct primitive m;
    int listener = tpi_listener(3, &at), client[3], seq[3];
    for (int i = 0; i < 3; i++) {
        client[i] = tpi_calling(&at);
        seq[i] = tpi_listen(listener);
    }
    check(seq[0] != seq[1] && seq[1] != seq[2] && seq[0] != seq[2]);
    check_eq(tpi_state(listener), TS_WRES_CIND);
    for (int i = 2; i >= 0; i--) {
        int server = tpi_bound(&own);
        tpi_accept(listener, server, seq[i]);
        tpi_get(client[i], &m, T_CONN_CON);
        tpi_data(client[i], &"012"[i], 1, 0);
        char c;
        tpi_take(server, &c, 1);
        check_eq(c, '0' + i);
    }
    check_eq(tpi_state(listener), TS_IDLE);
}

CASE(connect_with_data, "TPI 2.0 T_CONN_REQ") {
    struct address at, own;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_bound(&own);
    tpi_conn_req(client, &at, "call", 4);
    tpi_ok(client, T_CONN_REQ);
    tpi_get(listener, &m, T_CONN_IND);
    check_eq(m.data_len, 4);
    check_bytes(m.data, "call", 4);
    int server = open_stream(device());
    check_eq(tpi_try_accept(listener, server, m.p.conn_ind.SEQ_number, "answer", 6), 0);
    tpi_ok(listener, T_CONN_RES);
    tpi_get(client, &m, T_CONN_CON);
    check_eq(m.data_len, 6);
    check_bytes(m.data, "answer", 6);
}
CASE(reject_with_data, "TPI 2.0 T_DISCON_REQ") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    tpi_discon_req(listener, seq, "no", 2);
    tpi_ok(listener, T_DISCON_REQ);
    tpi_get(client, &m, T_DISCON_IND);
    check_eq(m.data_len, 2);
    check_bytes(m.data, "no", 2);
}
CASE(connect_with_too_much_data, "TPI 2.0 T_CONN_REQ TBADDATA") {
    struct address at, own;
    static char much[1025];
    tpi_listener(1, &at);
    int client = tpi_bound(&own);
    tpi_conn_req(client, &at, much, sizeof much);
    tpi_error(client, T_CONN_REQ, TBADDATA);
    check_eq(tpi_state(client), TS_IDLE);
}

/* --- data --- */

CASE(exchanges, "TPI 2.0 T_DATA_REQ") {
    struct ends e = tpi_ends();
    for (int i = 0; i < 100; i++) {
        tpi_data(e.client, "request", 7, 0);
        tpi_take_text(e.server, "request");
        tpi_data(e.server, "response", 8, 0);
        tpi_take_text(e.client, "response");
    }
    tpi_nothing(e.client);
}

CASE(plain_data_message, "TPI 2.0 T_DATA_REQ: M_DATA alone") {
    struct ends e = tpi_ends();
    tpi_put(e.client, NULL, NO_DATA, "M_DATA", 6);
    tpi_take_text(e.server, "M_DATA");
    check_eq(write(e.client, "written", 7), 7);
    tpi_take_text(e.server, "written");
}

/* Large amounts, each in a TPI message as large as may be. */
struct bulk {
    int fd, size, count;
};
static void send_bulk(void *with) {
    struct bulk *b = with;
    char *data = malloc(b->size);
    for (int i = 0; i < b->count; i++) {
        memset(data, 'a' + i % 26, b->size);
        tpi_data(b->fd, data, b->size, 0);
    }
    free(data);
    sleep_ms(100000); /* the receiver ends this process by its own end */
}
CASE(moves_bulk, "TPI 2.0 T_DATA_REQ, fork") {
    struct ends e = tpi_ends();
    struct bulk b = {e.client, 16384, 200};
    int tidu = tpi_info(e.client).TIDU_size;
    if (tidu < b.size)
        b.size = tidu;
    pid_t child = spawn(send_bulk, &b);
    close(e.client);
    char *data = malloc(b.size);
    for (int i = 0; i < b.count; i++) {
        tpi_take(e.server, data, b.size);
        for (int k = 0; k < b.size; k++)
            if (data[k] != 'a' + i % 26)
                fail("message %d is spoiled at byte %d: 0x%02x", i, k, data[k]);
    }
    kill(child, SIGKILL);
}

CASE(keeps_boundaries, "TPI 2.0 T_DATA_REQ MORE_flag") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_data(e.client, "one ", 4, 1);
    tpi_data(e.client, "record", 6, 0);
    tpi_data(e.client, "next", 4, 0);
    char text[20] = "";
    int have = 0;
    do {
        tpi_get(e.server, &m, T_DATA_IND);
        check(have + m.data_len <= 10);
        memcpy(text + have, m.data, m.data_len);
        have += m.data_len;
    } while (m.p.data_ind.MORE_flag);
    check_str(text, "one record");
    tpi_get(e.server, &m, T_DATA_IND);
    check_eq(m.data_len, 4);
    check_eq(m.p.data_ind.MORE_flag, 0);
}

CASE(empty_record, "TPI 2.0 T_DATA_REQ SENDZERO") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_data(e.client, "", 0, 0);
    tpi_get(e.server, &m, T_DATA_IND);
    check(m.data_len <= 0);
    tpi_data(e.client, "x", 1, 0);
    tpi_take_text(e.server, "x");
}

CASE(expedited, "TPI 2.0 T_EXDATA_REQ") {
    struct ends e = tpi_ends();
    struct primitive m;
    struct T_exdata_req ex = {.PRIM_type = T_EXDATA_REQ};
    tpi_data(e.client, "normal", 6, 0);
    tpi_put(e.client, &ex, (int)sizeof ex, "!", 1);
    int seen = 0;
    for (int have = 0; have < 6 || !seen;) {
        check_readable(e.server);
        check_eq(tpi_try_get(e.server, &m), 0);
        if (m.len >= 4 && m.p.type == T_EXDATA_IND) {
            check(!seen);
            check_eq(m.data_len, 1);
            check_bytes(m.data, "!", 1);
            seen = 1;
            continue;
        }
        check(m.len < 4 || m.p.type == T_DATA_IND);
        check_bytes(m.data, &"normal"[have], m.data_len);
        have += m.data_len;
    }
    tpi_nothing(e.server);
}

CASE(expedited_first, "TPI 2.0 T_EXDATA_IND") {
    struct ends e = tpi_ends();
    struct primitive m;
    struct T_exdata_req ex = {.PRIM_type = T_EXDATA_REQ};
    tpi_data(e.client, "normal", 6, 0);
    tpi_put(e.client, &ex, (int)sizeof ex, "urgent", 6);
    sleep_ms(20);
    tpi_get(e.server, &m, T_EXDATA_IND);
    check_eq(m.data_len, 6);
    tpi_take_text(e.server, "normal");
}

CASE(flow_control, "TPI 2.0 T_DATA_REQ: flow control") {
    struct ends e = tpi_ends();
    static char kilo[1024], all[1024];
    set_nonblock(e.client, 1);
    int n = 0;
    for (int misses = 0; misses < 3; n++) {
        memset(kilo, 'a' + n % 26, sizeof kilo);
        struct T_data_req req = {.PRIM_type = T_DATA_REQ};
        AT("putmsg until EAGAIN");
        if (tpi_try_put(e.client, &req, sizeof req, kilo, sizeof kilo, 0) < 0) {
            check_eq(errno, EAGAIN);
            misses++, n--;
            sleep_ms(10);
        }
        check(n < 1000000);
    }
    check_eq(events(e.client, POLLOUT, 0) & POLLOUT, 0);
    for (int i = 0; i < n; i++) {
        tpi_take(e.server, all, sizeof all);
        check_eq(all[0], 'a' + i % 26);
        check_eq(all[1023], 'a' + i % 26);
    }
    check(events(e.client, POLLOUT, PATIENCE) & POLLOUT);
}

/* --- releasing --- */

CASE(releases, "TPI 2.0 T_ORDREL_REQ") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_data(e.client, "last", 4, 0);
    tpi_ordrel_req(e.client);
    check_eq(tpi_state(e.client), TS_WIND_ORDREL);
    tpi_take_text(e.server, "last");
    tpi_get(e.server, &m, T_ORDREL_IND);
    check_eq(m.hipri, 0);
    check_eq(tpi_state(e.server), TS_WREQ_ORDREL);
    tpi_data(e.server, "still", 5, 0);
    tpi_ordrel_req(e.server);
    check_eq(tpi_state(e.server), TS_IDLE);
    tpi_take_text(e.client, "still");
    tpi_get(e.client, &m, T_ORDREL_IND);
    check_eq(tpi_state(e.client), TS_IDLE);
}

CASE(connects_again, "TPI 2.0 T_ORDREL_REQ") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_ordrel_req(e.client);
    tpi_get(e.server, &m, T_ORDREL_IND);
    tpi_ordrel_req(e.server);
    tpi_get(e.client, &m, T_ORDREL_IND);
    check_eq(tpi_state(e.client), TS_IDLE);
    tpi_conn_req(e.client, &e.at, NULL, NO_DATA);
    tpi_ok(e.client, T_CONN_REQ);
    int seq = tpi_listen(e.listener), server = open_stream(device());
    tpi_accept(e.listener, server, seq);
    tpi_get(e.client, &m, T_CONN_CON);
    tpi_data(e.client, "again", 5, 0);
    tpi_take_text(server, "again");
}

CASE(release_on_ticots, "TPI 2.0 T_ORDREL_REQ") {
    struct ends e = tpi_ends();
    tpi_ordrel_req(e.client);
    tpi_refused(e.client);
}

CASE(disconnects, "TPI 2.0 T_DISCON_REQ") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_discon_req(e.client, -1, NULL, NO_DATA);
    tpi_ok(e.client, T_DISCON_REQ);
    check_eq(tpi_state(e.client), TS_IDLE);
    tpi_get(e.server, &m, T_DISCON_IND);
    check_eq(m.p.discon_ind.SEQ_number, -1);
    check_eq(tpi_state(e.server), TS_IDLE);
    struct primitive a = addresses(e.server);
    check_eq(a.p.addr_ack.REMADDR_length, 0);
}

CASE(disconnects_with_data, "TPI 2.0 T_DISCON_REQ") {
    struct ends e = tpi_ends();
    struct primitive m;
    tpi_discon_req(e.server, -1, "bye", 3);
    tpi_ok(e.server, T_DISCON_REQ);
    tpi_get(e.client, &m, T_DISCON_IND);
    check_eq(m.data_len, 3);
    check_bytes(m.data, "bye", 3);
}

CASE(gives_up_connecting, "TPI 2.0 T_DISCON_IND SEQ_number") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = tpi_calling(&at), seq = tpi_listen(listener);
    tpi_discon_req(client, -1, NULL, NO_DATA);
    tpi_ok(client, T_DISCON_REQ);
    check_eq(tpi_state(client), TS_IDLE);
    tpi_get(listener, &m, T_DISCON_IND);
    check_eq(m.p.discon_ind.SEQ_number, seq);
    check_eq(tpi_state(listener), TS_IDLE);
}

CASE(close_ends_connection, "TPI 2.0 close") {
    struct ends e = tpi_ends();
    struct primitive m;
    close(e.client);
    check_readable(e.server);
    check_eq(tpi_try_get(e.server, &m), 0);
    if (is_in(ORD)) /* orderly or not, as the provider has it */
        check_either(m.p.type, T_ORDREL_IND, T_DISCON_IND);
    else
        check_eq(m.p.type, T_DISCON_IND);
}

CASE(data_before_the_end, "TPI 2.0 T_ORDREL_IND") {
    struct ends e = tpi_ends();
    struct primitive m;
    for (int i = 0; i < 50; i++)
        tpi_data(e.client, "0123456789", 10, 0);
    tpi_ordrel_req(e.client);
    char text[500];
    tpi_take(e.server, text, 500);
    tpi_get(e.server, &m, T_ORDREL_IND);
    tpi_ordrel_req(e.server);
    tpi_get(e.client, &m, T_ORDREL_IND);
}

static void wait_for_kill(void *with) {
    tpi_data(*(int *)with, "last words", 10, 0);
    sleep_ms(100000);
}
CASE(killed_peer, "TPI 2.0 T_DISCON_IND") {
    struct ends e = tpi_ends();
    struct primitive m;
    pid_t child = spawn(wait_for_kill, &e.client);
    close(e.client);
    tpi_take_text(e.server, "last words");
    kill(child, SIGKILL);
    check(events(e.server, READABLE, PATIENCE) & READABLE);
    check_eq(tpi_try_get(e.server, &m), 0);
    check_either(m.p.type, T_DISCON_IND, is_in(INET) ? T_ORDREL_IND : T_DISCON_IND);
}

/* --- datagrams --- */

CASE(datagrams, "TPI 2.0 T_UNITDATA_REQ") {
    struct address one, two;
    struct primitive m;
    int a = tpi_bound(&one), b = tpi_bound(&two);
    static char data[60000];
    static const int sizes[] = {1, 5, 0, 1472, 9000, 60000, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(data, 'a' + i, sizeof data);
        check_eq(tpi_try_unitdata(a, &two, data, sizes[i]), 0);
        tpi_get(b, &m, T_UNITDATA_IND);
        check_eq(m.data_len < 0 ? 0 : m.data_len, sizes[i]);
        check_bytes(m.data, data, sizes[i]);
        struct address from = part(&m, m.p.unitdata_ind.SRC_length, m.p.unitdata_ind.SRC_offset);
        check(same_address(&from, &one));
    }
    check_eq(tpi_try_unitdata(b, &one, "back", 4), 0);
    tpi_get(a, &m, T_UNITDATA_IND);
    check_eq(m.data_len, 4);
    check_eq(tpi_state(a), TS_IDLE);
}

CASE(datagram_to_bad_address, "TPI 2.0 T_UDERROR_IND") {
    struct address own, bad = text_address("abc");
    struct primitive m;
    int fd = tpi_bound(&own);
    if (!is_in(INET))
        memset(bad.at, 'x', bad.len = 1025);
    check_eq(tpi_try_unitdata(fd, &bad, "x", 1), 0);
    tpi_get(fd, &m, T_UDERROR_IND);
    struct address dest = part(&m, m.p.uderror_ind.DEST_length, m.p.uderror_ind.DEST_offset);
    check_eq(dest.len, bad.len);
    check_bytes(dest.at, bad.at, bad.len);
    check(m.p.uderror_ind.ERROR_type != 0);
    check_eq(tpi_try_unitdata(fd, &own, "x", 1), 0);
    tpi_get(fd, &m, T_UNITDATA_IND);
}

CASE(datagram_to_nobody, "TPI 2.0 T_UDERROR_IND") {
    struct address own, absent = absent_address();
    struct primitive m;
    int fd = tpi_bound(&own);
    check_eq(tpi_try_unitdata(fd, &absent, "x", 1), 0);
    tpi_get(fd, &m, T_UDERROR_IND);
    struct address dest = part(&m, m.p.uderror_ind.DEST_length, m.p.uderror_ind.DEST_offset);
    check(same_address(&dest, &absent));
}

CASE(datagram_too_long, "TPI 2.0 T_UNITDATA_REQ") {
    struct address own;
    struct primitive m;
    int fd = tpi_bound(&own);
    static char long_one[65535];
    if (tpi_try_unitdata(fd, &own, long_one, sizeof long_one) < 0) {
        check_eq(errno, ERANGE); /* larger than strmsgsz */
        return;
    }
    check(events(fd, READABLE, PATIENCE));
    if (tpi_try_get(fd, &m) < 0)
        check_eq(errno, EPROTO);
    else
        check_either(m.p.type, T_UDERROR_IND, T_ERROR_ACK);
}

CASE(datagram_when_unbound, "TPI 2.0 T_UNITDATA_REQ") {
    struct address at;
    int receiver = tpi_bound(&at), fd = open_stream(device());
    check_eq(tpi_try_unitdata(fd, &at, "x", 1), 0);
    tpi_refused(fd);
    tpi_nothing(receiver);
}

CASE(connection_calls, "TPI 2.0 T_CONN_REQ") {
    struct address own;
    int fd = tpi_bound(&own);
    tpi_conn_req(fd, &own, NULL, NO_DATA);
    tpi_refused(fd);
    int other = tpi_bound(&own);
    tpi_discon_req(other, -1, NULL, NO_DATA);
    tpi_refused(other);
}

CASE(unitdata_on_connections, "TPI 2.0 T_UNITDATA_REQ") {
    struct address own;
    int fd = tpi_bound(&own);
    check_eq(tpi_try_unitdata(fd, &own, "x", 1), 0);
    tpi_refused(fd);
}

CASE(ticlts_loses_nothing, "TPI 2.0 T_UNITDATA_REQ: flow control") {
    struct address from, to;
    struct primitive m;
    int a = tpi_bound(&from), b = tpi_bound(&to), n = 0;
    static char data[1000];
    set_nonblock(a, 1);
    for (int misses = 0; misses < 3; n++) {
        memcpy(data, &n, sizeof n);
        AT("T_UNITDATA_REQ until EAGAIN");
        if (tpi_try_unitdata(a, &to, data, sizeof data) < 0) {
            check_eq(errno, EAGAIN);
            misses++, n--;
            sleep_ms(10);
        }
        check(n < 1000000);
    }
    for (int i = 0; i < n; i++) {
        tpi_get(b, &m, T_UNITDATA_IND);
        check_eq(m.data_len, (int)sizeof data);
        int number;
        memcpy(&number, m.data, sizeof number);
        check_eq(number, i);
    }
    tpi_nothing(b);
    tpi_nothing(a);
}

SUITE(FOR(COTS, connects), FOR(COTS, accepts_by_capability), FOR(COTS, accepts_on_unbound),
      FOR(COTS, accepts_on_itself), FOR(COTS, bad_sequence), FOR(COTS, bad_acceptor), FOR(COTS, bad_insert),
      FOR(COTS, rejects), FOR(COTS, rejects_bad_sequence), FOR(COTS, connects_to_nobody),
      FOR(COTS, connects_to_bad_address), FOR(COTS, queues_requests), FOR(LOOP, connect_with_data),
      FOR(LOOP, reject_with_data), FOR(LOOP, connect_with_too_much_data), FOR(COTS, exchanges),
      FOR(COTS, plain_data_message), FOR(COTS, moves_bulk), FOR(TICOTS | TICOTSORD, keeps_boundaries),
      FOR(LOOP, empty_record), FOR(COTS, expedited), FOR(LOOP, expedited_first), FOR(COTS, flow_control),
      FOR(ORD & ~SCTP, releases), FOR(TICOTSORD, connects_again), FOR(TICOTS, release_on_ticots),
      FOR(COTS, disconnects), FOR(LOOP, disconnects_with_data), FOR(TICOTS | TICOTSORD, gives_up_connecting),
      FOR(COTS, close_ends_connection), FOR(ORD, data_before_the_end), FOR(COTS, killed_peer), FOR(CLTS, datagrams),
      FOR(CLTS, datagram_to_bad_address), FOR(CLTS, datagram_to_nobody), FOR(CLTS, datagram_too_long),
      FOR(CLTS, datagram_when_unbound), FOR(CLTS, connection_calls), FOR(COTS, unitdata_on_connections),
      FOR(TICLTS, ticlts_loses_nothing))
