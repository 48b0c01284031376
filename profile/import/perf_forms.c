/* perf_forms.c - reads the three forms of perf stat's output: text, -x and -j. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "profile/import/perf.h"

static const struct rfl_perf_row no_row = { .value = NAN, .running = NAN, .cpus_utilized = NAN };

static enum rfl_perf_state state_of(struct rfl_span value)
{
	if (rfl_span_is(value, "<not supported>"))
		return RFL_PERF_NOT_SUPPORTED;
	return rfl_span_starts(value, "<not ") ? RFL_PERF_NOT_COUNTED : RFL_PERF_COUNTED;
}

/* --- text ------------------------------------------------------------------------------------ */

/* Numbers are printed as in the locale; comments follow '#', and the share of the time during which
 * an event was counted is in parentheses. */

static const char header[] = "Performance counter stats for ";
static const char interval_header[] = "counts unit events";
static const char averages[] = "values are averages over perf's repeated runs";

/* The decimal sign that a number shows; 0: none. In a count, a sign separates groups. */
static char decimal_of(struct rfl_span s, bool count)
{
	struct rfl_num_parts p;

	if (rfl_num_cut(s.at, s.len, false, &p) == 0)
		return 0;
	char shown = rfl_num_shown(&p);
	if (shown != '?')
		return shown;
	return !count ? 0 : p.last == '.' ? ',' : '.';
}

char rfl_perf__decimal(struct rfl_span head)
{
	static const char *const own[] = { " seconds time elapsed", " seconds user", " seconds sys",
					   "CPUs utilized",         " GHz",          "/sec",
					   "insn per cycle" };
	struct rfl_span line, word;
	char decimal = 0;

	while (decimal == 0 && rfl_span_next_line(&head, &line)) {
		bool mine = false;

		for (size_t i = 0; i < RFL_ARRAY_LEN(own) && !mine; i++)
			mine = rfl_span_has(line, own[i]);
		while (mine && decimal == 0 && rfl_span_next_word(&line, &word))
			decimal = decimal_of(rfl_span_from(word, word.at[0] == '('), false);
	}
	return decimal;
}

/* Remove "(88,71%)", or "[88.71%]" of perf 3, from the end of a line, and return the number. The
 * variation of repeated runs, "( +-  1.49% )", is removed and ignored. */
static double take_running(struct rfl_span *line)
{
	double running = NAN;

	*line = rfl_span_trim(*line);
	while (rfl_span_ends(*line, "%)") || rfl_span_ends(*line, "% )") ||
	       rfl_span_ends(*line, "%]")) {
		size_t open = line->len;

		while (open > 0 && line->at[open - 1] != '(' && line->at[open - 1] != '[')
			open--;
		if (open == 0)
			break;
		struct rfl_span inside = { .at = line->at + open, .len = line->len - open - 1 };
		inside = rfl_span_trim(inside);
		inside.len -= inside.len > 0; /* % */
		inside = rfl_span_trim(inside);
		if (!rfl_span_starts(inside, "+-"))
			(void)rfl_span_grouped(inside, 0, &running, NULL);
		line->len = open - 1;
		*line = rfl_span_trim(*line);
	}
	return running;
}

static bool begins_number(struct rfl_span word)
{
	return (word.len > 0 && rfl_span_number_len(word) == word.len) || rfl_span_is(word, "<not");
}

/* Split the words before '#': [time] [socket [CPUs]] value [unit] event. */
static bool split_words(struct rfl_span line, bool intervals, struct rfl_perf_row *row,
			struct rfl_span *value)
{
	struct rfl_span word, more, ahead;

