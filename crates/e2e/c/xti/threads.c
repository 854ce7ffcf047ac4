/* Threads: an error number for each, endpoints shared and not, and waits that end when the endpoint does. */
#include "../thread_state.h"
#include "endpoints.h"
#include <dirent.h>
#include <stdatomic.h>
#include <stropts.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

static pthread_barrier_t barrier;

/* --- t_errno --- */

static void fail_once(void *with) {
    int *address_of_mine = NULL;
    t_errno = 0;
    pthread_barrier_wait(&barrier);
    check_t(t_close(999), TBADF);
    address_of_mine = &t_errno;
    pthread_barrier_wait(&barrier);
    check_eq(t_errno, TBADF);
    pthread_barrier_wait(&barrier);
    *(int **)with = address_of_mine;
}
CASE(errors_are_per_thread, "XNS 5.2 t_errno") {
    int *theirs = NULL, fd = bound();
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t t = start(fail_once, &theirs);
    pthread_barrier_wait(&barrier);
    check_t(t_bind(fd, NULL, NULL), TOUTSTATE);
    pthread_barrier_wait(&barrier);
    check_eq(t_errno, TOUTSTATE);
    pthread_barrier_wait(&barrier);
    finish(t);
    check_eq(t_errno, TOUTSTATE);
    check(theirs != NULL && theirs != &t_errno);
}
static void fail_often(void *with) {
    int mine = *(int *)with;
    for (int i = 0; i < 20000; i++) {
        if (mine)
            check_t(t_close(999), TBADF);
        else
            check_t(t_open("/dev/tcp", O_RDONLY, NULL), TBADFLAG);
    }
}
CASE(errors_do_not_mix, "XNS 5.2 t_errno") {
    static int kind[4] = {0, 1, 0, 1};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(fail_often, &kind[i]);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}
static void read_texts(void *with) {
    (void)with;
    for (int i = 0; i < 5000; i++)
        check(strlen(t_strerror(1 + i % TPROTO)) > 0 && strstr(t_strerror(4711), "4711"));
}
CASE(texts, "XNS 5.2 t_strerror()") {
    pthread_t t = start(read_texts, NULL);
    read_texts(NULL);
    finish(t);
}

/* --- one endpoint, two threads --- */

struct half {
    int fd;
    size_t count;
};
static void send_half(void *with) {
    struct half *h = with;
    snd_wave(h->fd, 0, h->count, 3000);
}
static void receive_half(void *with) {
    struct half *h = with;
    rcv_wave(h->fd, 0, h->count, 5000);
}
CASE(both_directions_at_once, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    struct half c = {p.client, 1 << 21}, s = {p.server, 1 << 21};
    pthread_t t[4] = {start(send_half, &c), start(receive_half, &c), start(send_half, &s), start(receive_half, &s)};
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}
static void answer(void *with) {
    int fd = *(int *)with;
    char c;
    int flags;
    for (int i = 0; i < 2000; i++) {
        check_eq(t_rcv(fd, &c, 1, &flags), 1);
        check_eq(t_snd(fd, &c, 1, 0), 1);
    }
}
CASE(asks_and_answers, "XNS 5.2 t_snd(), t_rcv()") {
    struct pair p = connected();
    pthread_t t = start(answer, &p.server);
    for (int i = 0; i < 2000; i++) {
        char c = i, back = ~i;
        int flags;
        check_eq(t_snd(p.client, &c, 1, 0), 1);
        check_eq(t_rcv(p.client, &back, 1, &flags), 1);
        check_eq(back, c);
    }
    finish(t);
}
static void send_records(void *with) {
    struct half *h = with;
    char record[100];
    memset(record, (int)h->count, sizeof record);
    for (int i = 0; i < 500; i++)
        check_eq(t_snd(h->fd, record, sizeof record, 0), sizeof record);
}
CASE(records_stay_whole, "XNS 5.2 t_snd()") {
    struct pair p = connected();
    struct half h[3] = {{p.client, 'a'}, {p.client, 'b'}, {p.client, 'c'}};
    pthread_t t[3];
    int seen[3] = {0};
    for (int i = 0; i < 3; i++)
        t[i] = start(send_records, &h[i]);
    for (int n = 0; n < 1500; n++) {
        char record[100];
        rcv_all(p.server, record, sizeof record, 0);
        check(record[0] >= 'a' && record[0] <= 'c');
        for (int i = 1; i < 100; i++)
            check(record[i] == record[0]);
        seen[record[0] - 'a']++;
    }
    for (int i = 0; i < 3; i++) {
        finish(t[i]);
        check_eq(seen[i], 500);
    }
}
static atomic_int watching;
static void watch(void *with) {
    int fd = *(int *)with;
    while (watching) {
        check_state(fd, T_DATAXFER);
        int event = t_look(fd);
        check(event == 0 || event == T_DATA || event == T_GODATA);
        struct t_info info;
        must_t(t_getinfo(fd, &info));
    }
}
CASE(watched_while_it_works, "XNS 5.2 t_look(), t_getstate()") {
    struct pair p = connected();
    struct half c = {p.client, 1 << 20}, s = {p.server, 1 << 20};
    watching = 1;
    pthread_t t[2] = {start(watch, &p.server), start(send_half, &c)};
    receive_half(&s);
    watching = 0;
    finish(t[0]), finish(t[1]);
}
static void poll_for_data(void *with) {
    int fd = *(int *)with;
    check(events(fd, POLLIN, PATIENCE) & POLLIN);
}
CASE(polled_by_another, "poll(2)") {
    struct pair p = connected();
    pthread_t t = start(poll_for_data, &p.server);
    sleep_ms(10);
    snd(p.client, "x", 0);
    finish(t);
    rcv(p.server, "x", 0);
}

