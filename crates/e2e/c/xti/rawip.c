/* /dev/rawip: addresses whose port is the protocol, data as raw sockets have it, privilege. Each case makes a network of its
 * own, as its root; where that is not permitted it holds nothing. */
#include "endpoints.h"
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <sched.h>
#include <sys/syscall.h>

enum { TRIAL = 253 /* RFC 3692 */, NO_PORT = 0 };

static void put_line(const char *path, const char *line) {
    int fd = must(open(path, O_WRONLY));
    must(write(fd, line, strlen(line)));
    close(fd);
}
/* False: not permitted. */
static int in_network(void) {
    int root = geteuid() == 0;
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWNET | (root ? 0 : CLONE_NEWUSER)) != 0)
        return 0;
    if (!root) {
        char line[40];
        put_line("/proc/self/setgroups", "deny");
        snprintf(line, sizeof line, "0 %u 1", uid), put_line("/proc/self/uid_map", line);
        snprintf(line, sizeof line, "0 %u 1", gid), put_line("/proc/self/gid_map", line);
    }
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
    must(ioctl(fd, SIOCSIFFLAGS, &request));
    close(fd);
    return 1;
}
#define IN_NETWORK() \
    do { \
        if (!in_network()) \
            return; \
    } while (0)

static void drop_privileges(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    must(syscall(SYS_capset, &head, none));
}
static void allow_ping(void) { put_line("/proc/sys/net/ipv4/ping_group_range", "0 0"); }

static struct address v6_address(const char *host, int protocol) {
    struct address a = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 s = {.sin6_family = AF_INET6, .sin6_port = htons(protocol)};
    inet_pton(AF_INET6, host, &s.sin6_addr);
    memcpy(a.at, &s, sizeof s);
    return a;
}
static int open_raw(int flags) { return must_t(t_open("/dev/rawip", O_RDWR | flags, NULL)); }
static int bound_to(const char *host, int protocol) {
    int fd = open_raw(0);
    bind_at(fd, inet_address(host, protocol), 0);
    return fd;
}
static int bind_only(int fd, struct address a) {
    struct t_bind req = {given(&a), 0};
    return t_bind(fd, &req, NULL);
}
static int send_bytes(int fd, struct address to, const void *data, unsigned len, const void *opt, unsigned opt_len) {
    struct t_unitdata u = {.addr = given(&to), .opt = given_bytes(opt, opt_len), .udata = given_bytes(data, len)};
    return t_sndudata(fd, &u);
}
static int send_text_to(int fd, struct address to, const char *text) {
    return send_bytes(fd, to, text, strlen(text), NULL, 0);
}

static struct received {
    struct address from;
    unsigned len;
    int flags;
    unsigned char data[70000];
} got;
static int receive(int fd, unsigned data_room) {
    static char opt[1024];
    struct t_unitdata u = {.addr = room(got.from.at, sizeof got.from.at), .opt = room(opt, sizeof opt),
                           .udata = room(got.data, data_room)};
    int result = t_rcvudata(fd, &u, &got.flags);
    got.from.len = u.addr.len;
    got.len = u.udata.len;
    return result;
}
static void check_from(struct address expected) {
    check_eq(got.from.len, expected.len);
    check_bytes(got.from.at, expected.at, expected.len);
}
/* The next datagram of IPv4 carries this. */
static void check_text(int fd, const char *text) {
    must_t(receive(fd, sizeof got.data));
    check_eq(got.len, 20 + strlen(text));
    check_bytes(got.data + 20, text, strlen(text));
}

struct echo {
    struct icmphdr head;
    char text[12];
};
static struct echo echo(int type, int id) {
    struct echo e = {.head.type = type, .head.un.echo = {htons(id), htons(1)}, .text = "hello, echo"};
    unsigned sum = 0;
    for (unsigned i = 0; i < sizeof e; i += 2) {
        uint16_t word;
        memcpy(&word, (char *)&e + i, 2);
        sum += word;
    }
    sum = (sum >> 16) + (sum & 0xffff);
    e.head.checksum = ~(sum + (sum >> 16));
    return e;
}
/* The reply, among whatever else a raw socket sees. */
static struct echo reply(int fd, unsigned header, int type) {
    struct echo e;
    do {
        must_t(receive(fd, sizeof got.data));
        check_eq(got.len, header + sizeof e);
        memcpy(&e, got.data + header, sizeof e);
    } while (e.head.type != type);
    return e;
}

/* --- addresses --- */

