/*
 * os.h - internal: system calls that differ between Linux and macOS, in os_linux.c and os_macos.c.
 * Hardware queries are in machine/os_linux.c and machine/os_macos.c.
 */
#ifndef RFL_BASE_OS_H
#define RFL_BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/** Bytes in a unit of ru_maxrss. */
extern const double rfl_os_rss_unit;

/** Open a pipe that exec closes. @return 0, or -1 with errno */
int rfl_os_pipe(int ends[2]);

/** In a child after fork(): let it be killed when its parent ends, if the system can do that.
 * Async-signal-safe. @return 0, or -1 with errno */
int rfl_os_die_with_parent(void);

/** A descriptor that is readable once this child has ended; -1: not supported. */
int rfl_os_exit_fd(pid_t child);

/** Open an empty file without a name that vanishes with this process.
 * @return a descriptor, or -1 with errno */
int rfl_os_memory_file(const char *name);

/** The path of this program, allocated; or NULL with errno. */
char *rfl_os_program(void);

/** The path of a library that dlopen() returned, or NULL; valid while it is loaded. */
const char *rfl_os_library_path(void *handle);

/** See rfl_dl_mapped(). */
const char *rfl_os_library_mapped(const char *prefix);

/** Drop the pages of a file from the page cache, if the system can do that. */
void rfl_os_drop_pages(int fd);

/** Initialise a condition whose timed waits are by rfl_clock_ns(). */
void rfl_os_cond_init(pthread_cond_t *cond);

#endif
