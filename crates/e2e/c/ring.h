/* Rings of io_uring. What they lock counts against RLIMIT_MEMLOCK of all that their user runs, and the kernel gives it back some time
 * behind close(2): where there is too little of it, these wait. */
#ifndef RING_H
#define RING_H

#include <errno.h>
#include <liburing.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One that is refused is refused for want of memory that long at most. */
static inline int is_refused_yet(int error, int *tried) { return error == ENOMEM && (*tried)++ < 10000 && usleep(1000) == 0; }

/* As io_uring_setup(2). */
static inline int setup_ring(unsigned entries, struct io_uring_params *p) {
    int r, tried = 0;
    do
        r = syscall(SYS_io_uring_setup, entries, p);
    while (r < 0 && is_refused_yet(errno, &tried));
    return r;
}

/* As io_uring_queue_init(3). */
static inline int init_ring(unsigned entries, struct io_uring *ring) {
    int r, tried = 0;
    do
        r = io_uring_queue_init(entries, ring, 0);
    while (r < 0 && is_refused_yet(-r, &tried));
    return r;
}

#endif
