/* Who holds a pipe's ends: processes by fork and exec, copies by dup, peers that are killed, whoever is passed a descriptor. */
#include "pipes.h"
#include "refuse.h"
#include <sys/socket.h>

/* --- fork and dup --- */

CASE(an_end_lives_while_a_child_has_it, "fork(2)") {
	struct turn go = turn_new();
	pipe_flags(fd, 0);
	pid_t child = fork();
	if (child == 0) {
		close(fd[0]);
		turn_take(go);
		check_eq(write(fd[1], "still here", 10), 10);
		_exit(0);
	}
	close(fd[1]);
	check_eq(events(fd[0], POLLIN, 30), 0);
	turn_give(go);
	check_read(fd[0], "still here");
	char c;
	check_eq(read(fd[0], &c, 1), 0);
	join(child);
}

static void exit_at_once(void *unused) { (void)unused; }

CASE(a_child_that_exits_hangs_nothing_up, "fork(2)") {
	pipe_flags(fd, 0);
	join(spawn(exit_at_once, NULL));
	check_eq(events(fd[0], POLLOUT, 0), POLLOUT);
	check_eq(write(fd[1], "x", 1), 1);
	check_read(fd[0], "x");
}

#define EACH 5000
static void write_words(void *who) {
	for (int i = 0; i < EACH; i++) {
		int word[2] = {*(int *)who, i};
		check_eq(write(fd[1], word, sizeof word), (int)sizeof word);
	}
}

CASE(writers_of_two_processes_share_an_end, "fork(2)") {
	int me = 0, other = 1, next[2] = {0}, word[2];
	pipe_flags(fd, 0);
	pid_t child = spawn(write_words, &other);
	pthread_t t = start(write_words, &me);
	for (int i = 0; i < 2 * EACH; i++) {
		check_eq(read(fd[0], word, sizeof word), (int)sizeof word);
		check(word[0] == 0 || word[0] == 1);
		check_eq(word[1], next[word[0]]++);
	}
	finish(t);
	join(child);
}

static int readings[2];
static void read_words(void *count) {
	int word, n = 0, last = -1;
	ssize_t r;
	while ((r = must(read(fd[0], &word, sizeof word))) > 0) {
		check_eq(r, (int)sizeof word);
		check(word > last);
		last = word, n++;
	}
	if (count)
		check_eq(write(*(int *)count, &n, sizeof n), (int)sizeof n);
	else
		readings[0] = n;
}

CASE(readers_of_two_processes_share_an_end, "fork(2)") {
	struct turn counts = turn_new();
	pipe_flags(fd, 0);
	pid_t child = fork();
	if (child == 0) {
		close(fd[1]);
		read_words(&counts.fd[1]);
		_exit(0);
	}
	pthread_t t = start(read_words, NULL);
	for (int i = 0; i < EACH; i++)
		check_eq(write(fd[1], &i, sizeof i), (int)sizeof i);
	close(fd[1]);
	finish(t);
	check_eq(read(counts.fd[0], &readings[1], sizeof readings[1]), (int)sizeof readings[1]);
	check_eq(readings[0] + readings[1], EACH);
	join(child);
}

CASE(dup_is_the_same_end, "dup(2)") {
	pipe_flags(fd, 0);
	int other = must(dup(fd[1]));
	check_eq(isastream(other), 1);
	put(other, "c", "by the duplicate", 0);
	check_message(fd[0], "c", "by the duplicate", 0);
	set_nonblock(fd[1], 1);
	char c;
	check_errno(read(other, &c, 1), EAGAIN);
	close(fd[1]);
	check_eq(write(other, "x", 1), 1);
	check_read(fd[0], "x");
	close(other);
	check_eq(read(fd[0], &c, 1), 0);
}

CASE(dup2_dup3_and_f_dupfd, "dup2(2)") {
	int kernel[2], three;
	pipe_flags(fd, 0);
	must(pipe(kernel));
	check_eq(dup2(fd[1], kernel[0]), kernel[0]);
	check_eq(isastream(kernel[0]), 1);
	check_eq(write(kernel[0], "2", 1), 1);
	check_read(fd[0], "2");
	check_eq(dup3(fd[1], kernel[1], O_CLOEXEC), kernel[1]);
	check_eq(fcntl(kernel[1], F_GETFD), FD_CLOEXEC);
	check_eq(write(kernel[1], "3", 1), 1);
	check_read(fd[0], "3");
	three = must(fcntl(fd[1], F_DUPFD, 100));
	check(three >= 100);
	check_eq(write(three, "100", 3), 3);
	check_read(fd[0], "100");
	check_eq(dup2(0, kernel[0]), kernel[0]);
	check_eq(isastream(kernel[0]), 0);
}

