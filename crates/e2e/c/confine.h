/* Filters by which a process forbids itself system calls, and the peer of one that does. A call too many kills the process. */
#pragma once
#include "echo.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { MANY = 5000 };

/* A system call that passes through no function. */
UNUSED static long inline_call(long n, long a, long b, long c) {
    long r;
    register long none __asm__("r10") = 0;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(none) : "rcx", "r11", "memory");
    return r;
}

UNUSED static struct sock_fprog filter_of(const int *calls) {
    static struct sock_filter f[40];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; *calls >= 0; calls++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *calls, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return (struct sock_fprog){n, f};
}

#define LIST(...) ((const int[]){__VA_ARGS__, SYS_exit_group, -1})
#define ALLOW(...)                                                                                                     \
    do {                                                                                                               \
        struct sock_fprog p_ = filter_of(LIST(__VA_ARGS__));                                                           \
        must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));                                                                  \
        must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p_));                                                         \
    } while (0)

/* Sends what the other end finds unread when it confines itself, then answers, until the end. */
UNUSED static void feed(int fd) {
    send_noise(fd, 0, MANY);
    tell_peer();
    echo(fd);
}

#define FED(name)                                                                                                      \
    static void name##_server(int fd) { feed(fd); }
