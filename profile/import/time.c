/*
 * time.c - what `time` says of a process: GNU time -v and its default line, time -l of BSD
 * and macOS, the time of bash, zsh and POSIX. One process range per block; the output of the
 * program around it is not looked at.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/import/impl.h"
#include "profile/import/time.h"

/* Names as perf has them where it has one. */
enum figure {
	ELAPSED,
	USER,
	SYSTEM,
	MAX_RSS,
	MAJOR_FAULTS,
	MINOR_FAULTS,
	SWITCHES_IN,
	SWITCHES_OUT,
	SWAPS,
	INSTRUCTIONS,
	CYCLES,
	FOOTPRINT,
	WINDOW,
	FIGURES
};

static const struct rfl_reading figures[FIGURES] = {
	[ELAPSED] = { .name = "duration_time", .unit = "s" },
	[USER] = { .name = "user_time", .unit = "s" },
	[SYSTEM] = { .name = "system_time", .unit = "s" },
	[MAX_RSS] = { .name = "max_rss", .unit = "byte" },
	[MAJOR_FAULTS] = { .name = "major-faults", .unit = "" },
	[MINOR_FAULTS] = { .name = "minor-faults", .unit = "" },
	[SWITCHES_IN] = { .name = "involuntary_switches", .unit = "" },
	[SWITCHES_OUT] = { .name = "voluntary_switches", .unit = "" },
	[SWAPS] = { .name = "swaps", .unit = "" },
	[INSTRUCTIONS] = { .name = "instructions", .unit = "inst" },
	[CYCLES] = { .name = "cycles", .unit = "cycle" },
	[FOOTPRINT] = { .name = "peak_memory_footprint", .unit = "byte" },
	[WINDOW] = { .name = "measured_window", .unit = "s" },
};

struct block {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	bool open, rss_in_bytes; /* or, of BSD, in KiB */
	double value[FIGURES], half_digit[FIGURES];
	char command[256];
};

struct label {
	const char *text;
	enum figure figure;
	double factor; /* 0: a duration */
};

/* GNU time -v: "<label>: <value>". */
static const struct label gnu[] = {
	{ "User time (seconds): ", USER, 0 },
	{ "System time (seconds): ", SYSTEM, 0 },
	{ "Elapsed (wall clock) time (h:mm:ss or m:ss): ", ELAPSED, 0 },
	{ "Maximum resident set size (kbytes): ", MAX_RSS, 1024 },
	{ "Major (requiring I/O) page faults: ", MAJOR_FAULTS, 1 },
	{ "Minor (reclaiming a frame) page faults: ", MINOR_FAULTS, 1 },
	{ "Voluntary context switches: ", SWITCHES_OUT, 1 },
	{ "Involuntary context switches: ", SWITCHES_IN, 1 },
	{ "Swaps: ", SWAPS, 1 },
};

/* time -l: "<value>  <label>". */
static const struct label bsd[] = {
	{ "maximum resident set size", MAX_RSS, 1 },
	{ "page reclaims", MINOR_FAULTS, 1 },
	{ "page faults", MAJOR_FAULTS, 1 },
	{ "swaps", SWAPS, 1 },
	{ "voluntary context switches", SWITCHES_OUT, 1 },
	{ "involuntary context switches", SWITCHES_IN, 1 },
	{ "instructions retired", INSTRUCTIONS, 1 },
	{ "cycles elapsed", CYCLES, 1 },
	{ "peak memory footprint", FOOTPRINT, 1 },
};

/* bash and `time -p`: "<label> <value>". */
static const struct label shell[] = {
	{ "real", ELAPSED, 0 },
	{ "user", USER, 0 },
	{ "sys", SYSTEM, 0 },
};

/* The default line of GNU time: "0.01user 0.00system 0:00.02elapsed 95%CPU (...1920maxresident)k",
 * "0inputs+0outputs (0major+132minor)pagefaults 0swaps". */
