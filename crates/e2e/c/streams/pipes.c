/* STREAMS pipes: what they carry, two ways and with boundaries, hangup, and modules. */
#include "pipes.h"

/* --- what a pipe carries --- */

CASE(both_ends_are_streams, "isastream(3C)") {
	int kernel[2];
	pipe_flags(fd, 0);
	check_eq(isastream(fd[0]), 1);
	check_eq(isastream(fd[1]), 1);
	must(pipe(kernel));
	check_eq(isastream(kernel[0]), 0);
}

CASE(data_goes_both_ways, "pipe(2)") {
	pipe_flags(fd, 0);
	check_eq(write(fd[0], "to one", 6), 6);
	check_eq(write(fd[1], "to nought", 9), 9);
	check_read(fd[1], "to one");
	check_read(fd[0], "to nought");
}

CASE(messages_keep_their_boundaries, "getmsg(2)") {
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "one", 3), 3);
	put(fd[1], NULL, "two", 0);
	put(fd[1], "ctl", "three", 0);
	check_eq(write(fd[1], "four", 4), 4);
	check_message(fd[0], NULL, "one", 0);
	check_message(fd[0], NULL, "two", 0);
	check_message(fd[0], "ctl", "three", 0);
	check_message(fd[0], NULL, "four", 0);
}

CASE(a_byte_stream_read_joins_messages, "read(2) RNORM") {
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "one ", 4), 4);
	check_eq(write(fd[1], "two ", 4), 4);
	put(fd[1], NULL, "three", 0);
	check_read(fd[0], "one two three");
}

CASE(a_read_takes_a_message_in_pieces, "read(2) RNORM") {
	char c[4];
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "abcdefgh", 8), 8);
	for (int i = 0; i < 8; i += 2) {
		check_eq(read(fd[0], c, 2), 2);
		check_bytes(c, &"abcdefgh"[i], 2);
	}
}

CASE(writev_is_one_message_and_readv_scatters, "readv(2)") {
	char a[3], b[10];
	struct iovec out[3] = {{"ab", 2}, {"", 0}, {"cdef", 4}}, in[2] = {{a, 3}, {b, 10}};
	pipe_flags(fd, 0);
	check_eq(writev(fd[1], out, 3), 6);
	check_message(fd[0], NULL, "abcdef", 0);
	check_eq(writev(fd[1], out, 3), 6);
	check_eq(readv(fd[0], in, 2), 6);
	check_bytes(a, "abc", 3);
	check_bytes(b, "def", 3);
}

CASE(a_write_of_nothing_sends_nothing, "write(2) SNDZERO") {
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "", 0), 0);
	check_nothing(fd[0]);
	check_eq(ioctl(fd[1], I_SWROPT, SNDZERO), 0);
	check_eq(write(fd[1], "", 0), 0);
	check_message(fd[0], NULL, "", 0);
}

CASE(nothing_to_read_is_eagain, "read(2) EAGAIN") {
	char c;
	struct message m;
	pipe_flags(fd, O_NONBLOCK);
	check_errno(read(fd[0], &c, 1), EAGAIN);
	check_errno(get_any(fd[0], &m), EAGAIN);
	check_eq(events(fd[0], POLLIN, 0), 0);
}

CASE(nread_counts_messages_and_bytes, "streamio(7I) I_NREAD") {
	int n = -1;
	pipe_flags(fd, 0);
	check_eq(ioctl(fd[0], I_NREAD, &n), 0);
	check_eq(n, 0);
	check_eq(write(fd[1], "12345", 5), 5);
	put(fd[1], "ctl", "678", 0);
	check_eq(ioctl(fd[0], I_NREAD, &n), 2);
	check_eq(n, 5);
	check_message(fd[0], NULL, "12345", 0);
	check_eq(ioctl(fd[0], I_NREAD, &n), 1);
	check_eq(n, 3);
}

static char back[300000];
static int put_big(int size, int control) {
	struct strbuf data = out_buf(big, size), ctl = out_buf(big, control);
	return putmsg(fd[1], control ? &ctl : NULL, &data, 0);
}

