#define COPIER_GET ('C' << 8 | 1)
