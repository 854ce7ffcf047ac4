/* Endpoints across fork and exec, what is flushed when a process ends, and what ten thousand connections leave behind. */
#include "endpoints.h"
#include <dirent.h>
#include <sys/mman.h>

/* --- fork --- */

CASE(child_serves, "XNS 5.2 fork(2)") {
    struct address at;
    int listener = listener_at(&at, 4);
    for (int i = 0; i < 5; i++) {
        int client = connecting(&at), server = serve(listener);
        pid_t child = branch();
        if (child == 0) {
                must_t(t_close(listener));
            must_t(t_close(client));
            rcv(server, "who are you", 0);
            snd(server, "a child", 0);
            _exit(0);
        }
        must_t(t_close(server));
        confirm(client);
        snd(client, "who are you", 0);
        rcv(client, "a child", 0);
        join(child);
        check_gone(client);
        must_t(t_close(client));
    }
}
CASE(child_syncs, "XNS 5.2 t_sync()") {
    struct pair p = connected();
    int idle = bound(), unbound = open_endpoint();
    pid_t child = branch();
    if (child == 0) {
        check_eq(t_sync(p.server), T_DATAXFER);
        check_eq(t_sync(p.listener), T_IDLE);
        check_eq(t_sync(idle), T_IDLE);
        check_eq(t_sync(unbound), T_UNBND);
        check_echo(p.server, p.client);
        _exit(0);
    }
    join(child);
    check_state(p.server, T_DATAXFER);
    check_echo(p.client, p.server);
}
/* What a child does to inherited endpoints is the parent's to know by t_sync. */
#define CHILD(...) \
    do { \
        pid_t doer_ = branch(); \
        if (doer_ == 0) { \
            __VA_ARGS__; \
            _exit(0); \
        } \
        join(doer_); \
    } while (0)
