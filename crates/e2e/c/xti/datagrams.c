/* Connectionless service: unit data, its pieces, its vectors, its errors, its ends, on ticlts, udp and udp2. */
#include "datagrams.h"

/* --- sending and receiving --- */

CASE(there_and_back, "XNS 5.2 t_sndudata()") {
    struct address one, two;
    struct datagram d;
    int a = endpoint(&one), b = endpoint(&two);
    send_text(a, &two, "there");
    receive_text(b, &d, "there");
    check(comes_from(&d, &one));
    struct address source = address_of(&d.unit.addr);
    send_text(b, &source, "back");
    receive_text(a, &d, "back");
    check(comes_from(&d, &two));
    check_state(a, T_IDLE);
}
CASE(to_itself, "XNS 5.2 t_sndudata()") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "self");
    receive_text(fd, &d, "self");
    check(comes_from(&d, &own));
}
CASE(all_sizes, "XNS 5.2 t_rcvudata()") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), n = 0;
    for (unsigned size = 1; size <= largest(); size = size < 300 ? size + 7 : size * 2 - 19) {
        send_numbered(a, &two, size, n);
        receive_numbered(b, size, n++);
    }
    send_numbered(a, &two, largest(), n);
    receive_numbered(b, largest(), n);
}
CASE(empty, "XNS 5.2 t_sndudata(): T_SENDZERO") {
    struct address one, two;
    struct datagram d;
    int a = endpoint(&one), b = endpoint(&two);
    send_text(a, &two, "");
    send_text(a, &two, "after");
    receive_text(b, &d, "");
    check(comes_from(&d, &one));
    receive_text(b, &d, "after");
}
CASE(too_long, "XNS 5.2 t_sndudata() TBADDATA") {
    struct address one, two;
    static char data[70000];
    struct datagram d;
    int a = endpoint(&one), b = endpoint(&two);
    check_t(send_to(a, &two, data, largest() + 1), TBADDATA);
    check_t(send_to(a, &two, data, sizeof data), TBADDATA);
    send_text(a, &two, "short");
    receive_text(b, &d, "short");
    check_look(b, 0);
}
CASE(bad_addresses, "XNS 5.2 t_sndudata() TBADADDR") {
    struct address own, bad = {.len = 0};
    struct datagram d;
    int fd = endpoint(&own);
    check_t(send_to(fd, &bad, "x", 1), TBADADDR);
    if (is_in(INET)) {
        bad = text_address("abc");
        check_t(send_to(fd, &bad, "x", 1), TBADADDR);
        bad = own;
        bad.at[0] = 99; /* the family */
        check_t(send_to(fd, &bad, "x", 1), TBADADDR);
    } else {
        memset(bad.at, 'x', bad.len = 1025);
        check_t(send_to(fd, &bad, "x", 1), TBADADDR);
    }
    send_text(fd, &own, "good");
    receive_text(fd, &d, "good");
}
CASE(bad_options, "XNS 5.2 t_sndudata() TBADOPT") {
    struct address own;
    int fd = endpoint(&own);
    struct t_opthdr bad = {.len = 3, .level = XTI_GENERIC, .name = XTI_DEBUG};
    struct t_unitdata u = {.addr = given(&own), .opt = given_bytes(&bad, sizeof bad), .udata = given_text("x")};
    check_t(t_sndudata(fd, &u), TBADOPT);
    bad.len = 400;
    check_t(t_sndudata(fd, &u), TBADOPT);
    check_look(fd, 0);
}
CASE(unbound, "XNS 5.2 t_sndudata() TOUTSTATE") {
    struct address own;
    struct datagram d;
    endpoint(&own);
    int fd = open_endpoint();
    check_t(send_to(fd, &own, "x", 1), TOUTSTATE);
    check_t(receive(fd, &d), TOUTSTATE);
    check_state(fd, T_UNBND);
}
CASE(not_an_endpoint, "XNS 5.2 t_sndudata() TBADF") {
    struct address at = {.len = 16};
    struct datagram d;
    struct t_uderr e = {.error = 0};
    check_t(send_to(999, &at, "x", 1), TBADF);
    check_t(receive(-1, &d), TBADF);
    check_t(receive(0, &d), TBADF);
    check_t(t_rcvuderr(999, &e), TBADF);
}
CASE(calls_of_connections, "XNS 5.2 TNOTSUPPORT") {
    struct address own;
    int fd = endpoint(&own), flags;
    struct t_call call = call_to(&own);
    struct t_iovec v = {"x", 1};
    char c;
    check_t(t_connect(fd, &call, NULL), TNOTSUPPORT);
    check_t(t_listen(fd, &call), TNOTSUPPORT);
    check_t(t_accept(fd, fd, &call), TNOTSUPPORT);
    check_t(t_rcvconnect(fd, NULL), TNOTSUPPORT);
    check_t(t_snd(fd, "x", 1, 0), TNOTSUPPORT);
    check_t(t_rcv(fd, &c, 1, &flags), TNOTSUPPORT);
    check_t(t_sndv(fd, &v, 1, 0), TNOTSUPPORT);
    check_t(t_rcvv(fd, &v, 1, &flags), TNOTSUPPORT);
    check_t(t_snddis(fd, NULL), TNOTSUPPORT);
    check_t(t_rcvdis(fd, NULL), TNOTSUPPORT);
    check_t(t_sndrel(fd), TNOTSUPPORT);
    check_t(t_rcvrel(fd), TNOTSUPPORT);
    check_t(t_sndreldata(fd, NULL), TNOTSUPPORT);
    check_t(t_rcvreldata(fd, NULL), TNOTSUPPORT);
    check_state(fd, T_IDLE);
}
CASE(calls_of_datagrams, "XNS 5.2 TNOTSUPPORT") {
    int fd = bound(), flags;
    struct address own = own_address(fd);
    struct t_unitdata u = {.addr = given(&own), .udata = given_text("x")};
    struct t_iovec v = {"x", 1};
    check_t(t_sndudata(fd, &u), TNOTSUPPORT);
    check_t(t_rcvudata(fd, &u, &flags), TNOTSUPPORT);
    check_t(t_sndvudata(fd, &u, &v, 1), TNOTSUPPORT);
    check_t(t_rcvvudata(fd, &u, &v, 1, &flags), TNOTSUPPORT);
    check_t(t_rcvuderr(fd, NULL), TNOTSUPPORT);
    check_state(fd, T_IDLE);
}
CASE(nothing_there, "XNS 5.2 t_rcvudata() TNODATA") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own);
    set_nonblock(fd, 1);
    check_t(receive(fd, &d), TNODATA);
    send_text(fd, &own, "x");
    check_event(fd, T_DATA);
    receive_text(fd, &d, "x");
    check_t(receive(fd, &d), TNODATA);
}

