/* XTI over tcp and udp, with Python programs at the other end. */
#include "interop.h"
#include <libgen.h>

/* --- Python --- */

struct python {
    pid_t pid;
    FILE *says;
};
static struct python start_python(const char *role, int port) {
    static char file[] = __FILE__;
    char script[1000], number[20];
    int fd[2];
    struct python p;
    snprintf(script, sizeof script, "%s/../../py/xti_peer.py", dirname(file));
    snprintf(number, sizeof number, "%d", port);
    must(pipe2(fd, O_CLOEXEC));
    if ((p.pid = must(fork())) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fd[1], 1);
        execl("/usr/bin/python3", "python3", script, role, host(), port ? number : NULL, (char *)NULL);
        fail("exec of python3: errno %d", errno);
    }
    close(fd[1]);
    p.says = fdopen(fd[0], "r");
    return p;
}
static struct address where_it_is(struct python *p) {
    int port = 0;
    AT("the port of the Python program");
    if (fscanf(p->says, "%d", &port) != 1)
        fail("xti_peer.py did not say its port");
    return local_at(port);
}
#define python_ends(P) join((P).pid)

BOTH_FAMILIES(TCP, python_serves, "XNS 5.2 t_connect()") {
    struct python p = start_python("echo_server", 0);
    struct address at = where_it_is(&p);
    int fd = xti_connected(&at), flags;
    char c;
    for (int i = 0; i < 20; i++) {
        snd(fd, "through Python", 0);
        rcv(fd, "through Python", 0);
    }
    must_t(t_sndrel(fd));
    check_t(t_rcv(fd, &c, 1, &flags), TLOOK);
    check_look(fd, T_ORDREL);
    must_t(t_rcvrel(fd));
    python_ends(p);
}
BOTH_FAMILIES(TCP, python_connects, "XNS 5.2 t_accept()") {
    struct address at;
    int listener = xti_bound(&at, 1);
    struct python p = start_python("echo_client", port_of(&at));
    xti_echo(xti_serve(listener));
    python_ends(p);
}
BOTH_FAMILIES(TCP, python_sends_much, "XNS 5.2 t_rcv()") {
    struct address at;
    int listener = xti_bound(&at, 1), flags, n;
    struct python p = start_python("bulk_client", port_of(&at));
    int fd = xti_serve(listener);
    static char data[20000];
    long count = 0, sum = 0;
    while ((n = t_rcv(fd, data, sizeof data, &flags)) >= 0) {
        check_wave(data, count, n);
        count += n;
        for (int i = 0; i < n; i++)
            sum += (unsigned char)data[i];
    }
    check_look(fd, T_ORDREL);
    must_t(t_rcvrel(fd));
    snprintf(data, sizeof data, "%ld %ld\n", count, sum);
    snd(fd, data, 0);
    must_t(t_sndrel(fd));
    python_ends(p);
}
CASE(python_serves_much, "XNS 5.2 t_rcv()") {
    over(AF_INET, TCP);
    struct python p = start_python("bulk_server", 0);
    struct address at = where_it_is(&p);
    int fd = xti_connected(&at);
    rcv_wave(fd, 0, 300000, 5000);
    check_event(fd, T_ORDREL);
    must_t(t_rcvrel(fd));
    must_t(t_sndrel(fd));
    python_ends(p);
}
CASE(python_and_urgent_data, "XNS 5.2 T_EXPEDITED") {
    over(AF_INET, TCP);
    struct address at;
    int listener = xti_bound(&at, 1);
    struct python p = start_python("urgent_client", port_of(&at));
    int fd = xti_serve(listener);
    await(t_look(fd) == T_EXDATA);
    rcv(fd, "!", T_EXPEDITED);
    rcv(fd, "before", 0);
    snd(fd, "taken", 0);
    rcv(fd, "after", 0);
    snd(fd, "normal", 0);
    snd(fd, "?", T_EXPEDITED);
    python_ends(p);
}
CASE(python_resets, "XNS 5.2 t_rcvdis()") {
    over(AF_INET, TCP);
    struct address at;
    int listener = xti_bound(&at, 1);
    struct python p = start_python("reset_client", port_of(&at));
    int fd = xti_serve(listener);
    rcv(fd, "x", 0);
    snd(fd, "ok", 0);
    check_event(fd, T_DISCONNECT);
    must_t(t_rcvdis(fd, NULL));
    python_ends(p);
}
static void echo_in_child(int fd) {
    static char data[1000];
    int flags, n;
    if (must(fork()) > 0)
        return;
    check_eq(t_sync(fd), T_DATAXFER);
    while ((n = t_rcv(fd, data, sizeof data, &flags)) >= 0)
        check_eq(t_snd(fd, data, n, 0), n);
    must_t(t_rcvrel(fd));
    must_t(t_sndrel(fd));
    _exit(0);
}
CASE(python_by_the_dozen, "XNS 5.2 t_listen(), fork(2)") {
    over(AF_INET, TCP);
    struct address at;
    int listener = xti_bound(&at, 10), fd[10], status;
    start_python("asyncio_client", port_of(&at));
    xti_serve_all(listener, fd, 10);
    for (int i = 0; i < 10; i++) {
        echo_in_child(fd[i]);
        must_t(t_close(fd[i]));
    }
    for (int i = 0; i < 11; i++) {
        must(wait(&status));
        check_eq(status, 0);
    }
}
BOTH_FAMILIES(UDP, python_echoes_datagrams, "XNS 5.2 t_sndudata()") {
    struct python p = start_python("udp_echo", 0);
    struct address at = where_it_is(&p), own;
    int fd = xti_bound(&own, 0);
    static char data[70000];
    static const unsigned sizes[] = {0, 1, 64, 64, 64, 1472, 1473, 65507};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill_wave(data, i, sizes[i]);
        depart(fd, &at, data, sizes[i]);
        struct arrived *a = arrive(fd);
        check_eq(a->len, sizes[i]);
        check_wave(a->data, i, sizes[i]);
        check_same(a->from, at);
    }
    depart(fd, &at, "end", 3);
    python_ends(p);
}
BOTH_FAMILIES(UDP, python_asks_by_datagrams, "XNS 5.2 t_rcvudata()") {
    struct address own;
    int fd = xti_bound(&own, 0);
    struct python p = start_python("udp_client", port_of(&own));
    for (;;) {
        struct arrived *a = arrive(fd);
        if (a->len == 3 && !memcmp(a->data, "end", 3))
            break;
        depart(fd, &a->from, a->data, a->len);
    }
    python_ends(p);
}
UDP2_TOO(python_echoes_datagrams, "XNS 5.2 t_sndudata()")
UDP2_TOO(python_asks_by_datagrams, "XNS 5.2 t_rcvudata()")
CASE(python_counts_a_burst, "XNS 5.2 t_sndudata()") {
    over(AF_INET, UDP);
    struct python p = start_python("udp_counter", 0);
    struct address at = where_it_is(&p), own;
    int fd = xti_bound(&own, 0);
    char data[64] = "";
    for (int i = 0; i < 100; i++) {
        memcpy(data, &i, sizeof i);
        depart(fd, &at, data, sizeof data);
    }
    python_ends(p);
}
CASE(python_sends_a_burst, "XNS 5.2 t_rcvudata()") {
    over(AF_INET, UDP);
    struct address own;
    int fd = xti_bound(&own, 0);
    struct python p = start_python("udp_burst", port_of(&own));
    for (int i = 0; i < 100; i++) {
        int number;
        struct arrived *a = arrive(fd);
        check_eq(a->len, 64);
        memcpy(&number, a->data, sizeof number);
        check_eq(number, i);
        if (i % 20 == 19)
            depart(fd, &a->from, "go on", 5);
    }
    python_ends(p);
}

SUITE(FAMILIES(python_serves), FAMILIES(python_connects), FAMILIES(python_sends_much), ONCE(python_serves_much),
      ONCE(python_and_urgent_data), ONCE(python_resets), ONCE(python_by_the_dozen),
      FAMILIES_OF_BOTH(python_echoes_datagrams), FAMILIES_OF_BOTH(python_asks_by_datagrams),
      ONCE(python_counts_a_burst), ONCE(python_sends_a_burst))
