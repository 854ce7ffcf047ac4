/* Programs that are asked of what the library does before and beside their sockets. */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listens(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) || listen(fd, 1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "reused")) {
		/* As a daemon does that has no use for standard error. */
		close(2);
		if (open("data", O_WRONLY | O_CREAT | O_EXCL, 0600) != 2 || write(2, "mine", 4) != 4)
			return 2;
	}
	return listens();
}
