/* Behind the steps: who does them, and who reads the script. */

extern const struct op __start_ops[], __stop_ops[];

static void say(int number, int t) {
    struct said s = {number, me, t, getpid(), syscall(SYS_gettid), ""};
    memcpy(s.text, told, sizeof told);
    if (syscall(SYS_write, answers[1], &s, sizeof s) != sizeof s)
        _exit(3);
}

/* The next order; a signal that comes between two ends nothing. */
static int is_told(int t, struct step *step) {
    ssize_t n;
    do
        n = syscall(SYS_read, orders[me][t][0], step, sizeof *step);
    while (n < 0 && errno == EINTR);
    return n == sizeof *step;
}

static void *follow(void *which) {
    int t = (int)(long)which;
    struct step step;
    told[0] = 0;
    say(-1, t);
    while (is_told(t, &step)) {
        if (step.op < 0)
            exit(0);
        now = &step;
        told[0] = 0;
        errno = 0;
        long r = __start_ops[step.op].run(step.a);
        int e = errno;
        char what[400];
        memcpy(what, told, sizeof what);
        if (r == TOLD)
            snprintf(told, sizeof told, "%s", what + (what[0] == ' '));
        else if (r < 0)
            snprintf(told, sizeof told, "%s", strerrorname_np(e) ?: "internal error");
        else
            snprintf(told, sizeof told, "%ld%.380s", r, what);
        say(step.number, t);
    }
    return NULL;
}

static void act(int process) {
    me = process;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    thread[0] = pthread_self();
    if (threads > 1)
        pthread_create(&thread[1], NULL, follow, (void *)1);
    follow(NULL);
}

static void handle(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = restarts ? SA_RESTART : 0};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGURG, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- who reads the script ---- */

static struct {
    int pid, pidfd, born;
    struct {
        int tid, busy;
    } t[THREADS];
} known[PROCESSES];
static int births;

static int moved(int f) {
    int high = fcntl(f, F_DUPFD, HIGH);
    close(f);
    return high;
}

/* Does a thread sleep? */
static int sleeps(int process, int t) {
    char name[64], text[256];
    snprintf(name, sizeof name, "/proc/%d/task/%d/stat", known[process].pid, known[process].t[t].tid);
    int f = open(name, O_RDONLY | O_CLOEXEC);
    if (f < 0)
        return 0;
    ssize_t n = read(f, text, sizeof text - 1);
    close(f);
    text[n < 0 ? 0 : n] = 0;
    char *end = strrchr(text, ')');
    return end && end[2] == 'S';
}

static int is_gone(int process) {
    struct pollfd p = {known[process].pidfd, POLLIN, 0};
    return known[process].pidfd >= 0 && poll(&p, 1, 0) == 1;
}

static void forget(int process) {
    if (known[process].pidfd >= 0)
        close(known[process].pidfd);
    memset(&known[process], 0, sizeof known[process]);
    known[process].pidfd = -1;
}

/* What is heard while a step is done: of itself, and of others, in their order. */
static char own[420], heard[PROCESSES * THREADS][420];
static int hears;

static int by_number(const void *a, const void *b) { return atoi(a) - atoi(b); }

static void print_heard(void) {
    printf("%s", own);
    qsort(heard, hears, sizeof *heard, by_number);
    for (int i = 0; i < hears; i++)
        printf(" | %s", heard[i]);
    own[0] = hears = 0;
}

static void take_in(int number) {
    struct said s;
    if (read(answers[0], &s, sizeof s) != sizeof s)
        exit(4);
    if (s.number < 0) {
        if (known[s.process].pid != s.pid) {
            known[s.process].pid = s.pid;
            known[s.process].born = ++births;
            known[s.process].pidfd = syscall(SYS_pidfd_open, s.pid, 0);
        }
        known[s.process].t[s.thread].tid = s.tid;
        known[s.process].t[s.thread].busy = 0;
        return;
    }
    known[s.process].t[s.thread].busy = 0;
    if (s.number == number)
        snprintf(own, sizeof own, " = %s", s.text);
    else
        snprintf(heard[hears++], sizeof *heard, "%d = %s", s.number, s.text);
}

static int comes(int ms) {
    struct pollfd p = {answers[0], POLLIN, 0};
    return poll(&p, 1, ms) == 1;
}

