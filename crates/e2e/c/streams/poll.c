/* Readiness: poll, select and epoll on pipes, driver streams and kernel descriptors, in one set and while blocked. */
#include "peers.h"
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>

static int fd[2];

static void write_later(void *unused) {
	(void)unused;
	sleep_ms(50);
	put(fd[1], NULL, "later", 0);
}
static void close_later(void *unused) {
	(void)unused;
	sleep_ms(50);
	close(fd[1]);
}

/* --- poll --- */

CASE(an_idle_pipe_is_writable_only, "poll(2)") {
	pipe_flags(fd, 0);
	check_eq(events(fd[0], POLLIN | POLLPRI | POLLOUT | POLLRDNORM | POLLRDBAND | POLLWRNORM, 0), POLLOUT | POLLWRNORM);
}

CASE(poll_gives_only_what_was_asked, "poll(2)") {
	pipe_flags(fd, 0);
	put(fd[1], NULL, "x", 0);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	check_eq(events(fd[0], POLLRDNORM, 0), POLLRDNORM);
	check_eq(events(fd[0], POLLOUT, 0), POLLOUT);
	check_eq(events(fd[0], 0, 0), 0);
}

CASE(poll_times_out, "poll(2)") {
	pipe_flags(fd, 0);
	long begin = now_ms();
	check_eq(events(fd[0], POLLIN, 60), 0);
	long took = now_ms() - begin;
	check(took >= 59 && took < 5000);
	begin = now_ms();
	check_eq(events(fd[0], POLLIN, 0), 0);
	check(now_ms() - begin < 1000);
}

CASE(poll_is_woken_by_a_thread, "poll(2)") {
	pipe_flags(fd, 0);
	pthread_t t = start(write_later, NULL);
	check_eq(events(fd[0], POLLIN, -1), POLLIN);
	finish(t);
	check_message(fd[0], NULL, "later", 0);
}

CASE(poll_is_woken_by_a_process, "poll(2)") {
	pipe_flags(fd, 0);
	pid_t child = spawn(write_later, NULL);
	check_eq(events(fd[0], POLLIN, -1), POLLIN);
	join(child);
	check_message(fd[0], NULL, "later", 0);
}

CASE(poll_is_woken_by_a_hangup, "poll(2) POLLHUP") {
	pipe_flags(fd, 0);
	pthread_t t = start(close_later, NULL);
	check(events(fd[0], POLLIN, PATIENCE) & POLLHUP);
	finish(t);
}

CASE(pollhup_excludes_pollout, "poll(2) POLLHUP") {
	pipe_flags(fd, 0);
	close(fd[1]);
	check_eq(events(fd[0], POLLOUT | POLLWRNORM | POLLWRBAND, PATIENCE), POLLHUP);
	check_eq(events(fd[0], 0, PATIENCE), POLLHUP);
}

CASE(poll_of_a_closed_descriptor, "poll(2) POLLNVAL") {
	pipe_flags(fd, 0);
	struct pollfd p[3] = {{fd[0], POLLOUT, 0}, {fd[1], POLLIN, 0}, {-1, POLLIN, 77}};
	close(fd[1]);
	int other = must(dup(0));
	close(other);
	p[1].fd = other;
	check_eq(poll(p, 3, 0), 2);
	check_eq(p[1].revents, POLLNVAL);
	check_eq(p[2].revents, 0);
}

CASE(poll_of_a_mixed_set, "poll(2)") {
	int kernel[2], pair[2], echo = open_stream("/dev/echo");
	pipe_flags(fd, 0);
	must(pipe(kernel));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	struct pollfd p[4] = {{fd[0], POLLIN, 0}, {kernel[0], POLLIN, 0}, {pair[0], POLLIN, 0}, {echo, POLLIN, 0}};
	check_eq(poll(p, 4, 0), 0);
	check_eq(write(kernel[1], "k", 1), 1);
	check_eq(poll(p, 4, PATIENCE), 1);
	check_eq(p[1].revents, POLLIN);
	check_eq(p[0].revents, 0);
	put(fd[1], NULL, "s", 0);
	check_eq(poll(p, 4, PATIENCE), 2);
	check_eq(p[0].revents, POLLIN);
	check_eq(write(pair[1], "p", 1), 1);
	check_eq(write(echo, "e", 1), 1);
	check_eq(poll(p, 4, PATIENCE), 4);
	check_eq(p[2].revents, POLLIN);
	check_eq(p[3].revents, POLLIN);
}

