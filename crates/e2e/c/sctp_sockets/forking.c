/* fork(2), exec(3) and the end of processes, with sockets that several processes have. */
#include "associations.h"
#include "../streams/refuse.h"
#include <dirent.h>
#include <spawn.h>
#include <sys/socket.h>

/* --- a client in a process of its own, made before anything is shared --- */

static void say(int fd, const char *text) { check_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text)); }

/* Echoes until the peer ends. */
static void echo(int fd) {
    static char data[600000];
    ssize_t n;
    while ((n = must(recv(fd, data, sizeof data, 0))) > 0)
        check_eq(send(fd, data, n, 0), n);
}

static int connected(struct address to) {
    int fd = socket_of(SOCK_STREAM);
    check_eq(connect(fd, &to.sa, to.len), 0);
    return fd;
}

struct talk {
    struct address to;
    int rounds;
};
/* Connects, has `rounds` messages echoed, ends its direction, and sees the end. */
static void converse(void *with) {
    struct talk *talk = with;
    int fd = connected(talk->to);
    for (int i = 0; i < talk->rounds; i++) {
        char text[40];
        sprintf(text, "message %d", i);
        say(fd, text);
        check_receive(fd, text);
    }
    check_eq(shutdown(fd, SHUT_WR), 0);
    check_end(fd);
}

static void serve(void *with) { echo(*(int *)with); }

CASE(a_child_serves_what_the_parent_accepted, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    struct talk talk = {name_of(listener), 20};
    pid_t client = spawn(converse, &talk);
    int fd = must(accept(listener, NULL, NULL));
    pid_t child = spawn(serve, &fd);
    check_eq(close(fd), 0);
    join(child);
    join(client);
}

CASE(a_child_serves_while_the_parent_goes_on_accepting, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    struct talk talk = {name_of(listener), 5};
    pid_t client[4], child[4];
    for (int i = 0; i < 4; i++)
        client[i] = spawn(converse, &talk);
    for (int i = 0; i < 4; i++) {
        int fd = must(accept(listener, NULL, NULL));
        child[i] = spawn(serve, &fd);
        check_eq(close(fd), 0);
    }
    for (int i = 0; i < 4; i++) {
        join(child[i]);
        join(client[i]);
    }
}

static void work(void *with) {
    for (int i = 0; i < 2; i++) {
        int fd = must(accept(*(int *)with, NULL, NULL));
        echo(fd);
        check_eq(close(fd), 0);
    }
}

CASE(workers_share_a_listener, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    struct talk talk = {name_of(listener), 3};
    pid_t worker[3], client[6];
    for (int i = 0; i < 3; i++)
        worker[i] = spawn(work, &listener);
    for (int i = 0; i < 6; i++)
        client[i] = spawn(converse, &talk);
    for (int i = 0; i < 3; i++)
        join(worker[i]);
    for (int i = 0; i < 6; i++)
        join(client[i]);
}

CASE(workers_serve_after_the_parent_has_closed_the_listener, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    struct talk talk = {name_of(listener), 3};
    pid_t worker = spawn(work, &listener);
    check_eq(close(listener), 0);
    for (int i = 0; i < 2; i++)
        join(spawn(converse, &talk));
    join(worker);
}

static void answer_once(void *with) {
    struct got *g = receive(*(int *)with);
    check_eq(sendto(*(int *)with, "from the child", 14, 0, &g->from.sa, g->from.len), 14);
}

CASE(a_child_receives_and_answers_on_a_one_to_many_socket, "fork(2)") {
    int many = listening(SOCK_SEQPACKET);
    int other = socket_of(SOCK_SEQPACKET);
    struct address to = name_of(many);
    check_eq(sendto(other, "first", 5, 0, &to.sa, to.len), 5);
    struct got *g = check_receive(many, "first");
    struct address back = g->from;
    pid_t child = spawn(answer_once, &many);
    check_eq(sendto(other, "second", 6, 0, &to.sa, to.len), 6);
    check_receive(other, "from the child");
    join(child);
    check_eq(sendto(many, "from the parent", 15, 0, &back.sa, back.len), 15);
    check_receive(other, "from the parent");
}

static void peel(void *with) {
    int many = *(int *)with;
    want_rcvinfo(many);
    struct got *g = check_receive(many, "peel me");
    check(g->has_rcv);
    sctp_peeloff_arg_t arg = {.associd = g->rcv.rcv_assoc_id};
    socklen_t len = sizeof arg;
    check_eq(getsockopt(many, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &arg, &len) >= 0, 1);
    say(arg.sd, "peeled");
    echo(arg.sd);
}

