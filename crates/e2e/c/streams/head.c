/* The stream head's ioctls on modules and on what waits to be read, with their errors. */
#include "harness.h"

#define BAD ((void *)8)

static const char *look(int fd) {
    static char name[100];
    memset(name, 'x', sizeof name);
    check_eq(ioctl(fd, I_LOOK, name), 0);
    return name;
}

/* --- I_PUSH, I_POP, I_LOOK, I_FIND, I_LIST --- */

CASE(push_and_look, "streamio(7I) I_PUSH") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    check_str(look(fd), "nullmod");
    push(fd, "bufmod");
    check_str(look(fd), "bufmod");
}
CASE(push_same_twice, "streamio(7I) I_PUSH") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    push(fd, "nullmod");
    pop(fd);
    check_str(look(fd), "nullmod");
    pop(fd);
    check_errno(ioctl(fd, I_POP, 0), EINVAL);
}
CASE(push_unknown, "streamio(7I) I_PUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "nosuch"), EINVAL);
    check_errno(ioctl(fd, I_LOOK, (char[FMNAMESZ + 1]){0}), EINVAL);
}
CASE(push_empty_name, "streamio(7I) I_PUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, ""), EINVAL);
}
CASE(push_long_name, "streamio(7I) I_PUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "nullmodnullmodnullmod"), EINVAL);
}
CASE(push_driver_name, "streamio(7I) I_PUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "echo"), EINVAL);
}
CASE(push_null, "streamio(7I) I_PUSH EFAULT") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, NULL), EFAULT);
    check_errno(ioctl(fd, I_PUSH, BAD), EFAULT);
}
CASE(push_after_hangup, "streamio(7I) I_PUSH ENXIO") { check_errno(ioctl(hung_up(), I_PUSH, "nullmod"), ENXIO); }
CASE(push_up_to_the_limit, "streamio(7I) I_PUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    for (int i = 0; i < 64; i++)
        push(fd, "nullmod");
    check_errno(ioctl(fd, I_PUSH, "nullmod"), EINVAL);
    check_eq(ioctl(fd, I_LIST, NULL), 65);
    check_eq(write(fd, "through", 7), 7);
    check_read(fd, "through");
}
CASE(push_keeps_queued, "streamio(7I) I_PUSH") {
    int fd = open_stream("/dev/echo");
    check_eq(write(fd, "before", 6), 6);
    push(fd, "nullmod");
    check_read(fd, "before");
    check_eq(write(fd, "after", 5), 5);
    check_read(fd, "after");
}
CASE(push_pipe_keeps_queued, "streamio(7I) I_PUSH") {
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "before", 6), 6);
    push(fd[1], "bufmod");
    check_eq(write(fd[0], "after", 5), 5);
    must(ioctl(fd[1], I_SRDOPT, RMSGN));
    check_read(fd[1], "before");
    check_read(fd[1], "after");
}
CASE(pop_order, "streamio(7I) I_POP") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    push(fd, "bufmod");
    push(fd, "sc");
    check_str(look(fd), "sc");
    pop(fd);
    check_str(look(fd), "bufmod");
    pop(fd);
    check_str(look(fd), "nullmod");
    pop(fd);
    check_errno(ioctl(fd, I_LOOK, (char[FMNAMESZ + 1]){0}), EINVAL);
}
CASE(pop_empty, "streamio(7I) I_POP EINVAL") {
    int fd[2], echo = open_stream("/dev/echo");
    check_errno(ioctl(echo, I_POP, 0), EINVAL);
    pipe_flags(fd, 0);
    check_errno(ioctl(fd[0], I_POP, 0), EINVAL);
}
CASE(pop_after_hangup, "streamio(7I) I_POP ENXIO") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "nullmod");
    must(close(fd[1]));
    await(events(fd[0], POLLIN, 0) & POLLHUP);
    check_errno(ioctl(fd[0], I_POP, 0), ENXIO);
}
CASE(pop_keeps_queued, "streamio(7I) I_POP") {
    int fd = open_stream("/dev/echo");
    push(fd, "bufmod");
    check_eq(write(fd, "kept", 4), 4);
    check_readable(fd);
    pop(fd);
    check_read(fd, "kept");
}
CASE(look_empty, "streamio(7I) I_LOOK EINVAL") {
    char name[FMNAMESZ + 1];
    check_errno(ioctl(open_stream("/dev/echo"), I_LOOK, name), EINVAL);
}
CASE(look_null, "streamio(7I) I_LOOK EFAULT") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    check_errno(ioctl(fd, I_LOOK, NULL), EFAULT);
    check_errno(ioctl(fd, I_LOOK, BAD), EFAULT);
}
CASE(look_room, "streamio(7I) I_LOOK") {
    int fd = open_stream("/dev/echo");
    char name[FMNAMESZ + 3];
    memset(name, 'x', sizeof name);
    push(fd, "nullmod");
    check_eq(ioctl(fd, I_LOOK, name), 0);
    check_eq(name[FMNAMESZ + 1], 'x');
    check_eq(name[FMNAMESZ + 2], 'x');
}
CASE(find, "streamio(7I) I_FIND") {
    int fd = open_stream("/dev/echo");
    check_eq(ioctl(fd, I_FIND, "nullmod"), 0);
    push(fd, "nullmod");
    push(fd, "bufmod");
    check_eq(ioctl(fd, I_FIND, "nullmod"), 1);
    check_eq(ioctl(fd, I_FIND, "bufmod"), 1);
    check_eq(ioctl(fd, I_FIND, "sc"), 0);
    pop(fd);
    check_eq(ioctl(fd, I_FIND, "bufmod"), 0);
}
CASE(find_unknown, "streamio(7I) I_FIND EINVAL") {
    check_errno(ioctl(open_stream("/dev/echo"), I_FIND, "nosuch"), EINVAL);
}
CASE(find_null, "streamio(7I) I_FIND EFAULT") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_FIND, NULL), EFAULT);
    check_errno(ioctl(fd, I_FIND, BAD), EFAULT);
}
CASE(list_counts, "streamio(7I) I_LIST") {
    int fd = open_stream("/dev/echo");
    check_eq(ioctl(fd, I_LIST, NULL), 1);
    push(fd, "nullmod");
    push(fd, "bufmod");
    check_eq(ioctl(fd, I_LIST, NULL), 3);
    pop(fd);
    check_eq(ioctl(fd, I_LIST, NULL), 2);
}
CASE(list_names, "streamio(7I) I_LIST") {
    struct str_mlist names[5] = {0};
    struct str_list list = {.sl_nmods = 5, .sl_modlist = names};
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    push(fd, "sc");
    check_eq(ioctl(fd, I_LIST, &list), 0);
    check_eq(list.sl_nmods, 3);
    check_str(names[0].l_name, "sc");
    check_str(names[1].l_name, "nullmod");
    check_str(names[2].l_name, "echo");
}
CASE(list_short, "streamio(7I) I_LIST") {
    struct str_mlist names[2] = {{"untouch"}, {"untouch"}};
    struct str_list list = {.sl_nmods = 1, .sl_modlist = names};
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    check_eq(ioctl(fd, I_LIST, &list), 0);
    check_eq(list.sl_nmods, 1);
    check_str(names[0].l_name, "nullmod");
    check_str(names[1].l_name, "untouch");
}
CASE(list_none, "streamio(7I) I_LIST EINVAL") {
    struct str_mlist name;
    struct str_list list = {.sl_nmods = 0, .sl_modlist = &name};
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_LIST, &list), EINVAL);
    list.sl_nmods = -1;
    check_errno(ioctl(fd, I_LIST, &list), EINVAL);
}
CASE(list_fault, "streamio(7I) I_LIST EFAULT") {
    struct str_list list = {.sl_nmods = 1, .sl_modlist = NULL};
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_LIST, &list), EFAULT);
    check_errno(ioctl(fd, I_LIST, BAD), EFAULT);
}