static int kernel_pipe[2];
static void write_kernel_later(void *unused) {
	(void)unused;
	sleep_ms(50);
	check_eq(write(kernel_pipe[1], "k", 1), 1);
}

CASE(a_kernel_descriptor_wakes_a_mixed_poll, "poll(2)") {
	pipe_flags(fd, 0);
	must(pipe(kernel_pipe));
	struct pollfd p[2] = {{fd[0], POLLIN, 0}, {kernel_pipe[0], POLLIN, 0}};
	pthread_t t = start(write_kernel_later, NULL);
	check_eq(poll(p, 2, PATIENCE), 1);
	check_eq(p[1].revents, POLLIN);
	finish(t);
}

CASE(a_stream_wakes_a_mixed_poll, "poll(2)") {
	pipe_flags(fd, 0);
	must(pipe(kernel_pipe));
	struct pollfd p[2] = {{kernel_pipe[0], POLLIN, 0}, {fd[0], POLLIN, 0}};
	pid_t child = spawn(write_later, NULL);
	check_eq(poll(p, 2, PATIENCE), 1);
	check_eq(p[1].revents, POLLIN);
	join(child);
}

static int echo_fd;
static void write_echo_later(void *unused) {
	(void)unused;
	sleep_ms(50);
	put(echo_fd, NULL, "e", 0);
}

CASE(a_driver_stream_wakes_poll, "poll(2)") {
	echo_fd = open_stream("/dev/echo");
	check_eq(events(echo_fd, POLLIN | POLLOUT, 0), POLLOUT);
	pthread_t t = start(write_echo_later, NULL);
	check_eq(events(echo_fd, POLLIN, PATIENCE), POLLIN);
	finish(t);
}

CASE(poll_through_a_module_is_woken, "poll(2)") {
	pipe_flags(fd, 0);
	push(fd[0], "bufmod");
	push(fd[1], "bufmod");
	pthread_t t = start(write_later, NULL);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	finish(t);
	check_message(fd[0], NULL, "later", 0);
}

CASE(poll_through_a_module_is_woken_by_a_process, "poll(2)") {
	pipe_flags(fd, 0);
	push(fd[0], "bufmod");
	pid_t child = spawn(write_later, NULL);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	join(child);
	check_message(fd[0], NULL, "later", 0);
}

#define CROWD 200
CASE(poll_of_two_hundred_streams, "poll(2)") {
	static int ends[CROWD][2];
	static struct pollfd p[CROWD];
	for (int i = 0; i < CROWD; i++) {
		pipe_flags(ends[i], 0);
		p[i] = (struct pollfd){ends[i][0], POLLIN, 0};
	}
	for (int i = 0; i < CROWD; i++) {
		put(ends[i][1], NULL, "x", 0);
		check_eq(poll(p, CROWD, PATIENCE), 1);
		check_eq(p[i].revents, POLLIN);
		check_message(ends[i][0], NULL, "x", 0);
	}
	for (int i = 0; i < CROWD; i += 2)
		put(ends[i][1], NULL, "x", 0);
	check_eq(poll(p, CROWD, PATIENCE), CROWD / 2);
}

CASE(the_same_stream_twice_in_a_set, "poll(2)") {
	pipe_flags(fd, 0);
	put(fd[1], NULL, "x", 0);
	struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[0], POLLOUT, 0}};
	check_eq(poll(p, 2, PATIENCE), 2);
	check_eq(p[0].revents, POLLIN);
	check_eq(p[1].revents, POLLOUT);
}

static volatile int woken;
static void poll_thread(void *unused) {
	(void)unused;
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	__atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
}

CASE(all_pollers_of_a_stream_are_woken, "poll(2)") {
	pthread_t t[4];
	pipe_flags(fd, 0);
	for (int i = 0; i < 4; i++)
		t[i] = start(poll_thread, NULL);
	stays_false(woken);
	put(fd[1], NULL, "x", 0);
	await(woken == 4);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
}

