/* poll, select and epoll on SCTP sockets, alone and beside other descriptors; non-blocking calls; timeouts; ioctls. */
#include "associations.h"

CASE(poll_new, "poll(2)") {
    int fd = socket_of(SOCK_STREAM), many = socket_of(SOCK_SEQPACKET);
    check_eq(events(fd, POLLIN, 0) & POLLIN, 0);
    check_eq(events(many, POLLIN, 0) & POLLIN, 0);
    check_eq(events(many, POLLOUT, 0), POLLOUT);
}
CASE(poll_listener, "poll(2)") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    check_eq(events(listener, POLLIN, 0), 0);
    check_eq(connect_to(client, listener), 0);
    check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
    must(accept(listener, NULL, NULL));
    check_eq(events(listener, POLLIN, 0), 0);
}
CASE(poll_data, "poll(2)") {
    struct pair p = pair();
    check_eq(events(p.server, POLLIN | POLLOUT, 0), POLLOUT);
    check_send(p.client, "x");
    check_eq(events(p.server, POLLIN, PATIENCE), POLLIN);
    check_receive(p.server, "x");
    check_eq(events(p.server, POLLIN, 0), 0);
}
CASE(poll_rest_of_a_message, "poll(2)") {
    struct pair p = pair();
    check_send(p.client, "0123456789");
    check_readable(p.server);
    receive_some(p.server, 4, 0);
    check_eq(events(p.server, POLLIN, 0), POLLIN);
    receive_some(p.server, 10, 0);
    check_eq(events(p.server, POLLIN, 0), 0);
}
CASE(poll_room, "poll(2)") {
    struct pair p = pair();
    int n = stuff(p.client, 2000);
    check_eq(events(p.client, POLLOUT, 0), 0);
    for (int i = 0; i < n; i++)
        receive_pattern(p.server, 2000, 1, 3000);
    check(events(p.client, POLLOUT, PATIENCE) & POLLOUT);
}
CASE(poll_end, "poll(2)") {
    struct pair p = pair();
    check_eq(close(p.client), 0);
    int seen = events(p.server, POLLIN | POLLRDHUP, PATIENCE);
    check(seen & POLLIN);
    check(seen & POLLRDHUP);
    check_end(p.server);
    check(events(p.server, POLLIN, 0) & POLLIN);
}
CASE(poll_abort, "poll(2)") {
    struct pair p = pair();
    struct linger l = {1, 0};
    check_eq(setsockopt(p.client, SOL_SOCKET, SO_LINGER, &l, sizeof l), 0);
    check_eq(close(p.client), 0);
    int seen = events(p.server, POLLIN, PATIENCE);
    check(seen & POLLIN);
    check(seen & POLLERR);
    check_eq(get_socket_int(p.server, SO_ERROR), ECONNRESET);
    check(!(events(p.server, POLLIN, 0) & POLLERR));
}
CASE(poll_many, "poll(2)") {
    int a = socket_of(SOCK_SEQPACKET), b = listening(SOCK_SEQPACKET);
    check_eq(events(b, POLLIN, 0), 0);
    struct address to = name_of(b);
    check_eq(sendto(a, "x", 1, 0, &to.sa, to.len), 1);
    check_eq(events(b, POLLIN, PATIENCE), POLLIN);
    check_receive(b, "x");
    check_eq(events(b, POLLIN, 0), 0);
    check_eq(events(b, POLLOUT, 0), POLLOUT);
}
CASE(poll_notification, "poll(2)") {
    int listener = listening(SOCK_STREAM);
    subscribe(listener, SCTP_ASSOC_CHANGE);
    struct pair p = pair_of(listener, socket_of(SOCK_STREAM));
    check_eq(events(p.server, POLLIN, PATIENCE), POLLIN);
    change(p.server, SCTP_COMM_UP);
    check_eq(events(p.server, POLLIN, 0), 0);
}
static void send_later(void *fd) {
    sleep_ms(30);
    check_send(*(int *)fd, "later");
}
CASE(poll_waits, "poll(2)") {
    struct pair p = pair();
    pthread_t t = start(send_later, &p.client);
    check_eq(events(p.server, POLLIN, PATIENCE), POLLIN);
    check_receive(p.server, "later");
    finish(t);
}
static void connect_later(void *listener) {
    sleep_ms(30);
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    check_send(fd, "from the child");
    check_end(fd);
}
CASE(poll_waits_for_a_process, "poll(2)") {
    int listener = listening(SOCK_STREAM);
    pid_t child = spawn(connect_later, &listener);
    check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
    int server = must(accept(listener, NULL, NULL));
    check_eq(events(server, POLLIN, PATIENCE), POLLIN);
    check_receive(server, "from the child");
    check_eq(close(server), 0);
    join(child);
}
CASE(poll_times_out, "poll(2)") {
    struct pair p = pair();
    struct pollfd f[2] = {{.fd = p.client, .events = POLLIN}, {.fd = p.server, .events = POLLIN}};
    long begun = now_ms();
    check_eq(poll(f, 2, 50), 0);
    check(now_ms() - begun >= 49);
}
CASE(poll_mixed, "poll(2)") {
    struct pair p = pair();
    int pipes[2];
    check_eq(pipe(pipes), 0);
    struct pollfd f[3] = {{.fd = p.server, .events = POLLIN}, {.fd = pipes[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    check_eq(poll(f, 3, 0), 0);
    check_eq(write(pipes[1], "x", 1), 1);
    check_eq(poll(f, 3, PATIENCE), 1);
    check_eq(f[1].revents, POLLIN);
    check_send(p.client, "x");
    check_readable(p.server);
    check_eq(poll(f, 3, PATIENCE), 2);
    check_eq(f[0].revents, POLLIN);
}
CASE(ppoll_ready, "ppoll(2)") {
    struct pair p = pair();
    check_send(p.client, "x");
    struct pollfd f = {.fd = p.server, .events = POLLIN};
    struct timespec t = {PATIENCE / 1000, 0};
    check_eq(ppoll(&f, 1, &t, NULL), 1);
}
CASE(select_all, "select(2)") {
    struct pair p = pair();
    fd_set in, out;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(p.server, &in);
    FD_SET(p.client, &out);
    struct timeval t = {0, 0};
    check_eq(select(p.server + p.client + 1, &in, &out, NULL, &t), 1);
    check(FD_ISSET(p.client, &out));
    check_send(p.client, "x");
    FD_ZERO(&in);
    FD_SET(p.server, &in);
    t.tv_sec = 5;
    check_eq(select(p.server + 1, &in, NULL, NULL, &t), 1);
    check(FD_ISSET(p.server, &in));
}

/* --- epoll --- */

static int set_of(int fd, unsigned what) {
    int set = must(epoll_create1(0));
    struct epoll_event e = {.events = what, .data.u64 = 0x1234567890 + fd};
    check_eq(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), 0);
    return set;
}
/* The one event of a set within a time, 0 for none. */
static unsigned event_of(int set, int fd, int timeout) {
    struct epoll_event e[8];
    int n = epoll_wait(set, e, 8, timeout);
    if (n == 0)
        return 0;
    check_eq(n, 1);
    check_eq(e[0].data.u64, 0x1234567890 + fd);
    return e[0].events;
}
CASE(epoll_level, "epoll(7)") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN);
    check_eq(event_of(set, p.server, 0), 0);
    check_send(p.client, "one");
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
    check_eq(event_of(set, p.server, 0), EPOLLIN);
    check_receive(p.server, "one");
    check_eq(event_of(set, p.server, 0), 0);
}
CASE(epoll_edge, "epoll(7) EPOLLET") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN | EPOLLET);
    check_eq(event_of(set, p.server, 0), 0);
    check_send(p.client, "one");
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
    check_eq(event_of(set, p.server, 20), 0);
    check_send(p.client, "two");
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
    check_receive(p.server, "one");
    check_receive(p.server, "two");
    check_send(p.client, "three");
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
}
CASE(epoll_edge_drained, "epoll(7) EPOLLET") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN | EPOLLET);
    set_nonblock(p.server, 1);
    for (int i = 0; i < 200; i++) {
        check_send(p.client, "x");
        check(event_of(set, p.server, 5000) & EPOLLIN);
        while (receive_some(p.server, 100, 0)->n > 0)
            ;
        check_eq(errno, EAGAIN);
    }
}
CASE(epoll_edge_out, "epoll(7) EPOLLET") {
    struct pair p = pair();
    int n = stuff(p.client, 2000), set = set_of(p.client, EPOLLOUT | EPOLLET);
    check_eq(event_of(set, p.client, 0), 0);
    for (int i = 0; i < n; i++)
        receive_pattern(p.server, 2000, 1, 3000);
    check_eq(event_of(set, p.client, 5000), EPOLLOUT);
}
CASE(epoll_oneshot, "epoll(7) EPOLLONESHOT") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN | EPOLLONESHOT);
    check_send(p.client, "one");
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
    check_send(p.client, "two");
    check_eq(event_of(set, p.server, 20), 0);
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 0x1234567890 + p.server};
    check_eq(epoll_ctl(set, EPOLL_CTL_MOD, p.server, &e), 0);
    check_eq(event_of(set, p.server, 5000), EPOLLIN);
}
CASE(epoll_listener, "epoll(7)") {
    int listener = listening(SOCK_STREAM), set = set_of(listener, EPOLLIN), client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, listener), 0);
    check_eq(event_of(set, listener, 5000), EPOLLIN);
    must(accept(listener, NULL, NULL));
    check_eq(event_of(set, listener, 0), 0);
}
CASE(epoll_listener_before_listen, "epoll(7)") {
    int listener = bound(SOCK_STREAM), set = set_of(listener, EPOLLIN);
    while (event_of(set, listener, 0) & ~(EPOLLHUP | EPOLLOUT))
        fail("nothing can be there yet");
    check_eq(listen(listener, 5), 0);
    pid_t child = spawn(connect_later, &listener);
    await(event_of(set, listener, 100) & EPOLLIN);
    int server = must(accept(listener, NULL, NULL));
    check_receive(server, "from the child");
    check_eq(close(server), 0);
    join(child);
}
CASE(epoll_connecting, "epoll(7)") {
    int listener = listening(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    set_nonblock(fd, 1);
    check_errno(connect_to(fd, listener), EINPROGRESS);
    int set = set_of(fd, EPOLLOUT);
    check_eq(event_of(set, fd, 5000), EPOLLOUT);
    check_eq(get_socket_int(fd, SO_ERROR), 0);
}
CASE(epoll_end, "epoll(7)") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN | EPOLLRDHUP);
    check_eq(close(p.client), 0);
    unsigned seen = event_of(set, p.server, 5000);
    check(seen & EPOLLIN);
    check(seen & EPOLLRDHUP);
}
CASE(epoll_many, "epoll(7)") {
    int b = listening(SOCK_SEQPACKET), a = socket_of(SOCK_SEQPACKET), set = set_of(b, EPOLLIN);
    struct address to = name_of(b);
    for (int i = 0; i < 10; i++) {
        check_eq(sendto(a, "x", 1, 0, &to.sa, to.len), 1);
        check_eq(event_of(set, b, 5000), EPOLLIN);
        check_receive(b, "x");
        check_eq(event_of(set, b, 0), 0);
    }
}
CASE(epoll_mixed, "epoll(7)") {
    struct pair p = pair();
    int tcp = must(socket(family, SOCK_STREAM, 0)), pipes[2], out = must(socket(family, SOCK_STREAM, 0));
    struct address a = loopback(0);
    check_eq(bind(tcp, &a.sa, a.len), 0);
    check_eq(listen(tcp, 1), 0);
    check_eq(pipe(pipes), 0);
    check_eq(connect_to(out, tcp), 0);
    int in = must(accept(tcp, NULL, NULL)), fds[3] = {p.server, in, pipes[0]}, set = must(epoll_create1(0));
    for (int i = 0; i < 3; i++)
        check_eq(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){.events = EPOLLIN, .data.fd = fds[i]}), 0);
    struct epoll_event e[4];
    for (int round = 0; round < 5; round++) {
        char room[8];
        check_eq(epoll_wait(set, e, 4, 0), 0);
        check_send(p.client, "s");
        check_eq(epoll_wait(set, e, 4, PATIENCE), 1);
        check_eq(e[0].data.fd, p.server);
        check_receive(p.server, "s");
        check_eq(send(out, "t", 1, 0), 1);
        check_eq(epoll_wait(set, e, 4, PATIENCE), 1);
        check_eq(e[0].data.fd, in);
        check_eq(recv(in, room, 8, 0), 1);
        check_eq(write(pipes[1], "p", 1), 1);
        check_eq(epoll_wait(set, e, 4, PATIENCE), 1);
        check_eq(e[0].data.fd, pipes[0]);
        check_eq(read(pipes[0], room, 8), 1);
    }
}
CASE(epoll_removed, "epoll(7)") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN);
    check_send(p.client, "x");
    check_readable(p.server);
    check_eq(epoll_ctl(set, EPOLL_CTL_DEL, p.server, NULL), 0);
    check_eq(event_of(set, p.server, 20), 0);
    check_errno(epoll_ctl(set, EPOLL_CTL_DEL, p.server, NULL), ENOENT);
}
CASE(epoll_closed, "epoll(7)") {
    struct pair p = pair();
    int set = set_of(p.server, EPOLLIN);
    check_eq(close(p.server), 0);
    check_eq(event_of(set, p.server, 20), 0);
}
CASE(epoll_waits_for_a_process, "epoll(7)") {
    int listener = listening(SOCK_STREAM), set = set_of(listener, EPOLLIN);
    pid_t child = spawn(connect_later, &listener);
    check_eq(event_of(set, listener, 5000), EPOLLIN);
    int server = must(accept(listener, NULL, NULL));
    check_eq(epoll_ctl(set, EPOLL_CTL_ADD, server, &(struct epoll_event){.events = EPOLLIN, .data.u64 = 0x1234567890 + server}), 0);
    check_eq(event_of(set, server, 5000), EPOLLIN);
    check_receive(server, "from the child");
    check_eq(close(server), 0);
    join(child);
}

