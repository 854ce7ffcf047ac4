/* System calls that fail from some moment on, as where something has run out: by a filter (seccomp(2)) of which the library knows nothing.
 * Children have it too, and programs that they execute. */
#ifndef REFUSE_H
#define REFUSE_H

#include "harness.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static UNUSED long inline_call(long nr, long a, long b, long c) {
    long result;
    register long d __asm__("r10") = 0, e __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e) : "rcx", "r11", "memory");
    return result;
}

/* Those whose argument `which` (from 0) is `value`; -1: all. */
static UNUSED void refuse_some(int nr, int which, unsigned value, int error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, which < 0 ? 0 : offsetof(struct seccomp_data, args) + which * 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, which < 0 ? (unsigned)nr : value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    check_eq(inline_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0), 0);
    check_eq(inline_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program), 0);
}
static UNUSED void refuse(int nr, int error) { refuse_some(nr, -1, 0, error); }

/* --- memory: this process maps nothing more, until it may again --- */

static struct rlimit fed;
/* The stack is mapped before, since it could not grow. */
static UNUSED void starve(void) {
    volatile char stack[512 << 10];
    for (size_t i = 0; i < sizeof stack; i += 4096)
        stack[i] = 0;
    check_eq(getrlimit(RLIMIT_AS, &fed), 0);
    struct rlimit none = {4096, fed.rlim_max};
    check_eq(setrlimit(RLIMIT_AS, &none), 0);
}
static UNUSED void feed(void) { check_eq(setrlimit(RLIMIT_AS, &fed), 0); }

#endif
