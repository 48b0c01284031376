/* libstdc++.c - what is newer than the C++ library of a system with glibc 2.28, and used by GCC
 * 12's headers in the torch engine. */
#include <stdlib.h>

/* Since glibc 2.32: whether references may be counted without atomic instructions. */
__attribute__((visibility("hidden"))) char __libc_single_threaded;

/* Since GCC 11, in inline functions of std::vector. */
_Noreturn void __cxa_throw_bad_array_new_length(void);
_Noreturn void _ZSt28__throw_bad_array_new_lengthv(void);

void _ZSt28__throw_bad_array_new_lengthv(void)
{
	__cxa_throw_bad_array_new_length();
}

/* Called by eh_ptr.o, which build.sh takes from GCC 12's static library; not exported by the shared
 * one. */
_Noreturn void _ZN10__cxxabiv111__terminateEPFvvE(void (*handler)(void));

void _ZN10__cxxabiv111__terminateEPFvvE(void (*handler)(void))
{
	handler();
	abort();
}
