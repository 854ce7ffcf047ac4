/* The peer of most cases, and what they do with it. */
#pragma once
#include "common.h"

/* Echoes until the end; how much depends on time in some cases. */
UNUSED static uint64_t echo_some(int fd) {
    char buf[4096];
    uint64_t n = 0;
    ssize_t r;
    while ((r = read(fd, buf, sizeof buf)) > 0) {
        send_all(fd, buf, r);
        n += r;
    }
    say_result("end", r);
    return n;
}

UNUSED static void echo(int fd) { say("echoed %llu", (unsigned long long)echo_some(fd)); }

#define WITH_ECHO(name)                                                                                                \
    static void name##_client(int fd) { echo(fd); }

UNUSED static uint64_t sent;

UNUSED static void exchange(int fd, int rounds) {
    for (int i = 0; i < rounds; i++) {
        send_noise(fd, sent, 777);
        recv_noise(fd, sent, 777);
        sent += 777;
    }
}

/* The peer of an image that finds 19000 bytes unread. */
UNUSED static void left_unread(int fd) {
    send_noise(fd, 0, 20000);
    tell_peer();
    recv_noise(fd, 1000, 19000);
    send_noise(fd, 20000, 5000);
    recv_noise(fd, 20000, 5000);
    shutdown(fd, SHUT_WR);
    char c;
    say_result("end", read(fd, &c, 1));
}

UNUSED static int ended_well(pid_t pid) {
    int status = -1;
    must(waitpid(pid, &status, 0));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
