/* Priority bands: order, flow control by band, the ioctls and poll events that speak of them. */
#include "peers.h"

static int fd[2];
static void two_ends(int flags) { pipe_flags(fd, flags); }

CASE(higher_bands_come_first, "putmsg(2) putpmsg") {
	two_ends(0);
	put(fd[1], NULL, "zero", 0);
	put(fd[1], NULL, "one", 1);
	put(fd[1], NULL, "five", 5);
	put(fd[1], NULL, "two", 2);
	check_message(fd[0], NULL, "five", 5);
	check_message(fd[0], NULL, "two", 2);
	check_message(fd[0], NULL, "one", 1);
	check_message(fd[0], NULL, "zero", 0);
	check_nothing(fd[0]);
}

CASE(within_a_band_the_order_stays, "putmsg(2) putpmsg") {
	char text[20];
	two_ends(0);
	for (int i = 0; i < 30; i++) {
		snprintf(text, sizeof text, "number %d", i);
		put(fd[1], i % 2 ? "ctl" : NULL, text, i % 3);
	}
	for (int band = 2; band >= 0; band--)
		for (int i = band; i < 30; i += 3) {
			snprintf(text, sizeof text, "number %d", i);
			check_message(fd[0], i % 2 ? "ctl" : NULL, text, band);
		}
}

CASE(high_priority_comes_before_every_band, "putmsg(2) putpmsg") {
	two_ends(0);
	put(fd[1], NULL, "zero", 0);
	put(fd[1], NULL, "top", 255);
	put_high(fd[1], "now", NULL);
	check_message(fd[0], "now", NULL, -1);
	check_message(fd[0], NULL, "top", 255);
	check_message(fd[0], NULL, "zero", 0);
}

CASE(a_second_high_priority_message_is_discarded, "getmsg(2)") {
	two_ends(0);
	put_high(fd[1], "first", NULL);
	put_high(fd[1], "second", NULL);
	check_message(fd[0], "first", NULL, -1);
	check_nothing(fd[0]);
	put_high(fd[1], "third", NULL);
	check_message(fd[0], "third", NULL, -1);
}

CASE(all_256_bands_work_together, "putmsg(2) putpmsg") {
	char text[20];
	two_ends(0);
	for (int band = 0; band < 256; band++) {
		snprintf(text, sizeof text, "band %d", band);
		put(fd[1], NULL, text, band);
	}
	for (int band = 255; band >= 0; band--) {
		snprintf(text, sizeof text, "band %d", band);
		check_message(fd[0], NULL, text, band);
	}
}

CASE(bands_outside_0_to_255_are_einval, "putmsg(2) putpmsg EINVAL") {
	two_ends(0);
	const int absurd[] = {-1, 256, 1000, INT_MIN, INT_MAX};
	for (int i = 0; i < 5; i++)
		check_errno(put_text(fd[1], NULL, "x", absurd[i], MSG_BAND), EINVAL);
	check_nothing(fd[0]);
}

CASE(putpmsg_wants_exactly_one_flag, "putmsg(2) putpmsg EINVAL") {
	two_ends(0);
	check_errno(put_text(fd[1], "c", "x", 0, 0), EINVAL);
	check_errno(put_text(fd[1], "c", "x", 0, MSG_HIPRI | MSG_BAND), EINVAL);
	check_errno(put_text(fd[1], "c", "x", 0, 0x40), EINVAL);
	check_nothing(fd[0]);
}

CASE(high_priority_wants_control_and_band_0, "putmsg(2) putpmsg EINVAL") {
	two_ends(0);
	check_errno(put_text(fd[1], NULL, "x", 0, MSG_HIPRI), EINVAL);
	check_errno(put_text(fd[1], "c", "x", 1, MSG_HIPRI), EINVAL);
	check_nothing(fd[0]);
}

CASE(a_message_of_no_parts_is_not_sent, "putmsg(2) putpmsg") {
	two_ends(0);
	check_eq(put_text(fd[1], NULL, NULL, 3, MSG_BAND), 0);
	check_nothing(fd[0]);
}

CASE(a_banded_message_of_no_bytes_is_sent, "putmsg(2) putpmsg") {
	two_ends(0);
	put(fd[1], NULL, "", 3);
	put(fd[1], "", NULL, 2);
	check_message(fd[0], NULL, "", 3);
	check_message(fd[0], "", NULL, 2);
}

