/* Its open procedure may be of the old kind: nothing says that it is not. */
#include <sys/ddi.h>

static const struct qinit side;
const struct streamtab noflaginfo = { &side, &side, 0, 0 };