CASE(dup2_over_the_last_descriptor_hangs_up, "dup2(2)") {
	char c;
	pipe_flags(fd, 0);
	check_eq(dup2(0, fd[1]), fd[1]);
	check_eq(read(fd[0], &c, 1), 0);
}

CASE(a_number_used_again_is_a_new_stream, "close(2)") {
	for (int i = 0; i < 200; i++) {
		pipe_flags(fd, 0);
		check_eq(write(fd[1], "old", 3), 3);
		close(fd[0]);
		close(fd[1]);
		pipe_flags(fd, O_NONBLOCK);
		char c;
		check_errno(read(fd[0], &c, 1), EAGAIN);
		close(fd[0]);
		close(fd[1]);
	}
}

CASE(an_end_is_inherited_over_exec, "exec(2)") {
	if (role()) {
		int end = atoi(role());
		check_eq(isastream(end), 1);
		struct message m;
		check_eq(get_any(end, &m), 0);
		check_str(m.ctl, "ctl");
		put(end, "answer", m.data, 3);
		return;
	}
	char number[20];
	pipe_flags(fd, 0);
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	snprintf(number, sizeof number, "%d", fd[1]);
	put(fd[0], "ctl", "over exec", 0);
	pid_t child = spawn_role("an_end_is_inherited_over_exec", number);
	close(fd[1]);
	check_message(fd[0], "answer", "over exec", 3);
	char c;
	check_eq(read(fd[0], &c, 1), 0);
	join(child);
}

/* The image's numbers are taken, but for the lowest: it has none for memory and bells. */
#define END 10
CASE(an_image_without_numbers_does_not_wait_at_an_end, "exec(2)") {
	if (role()) {
		char c;
		check(read(END, &c, 1) <= 0);
		check(write(END, "x", 1) < 0);
		return;
	}
	struct rlimit before, limit;
	pipe_flags(fd, 0);
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	check_eq(dup2(fd[1], END), END);
	close(fd[1]);
	put(fd[0], NULL, "unread", 0);
	check_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 64;
	for (int n = 16; n < 64; n++)
		if (n != fd[0])
			check_eq(dup2(STDIN_FILENO, n), n);
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	pid_t child = spawn_role("an_image_without_numbers_does_not_wait_at_an_end", "image");
	close(END);
	join(child);
	check_eq(events(fd[0], POLLIN, PATIENCE) & POLLHUP, POLLHUP);
}

/* One pipe's end has two names, of the other both ends are inherited. The bells are there, so that the image finds out by itself. */
CASE(an_image_without_numbers_waits_at_no_name_of_an_end, "exec(2)") {
	if (role()) {
		char c;
		for (int n = END; n < END + 4; n++) {
			check(read(n, &c, 1) <= 0);
			check(write(n, "x", 1) < 0);
		}
		return;
	}
	struct rlimit before, limit;
	int both[2];
	pipe_flags(fd, 0);
	pipe_flags(both, 0);
	fcntl(fd[0], F_SETFD, FD_CLOEXEC);
	check_eq(dup2(fd[1], END), END);
	check_eq(dup2(fd[1], END + 1), END + 1);
	check_eq(dup2(both[0], END + 2), END + 2);
	check_eq(dup2(both[1], END + 3), END + 3);
	close(fd[1]), close(both[0]), close(both[1]);
	put(fd[0], NULL, "unread", 0);
	join(spawn(exit_at_once, NULL));
	check_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 64;
	for (int n = 16; n < 64; n++)
		if (n != fd[0])
			check_eq(dup2(STDIN_FILENO, n), n);
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	pid_t child = spawn_role("an_image_without_numbers_waits_at_no_name_of_an_end", "image");
	for (int n = END; n < END + 4; n++)
		close(n);
	join(child);
	check_eq(events(fd[0], POLLIN, PATIENCE) & POLLHUP, POLLHUP);
}

