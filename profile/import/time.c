/*
 * time.c - imports the output of `time`: GNU time with or without -v, time -l of BSD and macOS, and
 * the time of bash, zsh and POSIX. Each block becomes a process range; other output is ignored.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/import/impl.h"

/* The figures, with perf's names for those that perf has. */
#define FIGURE_LIST(F)                                \
	F(ELAPSED, "duration_time", "s")              \
	F(USER, "user_time", "s")                     \
	F(SYSTEM, "system_time", "s")                 \
	F(MAX_RSS, "max_rss", "byte")                 \
	F(MAJOR_FAULTS, "major-faults", "")           \
	F(MINOR_FAULTS, "minor-faults", "")           \
	F(SWITCHES_IN, "involuntary_switches", "")    \
	F(SWITCHES_OUT, "voluntary_switches", "")     \
	F(SWAPS, "swaps", "")                         \
	F(INSTRUCTIONS, "instructions", "inst")       \
	F(CYCLES, "cycles", "cycle")                  \
	F(FOOTPRINT, "peak_memory_footprint", "byte") \
	F(WINDOW, "measured_window", "s")
enum figure { FIGURE_LIST(RFL_LIST_ID) FIGURES };
static const struct {
	const char *name, *unit;
} figures[] = { FIGURE_LIST(RFL_LIST_ROW) };

enum form {
	GNU,   /* time -v: "<label>: <value>" */
	BSD,   /* time -l: "<value>  <label>" */
	SHELL, /* bash, `time -p`: "<label> <value>"; BSD: "<value> <label>", on one line */
	/* the default lines of GNU time: "0.01user 0.00system 0:00.02elapsed 95%CPU (...
	 * 1920maxresident)k", "0inputs+0outputs (0major+132minor)pagefaults 0swaps" */
	BRIEF,
};

struct block {
	struct rfl_import i;
	enum form form;              /* of the open block */
	double before[FIGURES];      /* the figures of the previous block, which GNU time wrote */
	double half_before[FIGURES]; /* half a unit of their last digits */
	bool any, open;
	bool mine;         /* the current line was printed by time */
	bool rss_in_bytes; /* as on macOS; BSD prints KiB */
	double value[FIGURES], half_digit[FIGURES];
	char command[256];
};

/* How a form of the output labels a figure. */
static const struct label {
	enum form form;
	const char *text;
	enum figure figure;
	double factor; /* 0: a duration */
} labels[] = {
	{ SHELL, "real", ELAPSED, 0 }, /* these three must be first */
	{ SHELL, "user", USER, 0 },
	{ SHELL, "sys", SYSTEM, 0 },
	{ GNU, "User time (seconds): ", USER, 0 },
	{ GNU, "System time (seconds): ", SYSTEM, 0 },
	{ GNU, "Elapsed (wall clock) time (h:mm:ss or m:ss): ", ELAPSED, 0 },
	{ GNU, "Maximum resident set size (kbytes): ", MAX_RSS, 1024 },
	{ GNU, "Major (requiring I/O) page faults: ", MAJOR_FAULTS, 1 },
	{ GNU, "Minor (reclaiming a frame) page faults: ", MINOR_FAULTS, 1 },
	{ GNU, "Voluntary context switches: ", SWITCHES_OUT, 1 },
	{ GNU, "Involuntary context switches: ", SWITCHES_IN, 1 },
	{ GNU, "Swaps: ", SWAPS, 1 },
	{ BSD, "maximum resident set size", MAX_RSS, 1 },
	{ BSD, "page reclaims", MINOR_FAULTS, 1 },
	{ BSD, "page faults", MAJOR_FAULTS, 1 },
	{ BSD, "swaps", SWAPS, 1 },
	{ BSD, "voluntary context switches", SWITCHES_OUT, 1 },
	{ BSD, "involuntary context switches", SWITCHES_IN, 1 },
	{ BSD, "instructions retired", INSTRUCTIONS, 1 },
	{ BSD, "cycles elapsed", CYCLES, 1 },
	{ BSD, "peak memory footprint", FOOTPRINT, 1 },
	{ BRIEF, "user", USER, 0 },
	{ BRIEF, "system", SYSTEM, 0 },
	{ BRIEF, "elapsed", ELAPSED, 0 },
	{ BRIEF, "maxresident)k", MAX_RSS, 1024 },
	{ BRIEF, "major", MAJOR_FAULTS, 1 },
	{ BRIEF, "minor)pagefaults", MINOR_FAULTS, 1 },
	{ BRIEF, "swaps", SWAPS, 1 },
};

