/* Wide characters, and freopen(3), on the C library's standard streams where a shell has put pipes. `pass` copies lines, and `end`
 * ends with what it says on stderr. */
#include <assert.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static void pass(void) {
    wchar_t line[100];
    int n = 0;
    assert(fwide(stdout, 1) > 0);
    while (fgetws(line, 100, stdin))
        wprintf(L"%d «%ls»\n", ++n, wcstok(line, L"\n", &(wchar_t *){NULL}));
    assert(feof(stdin) && fwide(stdin, 0) > 0);
    fputws(L"ende ß\n", stdout);
    assert(freopen("/dev/null", "w", stdout) == stdout && fileno(stdout) == 1);
    assert(fwide(stdout, 0) == 0 && fputs("lost", stdout) >= 0 && fclose(stdout) == 0);
}

/* Lines up to `n` are there, and the rest is in the pipe. */
static void end(void) {
    int n;
    wchar_t word[100];
    assert(freopen(NULL, "rb", stdin) == stdin && fileno(stdin) == 0);
    assert(wscanf(L"%d «%99l[^»]»", &n, word) == 2);
    fprintf(stderr, "%d %ls\n", n, word);
    assert(getwchar() == L'\n' && getwchar() == L'2');
    FILE *again = freopen("/proc/self/stat", "r", stdin);
    assert(again == stdin && fileno(stdin) == 0 && fscanf(stdin, "%d", &n) == 1 && n == getpid());
    FILE *made = fdopen(dup(2), "w");
    assert(fwprintf(made, L"größe %d\n", 3) == 8 && fclose(made) == 0);
}

int main(int argc, char **argv) {
    assert(setlocale(LC_ALL, "C.UTF-8"));
    if (argc > 1 && strcmp(argv[1], "pass") == 0)
        pass();
    else
        end();
}
