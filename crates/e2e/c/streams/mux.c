/* The multiplexer /dev/mux: linking, data both ways, what a linked stream refuses, links that persist. */
#include "peers.h"
#include <sys/epoll.h>
#include <sys/select.h>

static int upper, muxid;

/* A pipe whose end 1 is linked below a multiplexer's stream; end 0 is returned. */
static int link_pipe_below(int mux, int *id, int *lower) {
	int fd[2];
	pipe_flags(fd, 0);
	*id = ioctl(mux, I_LINK, fd[1]);
	if (*id < 0)
		fail("I_LINK: expected an id, saw errno %d: %s", errno, strerror(errno));
	if (lower)
		*lower = fd[1];
	else
		close(fd[1]);
	return fd[0];
}

static int one_below(int *lower) {
	upper = open_stream("/dev/mux");
	return link_pipe_below(upper, &muxid, lower);
}

/* --- data --- */

CASE(data_goes_down, "streamio(7I) I_LINK") {
	int end = one_below(NULL);
	check_eq(write(upper, "down", 4), 4);
	check_message(end, NULL, "down", 0);
}

CASE(data_comes_up, "streamio(7I) I_LINK") {
	int end = one_below(NULL);
	check_eq(write(end, "up", 2), 2);
	check_message(upper, NULL, "up", 0);
}

CASE(data_both_ways_many_times, "streamio(7I) I_LINK") {
	char text[20];
	int end = one_below(NULL);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof text, "number %d", i);
		check_eq(write(upper, text, strlen(text)), (int)strlen(text));
		check_read(end, text);
		check_eq(write(end, text, strlen(text)), (int)strlen(text));
		check_read(upper, text);
	}
}

CASE(data_from_another_process, "streamio(7I) I_LINK") {
	int end = one_below(NULL);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		check_read(end, "to the child");
		check_eq(write(end, "from the child", 14), 14);
		_exit(0);
	}
	check_eq(write(upper, "to the child", 12), 12);
	check_readable(upper);
	check_read(upper, "from the child");
	join(child);
}

CASE(two_below_get_copies, "streamio(7I) I_LINK") {
	int other, a = one_below(NULL), b = link_pipe_below(upper, &other, NULL);
	check(other != muxid);
	check_eq(write(upper, "to both", 7), 7);
	check_message(a, NULL, "to both", 0);
	check_message(b, NULL, "to both", 0);
	check_eq(write(a, "from a", 6), 6);
	check_message(upper, NULL, "from a", 0);
	check_eq(write(b, "from b", 6), 6);
	check_message(upper, NULL, "from b", 0);
}

CASE(two_above_have_their_own_below, "streamio(7I) I_LINK") {
	int id, a = one_below(NULL), second = open_stream("/dev/mux"), b = link_pipe_below(second, &id, NULL);
	check_eq(write(upper, "first", 5), 5);
	check_eq(write(second, "second", 6), 6);
	check_message(a, NULL, "first", 0);
	check_message(b, NULL, "second", 0);
	check_nothing(a);
	check_nothing(b);
	put(a, NULL, "up a", 0);
	put(b, NULL, "up b", 0);
	check_message(upper, NULL, "up a", 0);
	check_message(second, NULL, "up b", 0);
}

CASE(a_blocked_reader_above_is_woken, "read(2)") {
	int end = one_below(NULL);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_ms(50);
		put(end, NULL, "late", 0);
		_exit(0);
	}
	check_message(upper, NULL, "late", 0);
	join(child);
}

CASE(poll_above_sees_what_comes_up, "poll(2)") {
	int end = one_below(NULL);
	check_eq(events(upper, POLLIN, 0), 0);
	put(end, NULL, "x", 0);
	check_eq(events(upper, POLLIN, PATIENCE), POLLIN);
	check_message(upper, NULL, "x", 0);
	check_eq(events(upper, POLLIN, 0), 0);
}

CASE(a_full_multiplexer_loses_nothing, "canputnext(9F)") {
	int end = one_below(NULL);
	set_nonblock(upper, 1);
	int n = fill(upper, 1024);
	check(n > 0);
	drain(end, 1024, 0, n);
	await(writable(upper));
	check_eq(write(upper, "more", 4), 4);
	check_message(end, NULL, "more", 0);
}