CASE(sync_tells_what_a_child_bound, "XNS 5.2 t_sync()") {
    int fd = open_endpoint();
    CHILD(must_t(t_bind(fd, NULL, NULL)));
    check_state(fd, T_UNBND);
    check_eq(t_sync(fd), T_IDLE);
    check_state(fd, T_IDLE);
    CHILD(check_ok(t_unbind(fd)));
    check_eq(t_sync(fd), T_UNBND);
    bind_at(fd, unused_address(), 0);
    check_eq(t_sync(fd), T_IDLE);
}
CASE(sync_tells_what_a_child_released, "XNS 5.2 t_sync()") {
    struct pair p = connected();
    CHILD(check_ok(t_sndrel(p.server)));
    check_eq(t_sync(p.server), T_OUTREL);
    check_event(p.client, T_ORDREL);
    CHILD(check_event(p.client, T_ORDREL); check_ok(t_rcvrel(p.client)));
    check_eq(t_sync(p.client), T_INREL);
    CHILD(check_ok(t_sndrel(p.client)));
    check_eq(t_sync(p.client), T_IDLE);
    check_state(p.server, T_OUTREL);
}
CASE(sync_tells_what_a_child_ended, "XNS 5.2 t_sync()") {
    struct pair p = connected();
    CHILD(check_ok(t_snddis(p.client, NULL)));
    check_state(p.client, T_DATAXFER);
    check_eq(t_sync(p.client), T_IDLE);
    check_eq(t_sync(p.server), T_DATAXFER);
    begin_call(p.client, &p.at);
    int server = serve(p.listener);
    confirm(p.client);
    check_echo(p.client, server);
}
CASE(sync_tells_what_a_child_answered, "XNS 5.2 t_sync()") {
    struct address at;
    int listener = listener_at(&at, 1), first = connecting(&at), sequence = listen_for(listener);
    check_eq(t_sync(listener), T_INCON);
    CHILD(accepted(listener, sequence));
    check_state(listener, T_INCON);
    check_eq(t_sync(listener), T_IDLE);
    must_t(t_close(first));
    int second = connecting(&at), server = serve(listener);
    confirm(second);
    check_echo(second, server);
    int third = connecting(&at);
    struct turn heard = turn_new(), go = turn_new();
    pid_t child = branch();
    if (child == 0) {
        sequence = listen_for(listener);
        turn_give(heard), turn_take(go);
        check_ok(reject(listener, sequence, NULL));
        _exit(0);
    }
    turn_take(heard);
    check_eq(t_sync(listener), T_INCON);
    turn_give(go);
    join(child);
    check_eq(t_sync(listener), T_IDLE);
    check_disconnect(third);
}
CASE(sync_tells_what_a_child_connected, "XNS 5.2 t_sync()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = connecting(&at), server = serve(listener);
    struct turn go = turn_new();
    pid_t child = branch();
    if (child == 0) {
        check_event(fd, T_CONNECT);
        check_ok(t_rcvconnect(fd, NULL));
        turn_take(go);
        _exit(0);
    }
    while (t_sync(fd) == T_OUTCON)
        sleep_ms(1);
    check_state(fd, T_DATAXFER);
    set_nonblock(fd, 0);
    if (is_in(TCP))
        check_echo(fd, server);
    turn_give(go);
    join(child);
}
CASE(child_closes_its_copy, "XNS 5.2 t_close()") {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        must_t(t_close(p.server));
        must_t(t_close(p.client));
        must_t(t_close(p.listener));
        _exit(0);
    }
    join(child);
    check_look(p.client, 0);
    check_echo(p.client, p.server);
    int fd = connecting(&p.at), server = serve(p.listener);
    confirm(fd);
    check_echo(fd, server);
}
CASE(child_exits_with_copies, "XNS 5.2 exit(2)") {
    struct pair p = connected();
    for (int i = 0; i < 5; i++) {
        pid_t child = branch();
        if (child == 0)
            exit(0);
        join(child);
        check_look(p.client, 0);
        check_look(p.server, 0);
        check_echo(p.client, p.server);
    }
}
CASE(child_keeps_the_connection, "XNS 5.2 t_close()") {
    struct pair p = connected();
    struct turn go = turn_new();
    pid_t child = branch();
    if (child == 0) {
        turn_take(go);
        must_t(t_close(p.client));
        snd(p.server, "still here", 0);
        _exit(0);
    }
    must_t(t_close(p.server));
    check_look(p.client, 0);
    turn_give(go);
    rcv(p.client, "still here", 0);
    join(child);
    check_gone(p.client);
}
CASE(child_connects, "XNS 5.2 t_connect()") {
    struct address at;
    int listener = listener_at(&at, 1), fd = bound();
    pid_t child = branch();
    if (child == 0) {
        connect_to(fd, &at);
        snd(fd, "from an inherited endpoint", 0);
        _exit(0);
    }
    int server = serve(listener);
    rcv(server, "from an inherited endpoint", 0);
    join(child);
}
CASE(child_listens, "XNS 5.2 t_listen()") {
    struct address at;
    int listener = listener_at(&at, 1);
    pid_t child = branch();
    if (child == 0) {
        int server = serve(listener);
        snd(server, "served by the child", 0);
        _exit(0);
    }
    must_t(t_close(listener));
    int fd = connect_new(&at);
    rcv(fd, "served by the child", 0);
    join(child);
}
CASE(child_listens_first, "XNS 5.2 t_listen()") {
    struct address at;
    int listener = listener_at(&at, 1);
    for (int i = 0; i < 2; i++) {
        int client = connecting(&at);
        pid_t child = branch();
        if (child == 0) {
            int sequence = listen_for(listener);
            check_look(listener, 0);
            int server = accepted(listener, sequence);
            rcv(server, "to the child", 0);
            _exit(0);
        }
        confirm(client);
        snd(client, "to the child", 0);
        join(child);
        must_t(t_close(client));
    }
    int client = connecting(&at), server = serve(listener);
    confirm(client);
    check_echo(client, server);
}
CASE(server_forks_for_each_call, "XNS 5.2 fork(2)") {
    struct address at;
    int listener = listener_at(&at, 8);
    pid_t clients = branch();
    if (clients == 0) {
        for (int i = 0; i < 20; i++) {
            int fd = connect_new(&at);
            snd(fd, "hello", 0);
            rcv(fd, "hello to you", 0);
            must_t(t_close(fd));
        }
        _exit(0);
    }
    pid_t child[20];
    for (int i = 0; i < 20; i++) {
        int fd = serve(listener);
        if ((child[i] = branch()) == 0) {
            must_t(t_close(listener));
            rcv(fd, "hello", 0);
            snd(fd, "hello to you", 0);
            check_gone(fd);
            _exit(0);
        }
        must_t(t_close(fd));
    }
    join(clients);
    for (int i = 0; i < 20; i++)
        join(child[i]);
}
CASE(great_amount_between_processes, "XNS 5.2 t_snd(), t_rcv()") {
    enum { SIZE = 16 << 20 };
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        must_t(t_close(p.server));
        snd_wave(p.client, 0, SIZE, 8191);
        rcv(p.client, "got all", 0);
        _exit(0);
    }
    must_t(t_close(p.client));
    rcv_wave(p.server, 0, SIZE, 131071);
    snd(p.server, "got all", 0);
    join(child);
}

