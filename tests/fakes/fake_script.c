/*
 * fake_script.c - the script of a fake library.
 */
#include "tests/fakes/fake_script.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_script_set(struct fake_script *s, const char *text)
{
	const char *from = text ? text : getenv(s->variable);

	snprintf(s->text, sizeof(s->text), "%s", from ? from : "");
	s->log[0] = s->complaints[0] = '\0';
	s->log_len = s->complaints_len = 0;
	s->fault = 0;
	s->overflow = false;
	s->read = true;
}

bool fake_script_next(struct fake_script *s, const char *key, size_t *at, char out[FAKE_VALUE_MAX])
{
	size_t len = strlen(key);

	if (!s->read)
		fake_script_set(s, NULL);
	while (s->text[*at]) {
		const char *item = s->text + *at;
		size_t n = strcspn(item, ";");

		*at += n + (item[n] == ';');
		if (n <= len || strncmp(item, key, len) != 0 || item[len] != '=')
			continue;
		snprintf(out, FAKE_VALUE_MAX, "%.*s", (int)(n - len - 1), item + len + 1);
		return true;
	}
	return false;
}

bool fake_script_text(struct fake_script *s, const char *key, char out[FAKE_VALUE_MAX])
{
	size_t at = 0;

	return fake_script_next(s, key, &at, out);
}

double fake_script_number(struct fake_script *s, const char *key, double otherwise)
{
	char text[FAKE_VALUE_MAX];

	return fake_script_text(s, key, text) ? strtod(text, NULL) : otherwise;
}

static bool append(char *to, size_t *len, const char *line)
{
	size_t n = strlen(line);

	if (*len + n + 2 > FAKE_TEXT_MAX)
		return false;
	memcpy(to + *len, line, n);
	memcpy(to + *len + n, "\n", 2);
	*len += n + 1;
	return true;
}

static int calls_of(const struct fake_script *s, const char *call)
{
	size_t len = strlen(call);
	int n = 0;

	if (s->overflow)
		abort(); /* a test that makes so many calls should not count them */
	for (const char *at = s->log; (at = strstr(at, call)); at += len)
		n += (at == s->log || at[-1] == '\n') && at[len] == '\n';
	return n;
}

/* The code of "KEY=CALL:CODE" or "KEY=CALL:CODE@N" for the call just logged; 0: none. */
static int code_of(struct fake_script *s, const char *key, const char *call)
{
	char item[FAKE_VALUE_MAX];
	size_t at = 0, len = strlen(call);

	while (fake_script_next(s, key, &at, item)) {
		const char *nth = strchr(item, '@');

		if (strncmp(item, call, len) != 0 || item[len] != ':')
			continue;
		if (!nth || (int)strtod(nth + 1, NULL) == calls_of(s, call))
			return (int)strtod(item + len + 1, NULL);
	}
	return 0;
}

int fake_script_enter(struct fake_script *s, const char *call)
{
	int code;

	if (!s->read)
		fake_script_set(s, NULL);
	s->overflow = !append(s->log, &s->log_len, call) || s->overflow;
	code = s->fault ? s->fault : code_of(s, "fail", call);
	if (!s->fault)
		s->fault = code_of(s, "late", call);
	return code;
}

void fake_script_complain(struct fake_script *s, const char *fmt, ...)
{
	char line[FAKE_VALUE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	(void)append(s->complaints, &s->complaints_len, line);
	if (fake_script_number(s, "quiet", 0) == 0)
		fprintf(stderr, "%s: %s\n", s->variable, line);
}

void *fake_script_driver(const char *name)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *address = cuda ? dlsym(cuda, name) : NULL;

	if (cuda)
		(void)dlclose(cuda);
	return address;
}