/* --- pieces, and what does not fit --- */

CASE(in_pieces, "XNS 5.2 t_rcvudata(): T_MORE") {
    struct address one, two;
    static struct datagram d;
    int a = endpoint(&one), b = endpoint(&two);
    send_text(a, &two, "0123456789");
    send_text(a, &two, "next");
    must_t(t_rcvudata(b, with_room(&d, 4), &d.flags));
    check_eq(d.flags, T_MORE);
    check_netbuf(d.unit.udata, "0123");
    check(comes_from(&d, &one));
    must_t(t_rcvudata(b, with_room(&d, 4), &d.flags));
    check_eq(d.flags, T_MORE);
    check_netbuf(d.unit.udata, "4567");
    check_eq(d.unit.addr.len, 0);
    must_t(t_rcvudata(b, with_room(&d, 4), &d.flags));
    check_eq(d.flags, 0);
    check_netbuf(d.unit.udata, "89");
    check_eq(d.unit.addr.len, 0);
    receive_text(b, &d, "next");
    check(comes_from(&d, &one));
}
CASE(fits_exactly, "XNS 5.2 t_rcvudata(): T_MORE") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "12345678");
    must_t(t_rcvudata(fd, with_room(&d, 4), &d.flags));
    check_eq(d.flags, T_MORE);
    must_t(t_rcvudata(fd, with_room(&d, 4), &d.flags));
    check_eq(d.flags, 0);
    check_netbuf(d.unit.udata, "5678");
    check_look(fd, 0);
}
CASE(largest_in_pieces, "XNS 5.2 t_rcvudata(): T_MORE") {
    struct address own;
    static struct datagram d;
    static char data[70000];
    int fd = endpoint(&own);
    unsigned have = 0;
    fill_wave(data, 0, largest());
    check_eq(send_to(fd, &own, data, largest()), 0);
    do {
        must_t(t_rcvudata(fd, with_room(&d, 1000), &d.flags));
        check_wave(d.data, have, d.unit.udata.len);
        have += d.unit.udata.len;
    } while (d.flags & T_MORE);
    check_eq(have, largest());
}
CASE(pieces_among_equals, "XNS 5.2 t_rcvudata(): T_MORE") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    for (int i = 0; i < 10; i++)
        send_text(fd, &own, "0123456789");
    for (int i = 0; i < 10; i++) {
        must_t(t_rcvudata(fd, with_room(&d, i % 2 ? 6 : 10), &d.flags));
        check_eq(d.flags, i % 2 ? T_MORE : 0);
        check(comes_from(&d, &own));
        if (i % 2) {
            must_t(t_rcvudata(fd, with_room(&d, 10), &d.flags));
            check_eq(d.flags, 0);
            check_netbuf(d.unit.udata, "6789");
        }
    }
    check_look(fd, 0);
}
CASE(little_room_for_the_address, "XNS 5.2 t_rcvudata() TBUFOVFLW") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "lost");
    send_text(fd, &own, "kept");
    with_room(&d, 100)->addr.maxlen = 3;
    check_t(t_rcvudata(fd, &d.unit, &d.flags), TBUFOVFLW);
    receive_text(fd, &d, "kept");
    check_look(fd, 0);
}
CASE(address_not_wanted, "XNS 5.2 t_rcvudata()") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "text");
    with_room(&d, 100)->addr = (struct netbuf){.maxlen = 0};
    d.unit.opt = (struct netbuf){.maxlen = 0};
    must_t(t_rcvudata(fd, &d.unit, &d.flags));
    check_netbuf(d.unit.udata, "text");
    check_eq(d.unit.addr.len, 0);
}
CASE(data_not_wanted, "XNS 5.2 t_rcvudata()") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "text");
    with_room(&d, 0);
    must_t(t_rcvudata(fd, &d.unit, &d.flags));
    check_eq(d.unit.udata.len, 0);
    check_eq(d.flags, T_MORE);
    receive_text(fd, &d, "text");
    check_eq(d.unit.addr.len, 0);
}