	if (!rfl_span_next_word(&line, &word))
		return false;
	if (intervals) {
		row->time = word;
		if (!rfl_span_next_word(&line, &word))
			return false;
	}
	if (!begins_number(word)) {
		row->place = word;
		if (!rfl_span_next_word(&line, &word) || !begins_number(word))
			return false;
		/* Skip the number of CPUs in "S0  2  43.13 msec task-clock". */
		ahead = line;
		if (!rfl_span_is(word, "<not") && rfl_span_next_word(&ahead, &more) &&
		    begins_number(more)) {
			word = more;
			line = ahead;
		}
	}
	*value = word;
	if (rfl_span_is(word, "<not")) {
		if (!rfl_span_next_word(&line, &more) || !rfl_span_ends(more, ">"))
			return false;
		value->len = (size_t)(more.at - word.at) + more.len;
	}
	row->state = state_of(*value);
	if (!rfl_span_next_word(&line, &row->event))
		return false;
	if (!rfl_span_next_word(&line, &more))
		return true;
	if (rfl_span_is(more, "(msec)")) { /* up to perf 4.x */
		row->unit = (struct rfl_span){ .at = more.at + 1, .len = more.len - 2 };
	} else {
		row->unit = row->event;
		row->event = more;
	}
	return !rfl_span_next_word(&line, &more);
}

static enum rfl_rc event_line(struct rfl_perf *k, struct rfl_span line)
{
	size_t hash = rfl_span_find(line, "#");
	struct rfl_span left = { .at = line.at, .len = hash }, rest, word, value;
	struct rfl_span comment = rfl_span_from(line, hash + 1);
	struct rfl_perf_row row = no_row;
	bool event = false;

	row.running = hash < line.len ? take_running(&comment) : NAN;
	if (isnan(row.running))
		row.running = take_running(&left);
	rest = left = rfl_span_trim(left);
	for (int i = 0; i < 3 && !event && rfl_span_next_word(&rest, &word); i++)
		event = begins_number(word);
	if (!event)
		return RFL_OK; /* another metric of the previous event, or "TopdownL1" */
	if (!split_words(left, k->interval_text, &row, &value))
		return rfl_import_bad_row(&k->i, NULL,
					  "'%.*s' is not an event; expected value, unit, name",
					  RFL_SPAN_ARG(left));
	if (k->decimal == 0)
		k->decimal = decimal_of(value, row.unit.len == 0);
	char decimal = k->decimal ? k->decimal : '.';
	if (k->interval_text && rfl_span_number(row.time, &k->elapsed))
		k->intervals = true;
	if (row.state == RFL_PERF_COUNTED &&
	    !rfl_span_grouped(value, decimal, &row.value, &row.half_digit))
		return rfl_import_bad_row(&k->i, NULL, "'%.*s' is not a number with a decimal %s",
					  RFL_SPAN_ARG(value), decimal == ',' ? "comma" : "point");
	/* perf 2 and 3 print no unit: "3.111213  task-clock". */
	if (row.unit.len == 0 && row.half_digit > 0.0 &&
	    (rfl_span_starts(row.event, "task-clock") || rfl_span_starts(row.event, "cpu-clock")))
		row.unit = rfl_span_of("msec");
	/* for example "    0.996 CPUs utilized" */
	if (rfl_span_has(comment, "CPUs utilized") && rfl_span_next_word(&comment, &word))
		(void)rfl_span_grouped(word, decimal, &row.cpus_utilized, NULL);
	return rfl_perf__row(k, &row);
}

enum rfl_rc rfl_perf__text(struct rfl_perf *k, struct rfl_span line)
{
	static const char *const ends[] = { " seconds time elapsed", " seconds user",
					    " seconds sys" };
	double *const to[] = { &k->elapsed, &k->user, &k->system };
	struct rfl_span trimmed = rfl_span_trim(line), name, word;
	bool comment = rfl_span_starts(trimmed, "#"), again;

