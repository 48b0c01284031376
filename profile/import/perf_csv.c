/*
 * perf_csv.c - perf stat -x: [time,][socket,[processors,]]value,unit,event,[scatter %,]run
 * time,percent running[,scatter %][,metric,unit]. perf quotes nothing, so that its fields are cut
 * here and not by the CSV reader.
 */
#include <math.h>
#include <string.h>

#include "profile/import/perf.h"

#define FIELDS_MAX 24

struct fields {
	struct rfl_span f[FIELDS_MAX];
	size_t n;
};

static void cut(struct rfl_span line, char separator, struct fields *ret)
{
	ret->n = 0;
	while (ret->n < FIELDS_MAX) {
		const char *end = line.len > 0 ? memchr(line.at, separator, line.len) : NULL;
		size_t len = end ? (size_t)(end - line.at) : line.len;

		ret->f[ret->n++] = rfl_span_trim((struct rfl_span){ .at = line.at, .len = len });
		if (!end)
			break;
		line = rfl_span_from(line, len + 1);
	}
}

static struct rfl_span at(const struct fields *f, size_t i)
{
	return i < f->n ? f->f[i] : (struct rfl_span){ .at = "", .len = 0 };
}

/* A number as -x prints it: no groups; a comma only where the separator is another sign. */
static bool number(struct rfl_span s, double *ret)
{
	return rfl_span_number(s, ret) || (s.len > 0 && memchr(s.at, ',', s.len) &&
					   rfl_span_grouped(s, RFL_DECIMAL_COMMA, ret));
}

static bool is_value(struct rfl_span s)
{
	double ignored;

	return rfl_span_starts(s, "<not ") || number(s, &ignored);
}

static bool is_event(struct rfl_span s)
{
	double ignored;

	return s.len > 0 && !number(s, &ignored) && s.at[0] != '<' && s.at[0] != '%' &&
	       !rfl_span_ends(s, "%");
}

/* "     0.020100675": perf prints the time of an interval with nine decimals, in any locale. */
static bool is_interval(struct rfl_span s)
{
	return s.len > 10 && s.at[s.len - 10] == '.' && rfl_span_number_len(s) == s.len;
}

/* "S0", "CPU3", "N0", "S0-D0-C1", "sleep-4711". */
static bool is_place(struct rfl_span s)
{
	return s.len > 0 && s.at[s.len - 1] >= '0' && s.at[s.len - 1] <= '9' && !is_value(s) &&
	       rfl_span_number_len(s) == 0;
}

/* Where the value stands; FIELDS_MAX: this is no row of an event. */
static size_t value_at(const struct fields *f, bool *interval)
{
	size_t i = 0;
	struct rfl_perf_name name;

	*interval = is_interval(at(f, 0));
	i += *interval;
	if (is_place(at(f, i))) {
		i++;
		/* The number of processors: a unit cannot be a number. */
		if (is_value(at(f, i)) && is_value(at(f, i + 1)))
			i++;
	}
	if (is_value(at(f, i)) && is_event(at(f, i + 2)) &&
	    rfl_perf__name(at(f, i + 2), at(f, i + 1), &name))
		return i;
	return FIELDS_MAX;
}

/* A metric without an event: ",,,,,0.02,stalled cycles per insn", ",648266,100.00,,,24.0,%
 * tma_frontend_bound". An event has a value. */
static bool is_metric_only(const struct fields *f)
{
	size_t i = is_interval(at(f, 0)) ? 1 : 0;

	if (is_place(at(f, i)))
		i++;
	return f->n > i + 3 && at(f, i).len == 0 && at(f, f->n - 1).len > 0;
}

/* --- rows ------------------------------------------------------------------------------------ */

static const char cure[] = "perf wrote decimal commas between commas: run it with LC_ALL=C, or "
			   "with -x ';', or with -j";

/* "1281,90,msec,task-clock": two numbers in front of a unit. */
static bool looks_torn_apart(const struct fields *f)
{
	for (size_t i = 0; i + 3 < f->n && i < 4; i++) {
		struct rfl_perf_name name;

		if (is_value(f->f[i]) && is_value(f->f[i + 1]) && f->f[i + 2].len > 0 &&
		    is_event(f->f[i + 3]) && rfl_perf__name(f->f[i + 3], f->f[i + 2], &name))
			return true;
	}
	return false;
}

/* Behind the event: the run time, the share of the time, and scatters that end in %. */
static bool take_share(const struct fields *f, size_t i, double *running, size_t *next)
{
	struct rfl_span share;

	if (rfl_span_ends(at(f, i), "%"))
		i++;
	share = at(f, i + 1);
	*next = i + 2 + (rfl_span_ends(at(f, i + 2), "%") ? 1 : 0);
	/* It always has two decimals. */
	return is_value(at(f, i)) && number(share, running) &&
	       (memchr(share.at, '.', share.len) || memchr(share.at, ',', share.len));
}

