/* The drivers that come with the system: echo, nuls, log, sad; and the modules that only pass messages on. */
#include "harness.h"
#include <sys/sad.h>
#include <sys/strlog.h>

/* --- echo, nuls --- */

CASE(echo_keeps_kinds, "streams(7): echo") {
    int fd = open_stream("/dev/echo");
    put(fd, "ctl", "data", 0);
    check_message(fd, "ctl", "data", 0);
    put(fd, "ctl", NULL, 6);
    check_message(fd, "ctl", NULL, 6);
    put_high(fd, "high", "data");
    check_message(fd, "high", "data", -1);
}
CASE(nuls_swallows, "streams(7): nuls") {
    int fd = open_stream("/dev/nuls");
    char kilo[1024] = {0};
    for (int i = 0; i < 1000; i++)
        check_eq(write(fd, kilo, sizeof kilo), 1024);
    put(fd, "ctl", "data", 0);
    put_high(fd, "ctl", "data");
    check_nothing(fd);
}
CASE(nuls_through_modules, "streams(7): nuls") {
    int fd = open_stream("/dev/nuls");
    char kilo[1024] = {0};
    push(fd, "bufmod");
    for (int i = 0; i < 1000; i++)
        check_eq(write(fd, kilo, sizeof kilo), 1024);
    check_nothing(fd);
}
CASE(nuls_ready, "poll(2)") {
    int fd = open_stream("/dev/nuls");
    check(events(fd, POLLOUT, 0) & POLLOUT);
    check_eq(events(fd, POLLIN, 0), 0);
}

/* --- modules that pass on --- */

static void passes_on(const char *module) {
    int fd = open_stream("/dev/echo");
    push(fd, module);
    check_eq(ioctl(fd, I_FIND, module), 1);
    put(fd, "ctl", "data", 0);
    check_message(fd, "ctl", "data", 0);
    put(fd, NULL, "zero", 0);
    put(fd, NULL, "two", 2);
    put(fd, NULL, "", 0);
    put_high(fd, "high", NULL);
    check_message(fd, "high", NULL, -1);
    check_message(fd, NULL, "two", 2);
    check_message(fd, NULL, "zero", 0);
    check_message(fd, NULL, "", 0);
    pop(fd);
    put(fd, NULL, "popped", 0);
    check_message(fd, NULL, "popped", 0);
}
CASE(nullmod_passes, "streams(7): nullmod") { passes_on("nullmod"); }
CASE(bufmod_passes, "streams(7): bufmod") { passes_on("bufmod"); }
CASE(sc_passes, "streams(7): sc") { passes_on("sc"); }
CASE(pipemod_on_a_pipe, "streams(7): pipemod") {
    int fd[2];
    pipe_flags(fd, 0);
    push(fd[0], "pipemod");
    put(fd[0], "there", "and", 0);
    put(fd[1], "back", "again", 0);
    check_message(fd[1], "there", "and", 0);
    check_message(fd[0], "back", "again", 0);
}

/* --- log --- */

