/* C functions with a variable number of arguments, which Rust cannot define. Each turns its arguments into a fixed form
 * and calls the interposed function of that form; variadic.rs exports them under their C names. */
#define _GNU_SOURCE
#include <alloca.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <wchar.h>

/* What stands among the initialised data costs no page of its own in each process. */
#define LOADED __attribute__((section(".data")))

/* glibc 2.32 and later tell. By reference, so that nothing is looked up by name when the library is loaded. */
extern char __libc_single_threaded __attribute__((weak));

/* Called when the library is loaded: on the page of all that is. */
__attribute__((section(".text.life"))) int hw_is_single_threaded(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

/* A function with these parameters, the last of which is `format`, and more: a list of which goes to `call`. */
#define WITH_LIST(name, call, ...)            \
	int name(__VA_ARGS__, ...)            \
	{                                     \
		va_list args;                 \
		va_start(args, format);       \
		int n = call;                 \
		va_end(args);                 \
		return n;                     \
	}
#define UNUSED __attribute__((unused))

WITH_LIST(hw_dprintf, vdprintf(fd, format, args), int fd, const char *format)
WITH_LIST(hw_dprintf_chk, vdprintf(fd, format, args), int fd, UNUSED int flag, const char *format)

/* Collects `first` and the arguments up to a null pointer into `argv`. */
#define COLLECT(first, args, argv)                                     \
	size_t n = 1;                                                  \
	va_start(args, first);                                         \
	while (va_arg(args, const char *))                             \
		n++;                                                   \
	va_end(args);                                                  \
	const char **argv = alloca((n + 1) * sizeof *argv);            \
	argv[0] = first;                                               \
	va_start(args, first);                                         \
	for (size_t i = 1; i <= n; i++)                                \
		argv[i] = va_arg(args, const char *)

/* Calls `exec` with those, which may be none. */
#define EXEC(exec, file, arg)                          \
	va_list args;                                  \
	if (!arg) {                                    \
		char *const none[] = { NULL };         \
		return exec(file, none);               \
	}                                              \
	COLLECT(arg, args, argv);                      \
	va_end(args);                                  \
	return exec(file, (char *const *)argv)

int hw_execl(const char *path, const char *arg, ...)
{
	EXEC(execv, path, arg);
}

int hw_execlp(const char *file, const char *arg, ...)
{
	EXEC(execvp, file, arg);
}

int hw_execle(const char *path, const char *arg, ...)
{
	va_list args;
	COLLECT(arg, args, argv);
	char *const *envp = va_arg(args, char *const *);
	va_end(args);
	return execve(path, (char *const *)argv, envp);
}

/* Where strlog() leaves its formatted text; set at start. */
LOADED static int (*submit)(short mid, short sid, char level, unsigned short flags, const char *text);

void hw_on_strlog(int (*f)(short, short, char, unsigned short, const char *))
{
	submit = f;
}

int hw_strlog(short mid, short sid, char level, unsigned short flags, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return submit ? submit(mid, sid, level, flags, text) : 0;
}

static void (*tell)(int level, const char *text);

void hw_on_cmn_err(void (*f)(int, const char *))
{
	tell = f;
}

void hw_cmn_err(int level, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (tell)
		tell(level, text);
}

/* Functions of wide characters. */
extern int __vfwprintf_chk(FILE *, int, const wchar_t *, va_list);
extern int __vwprintf_chk(int, const wchar_t *, va_list);
/* Those of the headers go by other names, as the standard of the compiler wants it. */
extern int hw_vfwscanf(FILE *, const wchar_t *, va_list) __asm__("vfwscanf");
extern int hw_vwscanf(const wchar_t *, va_list) __asm__("vwscanf");
extern int __isoc99_vfwscanf(FILE *, const wchar_t *, va_list);
extern int __isoc99_vwscanf(const wchar_t *, va_list);
extern int __isoc23_vfwscanf(FILE *, const wchar_t *, va_list);
extern int __isoc23_vwscanf(const wchar_t *, va_list);

WITH_LIST(hw_fwprintf, vfwprintf(file, format, args), FILE *file, const wchar_t *format)
WITH_LIST(hw_fwprintf_chk, __vfwprintf_chk(file, flag, format, args), FILE *file, int flag, const wchar_t *format)
WITH_LIST(hw_wprintf, vwprintf(format, args), const wchar_t *format)
WITH_LIST(hw_wprintf_chk, __vwprintf_chk(flag, format, args), int flag, const wchar_t *format)
WITH_LIST(hw_fwscanf, hw_vfwscanf(file, format, args), FILE *file, const wchar_t *format)
WITH_LIST(hw_wscanf, hw_vwscanf(format, args), const wchar_t *format)
WITH_LIST(hw_isoc99_fwscanf, __isoc99_vfwscanf(file, format, args), FILE *file, const wchar_t *format)
WITH_LIST(hw_isoc99_wscanf, __isoc99_vwscanf(format, args), const wchar_t *format)
WITH_LIST(hw_isoc23_fwscanf, __isoc23_vfwscanf(file, format, args), FILE *file, const wchar_t *format)
WITH_LIST(hw_isoc23_wscanf, __isoc23_vwscanf(format, args), const wchar_t *format)

void hw_pointers(void **to, size_t n, va_list args)
{
	for (size_t i = 0; i < n; i++)
		to[i] = va_arg(args, void *);
}
