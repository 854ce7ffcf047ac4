/* Modules and drivers in C, loaded by their names from HEADWATER_MODULES: those of examples/modules, and c/modules. */
#include "harness.h"
#include "../../../../examples/modules/cloop.h"
#include "../../../../examples/modules/lines.h"
#include "../modules/copier.h"
#include "../modules/ddicheck.h"
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/tihdr.h>
#include <xti.h>

/* --- loading --- */

CASE(unknown_name, "streamio(7I) I_PUSH") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "nosuch"), EINVAL);
    check_errno(open("/dev/streams/nosuch", O_RDWR), ENOENT);
    check_errno(ioctl(fd, I_PUSH, "../upper"), EINVAL);
}
CASE(no_shared_object, "docs/modules.md") {
    int fd = open_stream("/dev/echo");
    must(mkdir("local", 0777));
    FILE *junk = fopen("local/junk.so", "w");
    fputs("no library\n", junk);
    fclose(junk);
    check_errno(ioctl(fd, I_PUSH, "junk"), EINVAL);
    put(fd, NULL, "still there", 0);
    check_message(fd, NULL, "still there", 0);
}
CASE(no_flag, "docs/modules.md") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "noflag"), EINVAL);
}
CASE(a_module_is_no_driver, "open(9E)") {
    check_errno(open("/dev/streams/upper", O_RDWR), EINVAL);
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_PUSH, "cloop"), EINVAL);
    /* A failed open leaves nothing. */
    put(fd, NULL, "echo", 0);
    check_message(fd, NULL, "echo", 0);
}
CASE(listed, "streamio(7I) I_LIST") {
    char look[FMNAMESZ + 1];
    int fd = open_stream("/dev/echo");
    push(fd, "lines");
    push(fd, "upper");
    check_eq(ioctl(fd, I_FIND, "lines"), 1);
    check_eq(ioctl(fd, I_LOOK, look), 0);
    check_str(look, "upper");
    pop(fd);
    check_eq(ioctl(fd, I_LOOK, look), 0);
    check_str(look, "lines");
}

CASE(devices_of_the_system_stay, "docs/modules.md") {
    struct stat st;
    int fd = must(open("/dev/null", O_RDWR));
    check_eq(isastream(fd), 0);
    must(fstat(fd, &st));
    check(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
    check_errno(open("/dev/streams/null", O_RDWR), ENOENT);
}
CASE(copies_that_fail, "copyresp(9S)") {
    int number = 0, fd = open_stream("/dev/echo");
    push(fd, "copier");
    check_errno(ioctl(fd, COPIER_GET, (void *)8), EFAULT);
    check_eq(ioctl(fd, COPIER_GET, &number), 9);
    check_eq(number, 77);
}

/* --- upper --- */

CASE(upper_case_on_a_pipe, "docs/modules.md") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[1], "upper");
    put(fd[0], "control", "data", 2);
    check_message(fd[1], "control", "DATA", 2);
    check_eq(write(fd[1], "down", 4), 4);
    check_read(fd[0], "down");
}
CASE(upper_case_from_another_process, "docs/modules.md") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[1], "upper");
    pid_t child = forked();
    if (child == 0) {
        check_eq(write(fd[0], "from a child", 12), 12);
        _exit(0);
    }
    check_read(fd[1], "FROM A CHILD");
    join(child);
}
CASE(upper_case_on_an_endpoint, "docs/modules.md") {
    int listener = must(t_open("/dev/ticotsord", O_RDWR, NULL));
    char name[64] = "", *text = "upper case";
    struct t_bind bound = {.addr = {.maxlen = sizeof name, .buf = name}, .qlen = 1}, ask = {.qlen = 1};
    must(t_bind(listener, &ask, &bound));
    int near = must(t_open("/dev/ticotsord", O_RDWR, NULL));
    must(t_bind(near, NULL, NULL));
    struct t_call to = {.addr = {.len = bound.addr.len, .buf = name}};
    set_nonblock(near, 1);
    check_eq(t_connect(near, &to, NULL), -1);
    check_eq(t_errno, TNODATA);
    set_nonblock(near, 0);
    struct t_call heard = {.addr = {.maxlen = 0}};
    must(t_listen(listener, &heard));
    int far = must(t_open("/dev/ticotsord", O_RDWR, NULL));
    must(t_accept(listener, far, &heard));
    must(t_rcvconnect(near, NULL));
    push(near, "upper");
    int flags;
    char got[64] = "";
    for (int i = 0; i < 100; i++) {
        check_eq(t_snd(far, text, strlen(text), 0), (int)strlen(text));
        check_eq(t_rcv(near, got, sizeof got, &flags), (int)strlen(text));
        check_bytes(got, "UPPER CASE", strlen(text));
    }
    check_eq(t_snd(near, text, strlen(text), 0), (int)strlen(text));
    check_eq(t_rcv(far, got, sizeof got, &flags), (int)strlen(text));
    check_bytes(got, text, strlen(text));
    pop(near);
    check_eq(t_snd(far, text, strlen(text), 0), (int)strlen(text));
    check_eq(t_rcv(near, got, sizeof got, &flags), (int)strlen(text));
    check_bytes(got, text, strlen(text));
}