/* --- many endpoints --- */

static void life(void *with) {
    (void)with;
    for (int i = 0; i < 5; i++) {
        struct pair p = connected();
        for (int k = 0; k < 10; k++)
            check_echo(p.client, p.server);
        must_t(t_close(p.client));
        check_gone(p.server);
        must_t(t_close(p.server));
        must_t(t_close(p.listener));
    }
}
CASE(lives_side_by_side, "XNS 5.2") {
    pthread_t t[6];
    for (int i = 0; i < 6; i++)
        t[i] = start(life, NULL);
    for (int i = 0; i < 6; i++)
        finish(t[i]);
}
static void datagram_life(void *with) {
    (void)with;
    int a = bound(), b = bound(), flags;
    struct address to = own_address(b);
    for (int i = 0; i < 500; i++) {
        char data[64];
        int seen = -1;
        memcpy(data, &i, sizeof i);
        struct t_unitdata out = {.addr = given(&to), .udata = given_bytes(data, sizeof data)};
        must_t(t_sndudata(a, &out));
        struct t_unitdata in = {.udata = room(data, sizeof data)};
        must_t(t_rcvudata(b, &in, &flags));
        memcpy(&seen, data, sizeof seen);
        check_eq(seen, i);
    }
    must_t(t_close(a));
    must_t(t_close(b));
}
CASE(datagram_lives_side_by_side, "XNS 5.2") {
    pthread_t t[6];
    for (int i = 0; i < 6; i++)
        t[i] = start(datagram_life, NULL);
    for (int i = 0; i < 6; i++)
        finish(t[i]);
}
static void open_and_close(void *with) {
    (void)with;
    for (int i = 0; i < 100; i++) {
        int fd = bound();
        check_state(fd, T_IDLE);
        must_t(t_close(fd));
    }
}
CASE(opened_and_closed, "XNS 5.2 t_open(), t_close()") {
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        t[i] = start(open_and_close, NULL);
    for (int i = 0; i < 4; i++)
        finish(t[i]);
}

/* --- one endpoint, many readers --- */

