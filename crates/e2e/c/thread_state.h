/* How the kernel says that a thread of this process is: 'S' asleep; 0 when it is not there. */
#pragma once
#include <stdio.h>
#include <string.h>

__attribute__((unused)) static char state_of(int thread) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    const char *end = fgets(text, sizeof text, f) == NULL ? NULL : strrchr(text, ')');
    fclose(f);
    return end != NULL && end[1] == ' ' ? end[2] : 0;
}
