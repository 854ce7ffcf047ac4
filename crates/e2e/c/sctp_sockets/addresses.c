/* Several addresses, IPv6, mapped addresses; sctp_bindx, sctp_connectx, sctp_getpaddrs, sctp_getladdrs (RFC 6458 section 9). */
#include "associations.h"

/* Addresses one behind the other, as libsctp wants them. */
struct list {
    _Alignas(8) char bytes[512];
    int len;
};
static void list_add(struct list *l, struct address a) { memcpy(l->bytes + l->len, &a.storage, a.len), l->len += a.len; }
static struct list two(int port) {
    struct list l = {.len = 0};
    list_add(&l, address("127.0.0.1", port));
    list_add(&l, address("127.0.0.2", port));
    return l;
}
#define at(LIST) ((struct sockaddr *)(LIST).bytes)
/* How often this address is among those that sctp_getladdrs or sctp_getpaddrs gave. */
static int count_of(struct sockaddr *list, int n, const char *text) {
    struct address want = address(text, 0);
    int count = 0;
    char *p = (char *)list;
    for (int i = 0; i < n; i++) {
        struct address a = {0};
        memcpy(&a.storage, p, sctp_getaddrlen(((struct sockaddr *)p)->sa_family));
        a.in.sin_port = 0;
        count += same_address(&a, &want);
        p += sctp_getaddrlen(((struct sockaddr *)p)->sa_family);
    }
    return count;
}
static int port_of_first(struct sockaddr *list) { return ntohs(((struct sockaddr_in *)list)->sin_port); }

