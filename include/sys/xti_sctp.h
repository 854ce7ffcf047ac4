/* Options of SCTP for t_optmgmt(3), t_connect(3), T_OPTDATA_REQ and T_OPTDATA_IND. The transport is /dev/sctp_t; docs/sctp.md
 * says what each option does. Numbers and structures are Headwater's own: no standard has them.
 *
 * Unless it says otherwise, a value is a t_uscalar_t; times are milliseconds. Goes together with <netinet/sctp.h>, which has
 * other names. */
#ifndef _SYS_XTI_SCTP_H
#define _SYS_XTI_SCTP_H

#include <sys/tpicommon.h>

#define T_INET_SCTP 132

/* --- messages: current values of an endpoint, or options of one message --- */
#define T_SCTP_SID 3          /* stream of what is sent; at first 0 */
#define T_SCTP_PPI 4          /* payload protocol identifier of what is sent, in the machine's byte order; at first 0 */
#define T_SCTP_SSN 5          /* read only: stream sequence number of the message received last */
#define T_SCTP_TSN 6          /* read only: its transmission sequence number */
#define T_SCTP_RECVOPT 7      /* T_YES: messages come as T_OPTDATA_IND with T_SCTP_SID, T_SCTP_SSN, T_SCTP_PPI, T_SCTP_TSN */
#define T_SCTP_RCVINFO 53     /* read only: struct t_sctp_rcvinfo of the message received last */
#define T_SCTP_LIFETIME 23    /* given up when that old (RFC 3758); 0: never */
#define T_SCTP_PR 24          /* when a message is given up: T_SCTP_PR_ and so on */
#define T_SCTP_PR_VALUE 25    /* milliseconds, retransmissions or priority, as T_SCTP_PR says */
#define T_SCTP_DISPOSITION 26 /* read only: struct t_sctp_disposition */

/* --- what an association is made with, and what can be changed later --- */
#define T_SCTP_NODELAY 1            /* T_YES: small messages don't wait for others */
#define T_SCTP_MAXSEG 2             /* longest packet, bytes */
#define T_SCTP_COOKIE_LIFE 8
#define T_SCTP_SACK_DELAY 9
#define T_SCTP_SACK_FREQ 10         /* a SACK for so many packets */
#define T_SCTP_RTO_INITIAL 11
#define T_SCTP_RTO_MIN 12
#define T_SCTP_RTO_MAX 13
#define T_SCTP_ISTREAMS 14          /* at most; of an association: those that it has */
#define T_SCTP_OSTREAMS 15          /* wanted; of an association: those that it has */
#define T_SCTP_HB 16                /* T_YES: heartbeats */
#define T_SCTP_HB_ITVL 17
#define T_SCTP_PATH_MAX_RETRANS 18
#define T_SCTP_ASSOC_MAX_RETRANS 19
#define T_SCTP_MAX_INIT_RETRIES 20
#define T_SCTP_PF_RETRANS 21        /* errors after which a path is potentially failed (RFC 7829) */
#define T_SCTP_MAX_BURST 22         /* packets */
#define T_SCTP_CKSUM_TYPE 27        /* T_SCTP_CSUM_CRC32C, T_SCTP_CSUM_ZERO */
#define T_SCTP_ECN 48               /* read only: T_NO */
#define T_SCTP_ENCAP_PORT 49        /* UDP port of the peers that are called (RFC 6951); 0: as configured */
#define T_SCTP_AUTOCLOSE 50         /* seconds without data after which an association is shut down; 0: none */
#define T_SCTP_PD_POINT 52          /* a message is delivered in parts from so many bytes on */
#define T_SCTP_ALI 47               /* adaptation layer indication (RFC 5061); 0: none */

/* --- extensions that are offered to the peer: T_YES, T_NO --- */
#define T_SCTP_PARTIAL 51    /* partial reliability, RFC 3758 */
#define T_SCTP_INTERLEAVE 33 /* message interleaving, RFC 8260 */
#define T_SCTP_RECONFIG 40   /* stream reconfiguration, RFC 6525 */
#define T_SCTP_ASCONF 41     /* address reconfiguration, RFC 5061 */
#define T_SCTP_AUTH 42       /* authentication, RFC 4895 */

/* --- addresses: a struct sockaddr_in or sockaddr_in6 --- */
#define T_SCTP_ADD_IP 29  /* one more of our own */
#define T_SCTP_DEL_IP 30  /* one of our own less */
#define T_SCTP_SET_IP 31  /* one of our own that the peer is to send to */
#define T_SCTP_PRIMARY 32 /* one of the peer's that we send to */

/* --- streams --- */
#define T_SCTP_SCHED 34       /* T_SCTP_SCHED_FCFS and so on (RFC 8260) */
#define T_SCTP_SCHED_VALUE 35 /* struct t_sctp_sched_value */
#define T_SCTP_RESET_OUT 36   /* array of t_uscalar_t: outgoing streams that begin anew; or T_SCTP_ALL_STREAMS alone */
#define T_SCTP_RESET_IN 37    /* the same for streams of the peer's */
#define T_SCTP_RESET_ASSOC 38 /* T_YES: all numbers of both directions begin anew */
#define T_SCTP_ADD_STREAMS 39 /* struct t_sctp_add_streams */

