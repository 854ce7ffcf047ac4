/* The routines that modules and drivers of STREAMS may call: section 9F of System V Release 4.2's manual (DDI/DKI), as far as modules
 * of user space have a use for them. Their names in the library begin with hw_ddi_, so that no program's own function of such a
 * name is another one's: a module is compiled with this header, or it is not loaded. docs/modules.md says how to write one.
 *
 * All procedures of a stream run one at a time, and so do the functions of timeout and bufcall: what a routine does to a queue is done
 * inside a procedure of that stream. */
#ifndef _SYS_DDI_H
#define _SYS_DDI_H

#include <sys/stream.h>
#include <sys/strlog.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef _HW_DDI_TYPES
#define _HW_DDI_TYPES
typedef unsigned char uchar_t;
typedef unsigned short ushort_t;
typedef unsigned int uint_t;
typedef unsigned long ulong_t;
typedef int toid_t;
typedef int pl_t;
typedef int qfields_t;
typedef unsigned int major_t;
typedef unsigned int minor_t;
#endif

/* NAMEdevflag: how a module or driver works. Anything but D_OLD will do. */
#define D_NEW 0x0
#define D_OLD 0x1
#define D_DMA 0x2
#define D_MP 0x4

/* Blocks: allocb(9F) */
mblk_t *allocb(size_t, uint_t) __asm__("hw_ddi_allocb");
mblk_t *esballoc(uchar_t *, size_t, int, frtn_t *) __asm__("hw_ddi_esballoc");
int testb(size_t, uint_t) __asm__("hw_ddi_testb");
void freeb(mblk_t *) __asm__("hw_ddi_freeb");
mblk_t *dupb(mblk_t *) __asm__("hw_ddi_dupb");
mblk_t *copyb(mblk_t *) __asm__("hw_ddi_copyb");
toid_t bufcall(size_t, int, void (*)(long), long) __asm__("hw_ddi_bufcall");
toid_t esbbcall(int, void (*)(long), long) __asm__("hw_ddi_esbbcall");
void unbufcall(toid_t) __asm__("hw_ddi_unbufcall");

/* Messages: linkb(9F) */
void freemsg(mblk_t *) __asm__("hw_ddi_freemsg");
mblk_t *dupmsg(mblk_t *) __asm__("hw_ddi_dupmsg");
mblk_t *copymsg(mblk_t *) __asm__("hw_ddi_copymsg");
void linkb(mblk_t *, mblk_t *) __asm__("hw_ddi_linkb");
mblk_t *unlinkb(mblk_t *) __asm__("hw_ddi_unlinkb");
mblk_t *rmvb(mblk_t *, mblk_t *) __asm__("hw_ddi_rmvb");
int adjmsg(mblk_t *, ssize_t) __asm__("hw_ddi_adjmsg");
int pullupmsg(mblk_t *, ssize_t) __asm__("hw_ddi_pullupmsg");
mblk_t *msgpullup(mblk_t *, ssize_t) __asm__("hw_ddi_msgpullup");
size_t msgdsize(const mblk_t *) __asm__("hw_ddi_msgdsize");
int datamsg(uchar_t) __asm__("hw_ddi_datamsg");
int pcmsg(uchar_t) __asm__("hw_ddi_pcmsg");

/* Handing on: putnext(9F) */
int put(queue_t *, mblk_t *) __asm__("hw_ddi_put");
int putnext(queue_t *, mblk_t *) __asm__("hw_ddi_putnext");
void qreply(queue_t *, mblk_t *) __asm__("hw_ddi_qreply");
int putctl(queue_t *, int) __asm__("hw_ddi_putctl");
int putctl1(queue_t *, int, int) __asm__("hw_ddi_putctl1");
int putnextctl(queue_t *, int) __asm__("hw_ddi_putnextctl");
int putnextctl1(queue_t *, int, int) __asm__("hw_ddi_putnextctl1");

/* What waits on a queue: putq(9F) */
int putq(queue_t *, mblk_t *) __asm__("hw_ddi_putq");
int putbq(queue_t *, mblk_t *) __asm__("hw_ddi_putbq");
int insq(queue_t *, mblk_t *, mblk_t *) __asm__("hw_ddi_insq");
mblk_t *getq(queue_t *) __asm__("hw_ddi_getq");
void rmvq(queue_t *, mblk_t *) __asm__("hw_ddi_rmvq");
void flushq(queue_t *, int) __asm__("hw_ddi_flushq");
void flushband(queue_t *, uchar_t, int) __asm__("hw_ddi_flushband");
int qsize(queue_t *) __asm__("hw_ddi_qsize");

