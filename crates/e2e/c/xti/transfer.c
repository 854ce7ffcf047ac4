/* Data transfer: TSDUs, vectors, great amounts, flow control, readiness. */
#include "endpoints.h"
#include <sys/epoll.h>
#include <sys/select.h>

/* --- normal data --- */

CASE(both_ways, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    for (int i = 0; i < 100; i++)
        check_echo(p.client, p.server);
    check_state(p.client, T_DATAXFER);
    check_look(p.client, 0);
    check_look(p.server, 0);
}
CASE(of_every_size, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    char out[8192], in[8192];
    for (unsigned size = 1; size <= sizeof out; size = size * 3 / 2 + 1) {
        fill_wave(out, size, size);
        check_eq(must_t(t_snd(p.client, out, size, 0)), size);
        rcv_all(p.server, in, size, 0);
        check_bytes(in, out, size);
    }
}
CASE(data_event, "XNS 5.2 t_look() T_DATA") {
    struct pair p = connected();
    snd(p.client, "here", 0);
    check_event(p.server, T_DATA);
    check_event(p.server, T_DATA);
    rcv(p.server, "here", 0);
    check_look(p.server, 0);
}
CASE(receiver_waits, "XNS 5.2 t_rcv()") {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        sleep_ms(40);
        snd(p.client, "at last", 0);
        _exit(0);
    }
    rcv(p.server, "at last", 0);
    join(child);
}
CASE(tsdus_keep_their_bounds, "XNS 5.2 t_rcv() T_MORE") {
    struct pair p = connected();
    char text[100];
    int flags = 99;
    snd(p.client, "one", 0);
    snd(p.client, "and two", 0);
    snd(p.client, "3", 0);
    check_eq(t_rcv(p.server, text, sizeof text, &flags), 3);
    check_eq(flags, 0);
    check_bytes(text, "one", 3);
    check_eq(t_rcv(p.server, text, 7, &flags), 7);
    check_eq(flags, 0);
    check_bytes(text, "and two", 7);
    check_eq(t_rcv(p.server, text, sizeof text, &flags), 1);
    check_eq(flags, 0);
}
CASE(tsdu_in_pieces_received, "XNS 5.2 t_rcv() T_MORE") {
    struct pair p = connected();
    char text[100];
    int flags = 0;
    snd(p.client, "abcdefgh", 0);
    snd(p.client, "next", 0);
    check_eq(t_rcv(p.server, text, 3, &flags), 3);
    check_eq(flags, T_MORE);
    check_eq(t_rcv(p.server, text + 3, 3, &flags), 3);
    check_eq(flags, T_MORE);
    check_eq(t_rcv(p.server, text + 6, 94, &flags), 2);
    check_eq(flags, 0);
    check_bytes(text, "abcdefgh", 8);
    rcv(p.server, "next", 0);
}