/* Find the label that begins (GNU), ends (BRIEF) or equals a text; NULL: none. */
static const struct label *find_label(enum form form, struct rfl_span s)
{
	for (const struct label *l = labels; l < labels + RFL_ARRAY_LEN(labels); l++)
		if (l->form == form && (form == GNU     ? rfl_span_starts(s, l->text)
					: form == BRIEF ? rfl_span_ends(s, l->text)
							: rfl_span_is(s, l->text)))
			return l;
	return NULL;
}

/* Read a number with a point or, in another locale, a comma. */
static bool read_decimal(struct rfl_span s, double *ret, double *half)
{
	return s.len > 0 && s.at[0] >= '0' && s.at[0] <= '9' && rfl_span_grouped(s, 0, ret, half);
}

/* Read seconds from "36.01", "0:51.40", "1:02:03", "1m18.01s", "1h3.00s", "0m0,004s", or busybox's
 * "1h 2m 03s". */
static bool read_duration(struct rfl_span s, double *ret, double *half)
{
	static const char units[] = ":dhms";
	static const double seconds[] = { 0.0, 86400.0, 3600.0, 60.0, 1.0 };
	double total = 0.0;

	while (s.len > 0) {
		const char *unit = NULL;
		size_t n = 0;
		double part;

		while (n < s.len && !(s.at[n] != '\0' && (unit = strchr(units, s.at[n]))))
			n++;
		if (!read_decimal((struct rfl_span){ .at = s.at, .len = n }, &part, half) ||
		    (n + 1 == s.len && s.at[n] == ':'))
			return false;
		if (n == s.len)
			total += part;
		else if (*unit == ':')
			total = 60.0 * (total + part);
		else
			total += part * seconds[unit - units];
		s = rfl_span_trim(rfl_span_from(s, n + 1));
	}
	*ret = total;
	return true;
}

