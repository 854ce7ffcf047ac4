/* A pipe whose ends cases share out between processes and threads. */
#ifndef PIPES_H
#define PIPES_H

#include "peers.h"

static int fd[2];
static UNUSED char big[300000];

/* After this, writing and reading are of two processes: the child has closed fd[0] and runs `run`, we have closed fd[1]. */
static void (*child_run)(void);
static UNUSED void child_begin(void *unused) {
	(void)unused;
	close(fd[0]);
	child_run();
}
static UNUSED pid_t apart(void (*run)(void)) {
	pipe_flags(fd, 0);
	child_run = run;
	pid_t child = spawn(child_begin, NULL);
	close(fd[1]);
	return child;
}

/* A reader to whom nothing comes but the end. */
static volatile int done;
static UNUSED void read_to_the_end(void *unused) {
	(void)unused;
	char c;
	check_eq(read(fd[0], &c, 1), 0);
	done = 1;
}

#endif