/* --- vectors --- */

CASE(gathered, "XNS 5.2 t_sndvudata()") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own);
    struct t_unitdata u = {.addr = given(&own)};
    struct t_iovec v[] = {{"ga", 2}, {"", 0}, {"ther", 4}, {"ed", 2}};
    must_t(t_sndvudata(fd, &u, v, 4));
    receive_text(fd, &d, "gathered");
}
CASE(scattered, "XNS 5.2 t_rcvvudata()") {
    struct address own;
    char one[3], two[4], three[10];
    static struct datagram d;
    int fd = endpoint(&own);
    struct t_iovec v[] = {{one, 3}, {two, 4}, {three, 10}};
    send_text(fd, &own, "scattered");
    must_t(t_rcvvudata(fd, with_room(&d, 0), v, 3, &d.flags) >= 0 ? 0 : -1);
    check_eq(d.flags, 0);
    check_bytes(one, "sca", 3);
    check_bytes(two, "tter", 4);
    check_bytes(three, "ed", 2);
    check(comes_from(&d, &own));
}
CASE(scattered_in_pieces, "XNS 5.2 t_rcvvudata(): T_MORE") {
    struct address own;
    char one[2], two[3];
    static struct datagram d;
    int fd = endpoint(&own);
    struct t_iovec v[] = {{one, 2}, {two, 3}};
    send_text(fd, &own, "scattered");
    check(t_rcvvudata(fd, with_room(&d, 0), v, 2, &d.flags) >= 0);
    check_eq(d.flags, T_MORE);
    check_bytes(one, "sc", 2);
    check_bytes(two, "att", 3);
    check(t_rcvvudata(fd, with_room(&d, 0), v, 2, &d.flags) >= 0);
    check_eq(d.flags, 0);
    check_bytes(one, "er", 2);
    check_bytes(two, "ed", 2);
    check_eq(d.unit.addr.len, 0);
}
CASE(many_vectors, "XNS 5.2 t_sndvudata() TBADDATA") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own), most = t_sysconf(_SC_T_IOV_MAX);
    struct t_unitdata u = {.addr = given(&own)};
    check(most >= T_IOV_MAX);
    struct t_iovec *v = calloc(most + 1, sizeof *v);
    for (int i = 0; i <= most; i++)
        v[i] = (struct t_iovec){"v", 1};
    check_t(t_sndvudata(fd, &u, v, most + 1), TBADDATA);
    must_t(t_sndvudata(fd, &u, v, most));
    must_t(receive(fd, &d));
    check_eq(d.unit.udata.len, most);
    check_look(fd, 0);
}

/* --- errors of delivery --- */

