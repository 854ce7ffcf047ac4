/* Messages on a pipe, as the System V manual pages have them: bands, high priority, a pushed module, poll.
 *
 *     cc -o messages messages.c $(pkg-config --cflags --libs headwater)
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stropts.h>
#include <unistd.h>

static void must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void send_text(int fd, const char *text, int band) {
    struct strbuf data = {.len = strlen(text), .buf = (char *)text};
    must(putpmsg(fd, NULL, &data, band, MSG_BAND), "putpmsg");
}

/* Takes whatever message is first, and shows it. */
static void show_next(int fd) {
    char control_room[64], data_room[64];
    struct strbuf control = {.maxlen = sizeof control_room, .buf = control_room};
    struct strbuf data = {.maxlen = sizeof data_room, .buf = data_room};
    int band = 0, flags = MSG_ANY;
    must(getpmsg(fd, &control, &data, &band, &flags), "getpmsg");
    printf("%s, band %d:", flags == MSG_HIPRI ? "high priority" : "ordinary", band);
    if (control.len >= 0)
        printf(" control \"%.*s\"", control.len, control_room);
    if (data.len >= 0)
        printf(" data \"%.*s\"", data.len, data_room);
    printf("\n");
}

int main(void) {
    int fd[2];
    must(streams_pipe(fd), "streams_pipe");
    printf("a stream: %s\n", isastream(fd[0]) == 1 ? "yes" : "no");

    /* Written in this order, read by priority. */
    send_text(fd[0], "ordinary", 0);
    send_text(fd[0], "in band 2", 2);
    send_text(fd[0], "in band 1", 1);
    struct strbuf control = {.len = 5, .buf = "alarm"};
    struct strbuf data = {.len = 4, .buf = "fire"};
    must(putmsg(fd[0], &control, &data, RS_HIPRI), "putmsg");

    struct pollfd set = {.fd = fd[1], .events = POLLIN | POLLRDNORM | POLLRDBAND | POLLPRI};
    must(poll(&set, 1, -1), "poll");
    printf("poll: high priority %s\n", set.revents & POLLPRI ? "yes" : "no");

    int waiting, first;
    must(waiting = ioctl(fd[1], I_NREAD, &first), "I_NREAD");
    printf("waiting: %d messages, the first has %d bytes of data\n", waiting, first);
    for (int i = 0; i < waiting; i++)
        show_next(fd[1]);

    /* A module between: what is written goes through it. */
    must(ioctl(fd[1], I_PUSH, "bufmod"), "I_PUSH");
    char name[FMNAMESZ + 1];
    must(ioctl(fd[1], I_LOOK, name), "I_LOOK");
    printf("on top: %s\n", name);
    send_text(fd[0], "through a module", 0);
    show_next(fd[1]);
    must(ioctl(fd[1], I_POP, 0), "I_POP");
    printf("a second I_POP: %s\n", ioctl(fd[1], I_POP, 0) < 0 ? strerror(errno) : "works");

    /* Both directions carry messages; the end is read as 0 bytes. */
    must(write(fd[1], "bytes too", 9), "write");
    close(fd[1]);
    char bytes[16];
    ssize_t n;
    must(n = read(fd[0], bytes, sizeof bytes), "read");
    printf("read: \"%.*s\"\n", (int)n, bytes);
    must(n = read(fd[0], bytes, sizeof bytes), "read");
    printf("then: %zd bytes\n", n);
    return 0;
}
