/* What goes wrong: names that are not, NULL buffers, closed and foreign descriptors, absurd numbers, very many streams. */
#include "peers.h"
#include <sys/resource.h>

static int fd[2];

/* Volatile, so that the compiler does not object. */
static void *volatile nowhere;
static volatile int below = -1, too_many = IOV_MAX + 1;

/* --- names --- */

CASE(push_of_unknown_modules, "streamio(7I) I_PUSH EINVAL") {
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_PUSH, "nosuch"), EINVAL);
	check_errno(ioctl(fd[0], I_PUSH, ""), EINVAL);
	check_errno(ioctl(fd[0], I_PUSH, "a name that is far too long"), EINVAL);
	check_errno2(ioctl(fd[0], I_PUSH, NULL), EFAULT, EINVAL);
	check_errno(ioctl(fd[0], I_FIND, "nosuch"), EINVAL);
	check_errno2(ioctl(fd[0], I_FIND, NULL), EFAULT, EINVAL);
	put(fd[0], NULL, "unharmed", 0);
	check_message(fd[1], NULL, "unharmed", 0);
}

CASE(open_of_unknown_devices, "open(2) ENOENT") {
	check_errno2(open("/dev/nosuchstream", O_RDWR), ENOENT, ENXIO);
	check_errno2(open("/dev/echo/nosuch", O_RDWR), ENOENT, ENXIO);
	check_errno2(open("/dev/sad/nosuch", O_RDWR), ENOENT, ENXIO);
	check_errno(open(nowhere, O_RDWR), EFAULT);
}

/* --- NULL --- */

CASE(null_data_buffers, "read(2) EFAULT") {
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "kept", 4), 4);
	check_errno(read(fd[0], nowhere, 10), EFAULT);
	check_errno(write(fd[0], nowhere, 10), EFAULT);
	struct iovec v = {NULL, 10};
	check_errno(readv(fd[0], &v, 1), EFAULT);
	check_errno(writev(fd[0], &v, 1), EFAULT);
	check_eq(read(fd[0], nowhere, 0), 0);
	check_read(fd[0], "kept");
	check_nothing(fd[1]);
}

CASE(null_parts_of_messages, "putmsg(2) EFAULT") {
	struct strbuf none = {.maxlen = 10, .len = 10, .buf = NULL};
	int flags = 0, band = 0;
	pipe_flags(fd, 0);
	check_errno2(putmsg(fd[1], NULL, &none, 0), EFAULT, EINVAL);
	check_errno2(putmsg(fd[1], &none, NULL, 0), EFAULT, EINVAL);
	put(fd[1], "kept", "kept", 0);
	check_errno2(getmsg(fd[0], NULL, &none, &flags), EFAULT, EINVAL);
	check_errno2(getmsg(fd[0], &none, NULL, &flags), EFAULT, EINVAL);
	flags = MSG_ANY;
	check_errno2(getpmsg(fd[0], NULL, &none, &band, &flags), EFAULT, EINVAL);
	check_message(fd[0], "kept", "kept", 0);
}

CASE(null_flags, "getmsg(2) EFAULT") {
	int flags = MSG_ANY, band = 0;
	pipe_flags(fd, 0);
	put(fd[1], NULL, "kept", 0);
	check_errno2(getmsg(fd[0], NULL, NULL, NULL), EFAULT, EINVAL);
	check_errno2(getpmsg(fd[0], NULL, NULL, &band, NULL), EFAULT, EINVAL);
	check_errno2(getpmsg(fd[0], NULL, NULL, NULL, &flags), EFAULT, EINVAL);
	check_message(fd[0], NULL, "kept", 0);
}

CASE(null_arguments_of_ioctls, "streamio(7I) EFAULT") {
	pipe_flags(fd, 0);
	push(fd[0], "nullmod");
	put(fd[1], NULL, "kept", 3);
	await(ioctl(fd[0], I_CKBAND, 3) == 1);
	const int with_pointer[] = {I_LOOK, I_NREAD, I_GRDOPT, I_STR, I_GWROPT, I_PEEK, I_GETBAND, I_FLUSHBAND, I_SETCLTIME,
				    I_GETCLTIME, I_FDINSERT, I_EGETSIG, I_ESETSIG};
	for (unsigned i = 0; i < sizeof with_pointer / sizeof *with_pointer; i++) {
		errno = 0;
		harness_line = __LINE__;
		int result = ioctl(fd[0], with_pointer[i], NULL);
		if (result != -1 || (errno != EFAULT && errno != EINVAL))
			fail("ioctl 'S'|%d of NULL: expected EFAULT or EINVAL, saw %d, errno %d: %s", with_pointer[i] & 0xff, result,
			     errno, strerror(errno));
	}
	check_message(fd[0], NULL, "kept", 3);
}