CASE(a_message_of_262144_bytes, "putmsg(2) STRMSGSZ") {
	static char c[4096];
	int flags = 0;
	pipe_flags(fd, 0);
	for (unsigned i = 0; i < sizeof big; i++)
		big[i] = i * 31 / 7;
	check_eq(put_big(262144, 4096), 0);
	struct strbuf ctl = in_buf(c, sizeof c), data = in_buf(back, sizeof back);
	check_eq(getmsg(fd[0], &ctl, &data, &flags), 0);
	check_eq(ctl.len, 4096);
	check_eq(data.len, 262144);
	check_bytes(c, big, 4096);
	check_bytes(back, big, 262144);
}

static void get_big_one(void) {
	int flags = 0;
	struct strbuf data = in_buf(back, sizeof back);
	for (int i = 0; i < 20; i++) {
		check_eq(getmsg(fd[1], NULL, &data, &flags), 0);
		check_eq(data.len, 200000 + i);
		check_bytes(back, big, data.len);
	}
}

CASE(long_messages_between_processes, "putmsg(2)") {
	for (unsigned i = 0; i < sizeof big; i++)
		big[i] = i * 31 / 7;
	pid_t child = apart(get_big_one);
	for (int i = 0; i < 20; i++) {
		struct strbuf data = out_buf(big, 200000 + i);
		check_eq(putmsg(fd[0], NULL, &data, 0), 0);
	}
	join(child);
}

CASE(longer_parts_are_erange, "putmsg(2) ERANGE") {
	pipe_flags(fd, 0);
	check_errno(put_big(262145, 0), ERANGE);
	check_errno(put_big(10, 4097), ERANGE);
	check_nothing(fd[0]);
}

CASE(a_long_write_arrives_as_bytes, "write(2)") {
	ssize_t n = 0, r;
	pipe_flags(fd, 0);
	memset(big, 'L', sizeof big);
	child_run = NULL;
	pid_t child = fork();
	if (child == 0) {
		close(fd[0]);
		check_eq(write(fd[1], big, sizeof big), (int)sizeof big);
		_exit(0);
	}
	close(fd[1]);
	while ((r = must(read(fd[0], back, sizeof back))) > 0)
		n += r;
	check_eq(n, (int)sizeof big);
	join(child);
}

CASE(an_i_str_that_nobody_takes_is_einval, "streamio(7I) I_STR") {
	struct strioctl s = {.ic_cmd = 'q' << 8 | 9, .ic_timout = 5};
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_STR, &s), EINVAL);
	check_errno2(ioctl(fd[0], 'q' << 8 | 9, 0), EINVAL, ENOTTY);
}

CASE(a_pipe_can_not_seek, "lseek(2) ESPIPE") {
	pipe_flags(fd, 0);
	check_errno(lseek(fd[0], 0, SEEK_CUR), ESPIPE);
}

