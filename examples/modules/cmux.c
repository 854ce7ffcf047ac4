/* cmux: a multiplexer with one stream below each of its own, linked by I_LINK: what is written to the upper stream goes down the lower
 * one, and what comes up there is read above. It changes nothing, so over a transport provider (ticotsord, tcp) it is a provider too:
 * the primitives of TPI pass through it.
 *
 * All its streams and those linked below run one at a time. */
#include <sys/ddi.h>
#include <errno.h>

/* One for each stream of ours. */
struct upper {
    minor_t minor;
    queue_t *rq;    /* read queue */
    queue_t *below; /* write queue of the stream linked below; none yet */
    int link;       /* its multiplexer ID */
    struct upper *next;
};

static struct upper *uppers;

static struct upper *find(minor_t minor)
{
    struct upper *upper = uppers;
    while (upper && upper->minor != minor)
        upper = upper->next;
    return upper;
}

static int cmux_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)flag, (void)cred;
    if (sflag == MODOPEN)
        return EINVAL;
    if (q->q_ptr)
        return 0;
    struct upper *upper = kmem_zalloc(sizeof *upper, KM_SLEEP);
    if (!upper)
        return ENOMEM;
    upper->minor = getminor(*dev);
    if (sflag == CLONEOPEN) {
        for (upper->minor = 1; find(upper->minor); upper->minor++)
            ;
        *dev = makedevice(getmajor(*dev), upper->minor);
    }
    upper->rq = q;
    upper->next = uppers;
    uppers = upper;
    q->q_ptr = WR(q)->q_ptr = upper;
    qprocson(q);
    return 0;
}

static int cmux_close(queue_t *q, int flag, cred_t *cred)
{
    struct upper *upper = q->q_ptr, **at = &uppers;
    (void)flag, (void)cred;
    qprocsoff(q);
    /* What was linked by this stream has been unlinked before; what by I_PLINK, stays without us. */
    if (upper->below)
        upper->below->q_ptr = RD(upper->below)->q_ptr = 0;
    while (*at != upper)
        at = &(*at)->next;
    *at = upper->next;
    kmem_free(upper, sizeof *upper);
    q->q_ptr = WR(q)->q_ptr = 0;
    return 0;
}

/* I_LINK and I_UNLINK give a struct linkblk behind the struct iocblk. */
static int link_or_unlink(struct upper *upper, int cmd, struct linkblk *link)
{
    switch (cmd) {
    case I_LINK:
    case I_PLINK:
        if (upper->below)
            return EBUSY; /* one each */
        upper->below = link->l_qbot;
        upper->link = link->l_index;
        link->l_qbot->q_ptr = RD(link->l_qbot)->q_ptr = upper;
        qenable(WR(upper->rq)); /* what was written before */
        return 0;
    case I_UNLINK:
    case I_PUNLINK:
        if (!upper->below || upper->link != link->l_index)
            return EINVAL;
        link->l_qbot->q_ptr = RD(link->l_qbot)->q_ptr = 0;
        upper->below = 0;
        return 0;
    default:
        return EINVAL;
    }
}

static void ioctl_of(queue_t *q, mblk_t *mp)
{
    struct upper *upper = q->q_ptr;
    struct iocblk *ioc = (struct iocblk *)mp->b_rptr;
    int cmd = ioc->ioc_cmd;
    int links = cmd == I_LINK || cmd == I_PLINK || cmd == I_UNLINK || cmd == I_PUNLINK;
    if (!links && upper->below) {
        /* For whoever is below; the answer comes up as anything else does. */
        putnext(upper->below, mp);
        return;
    }
    ioc->ioc_error = links && mp->b_cont ? link_or_unlink(upper, cmd, (struct linkblk *)mp->b_cont->b_rptr) : EINVAL;
    ioc->ioc_count = 0;
    ioc->ioc_rval = 0;
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

static int cmux_wput(queue_t *q, mblk_t *mp)
{
    struct upper *upper = q->q_ptr;
    switch (mp->b_datap->db_type) {
    case M_FLUSH:
        if (*mp->b_rptr & FLUSHW)
            empty(q, mp);
        if (upper->below) {
            putnext(upper->below, mp); /* the bottom sends back what is to be flushed on its way up */
            break;
        }
        *mp->b_rptr &= (uchar_t)~FLUSHW;
        if (*mp->b_rptr & FLUSHR)
            qreply(q, mp);
        else
            freemsg(mp);
        break;
    case M_IOCTL:
        ioctl_of(q, mp);
        break;
    default:
        if (pcmsg(mp->b_datap->db_type) && upper->below)
            putnext(upper->below, mp);
        else if (pcmsg(mp->b_datap->db_type))
            freemsg(mp);
        else if (!q->q_first && upper->below && bcanputnext(upper->below, mp->b_band))
            putnext(upper->below, mp);
        else
            putq(q, mp);
    }
    return 0;
}

static int cmux_wsrv(queue_t *q)
{
    struct upper *upper = q->q_ptr;
    mblk_t *mp;
    while (upper->below && (mp = getq(q))) {
        if (!bcanputnext(upper->below, mp->b_band)) {
            putbq(q, mp);
            break;
        }
        putnext(upper->below, mp);
    }
    return 0;
}

/* Room above: the lower stream goes on. */
static int cmux_rsrv(queue_t *q)
{
    struct upper *upper = q->q_ptr;
    if (upper->below)
        qenable(RD(upper->below));
    return 0;
}

/* The lower side: queues of a stream linked below, q_ptr is the upper stream or nothing. */
static int cmux_lrput(queue_t *q, mblk_t *mp)
{
    struct upper *upper = q->q_ptr;
    if (!upper) {
        freemsg(mp);
        return 0;
    }
    if (mp->b_datap->db_type == M_FLUSH && *mp->b_rptr & FLUSHR)
        empty(q, mp);
    if (pcmsg(mp->b_datap->db_type) || (!q->q_first && bcanputnext(upper->rq, mp->b_band)))
        putnext(upper->rq, mp);
    else
        putq(q, mp);
    return 0;
}

static int cmux_lrsrv(queue_t *q)
{
    struct upper *upper = q->q_ptr;
    mblk_t *mp;
    while (upper && (mp = getq(q))) {
        if (!bcanputnext(upper->rq, mp->b_band)) {
            putbq(q, mp);
            break;
        }
        putnext(upper->rq, mp);
    }
    return 0;
}

/* Room below. */
static int cmux_lwsrv(queue_t *q)
{
    struct upper *upper = q->q_ptr;
    if (upper)
        qenable(WR(upper->rq));
    return 0;
}

static const struct module_info cmux_minfo = { 0x7004, "cmux", 0, INFPSZ, 64 << 10, 16 << 10 };
static const struct qinit cmux_rinit = { 0, cmux_rsrv, cmux_open, cmux_close, 0, &cmux_minfo, 0 };
static const struct qinit cmux_winit = { cmux_wput, cmux_wsrv, 0, 0, 0, &cmux_minfo, 0 };
static const struct qinit cmux_lrinit = { cmux_lrput, cmux_lrsrv, 0, 0, 0, &cmux_minfo, 0 };
static const struct qinit cmux_lwinit = { 0, cmux_lwsrv, 0, 0, 0, &cmux_minfo, 0 };

const struct streamtab cmuxinfo = { &cmux_rinit, &cmux_winit, &cmux_lrinit, &cmux_lwinit };
const int cmuxdevflag = D_NEW;
