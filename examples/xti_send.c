/* Sends a file to xti_receive, and waits until it is there: X/Open Transport Interface, orderly release.
 *
 *     cc -o xti_send xti_send.c $(pkg-config --cflags --libs headwater)
 *     ./xti_send FILE ticotsord localhost files      # or: tcp otherhost 5001
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "transfer.h"

#include "lookup.h"

static void fail(int fd, const char *what) {
    explain(fd, what);
    exit(1);
}

/* A synchronous t_snd sends all of it, unless an event comes between. */
static void send_all(int fd, const void *data, size_t n) {
    const char *at = data;
    while (n > 0) {
        int sent = t_snd(fd, at, n, 0);
        if (sent < 0)
            fail(fd, "t_snd");
        at += sent;
        n -= sent;
    }
}

/* The receiver has given up, and says why before it is done. */
static int has_answered(int fd) {
    int event = t_look(fd);
    return event == T_DATA || event == T_ORDREL;
}

static void send_file(int fd, int file, uint64_t size) {
    static unsigned char piece[PIECE];
    put_number(piece, size, 8);
    send_all(fd, piece, 8);
    uint64_t done = 0;
    uint32_t crc = 0;
    while (done < size && !has_answered(fd)) {
        ssize_t n = read(file, piece, size - done < PIECE ? size - done : PIECE);
        if (n <= 0) {
            fprintf(stderr, "xti_send: %s\n", n < 0 ? strerror(errno) : "the file has become shorter");
            t_snddis(fd, NULL);
            exit(1);
        }
        crc = crc32(crc, piece, n);
        send_all(fd, piece, n);
        progress(done += n, size);
    }
    put_number(piece, crc, 4);
    if (done == size)
        send_all(fd, piece, 4);
    if (t_sndrel(fd) < 0)
        fail(fd, "t_sndrel");
}

/* The receiver's line, up to its release. */
static void receive_answer(int fd, char *text, size_t room) {
    size_t n = 0;
    int got, flags;
    while (n + 1 < room && (got = t_rcv(fd, text + n, room - 1 - n, &flags)) >= 0)
        n += got;
    text[n] = 0;
    if (t_errno != TLOOK || t_look(fd) != T_ORDREL || t_rcvrel(fd) < 0)
        fail(fd, "no answer of the receiver");
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: xti_send FILE TRANSPORT HOST SERVICE\n");
        return 2;
    }
    int file = open(argv[1], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0 || !S_ISREG(about.st_mode)) {
        fprintf(stderr, "%s: %s\n", argv[1], file < 0 ? strerror(errno) : "no regular file");
        return 1;
    }
    struct netconfig *transport = find_transport(argv[2]);
    struct t_call call = {.addr = *find_address(transport, argv[3], argv[4])};
    struct t_info info;
    int fd = t_open(transport->nc_device, O_RDWR, &info);
    if (fd < 0)
        fail(fd, transport->nc_device);
    if (info.servtype != T_COTS_ORD) {
        fprintf(stderr, "%s: no orderly release\n", argv[2]);
        return 2;
    }
    if (t_bind(fd, NULL, NULL) < 0)
        fail(fd, "t_bind");
    if (t_connect(fd, &call, NULL) < 0)
        fail(fd, argv[4]);
    send_file(fd, file, about.st_size);
    char answer[256];
    receive_answer(fd, answer, sizeof answer);
    t_close(fd);
    if (strcmp(answer, "ok\n") != 0) {
        fprintf(stderr, "xti_send: the receiver says: %s", answer[0] != 0 ? answer : "nothing\n");
        return 1;
    }
    printf("%s: %lld bytes sent\n", argv[1], (long long)about.st_size);
    return 0;
}