CASE(status_flags_are_kept, "fcntl(2) F_GETFL") {
	pipe_flags(fd, 0);
	check_eq(fcntl(fd[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
	set_nonblock(fd[0], 1);
	check_eq(fcntl(fd[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR | O_NONBLOCK);
	check_eq(fcntl(fd[1], F_GETFL) & O_NONBLOCK, 0);
	check_eq(fcntl(fd[0], F_SETFD, FD_CLOEXEC), 0);
	check_eq(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
	check_eq(fcntl(fd[1], F_GETFD), 0);
}

/* --- hangup --- */

CASE(what_was_written_is_read_before_the_end, "read(2)") {
	char c;
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "last", 4), 4);
	close(fd[1]);
	check_eq(read(fd[0], &c, 1), 1);
	check_read(fd[0], "ast");
	check_eq(read(fd[0], &c, 1), 0);
	check_eq(read(fd[0], &c, 1), 0);
}

CASE(getmsg_after_the_end_gives_two_lengths_of_0, "getmsg(2)") {
	struct message m;
	pipe_flags(fd, 0);
	put(fd[1], "c", "d", 0);
	close(fd[1]);
	check_message(fd[0], "c", "d", 0);
	for (int i = 0; i < 2; i++) {
		check_eq(get_any(fd[0], &m), 0);
		check_eq(m.ctl_len, 0);
		check_eq(m.data_len, 0);
	}
}

CASE(a_write_after_a_hangup, "write(2) EPIPE") {
	pipe_flags(fd, 0);
	catch_signal(SIGPIPE);
	close(fd[1]);
	check_errno(write(fd[0], "x", 1), EPIPE);
	check_eq(caught[SIGPIPE], 1);
	check_errno2(put_text(fd[0], "c", "d", 0, MSG_BAND), EPIPE, EIO);
	check_eq(caught[SIGPIPE], 2);
}

CASE(a_write_after_a_hangup_kills, "write(2) SIGPIPE") {
	pipe_flags(fd, 0);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGPIPE, SIG_DFL);
		close(fd[1]);
		sleep_ms(30);
		(void)!write(fd[0], "x", 1);
		_exit(0);
	}
	close(fd[1]);
	int status;
	check_eq(waitpid(child, &status, 0), child);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}

CASE(ioctls_after_a_hangup, "streamio(7I) ENXIO") {
	struct strioctl s = {.ic_cmd = 1, .ic_timout = 1};
	struct strrecvfd r;
	pipe_flags(fd, 0);
	push(fd[0], "nullmod");
	close(fd[1]);
	await(events(fd[0], 0, 0) & POLLHUP);
	check_errno(ioctl(fd[0], I_PUSH, "nullmod"), ENXIO);
	check_errno(ioctl(fd[0], I_FLUSH, FLUSHR), ENXIO);
	check_errno(ioctl(fd[0], I_STR, &s), ENXIO);
	check_errno(ioctl(fd[0], I_RECVFD, &r), ENXIO);
	check_errno2(ioctl(fd[0], I_SENDFD, 0), ENXIO, EINVAL);
}

CASE(poll_after_a_hangup, "poll(2) POLLHUP") {
	pipe_flags(fd, 0);
	check_eq(write(fd[1], "x", 1), 1);
	close(fd[1]);
	check_eq(events(fd[0], POLLIN | POLLOUT, PATIENCE), POLLIN | POLLHUP);
	check_read(fd[0], "x");
	check_eq(events(fd[0], POLLOUT, PATIENCE), POLLHUP);
}

CASE(a_blocked_reader_is_woken_by_close, "read(2)") {
	pipe_flags(fd, 0);
	pthread_t t = start(read_to_the_end, NULL);
	stays_false(done);
	close(fd[1]);
	await(done);
	finish(t);
}

static void sleep_and_end(void) { sleep_ms(50); }

CASE(a_blocked_reader_is_woken_by_exit, "exit(2)") {
	pid_t child = apart(sleep_and_end);
	read_to_the_end(NULL);
	join(child);
}

static void close_and_stay(void) {
	sleep_ms(30);
	close(fd[1]);
	pause();
}

CASE(a_blocked_reader_is_woken_by_a_close_elsewhere, "close(2)") {
	pid_t child = apart(close_and_stay);
	read_to_the_end(NULL);
	slay(child);
}

CASE(close_does_not_lose_what_a_module_holds, "close(2)") {
	char buf[9000];
	ssize_t n = 0, r;
	pipe_flags(fd, 0);
	push(fd[1], "bufmod");
	memset(buf, 'h', sizeof buf);
	check_eq(write(fd[1], buf, sizeof buf), (int)sizeof buf);
	close(fd[1]);
	while ((r = must(read(fd[0], buf, sizeof buf))) > 0)
		n += r;
	check_eq(n, (int)sizeof buf);
}

/* --- modules --- */

static const char *top_of(int end) {
	static char name[FMNAMESZ + 1];
	return ioctl(end, I_LOOK, name) < 0 ? "" : name;
}

CASE(a_module_on_one_end, "streamio(7I) I_PUSH") {
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_LOOK, (char[9]){0}), EINVAL);
	check_errno(ioctl(fd[0], I_POP, 0), EINVAL);
	push(fd[0], "nullmod");
	check_str(top_of(fd[0]), "nullmod");
	check_str(top_of(fd[1]), "");
	put(fd[0], "c", "down", 2);
	check_message(fd[1], "c", "down", 2);
	put(fd[1], "c", "up", 0);
	check_message(fd[0], "c", "up", 0);
	pop(fd[0]);
	check_str(top_of(fd[0]), "");
	put(fd[1], "c", "up", 0);
	check_message(fd[0], "c", "up", 0);
}

