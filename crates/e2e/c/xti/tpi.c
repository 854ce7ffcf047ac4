/* TPI by hand: what a provider says of itself, what it answers to binding and options, and how it takes what is wrong, out of
 * its state or malformed; and the other interface at the other end. */
#include "tpi.h"

/* --- opening, information, addresses --- */

CASE(opens, "TPI 2.0 2: the stream's beginning") {
    int fd = open_stream(device());
    check_eq(isastream(fd), 1);
    check_eq(ioctl(fd, I_LIST, NULL), 1);
    char name[FMNAMESZ + 1];
    check_errno(ioctl(fd, I_LOOK, name), EINVAL);
    check_eq(tpi_state(fd), TS_UNBND);
}

CASE(aliases, "TPI 2.0: names of devices") {
    static const char *const names[] = {"/dev/inet/tcp", "/dev/streams/tcp", "/dev/streams/inet/tcp", "/dev/inet/udp6",
                                        "/dev/streams/ticots", "/dev/streams/ticlts", "/dev/streams/inet/udp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int fd = open_stream(names[i]);
        check_eq(tpi_state(fd), TS_UNBND);
        close(fd);
    }
}

CASE(tells_sizes, "TPI 2.0 T_INFO_ACK") {
    int fd = open_stream(device());
    struct T_info_ack i = tpi_info(fd);
    check_eq(i.PRIM_type, T_INFO_ACK);
    check_eq(i.SERV_type, provider->info.servtype);
    check_eq(i.ADDR_size, provider->info.addr);
    check_eq(i.OPT_size, provider->info.options);
    check(i.TIDU_size > 0);
    if (is_in(CLTS)) {
        check_eq(i.TSDU_size, is_in(INET) ? 65507 : 65000);
        check_eq(i.ETSDU_size, T_INVALID);
        check_eq(i.CDATA_size, T_INVALID);
        check_eq(i.DDATA_size, T_INVALID);
        check(i.PROVIDER_flag & SENDZERO);
    } else {
        check_eq(i.TSDU_size, provider->info.tsdu);
        check_eq(i.ETSDU_size, T_INFINITE);
        check_eq(i.CDATA_size, is_in(INET) ? T_INVALID : 1024);
        check_eq(i.DDATA_size, is_in(INET) ? T_INVALID : 1024);
        check_eq(i.PROVIDER_flag & SENDZERO, is_in(INET) ? 0 : SENDZERO);
    }
}

CASE(answers_with_modules, "TPI 2.0 2: modules between") {
    int fd = open_stream(device());
    push(fd, "nullmod");
    push(fd, "bufmod");
    struct address any = unused_address();
    tpi_bind(fd, &any, 0);
    check_eq(tpi_state(fd), TS_IDLE);
}

CASE(addresses_unbound, "TPI 2.0 T_ADDR_REQ") {
    int fd = open_stream(device());
    struct T_addr_req req = {.PRIM_type = T_ADDR_REQ};
    struct primitive m;
    put_struct(fd, req);
    tpi_get(fd, &m, T_ADDR_ACK);
    check(m.hipri);
    check_eq(m.p.addr_ack.LOCADDR_length, 0);
    check_eq(m.p.addr_ack.REMADDR_length, 0);
}

CASE(tells_addresses, "TPI 2.0 T_ADDR_ACK") {
    struct ends e = tpi_ends();
    struct primitive s = addresses(e.server), c = addresses(e.client);
    struct address server = part(&s, s.p.addr_ack.LOCADDR_length, s.p.addr_ack.LOCADDR_offset);
    struct address servers_peer = part(&s, s.p.addr_ack.REMADDR_length, s.p.addr_ack.REMADDR_offset);
    struct address client = part(&c, c.p.addr_ack.LOCADDR_length, c.p.addr_ack.LOCADDR_offset);
    struct address clients_peer = part(&c, c.p.addr_ack.REMADDR_length, c.p.addr_ack.REMADDR_offset);
    check(server.len > 0 && client.len > 0);
    check(!is_in(TCP) || same_address(&server, &e.at));
    check(same_address(&client, &servers_peer));
    check(same_address(&server, &clients_peer)); /* the responding endpoint's */
}

