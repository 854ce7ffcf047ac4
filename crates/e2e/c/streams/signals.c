/* SIGPOLL: I_SETSIG, I_GETSIG, what a signal says of its event, SIGURG for bands, other processes, O_ASYNC. */
#include "peers.h"
#include <setjmp.h>

static int fd[2];

static void ask(int end, int wanted) { check_eq(ioctl(end, I_SETSIG, wanted), 0); }

/* A pipe whose end 0 raises SIGPOLL for these events. */
static void watch(int wanted) {
	pipe_flags(fd, 0);
	catch_signal(SIGPOLL);
	catch_signal(SIGURG);
	ask(fd[0], wanted);
}

#define check_silent(SIGNAL) stays_false(caught[SIGNAL])

/* The signal came, with this code and at least these bits in si_band. */
#define check_caught(CODE, BAND)                                               \
	do {                                                                   \
		await(caught[SIGPOLL] > 0);                                    \
		check_eq(caught_info.si_signo, SIGPOLL);                       \
		check_eq(caught_info.si_code, CODE);                           \
		check_eq(caught_info.si_band & (BAND), BAND);                  \
		caught[SIGPOLL] = 0;                                           \
	} while (0)

/* --- asking --- */

CASE(getsig_says_what_setsig_asked, "streamio(7I) I_GETSIG") {
	const int every[] = {S_INPUT, S_HIPRI, S_OUTPUT, S_MSG, S_ERROR, S_HANGUP, S_RDNORM, S_WRNORM, S_RDBAND, S_WRBAND,
			     S_RDBAND | S_BANDURG, S_INPUT | S_HIPRI | S_OUTPUT | S_MSG | S_ERROR | S_HANGUP};
	pipe_flags(fd, 0);
	catch_signal(SIGPOLL);
	for (unsigned i = 0; i < sizeof every / sizeof *every; i++) {
		int seen = -1;
		ask(fd[0], every[i]);
		check_eq(ioctl(fd[0], I_GETSIG, &seen), 0);
		check_eq(seen, every[i]);
	}
}

CASE(getsig_without_setsig, "streamio(7I) I_GETSIG EINVAL") {
	int seen;
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_GETSIG, &seen), EINVAL);
	ask(fd[0], S_INPUT);
	check_errno(ioctl(fd[1], I_GETSIG, &seen), EINVAL);
	ask(fd[0], 0);
	check_errno(ioctl(fd[0], I_GETSIG, &seen), EINVAL);
}

CASE(setsig_errors, "streamio(7I) I_SETSIG EINVAL") {
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_SETSIG, 0), EINVAL);
	check_errno(ioctl(fd[0], I_SETSIG, 0x8000), EINVAL);
	check_errno(ioctl(fd[0], I_SETSIG, -1), EINVAL);
}

CASE(getsig_of_nowhere, "streamio(7I) I_GETSIG EFAULT") {
	pipe_flags(fd, 0);
	ask(fd[0], S_INPUT);
	check_errno2(ioctl(fd[0], I_GETSIG, NULL), EFAULT, EINVAL);
}

CASE(without_setsig_there_is_no_signal, "streamio(7I) I_SETSIG") {
	pipe_flags(fd, 0);
	catch_signal(SIGPOLL);
	put(fd[1], NULL, "x", 0);
	close(fd[1]);
	check_silent(SIGPOLL);
}

CASE(setsig_0_ends_it, "streamio(7I) I_SETSIG") {
	watch(S_INPUT);
	ask(fd[0], 0);
	put(fd[1], NULL, "x", 0);
	check_silent(SIGPOLL);
}

CASE(the_default_action_kills, "signal(5) SIGPOLL") {
	int status;
	pid_t child = fork();
	if (child == 0) {
		pipe_flags(fd, 0);
		ask(fd[0], S_INPUT);
		put(fd[1], NULL, "x", 0);
		sleep_ms(2000);
		_exit(0);
	}
	check_eq(waitpid(child, &status, 0), child);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGPOLL);
}

/* --- events --- */

CASE(s_input_and_ordinary_data, "streamio(7I) S_INPUT") {
	watch(S_INPUT);
	put(fd[1], NULL, "x", 0);
	check_caught(POLL_IN, POLLIN);
	check_message(fd[0], NULL, "x", 0);
	check_eq(write(fd[1], "again", 5), 5);
	check_caught(POLL_IN, POLLIN);
}

CASE(s_input_and_a_band, "streamio(7I) S_INPUT") {
	watch(S_INPUT);
	put(fd[1], NULL, "x", 3);
	check_caught(POLL_IN, POLLIN);
}

