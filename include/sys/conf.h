/* What System V's configuration knows of modules and drivers: fmodsw(9S). Types alone, for programs that name them: what can be
 * pushed and opened is in the library or loaded by its name (docs/modules.md), and no table of a program's own is looked at. */
#ifndef _SYS_CONF_H
#define _SYS_CONF_H

/* FMNAMESZ */
#include <stropts.h>

#ifdef __cplusplus
extern "C" {
#endif

struct streamtab;

/* A module. */
struct fmodsw {
    char f_name[FMNAMESZ + 1];
    struct streamtab *f_str;
    int f_flag;
};

/* A driver that is a stream's. */
struct cdevsw {
    char *d_name;
    struct streamtab *d_str;
    int *d_flag;
};

#ifdef __cplusplus
}
#endif

#endif