CASE(modules_below_and_above, "streamio(7I) I_LINK") {
	int fd[2];
	pipe_flags(fd, 0);
	push(fd[1], "nullmod");
	upper = open_stream("/dev/mux");
	push(upper, "bufmod");
	must(ioctl(upper, I_LINK, fd[1]));
	put(upper, NULL, "down", 0);
	check_message(fd[0], NULL, "down", 0);
	put(fd[0], NULL, "up", 0);
	check_message(upper, NULL, "up", 0);
}

CASE(an_echo_below, "streamio(7I) I_LINK") {
	upper = open_stream("/dev/mux");
	int echo = open_stream("/dev/echo");
	must(ioctl(upper, I_LINK, echo));
	check_eq(write(upper, "around", 6), 6);
	check_read(upper, "around");
}

CASE(a_multiplexer_below_a_multiplexer, "streamio(7I) I_LINK") {
	int end = one_below(NULL), top = open_stream("/dev/mux");
	must(ioctl(top, I_LINK, upper));
	put(top, NULL, "down two", 0);
	check_message(end, NULL, "down two", 0);
	put(end, NULL, "up two", 0);
	check_message(top, NULL, "up two", 0);
}

/* --- a linked stream --- */

CASE(a_linked_stream_refuses, "read(2) EINVAL") {
	int lower;
	char c;
	struct message m;
	one_below(&lower);
	check_errno(read(lower, &c, 1), EINVAL);
	check_errno(write(lower, "x", 1), EINVAL);
	check_errno(get_any(lower, &m), EINVAL);
	check_errno(put_text(lower, "c", "d", 0, MSG_BAND), EINVAL);
}

CASE(ioctls_of_a_linked_stream, "streamio(7I) EINVAL") {
	int lower, n;
	one_below(&lower);
	check_errno(ioctl(lower, I_PUSH, "nullmod"), EINVAL);
	check_errno(ioctl(lower, I_NREAD, &n), EINVAL);
	check_errno(ioctl(lower, I_FLUSH, FLUSHRW), EINVAL);
}

CASE(a_linked_stream_is_none_to_poll, "poll(2) POLLNVAL") {
	int lower, end = one_below(&lower), echo = open_stream("/dev/echo"), set = must(epoll_create1(0));
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT};
	fd_set in;
	check_eq(epoll_ctl(set, EPOLL_CTL_ADD, lower, &e), 0);
	put(end, NULL, "up", 0);
	check_eq(events(lower, POLLIN | POLLOUT, PATIENCE), POLLNVAL);
	check_eq(events(lower, 0, PATIENCE), POLLNVAL);
	FD_ZERO(&in);
	FD_SET(lower, &in);
	check_errno(select(lower + 1, &in, NULL, NULL, NULL), EBADF);
	/* A set has no word for it. */
	check_eq(epoll_wait(set, &e, 1, PATIENCE), 1);
	check_eq(e.events, EPOLLERR);
	int id = must(ioctl(upper, I_PLINK, echo));
	check_eq(events(echo, POLLIN | POLLOUT, PATIENCE), POLLNVAL);
	check_eq(ioctl(upper, I_PUNLINK, id), 0);
	check_eq(events(echo, POLLIN | POLLOUT, 0), POLLOUT);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	check_eq(events(lower, POLLIN | POLLOUT, 0), POLLOUT);
}

CASE(a_stream_is_linked_once, "streamio(7I) I_LINK EINVAL") {
	int lower;
	one_below(&lower);
	check_errno(ioctl(upper, I_LINK, lower), EINVAL);
	int second = open_stream("/dev/mux");
	check_errno(ioctl(second, I_LINK, lower), EINVAL);
	check_errno(ioctl(second, I_PLINK, lower), EINVAL);
}

CASE(the_link_holds_the_stream, "close(2)") {
	int lower, end = one_below(&lower);
	close(lower);
	check_eq(events(end, POLLOUT, 50), POLLOUT);
	put(end, NULL, "still linked", 0);
	check_message(upper, NULL, "still linked", 0);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	char c;
	check_eq(read(end, &c, 1), 0);
}