/* The next message of the log driver. */
static struct log_ctl next_log(int fd, char *text, int room) {
    struct log_ctl control;
    struct strbuf c = in_buf(&control, sizeof control), d = in_buf(text, room);
    int flags = 0;
    check_readable(fd);
    check_eq(getmsg(fd, &c, &d, &flags), 0);
    check_eq(c.len, (long)sizeof control);
    text[d.len < room ? d.len : room - 1] = 0;
    return control;
}
CASE(log_traces, "log(7D) I_TRCLOG") {
    int fd = open_stream("/dev/log");
    struct trace_ids ids = {.ti_mid = 4321, .ti_sid = -1, .ti_level = -1};
    char text[LOGMSGSZ];
    check_eq(i_str(fd, I_TRCLOG, &ids, sizeof ids), 0);
    check_eq(strlog(4321, 7, 3, SL_TRACE, "traced %d of %d", 1, 2), 1);
    struct log_ctl c = next_log(fd, text, sizeof text);
    check_str(text, "traced 1 of 2");
    check_eq(c.mid, 4321);
    check_eq(c.sid, 7);
    check_eq(c.level, 3);
    check(c.flags & SL_TRACE);
    check(c.ttime > 1000000000);
}
CASE(log_sequence, "log(7D) I_TRCLOG") {
    int fd = open_stream("/dev/log");
    struct trace_ids ids = {.ti_mid = 4321, .ti_sid = -1, .ti_level = -1};
    char text[LOGMSGSZ];
    check_eq(i_str(fd, I_TRCLOG, &ids, sizeof ids), 0);
    strlog(4321, 0, 1, SL_TRACE, "first");
    strlog(4321, 0, 1, SL_TRACE, "second");
    long first = next_log(fd, text, sizeof text).seq_no;
    check_str(text, "first");
    check_eq(next_log(fd, text, sizeof text).seq_no, first + 1);
    check_str(text, "second");
}
CASE(log_filters, "log(7D) I_TRCLOG") {
    int fd = open_stream("/dev/log");
    struct trace_ids ids[] = {{.ti_mid = 4321, .ti_sid = 5, .ti_level = 2}, {.ti_mid = 4322, .ti_sid = -1, .ti_level = -1}};
    char text[LOGMSGSZ];
    check_eq(i_str(fd, I_TRCLOG, ids, sizeof ids), 0);
    strlog(4321, 6, 1, SL_TRACE, "other minor");
    strlog(4321, 5, 3, SL_TRACE, "level too high");
    strlog(4323, 5, 1, SL_TRACE, "other module");
    strlog(4321, 5, 2, SL_TRACE, "wanted");
    strlog(4322, 9, 9, SL_TRACE, "wanted too");
    next_log(fd, text, sizeof text);
    check_str(text, "wanted");
    next_log(fd, text, sizeof text);
    check_str(text, "wanted too");
    check_nothing(fd);
}
CASE(log_errors, "log(7D) I_ERRLOG") {
    int fd = open_stream("/dev/log");
    char text[LOGMSGSZ];
    check_eq(i_str(fd, I_ERRLOG, NULL, 0), 0);
    strlog(4321, 1, 1, SL_TRACE, "not an error");
    strlog(4321, 1, 1, SL_ERROR | SL_FATAL, "failed: %s", "so");
    struct log_ctl c = next_log(fd, text, sizeof text);
    check_str(text, "failed: so");
    check(c.flags & SL_FATAL);
}
CASE(log_bad_request, "log(7D) EINVAL") {
    int fd = open_stream("/dev/log");
    struct trace_ids ids = {.ti_mid = -1};
    check_errno(i_str(fd, I_TRCLOG, &ids, sizeof ids - 1), EINVAL);
    check_errno(i_str(fd, LOGCTL | 99, NULL, 0), EINVAL);
}

/* --- sad --- */

static int validate(int fd, const char *a, const char *b) {
    struct str_mlist names[2] = {0};
    struct str_list list = {.sl_nmods = 2, .sl_modlist = names};
    strcpy(names[0].l_name, a), strcpy(names[1].l_name, b);
    return ioctl(fd, SAD_VML, &list);
}
CASE(sad_valid_list, "sad(7D) SAD_VML") {
    int fd = open_stream("/dev/sad");
    check_eq(validate(fd, "nullmod", "bufmod"), 0);
    check_eq(validate(fd, "sc", "sc"), 0);
}
CASE(sad_invalid_list, "sad(7D) SAD_VML") {
    int fd = open_stream("/dev/sad");
    check_eq(validate(fd, "nullmod", "nosuch"), 1);
    check_eq(validate(fd, "nosuch", "nullmod"), 1);
}
CASE(sad_bad_list, "sad(7D) EINVAL") {
    int fd = open_stream("/dev/sad");
    struct str_list list = {.sl_nmods = 0, .sl_modlist = &(struct str_mlist){"nullmod"}};
    check_errno(ioctl(fd, SAD_VML, &list), EINVAL);
    check_errno(ioctl(fd, SAD_VML, NULL), EFAULT);
}
CASE(sad_bad_request, "sad(7D) EINVAL") {
    int fd = open_stream("/dev/sad");
    struct strapush push = {.sap_cmd = 77};
    check_errno(ioctl(fd, SAD_SAP, &push), EINVAL);
    check_errno2(ioctl(fd, SADIOC | 99, &push), EINVAL, ENOTTY);
}

