/*
 * perf_text.c - perf stat as it prints for people: groups of three and decimals by the
 * locale, comments behind '#', the share of the time that an event ran in parentheses.
 */
#include <math.h>
#include <string.h>

#include "profile/import/perf.h"

struct text {
	struct rfl_perf_block *k;
	enum rfl_decimal decimal; /* of the file */
	bool begun, intervals;
	bool ended; /* the elapsed time was there: no events follow */
};

static const char header[] = "Performance counter stats for ";
static const char interval_header[] = "counts unit events";

/* --- which locale ---------------------------------------------------------------------------- */

/* The first number of the line that shows it: "2.382450831 seconds time elapsed", "0,874 CPUs". */
static enum rfl_decimal decimal_of_line(struct rfl_span line)
{
	struct rfl_span word;
	enum rfl_decimal d = RFL_DECIMAL_UNKNOWN;

	while (d == RFL_DECIMAL_UNKNOWN && rfl_span_next_word(&line, &word)) {
		if (word.len > 0 && word.at[0] == '(')
			word = rfl_span_from(word, 1);
		word.len = rfl_span_number_len(word);
		/* "3.5.1" and the like in an event's name do not stand alone. */
		if (word.len > 0)
			d = rfl_span_decimal(word);
	}
	return d;
}

static bool is_of_perf(struct rfl_span line)
{
	return rfl_span_has(line, " seconds time elapsed") || rfl_span_has(line, " seconds user") ||
	       rfl_span_has(line, " seconds sys") || rfl_span_has(line, "CPUs utilized") ||
	       rfl_span_has(line, " GHz") || rfl_span_has(line, "/sec") ||
	       rfl_span_has(line, "insn per cycle");
}

static enum rfl_decimal decimal_of_head(struct rfl_span head)
{
	struct rfl_span line;
	enum rfl_decimal d = RFL_DECIMAL_UNKNOWN;

	while (d == RFL_DECIMAL_UNKNOWN && rfl_span_next_line(&head, &line))
		if (is_of_perf(line))
			d = decimal_of_line(line);
	return d;
}

/* --- one line -------------------------------------------------------------------------------- */

/* "(88,71%)" at the end, "[88.71%]" in perf 3; "( +-  1.49% )" is the scatter of repeats and says
 * nothing of it. */
static double take_running(struct rfl_span *line)
{
	double running = NAN;

	*line = rfl_span_trim(*line);
	while (rfl_span_ends(*line, "%)") || rfl_span_ends(*line, "% )") ||
	       rfl_span_ends(*line, "%]")) {
		size_t open = line->len;
		struct rfl_span inside;
		double v;

		while (open > 0 && line->at[open - 1] != '(' && line->at[open - 1] != '[')
			open--;
		if (open == 0)
			break;
		inside = (struct rfl_span){ .at = line->at + open, .len = line->len - open - 1 };
		inside = rfl_span_trim(inside);
		inside.len -= inside.len > 0; /* % */
		inside = rfl_span_trim(inside);
		if (!rfl_span_starts(inside, "+-") &&
		    rfl_span_grouped(inside,
				     memchr(inside.at, ',', inside.len) ? RFL_DECIMAL_COMMA
									: RFL_DECIMAL_POINT,
				     &v))
			running = v;
		line->len = open - 1;
		*line = rfl_span_trim(*line);
	}
	return running;
}

static bool begins_number(struct rfl_span word)
{
	return word.len > 0 && rfl_span_number_len(word) == word.len;
}

/* Counts are whole: a sign in one that has no unit parts groups. */
static enum rfl_decimal decimal_of_count(struct rfl_span value)
{
	if (rfl_span_decimal(value) != RFL_DECIMAL_UNKNOWN)
		return rfl_span_decimal(value);
	if (memchr(value.at, '.', value.len))
		return RFL_DECIMAL_COMMA;
	return memchr(value.at, ',', value.len) ? RFL_DECIMAL_POINT : RFL_DECIMAL_UNKNOWN;
}

/* The words in front of '#': [time] [socket [processors]] value [unit] event. */
struct words {
	struct rfl_span time, place, value, unit, event;
	enum rfl_perf_state state;
};

static bool take_value(struct rfl_span *rest, struct rfl_span word, struct words *w)
{
	struct rfl_span second;

	w->value = word;
	if (!rfl_span_is(word, "<not"))
		return begins_number(word);
	if (!rfl_span_next_word(rest, &second))
		return false;
	w->state =
		rfl_span_is(second, "supported>") ? RFL_PERF_NOT_SUPPORTED : RFL_PERF_NOT_COUNTED;
	return rfl_span_ends(second, ">");
}

static bool split_words(struct rfl_span line, bool intervals, struct words *w)
{
	struct rfl_span word, more, ahead;

	*w = (struct words){ .state = RFL_PERF_COUNTED };
	if (!rfl_span_next_word(&line, &word))
		return false;
	if (intervals) {
		w->time = word;
		if (!rfl_span_next_word(&line, &word))
			return false;
	}
	if (!begins_number(word) && !rfl_span_is(word, "<not")) {
		w->place = word;
		if (!rfl_span_next_word(&line, &word))
			return false;
		/* "S0  2  43.13 msec task-clock": the number of processors. */
		ahead = line;
		if (begins_number(word) && rfl_span_next_word(&ahead, &more) &&
		    (begins_number(more) || rfl_span_is(more, "<not"))) {
			word = more;
			line = ahead;
		}
	}
	if (!take_value(&line, word, w) || !rfl_span_next_word(&line, &w->event))
		return false;
	if (!rfl_span_next_word(&line, &more))
		return true;
	if (rfl_span_is(more, "(msec)")) { /* perf to 4.x */
		w->unit = (struct rfl_span){ .at = more.at + 1, .len = more.len - 2 };
	} else {
		w->unit = w->event;
		w->event = more;
	}
	return !rfl_span_next_word(&line, &more);
}

/* A digit or "<not" somewhere in front: a line that should hold an event. */
static bool is_event_line(struct rfl_span line)
{
	struct rfl_span word;

	for (int i = 0; i < 3 && rfl_span_next_word(&line, &word); i++)
		if (begins_number(word) || rfl_span_is(word, "<not"))
			return true;
	return false;
}

/* "    0.996 CPUs utilized" */
static double cpus_of(struct rfl_span comment, enum rfl_decimal decimal)
{
	struct rfl_span word;
	double v;

	if (!rfl_span_has(comment, "CPUs utilized") || !rfl_span_next_word(&comment, &word) ||
	    !rfl_span_grouped(word, decimal, &v))
		return NAN;
	return v;
}

/* perf 2 and 3 name no unit: "3.111213  task-clock". */
static bool is_in_msec(const struct words *w, double half_digit)
{
	return w->unit.len == 0 && half_digit > 0.0 &&
	       (rfl_span_starts(w->event, "task-clock") || rfl_span_starts(w->event, "cpu-clock"));
}

static enum rfl_rc event_line(struct text *t, struct rfl_span line, struct rfl_err *err)
{
	size_t hash = rfl_span_find(line, "#");
	struct rfl_span left = { .at = line.at, .len = hash };
	struct rfl_span comment = rfl_span_from(line, hash + 1);
	struct rfl_perf_row row = { .value = NAN, .running = NAN, .cpus_utilized = NAN };
	struct words w;

	row.running = hash < line.len ? take_running(&comment) : NAN;
	if (isnan(row.running))
		row.running = take_running(&left);
	left = rfl_span_trim(left);
	if (left.len == 0 || !is_event_line(left))
		return RFL_OK; /* a second metric of the event above, "TopdownL1" */
	if (!split_words(left, t->intervals, &w))
		return rfl_import_bad_row(t->k->import, NULL, err,
					  "'%.*s' is no event of perf: expected a value, a unit if "
					  "there is one, and a name",
					  RFL_SPAN_ARG(left));
	row.state = w.state;
	row.event = w.event;
	row.unit = w.unit;
	row.place = w.place;
	row.time = w.time;
	if (t->decimal == RFL_DECIMAL_UNKNOWN)
		t->decimal = w.unit.len > 0 ? rfl_span_decimal(w.value) : decimal_of_count(w.value);
	if (t->intervals && rfl_span_number(w.time, &t->k->elapsed))
		t->k->intervals = true;
	if (w.state == RFL_PERF_COUNTED && !rfl_span_grouped(w.value, t->decimal, &row.value))
		return rfl_import_bad_row(t->k->import, NULL, err,
					  "'%.*s' is no number where a %s is in front of the "
					  "decimals",
					  RFL_SPAN_ARG(w.value),
					  t->decimal == RFL_DECIMAL_COMMA ? "comma" : "point");
	row.half_digit = rfl_span_half_digit(w.value, t->decimal);
	if (is_in_msec(&w, row.half_digit))
		row.unit = (struct rfl_span){ .at = "msec", .len = 4 };
	row.cpus_utilized = cpus_of(comment, t->decimal);
	return rfl_perf__row(t->k, &row, err);
}

