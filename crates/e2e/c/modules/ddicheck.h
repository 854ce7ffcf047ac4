/* Asked of ddicheck by I_STR: the first line that fails, or 0; how often something was called later. */
#define DDI_CHECK ('D' << 8 | 1)
#define DDI_LATER ('D' << 8 | 2)
