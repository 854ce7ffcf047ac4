/* access(2), stat(2) and their kin of names below /dev: in handlers, in processes that confine themselves, after vfork. */
#include "peers.h"
#include "../handler.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>


/* What is asked, and what of: functions inside functions see globals alone. */
static const char *name;
static struct stat status;
static struct statx long_status;

#define ALL_WAYS(ASK)                                                          \
	ASK(access(name, R_OK));                                               \
	ASK(eaccess(name, R_OK));                                              \
	ASK(euidaccess(name, R_OK));                                           \
	ASK(faccessat(AT_FDCWD, name, R_OK, AT_EACCESS));                      \
	ASK(stat(name, &status));                                              \
	ASK(lstat(name, &status));                                             \
	ASK(fstatat(AT_FDCWD, name, &status, 0));                              \
	ASK(statx(AT_FDCWD, name, 0, STATX_BASIC_STATS, &long_status))

static void is_there(const char *what) {
	name = what;
#define THERE(call) check_eq(DO(call), 0)
	ALL_WAYS(THERE);
}
static void is_missing(const char *what) {
	name = what;
#define MISSING(call) check_errno(DO(call), ENOENT)
	ALL_WAYS(MISSING);
	if (strcmp(what, "/dev/tcp") != 0)
		MISSING(open(name, O_RDONLY));
}

CASE(names_in_a_handler, "signal-safety(7)") {
	take_room(8192);
	is_there("/dev/null");
	/* Nothing of ours begins in a handler. */
	is_missing("/dev/tcp");
	is_missing("/dev/nosuch");
	open_stream("/dev/echo");
	is_there("/dev/null");
	is_there("/dev/tcp");
	is_there("/dev/echo");
	is_missing("/dev/nosuch");
	is_missing("/dev/streams/nosuch");
}

/* What the kernel is asked for each of them, and nothing else. */
#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	MAY(access), MAY(faccessat), MAY(faccessat2), MAY(stat), MAY(lstat), MAY(newfstatat), MAY(statx), MAY(open), MAY(openat),
	MAY(write), MAY(exit_group), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
static struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

static void confine_openly(void) {
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}
/* So that no library hears of it. */
static long unheard(long number, long a, long b, void *c) {
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return number;
}
static void confine_secretly(void) {
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	check_eq(unheard(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

#define GONE(call) check_errno(call, ENOENT)
static void ask_confined(void (*confine)(void), const char *const *names) {
	int ended;
	pid_t child = must(fork());
	if (child == 0) {
		confine();
		for (; *names; names++) {
			name = *names;
			ALL_WAYS(GONE);
			GONE(open(name, O_RDONLY));
		}
		unheard(__NR_exit_group, 0, 0, NULL);
	}
	check_eq(waitpid(child, &ended, 0), child);
	check_eq(ended, 0);
}
static const char *const ours[] = {"/dev/tcp", "/dev/echo", "/dev/fifo.confined", "/dev/streams/tcp", "/dev/nosuch", NULL};
static const char *const others[] = {"/dev/nosuch", "/dev/input/nosuch", "/dev/streamsnosuch", NULL};

CASE(names_in_a_confined_process, "seccomp(2)") {
	ask_confined(confine_openly, ours);
	ask_confined(confine_secretly, others);
	open_stream("/dev/echo");
	ask_confined(confine_openly, ours);
	ask_confined(confine_secretly, others);
}

static void ask_after_vfork(void) {
	int ended;
	pid_t child = vfork();
	if (child == 0) {
		for (const char *const *n = ours; *n; n++) {
			name = *n;
			access(name, R_OK);
			stat(name, &status);
		}
		_exit(access("/dev/nosuch", F_OK) == -1 && errno == ENOENT ? 0 : 1);
	}
	check(child > 0);
	check_eq(waitpid(child, &ended, 0), child);
	check_eq(ended, 0);
}

CASE(names_after_vfork, "vfork(2)") {
	ask_after_vfork();
	int s = open_stream("/dev/echo");
	ask_after_vfork();
	put(s, "c", "d", 0);
	check_message(s, "c", "d", 0);
	check_eq(access("/dev/tcp", R_OK), 0);
}

CASES(ENTRY(names_in_a_handler), ENTRY(names_in_a_confined_process), ENTRY(names_after_vfork))
