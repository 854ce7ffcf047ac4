/* select in the ways that poll does not know: sets of other lengths, and ends that nobody asked for. */
#include "common.h"
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>

/* ---- select beyond FD_SETSIZE */
static void wide_server(int fd) {
    /* Behind the sets stands what nobody is to touch. */
    struct {
        fd_set in;
        unsigned char behind[4096];
    } sets;
    int open = must(dup2(fd, 300));
    await_bytes(fd, 10);
    static const int numbers[] = {1025, 2000, 4096, 1 << 20, 0x7fffffff};
    for (int i = 0; i < 5; i++) {
        memset(&sets, 0, sizeof sets);
        memset(sets.behind, 0xff, sizeof sets.behind);
        FD_SET(fd, &sets.in);
        FD_SET(open, &sets.in);
        struct timeval t = {5, 0};
        say_result("select", select(numbers[i], &sets.in, NULL, NULL, &t));
        say("%d %d", FD_ISSET(fd, &sets.in), FD_ISSET(open, &sets.in));
        int whole = 1;
        for (unsigned k = 0; k < sizeof sets.behind; k++)
            whole &= sets.behind[k] == 0xff;
        say("behind: %d", whole);
        memset(&sets, 0, sizeof sets);
        memset(sets.behind, 0xff, sizeof sets.behind);
        struct timespec soon = {0, 1000};
        say_result("pselect of none", pselect(numbers[i], &sets.in, NULL, NULL, &soon, NULL));
        say_result("by number", syscall(SYS_pselect6, numbers[i], &sets.in, NULL, NULL, &soon, NULL));
    }
    say_result("select of -1", select(-1, &sets.in, NULL, NULL, NULL));
    memset(&sets, 0, sizeof sets);
    FD_SET(900, &sets.in);
    FD_SET(fd, &sets.in);
    say_result("a number that nobody has", select(1024, &sets.in, NULL, NULL, NULL));
    say("%d %d", FD_ISSET(fd, &sets.in), FD_ISSET(900, &sets.in));
    memset(&sets, 0, sizeof sets);
    FD_SET(40, &sets.in);
    FD_SET(fd, &sets.in);
    say_result("a closed one", select(1024, &sets.in, NULL, NULL, NULL));
    say("%d %d", FD_ISSET(fd, &sets.in), FD_ISSET(40, &sets.in));
    /* High ones, in a set of the program's own making. */
    struct rlimit most;
    must(getrlimit(RLIMIT_NOFILE, &most));
    if (most.rlim_max < 4000)
        fail("a limit of 4000 descriptors is needed");
    most.rlim_cur = 4000;
    must(setrlimit(RLIMIT_NOFILE, &most));
    int high = must(fcntl(fd, F_DUPFD, 3500));
    unsigned long bits[4096 / 64] = {0};
    bits[high / 64] |= 1ul << high % 64;
    struct timeval t = {5, 0};
    say_result("high", select(high + 1, (fd_set *)bits, NULL, NULL, &t));
    say("%d", (int)(bits[high / 64] >> high % 64 & 1));
    recv_noise(fd, 0, 10);
    t = (struct timeval){0, 1000};
    say_result("empty", select(high + 1, (fd_set *)bits, NULL, NULL, &t));
    say("%d", (int)(bits[high / 64] >> high % 64 & 1));
    tell_peer();
    await_peer();
}
static void wide_client(int fd) {
    send_noise(fd, 0, 10);
    await_peer();
    tell_peer();
}

/* ---- select on exceptions alone, at the end of the stream */
static void exceptions_server(int fd) {
    await_peer();
    wait_for(fd, POLLRDHUP);
    fd_set bad;
    FD_ZERO(&bad);
    FD_SET(fd, &bad);
    struct timeval t = {0, 100000};
    uint64_t begun = now();
    say_result("half closed", select(fd + 1, NULL, NULL, &bad, &t));
    must(shutdown(fd, SHUT_WR));
    usleep(20000);
    FD_SET(fd, &bad);
    t = (struct timeval){0, 100000};
    say_result("closed", select(fd + 1, NULL, NULL, &bad, &t));
    say("waited: %d", now() - begun > 190 * MS);
}
static void exceptions_client(int fd) {
    must(shutdown(fd, SHUT_WR));
    tell_peer();
    char c;
    say_result("end", recv(fd, &c, 1, 0));
}

/* ---- a number closed by another thread, which ends neither wait */
static volatile int waiter;
static void *closes(void *fd) {
    await_sleep(&waiter);
    must(close(*(int *)fd));
    return NULL;
}
/* How both calls end, and whether that took the time they had. */
static void wait_closed(int fd, int by_poll) {
    pthread_t t;
    struct pollfd p = {fd, POLLIN, 0};
    struct timeval limit = {0, 200000};
    fd_set in;
    uint64_t begun = now();
    FD_ZERO(&in);
    FD_SET(fd, &in);
    waiter = getpid();
    pthread_create(&t, NULL, closes, &fd);
    int r = by_poll ? poll(&p, 1, 200) : select(fd + 1, &in, NULL, NULL, &limit);
    say_result(by_poll ? "poll" : "select", r);
    say("waited: %d", now() - begun > 190 * MS);
    pthread_join(t, NULL);
}
static void closed_server(int fd) {
    for (int i = 0; i < 4; i++)
        wait_closed(must(dup(fd)), i & 1);
    wait_closed(must(dup(fd)), 1);
    wait_closed(fd, 0);
    tell_peer();
}
static void closed_client(int fd) {
    (void)fd;
    await_peer();
}

CASES(CASE(wide), CASE(exceptions), CASE(closed))
