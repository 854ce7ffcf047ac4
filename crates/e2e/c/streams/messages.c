/* putmsg, getmsg, putpmsg, getpmsg in all their forms. */
#include "harness.h"

#define BAD ((void *)8)

static int echo(void) { return open_stream("/dev/echo"); }

/* getmsg with these rooms; -2: a null pointer. */
static struct message got;
static int get(int fd, int ctl_room, int data_room, int flags) {
    struct strbuf c = in_buf(got.ctl, ctl_room), d = in_buf(got.data, data_room);
    memset(got.ctl, 'x', sizeof got.ctl), memset(got.data, 'x', sizeof got.data);
    got.flags = flags;
    got.result = getmsg(fd, ctl_room == -2 ? NULL : &c, data_room == -2 ? NULL : &d, &got.flags);
    got.ctl_len = c.len, got.data_len = d.len;
    return got.result;
}

static int put_lengths(int fd, int ctl, int data, int flags) {
    static char bytes[300000];
    struct strbuf c = out_buf(bytes, ctl), d = out_buf(bytes, data);
    return putmsg(fd, &c, &d, flags);
}

/* --- which parts there are --- */

CASE(control_only, "putmsg(2)") {
    int fd = echo();
    put(fd, "control", NULL, 0);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, 7);
    check_eq(got.data_len, -1);
    check_eq(got.flags, 0);
    check_bytes(got.ctl, "controlx", 8);
}
CASE(data_only, "putmsg(2)") {
    int fd = echo();
    put(fd, NULL, "data", 0);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, -1);
    check_eq(got.data_len, 4);
    check_bytes(got.data, "datax", 5);
}
CASE(both_parts, "putmsg(2)") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_message(fd, "control", "data", 0);
}
CASE(both_parts_pipe, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "there", "and", 0);
    put(fd[1], "back", "again", 0);
    check_message(fd[1], "there", "and", 0);
    check_message(fd[0], "back", "again", 0);
}
CASE(no_part, "putmsg(2)") {
    int fd = echo();
    check_eq(putmsg(fd, NULL, NULL, 0), 0);
    check_eq(put_lengths(fd, -1, -1, 0), 0);
    check_eq(putpmsg(fd, NULL, NULL, 3, MSG_BAND), 0);
    check_nothing(fd);
}
CASE(no_part_pipe, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(putmsg(fd[0], NULL, NULL, 0), 0);
    check_eq(put_lengths(fd[0], -1, -1, 0), 0);
    check_nothing(fd[1]);
}
CASE(length_minus_one, "putmsg(2)") {
    int fd = echo();
    check_eq(put_lengths(fd, 5, -1, 0), 0);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, 5);
    check_eq(got.data_len, -1);
    check_eq(put_lengths(fd, -1, 6, 0), 0);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, -1);
    check_eq(got.data_len, 6);
}
CASE(empty_data, "putmsg(2)") {
    int fd = echo();
    put(fd, NULL, "", 0);
    check_message(fd, NULL, "", 0);
    check_nothing(fd);
}
CASE(empty_data_pipe, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], NULL, "", 0);
    put(fd[0], NULL, "next", 0);
    check_message(fd[1], NULL, "", 0);
    check_message(fd[1], NULL, "next", 0);
}
CASE(empty_control, "putmsg(2)") {
    int fd = echo();
    put(fd, "", NULL, 0);
    check_message(fd, "", NULL, 0);
    put(fd, "", "data", 0);
    check_message(fd, "", "data", 0);
}
CASE(empty_parts, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "", "", 0);
    put(fd[0], "c", "", 0);
    check_message(fd[1], "", "", 0);
    check_message(fd[1], "c", "", 0);
}
CASE(binary_parts, "putmsg(2)") {
    int fd = echo();
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = i;
    struct strbuf c = out_buf(bytes, 256), d = out_buf(bytes, 255);
    check_eq(putmsg(fd, &c, &d, 0), 0);
    check_eq(get(fd, 256, 256, 0), 0);
    check_eq(got.ctl_len, 256);
    check_eq(got.data_len, 255);
    check_bytes(got.ctl, bytes, 256);
    check_bytes(got.data, bytes, 255);
}
CASE(maxlen_of_putmsg_ignored, "putmsg(2)") {
    int fd = echo();
    struct strbuf d = {.maxlen = -44, .len = 4, .buf = "data"};
    check_eq(putmsg(fd, NULL, &d, 0), 0);
    check_message(fd, NULL, "data", 0);
}
CASE(sender_may_reuse_its_buffer, "putmsg(2)") {
    int fd[2];
    char text[] = "first!";
    pipe_flags(fd, 0);
    struct strbuf d = out_buf(text, 6);
    check_eq(putmsg(fd[0], NULL, &d, 0), 0);
    memcpy(text, "second", 6);
    check_eq(putmsg(fd[0], NULL, &d, 0), 0);
    check_message(fd[1], NULL, "first!", 0);
    check_message(fd[1], NULL, "second", 0);
}