CASE(getpmsg_of_a_band_takes_that_or_higher, "getmsg(2) getpmsg MSG_BAND") {
	struct message m;
	two_ends(O_NONBLOCK);
	put(fd[1], NULL, "two", 2);
	check_errno(get_flags(fd[0], &m, 3, MSG_BAND), EAGAIN);
	check_eq(get_flags(fd[0], &m, 2, MSG_BAND), 0);
	check_str(m.data, "two");
	check_eq(m.band, 2);
	check_eq(m.flags, MSG_BAND);
	put(fd[1], NULL, "nine", 9);
	check_eq(get_flags(fd[0], &m, 3, MSG_BAND), 0);
	check_eq(m.band, 9);
}

CASE(getpmsg_of_a_band_takes_high_priority_too, "getmsg(2) getpmsg MSG_BAND") {
	struct message m;
	two_ends(O_NONBLOCK);
	put_high(fd[1], "now", NULL);
	check_eq(get_flags(fd[0], &m, 7, MSG_BAND), 0);
	check_eq(m.flags, MSG_HIPRI);
	check_eq(m.band, 0);
	check_str(m.ctl, "now");
}

CASE(getpmsg_of_high_priority_takes_nothing_else, "getmsg(2) getpmsg MSG_HIPRI") {
	struct message m;
	two_ends(O_NONBLOCK);
	put(fd[1], NULL, "top", 255);
	check_errno(get_flags(fd[0], &m, 0, MSG_HIPRI), EAGAIN);
	put_high(fd[1], "now", NULL);
	check_eq(get_flags(fd[0], &m, 0, MSG_HIPRI), 0);
	check_eq(m.flags, MSG_HIPRI);
	check_errno(get_flags(fd[0], &m, 0, MSG_HIPRI), EAGAIN);
	check_message(fd[0], NULL, "top", 255);
}

CASE(getpmsg_wants_a_known_flag, "getmsg(2) getpmsg EINVAL") {
	struct message m;
	two_ends(O_NONBLOCK);
	put(fd[1], NULL, "x", 0);
	check_errno(get_flags(fd[0], &m, 0, 0), EINVAL);
	check_errno(get_flags(fd[0], &m, 0, 0x40), EINVAL);
	check_errno(get_flags(fd[0], &m, 1, MSG_HIPRI), EINVAL);
	check_message(fd[0], NULL, "x", 0);
}

CASE(getmsg_takes_bands_with_flags_0, "getmsg(2)") {
	char text[10];
	struct strbuf data = in_buf(text, sizeof text);
	int flags = 0;
	two_ends(0);
	put(fd[1], NULL, "low", 0);
	put(fd[1], NULL, "high", 4);
	check_eq(getmsg(fd[0], NULL, &data, &flags), 0);
	check_eq(flags, 0);
	check_eq(data.len, 4);
	check_bytes(text, "high", 4);
}

CASE(getmsg_rs_hipri_waits_for_high_priority, "getmsg(2) RS_HIPRI") {
	char text[10];
	struct strbuf ctl = in_buf(text, sizeof text);
	int flags = RS_HIPRI;
	two_ends(O_NONBLOCK);
	put(fd[1], "band", NULL, 9);
	check_errno(getmsg(fd[0], &ctl, NULL, &flags), EAGAIN);
	put_high(fd[1], "now", NULL);
	flags = RS_HIPRI;
	check_eq(getmsg(fd[0], &ctl, NULL, &flags), 0);
	check_eq(flags, RS_HIPRI);
	check_eq(ctl.len, 3);
}

CASE(read_takes_the_highest_band_first, "read(2)") {
	char c[4];
	two_ends(0);
	put(fd[1], NULL, "low", 0);
	put(fd[1], NULL, "mid", 1);
	put(fd[1], NULL, "top", 200);
	const char *want[] = {"top", "mid", "low"};
	for (int i = 0; i < 3; i++) {
		check_eq(read(fd[0], c, 3), 3);
		check_bytes(c, want[i], 3);
	}
}

