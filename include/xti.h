/* The X/Open Transport Interface: XNS 5.2 <xti.h>. */
#ifndef _XTI_H
#define _XTI_H

#include <sys/types.h>
#include <sys/tpicommon.h>
#include <unistd.h> /* _SC_T_IOV_MAX */

#ifdef __cplusplus
extern "C" {
#endif

/* One per thread; an lvalue, and still right in an old program's `extern int t_errno;`. */
extern int *_t_errno(void);
#define t_errno (*_t_errno())

/* Events: t_look(3). */
#define T_LISTEN 0x0001     /* connect indication */
#define T_CONNECT 0x0002    /* connect confirmation */
#define T_DATA 0x0004       /* normal data */
#define T_EXDATA 0x0008     /* expedited data */
#define T_DISCONNECT 0x0010 /* disconnect indication */
#define T_UDERR 0x0040      /* datagram error indication */
#define T_ORDREL 0x0080     /* orderly release indication */
#define T_GODATA 0x0100     /* normal data can be sent again */
#define T_GOEXDATA 0x0200   /* expedited data can be sent again */

/* Flags of t_snd(3), t_rcv(3) and their family. */
#define T_MORE 0x0001
#define T_EXPEDITED 0x0002
#define T_PUSH 0x0004

/* States: t_getstate(3). */
#define T_UNINIT 0
#define T_UNBND 1
#define T_IDLE 2
#define T_OUTCON 3
#define T_INCON 4
#define T_DATAXFER 5
#define T_OUTREL 6
#define T_INREL 7

/* t_alloc(3), t_free(3): which structure ... */
#define T_BIND 1
#define T_OPTMGMT 2
#define T_CALL 3
#define T_DIS 4
#define T_UNITDATA 5
#define T_UDERROR 6
#define T_INFO 7
#define T_BIND_STR T_BIND
#define T_OPTMGMT_STR T_OPTMGMT
#define T_CALL_STR T_CALL
#define T_DIS_STR T_DIS
#define T_UNITDATA_STR T_UNITDATA
#define T_UDERROR_STR T_UDERROR
#define T_INFO_STR T_INFO
#define T_KUNITDATA 8 /* not supported */

/* ... and which of its buffers. */
#define T_ADDR 0x01
#define T_OPT 0x02
#define T_UDATA 0x04
#define T_ALL 0xffff

/* flags of struct t_info */
#define T_SENDZERO 0x0001   /* TSDUs of no bytes can be sent */
#define T_ORDRELDATA 0x0002 /* orderly release carries data */
#define T_SNDZERO T_SENDZERO

/* Values in options. */
#define T_YES 1
#define T_NO 0
#define T_UNUSED (-1)
#define T_NULL 0
#define T_ABSREQ 0x8000

/* Vectors of t_sndv(3) and t_rcvv(3). */
#define T_IOV_MAX 16
#ifndef _SC_T_IOV_MAX
#define _SC_T_IOV_MAX 66
#endif

/* Options that every provider has: level and names. */
#define XTI_GENERIC 0xffff
#define XTI_DEBUG 0x0001
#define XTI_LINGER 0x0080
#define XTI_SNDBUF 0x1001
#define XTI_RCVBUF 0x1002
#define XTI_SNDLOWAT 0x1003
#define XTI_RCVLOWAT 0x1004

/* XTI_LINGER */
struct t_linger {
    t_scalar_t l_onoff;  /* T_YES, T_NO */
    t_scalar_t l_linger; /* seconds, T_UNSPEC, T_INFINITE */
};

/* Lists of options in a struct netbuf: the first header, the next one (or 0), the value of an option. */
#define T_ALIGN(LENGTH) (((LENGTH) + sizeof(t_uscalar_t) - 1) & ~(sizeof(t_uscalar_t) - 1))
#define T_OPT_FIRSTHDR(NETBUF) \
    ((NETBUF)->len >= sizeof(struct t_opthdr) ? (struct t_opthdr *)(void *)(NETBUF)->buf : (struct t_opthdr *)0)
#define T_OPT_NEXTHDR(NETBUF, HEADER) \
    ((HEADER)->len >= sizeof(struct t_opthdr) \
             && (char *)(HEADER) + T_ALIGN((HEADER)->len) + sizeof(struct t_opthdr) \
                    <= (char *)(NETBUF)->buf + (NETBUF)->len \
         ? (struct t_opthdr *)(void *)((char *)(HEADER) + T_ALIGN((HEADER)->len)) \
         : (struct t_opthdr *)0)
#define T_OPT_DATA(HEADER) ((unsigned char *)(HEADER) + sizeof(struct t_opthdr))

/* The older form: buffer and its length. */
#define OPT_NEXTHDR(BUFFER, LENGTH, HEADER) \
    ((HEADER)->len >= sizeof(struct t_opthdr) \
             && (char *)(HEADER) + T_ALIGN((HEADER)->len) < (char *)(BUFFER) + (LENGTH) \
         ? (struct t_opthdr *)(void *)((char *)(HEADER) + T_ALIGN((HEADER)->len)) \
         : (struct t_opthdr *)0)

/* void in XTI; TLI programs, by way of <tiuser.h>, index the buffers of `netbuf` and declare t_alloc themselves. */
#ifdef _TLI_BUFFER
typedef _TLI_BUFFER __t_buffer;
/* Whose t_alloc knows nothing of service types. */
#define __T_ALLOC_NAME __asm__("hw_tli_alloc")
#else
#define __T_ALLOC_NAME
typedef void __t_buffer;
#endif

/* libtirpc's <rpc/types.h> has these two as well; where it comes first, they are its. */
#ifndef _TIRPC_TYPES_H
/* A buffer. */
struct netbuf {
    unsigned int maxlen; /* room in buf */
    unsigned int len;    /* bytes in buf */
    __t_buffer *buf;
};

struct t_bind {
    struct netbuf addr;
    unsigned int qlen; /* most connect indications outstanding */
};
#endif

struct t_info {
    t_scalar_t addr;     /* largest address */
    t_scalar_t options;  /* largest list of options */
    t_scalar_t tsdu;     /* largest TSDU; 0: no boundaries */
    t_scalar_t etsdu;    /* largest expedited TSDU */
    t_scalar_t connect;  /* most data with a connect */
    t_scalar_t discon;   /* most data with a disconnect */
    t_scalar_t servtype; /* T_COTS, T_COTS_ORD, T_CLTS */
    t_scalar_t flags;    /* T_SENDZERO, T_ORDRELDATA */
};

struct t_call {
    struct netbuf addr;
    struct netbuf opt;
    struct netbuf udata;
    int sequence;
};

struct t_discon {
    struct netbuf udata;
    int reason;
    int sequence;
};

struct t_optmgmt {
    struct netbuf opt;
    t_scalar_t flags;
};

struct t_unitdata {
    struct netbuf addr;
    struct netbuf opt;
    struct netbuf udata;
};

struct t_uderr {
    struct netbuf addr;
    struct netbuf opt;
    t_scalar_t error;
};

struct t_iovec {
    void *iov_base;
    size_t iov_len;
};

int t_accept(int, int, const struct t_call *);
__t_buffer *t_alloc(int, int, int) __T_ALLOC_NAME;
int t_bind(int, const struct t_bind *, struct t_bind *);
int t_close(int);
int t_connect(int, const struct t_call *, struct t_call *);
int t_error(const char *);
int t_free(void *, int);
int t_getinfo(int, struct t_info *);
int t_getprotaddr(int, struct t_bind *, struct t_bind *);
int t_getstate(int);
int t_listen(int, struct t_call *);
int t_look(int);
int t_open(const char *, int, struct t_info *);
int t_optmgmt(int, const struct t_optmgmt *, struct t_optmgmt *);
int t_rcv(int, void *, unsigned int, int *);
int t_rcvconnect(int, struct t_call *);
int t_rcvdis(int, struct t_discon *);
int t_rcvrel(int);
int t_rcvreldata(int, struct t_discon *);
int t_rcvudata(int, struct t_unitdata *, int *);
int t_rcvuderr(int, struct t_uderr *);
int t_rcvv(int, struct t_iovec *, unsigned int, int *);
int t_rcvvudata(int, struct t_unitdata *, struct t_iovec *, unsigned int, int *);
int t_snd(int, const void *, unsigned int, int);
int t_snddis(int, const struct t_call *);
int t_sndrel(int);
int t_sndreldata(int, const struct t_discon *);
int t_sndudata(int, const struct t_unitdata *);
int t_sndv(int, const struct t_iovec *, unsigned int, int);
int t_sndvudata(int, const struct t_unitdata *, const struct t_iovec *, unsigned int);
const char *t_strerror(int);
int t_sync(int);
int t_sysconf(int);
int t_unbind(int);

#ifdef __cplusplus
}
#endif

/* XNS 5.2 wants <xti_inet.h> included by its name; older programs find its contents here, as they may. */
#if !defined _XOPEN_SOURCE || _XOPEN_SOURCE - 0 < 500 || defined _GNU_SOURCE
#include <xti_inet.h>
#endif

#endif
