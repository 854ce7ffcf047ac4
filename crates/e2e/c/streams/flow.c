/* Flow control: filling, the water marks, waiting writers, and what is not subject to it. */
#include "peers.h"

#define SIZE 1024

CASE(a_pipe_holds_64_kib_then_eagain, "write(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int n = fill(fd[1], SIZE);
	check(n * SIZE >= 65536);
	check_errno(write(fd[1], "x", 1), EAGAIN);
	drain(fd[0], SIZE, 0, n);
	check_errno(read(fd[0], &n, 1), EAGAIN);
}

CASE(putmsg_to_a_full_pipe_is_eagain, "putmsg(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int n = fill(fd[1], SIZE);
	struct strbuf data = out_buf("data", 4), ctl = out_buf("ctl", 3);
	check_errno(putmsg(fd[1], NULL, &data, 0), EAGAIN);
	check_errno(putmsg(fd[1], &ctl, &data, 0), EAGAIN);
	check_errno(putpmsg(fd[1], &ctl, &data, 0, MSG_BAND), EAGAIN);
	drain(fd[0], SIZE, 0, n);
	check_nothing(fd[0]);
}

CASE(writev_to_a_full_pipe_is_eagain, "writev(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	fill(fd[1], SIZE);
	struct iovec v[2] = {{"ab", 2}, {"cd", 2}};
	check_errno(writev(fd[1], v, 2), EAGAIN);
}

/* Reads until there is room again: says how many messages that took. */
static int read_until_room(int reader, int writer, int n) {
	for (int i = 0; i < n; i++) {
		int room = canput(writer, 0);
		check_eq(writable(writer) != 0, room);
		if (room)
			return i;
		check_errno(write(writer, "x", 1), EAGAIN);
		take(reader, SIZE, i);
	}
	check_eq(canput(writer, 0), 1);
	return n;
}

CASE(a_full_pipe_stays_full_until_the_low_water_mark, "streamio(7I) I_CANPUT") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int n = fill(fd[1], SIZE);
	int taken = read_until_room(fd[0], fd[1], n);
	check(taken > 1);
	check_eq(fill_from(fd[1], SIZE, n) >= taken / 2, 1);
}

CASE(each_round_of_filling_takes_as_much, "write(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int first = 0, least = INT_MAX, most = 0;
	for (int round = 0; round < 20; round++) {
		int n = fill_from(fd[1], SIZE, first);
		drain(fd[0], SIZE, first, first + n);
		first += n;
		least = n < least ? n : least, most = n > most ? n : most;
	}
	check(least * SIZE >= 65536);
	check(most - least <= 2);
}

CASE(canput_says_1_then_0, "streamio(7I) I_CANPUT") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	check_eq(canput(fd[1], 0), 1);
	fill(fd[1], SIZE);
	check_eq(canput(fd[1], 0), 0);
	check_eq(canput(fd[0], 0), 1);
}

CASE(pollout_goes_and_comes_with_room, "poll(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	check_eq(events(fd[1], POLLOUT | POLLWRNORM, 0), POLLOUT | POLLWRNORM);
	int n = fill(fd[1], SIZE);
	check_eq(events(fd[1], POLLOUT | POLLWRNORM, 0), 0);
	drain(fd[0], SIZE, 0, n);
	check_eq(events(fd[1], POLLOUT | POLLWRNORM, 0), POLLOUT | POLLWRNORM);
}

CASE(a_full_direction_leaves_the_other_alone, "streamio(7I)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int n = fill(fd[1], SIZE);
	check_eq(write(fd[0], "other way", 9), 9);
	check_read(fd[1], "other way");
	check_errno(write(fd[1], "x", 1), EAGAIN);
	int back = fill(fd[0], SIZE);
	drain(fd[0], SIZE, 0, n);
	check_errno(write(fd[0], "x", 1), EAGAIN);
	drain(fd[1], SIZE, 0, back);
}

CASE(messages_of_one_byte_fill_it_too, "write(2)") {
	int fd[2];
	char c;
	pipe_flags(fd, O_NONBLOCK);
	int n = 0;
	for (; write(fd[1], &(char){n % 251}, 1) == 1; n++)
		check(n < 1000000);
	check_eq(errno, EAGAIN);
	for (int i = 0; i < n; i++) {
		check_eq(read(fd[0], &c, 1), 1);
		check_eq((unsigned char)c, i % 251);
	}
	check_errno(read(fd[0], &c, 1), EAGAIN);
}