/* --- exec --- */

/* Where a case started again finds its endpoint. */
static int from_environment(void) { return atoi(getenv("CASE_FD")); }
static pid_t exec_with(int fd, const char *as) {
    char text[20];
    snprintf(text, sizeof text, "%d", fd);
    setenv("CASE_FD", text, 1);
    return spawn_role(this_case, as);
}

CASE(exec_keeps_a_connection, "XNS 5.2 t_sync(), exec(2)") {
    if (role()) {
        int fd = from_environment();
        check_eq(t_sync(fd), T_DATAXFER);
        check_state(fd, T_DATAXFER);
        struct t_info info;
        check_ok(t_getinfo(fd, &info));
        check_eq(info.servtype, provider->info.servtype);
        rcv(fd, "before", 0);
        rcv(fd, "after", 0);
        snd(fd, "another program", 0);
        return;
    }
    struct pair p = connected();
    snd(p.client, "before", 0);
    pid_t child = exec_with(p.server, "serve");
    must_t(t_close(p.server));
    snd(p.client, "after", 0);
    rcv(p.client, "another program", 0);
    join(child);
    check_gone(p.client);
}
CASE(exec_keeps_a_listener, "XNS 5.2 t_sync(), exec(2)") {
    if (role()) {
        int fd = from_environment();
        check_eq(t_sync(fd), T_IDLE);
        int server = serve(fd);
        snd(server, "another program", 0);
        return;
    }
    struct address at;
    int listener = listener_at(&at, 2);
    pid_t child = exec_with(listener, "listen");
    must_t(t_close(listener));
    int fd = connect_new(&at);
    rcv(fd, "another program", 0);
    join(child);
}
CASE(exec_keeps_a_bound_endpoint, "XNS 5.2 t_sync(), exec(2)") {
    if (role()) {
        int fd = from_environment();
        check_eq(t_sync(fd), T_IDLE);
        check(own_address(fd).len > 0);
        must_t(t_unbind(fd));
        check_state(fd, T_UNBND);
        return;
    }
    join(exec_with(bound(), "bound"));
}
CASE(exec_keeps_an_unbound_endpoint, "XNS 5.2 t_sync(), exec(2)") {
    if (role()) {
        int fd = from_environment();
        check_eq(t_sync(fd), T_UNBND);
        bind_at(fd, unused_address(), 0);
        return;
    }
    join(exec_with(open_endpoint(), "unbound"));
}
CASE(exec_without_t_sync, "XNS 5.2 exec(2)") {
    if (role()) {
        int fd = from_environment();
        rcv(fd, "hello", 0);
        snd(fd, "hello yourself", 0);
        return;
    }
    struct pair p = connected();
    pid_t child = exec_with(p.server, "serve");
    snd(p.client, "hello", 0);
    rcv(p.client, "hello yourself", 0);
    join(child);
}
CASE(exec_closes_what_it_should, "XNS 5.2 exec(2) FD_CLOEXEC") {
    if (role()) {
        check_t(t_sync(from_environment()), TBADF);
        return;
    }
    struct pair p = connected();
    must(fcntl(p.server, F_SETFD, FD_CLOEXEC));
    join(exec_with(p.server, "none"));
    check_echo(p.client, p.server);
}
CASE(exec_releases, "XNS 5.2 exec(2)") {
    if (role()) {
        int fd = from_environment();
        check_eq(t_sync(fd), T_INREL);
        snd(fd, "rest", 0);
        must_t(t_sndrel(fd));
        check_state(fd, T_IDLE);
        return;
    }
    struct pair p = connected();
    must_t(t_sndrel(p.client));
    check_event(p.server, T_ORDREL);
    must_t(t_rcvrel(p.server));
    pid_t child = exec_with(p.server, "release");
    must_t(t_close(p.server));
    rcv(p.client, "rest", 0);
    check_event(p.client, T_ORDREL);
    must_t(t_rcvrel(p.client));
    join(child);
}

/* --- data sent last --- */