static const struct label brief[] = {
	{ "user", USER, 0 },          { "system", SYSTEM, 0 },
	{ "elapsed", ELAPSED, 0 },    { "maxresident)k", MAX_RSS, 1024 },
	{ "major", MAJOR_FAULTS, 1 }, { "minor)pagefaults", MINOR_FAULTS, 1 },
	{ "swaps", SWAPS, 1 },
};

/* --- values ------------------------------------------------------------------------------- */

static bool read_value(const struct label *l, struct rfl_span s, double *ret)
{
	double v;

	s = rfl_span_trim(s);
	if (l->factor == 0.0 ? !rfl_time__duration(s, &v) : !rfl_time__decimal(s, &v))
		return false;
	*ret = l->factor == 0.0 ? v : v * l->factor;
	return isfinite(*ret);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void clear(struct block *k)
{
	for (size_t i = 0; i < FIGURES; i++) {
		k->value[i] = NAN;
		k->half_digit[i] = 0.0;
	}
	k->open = false;
	k->rss_in_bytes = false;
	(void)snprintf(k->command, sizeof(k->command), "process");
}

/* BSD counts KiB where macOS counts bytes. macOS is known by lines that only it has, or by a size
 * in whole pages. */
static void settle_rss(struct block *k)
{
	if (!k->rss_in_bytes || isnan(k->value[MAX_RSS]))
		return;
	if (isnan(k->value[FOOTPRINT]) && isnan(k->value[INSTRUCTIONS]) &&
	    fmod(k->value[MAX_RSS], 4096.0) != 0.0) {
		k->value[MAX_RSS] *= 1024.0;
		rfl_capture_note(k->b, "maximum resident set size is taken as KiB, as BSD writes "
				       "it: it is no whole number of pages as on macOS");
	}
}

static enum rfl_rc flush(struct block *k, struct rfl_err *err)
{
	struct rfl_reading readings[FIGURES];
	size_t n = 0;
	enum rfl_rc rc;

	if (!k->open)
		return RFL_OK;
	settle_rss(k);
	for (size_t i = 0; i < FIGURES; i++) {
		if (isnan(k->value[i]))
			continue;
		readings[n] = figures[i];
		readings[n].value = k->value[i];
		if (rfl_import_is_rounded(k->value[i], k->half_digit[i])) {
			readings[n].validity = RFL_VALID_ESTIMATE;
			readings[n].reason = "rounded by the decimals that were printed";
		}
		n++;
	}
	if (isnan(k->value[ELAPSED]))
		rfl_capture_note(k->b, "%s: the block has no elapsed time: it was cut off",
				 k->command);
	rc = rfl_import_range(k->b, &k->ids, RFL_RANGE_PROCESS, k->command, readings, n, err);
	clear(k);
	return rc;
}

static enum rfl_rc begin(struct block *k, struct rfl_err *err)
{
	double window = k->open ? NAN : k->value[WINDOW];
	enum rfl_rc rc = flush(k, err);

	k->open = true;
	k->value[WINDOW] = window;
	return rc;
}

static enum rfl_rc keep(struct block *k, enum figure figure, double value, double half,
			struct rfl_err *err)
{
	if (k->import->options->strict && rfl_import_is_rounded(value, half))
		return rfl_import_bad_row(k->import, figures[figure].name, err,
					  "%g was rounded by its decimals; leave out --strict",
					  value);
	k->value[figure] = value;
	k->half_digit[figure] = half;
	return RFL_OK;
}

static enum rfl_rc take(struct block *k, const struct label *l, struct rfl_span value,
			struct rfl_err *err)
{
	double v;

	value = rfl_span_trim(value);
	if (!read_value(l, value, &v))
		return rfl_import_bad_row(k->import, figures[l->figure].name, err,
					  "'%.*s' is no %s", RFL_SPAN_ARG(value),
					  l->factor == 0.0 ? "duration" : "count");
	if (!isnan(k->value[l->figure]) && k->value[l->figure] != v)
		return rfl_import_bad_row(k->import, figures[l->figure].name, err,
					  "'%.*s' is the second value of this block",
					  RFL_SPAN_ARG(value));
	return keep(k, l->figure, v, rfl_time__half_digit(value), err);
}

/* --- forms ----------------------------------------------------------------------------------- */

static enum rfl_rc gnu_line(struct block *k, struct rfl_span line, bool *mine, struct rfl_err *err)
{
	static const char command[] = "Command being timed: ";
	static const char status[] = "Exit status: ";

	*mine = true;
	if (rfl_span_starts(line, command)) {
		struct rfl_span name = rfl_span_from(line, strlen(command));
		enum rfl_rc rc = begin(k, err);

		if (name.len > 1 && name.at[0] == '"' && name.at[name.len - 1] == '"')
			name = (struct rfl_span){ .at = name.at + 1, .len = name.len - 2 };
		rfl_span_copy(name, k->command, sizeof(k->command));
		return rc;
	}
	if (rfl_span_starts(line, "Command exited with") ||
	    rfl_span_starts(line, "Command terminated by") ||
	    rfl_span_starts(line, "Command stopped by")) {
		rfl_capture_note(k->b, "%.*s", RFL_SPAN_ARG(line));
		return RFL_OK;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(gnu) && k->open; i++) {
		if (rfl_span_starts(line, gnu[i].text))
			return take(k, &gnu[i], rfl_span_from(line, strlen(gnu[i].text)), err);
	}
	*mine = rfl_span_starts(line, status);
	return RFL_OK;
}

/* "24.36 real 22.79 user 0.83 sys": the words behind the numbers. */
static bool bsd_times(struct rfl_span line, double ret[3], double half[3])
{
	static const char *const words[] = { "real", "user", "sys" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++) {
		struct rfl_span number, word;

		if (!rfl_span_next_word(&line, &number) || !rfl_span_next_word(&line, &word) ||
		    !rfl_span_is(word, words[i]) || !rfl_time__duration(number, &ret[i]))
			return false;
		half[i] = rfl_time__half_digit(number);
	}
	return rfl_span_trim(line).len == 0;
}

static enum rfl_rc bsd_line(struct block *k, struct rfl_span line, bool *mine, struct rfl_err *err)
{
	struct rfl_span number;
	static const enum figure order[] = { ELAPSED, USER, SYSTEM };
	double times[3], half[3];

	*mine = true;
	if (bsd_times(line, times, half)) {
		enum rfl_rc rc = begin(k, err);

		for (size_t i = 0; i < RFL_ARRAY_LEN(order) && rc == RFL_OK; i++)
			rc = keep(k, order[i], times[i], half[i], err);
		return rc;
	}
	*mine = false;
	if (!k->open || !rfl_span_next_word(&line, &number))
		return RFL_OK;
	line = rfl_span_trim(line);
	for (size_t i = 0; i < RFL_ARRAY_LEN(bsd); i++) {
		if (!rfl_span_is(line, bsd[i].text))
			continue;
		*mine = true;
		k->rss_in_bytes = true;
		return take(k, &bsd[i], number, err);
	}
	return RFL_OK;
}

/* What should be a number, and what others print behind "user". */
static bool is_one_number(struct rfl_span s)
{
	return s.at[0] >= '0' && s.at[0] <= '9' && !memchr(s.at, ' ', s.len);
}

/* "real 2.50", "user 0m 1.00s": real begins a block. */
static enum rfl_rc shell_line(struct block *k, struct rfl_span line, bool *mine,
			      struct rfl_err *err)
{
	struct rfl_span word;

	*mine = false;
	if (!rfl_span_next_word(&line, &word))
		return RFL_OK;
	line = rfl_span_trim(line);
	for (size_t i = 0; i < RFL_ARRAY_LEN(shell); i++) {
		double ignored;
		enum rfl_rc rc = RFL_OK;

		if (!rfl_span_is(word, shell[i].text) || (i > 0 && !k->open) || line.len == 0 ||
		    (!rfl_time__duration(line, &ignored) && (i == 0 || !is_one_number(line))))
			continue;
		*mine = true;
		if (i == 0)
			rc = begin(k, err);
		return rc == RFL_OK ? take(k, &shell[i], line, err) : rc;
	}
	return RFL_OK;
}

/* Every word of the two default lines ends in the name of its figure. */
static enum rfl_rc brief_line(struct block *k, struct rfl_span line, bool *mine,
			      struct rfl_err *err)
{
	bool first = rfl_span_has(line, "elapsed ") && rfl_span_has(line, "system ");
	bool second = k->open && rfl_span_has(line, "minor)pagefaults ");
	enum rfl_rc rc = first ? begin(k, err) : RFL_OK;
	struct rfl_span word;

	*mine = first || second;
	while (*mine && rc == RFL_OK && rfl_span_next_word(&line, &word)) {
		const char *plus = memchr(word.at, '+', word.len);

		if (plus && word.at[0] == '(') {
			/* "(0major+132minor)pagefaults" and "(0avgtext+0avgdata". */
			struct rfl_span major = { .at = word.at + 1,
						  .len = (size_t)(plus - word.at) - 1 };

			if (rfl_span_ends(major, "major")) {
				major.len -= strlen("major");
				rc = take(k, &brief[4], major, err);
			}
			word = rfl_span_from(word, (size_t)(plus - word.at) + 1);
		}
		for (size_t i = 0; i < RFL_ARRAY_LEN(brief) && rc == RFL_OK; i++) {
			if (!rfl_span_ends(word, brief[i].text))
				continue;
			word.len -= strlen(brief[i].text);
			rc = take(k, &brief[i], word, err);
			break;
		}
	}
	return rc;
}

#define ZSH_WORDS 8

/* "python train.py  22.79s user 0.83s system 97% cpu 24.360 total": its last words. */
static bool is_zsh(struct rfl_span line, struct rfl_span w[ZSH_WORDS])
{
	static const char *const names[ZSH_WORDS] = { [1] = "user", [3] = "system", [5] = "cpu" };
	struct rfl_span word;
	double ignored;

	if (!rfl_span_ends(line, " total"))
		return false;
	memset(w, 0, ZSH_WORDS * sizeof(*w));
	while (rfl_span_next_word(&line, &word)) {
		memmove(w, w + 1, (ZSH_WORDS - 1) * sizeof(*w));
		w[ZSH_WORDS - 1] = word;
	}
	for (size_t i = 0; i < ZSH_WORDS; i++)
		if (names[i] && !rfl_span_is(w[i], names[i]))
			return false;
	return rfl_time__duration(w[0], &ignored) && rfl_time__duration(w[2], &ignored) &&
	       rfl_span_ends(w[4], "%") && rfl_time__duration(w[6], &ignored);
}

static enum rfl_rc zsh_line(struct block *k, struct rfl_span line, bool *mine, struct rfl_err *err)
{
	struct rfl_span w[ZSH_WORDS];
	enum rfl_rc rc;

	*mine = is_zsh(line, w);
	if (!*mine)
		return RFL_OK;
	rc = begin(k, err);
	line.len = (size_t)(w[0].at - line.at);
	if (line.len > 0)
		rfl_span_copy(rfl_span_trim(line), k->command, sizeof(k->command));
	if (rc == RFL_OK)
		rc = take(k, &shell[1], w[0], err);
	if (rc == RFL_OK)
		rc = take(k, &shell[2], w[2], err);
	return rc ? rc : take(k, &shell[0], w[6], err);
}

/* The line that our own runs put in front: the measured window, which is not the process. */
static bool window_line(struct block *k, struct rfl_span line)
{
	static const char key[] = "MEASURED_SEC=";
	struct rfl_span word;
	double v;

	if (!rfl_span_starts(line, key) || !rfl_span_next_word(&line, &word) ||
	    !rfl_span_number(rfl_span_from(word, strlen(key)), &v))
		return false;
	k->value[WINDOW] = v;
	rfl_capture_note(k->b, "time_s is the whole process; its measured window is %.6g s", v);
	return true;
}

typedef enum rfl_rc form_fn(struct block *k, struct rfl_span line, bool *mine, struct rfl_err *err);

static form_fn *const forms[] = { gnu_line, bsd_line, brief_line, zsh_line, shell_line };

static enum rfl_rc read_lines(struct block *k, struct rfl_err *err)
{
	struct rfl_span line;
	bool more;
	enum rfl_rc rc;

	while ((rc = rfl_import_line(k->import, &line, &more, err)) == RFL_OK && more) {
		bool mine = false, torn = rfl_input_torn(k->import->in);

		line = rfl_span_trim(line);
		if (line.len == 0 || window_line(k, line))
			continue;
		for (size_t i = 0; i < RFL_ARRAY_LEN(forms) && !mine && rc == RFL_OK; i++)
			rc = forms[i](k, line, &mine, err);
		if (rc != RFL_OK)
			return rc;
		if (mine && torn)
			rfl_import_warn(
				k->import,
				"the last line has no newline: its value may have been cut off");
	}
	return rc;
}

static enum rfl_rc read_time(struct rfl_import *import, struct rfl_captures *to,
			     struct rfl_err *err)
{
	struct block k = { .import = import };
	bool any;
	enum rfl_rc rc = rfl_import_builder(import, "time", "cpu", true, &k.b, err);

	clear(&k);
	if (rc == RFL_OK)
		rc = read_lines(&k, err);
	any = k.open;
	if (rc == RFL_OK)
		rc = flush(&k, err);
	if (rc == RFL_OK && !any)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: no times in it: expected the output of 'time -v' (GNU), "
			      "'time -l' (BSD, macOS) or of a shell's time",
			      rfl_input_name(import->in));
	if (rc == RFL_OK)
		rc = rfl_import_finish(import, k.b, to, err);
	rfl_metric_ids_fini(&k.ids);
	rfl_capture_builder_free(k.b);
	return rc;
}