CASE(a_message_goes_in_whole_or_not_at_all, "putmsg(2)") {
	int fd[2], n = 0;
	char buf[8000];
	struct message m;
	pipe_flags(fd, O_NONBLOCK);
	memset(buf, 'w', sizeof buf);
	struct strbuf data = out_buf(buf, sizeof buf);
	while (putmsg(fd[1], NULL, &data, 0) == 0)
		n++;
	check_eq(errno, EAGAIN);
	check(n >= 8);
	for (int i = 0; i < n; i++) {
		check_eq(get_any(fd[0], &m), 0);
		check_eq(m.data_len, (int)sizeof buf);
	}
	check_errno(get_any(fd[0], &m), EAGAIN);
}

CASE(a_long_nonblocking_write_is_cut_short, "write(2)") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	size_t size = 2 << 20;
	char *buf = malloc(size), *back = malloc(size);
	for (size_t i = 0; i < size; i++)
		buf[i] = i * 7 / 5;
	ssize_t n = must(write(fd[1], buf, size));
	check(n > 0 && n < (ssize_t)size);
	ssize_t got = 0, r;
	while (got < n && (r = must(read(fd[0], back + got, size - got))) > 0)
		got += r;
	check_eq(got, n);
	check_bytes(back, buf, n);
	check_errno(read(fd[0], back, 1), EAGAIN);
}

/* --- waiting for room --- */

static int ends[2];
static volatile int done, messages;

static void write_one(void *unused) {
	(void)unused;
	char buf[SIZE];
	memset(buf, 'f', SIZE);
	memcpy(buf, (const int *)&messages, sizeof messages);
	check_eq(write(ends[1], buf, SIZE), SIZE);
	done = 1;
}

/* A full pipe whose writing end blocks: `messages` are in it. */
static void full_pipe(void) {
	pipe_flags(ends, O_NONBLOCK);
	messages = fill(ends[1], SIZE);
	set_nonblock(ends[0], 0);
	set_nonblock(ends[1], 0);
}

CASE(a_blocked_write_waits_for_the_low_water_mark, "write(2)") {
	full_pipe();
	pthread_t t = start(write_one, NULL);
	stays_false(done);
	take(ends[0], SIZE, 0);
	stays_false(done);
	drain(ends[0], SIZE, 1, messages);
	await(done);
	finish(t);
	take(ends[0], SIZE, messages);
}

static void read_them_all(void *unused) {
	(void)unused;
	sleep_ms(50);
	drain(ends[0], SIZE, 0, messages);
	take(ends[0], SIZE, messages);
}

CASE(a_blocked_write_is_woken_by_another_process, "write(2)") {
	full_pipe();
	pid_t child = spawn(read_them_all, NULL);
	write_one(NULL);
	join(child);
}

CASE(a_blocked_write_is_woken_by_another_thread, "write(2)") {
	full_pipe();
	pthread_t t = start(read_them_all, NULL);
	write_one(NULL);
	finish(t);
}

CASE(a_writer_in_another_process_is_woken, "write(2)") {
	full_pipe();
	pid_t child = spawn(write_one, NULL);
	sleep_ms(50);
	drain(ends[0], SIZE, 0, messages);
	take(ends[0], SIZE, messages);
	join(child);
}

static void put_one(void *unused) {
	(void)unused;
	put(ends[1], "control", "data", 0);
	done = 1;
}

CASE(a_blocked_putmsg_waits_and_is_woken, "putmsg(2)") {
	full_pipe();
	pthread_t t = start(put_one, NULL);
	stays_false(done);
	drain(ends[0], SIZE, 0, messages);
	await(done);
	finish(t);
	check_message(ends[0], "control", "data", 0);
}

static volatile int poll_saw;
static void poll_for_room(void *unused) {
	(void)unused;
	poll_saw = events(ends[1], POLLOUT, PATIENCE);
	done = 1;
}

CASE(poll_for_room_is_woken_at_the_low_water_mark, "poll(2)") {
	full_pipe();
	pthread_t t = start(poll_for_room, NULL);
	take(ends[0], SIZE, 0);
	stays_false(done);
	drain(ends[0], SIZE, 1, messages);
	await(done);
	finish(t);
	check_eq(poll_saw, POLLOUT);
}

CASE(poll_for_room_is_woken_by_another_process, "poll(2)") {
	full_pipe();
	messages--;
	pid_t child = spawn(read_them_all, NULL);
	check_eq(events(ends[1], POLLOUT, PATIENCE), POLLOUT);
	join(child);
}

