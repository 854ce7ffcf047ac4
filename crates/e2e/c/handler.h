/* Calls in a signal handler that runs on a small stack of its own, and that may have interrupted malloc or free. For programs of
 * all suites: it asks for no more than must() and fail() of them. */
#pragma once
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program's malloc knows when it must not be entered. */
static volatile int in_handler;
static volatile const char *doing = "";
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
static void entered(const char *what) {
    if (!in_handler)
        return;
    char line[200];
    in_handler = 0;
    int n = snprintf(line, sizeof line, "%s in a handler, by %s\n", what, doing);
    _exit(write(2, line, n) != n ? 3 : 4);
}
void *malloc(size_t n) {
    entered("malloc");
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t k) {
    entered("calloc");
    return __libc_calloc(n, k);
}
void *realloc(void *p, size_t n) {
    entered("realloc");
    return __libc_realloc(p, n);
}
void free(void *p) {
    entered("free");
    __libc_free(p);
}

static long result;

/* The stack: painted, so that what was used of it is seen, with a page below that faults. */
enum { PAGE = 4096, ROOM = 1 << 18 };
static char *stack;
static size_t used;

static void (*volatile action)(void);
static void handler(int n) {
    (void)n;
    char *here = __builtin_frame_address(0);
    memset(stack, 0x5a, here - 1024 - stack);
    in_handler = 1;
    action();
    in_handler = 0;
    char *low = stack;
    while (low < here && *low == 0x5a)
        low++;
    used = here - low;
}

static const char *deepest;
static size_t most;
UNUSED static void in_a_handler(const char *name, void (*f)(void)) {
    doing = name;
    action = f;
    raise(SIGUSR1);
    if (getenv("DEPTHS"))
        fprintf(stderr, "%6zu %s\n", used, name);
    if (used > most)
        most = used, deepest = name;
}
#define DO(call)                                                                                                       \
    ({                                                                                                                 \
        void f_(void) { result = (call); }                                                                             \
        in_a_handler(#call, f_);                                                                                       \
        result;                                                                                                        \
    })
/* In a function that a handler runs: for those who look for what is called there. */
#define INSIDE(call) (call)
#define WORKS(call) (DO(call) < 0 ? fail(#call) : (void)0)

/* STACK in the environment: room for a library that was built without optimisation. */
UNUSED static void take_room(size_t room) {
    if (getenv("STACK"))
        room = atoi(getenv("STACK"));
    stack = mmap(NULL, PAGE + ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(stack != MAP_FAILED);
    must(mprotect(stack, PAGE, PROT_NONE));
    stack += PAGE;
    stack_t s = {.ss_sp = stack, .ss_size = room};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    must(sigaltstack(&s, NULL));
    must(sigaction(SIGUSR1, &a, NULL));
}

/* With DEPTHS in the environment each call's depth is told. */
UNUSED static void tell_deepest(void) {
    if (getenv("DEPTHS"))
        fprintf(stderr, "%zu bytes in %s\n", most, deepest);
}

/* This program from its start, with other arguments; its status. */
UNUSED static int run_fresh(const char *what, const char *room) {
    pid_t pid = must(fork());
    if (pid == 0) {
        execl("/proc/self/exe", "handlers", what, room, NULL);
        fail("execl");
    }
    int status;
    must(waitpid(pid, &status, 0));
    return status;
}
