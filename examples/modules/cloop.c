/* cloop: a driver whose streams are joined in pairs. What is written to one is read at the other; while a stream is alone, it reads
 * what it writes.
 *
 * All streams of a driver that is loaded run one at a time, so its list needs no lock, and one stream may put to another's queue. */
#include <sys/ddi.h>
#include <errno.h>
#include <string.h>
#include "cloop.h"

struct end {
    minor_t minor;
    queue_t *rq;
    struct end *peer;
    struct end *next;
};

static struct end *ends;

static struct end *find(minor_t minor)
{
    struct end *end = ends;
    while (end && end->minor != minor)
        end = end->next;
    return end;
}

static int cloop_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)flag, (void)cred;
    if (sflag == MODOPEN)
        return EINVAL; /* no module */
    if (q->q_ptr)
        return 0; /* open already */
    struct end *end = kmem_zalloc(sizeof *end, KM_SLEEP);
    if (!end)
        return ENOMEM;
    end->minor = getminor(*dev);
    if (sflag == CLONEOPEN) {
        for (end->minor = 1; find(end->minor); end->minor++)
            ;
        *dev = makedevice(getmajor(*dev), end->minor);
    }
    end->rq = q;
    end->next = ends;
    ends = end;
    q->q_ptr = WR(q)->q_ptr = end;
    qprocson(q);
    return 0;
}

/* Where what is written at this end goes up. */
static queue_t *target(struct end *end)
{
    return end->peer ? end->peer->rq : end->rq;
}

static int cloop_close(queue_t *q, int flag, cred_t *cred)
{
    struct end *end = q->q_ptr, **at = &ends;
    mblk_t *mp;
    (void)flag, (void)cred;
    qprocsoff(q);
    if (end->peer) {
        /* The other end reads what there is, and then the end of it. */
        while ((mp = getq(WR(q))))
            putnext(end->peer->rq, mp);
        putnextctl(end->peer->rq, M_HANGUP);
        end->peer->peer = 0;
    }
    while (*at != end)
        at = &(*at)->next;
    *at = end->next;
    kmem_free(end, sizeof *end);
    q->q_ptr = WR(q)->q_ptr = 0;
    return 0;
}

static int join(struct end *end, int minor)
{
    struct end *other = find((minor_t)minor);
    if (other == end)
        return EINVAL;
    if (!other)
        return ENXIO;
    if (end->peer || other->peer)
        return EBUSY;
    end->peer = other;
    other->peer = end;
    return 0;
}

static void answer(queue_t *q, mblk_t *mp)
{
    struct iocblk *ioc = (struct iocblk *)mp->b_rptr;
    struct end *end = q->q_ptr;
    int number;
    ioc->ioc_error = 0;
    ioc->ioc_rval = 0;
    if (ioc->ioc_count != sizeof number || !mp->b_cont || !pullupmsg(mp->b_cont, sizeof number)) {
        ioc->ioc_error = EINVAL;
    } else if (ioc->ioc_cmd == CLOOP_SET) {
        memcpy(&number, mp->b_cont->b_rptr, sizeof number);
        ioc->ioc_error = join(end, number);
        ioc->ioc_count = 0;
    } else if (ioc->ioc_cmd == CLOOP_GET) {
        number = (int)end->minor;
        memcpy(mp->b_cont->b_rptr, &number, sizeof number);
    } else {
        ioc->ioc_error = EINVAL;
    }
    mp->b_datap->db_type = ioc->ioc_error ? M_IOCNAK : M_IOCACK;
    qreply(q, mp);
}

/* All bands, or the one that the message names. */
static void empty(queue_t *q, mblk_t *mp)
{
    if (*mp->b_rptr & FLUSHBAND)
        flushband(q, mp->b_rptr[1], FLUSHDATA);
    else
        flushq(q, FLUSHDATA);
}

static void flush(queue_t *q, mblk_t *mp)
{
    if (*mp->b_rptr & FLUSHW) {
        empty(q, mp);
        *mp->b_rptr &= (uchar_t)~FLUSHW;
    }
    if (*mp->b_rptr & FLUSHR) {
        empty(RD(q), mp);
        qreply(q, mp);
    } else {
        freemsg(mp);
    }
}

static int cloop_wput(queue_t *q, mblk_t *mp)
{
    queue_t *to = target(q->q_ptr);
    switch (mp->b_datap->db_type) {
    case M_FLUSH:
        flush(q, mp);
        break;
    case M_IOCTL:
        answer(q, mp);
        break;
    case M_PCPROTO:
        putnext(to, mp);
        break;
    case M_DATA:
    case M_PROTO:
        if (!q->q_first && bcanputnext(to, mp->b_band))
            putnext(to, mp);
        else
            putq(q, mp);
        break;
    default:
        freemsg(mp);
    }
    return 0;
}

static int cloop_wsrv(queue_t *q)
{
    queue_t *to = target(q->q_ptr);
    mblk_t *mp;
    while ((mp = getq(q))) {
        if (!bcanputnext(to, mp->b_band)) {
            putbq(q, mp);
            break;
        }
        putnext(to, mp);
    }
    return 0;
}

/* Enabled when there is room above again: for whoever's writing goes up here. */
static int cloop_rsrv(queue_t *q)
{
    qenable(WR(target(q->q_ptr)));
    return 0;
}

static const struct module_info cloop_minfo = { 0x7003, "cloop", 0, INFPSZ, 5120, 1024 };
static const struct qinit cloop_rinit = { 0, cloop_rsrv, cloop_open, cloop_close, 0, &cloop_minfo, 0 };
static const struct qinit cloop_winit = { cloop_wput, cloop_wsrv, 0, 0, 0, &cloop_minfo, 0 };

const struct streamtab cloopinfo = { &cloop_rinit, &cloop_winit, 0, 0 };
const int cloopdevflag = D_NEW;