static int is_there(int process) {
    for (int t = 0; t < threads; t++)
        if (!known[process].t[t].tid)
            return 0;
    return 1;
}

static void await_process(int process, int number) {
    for (int i = 0; i < 1000 && !is_there(process); i++)
        if (comes(5))
            take_in(number);
}

/* Until everybody has done what he was told, or sleeps. */
static void settle(int number, int process, int t, int patience) {
    int calm = 0;
    if (slow)
        usleep(50000);
    for (int i = 0; i < 2000 && calm < (slow ? 40 : 3); i++) {
        while (comes(0)) {
            take_in(number);
            calm = 0;
        }
        int awake = 0, busy = 0;
        for (int p = 0; p < PROCESSES; p++)
            for (int k = 0; k < threads; k++)
                if (known[p].pid && known[p].t[k].busy) {
                    busy = 1;
                    awake |= !sleeps(p, k);
                }
        if (!busy)
            return;
        if (patience > 0 && known[process].t[t].busy) {
            /* It ends by itself. */
            int ms = patience;
            patience = 0;
            comes(ms);
            continue;
        }
        if (is_gone(process))
            return;
        calm = awake ? 0 : calm + 1;
        comes(awake ? 1 : 2);
    }
}

static int op_named(const char *name) {
    for (int i = 0; i < __stop_ops - __start_ops; i++)
        if (!strcmp(__start_ops[i].name, name))
            return i;
    return -1;
}

/* How long an operation may last that waits at most so long, in milliseconds; 0: it does not wait, or for ever. */
static int lasts(const char *name, const long *a) {
    long ms = 0;
    if (!strcmp(name, "poll") || !strcmp(name, "ppoll") || !strcmp(name, "select") || !strcmp(name, "pselect"))
        ms = a[0];
    if (!strncmp(name, "epoll_wait", 10) || !strncmp(name, "epoll_pwait", 11) || !strcmp(name, "t_poll") || !strcmp(name, "t_epoll_wait"))
        ms = a[2];
    if (!strcmp(name, "t_flood") || !strcmp(name, "t_urgent") || !strcmp(name, "pour"))
        ms = 2500;
    if (!strcmp(name, "t_refused"))
        ms = 1000;
    if (!strcmp(name, "signalled"))
        ms = 20;
    return ms > 0 ? ms + (slow ? 200 : 60) : 0;
}

static void do_step(int number, int process, int t, const char *name, const long *a) {
    printf("%d %d %s", process, t, name);
    for (int i = 0; i < ARGS; i++)
        if (a[i] != -99)
            printf(" %ld", a[i]);
    struct step step = {number, process, t, op_named(name), {0}};
    memcpy(step.a, a, sizeof step.a);
    if (step.op < 0 || process >= PROCESSES || t >= threads) {
        printf(" = no such step\n");
        return;
    }
    if (!known[process].pid) {
        printf(" = nobody\n");
        return;
    }
    if (!strcmp(name, "kill")) {
        kill(known[process].pid, SIGKILL);
        while (!is_gone(process))
            usleep(200);
        forget(process);
        settle(number, 0, 0, 0);
        print_heard();
        printf("\n");
        return;
    }
    if (known[process].t[t].busy) {
        printf(" = busy\n");
        return;
    }
    if (!strcmp(name, "fork") && (a[0] >= PROCESSES || known[a[0]].pid)) {
        printf(" = taken\n");
        return;
    }
    known[process].t[t].busy = 1;
    if (write(orders[process][t][1], &step, sizeof step) != sizeof step)
        exit(4);
    if (!strcmp(name, "exec"))
        known[process].t[0].tid = known[process].t[1].tid = 0;
    if (!strcmp(name, "exec") || !strcmp(name, "fork"))
        await_process(!strcmp(name, "fork") ? (int)a[0] : process, number);
    if (!strcmp(name, "exit")) {
        for (int i = 0; i < 5000 && !is_gone(process); i++)
            usleep(200);
        printf(is_gone(process) ? "" : " = stays");
        forget(process);
        settle(number, 0, 0, 0);
        print_heard();
        printf("\n");
        return;
    }
    settle(number, process, t, lasts(name, a));
    if (known[process].pid && is_gone(process)) {
        printf(" = dead");
        /* Another thread of it may die first, and this one be heard yet. */
        if (!strcmp(name, "signal"))
            own[0] = 0;
        forget(process);
    } else if (known[process].t[t].busy)
        printf(" = waits");
    print_heard();
    printf("\n");
    for (int p = 0; p < PROCESSES; p++)
        if (known[p].pid && is_gone(p)) {
            printf("process %d is dead\n", p);
            forget(p);
        }
}

