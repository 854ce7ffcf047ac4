/* The STREAMS log driver: log(7D), strlog(9F). Open /dev/log and say with I_STR and I_ERRLOG, I_TRCLOG or I_CONSLOG what is
 * wanted; each getmsg(2) then returns a struct log_ctl and the text. */
#ifndef _SYS_STRLOG_H
#define _SYS_STRLOG_H

#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The control part of a message of the log driver. */
struct log_ctl {
    short mid;     /* module's number, mi_idnum */
    short sid;     /* its minor device */
    char level;    /* of tracing */
    short flags;   /* SL_* */
    clock_t ltime; /* clock ticks since boot */
    time_t ttime;  /* seconds since 1970 */
    long seq_no;   /* per receiver's kind: gaps show what was lost */
    int pri;       /* facility and level as in <syslog.h> */
};

/* Who and what a trace logger wants: the data of I_TRCLOG is an array of these; -1 is any. */
struct trace_ids {
    short ti_mid;
    short ti_sid;
    char ti_level;
};

#define SL_FATAL 0x01   /* fatal error */
#define SL_NOTIFY 0x02  /* the administrator is to be told */
#define SL_ERROR 0x04   /* to the error logger */
#define SL_TRACE 0x08   /* to the trace loggers */
#define SL_CONSOLE 0x10 /* to the console logger */
#define SL_WARN 0x20    /* a warning */
#define SL_NOTE 0x40    /* a notice */

#define LOGCTL ('L' << 8)
#define I_TRCLOG (LOGCTL | 1)
#define I_ERRLOG (LOGCTL | 2)
#define I_CONSLOG (LOGCTL | 3)

#define LOGMSGSZ 1024 /* longest text, NUL included */
#define NLOGARGS 20   /* most arguments of strlog() */

int strlog(short, short, char, unsigned short, const char *, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 5, 6)))
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif
