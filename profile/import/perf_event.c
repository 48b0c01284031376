/*
 * perf_event.c - an event of perf stat over its PMUs: the kinds of cores of a hybrid
 * processor by their shares of the time, and what is not known with its reason.
 *
 * perf has scaled its values to the whole time already: nothing is scaled again. A value that was
 * scaled from less than half of the time is refused.
 */
#include <math.h>
#include <string.h>

#include "profile/import/perf.h"

#define LEAST_SHARE 50.0 /* percent of the time */

/* A kind of core of a hybrid processor. */
static bool is_kind(const struct rfl_perf_part *p)
{
	return strncmp(p->pmu, "cpu_", 4) == 0 || strncmp(p->pmu, "armv", 4) == 0;
}

static bool is_hybrid(const struct rfl_perf_event_sum *e)
{
	for (size_t i = 1; i < e->nparts; i++)
		if (is_kind(&e->parts[i]) && strcmp(e->parts[i].pmu, e->parts[0].pmu) != 0)
			return true;
	return false;
}

/* Of "cycles" and "cycles:u" the first has all of it; "cycles:u" and "cycles:k" are halves. */
static bool is_wanted(const struct rfl_perf_event_sum *e, const struct rfl_perf_part *p)
{
	bool plain = false, halves = true;

	for (size_t i = 0; i < e->nparts; i++) {
		const char *m = e->parts[i].modifiers;

		plain = plain || m[0] == '\0';
		halves = halves && (strcmp(m, "u") == 0 || strcmp(m, "k") == 0);
	}
	if (plain)
		return p->modifiers[0] == '\0';
	return halves || strcmp(p->modifiers, e->parts[0].modifiers) == 0;
}

struct merged {
	double value, running, half_digit;
	double raw, shares; /* of the kinds of cores */
	int64_t rows;
	bool weighted, unclear, placed, mixed;
	const char *modifiers;
	const char
		*only; /* the one kind of core that has the event, which ran less than all of it */
	int64_t counted, not_counted, not_supported;
};

static void add_part(const struct rfl_perf_part *p, struct merged *m)
{
	int64_t rows = p->counted + p->not_counted + p->not_supported;

	m->counted += p->counted;
	m->not_counted += p->not_counted;
	m->not_supported += p->not_supported;
	m->rows = rows > m->rows ? rows : m->rows;
	m->mixed = m->mixed || (m->modifiers && strcmp(m->modifiers, p->modifiers) != 0);
	m->modifiers = p->modifiers;
	if (p->counted == 0)
		return;
	m->value += p->value;
	m->half_digit += p->half_digit;
	m->raw += p->raw;
	m->shares += p->shares;
	m->placed = m->placed || p->placed;
	if (p->running < m->running)
		m->running = p->running;
}

/* Processors, not a process: each kind of core is there all the time. */
static bool is_of_processors(const struct rfl_perf_block *k)
{
	return strcmp(k->command, "system wide") == 0 || strncmp(k->command, "CPU(s) ", 7) == 0;
}

/* A thread moves between the kinds of cores, and perf scales the count of a kind as if the thread
 * had been on it all the time. Where the shares are parts of one time, what was counted before that
 * is added up, and scaled by what all kinds together leave of the time. Shares of several threads
 * are of times of their own: counts are added as they are. Shares below the whole can be of either.
 */
static void weigh(const struct rfl_perf_block *k, const char *unit, struct merged *m)
{
	double all = m->rows > 0 ? m->shares / (double)m->rows : 0.0;
	bool one_thread = k->cpus_utilized <= 1.1; /* NaN: not known */

	if (all <= 0.0 || all > 101.0 || m->running >= 100.0 || m->placed || m->mixed ||
	    is_of_processors(k))
		return;
	m->unclear = all < 99.0 && !one_thread;
	m->weighted = true;
	m->running = all < 99.5 ? all : 100.0;
	m->value = m->raw * 100.0 / all;
	if (unit[0] == '\0')
		m->value = floor(m->value + 0.5);
	m->half_digit += m->value * 0.005 / all; /* perf prints shares with two decimals */
}

