/* Names of hosts and services to transport addresses and back: netdir(3N). <xti.h> or <tiuser.h> has struct netbuf. Other
 * libraries have functions of these names (libtirpc), so ours have other symbols. */
#ifndef _NETDIR_H
#define _NETDIR_H

#include <netconfig.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netbuf;

struct nd_hostserv {
    char *h_host;
    char *h_serv;
};

struct nd_hostservlist {
    int h_cnt;
    struct nd_hostserv *h_hostservs;
};

struct nd_addrlist {
    int n_cnt;
    struct netbuf *n_addrs;
};

/* ND_MERGEADDR */
struct nd_mergearg {
    char *s_uaddr; /* server's address, as it sees itself */
    char *c_uaddr; /* client's address */
    char *m_uaddr; /* outcome: server's address, as the client can use it; to be freed by free(3) */
};

/* h_host that are no names. */
#define HOST_SELF "\\1"
#define HOST_ANY "\\2"
#define HOST_BROADCAST "\\3"
#define HOST_SELF_BIND HOST_SELF
#define HOST_SELF_CONNECT HOST_SELF

/* What netdir_free frees. */
#define ND_HOSTSERV 0
#define ND_HOSTSERVLIST 1
#define ND_ADDR 2
#define ND_ADDRLIST 3

/* netdir_options */
#define ND_SET_BROADCAST 1     /* let the endpoint send to broadcast addresses */
#define ND_SET_RESERVEDPORT 2  /* bind it to a reserved port: of the netbuf if there is one, else any */
#define ND_CHECK_RESERVEDPORT 3 /* is the address of the netbuf reserved? */
#define ND_MERGEADDR 4         /* struct nd_mergearg */

/* Results, and _nderror (one per thread). */
#define ND_BADARG (-2)
#define ND_NOMEM (-1)
#define ND_OK 0
#define ND_NOHOST 1
#define ND_NOSERV 2
#define ND_NOSYM 3
#define ND_OPEN 4
#define ND_ACCESS 5
#define ND_UKNWN 6
#define ND_NOCTRL 7
#define ND_FAILCTRL 8
#define ND_SYSTEM 9

extern int *_nderror_of_thread(void) __asm__("hw_nderror");
#define _nderror (*_nderror_of_thread())

int netdir_getbyname(struct netconfig *, struct nd_hostserv *, struct nd_addrlist **) __asm__("hw_netdir_getbyname");
int netdir_getbyaddr(struct netconfig *, struct nd_hostservlist **, struct netbuf *) __asm__("hw_netdir_getbyaddr");
void netdir_free(void *, int) __asm__("hw_netdir_free");
int netdir_options(struct netconfig *, int, int, char *) __asm__("hw_netdir_options");
void netdir_perror(char *) __asm__("hw_netdir_perror");
char *netdir_sperror(void) __asm__("hw_netdir_sperror");

/* Universal addresses: "h1.h2.h3.h4.p1.p2", "IPv6 address.p1.p2", loop-back bytes with octal escapes. To be freed by free(3), the
 * netbuf by netdir_free(, ND_ADDR). */
#ifndef _TIRPC_RPC_H /* <rpc/rpc.h> of libtirpc has declared its own */
char *taddr2uaddr(struct netconfig *, struct netbuf *) __asm__("hw_taddr2uaddr");
struct netbuf *uaddr2taddr(struct netconfig *, char *) __asm__("hw_uaddr2taddr");
#endif

#ifdef __cplusplus
}
#endif

#endif
