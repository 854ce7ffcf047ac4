/* What signal-safety(7) allows in a signal handler: the calls of a connection's whole life. */
#include "common.h"
#include "handler.h"
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>

/* One thing to do in the handler, on what is in these. */
static int fds[8];
static struct sockaddr_in place;
static char bytes[1 << 16];
static struct pollfd many[300];
static fd_set in_set, out_set;
static struct epoll_event events[20];

/* Both ends of a connection, from the first call to the last. */
static struct iovec halves[2] = {{bytes, 50}, {bytes + 50, 50}};
static struct msghdr message = {.msg_iov = halves, .msg_iovlen = 2};
static struct sockaddr_in other;
static socklen_t length = sizeof other;
static int one = 1, number;
static off_t at;
static struct timespec soon = {0, 1000000};
static void sets(void) {
    FD_ZERO(&in_set);
    FD_ZERO(&out_set);
    FD_SET(fds[1], &in_set);
    FD_SET(fds[2], &out_set);
}
static pid_t child(void) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid;
}
static void life(void) {
    place = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    WORKS(fds[0] = socket(AF_INET, SOCK_STREAM, 0));
    WORKS(setsockopt(fds[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    WORKS(bind(fds[0], (struct sockaddr *)&place, sizeof place));
    WORKS(listen(fds[0], 5));
    length = sizeof place;
    WORKS(getsockname(fds[0], (struct sockaddr *)&place, &length));
    WORKS(fds[1] = socket(AF_INET, SOCK_STREAM, 0));
    WORKS(connect(fds[1], (struct sockaddr *)&place, sizeof place));
    length = sizeof other;
    WORKS(fds[2] = accept4(fds[0], (struct sockaddr *)&other, &length, SOCK_CLOEXEC));
    WORKS(fds[3] = epoll_create1(0));
    events[0] = (struct epoll_event){EPOLLIN, {.u64 = 7}};
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_ADD, fds[1], &events[0]));
    /* On the way into shared memory, whichever call takes the steps. */
    for (int i = 0; i < WARM; i++) {
        WORKS(write(fds[1], bytes, 64));
        WORKS(read(fds[2], bytes, 64));
        WORKS(write(fds[2], bytes, 64));
        WORKS(read(fds[1], bytes, 64));
    }
    WORKS(send(fds[1], bytes, 100, MSG_NOSIGNAL));
    WORKS(recv(fds[2], bytes, 10, MSG_PEEK));
    WORKS(recvfrom(fds[2], bytes, 100, 0, NULL, NULL));
    WORKS(sendto(fds[1], bytes, 100, 0, NULL, 0));
    WORKS(readv(fds[2], halves, 2));
    WORKS(writev(fds[2], halves, 2));
    WORKS(recvmsg(fds[1], &message, MSG_WAITALL));
    WORKS(sendmsg(fds[1], &message, 0));
    for (int i = 0; i < 300; i++)
        many[i] = (struct pollfd){fds[i % 3], POLLIN, 0};
    WORKS(poll(many, 3, 1));
    WORKS(read(fds[2], bytes, 100));
    WORKS(poll(many, 3, 1));
    WORKS(poll(many, 300, 1));
    WORKS(ppoll(many, 64, &soon, NULL));
    sets();
    WORKS(select(64, &in_set, &out_set, NULL, &(struct timeval){0, 1000}));
    FD_ZERO(&out_set);
    WORKS(pselect(64, &in_set, &out_set, NULL, &soon, NULL));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    WORKS(write(fds[2], bytes, 100));
    WORKS(epoll_pwait(fds[3], events, 20, 1, NULL));
    WORKS(read(fds[1], bytes, 100));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    events[0] = (struct epoll_event){EPOLLIN | EPOLLOUT | EPOLLET, {.u64 = 7}};
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_MOD, fds[1], &events[0]));
    WORKS(epoll_wait(fds[3], events, 20, 1));
    WORKS(epoll_ctl(fds[3], EPOLL_CTL_DEL, fds[1], &events[0]));
    /* Until both rings and the kernel's buffers are full, and empty again. */
    WORKS(fcntl(fds[1], F_SETFL, O_NONBLOCK));
    while (DO(write(fds[1], bytes, sizeof bytes)) > 0) {
    }
    WORKS(poll(many + 1, 1, 1));
    DO(recv(fds[1], bytes, 1, MSG_DONTWAIT));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    WORKS(ioctl(fds[1], FIONREAD, &number));
    WORKS(getpeername(fds[1], (struct sockaddr *)&other, &length));
    WORKS(fds[4] = dup(fds[1]));
    WORKS(dup2(fds[1], fds[4]));
    WORKS(fds[5] = fcntl(fds[1], F_DUPFD_CLOEXEC, 20));
    WORKS(close(fds[4]));
    WORKS(close(fds[5]));
    WORKS(fds[6] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    WORKS(sendfile(fds[1], fds[6], &at, 40000));
    WORKS(sendfile(fds[1], fds[6], &at, 1000000));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    number = DO(child());
    must(waitpid(number, NULL, 0));
    /* Back to the kernel with bytes in the ring, which the peer is to have first. */
    WORKS(write(fds[1], bytes, sizeof bytes));
    must(pipe2(&fds[4], O_CLOEXEC | O_NONBLOCK));
    WORKS(fcntl(fds[2], F_SETFL, O_NONBLOCK));
    DO(splice(fds[2], NULL, fds[5], NULL, 1000, SPLICE_F_NONBLOCK));
    WORKS(write(fds[1], bytes, 1));
    while (DO(recv(fds[2], bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    close(fds[4]), close(fds[5]), close(fds[6]);
    WORKS(shutdown(fds[1], SHUT_WR));
    WORKS(close(fds[2]));
    WORKS(close(fds[1]));
    WORKS(close(fds[3]));
    WORKS(close(fds[0]));
}

/* All of it three times: in a program whose first listener a handler makes, in one that has just made one elsewhere, as the library
 * begins, and in one that has everything. */
static void lives(const char *room) {
    take_room(atoi(room));
    life();
    close(listen_somewhere(&place));
    life();
    life();
    tell_deepest();
}
static void run_fresh(const char *room) {
    pid_t pid = must(fork());
    if (pid == 0) {
        execl("/proc/self/exe", "handlers", "fresh", room, NULL);
        fail("execl");
    }
    int status;
    must(waitpid(pid, &status, 0));
    say("status %x", status);
}
static void small_stack_server(int fd) {
    run_fresh("8192");
    send_noise(fd, 0, 100);
}
static void small_stack_client(int fd) { recv_noise(fd, 0, 100); }
/* For a library that was built without optimisation. */
static void roomy_server(int fd) {
    run_fresh("65536");
    send_noise(fd, 0, 100);
}
static void roomy_client(int fd) { recv_noise(fd, 0, 100); }

int main(int argc, char **argv) {
    static const struct end_case cases[] = {CASE(small_stack), CASE(roomy)};
    if (argc > 2) {
        lives(argv[2]);
        return 0;
    }
    return run_named(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