int main(int argc, char **argv) {
#ifdef ONCE
    if (argc == 5)
        return ONCE(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
#endif
    if (argc > 1) {
        /* An actor after its exec: the descriptors of the protocol stayed where they were. */
        char *at = argv[1];
        me = strtol(at, &at, 10);
        threads = strtol(at, &at, 10);
        restarts = strtol(at, &at, 10);
        slow = strtol(at, &at, 10);
        for (int i = 0; i < SLOTS; i++)
            fd[i] = strtol(at, &at, 10);
        memcpy(orders, (int[PROCESSES][THREADS][2]){{{100, 101}, {102, 103}}, {{104, 105}, {106, 107}}, {{108, 109}, {110, 111}}}, sizeof orders);
        memcpy(answers, (int[]){112, 113}, sizeof answers);
        memcpy(passing, (int[]){114, 115}, sizeof passing);
        handle();
        act(me);
        return 0;
    }
    char line[512], name[64];
    int number = 0, begun = 0;
    setvbuf(stdout, NULL, _IOLBF, 4096);
    for (int i = 0; i < SLOTS; i++)
        fd[i] = -1;
    for (int p = 0; p < PROCESSES; p++) {
        known[p].pidfd = -1;
        for (int t = 0; t < THREADS; t++) {
            int made[2];
            if (pipe(made))
                return 4;
            orders[p][t][0] = moved(made[0]);
            orders[p][t][1] = moved(made[1]);
        }
    }
    int made[2];
    if (pipe(made))
        return 4;
    answers[0] = moved(made[0]);
    answers[1] = moved(made[1]);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, made))
        return 4;
    passing[0] = moved(made[0]);
    passing[1] = moved(made[1]);
    shared = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 4;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#ifdef SCRIPT
    FILE *script = fmemopen((void *)SCRIPT, strlen(SCRIPT), "r");
#else
    FILE *script = stdin;
#endif
    while (fgets(line, sizeof line, script)) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "threads %d", &threads) == 1 || sscanf(line, "restarts %d", &restarts) == 1 ||
            sscanf(line, "slow %d", &slow) == 1 || sscanf(line, "way %d", &way) == 1 || !strncmp(line, "over ", 5))
            continue;
        if (!begun) {
            begun = 1;
            handle();
            fflush(stdout);
            int child = fork();
            if (child == 0) {
                close(0);
                open("/dev/null", O_RDONLY);
                act(0);
                _exit(0);
            }
            /* What is under way there ends with those who pass it on. */
            close(passing[0]);
            close(passing[1]);
            await_process(0, -2);
        }
        int process, t, at;
        long a[ARGS];
        for (int i = 0; i < ARGS; i++)
            a[i] = -99;
        if (sscanf(line, "%d %d %63s%n", &process, &t, name, &at) != 3) {
            printf("not a step: %s", line);
            return 4;
        }
        char *rest = line + at;
        for (int i = 0; i < ARGS; i++) {
            char *end;
            long value = strtol(rest, &end, 0);
            if (end == rest)
                break;
            a[i] = value;
            rest = end;
        }
        do_step(number++, process, t, name, a);
    }
    fflush(stdout);
    /* Children first: they are killed when their parents go. Who waits still has last words of the library's, if not of its own. */
    for (int left = births; left > 0; left--) {
        int p = 0;
        while (p < PROCESSES && (!known[p].pid || known[p].born != left))
            p++;
        if (p == PROCESSES)
            continue;
        struct step last = {.op = -1};
        if (known[p].t[0].busy)
            kill(known[p].pid, SIGTERM);
        else if (write(orders[p][0][1], &last, sizeof last) != sizeof last)
            return 4;
        for (int i = 0; i < 250 && !is_gone(p); i++)
            usleep(200);
    }
    for (int p = 0; p < PROCESSES; p++)
        if (known[p].pid)
            kill(known[p].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return 0;
}
