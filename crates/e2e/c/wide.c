/* Wide characters, and freopen(3), on the C library's streams over a connection: one that is carried (`at` is its number), and
 * one that has only just been made. */
#include "common.h"
#include <locale.h>
#include <wchar.h>

static const char text[] = "line \303\266ne\nzwei 2 0x1f 3.5 x\n\320\277\321\200\320\270\320\262\320\265\321\202 \320\274\320\270\321\200\n"
                           "  42% w\303\266rter  [abc\303\244] 17 7\n\nlast";

static void use_utf8(void) {
    if (!setlocale(LC_ALL, "C.UTF-8"))
        fail("setlocale");
}

/* The other end of second_server. */
static int new_client(int fd) {
    struct sockaddr_in at;
    recv_all(fd, &at, sizeof at);
    return connect_to(&at);
}

/* Both kinds: `name` on the carried one, `name_new` on the other. */
#define ON_BOTH(name)                                                                                                  \
    static void name##_server(int fd) { name##_serve(fd); }                                                            \
    static void name##_client(int fd) { name##_call(fd); }                                                             \
    static void name##_new_server(int fd) { name##_serve(second_server(fd)); }                                            \
    static void name##_new_client(int fd) { name##_call(new_client(fd)); }

/* What the other end reads, and that then comes the end. */
static void say_all(int fd) {
    char bytes[4096];
    size_t n = 0;
    ssize_t r;
    while ((r = read(fd, bytes + n, sizeof bytes - n)) > 0)
        n += r;
    say("%zu bytes, then %zd", n, r);
    for (size_t i = 0; i < n; i++)
        printf(bytes[i] >= ' ' && bytes[i] <= '~' ? "%c" : "\\%03o", (unsigned char)bytes[i]);
    say("");
    close(fd);
}

static void send_text(int fd) {
    send_all(fd, text, sizeof text - 1);
    must(shutdown(fd, SHUT_WR));
    char c;
    say_result("end", read(fd, &c, 1));
    close(fd);
}

static void say_wide(const wchar_t *line) {
    for (; *line; line++)
        printf("%x ", (unsigned)*line);
    say("");
}

static void reads_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r");
    wchar_t line[100];
    say("wide %d", fwide(f, 0));
    say("line %d", fgetws(line, 8, f) == line), say_wide(line);
    say("line %d", fgetws(line, 100, f) == line), say_wide(line);
    say("wide %d %d", fwide(f, 0) > 0, fwide(f, -1) > 0);
    say("char %x", fgetwc(f));
    say("back %x", ungetwc(0x416, f));
    say("char %x %x %x", getwc(f), getwc_unlocked(f), fgetwc_unlocked(f));
    say("line %d", fgetws_unlocked(line, 100, f) == line), say_wide(line);
    wint_t c;
    while ((c = fgetwc(f)) != WEOF)
        printf("%x ", c);
    say("end %d %d", feof(f) != 0, ferror(f) != 0);
    say("none %d", fgetws(line, 100, f) != NULL);
    fclose(f);
}
#define reads_call send_text
ON_BOTH(reads)

static void scans_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r");
    wchar_t word[20], other[20], *made;
    char bytes[20], *bytes_made;
    int a = 0, b = 0, n = 0, m = 0;
    double d = 0;
    say("%d", fwscanf(f, L"line %ls %n%19s%i%x%lf %c", word, &n, bytes, &a, &b, &d, other));
    say_wide(word), say("%d %s %d %d %g %c", n, bytes, a, b, d, *(char *)other);
    say("%d", fwscanf(f, L" %l[а-я]%*lc%mls%n", word, &made, &n)), say_wide(word), say_wide(made), say("%d", n);
    free(made);
    say("%d", fwscanf(f, L"%2$d%% %1$ms [", &bytes_made, &a)), say("%d %s", a, bytes_made);
    free(bytes_made);
    memset(bytes, 0, sizeof bytes);
    say("%d", fwscanf(f, L"%4c] %1d%hhn", bytes, &a, &m)), say("%s %d", bytes, a);
    say("%d", fwscanf(f, L"%[^\n8]", bytes)), say("%s", bytes);
    say("%d", fwscanf(f, L"8 x")), say("%d", fwscanf(f, L"%d", &a)), say("%d", fwscanf(f, L"%[0-9]", bytes));
    say("char %x", fgetwc(f));
    say("%d", fwscanf(f, L"%*d"));
    say("%d", fwscanf(f, L"%3s", bytes)), say("%s", bytes), say("%d", fwscanf(f, L"%3s", bytes)), say("%s", bytes);
    say("%d", fwscanf(f, L"%3s", bytes)), say("%d", feof(f) != 0), say("%d", fwscanf(f, L" "));
    fclose(f);
}
#define scans_call send_text
ON_BOTH(scans)

