/* open(2) of a FIFO with a name: waiting for the other side, and saying that there is none. */
#include "peers.h"
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/syscall.h>

#define FIFO "/dev/fifo.gate"

static int open_fifo(int flags) { return open_stream_flags(FIFO, flags); }

/* Does the FIFO have a reader? A writer that does not wait is refused where it has none. */
static int has_reader(void) {
	int f = open(FIFO, O_WRONLY | O_NONBLOCK);
	if (f < 0)
		check_eq(errno, ENXIO);
	else
		close(f);
	return f >= 0;
}

static volatile int is_open;

static void open_to_read(void *unused) {
	(void)unused;
	int f = open_fifo(O_RDONLY);
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
	check_message(f, NULL, "through", 0);
}

static void open_to_write(void *unused) {
	(void)unused;
	int f = open_fifo(O_WRONLY);
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
	put(f, NULL, "through", 0);
}

/* --- waiting --- */

CASE(a_reader_waits_for_a_writer, "open(2) FIFO") {
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	open_to_write(NULL);
	finish(t);
}

CASE(a_writer_waits_for_a_reader, "open(2) FIFO") {
	pthread_t t = start(open_to_write, NULL);
	stays_false(is_open);
	open_to_read(NULL);
	finish(t);
}

CASE(a_reader_waits_for_another_process, "open(2) FIFO") {
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	join(spawn(open_to_write, NULL));
	finish(t);
}

CASE(a_writer_waits_for_another_process, "open(2) FIFO") {
	pthread_t t = start(open_to_write, NULL);
	stays_false(is_open);
	pid_t child = spawn(open_to_read, NULL);
	finish(t);
	join(child);
}

CASE(a_program_is_waited_for, "open(2) FIFO") {
	if (role()) {
		open_to_write(NULL);
		return;
	}
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	join(spawn_role("a_program_is_waited_for", "writer"));
	finish(t);
}

/* Whoever came and went between is enough to end the wait. */
CASE(a_writer_that_has_gone_was_there, "open(2) FIFO") {
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	join(spawn(open_to_write, NULL));
	await(is_open);
	finish(t);
}

CASE(one_writer_lets_all_readers_in, "open(2) FIFO") {
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		t[i] = start(open_to_read, NULL);
	stays_false(is_open);
	int f = open_fifo(O_WRONLY);
	for (int i = 0; i < 3; i++)
		put(f, NULL, "through", 0);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
}

CASE(a_signal_ends_the_wait, "open(2) EINTR") {
	pid_t child = start_poking(SIGUSR1);
	check_errno(open(FIFO, O_RDONLY), EINTR);
	check_errno(open(FIFO, O_WRONLY), EINTR);
	end_poking(child);
	check_eq(has_reader(), 0);
}

static void note(int signal) { caught[signal]++; }

CASE(a_handler_with_sa_restart_does_not, "open(2) SA_RESTART") {
	struct sigaction a = {.sa_handler = note, .sa_flags = SA_RESTART};
	check_eq(sigaction(SIGUSR1, &a, NULL), 0);
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	for (int i = 0; i < 5; i++) {
		check_eq(pthread_kill(t, SIGUSR1), 0);
		await(caught[SIGUSR1] > i);
	}
	stays_false(is_open);
	open_to_write(NULL);
	finish(t);
}

CASE(a_cancelled_thread_leaves_the_wait, "pthreads(7) open(2)") {
	void *ended;
	pthread_t t = start(open_to_read, NULL);
	stays_false(is_open);
	check_eq(pthread_cancel(t), 0);
	check_eq(pthread_join(t, &ended), 0);
	check(ended == PTHREAD_CANCELED);
	check_eq(has_reader(), 0);
}

/* The number of the stream that another thread opens, which waits there. */
static int half_open(void) {
	for (int fd = 3; fd < 100; fd++)
		if (isastream(fd) == 1)
			return fd;
	fail("nobody opens a stream");
}