/* --- I_NREAD, I_PEEK --- */

CASE(nread, "streamio(7I) I_NREAD") {
    int fd = open_stream("/dev/echo"), n = -1;
    check_eq(ioctl(fd, I_NREAD, &n), 0);
    check_eq(n, 0);
    put(fd, NULL, "first", 0);
    put(fd, NULL, "second!", 0);
    check_eq(ioctl(fd, I_NREAD, &n), 2);
    check_eq(n, 5);
    check_message(fd, NULL, "first", 0);
    check_eq(ioctl(fd, I_NREAD, &n), 1);
    check_eq(n, 7);
}
CASE(nread_pipe, "streamio(7I) I_NREAD") {
    int fd[2], n = -1;
    pipe_flags(fd, 0);
    check_eq(ioctl(fd[1], I_NREAD, &n), 0);
    check_eq(n, 0);
    check_eq(write(fd[0], "abc", 3), 3);
    check_eq(write(fd[0], "defgh", 5), 5);
    check_eq(ioctl(fd[1], I_NREAD, &n), 2);
    check_eq(n, 3);
    check_eq(ioctl(fd[0], I_NREAD, &n), 0);
}
CASE(nread_partly_read, "streamio(7I) I_NREAD") {
    int fd[2], n;
    char c[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "abcde", 5), 5);
    check_eq(read(fd[1], c, 2), 2);
    check_eq(ioctl(fd[1], I_NREAD, &n), 1);
    check_eq(n, 3);
}
CASE(nread_control_is_not_data, "streamio(7I) I_NREAD") {
    int fd = open_stream("/dev/echo"), n = -1;
    put(fd, "control", NULL, 0);
    check_eq(ioctl(fd, I_NREAD, &n), 1);
    check_eq(n, 0);
    check_message(fd, "control", NULL, 0);
    put(fd, "control", "data", 0);
    check_eq(ioctl(fd, I_NREAD, &n), 1);
    check_eq(n, 4);
}
CASE(nread_empty_message, "streamio(7I) I_NREAD") {
    int fd = open_stream("/dev/echo"), n = -1;
    put(fd, NULL, "", 0);
    check_eq(ioctl(fd, I_NREAD, &n), 1);
    check_eq(n, 0);
}
CASE(nread_null, "streamio(7I) I_NREAD EFAULT") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_NREAD, NULL), EFAULT);
    check_errno(ioctl(fd, I_NREAD, BAD), EFAULT);
}