/* --- lines --- */

CASE(lines_are_counted, "docs/modules.md") {
    unsigned long count = 0;
    int fd = open_stream("/dev/echo");
    push(fd, "lines");
    put(fd, NULL, "one\ntwo\nthree", 0);
    put(fd, "control\n", "\n", 0);
    check_message(fd, NULL, "one\ntwo\nthree", 0);
    check_message(fd, "control\n", "\n", 0);
    check_eq(i_str(fd, LINES_GET, &count, 0), 0);
    check_eq(count, 3);
    check_errno(ioctl(fd, LINES_GET, &count), EINVAL);
}
CASE(lines_lose_a_band_only, "streamio(7I) I_FLUSHBAND") {
    char kilo[1024];
    int fd[2];
    must(streams_pipe(fd));
    push(fd[1], "lines");
    set_nonblock(fd[0], 1);
    memset(kilo, 'a', sizeof kilo);
    int sent = 0, got = 0;
    while (write(fd[0], kilo, sizeof kilo) > 0)
        sent += sizeof kilo;
    struct bandinfo band = {.bi_pri = 1, .bi_flag = FLUSHR};
    check_eq(ioctl(fd[1], I_FLUSHBAND, &band), 0);
    set_nonblock(fd[1], 1);
    for (int n; (n = read(fd[1], kilo, sizeof kilo)) > 0;)
        got += n;
    check_eq(got, sent);
}
CASE(nothing_stays_behind_a_module, "streamio(7I) I_FLUSH") {
    char kilo[1024];
    int fd[2];
    must(streams_pipe(fd));
    push(fd[1], "lines");
    set_nonblock(fd[0], 1);
    set_nonblock(fd[1], 1);
    memset(kilo, 'a', sizeof kilo);
    /* Until the module, the head and the ring between are full. */
    while (write(fd[0], kilo, sizeof kilo) > 0) {
    }
    check_eq(ioctl(fd[1], I_FLUSH, FLUSHR), 0);
    check_errno(read(fd[1], kilo, sizeof kilo), EAGAIN);
    /* And there is room again, for what is told at once. */
    check_eq(write(fd[0], "b", 1), 1);
    check_eq(read(fd[1], kilo, sizeof kilo), 1);
    check_eq(kilo[0], 'b');
}
CASE(lines_hold_back, "putq(9F)") {
    char kilo[1024];
    int fd[2], sent = 0, got = 0;
    pipe_flags(fd, O_NONBLOCK);
    push(fd[1], "lines");
    memset(kilo, '\n', sizeof kilo);
    while (write(fd[0], kilo, sizeof kilo) == sizeof kilo)
        sent++;
    check(sent > 10 && sent < 10000);
    /* Nothing is read, so nothing more goes; then all comes, in its order. */
    check_errno(write(fd[0], kilo, sizeof kilo), EAGAIN);
    while (got < sent * 1024) {
        check_readable(fd[1]);
        int n = read(fd[1], kilo, sizeof kilo);
        check(n > 0);
        got += n;
    }
    unsigned long count = 0;
    check_eq(i_str(fd[1], LINES_GET, &count, 0), 0);
    check_eq(count, sent * 1024);
    check(events(fd[0], POLLOUT, PATIENCE) & POLLOUT);
}

/* --- cloop --- */

static int minor_of(int fd) {
    int minor = 0;
    check_eq(i_str(fd, CLOOP_GET, &minor, sizeof minor), 0);
    return minor;
}

CASE(cloop_alone, "docs/modules.md") {
    int fd = open_stream("/dev/cloop");
    put(fd, "to", "myself", 0);
    check_message(fd, "to", "myself", 0);
}
CASE(cloop_joins, "docs/modules.md") {
    int a = open_stream("/dev/cloop"), b = open_stream("/dev/streams/cloop"), to = minor_of(b);
    check(minor_of(a) != to);
    check_eq(i_str(a, CLOOP_SET, &to, sizeof to), 0);
    check_errno(i_str(b, CLOOP_SET, &to, sizeof to), EINVAL);
    put(a, "a", "to b", 4);
    put_high(b, "b", "to a");
    check_message(b, "a", "to b", 4);
    check_message(a, "b", "to a", -1);
    put(a, NULL, "last", 0);
    close(a);
    check_message(b, NULL, "last", 0);
    check(events(b, POLLIN, PATIENCE) & POLLHUP);
}
CASE(cloop_holds_back, "canputnext(9F)") {
    char kilo[1024] = "";
    int a = open_stream("/dev/cloop"), b = open_stream("/dev/cloop"), to = minor_of(b), sent = 0, got = 0;
    check_eq(i_str(a, CLOOP_SET, &to, sizeof to), 0);
    set_nonblock(a, 1);
    while (write(a, kilo, sizeof kilo) == sizeof kilo)
        sent++;
    check(sent > 4);
    while (got < sent * 1024)
        got += must(read(b, kilo, sizeof kilo));
    check_eq(got, sent * 1024);
    check(events(a, POLLOUT, PATIENCE) & POLLOUT);
}

