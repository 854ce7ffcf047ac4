/* Options of the internet protocols: XNS 5.2 <xti_inet.h>. Goes together with <netinet/in.h> and <netinet/tcp.h>, before
 * and after: names that both have (TCP_NODELAY, IP_TOS ...) have the same value in both, so either header's will do for
 * t_optmgmt(3) and for setsockopt(2). That is why T_IP_OPTIONS, T_IP_TOS, T_IP_TTL and T_IP_REUSEADDR are not the numbers
 * that XNS recommends. */
#ifndef _XTI_INET_H
#define _XTI_INET_H

#include <sys/tpicommon.h>

/* TCP: level, names, and a value of T_TCP_KEEPALIVE besides T_YES and T_NO. */
#define T_INET_TCP 0x6
#define T_TCP_NODELAY 1
#define T_TCP_MAXSEG 2
#define T_TCP_KEEPALIVE 8
#define T_GARBAGE 0x02 /* kp_onoff: T_YES | T_GARBAGE, with a byte of garbage */

/* T_TCP_KEEPALIVE */
struct t_kpalive {
    t_scalar_t kp_onoff;   /* T_YES, T_NO, T_YES | T_GARBAGE */
    t_scalar_t kp_timeout; /* minutes, or T_UNSPEC */
};

/* UDP */
#define T_INET_UDP 0x11
#define T_UDP_CHECKSUM 0x0600

/* IP */
#define T_INET_IP 0x0
#define T_IP_TOS 1
#define T_IP_TTL 2
#define T_IP_OPTIONS 4
#define T_IP_DONTROUTE 0x10
#define T_IP_BROADCAST 0x20
#define T_IP_REUSEADDR 0x40

/* T_IP_TOS: precedence, and kind of service. */
#define T_ROUTINE 0
#define T_PRIORITY 1
#define T_IMMEDIATE 2
#define T_FLASH 3
#define T_OVERRIDEFLASH 4
#define T_CRITIC_ECP 5
#define T_INETCONTROL 6
#define T_NETCONTROL 7
#define T_NOTOS 0
#define T_LDELAY (1 << 4)
#define T_HITHRPT (1 << 3)
#define T_HIREL (1 << 2)
#define T_LOCOST (1 << 1)
#define SET_TOS(PRECEDENCE, TOS) ((0x7 & (PRECEDENCE)) << 5 | (0x1e & (TOS)))

/* The names before XNS 5. */
#define INET_TCP T_INET_TCP
#define INET_UDP T_INET_UDP
#define INET_IP T_INET_IP
#ifndef TCP_NODELAY
#define TCP_NODELAY 1
#endif
#ifndef TCP_MAXSEG
#define TCP_MAXSEG 2
#endif
#ifndef TCP_KEEPALIVE
#define TCP_KEEPALIVE T_TCP_KEEPALIVE
#endif
#ifndef UDP_CHECKSUM
#define UDP_CHECKSUM T_UDP_CHECKSUM
#endif
#ifndef IP_TOS
#define IP_TOS 1
#endif
#ifndef IP_TTL
#define IP_TTL 2
#endif
#ifndef IP_OPTIONS
#define IP_OPTIONS 4
#endif
#ifndef IP_DONTROUTE
#define IP_DONTROUTE T_IP_DONTROUTE
#endif
#ifndef IP_BROADCAST
#define IP_BROADCAST T_IP_BROADCAST
#endif
#ifndef IP_REUSEADDR
#define IP_REUSEADDR T_IP_REUSEADDR
#endif

#endif