static struct strpeek peek_into(char *ctl, int ctl_len, char *data, int data_len, int flags) {
    return (struct strpeek){.ctlbuf = in_buf(ctl, ctl_len), .databuf = in_buf(data, data_len), .flags = flags};
}
CASE(peek_nothing, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    struct strpeek p = peek_into(c, 10, d, 10, 0);
    check_eq(ioctl(open_stream("/dev/echo"), I_PEEK, &p), 0);
}
CASE(peek_leaves_it, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    int fd = open_stream("/dev/echo");
    put(fd, "ctl", "data", 0);
    for (int i = 0; i < 3; i++) {
        struct strpeek p = peek_into(c, 10, d, 10, 0);
        check_eq(ioctl(fd, I_PEEK, &p), 1);
        check_eq(p.ctlbuf.len, 3);
        check_eq(p.databuf.len, 4);
        check_eq(p.flags, 0);
        check_bytes(c, "ctl", 3);
        check_bytes(d, "data", 4);
    }
    check_message(fd, "ctl", "data", 0);
}
CASE(peek_pipe, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    int fd[2];
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "data", 4), 4);
    struct strpeek p = peek_into(c, 10, d, 10, 0);
    check_eq(ioctl(fd[1], I_PEEK, &p), 1);
    check_eq(p.ctlbuf.len, -1);
    check_eq(p.databuf.len, 4);
    check_bytes(d, "data", 4);
    check_read(fd[1], "data");
}
CASE(peek_short, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    int fd = open_stream("/dev/echo");
    put(fd, "control", "datadata", 0);
    struct strpeek p = peek_into(c, 3, d, 5, 0);
    memset(c, 'x', sizeof c), memset(d, 'x', sizeof d);
    check_eq(ioctl(fd, I_PEEK, &p), 1);
    check_eq(p.ctlbuf.len, 3);
    check_eq(p.databuf.len, 5);
    check_bytes(c, "conxx", 5);
    check_bytes(d, "datadxx", 7);
    check_message(fd, "control", "datadata", 0);
}
CASE(peek_one_part, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    int fd = open_stream("/dev/echo");
    put(fd, "ctl", "data", 0);
    struct strpeek p = peek_into(c, -1, d, 10, 0);
    check_eq(ioctl(fd, I_PEEK, &p), 1);
    check_eq(p.databuf.len, 4);
    p = peek_into(c, 10, d, -1, 0);
    check_eq(ioctl(fd, I_PEEK, &p), 1);
    check_eq(p.ctlbuf.len, 3);
    check_message(fd, "ctl", "data", 0);
}
CASE(peek_high, "streamio(7I) I_PEEK") {
    char c[10], d[10];
    int fd = open_stream("/dev/echo");
    put(fd, NULL, "normal", 0);
    struct strpeek p = peek_into(c, 10, d, 10, RS_HIPRI);
    check_eq(ioctl(fd, I_PEEK, &p), 0);
    put_high(fd, "high", NULL);
    p = peek_into(c, 10, d, 10, RS_HIPRI);
    check_eq(ioctl(fd, I_PEEK, &p), 1);
    check_eq(p.flags, RS_HIPRI);
    check_eq(p.ctlbuf.len, 4);
    check_bytes(c, "high", 4);
    p = peek_into(c, 10, d, 10, 0);
    check_eq(ioctl(fd, I_PEEK, &p), 1);
    check_eq(p.flags, RS_HIPRI);
}
CASE(peek_flags, "streamio(7I) I_PEEK EINVAL") {
    char c[10], d[10];
    int fd = open_stream("/dev/echo");
    put(fd, "c", "d", 0);
    struct strpeek p = peek_into(c, 10, d, 10, 0x40);
    check_errno(ioctl(fd, I_PEEK, &p), EINVAL);
}
CASE(peek_fault, "streamio(7I) I_PEEK EFAULT") {
    char c[10];
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PEEK, NULL), EFAULT);
    check_errno(ioctl(fd, I_PEEK, BAD), EFAULT);
    put(fd, "c", "d", 0);
    struct strpeek p = peek_into(c, 10, BAD, 10, 0);
    check_errno(ioctl(fd, I_PEEK, &p), EFAULT);
    check_message(fd, "c", "d", 0);
}

