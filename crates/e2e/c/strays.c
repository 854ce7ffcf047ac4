/* Bytes that reach the kernel round the library. The kernel alone delivers them; where a direction is in shared memory their place
 * in the stream is unknown, and the reader is told of a reset. What it must not do is wait for ever, or spin. */
#include "common.h"
#include <sys/syscall.h>

/* write(2) that no library sees. */
static long bare_write(int fd, const void *from, size_t n) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_write), "D"(fd), "S"(from), "d"(n) : "rcx", "r11", "memory");
    return r;
}

/* The stream comes whole to the byte that went round, then that byte or a reset. */
static void told(int fd, size_t n) {
    char c;
    recv_noise(fd, 0, n);
    ssize_t r = read(fd, &c, 1);
    say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
}

static void byte_server(int fd) {
    told(fd, 1000);
    tell_peer();
}
static void byte_client(int fd) {
    send_noise(fd, 0, 1000);
    must(bare_write(fd, "x", 1));
    await_peer();
}

static void byte_polled_server(int fd) {
    char c;
    nonblocking(fd, 1);
    wait_for(fd, POLLIN);
    for (;;) {
        ssize_t r = read(fd, &c, 1);
        if (r < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
            continue;
        }
        say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
        break;
    }
    tell_peer();
}
static void byte_polled_client(int fd) {
    must(bare_write(fd, "x", 1));
    await_peer();
}

/* The same when the peer has gone since. */
static void byte_and_end_server(int fd) {
    tell_peer();
    wait_for(fd, POLLRDHUP);
    told(fd, 50000);
}
static void byte_and_end_client(int fd) {
    await_peer();
    send_noise(fd, 0, 50000);
    must(bare_write(fd, "x", 1));
    close(fd);
}

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(byte), CASE(byte_polled), CASE(byte_and_end)};
    alarm(20);
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
