/* Steps that start programs otherwise than by fork. */

/* What the program does with a number: nothing, send, receive, look; then it says how that went, by its status. */
static int once(int what, int f, int n) {
    static char b[MOST];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    long r = what == 1   ? send(f, b, n, MSG_DONTWAIT)
             : what == 2 ? recv(f, b, n, MSG_DONTWAIT)
             : what == 3 ? recv(f, b, n, MSG_DONTWAIT | MSG_PEEK)
                         : fcntl(f, F_GETFD);
    return r < 0 ? 128 + (errno & 127) : (int)(r & 127);
}
#define ONCE once

static long ended(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child)
        return -1;
    tell(" %s", WIFEXITED(status) && WEXITSTATUS(status) > 128 ? strerrorname_np(WEXITSTATUS(status) - 128) : "well");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
OP(spawn) { /* slot, way: as it is, by another number, closed, from there on; what, bytes */
    enum { OTHER = 60 };
    char what[12], number[12], n[12];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (a[1] == 1)
        posix_spawn_file_actions_adddup2(&actions, fd[a[0]], OTHER);
    if (a[1] == 2)
        posix_spawn_file_actions_addclose(&actions, fd[a[0]]);
    if (a[1] == 3)
        posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    sprintf(what, "%ld", a[2]);
    sprintf(number, "%d", a[1] == 1 ? OTHER : fd[a[0]]);
    sprintf(n, "%ld", a[3]);
    char *argv[] = {"steps", "once", what, number, n, NULL};
    pid_t child;
    int e = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = e;
    return e ? -1 : ended(child);
}
OP(vfork) { /* slot, way: ends, closes, closes all, starts a program, closes and starts one; what, bytes */
    char what[12], number[12], n[12];
    sprintf(what, "%ld", a[2]);
    sprintf(number, "%d", fd[a[0]]);
    sprintf(n, "%ld", a[3]);
    char *argv[] = {"steps", "once", what, number, n, NULL};
    int f = fd[a[0]];
    pid_t child = vfork();
    if (child == 0) {
        if (a[1] == 1 || a[1] == 4)
            close(f);
        if (a[1] == 2)
            closefrom(3);
        if (a[1] >= 3)
            execv("/proc/self/exe", argv);
        _exit(1);
    }
    return child < 0 ? -1 : ended(child);
}
OP(closes_all) { /* a child does, and ends */
    pid_t child = fork();
    if (child == 0) {
        closefrom(a[0]);
        _exit(1);
    }
    return child < 0 ? -1 : ended(child);
}