/* --- I_FLUSH, I_FLUSHBAND --- */

CASE(flush_read, "streamio(7I) I_FLUSH") {
    int fd = open_stream("/dev/echo"), n;
    put(fd, NULL, "one", 0);
    put(fd, NULL, "two", 3);
    check_eq(ioctl(fd, I_FLUSH, FLUSHR), 0);
    check_eq(ioctl(fd, I_NREAD, &n), 0);
    check_nothing(fd);
}
CASE(flush_high, "streamio(7I) I_FLUSH") {
    int fd = open_stream("/dev/echo");
    put_high(fd, "high", NULL);
    check_eq(ioctl(fd, I_FLUSH, FLUSHR), 0);
    check_nothing(fd);
    put_high(fd, "again", NULL);
    check_message(fd, "again", NULL, -1);
}
CASE(flush_write_keeps_read, "streamio(7I) I_FLUSH") {
    int fd = open_stream("/dev/echo");
    put(fd, NULL, "one", 0);
    check_eq(ioctl(fd, I_FLUSH, FLUSHW), 0);
    check_message(fd, NULL, "one", 0);
}
CASE(flush_both, "streamio(7I) I_FLUSH") {
    int fd = open_stream("/dev/echo");
    push(fd, "bufmod");
    put(fd, NULL, "one", 0);
    check_eq(ioctl(fd, I_FLUSH, FLUSHRW), 0);
    check_nothing(fd);
    put(fd, NULL, "two", 0);
    check_message(fd, NULL, "two", 0);
}
CASE(flush_undefined, "streamio(7I) I_FLUSH EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_FLUSH, 0), EINVAL);
    check_errno(ioctl(fd, I_FLUSH, 8), EINVAL);
    check_errno(ioctl(fd, I_FLUSH, -1), EINVAL);
}
CASE(flush_after_hangup, "streamio(7I) I_FLUSH ENXIO") { check_errno(ioctl(hung_up(), I_FLUSH, FLUSHRW), ENXIO); }
CASE(flushband, "streamio(7I) I_FLUSHBAND") {
    int fd = open_stream("/dev/echo");
    struct bandinfo b = {.bi_pri = 3, .bi_flag = FLUSHR};
    put(fd, NULL, "zero", 0);
    put(fd, NULL, "one", 1);
    put(fd, NULL, "three", 3);
    put(fd, NULL, "five", 5);
    check_eq(ioctl(fd, I_FLUSHBAND, &b), 0);
    check_message(fd, NULL, "five", 5);
    check_message(fd, NULL, "one", 1);
    check_message(fd, NULL, "zero", 0);
    check_nothing(fd);
}
/* Band 0 is that of high-priority messages, too: flushband(9F). */
CASE(flushband_zero, "streamio(7I) I_FLUSHBAND") {
    int fd = open_stream("/dev/echo");
    struct bandinfo b = {.bi_pri = 0, .bi_flag = FLUSHRW};
    put(fd, NULL, "zero", 0);
    put(fd, NULL, "one", 1);
    put_high(fd, "high", NULL);
    check_eq(ioctl(fd, I_FLUSHBAND, &b), 0);
    check_message(fd, NULL, "one", 1);
    check_nothing(fd);
}
CASE(flushband_zero_pipe, "streamio(7I) I_FLUSHBAND") {
    int fd[2];
    struct bandinfo b = {.bi_pri = 0, .bi_flag = FLUSHR};
    pipe_flags(fd, 0);
    put(fd[0], NULL, "zero", 0);
    put(fd[0], NULL, "one", 1);
    put_high(fd[0], "high", NULL);
    check_eq(ioctl(fd[1], I_FLUSHBAND, &b), 0);
    check_message(fd[1], NULL, "one", 1);
    check_nothing(fd[1]);
}
CASE(flushband_errors, "streamio(7I) I_FLUSHBAND EINVAL") {
    int fd = open_stream("/dev/echo");
    struct bandinfo b = {.bi_pri = 1, .bi_flag = 0};
    check_errno(ioctl(fd, I_FLUSHBAND, &b), EINVAL);
    b.bi_flag = 0x10;
    check_errno(ioctl(fd, I_FLUSHBAND, &b), EINVAL);
    check_errno(ioctl(fd, I_FLUSHBAND, NULL), EFAULT);
    check_errno(ioctl(fd, I_FLUSHBAND, BAD), EFAULT);
}

