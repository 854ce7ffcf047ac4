/* C functions with a variable number of arguments, which Rust cannot define. Each turns its arguments into a fixed form
 * and calls the interposed function of that form; variadic.rs exports them under their C names. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What happens when requests begin to go round us; set at start, so that no symbol is exported for it. */
static void (*going_round)(void);

void hw_on_going_round(void (*f)(void))
{
	going_round = f;
}

int hw_dprintf(int fd, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vdprintf(fd, format, args);
	va_end(args);
	return n;
}

int hw_dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list args;
	(void)flag;
	va_start(args, format);
	int n = vdprintf(fd, format, args);
	va_end(args);
	return n;
}

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

int hw_execl(const char *path, const char *arg, ...)
{
	va_list args;
	if (!arg) {
		char *const none[] = { NULL };
		return execv(path, none);
	}
	COLLECT(arg, args, argv);
	va_end(args);
	return execv(path, (char *const *)argv);
}

int hw_execlp(const char *file, const char *arg, ...)
{
	va_list args;
	if (!arg) {
		char *const none[] = { NULL };
		return execvp(file, none);
	}
	COLLECT(arg, args, argv);
	va_end(args);
	return execvp(file, (char *const *)argv);
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
static int (*submit)(short mid, short sid, char level, unsigned short flags, const char *text);

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

/* syscall(2): calls on descriptors take the same way as the functions of their name. */
long hw_syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (number) {
	case SYS_read:
		return read(a[0], (void *)a[1], a[2]);
	case SYS_write:
		return write(a[0], (void *)a[1], a[2]);
	case SYS_readv:
		return readv(a[0], (void *)a[1], a[2]);
	case SYS_writev:
		return writev(a[0], (void *)a[1], a[2]);
	case SYS_sendto:
		return sendto(a[0], (void *)a[1], a[2], a[3], (void *)a[4], a[5]);
	case SYS_recvfrom:
		return recvfrom(a[0], (void *)a[1], a[2], a[3], (void *)a[4], (void *)a[5]);
	case SYS_sendmsg:
		return sendmsg(a[0], (void *)a[1], a[2]);
	case SYS_recvmsg:
		return recvmsg(a[0], (void *)a[1], a[2]);
	case SYS_close:
		return close(a[0]);
	case SYS_close_range:
		return close_range(a[0], a[1], a[2]);
	case SYS_ioctl:
		return ioctl(a[0], a[1], a[2]);
	case SYS_openat:
		return openat(a[0], (void *)a[1], a[2], a[3]);
	case SYS_pipe2:
		return pipe2((void *)a[0], a[1]);
	case SYS_dup:
		return dup(a[0]);
	case SYS_dup3:
		return dup3(a[0], a[1], a[2]);
	case SYS_socket:
		return socket(a[0], a[1], a[2]);
	case SYS_bind:
		return bind(a[0], (void *)a[1], a[2]);
	case SYS_listen:
		return listen(a[0], a[1]);
	case SYS_getsockname:
		return getsockname(a[0], (void *)a[1], (void *)a[2]);
	case SYS_getpeername:
		return getpeername(a[0], (void *)a[1], (void *)a[2]);
	case SYS_getsockopt:
		return getsockopt(a[0], a[1], a[2], (void *)a[3], (void *)a[4]);
	case SYS_setsockopt:
		return setsockopt(a[0], a[1], a[2], (void *)a[3], a[4]);
	case SYS_sendmmsg:
		return sendmmsg(a[0], (void *)a[1], a[2], a[3]);
	case SYS_recvmmsg:
		return recvmmsg(a[0], (void *)a[1], a[2], a[3], (void *)a[4]);
	case SYS_accept4:
		return accept4(a[0], (void *)a[1], (void *)a[2], a[3]);
	case SYS_connect:
		return connect(a[0], (void *)a[1], a[2]);
	case SYS_shutdown:
		return shutdown(a[0], a[1]);
	case SYS_epoll_ctl:
		return epoll_ctl(a[0], a[1], a[2], (void *)a[3]);
	case SYS_epoll_pwait:
		return epoll_pwait(a[0], (void *)a[1], a[2], a[3], (void *)a[4]);
	case SYS_ppoll:
		return ppoll((void *)a[0], a[1], (void *)a[2], (void *)a[3]);
	case SYS_execve:
		return execve((void *)a[0], (void *)a[1], (void *)a[2]);
	case SYS_exit_group:
		_exit(a[0]);
	case SYS_io_uring_enter:
	case SYS_io_uring_setup:
	case SYS_io_uring_register:
		/* Its requests go round us: what is open now goes back to the kernel. */
		if (going_round)
			going_round();
		break;
	}
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
