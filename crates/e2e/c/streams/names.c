/* fattach and fdetach; in one process and between several. */
#include "names.h"

/* --- in one process --- */

CASE(an_attached_file_opens_as_the_stream, "fattach(3C)") {
	attach();
	int f = open_path(PATH, O_RDWR);
	check_eq(isastream(f), 1);
	put(f, "c", "in", 2);
	check_message(fd[0], "c", "in", 2);
	put(fd[0], NULL, "out", 0);
	check_message(f, NULL, "out", 0);
}

CASE(every_open_is_of_the_same_stream, "fattach(3C)") {
	attach();
	int a = open_path(PATH, O_RDWR), b = open_path(PATH, O_RDWR);
	check_eq(write(a, "from a", 6), 6);
	check_eq(write(b, "from b", 6), 6);
	check_message(fd[0], NULL, "from a", 0);
	check_message(fd[0], NULL, "from b", 0);
	put(fd[0], NULL, "one", 0);
	put(fd[0], NULL, "two", 0);
	put(fd[0], NULL, "three", 0);
	check_message(a, NULL, "one", 0);
	check_message(b, NULL, "two", 0);
	check_message(fd[1], NULL, "three", 0);
}

CASE(after_fdetach_the_file_is_plain, "fdetach(3C)") {
	attach();
	int f = open_path(PATH, O_RDWR);
	check_eq(fdetach(PATH), 0);
	check_plain(PATH);
	put(f, NULL, "still a stream", 0);
	check_message(fd[0], NULL, "still a stream", 0);
}

CASE(a_file_can_be_attached_again, "fattach(3C)") {
	attach();
	for (int i = 0; i < 20; i++) {
		check_eq(fdetach(PATH), 0);
		check_plain(PATH);
		check_eq(fattach(fd[1], PATH), 0);
		int f = open_path(PATH, O_RDWR);
		check_eq(isastream(f), 1);
		close(f);
	}
}

CASE(the_attachment_holds_the_stream, "fattach(3C)") {
	attach();
	close(fd[1]);
	check_eq(events(fd[0], POLLOUT, 50), POLLOUT);
	int f = open_path(PATH, O_RDWR);
	put(f, NULL, "client", 0);
	check_message(fd[0], NULL, "client", 0);
	close(f);
	check_eq(events(fd[0], POLLIN, 50), 0);
	f = open_path(PATH, O_RDWR);
	put(fd[0], NULL, "server", 0);
	check_message(f, NULL, "server", 0);
}

CASE(fdetach_of_the_last_reference_hangs_up, "fdetach(3C)") {
	char c;
	attach();
	close(fd[1]);
	check_eq(fdetach(PATH), 0);
	check_eq(read(fd[0], &c, 1), 0);
	check_eq(events(fd[0], POLLOUT, PATIENCE), POLLHUP);
}

CASE(a_stream_on_two_files, "fattach(3C)") {
	attach();
	make_file("window");
	check_eq(fattach(fd[1], "window"), 0);
	int a = open_path(PATH, O_RDWR), b = open_path("window", O_RDWR);
	put(a, NULL, "by the door", 0);
	put(b, NULL, "by the window", 0);
	check_message(fd[0], NULL, "by the door", 0);
	check_message(fd[0], NULL, "by the window", 0);
	check_eq(fdetach(PATH), 0);
	check_plain(PATH);
	int again = open_path("window", O_RDWR);
	check_eq(isastream(again), 1);
}

CASE(another_name_of_the_file_is_attached_too, "fattach(3C)") {
	attach();
	must(link(PATH, "other name"));
	must(symlink(PATH, "symbolic"));
	check_eq(isastream(open_path("other name", O_RDWR)), 1);
	check_eq(isastream(open_path("symbolic", O_RDWR)), 1);
	char absolute[PATH_MAX];
	check(realpath(PATH, absolute) != NULL);
	check_eq(isastream(open_path(absolute, O_RDWR)), 1);
	check_eq(isastream(must(openat(AT_FDCWD, PATH, O_RDWR))), 1);
}

CASE(access_modes_of_an_opened_name, "open(2)") {
	char c;
	attach();
	int reader = open_path(PATH, O_RDONLY | O_NONBLOCK);
	check_errno(write(reader, "x", 1), EBADF);
	check_errno(read(reader, &c, 1), EAGAIN);
	int writer = open_path(PATH, O_WRONLY);
	check_errno(read(writer, &c, 1), EBADF);
	check_eq(write(writer, "x", 1), 1);
	check_read(fd[0], "x");
}

