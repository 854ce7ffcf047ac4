/* Connectionless service: the order of datagrams, great amounts of them, flow and readiness, on ticlts, udp and udp2. */
#include "datagrams.h"
#include <sys/epoll.h>
#include <sys/select.h>

/* --- order, amounts, flow --- */

CASE(in_order, "XNS 5.2 t_rcvudata()") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two);
    for (int i = 0; i < 1000; i += 20) {
        for (int k = i; k < i + 20; k++)
            send_numbered(a, &two, 4 + k % 90, k);
        for (int k = i; k < i + 20; k++)
            receive_numbered(b, 4 + k % 90, k);
    }
}
CASE(equal_sizes, "XNS 5.2 t_rcvudata()") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), n = 0;
    static const unsigned sizes[] = {4, 64, 100, 1024, 1472, 1473, 4000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int burst = 1; burst <= 32 && burst * sizes[s] < 32768; burst *= 2, n += burst) {
            for (int i = 0; i < burst; i++)
                send_numbered(a, &two, sizes[s], n + i);
            for (int i = 0; i < burst; i++)
                receive_numbered(b, sizes[s], n + i);
        }
    check_look(b, 0);
}
CASE(mixed_sizes, "XNS 5.2 t_rcvudata()") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), n = 0;
    static const unsigned sizes[] = {100, 100, 100, 40, 100, 100, 200, 200, 7, 7, 7, 7, 1, 3000, 100};
    unsigned seed = 4;
    for (int round = 0; round < 40; round++, n += 15) {
        unsigned shift = seed = seed * 1103515245 + 12345;
        for (int i = 0; i < 15; i++)
            send_numbered(a, &two, 4 + sizes[(i + (shift >> 16)) % 15], n + i);
        for (int i = 0; i < 15; i++)
            receive_numbered(b, 4 + sizes[(i + (shift >> 16)) % 15], n + i);
    }
}
CASE(mixed_destinations, "XNS 5.2 t_sndudata()") {
    struct address own, to[3];
    int a = endpoint(&own), b[3];
    for (int i = 0; i < 3; i++)
        b[i] = endpoint(&to[i]);
    for (int n = 0; n < 300; n += 30) {
        for (int i = n; i < n + 30; i++)
            send_numbered(a, &to[i % 7 % 3], 50, i);
        for (int i = n; i < n + 30; i++)
            receive_numbered(b[i % 7 % 3], 50, i);
    }
    for (int i = 0; i < 3; i++)
        check_look(b[i], 0);
}
CASE(many_senders, "XNS 5.2 t_rcvudata()") {
    struct address at, from[5];
    int fd = endpoint(&at), sender[5], next[5] = {0};
    static struct datagram d;
    for (int i = 0; i < 5; i++)
        sender[i] = endpoint(&from[i]);
    for (int n = 0; n < 20; n++) {
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < 3; k++)
                send_numbered(sender[i], &at, 32, i * 1000 + n * 3 + k);
        for (int i = 0; i < 15; i++) {
            must_t(receive(fd, &d));
            int number;
            memcpy(&number, d.data, sizeof number);
            check(number / 1000 < 5);
            check(comes_from(&d, &from[number / 1000]));
            check_eq(number % 1000, next[number / 1000]++);
        }
    }
}

