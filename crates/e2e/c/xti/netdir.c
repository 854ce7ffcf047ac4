/* Network selection and name-to-address translation. */
#include "../streams/harness.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netdir.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <xti.h>

static struct netconfig *transport(const char *name) {
    struct netconfig *config = getnetconfigent(name);
    if (!config)
        fail("getnetconfigent %s: expected an entry, saw NULL: %s", name, nc_sperror());
    return config;
}

/* Addresses of a service. */
static struct nd_addrlist *look_up(const char *name, const char *host, const char *service) {
    struct nd_hostserv wanted = {(char *)host, (char *)service};
    struct nd_addrlist *list = NULL;
    int seen = netdir_getbyname(transport(name), &wanted, &list);
    if (seen != ND_OK || !list || list->n_cnt < 1)
        fail("netdir_getbyname %s %s %s: expected addresses, saw %d: %s", name, host, service, seen, netdir_sperror());
    return list;
}
static int refused(const char *name, const char *host, const char *service) {
    struct nd_hostserv wanted = {(char *)host, (char *)service};
    struct nd_addrlist *list = NULL;
    int seen = netdir_getbyname(transport(name), &wanted, &list);
    check_eq(_nderror, seen);
    check(list == NULL);
    return seen;
}
static void check_inet(const struct netbuf *addr, unsigned host, int port) {
    struct sockaddr_in in;
    check_eq(addr->len, sizeof in);
    memcpy(&in, addr->buf, sizeof in);
    check_eq(in.sin_family, AF_INET);
    check_eq(ntohl(in.sin_addr.s_addr), host);
    check_eq(ntohs(in.sin_port), port);
}

/* --- getnetconfig(3N) --- */

CASE(table, "getnetconfig(3N)") {
    void *handle = setnetconfig();
    struct netconfig *config;
    int count = 0, orderly = 0;
    check(handle != NULL);
    while ((config = getnetconfig(handle))) {
        count++;
        orderly += config->nc_semantics == NC_TPI_COTS_ORD;
        check(config->nc_flag & NC_VISIBLE);
        check(!strncmp(config->nc_device, "/dev/", 5));
        check_eq(config->nc_nlookups, 0);
    }
    check_eq(count, 7);
    check_eq(orderly, 3);
    check(getnetconfig(handle) == NULL);
    check_eq(endnetconfig(handle), 0);
}
CASE(entries, "netconfig(4)") {
    const struct {
        const char *netid;
        unsigned long semantics;
        const char *family, *protocol, *device;
    } expected[] = {
        {"ticotsord", NC_TPI_COTS_ORD, NC_LOOPBACK, NC_NOPROTO, "/dev/ticotsord"},
        {"ticots", NC_TPI_COTS, NC_LOOPBACK, NC_NOPROTO, "/dev/ticots"},
        {"ticlts", NC_TPI_CLTS, NC_LOOPBACK, NC_NOPROTO, "/dev/ticlts"},
        {"tcp", NC_TPI_COTS_ORD, NC_INET, NC_TCP, "/dev/tcp"},
        {"udp", NC_TPI_CLTS, NC_INET, NC_UDP, "/dev/udp"},
        {"tcp6", NC_TPI_COTS_ORD, NC_INET6, NC_TCP, "/dev/tcp6"},
        {"udp6", NC_TPI_CLTS, NC_INET6, NC_UDP, "/dev/udp6"},
    };
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct netconfig *config = transport(expected[i].netid);
        check_str(config->nc_netid, expected[i].netid);
        check_eq(config->nc_semantics, expected[i].semantics);
        check_str(config->nc_protofmly, expected[i].family);
        check_str(config->nc_proto, expected[i].protocol);
        check_str(config->nc_device, expected[i].device);
        freenetconfigent(config);
    }
}
CASE(unknown_entry, "getnetconfigent(3N)") {
    check(getnetconfigent("nosuchnet") == NULL);
    check(strlen(nc_sperror()) > 0);
    check(getnetconfigent(NULL) == NULL);
}
CASE(bad_handles, "endnetconfig(3N)") {
    check(getnetconfig(NULL) == NULL);
    check_eq(endnetconfig(NULL), -1);
    check_eq(endnetpath(NULL), -1);
    void *handle = setnetconfig();
    check(getnetpath(handle) == NULL);
    check_eq(endnetpath(handle), -1);
    check_eq(endnetconfig(handle), 0);
}
CASE(two_walks, "setnetconfig(3N)") {
    void *a = setnetconfig(), *b = setnetconfig();
    struct netconfig *first = getnetconfig(a);
    check(getnetconfig(a) != first);
    check(getnetconfig(b) == first);
    check_eq(endnetconfig(a), 0);
    check(getnetconfig(b) != NULL);
    check_eq(endnetconfig(b), 0);
}

