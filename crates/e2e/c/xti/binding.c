/* Addresses of one's own: t_bind, t_unbind, t_close, t_getprotaddr. */
#include "endpoints.h"

/* --- t_bind --- */

CASE(bind_to_anything, "XNS 5.2 t_bind() req NULL") {
    int fd = open_endpoint();
    check_ok(t_bind(fd, NULL, NULL));
    check_state(fd, T_IDLE);
    check(own_address(fd).len > 0);
}
CASE(bind_says_where, "XNS 5.2 t_bind() ret") {
    int fd = open_endpoint();
    struct address got;
    struct t_bind ret = {room(got.at, sizeof got.at), 9};
    check_ok(t_bind(fd, NULL, &ret));
    got.len = ret.addr.len;
    check(got.len > 0);
    check_eq(ret.qlen, 0);
    struct address own = own_address(fd);
    check(same_address(&own, &got));
}
CASE(bind_to_an_empty_address, "XNS 5.2 t_bind() addr.len 0") {
    int fd = open_endpoint();
    struct t_bind req = {{0}, 0};
    check_ok(t_bind(fd, &req, NULL));
    check(own_address(fd).len > 0);
}
CASE(bind_to_different_things, "XNS 5.2 t_bind()") {
    struct address seen[8];
    for (int i = 0; i < 8; i++) {
        int fd = open_endpoint();
        must_t(t_bind(fd, NULL, NULL));
        seen[i] = own_address(fd);
        for (int j = 0; j < i; j++)
            check(!same_address(&seen[i], &seen[j]));
    }
}
CASE(bind_where_asked, "XNS 5.2 t_bind()") {
    struct address asked = unused_address(), got = bind_at(open_endpoint(), asked, 0);
    if (is_in(INET)) {
        struct sockaddr_in s;
        memcpy(&s, got.at, sizeof s);
        check_eq(s.sin_family, AF_INET);
        check_eq(ntohl(s.sin_addr.s_addr), INADDR_LOOPBACK);
        check(s.sin_port != 0);
    } else
        check(same_address(&asked, &got));
}
CASE(bind_without_ret, "XNS 5.2 t_bind() ret NULL") {
    struct address at = unused_address();
    struct t_bind req = {given(&at), 0};
    int fd = open_endpoint();
    check_ok(t_bind(fd, &req, NULL));
    check_state(fd, T_IDLE);
    struct address own = own_address(fd);
    check(is_in(INET) || same_address(&own, &at));
}
CASE(bind_into_the_request, "XNS 5.2 t_bind()") {
    struct address at = unused_address(), asked = at;
    int fd = open_endpoint();
    struct t_bind both = {{sizeof at.at, at.len, (void *)at.at}, 0};
    check_ok(t_bind(fd, &both, &both));
    at.len = both.addr.len;
    struct address own = own_address(fd);
    check(same_address(&own, &at));
    check(is_in(INET) || same_address(&at, &asked));
}
CASE(bind_not_wanting_the_address, "XNS 5.2 t_bind() maxlen 0") {
    int fd = open_endpoint();
    struct t_bind ret = {{0}, 9};
    check_ok(t_bind(fd, NULL, &ret));
    check_eq(ret.addr.len, 0);
    check_eq(ret.qlen, 0);
    check_state(fd, T_IDLE);
}
CASE(bind_with_little_room, "XNS 5.2 t_bind() TBUFOVFLW") {
    int fd = open_endpoint();
    struct address at = unused_address();
    char little[4] = "";
    struct t_bind req = {given(&at), 0}, ret = {room(little, 1), 0};
    check_t(t_bind(fd, &req, &ret), TBUFOVFLW);
    check_eq(little[1], 0);
    check_state(fd, T_IDLE);
    struct address own = own_address(fd);
    check(own.len > 1);
    check(is_in(INET) || same_address(&own, &at));
}
CASE(bind_to_a_busy_address, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at;
    listener_at(&at, 1);
    for (unsigned qlen = 0; qlen < 2; qlen++) {
        int fd = open_endpoint();
        struct t_bind req = {given(&at), qlen};
        check_t(t_bind(fd, &req, NULL), TADDRBUSY);
        check_state(fd, T_UNBND);
        bind_at(fd, unused_address(), qlen);
    }
}
CASE(bind_to_a_busy_datagram_address, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at = bind_at(open_endpoint(), unused_address(), 0);
    int fd = open_endpoint();
    struct t_bind req = {given(&at), 0};
    check_t(t_bind(fd, &req, NULL), TADDRBUSY);
    check_state(fd, T_UNBND);
}
static void hold_address(void *with) {
    int fd = open_endpoint();
    bind_at(fd, *(struct address *)with, 1);
    must(raise(SIGSTOP));
    sleep_ms(100000);
}
CASE(bind_busy_in_another_process, "XNS 5.2 t_bind() TADDRBUSY") {
    struct address at = unused_address();
    int status, fd = open_endpoint();
    struct t_bind req = {given(&at), 1};
    pid_t child = spawn(hold_address, &at);
    check_eq(waitpid(child, &status, WUNTRACED), child);
    check_t(t_bind(fd, &req, NULL), TADDRBUSY);
    must(kill(child, SIGKILL));
    check_eq(waitpid(child, &status, 0), child);
    await(t_bind(fd, &req, NULL) == 0);
}
CASE(bind_again_after_close, "XNS 5.2 t_bind()") {
    struct address at;
    int fd = listener_at(&at, 1);
    must_t(t_close(fd));
    struct address again = bind_at(open_endpoint(), at, 1);
    check(same_address(&again, &at));
}
CASE(bind_again_after_unbind, "XNS 5.2 t_unbind()") {
    int fd = open_endpoint(), other = open_endpoint();
    struct address at = bind_at(fd, unused_address(), 0);
    must_t(t_unbind(fd));
    struct address again = bind_at(other, at, 0);
    check(same_address(&again, &at));
    struct t_bind req = {given(&at), 0};
    check_t(t_bind(fd, &req, NULL), TADDRBUSY);
    must_t(t_close(other));
    again = bind_at(fd, at, 0);
    check(same_address(&again, &at));
}
CASE(bind_twice, "XNS 5.2 t_bind() TOUTSTATE") {
    int fd = bound();
    struct address before = own_address(fd);
    check_t(t_bind(fd, NULL, NULL), TOUTSTATE);
    struct address after = own_address(fd);
    check(same_address(&before, &after));
}
CASE(bind_grants_qlen, "XNS 5.2 t_bind() qlen") {
    for (unsigned qlen = 0; qlen <= 16; qlen++)
        bind_at(open_endpoint(), unused_address(), qlen);
}
CASE(bind_grants_some_of_a_great_qlen, "XNS 5.2 t_bind() qlen") {
    struct address at = unused_address(), got;
    struct t_bind req = {given(&at), 100000}, ret = {room(got.at, sizeof got.at), 0};
    must_t(t_bind(open_endpoint(), &req, &ret));
    check(ret.qlen >= 16 && ret.qlen <= 100000);
}
CASE(bind_to_a_long_address, "XNS 5.2 t_bind() TBADADDR") {
    struct address at = {.len = 1025};
    memset(at.at, 'l', sizeof at.at);
    struct t_bind req = {given(&at), 0};
    int fd = open_endpoint();
    check_t(t_bind(fd, &req, NULL), TBADADDR);
    check_state(fd, T_UNBND);
    check_ok(t_bind(fd, NULL, NULL));
}
CASE(bind_to_malformed_addresses, "XNS 5.2 t_bind() TBADADDR") {
    struct address at = inet_address("127.0.0.1", 0);
    int fd = open_endpoint();
    struct t_bind req = {given(&at), 0};
    req.addr.len = 3;
    check_t(t_bind(fd, &req, NULL), TBADADDR);
    req.addr.len = at.len;
    ((struct sockaddr *)(void *)at.at)->sa_family = 99;
    check_t(t_bind(fd, &req, NULL), TBADADDR);
    check_state(fd, T_UNBND);
}
CASE(bind_to_another_host, "XNS 5.2 t_bind() TNOADDR") {
    struct address at = inet_address("192.0.2.1", 0);
    struct t_bind req = {given(&at), 0};
    int fd = open_endpoint();
    check_t2(t_bind(fd, &req, NULL), TNOADDR, TBADADDR);
    check_state(fd, T_UNBND);
}
CASE(bind_to_every_interface, "XNS 5.2 t_bind()") {
    struct address at = bind_at(open_endpoint(), inet_address("0.0.0.0", 0), 0);
    struct sockaddr_in s;
    memcpy(&s, at.at, sizeof s);
    check_eq(s.sin_family, AF_INET);
    check(s.sin_port != 0);
}
CASE(bind_to_opaque_bytes, "XNS 5.2 t_bind()") {
    struct address at[4] = {{.len = 1024}, {.len = 1024}, {.len = 1023}, {.len = 1}};
    for (int i = 0; i < 1024; i++)
        at[0].at[i] = at[1].at[i] = at[2].at[i] = (char)i;
    at[1].at[1023] ^= 1;
    for (int i = 0; i < 4; i++) {
        struct address got = bind_at(open_endpoint(), at[i], 0);
        check(same_address(&got, &at[i]));
    }
}
CASE(providers_have_own_addresses, "XNS 5.2 t_bind()") {
    struct address at = text_address("the same text");
    for (size_t i = 0; i < PROVIDERS; i++)
        if ((provider = &providers[i])->group & LOCAL)
            bind_at(open_endpoint(), at, 0);
}

