/* XTI over tcp and udp, with plain sockets at the other end. */
#include "interop.h"
#include <netinet/udp.h>

/* --- plain ends --- */

static struct address name_of(int s, int (*which)(int, struct sockaddr *, socklen_t *)) {
    struct address a;
    socklen_t len = sizeof a.at;
    must(which(s, (struct sockaddr *)a.at, &len));
    a.len = len;
    return a;
}
static int plain_bound(int type, struct address *at) {
    int s = must(socket(family, type, 0));
    *at = local_at(0);
    must(bind(s, (struct sockaddr *)at->at, at->len));
    if (type == SOCK_STREAM)
        must(listen(s, 20));
    *at = name_of(s, getsockname);
    return s;
}
static int plain_connected(const struct address *to) {
    int s = must(socket(family, SOCK_STREAM, 0));
    must(connect(s, (struct sockaddr *)to->at, to->len));
    return s;
}
#define plain_send(S, TEXT) check_eq(send(S, TEXT, strlen(TEXT), 0), strlen(TEXT))
#define plain_recv(S, TEXT) \
    do { \
        char text_[1000] = ""; \
        check_eq(recv(S, text_, strlen(TEXT), MSG_WAITALL), strlen(TEXT)); \
        check_str(text_, TEXT); \
    } while (0)
#define plain_end(S) \
    do { \
        char c_; \
        check_eq(recv(S, &c_, 1, 0), 0); \
    } while (0)

/* A connection that the socket made, and one that XTI made. */
struct mixed {
    int xti, s;
};
static struct mixed from_socket(void) {
    struct address at;
    int listener = xti_bound(&at, 1);
    struct mixed m = {.s = plain_connected(&at)};
    m.xti = xti_serve(listener);
    return m;
}
static struct mixed from_xti(void) {
    struct address at;
    int listener = plain_bound(SOCK_STREAM, &at);
    struct mixed m = {.xti = xti_connected(&at)};
    m.s = must(accept(listener, NULL, NULL));
    close(listener);
    return m;
}

/* --- connections --- */