CASE(an_exec_after_vfork_leaves_the_parent_its_numbers, "vfork(2)") {
	pipe_flags(fd, 0);
	pid_t child = vfork();
	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	join(child);
	struct rlimit most;
	must(getrlimit(RLIMIT_NOFILE, &most));
	int high = must(fcntl(STDOUT_FILENO, F_DUPFD, (int)(most.rlim_cur / 4 * 3)));
	check_eq(close(high), 0);
}

CASE(an_inherited_number_used_for_a_file_is_a_file, "exec(2)") {
	if (role()) {
		check_eq(isastream(atoi(role())), 0);
		return;
	}
	char number[20], command[600], self[400];
	ssize_t n = must(readlink("/proc/self/exe", self, sizeof self - 1));
	self[n] = 0;
	pipe_flags(fd, 0);
	must(dup2(fd[1], 9));
	snprintf(number, sizeof number, "%d", 9);
	snprintf(command, sizeof command, "exec '%s' an_inherited_number_used_for_a_file_is_a_file 9</dev/null", self);
	pid_t child = fork();
	if (child == 0) {
		setenv("CASE_ROLE", number, 1);
		unsetenv("LD_PRELOAD");
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(1);
	}
	join(child);
}

/* What this end has taken of a message is its own; what comes behind stays for all who share the end. */
static void take_a_part(void) {
	char c[8], d[3];
	int flags = 0;
	struct strbuf control = in_buf(c, sizeof c), data = in_buf(d, sizeof d);
	check_eq(getmsg(fd[0], &control, &data, &flags), MOREDATA);
}

static void take_a_part_there(void *with) {
	(void)with;
	take_a_part();
}

CASE(a_part_taken_leaves_what_is_behind, "getmsg(2)") {
	int n;
	pipe_flags(fd, O_NONBLOCK);
	put(fd[1], "control", "a long one", 0);
	put(fd[1], NULL, "second", 0);
	put(fd[1], NULL, "third", 0);
	pid_t child = spawn(take_a_part_there, NULL);
	join(child);
	check_eq(ioctl(fd[0], I_NREAD, &n), 2);
	check_message(fd[0], NULL, "second", 0);
	check_message(fd[0], NULL, "third", 0);
}

CASE(a_part_taken_is_counted_with_what_is_behind, "streamio(7I) I_NREAD") {
	int n;
	pipe_flags(fd, O_NONBLOCK);
	put(fd[1], "control", "a long one", 0);
	put(fd[1], NULL, "second", 0);
	take_a_part();
	check_eq(ioctl(fd[0], I_NREAD, &n), 2);
	check_eq(n, 7);
	put(fd[1], NULL, "urgent", 3);
	check_message(fd[0], NULL, "urgent", 3);
	check_message(fd[0], NULL, "ong one", 0);
	check_message(fd[0], NULL, "second", 0);
}

/* --- killed peers --- */

static void write_and_wait(void) {
	put(fd[1], "ctl", "one", 0);
	put(fd[1], NULL, "high", 7);
	check_eq(write(fd[1], "two", 3), 3);
	pause();
}

CASE(what_a_killed_peer_sent_is_read, "kill(2)") {
	pid_t child = apart(write_and_wait);
	await(ioctl(fd[0], I_NREAD, &(int){0}) == 3);
	slay(child);
	check_message(fd[0], NULL, "high", 7);
	check_message(fd[0], "ctl", "one", 0);
	check_message(fd[0], NULL, "two", 0);
	char c;
	check_eq(read(fd[0], &c, 1), 0);
	check_eq(events(fd[0], POLLOUT, PATIENCE), POLLHUP);
}

static void write_for_ever(void) {
	char buf[5000];
	for (int i = 0;; i++) {
		int n = 8 + i % 4900;
		memset(buf, i, n);
		memcpy(buf, &i, 4);
		struct strbuf c = out_buf(buf, 4), d = out_buf(buf, n);
		putmsg(fd[1], &c, &d, 0);
	}
}

