/* lines: a module that counts the lines which come up, by a service procedure, with flow control; I_STR with LINES_GET asks for
 * their number. What goes down passes. */
#include <sys/ddi.h>
#include <errno.h>
#include "lines.h"

struct lines {
    unsigned long count;
};

static int lines_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)dev, (void)flag, (void)cred;
    if (sflag != MODOPEN)
        return EINVAL;
    struct lines *lines = kmem_zalloc(sizeof *lines, KM_SLEEP);
    if (!lines)
        return ENOMEM;
    q->q_ptr = WR(q)->q_ptr = lines;
    qprocson(q);
    return 0;
}

static int lines_close(queue_t *q, int flag, cred_t *cred)
{
    (void)flag, (void)cred;
    qprocsoff(q);
    kmem_free(q->q_ptr, sizeof(struct lines));
    q->q_ptr = WR(q)->q_ptr = 0;
    return 0;
}

static void count(struct lines *lines, mblk_t *mp)
{
    for (; mp; mp = mp->b_cont)
        if (mp->b_datap->db_type == M_DATA)
            for (uchar_t *at = mp->b_rptr; at < mp->b_wptr; at++)
                lines->count += *at == '\n';
}

/* All bands, or the one that the message names. */
static void empty(queue_t *q, mblk_t *mp)
{
    if (*mp->b_rptr & FLUSHBAND)
        flushband(q, mp->b_rptr[1], FLUSHDATA);
    else
        flushq(q, FLUSHDATA);
}

static int lines_rput(queue_t *q, mblk_t *mp)
{
    switch (mp->b_datap->db_type) {
    case M_FLUSH:
        if (*mp->b_rptr & FLUSHR)
            empty(q, mp);
        putnext(q, mp);
        return 0;
    default:
        /* What is urgent overtakes; all else in its order, when there is room. */
        if (pcmsg(mp->b_datap->db_type))
            putnext(q, mp);
        else
            putq(q, mp);
        return 0;
    }
}

static int lines_rsrv(queue_t *q)
{
    mblk_t *mp;
    while ((mp = getq(q))) {
        if (!bcanputnext(q, mp->b_band)) {
            putbq(q, mp);
            return 0; /* enabled again when there is room */
        }
        count(q->q_ptr, mp);
        putnext(q, mp);
    }
    return 0;
}

static int lines_wput(queue_t *q, mblk_t *mp)
{
    struct iocblk *ioc = (struct iocblk *)mp->b_rptr;
    struct lines *lines = q->q_ptr;
    mblk_t *answer;
    if (mp->b_datap->db_type != M_IOCTL || ioc->ioc_cmd != LINES_GET) {
        putnext(q, mp);
        return 0;
    }
    answer = ioc->ioc_count == TRANSPARENT ? 0 : allocb(sizeof lines->count, BPRI_MED);
    if (answer) {
        *(unsigned long *)answer->b_wptr = lines->count;
        answer->b_wptr += sizeof lines->count;
        freemsg(unlinkb(mp));
        linkb(mp, answer);
        mp->b_datap->db_type = M_IOCACK;
        ioc->ioc_count = sizeof lines->count;
        ioc->ioc_error = 0;
        ioc->ioc_rval = 0;
    } else {
        mp->b_datap->db_type = M_IOCNAK;
        ioc->ioc_error = ioc->ioc_count == TRANSPARENT ? EINVAL : ENOSR;
    }
    qreply(q, mp);
    return 0;
}

static const struct module_info lines_minfo = { 0x7002, "lines", 0, INFPSZ, 5120, 1024 };
static const struct qinit lines_rinit = { lines_rput, lines_rsrv, lines_open, lines_close, 0, &lines_minfo, 0 };
static const struct qinit lines_winit = { lines_wput, 0, 0, 0, 0, &lines_minfo, 0 };

const struct streamtab linesinfo = { &lines_rinit, &lines_winit, 0, 0 };
const int linesdevflag = D_NEW;
