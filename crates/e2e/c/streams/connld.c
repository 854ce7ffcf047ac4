/* connld: who opens the name has a pipe of its own. */
#include "names.h"
#include <sys/resource.h>

static void serve(void) {
	make_file(PATH);
	pipe_flags(fd, 0);
	push(fd[1], "connld");
	check_eq(fattach(fd[1], PATH), 0);
	must(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	must(fcntl(fd[1], F_SETFD, FD_CLOEXEC));
}

static struct strrecvfd next_client(void) {
	struct strrecvfd r = {.fd = -1};
	check_eq(ioctl(fd[0], I_RECVFD, &r), 0);
	check_eq(isastream(r.fd), 1);
	return r;
}

/* Says who it is, and hears it back. */
static void say_name(void *name) {
	int f = open_path(PATH, O_RDWR);
	put(f, "ctl", name, 0);
	check_message(f, "hello", name, 0);
	put(f, NULL, "bye", 0);
	close(f);
}

static void greet(struct strrecvfd r) {
	struct message m;
	char c;
	check_eq(get_any(r.fd, &m), 0);
	check_str(m.ctl, "ctl");
	put(r.fd, "hello", m.data, 0);
	check_message(r.fd, NULL, "bye", 0);
	check_eq(read(r.fd, &c, 1), 0);
	close(r.fd);
}

CASE(connld_gives_a_client_its_own_pipe, "connld(7M)") {
	serve();
	pid_t child = spawn(say_name, "a child");
	struct strrecvfd r = next_client();
	check_eq(r.uid, geteuid());
	check_eq(r.gid, getegid());
	greet(r);
	join(child);
	check_eq(events(fd[0], POLLIN | POLLOUT, 0) & POLLHUP, 0);
}

CASE(connld_with_several_clients_at_once, "connld(7M)") {
	serve();
	pid_t child[5];
	struct strrecvfd r[5];
	char *names[5] = {"a", "b", "c", "d", "e"};
	for (int i = 0; i < 5; i++)
		child[i] = spawn(say_name, names[i]);
	for (int i = 0; i < 5; i++)
		r[i] = next_client();
	for (int i = 5; i-- > 0;)
		greet(r[i]);
	for (int i = 0; i < 5; i++)
		join(child[i]);
}

CASE(connld_with_a_program, "connld(7M)") {
	if (role()) {
		say_name("a program");
		return;
	}
	serve();
	close(fd[1]);
	for (int i = 0; i < 3; i++) {
		pid_t child = spawn_role("connld_with_a_program", "client");
		greet(next_client());
		join(child);
	}
}

static volatile int opened;
static void open_it(void *unused) {
	(void)unused;
	say_name("a thread");
	opened = 1;
}

CASE(connld_in_one_process, "connld(7M)") {
	serve();
	pthread_t t = start(open_it, NULL);
	greet(next_client());
	await(opened);
	finish(t);
}

static volatile int came_through;
static void only_open(void *unused) {
	(void)unused;
	open_path(PATH, O_RDWR);
	came_through = 1;
}

CASE(open_waits_for_the_servers_recvfd, "connld(7M)") {
	serve();
	pthread_t t = start(only_open, NULL);
	stays_false(came_through);
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	stays_false(came_through);
	next_client();
	await(came_through);
	finish(t);
}

static void open_in_turn(void *turns) {
	struct turn *t = turns;
	for (;;) {
		turn_take(t[0]);
		int f = open(PATH, O_RDWR | O_NONBLOCK);
		if (f < 0)
			check_eq(errno, ENXIO);
		turn_give(t[1]);
	}
}
CASE(a_server_without_descriptors, "streamio(7I) I_RECVFD EMFILE") {
	struct turn turns[2] = {turn_new(), turn_new()};
	struct strrecvfd r;
	struct rlimit limit;
	int n = 0;
	serve();
	pid_t child = spawn(open_in_turn, turns);
	check_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 200;
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (;; n++) {
		check(n < 200);
		turn_give(turns[0]);
		if (ioctl(fd[0], I_RECVFD, &r) < 0)
			break;
		turn_take(turns[1]);
	}
	check_eq(errno, EMFILE);
	check(n > 0);
	slay(child);
}

CASE(a_server_without_clients_is_eagain, "streamio(7I) I_RECVFD") {
	struct strrecvfd r;
	serve();
	set_nonblock(fd[0], 1);
	check_errno(ioctl(fd[0], I_RECVFD, &r), EAGAIN);
	pid_t child = spawn(say_name, "later");
	check_eq(events(fd[0], POLLIN, PATIENCE), POLLIN);
	greet(next_client());
	join(child);
}

CASE(a_signal_ends_a_waiting_open, "open(2) EINTR") {
	serve();
	pid_t child = start_poking(SIGUSR1);
	check_errno(open(PATH, O_RDWR), EINTR);
	end_poking(child);
}

static struct turn attached;
static void serve_and_die(void *unused) {
	(void)unused;
	serve();
	turn_give(attached);
	events(fd[0], POLLIN, PATIENCE);
	kill(getpid(), SIGKILL);
}

CASE(a_server_that_dies_ends_the_waiting_open, "connld(7M)") {
	attached = turn_new();
	pid_t child = spawn(serve_and_die, NULL);
	turn_take(attached);
	int f = open(PATH, O_RDWR);
	if (f >= 0 && isastream(f))
		check(events(f, POLLIN, PATIENCE) & POLLHUP);
	else if (f < 0)
		/* It had nothing for an end, and waits for another who opens. */
		kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	check_plain(PATH);
}

CASE(connections_outlive_the_name, "connld(7M)") {
	serve();
	pthread_t t = start(open_it, NULL);
	struct strrecvfd r = next_client();
	check_eq(fdetach(PATH), 0);
	close(fd[1]);
	close(fd[0]);
	check_plain(PATH);
	greet(r);
	finish(t);
}

CASES(ENTRY(connld_gives_a_client_its_own_pipe), ENTRY(connld_with_several_clients_at_once),
      ENTRY(connld_with_a_program), ENTRY(connld_in_one_process), ENTRY(open_waits_for_the_servers_recvfd),
      ENTRY(a_server_without_clients_is_eagain), ENTRY(a_server_without_descriptors),
      ENTRY(a_signal_ends_a_waiting_open), ENTRY(a_server_that_dies_ends_the_waiting_open),
      ENTRY(connections_outlive_the_name))