	/* for example "Performance counter stats for 'sleep 1' (3 runs):" */
	if (rfl_span_has(line, header)) {
		name = rfl_span_from(line, rfl_span_find(line, header) + strlen(header));
		k->begun = true;
		k->interval_text = k->ended = false;
		if (name.len > 0 && name.at[0] == '\'') {
			size_t end = name.len - 1;

			while (end > 0 && name.at[end] != '\'')
				end--;
			name = rfl_span_from(name, 1);
			if (end > 0)
				name.len = end - 1;
		} else if (rfl_span_ends(name, ":")) {
			name.len--;
		}
		rfl_perf__begin(k, name);
		if (rfl_span_has(line, " runs)"))
			rfl_capture_note(k->i.b, "%s", averages);
		return RFL_OK;
	}
	if (comment && rfl_span_has(line, interval_header)) {
		again = k->begun && k->interval_text;
		k->begun = k->interval_text = true;
		/* perf repeats its header on a terminal. */
		if (!again)
			rfl_perf__begin(k, rfl_span_of("process"));
		return RFL_OK;
	}
	if (!k->begun || comment)
		return RFL_OK;
	/* for example "   0.02546 +- 0.00257 seconds time elapsed  ( +- 10.11% )" */
	for (size_t i = 0; i < RFL_ARRAY_LEN(ends); i++) {
		if (!rfl_span_has(line, ends[i]))
			continue;
		name = line;
		if (!rfl_span_next_word(&name, &word))
			continue;
		if (memchr(word.at, ',', word.len))
			k->decimal = ',';
		if (rfl_span_grouped(word, k->decimal ? k->decimal : '.', to[i], NULL))
			k->ended = true;
		break;
	}
	/* perf's advice ("echo 0 > ...") and any output after it contain no events. */
	if (rfl_span_starts(trimmed, "Some events weren't counted"))
		k->ended = true;
	return k->ended ? RFL_OK : event_line(k, line);
}

/* --- -x -------------------------------------------------------------------------------------- */

/* A row is [time,][socket,[CPUs,]]value,unit,event,[variation %,]run time,percent running
 * [,variation %][,metric,unit]. perf quotes nothing. */

#define FIELDS_MAX 24

struct fields {
	struct rfl_span f[FIELDS_MAX];
	size_t n;
	bool interval, place;
	size_t value; /* index of the value; FIELDS_MAX: not the row of an event */
};

/* A field; empty past the last. */
static struct rfl_span at(const struct fields *f, size_t i)
{
	return i < f->n ? f->f[i] : rfl_span_of("");
}

/* Read a number as -x prints it: without groups of digits, perhaps with a decimal comma. */
static bool number(struct rfl_span s, double *ret, double *half)
{
	double plain;

	return (rfl_span_number(s, &plain) || (s.len > 0 && memchr(s.at, ',', s.len))) &&
	       rfl_span_grouped(s, 0, ret, half);
}

static bool is_value(struct rfl_span s)
{
	double ignored;

	return rfl_span_starts(s, "<not ") || number(s, &ignored, NULL);
}

static bool is_event(struct rfl_span s, struct rfl_span unit)
{
	return s.len > 0 && !is_value(s) && s.at[0] != '<' && s.at[0] != '%' &&
	       !rfl_span_ends(s, "%") && rfl_perf__is_known(unit);
}

static void cut(struct rfl_span line, char separator, struct fields *f)
{
	f->n = 0;
	while (f->n < FIELDS_MAX && rfl_span_next_field(&line, separator, &f->f[f->n]))
		f->n++;
	/* An interval's time has nine decimals and a point in any locale: "     0.020100675". */
	struct rfl_span first = at(f, 0);
	f->interval = first.len > 10 && first.at[first.len - 10] == '.' &&
		      rfl_span_number_len(first) == first.len;
	/* for example "S0", "CPU3", "N0", "S0-D0-C1", "sleep-4711" */
	struct rfl_span place = at(f, f->interval);
	f->place = place.len > 0 && place.at[place.len - 1] >= '0' &&
		   place.at[place.len - 1] <= '9' && !is_value(place) &&
		   rfl_span_number_len(place) == 0;
	size_t i = (size_t)f->interval + f->place;
	/* Skip the number of CPUs: a unit cannot be a number. */
	if (f->place && is_value(at(f, i)) && is_value(at(f, i + 1)))
		i++;
	f->value = is_value(at(f, i)) && is_event(at(f, i + 2), at(f, i + 1)) ? i : FIELDS_MAX;
}