/* --- cmux --- */

CASE(cmux_over_echo, "docs/modules.md") {
    int upper = open_stream("/dev/cmux"), lower = open_stream("/dev/echo"), id = must(ioctl(upper, I_LINK, lower));
    put(upper, "ctl", "data", 0);
    check_message(upper, "ctl", "data", 0);
    check_errno(ioctl(upper, I_LINK, open_stream("/dev/echo")), EBUSY);
    check_eq(ioctl(upper, I_UNLINK, id), 0);
    put(lower, NULL, "by itself", 0);
    check_message(lower, NULL, "by itself", 0);
    check_errno(ioctl(upper, I_UNLINK, id), EINVAL);
}
CASE(cmux_holds_back, "docs/modules.md") {
    char kilo[1024] = "";
    int upper = open_stream("/dev/cmux"), lower = open_stream("/dev/echo"), sent = 0, got = 0;
    must(ioctl(upper, I_LINK, lower));
    set_nonblock(upper, 1);
    while (write(upper, kilo, sizeof kilo) == sizeof kilo)
        sent++;
    check(sent > 10);
    while (got < sent * 1024) {
        check_readable(upper);
        got += must(read(upper, kilo, sizeof kilo));
    }
}
/* A transport provider in C: what it is asked passes to the one below. */
static int provider(void) {
    int upper = open_stream("/dev/cmux");
    must(ioctl(upper, I_LINK, open_stream("/dev/ticotsord")));
    return upper;
}
static int ask(int fd, const void *primitive, int length, void *answer, int room) {
    struct strbuf c = out_buf(primitive, length), a = in_buf(answer, room);
    int flags = 0;
    check_eq(putmsg(fd, &c, NULL, 0), 0);
    check_readable(fd);
    check(getmsg(fd, &a, NULL, &flags) >= 0);
    return a.len;
}
CASE(cmux_is_a_provider, "TPI 2.0") {
    struct T_info_req info = {.PRIM_type = T_INFO_REQ};
    struct {
        struct T_bind_req request;
        char name[8];
    } bind = {{T_BIND_REQ, 4, sizeof bind.request, 1}, "cmux"};
    union T_primitives *p;
    char answer[512];
    int fd = provider();
    p = (union T_primitives *)answer;
    check(ask(fd, &info, sizeof info, answer, sizeof answer) >= (int)sizeof p->info_ack);
    check_eq(p->type, T_INFO_ACK);
    check_eq(p->info_ack.SERV_type, T_COTS_ORD);
    check_eq(p->info_ack.CURRENT_state, TS_UNBND);
    check(ask(fd, &bind, sizeof bind.request + 4, answer, sizeof answer) > 0);
    check_eq(p->type, T_BIND_ACK);
    check_bytes(answer + p->bind_ack.ADDR_offset, "cmux", 4);
    /* A peer connects, by calls; its indication comes up through the multiplexer. */
    int peer = must(t_open("/dev/ticotsord", O_RDWR, NULL));
    must(t_bind(peer, NULL, NULL));
    struct t_call to = {.addr = {.len = 4, .buf = "cmux"}};
    set_nonblock(peer, 1);
    check_eq(t_connect(peer, &to, NULL), -1);
    check_eq(t_errno, TNODATA);
    check_readable(fd);
    struct strbuf c = in_buf(answer, sizeof answer);
    int flags = 0;
    check(getmsg(fd, &c, NULL, &flags) >= 0);
    check_eq(p->type, T_CONN_IND);
}

/* --- section 9F --- */

CASE(routines, "section 9F") {
    int fd = open_stream("/dev/echo");
    push(fd, "ddicheck");
    check_eq(i_str(fd, DDI_CHECK, NULL, 0), 0);
    await(i_str(fd, DDI_LATER, NULL, 0) == 3);
    put(fd, NULL, "after all that", 0);
    check_message(fd, NULL, "after all that", 0);
    pop(fd);
}

CASES(ENTRY(unknown_name), ENTRY(no_shared_object), ENTRY(no_flag), ENTRY(a_module_is_no_driver), ENTRY(listed),
      ENTRY(devices_of_the_system_stay), ENTRY(copies_that_fail), ENTRY(lines_lose_a_band_only),
      ENTRY(nothing_stays_behind_a_module),
      ENTRY(upper_case_on_a_pipe), ENTRY(upper_case_from_another_process), ENTRY(upper_case_on_an_endpoint),
      ENTRY(lines_are_counted), ENTRY(lines_hold_back), ENTRY(cloop_alone), ENTRY(cloop_joins), ENTRY(cloop_holds_back),
      ENTRY(cmux_over_echo), ENTRY(cmux_holds_back), ENTRY(cmux_is_a_provider), ENTRY(routines))
