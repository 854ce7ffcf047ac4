/* The stream head's options, and the ioctls on bands, on messages to modules and on other descriptors. */
#include "harness.h"

#define BAD ((void *)8)

/* --- options --- */

CASE(read_options_default, "streamio(7I) I_GRDOPT") {
    int fd[2], mode = -1;
    check_eq(ioctl(open_stream("/dev/echo"), I_GRDOPT, &mode), 0);
    check_eq(mode, RNORM | RPROTNORM);
    pipe_flags(fd, 0);
    check_eq(ioctl(fd[0], I_GRDOPT, &mode), 0);
    check_eq(mode, RNORM | RPROTNORM);
}
CASE(read_options_all, "streamio(7I) I_SRDOPT") {
    static const int modes[] = {RNORM, RMSGD, RMSGN}, protos[] = {RPROTNORM, RPROTDAT, RPROTDIS};
    int fd = open_stream("/dev/echo"), mode;
    for (int i = 0; i < 9; i++) {
        check_eq(ioctl(fd, I_SRDOPT, modes[i / 3] | protos[i % 3]), 0);
        check_eq(ioctl(fd, I_GRDOPT, &mode), 0);
        check_eq(mode, modes[i / 3] | protos[i % 3]);
    }
}
CASE(read_options_clash, "streamio(7I) I_SRDOPT EINVAL") {
    int fd = open_stream("/dev/echo"), mode;
    must(ioctl(fd, I_SRDOPT, RMSGN | RPROTDIS));
    check_errno(ioctl(fd, I_SRDOPT, RMSGD | RMSGN), EINVAL);
    check_errno(ioctl(fd, I_SRDOPT, RPROTDAT | RPROTDIS), EINVAL);
    check_errno(ioctl(fd, I_SRDOPT, RPROTNORM | RPROTDAT), EINVAL);
    check_errno(ioctl(fd, I_SRDOPT, 0x1000), EINVAL);
    check_errno(ioctl(fd, I_SRDOPT, -1), EINVAL);
    check_eq(ioctl(fd, I_GRDOPT, &mode), 0);
    check_eq(mode, RMSGN | RPROTDIS);
}
CASE(read_options_fault, "streamio(7I) I_GRDOPT EFAULT") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_GRDOPT, NULL), EFAULT);
    check_errno(ioctl(fd, I_GRDOPT, BAD), EFAULT);
}
CASE(read_options_are_the_streams, "streamio(7I) I_SRDOPT") {
    int fd = open_stream("/dev/echo"), mode, copy = must(dup(fd));
    must(ioctl(fd, I_SRDOPT, RMSGD));
    check_eq(ioctl(copy, I_GRDOPT, &mode), 0);
    check_eq(mode & 3, RMSGD);
    check_eq(ioctl(open_stream("/dev/echo"), I_GRDOPT, &mode), 0);
    check_eq(mode & 3, RNORM);
}
CASE(write_options, "streamio(7I) I_SWROPT") {
    int fd[2], mode = -1;
    pipe_flags(fd, 0);
    check_eq(ioctl(fd[0], I_GWROPT, &mode), 0);
    check_eq(mode, 0);
    check_eq(ioctl(fd[0], I_SWROPT, SNDZERO), 0);
    check_eq(ioctl(fd[0], I_GWROPT, &mode), 0);
    check_eq(mode, SNDZERO);
    check_eq(ioctl(fd[1], I_GWROPT, &mode), 0);
    check_eq(mode, 0);
    check_eq(ioctl(fd[0], I_SWROPT, 0), 0);
    check_eq(ioctl(fd[0], I_GWROPT, &mode), 0);
    check_eq(mode, 0);
}
CASE(write_options_undefined, "streamio(7I) I_SWROPT EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_SWROPT, 0x1000), EINVAL);
    check_errno(ioctl(fd, I_SWROPT, -1), EINVAL);
}
CASE(write_options_fault, "streamio(7I) I_GWROPT EFAULT") {
    check_errno(ioctl(open_stream("/dev/echo"), I_GWROPT, NULL), EFAULT);
    check_errno(ioctl(open_stream("/dev/echo"), I_GWROPT, BAD), EFAULT);
}
CASE(error_options, "streamio(7I) I_SERROPT") {
    int fd = open_stream("/dev/echo"), mode = -1;
    check_eq(ioctl(fd, I_GERROPT, &mode), 0);
    check_eq(mode, RERRNORM | WERRNORM);
    check_eq(ioctl(fd, I_SERROPT, RERRNONPERSIST | WERRNORM), 0);
    check_eq(ioctl(fd, I_GERROPT, &mode), 0);
    check_eq(mode, RERRNONPERSIST | WERRNORM);
    check_eq(ioctl(fd, I_SERROPT, RERRNORM | WERRNONPERSIST), 0);
    check_eq(ioctl(fd, I_GERROPT, &mode), 0);
    check_eq(mode, RERRNORM | WERRNONPERSIST);
}
CASE(error_options_clash, "streamio(7I) I_SERROPT EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_SERROPT, RERRNORM | RERRNONPERSIST), EINVAL);
    check_errno(ioctl(fd, I_SERROPT, WERRNORM | WERRNONPERSIST), EINVAL);
    check_errno(ioctl(fd, I_SERROPT, 0x100), EINVAL);
    check_errno(ioctl(fd, I_GERROPT, NULL), EFAULT);
}