CASE(capability, "TPI 2.0 T_CAPABILITY_REQ") {
    int fd = open_stream(device());
    struct T_capability_req req = {.PRIM_type = T_CAPABILITY_REQ, .CAP_bits1 = TC1_INFO | TC1_ACCEPTOR_ID};
    struct primitive m;
    put_struct(fd, req);
    tpi_get(fd, &m, T_CAPABILITY_ACK);
    check_eq(m.len, (int)sizeof(struct T_capability_ack));
    check_eq(m.p.capability_ack.CAP_bits1 & TC1_INFO, TC1_INFO);
    check_eq(m.p.capability_ack.INFO_ack.PRIM_type, T_INFO_ACK);
    check_eq(m.p.capability_ack.INFO_ack.SERV_type, provider->info.servtype);
    check_eq(m.p.capability_ack.INFO_ack.CURRENT_state, TS_UNBND);
    if (is_in(COTS))
        check_eq(m.p.capability_ack.CAP_bits1 & TC1_ACCEPTOR_ID, TC1_ACCEPTOR_ID);
    req.CAP_bits1 = 0;
    put_struct(fd, req);
    tpi_get(fd, &m, T_CAPABILITY_ACK);
    check_eq(m.p.capability_ack.CAP_bits1, 0);
}

CASE(capability_of_either_priority, "TPI 2.0 T_CAPABILITY_ACK") {
    int fd = open_stream(device());
    struct T_capability_req req = {.PRIM_type = T_CAPABILITY_REQ, .CAP_bits1 = TC1_INFO};
    struct primitive m;
    put_struct(fd, req);
    tpi_get(fd, &m, T_CAPABILITY_ACK);
    tpi_put_high(fd, &req, (int)sizeof req);
    tpi_get(fd, &m, T_CAPABILITY_ACK);
    check_eq(m.hipri, 1);
}

/* --- binding --- */

CASE(binds, "TPI 2.0 T_BIND_REQ") {
    int fd = open_stream(device());
    struct address any = unused_address(), at = tpi_bind(fd, &any, 0);
    check(at.len > 0);
    if (is_in(INET))
        check(((struct sockaddr_in *)(void *)at.at)->sin_port != 0);
    check_eq(tpi_state(fd), TS_IDLE);
    struct primitive m = addresses(fd);
    struct address told = part(&m, m.p.addr_ack.LOCADDR_length, m.p.addr_ack.LOCADDR_offset);
    check(same_address(&at, &told));
}

CASE(binds_without_address, "TPI 2.0 T_BIND_REQ") {
    int fd = open_stream(device());
    struct address none = {.len = 0}, at = tpi_bind(fd, &none, 0);
    check(at.len > 0);
    check_eq(tpi_state(fd), TS_IDLE);
}

CASE(binds_once, "TPI 2.0 T_BIND_REQ") {
    struct address at;
    int fd = tpi_bound(&at);
    tpi_bind_req(fd, &at, 0);
    tpi_error(fd, T_BIND_REQ, TOUTSTATE);
    check_eq(tpi_state(fd), TS_IDLE);
}

CASE(busy_address, "TPI 2.0 T_BIND_REQ") {
    struct address at;
    int first = tpi_listener(is_in(COTS), &at), second = open_stream(device());
    (void)first;
    tpi_bind_req(second, &at, is_in(COTS));
    tpi_error(second, T_BIND_REQ, TADDRBUSY);
    check_eq(tpi_state(second), TS_UNBND);
    struct address any = unused_address();
    tpi_bind(second, &any, 0);
}

CASE(bad_address, "TPI 2.0 T_BIND_REQ") {
    int fd = open_stream(device());
    struct address bad = text_address("abc");
    if (!is_in(INET))
        memset(bad.at, 'x', bad.len = 1025);
    tpi_bind_req(fd, &bad, 0);
    tpi_error(fd, T_BIND_REQ, TBADADDR);
    check_eq(tpi_state(fd), TS_UNBND);
}

