/* Images without the library that inherit the connection and end: afterwards it is what it was. Each case is there twice: with
 * the end that accepted, and with the end that connected, as the one that starts them. */
#include "common.h"
#include <spawn.h>

extern char **environ;
static char *bare[] = {"PATH=/bin:/usr/bin", NULL};

/* Where the host's stream stands, which the peer echoes. */
static uint64_t at;

static void exchange(int fd, int rounds) {
    for (int i = 0; i < rounds; i++, at += 6400) {
        send_noise(fd, at, 6400);
        recv_noise(fd, at, 6400);
    }
}

/* Enough for a way back, and for much more than that by it. */
#ifndef MUCH
#define MUCH 10000
#endif
static void much(int fd) { exchange(fd, MUCH); }

static void echo(int fd) {
    char buf[6400];
    ssize_t r;
    while ((r = must(read(fd, buf, sizeof buf))) > 0)
        send_all(fd, buf, r);
}

static void ended_well(pid_t pid) {
    int status = -1;
    must(waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        say("image: %x", status);
}

/* This program as an image without the library, doing `work`. */
static pid_t start(const char *work, int fd) {
    char number[12];
    snprintf(number, sizeof number, "%d", fd);
    pid_t pid = must(fork());
    if (pid == 0) {
        execve("/proc/self/exe", (char *[]){"comeback", "image", (char *)work, number, NULL}, bare);
        _exit(9);
    }
    return pid;
}

static void nothing(int fd) { ended_well(start("nothing", fd)); }

/* Never touched. */
static void untouched(int fd) {
    nothing(fd);
    much(fd);
}
#define untouched_peer echo

/* By a shell that has the library. */
static void shell(int fd) {
    say("system: %d", system("env -i true"));
    say("system: %d", system("env -i true; exit 3"));
    much(fd);
}
#define shell_peer echo

static void spawned(int fd) {
    char *argv[] = {"true", NULL};
    pid_t pid;
    say("posix_spawn: %d", posix_spawn(&pid, "/bin/true", NULL, NULL, argv, bare));
    ended_well(pid);
    pid = vfork();
    if (pid == 0) {
        execve("/bin/true", argv, bare);
        _exit(9);
    }
    ended_well(pid);
    must(execve("/no/such/program", argv, bare) < 0 ? 0 : -1);
    much(fd);
}
#define spawned_peer echo

/* The image takes the first part of what has come, or sends something. */
static void reads(int fd) {
    for (int i = 0; i < 3; i++, at += 5000) {
        send_noise(fd, at, 5000);
        ended_well(start("read", fd));
        recv_noise(fd, at + 3000, 2000);
        exchange(fd, MUCH / 10);
    }
    much(fd);
}
#define reads_peer echo

static void writes(int fd) {
    for (int i = 0; i < 3; i++) {
        ended_well(start("write", fd));
        recv_noise(fd, 0, 3000);
        exchange(fd, MUCH / 10);
    }
    much(fd);
}
#define writes_peer echo

/* Before that the ring held something, and the peer is elsewhere until the image is gone. */
static void unread(int fd) {
    tell_peer();
    await_bytes(fd, 20000);
    await_peer();
    recv_noise(fd, 0, 1000);
    nothing(fd);
    tell_peer();
    recv_noise(fd, 1000, 19000);
    much(fd);
}
static void unread_peer(int fd) {
    await_peer();
    send_noise(fd, 0, 20000);
    tell_peer();
    await_peer();
    echo(fd);
}

/* Before that the ring held something, and the peer waits for more. */
static void waiting(int fd) {
    for (int i = 0; i < 10; i++) {
        send_noise(fd, at, 30000);
        await_bytes(fd, 30000);
        nothing(fd);
        recv_noise(fd, at, 30000);
        at += 30000;
        exchange(fd, 500);
    }
    much(fd);
}
#define waiting_peer echo

/* A thread that keeps the connection busy meanwhile. */
static void *busy(void *arg) {
    exchange(*(int *)arg, 8000);
    return NULL;
}
static void used(int fd) {
    pthread_t thread;
    pthread_create(&thread, NULL, busy, &fd);
    for (int i = 0; i < 20; i++)
        nothing(fd);
    pthread_join(thread, NULL);
    much(fd);
}
#define used_peer echo

/* Both directions in full flow. */
enum { FLOW = 64 << 20 };
static void *flow(void *arg) {
    send_noise(*(int *)arg, 0, FLOW);
    return NULL;
}
static void flowing(int fd) {
    pthread_t thread;
    pthread_create(&thread, NULL, flow, &fd);
    uint64_t done = 0;
    for (; done < FLOW; done += FLOW / 16) {
        if (done < FLOW / 2)
            nothing(fd);
        recv_noise(fd, done, FLOW / 16);
    }
    pthread_join(thread, NULL);
    much(fd);
}
static void flowing_peer(int fd) {
    pthread_t thread;
    pthread_create(&thread, NULL, flow, &fd);
    recv_noise(fd, 0, FLOW);
    pthread_join(thread, NULL);
    echo(fd);
}

/* Both ends at once. */
static void both(int fd) {
    for (int i = 0; i < 10; i++) {
        together();
        nothing(fd);
        together();
        exchange(fd, 300);
    }
    tell_peer();
    much(fd);
}
static void both_peer(int fd) {
    char buf[6400];
    for (int i = 0; i < 10; i++) {
        together();
        nothing(fd);
        together();
        for (int k = 0; k < 300; k++) {
            recv_all(fd, buf, sizeof buf);
            send_all(fd, buf, sizeof buf);
        }
    }
    await_peer();
    echo(fd);
}

/* Readers and writers that don't block, and wait by poll. */
static void polled_exchange(int fd, int rounds) {
    char buf[6400];
    for (int i = 0; i < rounds; i++, at += 6400)
        for (int done = 0, sent = 0; done < 6400;) {
            struct pollfd p = {fd, POLLIN | (sent < 6400 ? POLLOUT : 0), 0};
            if (poll(&p, 1, 10000) != 1)
                fail("poll");
            if (p.revents & POLLOUT && sent < 6400) {
                fill(buf, at + sent, 6400 - sent);
                sent += must(write(fd, buf, 6400 - sent));
            }
            if (p.revents & POLLIN) {
                ssize_t n = must(read(fd, buf, 6400 - done));
                check(buf, at + done, n);
                done += n;
            }
        }
}
static void polled(int fd) {
    nonblocking(fd, 1);
    polled_exchange(fd, 100);
    for (int i = 0; i < 5; i++) {
        nothing(fd);
        polled_exchange(fd, MUCH / 10);
    }
    polled_exchange(fd, MUCH);
}
#define polled_peer echo

/* A child of the image has it still, and nothing else: it waits for a word, takes and sends something, and goes. */
static void kept(int fd) {
    int word[2], gone[2];
    char c;
    must(pipe2(word, O_CLOEXEC)), must(pipe2(gone, O_CLOEXEC));
    must(dup2(word[0], 30)), must(dup2(gone[1], 31));
    close(word[0]), close(gone[1]);
    ended_well(start("keep", fd));
    close(30), close(31);
    exchange(fd, 300);
    send_noise(fd, 0, 3000);
    must(write(word[1], "", 1));
    say_result("gone", read(gone[0], &c, 1));
    recv_noise(fd, 0, 3000);
}
#define kept_peer echo

static void released(int fd) {
    kept(fd);
    much(fd);
}
#define released_peer echo

/* A sibling with the library has it as well. */
static void shared(int fd) {
    int p[2];
    must(pipe(p));
    pid_t pid = must(fork());
    if (pid == 0) {
        char c;
        close(p[1]);
        must(read(p[0], &c, 1));
        exchange(fd, 500);
        _exit(0);
    }
    close(p[0]);
    nothing(fd);
    exchange(fd, MUCH / 10);
    nothing(fd);
    must(write(p[1], "", 1));
    ended_well(pid);
    much(fd);
}
#define shared_peer echo

static int image(const char *work, int fd) {
    char buf[4096];
    if (strcmp(work, "read") == 0)
        recv_all(fd, buf, 3000);
    if (strcmp(work, "write") == 0)
        send_noise(fd, 0, 3000);
    if (strcmp(work, "keep") == 0 && must(fork()) == 0) {
        for (int i = 3; i < 10000; i++)
            if (i != fd && i != 30 && i != 31)
                close(i);
        must(read(30, buf, 1));
        recv_all(fd, buf, 3000);
        check(buf, 0, 3000);
        send_noise(fd, 0, 3000);
    }
    return 0;
}

#define HOSTS(name)                                                                                                    \
    {#name "_accepted", name, name##_peer}, { #name "_connected", name##_peer, name }

int main(int argc, char **argv) {
    static const struct end_case cases[] = {
        HOSTS(untouched), HOSTS(shell), HOSTS(spawned), HOSTS(reads), HOSTS(writes), HOSTS(unread), HOSTS(waiting),
        HOSTS(used), HOSTS(flowing), HOSTS(both), HOSTS(polled), HOSTS(kept), HOSTS(released), HOSTS(shared)};
    if (argc > 3 && strcmp(argv[1], "image") == 0)
        return image(argv[2], atoi(argv[3]));
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