/* "   0.02546 +- 0.00257 seconds time elapsed  ( +- 10.11% )" */
static bool time_line(struct text *t, struct rfl_span line)
{
	static const char *const ends[] = { " seconds time elapsed", " seconds user",
					    " seconds sys" };
	double *const to[] = { &t->k->elapsed, &t->k->user, &t->k->system };
	struct rfl_span word;

	for (size_t i = 0; i < RFL_ARRAY_LEN(ends); i++) {
		double v;

		if (!rfl_span_has(line, ends[i]) || !rfl_span_next_word(&line, &word))
			continue;
		if (memchr(word.at, ',', word.len))
			t->decimal = RFL_DECIMAL_COMMA;
		if (!rfl_span_grouped(word, t->decimal, &v))
			return false;
		*to[i] = v;
		return true;
	}
	return false;
}

/* --- the file -------------------------------------------------------------------------------- */

/* "Performance counter stats for 'sleep 1' (3 runs):" */
static enum rfl_rc begin(struct text *t, struct rfl_span line, struct rfl_err *err)
{
	struct rfl_span name = rfl_span_from(line, rfl_span_find(line, header) + strlen(header));
	size_t runs = rfl_span_find(name, " runs)");
	enum rfl_rc rc;

	t->begun = true;
	t->intervals = t->ended = false;
	if (name.len > 0 && name.at[0] == '\'') {
		name = rfl_span_from(name, 1);
		for (size_t i = name.len; i-- > 0;) {
			if (name.at[i] != '\'')
				continue;
			name.len = i;
			break;
		}
	} else if (rfl_span_ends(name, ":")) {
		name.len--;
	}
	rc = rfl_perf__begin(t->k, name, err);
	if (rc == RFL_OK && runs < line.len && rfl_span_has(line, " runs)"))
		rfl_capture_note(t->k->b, "values are averages of the runs that perf repeated");
	return rc;
}

static enum rfl_rc one_line(struct text *t, struct rfl_span line, struct rfl_err *err)
{
	if (rfl_span_has(line, header))
		return begin(t, line, err);
	if (rfl_span_starts(rfl_span_trim(line), "#") && rfl_span_has(line, interval_header)) {
		bool again = t->begun && t->intervals;

		t->begun = t->intervals = true;
		if (again)
			return RFL_OK; /* perf repeats its header on a terminal */
		return rfl_perf__begin(t->k, (struct rfl_span){ .at = "process", .len = 7 }, err);
	}
	if (!t->begun || rfl_span_starts(rfl_span_trim(line), "#"))
		return RFL_OK;
	if (time_line(t, line)) {
		t->ended = true;
		return RFL_OK;
	}
	/* What perf advises ("echo 0 > ..."), and what was printed behind it. */
	if (rfl_span_starts(rfl_span_trim(line), "Some events weren't counted"))
		t->ended = true;
	return t->ended ? RFL_OK : event_line(t, line, err);
}

enum rfl_rc rfl_perf__read_text(struct rfl_perf_block *k, struct rfl_err *err)
{
	struct text t = { .k = k };
	struct rfl_span head, line;
	bool more = true;
	enum rfl_rc rc = rfl_input_peek(k->import->in, &head, err);

	if (rc == RFL_OK)
		t.decimal = decimal_of_head(head);
	while (rc == RFL_OK) {
		rc = rfl_import_line(k->import, &line, &more, err);
		if (rc != RFL_OK || !more)
			break;
		rc = one_line(&t, line, err);
	}
	return rc;
}

int rfl_perf__detect_text(struct rfl_span head)
{
	if (rfl_span_has(head, header))
		return 95;
	return rfl_span_has(head, interval_header) ? 90 : 0;
}
