/* What modules make of a transport stream: the ioctls of timod and sockmod, and tirdwr's reading and writing. */
#include "ways.h"
#include <sys/timod.h>

/* --- the ioctl of sockmod --- */

/* As <sys/sockmod.h> of System V has it. */
#define SI_GETUDATA ('I' << 8 | 110)
struct si_udata {
    int tidusize, addrsize, optsize, etsdusize, servtype, so_state, so_options, tsdusize;
};

CASE(si_getudata, "sockmod SI_GETUDATA") {
    char path[40];
    struct t_info info;
    struct si_udata u;
    snprintf(path, sizeof path, "/dev/%s", provider->name);
    int fd = must(open(path, O_RDWR));
    check_eq(ioctl(fd, I_PUSH, "sockmod"), 0);
    for (int i = 0; i < 3; i++) {
        memset(&u, 0x55, sizeof u);
        struct strioctl s = {.ic_cmd = SI_GETUDATA, .ic_timout = 5, .ic_len = sizeof u, .ic_dp = (char *)&u};
        check_eq(ioctl(fd, I_STR, &s), 0);
        check_eq(s.ic_len, sizeof u);
        must_t(t_getinfo(open_endpoint(), &info));
        check_eq(u.addrsize, info.addr);
        check_eq(u.optsize, info.options);
        check_eq(u.etsdusize, info.etsdu);
        check_eq(u.servtype, info.servtype);
        check_eq(u.tsdusize, info.tsdu);
        check(u.tidusize > 0);
        check(u.so_state == 0 && u.so_options == 0);
    }
    /* What it does not know goes past it, and so does TPI. */
    struct strioctl unknown = {.ic_cmd = 'I' << 8 | 99, .ic_timout = 5, .ic_len = 0};
    check_errno(ioctl(fd, I_STR, &unknown), EINVAL);
    check_errno(ioctl(fd, SI_GETUDATA, &u), EINVAL);
    struct T_info_req request = {.PRIM_type = T_INFO_REQ};
    struct strbuf control = out_buf(&request, sizeof request);
    check_eq(putmsg(fd, &control, NULL, RS_HIPRI), 0);
    struct T_info_ack answer;
    int flags = RS_HIPRI;
    control = in_buf(&answer, sizeof answer);
    check_eq(getmsg(fd, &control, NULL, &flags), 0);
    check_eq(answer.PRIM_type, T_INFO_ACK);
    check_eq(ioctl(fd, I_POP, 0), 0);
    struct strioctl gone = {.ic_cmd = SI_GETUDATA, .ic_timout = 5, .ic_len = sizeof u, .ic_dp = (char *)&u};
    check_errno(ioctl(fd, I_STR, &gone), EINVAL);
}

/* --- ioctls of timod --- */

