/* The FIFO driver; in one process and between several. */
#include "names.h"

CASE(a_fifo_gives_back_what_was_written, "fifo(7D)") {
	int f = open_stream("/dev/fifo");
	check_eq(isastream(f), 1);
	put(f, "c", "around", 2);
	check_eq(write(f, "bytes", 5), 5);
	check_message(f, "c", "around", 2);
	check_read(f, "bytes");
	check_nothing(f);
}

CASE(unnamed_fifos_are_separate, "fifo(7D)") {
	int a = open_stream_flags("/dev/fifo", O_RDWR | O_NONBLOCK), b = open_stream_flags("/dev/fifo", O_RDWR | O_NONBLOCK);
	char c;
	check_eq(write(a, "a", 1), 1);
	check_errno(read(b, &c, 1), EAGAIN);
	check_read(a, "a");
}

CASE(a_fifo_fills, "fifo(7D)") {
	int f = open_stream_flags("/dev/fifo", O_RDWR | O_NONBLOCK);
	int n = fill(f, 1024);
	check(n * 1024 >= 65536);
	check_eq(writable(f), 0);
	drain(f, 1024, 0, n);
	check_eq(writable(f), POLLOUT);
}

CASE(a_named_fifo_is_one_stream, "fifo(7D)") {
	int a = open_stream("/dev/fifo.one"), b = open_stream("/dev/fifo.one"), c = open_stream("/dev/fifo.two");
	put(a, "c", "for anybody", 1);
	set_nonblock(c, 1);
	char byte;
	check_errno(read(c, &byte, 1), EAGAIN);
	check_message(b, "c", "for anybody", 1);
	put(b, NULL, "back", 0);
	check_message(a, NULL, "back", 0);
}

static void write_to_fifo(void *unused) {
	(void)unused;
	int f = open_stream("/dev/fifo.shared");
	for (int i = 0; i < 1000; i++)
		check_eq(write(f, &i, sizeof i), (int)sizeof i);
}

CASE(a_named_fifo_between_processes, "fifo(7D)") {
	int f = open_stream("/dev/fifo.shared"), seen;
	pid_t child = spawn(write_to_fifo, NULL);
	for (int i = 0; i < 1000; i++) {
		check_eq(read(f, &seen, sizeof seen), (int)sizeof seen);
		check_eq(seen, i);
	}
	join(child);
}

CASE(a_named_fifo_between_programs, "fifo(7D)") {
	if (role()) {
		int f = open_stream("/dev/fifo.programs");
		check_message(f, "c", "to the program", 0);
		put(f, "answer", "from the program", 0);
		return;
	}
	int f = open_stream_flags("/dev/fifo.programs", O_RDWR | O_CLOEXEC);
	pid_t child = spawn_role("a_named_fifo_between_programs", "reader");
	put(f, "c", "to the program", 0);
	join(child);
	check_message(f, "answer", "from the program", 0);
}

CASE(the_last_close_empties_a_fifo, "close(2)") {
	int a = open_stream("/dev/fifo.fresh");
	check_eq(write(a, "old", 3), 3);
	close(a);
	a = open_stream_flags("/dev/fifo.fresh", O_RDWR | O_NONBLOCK);
	char c;
	check_errno(read(a, &c, 1), EAGAIN);
}

static void write_late(void *unused) {
	(void)unused;
	sleep_ms(50);
	int f = open_stream("/dev/fifo.late");
	put(f, NULL, "late", 0);
}

CASE(a_reader_of_a_fifo_waits, "read(2)") {
	int f = open_stream("/dev/fifo.late");
	pid_t child = spawn(write_late, NULL);
	check_message(f, NULL, "late", 0);
	join(child);
}

CASE(a_fifo_on_a_file, "fattach(3C)") {
	make_file(PATH);
	int f = open_stream("/dev/fifo");
	check_eq(fattach(f, PATH), 0);
	int a = open_path(PATH, O_RDWR), b = open_path(PATH, O_RDWR);
	put(a, NULL, "through the fifo", 0);
	check_message(b, NULL, "through the fifo", 0);
}

CASE(flush_of_a_fifo, "streamio(7I) I_FLUSH") {
	int f = open_stream("/dev/fifo");
	put(f, NULL, "gone", 0);
	check_eq(ioctl(f, I_FLUSH, FLUSHW), 0);
	check_nothing(f);
	put(f, NULL, "gone", 0);
	check_eq(ioctl(f, I_FLUSH, FLUSHR), 0);
	check_nothing(f);
}

CASES(ENTRY(a_fifo_gives_back_what_was_written), ENTRY(unnamed_fifos_are_separate), ENTRY(a_fifo_fills),
      ENTRY(a_named_fifo_is_one_stream), ENTRY(a_named_fifo_between_processes), ENTRY(a_named_fifo_between_programs),
      ENTRY(the_last_close_empties_a_fifo), ENTRY(a_reader_of_a_fifo_waits), ENTRY(a_fifo_on_a_file),
      ENTRY(flush_of_a_fifo))