static void write_counted(void *unused) {
	(void)unused;
	check_eq(write(ends[1], "12345678", 8), 8);
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
}

CASE(all_blocked_writers_are_woken, "write(2)") {
	pthread_t t[4];
	char buf[64];
	full_pipe();
	for (int i = 0; i < 4; i++)
		t[i] = start(write_counted, NULL);
	stays_false(done);
	drain(ends[0], SIZE, 0, messages);
	await(done == 4);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	check_eq(read(ends[0], buf, sizeof buf), 32);
}

CASE(a_blocked_writer_learns_of_a_hangup, "write(2)") {
	full_pipe();
	signal(SIGPIPE, SIG_IGN);
	int reader = ends[0];
	pid_t holder = fork();
	if (holder == 0) {
		sleep_ms(50);
		_exit(0);
	}
	close(reader);
	char buf[SIZE] = {0};
	check_errno(write(ends[1], buf, SIZE), EPIPE);
	join(holder);
}

CASE(a_flush_makes_room_and_wakes, "streamio(7I) I_FLUSH") {
	full_pipe();
	pthread_t t = start(write_one, NULL);
	stays_false(done);
	check_eq(ioctl(ends[0], I_FLUSH, FLUSHR), 0);
	await(done);
	finish(t);
	take(ends[0], SIZE, messages);
	check_nothing(ends[0]);
}

CASE(a_flush_of_the_writing_side_makes_room, "streamio(7I) I_FLUSH") {
	full_pipe();
	check_eq(ioctl(ends[1], I_FLUSH, FLUSHW), 0);
	check_eq(canput(ends[1], 0), 1);
	check_nothing(ends[0]);
}

/* --- not subject to it --- */

CASE(high_priority_passes_a_full_pipe, "putmsg(2) RS_HIPRI") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	int n = fill(fd[1], SIZE);
	struct strbuf ctl = out_buf("now", 3);
	check_eq(putmsg(fd[1], &ctl, NULL, RS_HIPRI), 0);
	check_message(fd[0], "now", NULL, -1);
	drain(fd[0], SIZE, 0, n);
}

CASE(high_priority_passes_full_queues, "putmsg(2) RS_HIPRI") {
	int fd[2];
	pipe_flags(fd, O_NONBLOCK);
	push(fd[0], "bufmod");
	push(fd[1], "bufmod");
	int n = fill(fd[1], SIZE);
	put_high(fd[1], "now", "data");
	check_readable(fd[0]);
	await(events(fd[0], POLLPRI, 0) & POLLPRI);
	check_message(fd[0], "now", "data", -1);
	drain(fd[0], SIZE, 0, n);
}

CASE(a_driver_that_swallows_is_never_full, "write(2)") {
	int fd = open_stream_flags("/dev/nuls", O_RDWR | O_NONBLOCK);
	char buf[4096] = {0};
	for (int i = 0; i < 4096; i++)
		check_eq(write(fd, buf, sizeof buf), (int)sizeof buf);
	check_eq(canput(fd, 0), 1);
	check_errno(read(fd, buf, 1), EAGAIN);
}

/* --- queues --- */

static int echo_capacity(const char *module, int modules) {
	int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
	for (int i = 0; i < modules; i++)
		push(fd, module);
	int n = fill(fd, 256);
	drain(fd, 256, 0, n);
	close(fd);
	return n;
}

CASE(an_echo_fills_and_gives_all_back, "write(2)") {
	int n = echo_capacity(NULL, 0);
	check(n * 256 >= 5120);
	check(n * 256 <= 1 << 20);
}

CASE(an_echo_takes_more_once_it_was_read, "write(2)") {
	int fd = open_stream_flags("/dev/echo", O_RDWR | O_NONBLOCK);
	int n = fill(fd, 256);
	check_eq(writable(fd), 0);
	check_eq(canput(fd, 0), 0);
	drain(fd, 256, 0, n);
	check_eq(writable(fd), POLLOUT);
	check_eq(canput(fd, 0), 1);
	int more = fill_from(fd, 256, n);
	check(more > 0);
	drain(fd, 256, n, n + more);
}

CASE(bufmod_has_marks_of_its_own, "module_info(9S)") {
	int none = echo_capacity(NULL, 0), one = echo_capacity("bufmod", 1), two = echo_capacity("bufmod", 2);
	check(one > none);
	check(two > one);
}

CASE(nullmod_has_no_queue_of_its_own, "module_info(9S)") {
	check_eq(echo_capacity("nullmod", 3), echo_capacity(NULL, 0));
}