/* --- I_SETCLTIME, I_GETCLTIME --- */

CASE(closing_time, "streamio(7I) I_SETCLTIME") {
    int fd = open_stream("/dev/echo"), ms = -1;
    check_eq(ioctl(fd, I_GETCLTIME, &ms), 0);
    check_eq(ms, 15000);
    ms = 250;
    check_eq(ioctl(fd, I_SETCLTIME, &ms), 0);
    ms = -1;
    check_eq(ioctl(fd, I_GETCLTIME, &ms), 0);
    check_eq(ms, 250);
    ms = 0;
    check_eq(ioctl(fd, I_SETCLTIME, &ms), 0);
    ms = -1;
    check_eq(ioctl(fd, I_GETCLTIME, &ms), 0);
    check_eq(ms, 0);
}
CASE(closing_time_negative, "streamio(7I) I_SETCLTIME EINVAL") {
    int fd = open_stream("/dev/echo"), ms = -5;
    check_errno(ioctl(fd, I_SETCLTIME, &ms), EINVAL);
    check_eq(ioctl(fd, I_GETCLTIME, &ms), 0);
    check_eq(ms, 15000);
}
CASE(closing_time_fault, "streamio(7I) I_SETCLTIME EFAULT") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_SETCLTIME, NULL), EFAULT);
    check_errno(ioctl(fd, I_SETCLTIME, BAD), EFAULT);
    check_errno(ioctl(fd, I_GETCLTIME, NULL), EFAULT);
    check_errno(ioctl(fd, I_GETCLTIME, BAD), EFAULT);
}

/* --- bands and marks --- */

