/* fork(2), with sockets that several processes have. */
#include "children.h"
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

CASE(a_killed_child_lets_go, "fork(2)") {
    struct pair p = pair();
    pid_t child = spawn(wait_for_death, NULL);
    check_eq(close(p.server), 0);
    say(p.client, "nobody reads this");
    struct pollfd set = {.fd = p.client, .events = POLLIN};
    check_eq(poll(&set, 1, 50), 0);
    slay(child);
    check_eq(poll(&set, 1, PATIENCE), 1);
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
    check_eq(poll(&set, 1, PATIENCE), 1);
    check_receive(fd, "poll");
    check_eq(poll(&set, 1, 20), 0);
    int ep = must(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    check_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), 0);
    check_eq(epoll_wait(ep, &event, 1, 20), 0);
    say(fd, "now epoll");
    check_eq(epoll_wait(ep, &event, 1, PATIENCE), 1);
    check_eq(event.data.u32, 7);
    check_receive(fd, "epoll");
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    check_eq(epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event), 0);
    check_eq(epoll_wait(ep, &event, 1, PATIENCE), 1);
    check_eq(event.events & (EPOLLIN | EPOLLOUT), EPOLLOUT);
    say(fd, "now edges");
    do
        check_eq(epoll_wait(ep, &event, 1, PATIENCE), 1);
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
      ENTRY(a_killed_child_lets_go), ENTRY(a_parent_goes_on_when_the_child_is_killed), ENTRY(system_in_between),
      ENTRY(a_grandchild_serves), ENTRY(a_close_in_a_child_needs_nothing), ENTRY(large_messages_to_and_from_a_child),
      ENTRY(a_child_polls), ENTRY(signals_and_timeouts_end_a_childs_wait), ENTRY(options_and_names_in_a_child),
      ENTRY(a_child_connects_a_bound_socket_of_the_parents), ENTRY(a_child_that_does_nothing_disturbs_nothing),
      ENTRY(a_child_has_sockets_of_its_own_too), ENTRY(a_fork_server_keeps_no_descriptors))