CASES(ENTRY(push_and_look), ENTRY(push_same_twice), ENTRY(push_unknown), ENTRY(push_empty_name), ENTRY(push_long_name),
      ENTRY(push_driver_name), ENTRY(push_null), ENTRY(push_after_hangup), ENTRY(push_up_to_the_limit),
      ENTRY(push_keeps_queued), ENTRY(push_pipe_keeps_queued), ENTRY(pop_order), ENTRY(pop_empty), ENTRY(pop_after_hangup),
      ENTRY(pop_keeps_queued), ENTRY(look_empty), ENTRY(look_null), ENTRY(look_room), ENTRY(find), ENTRY(find_unknown),
      ENTRY(find_null), ENTRY(list_counts), ENTRY(list_names), ENTRY(list_short), ENTRY(list_none), ENTRY(list_fault),
      ENTRY(nread), ENTRY(nread_pipe), ENTRY(nread_partly_read), ENTRY(nread_control_is_not_data),
      ENTRY(nread_empty_message), ENTRY(nread_null), ENTRY(peek_nothing), ENTRY(peek_leaves_it), ENTRY(peek_pipe),
      ENTRY(peek_short), ENTRY(peek_one_part), ENTRY(peek_high), ENTRY(peek_flags), ENTRY(peek_fault), ENTRY(flush_read),
      ENTRY(flush_high), ENTRY(flush_write_keeps_read), ENTRY(flush_both), ENTRY(flush_undefined),
      ENTRY(flush_after_hangup), ENTRY(flushband), ENTRY(flushband_zero), ENTRY(flushband_zero_pipe),
      ENTRY(flushband_errors))
