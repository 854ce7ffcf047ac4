/* Receives one file from xti_send and checks size and checksum: X/Open Transport Interface, orderly release. The file
 * appears under its name when it is complete.
 *
 *     cc -o xti_receive xti_receive.c $(pkg-config --cflags --libs headwater)
 *     ./xti_receive FILE ticotsord files             # or: tcp 5001
 */
#include <fcntl.h>

#include "transfer.h"

#include "lookup.h"

/* What has come so far. */
static char part[4096];

static void fail(int fd, const char *what) {
    explain(fd, what);
    unlink(part);
    exit(1);
}

/* Listens for one connection, and accepts it on the same endpoint. */
static int wait_for_sender(struct netconfig *transport, struct netbuf *address) {
    struct t_info info;
    int fd = t_open(transport->nc_device, O_RDWR, &info);
    if (fd < 0)
        fail(fd, transport->nc_device);
    if (info.servtype != T_COTS_ORD) {
        fprintf(stderr, "%s: no orderly release\n", transport->nc_netid);
        exit(2);
    }
    struct t_bind wanted = {.addr = *address, .qlen = 1};
    struct t_bind *bound = t_alloc(fd, T_BIND, T_ADDR);
    struct t_call *call = t_alloc(fd, T_CALL, T_ADDR);
    if (bound == NULL || call == NULL)
        fail(fd, "t_alloc");
    if (t_bind(fd, &wanted, bound) < 0)
        fail(fd, "t_bind");
    print_address("xti_receive: listening at", transport, &bound->addr);
    if (t_listen(fd, call) < 0)
        fail(fd, "t_listen");
    if (t_accept(fd, fd, call) < 0)
        fail(fd, "t_accept");
    t_free(bound, T_BIND);
    t_free(call, T_CALL);
    return fd;
}

/* At most n bytes; fewer only at the sender's release. */
static size_t receive(int fd, unsigned char *into, size_t n) {
    size_t got = 0;
    int flags;
    while (got < n) {
        int some = t_rcv(fd, into + got, n - got, &flags);
        if (some < 0) {
            if (t_errno == TLOOK && t_look(fd) == T_ORDREL)
                break;
            fail(fd, "t_rcv");
        }
        got += some;
    }
    return got;
}

/* NULL, or what is wrong. */
static const char *receive_file(int fd, int file, uint64_t *size) {
    static unsigned char piece[PIECE];
    if (receive(fd, piece, 8) < 8)
        return "no file has come";
    *size = number(piece, 8);
    uint64_t done = 0;
    uint32_t crc = 0;
    while (done < *size) {
        size_t n = receive(fd, piece, *size - done < PIECE ? *size - done : PIECE);
        if (n == 0)
            return "the file has ended too early";
        crc = crc32(crc, piece, n);
        for (size_t at = 0; at < n;) {
            ssize_t written = write(file, piece + at, n - at);
            if (written < 0)
                return strerror(errno);
            at += written;
        }
        progress(done += n, *size);
    }
    if (receive(fd, piece, 4) < 4 || number(piece, 4) != crc)
        return "wrong checksum";
    return fsync(file) < 0 ? strerror(errno) : NULL;
}

/* Takes and drops what still comes, answers, and ends the connection. */
static void answer(int fd, const char *wrong) {
    static unsigned char rest[PIECE];
    char line[256];
    if (wrong == NULL)
        wrong = "ok";
    if (t_snd(fd, line, snprintf(line, sizeof line, "%s\n", wrong), 0) < 0)
        fail(fd, "t_snd");
    while (receive(fd, rest, sizeof rest) == sizeof rest)
        ;
    if (t_rcvrel(fd) < 0 || t_sndrel(fd) < 0)
        fail(fd, "t_sndrel");
    t_close(fd);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: xti_receive FILE TRANSPORT SERVICE\n");
        return 2;
    }
    struct netconfig *transport = find_transport(argv[2]);
    struct netbuf *address = find_address(transport, HOST_ANY, argv[3]);
    snprintf(part, sizeof part, "%s.part", argv[1]);
    int file = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) {
        perror(part);
        return 1;
    }
    int fd = wait_for_sender(transport, address);
    uint64_t size = 0;
    const char *wrong = receive_file(fd, file, &size);
    if (wrong == NULL && rename(part, argv[1]) < 0)
        wrong = strerror(errno);
    answer(fd, wrong);
    if (wrong != NULL) {
        unlink(part);
        fprintf(stderr, "%s: %s\n", argv[1], wrong);
        return 1;
    }
    printf("%s: %llu bytes received\n", argv[1], (unsigned long long)size);
    return 0;
}