CASE(a_higher_band_comes_before_the_rest_of_a_message, "getmsg(2) MOREDATA") {
	char text[4];
	struct strbuf data = in_buf(text, 4);
	int band = 0, flags = MSG_ANY;
	two_ends(0);
	put(fd[1], NULL, "12345678", 3);
	check_eq(getpmsg(fd[0], NULL, &data, &band, &flags), MOREDATA);
	check_eq(band, 3);
	check_bytes(text, "1234", 4);
	put(fd[1], NULL, "later", 2);
	put(fd[1], NULL, "first", 5);
	check_message(fd[0], NULL, "first", 5);
	check_message(fd[0], NULL, "5678", 3);
	check_message(fd[0], NULL, "later", 2);
}

CASE(peek_shows_the_highest_band, "streamio(7I) I_PEEK") {
	char c[10], d[10];
	two_ends(0);
	put(fd[1], NULL, "low", 0);
	put(fd[1], "ctl", "high", 3);
	struct strpeek peek = {in_buf(c, sizeof c), in_buf(d, sizeof d), 0};
	check_eq(ioctl(fd[0], I_PEEK, &peek), 1);
	check_eq(peek.ctlbuf.len, 3);
	check_eq(peek.databuf.len, 4);
	check_bytes(d, "high", 4);
	check_eq(peek.flags, 0);
	peek.flags = RS_HIPRI;
	check_eq(ioctl(fd[0], I_PEEK, &peek), 0);
	check_message(fd[0], "ctl", "high", 3);
	check_message(fd[0], NULL, "low", 0);
}

CASE(nread_speaks_of_the_highest_band, "streamio(7I) I_NREAD") {
	int n = -1;
	two_ends(0);
	put(fd[1], NULL, "a longer one", 0);
	put(fd[1], NULL, "abc", 6);
	check_eq(ioctl(fd[0], I_NREAD, &n), 2);
	check_eq(n, 3);
}

/* --- ioctls that ask --- */

CASE(ckband_finds_a_band, "streamio(7I) I_CKBAND") {
	two_ends(0);
	check_eq(ioctl(fd[0], I_CKBAND, 0), 0);
	put(fd[1], NULL, "x", 3);
	check_eq(ioctl(fd[0], I_CKBAND, 3), 1);
	check_eq(ioctl(fd[0], I_CKBAND, 2), 0);
	check_eq(ioctl(fd[0], I_CKBAND, 4), 0);
	check_eq(ioctl(fd[0], I_CKBAND, 0), 0);
	put(fd[1], NULL, "y", 0);
	check_eq(ioctl(fd[0], I_CKBAND, 0), 1);
	check_message(fd[0], NULL, "x", 3);
	check_eq(ioctl(fd[0], I_CKBAND, 3), 0);
}

CASE(ckband_of_absurd_bands, "streamio(7I) I_CKBAND EINVAL") {
	two_ends(0);
	check_errno(ioctl(fd[0], I_CKBAND, -1), EINVAL);
	check_errno(ioctl(fd[0], I_CKBAND, 256), EINVAL);
	check_errno(ioctl(fd[0], I_CKBAND, INT_MAX), EINVAL);
	check_eq(ioctl(fd[0], I_CKBAND, 255), 0);
}

CASE(getband_names_the_first_message, "streamio(7I) I_GETBAND") {
	int band = -7;
	two_ends(0);
	put(fd[1], NULL, "x", 0);
	check_eq(ioctl(fd[0], I_GETBAND, &band), 0);
	check_eq(band, 0);
	put(fd[1], NULL, "x", 17);
	check_eq(ioctl(fd[0], I_GETBAND, &band), 0);
	check_eq(band, 17);
	check_message(fd[0], NULL, "x", 17);
	check_eq(ioctl(fd[0], I_GETBAND, &band), 0);
	check_eq(band, 0);
}

CASE(getband_of_nothing, "streamio(7I) I_GETBAND ENODATA") {
	int band = -7;
	two_ends(0);
	check_errno(ioctl(fd[0], I_GETBAND, &band), ENODATA);
}

CASE(canput_of_absurd_bands, "streamio(7I) I_CANPUT EINVAL") {
	two_ends(0);
	check_errno(canput(fd[1], -2), EINVAL);
	check_errno(canput(fd[1], 256), EINVAL);
	check_eq(canput(fd[1], 255), 1);
}

/* --- flushing --- */

static int flush_band(int end, int band, int flag) {
	struct bandinfo b = {.bi_pri = band, .bi_flag = flag};
	return ioctl(end, I_FLUSHBAND, &b);
}