static void converse(struct mixed m) {
    check_state(m.xti, T_DATAXFER);
    for (int i = 0; i < 50; i++) {
        plain_send(m.s, "from the socket");
        rcv(m.xti, "from the socket", 0);
        snd(m.xti, "from XTI", 0);
        plain_recv(m.s, "from XTI");
    }
}
BOTH_FAMILIES(TCP, socket_connects, "XNS 5.2 t_listen(), t_accept()") { converse(from_socket()); }
BOTH_FAMILIES(TCP, socket_accepts, "XNS 5.2 t_connect()") { converse(from_xti()); }
BOTH_FAMILIES(TCP, names_agree, "XNS 5.2 t_getprotaddr(), t_listen()") {
    struct address at, from;
    int listener = xti_bound(&at, 1), s = plain_connected(&at);
    struct call call;
    must_t(t_listen(listener, roomy(&call)));
    from = address_of(&call.call.addr);
    check_same(from, name_of(s, getsockname));
    int fd = xti_open(0);
    accept_at(listener, call.call.sequence, fd);
    check_same(peer_address(fd), name_of(s, getsockname));
    check_same(own_address(fd), name_of(s, getpeername));
}
BOTH_FAMILIES(TCP, xti_releases_first, "XNS 5.2 t_sndrel()") {
    struct mixed m = from_socket();
    snd(m.xti, "last", 0);
    must_t(t_sndrel(m.xti));
    plain_recv(m.s, "last");
    plain_end(m.s);
    plain_send(m.s, "still");
    rcv(m.xti, "still", 0);
    close(m.s);
    check_event(m.xti, T_ORDREL);
    must_t(t_rcvrel(m.xti));
    check_state(m.xti, T_IDLE);
}
BOTH_FAMILIES(TCP, socket_shuts_down_first, "XNS 5.2 t_rcvrel()") {
    struct mixed m = from_xti();
    plain_send(m.s, "last");
    shutdown(m.s, SHUT_WR);
    rcv(m.xti, "last", 0);
    check_event(m.xti, T_ORDREL);
    must_t(t_rcvrel(m.xti));
    check_state(m.xti, T_INREL);
    snd(m.xti, "still", 0);
    must_t(t_sndrel(m.xti));
    plain_recv(m.s, "still");
    plain_end(m.s);
}
BOTH_FAMILIES(TCP, socket_resets, "XNS 5.2 t_rcvdis()") {
    struct mixed m = from_socket();
    struct linger now = {1, 0};
    struct t_discon d = {.reason = 0};
    setsockopt(m.s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(m.s);
    check_event(m.xti, T_DISCONNECT);
    must_t(t_rcvdis(m.xti, &d));
    check_eq(d.reason, ECONNRESET);
    check_state(m.xti, T_IDLE);
}
BOTH_FAMILIES(TCP, xti_disconnects, "XNS 5.2 t_snddis()") {
    struct mixed m = from_xti();
    char c;
    must_t(t_snddis(m.xti, NULL));
    check_errno(recv(m.s, &c, 1, 0), ECONNRESET);
}
BOTH_FAMILIES(TCP, xti_closes, "XNS 5.2 t_close()") {
    struct mixed m = from_xti();
    snd(m.xti, "bye", 0);
    must_t(t_close(m.xti));
    plain_recv(m.s, "bye");
    char c;
    check(recv(m.s, &c, 1, 0) <= 0);
}
BOTH_FAMILIES(TCP, refused, "XNS 5.2 t_connect()") {
    struct address at, own;
    close(plain_bound(SOCK_STREAM, &at));
    int fd = xti_bound(&own, 0);
    struct t_call call = call_to(&at);
    struct t_discon d = {.reason = 0};
    check_t(t_connect(fd, &call, NULL), TLOOK);
    check_look(fd, T_DISCONNECT);
    must_t(t_rcvdis(fd, &d));
    check_eq(d.reason, ECONNREFUSED);
}
BOTH_FAMILIES(TCP, xti_rejects, "XNS 5.2 t_snddis()") {
    struct address at;
    int listener = xti_bound(&at, 1), s = plain_connected(&at);
    char c;
    check_eq(reject(listener, listen_for(listener), NULL), 0);
    check(recv(s, &c, 1, 0) <= 0);
    check_state(listener, T_IDLE);
}
BOTH_FAMILIES(TCP, socket_gives_up, "XNS 5.2 t_accept() TLOOK") {
    struct address at;
    int listener = xti_bound(&at, 1), s = plain_connected(&at), sequence = listen_for(listener), fd = xti_open(0);
    struct linger now = {1, 0};
    setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(s);
    sleep_ms(10);
    struct t_call call = {.sequence = sequence};
    struct t_discon d = {.sequence = 0};
    if (t_accept(listener, fd, &call) == 0) {
        check_event(fd, T_DISCONNECT);
    } else {
        check_eq(t_errno, TLOOK);
        check_look(listener, T_DISCONNECT);
        must_t(t_rcvdis(listener, &d));
        check_eq(d.sequence, sequence);
    }
    check_state(listener, T_IDLE);
}
BOTH_FAMILIES(TCP, connects_in_background, "XNS 5.2 t_rcvconnect()") {
    struct address at;
    int listener = plain_bound(SOCK_STREAM, &at), fd = xti_open(O_NONBLOCK);
    bind_at(fd, local_at(0), 0);
    struct t_call call = call_to(&at);
    struct call got;
    check_t(t_connect(fd, &call, NULL), TNODATA);
    check_event(fd, T_CONNECT);
    must_t(t_rcvconnect(fd, roomy(&got)));
    check_same(address_of(&got.call.addr), at);
    int s = must(accept(listener, NULL, NULL));
    snd(fd, "hello", 0);
    plain_recv(s, "hello");
}
BOTH_FAMILIES(TCP, many_clients, "XNS 5.2 t_listen()") {
    struct address at;
    int listener = xti_bound(&at, 10), s[10], fd[10];
    for (int i = 0; i < 10; i++) {
        s[i] = plain_connected(&at);
        check_eq(send(s[i], &"0123456789"[i], 1, 0), 1);
    }
    xti_serve_all(listener, fd, 10);
    for (int i = 0; i < 10; i++) {
        char c;
        int flags;
        check_eq(t_rcv(fd[i], &c, 1, &flags), 1);
        check_eq(c, '0' + i);
    }
}

/* --- data --- */

BOTH_FAMILIES(TCP, small_sends_arrive, "XNS 5.2 t_snd()") {
    struct mixed m = from_xti();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100; i++)
            check_eq(t_snd(m.xti, &"0123456789"[i % 10], 1, 0), 1);
        for (int i = 0; i < 10; i++)
            plain_recv(m.s, "0123456789");
    }
    for (int i = 0; i < 5; i++) { /* and one alone */
        snd(m.xti, "x", 0);
        plain_recv(m.s, "x");
    }
}
static void send_wave(void *with) {
    struct mixed *m = with;
    static char data[1 << 20];
    fill_wave(data, 0, sizeof data);
    for (size_t sent = 0; sent < sizeof data;)
        sent += must(send(m->s, data + sent, sizeof data - sent, 0));
    shutdown(m->s, SHUT_WR);
    plain_recv(m->s, "done");
}
BOTH_FAMILIES(TCP, much_from_a_socket, "XNS 5.2 t_rcv()") {
    struct mixed m = from_xti();
    pid_t child = spawn(send_wave, &m);
    rcv_wave(m.xti, 0, 1 << 20, 9000);
    check_event(m.xti, T_ORDREL);
    snd(m.xti, "done", 0);
    join(child);
}
static void take_wave(void *with) {
    struct mixed *m = with;
    static char data[10000];
    size_t have = 0;
    for (ssize_t n; (n = must(recv(m->s, data, sizeof data, 0))) > 0; have += n)
        check_wave(data, have, n);
    check_eq(have, 1 << 20);
}
static void sends_much(unsigned piece) {
    struct mixed m = from_socket();
    pid_t child = spawn(take_wave, &m);
    snd_wave(m.xti, 0, 1 << 20, piece);
    must_t(t_sndrel(m.xti));
    join(child);
}
BOTH_FAMILIES(TCP, much_to_a_socket, "XNS 5.2 t_snd()") { sends_much(16384); }
BOTH_FAMILIES(TCP, much_to_a_socket_in_crumbs, "XNS 5.2 t_snd()") { sends_much(100); }
BOTH_FAMILIES(TCP, full, "XNS 5.2 t_snd() TFLOW") {
    struct mixed m = from_xti();
    set_nonblock(m.xti, 1);
    size_t sent = fill_endpoint(m.xti, 1000), have = 0;
    check_eq(writable(m.xti), 0);
    pid_t child = must(fork());
    if (child == 0) {
        static char data[10000];
        while (have < sent) {
            ssize_t n = must(recv(m.s, data, sizeof data, 0));
            check_wave(data, have, n < (ssize_t)(sent - have) ? (size_t)n : sent - have);
            have += n;
        }
        _exit(0);
    }
    check(events(m.xti, POLLOUT, PATIENCE) & POLLOUT);
    join(child);
}

