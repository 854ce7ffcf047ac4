/* ddicheck: a module that calls the routines of section 9F when it is asked by I_STR, and answers with the line of the first that does
 * not do what its page says; 0 if all do. `later` counts what timeout and bufcall have called. */
#include <sys/ddi.h>
#include <errno.h>
#include <string.h>
#include "ddicheck.h"

struct state {
    int later;
    toid_t timer;
};

static void later(caddr_t at)
{
    ((struct state *)at)->later++;
}

static void later_too(long at)
{
    ((struct state *)at)->later++;
}

static int given_back;

static void give_back(char *at)
{
    given_back += *at;
}

static mblk_t *text(const char *bytes)
{
    mblk_t *mp = allocb(strlen(bytes), BPRI_MED);
    memcpy(mp->b_wptr, bytes, strlen(bytes));
    mp->b_wptr += strlen(bytes);
    return mp;
}

#define CHECK(what) \
    if (!(what)) \
    return __LINE__

static int blocks(void)
{
    static char buffer[] = "\1external";
    static frtn_t routine = { give_back, buffer };
    mblk_t *mp = allocb(100, BPRI_HI), *other;
    CHECK(mp && mp->b_rptr == mp->b_wptr && mp->b_datap->db_lim - mp->b_datap->db_base >= 100);
    CHECK(mp->b_datap->db_type == M_DATA && mp->b_datap->db_ref == 1 && !mp->b_cont);
    CHECK(testb(100, BPRI_LO));
    other = dupb(mp);
    CHECK(other && other->b_datap == mp->b_datap && mp->b_datap->db_ref == 2);
    freeb(other);
    CHECK(mp->b_datap->db_ref == 1);
    *mp->b_wptr++ = 'x';
    other = copyb(mp);
    CHECK(other && other->b_datap != mp->b_datap && *other->b_rptr == 'x');
    freeb(other);
    freeb(mp);
    given_back = 0;
    mp = esballoc((uchar_t *)buffer, sizeof buffer, BPRI_MED, &routine);
    CHECK(mp && mp->b_rptr == (uchar_t *)buffer);
    other = dupb(mp);
    freeb(mp);
    CHECK(given_back == 0);
    freeb(other);
    CHECK(given_back == 1);
    return 0;
}

static int messages(void)
{
    mblk_t *mp = text("first"), *second = text("second"), *copy;
    linkb(mp, second);
    CHECK(mp->b_cont == second && msgdsize(mp) == 11);
    copy = msgpullup(mp, -1);
    CHECK(copy && !copy->b_cont && !memcmp(copy->b_rptr, "firstsecond", 11) && mp->b_cont == second);
    CHECK(adjmsg(copy, 2) && adjmsg(copy, -3) && !memcmp(copy->b_rptr, "rstsec", 6) && msgdsize(copy) == 6);
    CHECK(!adjmsg(copy, 7) && !adjmsg(copy, -7));
    freemsg(copy);
    copy = copymsg(mp);
    CHECK(copy && copy->b_cont && msgdsize(copy) == 11 && copy->b_datap != mp->b_datap);
    freemsg(copy);
    copy = dupmsg(mp);
    CHECK(copy && copy->b_cont->b_datap == second->b_datap && second->b_datap->db_ref == 2);
    freemsg(copy);
    CHECK(!pullupmsg(mp, 12) && pullupmsg(mp, 8) && mp->b_wptr - mp->b_rptr == 8 && msgdsize(mp) == 11);
    CHECK(unlinkb(mp) == second && !mp->b_cont);
    linkb(mp, second);
    CHECK(rmvb(mp, second) == mp && rmvb(mp, second) == (mblk_t *)-1);
    freemsg(second);
    freemsg(mp);
    CHECK(datamsg(M_DATA) && datamsg(M_PROTO) && datamsg(M_PCPROTO) && !datamsg(M_CTL));
    CHECK(pcmsg(M_PCPROTO) && pcmsg(M_FLUSH) && !pcmsg(M_DATA));
    return 0;
}

