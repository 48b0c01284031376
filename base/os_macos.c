/* os_macos.c - os.h for macOS. tests/ci/macos.sh compiles and links it; it has not been run. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mach-o/dyld.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

const double rfl_os_rss_unit = 1;

int rfl_os_pipe(int ends[2])
{
	if (pipe(ends) != 0)
		return -1;
	for (int i = 0; i < 2; i++)
		(void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
	return 0;
}

/* macOS cannot: a child whose parent was killed continues. */
int rfl_os_die_with_parent(void)
{
	return 0;
}

int rfl_os_exit_fd(pid_t child)
{
	(void)child;
	return -1;
}

/* macOS has no path by which another process could open an unnamed file. */
int rfl_os_memory_file(const char *name)
{
	(void)name;
	errno = ENOTSUP;
	return -1;
}

char *rfl_os_program(void)
{
	char path[PATH_MAX];
	uint32_t size = sizeof(path);

	if (_NSGetExecutablePath(path, &size) == 0)
		return realpath(path, NULL);
	errno = ENAMETOOLONG;
	return NULL;
}

const char *rfl_os_library_path(void *handle)
{
	(void)handle;
	return NULL;
}

const char *rfl_os_library_mapped(const char *prefix)
{
	const char *path;

	for (uint32_t i = 0; (path = _dyld_get_image_name(i)); i++)
		if (strncmp(rfl_path_base(path), prefix, strlen(prefix)) == 0)
			return path;
	return NULL;
}

void rfl_os_drop_pages(int fd)
{
	(void)fd;
}

/* Only the sampler of NVIDIA GPUs waits so, and macOS has no driver for them. */
void rfl_os_cond_init(pthread_cond_t *cond)
{
	(void)pthread_cond_init(cond, NULL);
}
