/* Endpoints that are closed under calls in the middle of their work: what these look at stays as long as they look. */
#include "endpoints.h"
#include "../held.h"

enum { COPIES = 3, AGAIN = 1000 };

static void in_rcv(int fd, int other) {
    int flags;
    t_rcv(fd, &(char){0}, 1, &flags), (void)other;
}
static void in_snd(int fd, int other) { t_snd(fd, "x", 1, 0), (void)other; }
static void in_exchange(int fd, int other) {
    char text[20];
    int flags;
    t_snd(other, "something", 9, 0);
    t_rcv(fd, text, sizeof text, &flags);
}
static void in_look(int fd, int other) { t_look(fd), (void)other; }
static void in_state(int fd, int other) { t_getstate(fd), (void)other; }
static void in_poll(int fd, int other) { poll(&(struct pollfd){fd, POLLIN | POLLOUT, 0}, 1, 0), (void)other; }
static void in_poll_asleep(int fd, int other) { poll(&(struct pollfd){fd, POLLIN, 0}, 1, 20000), (void)other; }

static const struct {
    const char *name;
    void (*call)(int fd, int other);
    int blocks;
} kinds[] = {
    {"t_rcv", in_rcv, 0},     {"t_rcv asleep", in_rcv, 1}, {"t_snd", in_snd, 0},
    {"t_snd asleep", in_snd, 1}, {"both", in_exchange, 0},  {"t_look", in_look, 0},
    {"t_getstate", in_state, 0}, {"poll", in_poll, 0},      {"poll asleep", in_poll_asleep, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

CASE(calls, "XNS 5.2 t_close()") {
    static struct pair pairs[KINDS * COPIES];
    for (int i = 0; i < KINDS * COPIES; i++) {
        pairs[i] = connected();
        set_nonblock(pairs[i].server, !kinds[i / COPIES].blocks);
        set_nonblock(pairs[i].client, 1);
    }
    for (int i = 0; i < KINDS * COPIES; i++)
        hold_in(kinds[i / COPIES].name, kinds[i / COPIES].call, pairs[i].server, pairs[i].client);
    held_begin();
    for (int i = 0; i < KINDS * COPIES; i++) {
        must_t(t_close(pairs[i].server));
        must_t(t_close(pairs[i].client));
        must_t(t_close(pairs[i].listener));
    }
    struct address at;
    int listener = listener_at(&at, 4);
    for (int i = 0; i < AGAIN; i++) {
        int client = connecting(&at), server = serve(listener);
        confirm(client);
        snd(client, "through", 0);
        rcv(server, "through", 0);
        must_t(t_close(client));
        must_t(t_close(server));
    }
    held_end();
}

SUITE(FOR(LOOP, calls))