/* --- t_unbind, t_close --- */

CASE(unbind_forgets, "XNS 5.2 t_unbind()") {
    int fd = bound();
    check_ok(t_unbind(fd));
    check_state(fd, T_UNBND);
    check_eq(own_address(fd).len, 0);
    check_t(t_unbind(fd), TOUTSTATE);
    bind_at(fd, unused_address(), 0);
}
CASE(close_ends, "XNS 5.2 t_close()") {
    int fd = bound();
    check_ok(t_close(fd));
    check_t(t_getstate(fd), TBADF);
    check_t(t_close(fd), TBADF);
    check_errno(close(fd), EBADF);
}
CASE(close_unbound, "XNS 5.2 t_close()") {
    int fd = open_endpoint();
    check_ok(t_close(fd));
    check_t(t_look(fd), TBADF);
}
CASE(close_by_close, "XNS 5.2 t_close()") {
    struct address at;
    int fd = listener_at(&at, 1);
    must(close(fd));
    check_t(t_getstate(fd), TBADF);
    int again = open_endpoint();
    check_eq(again, fd);
    check_state(again, T_UNBND);
    bind_at(again, at, 1);
}
CASE(number_of_a_plain_file, "XNS 5.2 t_close()") {
    int fd = bound();
    must_t(t_close(fd));
    check_eq(open("/dev/null", O_RDWR), fd);
    check_t(t_getstate(fd), TBADF);
    check_eq(write(fd, "x", 1), 1);
    check_eq(read(fd, (char[1]){0}, 1), 0);
}