CASE(a_pipe_with_bufmod_fills_and_loses_nothing, "canputnext(9F)") {
	int fd[2], first = 0;
	pipe_flags(fd, O_NONBLOCK);
	push(fd[0], "bufmod");
	push(fd[1], "bufmod");
	for (int round = 0; round < 10; round++) {
		int n = fill_from(fd[1], 500, first);
		check(n > 0);
		set_nonblock(fd[0], 0);
		drain(fd[0], 500, first, first + n);
		first += n;
		set_nonblock(fd[0], 1);
		await(writable(fd[1]));
	}
	check_nothing(fd[0]);
}

CASE(a_writer_into_bufmod_is_woken_by_back_enabling, "backenable(9F)") {
	pipe_flags(ends, O_NONBLOCK);
	push(ends[1], "bufmod");
	messages = fill(ends[1], SIZE);
	set_nonblock(ends[0], 0);
	set_nonblock(ends[1], 0);
	pthread_t t = start(write_one, NULL);
	stays_false(done);
	drain(ends[0], SIZE, 0, messages);
	await(done);
	finish(t);
	take(ends[0], SIZE, messages);
}

CASE(a_writer_into_bufmod_is_woken_by_another_process, "backenable(9F)") {
	pipe_flags(ends, O_NONBLOCK);
	push(ends[1], "bufmod");
	messages = fill(ends[1], SIZE);
	set_nonblock(ends[0], 0);
	set_nonblock(ends[1], 0);
	pid_t child = spawn(read_them_all, NULL);
	write_one(NULL);
	/* What waits in the module goes on though we make no call. */
	join(child);
}

/* --- both sides at work --- */

#define MANY 20000
static int length_of(int i) { return 1 + i * 37 % 3000; }

static void write_many(void *unused) {
	(void)unused;
	char buf[3000];
	for (int i = 0; i < MANY; i++) {
		int n = length_of(i);
		memset(buf, i, n);
		check_eq(write(ends[1], buf, n), n);
	}
}

static void read_many(void) {
	struct message m;
	char want[3000];
	for (int i = 0; i < MANY; i++) {
		check_eq(get_any(ends[0], &m), 0);
		check_eq(m.data_len, length_of(i));
		memset(want, i, m.data_len);
		check(!memcmp(m.data, want, m.data_len));
	}
}

CASE(twenty_thousand_messages_between_threads, "write(2)") {
	pipe_flags(ends, 0);
	pthread_t t = start(write_many, NULL);
	read_many();
	finish(t);
}

CASE(twenty_thousand_messages_between_processes, "write(2)") {
	pipe_flags(ends, 0);
	pid_t child = spawn(write_many, NULL);
	read_many();
	join(child);
}

CASE(twenty_thousand_messages_through_queues, "putq(9F)") {
	pipe_flags(ends, 0);
	push(ends[0], "bufmod");
	push(ends[1], "nullmod");
	push(ends[1], "bufmod");
	pthread_t t = start(write_many, NULL);
	read_many();
	finish(t);
}

/* --- signals --- */

CASE(a_signal_ends_a_blocked_write, "write(2) EINTR") {
	full_pipe();
	pid_t child = start_poking(SIGUSR1);
	check_errno(write(ends[1], "x", 1), EINTR);
	end_poking(child);
	check(caught[SIGUSR1] > 0);
	drain(ends[0], SIZE, 0, messages);
	check_nothing(ends[0]);
}

CASE(a_signal_ends_a_blocked_putmsg, "putmsg(2) EINTR") {
	full_pipe();
	pid_t child = start_poking(SIGUSR1);
	check_errno(put_text(ends[1], "c", "d", 0, MSG_BAND), EINTR);
	end_poking(child);
}

CASE(a_signal_ends_a_blocked_read, "read(2) EINTR") {
	char c;
	pipe_flags(ends, 0);
	pid_t child = start_poking(SIGUSR1);
	check_errno(read(ends[0], &c, 1), EINTR);
	end_poking(child);
}

CASE(a_signal_ends_a_blocked_getmsg, "getmsg(2) EINTR") {
	struct message m;
	pipe_flags(ends, 0);
	pid_t child = start_poking(SIGUSR1);
	check_errno(get_any(ends[0], &m), EINTR);
	end_poking(child);
}

CASE(a_signal_ends_a_read_of_a_driver, "read(2) EINTR") {
	char c;
	int fd = open_stream("/dev/echo");
	pid_t child = start_poking(SIGUSR1);
	check_errno(read(fd, &c, 1), EINTR);
	end_poking(child);
}