static int timod_ioctl(int fd, int command, void *with, int in, int *out) {
    struct strioctl s = {.ic_cmd = command, .ic_timout = 5, .ic_len = in, .ic_dp = with};
    int r = ioctl(fd, I_STR, &s);
    *out = s.ic_len;
    return r;
}
static int with_timod(void) {
    way = TIMOD_PUSHED;
    return open_endpoint();
}
CASE(ti_getinfo, "timod(7M) TI_GETINFO") {
    int fd = with_timod(), len;
    union T_primitives m = {.info_req = {.PRIM_type = T_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_GETINFO, &m, sizeof m.info_req, &len), 0);
    check_eq(len, sizeof m.info_ack);
    check_eq(m.type, T_INFO_ACK);
    check_eq(m.info_ack.SERV_type, provider->info.servtype);
    check_eq(m.info_ack.CURRENT_state, TS_UNBND);
}
CASE(ti_on_a_t_open_endpoint, "timod(7M) TI_GETINFO") {
    int fd = open_endpoint(), len;
    union T_primitives m = {.info_req = {.PRIM_type = T_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_GETINFO, &m, sizeof m.info_req, &len), 0);
    check_eq(m.info_ack.SERV_type, provider->info.servtype);
    check_state(fd, T_UNBND);
}
CASE(ti_bind, "timod(7M) TI_BIND, TI_UNBIND") {
    int fd = with_timod(), len;
    struct address any = unused_address();
    struct {
        union T_primitives m;
        char more[2048];
    } u = {.m.bind_req = {T_BIND_REQ, any.len, sizeof(struct T_bind_req), is_in(COTS)}};
    memcpy((char *)&u + sizeof(struct T_bind_req), any.at, any.len);
    check_eq(timod_ioctl(fd, TI_BIND, &u, sizeof(struct T_bind_req) + any.len, &len), 0);
    check_eq(u.m.type, T_BIND_ACK);
    check(len > (int)sizeof(struct T_bind_ack));
    check_eq(t_sync(fd), T_IDLE);
    struct T_bind_req again = {T_BIND_REQ, 0, 0, 0};
    check_eq(timod_ioctl(fd, TI_BIND, &again, sizeof again, &len) & 0xff, TOUTSTATE);
    u.m.unbind_req = (struct T_unbind_req){T_UNBIND_REQ};
    check_eq(timod_ioctl(fd, TI_UNBIND, &u, sizeof(struct T_unbind_req), &len), 0);
    check_eq(t_sync(fd), T_UNBND);
    u.m.unbind_req = (struct T_unbind_req){T_UNBIND_REQ};
    check_eq(timod_ioctl(fd, TI_UNBIND, &u, sizeof(struct T_unbind_req), &len) & 0xff, TOUTSTATE);
}
CASE(ti_optmgmt, "timod(7M) TI_OPTMGMT") {
    int fd = with_timod(), len;
    struct {
        struct T_optmgmt_req req;
        struct t_opthdr head;
        char more[100];
    } u = {{T_OPTMGMT_REQ, sizeof u.head, sizeof u.req, T_CURRENT}, {sizeof u.head, XTI_GENERIC, XTI_RCVBUF, 0}, ""};
    check_eq(timod_ioctl(fd, TI_OPTMGMT, &u, sizeof u.req + sizeof u.head, &len), 0);
    check_eq(u.req.PRIM_type, T_OPTMGMT_ACK);
    check(len > (int)(sizeof u.req + sizeof u.head));
    u.req = (struct T_optmgmt_req){T_OPTMGMT_REQ, sizeof u.head, sizeof u.req, 0x4000};
    check_eq(timod_ioctl(fd, TI_OPTMGMT, &u, sizeof u.req + sizeof u.head, &len) & 0xff, TBADFLAG);
}
CASE(ti_sync, "timod(7M) TI_SYNC") {
    int fd = with_timod(), len;
    bind_at(fd, unused_address(), 0);
    union {
        struct ti_sync_req req;
        struct ti_sync_ack ack;
    } u = {.req = {TSRF_INFO_REQ}};
    check_eq(timod_ioctl(fd, TI_SYNC, &u, sizeof u.req, &len), 0);
    check_eq(u.ack.tsa_info.SERV_type, provider->info.servtype);
    check_eq(u.ack.tsa_info.CURRENT_state, TS_IDLE);
}
CASE(ti_capability, "timod(7M) TI_CAPABILITY") {
    int fd = with_timod(), len;
    union T_primitives m = {.capability_req = {T_CAPABILITY_REQ, TC1_INFO}};
    check_eq(timod_ioctl(fd, TI_CAPABILITY, &m, sizeof m.capability_req, &len), 0);
    check_eq(m.type, T_CAPABILITY_ACK);
    check_eq(m.capability_ack.CAP_bits1 & TC1_INFO, TC1_INFO);
    check_eq(m.capability_ack.INFO_ack.SERV_type, provider->info.servtype);
}
CASE(ti_getaddrs, "timod(7M) TI_GETADDRS") {
    int fd = with_timod(), len;
    struct address at = bind_at(fd, unused_address(), 0);
    struct {
        union T_primitives m;
        char more[4096];
    } u = {.m.addr_req = {T_ADDR_REQ}};
    check_eq(timod_ioctl(fd, TI_GETADDRS, &u, sizeof u.m.addr_req, &len), 0);
    check_eq(u.m.type, T_ADDR_ACK);
    check_eq(u.m.addr_ack.LOCADDR_length, at.len);
    check_bytes((char *)&u + u.m.addr_ack.LOCADDR_offset, at.at, at.len);
}
CASE(ti_getmyname, "timod(7M) TI_GETMYNAME, TI_GETPEERNAME") {
    way = TIMOD_PUSHED;
    struct pair p = connected();
    struct address own = own_address(p.client), seen;
    struct netbuf b = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.client, TI_GETMYNAME, &b), 0);
    seen.len = b.len;
    check(same_address(&seen, &own));
    b = room(seen.at, sizeof seen.at);
    check_eq(ioctl(p.client, TI_GETPEERNAME, &b), 0);
    seen.len = b.len;
    check(same_address(&seen, &p.at));
}
CASE(ti_malformed, "timod(7M)") {
    int fd = with_timod(), len, words[8] = {99, 4000, -5, 7};
    static const int commands[] = {TI_GETINFO, TI_OPTMGMT, TI_BIND, TI_UNBIND, TI_SYNC, TI_GETADDRS, TI_CAPABILITY};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int in = 0; in <= (int)sizeof words; in += in < 4 ? 1 : 7) {
            harness_line = commands[i];
            int r = timod_ioctl(fd, commands[i], words, in, &len);
            if (r == 0 && commands[i] != TI_SYNC)
                fail("ioctl 0x%x with %d bytes that are no primitive of it: expected an error", commands[i], in);
            memcpy(words, (int[8]){99, 4000, -5, 7}, sizeof words);
        }
    check_state(fd, T_UNBND);
}