/* --- t_getprotaddr --- */

CASE(getprotaddr_unbound, "XNS 5.2 t_getprotaddr()") {
    int fd = open_endpoint();
    check_eq(own_address(fd).len, 0);
    check_eq(peer_address(fd).len, 0);
}
CASE(getprotaddr_bound, "XNS 5.2 t_getprotaddr()") {
    int fd = open_endpoint();
    struct address at = bind_at(fd, unused_address(), 0), own = own_address(fd);
    check(same_address(&own, &at));
    check_eq(peer_address(fd).len, 0);
}
CASE(getprotaddr_connected, "XNS 5.2 t_getprotaddr()") {
    struct pair p = connected();
    struct address client = own_address(p.client), server = own_address(p.server);
    struct address clients_peer = peer_address(p.client), servers_peer = peer_address(p.server);
    check(same_address(&clients_peer, &p.at));
    check(same_address(&server, &p.at));
    check(same_address(&servers_peer, &client));
    check_eq(peer_address(p.listener).len, 0);
}
CASE(getprotaddr_little_room, "XNS 5.2 t_getprotaddr() TBUFOVFLW") {
    int fd = bound();
    char little[1], rest[2048];
    struct t_bind own = {room(little, 1), 0}, peer = {room(rest, sizeof rest), 0};
    check_t(t_getprotaddr(fd, &own, &peer), TBUFOVFLW);
    check_state(fd, T_IDLE);
}
CASE(getprotaddr_little_room_for_the_peer, "XNS 5.2 t_getprotaddr() TBUFOVFLW") {
    struct pair p = connected();
    char little[1], rest[2048];
    struct t_bind own = {room(rest, sizeof rest), 0}, peer = {room(little, 1), 0};
    check_t(t_getprotaddr(p.client, &own, &peer), TBUFOVFLW);
    check_state(p.client, T_DATAXFER);
}
CASE(getprotaddr_not_wanted, "XNS 5.2 t_getprotaddr() maxlen 0") {
    struct pair p = connected();
    struct t_bind own = {{0}, 0}, peer = {{0}, 0};
    check_ok(t_getprotaddr(p.client, &own, &peer));
    check_eq(own.addr.len, 0);
    check_eq(peer.addr.len, 0);
}

SUITE(FOR(ALL, bind_to_anything), FOR(ALL, bind_says_where), FOR(ALL, bind_to_an_empty_address),
      FOR(ALL, bind_to_different_things), FOR(ALL, bind_where_asked), FOR(ALL, bind_without_ret),
      FOR(ALL, bind_into_the_request), FOR(ALL, bind_not_wanting_the_address), FOR(ALL, bind_with_little_room),
      FOR(COTS, bind_to_a_busy_address), FOR(CLTS, bind_to_a_busy_datagram_address),
      FOR(LOCAL, bind_busy_in_another_process), FOR(COTS, bind_again_after_close), FOR(ALL, bind_again_after_unbind),
      FOR(ALL, bind_twice), FOR(COTS, bind_grants_qlen), FOR(COTS, bind_grants_some_of_a_great_qlen),
      FOR(ALL, bind_to_a_long_address), FOR(INET, bind_to_malformed_addresses), FOR(INET, bind_to_another_host),
      FOR(INET, bind_to_every_interface), FOR(LOCAL, bind_to_opaque_bytes), ONCE(providers_have_own_addresses),
      FOR(ALL, unbind_forgets), FOR(ALL, close_ends), FOR(ALL, close_unbound), FOR(ALL, close_by_close),
      FOR(ALL, number_of_a_plain_file), FOR(ALL, getprotaddr_unbound), FOR(ALL, getprotaddr_bound),
      FOR(COTS, getprotaddr_connected), FOR(ALL, getprotaddr_little_room),
      FOR(COTS, getprotaddr_little_room_for_the_peer), FOR(COTS, getprotaddr_not_wanted))
