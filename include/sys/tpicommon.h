/* What <xti.h>, <tiuser.h> and <sys/tihdr.h> have in common: widths, error codes, kinds of service, options. */
#ifndef _SYS_TPICOMMON_H
#define _SYS_TPICOMMON_H

/* 32 bits wide, also where long has 64. */
#ifndef _T_SCALAR_T
#define _T_SCALAR_T
typedef int t_scalar_t;
typedef unsigned int t_uscalar_t;
#endif

/* t_errno, and TLI_error of T_ERROR_ACK. */
#define TBADADDR 1       /* bad format of an address */
#define TBADOPT 2        /* bad format of an option */
#define TACCES 3         /* no permission */
#define TBADF 4          /* not an endpoint */
#define TNOADDR 5        /* no address could be allocated */
#define TOUTSTATE 6      /* not in this state */
#define TBADSEQ 7        /* bad sequence number */
#define TSYSERR 8        /* see errno */
#define TLOOK 9          /* an event wants attention: t_look(3) */
#define TBADDATA 10      /* bad amount of data */
#define TBUFOVFLW 11     /* buffer not large enough */
#define TFLOW 12         /* flow control */
#define TNODATA 13       /* nothing to be received, or still waiting */
#define TNODIS 14        /* no disconnect indication */
#define TNOUDERR 15      /* no datagram error indication */
#define TBADFLAG 16      /* bad flags */
#define TNOREL 17        /* no orderly release indication */
#define TNOTSUPPORT 18   /* not supported by the provider */
#define TSTATECHNG 19    /* state is changing */
#define TNOSTRUCTYPE 20  /* no such structure type */
#define TBADNAME 21      /* unknown provider */
#define TBADQLEN 22      /* qlen is zero */
#define TADDRBUSY 23     /* address in use */
#define TINDOUT 24       /* connect indications outstanding */
#define TPROVMISMATCH 25 /* another provider */
#define TRESQLEN 26      /* resfd of t_accept(3) bound with qlen > 0 */
#define TRESADDR 27      /* resfd of t_accept(3) bound to another address */
#define TQFULL 28        /* queue of connect indications full */
#define TPROTO 29        /* protocol error */

/* Sizes in struct t_info and T_INFO_ACK. */
#define T_INFINITE (-1) /* no limit */
#define T_INVALID (-2)  /* not supported */

/* Kinds of service: servtype, SERV_type. */
#define T_COTS 1     /* connections */
#define T_COTS_ORD 2 /* connections with orderly release */
#define T_CLTS 3     /* datagrams */

/* Option management: flags of t_optmgmt(3) and MGMT_flags, and status of an option. */
#define T_NEGOTIATE 0x0004
#define T_CHECK 0x0008
#define T_DEFAULT 0x0010
#define T_SUCCESS 0x0020
#define T_FAILURE 0x0040
#define T_CURRENT 0x0080
#define T_PARTSUCCESS 0x0100
#define T_READONLY 0x0200
#define T_NOTSUPPORT 0x0400

/* An option: this header, then its value. The next header follows at a multiple of sizeof(t_uscalar_t). */
struct t_opthdr {
    t_uscalar_t len;    /* of header and value */
    t_uscalar_t level;  /* protocol */
    t_uscalar_t name;
    t_uscalar_t status; /* outcome of the negotiation */
};

#define T_ALLOPT 0       /* name: every option of the level */
#define T_UNSPEC (~0 - 2) /* value: provider's choice */

#endif
