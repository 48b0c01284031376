/*
 * tool.c - what ncu and nsys do with NVTX, as far as a client can see it: asks for every table,
 * fills the slots of push and pop, and writes down what it hears. Its test reads that by
 * fake_nvtx_log().
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/compiler.h"
#include "profile/cupti/api.h"

RFL_EXPORT int InitializeInjectionNvtx2(rfl_nvtx_export_fn *get_table);
RFL_EXPORT const char *fake_nvtx_log(void);
RFL_EXPORT void fake_nvtx_reset(int refuse);

static char text[4096];
static size_t len;
static int refuses;

static void write_down(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	const int n = vsnprintf(text + len, sizeof(text) - len, fmt, args);
	va_end(args);
	if (n > 0 && (size_t)n < sizeof(text) - len)
		len += (size_t)n;
}

RFL_EXPORT const char *fake_nvtx_log(void)
{
	return text;
}

/* Forget everything; refuse to attach from now on, or do not. */
RFL_EXPORT void fake_nvtx_reset(int refuse)
{
	text[0] = '\0';
	len = 0;
	refuses = refuse;
}

static int push(const char *message)
{
	write_down("push %s\n", message);
	return 0;
}

static int pop(void)
{
	write_down("pop\n");
	return 0;
}

static void look_at_modules(const struct rfl_nvtx_callbacks *c)
{
	for (int m = 0; m <= 7; m++) {
		rfl_nvtx_function ***table = NULL;
		unsigned size = 0;
		unsigned there = 0;

		if (!c->module_table((enum rfl_nvtx_module)m, &table, &size)) {
			write_down("module %d: none\n", m);
			continue;
		}
		for (unsigned i = 1; i < size; i++)
			there += table[i] != NULL;
		write_down("module %d: %u, %u slots\n", m, size, there);
	}
}

RFL_EXPORT int InitializeInjectionNvtx2(rfl_nvtx_export_fn *get_table)
{
	const struct rfl_nvtx_callbacks *c = get_table(RFL_NVTX_TABLE_CALLBACKS);
	const struct rfl_nvtx_version *v = get_table(RFL_NVTX_TABLE_VERSION);
	rfl_nvtx_function ***table = NULL;
	unsigned size = 0;

	if (!c || !v || c->struct_size != sizeof(*c) || v->struct_size != sizeof(*v))
		return 0;
	write_down("version %u, table 2 %s, table 4 %s\n", v->version,
		   get_table(2) ? "there" : "none", get_table(4) ? "there" : "none");
	v->set_tool_version(RFL_NVTX_VERSION);
	look_at_modules(c);
	if (!c->module_table(RFL_NVTX_CORE, &table, &size) || size <= RFL_NVTX_CORE_POP)
		return 0;
	*table[RFL_NVTX_CORE_PUSH_A] = (rfl_nvtx_function *)(void (*)(void))push;
	*table[RFL_NVTX_CORE_POP] = (rfl_nvtx_function *)(void (*)(void))pop;
	return !refuses;
}
