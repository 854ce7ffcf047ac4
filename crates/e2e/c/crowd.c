/* What connections take: crowd PORT COUNT. Opens COUNT connections to a server that echoes, and stops after each stage, which it
 * names, until SIGUSR1: before the first, when they have exchanged little, when they have exchanged much at once, when all but
 * one are closed. */
#include "common.h"

enum { PIECE = 16384, MUCH = 1 << 20 };

static void stage(const char *name) {
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    say("%s", name);
    must(sigwaitinfo(&go, NULL));
}

/* Both directions at once, as much as they take. */
static void exchange_much(int fd) {
    static unsigned char buf[PIECE];
    uint64_t sent = 0, got = 0;
    while (got < MUCH) {
        int wants = sent < MUCH ? POLLIN | POLLOUT : POLLIN, events = wait_for(fd, wants);
        if (events & POLLOUT) {
            size_t n = MUCH - sent < PIECE ? MUCH - sent : PIECE;
            fill(buf, sent, n);
            ssize_t w = send(fd, buf, n, MSG_DONTWAIT);
            sent += w < 0 && errno == EAGAIN ? 0 : must(w);
        }
        if (events & POLLIN) {
            ssize_t r = recv(fd, buf, PIECE, MSG_DONTWAIT);
            if (r < 0 && errno == EAGAIN)
                continue;
            check(buf, got, must(r));
            got += r;
        }
    }
}

int main(int argc, char **argv) {
    static int fds[4096];
    if (argc != 3)
        return 2;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int count = atoi(argv[2]);
    sigset_t go;
    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, NULL);
    fds[0] = connect_to(&at);
    ping_pong(fds[0], 1, WARM);
    stage("start");
    for (int i = 1; i <= count; i++)
        fds[i] = connect_to(&at);
    for (int round = 0; round < 50; round++)
        for (int i = 1; i <= count; i++) {
            send_noise(fds[i], round, 64);
            recv_noise(fds[i], round, 64);
        }
    stage("idle");
    for (int i = 1; i <= count; i++)
        exchange_much(fds[i]);
    stage("busy");
    for (int i = 1; i <= count; i++)
        close(fds[i]);
    for (;;) {
        struct timespec moment = {0, 10 * MS};
        ping_pong(fds[0], 1, 1);
        if (sigtimedwait(&go, NULL, &moment) == SIGUSR1)
            break;
        if (count)
            say("closed"), count = 0;
    }
    return 0;
}
