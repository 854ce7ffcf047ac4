/* timod(7M): ioctls of I_STR that carry one TPI primitive to the provider and its answer back. An error of the provider is
 * the ioctl's result: the TLI error in the low byte, for TSYSERR errno in the next one. */
#ifndef _SYS_TIMOD_H
#define _SYS_TIMOD_H

#include <sys/tihdr.h>

#define TIMOD ('T' << 8)
#define TI_GETINFO (TIMOD | 140)     /* T_INFO_REQ, T_INFO_ACK */
#define TI_OPTMGMT (TIMOD | 141)     /* T_OPTMGMT_REQ, T_OPTMGMT_ACK */
#define TI_BIND (TIMOD | 142)        /* T_BIND_REQ, T_BIND_ACK */
#define TI_UNBIND (TIMOD | 143)      /* T_UNBIND_REQ, T_OK_ACK */
#define TI_GETMYNAME (TIMOD | 144)   /* struct netbuf *; not through I_STR */
#define TI_GETPEERNAME (TIMOD | 145) /* the same, of the other end */
#define TI_SETMYNAME (TIMOD | 146)
#define TI_SETPEERNAME (TIMOD | 147)
#define TI_SYNC (TIMOD | 148)        /* struct ti_sync_req, struct ti_sync_ack */
#define TI_GETADDRS (TIMOD | 149)    /* T_ADDR_REQ, T_ADDR_ACK */
#define TI_CAPABILITY (TIMOD | 150)  /* T_CAPABILITY_REQ, T_CAPABILITY_ACK */

/* TI_SYNC */
struct ti_sync_req {
    t_uscalar_t tsr_flags; /* TSRF_ */
};
#define TSRF_INFO_REQ 0x1
#define TSRF_IS_EXP_IN_RCVBUF 0x2
#define TSRF_QLEN_REQ 0x4

struct ti_sync_ack {
    struct T_info_ack tsa_info; /* TSRF_INFO_REQ */
    t_uscalar_t tsa_qlen;       /* TSRF_QLEN_REQ */
    t_uscalar_t tsa_flags;      /* TSAF_ */
};
#define TSAF_EXP_QUEUED 0x1

#endif