CASE(a_passed_descriptor_is_something_to_read, "poll(2)") {
	pipe_flags(fd, 0);
	check_eq(ioctl(fd[1], I_SENDFD, 0), 0);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
}

CASE(ppoll_lets_a_signal_through, "ppoll(2)") {
	sigset_t blocked, none;
	struct timespec patience = {PATIENCE / 1000, 0};
	pipe_flags(fd, 0);
	catch_signal(SIGUSR1);
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	check_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	kill(getpid(), SIGUSR1);
	struct pollfd p = {fd[0], POLLIN, 0};
	check_errno(ppoll(&p, 1, &patience, &none), EINTR);
	check_eq(caught[SIGUSR1], 1);
	put(fd[1], NULL, "x", 0);
	check_eq(ppoll(&p, 1, &patience, NULL), 1);
}

/* --- select --- */

static int selected(int end, int *r, int *w, int *x, int ms) {
	fd_set in, out, other;
	struct timeval t = {ms / 1000, ms % 1000 * 1000};
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&other);
	FD_SET(end, &in), FD_SET(end, &out), FD_SET(end, &other);
	int n = select(end + 1, r ? &in : NULL, w ? &out : NULL, x ? &other : NULL, &t);
	if (r)
		*r = FD_ISSET(end, &in) != 0;
	if (w)
		*w = FD_ISSET(end, &out) != 0;
	if (x)
		*x = FD_ISSET(end, &other) != 0;
	return n;
}

CASE(select_reads_and_writes, "select(2)") {
	int r, w, x;
	pipe_flags(fd, O_NONBLOCK);
	check_eq(selected(fd[0], &r, &w, &x, 0), 1);
	check(!r && w && !x);
	put(fd[1], NULL, "x", 0);
	check_eq(selected(fd[0], &r, &w, &x, PATIENCE), 2);
	check(r && w && !x);
	fill(fd[1], 1024);
	check_eq(selected(fd[1], NULL, &w, NULL, 0), 0);
}

CASE(select_of_high_priority, "select(2)") {
	int x;
	pipe_flags(fd, 0);
	check_eq(selected(fd[0], NULL, NULL, &x, 0), 0);
	put_high(fd[1], "now", NULL);
	check_eq(selected(fd[0], NULL, NULL, &x, PATIENCE), 1);
	check(x);
}

CASE(select_after_a_hangup_reads, "select(2)") {
	int r;
	pipe_flags(fd, 0);
	close(fd[1]);
	check_eq(selected(fd[0], &r, NULL, NULL, PATIENCE), 1);
	check(r);
}

CASE(select_is_woken, "select(2)") {
	int r;
	pipe_flags(fd, 0);
	pid_t child = spawn(write_later, NULL);
	check_eq(selected(fd[0], &r, NULL, NULL, PATIENCE), 1);
	join(child);
}

CASE(select_of_a_mixed_set, "select(2)") {
	fd_set in;
	pipe_flags(fd, 0);
	must(pipe(kernel_pipe));
	echo_fd = open_stream("/dev/echo");
	put(echo_fd, NULL, "e", 0);
	check_eq(write(kernel_pipe[1], "k", 1), 1);
	FD_ZERO(&in);
	FD_SET(fd[0], &in), FD_SET(kernel_pipe[0], &in), FD_SET(echo_fd, &in);
	check_eq(select(echo_fd + 1, &in, NULL, NULL, &(struct timeval){PATIENCE / 1000, 0}), 2);
	check(!FD_ISSET(fd[0], &in) && FD_ISSET(kernel_pipe[0], &in) && FD_ISSET(echo_fd, &in));
}

CASE(pselect_times_out_and_is_woken, "pselect(2)") {
	fd_set in;
	struct timespec short_time = {0, 20000000}, patience = {PATIENCE / 1000, 0};
	pipe_flags(fd, 0);
	FD_ZERO(&in);
	FD_SET(fd[0], &in);
	check_eq(pselect(fd[0] + 1, &in, NULL, NULL, &short_time, NULL), 0);
	check(!FD_ISSET(fd[0], &in));
	pthread_t t = start(write_later, NULL);
	FD_SET(fd[0], &in);
	check_eq(pselect(fd[0] + 1, &in, NULL, NULL, &patience, NULL), 1);
	check(FD_ISSET(fd[0], &in));
	finish(t);
}