/* --- urgent data --- */

BOTH_FAMILIES(TCP, urgent_from_a_socket, "XNS 5.2 t_rcv(): T_EXPEDITED") {
    struct mixed m = from_socket();
    plain_send(m.s, "before");
    check_eq(send(m.s, "!", 1, MSG_OOB), 1);
    check_event(m.xti, T_EXDATA);
    rcv(m.xti, "!", T_EXPEDITED);
    rcv(m.xti, "before", 0);
    plain_send(m.s, "after");
    rcv(m.xti, "after", 0);
    check_look(m.xti, 0);
}
BOTH_FAMILIES(TCP, urgent_to_a_socket, "XNS 5.2 t_snd(): T_EXPEDITED") {
    struct mixed m = from_xti();
    char c;
    snd(m.xti, "before", 0);
    snd(m.xti, "!", T_EXPEDITED);
    check(events(m.s, POLLPRI, PATIENCE) & POLLPRI);
    check_eq(recv(m.s, &c, 1, MSG_OOB), 1);
    check_eq(c, '!');
    plain_recv(m.s, "before");
    snd(m.xti, "after", 0);
    plain_recv(m.s, "after");
}

/* --- datagrams --- */

BOTH_FAMILIES(UDP, datagrams_with_a_socket, "XNS 5.2 t_sndudata(), t_rcvudata()") {
    struct address at, xti_at;
    static char data[70000];
    static const unsigned sizes[] = {0, 1, 100, 1472, 1473, 9000, 65507};
    int s = plain_bound(SOCK_DGRAM, &at), fd = xti_bound(&xti_at, 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill_wave(data, i, sizes[i]);
        check_eq(sendto(s, data, sizes[i], 0, (struct sockaddr *)xti_at.at, xti_at.len), sizes[i]);
        struct arrived *a = arrive(fd);
        check_eq(a->len, sizes[i]);
        check_bytes(a->data, data, sizes[i]);
        check_same(a->from, at);
        depart(fd, &a->from, a->data, a->len);
        memset(data, 0, sizeof data);
        check_eq(recv(s, data, sizeof data, 0), sizes[i]);
        check_wave(data, i, sizes[i]);
    }
}
BOTH_FAMILIES(UDP, connected_socket_gets_its_answer, "XNS 5.2 t_sndudata()") {
    struct address xti_at;
    int fd = xti_bound(&xti_at, 0), s = must(socket(family, SOCK_DGRAM, 0));
    must(connect(s, (struct sockaddr *)xti_at.at, xti_at.len));
    plain_send(s, "question");
    struct arrived *a = arrive(fd);
    check_eq(a->len, 8);
    depart(fd, &a->from, "answer", 6);
    plain_recv(s, "answer");
}
BOTH_FAMILIES(UDP, burst_to_a_socket, "XNS 5.2 t_sndudata()") {
    struct address at, own;
    int s = plain_bound(SOCK_DGRAM, &at), fd = xti_bound(&own, 0);
    char data[2000];
    for (unsigned size = 10; size < sizeof data; size = size * 3) {
        for (int i = 0; i < 50; i++) {
            fill_wave(data, i, size);
            depart(fd, &at, data, size);
        }
        for (int i = 0; i < 50; i++) {
            check_eq(recv(s, data, sizeof data, 0), size);
            check_wave(data, i, size);
        }
    }
}
BOTH_FAMILIES(UDP, burst_from_a_socket, "XNS 5.2 t_rcvudata()") {
    struct address at, own;
    int s = plain_bound(SOCK_DGRAM, &at), fd = xti_bound(&own, 0), segment = 100;
    char data[1000];
    fill_wave(data, 0, sizeof data);
    must(connect(s, (struct sockaddr *)own.at, own.len));
    for (int i = 0; i < 50; i++)
        check_eq(send(s, data + i, 64, 0), 64);
    for (int i = 0; i < 50; i++) {
        struct arrived *a = arrive(fd);
        check_eq(a->len, 64);
        check_wave(a->data, i, 64);
    }
    if (setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) < 0)
        return;
    check_eq(send(s, data, 950, 0), 950);
    for (int i = 0; i < 10; i++) {
        struct arrived *a = arrive(fd);
        check_eq(a->len, i < 9 ? 100 : 50);
        check_wave(a->data, i * 100, a->len);
    }
}
BOTH_FAMILIES(UDP, absent_socket, "XNS 5.2 t_rcvuderr()") {
    struct address at, own, dest;
    close(plain_bound(SOCK_DGRAM, &at));
    int fd = xti_bound(&own, 0);
    depart(fd, &at, "x", 1);
    check_event(fd, T_UDERR);
    struct t_uderr e = {.addr = room(dest.at, sizeof dest.at)};
    must_t(t_rcvuderr(fd, &e));
    check_eq(e.error, ECONNREFUSED);
    dest.len = e.addr.len;
    check_same(dest, at);
}
UDP2_TOO(datagrams_with_a_socket, "XNS 5.2 t_sndudata(), t_rcvudata()")
UDP2_TOO(connected_socket_gets_its_answer, "XNS 5.2 t_sndudata()")
UDP2_TOO(burst_to_a_socket, "XNS 5.2 t_sndudata()")
UDP2_TOO(burst_from_a_socket, "XNS 5.2 t_rcvudata()")
UDP2_TOO(absent_socket, "XNS 5.2 t_rcvuderr()")

