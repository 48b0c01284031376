/* The tables of docs/reference/events.md are what the program counts. With RFL_TEST_UPDATE=1 they
 * are written. */
#include "tests/unit/docs_page.h"

#include <inttypes.h>
#include <linux/perf_event.h>

#include "profile/perf/impl.h"

#define PAGE        RFL_TEST_DATA "/../../docs/reference/events.md"
#define FROM(what_) "<!-- " what_ ": written by test_profile_perf_docs with RFL_TEST_UPDATE=1 -->\n"
#define TO(what_)   "<!-- end of " what_ " -->\n"

static void check(const char *from, const char *to, void (*put)(struct rfl_buf *out))
{
	struct rfl_buf part;

	rfl_buf_init(&part, 0);
	put(&part);
	check_page_part(PAGE, from, to, &part);
	rfl_buf_fini(&part);
}

/* "Broadwell, Skylake, ..." of a kind, each once. */
static void put_processors(struct rfl_buf *out, enum rfl_perf_kind kind)
{
	const struct rfl_perf_cpu *cpu, *before;
	const char *sep = "";

	for (size_t i = 0; (cpu = rfl_perf_cpu_at(i)); i++) {
		before = i > 0 ? rfl_perf_cpu_at(i - 1) : NULL;
		if (cpu->kind != kind || (before && strcmp(before->name, cpu->name) == 0))
			continue;
		rfl_buf_printf(out, "%s%s", sep, cpu->name);
		sep = ", ";
	}
}

static void put_events(struct rfl_buf *out)
{
	const struct rfl_perf_event *e;

	for (int kind = RFL_PERF_INTEL; kind < RFL_PERF_KIND_COUNT; kind++) {
		rfl_buf_puts(out, "\n**");
		put_processors(out, (enum rfl_perf_kind)kind);
		rfl_buf_puts(out, "**\n\n| event | code | general counters |\n|---|---|---|\n");
		for (size_t i = 0; (e = rfl_perf_event_at((enum rfl_perf_kind)kind, i)); i++) {
			if (e->type == PERF_TYPE_SOFTWARE)
				continue;
			rfl_buf_printf(out, "| `%s` | ", e->name);
			if (e->type == PERF_TYPE_RAW)
				rfl_buf_printf(out, "0x%04" PRIx64, e->config);
			else
				rfl_buf_puts(out, "generic");
			rfl_buf_printf(out, " | %d |\n", e->slots);
		}
	}
	rfl_buf_puts(out, "\n");
}

static void put_controllers(struct rfl_buf *out)
{
	const struct rfl_perf_uncore *u;

	rfl_buf_puts(out, "\n| PMU | event | code where the kernel has no name | as |\n"
			  "|---|---|---|---|\n");
	for (size_t i = 0; (u = rfl_perf_uncore_at(i)); i++)
		rfl_buf_printf(out, "| `%s` | `%s` | %s%s%s | %s |\n", u->pmu, u->event,
			       u->terms ? "`" : "", u->terms ? u->terms : "the kernel's only",
			       u->terms ? "`" : "", u->bytes > 0 ? "bytes" : "a count");
	rfl_buf_puts(out, "\n");
}

static void events_are_on_the_page(void **state)
{
	(void)state;
	check(FROM("events"), TO("events"), put_events);
}

static void controllers_are_on_the_page(void **state)
{
	(void)state;
	check(FROM("controllers"), TO("controllers"), put_controllers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_on_the_page),
		cmocka_unit_test(controllers_are_on_the_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