CASE(s_input_and_a_message_of_no_bytes, "streamio(7I) S_INPUT") {
	watch(S_INPUT);
	put(fd[1], NULL, "", 0);
	check_caught(POLL_IN, POLLIN);
}

CASE(s_input_is_not_for_high_priority, "streamio(7I) S_INPUT") {
	watch(S_INPUT);
	put_high(fd[1], "now", NULL);
	check_silent(SIGPOLL);
}

CASE(s_rdnorm, "streamio(7I) S_RDNORM") {
	watch(S_RDNORM);
	put(fd[1], NULL, "x", 3);
	check_silent(SIGPOLL);
	check_message(fd[0], NULL, "x", 3);
	put(fd[1], NULL, "x", 0);
	check_caught(POLL_IN, POLLRDNORM);
}

CASE(s_rdnorm_behind_a_rest, "streamio(7I) S_RDNORM, getmsg(2) MOREDATA") {
	struct strbuf data = {.maxlen = 2, .buf = (char[9]){0}};
	int flags = 0;
	watch(S_RDNORM);
	put(fd[1], NULL, "first", 0);
	check_caught(POLL_IN, POLLRDNORM);
	check_eq(getmsg(fd[0], NULL, &data, &flags), MOREDATA);
	check_silent(SIGPOLL);
	put(fd[1], NULL, "second", 0);
	check_caught(POLL_IN, POLLRDNORM);
	check_message(fd[0], NULL, "rst", 0);
	check_message(fd[0], NULL, "second", 0);
	check_silent(SIGPOLL);
}

CASE(s_rdband, "streamio(7I) S_RDBAND") {
	watch(S_RDBAND);
	put(fd[1], NULL, "x", 0);
	check_silent(SIGPOLL);
	put(fd[1], NULL, "x", 3);
	check_caught(POLL_IN, POLLRDBAND);
}

CASE(s_hipri, "streamio(7I) S_HIPRI") {
	watch(S_HIPRI);
	put(fd[1], NULL, "x", 0);
	put(fd[1], NULL, "x", 200);
	check_silent(SIGPOLL);
	put_high(fd[1], "now", NULL);
	check_caught(POLL_PRI, POLLPRI);
}

CASE(s_bandurg_makes_it_sigurg, "streamio(7I) S_BANDURG") {
	watch(S_RDBAND | S_BANDURG);
	put(fd[1], NULL, "x", 3);
	await(caught[SIGURG] > 0);
	check_silent(SIGPOLL);
	check_message(fd[0], NULL, "x", 3);
	put(fd[1], NULL, "ordinary", 0);
	int before = caught[SIGURG];
	stays_false(caught[SIGURG] != before);
}

CASE(s_hangup, "streamio(7I) S_HANGUP") {
	watch(S_HANGUP);
	put(fd[1], NULL, "x", 0);
	check_silent(SIGPOLL);
	close(fd[1]);
	check_caught(POLL_HUP, POLLHUP);
}

static void close_unused(void *unused) {
	(void)unused;
	close(fd[0]);
	sleep_ms(50);
	kill(getpid(), SIGKILL);
}

CASE(s_hangup_of_a_killed_peer, "streamio(7I) S_HANGUP") {
	watch(S_HANGUP);
	spawn(close_unused, NULL);
	close(fd[1]);
	check_caught(POLL_HUP, POLLHUP);
}

static void signal_of_room(int wanted) {
	watch(S_MSG);
	set_nonblock(fd[0], 1);
	int n = fill(fd[0], 1024);
	caught[SIGPOLL] = 0;
	ask(fd[0], wanted);
	check_silent(SIGPOLL);
	drain(fd[1], 1024, 0, n);
	check_caught(POLL_OUT, POLLOUT);
}

CASE(s_output, "streamio(7I) S_OUTPUT") { signal_of_room(S_OUTPUT); }
CASE(s_wrnorm, "streamio(7I) S_WRNORM") { signal_of_room(S_WRNORM); }

CASE(s_wrband, "streamio(7I) S_WRBAND") {
	char text[512] = {0};
	struct strbuf data = out_buf(text, sizeof text);
	struct message m;
	int n = 0;
	watch(S_MSG);
	set_nonblock(fd[0], 1);
	while (putpmsg(fd[0], NULL, &data, 5, MSG_BAND) == 0)
		check(++n < 10000);
	ask(fd[0], S_WRBAND);
	for (int i = 0; i < n; i++)
		check_eq(get_any(fd[1], &m), 0);
	check_caught(POLL_OUT, POLLWRBAND);
}