CASE(a_child_peels_off, "RFC 6458 9.2") {
    int many = listening(SOCK_SEQPACKET);
    struct address to = name_of(many);
    pid_t child = spawn(peel, &many);
    int fd = connected(to);
    say(fd, "peel me");
    check_receive(fd, "peeled");
    say(fd, "again");
    check_receive(fd, "again");
    check_eq(shutdown(fd, SHUT_WR), 0);
    check_end(fd);
    join(child);
}

struct pipeline {
    struct turn turn;
    int fd;
};

/* Ends at once, and leaves a child that accepts. */
static void be_daemon(void *with) {
    struct pipeline *p = with;
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    pid_t child = forked();
    if (child)
        _exit(0);
    setsid();
    check_eq(write(p->turn.fd[1], &at, sizeof at), (ssize_t)sizeof at);
    work(&listener);
    _exit(0);
}

CASE(a_daemon_serves_after_its_parent_has_ended, "daemon(3)") {
    struct pipeline p = {.turn = turn_new()};
    join(spawn(be_daemon, &p));
    struct talk talk = {.rounds = 5};
    check_eq(read(p.turn.fd[0], &talk.to, sizeof talk.to), (ssize_t)sizeof talk.to);
    for (int i = 0; i < 2; i++)
        join(spawn(converse, &talk));
}

/* As be_daemon, with an association that is established already. */
static pid_t share_an_association(struct pipeline *p, int *fd) {
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    check_eq(write(p->turn.fd[1], &at, sizeof at), (ssize_t)sizeof at);
    *fd = must(accept(listener, NULL, NULL));
    check_receive(*fd, "before");
    return forked();
}

/* Has an association with a process that does this, and has ended. */
static int connected_before_the_end_of(void (*body)(void *)) {
    struct pipeline p = {.turn = turn_new()};
    pid_t owner = spawn(body, &p);
    struct address to;
    check_eq(read(p.turn.fd[0], &to, sizeof to), (ssize_t)sizeof to);
    int fd = connected(to);
    say(fd, "before");
    join(owner);
    return fd;
}

static void end_with_an_association(void *with) {
    int fd;
    if (share_an_association(with, &fd))
        exit(0);
    echo(fd);
    _exit(0);
}

CASE(an_association_outlives_the_process_that_accepted_it, "exit(3)") {
    int fd = connected_before_the_end_of(end_with_an_association);
    for (int i = 0; i < 10; i++) {
        say(fd, "after");
        check_receive(fd, "after");
    }
    check_eq(shutdown(fd, SHUT_WR), 0);
    check_end(fd);
}

/* With nobody to leave it to. */
static void end_without(struct pipeline *p, void (*refuse_forks)(void)) {
    int fd;
    char data[10];
    if (share_an_association(p, &fd)) {
        refuse_forks();
        exit(0);
    }
    check(recv(fd, data, sizeof data, 0) <= 0);
    _exit(0);
}
static void ends_without_a_keeper(void (*body)(void *)) {
    int fd = connected_before_the_end_of(body);
    char data[10];
    /* What is in shared memory is the child's too, and goes on. */
    shutdown(fd, SHUT_WR);
    check(recv(fd, data, sizeof data, 0) <= 0);
}

static void refuse_all_forks(void) {
    refuse(SYS_clone, ENOMEM);
    refuse(SYS_clone3, ENOMEM);
}
static void end_where_nothing_forks(void *with) { end_without(with, refuse_all_forks); }
CASE(an_association_ends_with_a_process_that_cannot_fork, "exit(3)") { ends_without_a_keeper(end_where_nothing_forks); }

/* A child that is made by fork(3) can't make one itself. */
static void refuse_forks_of_children(void) { refuse_some(SYS_clone, 0, SIGCHLD, ENOMEM); }
static void end_where_children_do_not_fork(void *with) { end_without(with, refuse_forks_of_children); }
CASE(an_association_ends_with_a_process_whose_children_cannot_fork, "exit(3)") {
    ends_without_a_keeper(end_where_children_do_not_fork);
}

static void wait_for_death(void *with) {
    (void)with;
    for (;;)
        pause();
}

CASE(a_killed_child_lets_go, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(wait_for_death, NULL);
    check_eq(close(p.server), 0);
    say(p.client, "nobody reads this");
    struct pollfd set = {.fd = p.client, .events = POLLIN};
    check_eq(poll(&set, 1, 50), 0);
    slay(child);
    check_eq(poll(&set, 1, 5000), 1);
    char text[8];
    check(recv(p.client, text, sizeof text, 0) <= 0);
}