CASE(to_nobody, "XNS 5.2 t_rcvuderr()") {
    struct address own, to = deserted();
    struct datagram d;
    char addr[2048], opt[2048];
    int fd = endpoint(&own);
    send_text(fd, &to, "x");
    check_event(fd, T_UDERR);
    struct t_uderr e = {.addr = room(addr, sizeof addr), .opt = room(opt, sizeof opt), .error = 0};
    must_t(t_rcvuderr(fd, &e));
    check(e.error != 0);
    if (is_in(UDP))
        check_eq(e.error, ECONNREFUSED);
    struct address dest = address_of(&e.addr);
    check(same_address(&dest, &to));
    check_look(fd, 0);
    check_t(t_rcvuderr(fd, &e), TNOUDERR);
    check_state(fd, T_IDLE);
    send_text(fd, &own, "again");
    receive_text(fd, &d, "again");
}
CASE(error_in_front, "XNS 5.2 t_rcvudata() TLOOK") {
    struct address own, to = deserted();
    struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &to, "x");
    check_event(fd, T_UDERR);
    check_t(receive(fd, &d), TLOOK);
    check_look(fd, T_UDERR);
    must_t(t_rcvuderr(fd, NULL));
    check_look(fd, 0);
    send_text(fd, &own, "x");
    receive_text(fd, &d, "x");
}
CASE(error_before_sending, "XNS 5.2 t_sndudata() TLOOK") {
    struct address own, other, to = deserted();
    struct datagram d;
    int fd = endpoint(&own), neighbour = endpoint(&other);
    send_text(fd, &to, "x");
    check_event(fd, T_UDERR);
    check_t(send_to(fd, &to, "y", 1), TLOOK);
    check_t(send_to(fd, &other, "y", 1), TLOOK);
    check_look(fd, T_UDERR);
    must_t(t_rcvuderr(fd, NULL));
    send_text(fd, &other, "z");
    receive_text(neighbour, &d, "z");
    check_t(t_rcvuderr(fd, NULL), TNOUDERR);
}
CASE(error_unseen_before_sending, "XNS 5.2 t_sndudata() TLOOK") {
    struct address own, other, to = deserted();
    struct datagram d;
    int fd = endpoint(&own), neighbour = endpoint(&other);
    send_text(fd, &to, "x");
    sleep_ms(20);
    check_t(send_to(fd, &to, "y", 1), TLOOK);
    must_t(t_rcvuderr(fd, NULL));
    check_t(t_rcvuderr(fd, NULL), TNOUDERR);
    send_text(fd, &other, "z");
    receive_text(neighbour, &d, "z");
}
CASE(error_wakes, "XNS 5.2 t_rcvudata() TLOOK") {
    struct address own, to = deserted();
    struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &to, "x");
    check_t(receive(fd, &d), TLOOK);
    check_look(fd, T_UDERR);
    must_t(t_rcvuderr(fd, NULL));
}
CASE(error_before_a_datagram, "XNS 5.2 t_rcvudata() TLOOK") {
    struct address own, other, to = deserted();
    struct datagram d;
    int fd = endpoint(&own), neighbour = endpoint(&other);
    send_text(neighbour, &own, "x");
    send_text(fd, &to, "y");
    sleep_ms(5);
    check_t(receive(fd, &d), TLOOK);
    check_look(fd, T_UDERR);
    must_t(t_rcvuderr(fd, NULL));
    receive_text(fd, &d, "x");
}
CASE(error_before_datagrams, "XNS 5.2 t_look(), t_rcvudata() TLOOK") {
    struct address own, to = deserted();
    struct datagram d;
    int fd = endpoint(&own), neighbour = open_endpoint();
    bind_at(neighbour, unused_address(), 0);
    /* Several are taken from the kernel at a time. */
    for (int i = 0; i < 12; i++)
        send_numbered(neighbour, &own, 100 + i, i);
    for (int i = 0; i < 12; i++) {
        must_t(receive(fd, &d));
        check_eq(d.unit.udata.len, 100 + i);
        send_text(fd, &to, i % 2 ? "x" : "longer"); /* equals may be held */
        if (i % 2) {
            sleep_ms(5);
            check_t(receive(fd, &d), TLOOK);
        }
        /* The kernel may answer a little later. */
        await(t_look(fd) == T_UDERR);
        must_t(t_rcvuderr(fd, NULL));
        check_look(fd, i < 11 ? T_DATA : 0);
    }
}
CASE(error_unseen_before_sending_to_others, "XNS 5.2 t_sndudata() TLOOK") {
    struct address own, other, to = deserted();
    struct datagram d;
    int fd = endpoint(&own), neighbour = endpoint(&other);
    for (int i = 0; i < 5; i++) {
        send_text(fd, &other, "x");
        receive_text(neighbour, &d, "x");
        send_text(fd, &to, i % 2 ? "y" : "longer"); /* equals may be held */
        sleep_ms(5);
        check_t(send_to(fd, &other, "z", 1), TLOOK);
        check_look(fd, T_UDERR);
        must_t(t_rcvuderr(fd, NULL));
    }
    send_text(fd, &other, "x");
    receive_text(neighbour, &d, "x");
    check_look(neighbour, 0);
}
CASE(error_is_readable, "XNS 5.2 t_look(), poll(2)") {
    struct address own, to = deserted();
    int fd = endpoint(&own);
    send_text(fd, &to, "x");
    check(events(fd, READABLE, PATIENCE) != 0);
    check_event(fd, T_UDERR);
    must_t(t_rcvuderr(fd, NULL));
}
CASE(error_does_not_fit, "XNS 5.2 t_rcvuderr() TBUFOVFLW") {
    struct address own, to = deserted();
    char addr[2];
    int fd = endpoint(&own);
    send_text(fd, &to, "x");
    check_event(fd, T_UDERR);
    struct t_uderr e = {.addr = room(addr, sizeof addr)};
    check_t(t_rcvuderr(fd, &e), TBUFOVFLW);
    check_t(t_rcvuderr(fd, &e), TNOUDERR);
    check_look(fd, 0);
}
CASE(no_error, "XNS 5.2 t_rcvuderr() TNOUDERR") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own);
    check_t(t_rcvuderr(fd, NULL), TNOUDERR);
    send_text(fd, &own, "x");
    check_t(t_rcvuderr(fd, NULL), TNOUDERR);
    receive_text(fd, &d, "x");
}