CASE(longest_address, "TPI 2.0 T_BIND_REQ") {
    int fd = open_stream(device());
    struct address a = {.len = 1024};
    memset(a.at, 'x', a.len);
    struct address at = tpi_bind(fd, &a, 0);
    check(same_address(&a, &at));
}

CASE(unbinds, "TPI 2.0 T_UNBIND_REQ") {
    struct address at;
    int fd = tpi_listener(is_in(COTS), &at), other = open_stream(device());
    tpi_unbind_req(fd);
    tpi_ok(fd, T_UNBIND_REQ);
    check_eq(tpi_state(fd), TS_UNBND);
    struct address again = tpi_bind(other, &at, 0);
    check(same_address(&at, &again));
    tpi_unbind_req(fd);
    tpi_error(fd, T_UNBIND_REQ, TOUTSTATE);
}

CASE(grants_qlen, "TPI 2.0 T_BIND_ACK CONIND_number") {
    struct address at;
    tpi_listener(16, &at);
    int fd = open_stream(device());
    struct address any = unused_address();
    struct primitive m;
    tpi_bind_req(fd, &any, 100000);
    tpi_get(fd, &m, T_BIND_ACK);
    check((int)m.p.bind_ack.CONIND_number > 0);
}

/* --- options --- */

struct option {
    struct t_opthdr head;
    t_scalar_t value;
};
static void optmgmt_req(int fd, int flags, const void *opts, int len) {
    struct {
        struct T_optmgmt_req req;
        char opts[1024];
    } m = {.req = {.PRIM_type = T_OPTMGMT_REQ, .OPT_length = len, .OPT_offset = len ? sizeof m.req : 0,
                   .MGMT_flags = flags}};
    if (len)
        memcpy(m.opts, opts, len);
    tpi_put(fd, &m, (int)sizeof m.req + len, NULL, NO_DATA);
}
static struct option optmgmt_one(int fd, int flags, struct option o, int overall) {
    struct primitive m;
    optmgmt_req(fd, flags, &o, o.head.len);
    tpi_get(fd, &m, T_OPTMGMT_ACK);
    check(m.hipri);
    check_eq(m.p.optmgmt_ack.MGMT_flags, overall);
    struct address list = part(&m, m.p.optmgmt_ack.OPT_length, m.p.optmgmt_ack.OPT_offset);
    check(list.len >= (int)sizeof o.head && list.len <= (int)sizeof o);
    memset(&o, 0, sizeof o);
    memcpy(&o, list.at, list.len);
    check_eq(o.head.status, overall);
    return o;
}
CASE(options, "TPI 2.0 T_OPTMGMT_REQ") {
    struct address own;
    int fd = tpi_bound(&own);
    struct option o = {{sizeof o, XTI_GENERIC, XTI_RCVBUF, 0}, 20000};
    check_eq(optmgmt_one(fd, T_NEGOTIATE, o, T_SUCCESS).head.name, XTI_RCVBUF);
    o.head.len = sizeof o.head;
    check(optmgmt_one(fd, T_CURRENT, o, T_SUCCESS).value >= 20000);
    check(optmgmt_one(fd, T_DEFAULT, o, T_SUCCESS).value > 0);
    check_eq(tpi_state(fd), TS_IDLE);
}

CASE(all_options, "TPI 2.0 T_OPTMGMT_REQ T_ALLOPT") {
    struct address own;
    struct primitive m;
    int fd = tpi_bound(&own);
    struct t_opthdr all = {sizeof all, XTI_GENERIC, T_ALLOPT, 0};
    optmgmt_req(fd, T_CURRENT, &all, sizeof all);
    tpi_get(fd, &m, T_OPTMGMT_ACK);
    struct address list = part(&m, m.p.optmgmt_ack.OPT_length, m.p.optmgmt_ack.OPT_offset);
    check(list.len >= 2 * (int)sizeof(struct option));
}