/* --- short rooms --- */

CASE(short_data, "getmsg(2) MOREDATA") {
    int fd = echo();
    put(fd, NULL, "abcdefgh", 0);
    check_eq(get(fd, 10, 3, 0), MOREDATA);
    check_eq(got.ctl_len, -1);
    check_eq(got.data_len, 3);
    check_bytes(got.data, "abcx", 4);
    check_eq(get(fd, 10, 3, 0), MOREDATA);
    check_bytes(got.data, "defx", 4);
    check_eq(get(fd, 10, 3, 0), 0);
    check_eq(got.data_len, 2);
    check_bytes(got.data, "ghx", 3);
    check_nothing(fd);
}
CASE(short_data_pipe, "getmsg(2) MOREDATA") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "abcdefgh", 8), 8);
    check_eq(write(fd[0], "next", 4), 4);
    check_eq(get(fd[1], 10, 5, 0), MOREDATA);
    check_eq(get(fd[1], 10, 5, 0), 0);
    check_eq(got.data_len, 3);
    check_bytes(got.data, "fghx", 4);
    check_eq(get(fd[1], 10, 5, 0), 0);
    check_bytes(got.data, "nextx", 5);
}
CASE(short_control, "getmsg(2) MORECTL") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_eq(get(fd, 3, 100, 0), MORECTL);
    check_eq(got.ctl_len, 3);
    check_eq(got.data_len, 4);
    check_bytes(got.ctl, "conx", 4);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, 4);
    check_eq(got.data_len, -1);
    check_bytes(got.ctl, "trolx", 5);
}
CASE(short_both, "getmsg(2) MORECTL|MOREDATA") {
    int fd = echo();
    put(fd, "control", "datadata", 0);
    check_eq(get(fd, 3, 5, 0), MORECTL | MOREDATA);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, 4);
    check_eq(got.data_len, 3);
    check_bytes(got.ctl, "trolx", 5);
    check_bytes(got.data, "atax", 4);
}
CASE(short_both_pipe, "getmsg(2) MORECTL|MOREDATA") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "control", "datadata", 0);
    put(fd[0], "c2", "d2", 0);
    check_eq(get(fd[1], 3, 5, 0), MORECTL | MOREDATA);
    check_eq(get(fd[1], 100, 100, 0), 0);
    check_eq(got.ctl_len, 4);
    check_eq(got.data_len, 3);
    check_message(fd[1], "c2", "d2", 0);
}
CASE(exact_room, "getmsg(2)") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_eq(get(fd, 7, 4, 0), 0);
    check_eq(got.ctl_len, 7);
    check_eq(got.data_len, 4);
    check_nothing(fd);
}
CASE(room_minus_one_leaves_control, "getmsg(2) MORECTL") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_eq(get(fd, -1, 100, 0), MORECTL);
    check_eq(got.data_len, 4);
    check_message(fd, "control", NULL, 0);
}
CASE(room_minus_one_leaves_data, "getmsg(2) MOREDATA") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_eq(get(fd, 100, -1, 0), MOREDATA);
    check_eq(got.ctl_len, 7);
    check_message(fd, NULL, "data", 0);
}
CASE(null_leaves_control, "getmsg(2) MORECTL") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "control", "data", 0);
    check_eq(get(fd[1], -2, 100, 0), MORECTL);
    check_eq(got.data_len, 4);
    check_message(fd[1], "control", NULL, 0);
}
CASE(null_leaves_data, "getmsg(2) MOREDATA") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "control", "data", 0);
    check_eq(get(fd[1], 100, -2, 0), MOREDATA);
    check_eq(got.ctl_len, 7);
    check_read(fd[1], "data");
}
CASE(null_for_an_absent_part, "getmsg(2)") {
    int fd = echo();
    put(fd, NULL, "data", 0);
    check_eq(get(fd, -2, 100, 0), 0);
    put(fd, "control", NULL, 0);
    check_eq(get(fd, 100, -2, 0), 0);
    put(fd, "control", NULL, 0);
    check_eq(get(fd, 100, -1, 0), 0);
    check_nothing(fd);
}
CASE(room_zero_leaves_bytes, "getmsg(2)") {
    int fd = echo();
    put(fd, "control", "data", 0);
    check_eq(get(fd, 0, 0, 0), MORECTL | MOREDATA);
    check_eq(got.ctl_len, 0);
    check_eq(got.data_len, 0);
    check_message(fd, "control", "data", 0);
}
CASE(room_zero_takes_empty_parts, "getmsg(2)") {
    int fd = echo();
    put(fd, "", "", 0);
    put(fd, NULL, "next", 0);
    check_eq(get(fd, 0, 0, 0), 0);
    check_eq(got.ctl_len, 0);
    check_eq(got.data_len, 0);
    check_message(fd, NULL, "next", 0);
}
CASE(rest_of_high, "getmsg(2) RS_HIPRI") {
    int fd = echo();
    put(fd, NULL, "normal", 0);
    put_high(fd, "highhigh", NULL);
    check_eq(get(fd, 4, 100, 0), MORECTL);
    check_eq(got.flags, RS_HIPRI);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.ctl_len, 4);
    check_bytes(got.ctl, "highx", 5);
    check_eq(got.flags, RS_HIPRI);
    check_message(fd, NULL, "normal", 0);
}
CASE(rest_before_later, "getmsg(2) MOREDATA") {
    int fd = echo();
    put(fd, NULL, "first", 0);
    check_eq(get(fd, 10, 2, 0), MOREDATA);
    put(fd, NULL, "second", 0);
    check_message(fd, NULL, "rst", 0);
    check_message(fd, NULL, "second", 0);
}
CASE(rest_after_higher, "getmsg(2) MOREDATA") {
    int fd = echo();
    put(fd, NULL, "first", 0);
    check_eq(get(fd, 10, 2, 0), MOREDATA);
    put_high(fd, "high", NULL);
    check_message(fd, "high", NULL, -1);
    check_message(fd, NULL, "rst", 0);
}
CASE(rest_by_read, "getmsg(2) MOREDATA") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "control", "abcdef", 0);
    check_eq(get(fd[1], 100, 2, 0), MOREDATA);
    check_read(fd[1], "cdef");
}
CASE(rest_keeps_band, "getpmsg(2) MOREDATA") {
    int fd = echo();
    put(fd, "ctl", "abcdef", 5);
    check_eq(get(fd, 100, 2, 0), MOREDATA);
    check_message(fd, NULL, "cdef", 5);
}

