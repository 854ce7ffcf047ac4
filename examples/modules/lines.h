/* What the module lines can be asked by I_STR: its answer is an unsigned long. */
#define LINES_GET ('n' << 8 | 1)