static volatile int refused;
static void try_to_read(void *unused) {
	(void)unused;
	refused = open(FIFO, O_RDONLY) < 0 ? errno : 0;
	__atomic_store_n(&is_open, 1, __ATOMIC_SEQ_CST);
}

CASE(what_has_the_number_of_a_closed_one_stays, "open(2) EINTR") {
	catch_signal(SIGUSR1);
	pthread_t t = start(try_to_read, NULL);
	stays_false(is_open);
	int number = half_open();
	close(number);
	int s = open_stream("/dev/echo");
	must(dup2(s, number));
	/* One signal may come before it waits. */
	await(is_open || (pthread_kill(t, SIGUSR1), 0));
	check_eq(refused, EINTR);
	check_eq(isastream(number), 1);
	put(number, NULL, "there", 0);
	check_message(number, NULL, "there", 0);
	finish(t);
}

CASE(what_has_the_number_of_one_not_yet_waiting_stays, "open(2) close(2)") {
	/* Whoever makes a FIFO makes its gate under this lock, when it has its number. */
	char lock[PATH_MAX];
	catch_signal(SIGUSR1);
	close(open_stream_flags("/dev/fifo.before", O_RDWR));
	snprintf(lock, sizeof lock, "%s/fifo.lock", getenv("HEADWATER_DIR"));
	int held = must(open(lock, O_RDWR | O_CREAT, 0600));
	check_eq(flock(held, LOCK_EX), 0);
	pthread_t t = start(try_to_read, NULL);
	stays_false(is_open);
	int number = half_open();
	close(number);
	int other[2];
	pipe_flags(other, 0);
	check_eq(other[0], number);
	check_eq(flock(held, LOCK_UN), 0);
	stays_false(isastream(number) != 1);
	check_eq(fcntl(number, F_GETFL) & O_ACCMODE, O_RDWR);
	put(number, NULL, "there", 0);
	check_message(other[1], NULL, "there", 0);
	await(is_open || (pthread_kill(t, SIGUSR1), 0));
	finish(t);
	check_eq(isastream(number), 1);
}

CASE(one_closed_while_it_waits_keeps_no_gate, "open(2) close(2)") {
	/* The other one has the FIFO as long as that. */
	pthread_t t[2] = {start(try_to_read, NULL), start(try_to_read, NULL)};
	stays_false(is_open);
	close(half_open());
	int reader = open_stream_flags("/dev/fifo.other", O_RDONLY | O_NONBLOCK);
	open_stream_flags("/dev/fifo.other", O_WRONLY);
	open_fifo(O_WRONLY);
	finish(t[0]);
	finish(t[1]);
	close(reader);
	check_errno(open("/dev/fifo.other", O_WRONLY | O_NONBLOCK), ENXIO);
}

/* --- not waiting --- */

CASE(reading_and_writing_waits_for_nobody, "open(2) FIFO") {
	int f = open_fifo(O_RDWR);
	check_eq(has_reader(), 1);
	close(open_fifo(O_RDONLY));
	close(open_fifo(O_WRONLY));
	put(f, NULL, "around", 0);
	check_message(f, NULL, "around", 0);
}