CASE(getband, "streamio(7I) I_GETBAND") {
    int fd = open_stream("/dev/echo"), band = -1;
    put(fd, NULL, "zero", 0);
    check_eq(ioctl(fd, I_GETBAND, &band), 0);
    check_eq(band, 0);
    put(fd, NULL, "seven", 7);
    check_eq(ioctl(fd, I_GETBAND, &band), 0);
    check_eq(band, 7);
    put(fd, NULL, "most", 255);
    check_eq(ioctl(fd, I_GETBAND, &band), 0);
    check_eq(band, 255);
}
CASE(getband_nothing, "streamio(7I) I_GETBAND ENODATA") {
    int fd = open_stream("/dev/echo"), band;
    check_errno(ioctl(fd, I_GETBAND, &band), ENODATA);
}
CASE(getband_fault, "streamio(7I) I_GETBAND EFAULT") {
    int fd = open_stream("/dev/echo");
    put(fd, NULL, "zero", 0);
    check_errno(ioctl(fd, I_GETBAND, NULL), EFAULT);
    check_errno(ioctl(fd, I_GETBAND, BAD), EFAULT);
}
CASE(ckband, "streamio(7I) I_CKBAND") {
    int fd = open_stream("/dev/echo");
    check_eq(ioctl(fd, I_CKBAND, 0), 0);
    check_eq(ioctl(fd, I_CKBAND, 4), 0);
    put(fd, NULL, "four", 4);
    put(fd, NULL, "zero", 0);
    check_eq(ioctl(fd, I_CKBAND, 0), 1);
    check_eq(ioctl(fd, I_CKBAND, 4), 1);
    check_eq(ioctl(fd, I_CKBAND, 3), 0);
    check_eq(ioctl(fd, I_CKBAND, 5), 0);
    check_message(fd, NULL, "four", 4);
    check_eq(ioctl(fd, I_CKBAND, 4), 0);
}
CASE(ckband_bad, "streamio(7I) I_CKBAND EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_CKBAND, -2), EINVAL);
    check_errno(ioctl(fd, I_CKBAND, 256), EINVAL);
}
CASE(canput, "streamio(7I) I_CANPUT") {
    int fd = open_stream("/dev/echo");
    check_eq(ioctl(fd, I_CANPUT, 0), 1);
    check_eq(ioctl(fd, I_CANPUT, 1), 1);
    check_eq(ioctl(fd, I_CANPUT, 255), 1);
}
CASE(canput_full, "streamio(7I) I_CANPUT") {
    int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
    static char kilo[1024];
    long sent = 0;
    ssize_t n;
    while ((n = write(fd, kilo, sizeof kilo)) > 0)
        check((sent += n) < 1 << 24);
    check_eq(errno, EAGAIN);
    check_eq(ioctl(fd, I_CANPUT, 0), 0);
    while ((n = read(fd, kilo, sizeof kilo)) > 0)
        sent -= n;
    check_eq(sent, 0);
    check_eq(ioctl(fd, I_CANPUT, 0), 1);
}
CASE(canput_bad, "streamio(7I) I_CANPUT EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_CANPUT, -5), EINVAL);
    check_errno(ioctl(fd, I_CANPUT, 256), EINVAL);
}
CASE(atmark_none, "streamio(7I) I_ATMARK") {
    int fd = open_stream("/dev/echo");
    put(fd, NULL, "unmarked", 0);
    check_eq(ioctl(fd, I_ATMARK, ANYMARK), 0);
    check_eq(ioctl(fd, I_ATMARK, LASTMARK), 0);
}
CASE(atmark_bad, "streamio(7I) I_ATMARK EINVAL") {
    int fd = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_ATMARK, 0), EINVAL);
    check_errno(ioctl(fd, I_ATMARK, 8), EINVAL);
}

/* --- I_STR and transparent ioctls --- */

