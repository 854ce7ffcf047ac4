/* <stropts.h> under its System V name; see streamio(7I). */
#ifndef _SYS_STROPTS_H
#define _SYS_STROPTS_H
#include <stropts.h>
#endif