enum { LAST = 200 };
/* A child that sends small pieces, then ends in some way at once; all of it arrives. */
static void sends_then(void (*end)(int)) {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        for (int i = 0; i < LAST; i++)
            snd(p.client, "piece ", 0);
        end(p.client);
        _exit(0);
    }
    must_t(t_close(p.client));
    for (int i = 0; i < LAST; i++)
        rcv(p.server, "piece ", 0);
    check_gone(p.server);
    join(child);
}
static void end_by_exec(int fd) {
    (void)fd;
    execl("/bin/true", "true", (char *)NULL);
    fail("exec: errno %d: %s", errno, strerror(errno));
}
CASE(data_before__exit, "XNS 5.2 t_snd(), _exit(2)") { sends_then(end_by__exit); }
CASE(data_before_exit, "XNS 5.2 t_snd(), exit(3)") { sends_then(end_by_exit); }
CASE(data_before_close, "XNS 5.2 t_snd(), t_close()") { sends_then(end_by_close); }
CASE(data_before_plain_close, "XNS 5.2 t_snd(), close(2)") { sends_then(end_by_plain_close); }
CASE(data_before_exec, "XNS 5.2 t_snd(), exec(2)") { sends_then(end_by_exec); }
CASE(data_before_fork, "XNS 5.2 t_snd(), fork(2)") {
    struct pair p = connected();
    for (int i = 0; i < LAST; i++)
        snd(p.client, "piece ", 0);
    pid_t child = branch();
    if (child == 0) {
        snd(p.client, "child", 0);
        _exit(0);
    }
    join(child);
    for (int i = 0; i < LAST; i++)
        rcv(p.server, "piece ", 0);
    rcv(p.server, "child", 0);
    check_look(p.server, 0);
}
CASE(data_before_blocking, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    pid_t child = branch();
    if (child == 0) {
        for (int i = 0; i < 10; i++)
            rcv(p.server, "piece ", 0);
        snd(p.server, "got them", 0);
        _exit(0);
    }
    for (int i = 0; i < 10; i++)
        snd(p.client, "piece ", 0);
    rcv(p.client, "got them", 0);
    join(child);
}
CASE(data_not_waited_for, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    snd(p.client, "a lone piece", 0);
    long until = now_ms() + PATIENCE;
    while (t_look(p.server) == 0 && now_ms() < until)
        ;
    check_look(p.server, T_DATA);
    rcv(p.server, "a lone piece", 0);
}
CASE(data_while_the_sender_computes, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    struct turn done = turn_new();
    pid_t child = branch();
    if (child == 0) {
        struct pollfd wait = {.fd = done.fd[0], .events = POLLIN};
        snd(p.client, "small", 0);
        while (poll(&wait, 1, 0) == 0)
            ;
        _exit(0);
    }
    must_t(t_close(p.client));
    rcv(p.server, "small", 0);
    turn_give(done);
    join(child);
}

/* --- nothing left behind --- */

static int entries(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            char below[4096];
            snprintf(below, sizeof below, "%s/%s", path, e->d_name);
            n += 1 + (e->d_type == DT_DIR ? entries(below) : 0);
        }
    if (d)
        closedir(d);
    return n;
}
static int lines(const char *path) {
    FILE *f = fopen(path, "r");
    int n = 0;
    for (int c; f && (c = getc(f)) != EOF;)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}
/* Descriptors, mappings, and files of the runtime folder and of shared memory. */
struct belongings {
    int descriptors, mappings, files;
};
static struct belongings belongings(void) {
    const char *folder = getenv("HEADWATER_DIR");
    return (struct belongings){entries("/proc/self/fd"), lines("/proc/self/maps"), folder ? entries(folder) : 0};
}
/* Some may be kept to be used again, but not one of every five. What was closed a moment ago may still be looked at by another
 * thread of the library: it goes with a later call. */