/* One of IPv6 that is bound to any address, as far as IPv4 goes: either form of the address, back in that of IPv6. */
static struct address mapped(const struct address *v4) {
    struct sockaddr_in from;
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&from, v4->at, sizeof from);
    to.sin6_port = from.sin_port;
    to.sin6_addr.s6_addr[10] = to.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&to.sin6_addr.s6_addr[12], &from.sin_addr, 4);
    struct address a = {.len = sizeof to};
    memcpy(a.at, &to, sizeof to);
    return a;
}
CASE(v6_reaches_v4, "RFC 4291 2.5.5.2") {
    struct address at, nobody;
    char path[20], addr[sizeof at.at];
    int s = plain_bound(SOCK_DGRAM, &at);
    close(plain_bound(SOCK_DGRAM, &nobody));
    snprintf(path, sizeof path, "/dev/%s6", provider->name);
    int fd = must_t(t_open(path, O_RDWR, NULL));
    must_t(t_bind(fd, NULL, NULL));
    struct address there = mapped(&at), gone = mapped(&nobody);
    for (int i = 0; i < 100; i++) {
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        char got[10];
        depart(fd, i % 3 ? &at : &there, "ping", 4);
        check_eq(recvfrom(s, got, sizeof got, 0, (struct sockaddr *)&from, &len), 4);
        check_eq(sendto(s, "pong", 4, 0, (struct sockaddr *)&from, len), 4);
        struct arrived *a = arrive(fd);
        check_eq(a->from.len, there.len);
        check_bytes(a->from.at, there.at, there.len);
    }
    depart(fd, &nobody, "lost", 4);
    check_event(fd, T_UDERR);
    struct t_uderr e = {.addr = room(addr, sizeof addr)};
    must_t(t_rcvuderr(fd, &e));
    check_eq(e.error, ECONNREFUSED);
    check_eq(e.addr.len, gone.len);
    check_bytes(e.addr.buf, gone.at, gone.len);
}
CASE(v6_address_reaches_no_v4, "XNS 5.2 t_sndudata() TBADADDR") {
    over(AF_INET6, provider->group);
    struct address own, to = inet_address("127.0.0.1", 9);
    int fd = xti_bound(&own, 0);
    struct t_unitdata u = {.addr = given(&to), .udata = given_text("x")};
    check_t(t_sndudata(fd, &u), TBADADDR);
}