static bool is_duration(struct rfl_span s)
{
	double value, half;

	return read_duration(s, &value, &half);
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void clear(struct block *k)
{
	for (size_t i = 0; i < FIGURES; i++) {
		k->value[i] = NAN;
		k->half_digit[i] = 0.0;
	}
	k->open = k->rss_in_bytes = false;
	(void)snprintf(k->command, sizeof(k->command), "process");
}

/* Whether the block has the times of the previous one: a shell that times `time -v` prints them
 * again, with a little more for the start of the process. */
static bool is_same_process(const struct block *k)
{
	static const enum figure times[] = { ELAPSED, USER, SYSTEM };

	for (size_t i = 0; i < RFL_ARRAY_LEN(times); i++) {
		const double value = k->value[times[i]], before = k->before[times[i]];
		const double slack = times[i] == ELAPSED ? fmax(0.05, 0.001 * before) : 0.01;

		/* never true for NaN */
		if (!(fabs(value - before) <=
		      slack + k->half_digit[times[i]] + k->half_before[times[i]]))
			return false;
	}
	return true;
}

static void flush(struct block *k)
{
	char number[RFL_NUM_MAX];

	if (!k->open)
		return;
	if (k->form == SHELL && is_same_process(k)) {
		rfl_capture_note(k->i.b, "the shell's times describe the process before them, "
					 "and are counted once");
		clear(k);
		return;
	}
	for (size_t i = 0; i < FIGURES; i++) {
		k->before[i] = k->form == SHELL ? (double)NAN : k->value[i];
		k->half_before[i] = k->half_digit[i];
	}
	/* The size is in KiB on BSD and in bytes on macOS, which is recognised by lines that only
	 * macOS prints or by a size in whole pages. */
	if (k->rss_in_bytes && isnan(k->value[FOOTPRINT]) && isnan(k->value[INSTRUCTIONS]) &&
	    !isnan(k->value[MAX_RSS]) && fmod(k->value[MAX_RSS], 4096.0) != 0.0) {
		k->value[MAX_RSS] *= 1024.0;
		rfl_capture_note(k->i.b, "the maximum resident set size is read in KiB (BSD): in "
					 "bytes (macOS), it would not be whole pages");
	}
	if (isnan(k->value[ELAPSED]))
		rfl_capture_note(k->i.b, "%s: no elapsed time: the block is cut off", k->command);
	rfl_capture_begin(k->i.b, RFL_RANGE_PROCESS, k->command, NULL, NULL);
	for (size_t i = 0; i < FIGURES; i++) {
		struct rfl_reading r = { .name = figures[i].name, .unit = figures[i].unit };

		r.value = k->value[i];
		if (isnan(r.value))
			continue;
		if (rfl_import_is_rounded(r.value, k->half_digit[i])) {
			r.validity = RFL_VALID_ESTIMATE;
			r.reason = "rounded to the printed decimals";
		}
		(void)rfl_import_give(&k->i, &r);
	}
	if (!isnan(k->value[MAX_RSS]))
		rfl_capture_note(k->i.b, "%s: the largest resident set is %s bytes", k->command,
				 rfl_num_full(k->value[MAX_RSS], number));
	clear(k);
}

static void open_block(struct block *k, enum form form)
{
	double window = k->open ? NAN : k->value[WINDOW];

	flush(k);
	k->form = form;
	k->any = k->open = k->mine = true;
	k->value[WINDOW] = window;
}

static enum rfl_rc take(struct block *k, const struct label *l, struct rfl_span text)
{
	const char *name = figures[l->figure].name;
	double value, half;

	k->mine = true;
	text = rfl_span_trim(text);
	if (l->factor == 0.0 ? !read_duration(text, &value, &half)
			     : !read_decimal(text, &value, &half))
		value = INFINITY;
	else if (l->factor > 0.0)
		value *= l->factor;
	if (!isfinite(value))
		return rfl_import_bad_row(&k->i, name, "'%.*s' is not a %s", RFL_SPAN_ARG(text),
					  l->factor == 0.0 ? "duration" : "count");
	if (!isnan(k->value[l->figure]) && k->value[l->figure] != value)
		return rfl_import_bad_row(&k->i, name, "'%.*s' is a second value in this block",
					  RFL_SPAN_ARG(text));
	if (k->i.options->strict && rfl_import_is_rounded(value, half))
		return rfl_import_bad_row(&k->i, name, "%g is rounded; leave out --strict", value);
	k->value[l->figure] = value;
	k->half_digit[l->figure] = half;
	return RFL_OK;
}

/* --- forms: each reads its own lines and sets k->mine ---------------------------------------- */

static enum rfl_rc gnu_line(struct block *k, struct rfl_span line)
{
	static const char command[] = "Command being timed: ";
	static const char *const notes[] = { "Command exited with", "Command terminated by",
					     "Command stopped by", NULL };

	if (rfl_span_starts(line, command)) {
		struct rfl_span name = rfl_span_from(line, strlen(command));

		open_block(k, GNU);
		if (name.len > 1 && name.at[0] == '"' && name.at[name.len - 1] == '"')
			name = (struct rfl_span){ .at = name.at + 1, .len = name.len - 2 };
		rfl_span_copy(name, k->command, sizeof(k->command));
		return RFL_OK;
	}
	const struct label *l = find_label(GNU, line);
	/* An excerpt may lack the command. */
	if (l && !k->open && (l->figure == USER || l->figure == SYSTEM || l->figure == ELAPSED))
		open_block(k, GNU);
	if (l && k->open)
		return take(k, l, rfl_span_from(line, strlen(l->text)));
	k->mine = rfl_span_starts_any(line, notes);
	if (k->mine)
		rfl_capture_note(k->i.b, "%.*s", RFL_SPAN_ARG(line));
	k->mine = k->mine || rfl_span_starts(line, "Exit status: ");
	return RFL_OK;
}

#define PAIRS_MAX 4

/* Whether a line ends in pairs of a number and a name, such as "24.36 real 22.79 user 0.83 sys".
 * @param numbers  set to the numbers; all but a percentage are durations */
static bool ends_in_pairs(struct rfl_span line, const char *const *names, size_t n,
			  struct rfl_span numbers[PAIRS_MAX])
{
	struct rfl_span last[2 * PAIRS_MAX], word; /* the last words */
	size_t nwords = 0;

	if (!rfl_span_ends(line, names[n - 1]))
		return false;
	while (rfl_span_next_word(&line, &word)) {
		memmove(last, last + 1, (2 * n - 1) * sizeof(*last));
		last[2 * n - 1] = word;
		nwords++;
	}
	for (size_t i = 0; i < n; i++) {
		if (nwords < 2 * n || !rfl_span_is(last[2 * i + 1], names[i]) ||
		    !(rfl_span_ends(last[2 * i], "%") || is_duration(last[2 * i])))
			return false;
		numbers[i] = last[2 * i];
	}
	return true;
}

static const char *const bsd_names[] = { "real", "user", "sys" };
static const char *const zsh_names[] = { "user", "system", "cpu", "total" };

static bool is_bsd_times(struct rfl_span line, struct rfl_span numbers[PAIRS_MAX])
{
	return ends_in_pairs(line, bsd_names, RFL_ARRAY_LEN(bsd_names), numbers) &&
	       numbers[0].at == line.at;
}

/* Store the three times at the beginning of a block. */
static enum rfl_rc take_times(struct block *k, enum form form, struct rfl_span real,
			      struct rfl_span user, struct rfl_span sys)
{
	enum rfl_rc rc;

	open_block(k, form);
	rc = take(k, &labels[0], real);
	if (rc == RFL_OK)
		rc = take(k, &labels[1], user);
	return rc == RFL_OK ? take(k, &labels[2], sys) : rc;
}

static enum rfl_rc bsd_line(struct block *k, struct rfl_span line)
{
	struct rfl_span number[PAIRS_MAX];

	if (is_bsd_times(line, number))
		return take_times(k, BSD, number[0], number[1], number[2]);
	if (!k->open || !rfl_span_next_word(&line, &number[0]))
		return RFL_OK;
	const struct label *l = find_label(BSD, rfl_span_trim(line));
	if (!l)
		return RFL_OK;
	k->rss_in_bytes = true;
	return take(k, l, number[0]);
}

/* Read "real 2.50" or "user 0m 1.00s"; "real" begins a block. Other programs print more words. */
static enum rfl_rc shell_line(struct block *k, struct rfl_span line)
{
	struct rfl_span word;

	if (!rfl_span_next_word(&line, &word))
		return RFL_OK;
	line = rfl_span_trim(line);
	const struct label *l = find_label(SHELL, word);
	bool begins = l == labels;
	bool number = line.len > 0 && line.at[0] >= '0' && line.at[0] <= '9' &&
		      !memchr(line.at, ' ', line.len);
	if (!l || line.len == 0 || !(begins || k->open) ||
	    !(is_duration(line) || (number && !begins)))
		return RFL_OK;
	if (begins)
		open_block(k, SHELL);
	return take(k, l, line);
}

/* Every word of the two default lines ends in the name of its figure; "(0major+132minor)pagefaults"
 * and "(0avgtext+0avgdata" contain two figures. */
static enum rfl_rc brief_line(struct block *k, struct rfl_span line)
{
	bool first = rfl_span_has(line, "elapsed ") && rfl_span_has(line, "system ");
	struct rfl_span word, part;
	enum rfl_rc rc = RFL_OK;

	if (first)
		open_block(k, BRIEF);
	k->mine = first || (k->open && rfl_span_has(line, "minor)pagefaults "));
	while (k->mine && rc == RFL_OK && rfl_span_next_word(&line, &word)) {
		if (word.at[0] == '(')
			word = rfl_span_from(word, 1);
		while (rc == RFL_OK && rfl_span_next_field(&word, '+', &part)) {
			const struct label *l = find_label(BRIEF, part);

			if (!l)
				continue;
			part.len -= strlen(l->text);
			rc = take(k, l, part);
		}
	}
	return rc;
}

/* for example "./a.out  22.79s user 0.83s system 97% cpu 24.360 total" */
static enum rfl_rc zsh_line(struct block *k, struct rfl_span line)
{
	struct rfl_span number[PAIRS_MAX];

	if (!ends_in_pairs(line, zsh_names, RFL_ARRAY_LEN(zsh_names), number))
		return RFL_OK;
	enum rfl_rc rc = take_times(k, SHELL, number[3], number[0], number[1]);
	line.len = (size_t)(number[0].at - line.at);
	if (line.len > 0)
		rfl_span_copy(rfl_span_trim(line), k->command, sizeof(k->command));
	return rc;
}

/* --- the file -------------------------------------------------------------------------------- */

static void begin(struct rfl_import *import)
{
	struct block *k = (struct block *)import;

	clear(k);
	memcpy(k->before, k->value, sizeof(k->before));
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	static enum rfl_rc (*const forms[])(struct block *,
					    struct rfl_span) = { gnu_line, bsd_line, brief_line,
								 zsh_line, shell_line };
	static const char key[] = "MEASURED_SEC=";
	struct block *k = (struct block *)import;
	struct rfl_span rest, word;
	enum rfl_rc rc = RFL_OK;
	double window;

	line = rest = rfl_span_trim(line);
	/* `roofline run` prints the measured window, which is a part of the time of the process. */
	if (rfl_span_starts(line, key) && rfl_span_next_word(&rest, &word) &&
	    rfl_span_number(rfl_span_from(word, strlen(key)), &window)) {
		k->value[WINDOW] = window;
		rfl_capture_note(import->b,
				 "time_s covers the whole process; its measured window is %.6g s",
				 window);
		return RFL_OK;
	}
	k->mine = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(forms) && line.len > 0 && !k->mine; i++)
		rc = forms[i](k, line);
	if (rc == RFL_OK && k->mine && import->in->torn)
		rfl_import_warn(import, "the last line has no newline: its value may be cut off");
	return rc;
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct block *k = (struct block *)import;

	flush(k);
	if (k->any)
		return RFL_OK;
	return rfl_import_refuse(import, 0,
				 "no times; expected the output of 'time -v' (GNU), 'time -l' "
				 "(BSD, macOS) or a shell's 'time'");
}