/* --- getnetpath(3N) --- */

CASE(netpath_orders, "getnetpath(3N)") {
    setenv(NETPATH, "udp:nosuchnet:ticotsord", 1);
    void *handle = setnetpath();
    check_str(getnetpath(handle)->nc_netid, "udp");
    check_str(getnetpath(handle)->nc_netid, "ticotsord");
    check(getnetpath(handle) == NULL);
    check_eq(endnetpath(handle), 0);
}
CASE(netpath_unset, "getnetpath(3N)") {
    unsetenv(NETPATH);
    void *handle = setnetpath();
    int count = 0;
    while (getnetpath(handle))
        count++;
    check_eq(count, 7);
    check_eq(endnetpath(handle), 0);
}

/* --- netdir_getbyname(3N) --- */

CASE(inet_number, "netdir_getbyname(3N)") {
    check_inet(&look_up("tcp", "127.0.0.1", "4711")->n_addrs[0], INADDR_LOOPBACK, 4711);
}
CASE(inet_service_name, "netdir_getbyname(3N)") {
    int port = getservbyname("ftp", "tcp") ? 21 : 0;
    if (port)
        check_inet(&look_up("tcp", "127.0.0.1", "ftp")->n_addrs[0], INADDR_LOOPBACK, port);
}
CASE(inet_localhost, "netdir_getbyname(3N)") {
    check_inet(&look_up("udp", "localhost", "53")->n_addrs[0], INADDR_LOOPBACK, 53);
}
CASE(inet_special_hosts, "netdir(3N) HOST_SELF HOST_ANY HOST_BROADCAST") {
    check_inet(&look_up("tcp", HOST_SELF, "80")->n_addrs[0], INADDR_LOOPBACK, 80);
    check_inet(&look_up("tcp", HOST_ANY, "80")->n_addrs[0], INADDR_ANY, 80);
    check_inet(&look_up("udp", HOST_BROADCAST, "80")->n_addrs[0], INADDR_BROADCAST, 80);
}
CASE(inet_no_service, "netdir_getbyname(3N)") {
    check_inet(&look_up("tcp", HOST_ANY, "")->n_addrs[0], INADDR_ANY, 0);
}
CASE(inet6_number, "netdir_getbyname(3N)") {
    struct nd_addrlist *list = look_up("tcp6", "::1", "4711");
    struct sockaddr_in6 in;
    check_eq(list->n_addrs[0].len, sizeof in);
    memcpy(&in, list->n_addrs[0].buf, sizeof in);
    check_eq(in.sin6_family, AF_INET6);
    check(IN6_IS_ADDR_LOOPBACK(&in.sin6_addr));
    check_eq(ntohs(in.sin6_port), 4711);
    netdir_free(list, ND_ADDRLIST);
}
CASE(inet_refusals, "netdir_getbyname(3N) errors") {
    check_eq(refused("tcp", "127.0.0.1", "nosuchservice"), ND_NOSERV);
    check_eq(refused("tcp", "127.0.0.1", "65536"), ND_NOSERV);
    check_eq(refused("tcp", "no such host", "80"), ND_NOHOST);
    check_eq(refused("tcp", "::1", "80"), ND_NOHOST);
    check_eq(refused("tcp", NULL, "80"), ND_BADARG);
    check(strlen(netdir_sperror()) > 0);
}
CASE(loopback_service, "netdir_getbyname(3N)") {
    struct nd_addrlist *list = look_up("ticotsord", HOST_SELF, "printer");
    struct utsname names;
    check_eq(list->n_cnt, 1);
    check_eq(list->n_addrs[0].len, 7);
    check_bytes(list->n_addrs[0].buf, "printer", 7);
    netdir_free(list, ND_ADDRLIST);
    must(uname(&names));
    netdir_free(look_up("ticlts", names.nodename, "printer"), ND_ADDRLIST);
    check_eq(refused("ticlts", "elsewhere.example", "printer"), ND_NOHOST);
    check_eq(refused("ticlts", HOST_SELF, ""), ND_NOSERV);
}
CASE(bad_arguments, "netdir(3N) ND_BADARG") {
    struct nd_hostserv wanted = {HOST_SELF, "1"};
    struct nd_addrlist *list;
    struct netconfig strange = {.nc_netid = "x", .nc_protofmly = "osi"};
    check_eq(netdir_getbyname(NULL, &wanted, &list), ND_BADARG);
    check_eq(netdir_getbyname(&strange, &wanted, &list), ND_BADARG);
    check_eq(netdir_getbyname(transport("tcp"), NULL, &list), ND_BADARG);
    check_eq(netdir_getbyname(transport("tcp"), &wanted, NULL), ND_BADARG);
    check(taddr2uaddr(transport("tcp"), NULL) == NULL);
    check(uaddr2taddr(transport("tcp"), NULL) == NULL);
    netdir_free(NULL, ND_ADDRLIST);
}