/* --- tirdwr --- */

static struct pair read_write_pair(void) {
    struct pair p = connected();
    push(p.client, "tirdwr");
    return p;
}
CASE(tirdwr_reads_and_writes, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    for (int i = 0; i < 20; i++) {
        check_eq(write(p.client, "request", 7), 7);
        rcv(p.server, "request", 0);
        snd(p.server, "response", 0);
        char text[9] = "";
        for (int have = 0; have < 8;)
            have += must(read(p.client, text + have, 8 - have));
        check_str(text, "response");
    }
}
CASE(tirdwr_on_both_ends, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    push(p.server, "tirdwr");
    check_eq(write(p.client, "hello", 5), 5);
    check_read(p.server, "hello");
    check_eq(write(p.server, "back", 4), 4);
    check_read(p.client, "back");
}
CASE(tirdwr_by_hand, "tirdwr(7M)") {
    struct ends e = tpi_ends();
    push(e.client, "tirdwr");
    check_eq(write(e.client, "hello", 5), 5);
    tpi_take_text(e.server, "hello");
    tpi_data(e.server, "back", 4, 0);
    check_read(e.client, "back");
}
CASE(tirdwr_finds_what_came_before, "tirdwr(7M)") {
    struct pair p = connected();
    snd(p.server, "early", 0);
    check_event(p.client, T_DATA);
    push(p.client, "tirdwr");
    check_read(p.client, "early");
}
static void write_wave(void *with) {
    static char data[1 << 18];
    int fd = *(int *)with;
    fill_wave(data, 0, sizeof data);
    for (size_t sent = 0; sent < sizeof data;)
        sent += must(write(fd, data + sent, sizeof data - sent));
    char c;
    check_eq(read(fd, &c, 1), 1);
}
CASE(tirdwr_moves_much, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    pid_t child = spawn(write_wave, &p.client);
    close(p.client);
    rcv_wave(p.server, 0, 1 << 18, 10000);
    snd(p.server, "x", 0);
    join(child);
}
static void read_unwatched(void *with) {
    int fd = *(int *)with;
    refuse(SYS_epoll_ctl, ENOMEM);
    check_read(fd, "first");
    check_read(fd, "second");
}
CASE(tirdwr_where_nothing_can_be_watched, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    pid_t child = spawn(read_unwatched, &p.client);
    close(p.client);
    for (int i = 0; i < 2; i++) {
        sleep_ms(100);
        snd(p.server, i ? "second" : "first", 0);
    }
    join(child);
}
CASE(tirdwr_with_stdio, "tirdwr(7M)") {
    struct pair p = read_write_pair();
    FILE *out = fdopen(p.client, "r+");
    check(out != NULL);
    check(fprintf(out, "a line of %d\n", 42) > 0);
    check_eq(fflush(out), 0);
    rcv(p.server, "a line of 42\n", 0);
    snd(p.server, "answer\n", 0);
    char line[100];
    check(fgets(line, sizeof line, out) == line);
    check_str(line, "answer\n");
}
CASE(tirdwr_sees_the_end, "tirdwr(7M): T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    snd(p.server, "last", 0);
    must_t(t_sndrel(p.server));
    check_read(p.client, "last");
    check_eq(read(p.client, &c, 1), 0);
    check_eq(write(p.client, "still", 5), 5);
    rcv(p.server, "still", 0);
}
CASE(tirdwr_answers_the_end, "tirdwr(7M): close after T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    must_t(t_sndrel(p.server));
    check_eq(read(p.client, &c, 1), 0);
    check_eq(write(p.client, "bye", 3), 3);
    close(p.client);
    rcv(p.server, "bye", 0);
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(tirdwr_sees_a_disconnect, "tirdwr(7M): T_DISCON_IND") {
    struct pair p = read_write_pair();
    char c;
    signal(SIGPIPE, SIG_IGN);
    must_t(t_snddis(p.server, NULL));
    check(events(p.client, POLLIN, PATIENCE) != 0);
    check_eq(read(p.client, &c, 1), 0);
    check(events(p.client, 0, PATIENCE) & POLLHUP);
    check_errno2(write(p.client, "x", 1), EPIPE, ENXIO);
}
CASE(tirdwr_close_without_an_end, "tirdwr(7M): close") {
    struct pair p = read_write_pair();
    check_eq(write(p.client, "bye", 3), 3);
    rcv(p.server, "bye", 0);
    close(p.client);
    check_event(p.server, T_DISCONNECT);
}
CASE(tirdwr_popped, "tirdwr(7M): I_POP") {
    struct pair p = read_write_pair();
    check_eq(write(p.client, "by write", 8), 8);
    rcv(p.server, "by write", 0);
    pop(p.client);
    check_eq(t_sync(p.client), T_IDLE);
    check_event(p.server, T_DISCONNECT);
}
CASE(tirdwr_popped_after_the_end, "tirdwr(7M): I_POP after T_ORDREL_IND") {
    struct pair p = read_write_pair();
    char c;
    must_t(t_sndrel(p.server));
    check_eq(read(p.client, &c, 1), 0);
    pop(p.client);
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    check_state(p.server, T_IDLE);
}
CASE(tirdwr_refuses_control, "tirdwr(7M): M_PROTO, CHOICES 32") {
    struct pair p = read_write_pair();
    struct T_ordrel_req m = {T_ORDREL_REQ};
    struct strbuf ctl = out_buf(&m, sizeof m);
    signal(SIGPIPE, SIG_IGN);
    putmsg(p.client, &ctl, NULL, 0);
    check(events(p.client, POLLIN, PATIENCE) & POLLERR);
    check_errno(write(p.client, "x", 1), EPROTO);
}
CASE(tirdwr_and_expedited, "tirdwr(7M): T_EXDATA_IND") {
    struct pair p = read_write_pair();
    char c;
    snd(p.server, "!", T_EXPEDITED);
    check(events(p.client, POLLIN | POLLPRI, PATIENCE) & POLLERR);
    check_errno(read(p.client, &c, 1), EPROTO);
}
CASE(tirdwr_polls, "tirdwr(7M), poll(2)") {
    struct pair p = read_write_pair();
    check_eq(events(p.client, POLLIN | POLLOUT, 0), POLLOUT);
    snd(p.server, "x", 0);
    check(events(p.client, POLLIN, PATIENCE) & POLLIN);
    check_read(p.client, "x");
    check_eq(events(p.client, POLLIN, 0), 0);
}
CASE(tirdwr_and_a_plain_socket, "tirdwr(7M)") {
    struct address any = unused_address(), at;
    socklen_t len = sizeof at.at;
    int s = must(socket(AF_INET, SOCK_STREAM, 0));
    must(bind(s, (struct sockaddr *)any.at, any.len));
    must(listen(s, 1));
    must(getsockname(s, (struct sockaddr *)at.at, &len));
    at.len = len;
    int fd = connect_new(&at), peer = must(accept(s, NULL, NULL));
    push(fd, "tirdwr");
    check_eq(write(fd, "hello", 5), 5);
    char text[6] = "";
    check_eq(recv(peer, text, 5, MSG_WAITALL), 5);
    check_str(text, "hello");
    check_eq(send(peer, "back", 4, 0), 4);
    check_read(fd, "back");
    shutdown(peer, SHUT_WR);
    check_eq(read(fd, text, 1), 0);
    close(fd);
    check_eq(recv(peer, text, 1, 0), 0);
}

SUITE(FOR(ALL, si_getudata), FOR(ALL, ti_getinfo), FOR(ALL, ti_on_a_t_open_endpoint), FOR(ALL, ti_bind),
      FOR(ALL, ti_optmgmt), FOR(ALL, ti_sync), FOR(ALL, ti_capability), FOR(ALL, ti_getaddrs), FOR(COTS, ti_getmyname),
      FOR(ALL, ti_malformed), FOR(COTS, tirdwr_reads_and_writes), FOR(COTS, tirdwr_on_both_ends),
      FOR(COTS, tirdwr_by_hand), FOR(COTS, tirdwr_finds_what_came_before), FOR(COTS, tirdwr_moves_much),
      FOR(COTS, tirdwr_where_nothing_can_be_watched), FOR(COTS, tirdwr_with_stdio),
      FOR(ORD & ~SCTP, tirdwr_sees_the_end), FOR(ORD & ~SCTP, tirdwr_answers_the_end),
      FOR(COTS, tirdwr_sees_a_disconnect), FOR(COTS, tirdwr_close_without_an_end), FOR(COTS, tirdwr_popped),
      FOR(ORD, tirdwr_popped_after_the_end), FOR(COTS, tirdwr_refuses_control), FOR(COTS, tirdwr_and_expedited),
      FOR(COTS, tirdwr_polls), FOR(TCP, tirdwr_and_a_plain_socket))