/* --- epoll --- */

static int set;
static void add(int end, unsigned wanted) {
	struct epoll_event e = {.events = wanted, .data.u64 = 0x100000000ull + end};
	if (!set)
		set = must(epoll_create1(0));
	check_eq(epoll_ctl(set, EPOLL_CTL_ADD, end, &e), 0);
}

/* The events of the one descriptor that is ready; 0: none is. */
static unsigned ready(int end, int ms) {
	struct epoll_event e[8];
	int n = epoll_wait(set, e, 8, ms);
	if (n == 0)
		return 0;
	if (n != 1 || e[0].data.u64 != 0x100000000ull + end)
		fail("epoll_wait: expected the one descriptor %d, saw result %d, data %llx, errno %d", end, n,
		     n > 0 ? (unsigned long long)e[0].data.u64 : 0, errno);
	return e[0].events;
}

CASE(epoll_level_triggered, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	check_eq(ready(fd[0], 0), 0);
	put(fd[1], NULL, "one", 0);
	put(fd[1], NULL, "two", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_message(fd[0], NULL, "one", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_message(fd[0], NULL, "two", 0);
	check_eq(ready(fd[0], 0), 0);
}

CASE(epoll_edge_triggered, "epoll(7) EPOLLET") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN | EPOLLET);
	put(fd[1], NULL, "one", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_eq(ready(fd[0], 30), 0);
	put(fd[1], NULL, "two", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_eq(ready(fd[0], 30), 0);
	check_message(fd[0], NULL, "one", 0);
	check_message(fd[0], NULL, "two", 0);
	check_eq(ready(fd[0], 30), 0);
	put(fd[1], NULL, "three", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
}

CASE(epoll_edge_triggered_writing, "epoll(7) EPOLLET") {
	pipe_flags(fd, O_NONBLOCK);
	add(fd[1], EPOLLOUT | EPOLLET);
	check_eq(ready(fd[1], 1000), EPOLLOUT);
	check_eq(ready(fd[1], 30), 0);
	int n = fill(fd[1], 1024);
	check_eq(ready(fd[1], 30), 0);
	drain(fd[0], 1024, 0, n);
	check_eq(ready(fd[1], 1000), EPOLLOUT);
}

CASE(epoll_level_triggered_writing, "epoll(7)") {
	pipe_flags(fd, O_NONBLOCK);
	add(fd[1], EPOLLOUT);
	check_eq(ready(fd[1], 1000), EPOLLOUT);
	check_eq(ready(fd[1], 1000), EPOLLOUT);
	int n = fill(fd[1], 1024);
	check_eq(ready(fd[1], 30), 0);
	drain(fd[0], 1024, 0, n);
	check_eq(ready(fd[1], 1000), EPOLLOUT);
}

CASE(epoll_oneshot, "epoll(7) EPOLLONESHOT") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN | EPOLLONESHOT);
	put(fd[1], NULL, "one", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	put(fd[1], NULL, "two", 0);
	check_eq(ready(fd[0], 30), 0);
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 0x100000000ull + fd[0]};
	check_eq(epoll_ctl(set, EPOLL_CTL_MOD, fd[0], &e), 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
}

CASE(epoll_mod_and_del, "epoll_ctl(2)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	put(fd[1], NULL, "x", 0);
	struct epoll_event e = {.events = EPOLLOUT, .data.u64 = 0x100000000ull + fd[0]};
	check_eq(epoll_ctl(set, EPOLL_CTL_MOD, fd[0], &e), 0);
	check_eq(ready(fd[0], 1000), EPOLLOUT);
	check_errno(epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &e), EEXIST);
	check_eq(epoll_ctl(set, EPOLL_CTL_DEL, fd[0], NULL), 0);
	check_eq(ready(fd[0], 30), 0);
	check_errno(epoll_ctl(set, EPOLL_CTL_DEL, fd[0], NULL), ENOENT);
	check_errno(epoll_ctl(set, EPOLL_CTL_MOD, fd[0], &e), ENOENT);
}

CASE(epoll_is_woken, "epoll_wait(2)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	pthread_t t = start(write_later, NULL);
	check_eq(ready(fd[0], 5000), EPOLLIN);
	finish(t);
	check_message(fd[0], NULL, "later", 0);
	pid_t child = spawn(write_later, NULL);
	check_eq(ready(fd[0], 5000), EPOLLIN);
	join(child);
}

CASE(epoll_of_a_hangup, "epoll(7) EPOLLHUP") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN | EPOLLOUT);
	check_eq(ready(fd[0], 0), EPOLLOUT);
	close(fd[1]);
	check_eq(ready(fd[0], 1000) & (EPOLLHUP | EPOLLOUT), EPOLLHUP);
}

