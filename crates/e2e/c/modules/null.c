/* A driver with the name of one of the system's devices. */
#include <sys/ddi.h>

static int null_open(queue_t *q, dev_t *dev, int flag, int sflag, cred_t *cred)
{
    (void)flag, (void)sflag, (void)cred;
    *dev = makedevice(getmajor(*dev), 1);
    qprocson(q);
    return 0;
}

static int null_close(queue_t *q, int flag, cred_t *cred)
{
    (void)flag, (void)cred;
    qprocsoff(q);
    return 0;
}

static int null_put(queue_t *q, mblk_t *mp)
{
    (void)q;
    freemsg(mp);
    return 0;
}

static const struct module_info minfo = { 0x7102, "null", 0, INFPSZ, 0, 0 };
static const struct qinit rinit = { null_put, 0, null_open, null_close, 0, &minfo, 0 };
static const struct qinit winit = { null_put, 0, 0, 0, 0, &minfo, 0 };

const struct streamtab nullinfo = { &rinit, &winit, 0, 0 };
const int nulldevflag = D_NEW;