CASE(a_signal_ends_a_blocked_poll, "poll(2) EINTR") {
	full_pipe();
	struct pollfd p = {.fd = ends[1], .events = POLLOUT};
	pid_t child = start_poking(SIGUSR1);
	check_errno(poll(&p, 1, PATIENCE), EINTR);
	end_poking(child);
}

CASE(a_signal_after_a_part_leaves_the_part, "write(2)") {
	size_t size = 4 << 20;
	char *buf = calloc(1, size);
	pipe_flags(ends, 0);
	pid_t child = start_poking(SIGUSR1);
	ssize_t n = must(write(ends[1], buf, size));
	end_poking(child);
	check(n > 0 && n < (ssize_t)size);
	set_nonblock(ends[0], 1);
	ssize_t got = 0, r;
	while ((r = read(ends[0], buf, size)) > 0)
		got += r;
	check_eq(got, n);
}

static void interrupt_then_write(void *parent) {
	for (int i = 0; i < 3; i++) {
		sleep_ms(30);
		kill(*(pid_t *)parent, SIGUSR1);
	}
	sleep_ms(30);
	check_eq(write(ends[1], "late", 4), 4);
}

CASE(sa_restart_restarts_a_read, "sigaction(2) SA_RESTART") {
	pipe_flags(ends, 0);
	struct sigaction a = {.sa_sigaction = harness_catch, .sa_flags = SA_SIGINFO | SA_RESTART};
	must(sigaction(SIGUSR1, &a, NULL));
	pid_t me = getpid(), child = spawn(interrupt_then_write, &me);
	check_read(ends[0], "late");
	check(caught[SIGUSR1] > 0);
	join(child);
}

CASES(ENTRY(a_pipe_holds_64_kib_then_eagain), ENTRY(putmsg_to_a_full_pipe_is_eagain), ENTRY(writev_to_a_full_pipe_is_eagain),
      ENTRY(a_full_pipe_stays_full_until_the_low_water_mark), ENTRY(each_round_of_filling_takes_as_much),
      ENTRY(canput_says_1_then_0), ENTRY(pollout_goes_and_comes_with_room), ENTRY(a_full_direction_leaves_the_other_alone),
      ENTRY(messages_of_one_byte_fill_it_too), ENTRY(a_message_goes_in_whole_or_not_at_all),
      ENTRY(a_long_nonblocking_write_is_cut_short), ENTRY(a_blocked_write_waits_for_the_low_water_mark),
      ENTRY(a_blocked_write_is_woken_by_another_process), ENTRY(a_blocked_write_is_woken_by_another_thread),
      ENTRY(a_writer_in_another_process_is_woken), ENTRY(a_blocked_putmsg_waits_and_is_woken),
      ENTRY(poll_for_room_is_woken_at_the_low_water_mark), ENTRY(poll_for_room_is_woken_by_another_process),
      ENTRY(all_blocked_writers_are_woken), ENTRY(a_blocked_writer_learns_of_a_hangup), ENTRY(a_flush_makes_room_and_wakes),
      ENTRY(a_flush_of_the_writing_side_makes_room), ENTRY(high_priority_passes_a_full_pipe),
      ENTRY(high_priority_passes_full_queues), ENTRY(a_driver_that_swallows_is_never_full),
      ENTRY(an_echo_fills_and_gives_all_back), ENTRY(an_echo_takes_more_once_it_was_read), ENTRY(bufmod_has_marks_of_its_own),
      ENTRY(nullmod_has_no_queue_of_its_own), ENTRY(a_pipe_with_bufmod_fills_and_loses_nothing),
      ENTRY(a_writer_into_bufmod_is_woken_by_back_enabling), ENTRY(a_writer_into_bufmod_is_woken_by_another_process),
      ENTRY(twenty_thousand_messages_between_threads), ENTRY(twenty_thousand_messages_between_processes),
      ENTRY(twenty_thousand_messages_through_queues), ENTRY(a_signal_ends_a_blocked_write),
      ENTRY(a_signal_ends_a_blocked_putmsg), ENTRY(a_signal_ends_a_blocked_read), ENTRY(a_signal_ends_a_blocked_getmsg),
      ENTRY(a_signal_ends_a_read_of_a_driver), ENTRY(a_signal_ends_a_blocked_poll), ENTRY(a_signal_after_a_part_leaves_the_part),
      ENTRY(sa_restart_restarts_a_read))
