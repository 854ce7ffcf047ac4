/* Streams with a name in the file system. */
#ifndef NAMES_H
#define NAMES_H

#include "peers.h"

#define PATH "door"

static UNUSED int fd[2];

/* A plain file that says "plain". */
static UNUSED void make_file(const char *path) {
	int f = must(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
	check_eq(write(f, "plain", 5), 5);
	close(f);
}

/* A pipe whose end 1 is attached to PATH. */
static UNUSED void attach(void) {
	make_file(PATH);
	pipe_flags(fd, 0);
	check_eq(fattach(fd[1], PATH), 0);
}

static UNUSED int open_path(const char *path, int flags) {
	int f = open(path, flags);
	if (f < 0)
		fail("open %s: expected a descriptor, saw errno %d: %s", path, errno, strerror(errno));
	return f;
}

#define check_plain(PATH)                              \
	do {                                           \
		int plain_ = open_path(PATH, O_RDONLY); \
		check_eq(isastream(plain_), 0);        \
		check_read(plain_, "plain");           \
		close(plain_);                         \
	} while (0)

#endif