/* --- keys (RFC 4895) --- */
#define T_SCTP_AUTH_CHUNKS 43 /* bytes: chunk types that the peer must authenticate */
#define T_SCTP_AUTH_KEY 44    /* struct t_sctp_auth_key, and the key behind it */
#define T_SCTP_AUTH_ACTIVE 45 /* number of the key that is signed with */
#define T_SCTP_AUTH_DELETE 46 /* number of a key */

/* --- what there is --- */
#define T_SCTP_STATUS 28 /* read only: struct t_sctp_status */

/* T_SCTP_PR */
#define T_SCTP_PR_NONE 0     /* never */
#define T_SCTP_PR_LIFETIME 1 /* after so many milliseconds */
#define T_SCTP_PR_RTX 2      /* after so many retransmissions */
#define T_SCTP_PR_PRIO 3     /* for want of room, when one of a lower number is to be sent */

/* T_SCTP_CKSUM_TYPE */
#define T_SCTP_CSUM_CRC32C 1
#define T_SCTP_CSUM_ZERO 2 /* none, where the peer agrees (RFC 9653) */

/* T_SCTP_SCHED */
#define T_SCTP_SCHED_FCFS 0
#define T_SCTP_SCHED_RR 1
#define T_SCTP_SCHED_RR_PKT 2
#define T_SCTP_SCHED_PRIO 3 /* the value is the priority, the lowest first */
#define T_SCTP_SCHED_FC 4
#define T_SCTP_SCHED_WFQ 5 /* the value is the weight */

#define T_SCTP_ALL_STREAMS 0xffffffffu

/* st_state */
#define T_SCTP_CLOSED 0
#define T_SCTP_COOKIE_WAIT 1
#define T_SCTP_COOKIE_ECHOED 2
#define T_SCTP_ESTABLISHED 3
#define T_SCTP_SHUTDOWN_PENDING 4
#define T_SCTP_SHUTDOWN_SENT 5
#define T_SCTP_SHUTDOWN_RECEIVED 6
#define T_SCTP_SHUTDOWN_ACK_SENT 7

/* st_link */
#define T_SCTP_LINK_NONE 0
#define T_SCTP_LINK_SHM 1
#define T_SCTP_LINK_UDP 2
#define T_SCTP_LINK_RAW 3

/* path_state */
#define T_SCTP_PATH_INACTIVE 0
#define T_SCTP_PATH_ACTIVE 1
#define T_SCTP_PATH_PF 2
#define T_SCTP_PATH_UNCONFIRMED 3

/* T_SCTP_RCVINFO */
struct t_sctp_rcvinfo {
    t_uscalar_t rcv_sid;
    t_uscalar_t rcv_ssn;
    t_uscalar_t rcv_ppi;
    t_uscalar_t rcv_tsn;
    t_uscalar_t rcv_unordered; /* T_YES, T_NO */
};

/* T_SCTP_DISPOSITION: of all that was given to t_snd(3), and is not delivered to the peer. */
struct t_sctp_disposition {
    t_uscalar_t disp_unsent;    /* bytes */
    t_uscalar_t disp_unacked;   /* bytes */
    t_uscalar_t disp_abandoned; /* messages */
};

/* T_SCTP_STATUS: one for each address of the peer. */
struct t_sctp_path {
    char path_addr[28]; /* struct sockaddr_in or sockaddr_in6 */
    t_uscalar_t path_state;
    t_uscalar_t path_primary; /* T_YES, T_NO */
    t_uscalar_t path_rto;
    t_uscalar_t path_srtt; /* microseconds */
    t_uscalar_t path_cwnd; /* bytes */
    t_uscalar_t path_flight;
    t_uscalar_t path_mtu;
    t_uscalar_t path_errors;
    t_uscalar_t path_encap; /* UDP port; 0: not encapsulated */
};

/* T_SCTP_STATUS. The value has st_npaths paths at its end. */
struct t_sctp_status {
    t_uscalar_t st_state;
    t_uscalar_t st_link;
    t_uscalar_t st_ostreams;
    t_uscalar_t st_istreams;
    t_uscalar_t st_peer_window; /* bytes */
    t_uscalar_t st_unsent;      /* bytes */
    t_uscalar_t st_unacked;     /* bytes */
    t_uscalar_t st_unread;      /* bytes that have come and were not received */
    t_uscalar_t st_retransmissions;
    t_uscalar_t st_abandoned; /* messages */
    t_uscalar_t st_ali;       /* the peer's adaptation layer indication */
    t_uscalar_t st_npaths;
    struct t_sctp_path st_path[1];
};

/* T_SCTP_SCHED_VALUE */
struct t_sctp_sched_value {
    t_uscalar_t sv_sid;
    t_uscalar_t sv_value;
};

/* T_SCTP_ADD_STREAMS */
struct t_sctp_add_streams {
    t_uscalar_t as_out;
    t_uscalar_t as_in;
};

/* T_SCTP_AUTH_KEY: the key's bytes follow. */
struct t_sctp_auth_key {
    t_uscalar_t ak_number;
    t_uscalar_t ak_length;
};

#endif
