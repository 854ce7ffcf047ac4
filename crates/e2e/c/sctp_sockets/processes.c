/* Sockets shared by descriptors, processes and threads. */
#include "associations.h"
#include <locale.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <wchar.h>

CASE(dup_shares, "dup(2)") {
    struct pair p = pair();
    int other = must(dup(p.client));
    check_send(other, "by the other");
    check_receive(p.server, "by the other");
    check_eq(close(p.client), 0);
    check_send(other, "alone");
    check_receive(p.server, "alone");
    check_eq(close(other), 0);
    check_end(p.server);
}
CASE(dup2_replaces, "dup2(2)") {
    struct pair p = pair(), q = pair();
    check_eq(dup2(p.client, q.client), q.client);
    check_end(q.server);
    check_send(q.client, "now here");
    check_receive(p.server, "now here");
}
CASE(dup_shares_flags, "fcntl(2) F_DUPFD_CLOEXEC") {
    struct pair p = pair();
    int other = must(fcntl(p.server, F_DUPFD_CLOEXEC, 50));
    check(other >= 50);
    check(fcntl(other, F_GETFD) & FD_CLOEXEC);
    set_nonblock(other, 1);
    check_errno(receive_some(p.server, 10, 0)->n, EAGAIN);
}
CASE(dup_of_a_listener, "dup(2)") {
    int listener = listening(SOCK_STREAM), other = must(dup(listener));
    check_eq(close(listener), 0);
    pair_of(other, socket_of(SOCK_STREAM));
}
static void serve_one(void *fd) {
    int s = *(int *)fd;
    check_receive(s, "question");
    check_send(s, "answer");
}
CASE(fork_child_serves, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(serve_one, &p.server);
    check_eq(close(p.server), 0);
    check_send(p.client, "question");
    check_receive(p.client, "answer");
    check_end(p.client);
    join(child);
}
CASE(fork_both_have_it, "fork(2)") {
    struct pair p = pair();
    struct turn turn = turn_new();
    pid_t child = forked();
    if (child == 0) {
        check_send(p.client, "child");
        turn_take(turn);
        check_send(p.client, "child again");
        _exit(0);
    }
    check_receive(p.server, "child");
    check_send(p.client, "parent");
    check_receive(p.server, "parent");
    turn_give(turn);
    check_receive(p.server, "child again");
    join(child);
    check_send(p.client, "parent still");
    check_receive(p.server, "parent still");
}
CASE(fork_child_closes, "fork(2)") {
    struct pair p = pair();
    pid_t child = forked();
    if (child == 0) {
        close(p.client), close(p.server), close(p.listener);
        _exit(0);
    }
    join(child);
    check_send(p.client, "still up");
    check_receive(p.server, "still up");
}
static void fork_client(void *listener) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    check_send(fd, "question");
    check_receive(fd, "answer");
    check_end(fd);
}
CASE(fork_per_connection, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    pid_t clients[4], servers[4];
    for (int i = 0; i < 4; i++)
        clients[i] = spawn(fork_client, &listener);
    for (int i = 0; i < 4; i++) {
        int s = must(accept(listener, NULL, NULL));
        servers[i] = spawn(serve_one, &s);
        check_eq(close(s), 0);
    }
    for (int i = 0; i < 4; i++) {
        join(clients[i]);
        join(servers[i]);
    }
}
static void accept_one(void *listener) {
    int s = must(accept(*(int *)listener, NULL, NULL));
    serve_one(&s);
}
CASE(prefork, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    pid_t servers[3], clients[3];
    for (int i = 0; i < 3; i++)
        servers[i] = spawn(accept_one, &listener);
    for (int i = 0; i < 3; i++)
        clients[i] = spawn(fork_client, &listener);
    for (int i = 0; i < 3; i++) {
        join(clients[i]);
        join(servers[i]);
    }
}
static void bind_and_serve(void *port_pipe) {
    int listener = listening(SOCK_STREAM);
    struct address a = name_of(listener);
    check_eq(write(*(int *)port_pipe, &a, sizeof a), sizeof a);
    for (int i = 0; i < 5; i++) {
        int s = must(accept(listener, NULL, NULL));
        serve_one(&s);
        check_eq(close(s), 0);
    }
}
CASE(two_processes, "RFC 6458 4") {
    int pipes[2];
    check_eq(pipe(pipes), 0);
    pid_t child = spawn(bind_and_serve, &pipes[1]);
    struct address a;
    check_eq(read(pipes[0], &a, sizeof a), sizeof a);
    for (int i = 0; i < 5; i++) {
        int fd = socket_of(SOCK_STREAM);
        check_eq(connect(fd, &a.sa, a.len), 0);
        check_send(fd, "question");
        check_receive(fd, "answer");
        check_end(fd);
        check_eq(close(fd), 0);
    }
    join(child);
}
/* Processes share what is there once on a host: the first to come sees to the packets of all, until it ends. */
static void come_first(void *here) {
    listening(SOCK_STREAM);
    turn_give(*(struct turn *)here);
    for (;;)
        pause();
}
static pid_t first_to_come(void) {
    struct turn here = turn_new();
    pid_t first = spawn(come_first, &here);
    turn_take(here);
    return first;
}
CASE(first_to_come_is_killed, "RFC 6458 4.1.5") {
    pid_t first = first_to_come();
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    slay(first);
    struct pair p = pair_of(listener, client);
    check_send(p.client, "question");
    check_receive(p.server, "question");
}
CASE(first_to_come_is_killed_between_others, "RFC 6458 4.1.5") {
    pid_t first = first_to_come();
    int pipes[2];
    check_eq(pipe(pipes), 0);
    pid_t child = spawn(bind_and_serve, &pipes[1]);
    struct address a;
    check_eq(read(pipes[0], &a, sizeof a), sizeof a);
    /* From here on this process may receive packets. */
    listening(SOCK_STREAM);
    slay(first);
    for (int i = 0; i < 5; i++) {
        int fd = socket_of(SOCK_STREAM);
        check_eq(connect(fd, &a.sa, a.len), 0);
        check_send(fd, "question");
        check_receive(fd, "answer");
        check_end(fd);
        check_eq(close(fd), 0);
    }
    join(child);
}
CASE(first_to_come_is_killed_before_a_message, "RFC 6458 3.1.2") {
    pid_t first = first_to_come();
    int b = listening(SOCK_SEQPACKET), a = socket_of(SOCK_SEQPACKET);
    struct address to = name_of(b);
    slay(first);
    check_eq(sendto(a, "question", 8, 0, &to.sa, to.len), 8);
    check_receive(b, "question");
}
CASE(nobody_is_refused_when_the_first_to_come_is_killed, "RFC 6458 4.1.5") {
    pid_t first = first_to_come();
    listening(SOCK_STREAM);
    int client = socket_of(SOCK_STREAM);
    struct address a = nobody();
    slay(first);
    check_errno(connect(client, &a.sa, a.len), ECONNREFUSED);
}
static void many_client(void *server) {
    int fd = socket_of(SOCK_SEQPACKET);
    struct address to = name_of(*(int *)server);
    check_eq(sendto(fd, "question", 8, 0, &to.sa, to.len), 8);
    check_receive(fd, "answer");
}
CASE(many_clients_are_processes, "RFC 6458 3") {
    int server = listening(SOCK_SEQPACKET);
    want_rcvinfo(server);
    pid_t clients[4];
    for (int i = 0; i < 4; i++)
        clients[i] = spawn(many_client, &server);
    for (int i = 0; i < 4; i++) {
        struct got *g = check_receive(server, "question");
        check_eq(send_to_assoc(server, g->rcv.rcv_assoc_id, 0, "answer"), 6);
    }
    for (int i = 0; i < 4; i++)
        join(clients[i]);
}
CASE(big_between_processes, "RFC 6458 3.1.4") {
    struct pair p = pair();
    pid_t child = forked();
    if (child == 0) {
        close(p.server);
        char *text = patterned(180000, 9);
        for (int i = 0; i < 20; i++)
            check_eq(send(p.client, text, 180000, 0), 180000);
        _exit(0);
    }
    check_eq(close(p.client), 0);
    for (int i = 0; i < 20; i++)
        receive_pattern(p.server, 180000, 9, 300000);
    check_end(p.server);
    join(child);
}
CASE(exec_keeps_or_not, "execve(2)") {
    if (role()) {
        struct stat s;
        check_eq(fstat(70, &s), 0);
        check_errno(fstat(71, &s), EBADF);
        return;
    }
    struct pair p = pair();
    check_eq(dup2(p.client, 70), 70);
    check_eq(dup3(p.client, 71, O_CLOEXEC), 71);
    join(spawn_role("exec_keeps_or_not", "child"));
    check_send(p.client, "still up");
    check_receive(p.server, "still up");
}
CASE(exec_goes_on, "execve(2)") {
    if (role()) {
        check_send(70, "from the new program");
        check_receive(70, "to the new program");
        check_eq(close(70), 0);
        return;
    }
    struct pair p = pair();
    check_eq(dup2(p.client, 70), 70);
    pid_t child = spawn_role("exec_goes_on", "child");
    check_receive(p.server, "from the new program");
    check_send(p.server, "to the new program");
    join(child);
    check_send(p.client, "ours too");
    check_receive(p.server, "ours too");
    check_eq(close(p.client), 0);
    check_nothing_yet(p.server);
    check_eq(close(70), 0);
    check_end(p.server);
}

