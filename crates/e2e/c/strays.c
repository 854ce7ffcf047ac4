/* Bytes that reach the kernel round the library. The kernel alone delivers them; where a direction is in shared memory their place
 * in the stream is unknown, and the reader is told of a reset. What it must not do is wait for ever, or spin. */
#include "echo.h"
#include <sys/syscall.h>

/* write(2) that no library sees. */
static long bare_write(int fd, const void *from, size_t n) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_write), "D"(fd), "S"(from), "d"(n) : "rcx", "r11", "memory");
    return r;
}

/* The stream comes whole to the byte that went round, then that byte or a reset. */
static void told(int fd, size_t n) {
    char c;
    recv_noise(fd, 0, n);
    ssize_t r = read(fd, &c, 1);
    say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
}

static void byte_server(int fd) {
    told(fd, 1000);
    tell_peer();
}
static void byte_client(int fd) {
    send_noise(fd, 0, 1000);
    must(bare_write(fd, "x", 1));
    await_peer();
}

static void byte_polled_server(int fd) {
    char c;
    nonblocking(fd, 1);
    wait_for(fd, POLLIN);
    for (;;) {
        ssize_t r = read(fd, &c, 1);
        if (r < 0 && errno == EAGAIN) {
            wait_for(fd, POLLIN);
            continue;
        }
        say("told: %d", (r == 1 && c == 'x') || (r < 0 && errno == ECONNRESET));
        break;
    }
    tell_peer();
}
static void byte_polled_client(int fd) {
    must(bare_write(fd, "x", 1));
    await_peer();
}

/* The same when the peer has gone since. */
static void byte_and_end_server(int fd) {
    tell_peer();
    wait_for(fd, POLLRDHUP);
    told(fd, 50000);
}
static void byte_and_end_client(int fd) {
    await_peer();
    send_noise(fd, 0, 50000);
    must(bare_write(fd, "x", 1));
    close(fd);
}

static void bare_close(int fd) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
    (void)r;
}

/* A number that was a connection's is a file's now. */
static void use_file(int number, int fd) {
    char word[6] = "";
    say("the same number: %d", fd == number);
    say_result("write", write(fd, "words", 5));
    say_result("pread", pread(fd, word, 5, 0));
    must(lseek(fd, 1, SEEK_SET));
    say_result("read", read(fd, word, 4));
    say("%s", word);
    say_result("close", close(fd));
}
static int fresh_file(void) { return must(open(".", O_TMPFILE | O_RDWR, 0600)); }

/* The C library closes what it was given by fdopen(). */
static void closed_by_stdio_server(int fd) {
    char line[100] = "";
    int copy = must(dup(fd));
    FILE *f = fdopen(copy, "r+");
    must(fputs("a line\n", f));
    must(fflush(f));
    say("%s", fgets(line, sizeof line, f));
    say_result("fileno", fileno(f) == copy);
    must(fclose(f));
    use_file(copy, fresh_file());
    exchange(fd, 20);
}
WITH_ECHO(closed_by_stdio)

/* A duplicate is closed by a system call that the library does not see. */
static void closed_round_server(int fd) {
    for (int i = 0; i < 5; i++) {
        int copy = must(dup(fd)), p[2];
        bare_close(copy);
        switch (i) {
        case 0:
            use_file(copy, fresh_file());
            break;
        case 1:
            use_file(copy, must(memfd_create("file", 0)));
            break;
        case 2:
            must(pipe(p));
            must(write(p[1], "words", 5));
            char word[6] = "";
            must(read(p[0], word, 5));
            say("%d %s", p[0] == copy, word);
            close(p[0]), close(p[1]);
            break;
        case 3:
            must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
            must(write(p[1], "words", 5));
            say("%d %zd", p[0] == copy, read(p[0], word, 5));
            close(p[0]), close(p[1]);
            break;
        case 4: {
            int again = must(dup(1));
            say("%d", again == copy);
            say_result("standard output is no socket", recv(again, word, 5, 0));
            close(again);
        }
        }
        exchange(fd, 20);
    }
}
WITH_ECHO(closed_round)

/* So is the last number, of a connection in shared memory and of one that is not there yet. */
static void closed_round_last_server(int fd) {
    struct sockaddr_in at;
    int l = listen_somewhere(&at);
    send_all(fd, &at, sizeof at);
    int s = must(accept(l, NULL, NULL));
    char c;
    must(read(s, &c, 1));
    bare_close(s);
    use_file(s, fresh_file());
    bare_close(fd);
    use_file(fd, fresh_file());
    tell_peer();
}
static void closed_round_last_client(int fd) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    int s = connect_to(&at);
    must(write(s, "c", 1));
    char c;
    say_result("end of the cold one", read(s, &c, 1));
    say_result("end of the warm one", read(fd, &c, 1));
    await_peer();
}

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(byte), CASE(byte_polled), CASE(byte_and_end), CASE(closed_by_stdio),
                                            CASE(closed_round), CASE(closed_round_last)};
    alarm(20);
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
