/* Sends ICMP echo requests, and says what comes back, as ping(8) does: unit data on /dev/rawip and /dev/rawip6. Without
 * CAP_NET_RAW it needs a group within net.ipv4.ping_group_range.
 *
 *     cc -o xti_ping xti_ping.c $(pkg-config --cflags --libs headwater)
 *     ./xti_ping -c 4 localhost
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xti.h>

#define LARGEST 65000
/* What both versions of ICMP begin with. */
struct echo {
    uint8_t type, code;
    uint16_t checksum, id, sequence;
};
enum { HEADER = sizeof(struct echo) };

static struct {
    long count; /* 0: until interrupted */
    size_t size;
    double interval;
    const char *host;
} wanted = {.size = 56, .interval = 1};

static union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
} target;
static int v6;
static long sent, received, repeated, failed;
static int64_t begun, least = INT64_MAX, most, sum;
static double squares;
static uint8_t answered[65536 / 8];
static volatile sig_atomic_t stopped;

static void stop(int number) { stopped = number; }

/* In nanoseconds. */
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double milliseconds(int64_t time) { return time / 1e6; }

/* RFC 1071. For ICMPv6 the kernel does it, who knows the addresses. */
static uint16_t checksum(const unsigned char *data, size_t n) {
    uint32_t total = 0;
    for (size_t i = 0; i < n; i += 2)
        total += data[i] << 8 | (i + 1 < n ? data[i + 1] : 0);
    while (total >> 16)
        total = (total >> 16) + (total & 0xffff);
    return htons(~total);
}

static const char *text_of(const void *address) {
    static char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in *v4 = address;
    const struct sockaddr_in6 *six = address;
    return inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? (void *)&six->sin6_addr : (void *)&v4->sin_addr, text, sizeof text);
}

static void find(const char *host) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
    int trouble = getaddrinfo(host, NULL, &hints, &found);
    if (trouble != 0) {
        fprintf(stderr, "xti_ping: %s: %s\n", host, gai_strerror(trouble));
        exit(2);
    }
    memcpy(&target, found->ai_addr, found->ai_addrlen);
    v6 = found->ai_family == AF_INET6;
    freeaddrinfo(found);
}

/* An endpoint for ICMP or ICMPv6, which is what they are if nothing is said. */
static int endpoint(void) {
    int fd = t_open(v6 ? "/dev/rawip6" : "/dev/rawip", O_RDWR | O_NONBLOCK, NULL);
    if (fd >= 0 && t_bind(fd, NULL, NULL) == 0)
        return fd;
    t_error("xti_ping");
    exit(2);
}

static void send_request(int fd) {
    static unsigned char message[HEADER + LARGEST];
    uint16_t sequence = ++sent;
    struct echo head = {
        .type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO, .id = htons(getpid()), .sequence = htons(sequence)};
    for (size_t i = 0; i < wanted.size; i++)
        message[HEADER + i] = i;
    int64_t time = now();
    if (wanted.size >= sizeof time)
        memcpy(message + HEADER, &time, sizeof time);
    memcpy(message, &head, HEADER);
    if (!v6)
        head.checksum = checksum(message, HEADER + wanted.size);
    memcpy(message, &head, HEADER);
    answered[sequence / 8] &= ~(1 << sequence % 8);
    struct t_unitdata unit = {
        .addr = {.len = v6 ? sizeof target.v6 : sizeof target.v4, .buf = (char *)&target},
        .udata = {.len = HEADER + wanted.size, .buf = (char *)message},
    };
    if (t_sndudata(fd, &unit) < 0 && t_errno != TFLOW)
        t_error("xti_ping: t_sndudata");
}

/* A reply to one of ours: of IPv4 the IP header comes with it. */
static void show(const unsigned char *packet, size_t n, const void *from) {
    size_t begin = v6 || n == 0 ? 0 : (packet[0] & 15) * 4;
    struct echo head;
    if (n < begin + HEADER)
        return;
    memcpy(&head, packet + begin, HEADER);
    if (head.type != (v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) || head.id != htons(getpid()))
        return;
    uint16_t sequence = ntohs(head.sequence);
    int again = answered[sequence / 8] >> sequence % 8 & 1;
    answered[sequence / 8] |= 1 << sequence % 8;
    printf("%zu bytes from %s: icmp_seq=%u", n - begin, text_of(from), sequence);
    if (!v6)
        printf(" ttl=%u", packet[8]);
    int64_t time;
    if (n >= begin + HEADER + sizeof time) {
        memcpy(&time, packet + begin + HEADER, sizeof time);
        time = now() - time;
        sum += time;
        squares += (double)time * time;
        least = time < least ? time : least;
        most = time > most ? time : most;
        printf(" time=%.3f ms", milliseconds(time));
    }
    printf(again ? " (DUP!)\n" : "\n");
    fflush(stdout);
    *(again ? &repeated : &received) += 1;
}

