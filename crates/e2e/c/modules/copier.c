/* An ioctl that is not I_STR: M_COPYOUT of a number, after which a copy that fails is answered by nobody (copyresp(9S)). */
#include <sys/ddi.h>
#include "copier.h"

static int copier_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)dev, (void)flag, (void)sflag, (void)cred;
    qprocson(q);
    return 0;
}

static int copier_close(queue_t *q, int flag, cred_t *cred)
{
    (void)flag, (void)cred;
    qprocsoff(q);
    return 0;
}

static int copier_rput(queue_t *q, mblk_t *mp)
{
    putnext(q, mp);
    return 0;
}

static void ask_for_copy(queue_t *q, mblk_t *mp)
{
    struct copyreq *request = (struct copyreq *)mp->b_rptr;
    mblk_t *data = mp->b_cont;
    request->cq_addr = *(caddr_t *)data->b_rptr;
    request->cq_size = sizeof(int);
    request->cq_flag = 0;
    *(int *)data->b_rptr = 77;
    data->b_wptr = data->b_rptr + sizeof(int);
    mp->b_wptr = mp->b_rptr + sizeof *request;
    mp->b_datap->db_type = M_COPYOUT;
    qreply(q, mp);
}

static void copied(queue_t *q, mblk_t *mp)
{
    struct iocblk *ioc = (struct iocblk *)mp->b_rptr;
    if (((struct copyresp *)mp->b_rptr)->cp_rval) {
        freemsg(mp);
        return;
    }
    freemsg(unlinkb(mp));
    mp->b_datap->db_type = M_IOCACK;
    mp->b_wptr = mp->b_rptr + sizeof *ioc;
    ioc->ioc_count = 0;
    ioc->ioc_error = 0;
    ioc->ioc_rval = 9;
    qreply(q, mp);
}

static int copier_wput(queue_t *q, mblk_t *mp)
{
    int type = mp->b_datap->db_type;
    if (type == M_IOCTL && ((struct iocblk *)mp->b_rptr)->ioc_cmd == COPIER_GET)
        ask_for_copy(q, mp);
    else if (type == M_IOCDATA && ((struct copyresp *)mp->b_rptr)->cp_cmd == COPIER_GET)
        copied(q, mp);
    else
        putnext(q, mp);
    return 0;
}

static const struct module_info minfo = { 0x7101, "copier", 0, INFPSZ, 0, 0 };
static const struct qinit rinit = { copier_rput, 0, copier_open, copier_close, 0, &minfo, 0 };
static const struct qinit winit = { copier_wput, 0, 0, 0, 0, &minfo, 0 };

const struct streamtab copierinfo = { &rinit, &winit, 0, 0 };
const int copierdevflag = D_NEW;