static int detect_line(struct rfl_span line, int *shell_seen)
{
	struct rfl_span word, w[ZSH_WORDS];
	double times[3], half[3];

	if (rfl_span_starts(line, "Command being timed: ") ||
	    rfl_span_starts(line, "Maximum resident set size (kbytes): "))
		return 95;
	if (bsd_times(line, times, half) || is_zsh(line, w) ||
	    (rfl_span_has(line, "maxresident)k") && rfl_span_has(line, "elapsed ")))
		return 90;
	if (!rfl_span_next_word(&line, &word) || rfl_span_trim(line).len == 0 ||
	    *shell_seen == (int)RFL_ARRAY_LEN(shell))
		return 0;
	if (rfl_span_is(word, shell[*shell_seen].text) &&
	    rfl_time__duration(rfl_span_trim(line), times))
		return ++*shell_seen == (int)RFL_ARRAY_LEN(shell) ? 85 : 0;
	*shell_seen = 0;
	return 0;
}

static int detect(struct rfl_span head)
{
	struct rfl_span line;
	int best = 0, shell_seen = 0;

	while (rfl_span_next_line(&head, &line)) {
		int sure = detect_line(rfl_span_trim(line), &shell_seen);

		best = sure > best ? sure : best;
	}
	return best;
}

const struct rfl_importer rfl_importer_time = {
	.name = "time",
	.summary = "time of a process: time -v (GNU, busybox), time -l (BSD, macOS), bash, zsh and "
		   "POSIX time",
	.detect = detect,
	.read = read_time,
};