static enum rfl_rc bad(struct rfl_perf_block *k, char separator, const struct fields *f,
		       struct rfl_span line, struct rfl_err *err)
{
	if (separator == ',' && looks_torn_apart(f))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: %s", rfl_input_name(k->import->in),
				rfl_input_line_number(k->import->in), cure);
	if (rfl_input_torn(k->import->in))
		return rfl_import_bad_row(k->import, NULL, err,
					  "'%.*s': the file is cut off in this row",
					  RFL_SPAN_ARG(line));
	return rfl_import_bad_row(k->import, NULL, err,
				  "'%.*s' is no row of perf stat -x: expected a value, a unit, an "
				  "event, a run time and a percentage between '%c'",
				  RFL_SPAN_ARG(line), separator);
}

static enum rfl_rc one_row(struct rfl_perf_block *k, struct rfl_span line, char separator,
			   struct rfl_err *err)
{
	struct rfl_perf_row row = { .value = NAN, .running = NAN, .cpus_utilized = NAN };
	struct fields f;
	bool interval;
	size_t i, metric;

	cut(line, separator, &f);
	i = value_at(&f, &interval);
	if (i == FIELDS_MAX)
		return is_metric_only(&f) ? RFL_OK : bad(k, separator, &f, line, err);
	row.unit = at(&f, i + 1);
	row.event = at(&f, i + 2);
	if (interval)
		row.time = at(&f, 0);
	if (is_place(at(&f, interval)))
		row.place = at(&f, interval);
	if (!take_share(&f, i + 3, &row.running, &metric)) {
		if (separator == ',' && f.n > i + 5)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: %s",
					rfl_input_name(k->import->in),
					rfl_input_line_number(k->import->in), cure);
		return bad(k, separator, &f, line, err);
	}
	row.state = rfl_span_is(at(&f, i), "<not supported>") ? RFL_PERF_NOT_SUPPORTED
		    : rfl_span_starts(at(&f, i), "<not ")     ? RFL_PERF_NOT_COUNTED
							      : RFL_PERF_COUNTED;
	if (row.state == RFL_PERF_COUNTED && !number(at(&f, i), &row.value))
		return bad(k, separator, &f, line, err);
	row.half_digit = rfl_span_half_digit(at(&f, i), memchr(at(&f, i).at, ',', at(&f, i).len)
								? RFL_DECIMAL_COMMA
								: RFL_DECIMAL_POINT);
	if (rfl_span_is(at(&f, metric + 1), "CPUs utilized") &&
	    !number(at(&f, metric), &row.cpus_utilized))
		row.cpus_utilized = NAN;
	if (interval && rfl_span_number(at(&f, 0), &k->elapsed))
		k->intervals = true;
	return rfl_perf__row(k, &row, err);
}

/* --- the file -------------------------------------------------------------------------------- */

static bool is_data(struct rfl_span line)
{
	line = rfl_span_trim(line);
	return line.len > 0 && line.at[0] != '#';
}

/* The sign that cuts the line into a row; '\0': none does. */
static char separator_of(struct rfl_span line)
{
	static const char signs[] = ";\t|,:!";
	struct fields f;
	bool interval;
	double running;
	size_t next;

	for (const char *s = signs; *s; s++) {
		size_t i;

		cut(line, *s, &f);
		i = value_at(&f, &interval);
		if (i < FIELDS_MAX && take_share(&f, i + 3, &running, &next))
			return *s;
	}
	cut(line, ',', &f);
	return looks_torn_apart(&f) ? ',' : '\0';
}

enum rfl_rc rfl_perf__read_csv(struct rfl_perf_block *k, struct rfl_err *err)
{
	struct rfl_span line;
	char separator = '\0';
	bool more = true;
	enum rfl_rc rc = rfl_perf__begin(k, (struct rfl_span){ .at = "process", .len = 7 }, err);

	while (rc == RFL_OK) {
		rc = rfl_import_line(k->import, &line, &more, err);
		if (rc != RFL_OK || !more)
			break;
		if (!is_data(line))
			continue;
		if (separator == '\0')
			separator = separator_of(line);
		if (separator != '\0') /* else what the program printed in front */
			rc = one_row(k, line, separator, err);
	}
	return rc;
}

int rfl_perf__detect_csv(struct rfl_span head)
{
	struct rfl_span line;

	for (int looked = 0; looked < 200 && rfl_span_next_line(&head, &line); looked++)
		if (is_data(line) && separator_of(line) != '\0')
			return 85;
	return 0;
}