/* --- who ends does not wait for a socket that does not read, and loses nothing --- */

struct parting {
    struct address at;
    void (*end)(int fd);
    int told[2];
};
static char part_of(long at) { return (char)(at * 7 + at / 251); }
/* Sends until there is no room, says how much that was, and ends. */
static void fill_and_part(void *with) {
    struct parting *p = with;
    int fd = xti_connected(&p->at), n = 0;
    long sent = 0;
    set_nonblock(fd, 1);
    while (n >= 0) {
        char text[1000];
        for (int i = 0; i < 1000; i++)
            text[i] = part_of(sent + i);
        n = t_snd(fd, text, sizeof text, 0);
        sent += n > 0 ? n : 0;
    }
    check_eq(t_errno, TFLOW);
    check_eq(write(p->told[1], &sent, sizeof sent), sizeof sent);
    p->end(fd);
}
static void parts_when_full(void (*end)(int)) {
    struct parting p = {.end = end};
    int listener = plain_bound(SOCK_STREAM, &p.at);
    must(pipe(p.told));
    pid_t child = spawn(fill_and_part, &p);
    int s = must(accept(listener, NULL, NULL));
    long sent, got = 0;
    check_eq(read(p.told[0], &sent, sizeof sent), sizeof sent);
    long begun = now_ms();
    join(child);
    if (now_ms() - begun > 2000)
        fail("who ended waited for %ld ms", now_ms() - begun);
    static char room[100000];
    for (ssize_t n; (n = must(recv(s, room, sizeof room, 0))) > 0;)
        for (ssize_t i = 0; i < n; i++)
            check_eq(room[i], part_of(got++));
    check_eq(got, sent);
}
static void end_by_release(int fd) {
    must_t(t_sndrel(fd));
    end_by_close(fd);
}
BOTH_FAMILIES(TCP, full_at_t_close, "XNS 5.2 t_close()") { parts_when_full(end_by_close); }
BOTH_FAMILIES(TCP, full_at_close, "close(2)") { parts_when_full(end_by_plain_close); }
BOTH_FAMILIES(TCP, full_at_a_release, "XNS 5.2 t_sndrel()") { parts_when_full(end_by_release); }
BOTH_FAMILIES(TCP, full_at_exit, "exit(3)") { parts_when_full(end_by_exit); }
BOTH_FAMILIES(TCP, full_at__exit, "_exit(2)") { parts_when_full(end_by__exit); }

SUITE(FAMILIES(socket_connects), FAMILIES(socket_accepts), FAMILIES(names_agree), FAMILIES(xti_releases_first),
      FAMILIES(socket_shuts_down_first), FAMILIES(socket_resets), FAMILIES(xti_disconnects), FAMILIES(xti_closes),
      FAMILIES(refused), FAMILIES(xti_rejects), FAMILIES(socket_gives_up), FAMILIES(connects_in_background),
      FAMILIES(many_clients), FAMILIES(small_sends_arrive), FAMILIES(much_from_a_socket), FAMILIES(much_to_a_socket),
      FAMILIES(much_to_a_socket_in_crumbs), FAMILIES(full), FAMILIES(urgent_from_a_socket),
      FAMILIES(urgent_to_a_socket), FAMILIES_OF_BOTH(datagrams_with_a_socket),
      FAMILIES_OF_BOTH(connected_socket_gets_its_answer), FAMILIES_OF_BOTH(burst_to_a_socket),
      FAMILIES_OF_BOTH(burst_from_a_socket), FAMILIES_OF_BOTH(absent_socket), FAMILIES(full_at_t_close),
      FAMILIES(full_at_close), FAMILIES(full_at_a_release), FAMILIES(full_at_exit), FAMILIES(full_at__exit),
      FOR(UDP, v6_reaches_v4), FOR(UDP, v6_address_reaches_no_v4))