CASE(tsdu_in_pieces_sent, "XNS 5.2 t_snd() T_MORE") {
    struct pair p = connected();
    char text[100];
    snd(p.client, "abc", T_MORE);
    snd(p.client, "def", T_MORE);
    snd(p.client, "gh", 0);
    snd(p.client, "next", 0);
    check_eq(rcv_tsdu(p.server, text, sizeof text, 100, 0), 8);
    check_bytes(text, "abcdefgh", 8);
    rcv(p.server, "next", 0);
}
CASE(unfinished_tsdu_is_delivered, "XNS 5.2 t_snd() T_MORE") {
    struct pair p = connected();
    char text[100];
    int flags = 0;
    snd(p.client, "abc", T_MORE);
    check_eq(t_rcv(p.server, text, sizeof text, &flags), 3);
    check_eq(flags, T_MORE);
    snd(p.client, "", 0);
    check_ok(t_rcv(p.server, text, sizeof text, &flags));
    check_eq(flags, 0);
    check_echo(p.client, p.server);
}
CASE(tsdus_by_the_thousand, "XNS 5.2 t_rcv() T_MORE") {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        char out[300];
        for (int i = 0; i < 10000; i++) {
            fill_wave(out, i, i % 300);
            check_eq(must_t(t_snd(p.client, out, i % 300, 0)), i % 300);
        }
        rcv(p.client, "got all", 0);
        _exit(0);
    }
    for (int i = 0; i < 10000; i++) {
        char in[300];
        int flags = 9;
        check_eq(must_t(t_rcv(p.server, in, sizeof in, &flags)), i % 300);
        check_eq(flags, 0);
        check_wave(in, i, i % 300);
    }
    snd(p.server, "got all", 0);
    join(child);
}
CASE(great_tsdu, "XNS 5.2 t_snd() T_MORE") {
    enum { SIZE = 3000000 };
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        for (unsigned i = 0; i < SIZE; i += 100000) {
            char out[100000];
            fill_wave(out, i, sizeof out);
            check_eq(t_snd(p.client, out, sizeof out, i + 100000 < SIZE ? T_MORE : 0), 100000);
        }
        rcv(p.client, "got all", 0);
        _exit(0);
    }
    char *in = malloc(SIZE + 10);
    check_eq(rcv_tsdu(p.server, in, SIZE + 10, 70001, 0), SIZE);
    check_wave(in, 0, SIZE);
    snd(p.server, "got all", 0);
    join(child);
}
CASE(stream_has_no_bounds, "XNS 5.2 t_info tsdu 0") {
    struct pair p = connected();
    char text[6] = "";
    int flags = 99;
    snd(p.client, "abc", T_MORE);
    check_event(p.server, T_DATA);
    for (int have = 0; have < 3;) {
        have += must_t(t_rcv(p.server, text + have, 3 - have, &flags));
        check_eq(flags, 0);
    }
    check_str(text, "abc");
    snd(p.client, "de", 0);
    snd(p.client, "f", 0);
    rcv(p.server, "def", 0);
}
CASE(empty_tsdus, "XNS 5.2 t_snd() T_SENDZERO") {
    struct pair p = connected();
    char text[10];
    int flags = 99;
    snd(p.client, "before", 0);
    check_ok(t_snd(p.client, NULL, 0, 0));
    snd(p.client, "after", 0);
    rcv(p.server, "before", 0);
    check_look(p.server, T_DATA);
    check_ok(t_rcv(p.server, text, sizeof text, &flags));
    check_eq(flags, 0);
    rcv(p.server, "after", 0);
    check_look(p.server, 0);
}
CASE(empty_data_unsupported, "XNS 5.2 t_snd() TBADDATA") {
    struct pair p = connected();
    check_t(t_snd(p.client, "x", 0, 0), TBADDATA);
    struct t_iovec none = {"", 0};
    check_t(t_sndv(p.client, &none, 1, 0), TBADDATA);
    check_state(p.client, T_DATAXFER);
    check_echo(p.client, p.server);
}
CASE(push_flag, "XNS 5.2 t_snd() T_PUSH") {
    struct pair p = connected();
    snd(p.client, "pushed", T_PUSH);
    rcv(p.server, "pushed", 0);
}
CASE(bad_flags, "XNS 5.2 t_snd() TBADFLAG") {
    struct pair p = connected();
    struct t_iovec v = {"x", 1};
    check_t(snd_text(p.client, "x", 0x80), TBADFLAG);
    check_t(snd_text(p.client, "x", T_MORE | 0x1000), TBADFLAG);
    check_t(t_sndv(p.client, &v, 1, 0x80), TBADFLAG);
    check_look(p.server, 0);
    check_echo(p.client, p.server);
}

/* --- great amounts --- */