CASE(unlinked_it_is_an_ordinary_stream_again, "streamio(7I) I_UNLINK") {
	int lower, end = one_below(&lower);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	put(end, "c", "direct", 2);
	check_message(lower, "c", "direct", 2);
	put(lower, NULL, "back", 0);
	check_message(end, NULL, "back", 0);
	push(lower, "nullmod");
	check_nothing(upper);
}

CASE(unlinking_one_of_two_stops_only_it, "streamio(7I) I_UNLINK") {
	int first, other, a = one_below(&first), b = link_pipe_below(upper, &other, NULL);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	put(upper, NULL, "to one", 0);
	check_message(b, NULL, "to one", 0);
	check_nothing(a);
}

CASE(muxid_all_unlinks_all, "streamio(7I) I_UNLINK MUXID_ALL") {
	int first, second, other, a = one_below(&first), b = link_pipe_below(upper, &other, &second);
	check_eq(ioctl(upper, I_UNLINK, MUXID_ALL), 0);
	put(first, NULL, "a", 0);
	put(second, NULL, "b", 0);
	check_message(a, NULL, "a", 0);
	check_message(b, NULL, "b", 0);
	check_errno(ioctl(upper, I_UNLINK, muxid), EINVAL);
}

CASE(close_above_unlinks, "close(2)") {
	int lower, end = one_below(&lower);
	close(upper);
	put(lower, NULL, "free", 0);
	check_message(end, NULL, "free", 0);
}

CASE(linking_again_after_unlinking, "streamio(7I) I_LINK") {
	int lower, end = one_below(&lower);
	for (int i = 0; i < 20; i++) {
		check_eq(ioctl(upper, I_UNLINK, muxid), 0);
		muxid = must(ioctl(upper, I_LINK, lower));
		put(upper, NULL, "again", 0);
		check_message(end, NULL, "again", 0);
	}
}

/* --- errors --- */

CASE(link_errors, "streamio(7I) I_LINK") {
	int fd[2], kernel[2];
	pipe_flags(fd, 0);
	upper = open_stream("/dev/mux");
	check_errno(ioctl(upper, I_LINK, -1), EBADF);
	check_errno(ioctl(upper, I_LINK, 9999), EBADF);
	must(pipe(kernel));
	check_errno(ioctl(upper, I_LINK, kernel[0]), EINVAL);
	int echo = open_stream("/dev/echo");
	check_errno(ioctl(echo, I_LINK, fd[1]), EINVAL);
	check_errno(ioctl(fd[0], I_LINK, echo), EINVAL);
	put(fd[0], NULL, "unharmed", 0);
	check_message(fd[1], NULL, "unharmed", 0);
}

CASE(a_stream_below_itself, "streamio(7I) I_LINK EINVAL") {
	upper = open_stream("/dev/mux");
	check_errno(ioctl(upper, I_LINK, upper), EINVAL);
}

CASE(a_cycle_of_two, "streamio(7I) I_LINK EINVAL") {
	int a = open_stream("/dev/mux"), b = open_stream("/dev/mux");
	must(ioctl(a, I_LINK, b));
	check_errno(ioctl(b, I_LINK, a), EINVAL);
}

CASE(unlink_errors, "streamio(7I) I_UNLINK EINVAL") {
	int fd[2];
	one_below(NULL);
	check_errno(ioctl(upper, I_UNLINK, muxid + 1000), EINVAL);
	check_errno(ioctl(upper, I_UNLINK, -5), EINVAL);
	check_errno(ioctl(upper, I_PUNLINK, muxid), EINVAL);
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_UNLINK, 1), EINVAL);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	check_errno(ioctl(upper, I_UNLINK, muxid), EINVAL);
}

CASE(link_after_a_hangup_below, "streamio(7I) I_UNLINK") {
	int lower, end = one_below(&lower);
	close(end);
	sleep_ms(20);
	check_eq(ioctl(upper, I_UNLINK, muxid), 0);
	char c;
	check_eq(read(lower, &c, 1), 0);
}

/* --- links that persist --- */

CASE(a_persistent_link_carries_data, "streamio(7I) I_PLINK") {
	int fd[2];
	pipe_flags(fd, 0);
	upper = open_stream("/dev/mux");
	int id = must(ioctl(upper, I_PLINK, fd[1]));
	put(upper, NULL, "down", 0);
	check_message(fd[0], NULL, "down", 0);
	check_errno(ioctl(upper, I_UNLINK, id), EINVAL);
	check_eq(ioctl(upper, I_PUNLINK, id), 0);
	put(fd[1], NULL, "free", 0);
	check_message(fd[0], NULL, "free", 0);
}

