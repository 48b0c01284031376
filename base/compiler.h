/* compiler.h - the only file that uses attributes of GCC and Clang directly. */
#ifndef RFL_BASE_COMPILER_H
#define RFL_BASE_COMPILER_H

#define RFL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RFL_VPRINTF(fmt)      __attribute__((format(printf, fmt, 0)))
#define RFL_WARN_UNUSED       __attribute__((warn_unused_result))
#define RFL_NORETURN          __attribute__((noreturn))
#define RFL_EXPORT            __attribute__((visibility("default")))
#define RFL_ALIGNED(n)        __attribute__((aligned(n)))
#define RFL_MAY_ALIAS         __attribute__((may_alias))
#define RFL_NOINLINE          __attribute__((noinline))
#define RFL_TARGET(isa)       __attribute__((target(isa)))
#define RFL_UNUSED            __attribute__((unused))
#define RFL_CLEANUP(function) __attribute__((cleanup(function)))

/* Around the declarations of the headers that belong to the C library (library/): exported, and
 * with C linkage. */
#ifdef __cplusplus
#define RFL_API_BEGIN \
	extern "C" {  \
	_Pragma("GCC visibility push(default)")
#define RFL_API_END                   \
	_Pragma("GCC visibility pop") \
	}
#else
#define RFL_API_BEGIN _Pragma("GCC visibility push(default)")
#define RFL_API_END   _Pragma("GCC visibility pop")
#endif

/* Variables that are released at the end of their scope: RFL_AUTO(buf) with rfl_buf_fini(),
 * RFL_AUTOPTR(net) with rfl_net_free(), for which the header has RFL_AUTOPTR_TYPE(net, free). They
 * must be initialised where they are declared. */
#define RFL_AUTO(type)    RFL_CLEANUP(rfl_##type##_fini) struct rfl_##type
#define RFL_AUTOPTR(type) RFL_CLEANUP(rfl_auto_##type) struct rfl_##type *
#define RFL_AUTOPTR_TYPE(type, release)                           \
	static inline void rfl_auto_##type(struct rfl_##type **p) \
	{                                                         \
		rfl_##type##_##release(*p);                       \
	}                                                         \
	struct rfl_##type

#define RFL_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The text of a number that is a macro. */
#define RFL_QUOTED(number)  RFL_QUOTED_(number)
#define RFL_QUOTED_(number) #number

#endif