/* --- threads --- */

struct job {
    int fd, number, count;
};
static void send_numbers(void *with) {
    struct job *j = with;
    for (int i = 0; i < j->count; i++) {
        int text[2] = {j->number, i};
        struct sctp_sndinfo info = {.snd_sid = j->number};
        struct part part = PART(SCTP_SNDINFO, info);
        check_eq(send_with(j->fd, NULL, text, sizeof text, 0, &part, 1), sizeof text);
    }
}
CASE(threads_send, "pthreads(7)") {
    struct pair p = pair();
    struct job jobs[4];
    pthread_t t[4];
    int next[4] = {0}, text[2];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct job){p.client, i, 500};
        t[i] = start(send_numbers, &jobs[i]);
    }
    for (int i = 0; i < 2000; i++) {
        check_eq(recv(p.server, text, sizeof text, 0), sizeof text);
        check(text[0] >= 0 && text[0] < 4);
        check_eq(text[1], next[text[0]]++);
    }
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}
static int received;
static void receive_until_end(void *fd) {
    int text[2];
    ssize_t n;
    while ((n = recv(*(int *)fd, text, sizeof text, 0)) == sizeof text)
        __atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
    check_eq(n, 0);
}
CASE(threads_receive, "pthreads(7)") {
    struct pair p = pair();
    struct job job = {p.client, 0, 2000};
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(receive_until_end, &p.server);
    send_numbers(&job);
    check_eq(shutdown(p.client, SHUT_WR), 0);
    for (int i = 0; i < 3; i++)
        finish(t[i]);
    check_eq(received, 2000);
}
CASE(threads_are_shut, "shutdown(2)") {
    struct pair p = pair();
    pthread_t t[5];
    for (int i = 0; i < 5; i++)
        t[i] = start(receive_until_end, &p.server);
    sleep_ms(100);
    check_eq(shutdown(p.server, SHUT_RDWR), 0);
    for (int i = 0; i < 5; i++)
        finish(t[i]);
}
/* Each is told, though the first to come takes up what has happened for all of them. */
CASE(threads_are_shut_many_times, "shutdown(2)") {
    int listener = listening(SOCK_STREAM);
    for (int round = 0; round < 300; round++) {
        struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
        pthread_t t[5];
        for (int i = 0; i < 5; i++)
            t[i] = start(receive_until_end, &p.server);
        sleep_ms(1);
        check_eq(shutdown(p.server, SHUT_RDWR), 0);
        for (int i = 0; i < 5; i++)
            finish(t[i]);
        check_eq(close(p.server), 0);
        check_eq(close(p.client), 0);
    }
}
/* Microseconds of CPU that the process has used. */
static long used(void) {
    struct rusage u;
    must(getrusage(RUSAGE_SELF, &u));
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}
/* Whoever waits at a socket sleeps, whatever other waits were left without a return. */
static void sleeps_soundly(int fd) {
    struct timeval short_time = {0, 300000};
    check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time), 0);
    char c;
    long before = used();
    check_errno(recv(fd, &c, 1, 0), EAGAIN);
    check(used() - before < 150000);
    struct timeval none = {0, 0};
    check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none), 0);
}
static sigjmp_buf back;
static void jump_back(int signo) { siglongjmp(back, signo); }
static void interrupt_later(void *thread) {
    sleep_ms(30);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
}
CASE(jumps_out_of_a_wait, "siglongjmp(3)") {
    char buf[100];
    int listener = listening(SOCK_STREAM);
    for (volatile int round = 0; round < 5; round++) {
        struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
        pthread_t self = pthread_self();
        volatile pthread_t other = 0;
        signal(SIGUSR1, jump_back);
        if (sigsetjmp(back, 1) == 0) {
            other = start(interrupt_later, &self);
            recv(p.server, buf, sizeof buf, 0);
            check(0);
        }
        finish(other);
        sleeps_soundly(p.server);
        check_send(p.client, "question");
        check_receive(p.server, "question");
        check_send(p.server, "answer");
        check_receive(p.client, "answer");
        pthread_t t = start(receive_until_end, &p.server);
        check_eq(shutdown(p.client, SHUT_RDWR), 0);
        finish(t);
        long before = used();
        sleep_ms(300);
        check(used() - before < 150000);
        check_eq(close(p.server), 0);
        check_eq(close(p.client), 0);
    }
}
static void *wait_for_ever(void *fd) {
    char c;
    recv(*(int *)fd, &c, 1, 0);
    return NULL;
}
static void cancel_one(int *fd) {
    pthread_t t;
    void *r;
    must(-pthread_create(&t, NULL, wait_for_ever, fd));
    sleep_ms(30);
    check_eq(pthread_cancel(t), 0);
    check_eq(pthread_join(t, &r), 0);
    check(r == PTHREAD_CANCELED);
}
/* Whoever waited is as if it had never been there. */
CASE(is_cancelled_in_a_wait, "pthreads(7)") {
    int listener = listening(SOCK_STREAM);
    for (int round = 0; round < 2; round++) {
        struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
        for (int i = 0; i < 10; i++)
            cancel_one(&p.server);
        sleeps_soundly(p.server);
        check_send(p.client, "question");
        check_receive(p.server, "question");
        check_send(p.server, "answer");
        check_receive(p.client, "answer");
        pthread_t t = start(receive_until_end, &p.server);
        check_eq(shutdown(p.client, SHUT_RDWR), 0);
        finish(t);
        long before = used();
        sleep_ms(300);
        check(used() - before < 150000);
        check_eq(close(p.server), 0);
        check_eq(close(p.client), 0);
    }
}
/* What the child does with its copy wakes nobody here for nothing. */
CASE(a_fork_beside_a_wait, "fork(2)") {
    struct pair p = pair();
    pthread_t t = start(receive_until_end, &p.server);
    sleep_ms(50);
    pid_t child = forked();
    if (child == 0) {
        sleeps_soundly(p.server);
        check_eq(close(p.server), 0);
        check_eq(close(p.client), 0);
        _exit(0);
    }
    join(child);
    long before = used();
    sleep_ms(300);
    check(used() - before < 150000);
    struct job job = {p.client, 0, 1};
    send_numbers(&job);
    check_eq(shutdown(p.client, SHUT_WR), 0);
    finish(t);
}
CASE(threads_echo, "pthreads(7)") {
    struct pair p = pair();
    for (int i = 0; i < 5; i++) {
        pthread_t t = start(serve_one, &p.server);
        check_send(p.client, "question");
        check_receive(p.client, "answer");
        finish(t);
    }
}
static void shut_later(void *fd) {
    sleep_ms(30);
    check_eq(shutdown(*(int *)fd, SHUT_RDWR), 0);
}
CASE(shutdown_by_a_thread, "shutdown(2)") {
    struct pair p = pair();
    pthread_t t = start(shut_later, &p.client);
    check_end(p.client);
    check_end(p.server);
    finish(t);
}
static void close_later(void *fd) {
    sleep_ms(30);
    check_eq(close(*(int *)fd), 0);
}
CASE(close_by_a_thread, "close(2)") {
    struct pair p = pair();
    pthread_t t = start(close_later, &p.client);
    check_end(p.server);
    finish(t);
}
static void accept_one_thread(void *listener) {
    int s = must(accept(*(int *)listener, NULL, NULL));
    serve_one(&s);
    check_eq(close(s), 0);
}
CASE(threads_accept, "accept(2)") {
    int listener = listening(SOCK_STREAM);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(accept_one_thread, &listener);
    for (int i = 0; i < 4; i++)
        fork_client(&listener);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}