CASE(bad_options, "TPI 2.0 T_OPTMGMT_REQ") {
    struct address own;
    int fd = tpi_bound(&own);
    struct option o = {{4, XTI_GENERIC, XTI_RCVBUF, 0}, 20000};
    optmgmt_req(fd, T_NEGOTIATE, &o, sizeof o);
    tpi_error(fd, T_OPTMGMT_REQ, TBADOPT);
    o.head.len = 4000;
    optmgmt_req(fd, T_NEGOTIATE, &o, sizeof o);
    tpi_error(fd, T_OPTMGMT_REQ, TBADOPT);
    o.head.len = sizeof o;
    optmgmt_req(fd, 0x4000, &o, sizeof o);
    tpi_error(fd, T_OPTMGMT_REQ, TBADFLAG);
    check_eq(optmgmt_one(fd, T_NEGOTIATE, o, T_SUCCESS).head.name, XTI_RCVBUF);
    check_eq(tpi_state(fd), TS_IDLE);
}

/* --- what is not allowed in a state --- */

CASE(out_of_state, "TPI 2.0 appendix B: TS_UNBND") {
    int fd = open_stream(device());
    struct address at = unused_address();
    if (!is_in(INET))
        at = text_address("somewhere");
    tpi_conn_req(fd, &at, NULL, NO_DATA);
    tpi_error(fd, T_CONN_REQ, TOUTSTATE);
    tpi_discon_req(fd, -1, NULL, NO_DATA);
    tpi_error(fd, T_DISCON_REQ, TOUTSTATE);
    struct T_conn_res res = {.PRIM_type = T_CONN_RES};
    put_struct(fd, res);
    tpi_error(fd, T_CONN_RES, TOUTSTATE);
    check_eq(tpi_state(fd), TS_UNBND);
}

CASE(out_of_state_connected, "TPI 2.0 appendix B: TS_DATA_XFER") {
    struct ends e = tpi_ends();
    tpi_bind_req(e.client, &(struct address){.len = 0}, 0);
    tpi_error(e.client, T_BIND_REQ, TOUTSTATE);
    tpi_unbind_req(e.client);
    tpi_error(e.client, T_UNBIND_REQ, TOUTSTATE);
    tpi_conn_req(e.client, &e.at, NULL, NO_DATA);
    tpi_error(e.client, T_CONN_REQ, TOUTSTATE);
    struct T_conn_res res = {.PRIM_type = T_CONN_RES};
    put_struct(e.client, res);
    tpi_error(e.client, T_CONN_RES, TOUTSTATE);
    check_eq(tpi_state(e.client), TS_DATA_XFER);
    tpi_data(e.client, "still", 5, 0);
    tpi_take_text(e.server, "still");
}

CASE(data_out_of_state, "TPI 2.0 T_DATA_REQ") {
    for (int idle = 0; idle < 2; idle++) {
        struct address at;
        struct primitive m;
        int fd = idle ? tpi_bound(&at) : open_stream(device());
        tpi_data(fd, "early", 5, 0);
        if (events(fd, READABLE, 30) & (POLLERR | POLLHUP)) { /* CHOICES 31: or dropped */
            if (tpi_try_get(fd, &m) < 0)
                check_eq(errno, EPROTO);
            continue;
        }
        check_eq(tpi_state(fd), idle ? TS_IDLE : TS_UNBND);
    }
}

CASE(release_out_of_state, "TPI 2.0 T_ORDREL_REQ") {
    struct address at;
    int fd = tpi_bound(&at);
    tpi_ordrel_req(fd);
    tpi_refused(fd);
}

CASE(release_twice, "TPI 2.0 T_ORDREL_REQ") {
    struct ends e = tpi_ends();
    tpi_ordrel_req(e.client);
    tpi_ordrel_req(e.client);
    tpi_refused(e.client);
}

CASE(unbind_with_indication, "TPI 2.0 appendix B: TS_WRES_CIND") {
    struct address at;
    int listener = tpi_listener(1, &at);
    tpi_calling(&at);
    tpi_listen(listener);
    tpi_unbind_req(listener);
    tpi_error(listener, T_UNBIND_REQ, TOUTSTATE);
    check_eq(tpi_state(listener), TS_WRES_CIND);
}