static void check_no_more(struct belongings before, int times) {
    struct belongings now = belongings();
    int some = times / 5;
    for (long until = now_ms() + PATIENCE; now_ms() < until; sleep_ms(120)) {
        if (now.descriptors <= before.descriptors + some && now.mappings <= before.mappings + some && now.files <= before.files + 8)
            return;
        must_t(t_close(bound()));
        now = belongings();
    }
    fail("left behind: %d descriptors (before: %d), %d mappings (%d), %d files (%d)", now.descriptors, before.descriptors,
         now.mappings, before.mappings, now.files, before.files);
}
static void connect_and_close(int listener, const struct address *at, int i) {
    int client = connecting(at), server = serve(listener);
    check_event(client, T_CONNECT);
    must_t(t_rcvconnect(client, NULL));
    if (i % 100 == 0) {
        set_nonblock(client, 0);
        check_echo(client, server);
    }
    if (i % 2)
        must_t(t_snddis(client, NULL));
    must_t(t_close(i % 3 ? client : server));
    must_t(t_close(i % 3 ? server : client));
}
CASE(two_thousand_connections, "XNS 5.2 t_close()") {
    struct address at;
    int listener = listener_at(&at, 1);
    for (int i = 0; i < 50; i++)
        connect_and_close(listener, &at, i);
    struct belongings before = belongings();
    for (int i = 0; i < 2000; i++)
        connect_and_close(listener, &at, i);
    check_no_more(before, 2000);
}
CASE(two_thousand_refusals, "XNS 5.2 t_rcvdis()") {
    struct address at = deserted_address();
    struct belongings before = {0, 0, 0};
    for (int i = 0; i < 2050; i++) {
        if (i == 50)
            before = belongings();
        int fd = connecting(&at);
        check_event(fd, T_DISCONNECT);
        must_t(t_close(fd));
    }
    check_no_more(before, 2000);
}
CASE(two_thousand_rejections, "XNS 5.2 t_snddis()") {
    struct address at;
    int listener = listener_at(&at, 1);
    struct belongings before = {0, 0, 0};
    for (int i = 0; i < 2050; i++) {
        if (i == 50)
            before = belongings();
        int fd = connecting(&at);
        must_t(reject(listener, listen_for(listener), NULL));
        must_t(t_close(fd));
    }
    check_no_more(before, 2000);
}
CASE(two_thousand_endpoints, "XNS 5.2 t_open(), t_bind(), t_close()") {
    struct belongings before = {0, 0, 0};
    for (int i = 0; i < 2050; i++) {
        if (i == 50)
            before = belongings();
        must_t(t_close(i % 2 ? bound() : open_endpoint()));
    }
    check_no_more(before, 2000);
}
static void connect_and_die(void *with) {
    int fd = connect_new(with);
    snd(fd, "x", 0);
    rcv(fd, "y", 0);
    raise(SIGKILL);
}
CASE(peers_killed_by_the_dozen, "XNS 5.2 t_rcvdis()") {
    struct address at;
    int listener = listener_at(&at, 1);
    struct belongings before = {0, 0, 0};
    for (int i = 0; i < 120; i++) {
        int status;
        if (i == 60)
            before = belongings();
        pid_t child = spawn(connect_and_die, &at);
        int fd = serve(listener);
        rcv(fd, "x", 0);
        snd(fd, "y", 0);
        check_eq(waitpid(child, &status, 0), child);
        check_killed(fd);
        must_t(t_close(fd));
    }
    /* With a thread for packets in the process, memory is unmapped somewhat later. */
    check_no_more(before, is_in(SCTP) ? 400 : 60);
}

SUITE(FOR(COTS, child_serves), FOR(COTS, child_syncs),
      FOR(ALL, sync_tells_what_a_child_bound), FOR(ORD, sync_tells_what_a_child_released),
      FOR(COTS, sync_tells_what_a_child_ended), FOR(COTS, sync_tells_what_a_child_answered),
      FOR(COTS, sync_tells_what_a_child_connected), FOR(COTS, child_closes_its_copy), FOR(COTS, child_exits_with_copies),
      FOR(COTS, child_keeps_the_connection), FOR(COTS, child_connects), FOR(COTS, child_listens), FOR(COTS, child_listens_first),
      FOR(COTS, server_forks_for_each_call), FOR(COTS, great_amount_between_processes), FOR(COTS, exec_keeps_a_connection),
      FOR(COTS, exec_keeps_a_listener), FOR(COTS, exec_keeps_a_bound_endpoint), FOR(COTS, exec_keeps_an_unbound_endpoint),
      FOR(COTS, exec_without_t_sync), FOR(COTS, exec_closes_what_it_should), FOR(ORD & ~SCTP, exec_releases),
      FOR(COTS, data_before__exit), FOR(COTS, data_before_exit), FOR(COTS, data_before_close), FOR(COTS, data_before_plain_close),
      FOR(COTS, data_before_exec), FOR(COTS, data_before_fork), FOR(COTS, data_before_blocking), FOR(COTS, data_not_waited_for),
      FOR(COTS, data_while_the_sender_computes), FOR(COTS, two_thousand_connections), FOR(COTS, two_thousand_refusals),
      FOR(COTS, two_thousand_rejections), FOR(ALL, two_thousand_endpoints), FOR(COTS, peers_killed_by_the_dozen))