/* echo is the first of the drivers. */
#define ECHO_MAJOR 256

static struct strapush autopush(int command, const char *module) {
    struct strapush p = {0};
    p.sap_cmd = command, p.sap_major = ECHO_MAJOR, p.sap_npush = 1;
    strcpy(p.sap_list[0], module);
    return p;
}
CASE(sad_pushes, "sad(7D) SAD_SAP") {
    int fd = open_stream("/dev/sad");
    struct strapush p = autopush(SAP_ALL, "nullmod");
    check_eq(ioctl(open_stream("/dev/echo"), I_LIST, NULL), 1);
    check_eq(ioctl(fd, SAD_SAP, &p), 0);
    int echo = open_stream("/dev/echo");
    check_eq(ioctl(echo, I_LIST, NULL), 2);
    check_eq(ioctl(echo, I_FIND, "nullmod"), 1);
    p.sap_cmd = SAP_CLEAR;
    check_eq(ioctl(fd, SAD_SAP, &p), 0);
    check_eq(ioctl(open_stream("/dev/echo"), I_LIST, NULL), 1);
}
CASE(sad_says, "sad(7D) SAD_GAP") {
    int fd = open_stream("/dev/sad");
    struct strapush p = autopush(SAP_ALL, "sc"), seen = {0};
    seen.sap_major = ECHO_MAJOR;
    check_errno(ioctl(fd, SAD_GAP, &seen), ENODEV);
    check_eq(ioctl(fd, SAD_SAP, &p), 0);
    check_eq(ioctl(fd, SAD_GAP, &seen), 0);
    check_eq(seen.sap_cmd, SAP_ALL);
    check_eq(seen.sap_npush, 1);
    check_str(seen.sap_list[0], "sc");
}
CASE(sad_once, "sad(7D) EEXIST") {
    int fd = open_stream("/dev/sad");
    struct strapush p = autopush(SAP_ALL, "sc");
    check_eq(ioctl(fd, SAD_SAP, &p), 0);
    check_errno(ioctl(fd, SAD_SAP, &p), EEXIST);
    p.sap_cmd = SAP_CLEAR;
    check_eq(ioctl(fd, SAD_SAP, &p), 0);
    check_errno(ioctl(fd, SAD_SAP, &p), ENODEV);
}
CASE(sad_unknown_module, "sad(7D) EINVAL") {
    int fd = open_stream("/dev/sad");
    struct strapush p = autopush(SAP_ALL, "nosuch");
    check_errno(ioctl(fd, SAD_SAP, &p), EINVAL);
    p = autopush(SAP_ALL, "sc");
    p.sap_npush = MAXAPUSH + 1;
    check_errno(ioctl(fd, SAD_SAP, &p), EINVAL);
    p = autopush(SAP_RANGE, "sc");
    p.sap_minor = 5, p.sap_lastminor = 4;
    check_errno(ioctl(fd, SAD_SAP, &p), ERANGE);
}

CASES(ENTRY(echo_keeps_kinds), ENTRY(nuls_swallows), ENTRY(nuls_through_modules), ENTRY(nuls_ready), ENTRY(nullmod_passes),
      ENTRY(bufmod_passes), ENTRY(sc_passes), ENTRY(pipemod_on_a_pipe), ENTRY(log_traces), ENTRY(log_sequence),
      ENTRY(log_filters), ENTRY(log_errors), ENTRY(log_bad_request), ENTRY(sad_valid_list), ENTRY(sad_invalid_list),
      ENTRY(sad_bad_list), ENTRY(sad_bad_request), ENTRY(sad_pushes), ENTRY(sad_says), ENTRY(sad_once),
      ENTRY(sad_unknown_module))