/* Flow control: canputnext(9F) */
int canput(queue_t *) __asm__("hw_ddi_canput");
int bcanput(queue_t *, uchar_t) __asm__("hw_ddi_bcanput");
int canputnext(queue_t *) __asm__("hw_ddi_canputnext");
int bcanputnext(queue_t *, uchar_t) __asm__("hw_ddi_bcanputnext");
void qenable(queue_t *) __asm__("hw_ddi_qenable");
void enableok(queue_t *) __asm__("hw_ddi_enableok");
void noenable(queue_t *) __asm__("hw_ddi_noenable");

/* strqget(9F), strqset(9F) */
#define QHIWAT 0
#define QLOWAT 1
#define QMAXPSZ 2
#define QMINPSZ 3
#define QCOUNT 4
#define QFIRST 5
#define QLAST 6
#define QFLAG 7
int strqget(queue_t *, qfields_t, uchar_t, long *) __asm__("hw_ddi_strqget");
int strqset(queue_t *, qfields_t, uchar_t, long) __asm__("hw_ddi_strqset");

/* Queues of a stream: OTHERQ(9F). The read queue of a pair lies before its write queue. */
#define RD(q) ((q)->q_flag & QREADR ? (q) : (q)-1)
#define WR(q) ((q)->q_flag & QREADR ? (q) + 1 : (q))
#define OTHERQ(q) ((q)->q_flag & QREADR ? (q) + 1 : (q)-1)
queue_t *backq(queue_t *) __asm__("hw_ddi_backq");
int SAMESTR(queue_t *) __asm__("hw_ddi_SAMESTR");
int weldq(queue_t *, queue_t *, queue_t *, queue_t *, void (*)(void *), void *, queue_t *) __asm__("hw_ddi_weldq");
int unweldq(queue_t *, queue_t *, queue_t *, queue_t *, void (*)(void *), void *, queue_t *) __asm__("hw_ddi_unweldq");

/* Procedures of a queue that may run: qprocson(9F), freezestr(9F). A stream's run one at a time anyway. */
void qprocson(queue_t *) __asm__("hw_ddi_qprocson");
void qprocsoff(queue_t *) __asm__("hw_ddi_qprocsoff");
pl_t freezestr(queue_t *) __asm__("hw_ddi_freezestr");
void unfreezestr(queue_t *, pl_t) __asm__("hw_ddi_unfreezestr");

/* Time: timeout(9F) */
toid_t timeout(void (*)(caddr_t), caddr_t, long) __asm__("hw_ddi_timeout");
toid_t itimeout(void (*)(caddr_t), caddr_t, long, pl_t) __asm__("hw_ddi_itimeout");
int untimeout(toid_t) __asm__("hw_ddi_untimeout");
clock_t drv_hztousec(clock_t) __asm__("hw_ddi_drv_hztousec");
clock_t drv_usectohz(clock_t) __asm__("hw_ddi_drv_usectohz");
void drv_usecwait(clock_t) __asm__("hw_ddi_drv_usecwait");
#define LBOLT 1
#define TIME 2
#define PPID 3
#define UPROCP 4
int drv_getparm(ulong_t, void *) __asm__("hw_ddi_drv_getparm");

/* Memory: kmem_alloc(9F). Its bytes are the library's, and not the program's malloc. */
#define KM_SLEEP 0
#define KM_NOSLEEP 1
void *kmem_alloc(size_t, int) __asm__("hw_ddi_kmem_alloc");
void *kmem_zalloc(size_t, int) __asm__("hw_ddi_kmem_zalloc");
void kmem_free(void *, size_t) __asm__("hw_ddi_kmem_free");

/* Device numbers: getmajor(9F) */
major_t getmajor(dev_t) __asm__("hw_ddi_getmajor");
minor_t getminor(dev_t) __asm__("hw_ddi_getminor");
dev_t makedevice(major_t, minor_t) __asm__("hw_ddi_makedevice");

/* What goes to the library's log (HEADWATER_LOG): cmn_err(9F). */
#define CE_CONT 0
#define CE_NOTE 1
#define CE_WARN 2
#define CE_PANIC 3
void cmn_err(int, const char *, ...) __asm__("hw_ddi_cmn_err") __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
