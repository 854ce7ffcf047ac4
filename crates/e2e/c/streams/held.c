/* Streams that are closed under calls in the middle of their work: what these look at stays as long as they look. */
#include "harness.h"
#include "../held.h"

enum { COPIES = 3, AGAIN = 1000 };

static char part[100];
static struct strbuf in_part(void) { return (struct strbuf){.maxlen = sizeof part, .buf = part}; }
static void in_read(int fd, int other) { (void)!read(fd, &(char){0}, 1), (void)other; }
static void in_write(int fd, int other) { (void)!write(fd, "x", 1), (void)other; }
static void in_exchange(int fd, int other) {
    char text[20];
    (void)!write(other, "something", 9);
    (void)!read(fd, text, sizeof text);
}
static void in_getmsg(int fd, int other) {
    struct strbuf data = in_part();
    int flags = 0;
    getmsg(fd, NULL, &data, &flags), (void)other;
}
static void in_getpmsg(int fd, int other) {
    struct strbuf data = in_part();
    int band = 0, flags = MSG_ANY;
    getpmsg(fd, NULL, &data, &band, &flags), (void)other;
}
static void in_putmsg(int fd, int other) {
    struct strbuf data = {.len = 4, .buf = "some"};
    putmsg(fd, NULL, &data, 0), (void)other;
}
static void in_putpmsg(int fd, int other) {
    struct strbuf data = {.len = 4, .buf = "some"};
    putpmsg(fd, NULL, &data, 1, MSG_BAND), (void)other;
}
static void in_poll(int fd, int other) { poll(&(struct pollfd){fd, POLLIN | POLLOUT, 0}, 1, 0), (void)other; }
static void in_poll_asleep(int fd, int other) { poll(&(struct pollfd){fd, POLLIN, 0}, 1, 20000), (void)other; }
static void in_nread(int fd, int other) { ioctl(fd, I_NREAD, &(int){0}), (void)other; }
static void in_peek(int fd, int other) {
    struct strpeek peek = {.databuf = in_part()};
    ioctl(fd, I_PEEK, &peek), (void)other;
}
static void in_flush(int fd, int other) { ioctl(fd, I_FLUSH, FLUSHRW), (void)other; }
static void in_canput(int fd, int other) { ioctl(fd, I_CANPUT, 0), (void)other; }

static const struct {
    const char *name;
    void (*call)(int fd, int other);
    int blocks, pushes;
} kinds[] = {
    {"read", in_read, 0, 0},        {"read asleep", in_read, 1, 0},   {"write", in_write, 0, 0},
    {"write asleep", in_write, 1, 0}, {"exchange", in_exchange, 0, 0}, {"exchange, queued", in_exchange, 0, 1},
    {"getmsg", in_getmsg, 0, 0},    {"getmsg asleep", in_getmsg, 1, 0}, {"getmsg, queued", in_getmsg, 0, 1},
    {"getpmsg", in_getpmsg, 0, 0},  {"putmsg", in_putmsg, 0, 0},      {"putmsg asleep", in_putmsg, 1, 0},
    {"putpmsg", in_putpmsg, 0, 0},  {"poll", in_poll, 0, 0},          {"poll asleep", in_poll_asleep, 1, 0},
    {"poll, queued", in_poll, 0, 1}, {"I_NREAD", in_nread, 0, 0},     {"I_PEEK", in_peek, 0, 0},
    {"I_FLUSH", in_flush, 0, 0},    {"I_CANPUT", in_canput, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

CASE(calls, "close(2), streamio(7I)") {
    static int ends[KINDS * COPIES][2];
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < KINDS * COPIES; i++) {
        pipe_flags(ends[i], kinds[i / COPIES].blocks ? 0 : O_NONBLOCK);
        if (kinds[i / COPIES].pushes)
            push(ends[i][0], "nullmod");
    }
    for (int i = 0; i < KINDS * COPIES; i++)
        hold_in(kinds[i / COPIES].name, kinds[i / COPIES].call, ends[i][0], ends[i][1]);
    held_begin();
    for (int i = 0; i < KINDS * COPIES; i++) {
        must(close(ends[i][0]));
        must(close(ends[i][1]));
    }
    for (int i = 0; i < AGAIN; i++) {
        int fd[2];
        char text[8];
        pipe_flags(fd, 0);
        check_eq(write(fd[0], "through", 8), 8);
        check_eq(read(fd[1], text, 8), 8);
        check_str(text, "through");
        must(close(fd[0]));
        must(close(fd[1]));
    }
    held_end();
}

CASES(ENTRY(calls))
