/* The structures and numbers of STREAMS modules: <sys/stream.h> of System V Release 4, sections 9F and 9S of its manual. Programs
 * include it for types and names, and compile. What is here is laid out as the library has it. The routines that modules call are in
 * <sys/ddi.h>; docs/modules.md says how to write one. */
#ifndef _SYS_STREAM_H
#define _SYS_STREAM_H

#include <sys/types.h>
#include <stropts.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msgb mblk_t;
typedef struct datab dblk_t;
typedef struct queue queue_t;
typedef struct free_rtn frtn_t;
#ifndef _CRED_T
#define _CRED_T
typedef struct cred cred_t;
#endif

/* A message is a chain of blocks, linked by b_cont: msgb(9S). */
struct msgb {
    struct msgb *b_next;
    struct msgb *b_prev;
    struct msgb *b_cont;
    unsigned char *b_rptr; /* the first byte */
    unsigned char *b_wptr; /* behind the last */
    struct datab *b_datap;
    unsigned char b_band;
    unsigned char b_pad1;
    unsigned short b_flag; /* MSGMARK ... */
    long b_pad2;
};

/* A data block, which several message blocks may refer to: datab(9S). */
struct datab {
    struct free_rtn *db_frtnp;
    unsigned char *db_base;
    unsigned char *db_lim;
    unsigned char db_ref;
    unsigned char db_type; /* M_DATA ... */
    unsigned char db_iswhat;
    unsigned char db_pad;
    unsigned int db_size;
    char *db_msgaddr;
    long db_filler;
    unsigned long db_reserved[2];
};

/* How the owner of a buffer gets it back: free_rtn(9S), esballoc(9F). */
struct free_rtn {
    void (*free_func)(char *);
    char *free_arg;
};

/* b_flag */
#define MSGMARK 0x01
#define MSGNOLOOP 0x02
#define MSGDELIM 0x04
#define MSGNOGET 0x08

/* Types of messages, db_type: ordinary ones */
#define M_DATA 0x00
#define M_PROTO 0x01
#define M_BREAK 0x08
#define M_PASSFP 0x09
#define M_SIG 0x0b
#define M_DELAY 0x0c
#define M_CTL 0x0d
#define M_IOCTL 0x0e
#define M_SETOPTS 0x10
#define M_RSE 0x11
/* and those of high priority. */
#define QPCTL 0x80
#define M_IOCACK 0x81
#define M_IOCNAK 0x82
#define M_PCPROTO 0x83
#define M_PCSIG 0x84
#define M_READ 0x85
#define M_FLUSH 0x86
#define M_STOP 0x87
#define M_START 0x88
#define M_HANGUP 0x89
#define M_ERROR 0x8a
#define M_COPYIN 0x8b
#define M_COPYOUT 0x8c
#define M_IOCDATA 0x8d
#define M_PCRSE 0x8e
#define M_STOPI 0x8f
#define M_STARTI 0x90
#define M_UNHANGUP 0x91

/* M_ERROR: that side's error stays as it is. */
#define NOERROR 0xff

/* Priorities of allocation. */
#define BPRI_LO 1
#define BPRI_MED 2
#define BPRI_HI 3

/* A queue, one direction of a module: queue(9S). */
struct queue {
    const struct qinit *q_qinfo;
    struct msgb *q_first;
    struct msgb *q_last;
    struct queue *q_next;
    struct queue *q_link;
    void *q_ptr;
    size_t q_count;
    size_t q_flag;
    ssize_t q_minpsz;
    ssize_t q_maxpsz;
    size_t q_hiwat;
    size_t q_lowat;
    struct qband *q_bandp;
    unsigned char q_nband;
    unsigned char q_pad1[3];
    long q_pad2[2];
    const void *q_reserved[2];
    unsigned long q_counts[2];
};

/* A band of a queue, above 0: qband(9S). */
typedef struct qband {
    struct qband *qb_next;
    size_t qb_count;
    struct msgb *qb_first;
    struct msgb *qb_last;
    size_t qb_hiwat;
    size_t qb_lowat;
    size_t qb_flag;
    long qb_pad1;
} qband_t;