CASE(epoll_two_sets, "epoll(7)") {
    struct pair p = pair();
    int a = set_of(p.server, EPOLLIN), b = set_of(p.server, EPOLLIN | EPOLLET);
    check_send(p.client, "x");
    check_eq(event_of(a, p.server, 5000), EPOLLIN);
    check_eq(event_of(b, p.server, 5000), EPOLLIN);
    check_receive(p.server, "x");
    check_eq(event_of(a, p.server, 0), 0);
}
CASE(epoll_nested, "epoll(7)") {
    struct pair p = pair();
    int inner = set_of(p.server, EPOLLIN), outer = set_of(inner, EPOLLIN);
    check_eq(event_of(outer, inner, 0), 0);
    check_send(p.client, "x");
    check_eq(event_of(outer, inner, 5000), EPOLLIN);
    check_eq(event_of(inner, p.server, 5000), EPOLLIN);
    check_receive(p.server, "x");
}
CASE(epoll_dup, "epoll(7)") {
    struct pair p = pair();
    int other = must(dup(p.server)), set = set_of(other, EPOLLIN);
    check_send(p.client, "x");
    check_eq(event_of(set, other, 5000), EPOLLIN);
    check_receive(p.server, "x");
    check_eq(event_of(set, other, 0), 0);
}
CASE(epoll_hundred, "epoll(7)") {
    enum { N = 100 };
    int listener = listening(SOCK_STREAM), set = must(epoll_create1(0));
    static struct pair all[N];
    for (int i = 0; i < N; i++) {
        all[i] = pair_of(listener, socket_of(SOCK_STREAM));
        check_eq(epoll_ctl(set, EPOLL_CTL_ADD, all[i].server, &(struct epoll_event){.events = EPOLLIN, .data.u32 = i}), 0);
    }
    for (int round = 0; round < 3; round++)
        for (int i = round; i < N; i += 7) {
            struct epoll_event e[4];
            check_send(all[i].client, "x");
            check_eq(epoll_wait(set, e, 4, PATIENCE), 1);
            check_eq(e[0].data.u32, i);
            check_receive(all[i].server, "x");
        }
}
static void echo_by_epoll(void *with) {
    int listener = *(int *)with, set = must(epoll_create1(0)), over = 0;
    set_nonblock(listener, 1);
    check_eq(epoll_ctl(set, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = listener}), 0);
    while (over < 4) {
        struct epoll_event e[8];
        int n = must(epoll_wait(set, e, 8, -1));
        for (int i = 0; i < n; i++) {
            int fd = e[i].data.fd;
            char room[100];
            ssize_t got;
            while (fd == listener && (got = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
                check_eq(epoll_ctl(set, EPOLL_CTL_ADD, got, &(struct epoll_event){.events = EPOLLIN | EPOLLET, .data.fd = got}), 0);
            while (fd != listener && (got = recv(fd, room, sizeof room, 0)) > 0)
                check_eq(send(fd, room, got, 0), got);
            if (fd != listener && got == 0) {
                over++;
                check_eq(close(fd), 0);
            } else {
                check_eq(errno, EAGAIN);
            }
        }
    }
}
static void ask_often(void *listener) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect_to(fd, *(int *)listener), 0);
    for (int i = 0; i < 200; i++) {
        char text[20];
        sprintf(text, "message %d", i);
        check_send(fd, text);
        check_receive(fd, text);
    }
}
CASE(epoll_server, "epoll(7)") {
    int listener = listening(SOCK_STREAM);
    pid_t server = spawn(echo_by_epoll, &listener), clients[4];
    for (int i = 0; i < 4; i++)
        clients[i] = spawn(ask_often, &listener);
    for (int i = 0; i < 4; i++)
        join(clients[i]);
    join(server);
}
static void wait_for_event(void *with) {
    int set = *(int *)with;
    struct epoll_event e;
    check_eq(epoll_wait(set, &e, 1, PATIENCE), 1);
}
CASE(epoll_added_while_asleep, "epoll(7)") {
    struct pair p = pair();
    int set = must(epoll_create1(0));
    pthread_t t = start(wait_for_event, &set);
    sleep_ms(20);
    check_eq(epoll_ctl(set, EPOLL_CTL_ADD, p.server, &(struct epoll_event){.events = EPOLLIN}), 0);
    check_send(p.client, "x");
    finish(t);
    check_receive(p.server, "x");
}