CASE(flushband_takes_one_band_only, "streamio(7I) I_FLUSHBAND") {
	two_ends(0);
	for (int band = 0; band < 4; band++) {
		put(fd[1], NULL, "x", band);
		put(fd[1], NULL, "y", band);
	}
	check_eq(flush_band(fd[0], 2, FLUSHR), 0);
	check_eq(ioctl(fd[0], I_CKBAND, 2), 0);
	check_message(fd[0], NULL, "x", 3);
	check_message(fd[0], NULL, "y", 3);
	check_message(fd[0], NULL, "x", 1);
	check_message(fd[0], NULL, "y", 1);
	check_message(fd[0], NULL, "x", 0);
	check_message(fd[0], NULL, "y", 0);
	check_nothing(fd[0]);
}

CASE(flushband_from_the_writing_side, "streamio(7I) I_FLUSHBAND") {
	two_ends(0);
	put(fd[1], NULL, "gone", 1);
	put(fd[1], NULL, "stays", 0);
	check_eq(flush_band(fd[1], 1, FLUSHW), 0);
	check_message(fd[0], NULL, "stays", 0);
	check_nothing(fd[0]);
}

CASE(flushband_wants_a_direction, "streamio(7I) I_FLUSHBAND EINVAL") {
	two_ends(0);
	put(fd[1], NULL, "x", 1);
	check_errno(flush_band(fd[0], 1, 0), EINVAL);
	check_errno(flush_band(fd[0], 1, 0x40), EINVAL);
	check_message(fd[0], NULL, "x", 1);
}

CASE(flush_takes_every_band, "streamio(7I) I_FLUSH") {
	two_ends(0);
	put(fd[1], NULL, "x", 0);
	put(fd[1], "c", "y", 1);
	put(fd[1], NULL, "z", 255);
	put_high(fd[1], "now", NULL);
	check_eq(ioctl(fd[0], I_FLUSH, FLUSHR), 0);
	check_nothing(fd[0]);
	put(fd[1], NULL, "new", 1);
	check_message(fd[0], NULL, "new", 1);
}

CASE(flushband_on_a_driver_stream, "streamio(7I) I_FLUSHBAND") {
	int echo = open_stream("/dev/echo");
	put(echo, NULL, "gone", 1);
	put(echo, NULL, "stays", 2);
	check_eq(flush_band(echo, 1, FLUSHRW), 0);
	check_message(echo, NULL, "stays", 2);
	check_nothing(echo);
}

/* --- flow control by band --- */

static int fill_band(int end, int band) {
	char text[512];
	int n = 0;
	memset(text, 'b', sizeof text);
	struct strbuf data = out_buf(text, sizeof text);
	while (putpmsg(end, NULL, &data, band, MSG_BAND) == 0)
		check(++n < 100000);
	check_eq(errno, EAGAIN);
	return n;
}

CASE(a_full_band_leaves_other_bands_alone, "putmsg(2) putpmsg EAGAIN") {
	two_ends(O_NONBLOCK);
	check(fill_band(fd[1], 1) > 0);
	put(fd[1], NULL, "two", 2);
	put(fd[1], NULL, "zero", 0);
	check_errno(put_text(fd[1], NULL, "one", 1, MSG_BAND), EAGAIN);
	check_message(fd[0], NULL, "two", 2);
}

CASE(a_full_band_0_leaves_bands_alone, "putmsg(2) putpmsg EAGAIN") {
	two_ends(O_NONBLOCK);
	fill_band(fd[1], 0);
	put(fd[1], NULL, "banded", 1);
	check_message(fd[0], NULL, "banded", 1);
}

CASE(canput_speaks_of_one_band, "streamio(7I) I_CANPUT") {
	two_ends(O_NONBLOCK);
	int n = fill_band(fd[1], 4);
	check_eq(canput(fd[1], 4), 0);
	check_eq(canput(fd[1], 5), 1);
	check_eq(canput(fd[1], 0), 1);
	struct message m;
	for (int i = 0; i < n; i++) {
		check_eq(get_any(fd[0], &m), 0);
		check_eq(m.band, 4);
	}
	check_eq(canput(fd[1], 4), 1);
}