/* --- netdir_getbyaddr(3N) --- */

CASE(names_of_an_inet_address, "netdir_getbyaddr(3N)") {
    struct nd_addrlist *list = look_up("tcp", "127.0.0.1", "47111");
    struct nd_hostservlist *names = NULL;
    check_eq(netdir_getbyaddr(transport("tcp"), &names, &list->n_addrs[0]), ND_OK);
    check(names->h_cnt >= 1);
    check_str(names->h_hostservs[0].h_serv, "47111");
    check(strlen(names->h_hostservs[0].h_host) > 0);
    netdir_free(names, ND_HOSTSERVLIST);
    netdir_free(list, ND_ADDRLIST);
}
CASE(names_of_a_loopback_address, "netdir_getbyaddr(3N)") {
    struct netbuf addr = {4, 4, (char *)"name"};
    struct nd_hostservlist *names = NULL;
    struct utsname here;
    must(uname(&here));
    check_eq(netdir_getbyaddr(transport("ticots"), &names, &addr), ND_OK);
    check_str(names->h_hostservs[0].h_host, here.nodename);
    check_str(names->h_hostservs[0].h_serv, "name");
    netdir_free(names, ND_HOSTSERVLIST);
}
CASE(short_address, "netdir_getbyaddr(3N) ND_BADARG") {
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct netbuf addr = {sizeof in, 4, &in};
    struct nd_hostservlist *names = NULL;
    check_eq(netdir_getbyaddr(transport("tcp"), &names, &addr), ND_BADARG);
    addr.len = sizeof in;
    check_eq(netdir_getbyaddr(transport("tcp6"), &names, &addr), ND_BADARG);
}

/* --- universal addresses --- */

#define check_universal(TRANSPORT, TEXT) \
    do { \
        struct netbuf *addr_ = uaddr2taddr(transport(TRANSPORT), TEXT); \
        check(addr_ != NULL); \
        char *text_ = taddr2uaddr(transport(TRANSPORT), addr_); \
        check(text_ != NULL); \
        check_str(text_, TEXT); \
        free(text_); \
        netdir_free(addr_, ND_ADDR); \
    } while (0)

CASE(universal_inet, "uaddr2taddr(3N)") {
    struct netbuf *addr = uaddr2taddr(transport("tcp"), "192.0.2.1.18.103");
    check(addr != NULL);
    check_inet(addr, 0xc0000201, 18 * 256 + 103);
    check_universal("udp", "192.0.2.1.18.103");
}
CASE(universal_inet6, "RFC 5665") { check_universal("tcp6", "2001:db8::1.0.80"); }
CASE(universal_loopback, "uaddr2taddr(3N)") {
    struct netbuf *addr = uaddr2taddr(transport("ticlts"), "a\\000\\134\\.z");
    check(addr != NULL);
    check_eq(addr->len, 5);
    check_bytes(addr->buf, "a\0\\.z", 5);
    check_str(taddr2uaddr(transport("ticlts"), addr), "a\\000\\134.z");
    check_universal("ticotsord", "host.service\\040\\377");
}
CASE(universal_malformed, "uaddr2taddr(3N)") {
    const char *bad[] = {"", "1.2.3.4", "1.2.3.4.5", "1.2.3.4.5.256", "1.2.3.4.5.-6", "1.2.3.4.5.6.7", "a.b.c.d.5.6", "1.2.3.4.5."};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        check(uaddr2taddr(transport("tcp"), (char *)bad[i]) == NULL);
        check_eq(_nderror, ND_BADARG);
    }
    check(uaddr2taddr(transport("ticlts"), "") == NULL);
    check(uaddr2taddr(transport("ticlts"), "x\\777") == NULL);
    check(uaddr2taddr(transport("ticlts"), "x\\") == NULL);
}

/* --- netdir_options(3N) --- */

