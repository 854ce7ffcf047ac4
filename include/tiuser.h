/* The Transport Level Interface of System V, whose calls are those of <xti.h>: t_open(3N) and its family. */
#ifndef _TIUSER_H
#define _TIUSER_H

#ifndef _TLI_BUFFER
#define _TLI_BUFFER char
#endif
#include <xti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Texts of t_errno, t_nerr of them. */
extern char *t_errlist[];
extern int t_nerr;

/* Which address t_getname gives. */
#define LOCALNAME 0
#define REMOTENAME 1
int t_getname(int, struct netbuf *, int);

/* Older names. */
#define T_ERROR 0x0020
#define T_EVENTS 0x00ff
#define T_FAKE 8
#define T_NOSTATES 9

#ifdef __cplusplus
}
#endif

#endif