/* --- malformed primitives --- */

/* Each request cut off after its number: refused on a fresh stream each, as M_ERROR may have spoilt the one before. */
CASE(short_primitives, "TPI 2.0 T_ERROR_ACK") {
    static const int with_more[] = {T_CONN_REQ, T_CONN_RES,     T_DISCON_REQ,  T_EXDATA_REQ,    T_BIND_REQ,
                                    T_UNITDATA_REQ, T_OPTMGMT_REQ, T_OPTDATA_REQ, T_CAPABILITY_REQ};
    for (size_t i = 0; i < sizeof with_more / sizeof *with_more; i++) {
        int fd = open_stream(device());
        AT("a primitive of 4 bytes");
        harness_line = with_more[i];
        if (tpi_try_put(fd, &with_more[i], 4, NULL, NO_DATA, 0) < 0)
            fail("primitive %d: putmsg: errno %d", with_more[i], errno);
        tpi_refused(fd);
        close(fd);
    }
}

CASE(shorter_than_a_number, "TPI 2.0 T_ERROR_ACK") {
    for (int len = 1; len < 4; len++) {
        int fd = open_stream(device());
        tpi_put(fd, "\6\0\0", len, NULL, NO_DATA);
        tpi_refused(fd);
        close(fd);
    }
}

CASE(unknown_primitives, "TPI 2.0 T_ERROR_ACK") {
    static const int unknown[] = {30, 99, -1, 0x7fffffff, T_CONN_IND, T_DATA_IND, T_INFO_ACK, T_OK_ACK, T_UNITDATA_IND};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        int words[16] = {unknown[i]}, fd = open_stream(device());
        tpi_put(fd, words, (int)sizeof words, NULL, NO_DATA);
        harness_line = unknown[i];
        tpi_refused(fd);
        close(fd);
    }
}

CASE(offsets_outside, "TPI 2.0 T_BIND_REQ") {
    static const int bad[][2] = {{16, 0x7ffffff0}, {16, -4}, {0x7fffffff, 16}, {-1, 16}, {100, 16}, {16, 20}, {17, 16}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct {
            struct T_bind_req req;
            char addr[16];
        } m = {.req = {T_BIND_REQ, bad[i][0], bad[i][1], 0}};
        int fd = open_stream(device());
        tpi_put(fd, &m, (int)sizeof m, NULL, NO_DATA);
        tpi_refused(fd);
        close(fd);
    }
}

CASE(unitdata_offsets_outside, "TPI 2.0 T_UNITDATA_REQ") {
    static const int bad[][2] = {{16, 0x7ffffff0}, {16, -4}, {0x7fffffff, 20}, {-1, 20}, {1000, 20}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct {
            struct T_unitdata_req req;
            char addr[16];
        } m = {.req = {T_UNITDATA_REQ, bad[i][0], bad[i][1], 0, 0}};
        struct address own;
        struct primitive answer;
        int fd = tpi_bound(&own);
        tpi_put(fd, &m, (int)sizeof m, "data", 4);
        check(events(fd, READABLE, PATIENCE));
        if (tpi_try_get(fd, &answer) < 0)
            check_eq(errno, EPROTO);
        else
            check_either(answer.p.type, T_ERROR_ACK, T_UDERROR_IND);
        close(fd);
    }
}

CASE(survives_noise, "TPI 2.0 T_ERROR_ACK") {
    unsigned seed = 12345;
    for (int round = 0; round < 100; round++) {
        int fd = open_stream(device()), words[12];
        struct primitive m;
        set_nonblock(fd, 1);
        for (int i = 0; i < 4; i++) {
            for (int k = 0; k < 12; k++)
                words[k] = (seed = seed * 1103515245 + 12345) >> 16 & (k ? 63 : 31);
            int len = 4 + (seed >> 8) % 45;
            tpi_try_put(fd, words, len, "noise", seed & 64 ? 5 : NO_DATA, 0);
            tpi_try_get(fd, &m);
        }
        close(fd);
    }
    int fd = open_stream(device());
    check_eq(tpi_state(fd), TS_UNBND);
}

