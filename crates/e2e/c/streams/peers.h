/* What cases with two sides share: filling and draining a stream, threads, turns between processes,
 * what is open, running oneself again. */
#ifndef PEERS_H
#define PEERS_H

#include "harness.h"
#include <dirent.h>
#include <limits.h>
#include <pthread.h>

/* --- numbered messages, all of one size --- */

/* Writes until EAGAIN (the descriptor has O_NONBLOCK); how many messages went in, numbered from `first`. */
static UNUSED int fill_from(int fd, int size, int first) {
	char buf[65536];
	memset(buf, 'f', size);
	for (int n = 0;; n++) {
		int number = first + n;
		memcpy(buf, &number, sizeof number);
		errno = 0;
		ssize_t w = write(fd, buf, size);
		if (w < 0 && errno == EAGAIN)
			return n;
		if (w != size)
			fail("write number %d: expected %d bytes or EAGAIN, saw %zd, errno %d: %s", number, size, w, errno,
			     strerror(errno));
		if (n > 10000000)
			fail("ten million messages written, and no EAGAIN");
	}
}
static UNUSED int fill(int fd, int size) { return fill_from(fd, size, 0); }

/* Reads the message of this number. */
static UNUSED void take(int fd, int size, int number) {
	char buf[65536];
	int seen;
	ssize_t n = read(fd, buf, size);
	if (n != size)
		fail("read number %d: expected %d bytes, saw %zd, errno %d: %s", number, size, n, errno, strerror(errno));
	memcpy(&seen, buf, sizeof seen);
	if (seen != number)
		fail("expected message number %d, saw %d", number, seen);
	for (int i = sizeof seen; i < size; i++)
		if (buf[i] != 'f')
			fail("message number %d is spoiled at byte %d", number, i);
}

/* Reads messages numbered from `first` to before `end`. */
static UNUSED void drain(int fd, int size, int first, int end) {
	for (int i = first; i < end; i++)
		take(fd, size, i);
}

static UNUSED int canput(int fd, int band) { return ioctl(fd, I_CANPUT, band); }
static UNUSED int writable(int fd) { return events(fd, POLLOUT, 0) & POLLOUT; }

/* --- threads --- */

struct begin {
	void (*run)(void *);
	void *with;
};
static UNUSED void *begin_thread(void *begin) {
	struct begin b = *(struct begin *)begin;
	free(begin);
	b.run(b.with);
	return NULL;
}
static UNUSED pthread_t start(void (*run)(void *), void *with) {
	struct begin *b = malloc(sizeof *b);
	*b = (struct begin){run, with};
	pthread_t t;
	int e = pthread_create(&t, NULL, begin_thread, b);
	if (e)
		fail("pthread_create: %s", strerror(e));
	return t;
}
static UNUSED void finish(pthread_t t) { pthread_join(t, NULL); }

/* Not so, and still not after a moment in which it would have happened. */
#define stays_false(EXPR)                                                      \
	do {                                                                   \
		for (int i_ = 0; i_ < 10; i_++) {                              \
			sleep_ms(5);                                           \
			if (EXPR)                                              \
				fail("line %d: expected not yet: %s", __LINE__, #EXPR); \
		}                                                              \
	} while (0)

/* --- turns between processes: over the kernel's pipes, which are not under test --- */

struct turn {
	int fd[2];
};
static UNUSED struct turn turn_new(void) {
	struct turn t;
	if (pipe(t.fd) < 0)
		fail("pipe: errno %d: %s", errno, strerror(errno));
	return t;
}
static UNUSED void turn_give(struct turn t) {
	if (write(t.fd[1], "", 1) != 1)
		fail("giving a turn: errno %d: %s", errno, strerror(errno));
}
static UNUSED void turn_take(struct turn t) {
	char c;
	ssize_t n;
	while ((n = read(t.fd[0], &c, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		fail("waiting for a turn: saw %zd, errno %d: %s", n, errno, strerror(errno));
}

/* --- signals --- */

/* A child that sends us a signal again and again until it is killed: a wait cannot slip between two of them. */
struct poker {
	int signal;
	pid_t to;
};
static UNUSED void poke(void *with) {
	struct poker *p = with;
	for (;;) {
		sleep_ms(30);
		kill(p->to, p->signal);
	}
}
static UNUSED pid_t start_poking(int signal) {
	struct poker p = {signal, getpid()};
	catch_signal(signal);
	return spawn(poke, &p);
}
static UNUSED void end_poking(pid_t child) {
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Ends a child by SIGKILL. */
static UNUSED void slay(pid_t child) {
	int status;
	if (kill(child, SIGKILL) < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
		fail("a child was to be killed, and had ended before");
}

/* --- what this process has open --- */

/* And the list itself. */
static UNUSED int descriptors(void) {
	DIR *all = opendir("/proc/self/fd");
	int n = 0;
	check(all);
	while (readdir(all))
		n++;
	closedir(all);
	return n;
}

/* --- running this program again, by exec, in a role of a case --- */

/* NULL in the case itself, else the role in which this program was started again. */
static UNUSED const char *role(void) { return getenv("CASE_ROLE"); }

/* In a child of fork: execs this program for the case `name` in the given role. Descriptors stay open. */
static UNUSED void __attribute__((noreturn)) become(const char *name, const char *as) {
	setenv("CASE_ROLE", as, 1);
	execl("/proc/self/exe", "case", name, (char *)NULL);
	fail("exec: errno %d: %s", errno, strerror(errno));
}
static UNUSED pid_t spawn_role(const char *name, const char *as) {
	pid_t parent = getpid(), child = must(fork());
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			become(name, as);
		_exit(1);
	}
	return child;
}

#endif