CASE(icmp_unless_said, "docs/rawip.md") {
    IN_NETWORK();
    int fd = open_raw(0);
    struct address a, any = inet_address("0.0.0.0", IPPROTO_ICMP);
    struct t_bind ret = {room(a.at, sizeof a.at), 9};
    must_t(t_bind(fd, NULL, &ret));
    check_eq(ret.addr.len, any.len);
    check_bytes(a.at, any.at, any.len);
    check_eq(ret.qlen, 0);
    check_state(fd, T_IDLE);
}
CASE(port_is_protocol, "docs/rawip.md") {
    IN_NETWORK();
    int fd = open_raw(0);
    struct address wanted = inet_address("127.0.0.1", TRIAL), at = bind_at(fd, wanted, 0), own = own_address(fd);
    check_bytes(at.at, wanted.at, wanted.len);
    check_bytes(own.at, wanted.at, wanted.len);
}
CASE(bad_protocol, "XNS 5.2 t_bind() TBADADDR") {
    IN_NETWORK();
    int fd = open_raw(0);
    check_t(bind_only(fd, inet_address("127.0.0.1", 256)), TBADADDR);
    check_t(bind_only(fd, text_address("abc")), TBADADDR);
    check_t(bind_only(fd, inet_address("192.0.2.1", TRIAL)), TNOADDR);
    check_state(fd, T_UNBND);
    check_eq(bind_only(fd, inet_address("127.0.0.1", TRIAL)), 0);
}
CASE(other_protocols_are_not_reached, "XNS 5.2 t_sndudata() TBADADDR") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    check_t(send_text_to(fd, inet_address("127.0.0.1", TRIAL + 1), "x"), TBADADDR);
    check_t(send_text_to(fd, v6_address("::1", TRIAL), "x"), TBADADDR);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", NO_PORT), "x"), 0);
    check_text(fd, "x");
}
CASE(another_protocol_later, "XNS 5.2 t_unbind()") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    check_ok(t_unbind(fd));
    check_t(send_text_to(fd, inet_address("127.0.0.1", TRIAL), "x"), TOUTSTATE);
    bind_at(fd, inet_address("127.0.0.1", TRIAL + 1), 0);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", TRIAL + 1), "other"), 0);
    check_text(fd, "other");
}
CASE(alias, "docs/rawip.md: /dev/raw") {
    IN_NETWORK();
    struct t_info info;
    int fd = must_t(t_open("/dev/raw", O_RDWR, &info));
    check_eq(info.servtype, T_CLTS);
    check_eq(info.addr, (long)sizeof(struct sockaddr_in6));
    check_eq(info.tsdu, 65535);
    check_eq(info.etsdu, T_INVALID);
    check_ok(t_bind(fd, NULL, NULL));
}

/* --- data --- */

