/* Threads that a signal's handler holds inside calls, while what the calls are for is closed, given up, and made a thousand times
 * anew. For programs of all suites: it asks for no more than must() of them.
 *
 *     hold_in("recv", recv_call, fd, 0);  ...      some threads for each, over and over in the call, or asleep in it
 *     held_begin();                                each is in its handler now
 *     ... close, make anew ...
 *     held_end();                                  the calls go on ten seconds after that, with whatever they find
 */
#pragma once
#include "thread_state.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HELD_MOST = 200, HELD_SECONDS = 10, HELD_CALLS = 200 };

struct held {
    const char *name;
    void (*call)(int fd, int other);
    int fd, other;
    pthread_t thread;
    volatile int tid, calls;
};
static struct held held_all[HELD_MOST];
static int held_count;
static struct timespec held_since;
static int held_inside, held_let_go;
static __thread volatile int held_over;

static void held_handler(int n) {
    int saved = errno;
    (void)n;
    __atomic_fetch_add(&held_inside, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&held_let_go, __ATOMIC_SEQ_CST))
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    held_over = 1;
    errno = saved;
}

static void *held_run(void *p) {
    struct held *h = p;
    h->tid = syscall(SYS_gettid);
    while (!held_over) {
        h->call(h->fd, h->other);
        h->calls++;
    }
    return NULL;
}

/* A thread makes this call over and over, which may wait. */
static void hold_in(const char *name, void (*call)(int, int), int fd, int other) {
    struct held *h = &held_all[held_count++];
    *h = (struct held){.name = name, .call = call, .fd = fd, .other = other};
    errno = pthread_create(&h->thread, NULL, held_run, h);
    must(errno ? -1 : 0);
    while (h->calls < HELD_CALLS && !(h->tid && state_of(h->tid) == 'S'))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void held_begin(void) {
    struct sigaction sa = {.sa_handler = held_handler, .sa_flags = SA_RESTART};
    must(sigaction(SIGUSR1, &sa, NULL));
    for (int i = 0; i < held_count; i++)
        pthread_kill(held_all[i].thread, SIGUSR1);
    while (__atomic_load_n(&held_inside, __ATOMIC_SEQ_CST) < held_count)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &held_since);
}

static void held_end(void) {
    struct timespec until = held_since;
    until.tv_sec += HELD_SECONDS;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    __atomic_store_n(&held_let_go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < held_count; i++)
        pthread_join(held_all[i].thread, NULL);
}
