/* Handlers for signals, and how many came. */
#pragma once
#include "common.h"

static volatile sig_atomic_t signals;
UNUSED static void count(int n) {
    (void)n;
    signals++;
}

UNUSED static void handle(int n, void (*handler)(int), int flags) {
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    must(sigaction(n, &a, NULL));
}