/* On the write queue, which has a service procedure that takes nothing while noenable stands. */
static int queues(queue_t *q)
{
    mblk_t *mp, *urgent = text("urgent"), *banded = text("banded"), *plain = text("plain"), *last = text("last");
    long value = 0;
    noenable(q);
    urgent->b_datap->db_type = M_PCPROTO;
    banded->b_band = 3;
    CHECK(putq(q, plain) && putq(q, banded) && qsize(q) == 2);
    CHECK(q->q_first == banded && q->q_last == plain && q->q_count == 5);
    CHECK(putbq(q, urgent) && q->q_first == urgent && qsize(q) == 3);
    CHECK(insq(q, 0, last) && q->q_last == last);
    mp = text("out of order");
    CHECK(!insq(q, urgent, mp));
    freemsg(mp);
    rmvq(q, last);
    freemsg(last);
    CHECK(getq(q) == urgent && getq(q) == banded && getq(q) == plain && !getq(q));
    freemsg(urgent), freemsg(banded), freemsg(plain);
    CHECK(strqget(q, QHIWAT, 0, &value) == 0 && value == 1000);
    CHECK(strqset(q, QHIWAT, 0, 4) == 0 && strqset(q, QLOWAT, 0, 2) == 0);
    CHECK(strqset(q, QCOUNT, 0, 4) == EPERM && strqget(q, 99, 0, &value) == EINVAL);
    CHECK(canput(q) && bcanput(q, 7));
    putq(q, text("full"));
    CHECK(!canput(q) && bcanput(q, 7));
    mp = text("band");
    mp->b_band = 7;
    putq(q, mp);
    CHECK(strqset(q, QHIWAT, 7, 1) == 0 && !bcanput(q, 7) && bcanput(q, 6));
    flushband(q, 7, FLUSHALL);
    CHECK(qsize(q) == 1 && bcanput(q, 7));
    flushq(q, FLUSHDATA);
    CHECK(qsize(q) == 0 && canput(q));
    CHECK(strqset(q, QHIWAT, 0, 1000) == 0 && strqset(q, QLOWAT, 0, 100) == 0);
    enableok(q);
    CHECK(RD(q) == OTHERQ(q) && WR(RD(q)) == q && WR(q) == q);
    CHECK(SAMESTR(q) && backq(RD(q)) && SAMESTR(backq(q)));
    CHECK(canputnext(q) && bcanputnext(q, 1));
    unfreezestr(q, freezestr(q));
    CHECK(!putctl(q, M_DATA) && !putnextctl(q, M_PROTO));
    CHECK(weldq(q, RD(q), 0, 0, 0, 0, q) == EINVAL);
    return 0;
}

static int times(queue_t *q)
{
    struct state *state = q->q_ptr;
    long now = 0;
    toid_t gone = timeout(later, (caddr_t)state, 100000);
    CHECK(gone && untimeout(gone) > 0 && untimeout(gone) == -1);
    CHECK(timeout(later, (caddr_t)state, drv_usectohz(1)));
    CHECK(bufcall(10, BPRI_MED, later_too, (long)state));
    CHECK(esbbcall(BPRI_MED, later_too, (long)state));
    gone = bufcall(10, BPRI_MED, later_too, (long)state);
    unbufcall(gone);
    CHECK(drv_hztousec(drv_usectohz(1000000)) == 1000000 && drv_usectohz(1) == 1);
    CHECK(drv_getparm(LBOLT, &now) == 0 && now > 0 && drv_getparm(TIME, &now) == 0 && now > 1700000000);
    CHECK(drv_getparm(99, &now) == -1);
    drv_usecwait(10);
    return 0;
}

static int others(void)
{
    char *at = kmem_zalloc(100, KM_NOSLEEP);
    CHECK(at && !at[0] && !at[99]);
    memset(at, 1, 100);
    kmem_free(at, 100);
    at = kmem_alloc(1, KM_SLEEP);
    CHECK(at);
    kmem_free(at, 1);
    CHECK(getmajor(makedevice(300, 70000)) == 300 && getminor(makedevice(300, 70000)) == 70000);
    cmn_err(CE_NOTE, "!ddicheck: %d and %s", 1, "two");
    return 0;
}

static int ddicheck_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)dev, (void)flag, (void)cred;
    if (sflag != MODOPEN)
        return ENODEV;
    q->q_ptr = WR(q)->q_ptr = kmem_zalloc(sizeof(struct state), KM_SLEEP);
    qprocson(q);
    return 0;
}

static int ddicheck_close(queue_t *q, int flag, cred_t *cred)
{
    (void)flag, (void)cred;
    qprocsoff(q);
    kmem_free(q->q_ptr, sizeof(struct state));
    return 0;
}

static int ddicheck_rput(queue_t *q, mblk_t *mp)
{
    putnext(q, mp);
    return 0;
}

static int ddicheck_wput(queue_t *q, mblk_t *mp)
{
    struct iocblk *ioc = (struct iocblk *)mp->b_rptr;
    if (mp->b_datap->db_type != M_IOCTL || (ioc->ioc_cmd != DDI_CHECK && ioc->ioc_cmd != DDI_LATER)) {
        putnext(q, mp);
        return 0;
    }
    if (ioc->ioc_cmd == DDI_LATER) {
        ioc->ioc_rval = ((struct state *)q->q_ptr)->later;
    } else {
        ioc->ioc_rval = blocks();
        if (!ioc->ioc_rval)
            ioc->ioc_rval = messages();
        if (!ioc->ioc_rval)
            ioc->ioc_rval = queues(q);
        if (!ioc->ioc_rval)
            ioc->ioc_rval = times(q);
        if (!ioc->ioc_rval)
            ioc->ioc_rval = others();
    }
    mp->b_datap->db_type = M_IOCACK;
    ioc->ioc_count = 0;
    ioc->ioc_error = 0;
    qreply(q, mp);
    return 0;
}

static int ddicheck_wsrv(queue_t *q)
{
    mblk_t *mp;
    while ((mp = getq(q)))
        putnext(q, mp);
    return 0;
}

static const struct module_info minfo = { 0x7010, "ddicheck", 0, INFPSZ, 1000, 100 };
static const struct qinit rinit = { ddicheck_rput, 0, ddicheck_open, ddicheck_close, 0, &minfo, 0 };
static const struct qinit winit = { ddicheck_wput, ddicheck_wsrv, 0, 0, 0, &minfo, 0 };

const struct streamtab ddicheckinfo = { &rinit, &winit, 0, 0 };
const int ddicheckdevflag = D_NEW | D_MP;