struct stretch {
    int fd;
    size_t end;
    unsigned piece;
};
static void send_stretch(void *with) {
    struct stretch *s = with;
    snd_wave(s->fd, 0, s->end, s->piece);
}
CASE(great_amount, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    struct stretch s = {p.client, 8 << 20, 60001};
    pthread_t t = start(send_stretch, &s);
    rcv_wave(p.server, 0, s.end, 131071);
    finish(t);
    check_echo(p.client, p.server);
}
CASE(great_amount_to_small_buffers, "XNS 5.2 t_rcv()") {
    struct pair p = connected();
    struct stretch s = {p.server, 1 << 20, 65536};
    pthread_t t = start(send_stretch, &s);
    rcv_wave(p.client, 0, s.end, 97);
    finish(t);
}
CASE(great_amount_of_small_pieces, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    struct stretch s = {p.client, 1 << 20, 13};
    pthread_t t = start(send_stretch, &s);
    rcv_wave(p.server, 0, s.end, 131071);
    finish(t);
}
static void receive_stretch(void *with) {
    struct stretch *s = with;
    rcv_wave(s->fd, 0, s->end, s->piece);
}
CASE(great_amounts_both_ways, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    struct stretch a = {p.client, 4 << 20, 10007}, b = {p.server, 4 << 20, 20011};
    struct stretch back = {p.client, b.end, 50000};
    pthread_t t = start(send_stretch, &a), u = start(send_stretch, &b), v = start(receive_stretch, &back);
    rcv_wave(p.server, 0, a.end, 50000);
    finish(t);
    finish(u);
    finish(v);
}
static void send_once(void *with) {
    struct stretch *s = with;
    char *out = malloc(s->end);
    fill_wave(out, 0, s->end);
    size_t sent = 0;
    while (sent < s->end)
        sent += must_t(t_snd(s->fd, out + sent, s->end - sent, 0));
    free(out);
}
CASE(great_send_at_once, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    struct stretch s = {p.client, 5 << 20, 0};
    pthread_t t = start(send_once, &s);
    rcv_wave(p.server, 0, s.end, 131071);
    finish(t);
}
CASE(small_send_after_send, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    for (int i = 0; i < 300; i++)
        snd(p.client, "x", 0);
    for (int i = 0; i < 300; i++)
        rcv(p.server, "x", 0);
    check_look(p.server, 0);
}
CASE(request_and_response, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        for (int i = 0; i < 2000; i++) {
            rcv(p.server, "?", 0);
            snd(p.server, "!", 0);
        }
        _exit(0);
    }
    for (int i = 0; i < 2000; i++) {
        snd(p.client, "?", 0);
        rcv(p.client, "!", 0);
    }
    join(child);
}

/* --- flow control --- */

CASE(flow_control, "XNS 5.2 t_snd() TFLOW") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    check(sent > 1000);
    check_t(snd_text(p.client, "x", 0), TFLOW);
    check_state(p.client, T_DATAXFER);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 65536);
    check_echo(p.server, p.client);
}
CASE(flow_event, "XNS 5.2 t_look() T_GODATA") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    check_look(p.client, 0);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 65536);
    check_event(p.client, T_GODATA);
    check_look(p.client, 0);
    check(snd_text(p.client, "goes on", 0) == 7);
    rcv(p.server, "goes on", 0);
}
CASE(flow_event_not_without_need, "XNS 5.2 t_look() T_GODATA") {
    struct pair p = connected();
    check_echo(p.client, p.server);
    check_look(p.client, 0);
    check_look(p.server, 0);
}
CASE(flow_and_poll, "XNS 5.2 t_snd(), poll(2) POLLOUT") {
    struct pair p = connected_nonblock();
    check_eq(events(p.client, POLLOUT, PATIENCE), POLLOUT);
    size_t sent = fill_endpoint(p.client, 1000);
    check_eq(events(p.client, POLLOUT, 0), 0);
    check_eq(events(p.server, POLLIN, PATIENCE), POLLIN);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 65536);
    check_eq(events(p.client, POLLOUT, PATIENCE), POLLOUT);
}
CASE(flow_one_way_only, "XNS 5.2 t_snd() TFLOW") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    set_nonblock(p.client, 0);
    snd(p.server, "backwards", 0);
    rcv(p.client, "backwards", 0);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, sent, 65536);
}
CASE(flow_of_a_great_send, "XNS 5.2 t_snd() O_NONBLOCK") {
    struct pair p = connected_nonblock();
    enum { SIZE = 24 << 20 };
    char *out = malloc(SIZE);
    fill_wave(out, 0, SIZE);
    int n = must_t(t_snd(p.client, out, SIZE, 0));
    check(n > 0 && n < SIZE);
    set_nonblock(p.server, 0);
    rcv_wave(p.server, 0, n, 131071);
    check_event(p.client, T_GODATA);
    n = must_t(t_snd(p.client, out, 100, 0));
    check_eq(n, 100);
    rcv_wave(p.server, 0, n, 131071);
}
static void send_on(void *with) {
    int fd = *(int *)with;
    snd(fd, "had to wait", 0);
}
CASE(flow_blocks, "XNS 5.2 t_snd()") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    set_nonblock(p.client, 0);
    set_nonblock(p.server, 0);
    pthread_t t = start(send_on, &p.client);
    sleep_ms(30);
    rcv_wave(p.server, 0, sent, 65536);
    rcv(p.server, "had to wait", 0);
    finish(t);
}

