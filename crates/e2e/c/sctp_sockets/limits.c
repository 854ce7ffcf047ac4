/* Where a process runs out of descriptors, or memory: calls say so, and none waits for what can't come. */
#include "../streams/refuse.h"
#include "associations.h"
#include <sys/resource.h>

static void limit(int most) {
    struct rlimit l;
    check_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
    l.rlim_cur = most;
    check_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
}
/* Connections to a listener, each of them accepted, until one call says that there are no more descriptors: how many. */
#define MOST 400
static int clients[MOST], servers[MOST];
static int pairs_until_emfile(int listener) {
    struct address to = name_of(listener);
    for (int n = 0; n < MOST; n++) {
        clients[n] = servers[n] = -1;
        errno = 0;
        if ((clients[n] = socket(family, SOCK_STREAM, IPPROTO_SCTP)) < 0 || connect(clients[n], &to.sa, to.len) < 0 ||
            (servers[n] = accept(listener, NULL, NULL)) < 0) {
            check_eq(errno, EMFILE);
            return n;
        }
    }
    fail("%d pairs and no EMFILE", MOST);
}
CASE(pairs_of_one_process, "accept(2) EMFILE") {
    limit(400);
    int listener = listening(SOCK_STREAM), n = pairs_until_emfile(listener);
    check(n > 0);
    /* What is there goes on, and what was given up makes room. */
    for (int i = 0; i < n; i++) {
        check_send(clients[i], "question");
        check_receive(servers[i], "question");
    }
    for (int i = 0; i <= n; i++)
        close(clients[i]), close(servers[i]);
    close(listener);
    pair();
}