CASE(epoll_of_bands_and_priority, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLPRI | EPOLLRDBAND | EPOLLRDNORM);
	put(fd[1], NULL, "x", 4);
	check_eq(ready(fd[0], 1000), EPOLLRDBAND);
	check_message(fd[0], NULL, "x", 4);
	put_high(fd[1], "now", NULL);
	check_eq(ready(fd[0], 1000), EPOLLPRI);
	check_message(fd[0], "now", NULL, -1);
	put(fd[1], NULL, "x", 0);
	check_eq(ready(fd[0], 1000), EPOLLRDNORM);
}

CASE(epoll_forgets_what_was_closed, "close(2)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	put(fd[1], NULL, "x", 0);
	close(fd[0]);
	check_eq(ready(fd[0], 30), 0);
	int old = fd[0];
	pipe_flags(fd, 0);
	put(fd[1], NULL, "x", 0);
	check_eq(ready(old, 30), 0);
}

CASE(epoll_of_a_driver_stream, "epoll(7)") {
	echo_fd = open_stream("/dev/echo");
	add(echo_fd, EPOLLIN);
	check_eq(ready(echo_fd, 0), 0);
	pthread_t t = start(write_echo_later, NULL);
	check_eq(ready(echo_fd, 5000), EPOLLIN);
	finish(t);
	check_message(echo_fd, NULL, "e", 0);
	check_eq(ready(echo_fd, 0), 0);
}

CASE(epoll_of_a_driver_stream_edge_triggered, "epoll(7) EPOLLET") {
	echo_fd = open_stream("/dev/echo");
	add(echo_fd, EPOLLIN | EPOLLET);
	for (int i = 0; i < 3; i++) {
		put(echo_fd, NULL, "e", 0);
		check_eq(ready(echo_fd, 1000), EPOLLIN);
		check_eq(ready(echo_fd, 30), 0);
		check_message(echo_fd, NULL, "e", 0);
	}
}

CASE(epoll_of_a_queued_pipe, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	push(fd[0], "bufmod");
	put(fd[1], NULL, "x", 0);
	check_eq(ready(fd[0], 5000), EPOLLIN);
	check_message(fd[0], NULL, "x", 0);
	pid_t child = spawn(write_later, NULL);
	check_eq(ready(fd[0], 5000), EPOLLIN);
	join(child);
	check_message(fd[0], NULL, "later", 0);
	pop(fd[0]);
	put(fd[1], NULL, "y", 0);
	check_eq(ready(fd[0], 5000), EPOLLIN);
}

CASE(epoll_of_a_mixed_set, "epoll(7)") {
	struct epoll_event e[4];
	pipe_flags(fd, 0);
	must(pipe(kernel_pipe));
	echo_fd = open_stream("/dev/echo");
	add(fd[0], EPOLLIN);
	add(kernel_pipe[0], EPOLLIN);
	add(echo_fd, EPOLLIN);
	check_eq(write(kernel_pipe[1], "k", 1), 1);
	check_eq(ready(kernel_pipe[0], 1000), EPOLLIN);
	put(fd[1], NULL, "x", 0);
	put(echo_fd, NULL, "e", 0);
	check_eq(epoll_wait(set, e, 4, PATIENCE), 3);
	check_eq(epoll_wait(set, e, 2, PATIENCE), 2);
	char c;
	check_eq(read(kernel_pipe[0], &c, 1), 1);
	check_message(fd[0], NULL, "x", 0);
	check_eq(ready(echo_fd, 1000), EPOLLIN);
}