CASE(one_signal_of_many_events, "streamio(7I) I_SETSIG") {
	watch(S_INPUT | S_HIPRI | S_OUTPUT | S_MSG | S_ERROR | S_HANGUP);
	caught[SIGPOLL] = 0;
	put(fd[1], NULL, "x", 0);
	check_caught(POLL_IN, POLLIN);
	check_message(fd[0], NULL, "x", 0);
	put_high(fd[1], "now", NULL);
	check_caught(POLL_PRI, POLLPRI);
	check_message(fd[0], "now", NULL, -1);
	close(fd[1]);
	check_caught(POLL_HUP, POLLHUP);
}

CASE(a_handler_reads, "streamio(7I) I_SETSIG") {
	watch(S_INPUT);
	for (int i = 0; i < 100; i++) {
		caught[SIGPOLL] = 0;
		check_eq(write(fd[1], &i, sizeof i), (int)sizeof i);
		await(caught[SIGPOLL] > 0);
		int seen;
		check_eq(read(fd[0], &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
	}
}

static volatile sig_atomic_t handled;
static void read_in_handler(int unused) {
	(void)unused;
	char c;
	while (read(fd[0], &c, 1) == 1)
		handled++;
}

CASE(reading_in_the_handler, "streamio(7I) I_SETSIG") {
	pipe_flags(fd, O_NONBLOCK);
	struct sigaction a = {.sa_handler = read_in_handler, .sa_flags = SA_RESTART};
	must(sigaction(SIGPOLL, &a, NULL));
	ask(fd[0], S_INPUT);
	for (int i = 0; i < 200; i++)
		check_eq(write(fd[1], "x", 1), 1);
	await(handled == 200);
}

CASE(a_driver_streams_signals, "streamio(7I) I_SETSIG") {
	int echo = open_stream("/dev/echo");
	catch_signal(SIGPOLL);
	ask(echo, S_INPUT | S_HIPRI);
	put(echo, NULL, "x", 0);
	check_caught(POLL_IN, POLLIN);
	check_message(echo, NULL, "x", 0);
	put_high(echo, "now", NULL);
	check_caught(POLL_PRI, POLLPRI);
}

CASE(signals_with_a_module, "streamio(7I) I_SETSIG") {
	watch(S_INPUT);
	push(fd[0], "bufmod");
	put(fd[1], NULL, "x", 0);
	check_caught(POLL_IN, POLLIN);
	check_message(fd[0], NULL, "x", 0);
}

/* Has the signal blocked, and asks for it. */
static void watch_blocked(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPOLL);
	check_eq(sigprocmask(SIG_BLOCK, set, NULL), 0);
	pipe_flags(fd, 0);
	ask(fd[0], S_INPUT);
}

CASE(a_blocked_signal_waits, "sigtimedwait(2)") {
	siginfo_t info;
	sigset_t set;
	struct timespec patience = {PATIENCE / 1000, 0};
	watch_blocked(&set);
	put(fd[1], NULL, "x", 0);
	check_eq(sigtimedwait(&set, &info, &patience), SIGPOLL);
	check_eq(info.si_code, POLL_IN);
}

static void *put_one(void *unused)
{
	(void)unused;
	put(fd[1], NULL, "x", 0);
	return NULL;
}

/* What another thread of the process sends looks like the kernel's too. */
CASE(a_blocked_signal_of_another_thread_waits, "sigtimedwait(2), sigwaitinfo(2)") {
	sigset_t set;
	struct timespec patience = {PATIENCE / 1000, 0};
	watch_blocked(&set);
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		siginfo_t info = {0};
		check_eq(pthread_create(&thread, NULL, put_one, NULL), 0);
		check_eq(i == 0 ? sigwaitinfo(&set, &info) : sigtimedwait(&set, i == 1 ? &info : NULL, &patience), SIGPOLL);
		if (i < 2) {
			check_eq(info.si_code, POLL_IN);
			check_eq(info.si_band & POLLIN, POLLIN);
		}
		pthread_join(thread, NULL);
		check_message(fd[0], NULL, "x", 0);
	}
}

CASE(sigpoll_ends_a_blocked_call, "read(2) EINTR") {
	int other[2];
	char c;
	watch(S_INPUT);
	pipe_flags(other, 0);
	pid_t child = fork();
	if (child == 0) {
		sleep_ms(50);
		put(fd[1], NULL, "x", 0);
		_exit(0);
	}
	check_errno(read(other[0], &c, 1), EINTR);
	check_caught(POLL_IN, POLLIN);
	join(child);
}