CASE(there_and_back, "docs/rawip.md: data as raw(7)") {
    IN_NETWORK();
    int a = bound_to("127.0.0.1", TRIAL), b = bound_to("127.0.0.2", TRIAL);
    check_eq(send_text_to(a, inet_address("127.0.0.2", TRIAL), "there"), 0);
    check_text(b, "there");
    struct iphdr head;
    memcpy(&head, got.data, sizeof head);
    check_eq(head.version, 4);
    check_eq(head.protocol, TRIAL);
    check_eq(ntohs(head.tot_len), 25);
    check_eq(ntohl(head.saddr), 0x7f000001);
    check_from(inet_address("127.0.0.1", TRIAL));
    check_eq(send_text_to(b, got.from, "back"), 0);
    check_text(a, "back");
}
CASE(v6_has_no_header, "docs/rawip.md: data as raw(7)") {
    IN_NETWORK();
    int fd = must_t(t_open("/dev/rawip6", O_RDWR, NULL));
    bind_at(fd, v6_address("::1", TRIAL), 0);
    check_eq(send_text_to(fd, v6_address("::1", TRIAL), "six"), 0);
    must_t(receive(fd, sizeof got.data));
    check_eq(got.len, 3);
    check_bytes(got.data, "six", 3);
    check_from(v6_address("::1", TRIAL));
}
CASE(in_pieces, "XNS 5.2 t_rcvudata() T_MORE") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", TRIAL), "pieces"), 0);
    must_t(receive(fd, 23));
    check_eq(got.flags & T_MORE, T_MORE);
    check_bytes(got.data + 20, "pie", 3);
    must_t(receive(fd, 100));
    check_eq(got.flags & T_MORE, 0);
    check_eq(got.len, 3);
    check_bytes(got.data, "ces", 3);
}
CASE(own_header, "docs/rawip.md: protocol 255") {
    IN_NETWORK();
    int from = bound_to("127.0.0.1", IPPROTO_RAW), to = bound_to("127.0.0.2", TRIAL);
    struct {
        struct iphdr head;
        char text[4];
    } packet = {{.version = 4, .ihl = 5, .ttl = 9, .protocol = TRIAL, .saddr = htonl(0x7f000009), .daddr = htonl(0x7f000002)}, "mine"};
    packet.head.tot_len = htons(sizeof packet);
    check_eq(send_bytes(from, inet_address("127.0.0.2", NO_PORT), &packet, sizeof packet, NULL, 0), 0);
    check_text(to, "mine");
    check_eq(got.data[8], 9);
    check_from(inet_address("127.0.0.9", TRIAL));
}
CASE(blocked_receiver_wakes, "XNS 5.2 t_rcvudata()") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    pid_t child = must(fork());
    if (child == 0) {
        sleep_ms(20);
        int other = bound_to("127.0.0.2", TRIAL);
        send_text_to(other, inet_address("127.0.0.1", TRIAL), "wake");
        _exit(0);
    }
    check_text(fd, "wake");
    waitpid(child, NULL, 0);
}
CASE(restarted, "XNS 5.2 t_rcvudata() EINTR, signal(7) SA_RESTART") {
    IN_NETWORK();
    struct sigaction restart = {.sa_sigaction = harness_catch, .sa_flags = SA_SIGINFO | SA_RESTART};
    int fd = bound_to("127.0.0.1", TRIAL);
    pid_t parent = getpid(), poker = start_poking(SIGUSR1);
    check_sys(receive(fd, sizeof got.data), EINTR);
    end_poking(poker);
    must(sigaction(SIGUSR1, &restart, NULL));
    pid_t child = must(fork());
    if (child == 0) {
        for (int i = 0; i < 12; i++) {
            sleep_ms(4);
            kill(parent, SIGUSR1);
        }
        int other = bound_to("127.0.0.2", TRIAL);
        send_text_to(other, inet_address("127.0.0.1", TRIAL), "wake");
        _exit(0);
    }
    check_text(fd, "wake");
    waitpid(child, NULL, 0);
}
CASE(nothing_there, "XNS 5.2 t_rcvudata() TNODATA") {
    IN_NETWORK();
    int fd = open_raw(O_NONBLOCK);
    bind_at(fd, inet_address("127.0.0.1", TRIAL), 0);
    check_t(receive(fd, 100), TNODATA);
    check_look(fd, 0);
    check_t(t_rcvuderr(fd, NULL), TNOUDERR);
    check_t(send_bytes(fd, inet_address("127.0.0.1", TRIAL), got.data, 65536, NULL, 0), TBADDATA);
}
CASE(ready, "XNS 5.2 4.2: poll()") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    check_eq(events(fd, POLLIN, 0), 0);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", TRIAL), "one"), 0);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", TRIAL), "two"), 0);
    check_event(fd, T_DATA);
    check_eq(events(fd, POLLIN, 0) & POLLIN, POLLIN);
    check_text(fd, "one");
    check_eq(events(fd, POLLIN, 0) & POLLIN, POLLIN);
    check_text(fd, "two");
    check_eq(events(fd, POLLIN, 0), 0);
}

/* --- errors and options --- */

CASE(undelivered, "XNS 5.2 t_rcvuderr()") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.2", TRIAL), bystander = bound_to("127.0.0.3", TRIAL);
    check_eq(send_text_to(fd, inet_address("127.0.0.4", TRIAL), "nobody is there"), 0);
    check_event(fd, T_UDERR);
    check_eq(events(fd, POLLIN, 0) & POLLIN, POLLIN);
    check_t(receive(fd, 100), TLOOK);
    struct address to;
    struct t_uderr about = {.addr = room(to.at, sizeof to.at)};
    must_t(t_rcvuderr(fd, &about));
    struct address expected = inet_address("127.0.0.4", TRIAL);
    check_bytes(to.at, expected.at, expected.len);
    check_eq(about.error, ENOPROTOOPT);
    check_look(fd, 0);
    check_look(bystander, 0);
}
CASE(time_to_live, "XNS 5.2 T_IP_TTL") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    struct {
        struct t_opthdr head;
        unsigned char ttl;
    } opt = {{sizeof(struct t_opthdr) + 1, T_INET_IP, T_IP_TTL, 0}, 3};
    check_eq(send_bytes(fd, inet_address("127.0.0.1", TRIAL), "x", 1, &opt, opt.head.len), 0);
    check_text(fd, "x");
    check_eq(got.data[8], 3);
}
CASE(type_of_service, "XNS 5.2 t_optmgmt() T_IP_TOS") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", TRIAL);
    struct {
        struct t_opthdr head;
        unsigned char tos;
    } opt = {{sizeof(struct t_opthdr) + 1, T_INET_IP, T_IP_TOS, 0}, T_LDELAY};
    char answer[200];
    struct t_optmgmt req = {given_bytes(&opt, opt.head.len), T_NEGOTIATE}, ret = {room(answer, sizeof answer), 0};
    must_t(t_optmgmt(fd, &req, &ret));
    check_eq(ret.flags, T_SUCCESS);
    check_eq(send_text_to(fd, inet_address("127.0.0.1", TRIAL), "x"), 0);
    check_text(fd, "x");
    check_eq(got.data[1], T_LDELAY);
}