/* The network could not deliver a request. */
static void show_error(int fd) {
    struct sockaddr_storage to;
    struct t_uderr about = {.addr = {.maxlen = sizeof to, .buf = (char *)&to}};
    if (t_rcvuderr(fd, &about) < 0)
        return;
    failed++;
    printf("To %s: %s\n", text_of(&to), strerror(about.error));
}

/* Takes all that has come. */
static void receive(int fd) {
    static unsigned char packet[IP_MAXPACKET];
    struct sockaddr_storage from;
    struct t_unitdata unit = {
        .addr = {.maxlen = sizeof from, .buf = (char *)&from},
        .udata = {.maxlen = sizeof packet, .buf = (char *)packet},
    };
    int flags;
    for (;;) {
        if (t_rcvudata(fd, &unit, &flags) == 0)
            show(packet, unit.udata.len, &from);
        else if (t_errno == TLOOK && t_look(fd) == T_UDERR)
            show_error(fd);
        else
            break;
    }
    if (t_errno != TNODATA) {
        t_error("xti_ping: t_rcvudata");
        exit(2);
    }
}

/* Until `deadline`, or, with everything sent, until all is answered. */
static void wait_for_replies(int fd, int64_t deadline, int last) {
    int64_t left;
    while (!stopped && (left = deadline - now()) > 0 && !(last && received + failed >= sent)) {
        struct pollfd set = {.fd = fd, .events = POLLIN};
        if (poll(&set, 1, (int)(left / 1000000) + 1) > 0)
            receive(fd);
    }
}

static double root(double x) {
    double guess = x > 1 ? x : 1;
    for (int i = 0; x > 0 && i < 100; i++)
        guess = (guess + x / guess) / 2;
    return x > 0 ? guess : 0;
}

static void summarize(void) {
    printf("\n--- %s ping statistics ---\n%ld packets transmitted, %ld received", wanted.host, sent, received);
    if (repeated > 0)
        printf(", +%ld duplicates", repeated);
    if (failed > 0)
        printf(", +%ld errors", failed);
    printf(", %.4g%% packet loss, time %lldms\n", sent > 0 ? 100.0 * (sent - received) / sent : 0,
           (long long)((now() - begun) / 1000000));
    long timed = received + repeated;
    if (timed > 0 && most > 0) {
        double mean = (double)sum / timed;
        printf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n", milliseconds(least), mean / 1e6, milliseconds(most),
               root(squares / timed - mean * mean) / 1e6);
    }
}

static void read_options(int argc, char **argv) {
    int option, bad = 0;
    while ((option = getopt(argc, argv, "c:s:i:")) != -1) {
        char *end = "";
        switch (option) {
        case 'c':
            wanted.count = strtol(optarg, &end, 10);
            bad |= wanted.count <= 0;
            break;
        case 's':
            wanted.size = strtoul(optarg, &end, 10);
            bad |= wanted.size > LARGEST;
            break;
        case 'i':
            wanted.interval = strtod(optarg, &end);
            bad |= !(wanted.interval >= 0.001 && wanted.interval < 86400);
            break;
        default:
            bad = 1;
        }
        bad |= *end != 0;
    }
    if (bad || optind != argc - 1) {
        fprintf(stderr, "usage: xti_ping [-c COUNT] [-s SIZE] [-i SECONDS] HOST\n");
        exit(2);
    }
    wanted.host = argv[optind];
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    find(wanted.host);
    int fd = endpoint();
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    printf("PING %s (%s) %zu(%zu) bytes of data.\n", wanted.host, text_of(&target), wanted.size,
           wanted.size + HEADER + (v6 ? 40 : 20));
    fflush(stdout);
    begun = now();
    int64_t next = begun;
    while (!stopped && (wanted.count == 0 || sent < wanted.count)) {
        send_request(fd);
        int last = sent == wanted.count;
        next = last ? now() + 2000000000 : next + (int64_t)(wanted.interval * 1e9);
        wait_for_replies(fd, next, last);
    }
    summarize();
    t_close(fd);
    return received > 0 ? 0 : 1;
}