/* --- vectors --- */

CASE(gathering, "XNS 5.2 t_sndv()") {
    struct pair p = connected();
    struct t_iovec v[4] = {{"one ", 4}, {"", 0}, {"two ", 4}, {"three", 5}};
    check_eq(t_sndv(p.client, v, 4, 0), 13);
    rcv(p.server, "one two three", 0);
    check_look(p.server, 0);
}
CASE(scattering, "XNS 5.2 t_rcvv()") {
    struct pair p = connected();
    char a[4] = "", b[6] = "", c[20] = "";
    struct t_iovec v[4] = {{a, 3}, {NULL, 0}, {b, 5}, {c, 19}};
    int flags = 99;
    snd(p.client, "abcdefghijkl", 0);
    check_event(p.server, T_DATA);
    check_eq(t_rcvv(p.server, v, 4, &flags), 12);
    check_eq(flags, 0);
    check_str(a, "abc");
    check_str(b, "defgh");
    check_str(c, "ijkl");
}
CASE(gathering_makes_one_tsdu, "XNS 5.2 t_sndv() T_MORE") {
    struct pair p = connected();
    struct t_iovec v[2] = {{"abc", 3}, {"def", 3}};
    char text[20];
    check_eq(t_sndv(p.client, v, 2, T_MORE), 6);
    check_eq(t_sndv(p.client, v, 1, 0), 3);
    check_eq(t_sndv(p.client, v, 2, 0), 6);
    check_eq(rcv_tsdu(p.server, text, sizeof text, 20, 0), 9);
    check_bytes(text, "abcdefabc", 9);
    check_eq(rcv_tsdu(p.server, text, sizeof text, 20, 0), 6);
}
CASE(scattering_part_of_a_tsdu, "XNS 5.2 t_rcvv() T_MORE") {
    struct pair p = connected();
    char a[3], b[3];
    struct t_iovec v[2] = {{a, 3}, {b, 2}};
    int flags = 0;
    snd(p.client, "abcdefgh", 0);
    check_eq(t_rcvv(p.server, v, 2, &flags), 5);
    check_eq(flags, T_MORE);
    check_bytes(a, "abc", 3);
    check_bytes(b, "de", 2);
    check_eq(t_rcvv(p.server, v, 2, &flags), 3);
    check_eq(flags, 0);
    check_bytes(a, "fgh", 3);
}
CASE(vectors_expedited, "XNS 5.2 t_sndv() T_EXPEDITED") {
    struct pair p = connected();
    struct t_iovec out[2] = {{"ab", 2}, {"c", 1}};
    char a[2], b[2];
    struct t_iovec in[2] = {{a, 2}, {b, 2}};
    int flags = 0;
    check_eq(t_sndv(p.client, out, 2, T_EXPEDITED), 3);
    check_event(p.server, T_EXDATA);
    check_eq(t_rcvv(p.server, in, 2, &flags), 3);
    check_eq(flags, T_EXPEDITED);
    check_bytes(a, "ab", 2);
    check_bytes(b, "c", 1);
}
CASE(most_vectors, "XNS 5.2 T_IOV_MAX") {
    struct pair p = connected();
    char out[T_IOV_MAX], in[T_IOV_MAX];
    struct t_iovec v[T_IOV_MAX], w[T_IOV_MAX];
    int flags = 0;
    for (int i = 0; i < T_IOV_MAX; i++) {
        out[i] = 'a' + i;
        v[i] = (struct t_iovec){out + i, 1};
        w[i] = (struct t_iovec){in + i, 1};
    }
    check_eq(t_sndv(p.client, v, T_IOV_MAX, 0), T_IOV_MAX);
    check_event(p.server, T_DATA);
    check_eq(t_rcvv(p.server, w, T_IOV_MAX, &flags), T_IOV_MAX);
    check_bytes(in, out, T_IOV_MAX);
}
CASE(too_many_vectors, "XNS 5.2 t_sndv(), t_rcvv() TBADDATA") {
    struct pair p = connected();
    char c[T_IOV_MAX + 1];
    struct t_iovec v[T_IOV_MAX + 1];
    int flags = 0;
    for (int i = 0; i <= T_IOV_MAX; i++)
        v[i] = (struct t_iovec){c + i, 1};
    check_t(t_sndv(p.client, v, T_IOV_MAX + 1, 0), TBADDATA);
    snd(p.client, "x", 0);
    check_event(p.server, T_DATA);
    check_t(t_rcvv(p.server, v, T_IOV_MAX + 1, &flags), TBADDATA);
    check_state(p.server, T_DATAXFER);
    rcv(p.server, "x", 0);
}
CASE(vectors_great, "XNS 5.2 t_sndv()") {
    struct pair p = connected();
    enum { EACH = 100000, N = 10 };
    pid_t child = branch();
    if (child == 0) {
        char *out = malloc(EACH * N);
        size_t sent = 0;
        fill_wave(out, 0, EACH * N);
        while (sent < EACH * N) {
            struct t_iovec v[N];
            size_t at = sent;
            int n = 0;
            for (; at < EACH * N; at = (at / EACH + 1) * EACH)
                v[n++] = (struct t_iovec){out + at, (at / EACH + 1) * EACH - at};
            sent += must_t(t_sndv(p.client, v, n, 0));
        }
        rcv(p.client, "got all", 0);
        _exit(0);
    }
    rcv_wave(p.server, 0, EACH * N, 131071);
    snd(p.server, "got all", 0);
    join(child);
}