/* Read the fields after the event: run time, share of the time, and variations, which end in %. */
static bool take_share(const struct fields *f, double *running, size_t *next)
{
	size_t i = f->value + 3;

	i += rfl_span_ends(at(f, i), "%");
	struct rfl_span share = at(f, i + 1);
	*next = i + 2 + rfl_span_ends(at(f, i + 2), "%");
	/* The share always has two decimals. */
	return is_value(at(f, i)) && number(share, running, NULL) &&
	       (memchr(share.at, '.', share.len) || memchr(share.at, ',', share.len));
}

/* Whether decimal commas split numbers: "1281,90,msec,task-clock" has two before the unit. */
static bool looks_torn_apart(const struct fields *f)
{
	for (size_t i = 0; i + 3 < f->n && i < 4; i++)
		if (is_value(f->f[i]) && is_value(f->f[i + 1]) && f->f[i + 2].len > 0 &&
		    is_event(f->f[i + 3], f->f[i + 2]))
			return true;
	return false;
}

/* Find the separator that makes the line a row; '\0': none. */
static char separator_of(struct rfl_span line)
{
	struct fields f;
	double running;
	size_t next;

	line = rfl_span_trim(line);
	if (line.len == 0 || line.at[0] == '#')
		return '\0';
	for (const char *s = ";\t|,:!"; *s; s++) {
		cut(line, *s, &f);
		if (f.value < FIELDS_MAX && take_share(&f, &running, &next))
			return *s;
	}
	cut(line, ',', &f);
	return looks_torn_apart(&f) ? ',' : '\0';
}

static enum rfl_rc csv_line(struct rfl_perf *k, struct rfl_span line)
{
	struct rfl_perf_row row = no_row;
	struct rfl_span trimmed = rfl_span_trim(line), value;
	struct fields f;
	size_t metric;

	if (trimmed.len == 0 || trimmed.at[0] == '#')
		return RFL_OK;
	if (k->separator == '\0')
		k->separator = separator_of(line);
	if (k->separator == '\0')
		return RFL_OK; /* output of the profiled program */
	cut(line, k->separator, &f);
	size_t first = (size_t)f.interval + f.place;
	/* A metric without an event: ",,,,,0.02,stalled cycles per insn", ",648266,100.00,,,24.0,%
	 * tma_frontend_bound". */
	if (f.value == FIELDS_MAX && f.n > first + 3 && at(&f, first).len == 0 &&
	    at(&f, f.n - 1).len > 0)
		return RFL_OK;
	if (f.value < FIELDS_MAX && take_share(&f, &row.running, &metric)) {
		value = at(&f, f.value);
		row.unit = at(&f, f.value + 1);
		row.event = at(&f, f.value + 2);
		if (f.interval)
			row.time = at(&f, 0);
		if (f.place)
			row.place = at(&f, f.interval);
		row.state = state_of(value);
		if (row.state == RFL_PERF_COUNTED)
			(void)number(value, &row.value, &row.half_digit);
		if (rfl_span_is(at(&f, metric + 1), "CPUs utilized"))
			(void)number(at(&f, metric), &row.cpus_utilized, NULL);
		if (f.interval && rfl_span_number(row.time, &k->elapsed))
			k->intervals = true;
		if (rfl_span_ends(at(&f, f.value + 3), "%"))
			rfl_capture_note(k->i.b, "%s", averages);
		return rfl_perf__row(k, &row);
	}
	if (k->separator == ',' &&
	    (f.value < FIELDS_MAX ? f.n > f.value + 5 : looks_torn_apart(&f)))
		return rfl_import_refuse(&k->i, k->i.in->line,
					 "decimal commas in fields separated by commas; run perf "
					 "with LC_ALL=C, -x ';' or -j");
	if (k->i.in->torn)
		return rfl_import_bad_row(&k->i, NULL, "'%.*s': the file is cut off in this row",
					  RFL_SPAN_ARG(line));
	return rfl_import_bad_row(&k->i, NULL,
				  "'%.*s' is not a row of perf stat -x; expected value, unit, "
				  "event, run time and percentage, separated by '%c'",
				  RFL_SPAN_ARG(line), k->separator);
}