CASE(bindx_adds, "RFC 6458 9.1") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(fd, at(l), 1, SCTP_BINDX_ADD_ADDR), 0);
    struct address a = name_of(fd);
    check(port_in(&a) > 0);
    struct address more = address("127.0.0.2", port_in(&a));
    check_eq(sctp_bindx(fd, &more.sa, 1, SCTP_BINDX_ADD_ADDR), 0);
    struct sockaddr *list;
    check_eq(sctp_getladdrs(fd, 0, &list), 2);
    check_eq(count_of(list, 2, "127.0.0.1"), 1);
    check_eq(count_of(list, 2, "127.0.0.2"), 1);
    check_eq(port_of_first(list), port_in(&a));
    check_eq(sctp_freeladdrs(list), 0);
}
CASE(bindx_two_at_once, "RFC 6458 9.1") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(fd, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    struct sockaddr *list;
    check_eq(sctp_getladdrs(fd, 0, &list), 2);
}
CASE(bindx_removes, "RFC 6458 9.1") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(fd, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    struct address a = name_of(fd), gone = address("127.0.0.2", port_in(&a)), last = address("127.0.0.1", port_in(&a));
    check_eq(sctp_bindx(fd, &gone.sa, 1, SCTP_BINDX_REM_ADDR), 0);
    struct sockaddr *list;
    check_eq(sctp_getladdrs(fd, 0, &list), 1);
    check_eq(count_of(list, 1, "127.0.0.1"), 1);
    check_errno2(sctp_bindx(fd, &last.sa, 1, SCTP_BINDX_REM_ADDR), EBUSY, EINVAL);
}
CASE(bindx_refused, "RFC 6458 9.1") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct address other = address("192.0.2.77", 0), ours = address("127.0.0.1", 0);
    check_errno2(sctp_bindx(fd, &other.sa, 1, SCTP_BINDX_ADD_ADDR), EADDRNOTAVAIL, EINVAL);
    check_errno(sctp_bindx(fd, &ours.sa, 1, 77), EINVAL);
    check_errno(sctp_bindx(fd, &ours.sa, 0, SCTP_BINDX_ADD_ADDR), EINVAL);
    check_eq(sctp_bindx(fd, &ours.sa, 1, SCTP_BINDX_ADD_ADDR), 0);
    struct address wrong = address("127.0.0.2", 1);
    check_errno(sctp_bindx(fd, &wrong.sa, 1, SCTP_BINDX_ADD_ADDR), EINVAL);
}
CASE(bindx_all_are_reached, "RFC 6458 9.1") {
    int listener = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(listener, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    check_eq(listen(listener, 5), 0);
    struct address a = name_of(listener);
    for (int i = 1; i <= 2; i++) {
        struct address to = address(i == 1 ? "127.0.0.1" : "127.0.0.2", port_in(&a));
        int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
        check_eq(connect(fd, &to.sa, to.len), 0);
        int s = must(accept(listener, NULL, NULL));
        check_send(fd, "hello");
        check_receive(s, "hello");
    }
    struct address third = address("127.0.0.3", port_in(&a));
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    check_errno(connect(fd, &third.sa, third.len), ECONNREFUSED);
}
CASE(peers_addresses, "RFC 6458 9.3") {
    int listener = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(listener, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    check_eq(listen(listener, 5), 0);
    struct address a = name_of(listener), to = address("127.0.0.1", port_in(&a));
    int client = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    check_eq(connect(client, &to.sa, to.len), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(server, "x");
    check_receive(client, "x");
    struct sockaddr *list;
    check_eq(sctp_getpaddrs(client, 0, &list), 2);
    check_eq(count_of(list, 2, "127.0.0.1"), 1);
    check_eq(count_of(list, 2, "127.0.0.2"), 1);
    check_eq(port_of_first(list), port_in(&a));
    check_eq(sctp_freepaddrs(list), 0);
    check_eq(sctp_getladdrs(server, 0, &list), 2);
    struct sctp_assocparams params = {0};
    must_get(client, SCTP_ASSOCINFO, &params);
    check_eq(params.sasoc_number_peer_destinations, 2);
}
CASE(getladdrs_any, "RFC 6458 9.5") {
    int fd = socket_of(SOCK_STREAM);
    check_eq(bind_to(fd, any()), 0);
    struct sockaddr *list;
    int n = sctp_getladdrs(fd, 0, &list);
    check(n >= 1);
    struct address a = name_of(fd);
    check_eq(port_of_first(list), port_in(&a));
}
CASE(getpaddrs_simple, "RFC 6458 9.3") {
    struct pair p = pair();
    struct sockaddr *list;
    check(sctp_getpaddrs(p.client, 0, &list) >= 1);
    struct address l = name_of(p.listener);
    check_eq(port_of_first(list), port_in(&l));
    check_eq(sctp_freepaddrs(list), 0);
}
CASE(getpaddrs_by_number, "RFC 6458 9.3") {
    struct many m = many();
    struct sockaddr *list;
    check(sctp_getpaddrs(m.b, m.in_b, &list) >= 1);
    struct address a = name_of(m.a);
    check_eq(port_of_first(list), port_in(&a));
    check_eq(sctp_getpaddrs(m.b, 9999, &list), -1);
}
CASE(getpaddrs_of_none, "RFC 6458 9.3") {
    struct sockaddr *list;
    check_eq(sctp_getpaddrs(socket_of(SOCK_STREAM), 0, &list), -1);
    check(errno == EINVAL || errno == ENOTCONN);
}
CASE(connectx_simple, "RFC 6458 9.9") {
    int listener = listening(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    struct address to = name_of(listener);
    sctp_assoc_t assoc = 77;
    check_eq(sctp_connectx(fd, &to.sa, 1, &assoc), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(fd, "hello");
    check_receive(server, "hello");
}
CASE(connectx_two, "RFC 6458 9.9") {
    int listener = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)), fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(listener, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    check_eq(listen(listener, 5), 0);
    struct address a = name_of(listener);
    l = two(port_in(&a));
    check_eq(sctp_connectx(fd, at(l), 2, NULL), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(fd, "hello");
    check_receive(server, "hello");
}
CASE(connectx_gives_number, "RFC 6458 9.9") {
    int a = many_socket(0), b = many_socket(1);
    struct address to = name_of(b);
    sctp_assoc_t assoc = -1;
    check_eq(sctp_connectx(a, &to.sa, 1, &assoc), 0);
    check_eq(change(a, SCTP_COMM_UP)->sac_assoc_id, assoc);
    change(b, SCTP_COMM_UP);
    check_eq(send_to_assoc(a, assoc, 0, "hello"), 5);
    check_receive(b, "hello");
}
CASE(connectx_many_peers, "RFC 6458 9.9") {
    int a = many_socket(0), b = many_socket(1), c = many_socket(1);
    sctp_assoc_t to_b = 0, to_c = 0;
    struct address at_b = name_of(b), at_c = name_of(c);
    check_eq(sctp_connectx(a, &at_b.sa, 1, &to_b), 0);
    check_eq(sctp_connectx(a, &at_c.sa, 1, &to_c), 0);
    check(to_b != to_c);
    check_eq(send_to_assoc(a, to_c, 0, "to c"), 4);
    change(c, SCTP_COMM_UP);
    check_receive(c, "to c");
}
CASE(connectx_later, "RFC 6458 9.9") {
    int listener = listening(SOCK_STREAM), fd = socket_of(SOCK_STREAM);
    set_nonblock(fd, 1);
    struct address to = name_of(listener);
    check_errno(sctp_connectx(fd, &to.sa, 1, NULL), EINPROGRESS);
    check(events(fd, POLLOUT, PATIENCE) & POLLOUT);
    check_send(fd, "hello");
    check_receive(must(accept(listener, NULL, NULL)), "hello");
}
CASE(connectx_refused, "RFC 6458 9.9") {
    struct address to = nobody();
    check_errno(sctp_connectx(socket_of(SOCK_STREAM), &to.sa, 1, NULL), ECONNREFUSED);
}
CASE(connectx_nothing, "RFC 6458 9.9") {
    struct address to = nobody();
    check_errno(sctp_connectx(socket_of(SOCK_STREAM), &to.sa, 0, NULL), EINVAL);
}
CASE(two_addresses_data, "RFC 6458 5.3.4 SCTP_ADDR_OVER") {
    int listener = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)), fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(listener, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    check_eq(listen(listener, 5), 0);
    struct address a = name_of(listener), first = address("127.0.0.1", port_in(&a)), second = address("127.0.0.2", port_in(&a));
    check_eq(connect(fd, &first.sa, first.len), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(server, "up");
    check_receive(fd, "up");
    struct sctp_sndinfo info = {.snd_flags = SCTP_ADDR_OVER};
    check_eq(send_parts(fd, &second, "over", 0, PART(SCTP_SNDINFO, info)), 4);
    check_receive(server, "over");
}
CASE(primary_changes, "RFC 6458 8.1.9") {
    int listener = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)), fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct list l = two(0);
    check_eq(sctp_bindx(listener, at(l), 2, SCTP_BINDX_ADD_ADDR), 0);
    check_eq(listen(listener, 5), 0);
    struct address a = name_of(listener), first = address("127.0.0.1", port_in(&a)), second = address("127.0.0.2", port_in(&a));
    check_eq(connect(fd, &first.sa, first.len), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(server, "up");
    check_receive(fd, "up");
    struct sctp_prim prim = {.ssp_addr = second.storage};
    must_set(fd, SCTP_PRIMARY_ADDR, prim);
    prim = (struct sctp_prim){0};
    must_get(fd, SCTP_PRIMARY_ADDR, &prim);
    struct address seen = {.storage = prim.ssp_addr};
    check(same_address(&seen, &second));
    check_send(fd, "by the other");
    check_receive(server, "by the other");
}

/* --- IPv6 --- */

CASE(v6_any_takes_v4, "RFC 6458 8.1.15") {
    family = AF_INET6;
    int listener = socket_of(SOCK_STREAM);
    check_eq(bind_to(listener, any()), 0);
    check_eq(listen(listener, 1), 0);
    struct address l = name_of(listener), to = address("127.0.0.1", port_in(&l));
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    check_eq(connect(fd, &to.sa, to.len), 0);
    struct address from = {.len = sizeof from.storage};
    int server = must(accept(listener, &from.sa, &from.len));
    check_eq(from.sa.sa_family, AF_INET6);
    check(IN6_IS_ADDR_V4MAPPED(&from.in6.sin6_addr));
    check_send(fd, "hello");
    check_receive(server, "hello");
}
CASE(v6_connects_mapped, "RFC 6458 8.1.15") {
    int listener = listening(SOCK_STREAM);
    struct address l = name_of(listener), to = address("::ffff:127.0.0.1", port_in(&l));
    int fd = must(socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP));
    check_eq(connect(fd, &to.sa, to.len), 0);
    int server = must(accept(listener, NULL, NULL));
    check_send(fd, "hello");
    check_receive(server, "hello");
    struct address peer = peer_of(fd);
    check_eq(peer.sa.sa_family, AF_INET6);
    check(IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr));
}
CASE(v6_receives_mapped_or_not, "RFC 6458 8.1.15") {
    int server = must(socket(AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP));
    struct address a6 = address("::", 0);
    check_eq(bind(server, &a6.sa, a6.len), 0);
    check_eq(listen(server, 5), 0);
    struct address l = name_of(server), to = address("127.0.0.1", port_in(&l));
    int fd = must(socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
    check_eq(sendto(fd, "one", 3, 0, &to.sa, to.len), 3);
    struct got *g = check_receive(server, "one");
    check_eq(g->from.sa.sa_family, AF_INET6);
    check(IN6_IS_ADDR_V4MAPPED(&g->from.in6.sin6_addr));
    must_set(server, SCTP_I_WANT_MAPPED_V4_ADDR, 0);
    check_eq(sendto(fd, "two", 3, 0, &to.sa, to.len), 3);
    g = check_receive(server, "two");
    check_eq(g->from.sa.sa_family, AF_INET);
    check_eq(g->from.in.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}
CASE(v6only_refuses_v4, "ipv6(7) IPV6_V6ONLY") {
    family = AF_INET6;
    int listener = socket_of(SOCK_STREAM), on = 1;
    check_eq(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
    check_eq(bind_to(listener, any()), 0);
    check_eq(listen(listener, 1), 0);
    struct address l = name_of(listener), to = address("127.0.0.1", port_in(&l));
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    check_errno(connect(fd, &to.sa, to.len), ECONNREFUSED);
}
CASE(v4_connects_not_to_v6, "connect(2)") {
    int fd = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    struct address to = address("::1", 7);
    check_errno2(connect(fd, &to.sa, to.len), EINVAL, EAFNOSUPPORT);
}
CASE(reuse_port_shares, "RFC 6458 8.1.27") {
    int a = socket_of(SOCK_STREAM), b = socket_of(SOCK_STREAM);
    must_set(a, SCTP_REUSE_PORT, 1);
    must_set(b, SCTP_REUSE_PORT, 1);
    check_eq(bind_to(a, loopback(0)), 0);
    check_eq(bind_to(b, name_of(a)), 0);
    check_eq(listen(a, 5), 0);
    check_eq(listen(b, 5), 0);
    int client = socket_of(SOCK_STREAM);
    check_eq(connect_to(client, a), 0);
    struct pollfd f[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    check_eq(poll(f, 2, PATIENCE), 1);
    int server = must(accept(f[0].revents ? a : b, NULL, NULL));
    check_send(client, "hello");
    check_receive(server, "hello");
}
CASE(encapsulated, "RFC 6951") {
    int listener = listening(SOCK_STREAM), client = socket_of(SOCK_STREAM);
    must_set(client, SCTP_REMOTE_UDP_ENCAPS_PORT, ((struct sctp_udpencaps){.sue_port = htons(9899)}));
    struct pair p = pair_of(listener, client);
    check_send(p.client, "hello");
    check_receive(p.server, "hello");
}
CASE(lengths, "sctp_getaddrlen(3)") {
    check_eq(sctp_getaddrlen(AF_INET), sizeof(struct sockaddr_in));
    check_eq(sctp_getaddrlen(AF_INET6), sizeof(struct sockaddr_in6));
}

SUITE(ENTRY(bindx_adds), ENTRY(bindx_two_at_once), ENTRY(bindx_removes), ENTRY(bindx_refused), ENTRY(bindx_all_are_reached),
      ENTRY(peers_addresses), BOTH(getladdrs_any), BOTH(getpaddrs_simple), ENTRY(getpaddrs_by_number), ENTRY(getpaddrs_of_none),
      BOTH(connectx_simple), ENTRY(connectx_two), ENTRY(connectx_gives_number), ENTRY(connectx_many_peers), ENTRY(connectx_later),
      ENTRY(connectx_refused), ENTRY(connectx_nothing), ENTRY(two_addresses_data), ENTRY(primary_changes), ENTRY(v6_any_takes_v4),
      ENTRY(v6_connects_mapped), ENTRY(v6_receives_mapped_or_not), ENTRY(v6only_refuses_v4), ENTRY(v4_connects_not_to_v6),
      ENTRY(reuse_port_shares), ENTRY(encapsulated), ENTRY(lengths))
