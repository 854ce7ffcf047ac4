/* The STREAMS administrative driver: sad(7D), autopush(8). Used with ioctl(2) on /dev/sad/admin (SAD_SAP) and
 * /dev/sad/user (SAD_GAP, SAD_VML). */
#ifndef _SYS_SAD_H
#define _SYS_SAD_H

#include <stropts.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SADIOC ('D' << 8)
#define SAD_SAP (SADIOC | 1) /* set autopush */
#define SAD_GAP (SADIOC | 2) /* get autopush */
#define SAD_VML (SADIOC | 3) /* validate a list of modules: a struct str_list */

/* sap_cmd */
#define SAP_CLEAR 0 /* remove what was configured */
#define SAP_ONE 1   /* one minor device */
#define SAP_RANGE 2 /* minor devices sap_minor to sap_lastminor */
#define SAP_ALL 3   /* every minor device */

#define MAXAPUSH 8 /* most modules that are pushed by themselves */

struct apcommon {
    unsigned int apc_cmd;
    int apc_major;
    int apc_minor;
    int apc_lastminor;
    unsigned int apc_npush;
};

struct strapush {
    struct apcommon sap_common;
    char sap_list[MAXAPUSH][FMNAMESZ + 1];
};

#define sap_cmd sap_common.apc_cmd
#define sap_major sap_common.apc_major
#define sap_minor sap_common.apc_minor
#define sap_lastminor sap_common.apc_lastminor
#define sap_npush sap_common.apc_npush

#ifdef __cplusplus
}
#endif

#endif
