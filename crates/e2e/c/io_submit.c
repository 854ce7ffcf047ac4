/* io_submit() as older releases of libaio have it: a system call that passes through no function. */
#include <sys/syscall.h>

int io_submit(void *context, long n, void **requests) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_io_submit), "D"(context), "S"(n), "d"(requests) : "rcx", "r11", "memory");
    return r;
}