CASE(a_band_has_room_again_once_it_was_read, "putmsg(2) putpmsg") {
	struct message m;
	two_ends(O_NONBLOCK);
	for (int round = 0; round < 5; round++) {
		int n = fill_band(fd[1], 7);
		check(n * 512 >= 4096);
		for (int i = 0; i < n; i++) {
			check_eq(get_any(fd[0], &m), 0);
			check_eq(m.band, 7);
			check_eq(m.data_len, 512);
		}
		check_errno(get_any(fd[0], &m), EAGAIN);
	}
}

static volatile int done;
static void put_banded(void *unused) {
	(void)unused;
	put(fd[1], NULL, "at last", 1);
	done = 1;
}

CASE(a_putpmsg_blocks_for_its_band, "putmsg(2) putpmsg") {
	struct message m;
	two_ends(O_NONBLOCK);
	int n = fill_band(fd[1], 1);
	set_nonblock(fd[1], 0);
	pthread_t t = start(put_banded, NULL);
	stays_false(done);
	for (int i = 0; i < n; i++)
		check_eq(get_any(fd[0], &m), 0);
	await(done);
	finish(t);
	check_message(fd[0], NULL, "at last", 1);
}

CASE(a_putpmsg_in_another_process_is_woken, "putmsg(2) putpmsg") {
	struct message m;
	two_ends(O_NONBLOCK);
	int n = fill_band(fd[1], 1);
	set_nonblock(fd[1], 0);
	set_nonblock(fd[0], 0);
	pid_t child = spawn(put_banded, NULL);
	sleep_ms(50);
	for (int i = 0; i < n; i++)
		check_eq(get_any(fd[0], &m), 0);
	check_message(fd[0], NULL, "at last", 1);
	join(child);
}

/* Band 0 lies unread, so that the ring as a whole has no more room than before. */
static void beside_a_full_band_0(void (*waits)(void *), int flushed) {
	struct message m;
	two_ends(O_NONBLOCK);
	fill_band(fd[1], 0);
	int n = fill_band(fd[1], 1);
	set_nonblock(fd[1], 0);
	pthread_t t = start(waits, NULL);
	stays_false(done);
	if (flushed)
		check_eq(flush_band(fd[0], 1, FLUSHR), 0);
	else
		for (int i = 0; i < n; i++)
			check_eq(get_flags(fd[0], &m, 1, MSG_BAND), 0);
	await(done);
	finish(t);
}
static void poll_for_room(void *unused) {
	(void)unused;
	check_eq(events(fd[1], POLLWRBAND, 20000), POLLWRBAND);
	done = 1;
}

CASE(a_putpmsg_is_woken_beside_a_full_band_0, "putmsg(2) putpmsg") {
	beside_a_full_band_0(put_banded, 0);
	check_message(fd[0], NULL, "at last", 1);
}

CASE(a_putpmsg_is_woken_by_a_flush_of_its_band, "streamio(7I) I_FLUSHBAND") {
	beside_a_full_band_0(put_banded, 1);
	check_message(fd[0], NULL, "at last", 1);
}

CASE(a_poll_for_room_is_woken_beside_a_full_band_0, "poll(2) POLLWRBAND") { beside_a_full_band_0(poll_for_room, 0); }

CASE(full_bands_do_not_stop_high_priority, "putmsg(2) putpmsg") {
	two_ends(O_NONBLOCK);
	for (int band = 0; band < 8; band++)
		fill_band(fd[1], band);
	put_high(fd[1], "now", NULL);
	check_message(fd[0], "now", NULL, -1);
}

/* --- poll --- */

#define READING (POLLIN | POLLRDNORM | POLLRDBAND | POLLPRI)

CASE(poll_of_band_0, "poll(2) POLLRDNORM") {
	two_ends(0);
	put(fd[1], NULL, "x", 0);
	check_eq(events(fd[0], READING, PATIENCE), POLLIN | POLLRDNORM);
}

CASE(poll_of_a_band, "poll(2) POLLRDBAND") {
	two_ends(0);
	put(fd[1], NULL, "x", 1);
	check_eq(events(fd[0], READING, PATIENCE), POLLIN | POLLRDBAND);
	check_eq(events(fd[0], POLLRDNORM, 0), 0);
	check_message(fd[0], NULL, "x", 1);
	check_eq(events(fd[0], READING, 0), 0);
}