CASE(a_parent_goes_on_when_the_child_is_killed, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(wait_for_death, NULL);
    slay(child);
    say(p.client, "to");
    check_receive(p.server, "to");
    say(p.server, "fro");
    check_receive(p.client, "fro");
}

/* A process with a socket, and its child that waits at it. */
static void be_owner(void *with) {
    struct pipeline *p = with;
    int listener = listening(SOCK_STREAM);
    pid_t child = forked();
    if (child)
        wait_for_death(NULL);
    turn_give(p->turn);
    int got = accept(listener, NULL, NULL);
    int errno_of = got < 0 ? errno : 0;
    check_eq(write(p->turn.fd[1], &errno_of, sizeof errno_of), (ssize_t)sizeof errno_of);
    _exit(0);
}

CASE(calls_of_a_child_fail_when_the_owner_is_killed, "fork(2)") {
    struct pipeline p = {.turn = turn_new()};
    pid_t owner = spawn(be_owner, &p);
    turn_take(p.turn);
    sleep_ms(30);
    slay(owner);
    int seen;
    check_eq(read(p.turn.fd[0], &seen, sizeof seen), (ssize_t)sizeof seen);
    check_eq(seen, ECONNRESET);
}

CASE(system_in_between, "system(3)") {
    struct pair p = pair();
    pid_t child = spawn(serve, &p.server);
    check_eq(system("true"), 0);
    say(p.client, "one");
    check_receive(p.client, "one");
    check_eq(system("exit 3"), 3 << 8);
    say(p.client, "two");
    check_receive(p.client, "two");
    check_eq(close(p.server), 0);
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_end(p.client);
    join(child);
}

static void have_a_child_serve(void *with) {
    pid_t child = spawn(serve, with);
    join(child);
}

CASE(a_grandchild_serves, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(have_a_child_serve, &p.server);
    check_eq(close(p.server), 0);
    say(p.client, "deep");
    check_receive(p.client, "deep");
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_end(p.client);
    join(child);
}

static void be_exec(void *with) {
    (void)with;
    execlp("sleep", "sleep", "20", (char *)NULL);
}

CASE(an_exec_lets_go, "execve(2)") {
    struct pair p = pair();
    must(fcntl(p.server, F_SETFD, FD_CLOEXEC));
    pid_t child = spawn(be_exec, NULL);
    check_eq(close(p.server), 0);
    struct pollfd set = {.fd = p.client, .events = POLLIN};
    check_eq(poll(&set, 1, 5000), 1);
    /* In shared memory that is as if the process had been killed. */
    char text[8];
    check(recv(p.client, text, sizeof text, 0) <= 0);
    slay(child);
}

static void exec_with_a_worker(void *with) {
    struct pipeline *p = with;
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    pid_t child = forked();
    if (!child) {
        check_eq(write(p->turn.fd[1], &at, sizeof at), (ssize_t)sizeof at);
        work(&listener);
        _exit(0);
    }
    be_exec(NULL);
}

CASE(a_worker_goes_on_when_its_parent_execs, "execve(2)") {
    struct pipeline p = {.turn = turn_new()};
    pid_t owner = spawn(exec_with_a_worker, &p);
    struct talk talk = {.rounds = 5};
    check_eq(read(p.turn.fd[0], &talk.to, sizeof talk.to), (ssize_t)sizeof talk.to);
    sleep_ms(100);
    for (int i = 0; i < 2; i++)
        join(spawn(converse, &talk));
    slay(owner);
}

static void end_with_a_client(void *with) {
    int listener = *(int *)with;
    int own = listening(SOCK_STREAM), fd = connected(name_of(listener));
    say(fd, "last words");
    if (forked())
        exit(0);
    sleep_ms(200);
    check_eq(close(own), 0);
    _exit(0);
}

CASE(what_is_not_shared_ends_with_the_process, "exit(3)") {
    int listener = listening(SOCK_STREAM);
    pid_t client = spawn(end_with_a_client, &listener);
    int fd = must(accept(listener, NULL, NULL));
    check_receive(fd, "last words");
    check_end(fd);
    join(client);
}