/* Cores of Intel's small kind have no event of FLOPs: time on them and time without a counter are
 * both what is missing, and only what was counted is sure. */
static void keep_one_kind(const struct rfl_perf_block *k, const struct rfl_perf_event_sum *e,
			  struct merged *m)
{
	if (m->counted == 0 || strncmp(e->parts[0].pmu, "cpu_", 4) != 0 || m->running > 99.5 ||
	    m->placed || is_of_processors(k))
		return;
	m->only = e->parts[0].pmu;
	m->value = floor(m->raw + 0.5);
}

static struct merged merge(const struct rfl_perf_block *k, const struct rfl_perf_event_sum *e)
{
	struct merged m = { .running = 100.0 };

	for (size_t i = 0; i < e->nparts; i++)
		if (is_wanted(e, &e->parts[i]))
			add_part(&e->parts[i], &m);
	if (!is_hybrid(e))
		keep_one_kind(k, e, &m);
	if (!is_hybrid(e) || m.counted == 0)
		return m;
	/* A kind of core that the process never ran on has nothing to count. */
	m.not_counted = m.not_supported = 0;
	weigh(k, e->unit, &m);
	return m;
}

static void unavailable(struct rfl_reading *r, const char *reason)
{
	r->value = NAN;
	r->validity = RFL_VALID_UNAVAILABLE;
	r->reason = reason;
}

enum rfl_rc rfl_perf__event(struct rfl_perf_block *k, const struct rfl_perf_event_sum *e,
			    struct rfl_reading *r, struct rfl_err *err)
{
	struct merged m = merge(k, e);
	static const char rounded[] = "rounded by its unit: perf stat -j prints more digits";
	const char *text = "";

	*r = (struct rfl_reading){ .name = e->name, .unit = e->unit, .value = m.value };
	if (strcmp(e->name, "cpu-clock") == 0 &&
	    (is_of_processors(k) || strcmp(k->command, "process") == 0)) {
		unavailable(r, "of perf -a the time of all processors, busy or idle (-x and -j do "
			       "not tell): count task-clock");
	} else if (m.counted == 0 && m.not_counted == 0) {
		unavailable(r, "perf: <not supported> by this processor or virtual machine");
	} else if (m.counted == 0) {
		unavailable(r, "perf: <not counted>: it never ran; count fewer events at once");
	} else if (m.unclear) {
		unavailable(r,
			    "perf's shares of the kinds of cores are no whole, and it is not known "
			    "to be one thread: count fewer events at once, and task-clock");
	} else if (m.running < LEAST_SHARE) {
		text = rfl_arena_printf(k->arena,
					"counted during %.4g %% of the time: too little to scale "
					"from; count fewer events at once",
					m.running);
		unavailable(r, text);
	} else if (m.only) {
		text = rfl_arena_printf(k->arena,
					"counted on %s alone, during %.4g %% of the time, and not "
					"scaled: a lower bound",
					m.only, m.running);
		r->validity = RFL_VALID_PARTIAL;
		r->reason = text;
	} else if (m.not_counted + m.not_supported > 0) {
		text = rfl_arena_printf(k->arena, "not counted in %lld of %lld readings",
					(long long)(m.not_counted + m.not_supported),
					(long long)(m.counted + m.not_counted + m.not_supported));
		r->validity = RFL_VALID_PARTIAL;
		r->reason = text;
	} else if (m.running < 100.0) {
		text = rfl_arena_printf(
			k->arena, "counted during %.4g %% of the time, scaled by perf%s", m.running,
			m.weighted ? "; kinds of cores by their shares of it" : "");
		r->validity = RFL_VALID_SCALED;
		r->reason = text;
	} else if (m.weighted && m.counted > 1) {
		r->validity = RFL_VALID_SCALED;
		r->reason = "the kinds of cores by their shares of the time";
	} else if (rfl_import_is_rounded(m.value, m.half_digit)) {
		r->validity = RFL_VALID_ESTIMATE;
		r->reason = rounded;
	}
	return text ? RFL_OK : rfl_perf__no_memory(k, err);
}