CASE(recvfd_into_nowhere, "streamio(7I) I_RECVFD EFAULT") {
	struct strrecvfd r;
	pipe_flags(fd, 0);
	check_eq(ioctl(fd[1], I_SENDFD, 0), 0);
	check_errno2(ioctl(fd[0], I_RECVFD, NULL), EFAULT, EINVAL);
	check_eq(ioctl(fd[0], I_RECVFD, &r), 0);
}

CASE(a_null_array_of_descriptors, "streams_pipe EFAULT") { check_errno2(streams_pipe(NULL), EFAULT, EINVAL); }

/* --- descriptors --- */

static int closed(void) {
	pipe_flags(fd, 0);
	close(fd[0]);
	return fd[0];
}

CASE(calls_on_a_closed_descriptor, "read(2) EBADF") {
	char c;
	struct message m;
	int f = closed();
	check_errno(read(f, &c, 1), EBADF);
	check_errno(write(f, "x", 1), EBADF);
	check_errno(readv(f, &(struct iovec){&c, 1}, 1), EBADF);
	check_errno(writev(f, &(struct iovec){&c, 1}, 1), EBADF);
	check_errno(get_any(f, &m), EBADF);
	check_errno(put_text(f, "c", "d", 0, MSG_BAND), EBADF);
	check_errno(getmsg(f, NULL, NULL, &(int){0}), EBADF);
	check_errno(putmsg(f, NULL, NULL, 0), EBADF);
	check_errno(isastream(f), EBADF);
	check_errno(dup(f), EBADF);
	check_errno(fcntl(f, F_GETFL), EBADF);
	check_errno(close(f), EBADF);
}

CASE(ioctls_on_a_closed_descriptor, "ioctl(2) EBADF") {
	int f = closed();
	for (int n = 1; n <= 38; n++)
		check_errno(ioctl(f, 'S' << 8 | n, NULL), EBADF);
}

CASE(negative_descriptors, "isastream(3C) EBADF") {
	struct message m;
	check_errno(isastream(-1), EBADF);
	check_errno(get_any(-1, &m), EBADF);
	check_errno(put_text(-1, "c", "d", 0, MSG_BAND), EBADF);
	check_errno(isastream(INT_MAX), EBADF);
	check_errno(ioctl(-1, I_NREAD, &(int){0}), EBADF);
}

CASE(descriptors_that_are_no_streams, "getmsg(2) ENOSTR") {
	int kernel[2], n;
	struct message m;
	must(pipe(kernel));
	int file = must(open("file", O_RDWR | O_CREAT, 0600));
	const int all[] = {kernel[0], kernel[1], file};
	for (int i = 0; i < 3; i++) {
		check_eq(isastream(all[i]), 0);
		check_errno(get_any(all[i], &m), ENOSTR);
		check_errno(put_text(all[i], "c", "d", 0, MSG_BAND), ENOSTR);
		check_errno(getmsg(all[i], NULL, NULL, &(int){0}), ENOSTR);
		check_errno(putmsg(all[i], NULL, NULL, 0), ENOSTR);
		check_errno2(ioctl(all[i], I_NREAD, &n), ENOTTY, EINVAL);
		check_errno2(ioctl(all[i], I_PUSH, "nullmod"), ENOTTY, EINVAL);
	}
}

CASE(a_number_that_was_a_stream, "close(2)") {
	struct message m;
	int old = closed();
	check_eq(dup2(0, old), old);
	check_eq(isastream(old), 0);
	check_errno(get_any(old, &m), ENOSTR);
}

/* --- numbers --- */

CASE(absurd_lengths_of_parts, "putmsg(2) ERANGE") {
	struct strbuf part = {.maxlen = 0, .len = INT_MAX, .buf = (char *)"x"};
	pipe_flags(fd, 0);
	check_errno(putmsg(fd[1], NULL, &part, 0), ERANGE);
	check_errno(putmsg(fd[1], &part, NULL, 0), ERANGE);
	check_nothing(fd[0]);
}