/* --- ends, copies, processes --- */

CASE(address_moves_on, "XNS 5.2 t_close()") {
    struct address at, own;
    struct datagram d;
    int old = endpoint(&at), a = endpoint(&own);
    send_text(a, &at, "old");
    receive_text(old, &d, "old");
    must_t(t_close(old));
    int new = open_endpoint();
    bind_at(new, at, 0);
    send_text(a, &at, "new");
    receive_text(new, &d, "new");
}
CASE(unbound_again, "XNS 5.2 t_unbind()") {
    struct address at;
    struct datagram d;
    int fd = endpoint(&at);
    send_text(fd, &at, "x");
    check_event(fd, T_DATA);
    check_t(t_unbind(fd), TLOOK);
    check_state(fd, T_IDLE);
    receive_text(fd, &d, "x");
    must_t(t_unbind(fd));
    check_state(fd, T_UNBND);
    check_look(fd, 0);
    check_t(receive(fd, &d), TOUTSTATE);
    bind_at(fd, at, 0);
    set_nonblock(fd, 1);
    check_t(receive(fd, &d), TNODATA);
    send_text(fd, &at, "anew");
    set_nonblock(fd, 0);
    receive_text(fd, &d, "anew");
}
CASE(copied_descriptor, "dup(2)") {
    struct address at;
    struct datagram d;
    int fd = endpoint(&at), copy = must(dup(fd));
    send_text(fd, &at, "x");
    receive_text(copy, &d, "x");
    must_t(t_close(fd));
    send_text(copy, &at, "y");
    receive_text(copy, &d, "y");
}
static void use_inherited(void *with) {
    struct address *at = with;
    struct datagram d;
    int fd = *(int *)(void *)(at + 1);
    check_eq(t_sync(fd), T_IDLE);
    receive_text(fd, &d, "to the child");
    struct address from = address_of(&d.unit.addr);
    send_text(fd, &from, "from the child");
}
CASE(inherited, "XNS 5.2 t_sync(), fork(2)") {
    struct {
        struct address at;
        int fd;
    } i;
    struct address own;
    struct datagram d;
    i.fd = endpoint(&i.at);
    int a = endpoint(&own);
    pid_t child = spawn(use_inherited, &i);
    must_t(t_close(i.fd));
    send_text(a, &i.at, "to the child");
    receive_text(a, &d, "from the child");
    check(comes_from(&d, &i.at));
    join(child);
}
/* Sends, is answered, and stays until it is killed. */
static void stay_known(void *with) {
    static struct datagram d;
    struct address own;
    int fd = endpoint(&own);
    send_text(fd, with, "met");
    receive_text(fd, &d, "met");
    send_text(fd, with, "known");
    for (;;)
        pause();
}
static void meet_and_lose(int fd, struct address *at, int n) {
    static struct datagram d;
    pid_t child[20];
    for (int i = 0; i < n; i++) {
        child[i] = spawn(stay_known, at);
        receive_text(fd, &d, "met");
        struct address from = address_of(&d.unit.addr);
        send_text(fd, &from, "met");
        receive_text(fd, &d, "known");
    }
    for (int i = 0; i < n; i++)
        slay(child[i]);
}
/* Nothing is kept of them once a call is made. What is kept to ask for names, and whatever began with the first of them, is but little. */
CASE(peers_that_were_killed, "XNS 5.2 t_sndudata(), SIGKILL") {
    enum { MANY = 20, LITTLE = 3 };
    static struct datagram d;
    struct address own;
    int fd = endpoint(&own);
    meet_and_lose(fd, &own, 1);
    int before = descriptors(), now = before + MANY;
    meet_and_lose(fd, &own, MANY);
    set_nonblock(fd, 1);
    for (long until = now_ms() + PATIENCE; now > before + LITTLE && now_ms() < until; sleep_ms(1)) {
        check_t(receive(fd, &d), TNODATA);
        now = descriptors();
    }
    if (now > before + LITTLE)
        fail("%d descriptors are left of %d peers that were killed; before: %d", now, MANY, before);
}
CASE(two_readers_of_a_process_each, "XNS 5.2 t_rcvudata()") {
    struct address at, own;
    int b = endpoint(&at), a = endpoint(&own);
    int pipe_fd[2];
    must(pipe(pipe_fd));
    pid_t child[2];
    for (int i = 0; i < 2; i++)
        if ((child[i] = must(fork())) == 0) {
            static struct datagram d;
            alarm(SECONDS);
            set_nonblock(b, 1);
            for (;;) {
                if (receive(b, &d) < 0) {
                    if (t_errno != TNODATA)
                        fail("in a reader: %s", fault());
                    events(b, POLLIN, PATIENCE);
                    continue;
                }
                if (d.unit.udata.len == 0)
                    _exit(0);
                check_eq(write(pipe_fd[1], d.data, 4), 4);
            }
        }
    char seen[200] = {0};
    for (int n = 0; n < 200; n++) {
        send_numbered(a, &at, 40, n);
        if (n % 10 == 9)
            sleep_ms(1);
    }
    for (int n = 0; n < 200; n++) {
        int number;
        check_eq(read(pipe_fd[0], &number, 4), 4);
        check(number >= 0 && number < 200);
        check_eq(seen[number]++, 0);
    }
    kill(child[0], SIGKILL), kill(child[1], SIGKILL);
}

