/* exec(3), posix_spawn(3) and the end of processes, with sockets that somebody else goes on with. */
#include "children.h"
#include <spawn.h>

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
    check_eq(poll(&set, 1, PATIENCE), 1);
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
        check_eq(poll(&p, 1, PATIENCE), 1);
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

SUITE(BOTH(a_daemon_serves_after_its_parent_has_ended), ENTRY(an_association_outlives_the_process_that_accepted_it),
      ENTRY(an_association_ends_with_a_process_that_cannot_fork),
      ENTRY(an_association_ends_with_a_process_whose_children_cannot_fork),
      ENTRY(calls_of_a_child_fail_when_the_owner_is_killed), ENTRY(an_exec_lets_go),
      ENTRY(a_worker_goes_on_when_its_parent_execs), ENTRY(what_is_not_shared_ends_with_the_process),
      ENTRY(an_exec_keeps_a_socket_that_only_this_process_has), ENTRY(an_owner_execs_and_goes_on),
      ENTRY(a_connect_to_one_that_closes_at_once_succeeds), ENTRY(a_spawned_program_has_the_socket),
      ENTRY(a_spawned_program_gets_an_error_where_its_socket_cannot_be_passed))