CASE(str_nobody, "streamio(7I) I_STR EINVAL") {
    int fd = open_stream("/dev/echo");
    char data[16] = "data";
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1, .ic_timout = 0, .ic_len = 4, .ic_dp = data};
    check_errno(ioctl(fd, I_STR, &s), EINVAL);
    push(fd, "nullmod");
    push(fd, "bufmod");
    check_errno(ioctl(fd, I_STR, &s), EINVAL);
}
CASE(str_again, "streamio(7I) I_STR") {
    int fd = open_stream("/dev/echo");
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1, .ic_timout = INFTIM};
    for (int i = 0; i < 50; i++)
        check_errno(ioctl(fd, I_STR, &s), EINVAL);
    put(fd, NULL, "alive", 0);
    check_message(fd, NULL, "alive", 0);
}
CASE(str_length, "streamio(7I) I_STR EINVAL") {
    int fd = open_stream("/dev/echo");
    char data[16];
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1, .ic_len = -1, .ic_dp = data};
    check_errno(ioctl(fd, I_STR, &s), EINVAL);
    s.ic_len = 1 << 28;
    check_errno(ioctl(fd, I_STR, &s), EINVAL);
}
CASE(str_timeout_bad, "streamio(7I) I_STR EINVAL") {
    int fd = open_stream("/dev/echo");
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1, .ic_timout = -2};
    check_errno(ioctl(fd, I_STR, &s), EINVAL);
}
CASE(str_fault, "streamio(7I) I_STR EFAULT") {
    int fd = open_stream("/dev/echo");
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1, .ic_len = 8, .ic_dp = BAD};
    check_errno(ioctl(fd, I_STR, &s), EFAULT);
    check_errno(ioctl(fd, I_STR, NULL), EFAULT);
    check_errno(ioctl(fd, I_STR, BAD), EFAULT);
}
CASE(str_after_hangup, "streamio(7I) I_STR ENXIO") {
    struct strioctl s = {.ic_cmd = ('?' << 8) | 1};
    check_errno(ioctl(hung_up(), I_STR, &s), ENXIO);
}
CASE(transparent_nobody, "ioctl(2) EINVAL") {
    int fd = open_stream("/dev/echo");
    char data[16];
    check_errno2(ioctl(fd, ('?' << 8) | 1, data), EINVAL, ENOTTY);
    push(fd, "nullmod");
    check_errno2(ioctl(fd, ('?' << 8) | 1, data), EINVAL, ENOTTY);
}
CASE(transparent_pipe, "ioctl(2) EINVAL") {
    int fd[2];
    char data[16];
    pipe_flags(fd, 0);
    check_errno2(ioctl(fd[0], ('?' << 8) | 1, data), EINVAL, ENOTTY);
    check_eq(write(fd[0], "alive", 5), 5);
    check_read(fd[1], "alive");
}

/* --- I_FDINSERT --- */

static struct strfdinsert insertion(char *ctl, int len, int fildes, int offset) {
    return (struct strfdinsert){
        .ctlbuf = out_buf(ctl, len), .databuf = out_buf("data", 4), .fildes = fildes, .offset = offset};
}
CASE(fdinsert, "streamio(7I) I_FDINSERT") {
    _Alignas(8) char ctl[24];
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    struct message m;
    memset(ctl, 'c', sizeof ctl);
    struct strfdinsert f = insertion(ctl, sizeof ctl, other, 8);
    check_eq(ioctl(fd, I_FDINSERT, &f), 0);
    check_eq(get_any(fd, &m), 0);
    check_eq(m.ctl_len, 24);
    check_str(m.data, "data");
    check_bytes(m.ctl, "cccccccc", 8);
    check_bytes(m.ctl + 16, "cccccccc", 8);
    check(memcmp(m.ctl + 8, "cccccccc", 8) != 0);
}
CASE(fdinsert_high, "streamio(7I) I_FDINSERT") {
    _Alignas(8) char ctl[16] = {0};
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    struct message m;
    struct strfdinsert f = insertion(ctl, sizeof ctl, other, 0);
    f.flags = RS_HIPRI;
    check_eq(ioctl(fd, I_FDINSERT, &f), 0);
    check_eq(get_any(fd, &m), 0);
    check_eq(m.flags, MSG_HIPRI);
}
CASE(fdinsert_offset, "streamio(7I) I_FDINSERT EINVAL") {
    _Alignas(8) char ctl[16] = {0};
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    static const int offsets[] = {-4, 1, 2, 14, 16, 1 << 30};
    for (int i = 0; i < 6; i++) {
        struct strfdinsert f = insertion(ctl, sizeof ctl, other, offsets[i]);
        check_errno(ioctl(fd, I_FDINSERT, &f), EINVAL);
    }
    struct strfdinsert f = insertion(ctl, 2, other, 0);
    check_errno(ioctl(fd, I_FDINSERT, &f), EINVAL);
    check_nothing(fd);
}
CASE(fdinsert_not_a_stream, "streamio(7I) I_FDINSERT EINVAL") {
    _Alignas(8) char ctl[16] = {0};
    int fd = open_stream("/dev/echo"), file = must(open("/dev/null", O_RDWR));
    struct strfdinsert f = insertion(ctl, sizeof ctl, file, 0);
    check_errno(ioctl(fd, I_FDINSERT, &f), EINVAL);
    f.fildes = -1;
    check_errno2(ioctl(fd, I_FDINSERT, &f), EINVAL, EBADF);
}
CASE(fdinsert_flags, "streamio(7I) I_FDINSERT EINVAL") {
    _Alignas(8) char ctl[16] = {0};
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    struct strfdinsert f = insertion(ctl, sizeof ctl, other, 0);
    f.flags = 0x40;
    check_errno(ioctl(fd, I_FDINSERT, &f), EINVAL);
}
CASE(fdinsert_fault, "streamio(7I) I_FDINSERT EFAULT") {
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    struct strfdinsert f = insertion(BAD, 16, other, 0);
    check_errno(ioctl(fd, I_FDINSERT, &f), EFAULT);
    check_errno(ioctl(fd, I_FDINSERT, NULL), EFAULT);
    check_errno(ioctl(fd, I_FDINSERT, BAD), EFAULT);
}
CASE(fdinsert_range, "streamio(7I) I_FDINSERT ERANGE") {
    _Alignas(8) static char ctl[8192];
    int fd = open_stream("/dev/echo"), other = open_stream("/dev/echo");
    struct strfdinsert f = insertion(ctl, sizeof ctl, other, 0);
    check_errno(ioctl(fd, I_FDINSERT, &f), ERANGE);
}