static int detect(struct rfl_span head)
{
	struct rfl_span line, word, numbers[PAIRS_MAX];
	size_t shell_seen = 0;
	int best = 0;

	while (rfl_span_next_line(&head, &line)) {
		line = rfl_span_trim(line);
		const struct label *l = find_label(GNU, line);
		if (rfl_span_starts(line, "Command being timed: ") || (l && l->figure <= MAX_RSS))
			return 95;
		if (is_bsd_times(line, numbers) ||
		    ends_in_pairs(line, zsh_names, RFL_ARRAY_LEN(zsh_names), numbers) ||
		    (rfl_span_has(line, "maxresident)k") && rfl_span_has(line, "elapsed ")))
			best = 90;
		else if (shell_seen < 3 && rfl_span_next_word(&line, &word) &&
			 rfl_span_trim(line).len > 0)
			shell_seen = rfl_span_is(word, labels[shell_seen].text) &&
						     is_duration(rfl_span_trim(line))
					     ? shell_seen + 1
					     : 0;
	}
	return best == 0 && shell_seen == 3 ? 85 : best;
}

const struct rfl_importer rfl_importer_time = {
	.name = "time",
	.summary = "time of a process: time -v (GNU, busybox), time -l (BSD, macOS), bash, zsh and "
		   "POSIX time",
	.formulas = "cpu",
	.all_metrics = true,
	.size = sizeof(struct block),
	.detect = detect,
	.begin = begin,
	.line = read_line,
	.end = end,
};