/* --- several processes --- */

static void write_from_child(void *unused) {
	(void)unused;
	sleep_ms(20);
	put(fd[1], NULL, "from a child", 0);
	pause();
}

CASE(a_message_of_another_process, "streamio(7I) I_SETSIG") {
	watch(S_INPUT);
	pid_t child = spawn(write_from_child, NULL);
	check_caught(POLL_IN, POLLIN);
	check_message(fd[0], NULL, "from a child", 0);
	slay(child);
}

static void room_from_child(void *count) {
	sleep_ms(20);
	drain(fd[1], 1024, 0, *(int *)count);
	pause();
}

CASE(room_made_by_another_process, "streamio(7I) S_OUTPUT") {
	watch(S_MSG);
	set_nonblock(fd[0], 1);
	int n = fill(fd[0], 1024);
	ask(fd[0], S_OUTPUT);
	pid_t child = spawn(room_from_child, &n);
	check_caught(POLL_OUT, POLLOUT);
	slay(child);
}

static struct turn ready, go;
static void watch_too(void *unused) {
	(void)unused;
	int seen;
	/* What is asked for belongs to the process that asked. */
	check_errno(ioctl(fd[0], I_GETSIG, &seen), EINVAL);
	ask(fd[0], S_INPUT);
	turn_give(ready);
	await(caught[SIGPOLL] > 0);
	turn_take(go);
}

CASE(every_process_that_asked_is_told, "streamio(7I) I_SETSIG") {
	ready = turn_new(), go = turn_new();
	watch(S_INPUT);
	pid_t child = spawn(watch_too, NULL);
	turn_take(ready);
	put(fd[1], NULL, "for both", 0);
	check_caught(POLL_IN, POLLIN);
	turn_give(go);
	join(child);
}

static void stay_silent(void *unused) {
	(void)unused;
	caught[SIGPOLL] = 0;
	turn_give(ready);
	turn_take(go);
	check_silent(SIGPOLL);
}

CASE(a_child_that_did_not_ask_is_not_told, "streamio(7I) I_SETSIG") {
	ready = turn_new(), go = turn_new();
	watch(S_INPUT);
	pid_t child = spawn(stay_silent, NULL);
	turn_take(ready);
	put(fd[1], NULL, "for the parent", 0);
	check_caught(POLL_IN, POLLIN);
	turn_give(go);
	join(child);
}

static void child_watches(void *unused) {
	(void)unused;
	ask(fd[0], S_INPUT);
	turn_give(ready);
	await(caught[SIGPOLL] > 0);
	check_message(fd[0], NULL, "for the child", 0);
}

CASE(the_process_that_asked_is_told_not_the_writer, "streamio(7I) I_SETSIG") {
	ready = turn_new();
	catch_signal(SIGPOLL);
	pipe_flags(fd, 0);
	pid_t child = spawn(child_watches, NULL);
	turn_take(ready);
	put(fd[1], NULL, "for the child", 0);
	join(child);
	check_eq(caught[SIGPOLL], 0);
}

CASE(o_async_raises_sigio, "fcntl(2) O_ASYNC") {
	pipe_flags(fd, 0);
	catch_signal(SIGIO);
	must(fcntl(fd[0], F_SETOWN, getpid()));
	must(fcntl(fd[0], F_SETFL, O_RDWR | O_ASYNC));
	check_eq(fcntl(fd[0], F_GETFL) & O_ASYNC, O_ASYNC);
	put(fd[1], NULL, "x", 0);
	await(caught[SIGIO] > 0);
	must(fcntl(fd[0], F_SETFL, O_RDWR));
	check_message(fd[0], NULL, "x", 0);
	caught[SIGIO] = 0;
	put(fd[1], NULL, "x", 0);
	check_silent(SIGIO);
}

CASE(close_ends_the_signals, "close(2)") {
	watch(S_HANGUP | S_INPUT);
	close(fd[0]);
	close(fd[1]);
	check_silent(SIGPOLL);
}

CASE(esetsig_for_this_process, "streamio(7I) I_ESETSIG") {
	struct strsigset s = {.ss_pid = getpid(), .ss_events = S_RDNORM}, seen = {.ss_pid = getpid()};
	pipe_flags(fd, 0);
	catch_signal(SIGPOLL);
	check_eq(ioctl(fd[0], I_ESETSIG, &s), 0);
	check_eq(ioctl(fd[0], I_EGETSIG, &seen), 0);
	check_eq(seen.ss_events, S_RDNORM);
	put(fd[1], NULL, "x", 0);
	check_caught(POLL_IN, POLLRDNORM);
}