static atomic_int seen_once[1000], seen_in_all;
static void receive_datagrams(void *with) {
    int fd = *(int *)with, flags, number;
    char data[64];
    for (;;) {
        struct t_unitdata in = {.udata = room(data, sizeof data)};
        must_t(t_rcvudata(fd, &in, &flags));
        if (in.udata.len == 1)
            return;
        check_eq(in.udata.len, 64);
        memcpy(&number, data, sizeof number);
        check(number >= 0 && number < 1000);
        check_eq(seen_once[number]++, 0);
        seen_in_all++;
    }
}
CASE(each_datagram_once, "XNS 5.2 t_rcvudata()") {
    int a = bound(), b = bound();
    struct address to = own_address(b);
    pthread_t t[3];
    char data[64] = "";
    for (int i = 0; i < 3; i++)
        t[i] = start(receive_datagrams, &b);
    for (int n = 0; n < 1000; n++) {
        memcpy(data, &n, sizeof n);
        struct t_unitdata out = {.addr = given(&to), .udata = given_bytes(data, sizeof data)};
        must_t(t_sndudata(a, &out));
        if (n % 50 == 49)
            await(seen_in_all == n + 1);
    }
    for (int i = 0; i < 3; i++) {
        struct t_unitdata end = {.addr = given(&to), .udata = given_bytes("", 1)};
        must_t(t_sndudata(a, &end));
    }
    for (int i = 0; i < 3; i++)
        finish(t[i]);
}
struct many_listeners {
    int listener;
    atomic_int served;
};
static void serve_some(void *with) {
    struct many_listeners *m = with;
    for (int i = 0; i < 4; i++) {
        int fd = serve(m->listener);
        rcv(fd, "x", 0);
        snd(fd, "y", 0);
        m->served++;
    }
}
CASE(many_servers_at_a_listener, "XNS 5.2 t_listen(), t_accept()") {
    struct address at;
    struct many_listeners m = {.listener = listener_at(&at, 8)};
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        t[i] = start(serve_some, &m);
    for (int i = 0; i < 12; i++) {
        int fd = connect_new(&at);
        snd(fd, "x", 0);
        rcv(fd, "y", 0);
        must_t(t_close(fd));
    }
    for (int i = 0; i < 3; i++)
        finish(t[i]);
    check_eq(m.served, 12);
}

/* --- closed while another waits --- */

struct waiting {
    int fd;
    void (*wait)(int fd);
    atomic_int began, ended;
};
/* `began` is the thread's number. */
static void wait_in_thread(void *with) {
    struct waiting *w = with;
    w->began = gettid();
    w->wait(w->fd);
    w->ended = 1;
}
static pthread_t begin_wait(struct waiting *w, int fd, void (*wait)(int)) {
    w->fd = fd, w->wait = wait, w->began = w->ended = 0;
    pthread_t t = start(wait_in_thread, w);
    await(w->began);
    return t;
}
/* It sleeps by now, and nothing has ended that. */
static pthread_t asleep_at(struct waiting *w, int fd, void (*wait)(int)) {
    pthread_t t = begin_wait(w, fd, wait);
    sleep_ms(20);
    check_eq(w->ended, 0);
    return t;
}
/* A wait on `fd` ends, by an error, when the endpoint is closed. */
static void ends_with_the_endpoint(int fd, void (*wait)(int)) {
    static struct waiting w;
    pthread_t t = asleep_at(&w, fd, wait);
    must_t(t_close(fd));
    await(w.ended);
    finish(t);
}
static void wait_for_data(int fd) {
    char c;
    int flags;
    check_eq(t_rcv(fd, &c, 1, &flags), -1);
}
CASE(closed_under_a_receiver, "XNS 5.2 t_close()") { ends_with_the_endpoint(connected().client, wait_for_data); }
static void wait_for_a_call(int fd) {
    struct call call;
    check_eq(t_listen(fd, roomy(&call)), -1);
}
CASE(closed_under_a_listener, "XNS 5.2 t_close()") {
    struct address at;
    ends_with_the_endpoint(listener_at(&at, 1), wait_for_a_call);
}
static void wait_for_a_datagram(int fd) {
    char c;
    int flags;
    struct t_unitdata in = {.udata = room(&c, 1)};
    check_eq(t_rcvudata(fd, &in, &flags), -1);
}
CASE(closed_under_a_datagram_receiver, "XNS 5.2 t_close()") { ends_with_the_endpoint(bound(), wait_for_a_datagram); }
static void wait_for_room(int fd) {
    static char data[10000];
    while (t_snd(fd, data, sizeof data, 0) >= 0)
        ;
}
CASE(closed_under_a_sender, "XNS 5.2 t_close()") {
    struct pair p = connected();
    ends_with_the_endpoint(p.client, wait_for_room);
}
static struct address nobody_accepts;
static void wait_for_the_other(int fd) {
    struct t_call call = call_to(&nobody_accepts);
    check_eq(t_connect(fd, &call, NULL), -1);
}
CASE(closed_under_a_connect, "XNS 5.2 t_close()") {
    listener_at(&nobody_accepts, 1);
    ends_with_the_endpoint(bound(), wait_for_the_other);
}
CASE(other_endpoints_live_on, "XNS 5.2 t_close()") {
    struct pair p = connected(), q = connected();
    ends_with_the_endpoint(p.client, wait_for_data);
    check_echo(q.client, q.server);
    check_gone(p.server);
}