static void broken_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r");
    wchar_t line[100];
    say("char %x", fgetwc(f));
    errno = 0;
    say("broken %x", fgetwc(f));
    say("%s %d %d", strerrorname_np(errno), ferror(f) != 0, feof(f) != 0);
    errno = 0;
    int read = fgetws(line, 100, f) != NULL;
    say("broken %d %s", read, strerrorname_np(errno));
    fclose(f);
}
static void broken_call(int fd) {
    send_all(fd, "a\303xyz\n", 6);
    must(shutdown(fd, SHUT_WR));
    char c;
    read(fd, &c, 1);
}
ON_BOTH(broken)

/* A character whose last byte comes later. */
static void pieces_serve(int fd) {
    use_utf8();
    nonblocking(fd, 1);
    FILE *f = fdopen(fd, "r");
    wait_for(fd, POLLIN);
    say("char %x", fgetwc(f));
    wint_t none = fgetwc(f);
    say("none %x %s", none, strerrorname_np(errno));
    clearerr(f);
    tell_peer();
    wait_for(fd, POLLIN);
    say("char %x", fgetwc(f));
    fclose(f);
}
static void pieces_call(int fd) {
    send_all(fd, "a\342\202", 3);
    await_peer();
    send_all(fd, "\254b", 2);
    char c;
    read(fd, &c, 1);
}
ON_BOTH(pieces)

static void print_later(FILE *f, const wchar_t *format, ...) {
    va_list args;
    va_start(args, format);
    say("%d", vfwprintf(f, format, args));
    va_end(args);
}

static void write_all(FILE *f) {
    say("text %d", fputws(L"öl €\n", f) >= 0);
    say("chars %x %x", putwc(L'ж', f), fputwc_unlocked(L'\n', f));
    say("print %d", fwprintf(f, L"%d %ls %s %5.2f %lc\n", 42, L"größer", "bytes", 2.5, L'ø'));
    print_later(f, L"%-8lsend\n", L"中");
    say("unlocked %d", fputws_unlocked(L"„“\n", f) >= 0);
    for (int i = 0; i < 200; i++)
        fwprintf(f, L"%d·", i);
    say("flush %d", fflush(f));
}
static void writes_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "w");
    say("wide %d", fwide(f, 1) > 0);
    write_all(f);
    say("wide %d", fwide(f, 0) > 0);
    say("close %d", fclose(f));
}
#define writes_call say_all
ON_BOTH(writes)

/* What the locale has no bytes for. */
static void lacks_serve(int fd) {
    FILE *f = fdopen(fd, "w");
    setbuf(f, NULL);
    write_all(f);
    say("close %d", fclose(f));
}
#define lacks_call say_all
ON_BOTH(lacks)

/* A FILE of the other orientation. */
static void bytes_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r+");
    wchar_t line[100];
    char bytes[100];
    say("got %d", fgets(bytes, 100, f) != NULL);
    say("wide %d %d", fwide(f, 0) > 0, fwide(f, 1) > 0);
    say("none %x %d", fgetwc(f), fgetws(line, 100, f) != NULL);
    say("none %d %d", fputws(L"no", f), fwprintf(f, L"no"));
    say("none %d", fwscanf(f, L"%ls", line));
    say("error %d", ferror(f) != 0);
    fclose(f);
}
#define bytes_call send_text
ON_BOTH(bytes)

static void turns_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r+");
    wchar_t line[100];
    for (int i = 0; i < 20; i++) {
        assert(fgetws(line, 100, f));
        fwprintf(f, L"%d: %ls", i, line);
        fflush(f);
    }
    fclose(f);
}
static void turns_call(int fd) {
    char buf[200], want[200];
    for (int i = 0; i < 20; i++) {
        int n = snprintf(buf, sizeof buf, "n\303\272mero %d\n", i);
        send_all(fd, buf, n);
        n = snprintf(want, sizeof want, "%d: n\303\272mero %d\n", i, i);
        recv_all(fd, buf, n);
        assert(memcmp(buf, want, n) == 0);
    }
    say("end %zd", read(fd, buf, 1));
}
ON_BOTH(turns)

/* The connection is closed, and its number is the file's, in the same FILE. */
static void reopens_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r+");
    char line[100];
    say("got %d", fgets(line, 100, f) != NULL);
    FILE *g = freopen("/proc/self/stat", "r", f);
    say("same %d %d", g == f, fileno(f) == fd);
    say("read %d", fgetc(f) >= '0');
    tell_peer();
    say("again %d", freopen("/dev/null", "w", f) == f && fileno(f) == fd);
    say("wide %d %d", fwide(f, 1) > 0, fputws(L"ö", f) >= 0 && fflush(f) == 0);
    say("close %d", fclose(f));
}
static void ends_here(int fd) {
    char c;
    send_all(fd, "x\n", 2);
    await_peer();
    say_result("end", read(fd, &c, 1));
}
#define reopens_call ends_here
ON_BOTH(reopens)

