#include "config.h"
#include <stdio.h>

int main(void)
{
	printf("hello from %s, long has %d bytes\n", PACKAGE_STRING, SIZEOF_LONG);
	return 0;
}