CASE(an_exec_keeps_a_socket_that_only_this_process_has, "execve(2)") {
    if (role()) {
        echo(70);
        return;
    }
    struct pair p = pair();
    struct talk talk = {name_of(p.listener), 5};
    check_eq(dup2(p.listener, 71), 71);
    must(fcntl(p.client, F_SETFD, FD_CLOEXEC));
    pid_t client = spawn(converse, &talk);
    int fd = must(accept(p.listener, NULL, NULL));
    check_eq(dup2(fd, 70), 70);
    check_eq(close(fd), 0);
    pid_t waiter = spawn_role("an_exec_keeps_a_socket_that_only_this_process_has", "child");
    check_eq(close(70), 0);
    join(waiter);
    join(client);
}

CASE(an_owner_execs_and_goes_on, "execve(2)") {
    if (role()) {
        say(70, "the new image");
        check_receive(70, "hears");
        /* The listener too. */
        check_eq(close(must(accept(71, NULL, NULL))), 0);
        _exit(0);
    }
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    check_eq(dup2(listener, 71), 71);
    pid_t other = forked();
    if (other == 0) {
        close(listener), close(71);
        int fd = connected(at);
        check_receive(fd, "the new image");
        say(fd, "hears");
        check_eq(close(connected(at)), 0);
        check_end(fd);
        _exit(0);
    }
    int fd = must(accept(listener, NULL, NULL));
    check_eq(dup2(fd, 70), 70);
    check_errno(execl("/nowhere/to/be/found", "nothing", (char *)NULL), ENOENT);
    become("an_owner_execs_and_goes_on", "image");
}

static void connect_and_see_the_end(void *with) {
    struct address *to = with;
    check_end(connected(*to));
}

/* The client comes to look when all is over. */
CASE(a_connect_to_one_that_closes_at_once_succeeds, "connect(2)") {
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    for (int i = 0; i < 5; i++) {
        pid_t client = spawn(connect_and_see_the_end, &at);
        struct pollfd p = {listener, POLLIN, 0};
        check_eq(poll(&p, 1, 10000), 1);
        check_eq(kill(client, SIGSTOP), 0);
        must(fcntl(listener, F_SETFL, O_NONBLOCK));
        int fd = accept(listener, NULL, NULL);
        must(fcntl(listener, F_SETFL, 0));
        if (fd < 0 && errno == EAGAIN) {
            /* What was told of has failed for want of something, and it tries again. */
            check_eq(kill(client, SIGCONT), 0);
            fd = accept(listener, NULL, NULL);
        }
        check_eq(close(must(fd)), 0);
        sleep_ms(20);
        check_eq(kill(client, SIGCONT), 0);
        join(client);
    }
}