/* --- readiness --- */

CASE(poll_for_data, "poll(2) POLLIN") {
    struct pair p = connected();
    check_eq(events(p.server, READABLE, 0), 0);
    snd(p.client, "x", 0);
    check(events(p.server, POLLIN | POLLRDNORM, PATIENCE) & (POLLIN | POLLRDNORM));
    rcv(p.server, "x", 0);
    check_eq(events(p.server, READABLE, 0), 0);
}
CASE(poll_for_events, "poll(2) POLLIN") {
    struct pair p = connected();
    int fd = connecting(&p.at);
    check_readable(p.listener);
    check_look(p.listener, T_LISTEN);
    int server = serve(p.listener);
    check_readable(fd);
    check_look(fd, T_CONNECT);
    check_ok(t_rcvconnect(fd, NULL));
    check_ok(t_snddis(fd, NULL));
    check_readable(server);
    check_look(server, T_DISCONNECT);
}
CASE(poll_for_release, "poll(2) POLLIN") {
    struct pair p = connected();
    check_ok(t_sndrel(p.client));
    check_readable(p.server);
    check_look(p.server, T_ORDREL);
}
CASE(poll_for_expedited_data, "poll(2) POLLRDBAND") {
    struct pair p = connected();
    snd(p.client, "!", T_EXPEDITED);
    check(events(p.server, POLLIN | POLLRDBAND | POLLPRI, PATIENCE) & (POLLIN | POLLRDBAND | POLLPRI));
    rcv(p.server, "!", T_EXPEDITED);
    check_eq(events(p.server, READABLE, 0), 0);
}
static void send_later(void *with) {
    sleep_ms(30);
    send_on(with);
}
CASE(poll_waits_for_data, "poll(2)") {
    struct pair p = connected();
    pthread_t t = start(send_later, &p.client);
    check_eq(events(p.server, POLLIN, PATIENCE), POLLIN);
    finish(t);
    rcv(p.server, "had to wait", 0);
}
CASE(select_for_data, "select(2)") {
    struct pair p = connected();
    fd_set in, out;
    struct timeval now = {0, 0}, soon = {PATIENCE / 1000, 0};
    FD_ZERO(&in);
    FD_SET(p.server, &in);
    check_eq(select(p.server + 1, &in, NULL, NULL, &now), 0);
    snd(p.client, "x", 0);
    FD_SET(p.server, &in);
    check_eq(select(p.server + 1, &in, NULL, NULL, &soon), 1);
    check(FD_ISSET(p.server, &in));
    FD_ZERO(&out);
    FD_SET(p.client, &out);
    check_eq(select(p.client + 1, NULL, &out, NULL, &soon), 1);
    rcv(p.server, "x", 0);
}
CASE(epoll_for_data, "epoll(7)") {
    struct pair p = connected();
    struct epoll_event want = {EPOLLIN, {.fd = p.server}}, seen;
    int set = must(epoll_create1(0));
    must(epoll_ctl(set, EPOLL_CTL_ADD, p.server, &want));
    for (int i = 0; i < 3; i++) {
        check_eq(epoll_wait(set, &seen, 1, 0), 0);
        snd(p.client, "x", 0);
        check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
        check_eq(seen.data.fd, p.server);
        check(seen.events & EPOLLIN);
        rcv(p.server, "x", 0);
    }
    check_ok(t_snddis(p.client, NULL));
    check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
    check_event(p.server, T_DISCONNECT);
}
CASE(epoll_for_calls, "epoll(7)") {
    struct address at;
    int listener = listener_at(&at, 2), set = must(epoll_create1(0));
    struct epoll_event want = {EPOLLIN, {.fd = listener}}, seen;
    must(epoll_ctl(set, EPOLL_CTL_ADD, listener, &want));
    check_eq(epoll_wait(set, &seen, 1, 0), 0);
    int client = connecting(&at);
    check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
    int server = serve(listener);
    check_eq(epoll_wait(set, &seen, 1, 0), 0);
    confirm(client);
    check_echo(client, server);
}
/* What a set has been told of an endpoint holds for all that becomes of it. */
CASE(epoll_from_the_beginning, "epoll(7)") {
    int listener = open_endpoint(), client = open_endpoint(), set = must(epoll_create1(0));
    struct epoll_event want = {EPOLLIN, {.fd = listener}}, seen;
    must(epoll_ctl(set, EPOLL_CTL_ADD, listener, &want));
    struct address at = bind_at(listener, unused_address(), 1);
    must_t(t_bind(client, NULL, NULL));
    check_eq(epoll_wait(set, &seen, 1, 0), 0);
    must(fcntl(client, F_SETFL, O_NONBLOCK));
    struct t_call call = call_to(&at);
    check_t(t_connect(client, &call, NULL), TNODATA);
    check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
    check_eq(seen.data.fd, listener);
    want.data.fd = client;
    must(epoll_ctl(set, EPOLL_CTL_ADD, client, &want));
    int server = serve(listener);
    must(fcntl(client, F_SETFL, 0));
    confirm(client);
    check_eq(epoll_wait(set, &seen, 1, 0), 0);
    snd(server, "x", 0);
    check_eq(epoll_wait(set, &seen, 1, PATIENCE), 1);
    check_eq(seen.data.fd, client);
    rcv(client, "x", 0);
    must(epoll_ctl(set, EPOLL_CTL_DEL, client, NULL));
}