static void connect_lots(void *listener) {
    for (int i = 0; i < 10; i++) {
        int fd = socket_of(SOCK_STREAM);
        check_eq(connect_to(fd, *(int *)listener), 0);
        check_send(fd, "question");
        check_receive(fd, "answer");
        check_eq(close(fd), 0);
    }
}
CASE(threads_connect, "connect(2)") {
    int listener = listening(SOCK_STREAM);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(connect_lots, &listener);
    for (int i = 0; i < 40; i++)
        accept_one_thread(&listener);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}
CASE(passed_to_another, "unix(7) SCM_RIGHTS") {
    int ends[2];
    check_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct pair p = pair();
    _Alignas(8) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &p.client, sizeof(int));
    ssize_t n = sendmsg(ends[0], &m, 0);
    check(n == 1 || errno == EOPNOTSUPP || errno == EINVAL);
    check_send(p.client, "still mine");
    check_receive(p.server, "still mine");
}
CASE(stdio_on_it, "fdopen(3)") {
    struct pair p = pair();
    FILE *f = fdopen(dup(p.client), "r+");
    check(f != NULL);
    check(fprintf(f, "a line\n") == 7);
    check_eq(fflush(f), 0);
    check_receive(p.server, "a line\n");
    check_send(p.server, "an answer\n");
    char line[64];
    check(fgets(line, sizeof line, f) != NULL);
    check_str(line, "an answer\n");
}
CASE(wide_stdio_on_it, "fwide(3)") {
    struct pair p = pair();
    check(setlocale(LC_ALL, "C.UTF-8") != NULL);
    FILE *f = fdopen(dup(p.client), "r+");
    wchar_t line[64];
    check(fwide(f, 1) > 0);
    check(fwprintf(f, L"%d öre\n", 5) == 6);
    check_eq(fflush(f), 0);
    check_receive(p.server, "5 \303\266re\n");
    check_send(p.server, "ant\303\266rt\n");
    check(fgetws(line, 64, f) == line && wcscmp(line, L"antört\n") == 0);
    check_eq(fclose(f), 0);
}
CASE(stdio_reopened, "freopen(3)") {
    struct pair p = pair();
    int fd = fcntl(p.client, F_DUPFD, 100);
    FILE *f = fdopen(p.client, "r+");
    check(fputs("last\n", f) >= 0);
    check(freopen("/proc/self/stat", "r", f) == f);
    check_eq(fileno(f), p.client);
    check(fgetc(f) >= '0');
    check(freopen(NULL, "r", f) == f);
    check_eq(fclose(f), 0);
    check_receive(p.server, "last\n");
    check_send(fd, "still here");
    check_receive(p.server, "still here");
    f = fdopen(fd, "r");
    check(freopen(NULL, "r", f) == NULL);
    check_errno(fcntl(fd, F_GETFD), EBADF);
    check_end(p.server);
}
CASE(close_range_closes, "close_range(2)") {
    struct pair p = pair();
    int high = must(fcntl(p.client, F_DUPFD, 200));
    check_eq(close(p.client), 0);
    check_eq(close_range(high, high, 0), 0);
    check_end(p.server);
}

