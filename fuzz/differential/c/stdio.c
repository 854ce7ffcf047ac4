/* Steps for the C library's streams over descriptors. */

static FILE *file[SLOTS];
/* What a row of docs/deviations.md is about is left out: whether a stream is for output only; what it was last used for. */
static char writes[SLOTS], last[SLOTS];
enum { INPUT, OUTPUT, PUSHED };
/* 1: nothing was read; 2: nothing but what was pushed back. */
static char bare[SLOTS];

OP(fdopen) { /* slot, mode */
    static const char *const modes[] = {"r", "w", "r+", "a", "re"};
    FILE *f = fdopen(fd[a[0]], modes[a[1]]);
    if (f) {
        file[a[0]] = f;
        writes[a[0]] = a[1] == 1 || a[1] == 3;
        last[a[0]] = INPUT;
        bare[a[0]] = 1;
    }
    return f ? fileno(f) == fd[a[0]] : -1;
}
/* A slot without a stream. */
#define STREAM(F) \
    FILE *F = file[a[0]]; \
    if (!F) \
        return 0
/* Output is flushed before input, as the standard has it. */
static void input(const long *a) {
    if (last[a[0]] == OUTPUT)
        fflush(file[a[0]]);
    if (last[a[0]] != PUSHED)
        bare[a[0]] = 0;
    last[a[0]] = INPUT;
}
/* Behind a byte that was pushed back the C library itself may fail at output, and dies if nothing else was read before. */
#define OUTPUTS \
    if (last[a[0]] == PUSHED || bare[a[0]] == 2) \
        return 0; \
    last[a[0]] = OUTPUT
static void state(FILE *f) { tell("%s%s", ferror(f) ? " error" : "", feof(f) ? " end" : ""); }
OP(fwrite) { /* slot, bytes, size of each */
    STREAM(f);
    OUTPUTS;
    long size = a[2] > 0 ? a[2] : 1, r = fwrite(bytes(a[1] * size), size, a[1], f);
    int e = errno;
    if (r < a[1])
        tell(" %s", strerrorname_np(e) ?: "none");
    state(f);
    return r;
}
OP(fread) {
    STREAM(f);
    /* Of nothing it does nothing. */
    if (a[1] > 0)
        input(a);
    long size = a[2] > 0 ? a[2] : 1;
    char *b = empty(a[1] * size);
    long r = fread(b, size, a[1], f);
    int e = errno;
    if (ferror(f))
        tell(" %s", strerrorname_np(e) ?: "none");
    if (r == a[1])
        came(b, r * size, a[1] * size);
    state(f);
    return r;
}
OP(fflush) {
    STREAM(f);
    int r = fflush(f);
    int e = errno;
    state(f);
    errno = e;
    return r;
}
OP(fputs) {
    STREAM(f);
    OUTPUTS;
    int r = fputs("a line\n", f) < 0 ? -1 : 0;
    state(f);
    return r;
}
OP(fprintf) {
    STREAM(f);
    OUTPUTS;
    int r = fprintf(f, "%ld and %s\n", a[0], "a line");
    state(f);
    return r;
}
OP(dprintf) { return dprintf(fd[a[0]], "%ld and %s\n", a[0], "a line"); }
OP(getc) {
    STREAM(f);
    input(a);
    errno = 0;
    int r = getc(f), e = errno;
    state(f);
    if (r == EOF && e)
        tell(" %s", strerrorname_np(e) ?: "none");
    return r == EOF ? 1000 : r;
}
OP(ungetc) {
    STREAM(f);
    if (writes[a[0]] || last[a[0]] == OUTPUT)
        return 0;
    last[a[0]] = PUSHED;
    if (bare[a[0]])
        bare[a[0]] = 2;
    return ungetc(a[1], f);
}
/* The C library itself frees what it did not allocate where a byte that was pushed back is still there. */
OP(buffered) { /* slot, way, size */
    static char room[SLOTS][4096];
    static const int ways[] = {_IONBF, _IOLBF, _IOFBF};
    STREAM(f);
    if (last[a[0]] == PUSHED || bare[a[0]] == 2)
        return 0;
    return setvbuf(f, a[2] ? room[a[0]] : NULL, ways[a[1]], a[2]);
}
OP(fseek) {
    STREAM(f);
    return fseek(f, a[1], SEEK_CUR);
}
OP(clearerr) {
    STREAM(f);
    clearerr(f);
    return 0;
}
OP(fclose) {
    STREAM(f);
    file[a[0]] = NULL;
    fd[a[0]] = -1;
    return fclose(f);
}