CASE(modules_on_both_ends, "streamio(7I) I_PUSH") {
	pipe_flags(fd, 0);
	push(fd[0], "nullmod");
	push(fd[0], "bufmod");
	push(fd[1], "bufmod");
	check_str(top_of(fd[0]), "bufmod");
	for (int i = 0; i < 50; i++) {
		put(fd[0], "c", "down", 0);
		check_message(fd[1], "c", "down", 0);
		put(fd[1], NULL, "up", 0);
		check_message(fd[0], NULL, "up", 0);
	}
	pop(fd[0]);
	check_str(top_of(fd[0]), "nullmod");
}

CASE(pushing_leaves_what_is_queued, "streamio(7I) I_PUSH") {
	pipe_flags(fd, 0);
	put(fd[1], "c", "before", 0);
	put(fd[1], NULL, "banded", 4);
	push(fd[0], "nullmod");
	put(fd[1], NULL, "between", 0);
	push(fd[1], "bufmod");
	put(fd[1], NULL, "after", 0);
	await(ioctl(fd[0], I_NREAD, &(int){0}) == 4);
	check_message(fd[0], NULL, "banded", 4);
	check_message(fd[0], "c", "before", 0);
	check_message(fd[0], NULL, "between", 0);
	check_message(fd[0], NULL, "after", 0);
}

CASE(popping_leaves_what_is_queued, "streamio(7I) I_POP") {
	pipe_flags(fd, 0);
	push(fd[0], "nullmod");
	put(fd[1], NULL, "one", 0);
	put(fd[1], "c", "two", 1);
	await(ioctl(fd[0], I_NREAD, &(int){0}) == 2);
	pop(fd[0]);
	check_eq(write(fd[1], "three", 5), 5);
	check_message(fd[0], "c", "two", 1);
	check_message(fd[0], NULL, "one", 0);
	check_message(fd[0], NULL, "three", 0);
}

static void write_through(void *unused) {
	(void)unused;
	for (int i = 0; i < 3000; i++)
		check_eq(write(fd[1], &i, sizeof i), (int)sizeof i);
}

CASE(pushing_and_popping_in_the_middle_of_traffic, "streamio(7I) I_PUSH") {
	pipe_flags(fd, 0);
	pid_t child = spawn(write_through, NULL);
	for (int i = 0; i < 3000; i++) {
		int seen;
		if (i % 100 == 10)
			push(fd[0], i % 200 == 10 ? "nullmod" : "pipemod");
		check_eq(read(fd[0], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
		if (i % 100 == 60)
			pop(fd[0]);
	}
	join(child);
}

CASE(more_than_64_modules_are_einval, "streamio(7I) I_PUSH NSTRPUSH") {
	pipe_flags(fd, 0);
	for (int i = 0; i < 64; i++)
		push(fd[0], "nullmod");
	check_errno(ioctl(fd[0], I_PUSH, "nullmod"), EINVAL);
	put(fd[1], "c", "through all", 0);
	check_message(fd[0], "c", "through all", 0);
	for (int i = 0; i < 64; i++)
		pop(fd[0]);
	check_errno(ioctl(fd[0], I_POP, 0), EINVAL);
}

CASE(flush_of_a_pipe_with_pipemod, "pipemod(7M)") {
	pipe_flags(fd, 0);
	push(fd[0], "pipemod");
	put(fd[1], NULL, "gone", 0);
	await(ioctl(fd[0], I_NREAD, &(int){0}) == 1);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHR), 0);
	check_nothing(fd[0]);
	put(fd[0], NULL, "stays", 0);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHR), 0);
	check_message(fd[1], NULL, "stays", 0);
	put(fd[0], NULL, "gone", 0);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHW), 0);
	sleep_ms(20);
	check_nothing(fd[1]);
}