/* --- with the other interface --- */

CASE(xti_client, "TPI 2.0 and XNS 5.2 t_connect()") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), client = t_open(device(), O_RDWR | O_NONBLOCK, NULL);
    check(client >= 0);
    check_eq(t_bind(client, NULL, NULL), 0);
    struct t_call call = {.addr = {.maxlen = at.len, .len = at.len, .buf = at.at}};
    check_either(t_connect(client, &call, NULL), -1, 0);
    int seq = tpi_listen(listener), server = open_stream(device()), flags;
    tpi_accept(listener, server, seq);
    set_nonblock(client, 0);
    if (t_getstate(client) == T_OUTCON)
        check_eq(t_rcvconnect(client, NULL), 0);
    check_eq(t_getstate(client), T_DATAXFER);
    check_eq(t_snd(client, "from XTI", 8, 0), 8);
    tpi_take_text(server, "from XTI");
    tpi_data(server, "from TPI", 8, 0);
    char text[9] = "";
    check_eq(t_rcv(client, text, 8, &flags), 8);
    check_str(text, "from TPI");
    check_eq(t_snddis(client, NULL), 0);
    tpi_get(server, &m, T_DISCON_IND);
}

CASE(xti_server, "TPI 2.0 and XNS 5.2 t_accept()") {
    struct address any = unused_address(), at = {.len = 0};
    struct primitive m;
    int listener = t_open(device(), O_RDWR, NULL);
    struct t_bind want = {.addr = {.len = any.len, .maxlen = any.len, .buf = any.at}, .qlen = 1};
    struct t_bind got = {.addr = {.maxlen = sizeof at.at, .buf = at.at}};
    check_eq(t_bind(listener, &want, &got), 0);
    at.len = got.addr.len;
    int client = tpi_calling(&at), flags;
    struct t_call call = {.sequence = 0};
    char from[2048];
    call.addr = (struct netbuf){.maxlen = sizeof from, .buf = from};
    check_eq(t_listen(listener, &call), 0);
    int server = t_open(device(), O_RDWR, NULL);
    check_eq(t_accept(listener, server, &call), 0);
    tpi_get(client, &m, T_CONN_CON);
    tpi_data(client, "from TPI", 8, 0);
    char text[9] = "";
    check_eq(t_rcv(server, text, 8, &flags), 8);
    check_str(text, "from TPI");
    check_eq(t_snd(server, "from XTI", 8, 0), 8);
    tpi_take_text(client, "from XTI");
    if (is_in(ORD)) {
        check_eq(t_sndrel(server), 0);
        tpi_get(client, &m, T_ORDREL_IND);
        tpi_ordrel_req(client);
        check_eq(t_rcvrel(server), 0);
    }
}

CASE(xti_datagrams, "TPI 2.0 and XNS 5.2 t_rcvudata()") {
    struct address own, any = unused_address(), at, from;
    struct primitive m;
    int fd = tpi_bound(&own), xti = t_open(device(), O_RDWR, NULL), flags;
    struct t_bind want = {.addr = {.len = any.len, .maxlen = any.len, .buf = any.at}};
    struct t_bind got = {.addr = {.maxlen = sizeof at.at, .buf = at.at}};
    check_eq(t_bind(xti, &want, &got), 0);
    at.len = got.addr.len;
    check_eq(tpi_try_unitdata(fd, &at, "from TPI", 8), 0);
    char text[16] = "";
    struct t_unitdata u = {.addr = {.maxlen = sizeof from.at, .buf = from.at},
                           .udata = {.maxlen = sizeof text, .buf = text}};
    check_eq(t_rcvudata(xti, &u, &flags), 0);
    check_str(text, "from TPI");
    from.len = u.addr.len;
    check(same_address(&from, &own));
    u.udata.len = 4;
    check_eq(t_sndudata(xti, &u), 0);
    tpi_get(fd, &m, T_UNITDATA_IND);
    check_eq(m.data_len, 4);
    struct address source = part(&m, m.p.unitdata_ind.SRC_length, m.p.unitdata_ind.SRC_offset);
    check(same_address(&source, &at));
}