CASE(a_reader_with_o_nonblock_does_not_wait, "open(2) O_NONBLOCK") {
	char c;
	int f = open_fifo(O_RDONLY | O_NONBLOCK);
	check_eq(fcntl(f, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
	check_errno(write(f, "x", 1), EBADF);
	int w = open_fifo(O_WRONLY);
	check_errno(read(w, &c, 1), EBADF);
	put(w, NULL, "through", 0);
	check_message(f, NULL, "through", 0);
}

CASE(a_writer_with_o_nonblock_and_no_reader, "open(2) ENXIO") {
	check_errno(open(FIFO, O_WRONLY | O_NONBLOCK), ENXIO);
	int w = dup(0);
	check_errno(open(FIFO, O_WRONLY | O_NONBLOCK), ENXIO);
	/* The refused ones left no descriptor. */
	int again = dup(0);
	check_eq(again, w + 1);
}

CASE(an_unnamed_fifo_has_no_other_side, "fifo(7D)") {
	int r = open_stream_flags("/dev/fifo", O_RDONLY), w = open_stream_flags("/dev/fifo", O_WRONLY);
	check_errno(write(r, "x", 1), EBADF);
	check_eq(write(w, "x", 1), 1);
}

/* --- who counts --- */

CASE(a_closed_reader_is_none, "open(2) ENXIO") {
	for (int i = 0; i < 20; i++) {
		int f = open_fifo(O_RDONLY | O_NONBLOCK);
		check_eq(has_reader(), 1);
		int copy = must(dup(f));
		close(f);
		check_eq(has_reader(), 1);
		must(dup2(0, copy));
		check_eq(has_reader(), 0);
	}
}

static struct turn opened;
static void read_and_stay(void *unused) {
	(void)unused;
	open_fifo(O_RDONLY | O_NONBLOCK);
	turn_give(opened);
	pause();
}

CASE(a_killed_reader_is_none, "open(2) ENXIO") {
	opened = turn_new();
	/* So that somebody has the FIFO all the time. */
	pthread_t t = start(open_to_write, NULL);
	stays_false(is_open);
	pid_t child = spawn(read_and_stay, NULL);
	turn_take(opened);
	finish(t);
	check_eq(has_reader(), 1);
	slay(child);
	check_eq(has_reader(), 0);
}

static void stay(void *unused) {
	(void)unused;
	turn_give(opened);
	pause();
}

CASE(a_child_of_fork_has_it_too, "fork(2)") {
	opened = turn_new();
	int f = open_fifo(O_RDONLY | O_NONBLOCK);
	pid_t child = spawn(stay, NULL);
	turn_take(opened);
	close(f);
	check_eq(has_reader(), 1);
	slay(child);
	check_eq(has_reader(), 0);
}

/* The new program has two numbers of one open; the last one counts. */
CASE(an_exec_keeps_it, "exec(2)") {
	char numbers[40];
	if (role()) {
		int r, copy, w;
		check_eq(sscanf(role(), "%d %d %d", &r, &copy, &w), 3);
		check_eq(fcntl(r, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
		check_errno(write(copy, "x", 1), EBADF);
		check_eq(fcntl(w, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_WRONLY);
		put(w, NULL, "from the program", 0);
		check_message(copy, NULL, "from the program", 0);
		close(r);
		check_eq(has_reader(), 1);
		close(copy);
		check_eq(has_reader(), 0);
		return;
	}
	int r = open_fifo(O_RDONLY | O_NONBLOCK), copy = must(dup(r)), w = open_fifo(O_WRONLY);
	snprintf(numbers, sizeof numbers, "%d %d %d", r, copy, w);
	pid_t child = forked();
	if (child == 0)
		become("an_exec_keeps_it", numbers);
	close(r), close(copy), close(w);
	join(child);
	check_eq(has_reader(), 0);
}

static int pair[2];
static void receive_and_stay(void *unused) {
	(void)unused;
	struct strrecvfd r;
	check_eq(ioctl(pair[1], I_RECVFD, &r), 0);
	check_eq(fcntl(r.fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
	check_errno(write(r.fd, "x", 1), EBADF);
	check_message(r.fd, NULL, "before", 0);
	turn_give(opened);
	pause();
}

CASE(a_passed_reader_counts, "streamio(7I) I_SENDFD") {
	opened = turn_new();
	pipe_flags(pair, 0);
	int keep = -1;
	pid_t child = spawn(receive_and_stay, NULL);
	int f = open_fifo(O_RDONLY | O_NONBLOCK);
	keep = open_fifo(O_WRONLY);
	put(keep, NULL, "before", 0);
	check_eq(ioctl(pair[0], I_SENDFD, f), 0);
	close(f);
	check_eq(has_reader(), 1);
	turn_take(opened);
	check_eq(has_reader(), 1);
	slay(child);
	await(!has_reader());
}

/* --- the other side goes --- */

/* A reader and a writer of this process. */
static int r, w;
static void both_sides(int flags) {
	r = open_fifo(O_RDONLY | O_NONBLOCK);
	w = open_fifo(O_WRONLY | flags);
	set_nonblock(r, flags != 0);
}

#define check_end(FD) check_eq(read(FD, (char[8]){0}, 8), 0)

CASE(the_end_comes_with_the_last_writer, "read(2) FIFO") {
	struct message m;
	both_sides(0);
	int other = open_fifo(O_WRONLY), copy = must(dup(w));
	put(w, NULL, "one", 0);
	close(w);
	put(other, "c", "two", 3);
	close(other);
	put(copy, NULL, "three", 0);
	check_message(r, "c", "two", 3);
	close(copy);
	check_message(r, NULL, "one", 0);
	check_message(r, NULL, "three", 0);
	check_end(r);
	check_eq(get_any(r, &m), 0);
	check_eq(m.ctl_len, 0);
	check_eq(m.data_len, 0);
	/* Until somebody comes again. */
	w = open_fifo(O_WRONLY);
	put(w, NULL, "four", 0);
	check_message(r, NULL, "four", 0);
	set_nonblock(r, 1);
	check_errno(read(r, (char[8]){0}, 8), EAGAIN);
	close(w);
	check_end(r);
}

CASE(without_a_writer_there_is_nothing_to_wait_for, "read(2) FIFO") {
	int f = open_fifo(O_RDONLY | O_NONBLOCK);
	check_end(f);
	check_eq(events(f, POLLIN, 0), 0);
	set_nonblock(f, 0);
	check_end(f);
	w = open_fifo(O_WRONLY);
	set_nonblock(f, 1);
	check_errno(read(f, (char[8]){0}, 8), EAGAIN);
	/* Who writes as well is its own writer. */
	int own = open_fifo(O_RDWR | O_NONBLOCK);
	close(w);
	check_errno(read(f, (char[8]){0}, 8), EAGAIN);
	check_errno(read(own, (char[8]){0}, 8), EAGAIN);
	close(own);
	check_end(f);
}

/* Who has a descriptor of the same open may let its reads wait, but not those of others that do not want to. */
CASE(a_read_does_not_wait_by_others_flags, "read(2) EAGAIN") {
	both_sides(O_NONBLOCK);
	for (int fd = 3; fd < 1 << 16; fd++) {
		long done = __NR_fcntl;
		__asm__ volatile("syscall" : "+a"(done) : "D"((long)fd), "S"((long)F_SETFL), "d"(0L) : "rcx", "r11", "memory");
	}
	check_errno(read(r, (char[8]){0}, 8), EAGAIN);
	close(w);
	check_end(r);
}

static volatile int over;
static void read_to_the_end(void *unused) {
	(void)unused;
	check_read(r, "last words");
	check_end(r);
	over = 1;
}
static void say_and_stay(void *unused) {
	(void)unused;
	int f = open_fifo(O_WRONLY);
	put(f, NULL, "last words", 0);
	turn_give(opened);
	pause();
}

static void killed_writer(const char *module) {
	opened = turn_new();
	pid_t child = spawn(say_and_stay, NULL);
	r = open_fifo(O_RDONLY);
	if (module)
		push(r, module);
	turn_take(opened);
	pthread_t t = start(read_to_the_end, NULL);
	stays_false(over);
	slay(child);
	await(over);
	finish(t);
}
CASE(a_killed_writer_ends_a_blocked_read, "read(2) FIFO") { killed_writer(NULL); }
CASE(a_killed_writer_ends_a_blocked_read_through_a_module, "read(2) FIFO") { killed_writer("bufmod"); }

CASE(a_writer_without_readers, "write(2) EPIPE") {
	both_sides(0);
	int other = open_fifo(O_RDONLY);
	catch_signal(SIGPIPE);
	close(r);
	put(w, NULL, "x", 0);
	close(other);
	check_errno(write(w, "x", 1), EPIPE);
	check_eq(caught[SIGPIPE], 1);
	check_errno(put_text(w, "c", "d", 0, MSG_BAND), EPIPE);
	check_eq(caught[SIGPIPE], 2);
	struct iovec v = {"x", 1};
	check_errno(writev(w, &v, 1), EPIPE);
	check_eq(caught[SIGPIPE], 3);
	r = open_fifo(O_RDONLY);
	put(w, NULL, "y", 0);
	check_message(r, NULL, "x", 0);
	check_message(r, NULL, "y", 0);
}

static void write_too_much(void *unused) {
	static char much[1 << 20];
	(void)unused;
	while (write(w, much, 60000) > 0)
		;
	check_eq(errno, EPIPE);
	over = 1;
}
CASE(the_last_reader_ends_a_blocked_write, "write(2) EPIPE") {
	opened = turn_new();
	catch_signal(SIGPIPE);
	pid_t child = spawn(read_and_stay, NULL);
	turn_take(opened);
	w = open_fifo(O_WRONLY);
	pthread_t t = start(write_too_much, NULL);
	stays_false(over);
	slay(child);
	await(over);
	finish(t);
}

CASE(poll_tells_that_the_other_side_has_gone, "poll(2) POLLHUP") {
	const int all = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	both_sides(0);
	int own = open_fifo(O_RDWR);
	put(w, NULL, "x", 0);
	close(w);
	check_eq(events(r, POLLIN, 0), POLLIN);
	close(own);
	check_eq(events(r, POLLIN, 0), POLLIN | POLLHUP);
	check_message(r, NULL, "x", 0);
	check_eq(events(r, POLLIN, PATIENCE), POLLHUP);
	w = open_fifo(O_WRONLY);
	check_eq(events(r, POLLIN, 0), 0);
	check_eq(events(w, POLLOUT, 0), POLLOUT);
	close(r);
	check_eq(events(w, all, PATIENCE), POLLHUP);
	own = open_fifo(O_RDWR);
	check_eq(events(w, POLLOUT, 0), POLLOUT);
}

static void write_and_close_late(void *unused) {
	(void)unused;
	int f = open_fifo(O_WRONLY);
	sleep_ms(50);
	close(f);
}
static void come_and_be_killed(void *unused) {
	(void)unused;
	open_fifo(O_WRONLY);
	sleep_ms(50);
	kill(getpid(), SIGKILL);
}
static void sets_are_woken(void (*writer)(void *)) {
	struct epoll_event e = {.events = EPOLLIN};
	int set = must(epoll_create1(0));
	pid_t child = spawn(writer, NULL);
	r = open_fifo(O_RDONLY);
	check_eq(epoll_ctl(set, EPOLL_CTL_ADD, r, &e), 0);
	check_eq(epoll_wait(set, &e, 1, -1), 1);
	check_eq(e.events, EPOLLHUP);
	waitpid(child, NULL, 0);
	close(r);
	child = spawn(writer, NULL);
	r = open_fifo(O_RDONLY);
	check_eq(events(r, POLLIN, -1), POLLHUP);
	waitpid(child, NULL, 0);
}
CASE(sets_are_woken_by_a_close, "poll(2) POLLHUP") { sets_are_woken(write_and_close_late); }
CASE(sets_are_woken_by_a_kill, "poll(2) POLLHUP") { sets_are_woken(come_and_be_killed); }

static void wait_by_poll(void *set) {
	struct epoll_event e;
	if (set)
		check_eq(epoll_wait(*(int *)set, &e, 1, -1), 1);
	else
		check_eq(events(r, POLLIN, -1), POLLHUP);
	over = 1;
}
static void a_passed_writer_is_lost(int *set) {
	both_sides(0);
	pipe_flags(pair, 0);
	struct epoll_event e = {.events = EPOLLIN};
	if (set) {
		*set = must(epoll_create1(0));
		check_eq(epoll_ctl(*set, EPOLL_CTL_ADD, r, &e), 0);
	}
	check_eq(ioctl(pair[0], I_SENDFD, w), 0);
	close(w);
	pthread_t t = start(wait_by_poll, set);
	stays_false(over);
	close(pair[0]);
	close(pair[1]);
	await(over);
	finish(t);
}
static int set;
CASE(poll_hears_of_a_writer_that_was_passed_to_nobody, "poll(2) POLLHUP") { a_passed_writer_is_lost(NULL); }
CASE(sets_hear_of_a_writer_that_was_passed_to_nobody, "epoll(7) EPOLLHUP") { a_passed_writer_is_lost(&set); }

CASE(filters_end_with_their_input, "read(2) FIFO") {
	if (role()) {
		char text[8];
		ssize_t n;
		while ((n = read(0, text, sizeof text)) > 0)
			check_eq(write(1, text, n), n);
		return;
	}
	int result[2];
	must(pipe(result));
	pid_t child = must(fork());
	if (child == 0) {
		must(dup2(open_fifo(O_RDONLY), 0));
		must(dup2(result[1], 1));
		become("filters_end_with_their_input", "filter");
	}
	close(result[1]);
	w = open_fifo(O_WRONLY | O_CLOEXEC);
	check_eq(write(w, "through the filter", 18), 18);
	close(w);
	join(child);
	check_read(result[0], "through the filter");
}

/* A program between, without the library, closes what it inherited and passes the rest on. */
CASE(an_exec_keeps_nothing_of_what_was_closed_between, "exec(2)") {
	char c, self[PATH_MAX], script[PATH_MAX + 100];
	if (role()) {
		check_eq(read(0, &c, 1), 0);
		return;
	}
	int hold[2];
	self[must(readlink("/proc/self/exe", self, sizeof self - 1))] = 0;
	must(pipe2(hold, O_CLOEXEC));
	both_sides(0);
	fcntl(r, F_SETFD, FD_CLOEXEC);
	must(dup2(w, 7));
	close(w);
	pid_t child = forked();
	if (child == 0) {
		must(dup2(hold[0], 0));
		setenv("CASE_ROLE", "closed", 1);
		snprintf(script, sizeof script, "exec 7>&-; exec '%s' an_exec_keeps_nothing_of_what_was_closed_between", self);
		execl("/bin/sh", "sh", "-c", script, NULL);
		fail("exec");
	}
	close(7);
	check_eq(events(r, POLLIN, -1), POLLHUP);
	close(hold[1]);
	join(child);
}

/* --- mkfifo --- */

CASE(what_mkfifo_makes_is_the_kernels, "mkfifo(2), streamio(7I) I_SENDFD") {
	must(mkfifo("ordinary", 0600));
	int f = must(open("ordinary", O_RDWR));
	check_eq(isastream(f), 0);
	check_errno(ioctl(f, I_SENDFD, 0), ENOTTY);
	/* Nor has a FIFO of ours another end. */
	check_errno(ioctl(open_fifo(O_RDWR), I_SENDFD, 0), EINVAL);
}

static void send_itself(void *unused) {
	(void)unused;
	int f = must(open("ordinary", O_RDWR)), file = must(open("passed", O_RDWR | O_CREAT, 0600));
	check_eq(isastream(f), 1);
	check_eq(write(file, "by the fifo", 11), 11);
	check_eq(lseek(file, 0, SEEK_SET), 0);
	check_eq(ioctl(f, I_SENDFD, file), 0);
}

/* A pipe that is attached there carries descriptors. */
CASE(a_pipe_on_a_fifo_passes_descriptors, "fattach(3C), streamio(7I) I_SENDFD") {
	struct strrecvfd r;
	must(mkfifo("ordinary", 0600));
	pipe_flags(pair, 0);
	check_eq(fattach(pair[1], "ordinary"), 0);
	pid_t child = spawn(send_itself, NULL);
	check_eq(ioctl(pair[0], I_RECVFD, &r), 0);
	check_read(r.fd, "by the fifo");
	join(child);
	check_eq(fdetach("ordinary"), 0);
	check_eq(isastream(must(open("ordinary", O_RDWR))), 0);
}

CASE(another_runtime_folder_has_fifos_of_its_own, "open(2) FIFO") {
	if (role()) {
		check_eq(has_reader(), 0);
		int own = open_fifo(O_RDWR);
		put(own, NULL, "here", 0);
		check_message(own, NULL, "here", 0);
		return;
	}
	char elsewhere[PATH_MAX];
	int f = open_fifo(O_RDWR | O_CLOEXEC);
	put(f, NULL, "there", 0);
	snprintf(elsewhere, sizeof elsewhere, "%s.other", getenv("HEADWATER_DIR"));
	setenv("HEADWATER_DIR", elsewhere, 1);
	join(spawn_role("another_runtime_folder_has_fifos_of_its_own", "elsewhere"));
	check_message(f, NULL, "there", 0);
}

CASES(ENTRY(another_runtime_folder_has_fifos_of_its_own), ENTRY(a_reader_waits_for_a_writer), ENTRY(a_writer_waits_for_a_reader), ENTRY(a_reader_waits_for_another_process),
      ENTRY(a_writer_waits_for_another_process), ENTRY(a_program_is_waited_for), ENTRY(a_writer_that_has_gone_was_there),
      ENTRY(one_writer_lets_all_readers_in), ENTRY(a_signal_ends_the_wait), ENTRY(what_has_the_number_of_a_closed_one_stays),
      ENTRY(what_has_the_number_of_one_not_yet_waiting_stays),
      ENTRY(one_closed_while_it_waits_keeps_no_gate), ENTRY(a_read_does_not_wait_by_others_flags),
      ENTRY(poll_hears_of_a_writer_that_was_passed_to_nobody), ENTRY(sets_hear_of_a_writer_that_was_passed_to_nobody),
      ENTRY(an_exec_keeps_nothing_of_what_was_closed_between), ENTRY(a_handler_with_sa_restart_does_not), ENTRY(a_cancelled_thread_leaves_the_wait),
      ENTRY(reading_and_writing_waits_for_nobody), ENTRY(a_reader_with_o_nonblock_does_not_wait),
      ENTRY(a_writer_with_o_nonblock_and_no_reader), ENTRY(an_unnamed_fifo_has_no_other_side), ENTRY(a_closed_reader_is_none),
      ENTRY(a_killed_reader_is_none), ENTRY(a_child_of_fork_has_it_too), ENTRY(an_exec_keeps_it), ENTRY(a_passed_reader_counts),
      ENTRY(the_end_comes_with_the_last_writer),
      ENTRY(without_a_writer_there_is_nothing_to_wait_for), ENTRY(a_killed_writer_ends_a_blocked_read),
      ENTRY(a_killed_writer_ends_a_blocked_read_through_a_module), ENTRY(a_writer_without_readers),
      ENTRY(the_last_reader_ends_a_blocked_write), ENTRY(poll_tells_that_the_other_side_has_gone),
      ENTRY(sets_are_woken_by_a_close), ENTRY(sets_are_woken_by_a_kill), ENTRY(filters_end_with_their_input),
      ENTRY(what_mkfifo_makes_is_the_kernels), ENTRY(a_pipe_on_a_fifo_passes_descriptors))
