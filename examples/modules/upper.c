/* upper: a module that makes upper case of what comes up. It holds nothing, so it needs no service procedure.
 *
 *   make -C examples/modules && HEADWATER_MODULES=examples/modules ./program     which pushes "upper"
 */
#include <sys/ddi.h>
#include <ctype.h>
#include <errno.h>

static int upper_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)dev, (void)flag, (void)cred;
    if (sflag != MODOPEN)
        return EINVAL; /* no driver */
    qprocson(q);
    return 0;
}

static int upper_close(queue_t *q, int flag, cred_t *cred)
{
    (void)flag, (void)cred;
    qprocsoff(q);
    return 0;
}

/* Data that others have too are not ours to change. */
static int is_shared(mblk_t *mp)
{
    for (; mp; mp = mp->b_cont)
        if (mp->b_datap->db_ref > 1)
            return 1;
    return 0;
}

static int upper_rput(queue_t *q, mblk_t *mp)
{
    mblk_t *own;
    if (datamsg(mp->b_datap->db_type) && is_shared(mp)) {
        if (!(own = copymsg(mp))) { /* no memory: as it is, rather than not at all */
            putnext(q, mp);
            return 0;
        }
        freemsg(mp);
        mp = own;
    }
    for (mblk_t *bp = mp; bp; bp = bp->b_cont)
        if (bp->b_datap->db_type == M_DATA)
            for (uchar_t *at = bp->b_rptr; at < bp->b_wptr; at++)
                *at = (uchar_t)toupper(*at);
    putnext(q, mp);
    return 0;
}

static int upper_wput(queue_t *q, mblk_t *mp)
{
    putnext(q, mp);
    return 0;
}

static const struct module_info upper_minfo = { 0x7001, "upper", 0, INFPSZ, 0, 0 };
static const struct qinit upper_rinit = { upper_rput, 0, upper_open, upper_close, 0, &upper_minfo, 0 };
static const struct qinit upper_winit = { upper_wput, 0, 0, 0, 0, &upper_minfo, 0 };

const struct streamtab upperinfo = { &upper_rinit, &upper_winit, 0, 0 };
const int upperdevflag = D_NEW;