CASE(flush_of_a_pipe_without_modules, "streamio(7I) I_FLUSH") {
	pipe_flags(fd, 0);
	put(fd[0], NULL, "a", 0);
	put(fd[1], NULL, "b", 0);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHR), 0);
	check_nothing(fd[0]);
	check_message(fd[1], NULL, "a", 0);
	put(fd[0], NULL, "a", 0);
	put(fd[1], NULL, "b", 0);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHRW), 0);
	check_nothing(fd[0]);
	check_nothing(fd[1]);
}

static void talk_through_module(void) {
	struct message m;
	push(fd[1], "bufmod");
	for (int i = 0; i < 100; i++) {
		check_eq(get_any(fd[1], &m), 0);
		put(fd[1], m.ctl, m.data, m.band);
	}
}

CASE(a_module_in_the_other_process, "streamio(7I) I_PUSH") {
	pid_t child = apart(talk_through_module);
	for (int i = 0; i < 100; i++) {
		put(fd[0], "ctl", "there and back", i);
		check_message(fd[0], "ctl", "there and back", i);
	}
	join(child);
}

/* --- pipe() itself --- */

CASE(headwater_pipe_makes_pipe_a_stream, "pipe(2)") {
	if (!getenv("HEADWATER_PIPE")) {
		setenv("HEADWATER_PIPE", "streams", 1);
		become("headwater_pipe_makes_pipe_a_stream", "streams");
	}
	must(pipe(fd));
	check_eq(isastream(fd[0]), 1);
	check_eq(isastream(fd[1]), 1);
	put(fd[0], "c", "two ways", 0);
	check_message(fd[1], "c", "two ways", 0);
	must(pipe2(fd, O_NONBLOCK | O_CLOEXEC));
	check_eq(isastream(fd[0]), 1);
	check_eq(fcntl(fd[0], F_GETFD), FD_CLOEXEC);
	char c;
	check_errno(read(fd[0], &c, 1), EAGAIN);
}

CASES(ENTRY(both_ends_are_streams), ENTRY(data_goes_both_ways), ENTRY(messages_keep_their_boundaries),
      ENTRY(a_byte_stream_read_joins_messages), ENTRY(a_read_takes_a_message_in_pieces),
      ENTRY(writev_is_one_message_and_readv_scatters), ENTRY(a_write_of_nothing_sends_nothing),
      ENTRY(nothing_to_read_is_eagain), ENTRY(nread_counts_messages_and_bytes), ENTRY(a_message_of_262144_bytes),
      ENTRY(long_messages_between_processes), ENTRY(longer_parts_are_erange), ENTRY(a_long_write_arrives_as_bytes),
      ENTRY(an_i_str_that_nobody_takes_is_einval), ENTRY(a_pipe_can_not_seek), ENTRY(status_flags_are_kept),
      ENTRY(what_was_written_is_read_before_the_end), ENTRY(getmsg_after_the_end_gives_two_lengths_of_0),
      ENTRY(a_write_after_a_hangup), ENTRY(a_write_after_a_hangup_kills), ENTRY(ioctls_after_a_hangup),
      ENTRY(poll_after_a_hangup), ENTRY(a_blocked_reader_is_woken_by_close), ENTRY(a_blocked_reader_is_woken_by_exit),
      ENTRY(a_blocked_reader_is_woken_by_a_close_elsewhere), ENTRY(close_does_not_lose_what_a_module_holds),
      ENTRY(a_module_on_one_end), ENTRY(modules_on_both_ends), ENTRY(pushing_leaves_what_is_queued),
      ENTRY(popping_leaves_what_is_queued), ENTRY(pushing_and_popping_in_the_middle_of_traffic),
      ENTRY(more_than_64_modules_are_einval), ENTRY(flush_of_a_pipe_with_pipemod),
      ENTRY(flush_of_a_pipe_without_modules), ENTRY(a_module_in_the_other_process),
      ENTRY(headwater_pipe_makes_pipe_a_stream))
