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

/* Its functions, by what stands behind _Unwind_ in their names. */
#define ALL(EACH) \
	EACH(Backtrace) EACH(DeleteException) EACH(FindEnclosingFunction) EACH(GetCFA) EACH(GetDataRelBase) EACH(GetIP) EACH(GetIPInfo) \
	EACH(GetLanguageSpecificData) EACH(GetRegionStart) EACH(GetTextRelBase) EACH(RaiseException) EACH(Resume) EACH(SetGR) EACH(SetIP)
#define PLACE(name) name,
#define TEXT(name) "_Unwind_" #name,

enum name { ALL(PLACE) NAMES };
static const char names[NAMES][32] = { ALL(TEXT) };
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

#define CALL(name, ...) ((__typeof__(&_Unwind_##name))find(name))(__VA_ARGS__)
/* A function that is the one of libgcc_s. */
#define PASS(returns, name, parameters, ...)    \
	returns _Unwind_##name parameters       \
	{                                       \
		return CALL(name, __VA_ARGS__); \
	}

typedef struct _Unwind_Context *context;
typedef struct _Unwind_Exception *exception;

PASS(_Unwind_Reason_Code, Backtrace, (_Unwind_Trace_Fn f, void *argument), f, argument)
PASS(void *, FindEnclosingFunction, (void *pc), pc)
PASS(_Unwind_Word, GetCFA, (context c), c)
PASS(_Unwind_Ptr, GetDataRelBase, (context c), c)
PASS(_Unwind_Ptr, GetIP, (context c), c)
PASS(_Unwind_Ptr, GetIPInfo, (context c, int *before), c, before)
PASS(void *, GetLanguageSpecificData, (context c), c)
PASS(_Unwind_Ptr, GetRegionStart, (context c), c)
PASS(_Unwind_Ptr, GetTextRelBase, (context c), c)
/* The frame of this function, and of _Unwind_Resume, is one more that is unwound, and has nothing to clean up. */
PASS(_Unwind_Reason_Code, RaiseException, (exception e), e)
PASS(void, DeleteException, (exception e), e)
PASS(void, SetGR, (context c, int n, _Unwind_Word value), c, n, value)
PASS(void, SetIP, (context c, _Unwind_Ptr ip), c, ip)

void _Unwind_Resume(exception e)
{
	CALL(Resume, e);
	abort();
}