SUITE(FOR(COTS, both_ways), FOR(COTS, of_every_size), FOR(COTS, data_event), FOR(COTS, receiver_waits),
      FOR(LOOP, tsdus_keep_their_bounds), FOR(LOOP, tsdu_in_pieces_received), FOR(LOOP, tsdu_in_pieces_sent),
      FOR(LOOP, unfinished_tsdu_is_delivered), FOR(LOOP, tsdus_by_the_thousand), FOR(LOOP, great_tsdu),
      FOR(TCP, stream_has_no_bounds), FOR(LOOP, empty_tsdus), FOR(TCP, empty_data_unsupported), FOR(COTS, push_flag),
      FOR(COTS, bad_flags), FOR(COTS, great_amount), FOR(COTS, great_amount_to_small_buffers),
      FOR(COTS, great_amount_of_small_pieces), FOR(COTS, great_amounts_both_ways), FOR(COTS, great_send_at_once),
      FOR(COTS, small_send_after_send), FOR(COTS, request_and_response), FOR(COTS, flow_control), FOR(COTS, flow_event),
      FOR(COTS, flow_event_not_without_need), FOR(COTS, flow_and_poll), FOR(COTS, flow_one_way_only),
      FOR(COTS, flow_of_a_great_send), FOR(COTS, flow_blocks), FOR(COTS, gathering), FOR(COTS, scattering),
      FOR(LOOP, gathering_makes_one_tsdu), FOR(LOOP, scattering_part_of_a_tsdu), FOR(LOOP, vectors_expedited),
      FOR(COTS, most_vectors), FOR(COTS, too_many_vectors), FOR(COTS, vectors_great), FOR(COTS, poll_for_data),
      FOR(COTS, poll_for_events), FOR(ORD, poll_for_release), FOR(COTS, poll_for_expedited_data),
      FOR(COTS, poll_waits_for_data), FOR(COTS, select_for_data), FOR(COTS, epoll_for_data), FOR(COTS, epoll_for_calls),
      FOR(COTS, epoll_from_the_beginning))