/* The other side has all the room that it wants. */
struct caller {
    struct address to;
    struct turn next, done;
    int type;
};
static void call_in_turn(void *with) {
    struct caller *c = with;
    for (;;) {
        turn_take(c->next);
        int fd = socket_of(c->type);
        if (c->type == SOCK_STREAM)
            (void)!connect(fd, &c->to.sa, c->to.len);
        (void)!sendto(fd, "question", 8, 0, &c->to.sa, c->to.len);
        turn_give(c->done);
    }
}
static struct caller caller;
static void start_calling(int listener, int type) {
    caller = (struct caller){name_of(listener), turn_new(), turn_new(), type};
    spawn(call_in_turn, &caller);
}
static void call_again(void) {
    turn_give(caller.next);
    turn_take(caller.done);
}
CASE(accept_of_others, "accept(2) EMFILE") {
    int listener = listening(SOCK_STREAM), n = 0;
    start_calling(listener, SOCK_STREAM);
    limit(400);
    do {
        check(n < MOST);
        call_again();
        servers[n] = accept(listener, NULL, NULL);
    } while (servers[n++] >= 0);
    check_eq(errno, EMFILE);
    check(n > 1);
    for (int i = 0; i < n - 1; i++) {
        check_receive(servers[i], "question");
        check_eq(close(servers[i]), 0);
    }
    call_again();
    int s = must(accept(listener, NULL, NULL));
    check_receive(s, "question");
}
/* Whoever could not be let in is let in later, as one who waits in the kernel's queue is. */
CASE(accept_of_others_once_there_is_room, "accept(2) EMFILE") {
    int listener = listening(SOCK_STREAM);
    start_calling(listener, SOCK_STREAM);
    for (int left = 0; left < 12; left++) {
        int held[500], n = 0, server = -1;
        limit(400);
        while ((held[n] = open("/dev/null", O_RDONLY)) >= 0)
            n++;
        for (int i = 0; i < left; i++)
            close(held[--n]);
        call_again();
        check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
        check_eq(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
        server = accept(listener, NULL, NULL);
        if (server < 0)
            check_eq(errno, EMFILE);
        while (n > 0)
            close(held[--n]);
        if (server < 0) {
            check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
            server = must(accept(listener, NULL, NULL));
        }
        check_receive(server, "question");
        check_eq(close(server), 0);
    }
}
/* Somebody has called who can't be let in: it is said each time, and poll(2) does not change its mind. */
static int accept_or_enomem(int listener) {
    int server = accept(listener, NULL, NULL);
    for (int i = 0; i < 3 && server < 0; i++) {
        check_eq(errno, ENOMEM);
        check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
        server = accept(listener, NULL, NULL);
    }
    return server;
}
CASE(accept_of_others_once_there_is_memory, "accept(2) ENOMEM") {
    int listener = listening(SOCK_STREAM);
    start_calling(listener, SOCK_STREAM);
    for (int looks = 0; looks < 2; looks++) {
        starve();
        call_again();
        call_again();
        if (looks)
            check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
        int server = accept_or_enomem(listener);
        feed();
        for (int i = 0; i < 2; i++) {
            if (server < 0) {
                check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
                server = must(accept(listener, NULL, NULL));
            }
            check_receive(server, "question");
            check_eq(close(server), 0);
            server = -1;
        }
    }
}
/* The socket is the parent's, and it is the parent that has none. */
CASE(accept_by_a_child_once_its_parent_has_memory, "accept(2) ENOMEM") {
    int listener = listening(SOCK_STREAM);
    struct turn called = turn_new(), said = turn_new(), again = turn_new();
    start_calling(listener, SOCK_STREAM);
    pid_t child = forked();
    if (child == 0) {
        turn_take(called);
        check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
        int server = accept_or_enomem(listener);
        turn_give(said);
        turn_take(again);
        if (server < 0)
            server = must(accept(listener, NULL, NULL));
        check_receive(server, "question");
        _exit(0);
    }
    starve();
    call_again();
    turn_give(called);
    turn_take(said);
    feed();
    turn_give(again);
    join(child);
}
CASE(receive_of_others_once_there_is_memory, "recvmsg(2) ENOMEM") {
    int listener = listening(SOCK_SEQPACKET);
    char text[100];
    start_calling(listener, SOCK_SEQPACKET);
    starve();
    call_again();
    check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
    ssize_t got = recv(listener, text, sizeof text, 0);
    for (int i = 0; i < 3 && got < 0; i++) {
        check_eq(errno, ENOMEM);
        check_eq(events(listener, POLLIN, PATIENCE), POLLIN);
        got = recv(listener, text, sizeof text, 0);
    }
    feed();
    if (got < 0)
        got = must(recv(listener, text, sizeof text, 0));
    check_eq(got, 8);
}
CASE(accept_where_no_number_can_be_moved, "accept(2)") {
    int listener = listening(SOCK_STREAM);
    start_calling(listener, SOCK_STREAM);
    refuse_some(SYS_fcntl, 1, F_DUPFD_CLOEXEC, EMFILE);
    call_again();
    int s = must(accept(listener, NULL, NULL));
    check_receive(s, "question");
}
CASE(receive_of_others, "recvmsg(2)") {
    int listener = listening(SOCK_SEQPACKET), n = 0;
    start_calling(listener, SOCK_SEQPACKET);
    limit(400);
    ssize_t got;
    char text[100];
    do {
        /* Associations by packets take none. */
        if (n == MOST && by_packets())
            return;
        check(n++ < MOST);
        call_again();
        got = recv(listener, text, sizeof text, 0);
        if (got >= 0)
            check_eq(got, 8);
    } while (got >= 0);
    check_eq(errno, EMFILE);
    check(n > 1);
}
CASE(peel_off, "sctp_peeloff(3) EMFILE") {
    struct many m = many();
    struct rlimit l;
    check_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
    int last = must(dup(m.a));
    close(last);
    limit(last);
    sctp_peeloff_arg_t arg = {.associd = m.in_b};
    socklen_t len = sizeof arg;
    check_errno(getsockopt(m.b, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &arg, &len), EMFILE);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "still here"), 10);
    check_receive(m.b, "still here");
    check_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
    check(getsockopt(m.b, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &arg, &len) >= 0);
    check_eq(send_to_assoc(m.a, m.in_a, 0, "peeled"), 6);
    check_receive(arg.sd, "peeled");
}

SUITE(BOTH(pairs_of_one_process), BOTH(accept_of_others), BOTH(accept_of_others_once_there_is_room),
      BOTH(accept_of_others_once_there_is_memory), BOTH(accept_by_a_child_once_its_parent_has_memory),
      BOTH(receive_of_others_once_there_is_memory),
      BOTH(accept_where_no_number_can_be_moved), BOTH(receive_of_others), BOTH(peel_off))
