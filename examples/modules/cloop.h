/* What the driver cloop is asked by I_STR, with an int: its own minor device; to be joined with that of another stream. */
#define CLOOP_GET ('c' << 8 | 1)
#define CLOOP_SET ('c' << 8 | 2)
