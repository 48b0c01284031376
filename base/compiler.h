/* compiler.h - the only file that uses compiler attributes directly. */
#ifndef RFL_BASE_COMPILER_H
#define RFL_BASE_COMPILER_H

#if defined(__GNUC__) || defined(__clang__)
#define RFL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RFL_VPRINTF(fmt)      __attribute__((format(printf, fmt, 0)))
#define RFL_WARN_UNUSED       __attribute__((warn_unused_result))
#define RFL_EXPORT            __attribute__((visibility("default")))
#define RFL_ALIGNED(n)        __attribute__((aligned(n)))
#define RFL_NOINLINE          __attribute__((noinline))
#define RFL_TARGET(isa)       __attribute__((target(isa)))
#define RFL_UNUSED            __attribute__((unused))
#else
#define RFL_PRINTF(fmt, args)
#define RFL_VPRINTF(fmt)
#define RFL_WARN_UNUSED
#define RFL_EXPORT
#define RFL_ALIGNED(n)
#define RFL_NOINLINE
#define RFL_TARGET(isa)
#define RFL_UNUSED
#endif

#define RFL_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
