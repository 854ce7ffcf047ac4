/* Expedited data: ahead of what was sent before it, in pieces, in order, within a TSDU, and the one byte that tcp has. */
#include "endpoints.h"

/* --- expedited data --- */

CASE(expedited, "XNS 5.2 t_snd() T_EXPEDITED") {
    struct pair p = connected();
    snd(p.client, "!", T_EXPEDITED);
    check_readable(p.server);
    check_event(p.server, T_EXDATA);
    rcv(p.server, "!", T_EXPEDITED);
    check_echo(p.client, p.server);
}
/* To the server, where it is told of before the data ahead of it. */
static void pass_expedited(struct pair p, const char *byte) {
    snd(p.client, byte, T_EXPEDITED);
    check_event(p.server, T_EXDATA);
    rcv(p.server, byte, T_EXPEDITED);
}
CASE(expedited_first, "XNS 5.2 t_rcv() T_EXPEDITED") {
    struct pair p = connected();
    snd(p.client, "normal", 0);
    check_event(p.server, T_DATA);
    pass_expedited(p, "urgent");
    check_event(p.server, T_DATA);
    rcv(p.server, "normal", 0);
    check_look(p.server, 0);
}
CASE(expedited_in_order, "XNS 5.2 t_rcv() T_EXPEDITED") {
    struct pair p = connected();
    snd(p.client, "n1", 0);
    snd(p.client, "e1", T_EXPEDITED);
    snd(p.client, "n2", 0);
    snd(p.client, "e2", T_EXPEDITED);
    rcv(p.server, "e1", T_EXPEDITED);
    rcv(p.server, "e2", T_EXPEDITED);
    rcv(p.server, "n1", 0);
    rcv(p.server, "n2", 0);
}
CASE(expedited_in_pieces, "XNS 5.2 t_rcv() T_EXPEDITED T_MORE") {
    struct pair p = connected();
    char text[20];
    int flags = 0;
    snd(p.client, "abcdef", T_EXPEDITED);
    check_eq(t_rcv(p.server, text, 4, &flags), 4);
    check_eq(flags, T_EXPEDITED | T_MORE);
    check_eq(t_rcv(p.server, text + 4, 10, &flags), 2);
    check_eq(flags, T_EXPEDITED);
    check_bytes(text, "abcdef", 6);
}
CASE(expedited_sent_in_pieces, "XNS 5.2 t_snd() T_EXPEDITED T_MORE") {
    struct pair p = connected();
    char text[20];
    snd(p.client, "abc", T_EXPEDITED | T_MORE);
    snd(p.client, "def", T_EXPEDITED);
    check_eq(rcv_tsdu(p.server, text, sizeof text, 20, T_EXPEDITED), 6);
    check_bytes(text, "abcdef", 6);
}
CASE(expedited_within_a_tsdu, "XNS 5.2 t_rcv() T_EXPEDITED") {
    struct pair p = connected();
    char text[20];
    int flags = 0;
    snd(p.client, "abcdef", 0);
    check_eq(t_rcv(p.server, text, 3, &flags), 3);
    check_eq(flags, T_MORE);
    snd(p.client, "!", T_EXPEDITED);
    check_eq(t_rcv(p.server, text, sizeof text, &flags), 1);
    check_eq(flags, T_EXPEDITED);
    check_eq(t_rcv(p.server, text, sizeof text, &flags), 3);
    check_eq(flags, 0);
    check_bytes(text, "def", 3);
}
/* Either may wait for the other's end, by packets; none is refused. */
static void send_both_in_pieces(void) {
    struct pair p = connected();
    static const struct {
        const char *data;
        int flags;
    } sent[] = {{"u", T_EXPEDITED | T_MORE}, {"whole", 0}, {"rgent", T_EXPEDITED}, {"be", T_MORE}, {"now", T_EXPEDITED}, {"gin", 0}};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        snd(p.client, sent[i].data, sent[i].flags);
    char data[2][40] = {"", ""};
    while (strlen(data[0]) + strlen(data[1]) < 19) {
        char text[20] = "";
        int flags;
        must_t(t_rcv(p.server, text, sizeof text - 1, &flags));
        strcat(data[!!(flags & T_EXPEDITED)], text);
    }
    check_str(data[0], "wholebegin");
    check_str(data[1], "urgentnow");
}
CASE(expedited_between_pieces, "XNS 5.2 t_snd() T_EXPEDITED T_MORE") { send_both_in_pieces(); }
CASE(expedited_between_pieces_by_packets, "XNS 5.2 t_snd() T_EXPEDITED T_MORE") { by("udp"), send_both_in_pieces(); }
CASE(expedited_comes_in_its_turn_by_packets, "RFC 9260 6.6") {
    by("udp");
    struct pair p = connected();
    snd(p.client, "normal", 0);
    snd(p.client, "urgent", T_EXPEDITED);
    check_event(p.server, T_DATA);
    rcv(p.server, "normal", 0);
    rcv(p.server, "urgent", T_EXPEDITED);
}
CASE(expedited_passes_full_queues, "XNS 5.2 t_snd() T_EXPEDITED") {
    struct pair p = connected_nonblock();
    size_t sent = fill_endpoint(p.client, 1000);
    snd(p.client, "!", T_EXPEDITED);
    set_nonblock(p.server, 0);
    rcv(p.server, "!", T_EXPEDITED);
    rcv_wave(p.server, 0, sent, 65536);
}
CASE(expedited_flow, "XNS 5.2 t_look() T_GOEXDATA") {
    struct pair p = connected_nonblock();
    char text[1000];
    int n, sent = 0, got = 0, flags;
    fill_wave(text, 0, sizeof text);
    while ((n = t_snd(p.client, text, sizeof text, T_EXPEDITED)) > 0 && sent < 100 << 20)
        sent += n;
    if (n > 0)
        return; /* never held back */
    check_eq(t_errno, TFLOW);
    while (got < sent) {
        n = must_t(t_rcv(p.server, text, sizeof text, &flags));
        check(flags & T_EXPEDITED);
        got += n;
    }
    check_event(p.client, T_GOEXDATA);
    check_look(p.client, 0);
}
CASE(expedited_byte_after_data, "XNS 5.2 t_rcv() T_EXPEDITED, RFC 793") {
    struct pair p = connected();
    char text[20] = "";
    int flags = 0, normal = 0, urgent = 0;
    snd(p.client, "normal", 0);
    snd(p.client, "!", T_EXPEDITED);
    check_event(p.server, T_EXDATA);
    while (normal + urgent < 7) {
        int n = must_t(t_rcv(p.server, text, sizeof text, &flags));
        if (flags & T_EXPEDITED)
            urgent += n;
        else
            normal += n;
    }
    check(urgent >= 1);
    check_echo(p.client, p.server);
}
static unsigned rcv_some(int fd, char *to, unsigned room) {
    int flags = 0, n = must_t(t_rcv(fd, to, room, &flags));
    check_eq(flags & T_EXPEDITED, 0);
    return n;
}
CASE(expedited_byte_is_not_left_behind, "XNS 5.2 t_close(), t_rcv() T_EXPEDITED, tcp(7) SIOCATMARK") {
    struct pair p = connected();
    snd(p.client, "before", 0);
    pass_expedited(p, "!");
    rcv(p.server, "before", 0);
    /* All was received: it is no abortive end. */
    check_eq(t_close(p.server), 0);
    check_event(p.client, T_ORDREL);
}
CASE(expedited_bytes_are_received_once, "XNS 5.2 t_rcv() T_EXPEDITED, RFC 6093 3.1") {
    struct pair p = connected();
    char text[40] = "";
    for (unsigned room = 1; room < 20; room++) {
        /* The second makes data of the first for the kernel, which has data before it. */
        for (const char *c = "123"; *c; c++) {
            char byte[2] = {*c};
            snd(p.client, "data", 0);
            pass_expedited(p, byte);
        }
        snd(p.client, "end", 0);
        check_event(p.server, T_DATA);
        for (unsigned have = 0; have < 15;) {
            unsigned left = 15 - have;
            have += rcv_some(p.server, text + have, room < left ? room : left);
        }
        check_bytes(text, "datadatadataend", 15);
        check_look(p.server, 0);
    }
}
CASE(expedited_byte_behind_what_goes_by_shared_memory, "XNS 5.2 t_rcv() T_EXPEDITED") {
    for (unsigned room = 1; room < 14; room++) {
        struct pair p = connected();
        char text[20] = "";
        for (int i = 0; i < 10; i++)
            check_echo(p.client, p.server);
        snd(p.client, "before", 0);
        pass_expedited(p, "1");
        if (room & 1) {
            snd(p.client, "behind", 0);
            pass_expedited(p, "2");
        }
        unsigned all = room & 1 ? 12 : 6, have = 0;
        while (have < all)
            have += rcv_some(p.server, text + have, room < all - have ? room : all - have);
        check_str(text, room & 1 ? "beforebehind" : "before");
        check_eq(t_close(p.server), 0);
        check_event(p.client, T_ORDREL);
        check_eq(t_close(p.client), 0);
        check_eq(t_close(p.listener), 0);
    }
}
CASE(expedited_byte_before_data_that_came_since, "XNS 5.2 t_rcv() T_EXPEDITED, tcp(7)") {
    struct pair p = connected();
    snd(p.client, "before", 0);
    pass_expedited(p, "1");
    snd(p.client, "between", 0);
    rcv(p.server, "before", 0);
    pass_expedited(p, "2");
    snd(p.client, "after", 0);
    rcv(p.server, "betweenafter", 0);
    check_look(p.server, 0);
    check_echo(p.client, p.server);
}

SUITE(FOR(COTS, expedited), FOR(LOOP, expedited_first), FOR(LOOP, expedited_in_order), FOR(LOOP, expedited_in_pieces),
      FOR(LOOP, expedited_sent_in_pieces), FOR(LOOP, expedited_within_a_tsdu), FOR(LOOP, expedited_between_pieces),
      FOR(SCTP, expedited_between_pieces), FOR(SCTP, expedited_between_pieces_by_packets),
      FOR(SCTP, expedited_comes_in_its_turn_by_packets), FOR(LOOP, expedited_passes_full_queues),
      FOR(LOOP, expedited_flow), FOR(TCP, expedited_byte_after_data), FOR(TCP, expedited_byte_is_not_left_behind),
      FOR(TCP, expedited_bytes_are_received_once), FOR(TCP, expedited_byte_behind_what_goes_by_shared_memory),
      FOR(TCP, expedited_byte_before_data_that_came_since))