/* q_flag */
#define QENAB 0x001
#define QWANTR 0x002
#define QWANTW 0x004
#define QFULL 0x008
#define QREADR 0x010
#define QUSE 0x020
#define QNOENB 0x040
#define QOLD 0x080
#define QBACK 0x100
#define QHLIST 0x200

/* qb_flag */
#define QB_FULL 0x01
#define QB_WANTW 0x02
#define QB_BACK 0x04

/* flushq(9F) */
#define FLUSHDATA 0
#define FLUSHALL 1

/* What a module or driver is: module_info(9S), qinit(9S), streamtab(9S). */
struct module_info {
    unsigned short mi_idnum;
    const char *mi_idname;
    ssize_t mi_minpsz;
    ssize_t mi_maxpsz;
    size_t mi_hiwat;
    size_t mi_lowat;
};

#define INFPSZ (-1)

struct qinit {
    int (*qi_putp)(queue_t *, mblk_t *);
    int (*qi_srvp)(queue_t *);
    int (*qi_qopen)(queue_t *, dev_t *, int, int, cred_t *);
    int (*qi_qclose)(queue_t *, int, cred_t *);
    int (*qi_qadmin)(void);
    const struct module_info *qi_minfo;
    const struct module_stat *qi_mstat;
};

struct streamtab {
    const struct qinit *st_rdinit;
    const struct qinit *st_wrinit;
    const struct qinit *st_muxrinit;
    const struct qinit *st_muxwinit;
};

/* open(9E) */
#define MODOPEN 0x1
#define CLONEOPEN 0x2

/* What M_IOCTL and its answers begin with: iocblk(9S). */
struct iocblk {
    int ioc_cmd;
    cred_t *ioc_cr;
    unsigned int ioc_id;
    unsigned int ioc_count;
    int ioc_error;
    int ioc_rval;
    long ioc_filler[4];
};

/* ioc_count of an ioctl that is not by I_STR. */
#define TRANSPARENT ((unsigned int)-1)

/* M_COPYIN, M_COPYOUT: copyreq(9S); M_IOCDATA: copyresp(9S). */
struct copyreq {
    int cq_cmd;
    cred_t *cq_cr;
    unsigned int cq_id;
    char *cq_addr;
    unsigned int cq_size;
    int cq_flag;
    mblk_t *cq_private;
    long cq_filler[4];
};

struct copyresp {
    int cp_cmd;
    cred_t *cp_cr;
    unsigned int cp_id;
    char *cp_rval;
    unsigned int cp_pad1;
    int cp_pad2;
    mblk_t *cp_private;
    long cp_filler[4];
};

/* I_LINK and its kin: linkblk(9S). */
struct linkblk {
    queue_t *l_qtop;
    queue_t *l_qbot;
    int l_index;
    long l_pad[5];
};

/* M_SETOPTS: stroptions(9S). */
struct stroptions {
    unsigned long so_flags;
    short so_readopt;
    unsigned short so_wroff;
    ssize_t so_minpsz;
    ssize_t so_maxpsz;
    size_t so_hiwat;
    size_t so_lowat;
    unsigned char so_band;
    unsigned short so_erropt;
    ssize_t so_maxblk;
    unsigned short so_copyopt;
};

#define SO_ALL 0x3f
#define SO_READOPT 0x01
#define SO_WROFF 0x02
#define SO_MINPSZ 0x04
#define SO_MAXPSZ 0x08
#define SO_HIWAT 0x10
#define SO_LOWAT 0x20
#define SO_MREADON 0x40
#define SO_MREADOFF 0x80
#define SO_NDELON 0x100
#define SO_NDELOFF 0x200
#define SO_ISTTY 0x400
#define SO_ISNTTY 0x800
#define SO_TOSTOP 0x1000
#define SO_TONSTOP 0x2000
#define SO_BAND 0x4000
#define SO_DELIM 0x8000
#define SO_NODELIM 0x10000
#define SO_STRHOLD 0x20000
#define SO_ERROPT 0x40000
#define SO_COPYOPT 0x80000
#define SO_MAXBLK 0x100000

#ifdef __cplusplus
}
#endif

#endif