CASE(a_persistent_link_outlives_close, "streamio(7I) I_PLINK") {
	int fd[2];
	char c;
	pipe_flags(fd, 0);
	upper = open_stream("/dev/mux");
	int id = must(ioctl(upper, I_PLINK, fd[1]));
	close(upper);
	check_errno(read(fd[1], &c, 1), EINVAL);
	int other = open_stream("/dev/mux");
	check_eq(ioctl(other, I_PUNLINK, id), 0);
	put(fd[0], NULL, "free", 0);
	check_message(fd[1], NULL, "free", 0);
}

CASE(muxid_all_of_persistent_links, "streamio(7I) I_PUNLINK MUXID_ALL") {
	int a[2], b[2], fixed[2];
	pipe_flags(a, 0);
	pipe_flags(b, 0);
	pipe_flags(fixed, 0);
	upper = open_stream("/dev/mux");
	must(ioctl(upper, I_PLINK, a[1]));
	must(ioctl(upper, I_PLINK, b[1]));
	must(ioctl(upper, I_LINK, fixed[1]));
	check_eq(ioctl(upper, I_PUNLINK, MUXID_ALL), 0);
	put(a[1], NULL, "a", 0);
	check_message(a[0], NULL, "a", 0);
	put(b[1], NULL, "b", 0);
	check_message(b[0], NULL, "b", 0);
	char c;
	check_errno(read(fixed[1], &c, 1), EINVAL);
}

CASE(plink_errors, "streamio(7I) I_PLINK") {
	int kernel[2];
	upper = open_stream("/dev/mux");
	must(pipe(kernel));
	check_errno(ioctl(upper, I_PLINK, -1), EBADF);
	check_errno(ioctl(upper, I_PLINK, kernel[1]), EINVAL);
	check_errno(ioctl(upper, I_PLINK, upper), EINVAL);
	check_errno(ioctl(upper, I_PUNLINK, 4711), EINVAL);
}

CASE(fifty_below, "streamio(7I) I_LINK") {
	int end[50], id;
	upper = open_stream("/dev/mux");
	for (int i = 0; i < 50; i++)
		end[i] = link_pipe_below(upper, &id, NULL);
	for (int round = 0; round < 10; round++) {
		put(upper, NULL, "to all", 0);
		for (int i = 0; i < 50; i++)
			check_message(end[i], NULL, "to all", 0);
	}
	for (int i = 0; i < 50; i++)
		put(end[i], NULL, "from one", 0);
	for (int i = 0; i < 50; i++)
		check_message(upper, NULL, "from one", 0);
}

CASES(ENTRY(data_goes_down), ENTRY(data_comes_up), ENTRY(data_both_ways_many_times), ENTRY(data_from_another_process),
      ENTRY(two_below_get_copies), ENTRY(two_above_have_their_own_below), ENTRY(a_blocked_reader_above_is_woken),
      ENTRY(poll_above_sees_what_comes_up), ENTRY(a_full_multiplexer_loses_nothing), ENTRY(modules_below_and_above),
      ENTRY(an_echo_below), ENTRY(a_multiplexer_below_a_multiplexer), ENTRY(a_linked_stream_refuses), ENTRY(a_linked_stream_is_none_to_poll),
      ENTRY(ioctls_of_a_linked_stream), ENTRY(a_stream_is_linked_once), ENTRY(the_link_holds_the_stream),
      ENTRY(unlinked_it_is_an_ordinary_stream_again), ENTRY(unlinking_one_of_two_stops_only_it), ENTRY(muxid_all_unlinks_all),
      ENTRY(close_above_unlinks), ENTRY(linking_again_after_unlinking), ENTRY(link_errors), ENTRY(a_stream_below_itself),
      ENTRY(a_cycle_of_two), ENTRY(unlink_errors), ENTRY(link_after_a_hangup_below), ENTRY(a_persistent_link_carries_data),
      ENTRY(a_persistent_link_outlives_close), ENTRY(muxid_all_of_persistent_links), ENTRY(plink_errors), ENTRY(fifty_below))