/* --- priority --- */

CASE(high_first, "getmsg(2) RS_HIPRI") {
    int fd = echo();
    put(fd, NULL, "normal", 0);
    put_high(fd, "high", "its data");
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.flags, RS_HIPRI);
    check_eq(got.ctl_len, 4);
    check_eq(got.data_len, 8);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.flags, 0);
    check_bytes(got.data, "normal", 6);
}
CASE(high_first_pipe, "getmsg(2) RS_HIPRI") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], NULL, "normal", 0);
    put(fd[0], "banded", NULL, 9);
    put_high(fd[0], "high", "its data");
    check_message(fd[1], "high", "its data", -1);
    check_message(fd[1], "banded", NULL, 9);
    check_message(fd[1], NULL, "normal", 0);
}
CASE(high_only, "getmsg(2) EAGAIN") {
    int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    put(fd, NULL, "normal", 0);
    check_errno(get(fd, 100, 100, RS_HIPRI), EAGAIN);
    put_high(fd, "high", NULL);
    check_eq(get(fd, 100, 100, RS_HIPRI), 0);
    check_eq(got.flags, RS_HIPRI);
    check_message(fd, NULL, "normal", 0);
}
CASE(one_high_waits, "putmsg(2) RS_HIPRI") {
    int fd = echo();
    put_high(fd, "one", NULL);
    put_high(fd, "two", NULL);
    check_message(fd, "one", NULL, -1);
    check_nothing(fd);
}
CASE(one_high_waits_pipe, "putmsg(2) RS_HIPRI") {
    int fd[2];
    pipe_flags(fd, 0);
    put_high(fd[0], "one", NULL);
    put_high(fd[0], "two", NULL);
    check_message(fd[1], "one", NULL, -1);
    check_nothing(fd[1]);
}
CASE(high_empty_control, "putmsg(2) RS_HIPRI") {
    int fd = echo();
    check_eq(put_lengths(fd, 0, -1, RS_HIPRI), 0);
    check_message(fd, "", NULL, -1);
}
CASE(high_without_control, "putmsg(2) EINVAL") {
    int fd = echo();
    struct strbuf d = out_buf("data", 4);
    check_errno(putmsg(fd, NULL, &d, RS_HIPRI), EINVAL);
    check_errno(putmsg(fd, NULL, NULL, RS_HIPRI), EINVAL);
    check_errno(put_lengths(fd, -1, 4, RS_HIPRI), EINVAL);
    check_errno(putpmsg(fd, NULL, &d, 0, MSG_HIPRI), EINVAL);
    check_nothing(fd);
}
CASE(order_of_bands, "getpmsg(2)") {
    int fd = echo();
    put(fd, NULL, "0a", 0);
    put(fd, NULL, "1a", 1);
    put(fd, NULL, "255", 255);
    put(fd, NULL, "1b", 1);
    put(fd, NULL, "0b", 0);
    put_high(fd, "high", NULL);
    put(fd, NULL, "2", 2);
    check_message(fd, "high", NULL, -1);
    check_message(fd, NULL, "255", 255);
    check_message(fd, NULL, "2", 2);
    check_message(fd, NULL, "1a", 1);
    check_message(fd, NULL, "1b", 1);
    check_message(fd, NULL, "0a", 0);
    check_message(fd, NULL, "0b", 0);
}
CASE(order_of_bands_pipe, "getpmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], NULL, "0a", 0);
    put(fd[0], NULL, "1a", 1);
    put(fd[0], NULL, "3", 3);
    check_eq(write(fd[0], "0b", 2), 2);
    put(fd[0], NULL, "1b", 1);
    check_message(fd[1], NULL, "3", 3);
    check_message(fd[1], NULL, "1a", 1);
    check_message(fd[1], NULL, "1b", 1);
    check_message(fd[1], NULL, "0a", 0);
    check_message(fd[1], NULL, "0b", 0);
}
CASE(order_kept, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    for (int i = 0; i < 500; i++) {
        char c[20], d[20];
        sprintf(c, "c%d", i), sprintf(d, "d%d", i);
        put(fd[0], i % 3 ? c : NULL, i % 3 != 1 ? d : NULL, 0);
        if (i % 7 != 6)
            continue;
        for (int j = i - 6; j <= i; j++) {
            sprintf(c, "c%d", j), sprintf(d, "d%d", j);
            check_message(fd[1], j % 3 ? c : NULL, j % 3 != 1 ? d : NULL, 0);
        }
    }
}
CASE(order_through_modules, "putmsg(2)") {
    int fd = echo();
    push(fd, "bufmod");
    push(fd, "nullmod");
    push(fd, "bufmod");
    put(fd, "c1", "d1", 0);
    put(fd, NULL, "d2", 0);
    put(fd, "c3", NULL, 0);
    check_message(fd, "c1", "d1", 0);
    check_message(fd, NULL, "d2", 0);
    check_message(fd, "c3", NULL, 0);
}
CASE(band_at_least, "getpmsg(2) MSG_BAND") {
    int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    struct message m;
    put(fd, NULL, "one", 1);
    check_errno(get_flags(fd, &m, 2, MSG_BAND), EAGAIN);
    put(fd, NULL, "three", 3);
    check_eq(get_flags(fd, &m, 2, MSG_BAND), 0);
    check_eq(m.band, 3);
    check_eq(m.flags, MSG_BAND);
    check_errno(get_flags(fd, &m, 2, MSG_BAND), EAGAIN);
    check_eq(get_flags(fd, &m, 1, MSG_BAND), 0);
    check_eq(m.band, 1);
}
CASE(band_zero_is_any_band, "getpmsg(2) MSG_BAND") {
    int fd = echo();
    struct message m;
    put(fd, NULL, "zero", 0);
    check_eq(get_flags(fd, &m, 0, MSG_BAND), 0);
    check_eq(m.band, 0);
    check_eq(m.flags, MSG_BAND);
}
CASE(band_takes_high, "getpmsg(2) MSG_BAND") {
    int fd = echo();
    struct message m;
    put_high(fd, "high", NULL);
    check_eq(get_flags(fd, &m, 5, MSG_BAND), 0);
    check_eq(m.flags, MSG_HIPRI);
    check_eq(m.band, 0);
}
CASE(high_flag_only_high, "getpmsg(2) MSG_HIPRI") {
    int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    struct message m;
    put(fd, NULL, "banded", 200);
    check_errno(get_flags(fd, &m, 0, MSG_HIPRI), EAGAIN);
    put_high(fd, "high", NULL);
    check_eq(get_flags(fd, &m, 0, MSG_HIPRI), 0);
    check_eq(m.flags, MSG_HIPRI);
}
CASE(any_reports, "getpmsg(2) MSG_ANY") {
    int fd = echo();
    struct message m;
    put(fd, NULL, "banded", 17);
    check_eq(get_flags(fd, &m, 99, MSG_ANY), 0);
    check_eq(m.band, 17);
    check_eq(m.flags, MSG_BAND);
}
CASE(getmsg_takes_bands, "getmsg(2)") {
    int fd = echo();
    put(fd, NULL, "banded", 17);
    check_eq(get(fd, 100, 100, 0), 0);
    check_eq(got.flags, 0);
    check_bytes(got.data, "banded", 6);
}

