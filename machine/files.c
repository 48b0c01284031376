/* files.c - small files of the kernel and their values. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "machine/machine_parts.h"

static bool slurp(const char *root, char *out, size_t size, const char *fmt, va_list ap)
{
	char path[4096];
	ssize_t n;
	size_t len = strlen(root);
	int fd, wanted;

	out[0] = '\0';
	if (len >= sizeof(path))
		return false;
	memcpy(path, root, len);
	wanted = vsnprintf(path + len, sizeof(path) - len, fmt, ap);
	if (wanted < 0 || (size_t)wanted >= sizeof(path) - len)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = 0;
	while (len + 1 < size && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	while (len > 0 && strchr(" \t\n", out[len - 1]))
		len--;
	out[len] = '\0';
	return len > 0;
}

bool rfl_machine__slurp(const char *root, char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	bool read;

	va_start(ap, fmt);
	read = slurp(root, out, size, fmt, ap);
	va_end(ap);
	return read;
}

bool rfl_machine__slurp_int(const char *root, int64_t *ret, const char *fmt, ...)
{
	char text[64];
	va_list ap;
	bool read;

	va_start(ap, fmt);
	read = slurp(root, text, sizeof(text), fmt, ap);
	va_end(ap);
	return read && rfl_num_parse_int(text, "", ret, NULL) == RFL_OK;
}

bool rfl_machine__value(const char *text, const char *key, char separator, char *out, size_t size)
{
	const size_t key_len = strlen(key);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *at = line + key_len;
		size_t len;

		if (strncmp(line, key, key_len) != 0)
			continue;
		if (separator != ' ')
			at += strspn(at, " \t");
		if (*at != separator)
			continue;
		at += 1 + strspn(at + 1, " \t");
		len = strcspn(at, "\n");
		if (len >= 2 && (*at == '"' || *at == '\'') && at[len - 1] == *at) {
			at++;
			len -= 2;
		}
		snprintf(out, size, "%.*s", (int)len, at);
		return len > 0;
	}
	return false;
}