/* --- I_ANCHOR --- */

CASE(anchor, "streamio(7I) I_ANCHOR") {
    int fd = open_stream("/dev/echo");
    push(fd, "nullmod");
    check_eq(ioctl(fd, I_ANCHOR, 0), 0);
    push(fd, "bufmod");
    pop(fd);
    check_eq(ioctl(fd, I_FIND, "nullmod"), 1);
    // A privileged process may.
    if (ioctl(fd, I_POP, 0) < 0)
        check_either(errno, EPERM, EINVAL);
    else
        check_eq(geteuid(), 0);
}
CASE(anchor_pipe, "streamio(7I) I_ANCHOR EINVAL") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "nullmod");
    check_errno(ioctl(fd[0], I_ANCHOR, 0), EINVAL);
}

/* --- signals, links, descriptors: what the head refuses --- */

CASE(setsig_bad, "streamio(7I) I_SETSIG EINVAL") {
    int fd = open_stream("/dev/echo"), mask;
    check_errno(ioctl(fd, I_SETSIG, 0), EINVAL);
    check_errno(ioctl(fd, I_SETSIG, 0x8000), EINVAL);
    check_errno(ioctl(fd, I_GETSIG, &mask), EINVAL);
}
CASE(getsig, "streamio(7I) I_GETSIG") {
    int fd = open_stream("/dev/echo"), mask = -1;
    check_eq(ioctl(fd, I_SETSIG, S_HIPRI | S_MSG), 0);
    check_eq(ioctl(fd, I_GETSIG, &mask), 0);
    check_eq(mask, S_HIPRI | S_MSG);
    check_errno(ioctl(fd, I_GETSIG, NULL), EFAULT);
    check_eq(ioctl(fd, I_SETSIG, 0), 0);
    check_errno(ioctl(fd, I_GETSIG, &mask), EINVAL);
}
CASE(setsig_bandurg_alone, "streamio(7I) I_SETSIG EINVAL") {
    check_errno(ioctl(open_stream("/dev/echo"), I_SETSIG, S_BANDURG), EINVAL);
}
CASE(esetsig, "streamio(7I) I_ESETSIG") {
    int fd = open_stream("/dev/echo"), mask;
    struct strsigset mine = {.ss_pid = getpid(), .ss_events = S_INPUT | S_HANGUP}, seen = {.ss_pid = getpid()};
    check_eq(ioctl(fd, I_ESETSIG, &mine), 0);
    check_eq(ioctl(fd, I_EGETSIG, &seen), 0);
    check_eq(seen.ss_events, S_INPUT | S_HANGUP);
    check_eq(ioctl(fd, I_GETSIG, &mask), 0);
    check_eq(mask, S_INPUT | S_HANGUP);
    mine.ss_events = 0;
    check_eq(ioctl(fd, I_ESETSIG, &mine), 0);
    check_errno(ioctl(fd, I_EGETSIG, &seen), EINVAL);
}
CASE(esetsig_bad, "streamio(7I) I_ESETSIG EINVAL") {
    int fd = open_stream("/dev/echo");
    struct strsigset mine = {.ss_pid = getpid(), .ss_events = 0x8000};
    check_errno(ioctl(fd, I_ESETSIG, &mine), EINVAL);
    check_errno(ioctl(fd, I_EGETSIG, &mine), EINVAL);
    check_errno(ioctl(fd, I_ESETSIG, NULL), EFAULT);
    check_errno(ioctl(fd, I_EGETSIG, NULL), EFAULT);
    mine = (struct strsigset){.ss_pid = 0x7ffffff0, .ss_events = S_INPUT};
    check_errno2(ioctl(fd, I_ESETSIG, &mine), ESRCH, EINVAL);
}
CASE(link_no_multiplexer, "streamio(7I) I_LINK EINVAL") {
    int fd = open_stream("/dev/echo"), below = open_stream("/dev/echo");
    check_errno(ioctl(fd, I_LINK, below), EINVAL);
    check_errno(ioctl(fd, I_PLINK, below), EINVAL);
    check_errno(ioctl(fd, I_UNLINK, 1), EINVAL);
}
CASE(sendfd_no_pipe, "streamio(7I) I_SENDFD EINVAL") {
    int fd = open_stream("/dev/nuls");
    check_errno(ioctl(fd, I_SENDFD, STDIN_FILENO), EINVAL);
}
CASE(recvfd_nothing, "streamio(7I) I_RECVFD EAGAIN") {
    int fd[2];
    struct strrecvfd r;
    pipe_flags(fd, O_NONBLOCK);
    check_errno(ioctl(fd[0], I_RECVFD, &r), EAGAIN);
}
CASE(recvfd_no_descriptor, "streamio(7I) I_RECVFD EBADMSG") {
    int fd[2];
    struct strrecvfd r;
    pipe_flags(fd, 0);
    check_eq(write(fd[0], "data", 4), 4);
    check_errno(ioctl(fd[1], I_RECVFD, &r), EBADMSG);
    check_read(fd[1], "data");
}