static char *merged(const char *name, const char *server, const char *client) {
    struct nd_mergearg arg = {(char *)server, (char *)client, NULL};
    check_eq(netdir_options(transport(name), ND_MERGEADDR, -1, (char *)&arg), ND_OK);
    return arg.m_uaddr;
}
CASE(merging, "netdir_options(3N) ND_MERGEADDR") {
    check_str(merged("tcp", "0.0.0.0.0.80", "127.0.0.1.8.1"), "127.0.0.1.0.80");
    check_str(merged("tcp", "192.0.2.1.0.80", "127.0.0.1.8.1"), "192.0.2.1.0.80");
    check_str(merged("ticlts", "server", "client"), "server");
}
CASE(reserved_ports, "netdir_options(3N) ND_CHECK_RESERVEDPORT") {
    struct netconfig *tcp = transport("tcp");
    check_eq(netdir_options(tcp, ND_CHECK_RESERVEDPORT, -1, (char *)uaddr2taddr(tcp, "1.2.3.4.3.255")), ND_OK);
    check(netdir_options(tcp, ND_CHECK_RESERVEDPORT, -1, (char *)uaddr2taddr(tcp, "1.2.3.4.4.0")) != ND_OK);
    check_eq(netdir_options(tcp, ND_CHECK_RESERVEDPORT, -1, NULL), ND_BADARG);
}
CASE(options_without_meaning, "netdir_options(3N) ND_NOCTRL") {
    check_eq(netdir_options(transport("ticlts"), ND_SET_BROADCAST, -1, NULL), ND_NOCTRL);
    check_eq(netdir_options(transport("ticots"), ND_SET_RESERVEDPORT, -1, NULL), ND_NOCTRL);
    check_eq(netdir_options(transport("tcp"), ND_SET_BROADCAST, -1, NULL), ND_NOCTRL);
    check_eq(netdir_options(transport("tcp"), 99, -1, NULL), ND_NOCTRL);
}
CASE(broadcast_allowed, "netdir_options(3N) ND_SET_BROADCAST") {
    int fd = must(t_open("/dev/udp", O_RDWR, NULL));
    check_eq(t_bind(fd, NULL, NULL), 0);
    check_eq(netdir_options(transport("udp"), ND_SET_BROADCAST, fd, NULL), ND_OK);
    check_eq(t_close(fd), 0);
}
CASE(reserved_port_bound, "netdir_options(3N) ND_SET_RESERVEDPORT") {
    int fd = must(t_open("/dev/tcp", O_RDWR, NULL));
    int seen = netdir_options(transport("tcp"), ND_SET_RESERVEDPORT, fd, NULL);
    if (seen == ND_ACCESS)
        check_eq(t_getstate(fd), T_UNBND);
    else {
        check_eq(seen, ND_OK);
        check_eq(t_getstate(fd), T_IDLE);
    }
    check_eq(t_close(fd), 0);
}
CASE(bound_and_found, "netdir(3N)") {
    struct nd_addrlist *list = look_up("ticotsord", HOST_SELF, "netdir.test");
    struct t_bind wanted = {.addr = list->n_addrs[0], .qlen = 1};
    int server = must(t_open(transport("ticotsord")->nc_device, O_RDWR, NULL));
    check_eq(t_bind(server, &wanted, NULL), 0);
    int client = must(t_open("/dev/ticotsord", O_RDWR, NULL));
    check_eq(t_bind(client, NULL, NULL), 0);
    check_eq(t_bind(must(t_open("/dev/ticotsord", O_RDWR, NULL)), &wanted, NULL), -1);
    check_eq(t_errno, TADDRBUSY);
}

CASES(ENTRY(table), ENTRY(entries), ENTRY(unknown_entry), ENTRY(bad_handles), ENTRY(two_walks), ENTRY(netpath_orders),
      ENTRY(netpath_unset), ENTRY(inet_number), ENTRY(inet_service_name), ENTRY(inet_localhost), ENTRY(inet_special_hosts),
      ENTRY(inet_no_service), ENTRY(inet6_number), ENTRY(inet_refusals), ENTRY(loopback_service), ENTRY(bad_arguments),
      ENTRY(names_of_an_inet_address), ENTRY(names_of_a_loopback_address), ENTRY(short_address), ENTRY(universal_inet),
      ENTRY(universal_inet6), ENTRY(universal_loopback), ENTRY(universal_malformed), ENTRY(merging), ENTRY(reserved_ports),
      ENTRY(options_without_meaning), ENTRY(broadcast_allowed), ENTRY(reserved_port_bound), ENTRY(bound_and_found))