/* --- turned to another descriptor while another waits --- */

static void wait_to_look(int fd) {
    struct call call;
    check_t(t_listen(fd, roomy(&call)), TLOOK);
}
/* A listener that calls somebody itself hears how that ends, whoever waits for calls there. */
static void hears_of_its_attempt(struct address *to, int listener, int event) {
    static struct waiting w;
    struct address at;
    pthread_t t = asleep_at(&w, listener_at(&at, 1), wait_to_look);
    begin_call(w.fd, to);
    if (listener >= 0)
        serve(listener);
    await(w.ended);
    finish(t);
    check_eq(t_look(w.fd), event);
    must_t(t_close(w.fd));
}
CASE(listener_hears_of_its_own_attempt, "XNS 5.2 t_listen(), t_connect()") {
    struct address to;
    int listener = listener_at(&to, 1);
    hears_of_its_attempt(&to, listener, T_CONNECT);
    must_t(t_close(listener));
    if (!is_in(SCTP))
        hears_of_its_attempt(&to, -1, T_DISCONNECT);
}
static void wait_to_poll(int fd) {
    struct pollfd in = {fd, POLLIN, 0};
    check_eq(poll(&in, 1, PATIENCE), 1);
}
/* Whoever polls a listener whose queue is full hears of the next request when another thread answers the one before. */
CASE(polled_behind_a_full_queue, "XNS 5.2 t_listen(), poll(2)") {
    static struct waiting w;
    struct address at;
    int listener = listener_at(&at, 1);
    begin_call(bound(), &at);
    int sequence = listen_for(listener);
    begin_call(bound(), &at);
    pthread_t t = asleep_at(&w, listener, wait_to_poll);
    accept_at(listener, sequence, open_endpoint());
    await(w.ended);
    finish(t);
    listen_for(listener);
}

/* --- made a stream while another waits: what it waits for is heard by messages --- */

static pthread_t turned_under;
static struct waiting *turned(int fd, void (*wait)(int)) {
    static struct waiting w;
    turned_under = asleep_at(&w, fd, wait);
    must(ioctl(fd, I_PUSH, "nullmod"));
    return &w;
}
static void hear_of(struct waiting *w) {
    await(w->ended);
    finish(turned_under);
}
/* A process that stops a thread of this one, and lets it go on: in between it gets no CPU, as on a busy machine. Begun before there are
 * endpoints, so that none is shared with it. */
