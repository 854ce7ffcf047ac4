/* Network selection: getnetconfig(3N), getnetpath(3N), netconfig(4). The table is built in; /etc/netconfig is not read.
 * Other libraries have functions of these names (libtirpc), so ours have other symbols. */
#ifndef _NETCONFIG_H
#define _NETCONFIG_H

#ifdef __cplusplus
extern "C" {
#endif

#define NETCONFIG "/etc/netconfig"
#define NETPATH "NETPATH" /* environment: names, preferred first, with colons between them */

/* A transport. */
struct netconfig {
    char *nc_netid;             /* its name in NETPATH */
    unsigned long nc_semantics; /* NC_TPI_ */
    unsigned long nc_flag;      /* NC_VISIBLE, NC_BROADCAST */
    char *nc_protofmly;
    char *nc_proto;
    char *nc_device;            /* for t_open(3) */
    unsigned long nc_nlookups;  /* libraries that netdir(3N) would load: none */
    char **nc_lookups;
    unsigned long nc_unused[9];
};

/* nc_semantics */
#define NC_TPI_CLTS 1
#define NC_TPI_COTS 2
#define NC_TPI_COTS_ORD 3
#define NC_TPI_RAW 4

/* nc_flag */
#define NC_NOFLAG 0x00
#define NC_VISIBLE 0x01
#define NC_BROADCAST 0x02

/* nc_protofmly */
#define NC_NOPROTOFMLY "-"
#define NC_LOOPBACK "loopback"
#define NC_INET "inet"
#define NC_INET6 "inet6"

/* nc_proto */
#define NC_NOPROTO "-"
#define NC_TCP "tcp"
#define NC_UDP "udp"

/* Every transport, in the table's order; handles of setnetconfig. Entries live until endnetconfig. */
void *setnetconfig(void) __asm__("hw_setnetconfig");
struct netconfig *getnetconfig(void *) __asm__("hw_getnetconfig");
int endnetconfig(void *) __asm__("hw_endnetconfig");

/* By name; to be freed by freenetconfigent. */
struct netconfig *getnetconfigent(const char *) __asm__("hw_getnetconfigent");
void freenetconfigent(struct netconfig *) __asm__("hw_freenetconfigent");

/* Those that NETPATH names, or without it the visible ones. */
void *setnetpath(void) __asm__("hw_setnetpath");
struct netconfig *getnetpath(void *) __asm__("hw_getnetpath");
int endnetpath(void *) __asm__("hw_endnetpath");

void nc_perror(const char *) __asm__("hw_nc_perror");
char *nc_sperror(void) __asm__("hw_nc_sperror");

#ifdef __cplusplus
}
#endif

#endif
