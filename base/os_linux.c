/* os_linux.c - what only Linux has. */
#define _GNU_SOURCE /* pipe2, memfd_create, syscall, dlinfo, dl_iterate_phdr */

#include "base/os.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

const double rfl_os_rss_unit = 1024;

int rfl_os_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

int rfl_os_die_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int rfl_os_exit_fd(pid_t child)
{
	return (int)syscall(SYS_pidfd_open, child, 0);
}

int rfl_os_memory_file(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC);
}

char *rfl_os_program(void)
{
	char *path = realpath("/proc/self/exe", NULL);

	if (!path) { /* /proc is not mounted: the path by which the program was started */
		char *started;
		const unsigned long at = getauxval(AT_EXECFN);

		memcpy(&started, &at, sizeof(started));
		path = started ? realpath(started, NULL) : NULL;
	}
	return path;
}

const char *rfl_os_library_path(void *handle)
{
	struct link_map *map = NULL;

	return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : NULL;
}

/* @param text  in: prefix, out: path */
static int look_for_mapped(struct dl_phdr_info *info, size_t size, void *text)
{
	const char **prefix = text;
	const char *base = rfl_path_base(info->dlpi_name);

	(void)size;
	if (strncmp(base, *prefix, strlen(*prefix)) != 0 || !strstr(base, ".so"))
		return 0;
	*prefix = info->dlpi_name;
	return 1;
}

const char *rfl_os_library_mapped(const char *prefix)
{
	return dl_iterate_phdr(look_for_mapped, &prefix) ? prefix : NULL;
}

void rfl_os_drop_pages(int fd)
{
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void rfl_os_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}