/* --- non-blocking, timeouts, ioctls --- */

CASE(nonblocking_by_fcntl, "fcntl(2)") {
    struct pair p = pair();
    set_nonblock(p.server, 1);
    check_errno(receive_some(p.server, 10, 0)->n, EAGAIN);
    set_nonblock(p.server, 0);
    check(!(fcntl(p.server, F_GETFL) & O_NONBLOCK));
    check_send(p.client, "x");
    check_receive(p.server, "x");
}
CASE(nonblocking_by_ioctl, "ioctl_fionbio(2)") {
    struct pair p = pair();
    int on = 1;
    check_eq(ioctl(p.server, FIONBIO, &on), 0);
    check_errno(receive_some(p.server, 10, 0)->n, EAGAIN);
    check(fcntl(p.server, F_GETFL) & O_NONBLOCK);
}
CASE(receive_timeout, "socket(7) SO_RCVTIMEO") {
    struct pair p = pair();
    struct timeval t = {0, 50000};
    check_eq(setsockopt(p.server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
    long begun = now_ms();
    check_errno(receive_some(p.server, 10, 0)->n, EAGAIN);
    check(now_ms() - begun >= 45);
    check_send(p.client, "x");
    check_receive(p.server, "x");
}
CASE(send_timeout, "socket(7) SO_SNDTIMEO") {
    struct pair p = pair();
    stuff(p.client, 5000);
    set_nonblock(p.client, 0);
    struct timeval t = {0, 50000};
    check_eq(setsockopt(p.client, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t), 0);
    char *text = patterned(5000, 1);
    long begun = now_ms();
    check_errno(send(p.client, text, 5000, 0), EAGAIN);
    check(now_ms() - begun >= 45);
}
CASE(receive_interrupted, "recv(2) EINTR") {
    struct pair p = pair();
    pid_t poker = start_poking(SIGUSR1);
    check_errno(receive_some(p.server, 10, 0)->n, EINTR);
    end_poking(poker);
}
CASE(receive_restarted, "signal(7) SA_RESTART") {
    struct pair p = pair();
    pid_t poker = start_poking(SIGUSR1);
    struct sigaction a;
    check_eq(sigaction(SIGUSR1, NULL, &a), 0);
    a.sa_flags |= SA_RESTART;
    check_eq(sigaction(SIGUSR1, &a, NULL), 0);
    pthread_t t = start(send_later, &p.client);
    await(caught[SIGUSR1] > 0);
    check_receive(p.server, "later");
    end_poking(poker);
    finish(t);
}
CASE(send_interrupted, "send(2) EINTR") {
    struct pair p = pair();
    stuff(p.client, 5000);
    set_nonblock(p.client, 0);
    pid_t poker = start_poking(SIGUSR1);
    char *text = patterned(5000, 1);
    check_errno(send(p.client, text, 5000, 0), EINTR);
    end_poking(poker);
}
CASE(poll_interrupted, "poll(2) EINTR") {
    struct pair p = pair();
    pid_t poker = start_poking(SIGUSR1);
    struct pollfd f = {.fd = p.server, .events = POLLIN};
    check_errno(poll(&f, 1, PATIENCE), EINTR);
    end_poking(poker);
}
CASE(bytes_waiting, "sctp(7) FIONREAD, SIOCINQ") {
    struct pair p = pair();
    int n = 7;
    check_eq(ioctl(p.server, FIONREAD, &n), 0);
    check_eq(n, 0);
    check_send(p.client, "12345");
    check_send(p.client, "123");
    await(ioctl(p.server, FIONREAD, &n) == 0 && n > 0);
    check_either(n, 5, 8);
    check_receive(p.server, "12345");
    await(ioctl(p.server, FIONREAD, &n) == 0 && n > 0);
    check_eq(n, 3);
    check_receive(p.server, "123");
    check_eq(ioctl(p.server, FIONREAD, &n), 0);
    check_eq(n, 0);
}
CASE(bytes_waiting_on_a_listener, "sctp(7) FIONREAD") {
    int n = 7;
    check_errno(ioctl(listening(SOCK_STREAM), FIONREAD, &n), EINVAL);
}
CASE(bytes_unsent, "sctp(7) SIOCOUTQ") {
    struct pair p = pair();
    int n = 7;
    check_eq(ioctl(p.client, TIOCOUTQ, &n), 0);
    check_eq(n, 0);
    stuff(p.client, 2000);
    check_eq(ioctl(p.client, TIOCOUTQ, &n), 0);
    check(n > 0);
    while (receive_some(p.server, 5000, MSG_DONTWAIT)->n > 0 || (ioctl(p.client, TIOCOUTQ, &n), n > 0))
        sleep_ms(0);
    check_eq(n, 0);
}

SUITE(ENTRY(poll_new), BOTH(poll_listener), BOTH(poll_data), ENTRY(poll_rest_of_a_message), ENTRY(poll_room), ENTRY(poll_end),
      ENTRY(poll_abort), BOTH(poll_many), ENTRY(poll_notification), ENTRY(poll_waits), ENTRY(poll_waits_for_a_process),
      ENTRY(poll_times_out), ENTRY(poll_mixed), ENTRY(ppoll_ready), ENTRY(select_all), ENTRY(epoll_level), ENTRY(epoll_edge),
      ENTRY(epoll_edge_drained), ENTRY(epoll_edge_out), ENTRY(epoll_oneshot), ENTRY(epoll_listener),
      ENTRY(epoll_listener_before_listen), ENTRY(epoll_connecting), ENTRY(epoll_end), ENTRY(epoll_many), BOTH(epoll_mixed),
      ENTRY(epoll_removed), ENTRY(epoll_closed), ENTRY(epoll_waits_for_a_process), ENTRY(epoll_two_sets), ENTRY(epoll_nested), ENTRY(epoll_dup),
      ENTRY(epoll_hundred), ENTRY(epoll_server), ENTRY(epoll_added_while_asleep), ENTRY(receive_restarted), ENTRY(nonblocking_by_fcntl),
      ENTRY(nonblocking_by_ioctl), ENTRY(receive_timeout), ENTRY(send_timeout), ENTRY(receive_interrupted),
      ENTRY(send_interrupted), ENTRY(poll_interrupted), ENTRY(bytes_waiting), ENTRY(bytes_waiting_on_a_listener), ENTRY(bytes_unsent))