CASE(a_stream_in_two_sets, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	int first = set;
	set = 0;
	add(fd[0], EPOLLIN | EPOLLET);
	put(fd[1], NULL, "x", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_eq(ready(fd[0], 30), 0);
	set = first;
	check_eq(ready(fd[0], 1000), EPOLLIN);
	check_eq(ready(fd[0], 1000), EPOLLIN);
}

static void wait_in_child(void *unused) {
	(void)unused;
	check_eq(ready(fd[0], 5000), EPOLLIN);
	check_message(fd[0], NULL, "for the child", 0);
}

CASE(a_set_shared_over_fork, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	pid_t child = spawn(wait_in_child, NULL);
	sleep_ms(30);
	put(fd[1], NULL, "for the child", 0);
	join(child);
	put(fd[1], NULL, "x", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
}

static void put_in_by_child(void *unused) {
	(void)unused;
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	put(fd[1], NULL, "x", 0);
	check_eq(ready(fd[0], 1000), EPOLLIN);
}
CASE(a_child_puts_a_stream_into_its_parents_set, "epoll(7)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN);
	join(spawn(put_in_by_child, NULL));
}

static void ping_pong(void *unused) {
	(void)unused;
	for (int i = 0; i < 3000; i++) {
		int seen;
		check_eq(events(fd[1], POLLIN, PATIENCE), POLLIN);
		check_eq(read(fd[1], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
		check_eq(write(fd[1], &i, sizeof i), (int)sizeof i);
	}
}

CASE(no_wake_up_is_lost, "epoll_wait(2)") {
	pipe_flags(fd, 0);
	add(fd[0], EPOLLIN | EPOLLET);
	pid_t child = spawn(ping_pong, NULL);
	for (int i = 0; i < 3000; i++) {
		int seen;
		check_eq(write(fd[0], &i, sizeof i), (int)sizeof i);
		check_eq(ready(fd[0], 5000), EPOLLIN);
		check_eq(read(fd[0], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
	}
	join(child);
}

/* --- the message in front --- */

/* What poll, select and epoll say of `end`: bits of poll(2). */
static void says(int end, int expected, int line) {
	const int all = POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND;
	struct epoll_event asked = {.events = all}, e = {0};
	int r, x, one = must(epoll_create1(0));
	check_eq(epoll_ctl(one, EPOLL_CTL_ADD, end, &asked), 0);
	int polled = events(end, all, expected ? 5000 : 0);
	if (polled != expected)
		fail("line %d: poll: expected 0x%x, saw 0x%x", line, expected, polled);
	selected(end, &r, NULL, &x, 0);
	if (r != !!(expected & POLLIN) || x != !!(expected & POLLPRI))
		fail("line %d: select: expected 0x%x, saw reading %d, exception %d", line, expected, r, x);
	epoll_wait(one, &e, 1, 0);
	if (e.events != (unsigned)expected)
		fail("line %d: epoll: expected 0x%x, saw 0x%x", line, expected, e.events);
	close(one);
}
#define check_says(END, EXPECTED) says(END, EXPECTED, __LINE__)

/* High priority comes after a band, a band after an ordinary message: each is in front until it is taken. */
static void the_front_is_told(int reader, int writer) {
	check_says(reader, 0);
	put(writer, NULL, "ordinary", 0);
	check_says(reader, POLLIN | POLLRDNORM);
	put(writer, "c", "banded", 3);
	await(events(reader, POLLRDBAND, 0));
	check_says(reader, POLLIN | POLLRDBAND);
	check_eq(events(reader, POLLRDNORM, 0), 0);
	put_high(writer, "now", NULL);
	await(events(reader, POLLPRI, 0));
	check_says(reader, POLLPRI);
	check_eq(events(reader, POLLIN | POLLRDNORM | POLLRDBAND, 0), 0);
	check_message(reader, "now", NULL, -1);
	check_says(reader, POLLIN | POLLRDBAND);
	check_message(reader, "c", "banded", 3);
	check_says(reader, POLLIN | POLLRDNORM);
	check_message(reader, NULL, "ordinary", 0);
	check_says(reader, 0);
}

CASE(the_front_of_a_pipe, "poll(2) POLLPRI") {
	pipe_flags(fd, 0);
	the_front_is_told(fd[0], fd[1]);
}

CASE(the_front_of_a_pipe_with_a_module, "poll(2) POLLPRI") {
	pipe_flags(fd, 0);
	push(fd[0], "bufmod");
	the_front_is_told(fd[0], fd[1]);
	pop(fd[0]);
	push(fd[1], "bufmod");
	the_front_is_told(fd[0], fd[1]);
}

CASE(the_front_of_a_fifo, "poll(2) POLLPRI") {
	int f = open_stream("/dev/fifo");
	the_front_is_told(f, f);
}

CASE(the_front_of_a_drivers_stream, "poll(2) POLLPRI") {
	int f = open_stream("/dev/echo");
	the_front_is_told(f, f);
	push(f, "nullmod");
	the_front_is_told(f, f);
}

/* What is left of a message lies at the head, and what came meanwhile in the ring. */
CASE(the_front_while_a_message_is_half_taken, "poll(2) POLLPRI") {
	char c[2];
	struct strbuf some = in_buf(c, 2);
	int flags = 0;
	pipe_flags(fd, 0);
	put(fd[1], "c", "banded", 3);
	check_eq(getmsg(fd[0], NULL, &some, &flags), MORECTL | MOREDATA);
	check_says(fd[0], POLLIN | POLLRDBAND);
	put(fd[1], NULL, "ordinary", 0);
	check_says(fd[0], POLLIN | POLLRDBAND);
	put_high(fd[1], "now", NULL);
	check_says(fd[0], POLLPRI);
	check_message(fd[0], "now", NULL, -1);
	check_message(fd[0], "c", "nded", 3);
	check_says(fd[0], POLLIN | POLLRDNORM);
}

CASES(ENTRY(an_idle_pipe_is_writable_only), ENTRY(poll_gives_only_what_was_asked), ENTRY(poll_times_out),
      ENTRY(poll_is_woken_by_a_thread), ENTRY(poll_is_woken_by_a_process), ENTRY(poll_is_woken_by_a_hangup),
      ENTRY(pollhup_excludes_pollout), ENTRY(poll_of_a_closed_descriptor), ENTRY(poll_of_a_mixed_set),
      ENTRY(a_kernel_descriptor_wakes_a_mixed_poll), ENTRY(a_stream_wakes_a_mixed_poll), ENTRY(a_driver_stream_wakes_poll),
      ENTRY(poll_through_a_module_is_woken), ENTRY(poll_through_a_module_is_woken_by_a_process),
      ENTRY(poll_of_two_hundred_streams), ENTRY(the_same_stream_twice_in_a_set), ENTRY(all_pollers_of_a_stream_are_woken),
      ENTRY(a_passed_descriptor_is_something_to_read), ENTRY(ppoll_lets_a_signal_through), ENTRY(select_reads_and_writes),
      ENTRY(select_of_high_priority), ENTRY(select_after_a_hangup_reads), ENTRY(select_is_woken), ENTRY(select_of_a_mixed_set),
      ENTRY(pselect_times_out_and_is_woken), ENTRY(epoll_level_triggered), ENTRY(epoll_edge_triggered),
      ENTRY(epoll_edge_triggered_writing), ENTRY(epoll_level_triggered_writing), ENTRY(epoll_oneshot), ENTRY(epoll_mod_and_del),
      ENTRY(epoll_is_woken), ENTRY(epoll_of_a_hangup), ENTRY(epoll_of_bands_and_priority), ENTRY(epoll_forgets_what_was_closed),
      ENTRY(epoll_of_a_driver_stream), ENTRY(epoll_of_a_driver_stream_edge_triggered), ENTRY(epoll_of_a_queued_pipe),
      ENTRY(epoll_of_a_mixed_set), ENTRY(a_stream_in_two_sets), ENTRY(a_set_shared_over_fork),
      ENTRY(a_child_puts_a_stream_into_its_parents_set), ENTRY(no_wake_up_is_lost),
      ENTRY(the_front_of_a_pipe), ENTRY(the_front_of_a_pipe_with_a_module), ENTRY(the_front_of_a_fifo),
      ENTRY(the_front_of_a_drivers_stream), ENTRY(the_front_while_a_message_is_half_taken))