/* --- -j -------------------------------------------------------------------------------------- */

static struct rfl_span text_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	if (!json_is_string(v))
		return rfl_span_of("");
	return (struct rfl_span){ .at = json_string_value(v), .len = json_string_length(v) };
}

/* Get the number of a key, which may be printed as a string; NaN: none. */
static double real_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	double ret;

	if (json_is_number(v))
		return json_number_value(v);
	return json_is_string(v) && rfl_span_number(text_of(row, key), &ret) ? ret : NAN;
}

/* Read an object, whose values are strings. */
static enum rfl_rc json_row(struct rfl_perf *k, const json_t *o)
{
	static const char *const places[] = { "cpu", "core", "die", "socket", "node", "thread" };
	const struct rfl_span value = text_of(o, "counter-value");
	struct rfl_perf_row row = no_row;
	char time[64];

	row.event = text_of(o, "event");
	row.unit = text_of(o, "unit");
	row.running = real_of(o, "pcnt-running");
	for (size_t i = 0; i < RFL_ARRAY_LEN(places) && row.place.len == 0; i++)
		row.place = text_of(o, places[i]);
	if (row.event.len == 0) /* without a value it is a metric */
		return !json_object_get(o, "counter-value")
			       ? RFL_OK
			       : rfl_import_bad_row(&k->i, "event", "is missing");
	row.state = state_of(value);
	if (row.state == RFL_PERF_COUNTED)
		row.value = real_of(o, "counter-value");
	if (row.state == RFL_PERF_COUNTED && isnan(row.value))
		return rfl_import_bad_field(&k->i, "counter-value", value, "a number");
	if (rfl_span_is(text_of(o, "metric-unit"), "CPUs utilized"))
		row.cpus_utilized = real_of(o, "metric-value");
	if (json_object_get(o, "interval")) {
		k->elapsed = real_of(o, "interval");
		k->intervals = true;
		(void)rfl_num_print(time, sizeof(time), "%.9f", k->elapsed);
		row.time = rfl_span_of(time);
	}
	return rfl_perf__row(k, &row);
}

static enum rfl_rc json_line(struct rfl_perf *k, struct rfl_span line)
{
	struct rfl_err why = RFL_ERR_INIT;
	json_t *o = NULL;

	line = rfl_span_trim(line);
	if (line.len == 0 || line.at[0] != '{')
		return RFL_OK;
	enum rfl_rc rc = rfl_json_loads(line.at, line.len, "", &o, &why);
	if (rc == RFL_OK && json_is_object(o)) {
		rc = json_row(k, o);
		json_decref(o);
		return rc;
	}
	json_decref(o);
	/* a decimal comma: `"pcnt-running" : 85,00` */
	for (size_t i = 2; i + 1 < line.len; i++)
		if (line.at[i] == ',' && line.at[i - 1] >= '0' && line.at[i - 1] <= '9' &&
		    line.at[i + 1] >= '0' && line.at[i + 1] <= '9')
			return rfl_import_refuse(&k->i, k->i.in->line,
						 "decimal commas are not valid JSON; run perf with "
						 "LC_ALL=C");
	return rfl_import_bad_row(&k->i, NULL, "'%.*s' is not a JSON object of perf%s",
				  RFL_SPAN_ARG(line), k->i.in->torn ? ": the file is cut off" : "");
}

int rfl_perf__form(struct rfl_span head, rfl_perf_form **ret)
{
	struct rfl_span line;

	*ret = rfl_perf__text;
	if (rfl_span_has(head, header))
		return 95;
	if (rfl_span_has(head, interval_header))
		return 90;
	if (rfl_span_has(head, "{\"") && rfl_span_has(head, "\"counter-value\"")) {
		*ret = json_line;
		return 95;
	}
	for (int looked = 0; looked < 200 && rfl_span_next_line(&head, &line); looked++)
		if (separator_of(line) != '\0') {
			*ret = csv_line;
			return 85;
		}
	return 0;
}
