/* How messages are delivered: borders, parts, order, streams, sizes; and the plain calls (RFC 6458 sections 3, 5 and 8). */
#include "associations.h"

CASE(plain_calls, "RFC 6458 4.1") {
    struct pair p = pair();
    char room[32];
    check_eq(write(p.client, "write", 5), 5);
    check_eq(read(p.server, room, sizeof room), 5);
    check_bytes(room, "write", 5);
    check_eq(send(p.server, "send", 4, 0), 4);
    check_eq(recv(p.client, room, sizeof room, 0), 4);
    check_bytes(room, "send", 4);
    struct address from = {.len = sizeof from.storage}, client = name_of(p.client);
    check_eq(sendto(p.client, "sendto", 6, 0, NULL, 0), 6);
    check_eq(recvfrom(p.server, room, sizeof room, 0, &from.sa, &from.len), 6);
    check_bytes(room, "sendto", 6);
    check(same_address(&from, &client));
}
CASE(vectors, "writev(2), readv(2)") {
    struct pair p = pair();
    struct iovec out[3] = {{"one ", 4}, {"", 0}, {"message", 7}};
    check_eq(writev(p.client, out, 3), 11);
    char a[3], b[20];
    struct iovec in[2] = {{a, sizeof a}, {b, sizeof b}};
    check_eq(readv(p.server, in, 2), 11);
    check_bytes(a, "one", 3);
    check_bytes(b, " message", 8);
}
CASE(borders, "RFC 6458 5.1 MSG_EOR") {
    struct pair p = pair();
    check_send(p.client, "one");
    check_send(p.client, "two");
    check_send(p.client, "three");
    check_receive(p.server, "one");
    check_receive(p.server, "two");
    check_receive(p.server, "three");
    check_nothing_yet(p.server);
}
CASE(short_room, "RFC 6458 5.1 MSG_EOR") {
    struct pair p = pair();
    check_send(p.client, "0123456789");
    check_send(p.client, "next");
    struct got *g = receive_some(p.server, 4, 0);
    check_eq(g->n, 4);
    check_bytes(g->data, "0123", 4);
    check_eq(g->flags & (MSG_EOR | MSG_TRUNC), 0);
    g = receive_some(p.server, 4, 0);
    check_bytes(g->data, "4567", 4);
    check_eq(g->flags & MSG_EOR, 0);
    g = receive_some(p.server, 4, 0);
    check_eq(g->n, 2);
    check(g->flags & MSG_EOR);
    check_receive(p.server, "next");
}
CASE(exact_room, "RFC 6458 5.1 MSG_EOR") {
    struct pair p = pair();
    check_send(p.client, "1234");
    struct got *g = receive_some(p.server, 4, 0);
    check_eq(g->n, 4);
    check(g->flags & MSG_EOR);
    check_nothing_yet(p.server);
}
CASE(parts_have_the_label, "RFC 6458 5.3.5") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    check_eq(send_on(p.client, 3, 0, "0123456789"), 10);
    uint32_t tsn = 0;
    for (int i = 0; i < 2; i++) {
        struct got *g = receive_some(p.server, 5, 0);
        check(g->has_rcv);
        check_eq(g->rcv.rcv_sid, 3);
        if (i)
            check_eq(g->rcv.rcv_tsn, tsn);
        tsn = g->rcv.rcv_tsn;
    }
}
CASE(peek, "recv(2) MSG_PEEK") {
    struct pair p = pair();
    check_send(p.client, "peeked");
    for (int i = 0; i < 3; i++) {
        struct got *g = receive_some(p.server, 100, MSG_PEEK);
        check_eq(g->n, 6);
        check_bytes(g->data, "peeked", 6);
        check(g->flags & MSG_EOR);
    }
    struct got *g = receive_some(p.server, 3, MSG_PEEK);
    check_eq(g->n, 3);
    check_receive(p.server, "peeked");
    check_errno(receive_some(p.server, 100, MSG_PEEK | MSG_DONTWAIT)->n, EAGAIN);
}
CASE(peek_notification, "recv(2) MSG_PEEK") {
    int listener = listening(SOCK_STREAM);
    subscribe(listener, SCTP_ASSOC_CHANGE);
    struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
    struct got *g = receive_some(p.server, 200, MSG_PEEK);
    check(g->flags & MSG_NOTIFICATION);
    check_eq(g->notice.sn_header.sn_type, SCTP_ASSOC_CHANGE);
    change(p.server, SCTP_COMM_UP);
    check_nothing_yet(p.server);
}
CASE(dontwait, "recv(2) MSG_DONTWAIT") {
    struct pair p = pair();
    check_nothing_yet(p.server);
    check_send(p.client, "x");
    check_readable(p.server);
    check_eq(receive_some(p.server, 10, MSG_DONTWAIT)->n, 1);
    check_nothing_yet(p.server);
}
CASE(waitall_is_one_message, "recv(2) MSG_WAITALL") {
    struct pair p = pair();
    check_send(p.client, "12");
    char room[4];
    check_eq(recv(p.server, room, sizeof room, MSG_WAITALL), 2);
}
CASE(no_room_at_all, "recv(2)") {
    struct pair p = pair();
    check_send(p.client, "12");
    char room[4];
    check_eq(recv(p.server, room, 0, 0), 0);
    check_receive(p.server, "12");
}
CASE(urgent_is_not, "RFC 6458 4.1.8") {
    struct pair p = pair();
    char room[4];
    check(recv(p.server, room, sizeof room, MSG_OOB | MSG_DONTWAIT) < 0);
}
CASE(one_byte, "RFC 6458 3.1.4") {
    struct pair p = pair();
    for (int i = 0; i < 300; i++) {
        char c = i, d;
        check_eq(send(p.client, &c, 1, 0), 1);
        check_eq(recv(p.server, &d, 1, 0), 1);
        check_eq(d, c);
    }
}
CASE(sizes, "RFC 6458 3.1.4") {
    struct pair p = pair();
    for (size_t n = 1; n < 60000; n = n * 5 / 3 + 1) {
        char *text = patterned(n, n);
        check_eq(send(p.client, text, n, 0), n);
        receive_pattern(p.server, n, n, 100000);
        free(text);
    }
}
CASE(sizes_in_small_parts, "RFC 6458 5.1 MSG_EOR") {
    struct pair p = pair();
    for (size_t n = 1; n < 20000; n = n * 2 + 1) {
        char *text = patterned(n, n);
        check_eq(send(p.client, text, n, 0), n);
        check_eq(receive_pattern(p.server, n, n, 777), (n + 776) / 777);
        free(text);
    }
}
CASE(big_in_one_thread, "RFC 6458 3.1.4") {
    struct pair p = pair();
    enum { BIG = 200000 };
    char *text = patterned(BIG, 3);
    for (int i = 0; i < 3; i++) {
        check_eq(send(p.client, text, BIG, 0), BIG);
        receive_pattern(p.server, BIG, 3, 500000);
    }
    check_send(p.server, "and back");
    check_receive(p.client, "and back");
}
CASE(big_then_small, "RFC 6458 3.1.4") {
    struct pair p = pair();
    enum { BIG = 100000 };
    char *text = patterned(BIG, 3);
    check_eq(send(p.client, text, BIG, 0), BIG);
    check_send(p.client, "small");
    receive_pattern(p.server, BIG, 3, 500000);
    check_receive(p.server, "small");
}
CASE(too_big, "RFC 6458 3.1.4 EMSGSIZE") {
    struct pair p = pair();
    size_t n = get_socket_int(p.client, SO_SNDBUF) + 1;
    char *text = patterned(n, 3);
    check_errno(send(p.client, text, n, 0), EMSGSIZE);
    check_send(p.client, "fits");
    check_receive(p.server, "fits");
}
CASE(larger_buffer_larger_message, "RFC 6458 8.1.7 SO_SNDBUF") {
    struct pair p = pair();
    set_socket_int(p.client, SO_SNDBUF, 400000);
    int n = get_socket_int(p.client, SO_SNDBUF);
    check(n >= 400000 || n == get_socket_int(p.server, SO_SNDBUF));
    if (n < 400000)
        return;
    char *text = patterned(390000, 3);
    check_eq(send(p.client, text, 390000, 0), 390000);
    receive_pattern(p.server, 390000, 3, 500000);
}
CASE(not_cut, "RFC 6458 8.1.11 SCTP_DISABLE_FRAGMENTS") {
    struct pair p = pair();
    must_set(p.client, SCTP_DISABLE_FRAGMENTS, 1);
    must_set(p.client, SCTP_MAXSEG, assoc_value(0, 1000));
    char *text = patterned(3000, 1);
    check_errno(send(p.client, text, 3000, 0), EMSGSIZE);
    check_eq(send(p.client, text, 900, 0), 900);
    receive_pattern(p.server, 900, 1, 5000);
    must_set(p.client, SCTP_DISABLE_FRAGMENTS, 0);
    check_eq(send(p.client, text, 3000, 0), 3000);
    receive_pattern(p.server, 3000, 1, 5000);
}
CASE(maxseg_cuts, "RFC 6458 8.1.16 SCTP_MAXSEG") {
    struct pair p = pair();
    must_set(p.client, SCTP_MAXSEG, assoc_value(0, 600));
    char *text = patterned(5000, 1);
    check_eq(send(p.client, text, 5000, 0), 5000);
    receive_pattern(p.server, 5000, 1, 10000);
}
CASE(streams_are_apart, "RFC 6458 5.3.4") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    for (int i = 0; i < 10; i++)
        check_eq(send_on(p.client, i, 0, "x"), 1);
    int seen = 0;
    for (int i = 0; i < 10; i++) {
        struct got *g = check_receive(p.server, "x");
        check_eq(g->rcv.rcv_ssn, 0);
        seen |= 1 << g->rcv.rcv_sid;
    }
    check_eq(seen, 1023);
}
CASE(order_within_a_stream, "RFC 9260 6.6") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    int next[5] = {0};
    for (int i = 0; i < 200; i++) {
        int number = i / 5;
        struct sctp_sndinfo info = {.snd_sid = i % 5};
        struct part part = PART(SCTP_SNDINFO, info);
        check_eq(send_with(p.client, NULL, &number, sizeof number, 0, &part, 1), sizeof number);
    }
    for (int i = 0; i < 200; i++) {
        struct got *g = receive(p.server);
        int number;
        memcpy(&number, g->data, sizeof number);
        check_eq(number, next[g->rcv.rcv_sid]++);
    }
}
CASE(unordered_all_come, "RFC 9260 6.6") {
    struct pair p = pair();
    int seen[100] = {0};
    for (int i = 0; i < 100; i++) {
        struct sctp_sndinfo info = {.snd_flags = i % 2 ? SCTP_UNORDERED : 0};
        struct part part = PART(SCTP_SNDINFO, info);
        check_eq(send_with(p.client, NULL, &i, sizeof i, 0, &part, 1), sizeof i);
    }
    for (int i = 0; i < 100; i++) {
        int number;
        check_eq(recv(p.server, &number, sizeof number, 0), sizeof number);
        check(number >= 0 && number < 100 && !seen[number]);
        seen[number] = 1;
    }
}
CASE(more_is_joined_or_not, "send(2) MSG_MORE") {
    struct pair p = pair();
    check_eq(send(p.client, "one", 3, MSG_MORE), 3);
    check_eq(send(p.client, "two", 3, 0), 3);
    check_receive(p.server, "one");
    check_receive(p.server, "two");
}
CASE(default_send_param, "RFC 6458 8.1.13") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    must_set(p.client, SCTP_DEFAULT_SEND_PARAM, ((struct sctp_sndrcvinfo){.sinfo_stream = 2, .sinfo_ppid = htonl(6), .sinfo_flags = SCTP_UNORDERED}));
    check_send(p.client, "x");
    struct got *g = check_receive(p.server, "x");
    check_eq(g->rcv.rcv_sid, 2);
    check_eq(g->rcv.rcv_ppid, htonl(6));
    check(g->rcv.rcv_flags & SCTP_UNORDERED);
    struct sctp_sndrcvinfo info = {0};
    must_get(p.client, SCTP_DEFAULT_SEND_PARAM, &info);
    check_eq(info.sinfo_stream, 2);
    check_eq(info.sinfo_ppid, htonl(6));
}
CASE(default_sndinfo, "RFC 6458 8.1.31") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    must_set(p.client, SCTP_DEFAULT_SNDINFO, ((struct sctp_sndinfo){.snd_sid = 3, .snd_ppid = htonl(8)}));
    check_eq(write(p.client, "x", 1), 1);
    struct got *g = check_receive(p.server, "x");
    check_eq(g->rcv.rcv_sid, 3);
    check_eq(g->rcv.rcv_ppid, htonl(8));
    check_eq(send_on(p.client, 1, 0, "y"), 1);
    check_eq(check_receive(p.server, "y")->rcv.rcv_sid, 1);
    struct sctp_sndinfo info = {0};
    must_get(p.client, SCTP_DEFAULT_SNDINFO, &info);
    check_eq(info.snd_sid, 3);
}
CASE(default_before_connect, "RFC 6458 8.1.31") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(client, SCTP_DEFAULT_SNDINFO, ((struct sctp_sndinfo){.snd_sid = 4}));
    struct pair p = pair_of(listener, client);
    want_rcvinfo(p.server);
    check_send(p.client, "x");
    check_eq(check_receive(p.server, "x")->rcv.rcv_sid, 4);
}
CASE(partial_delivery_point, "RFC 6458 8.1.21") {
    struct pair p = pair();
    must_set(p.server, SCTP_PARTIAL_DELIVERY_POINT, 5000);
    check_eq(get_int(p.server, SCTP_PARTIAL_DELIVERY_POINT), 5000);
    char *text = patterned(50000, 2);
    check_eq(send(p.client, text, 50000, 0), 50000);
    receive_pattern(p.server, 50000, 2, 100000);
    check_send(p.client, "next");
    check_receive(p.server, "next");
}
CASE(fragment_interleave, "RFC 6458 8.1.20") {
    struct pair p = pair();
    must_set(p.server, SCTP_FRAGMENT_INTERLEAVE, 1);
    want_rcvinfo(p.server);
    size_t have[2] = {0};
    char *text[2] = {patterned(60000, 0), patterned(60000, 1)};
    for (int i = 0; i < 2; i++) {
        struct sctp_sndinfo info = {.snd_sid = i};
        struct part part = PART(SCTP_SNDINFO, info);
        check_eq(send_with(p.client, NULL, text[i], 60000, 0, &part, 1), 60000);
    }
    for (int ends = 0; ends < 2;) {
        struct got *g = receive_some(p.server, 7000, 0);
        check(g->n > 0);
        check(g->has_rcv && g->rcv.rcv_sid < 2);
        int i = g->rcv.rcv_sid;
        check(have[i] + g->n <= 60000);
        check_bytes(g->data, text[i] + have[i], g->n);
        have[i] += g->n;
        ends += !!(g->flags & MSG_EOR);
    }
    check_eq(have[0], 60000);
    check_eq(have[1], 60000);
}
static void send_lots(void *fd) {
    char *text = patterned(1000, 5);
    for (int i = 0; i < 3000; i++)
        check_eq(send(*(int *)fd, text, 1000, 0), 1000);
}
CASE(blocks_and_goes_on, "send(2)") {
    struct pair p = pair();
    pthread_t t = start(send_lots, &p.client);
    char room[2000], *text = patterned(1000, 5);
    for (int i = 0; i < 3000; i++) {
        check_eq(recv(p.server, room, sizeof room, 0), 1000);
        check_bytes(room, text, 1000);
    }
    finish(t);
    check_nothing_yet(p.server);
}
CASE(full_and_room_again, "send(2) EAGAIN") {
    struct pair p = pair();
    int n = stuff(p.client, 1000);
    check(n >= 50);
    for (int i = 0; i < n; i++)
        receive_pattern(p.server, 1000, 1, 2000);
    check(events(p.client, POLLOUT, PATIENCE) & POLLOUT);
    check_send(p.client, "room");
    check_receive(p.server, "room");
}
CASE(both_ways_at_once, "RFC 6458 3.1.4") {
    struct pair p = pair();
    pthread_t a = start(send_lots, &p.client), b = start(send_lots, &p.server);
    char room[2000];
    for (int i = 0; i < 3000; i++) {
        check_eq(recv(p.server, room, sizeof room, 0), 1000);
        check_eq(recv(p.client, room, sizeof room, 0), 1000);
    }
    finish(a), finish(b);
}
CASE(flags_of_streams_are_ours, "RFC 6458 5.3.4") {
    struct pair p = pair();
    want_rcvinfo(p.server);
    check_eq(send_on(p.client, 0, SCTP_UNORDERED | SCTP_SACK_IMMEDIATELY, "x"), 1);
    check(check_receive(p.server, "x")->rcv.rcv_flags & SCTP_UNORDERED);
}
CASE(mmsg, "sendmmsg(2), recvmmsg(2)") {
    struct pair p = pair();
    struct iovec v[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    struct mmsghdr m[3] = {{.msg_hdr = {.msg_iov = &v[0], .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &v[1], .msg_iovlen = 1}},
                           {.msg_hdr = {.msg_iov = &v[2], .msg_iovlen = 1}}};
    check_eq(sendmmsg(p.client, m, 3, 0), 3);
    check_eq(m[2].msg_len, 3);
    char room[3][8];
    for (int i = 0; i < 3; i++)
        v[i] = (struct iovec){room[i], 8};
    int n = 0;
    while (n < 3) {
        check_readable(p.server);
        n += must(recvmmsg(p.server, m + n, 3 - n, MSG_DONTWAIT, NULL));
    }
    check_bytes(room[2], "ccc", 3);
    check_eq(m[1].msg_len, 2);
}

SUITE(BOTH(plain_calls), ENTRY(vectors), BOTH(borders), ENTRY(short_room), ENTRY(exact_room), ENTRY(parts_have_the_label), ENTRY(peek),
      ENTRY(peek_notification), ENTRY(dontwait), ENTRY(waitall_is_one_message), ENTRY(no_room_at_all), ENTRY(urgent_is_not),
      ENTRY(one_byte), ENTRY(sizes), ENTRY(sizes_in_small_parts), BOTH(big_in_one_thread), ENTRY(big_then_small), ENTRY(too_big),
      ENTRY(larger_buffer_larger_message), ENTRY(not_cut), ENTRY(maxseg_cuts), ENTRY(streams_are_apart),
      ENTRY(order_within_a_stream), ENTRY(unordered_all_come), ENTRY(more_is_joined_or_not), ENTRY(default_send_param),
      ENTRY(default_sndinfo), ENTRY(default_before_connect), ENTRY(partial_delivery_point), ENTRY(fragment_interleave),
      ENTRY(blocks_and_goes_on), ENTRY(full_and_room_again), ENTRY(both_ways_at_once),
      ENTRY(flags_of_streams_are_ours), ENTRY(mmsg))
