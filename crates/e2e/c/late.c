/* O_NONBLOCK that is set while a call waits, and a connection that goes by the kernel from then on: the call waits on. */
#include "common.h"

static int waits_on;

/* Only the kernel serves what is passed on. */
static void passed(int fd) {
    int over[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    pass_descriptor(over[0], fd);
    close(receive_descriptor(over[1]));
    close(over[0]), close(over[1]);
}

/* SO_RCVLOWAT counts all that the call has got. */
static void *receives(void *flags) {
    char buf[300];
    say_result("received", recv(waits_on, buf, sizeof buf, (int)(intptr_t)flags));
    check(buf, 0, 105);
    return NULL;
}
static void low_water(int fd, int flags, int nonblock, int first) {
    int low = 105;
    waits_on = fd;
    must(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
    pthread_t t = start_sleeper(receives, (void *)(intptr_t)flags);
    if (nonblock)
        nonblocking(fd, 1);
    if (first) {
        together();
        usleep(50000);
        passed(fd);
    } else {
        passed(fd);
        together();
    }
    together();
    usleep(50000);
    together();
    pthread_join(t, NULL);
    tell_peer();
}
static void sends_in_parts(int fd) {
    for (int at = 0; at < 105; at += 35) {
        await_peer();
        send_noise(fd, at, 35);
        tell_peer();
    }
    await_peer();
}
static void low_water_server(int fd) { low_water(fd, 0, 1, 0); }
static void low_water_client(int fd) { sends_in_parts(fd); }
static void low_water_peek_server(int fd) { low_water(fd, MSG_PEEK, 1, 0); }
static void low_water_peek_client(int fd) { sends_in_parts(fd); }
static void low_water_before_server(int fd) { low_water(fd, 0, 0, 1); }
static void low_water_before_client(int fd) { sends_in_parts(fd); }
static void low_water_between_server(int fd) { low_water(fd, 0, 1, 1); }
static void low_water_between_client(int fd) { sends_in_parts(fd); }

/* Two that send more than there is room for; when it comes the second has sent nothing yet. */
enum { MUCH = 1 << 20 };
static void *sends(void *name) {
    static char much[MUCH];
    say_result(name, send(waits_on, much, MUCH, 0));
    return NULL;
}
static void send_server(int fd) {
    int room = 1 << 14;
    waits_on = fd;
    must(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room));
    pthread_t first = start_sleeper(sends, "sent");
    pthread_t second = start_sleeper(sends, "sent");
    nonblocking(fd, 1);
    passed(fd);
    tell_peer();
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    must(shutdown(fd, SHUT_WR));
    await_peer();
}
static void send_client(int fd) {
    static char buf[1 << 16];
    ssize_t n, all = 0;
    await_peer();
    while ((n = must(read(fd, buf, sizeof buf))) > 0)
        all += n;
    say("%zd bytes", all);
    tell_peer();
}

CASES(CASE(low_water), CASE(low_water_peek), CASE(low_water_before), CASE(low_water_between), CASE(send))
