/* Programs that are asked of what the library does before and beside their sockets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAS_DEFAULTS
/* What AddressSanitizer asks a program for. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

static int listens(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, 1);
}

static int connects(const char *port)
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return fd < 0 || connect(fd, (struct sockaddr *)&there, sizeof there);
}

/* Tells its port, and sends back what a client sends. */
static int echoes(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof here;
	char byte;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, len) || listen(fd, 1) || getsockname(fd, (struct sockaddr *)&here, &len))
		return 3;
	printf("%d\n", ntohs(here.sin_port));
	fflush(stdout);
	for (fd = accept(fd, NULL, NULL); read(fd, &byte, 1) == 1;)
		if (write(fd, &byte, 1) != 1)
			return 4;
	return 0;
}

/* A client that gives up its root, as many do, and has a wrong pointer. */
static int confined(const char *port, const char *root)
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char byte = 'b', *volatile wrong = (char *)8;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&there, sizeof there) || chroot(root) || chdir("/"))
		return 3;
	for (int i = 0; i < 100; i++)
		if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
			return 4;
	return write(fd, wrong, 4096) != -1 || errno != EFAULT;
}

/* How many pages a child needs that ends at once: the fewest of some children. */
static int forks(void)
{
	long fewest = -1;
	for (int i = 0; i < 20; i++) {
		struct rusage before, after;
		int status;
		getrusage(RUSAGE_CHILDREN, &before);
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 3;
		getrusage(RUSAGE_CHILDREN, &after);
		long faults = after.ru_minflt - before.ru_minflt;
		if (fewest < 0 || faults < fewest)
			fewest = faults;
	}
	return printf("%ld\n", fewest) < 0;
}

/* The highest descriptor of a server that may have as many as it can get. */
static int highest(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 3;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) || listens())
		return 4;
	DIR *fds = opendir("/proc/self/fd");
	if (!fds)
		return 5;
	int highest = -1;
	for (struct dirent *d; (d = readdir(fds));)
		if (atoi(d->d_name) > highest)
			highest = atoi(d->d_name);
	return printf("%d\n", highest) < 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "connect"))
		return connects(argv[2]);
	if (argc > 1 && !strcmp(argv[1], "echo"))
		return echoes();
	if (argc > 3 && !strcmp(argv[1], "confined"))
		return confined(argv[2], argv[3]);
	if (argc > 1 && !strcmp(argv[1], "forks"))
		return forks();
	if (argc > 1 && !strcmp(argv[1], "highest"))
		return highest();
	if (argc > 1 && !strcmp(argv[1], "wait"))
		return write(1, "w", 1) != 1 || read(0, argv[1], 1) != 0;
	if (argc > 1 && !strcmp(argv[1], "reused")) {
		/* As a daemon does that has no use for standard error. */
		close(2);
		if (open("data", O_WRONLY | O_CREAT | O_EXCL, 0600) != 2 || write(2, "mine", 4) != 4)
			return 2;
	}
	return listens();
}
