/* XTI by messages: endpoints that come to be by t_open, or as streams with modules. Has tpi.h, whose helpers open them so. */
#ifndef WAYS_H
#define WAYS_H

#include "../streams/refuse.h"
#include <fcntl.h>
#include <stropts.h>
#include <xti.h>

/* How the endpoints of a case come to be; its helpers open them all this way. */
static enum { BY_T_OPEN, NULLMOD_PUSHED, TIMOD_PUSHED } way;
static UNUSED int opened_in_some_way(const char *path, int flags, struct t_info *info) {
    int fd = way == TIMOD_PUSHED ? open(path, flags) : t_open(path, flags, info);
    if (fd < 0 || way == BY_T_OPEN)
        return fd;
    if (ioctl(fd, I_PUSH, way == TIMOD_PUSHED ? "timod" : "nullmod") < 0 || t_sync(fd) != T_UNBND)
        return -1;
    return info && t_getinfo(fd, info) < 0 ? -1 : fd;
}
#define t_open opened_in_some_way
#include "tpi.h"

#endif