struct sending {
    struct address to;
    int count;
    unsigned size;
    int pause_every;
};
static void send_many(void *with) {
    struct sending *s = with;
    struct address own;
    int fd = endpoint(&own);
    for (int i = 0; i < s->count; i++) {
        send_numbered(fd, &s->to, s->size, i);
        if (s->pause_every && i % s->pause_every == 0)
            sleep_ms(1);
    }
    must_t(t_close(fd));
}
CASE(nothing_is_lost, "XNS 5.2 t_sndudata(): flow control") {
    struct sending s = {.count = 20000, .size = 500};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_many, &s);
    sleep_ms(20);
    for (int i = 0; i < s.count; i++)
        receive_numbered(fd, s.size, i);
    join(child);
    check_look(fd, 0);
}
CASE(burst_from_another_process, "XNS 5.2 t_rcvudata()") {
    struct sending s = {.count = 100, .size = 64};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_many, &s);
    for (int i = 0; i < s.count; i++)
        receive_numbered(fd, s.size, i);
    join(child);
}
CASE(burst_with_pauses, "XNS 5.2 t_rcvudata()") {
    struct sending s = {.count = 200, .size = 200, .pause_every = 7};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_many, &s);
    for (int i = 0; i < s.count; i++)
        receive_numbered(fd, s.size, i);
    join(child);
}
/* Large udp bursts may lose some, as the kernel's do; what comes is whole and in order. */
CASE(big_burst, "XNS 5.2 t_rcvudata()") {
    struct sending s = {.count = 5000, .size = 1024};
    static struct datagram d;
    int fd = endpoint(&s.to), last = -1, seen = 0;
    pid_t child = spawn(send_many, &s);
    while (events(fd, READABLE, last < 0 ? 5000 : 200) & READABLE) {
        int number;
        must_t(receive(fd, &d));
        check_eq(d.unit.udata.len, s.size);
        memcpy(&number, d.data, sizeof number);
        check(number > last);
        check_eq((unsigned char)d.data[1023], (unsigned char)(number * 31));
        last = number, seen++;
    }
    join(child);
    check(seen > 100);
    if (is_in(LOSSLESS))
        check_eq(seen, s.count);
}
static void send_and_stay(void *with) {
    struct sending *s = with;
    struct address own;
    int fd = endpoint(&own);
    for (int i = 0; i < s->count; i++)
        send_numbered(fd, &s->to, s->size, i);
    for (;;)
        pause();
}
/* Whatever is held back leaves, without another call of the sender. */
CASE(leaves_by_itself, "XNS 5.2 t_sndudata()") {
    struct sending s = {.count = 3, .size = 10};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_and_stay, &s);
    for (int i = 0; i < s.count; i++)
        receive_numbered(fd, s.size, i);
    slay(child);
}
static void send_and_spin(void *with) {
    struct sending *s = with;
    struct address own;
    int fd = endpoint(&own);
    send_numbered(fd, &s->to, s->size, 0);
    for (volatile int i = 0;; i++)
        ;
}
CASE(leaves_a_busy_sender, "XNS 5.2 t_sndudata()") {
    struct sending s = {.count = 1, .size = 10};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_and_spin, &s);
    receive_numbered(fd, s.size, 0);
    slay(child);
}
static void send_and_exit(void *with) {
    struct sending *s = with;
    struct address own;
    int fd = endpoint(&own);
    for (int i = 0; i < s->count; i++)
        send_numbered(fd, &s->to, s->size, i);
    _exit(0);
}
CASE(leaves_before_exit, "XNS 5.2 t_sndudata(), _exit(2)") {
    struct sending s = {.count = 5, .size = 10};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_and_exit, &s);
    for (int i = 0; i < s.count; i++)
        receive_numbered(fd, s.size, i);
    join(child);
}

/* Sends until TFLOW; how many went in. */
static int fill_up(int fd, const struct address *to, unsigned size) {
    char data[5000];
    for (int n = 0;; n++) {
        numbered(data, size, n);
        t_errno = 0;
        if (send_to(fd, to, data, size) < 0) {
            if (t_errno != TFLOW)
                fail("t_sndudata number %d: expected success or TFLOW, saw %s", n, fault());
            return n;
        }
        if (n > 1000000)
            fail("a million datagrams, and no TFLOW");
    }
}
CASE(no_room, "XNS 5.2 t_sndudata() TFLOW") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two);
    set_nonblock(a, 1);
    int n = fill_up(a, &two, 1000);
    check(n > 10);
    check_eq(writable(a), 0);
    for (int i = 0; i < n; i++)
        receive_numbered(b, 1000, i);
    check(events(a, POLLOUT, PATIENCE) & POLLOUT);
    send_numbered(a, &two, 1000, 7);
    receive_numbered(b, 1000, 7);
}
CASE(room_again, "XNS 5.2 t_look(): T_GODATA") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two);
    set_nonblock(a, 1);
    int n = fill_up(a, &two, 1000);
    check_look(a, 0);
    for (int i = 0; i < n; i++)
        receive_numbered(b, 1000, i);
    check_event(a, T_GODATA);
    check_look(a, 0);
}
CASE(full_receiver_hinders_only_its_own, "XNS 5.2 t_sndudata() TFLOW") {
    struct address own, full, other;
    int a = endpoint(&own), c = (endpoint(&full), endpoint(&other));
    set_nonblock(a, 1);
    fill_up(a, &full, 1000);
    int b = endpoint(&own);
    send_numbered(b, &other, 10, 1);
    receive_numbered(c, 10, 1);
}

/* --- readiness --- */

CASE(ready, "poll(2)") {
    struct address own;
    struct datagram d;
    int fd = endpoint(&own);
    check_eq(events(fd, READABLE | POLLOUT, 0), POLLOUT);
    check_look(fd, 0);
    send_text(fd, &own, "x");
    check(events(fd, POLLIN, PATIENCE) & POLLIN);
    check_look(fd, T_DATA);
    receive_text(fd, &d, "x");
    check_eq(events(fd, READABLE, 0), 0);
}
/* Datagrams that were taken from the kernel together are still seen by poll, one after the other. */
CASE(ready_until_the_last, "poll(2)") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 30; i++)
            send_numbered(a, &two, 100, i);
        for (int i = 0; i < 30; i++) {
            check(events(b, POLLIN | POLLRDNORM, PATIENCE) & POLLIN);
            check_look(b, T_DATA);
            receive_numbered(b, 100, i);
        }
        check_eq(events(b, READABLE, 0), 0);
    }
}
CASE(ready_for_the_rest, "poll(2)") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    send_text(fd, &own, "0123456789");
    must_t(t_rcvudata(fd, with_room(&d, 4), &d.flags));
    check(events(fd, POLLIN, 0) & POLLIN);
    check_look(fd, T_DATA);
    must_t(t_rcvudata(fd, with_room(&d, 6), &d.flags));
    check_eq(events(fd, READABLE, 0), 0);
}
CASE(ready_in_select, "select(2)") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two);
    for (int i = 0; i < 10; i++)
        send_numbered(a, &two, 100, i);
    for (int i = 0; i <= 10; i++) {
        fd_set set;
        struct timeval patience = {i < 10 ? PATIENCE / 1000 : 0, 0};
        FD_ZERO(&set);
        FD_SET(b, &set);
        check_eq(select(b + 1, &set, NULL, NULL, &patience), i < 10);
        if (i < 10)
            receive_numbered(b, 100, i);
    }
}
CASE(ready_in_epoll, "epoll(7)") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), ep = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 7}, seen;
    must(epoll_ctl(ep, EPOLL_CTL_ADD, b, &e));
    check_eq(epoll_wait(ep, &seen, 1, 0), 0);
    for (int i = 0; i < 10; i++)
        send_numbered(a, &two, 100, i);
    for (int i = 0; i < 10; i++) {
        check_eq(epoll_wait(ep, &seen, 1, PATIENCE), 1);
        check_eq(seen.data.u32, 7);
        receive_numbered(b, 100, i);
    }
    check_eq(epoll_wait(ep, &seen, 1, 0), 0);
}
CASE(told_once_in_epoll, "epoll(7) EPOLLONESHOT") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), ep = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLONESHOT, .data.u32 = 7}, seen;
    send_to(a, &two, "datagram", 8);
    check_event(b, T_DATA);
    for (int i = 0; i < 3; i++) {
        must(epoll_ctl(ep, i ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, b, &e));
        check_eq(epoll_wait(ep, &seen, 1, PATIENCE), 1);
        check_eq(seen.events, EPOLLIN | EPOLLOUT);
        check_eq(epoll_wait(ep, &seen, 1, 0), 0);
    }
}
CASE(bound_anew_in_epoll, "epoll(7), XNS 5.2 t_unbind()") {
    struct address one, two;
    int a = endpoint(&one), b = endpoint(&two), ep = must(epoll_create1(0));
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = 7}, seen;
    must(epoll_ctl(ep, EPOLL_CTL_ADD, b, &e));
    for (int i = 0; i < 3; i++) {
        check_eq(epoll_wait(ep, &seen, 1, 0), 0);
        send_numbered(a, &two, 100, i);
        check_eq(epoll_wait(ep, &seen, 1, PATIENCE), 1);
        check_eq(seen.data.u32, 7);
        receive_numbered(b, 100, i);
        check_ok(t_unbind(b));
        two = bind_at(b, unused_address(), 0);
    }
    must(epoll_ctl(ep, EPOLL_CTL_MOD, b, &e));
}
static void send_late(void *with) {
    struct sending *s = with;
    sleep_ms(20);
    send_many(s);
}
CASE(blocked_receiver_wakes, "XNS 5.2 t_rcvudata()") {
    struct sending s = {.count = 2, .size = 50};
    int fd = endpoint(&s.to);
    pid_t child = spawn(send_late, &s);
    receive_numbered(fd, 50, 0);
    receive_numbered(fd, 50, 1);
    join(child);
}
CASE(interrupted, "XNS 5.2 t_rcvudata() TSYSERR EINTR") {
    struct address own;
    static struct datagram d;
    int fd = endpoint(&own);
    pid_t child = start_poking(SIGUSR1);
    check_sys(receive(fd, &d), EINTR);
    end_poking(child);
    send_text(fd, &own, "x");
    receive_text(fd, &d, "x");
}

SUITE(FOR(CLTS, in_order), FOR(CLTS, equal_sizes), FOR(CLTS, mixed_sizes), FOR(CLTS, mixed_destinations),
      FOR(CLTS, many_senders), FOR(LOSSLESS, nothing_is_lost), FOR(CLTS, burst_from_another_process),
      FOR(CLTS, burst_with_pauses), FOR(CLTS, big_burst), FOR(CLTS, leaves_by_itself), FOR(CLTS, leaves_a_busy_sender),
      FOR(CLTS, leaves_before_exit), FOR(LOSSLESS, no_room), FOR(LOSSLESS, room_again),
      FOR(LOSSLESS, full_receiver_hinders_only_its_own), FOR(CLTS, ready), FOR(CLTS, ready_until_the_last),
      FOR(CLTS, ready_for_the_rest), FOR(CLTS, ready_in_select), FOR(CLTS, ready_in_epoll),
      FOR(CLTS, told_once_in_epoll), FOR(CLTS, bound_anew_in_epoll), FOR(CLTS, blocked_receiver_wakes),
      FOR(CLTS, interrupted))