CASE(a_peer_killed_in_the_middle_leaves_whole_messages, "kill(2)") {
	struct message m;
	for (int round = 0; round < 20; round++) {
		pid_t child = apart(write_for_ever);
		int next = 0, number;
		for (int i = 0; i < 50 + 37 * round; i++, next++)
			check_eq(get_any(fd[0], &m), 0);
		slay(child);
		long begin = now_ms();
		while (get_any(fd[0], &m) == 0 && m.ctl_len == 4) {
			memcpy(&number, m.ctl, 4);
			check_eq(number, next);
			check_eq(m.data_len, 8 + number % 4900);
			for (int i = 4; i < m.data_len; i++)
				check(m.data[i] == (char)number);
			next++;
		}
		check_eq(m.result, 0);
		check_eq(m.data_len, 0);
		check(now_ms() - begin < 2000);
		close(fd[0]);
	}
}

static void read_for_ever(void) {
	struct message m;
	while (get_any(fd[1], &m) == 0)
		;
}

CASE(a_writer_learns_that_its_reader_was_killed, "kill(2)") {
	signal(SIGPIPE, SIG_IGN);
	for (int round = 0; round < 20; round++) {
		pid_t child = apart(read_for_ever);
		for (int i = 0; i < 100 + 31 * round; i++)
			check_eq(write(fd[0], big, 700), 700);
		slay(child);
		long begin = now_ms();
		while (write(fd[0], big, 700) == 700)
			check(now_ms() - begin < 2000);
		check_eq(errno, EPIPE);
		close(fd[0]);
	}
}

static void pause_only(void) { pause(); }

CASE(a_blocked_reader_is_woken_by_a_kill, "kill(2)") {
	pid_t child = apart(pause_only);
	pthread_t t = start(read_to_the_end, NULL);
	stays_false(done);
	slay(child);
	await(done);
	finish(t);
}

CASE(a_killed_sharer_leaves_the_end_usable, "kill(2)") {
	int zero = 0, word[2];
	pipe_flags(fd, O_NONBLOCK);
	set_nonblock(fd[1], 0);
	for (int round = 0; round < 10; round++) {
		pid_t child = spawn(write_words, &zero);
		sleep_ms(2);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		check_eq(events(fd[1], POLLOUT, 0) & POLLHUP, 0);
		for (int i = 0; read(fd[0], word, sizeof word) == (int)sizeof word; i++)
			check_eq(word[1], i);
		check_eq(errno, EAGAIN);
		check_eq(write(fd[1], "whole", 5), 5);
		check_read(fd[0], "whole");
	}
}

/* --- passed descriptors --- */

static int sent_file(const char *text) {
	int f = must(open("passed", O_RDWR | O_CREAT | O_TRUNC, 0600));
	check_eq(write(f, text, strlen(text)), (int)strlen(text));
	check_eq(lseek(f, 0, SEEK_SET), 0);
	return f;
}

static struct strrecvfd receive(int end) {
	struct strrecvfd r = {.fd = -1};
	check_eq(ioctl(end, I_RECVFD, &r), 0);
	check(r.fd >= 0);
	return r;
}

CASE(a_file_is_passed, "streamio(7I) I_SENDFD") {
	pipe_flags(fd, 0);
	int f = sent_file("of the file");
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
	close(f);
	struct strrecvfd r = receive(fd[0]);
	check_eq(r.uid, geteuid());
	check_eq(r.gid, getegid());
	check_read(r.fd, "of the file");
}

static void send_a_file(void) {
	int f = sent_file("from a child");
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
}

CASE(a_file_is_passed_between_processes, "streamio(7I) I_SENDFD") {
	pid_t child = apart(send_a_file);
	struct strrecvfd r = receive(fd[0]);
	join(child);
	check_read(r.fd, "from a child");
	check_eq(lseek(r.fd, 0, SEEK_CUR), 12);
}

CASE(passed_descriptors_keep_their_place, "streamio(7I) I_RECVFD") {
	struct strrecvfd r;
	struct message m;
	char c;
	pipe_flags(fd, 0);
	int f = sent_file("x");
	put(fd[1], NULL, "before", 0);
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
	put(fd[1], NULL, "after", 0);
	check_errno(ioctl(fd[0], I_RECVFD, &r), EBADMSG);
	check_message(fd[0], NULL, "before", 0);
	check_errno(get_any(fd[0], &m), EBADMSG);
	check_errno(read(fd[0], &c, 1), EBADMSG);
	check_read(receive(fd[0]).fd, "x");
	check_message(fd[0], NULL, "after", 0);
}

CASE(a_passed_descriptor_makes_readable, "poll(2)") {
	pipe_flags(fd, 0);
	check_eq(ioctl(fd[1], I_SENDFD, 0), 0);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	receive(fd[0]);
	check_eq(events(fd[0], POLLIN, 0), 0);
}