CASE(opening_with_o_nonblock, "open(2) O_NONBLOCK") {
	char c;
	attach();
	int f = open_path(PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	check_errno(read(f, &c, 1), EAGAIN);
	check_eq(fcntl(f, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	check_eq(fcntl(f, F_GETFD), FD_CLOEXEC);
}

CASE(a_driver_stream_is_attached, "fattach(3C)") {
	make_file(PATH);
	int echo = open_stream("/dev/echo");
	check_eq(fattach(echo, PATH), 0);
	int f = open_path(PATH, O_RDWR);
	put(f, "c", "echoed", 0);
	check_message(f, "c", "echoed", 0);
	check_eq(fdetach(PATH), 0);
	check_plain(PATH);
}

CASE(modules_of_an_attached_stream, "fattach(3C)") {
	char name[FMNAMESZ + 1];
	attach();
	push(fd[1], "nullmod");
	int f = open_path(PATH, O_RDWR);
	check_eq(ioctl(f, I_LOOK, name), 0);
	check_str(name, "nullmod");
	put(f, NULL, "through", 0);
	check_message(fd[0], NULL, "through", 0);
}

/* --- errors --- */

CASE(a_second_stream_on_a_file_is_ebusy, "fattach(3C) EBUSY") {
	int other[2];
	attach();
	pipe_flags(other, 0);
	check_errno(fattach(other[1], PATH), EBUSY);
	int f = open_path(PATH, O_RDWR);
	put(f, NULL, "the first", 0);
	check_message(fd[0], NULL, "the first", 0);
}

CASE(fattach_of_what_is_no_stream, "fattach(3C) EINVAL") {
	int kernel[2];
	make_file(PATH);
	must(pipe(kernel));
	check_errno(fattach(kernel[0], PATH), EINVAL);
	int f = open_path(PATH, O_RDWR);
	check_errno(fattach(f, PATH), EINVAL);
	check_errno(fattach(-1, PATH), EBADF);
	check_errno(fattach(9999, PATH), EBADF);
	check_plain(PATH);
}

CASE(fattach_to_paths_that_are_not, "fattach(3C) ENOENT") {
	char long_name[5000];
	pipe_flags(fd, 0);
	make_file(PATH);
	check_errno(fattach(fd[1], "absent"), ENOENT);
	check_errno(fattach(fd[1], ""), ENOENT);
	check_errno(fattach(fd[1], PATH "/below"), ENOTDIR);
	memset(long_name, 'n', sizeof long_name);
	long_name[sizeof long_name - 1] = 0;
	check_errno(fattach(fd[1], long_name), ENAMETOOLONG);
	must(symlink("loop", "loop"));
	check_errno(fattach(fd[1], "loop"), ELOOP);
	check_errno2(fattach(fd[1], NULL), EFAULT, EINVAL);
}

CASE(fdetach_of_paths_that_are_not, "fdetach(3C)") {
	char long_name[5000];
	make_file(PATH);
	check_errno(fdetach(PATH), EINVAL);
	check_errno(fdetach("absent"), ENOENT);
	check_errno(fdetach(""), ENOENT);
	check_errno(fdetach(PATH "/below"), ENOTDIR);
	memset(long_name, 'n', sizeof long_name);
	long_name[sizeof long_name - 1] = 0;
	check_errno(fdetach(long_name), ENAMETOOLONG);
	check_errno2(fdetach(NULL), EFAULT, EINVAL);
}

CASE(a_second_fdetach_is_einval, "fdetach(3C) EINVAL") {
	attach();
	check_eq(fdetach(PATH), 0);
	check_errno(fdetach(PATH), EINVAL);
}

/* --- other processes --- */

static void client(void *text) {
	int f = open_path(PATH, O_RDWR);
	check_eq(isastream(f), 1);
	put(f, "ctl", text, 3);
	check_message(f, "answer", text, 0);
}

/* Drops what fork gave us: what follows knows only the path. */
static void client_alone(void *text) {
	close(fd[0]);
	close(fd[1]);
	client(text);
}

static void answer_one(const char *text) {
	check_message(fd[0], "ctl", text, 3);
	put(fd[0], "answer", text, 0);
}

CASE(a_child_opens_the_name, "fattach(3C)") {
	attach();
	pid_t child = spawn(client_alone, "forked");
	answer_one("forked");
	join(child);
	check_eq(events(fd[0], POLLIN, 0), 0);
}

CASE(a_program_opens_the_name, "fattach(3C)") {
	if (role()) {
		client("another program");
		return;
	}
	attach();
	must(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	must(fcntl(fd[1], F_SETFD, FD_CLOEXEC));
	pid_t child = spawn_role("a_program_opens_the_name", "client");
	answer_one("another program");
	join(child);
	put(fd[0], NULL, "left for us", 0);
	check_message(fd[1], NULL, "left for us", 0);
}

CASE(several_programs_one_after_the_other, "fattach(3C)") {
	if (role()) {
		client((char *)role());
		return;
	}
	char name[20];
	attach();
	must(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	must(fcntl(fd[1], F_SETFD, FD_CLOEXEC));
	close(fd[1]);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "number %d", i);
		pid_t child = spawn_role("several_programs_one_after_the_other", name);
		answer_one(name);
		join(child);
	}
	check_eq(events(fd[0], POLLOUT, 0), POLLOUT);
}

CASE(a_program_without_the_library_sees_the_plain_file, "fattach(3C)") {
	attach();
	must(fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	must(fcntl(fd[1], F_SETFD, FD_CLOEXEC));
	FILE *cat = popen("cat " PATH, "r");
	char text[20] = "";
	check(fgets(text, sizeof text, cat) != NULL);
	check_str(text, "plain");
	pclose(cat);
}

static struct turn attached, leave;
static int leave_by_kill;
static void attach_and_leave(void *unused) {
	(void)unused;
	attach();
	turn_give(attached);
	turn_take(leave);
	if (leave_by_kill)
		kill(getpid(), SIGKILL);
}

static void plain_after(int by_kill) {
	attached = turn_new(), leave = turn_new(), leave_by_kill = by_kill;
	pid_t child = spawn(attach_and_leave, NULL);
	turn_take(attached);
	int f = open_path(PATH, O_RDWR);
	check_eq(isastream(f), 1);
	close(f);
	turn_give(leave);
	check_eq(waitpid(child, NULL, 0), child);
	check_plain(PATH);
	check_errno(fdetach(PATH), EINVAL);
	attach();
	check_eq(isastream(open_path(PATH, O_RDWR)), 1);
}

CASE(plain_again_after_the_last_holder_has_gone, "fattach(3C)") { plain_after(0); }
CASE(plain_again_after_the_last_holder_was_killed, "fattach(3C)") { plain_after(1); }

static void attach_and_stay(void *unused) {
	(void)unused;
	make_file(PATH);
	check_eq(fattach(fd[1], PATH), 0);
	turn_give(attached);
	pause();
}

CASE(another_holder_takes_over_from_a_killed_one, "fattach(3C)") {
	attached = turn_new();
	pipe_flags(fd, 0);
	pid_t child = spawn(attach_and_stay, NULL);
	turn_take(attached);
	slay(child);
	await(isastream(open_path(PATH, O_RDWR)) == 1);
	int f = open_path(PATH, O_RDWR);
	put(f, NULL, "taken over", 0);
	check_message(fd[0], NULL, "taken over", 0);
}

static void attach_and_end(void *unused) {
	(void)unused;
	make_file(PATH);
	check_eq(fattach(fd[1], PATH), 0);
}

CASE(the_name_lives_on_with_its_other_holder, "fattach(3C)") {
	pipe_flags(fd, 0);
	join(spawn(attach_and_end, NULL));
	int f = open_path(PATH, O_RDWR);
	check_eq(isastream(f), 1);
	put(f, NULL, "the child attached it", 0);
	check_message(fd[0], NULL, "the child attached it", 0);
	check_eq(fdetach(PATH), 0);
	check_plain(PATH);
}

static void detach_it(void *unused) {
	(void)unused;
	check_eq(fdetach(PATH), 0);
	check_plain(PATH);
}

CASE(another_process_detaches, "fdetach(3C)") {
	attach();
	join(spawn(detach_it, NULL));
	check_plain(PATH);
	put(fd[0], NULL, "x", 0);
	check_message(fd[1], NULL, "x", 0);
}

CASE(another_process_attaches_the_same_file, "fattach(3C) EBUSY") {
	attached = turn_new(), leave = turn_new();
	pid_t child = spawn(attach_and_leave, NULL);
	turn_take(attached);
	pipe_flags(fd, 0);
	check_errno(fattach(fd[1], PATH), EBUSY);
	turn_give(leave);
	join(child);
	check_eq(fattach(fd[1], PATH), 0);
}

CASE(a_killed_client_leaves_the_others, "fattach(3C)") {
	attach();
	attached = turn_new();
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int f = open_path(PATH, O_RDWR);
		put(f, NULL, "from the dead", 0);
		pause();
	}
	check_message(fd[0], NULL, "from the dead", 0);
	slay(child);
	int f = open_path(PATH, O_RDWR);
	put(f, NULL, "from the living", 0);
	check_message(fd[0], NULL, "from the living", 0);
}

CASES(ENTRY(an_attached_file_opens_as_the_stream), ENTRY(every_open_is_of_the_same_stream),
      ENTRY(after_fdetach_the_file_is_plain), ENTRY(a_file_can_be_attached_again),
      ENTRY(the_attachment_holds_the_stream), ENTRY(fdetach_of_the_last_reference_hangs_up),
      ENTRY(a_stream_on_two_files), ENTRY(another_name_of_the_file_is_attached_too),
      ENTRY(access_modes_of_an_opened_name), ENTRY(opening_with_o_nonblock), ENTRY(a_driver_stream_is_attached),
      ENTRY(modules_of_an_attached_stream), ENTRY(a_second_stream_on_a_file_is_ebusy),
      ENTRY(fattach_of_what_is_no_stream), ENTRY(fattach_to_paths_that_are_not), ENTRY(fdetach_of_paths_that_are_not),
      ENTRY(a_second_fdetach_is_einval), ENTRY(a_child_opens_the_name), ENTRY(a_program_opens_the_name),
      ENTRY(several_programs_one_after_the_other), ENTRY(a_program_without_the_library_sees_the_plain_file),
      ENTRY(plain_again_after_the_last_holder_has_gone), ENTRY(plain_again_after_the_last_holder_was_killed),
      ENTRY(another_holder_takes_over_from_a_killed_one), ENTRY(the_name_lives_on_with_its_other_holder),
      ENTRY(another_process_detaches), ENTRY(another_process_attaches_the_same_file),
      ENTRY(a_killed_client_leaves_the_others))
