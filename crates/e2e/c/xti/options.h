/* Lists of options, and what t_optmgmt() makes of them. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "endpoints.h"

/* --- lists --- */

struct list {
    unsigned len;
    _Alignas(8) char at[4096];
};
static UNUSED void add(struct list *l, unsigned level, unsigned name, const void *value, unsigned len) {
    struct t_opthdr h = {.len = sizeof h + len, .level = level, .name = name, .status = 0};
    l->len = T_ALIGN(l->len);
    memcpy(l->at + l->len, &h, sizeof h);
    if (len)
        memcpy(l->at + l->len + sizeof h, value, len);
    l->len += h.len;
}
static UNUSED struct list one(unsigned level, unsigned name, const void *value, unsigned len) {
    struct list l = {.len = 0};
    add(&l, level, name, value, len);
    return l;
}
static UNUSED struct list one_int(unsigned level, unsigned name, t_scalar_t value) {
    return one(level, name, &value, sizeof value);
}
static UNUSED struct list header(unsigned level, unsigned name) { return one(level, name, NULL, 0); }

/* An answer: the overall result, and the list. */
struct answer {
    int flags;
    struct netbuf opt;
    _Alignas(8) char at[4096];
};
static UNUSED int ask(int fd, int request, const struct list *l, struct answer *a) {
    struct t_optmgmt req = {.opt = given_bytes(l->at, l->len), .flags = request};
    struct t_optmgmt ret = {.opt = room(a->at, sizeof a->at), .flags = -77};
    int r = t_optmgmt(fd, &req, &ret);
    a->flags = ret.flags, a->opt = ret.opt;
    return r;
}
static UNUSED const char *status_name(int status) {
    static const struct named names[] = {NAMED(T_SUCCESS),  NAMED(T_FAILURE),    NAMED(T_PARTSUCCESS),
                                         NAMED(T_READONLY), NAMED(T_NOTSUPPORT)};
    return name_in(names, sizeof names / sizeof *names, status);
}
/* Option number `i` of an answer; NULL beyond the last. */
static UNUSED struct t_opthdr *nth(struct answer *a, int i) {
    struct t_opthdr *h = T_OPT_FIRSTHDR(&a->opt);
    while (h && i-- > 0)
        h = T_OPT_NEXTHDR(&a->opt, h);
    return h;
}
static UNUSED int count(struct answer *a) {
    int n = 0;
    while (nth(a, n))
        n++;
    return n;
}
static UNUSED struct t_opthdr *find(struct answer *a, unsigned level, unsigned name) {
    for (int i = 0; nth(a, i); i++)
        if (nth(a, i)->level == level && nth(a, i)->name == name)
            return nth(a, i);
    return NULL;
}
/* A value by its length: 1, 4 or 8 bytes. */
static UNUSED long value_of(struct t_opthdr *h) {
    unsigned len = h->len - sizeof *h;
    long wide;
    t_scalar_t narrow;
    if (len == 1)
        return *(unsigned char *)T_OPT_DATA(h);
    if (len == sizeof narrow) {
        memcpy(&narrow, T_OPT_DATA(h), len);
        return narrow;
    }
    if (len != sizeof wide)
        fail("option 0x%x of level 0x%x: a value of %u bytes", h->name, h->level, len);
    memcpy(&wide, T_OPT_DATA(h), len);
    return wide;
}

/* Asks for a single option and expects it back with this status. */
#define ask_one(FD, REQUEST, LIST, ANSWER, STATUS) ask_one_at(__LINE__, FD, REQUEST, LIST, ANSWER, STATUS)
static UNUSED struct t_opthdr *ask_one_at(int line, int fd, int request, struct list l, struct answer *a, int status) {
    struct t_opthdr asked, *h;
    memcpy(&asked, l.at, sizeof asked);
    harness_line = line, harness_at = "t_optmgmt";
    if (ask(fd, request, &l, a) < 0)
        fail("line %d: t_optmgmt of 0x%x/0x%x: expected success, saw %s", line, asked.level, asked.name, fault());
    h = nth(a, 0);
    if (!h || nth(a, 1) || h->level != asked.level || h->name != asked.name)
        fail("line %d: expected one option 0x%x/0x%x back, saw %d", line, asked.level, asked.name, count(a));
    if ((int)h->status != status || a->flags != status)
        fail("line %d: option 0x%x/0x%x: expected %s, saw %s, overall %s", line, asked.level, asked.name,
             status_name(status), status_name(h->status), status_name(a->flags));
    return h;
}
static UNUSED long current(int fd, unsigned level, unsigned name) {
    struct answer a;
    int status = level == T_INET_TCP && name == T_TCP_MAXSEG ? T_READONLY : T_SUCCESS;
    return value_of(ask_one(fd, T_CURRENT, header(level, name), &a, status));
}
static UNUSED long by_default(int fd, unsigned level, unsigned name) {
    struct answer a;
    return value_of(ask_one(fd, T_DEFAULT, header(level, name), &a, T_SUCCESS));
}
static UNUSED void negotiate(int fd, unsigned level, unsigned name, t_scalar_t value) {
    struct answer a;
    ask_one(fd, T_NEGOTIATE, one_int(level, name, value), &a, T_SUCCESS);
}
static UNUSED unsigned own_level(void) { return is_in(TCP) ? T_INET_TCP : is_in(UDP) ? T_INET_UDP : XTI_GENERIC; }

#endif