SUITE(ENTRY(dup_shares), ENTRY(dup2_replaces), ENTRY(dup_shares_flags), ENTRY(dup_of_a_listener), BOTH(fork_child_serves),
      ENTRY(fork_both_have_it), ENTRY(fork_child_closes), BOTH(fork_per_connection), ENTRY(prefork), BOTH(two_processes), BOTH(first_to_come_is_killed), BOTH(first_to_come_is_killed_between_others),
      ENTRY(first_to_come_is_killed_before_a_message), ENTRY(nobody_is_refused_when_the_first_to_come_is_killed),
      ENTRY(many_clients_are_processes), ENTRY(big_between_processes), ENTRY(exec_keeps_or_not), ENTRY(exec_goes_on),
      ENTRY(threads_send), ENTRY(threads_receive), ENTRY(threads_are_shut), ENTRY(threads_are_shut_many_times), ENTRY(jumps_out_of_a_wait), ENTRY(is_cancelled_in_a_wait), ENTRY(a_fork_beside_a_wait), ENTRY(threads_echo), ENTRY(shutdown_by_a_thread), ENTRY(close_by_a_thread),
      ENTRY(threads_accept), ENTRY(threads_connect), ENTRY(passed_to_another), ENTRY(stdio_on_it),
      ENTRY(wide_stdio_on_it), ENTRY(stdio_reopened), ENTRY(close_range_closes))