static int stopper[2];
static void begin_stopper(void) {
    int to[2], from[2], tid;
    char c;
    must(pipe(to)), must(pipe(from));
    pid_t child = branch();
    if (child == 0) {
        close(to[1]), close(from[0]);
        while (read(to[0], &tid, sizeof tid) == sizeof tid) {
            must(ptrace(PTRACE_SEIZE, tid, 0, 0));
            must(ptrace(PTRACE_INTERRUPT, tid, 0, 0));
            must(waitpid(tid, NULL, __WALL));
            must(write(from[1], "", 1));
            must(read(to[0], &c, 1));
            must(ptrace(PTRACE_DETACH, tid, 0, 0));
        }
        _exit(0);
    }
    prctl(PR_SET_PTRACER, child);
    close(to[0]), close(from[1]);
    stopper[0] = from[0], stopper[1] = to[1];
}
static struct waiting *turned_while_stopped(int fd, void (*wait)(int)) {
    static struct waiting w;
    char c;
    turned_under = begin_wait(&w, fd, wait);
    await(state_of(w.began) == 'S');
    int tid = w.began;
    must(write(stopper[1], &tid, sizeof tid));
    must(read(stopper[0], &c, 1));
    must(ioctl(fd, I_PUSH, "nullmod"));
    return &w;
}
/* Do all threads but this one, and that which is stopped: has the library's own done what it had to? */
static int others_are_asleep(int stopped) {
    DIR *tasks = opendir("/proc/self/task");
    int asleep = tasks != NULL;
    for (struct dirent *d; asleep && (d = readdir(tasks)) != NULL;) {
        int tid = atoi(d->d_name);
        asleep = tid == 0 || tid == stopped || tid == gettid() || state_of(tid) == 'S';
    }
    if (tasks != NULL)
        closedir(tasks);
    return asleep;
}
/* It goes on once the stream has taken what it waits for out of the endpoint, and all bells that it rings. */
static void hear_late(struct waiting *w) {
    check_eq(poll(&(struct pollfd){w->fd, POLLIN, 0}, 1, PATIENCE), 1);
    for (int i = 0; i < 3; i++)
        await(others_are_asleep(w->began));
    check_eq(w->ended, 0);
    must(write(stopper[1], "", 1));
    hear_of(w);
}
static void take_a_word(int fd) { rcv(fd, "word", 0); }
CASE(turned_under_a_stopped_receiver, "XNS 5.2 t_rcv(), streamio(7I) I_PUSH") {
    begin_stopper();
    struct pair p = connected();
    struct waiting *w = turned_while_stopped(p.client, take_a_word);
    snd(p.server, "word", 0);
    hear_late(w);
    check_echo(p.client, p.server);
}
CASE(turned_under_a_receiver, "XNS 5.2 t_rcv(), streamio(7I) I_PUSH") {
    struct pair p = connected();
    struct waiting *w = turned(p.client, take_a_word);
    snd(p.server, "word", 0);
    hear_of(w);
    check_echo(p.client, p.server);
}
static void take_a_call(int fd) { must_t(t_close(serve(fd))); }
CASE(turned_under_a_listener, "XNS 5.2 t_listen(), streamio(7I) I_PUSH") {
    struct address at;
    struct waiting *w = turned(listener_at(&at, 1), take_a_call);
    connecting(&at);
    hear_of(w);
}
static void take_a_datagram(int fd) {
    char c = 0;
    int flags;
    struct t_unitdata in = {.udata = room(&c, 1)};
    must_t(t_rcvudata(fd, &in, &flags));
    check_eq(c, 'd');
}
CASE(turned_under_a_stopped_listener, "XNS 5.2 t_listen(), streamio(7I) I_PUSH") {
    begin_stopper();
    struct address at;
    struct waiting *w = turned_while_stopped(listener_at(&at, 1), take_a_call);
    connecting(&at);
    hear_late(w);
}
CASE(turned_under_a_stopped_datagram_receiver, "XNS 5.2 t_rcvudata(), streamio(7I) I_PUSH") {
    begin_stopper();
    int fd = bound();
    struct address to = own_address(fd);
    struct waiting *w = turned_while_stopped(fd, take_a_datagram);
    struct t_unitdata out = {.addr = given(&to), .udata = given_bytes("d", 1)};
    must_t(t_sndudata(bound(), &out));
    hear_late(w);
}
CASE(turned_under_a_datagram_receiver, "XNS 5.2 t_rcvudata(), streamio(7I) I_PUSH") {
    int fd = bound();
    struct address to = own_address(fd);
    struct waiting *w = turned(fd, take_a_datagram);
    struct t_unitdata out = {.addr = given(&to), .udata = given_bytes("d", 1)};
    must_t(t_sndudata(bound(), &out));
    hear_of(w);
}
enum { PIECE = 10000 };
static size_t sent_before;
static void find_room(int fd) {
    char data[PIECE];
    fill_wave(data, sent_before, sizeof data);
    int n = must_t(t_snd(fd, data, sizeof data, 0));
    check_eq(n, sizeof data);
}
CASE(turned_under_a_sender, "XNS 5.2 t_snd(), streamio(7I) I_PUSH") {
    struct pair p = connected();
    struct pollfd room = {.fd = p.client, .events = POLLOUT};
    set_nonblock(p.client, 1);
    /* The kernel's TCP finds some more room a moment later, of which poll(2) does not speak. */
    sent_before = 0;
    for (int full = 0; full < 2;) {
        char data[PIECE];
        fill_wave(data, sent_before, sizeof data);
        int n = t_snd(p.client, data, sizeof data, 0);
        if (n > 0) {
            sent_before += n, full = 0;
            continue;
        }
        check_eq(t_errno, TFLOW);
        if (!full++)
            poll(&room, 1, 50);
    }
    set_nonblock(p.client, 0);
    struct waiting *w = turned(p.client, find_room);
    rcv_wave(p.server, 0, sent_before + PIECE, 5000);
    hear_of(w);
}
static void reach_the_other(int fd) {
    struct t_call call = call_to(&nobody_accepts);
    must_t(t_connect(fd, &call, NULL));
}
CASE(turned_under_a_connect, "XNS 5.2 t_connect(), streamio(7I) I_PUSH") {
    int listener = listener_at(&nobody_accepts, 1), client = bound();
    struct waiting *w = turned(client, reach_the_other);
    int server = serve(listener);
    hear_of(w);
    check_echo(client, server);
}

