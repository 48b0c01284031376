/* compiler.h - the only file that uses attributes of GCC and Clang directly. */
#ifndef RFL_BASE_COMPILER_H
#define RFL_BASE_COMPILER_H

#define RFL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RFL_VPRINTF(fmt)      __attribute__((format(printf, fmt, 0)))
#define RFL_WARN_UNUSED       __attribute__((warn_unused_result))
#define RFL_NORETURN          __attribute__((noreturn))
#define RFL_EXPORT            __attribute__((visibility("default")))
#define RFL_ALIGNED(n)        __attribute__((aligned(n)))
#define RFL_NOINLINE          __attribute__((noinline))
#define RFL_TARGET(isa)       __attribute__((target(isa)))
#define RFL_UNUSED            __attribute__((unused))

#define RFL_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The text of a number that is a macro. */
#define RFL_QUOTED(number)  RFL_QUOTED_(number)
#define RFL_QUOTED_(number) #number

#endif