CASE(a_spawned_program_has_the_socket, "posix_spawn(3)") {
    if (role()) {
        echo(70);
        return;
    }
    struct pair p = pair();
    check_eq(dup2(p.server, 70), 70);
    check_eq(close(p.server), 0);
    setenv("CASE_ROLE", "spawned", 1);
    char *argv[] = {"case", "a_spawned_program_has_the_socket", NULL};
    pid_t child;
    check_eq(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    check_eq(close(70), 0);
    must(fcntl(p.client, F_SETFD, FD_CLOEXEC));
    say(p.client, "hello");
    check_receive(p.client, "hello");
    check_eq(shutdown(p.client, SHUT_WR), 0);
    check_end(p.client);
    join(child);
}

/* It is not there, or works; nobody waits for what never comes. */
CASE(a_spawned_program_gets_an_error_where_its_socket_cannot_be_passed, "posix_spawn(3)") {
    if (role()) {
        char text[40];
        ssize_t n = recv(70, text, sizeof text, 0);
        check(n != 0);
        return;
    }
    struct pair p = pair();
    check_eq(dup2(p.server, 70), 70);
    check_eq(close(p.server), 0);
    setenv("CASE_ROLE", "spawned", 1);
    char *argv[] = {"case", "a_spawned_program_gets_an_error_where_its_socket_cannot_be_passed", NULL};
    pid_t child;
    refuse(SYS_socketpair, EMFILE);
    check_eq(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    check_send(p.client, "hello");
    join(child);
}

struct closing {
    struct turn parents, childs;
    int fd;
};
static void close_with_nothing_left(void *with) {
    struct closing *c = with;
    refuse(SYS_socketpair, EMFILE);
    check_eq(close(c->fd), 0);
    turn_give(c->parents);
    turn_take(c->childs);
}

CASE(a_close_in_a_child_needs_nothing, "close(2)") {
    struct closing c = {turn_new(), turn_new(), listening(SOCK_STREAM)};
    struct address at = name_of(c.fd);
    pid_t child = spawn(close_with_nothing_left, &c);
    turn_take(c.parents);
    check_eq(close(c.fd), 0);
    int fd = socket_of(SOCK_STREAM);
    int bound;
    await((bound = bind_to(fd, at)) == 0 || errno != EADDRINUSE);
    check_eq(bound, 0);
    turn_give(c.childs);
    join(child);
}

static void echo_large(void *with) {
    int fd = *(int *)with;
    static char data[300000];
    for (int i = 0; i < 5; i++) {
        ssize_t got = 0;
        while (got < 150000)
            got += must(recv(fd, data + got, sizeof data - got, 0));
        check_eq(got, 150000);
        check_eq(send(fd, data, got, 0), got);
    }
}

CASE(large_messages_to_and_from_a_child, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(echo_large, &p.server);
    static char data[150000], back[150000];
    for (int i = 0; i < 5; i++) {
        memset(data, 'a' + i, sizeof data);
        check_eq(send(p.client, data, sizeof data, 0), (ssize_t)sizeof data);
        for (size_t got = 0; got < sizeof back;)
            got += must(recv(p.client, back + got, sizeof back - got, 0));
        check_eq(memcmp(data, back, sizeof data), 0);
    }
    join(child);
}

static void poll_and_epoll(void *with) {
    int fd = *(int *)with;
    struct pollfd set = {.fd = fd, .events = POLLIN};
    check_eq(poll(&set, 1, 5000), 1);
    check_receive(fd, "poll");
    check_eq(poll(&set, 1, 20), 0);
    int ep = must(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    check_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), 0);
    check_eq(epoll_wait(ep, &event, 1, 20), 0);
    say(fd, "now epoll");
    check_eq(epoll_wait(ep, &event, 1, 5000), 1);
    check_eq(event.data.u32, 7);
    check_receive(fd, "epoll");
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    check_eq(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event), 0);
    check_eq(epoll_wait(ep, &event, 1, 5000), 1);
    check_eq(event.events & (EPOLLIN | EPOLLOUT), EPOLLOUT);
    say(fd, "now edges");
    do
        check_eq(epoll_wait(ep, &event, 1, 5000), 1);
    while (!(event.events & EPOLLIN));
    check_receive(fd, "edges");
    say(fd, "done");
}

CASE(a_child_polls, "poll(2)") {
    struct pair p = pair();
    pid_t child = spawn(poll_and_epoll, &p.server);
    sleep_ms(20);
    say(p.client, "poll");
    check_receive(p.client, "now epoll");
    sleep_ms(20);
    say(p.client, "epoll");
    check_receive(p.client, "now edges");
    sleep_ms(20);
    say(p.client, "edges");
    check_receive(p.client, "done");
    join(child);
}