/* --- privilege --- */

CASE(echo_with_privilege, "RFC 792") {
    IN_NETWORK();
    int fd = bound_to("127.0.0.1", IPPROTO_ICMP);
    struct echo asked = echo(ICMP_ECHO, 77);
    check_eq(send_bytes(fd, inet_address("127.0.0.1", NO_PORT), &asked, sizeof asked, NULL, 0), 0);
    struct echo told = reply(fd, 20, ICMP_ECHOREPLY);
    check_eq(ntohs(told.head.un.echo.id), 77);
    check_bytes(told.text, asked.text, sizeof asked.text);
}
CASE(echo_without_privilege, "docs/rawip.md: ping sockets") {
    IN_NETWORK();
    allow_ping();
    drop_privileges();
    int fd = bound_to("127.0.0.1", IPPROTO_ICMP);
    struct echo asked = echo(ICMP_ECHO, 77), expected = echo(ICMP_ECHOREPLY, 77), told;
    check_eq(send_bytes(fd, inet_address("127.0.0.1", NO_PORT), &asked, sizeof asked, NULL, 0), 0);
    told = reply(fd, 20, ICMP_ECHOREPLY);
    check_bytes(&told, &expected, sizeof expected);
    check_eq(got.data[0], 0x45);
    check_from(inet_address("127.0.0.1", IPPROTO_ICMP));
    struct echo forged = echo(ICMP_TIMESTAMP, 1);
    check_t(send_bytes(fd, inet_address("127.0.0.1", NO_PORT), &forged, sizeof forged, NULL, 0), TACCES);
}
CASE(echo_v6_without_privilege, "docs/rawip.md: ping sockets") {
    IN_NETWORK();
    allow_ping();
    drop_privileges();
    int fd = must_t(t_open("/dev/rawip6", O_RDWR, NULL));
    bind_at(fd, v6_address("::1", NO_PORT), 0);
    struct echo asked = echo(ICMP6_ECHO_REQUEST, 78);
    check_eq(send_bytes(fd, v6_address("::1", IPPROTO_ICMPV6), &asked, sizeof asked, NULL, 0), 0);
    struct echo told = reply(fd, 0, ICMP6_ECHO_REPLY);
    check_eq(ntohs(told.head.un.echo.id), 78);
}
/* What the log says of it must not be in the way of a test's output. */
static void be_silent(void) { must(dup2(must(open("/dev/null", O_WRONLY)), 2)); }

CASE(no_privilege, "XNS 5.2 t_bind() TACCES") {
    IN_NETWORK();
    drop_privileges();
    be_silent();
    int fd = open_raw(0);
    check_t(bind_only(fd, inet_address("127.0.0.1", TRIAL)), TACCES);
    check_t(t_bind(fd, NULL, NULL), TACCES);
    check_state(fd, T_UNBND);
}
CASE(group_may_only_ping, "XNS 5.2 t_bind() TACCES") {
    IN_NETWORK();
    allow_ping();
    drop_privileges();
    be_silent();
    int fd = open_raw(0);
    check_t(bind_only(fd, inet_address("127.0.0.1", TRIAL)), TACCES);
    check_ok(t_bind(fd, NULL, NULL));
}

SUITE(ONCE(icmp_unless_said), ONCE(port_is_protocol), ONCE(bad_protocol), ONCE(other_protocols_are_not_reached),
      ONCE(another_protocol_later), ONCE(alias), ONCE(there_and_back), ONCE(v6_has_no_header), ONCE(in_pieces),
      ONCE(own_header), ONCE(blocked_receiver_wakes), ONCE(restarted), ONCE(nothing_there), ONCE(ready), ONCE(undelivered),
      ONCE(time_to_live), ONCE(type_of_service), ONCE(echo_with_privilege), ONCE(echo_without_privilege),
      ONCE(echo_v6_without_privilege), ONCE(no_privilege), ONCE(group_may_only_ping))