SUITE(FOR(CLTS, there_and_back), FOR(CLTS, to_itself), FOR(CLTS, all_sizes), FOR(CLTS, empty), FOR(CLTS, too_long),
      FOR(CLTS, bad_addresses), FOR(CLTS, bad_options), FOR(CLTS, unbound), FOR(CLTS, not_an_endpoint),
      FOR(CLTS, calls_of_connections), FOR(COTS, calls_of_datagrams), FOR(CLTS, nothing_there), FOR(CLTS, in_pieces),
      FOR(CLTS, fits_exactly), FOR(CLTS, largest_in_pieces), FOR(CLTS, pieces_among_equals),
      FOR(CLTS, little_room_for_the_address), FOR(CLTS, address_not_wanted), FOR(CLTS, data_not_wanted),
      FOR(CLTS, gathered), FOR(CLTS, scattered), FOR(CLTS, scattered_in_pieces), FOR(CLTS, many_vectors),
      FOR(CLTS, to_nobody), FOR(CLTS, error_in_front), FOR(CLTS, error_before_sending),
      FOR(CLTS, error_unseen_before_sending), FOR(CLTS, error_wakes), FOR(CLTS, error_before_a_datagram),
      FOR(CLTS, error_before_datagrams), FOR(CLTS, error_unseen_before_sending_to_others), FOR(CLTS, error_is_readable),
      FOR(CLTS, error_does_not_fit), FOR(CLTS, no_error), FOR(CLTS, address_moves_on), FOR(CLTS, unbound_again),
      FOR(CLTS, copied_descriptor), FOR(CLTS, inherited), FOR(LOSSLESS, peers_that_were_killed),
      FOR(CLTS, two_readers_of_a_process_each))