CASE(recvfd_of_nothing_is_eagain, "streamio(7I) I_RECVFD EAGAIN") {
	struct strrecvfd r;
	pipe_flags(fd, O_NONBLOCK);
	check_errno(ioctl(fd[0], I_RECVFD, &r), EAGAIN);
}

CASE(sendfd_errors, "streamio(7I) I_SENDFD") {
	pipe_flags(fd, 0);
	check_errno(ioctl(fd[0], I_SENDFD, -1), EBADF);
	check_errno(ioctl(fd[0], I_SENDFD, 9999), EBADF);
	int echo = open_stream("/dev/echo");
	check_errno(ioctl(echo, I_SENDFD, 0), EINVAL);
}

/* What can't be taken now stays, and is there when it can. */
static void check_stays(int end, int error) {
	struct strrecvfd r;
	for (int i = 0; i < 3; i++) {
		check_eq(events(end, POLLIN, PATIENCE), POLLIN);
		check_errno(ioctl(end, I_RECVFD, &r), error);
	}
}

CASE(a_passed_file_waits_for_a_number, "streamio(7I) I_RECVFD EMFILE") {
	struct rlimit before, limit;
	pipe_flags(fd, 0);
	int f = sent_file("x");
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
	put(fd[1], NULL, "after", 0);
	check_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int left = 0; left < 2; left++) {
		int first = must(dup(f)), second = must(dup(f));
		close(first), close(second);
		limit = before;
		limit.rlim_cur = left ? second : first;
		check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		check_stays(fd[0], EMFILE);
		check_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	check_read(receive(fd[0]).fd, "x");
	check_message(fd[0], NULL, "after", 0);
}

static void receive_late(void *unused) {
	(void)unused;
	check_read(receive(fd[0]).fd, "late");
	done = 1;
}

CASE(recvfd_waits, "streamio(7I) I_RECVFD") {
	pipe_flags(fd, 0);
	int f = sent_file("late");
	pthread_t t = start(receive_late, NULL);
	stays_false(done);
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
	await(done);
	finish(t);
}

CASE(a_socket_is_passed, "streamio(7I) I_SENDFD") {
	int pair[2];
	pipe_flags(fd, 0);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	check_eq(ioctl(fd[1], I_SENDFD, pair[1]), 0);
	close(pair[1]);
	int got = receive(fd[0]).fd;
	check_eq(write(got, "by socket", 9), 9);
	check_read(pair[0], "by socket");
	close(got);
	char c;
	check_eq(read(pair[0], &c, 1), 0);
}

CASE(a_pipe_end_is_passed_in_a_process, "streamio(7I) I_SENDFD") {
	int other[2];
	char c;
	pipe_flags(fd, 0);
	pipe_flags(other, 0);
	put(other[0], "c", "queued before", 3);
	check_eq(ioctl(fd[1], I_SENDFD, other[1]), 0);
	close(other[1]);
	check_eq(events(other[0], POLLOUT, 0), POLLOUT);
	int got = receive(fd[0]).fd;
	check_eq(isastream(got), 1);
	check_message(got, "c", "queued before", 3);
	put(got, "c", "back", 0);
	check_message(other[0], "c", "back", 0);
	close(got);
	check_eq(read(other[0], &c, 1), 0);
}

static void send_a_pipe(void) {
	int other[2];
	pipe_flags(other, 0);
	put(other[0], "c", "queued before", 3);
	check_eq(ioctl(fd[1], I_SENDFD, other[1]), 0);
	close(other[1]);
	check_message(other[0], "c", "answer", 0);
	put(other[0], NULL, "bye", 0);
}

CASE(a_pipe_end_is_passed_between_processes, "streamio(7I) I_SENDFD") {
	char c;
	pid_t child = apart(send_a_pipe);
	int got = receive(fd[0]).fd;
	check_eq(isastream(got), 1);
	check_message(got, "c", "queued before", 3);
	put(got, "c", "answer", 0);
	check_message(got, NULL, "bye", 0);
	check_eq(read(got, &c, 1), 0);
	join(child);
}

