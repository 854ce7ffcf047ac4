/* liburing as a module that is loaded later has it: the library's names are no other object's. Built twice: as the module
 * (-DMODULE), and as the program that loads it, which MODULE in the environment names. */
#include "common.h"

#ifdef MODULE
#include "ring.h"

static int finish(struct io_uring *ring) {
    struct io_uring_cqe *cqe;
    must(io_uring_submit(ring));
    must(io_uring_wait_cqe(ring, &cqe));
    int r = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    return r;
}

void answer(int fd, int rounds) {
    struct io_uring ring;
    char buf[100];
    must(init_ring(8, &ring));
    for (int i = 0; i < rounds; i++) {
        io_uring_prep_recv(io_uring_get_sqe(&ring), fd, buf, sizeof buf, MSG_WAITALL);
        int r = must(finish(&ring));
        io_uring_prep_send(io_uring_get_sqe(&ring), fd, buf, r, 0);
        must(finish(&ring));
    }
    io_uring_queue_exit(&ring);
}

#else
#include <dlfcn.h>

static void loaded_server(int fd) {
    void *module = dlopen(getenv("MODULE"), RTLD_NOW | RTLD_LOCAL);
    void (*answer)(int, int) = module ? (void (*)(int, int))dlsym(module, "answer") : NULL;
    if (!answer)
        fail("the module");
    answer(fd, 100);
    say("answered");
}

static void loaded_client(int fd) {
    for (int i = 0; i < 100; i++) {
        send_noise(fd, i, 100);
        recv_noise(fd, i, 100);
    }
}

CASES(CASE(loaded))
#endif