/* A stream that began by t_open and is driven by hand afterwards. */
CASE(by_hand_after_t_open, "TPI 2.0 and XNS 5.2 t_open()") {
    int fd = t_open(device(), O_RDWR, NULL);
    check(fd >= 0);
    check_eq(isastream(fd), 1);
    check_eq(tpi_state(fd), TS_UNBND);
    struct address any = unused_address();
    tpi_bind(fd, &any, 0);
    check_eq(t_getstate(fd) == T_IDLE || t_sync(fd) == T_IDLE, 1);
}

CASE(plain_socket_client, "TPI 2.0 T_CONN_IND") {
    struct address at;
    struct primitive m;
    int listener = tpi_listener(1, &at), s = must(socket(AF_INET, SOCK_STREAM, 0));
    check_eq(connect(s, (struct sockaddr *)at.at, at.len), 0);
    int seq = tpi_listen(listener), server = open_stream(device());
    tpi_accept(listener, server, seq);
    check_eq(send(s, "socket", 6, 0), 6);
    tpi_take_text(server, "socket");
    tpi_data(server, "TPI", 3, 0);
    char text[4] = "";
    check_eq(recv(s, text, 3, MSG_WAITALL), 3);
    check_str(text, "TPI");
    shutdown(s, SHUT_WR);
    tpi_get(server, &m, T_ORDREL_IND);
    tpi_ordrel_req(server);
    check_eq(recv(s, text, 3, 0), 0);
}
CASE(plain_socket_server, "TPI 2.0 T_CONN_REQ") {
    struct address any = unused_address(), at;
    struct primitive m;
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    socklen_t len = sizeof at.at;
    check_eq(bind(s, (struct sockaddr *)any.at, any.len), 0);
    check_eq(listen(s, 5), 0);
    getsockname(s, (struct sockaddr *)at.at, &len);
    at.len = len;
    int client = tpi_calling(&at);
    tpi_get(client, &m, T_CONN_CON);
    int server = must(accept(s, NULL, NULL));
    check_eq(send(server, "socket", 6, 0), 6);
    tpi_take_text(client, "socket");
    tpi_ordrel_req(client);
    char text[4];
    check_eq(recv(server, text, 3, 0), 0);
    close(server);
    tpi_get(client, &m, T_ORDREL_IND);
    check_eq(tpi_state(client), TS_IDLE);
}

SUITE(FOR(ALL, opens), ONCE(aliases), FOR(ALL, tells_sizes), FOR(ALL, answers_with_modules),
      FOR(ALL, addresses_unbound), FOR(COTS, tells_addresses), FOR(ALL, capability),
      FOR(ALL, capability_of_either_priority), FOR(ALL, binds), FOR(ALL, binds_without_address), FOR(ALL, binds_once),
      FOR(ALL, busy_address), FOR(ALL, bad_address), FOR(TICOTS | TICLTS, longest_address), FOR(ALL, unbinds),
      FOR(COTS, grants_qlen), FOR(ALL, options), FOR(ALL, all_options), FOR(ALL, bad_options), FOR(COTS, out_of_state),
      FOR(COTS, out_of_state_connected), FOR(COTS, data_out_of_state), FOR(ORD, release_out_of_state),
      FOR(ORD, release_twice), FOR(COTS, unbind_with_indication), FOR(ALL, short_primitives),
      FOR(ALL, shorter_than_a_number), FOR(ALL, unknown_primitives), FOR(ALL, offsets_outside),
      FOR(CLTS, unitdata_offsets_outside), FOR(ALL, survives_noise), FOR(COTS, xti_client), FOR(COTS, xti_server),
      FOR(CLTS, xti_datagrams), FOR(ALL, by_hand_after_t_open), FOR(TCP, plain_socket_client),
      FOR(TCP, plain_socket_server))