static void reopens_wide_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "w");
    say("put %d", fputws(L"öde\n", f) >= 0);
    say("same %d", freopen("/proc/self/stat", "r", f) == f);
    say("wide %d", fwide(f, 0));
    say("read %d", fgetwc(f) >= '0');
    say("wide %d", fwide(f, 0) > 0);
    say("close %d", fclose(f));
}
#define reopens_wide_call say_all
ON_BOTH(reopens_wide)

/* A socket can't be opened again by its number. */
static void reopens_nothing_serve(int fd) {
    FILE *f = fdopen(fd, "r+");
    char line[100];
    say("got %d", fgets(line, 100, f) != NULL);
    f = freopen(NULL, "r", f);
    say("none %d %s", f != NULL, strerrorname_np(errno));
    say_result("closed", fcntl(fd, F_GETFD));
    tell_peer();
}
#define reopens_nothing_call ends_here
ON_BOTH(reopens_nothing)

static void reopens_no_file_serve(int fd) {
    FILE *f = fdopen(fd, "r+");
    char line[100];
    say("got %d", fgets(line, 100, f) != NULL);
    f = freopen("/nowhere/at/all", "r", f);
    say("none %d %s", f != NULL, strerrorname_np(errno));
    say_result("closed", fcntl(fd, F_GETFD));
    tell_peer();
}
#define reopens_no_file_call ends_here
ON_BOTH(reopens_no_file)

/* A child whose standard input and output are the connection. */
static void standard_serve(int fd) {
    pid_t child = must(fork());
    if (child == 0) {
        use_utf8();
        must(dup2(fd, 0)), must(dup2(fd, 1));
        close(fd);
        stdout = fdopen(1, "w"), stdin = fdopen(0, "r");
        wchar_t line[100];
        int n = fgetws(line, 100, stdin) ? wprintf(L"%ls", line) : -1;
        n += getwchar() == L'y' && putwchar(L'ö') == L'ö';
        n += freopen("/proc/self/stat", "r", stdin) == stdin && fileno(stdin) == 0 && getwchar() >= L'0';
        n += fflush(stdout) == 0 && freopen("/dev/null", "w", stdout) == stdout && wprintf(L"lost") == 4;
        _exit(n);
    }
    close(fd);
    int status;
    must(waitpid(child, &status, 0));
    say("status %x", status);
}
static void standard_call(int fd) {
    send_all(fd, "x\303\266\ny", 5);
    say_all(fd);
}
ON_BOTH(standard)

/* FILEs that come and go. */
static void many_serve(int fd) {
    use_utf8();
    FILE *files[40];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) {
            files[i] = fdopen(must(dup(fd)), i % 2 ? "r+" : "w");
            assert(files[i]);
        }
        for (int i = 0; i < 40; i++) {
            assert(fwprintf(files[i], L"%d ö\n", i) > 0);
            assert(i % 3 || freopen("/dev/null", "r", files[i]) == files[i]);
        }
        for (int i = 0; i < 40; i++)
            assert(fclose(files[39 - i]) == 0);
    }
    close(fd);
}
static void many_call(int fd) {
    char bytes[4096];
    size_t n = 0;
    ssize_t r;
    while ((r = read(fd, bytes, sizeof bytes)) > 0)
        n += r;
    say("%zu bytes, then %zd", n, r);
}
ON_BOTH(many)

/* A thread that is cancelled leaves the FILE to others. */
static void *waits_for_line(void *f) {
    wchar_t line[100];
    fgetws(line, 100, f);
    return NULL;
}
static void cancelled_serve(int fd) {
    use_utf8();
    FILE *f = fdopen(fd, "r+");
    void *result;
    pthread_t t = start_sleeper(waits_for_line, f);
    pthread_cancel(t);
    pthread_join(t, &result);
    say("cancelled %d", result == PTHREAD_CANCELED);
    say("locked %d", ftrylockfile(f));
    tell_peer();
    say("char %x", fgetwc(f));
    fclose(f);
}
static void cancelled_call(int fd) {
    char c;
    await_peer();
    send_all(fd, "\303\266", 2);
    say_result("end", read(fd, &c, 1));
}
ON_BOTH(cancelled)

#define BOTH(name) CASE(name), CASE(name##_new)

CASES(BOTH(reads), BOTH(scans), BOTH(broken), BOTH(pieces), BOTH(writes), BOTH(lacks), BOTH(bytes), BOTH(turns),
      BOTH(reopens), BOTH(reopens_wide), BOTH(reopens_nothing), BOTH(reopens_no_file), BOTH(standard), BOTH(many),
      BOTH(cancelled))
