/* What xti_send and xti_receive have in common. A file travels as its size (8 bytes, the highest first), its bytes, and
 * their CRC-32 (4 bytes); then the sender releases its direction, and the receiver answers in the other one: a line, which
 * is "ok" or says what is wrong. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xti.h>

#define PIECE 65536

/* Says what happened to an endpoint: an error, or the peer's disconnection with its reason. */
static inline void explain(int fd, const char *what) {
    struct t_discon why = {.reason = 0};
    if (t_errno == TLOOK && t_look(fd) == T_DISCONNECT && t_rcvdis(fd, &why) == 0)
        fprintf(stderr, "%s: disconnected: %s\n", what, strerror(why.reason));
    else
        t_error(what);
}

static inline void put_number(unsigned char *to, uint64_t n, int bytes) {
    while (bytes-- > 0) {
        to[bytes] = (unsigned char)n;
        n >>= 8;
    }
}

static inline uint64_t number(const unsigned char *from, int bytes) {
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++)
        n = n << 8 | from[i];
    return n;
}

/* Of what `crc` is for (0 at first) and n bytes more. */
static inline uint32_t crc32(uint32_t crc, const unsigned char *data, size_t n) {
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
            table[i] = c;
        }
    crc = ~crc;
    while (n-- > 0)
        crc = crc >> 8 ^ table[(crc ^ *data++) & 0xff];
    return ~crc;
}

/* On standard error, once a second; nothing about what takes less than that. `done` == `all`: the last one. */
static inline void progress(uint64_t done, uint64_t all) {
    static time_t shown;
    static int lines;
    time_t now = time(NULL);
    if (shown == 0)
        shown = now;
    if (done < all ? now <= shown + (lines == 0) : lines == 0)
        return;
    shown = now;
    lines++;
    const char *end = isatty(STDERR_FILENO) && done < all ? "\r" : "\n";
    fprintf(stderr, "%.1f of %.1f MB, %.0f %%%s", done / 1e6, all / 1e6, 100.0 * done / all, end);
}

#endif