CASE(poll_of_high_priority, "poll(2) POLLPRI") {
	two_ends(0);
	put_high(fd[1], "now", NULL);
	check_eq(events(fd[0], POLLPRI, PATIENCE), POLLPRI);
	check_eq(events(fd[0], POLLRDBAND | POLLRDNORM, 0), 0);
	check_message(fd[0], "now", NULL, -1);
	check_eq(events(fd[0], POLLPRI, 0), 0);
}

CASE(pollwrband_once_a_band_was_used, "poll(2) POLLWRBAND") {
	two_ends(0);
	check_eq(events(fd[1], POLLWRBAND, 0), 0);
	put(fd[1], NULL, "x", 1);
	check_eq(events(fd[1], POLLWRBAND | POLLOUT, 0), POLLWRBAND | POLLOUT);
}

static void put_later(void *unused) {
	(void)unused;
	sleep_ms(50);
	put(fd[1], NULL, "later", 9);
}

CASE(poll_for_a_band_is_woken, "poll(2) POLLRDBAND") {
	two_ends(0);
	pthread_t t = start(put_later, NULL);
	check_eq(events(fd[0], POLLRDBAND, PATIENCE), POLLRDBAND);
	finish(t);
}

CASE(poll_for_a_band_sleeps_through_band_0, "poll(2) POLLRDBAND") {
	two_ends(0);
	put(fd[1], NULL, "ordinary", 0);
	check_eq(events(fd[0], POLLRDBAND, 50), 0);
	pid_t child = spawn(put_later, NULL);
	check_eq(events(fd[0], POLLRDBAND, PATIENCE), POLLRDBAND);
	join(child);
}

static void get_the_band(void *unused) {
	(void)unused;
	struct message m;
	check_eq(get_flags(fd[0], &m, 5, MSG_BAND), 0);
	check_eq(m.band, 9);
	check_str(m.data, "later");
	done = 1;
}

CASE(getpmsg_of_a_band_sleeps_through_lower_ones, "getmsg(2) getpmsg") {
	two_ends(0);
	pthread_t t = start(get_the_band, NULL);
	put(fd[1], NULL, "ordinary", 0);
	put(fd[1], NULL, "low", 4);
	stays_false(done);
	put_later(NULL);
	await(done);
	finish(t);
	check_message(fd[0], NULL, "low", 4);
	check_message(fd[0], NULL, "ordinary", 0);
}

/* --- through queues and processes --- */

static void order_through(const char *module, int both) {
	two_ends(0);
	push(fd[1], module);
	if (both)
		push(fd[0], module);
	put(fd[1], NULL, "zero", 0);
	put(fd[1], "ctl", "one", 1);
	put(fd[1], NULL, "nine", 9);
	put_high(fd[1], "now", NULL);
	await(events(fd[0], POLLPRI, 0) & POLLPRI);
	await(ioctl(fd[0], I_CKBAND, 0) == 1 && ioctl(fd[0], I_CKBAND, 1) == 1 && ioctl(fd[0], I_CKBAND, 9) == 1);
	check_message(fd[0], "now", NULL, -1);
	check_message(fd[0], NULL, "nine", 9);
	check_message(fd[0], "ctl", "one", 1);
	check_message(fd[0], NULL, "zero", 0);
}

CASE(the_order_through_nullmod, "putnext(9F)") { order_through("nullmod", 1); }
CASE(the_order_through_bufmod, "putq(9F)") { order_through("bufmod", 1); }
CASE(the_order_through_a_module_on_one_end, "putq(9F)") { order_through("bufmod", 0); }

CASE(the_order_through_a_driver, "putq(9F)") {
	int echo = open_stream("/dev/echo");
	put(echo, NULL, "zero", 0);
	put(echo, "ctl", "nine", 9);
	put_high(echo, "now", "data");
	check_message(echo, "now", "data", -1);
	check_message(echo, "ctl", "nine", 9);
	check_message(echo, NULL, "zero", 0);
}

static void put_all_bands(void *unused) {
	(void)unused;
	put(fd[1], NULL, "zero", 0);
	put(fd[1], NULL, "three", 3);
	put_high(fd[1], "now", NULL);
	put(fd[1], NULL, "eight", 8);
}

