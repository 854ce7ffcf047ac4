/* Many connections: soak server PORT | soak client PORT FIRST COUNT CONCURRENT SERVER-PID.
 *
 * The server echoes, from one epoll set, until SIGTERM. The client makes COUNT connections in sequence, each with another
 * pattern of exchanges, then CONCURRENT ones at once, and says how many descriptors and segments it and the server have
 * after half of the sequence and at the end. */
#include "serve.h"
#include <dirent.h>

static int descriptors(int pid) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int segments(int pid) {
    char line[512];
    int n = 0;
    snprintf(line, sizeof line, "/proc/%d/maps", pid);
    FILE *f = fopen(line, "r");
    while (fgets(line, sizeof line, f))
        n += strstr(line, "memfd:") != NULL;
    fclose(f);
    return n;
}

static void report(const char *when, int server) {
    say("%s descriptors %d %d segments %d %d", when, descriptors(getpid()), descriptors(server), segments(getpid()),
        segments(server));
}

/* One connection's life; its kind decides how much is said and how it ends. */
static void one_connection(const struct sockaddr_in *at, int kind) {
    int fd = connect_to(at), rounds = kind % 13, size = kind % 7 * 150 + 1;
    for (int i = 0; i < rounds; i++) {
        send_noise(fd, kind + i, size);
        recv_noise(fd, kind + i, size);
    }
    if (kind % 50 == 0) {
        send_noise(fd, kind, 100000);
        recv_noise(fd, kind, 100000);
    }
    if (kind % 11 == 3) {
        /* Data behind which nobody waits. */
        send_noise(fd, 0, 500);
    } else if (kind % 11 == 4) {
        struct linger hard = {1, 0};
        must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    } else if (kind % 2) {
        char c;
        shutdown(fd, SHUT_WR);
        if (read(fd, &c, 1) != 0)
            fail("no end");
    }
    close(fd);
}

/* Descriptors that may stay open for later connections. */
enum { KEPT = 180 };

static int client(int port, int first, int count, int concurrent, int server) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int *fds = calloc(concurrent, sizeof *fds);
    for (int i = 0; i < count; i++) {
        if (i == count / 2)
            report("half", server);
        one_connection(&at, first + i);
    }
    report("end", server);
    for (int burst = 0; concurrent && burst < 5; burst++) {
        for (int i = 0; i < concurrent; i++)
            fds[i] = connect_to(&at);
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < concurrent; i++)
                send_noise(fds[i], i + round, 300);
            for (int i = 0; i < concurrent; i++)
                recv_noise(fds[i], i + round, 300);
        }
        if (burst == 0)
            report("crowd", server);
        for (int i = 0; i < concurrent; i++)
            close(fds[i]);
    }
    report("crowds", server);
    /* Ordinary work goes on until what is kept of the crowd is given up. */
    uint64_t deadline = now() + 10000 * MS;
    for (int i = 0; concurrent && now() < deadline; i++) {
        one_connection(&at, i);
        if (descriptors(getpid()) < KEPT && descriptors(server) < KEPT)
            break;
        usleep(10000);
    }
    report("after", server);
    return 0;
}

int main(int argc, char **argv) {
    int n[6] = {0};
    for (int i = 2; i < argc && i < 7; i++)
        n[i - 2] = atoi(argv[i]);
    return argc > 1 && argv[1][0] == 's' ? serve(listen_at(n[0])) : client(n[0], n[1], n[2], n[3], n[4]);
}