CASE(a_passed_end_waits_for_memory, "streamio(7I) I_RECVFD ENOMEM") {
	pid_t child = apart(send_a_pipe);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	starve();
	check_stays(fd[0], ENOMEM);
	feed();
	int got = receive(fd[0]).fd;
	check_message(got, "c", "queued before", 3);
	put(got, "c", "answer", 0);
	check_message(got, NULL, "bye", 0);
	join(child);
}

static void send_and_die(void) {
	int other[2];
	pipe_flags(other, 0);
	put(other[0], NULL, "from the dead", 0);
	check_eq(ioctl(fd[1], I_SENDFD, other[1]), 0);
	kill(getpid(), SIGKILL);
}

CASE(a_descriptor_outlives_its_sender, "streamio(7I) I_SENDFD") {
	int status;
	char c;
	pid_t child = apart(send_and_die);
	check_eq(waitpid(child, &status, 0), child);
	int got = receive(fd[0]).fd;
	check_message(got, NULL, "from the dead", 0);
	check_eq(read(got, &c, 1), 0);
}

CASE(a_descriptor_nobody_took_is_closed, "streamio(7I) I_SENDFD") {
	int other[2];
	char c;
	pipe_flags(fd, 0);
	pipe_flags(other, 0);
	check_eq(ioctl(fd[1], I_SENDFD, other[1]), 0);
	close(other[1]);
	close(fd[1]);
	close(fd[0]);
	check_eq(read(other[0], &c, 1), 0);
}

CASE(many_descriptors_are_passed, "streamio(7I) I_SENDFD") {
	char name[20];
	pipe_flags(fd, 0);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "number %d", i);
		int f = sent_file(name);
		unlink("passed");
		check_eq(ioctl(fd[1], I_SENDFD, f), 0);
		close(f);
	}
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "number %d", i);
		int got = receive(fd[0]).fd;
		check_read(got, name);
		close(got);
	}
}

CASE(a_descriptor_passes_through_modules, "streamio(7I) I_SENDFD") {
	pipe_flags(fd, 0);
	push(fd[0], "nullmod");
	push(fd[1], "nullmod");
	int f = sent_file("through modules");
	check_eq(ioctl(fd[1], I_SENDFD, f), 0);
	close(f);
	check_read(receive(fd[0]).fd, "through modules");
}

CASES(ENTRY(an_end_lives_while_a_child_has_it), ENTRY(a_child_that_exits_hangs_nothing_up),
      ENTRY(writers_of_two_processes_share_an_end), ENTRY(readers_of_two_processes_share_an_end),
      ENTRY(dup_is_the_same_end), ENTRY(dup2_dup3_and_f_dupfd), ENTRY(dup2_over_the_last_descriptor_hangs_up),
      ENTRY(a_number_used_again_is_a_new_stream), ENTRY(an_end_is_inherited_over_exec),
      ENTRY(an_image_without_numbers_does_not_wait_at_an_end),
      ENTRY(an_image_without_numbers_waits_at_no_name_of_an_end),
      ENTRY(an_exec_after_vfork_leaves_the_parent_its_numbers), ENTRY(an_inherited_number_used_for_a_file_is_a_file),
      ENTRY(a_part_taken_leaves_what_is_behind), ENTRY(a_part_taken_is_counted_with_what_is_behind),
      ENTRY(what_a_killed_peer_sent_is_read), ENTRY(a_peer_killed_in_the_middle_leaves_whole_messages),
      ENTRY(a_writer_learns_that_its_reader_was_killed), ENTRY(a_blocked_reader_is_woken_by_a_kill),
      ENTRY(a_killed_sharer_leaves_the_end_usable), ENTRY(a_file_is_passed), ENTRY(a_file_is_passed_between_processes),
      ENTRY(passed_descriptors_keep_their_place), ENTRY(a_passed_descriptor_makes_readable),
      ENTRY(recvfd_of_nothing_is_eagain), ENTRY(a_passed_file_waits_for_a_number),
      ENTRY(a_passed_end_waits_for_memory), ENTRY(sendfd_errors), ENTRY(recvfd_waits), ENTRY(a_socket_is_passed),
      ENTRY(a_pipe_end_is_passed_in_a_process), ENTRY(a_pipe_end_is_passed_between_processes),
      ENTRY(a_descriptor_outlives_its_sender), ENTRY(a_descriptor_nobody_took_is_closed),
      ENTRY(many_descriptors_are_passed), ENTRY(a_descriptor_passes_through_modules))