static void be_interrupted(void *with) {
    pid_t poker = start_poking(SIGUSR1);
    check_errno(accept(*(int *)with, NULL, NULL), EINTR);
    end_poking(poker);
    struct timeval soon = {.tv_usec = 50000};
    check_eq(setsockopt(*(int *)with, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    check_errno(accept(*(int *)with, NULL, NULL), EAGAIN);
    must(fcntl(*(int *)with, F_SETFL, O_NONBLOCK));
    check_errno(accept(*(int *)with, NULL, NULL), EAGAIN);
}

CASE(signals_and_timeouts_end_a_childs_wait, "signal(7)") {
    int listener = listening(SOCK_STREAM);
    join(spawn(be_interrupted, &listener));
}

static void use_options(void *with) {
    int fd = *(int *)with;
    must_set(fd, SCTP_NODELAY, 1);
    check_eq(get_int(fd, SCTP_NODELAY), 1);
    struct sctp_status status = {0};
    must_get(fd, SCTP_STATUS, &status);
    check_eq(status.sstat_state, SCTP_ESTABLISHED);
    check(port_in(&(struct address){.in = *(struct sockaddr_in *)&status.sstat_primary.spinfo_address}) > 0);
    struct address me = name_of(fd), peer = peer_of(fd);
    check(port_in(&me) && port_in(&peer));
    check_errno(setsockopt(fd, IPPROTO_SCTP, 9999, &me, 4), ENOPROTOOPT);
    int pending = -1;
    sleep_ms(50);
    check_eq(ioctl(fd, FIONREAD, &pending), 0);
    check_eq(pending, 7);
    check_receive(fd, "waiting");
}

CASE(options_and_names_in_a_child, "RFC 6458 8") {
    struct pair p = pair();
    say(p.client, "waiting");
    join(spawn(use_options, &p.server));
    /* Options of an association in shared memory are each process's own. */
    check_eq(get_int(p.server, SCTP_NODELAY), by_packets());
}

static void connect_for_the_parent(void *with) {
    struct pipeline *p = with;
    struct address to;
    check_eq(read(p->turn.fd[0], &to, sizeof to), (ssize_t)sizeof to);
    check_eq(connect(p->fd, &to.sa, to.len), 0);
    say(p->fd, "from the child");
}

CASE(a_child_connects_a_bound_socket_of_the_parents, "connect(2)") {
    int listener = listening(SOCK_STREAM);
    struct address at = name_of(listener);
    struct pipeline p = {.turn = turn_new(), .fd = bound(SOCK_STREAM)};
    pid_t child = spawn(connect_for_the_parent, &p);
    check_eq(write(p.turn.fd[1], &at, sizeof at), (ssize_t)sizeof at);
    int fd = must(accept(listener, NULL, NULL));
    check_receive(fd, "from the child");
    join(child);
}

static void do_nothing(void *with) { (void)with; }

CASE(a_child_that_does_nothing_disturbs_nothing, "fork(2)") {
    struct pair p = pair();
    for (int i = 0; i < 5; i++) {
        join(spawn(do_nothing, NULL));
        say(p.client, "to");
        check_receive(p.server, "to");
        say(p.server, "fro");
        check_receive(p.client, "fro");
    }
    check_eq(close(p.client), 0);
    check_end(p.server);
}

static int descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    check(all);
    int count = 0;
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

CASE(a_fork_server_keeps_no_descriptors, "fork(2)") {
    int listener = listening(SOCK_STREAM);
    struct talk talk = {name_of(listener), 2};
    int before = 0;
    for (int i = 0; i < 40; i++) {
        pid_t client = spawn(converse, &talk);
        int fd = must(accept(listener, NULL, NULL));
        pid_t child = spawn(serve, &fd);
        check_eq(close(fd), 0);
        join(child);
        join(client);
        if (i == 9)
            before = descriptors();
    }
    int after = descriptors();
    /* Some of what was in shared memory is kept for a while. */
    check(after <= before + (by_packets() ? 8 : 150));
}

static void use_own(void *with) {
    (void)with;
    struct pair p = pair();
    say(p.client, "own");
    check_receive(p.server, "own");
}

CASE(a_child_has_sockets_of_its_own_too, "fork(2)") {
    struct pair p = pair();
    join(spawn(use_own, NULL));
    say(p.client, "still");
    check_receive(p.server, "still");
}

SUITE(BOTH(a_child_serves_what_the_parent_accepted), ENTRY(a_child_serves_while_the_parent_goes_on_accepting),
      BOTH(workers_share_a_listener), ENTRY(workers_serve_after_the_parent_has_closed_the_listener),
      BOTH(a_child_receives_and_answers_on_a_one_to_many_socket), ENTRY(a_child_peels_off),
      BOTH(a_daemon_serves_after_its_parent_has_ended), ENTRY(an_association_outlives_the_process_that_accepted_it),
      ENTRY(an_association_ends_with_a_process_that_cannot_fork),
      ENTRY(an_association_ends_with_a_process_whose_children_cannot_fork), ENTRY(a_killed_child_lets_go), ENTRY(a_parent_goes_on_when_the_child_is_killed),
      ENTRY(calls_of_a_child_fail_when_the_owner_is_killed), ENTRY(system_in_between), ENTRY(a_grandchild_serves),
      ENTRY(an_exec_lets_go), ENTRY(a_worker_goes_on_when_its_parent_execs),
      ENTRY(what_is_not_shared_ends_with_the_process), ENTRY(an_exec_keeps_a_socket_that_only_this_process_has),
      ENTRY(an_owner_execs_and_goes_on), ENTRY(a_connect_to_one_that_closes_at_once_succeeds), ENTRY(a_spawned_program_has_the_socket),
      ENTRY(a_spawned_program_gets_an_error_where_its_socket_cannot_be_passed), ENTRY(a_close_in_a_child_needs_nothing), ENTRY(large_messages_to_and_from_a_child), ENTRY(a_child_polls),
      ENTRY(signals_and_timeouts_end_a_childs_wait), ENTRY(options_and_names_in_a_child),
      ENTRY(a_child_connects_a_bound_socket_of_the_parents), ENTRY(a_child_that_does_nothing_disturbs_nothing),
      ENTRY(a_child_has_sockets_of_its_own_too), ENTRY(a_fork_server_keeps_no_descriptors))
