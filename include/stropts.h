/* The STREAMS interface: streamio(7I), getmsg(2), putmsg(2), isastream(3C), fattach(3C), fdetach(3C); POSIX XSR <stropts.h>.
 * Values are those of System V Release 4; the extensions (I_ANCHOR, I_SERROPT, I_ESETSIG ...) have Solaris's. */
#ifndef _STROPTS_H
#define _STROPTS_H

#include <sys/types.h>
#include <sys/ioctl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 32 bits wide, also where long has 64; <xti.h> and <sys/tihdr.h> use the same. */
#ifndef _T_SCALAR_T
#define _T_SCALAR_T
typedef int t_scalar_t;
typedef unsigned int t_uscalar_t;
#endif

/* Commands of ioctl(2) on a stream: streamio(7I). */
#define __SID ('S' << 8)
#define I_NREAD (__SID | 1)
#define I_PUSH (__SID | 2)
#define I_POP (__SID | 3)
#define I_LOOK (__SID | 4)
#define I_FLUSH (__SID | 5)
#define I_SRDOPT (__SID | 6)
#define I_GRDOPT (__SID | 7)
#define I_STR (__SID | 8)
#define I_SETSIG (__SID | 9)
#define I_GETSIG (__SID | 10)
#define I_FIND (__SID | 11)
#define I_LINK (__SID | 12)
#define I_UNLINK (__SID | 13)
#define I_RECVFD (__SID | 14)
#define I_PEEK (__SID | 15)
#define I_FDINSERT (__SID | 16)
#define I_SENDFD (__SID | 17)
#define I_SWROPT (__SID | 19)
#define I_GWROPT (__SID | 20)
#define I_LIST (__SID | 21)
#define I_PLINK (__SID | 22)
#define I_PUNLINK (__SID | 23)
#define I_ANCHOR (__SID | 24)
#define I_FLUSHBAND (__SID | 28)
#define I_CKBAND (__SID | 29)
#define I_GETBAND (__SID | 30)
#define I_ATMARK (__SID | 31)
#define I_SETCLTIME (__SID | 32)
#define I_GETCLTIME (__SID | 33)
#define I_CANPUT (__SID | 34)
#define I_SERROPT (__SID | 35)
#define I_GERROPT (__SID | 36)
#define I_ESETSIG (__SID | 37)
#define I_EGETSIG (__SID | 38)

/* The longest name of a module, for I_LOOK, without its NUL. */
#define FMNAMESZ 8

/* I_FLUSH, and bi_flag of I_FLUSHBAND; FLUSHBAND is for M_FLUSH messages. */
#define FLUSHR 0x01
#define FLUSHW 0x02
#define FLUSHRW 0x03
#define FLUSHBAND 0x04

/* Events of I_SETSIG, I_GETSIG, I_ESETSIG, I_EGETSIG. */
#define S_INPUT 0x0001
#define S_HIPRI 0x0002
#define S_OUTPUT 0x0004
#define S_MSG 0x0008
#define S_ERROR 0x0010
#define S_HANGUP 0x0020
#define S_RDNORM 0x0040
#define S_WRNORM S_OUTPUT
#define S_RDBAND 0x0080
#define S_WRBAND 0x0100
#define S_BANDURG 0x0200 /* SIGURG instead of SIGPOLL for S_RDBAND */

/* Flags of getmsg(2), putmsg(2), I_PEEK and I_FDINSERT. */
#define RS_HIPRI 0x01

/* Flags of getpmsg(2) and putpmsg(2). */
#define MSG_HIPRI 0x01
#define MSG_ANY 0x02
#define MSG_BAND 0x04

/* What getmsg(2) and getpmsg(2) return when a part did not fit. */
#define MORECTL 1
#define MOREDATA 2

/* Read modes, and what read(2) does with control parts: I_SRDOPT, I_GRDOPT. */
#define RNORM 0x00
#define RMSGD 0x01
#define RMSGN 0x02
#define RPROTDAT 0x04
#define RPROTDIS 0x08
#define RPROTNORM 0x10

/* Write modes: I_SWROPT, I_GWROPT. */
#define SNDZERO 0x01

/* Whether errors persist: I_SERROPT, I_GERROPT. */
#define RERRNORM 0x01
#define RERRNONPERSIST 0x02
#define WERRNORM 0x04
#define WERRNONPERSIST 0x08

/* I_ATMARK. */
#define ANYMARK 0x01
#define LASTMARK 0x02

/* I_UNLINK and I_PUNLINK: everything below. */
#define MUXID_ALL (-1)

/* ic_timout of I_STR, and poll(2): wait for ever. */
#ifndef INFTIM
#define INFTIM (-1)
#endif

/* A part of a message: getmsg(2), putmsg(2). */
struct strbuf {
    int maxlen; /* room in buf */
    int len;    /* bytes in buf; -1: there is no such part */
    char *buf;
};

/* I_STR */
struct strioctl {
    int ic_cmd;
    int ic_timout; /* seconds; 0: 15 s; INFTIM */
    int ic_len;
    char *ic_dp;
};

/* I_PEEK */
struct strpeek {
    struct strbuf ctlbuf;
    struct strbuf databuf;
    t_uscalar_t flags;
};

/* I_FDINSERT */
struct strfdinsert {
    struct strbuf ctlbuf;
    struct strbuf databuf;
    t_uscalar_t flags;
    int fildes;
    int offset;
};

/* I_RECVFD */
struct strrecvfd {
    int fd;
    uid_t uid;
    gid_t gid;
    char fill[8];
};

/* I_LIST */
struct str_mlist {
    char l_name[FMNAMESZ + 1];
};
struct str_list {
    int sl_nmods;
    struct str_mlist *sl_modlist;
};

/* I_FLUSHBAND */
struct bandinfo {
    unsigned char bi_pri;
    int bi_flag;
};

/* I_ESETSIG, I_EGETSIG: as I_SETSIG for the process (or, negative, process group) ss_pid; 0: the caller. */
struct strsigset {
    pid_t ss_pid;
    int ss_events;
};

int isastream(int);                       /* isastream(3C) */
int fattach(int, const char *);           /* fattach(3C) */
int fdetach(const char *);                /* fdetach(3C) */
int getmsg(int, struct strbuf *__restrict, struct strbuf *__restrict, int *__restrict);          /* getmsg(2) */
int getpmsg(int, struct strbuf *__restrict, struct strbuf *__restrict, int *__restrict, int *__restrict); /* getmsg(2) */
int putmsg(int, const struct strbuf *, const struct strbuf *, int);                              /* putmsg(2) */
int putpmsg(int, const struct strbuf *, const struct strbuf *, int, int);                        /* putmsg(2) */

/* pipe(2) of System V: both ends are streams and carry messages both ways. pipe() itself stays the kernel's unless
 * HEADWATER_PIPE=streams. */
int streams_pipe(int[2]);

#ifdef __cplusplus
}
#endif

#endif
