/* The unwinder, which panics and cancelled threads need: libgcc_s.so.1, loaded with the first listener, takeover or stream instead of
 * with every program that the library is preloaded into, where it cost more than all the rest of it. It must be the same one that the C
 * library loads for pthread_cancel(3), for its contexts go through our frames; so a static copy will not do.
 *
 * Rust's standard library calls these names; hidden ones here are found before those of the shared object. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>

#pragma GCC visibility push(hidden)

enum name {
	BACKTRACE, DELETE, ENCLOSING, CFA, DATA_BASE, IP, IP_INFO, SPECIFIC, REGION, TEXT_BASE, RAISE, RESUME, SET_REGISTER, SET_IP, NAMES
};

static const char names[NAMES][32] = {
	[BACKTRACE] = "_Unwind_Backtrace",
	[DELETE] = "_Unwind_DeleteException",
	[ENCLOSING] = "_Unwind_FindEnclosingFunction",
	[CFA] = "_Unwind_GetCFA",
	[DATA_BASE] = "_Unwind_GetDataRelBase",
	[IP] = "_Unwind_GetIP",
	[IP_INFO] = "_Unwind_GetIPInfo",
	[SPECIFIC] = "_Unwind_GetLanguageSpecificData",
	[REGION] = "_Unwind_GetRegionStart",
	[TEXT_BASE] = "_Unwind_GetTextRelBase",
	[RAISE] = "_Unwind_RaiseException",
	[RESUME] = "_Unwind_Resume",
	[SET_REGISTER] = "_Unwind_SetGR",
	[SET_IP] = "_Unwind_SetIP",
};

static void *found[NAMES];

/* What exit hooks of this object are known by; usually from the C compiler's files. */
void *const __dso_handle = (void *)&__dso_handle;

/* Finds all of them. Nonzero: they are there. Twice at once does no harm. */
int hw_load_unwinder(void)
{
	if (__atomic_load_n(&found[NAMES - 1], __ATOMIC_ACQUIRE))
		return 1;
	void *library = dlopen("libgcc_s.so.1", RTLD_NOW);
	if (!library)
		return 0;
	for (int i = 0; i < NAMES; i++) {
		void *at = dlsym(library, names[i]);
		if (!at)
			return 0;
		__atomic_store_n(&found[i], at, __ATOMIC_RELEASE);
	}
	return 1;
}

static void *find(enum name name)
{
	if (!hw_load_unwinder()) {
		/* As the C library does when it can't load it for pthread_cancel(3). */
		static const char told[] = "headwater: libgcc_s.so.1 is needed to unwind\n";
		if (isatty(2) && write(2, told, sizeof told - 1) < 0)
			abort();
		abort();
	}
	return found[name];
}

#define CALL(name, type, ...) ((__typeof__(&type))find(name))(__VA_ARGS__)
/* A function that is the one of libgcc_s. */
#define PASS(returns, function, name, parameters, ...) \
	returns function parameters                    \
	{                                              \
		return CALL(name, function, __VA_ARGS__); \
	}

typedef struct _Unwind_Context *context;
typedef struct _Unwind_Exception *exception;

PASS(_Unwind_Reason_Code, _Unwind_Backtrace, BACKTRACE, (_Unwind_Trace_Fn f, void *argument), f, argument)
PASS(void *, _Unwind_FindEnclosingFunction, ENCLOSING, (void *pc), pc)
PASS(_Unwind_Word, _Unwind_GetCFA, CFA, (context c), c)
PASS(_Unwind_Ptr, _Unwind_GetDataRelBase, DATA_BASE, (context c), c)
PASS(_Unwind_Ptr, _Unwind_GetIP, IP, (context c), c)
PASS(_Unwind_Ptr, _Unwind_GetIPInfo, IP_INFO, (context c, int *before), c, before)
PASS(void *, _Unwind_GetLanguageSpecificData, SPECIFIC, (context c), c)
PASS(_Unwind_Ptr, _Unwind_GetRegionStart, REGION, (context c), c)
PASS(_Unwind_Ptr, _Unwind_GetTextRelBase, TEXT_BASE, (context c), c)
/* The frame of this function, and of the next, is one more that is unwound, and has nothing to clean up. */
PASS(_Unwind_Reason_Code, _Unwind_RaiseException, RAISE, (exception e), e)

void _Unwind_Resume(exception e)
{
	CALL(RESUME, _Unwind_Resume, e);
	abort();
}

void _Unwind_DeleteException(exception e)
{
	CALL(DELETE, _Unwind_DeleteException, e);
}

void _Unwind_SetGR(context c, int n, _Unwind_Word value)
{
	CALL(SET_REGISTER, _Unwind_SetGR, c, n, value);
}

void _Unwind_SetIP(context c, _Unwind_Ptr ip)
{
	CALL(SET_IP, _Unwind_SetIP, c, ip);
}