/* --- with fork --- */

CASE(fork_among_threads, "fork(2), XNS 5.2 t_sync()") {
    struct pair p = connected(), q = connected();
    struct half c = {p.client, 1 << 20}, s = {p.server, 1 << 20};
    pthread_t t[2] = {start(send_half, &c), start(receive_half, &s)};
    for (int i = 0; i < 5; i++) {
        pid_t child = must(fork());
        if (child == 0) {
            check_eq(t_sync(q.client), T_DATAXFER);
            snd(q.client, "from the child", 0);
            _exit(0);
        }
        rcv(q.server, "from the child", 0);
        join(child);
    }
    finish(t[0]), finish(t[1]);
}

static atomic_int turning;
static void turn_one(void) {
    int fd = bound();
    must(ioctl(fd, I_PUSH, "nullmod"));
    check_state(fd, T_IDLE);
    must_t(t_close(fd));
}
static void turn_many(void *with) {
    (void)with;
    while (turning)
        turn_one();
}
CASE(fork_while_another_makes_streams, "fork(2), streamio(7I) I_PUSH") {
    turning = 1;
    turn_one();
    pthread_t t = start(turn_many, NULL);
    for (int i = 0; i < 30; i++) {
        pid_t child = must(fork());
        if (child == 0) {
            turn_one();
            _exit(0);
        }
        join(child);
    }
    turning = 0;
    finish(t);
}
static atomic_int waiting;
static void wait_at_a_set(void *with) {
    struct epoll_event event;
    while (waiting) {
        int n = epoll_wait(*(int *)with, &event, 1, 0);
        check(n == 0 || (n == -1 && errno == EINTR));
    }
}
/* Who waits looks at the endpoint with the set in its hands. */
CASE(forks_beside_a_wait_at_a_set, "XNS 5.2 fork(2), epoll_wait(2)") {
    struct pair p = connected();
    int set = must(epoll_create1(0));
    must(epoll_ctl(set, EPOLL_CTL_ADD, p.server, &(struct epoll_event){.events = EPOLLIN}));
    waiting = 1;
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        t[i] = start(wait_at_a_set, &set);
    for (int i = 0; i < 100; i++) {
        pid_t child = branch();
        if (child == 0)
            _exit(0);
        join(child);
    }
    waiting = 0;
    for (int i = 0; i < 2; i++)
        finish(t[i]);
    check_echo(p.client, p.server);
}

SUITE(FOR(ALL, errors_are_per_thread), ONCE(errors_do_not_mix), ONCE(texts), FOR(COTS, both_directions_at_once),
      FOR(COTS, asks_and_answers), FOR(LOOP, records_stay_whole), FOR(COTS, watched_while_it_works),
      FOR(COTS, polled_by_another), FOR(COTS, lives_side_by_side), FOR(CLTS, datagram_lives_side_by_side),
      FOR(ALL, opened_and_closed), FOR(CLTS, each_datagram_once), FOR(COTS, many_servers_at_a_listener),
      FOR(COTS, closed_under_a_receiver), FOR(COTS, closed_under_a_listener),
      FOR(CLTS, closed_under_a_datagram_receiver), FOR(COTS, closed_under_a_sender),
      FOR(LOOP, closed_under_a_connect), FOR(COTS, other_endpoints_live_on), FOR(COTS, turned_under_a_receiver),
      FOR(COTS, listener_hears_of_its_own_attempt), FOR(COTS, polled_behind_a_full_queue),
      FOR(COTS, turned_under_a_stopped_receiver), FOR(COTS, turned_under_a_stopped_listener),
      FOR(CLTS, turned_under_a_stopped_datagram_receiver),
      FOR(COTS, turned_under_a_listener), FOR(CLTS, turned_under_a_datagram_receiver), FOR(COTS, turned_under_a_sender),
      FOR(LOOP, turned_under_a_connect), FOR(COTS, fork_among_threads),
      FOR(COTS, forks_beside_a_wait_at_a_set), FOR(ALL, fork_while_another_makes_streams))