static void child_writes(void *with) {
	(void)with;
	for (int i = 0; i < 3; i++) {
		turn_take(ready);
		put(fd[1], NULL, "x", 0);
	}
	turn_take(ready);
}

CASE(a_module_pushed_again_tells_again, "streamio(7I) I_SETSIG") {
	ready = turn_new();
	watch(S_RDNORM);
	pid_t child = spawn(child_writes, NULL);
	close(fd[1]);
	for (int i = 0; i < 3; i++) {
		/* With it, without it, with it. */
		if (i == 1)
			must(ioctl(fd[0], I_POP, 0));
		else
			must(ioctl(fd[0], I_PUSH, "nullmod"));
		/* Long enough without a call for others to serve the queues. */
		sleep_ms(50);
		caught[SIGPOLL] = 0;
		turn_give(ready);
		await(caught[SIGPOLL] > 0);
		check_message(fd[0], NULL, "x", 0);
	}
	turn_give(ready);
	join(child);
}

static volatile int enough;

static void writes_and_reads(void *with) {
	(void)with;
	char buf[8];
	while (!enough && write(fd[1], "x", 1) == 1)
		if (read(fd[0], buf, sizeof buf) < 1)
			return;
}

CASE(a_fork_while_a_signal_is_sent, "fork(2)") {
	watch(S_RDNORM);
	pthread_t thread = start(writes_and_reads, NULL);
	sigset_t told;
	sigemptyset(&told);
	sigaddset(&told, SIGPOLL);
	pthread_sigmask(SIG_BLOCK, &told, NULL);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		join(child);
	}
	enough = 1;
	finish(thread);
}

static sigjmp_buf away;
static void jump_away(int sig) {
	(void)sig;
	siglongjmp(away, 1);
}

CASE(reads_left_by_siglongjmp_leave_nothing, "siglongjmp(3)") {
	struct sigaction act = {.sa_handler = jump_away};
	int end[2], before = descriptors();
	char c;
	must(sigaction(SIGUSR1, &act, NULL));
	for (volatile int i = 0; i < 40; i++) {
		must(streams_pipe(end));
		if (!sigsetjmp(away, 1)) {
			pid_t self = getpid(), child = fork();
			if (child == 0) {
				usleep(3000);
				kill(self, SIGUSR1);
				_exit(0);
			}
			read(end[0], &c, 1);
		}
		while (wait(NULL) < 0 && errno == EINTR) {
		}
		close(end[0]);
		close(end[1]);
	}
	check(descriptors() <= before + 4);
}

CASES(ENTRY(reads_left_by_siglongjmp_leave_nothing), ENTRY(getsig_says_what_setsig_asked), ENTRY(getsig_without_setsig), ENTRY(setsig_errors), ENTRY(getsig_of_nowhere),
      ENTRY(without_setsig_there_is_no_signal), ENTRY(setsig_0_ends_it), ENTRY(the_default_action_kills),
      ENTRY(s_input_and_ordinary_data), ENTRY(s_input_and_a_band), ENTRY(s_input_and_a_message_of_no_bytes),
      ENTRY(s_input_is_not_for_high_priority), ENTRY(s_rdnorm), ENTRY(s_rdnorm_behind_a_rest), ENTRY(s_rdband), ENTRY(s_hipri),
      ENTRY(s_bandurg_makes_it_sigurg), ENTRY(s_hangup), ENTRY(s_hangup_of_a_killed_peer), ENTRY(s_output), ENTRY(s_wrnorm),
      ENTRY(s_wrband), ENTRY(one_signal_of_many_events), ENTRY(a_handler_reads), ENTRY(reading_in_the_handler),
      ENTRY(a_driver_streams_signals), ENTRY(signals_with_a_module), ENTRY(a_blocked_signal_waits), ENTRY(a_blocked_signal_of_another_thread_waits),
      ENTRY(sigpoll_ends_a_blocked_call), ENTRY(a_message_of_another_process), ENTRY(room_made_by_another_process),
      ENTRY(every_process_that_asked_is_told), ENTRY(a_child_that_did_not_ask_is_not_told),
      ENTRY(the_process_that_asked_is_told_not_the_writer), ENTRY(o_async_raises_sigio), ENTRY(close_ends_the_signals),
      ENTRY(esetsig_for_this_process), ENTRY(a_module_pushed_again_tells_again), ENTRY(a_fork_while_a_signal_is_sent))
