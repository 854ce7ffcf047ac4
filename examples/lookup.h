/* What a TLI or XTI program looks up before it begins: a transport by name, an address by host and service. Include
 * <tiuser.h> or <xti.h> first. */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <netconfig.h>
#include <netdir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "tcp", "ticotsord" ... as in netconfig(4), or "/dev/tcp". Ends the program if there is no such transport. */
static inline struct netconfig *find_transport(const char *name) {
    struct netconfig *transport = getnetconfigent(strncmp(name, "/dev/", 5) == 0 ? name + 5 : name);
    if (transport != NULL && transport->nc_semantics != NC_TPI_CLTS)
        return transport;
    fprintf(stderr, "%s: no transport with connections; there are:", name);
    void *table = setnetconfig();
    while ((transport = getnetconfig(table)) != NULL)
        if (transport->nc_semantics != NC_TPI_CLTS)
            fprintf(stderr, " %s", transport->nc_netid);
    fprintf(stderr, "\n");
    exit(2);
}

/* Where `host` has `service`: for loop-back transports any text, for inet a name of services(5) or a port. */
static inline struct netbuf *find_address(struct netconfig *transport, char *host, char *service) {
    struct nd_hostserv wanted = {host, service};
    struct nd_addrlist *found;
    if (netdir_getbyname(transport, &wanted, &found) != 0) {
        netdir_perror(service);
        exit(2);
    }
    return found->n_addrs;
}

/* "127.0.0.1.5.33" and the like, for people. */
static inline void print_address(const char *before, struct netconfig *transport, struct netbuf *address) {
    char *text = taddr2uaddr(transport, address);
    fprintf(stderr, "%s %s\n", before, text != NULL ? text : "an address without a text");
    free(text);
}

#endif