CASE(the_order_between_processes, "putmsg(2) putpmsg") {
	two_ends(0);
	join(spawn(put_all_bands, NULL));
	check_message(fd[0], "now", NULL, -1);
	check_message(fd[0], NULL, "eight", 8);
	check_message(fd[0], NULL, "three", 3);
	check_message(fd[0], NULL, "zero", 0);
}

CASE(many_bands_many_times, "putmsg(2) putpmsg") {
	struct message m;
	two_ends(O_NONBLOCK);
	unsigned state = 1;
	int queued[16] = {0}, next_in[16] = {0}, next_out[16] = {0};
	for (int step = 0; step < 20000; step++) {
		state = state * 1103515245 + 12345;
		int band = state >> 16 & 15;
		if (state >> 24 & 1) {
			char text[20];
			snprintf(text, sizeof text, "%d", next_in[band]);
			if (queued[band] < 20) {
				put(fd[1], NULL, text, band);
				queued[band]++, next_in[band]++;
			}
			continue;
		}
		int highest = 15;
		while (highest >= 0 && queued[highest] == 0)
			highest--;
		if (highest < 0) {
			check_errno(get_any(fd[0], &m), EAGAIN);
			continue;
		}
		check_eq(get_any(fd[0], &m), 0);
		check_eq(m.band, highest);
		check_eq(atoi(m.data), next_out[highest]++);
		queued[highest]--;
	}
}

CASES(ENTRY(higher_bands_come_first), ENTRY(within_a_band_the_order_stays), ENTRY(high_priority_comes_before_every_band),
      ENTRY(a_second_high_priority_message_is_discarded), ENTRY(all_256_bands_work_together),
      ENTRY(bands_outside_0_to_255_are_einval), ENTRY(putpmsg_wants_exactly_one_flag),
      ENTRY(high_priority_wants_control_and_band_0), ENTRY(a_message_of_no_parts_is_not_sent),
      ENTRY(a_banded_message_of_no_bytes_is_sent), ENTRY(getpmsg_of_a_band_takes_that_or_higher),
      ENTRY(getpmsg_of_a_band_takes_high_priority_too), ENTRY(getpmsg_of_high_priority_takes_nothing_else),
      ENTRY(getpmsg_wants_a_known_flag), ENTRY(getmsg_takes_bands_with_flags_0), ENTRY(getmsg_rs_hipri_waits_for_high_priority),
      ENTRY(read_takes_the_highest_band_first), ENTRY(a_higher_band_comes_before_the_rest_of_a_message),
      ENTRY(peek_shows_the_highest_band), ENTRY(nread_speaks_of_the_highest_band), ENTRY(ckband_finds_a_band),
      ENTRY(ckband_of_absurd_bands), ENTRY(getband_names_the_first_message), ENTRY(getband_of_nothing),
      ENTRY(canput_of_absurd_bands), ENTRY(flushband_takes_one_band_only), ENTRY(flushband_from_the_writing_side),
      ENTRY(flushband_wants_a_direction), ENTRY(flush_takes_every_band), ENTRY(flushband_on_a_driver_stream),
      ENTRY(a_full_band_leaves_other_bands_alone), ENTRY(a_full_band_0_leaves_bands_alone), ENTRY(canput_speaks_of_one_band),
      ENTRY(a_band_has_room_again_once_it_was_read), ENTRY(a_putpmsg_blocks_for_its_band),
      ENTRY(a_putpmsg_in_another_process_is_woken), ENTRY(a_putpmsg_is_woken_beside_a_full_band_0),
      ENTRY(a_putpmsg_is_woken_by_a_flush_of_its_band), ENTRY(a_poll_for_room_is_woken_beside_a_full_band_0), ENTRY(full_bands_do_not_stop_high_priority), ENTRY(poll_of_band_0),
      ENTRY(poll_of_a_band), ENTRY(poll_of_high_priority), ENTRY(pollwrband_once_a_band_was_used),
      ENTRY(poll_for_a_band_is_woken), ENTRY(poll_for_a_band_sleeps_through_band_0),
      ENTRY(getpmsg_of_a_band_sleeps_through_lower_ones), ENTRY(the_order_through_nullmod), ENTRY(the_order_through_bufmod),
      ENTRY(the_order_through_a_module_on_one_end), ENTRY(the_order_through_a_driver), ENTRY(the_order_between_processes),
      ENTRY(many_bands_many_times))