CASES(ENTRY(read_options_default), ENTRY(read_options_all), ENTRY(read_options_clash), ENTRY(read_options_fault),
      ENTRY(read_options_are_the_streams), ENTRY(write_options), ENTRY(write_options_undefined),
      ENTRY(write_options_fault), ENTRY(error_options), ENTRY(error_options_clash), ENTRY(closing_time),
      ENTRY(closing_time_negative), ENTRY(closing_time_fault), ENTRY(getband), ENTRY(getband_nothing),
      ENTRY(getband_fault), ENTRY(ckband), ENTRY(ckband_bad), ENTRY(canput), ENTRY(canput_full), ENTRY(canput_bad),
      ENTRY(atmark_none), ENTRY(atmark_bad), ENTRY(str_nobody), ENTRY(str_again), ENTRY(str_length),
      ENTRY(str_timeout_bad), ENTRY(str_fault), ENTRY(str_after_hangup), ENTRY(transparent_nobody),
      ENTRY(transparent_pipe), ENTRY(fdinsert), ENTRY(fdinsert_high), ENTRY(fdinsert_offset), ENTRY(fdinsert_not_a_stream),
      ENTRY(fdinsert_flags), ENTRY(fdinsert_fault), ENTRY(fdinsert_range), ENTRY(anchor), ENTRY(anchor_pipe),
      ENTRY(setsig_bad), ENTRY(getsig), ENTRY(setsig_bandurg_alone), ENTRY(esetsig), ENTRY(esetsig_bad),
      ENTRY(link_no_multiplexer), ENTRY(sendfd_no_pipe), ENTRY(recvfd_nothing), ENTRY(recvfd_no_descriptor))