/* --- what is refused --- */

CASE(putmsg_flags, "putmsg(2) EINVAL") {
    int fd = echo();
    check_errno(put_lengths(fd, 1, 1, 2), EINVAL);
    check_errno(put_lengths(fd, 1, 1, 0x80), EINVAL);
    check_errno(put_lengths(fd, 1, 1, -1), EINVAL);
    check_nothing(fd);
}
CASE(putpmsg_flags, "putpmsg(2) EINVAL") {
    int fd = echo();
    check_errno(put_text(fd, "c", "d", 0, 0), EINVAL);
    check_errno(put_text(fd, "c", "d", 0, MSG_ANY), EINVAL);
    check_errno(put_text(fd, "c", "d", 0, MSG_HIPRI | MSG_BAND), EINVAL);
    check_errno(put_text(fd, "c", "d", 0, 0x80), EINVAL);
    check_nothing(fd);
}
CASE(putpmsg_band, "putpmsg(2) EINVAL") {
    int fd = echo();
    check_errno(put_text(fd, "c", "d", 256, MSG_BAND), EINVAL);
    check_errno(put_text(fd, "c", "d", -1, MSG_BAND), EINVAL);
    check_errno(put_text(fd, "c", "d", 1 << 30, MSG_BAND), EINVAL);
    check_nothing(fd);
}
CASE(putpmsg_high_with_band, "putpmsg(2) EINVAL") {
    check_errno(put_text(echo(), "c", "d", 1, MSG_HIPRI), EINVAL);
}
CASE(getmsg_flags, "getmsg(2) EINVAL") {
    int fd = echo();
    put(fd, "c", "d", 0);
    check_errno(get(fd, 10, 10, 2), EINVAL);
    check_errno(get(fd, 10, 10, 0x80), EINVAL);
    check_message(fd, "c", "d", 0);
}
CASE(getpmsg_flags, "getpmsg(2) EINVAL") {
    int fd = echo();
    struct message m;
    put(fd, "c", "d", 0);
    check_errno(get_flags(fd, &m, 0, 0), EINVAL);
    check_errno(get_flags(fd, &m, 0, MSG_HIPRI | MSG_ANY), EINVAL);
    check_errno(get_flags(fd, &m, 0, MSG_HIPRI | MSG_BAND), EINVAL);
    check_errno(get_flags(fd, &m, 0, 0x80), EINVAL);
    check_message(fd, "c", "d", 0);
}
CASE(control_range, "putmsg(2) ERANGE") {
    int fd = echo();
    check_errno(put_lengths(fd, 4097, -1, 0), ERANGE);
    check_errno(put_lengths(fd, 4097, 1, RS_HIPRI), ERANGE);
    check_nothing(fd);
    set_nonblock(fd, 0);
    check_eq(put_lengths(fd, 4096, -1, 0), 0);
    check_eq(get(fd, 8000, 10, 0), 0);
    check_eq(got.ctl_len, 4096);
}
CASE(control_range_pipe, "putmsg(2) ERANGE") {
    int fd[2];
    pipe_flags(fd, 0);
    check_errno(put_lengths(fd[0], 4097, -1, 0), ERANGE);
    check_eq(put_lengths(fd[0], 4096, 100, 0), 0);
    check_eq(get(fd[1], 8000, 200, 0), 0);
    check_eq(got.ctl_len, 4096);
    check_eq(got.data_len, 100);
}
CASE(data_range, "putmsg(2) ERANGE") {
    int fd[2];
    check_errno(put_lengths(echo(), -1, 262145, 0), ERANGE);
    pipe_flags(fd, 0);
    check_errno(put_lengths(fd[0], -1, 262145, 0), ERANGE);
    check_errno(put_lengths(fd[0], 10, 262145, 0), ERANGE);
    check_nothing(fd[1]);
}
CASE(put_fault, "putmsg(2) EFAULT") {
    int fd = echo();
    struct strbuf b = out_buf(BAD, 4), null = out_buf(NULL, 4);
    check_errno(putmsg(fd, BAD, NULL, 0), EFAULT);
    check_errno(putmsg(fd, NULL, BAD, 0), EFAULT);
    check_errno(putmsg(fd, &b, NULL, 0), EFAULT);
    check_errno(putmsg(fd, NULL, &b, 0), EFAULT);
    check_errno(putmsg(fd, NULL, &null, 0), EFAULT);
    check_nothing(fd);
}
CASE(put_fault_pipe, "putmsg(2) EFAULT") {
    int fd[2];
    struct strbuf b = out_buf(BAD, 4), fine = out_buf("fine", 4);
    pipe_flags(fd, 0);
    check_errno(putmsg(fd[0], &fine, &b, 0), EFAULT);
    check_errno(putmsg(fd[0], NULL, &b, 0), EFAULT);
    check_eq(putmsg(fd[0], NULL, &fine, 0), 0);
    check_message(fd[1], NULL, "fine", 0);
}
CASE(get_fault, "getmsg(2) EFAULT") {
    int fd = echo(), flags = 0;
    struct strbuf bad = in_buf(BAD, 100), c = in_buf(got.ctl, 100), d = in_buf(got.data, 100);
    put(fd, "c", "d", 0);
    check_errno(getmsg(fd, BAD, &d, &flags), EFAULT);
    check_errno(getmsg(fd, &bad, &d, &flags), EFAULT);
    check_errno(getmsg(fd, &c, &d, BAD), EFAULT);
    check_errno(getmsg(fd, &c, &d, NULL), EFAULT);
}
CASE(bad_descriptor, "getmsg(2) EBADF") {
    int fd = echo();
    must(close(fd));
    check_errno(get(fd, 1, 1, 0), EBADF);
    check_errno(get(-1, 1, 1, 0), EBADF);
    check_errno(put_lengths(fd, 1, 1, 0), EBADF);
    check_errno(put_lengths(-1, 1, 1, 0), EBADF);
    check_errno(put_lengths(100000, 1, 1, 0), EBADF);
    check_errno(put_text(fd, "c", "d", 0, MSG_BAND), EBADF);
    check_errno(get_any(fd, &got), EBADF);
}
CASE(direction, "putmsg(2) EBADF") {
    check_errno(put_lengths(open_stream_flags("/dev/echo", O_RDONLY), 1, 1, 0), EBADF);
    check_errno(get(open_stream_flags("/dev/echo", O_WRONLY), 1, 1, 0), EBADF);
}
CASE(not_a_stream, "getmsg(2) ENOSTR") {
    int plain[2], null = must(open("/dev/null", O_RDWR));
    must(pipe(plain));
    check_errno(get(null, 1, 1, 0), ENOSTR);
    check_errno(put_lengths(null, 1, 1, 0), ENOSTR);
    check_errno(get(plain[0], 1, 1, 0), ENOSTR);
    check_errno(put_lengths(plain[1], 1, 1, 0), ENOSTR);
    check_errno(put_text(null, "c", "d", 0, MSG_BAND), ENOSTR);
    check_errno(get_any(null, &got), ENOSTR);
}
CASE(get_nothing, "getmsg(2) EAGAIN") {
    int fd[2];
    pipe_flags(fd, O_NONBLOCK);
    check_errno(get(fd[0], 10, 10, 0), EAGAIN);
    check_errno(get_any(fd[0], &got), EAGAIN);
    check_errno(get(open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK), 10, 10, 0), EAGAIN);
}
CASE(get_passed_descriptor, "getmsg(2) EBADMSG") {
    int fd[2];
    struct strrecvfd r;
    pipe_flags(fd, 0);
    check_eq(ioctl(fd[0], I_SENDFD, STDIN_FILENO), 0);
    check_errno(get(fd[1], 10, 10, 0), EBADMSG);
    check_errno(read(fd[1], got.data, 10), EBADMSG);
    check_eq(ioctl(fd[1], I_RECVFD, &r), 0);
}
CASE(get_after_hangup, "getmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    put(fd[0], "last", "words", 0);
    must(close(fd[0]));
    check_message(fd[1], "last", "words", 0);
    for (int i = 0; i < 3; i++) {
        check_eq(get(fd[1], 10, 10, 0), 0);
        check_eq(got.ctl_len, 0);
        check_eq(got.data_len, 0);
    }
}
CASE(put_after_hangup, "putmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    catch_signal(SIGPIPE);
    must(close(fd[0]));
    check_errno2(put_lengths(fd[1], 1, 1, 0), EPIPE, EIO);
    check_eq(caught[SIGPIPE], 1);
}
static void send_later(void *with) {
    sleep_ms(50);
    put(*(int *)with, "late", "data", 0);
}
CASE(get_blocks, "getmsg(2)") {
    int fd[2];
    pipe_flags(fd, 0);
    pid_t child = spawn(send_later, &fd[1]);
    check_message(fd[0], "late", "data", 0);
    join(child);
}
CASE(get_interrupted, "getmsg(2) EINTR") {
    int fd[2];
    pipe_flags(fd, 0);
    catch_signal(SIGUSR1);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec in = {.it_value.tv_nsec = 30000000, .it_interval.tv_nsec = 30000000};
    must(timer_create(CLOCK_MONOTONIC, &event, &timer));
    must(timer_settime(timer, 0, &in, NULL));
    check_errno(get(fd[0], 10, 10, 0), EINTR);
    check(caught[SIGUSR1] > 0);
}

