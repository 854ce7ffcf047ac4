/* <tiuser.h> as programs of the eighties use it: declarations of their own, and buffers that are indexed. */
#include "../streams/harness.h"
#include <tiuser.h>

extern int t_errno;
extern char *t_errlist[];
extern int t_nerr;
extern char *t_alloc();

CASE(tli_error_list, "SVR4 <tiuser.h> t_errlist") {
    check_eq(t_nerr, TPROTO + 1);
    for (int i = 0; i < t_nerr; i++)
        check_str(t_errlist[i], t_strerror(i));
}
CASE(tli_buffers, "SVR4 <tiuser.h> struct netbuf") {
    char text[] = "x";
    struct netbuf buf = {.maxlen = 1, .len = 1, .buf = text};
    buf.buf[0] = 'y';
    check_str(text, "y");
}
CASE(tli_errno, "SVR4 <tiuser.h> t_errno") {
    t_errno = TLOOK;
    check_eq(t_errno, TLOOK);
    check_eq(T_ERROR, 0x20);
}

CASES(ENTRY(tli_error_list), ENTRY(tli_buffers), ENTRY(tli_errno))