CASE(absurd_lengths_of_vectors, "readv(2) EINVAL") {
	static struct iovec v[IOV_MAX + 1];
	char c[4];
	struct iovec huge[2] = {{c, SSIZE_MAX}, {c, SSIZE_MAX}};
	pipe_flags(fd, O_NONBLOCK);
	check_errno(readv(fd[0], v, below), EINVAL);
	check_errno(writev(fd[0], v, below), EINVAL);
	check_errno(readv(fd[0], v, too_many), EINVAL);
	check_errno(writev(fd[0], v, too_many), EINVAL);
	check_errno(writev(fd[0], huge, 2), EINVAL);
}

CASE(absurd_str_ioctls, "streamio(7I) I_STR EINVAL") {
	char c[4];
	struct strioctl negative = {'q' << 8, 1, -1, c}, long_one = {'q' << 8, 1, INT_MAX, c}, time = {'q' << 8, -2, 0, c};
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_STR, &negative), EINVAL);
	check_errno(ioctl(fd[0], I_STR, &long_one), EINVAL);
	check_errno(ioctl(fd[0], I_STR, &time), EINVAL);
}

CASE(undefined_bits, "streamio(7I) EINVAL") {
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_SRDOPT, 0x100), EINVAL);
	check_errno(ioctl(fd[0], I_SRDOPT, RMSGD | RMSGN), EINVAL);
	check_errno(ioctl(fd[0], I_SWROPT, 0x100), EINVAL);
	check_errno(ioctl(fd[0], I_FLUSH, 0), EINVAL);
	check_errno(ioctl(fd[0], I_FLUSH, 0x10), EINVAL);
	check_errno(ioctl(fd[0], I_ATMARK, 0x10), EINVAL);
	check_errno(ioctl(fd[0], I_SETCLTIME, &(int){-1}), EINVAL);
	check_errno(ioctl(fd[0], I_SETSIG, 0x4000), EINVAL);
}

CASE(a_stream_ioctl_that_is_none, "streamio(7I) EINVAL") {
	pipe_flags(fd, 0);
	for (int n = 60; n < 70; n++)
		check_errno2(ioctl(fd[0], 'S' << 8 | n, NULL), EINVAL, ENOTTY);
	put(fd[0], NULL, "unharmed", 0);
	check_message(fd[1], NULL, "unharmed", 0);
}

CASE(absurd_bands, "putmsg(2) putpmsg EINVAL") {
	int echo = open_stream("/dev/echo");
	check_errno(put_text(echo, "c", "d", -1, MSG_BAND), EINVAL);
	check_errno(put_text(echo, "c", "d", 256, MSG_BAND), EINVAL);
	check_errno(put_text(echo, "c", "d", INT_MIN, MSG_BAND), EINVAL);
	check_errno(ioctl(echo, I_CKBAND, 256), EINVAL);
	check_errno(ioctl(echo, I_CANPUT, 256), EINVAL);
	check_nothing(echo);
}

CASE(putmsg_flags, "putmsg(2) EINVAL") {
	struct strbuf part = out_buf("x", 1);
	pipe_flags(fd, 0);
	check_errno(putmsg(fd[1], &part, &part, 0x40), EINVAL);
	check_errno(putmsg(fd[1], NULL, &part, RS_HIPRI), EINVAL);
	check_errno(getmsg(fd[0], NULL, NULL, &(int){0x40}), EINVAL);
	check_nothing(fd[0]);
}

/* --- very many --- */