CASES(ENTRY(control_only), ENTRY(data_only), ENTRY(both_parts), ENTRY(both_parts_pipe), ENTRY(no_part),
      ENTRY(no_part_pipe), ENTRY(length_minus_one), ENTRY(empty_data), ENTRY(empty_data_pipe), ENTRY(empty_control),
      ENTRY(empty_parts), ENTRY(binary_parts), ENTRY(maxlen_of_putmsg_ignored), ENTRY(sender_may_reuse_its_buffer),
      ENTRY(short_data), ENTRY(short_data_pipe), ENTRY(short_control), ENTRY(short_both), ENTRY(short_both_pipe),
      ENTRY(exact_room), ENTRY(room_minus_one_leaves_control), ENTRY(room_minus_one_leaves_data),
      ENTRY(null_leaves_control), ENTRY(null_leaves_data), ENTRY(null_for_an_absent_part), ENTRY(room_zero_leaves_bytes),
      ENTRY(room_zero_takes_empty_parts), ENTRY(rest_of_high), ENTRY(rest_before_later), ENTRY(rest_after_higher),
      ENTRY(rest_by_read), ENTRY(rest_keeps_band), ENTRY(high_first), ENTRY(high_first_pipe), ENTRY(high_only),
      ENTRY(one_high_waits), ENTRY(one_high_waits_pipe), ENTRY(high_empty_control), ENTRY(high_without_control),
      ENTRY(order_of_bands), ENTRY(order_of_bands_pipe), ENTRY(order_kept), ENTRY(order_through_modules),
      ENTRY(band_at_least), ENTRY(band_zero_is_any_band), ENTRY(band_takes_high), ENTRY(high_flag_only_high),
      ENTRY(any_reports), ENTRY(getmsg_takes_bands), ENTRY(putmsg_flags), ENTRY(putpmsg_flags), ENTRY(putpmsg_band),
      ENTRY(putpmsg_high_with_band), ENTRY(getmsg_flags), ENTRY(getpmsg_flags), ENTRY(control_range),
      ENTRY(control_range_pipe), ENTRY(data_range), ENTRY(put_fault), ENTRY(put_fault_pipe), ENTRY(get_fault),
      ENTRY(bad_descriptor), ENTRY(direction), ENTRY(not_a_stream), ENTRY(get_nothing), ENTRY(get_passed_descriptor),
      ENTRY(get_after_hangup), ENTRY(put_after_hangup), ENTRY(get_blocks), ENTRY(get_interrupted))