static int open_descriptors(void) {
	int n = 0;
	for (int i = 0; i < 65536; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static long raise_limit(void) {
	struct rlimit limit;
	must(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	return limit.rlim_max;
}

static int one_more_pipe(void) {
	pipe_flags(fd, 0);
	close(fd[0]);
	close(fd[1]);
	return 1;
}

CASE(ten_thousand_streams_one_after_the_other, "close(2)") {
	raise_limit();
	one_more_pipe();
	int before = open_descriptors();
	for (int i = 0; i < 5000; i++) {
		pipe_flags(fd, 0);
		check_eq(write(fd[1], &i, sizeof i), (int)sizeof i);
		close(fd[i & 1]);
		close(fd[~i & 1]);
	}
	await(one_more_pipe() && open_descriptors() <= before + 16);
}

/* As many streams at once as the hard limit has room for, up to 10,000. `each`: descriptors, those of the library among
 * them, which stay out of the last tenth. */
static int at_once(int each) {
	long room = (raise_limit() * 9 / 10 - 100) / each;
	return room < 10000 ? room : 10000;
}

CASE(ten_thousand_driver_streams_at_once, "open(2)") {
	static int all[10000];
	int n = at_once(1), seen;
	for (int i = 0; i < n; i++) {
		all[i] = open_stream("/dev/echo");
		check_eq(write(all[i], &i, sizeof i), (int)sizeof i);
	}
	for (int i = n; i-- > 0;) {
		check_eq(read(all[i], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
	}
	for (int i = 0; i < n; i++)
		check_eq(close(all[i]), 0);
	check_eq(open_stream("/dev/echo") <= all[0], 1);
}

CASE(ten_thousand_pipe_ends_at_once, "pipe(2)") {
	static int all[5000][2];
	/* Two ends and a segment; bells are made when somebody sleeps. */
	int n = at_once(3), seen;
	if (n > 5000)
		n = 5000;
	for (int i = 0; i < n; i++) {
		pipe_flags(all[i], 0);
		check_eq(write(all[i][1], &i, sizeof i), (int)sizeof i);
	}
	for (int i = n; i-- > 0;) {
		check_eq(read(all[i][0], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
	}
	for (int i = 0; i < n; i++) {
		check_eq(close(all[i][i & 1]), 0);
		check_eq(close(all[i][~i & 1]), 0);
	}
	pipe_flags(fd, 0);
}

CASE(without_descriptors_left, "pipe(2) EMFILE") {
	static int all[300][2];
	struct rlimit limit = {100, 100};
	must(setrlimit(RLIMIT_NOFILE, &limit));
	int n = 0;
	while (n < 300 && streams_pipe(all[n]) == 0)
		n++;
	check(n > 5 && n < 100);
	check_errno2(streams_pipe(all[n]), EMFILE, ENFILE);
	for (int i = 0; i < n; i++) {
		put(all[i][1], NULL, "works", 0);
		check_message(all[i][0], NULL, "works", 0);
		close(all[i][0]);
		close(all[i][1]);
	}
	pipe_flags(fd, 0);
	put(fd[1], NULL, "works", 0);
	check_message(fd[0], NULL, "works", 0);
}

static void hammer(void *seed) {
	int mine[2];
	for (int i = 0; i < 300; i++) {
		pipe_flags(mine, 0);
		int end = (i + *(int *)seed) & 1;
		put(mine[end], "c", "d", 0);
		check_message(mine[!end], "c", "d", 0);
		if (i % 3 == 0)
			push(mine[end], "nullmod");
		close(mine[0]);
		close(mine[1]);
	}
}

CASE(streams_opened_and_closed_by_many_threads, "open(2)") {
	int seed[6];
	pthread_t t[6];
	for (int i = 0; i < 6; i++) {
		seed[i] = i;
		t[i] = start(hammer, &seed[i]);
	}
	for (int i = 0; i < 6; i++)
		finish(t[i]);
}

static void fork_and_talk(void *unused) {
	(void)unused;
	put(fd[1], NULL, "from a child", 0);
}

CASE(fork_among_busy_threads, "fork(2)") {
	int seed[2] = {0, 1};
	pthread_t t[2];
	pipe_flags(fd, 0);
	for (int i = 0; i < 2; i++)
		t[i] = start(hammer, &seed[i]);
	for (int i = 0; i < 30; i++) {
		pid_t child = spawn(fork_and_talk, NULL);
		check_message(fd[0], NULL, "from a child", 0);
		join(child);
	}
	for (int i = 0; i < 2; i++)
		finish(t[i]);
}

CASES(ENTRY(push_of_unknown_modules), ENTRY(open_of_unknown_devices), ENTRY(null_data_buffers), ENTRY(null_parts_of_messages),
      ENTRY(null_flags), ENTRY(null_arguments_of_ioctls), ENTRY(recvfd_into_nowhere), ENTRY(a_null_array_of_descriptors),
      ENTRY(calls_on_a_closed_descriptor), ENTRY(ioctls_on_a_closed_descriptor), ENTRY(negative_descriptors),
      ENTRY(descriptors_that_are_no_streams), ENTRY(a_number_that_was_a_stream), ENTRY(absurd_lengths_of_parts),
      ENTRY(absurd_lengths_of_vectors), ENTRY(absurd_str_ioctls), ENTRY(undefined_bits), ENTRY(a_stream_ioctl_that_is_none),
      ENTRY(absurd_bands), ENTRY(putmsg_flags), ENTRY(ten_thousand_streams_one_after_the_other),
      ENTRY(ten_thousand_driver_streams_at_once), ENTRY(ten_thousand_pipe_ends_at_once), ENTRY(without_descriptors_left),
      ENTRY(streams_opened_and_closed_by_many_threads), ENTRY(fork_among_busy_threads))
