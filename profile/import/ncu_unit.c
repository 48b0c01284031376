/*
 * ncu_unit.c - units of ncu: "Mbyte", "usecond", "us", "Ghz", "cycle/nsecond", "inst/cycle".
 * Prefixes are powers of 1000.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "profile/import/ncu_number.h"
#include "profile/import/span.h"

static const struct {
	const char *text;
	int exponent; /* of a second */
} times[] = {
	{ "s", 0 },        { "second", 0 },   { "ms", -3 },        { "msecond", -3 },
	{ "us", -6 },      { "usecond", -6 }, { "\xc2\xb5s", -6 }, { "ns", -9 },
	{ "nsecond", -9 }, { "ps", -12 },     { "psecond", -12 },
};

/* What is counted; with K, M, G, T, P or E in front it is scaled. */
static const char *const counts[] = {
	"byte", "inst",   "thread_inst", "thread inst", "sector",   "request", "cycle",
	"warp", "block",  "thread",      "pass",        "sample",   "math_op", "op",
	"flop", "FLOP",   "transaction", "wavefront",   "register", "access",  "packet",
	"SM",   "launch", "group",       "instance",    "cluster",  "branch",
};

static bool find_time(struct rfl_span text, int *exponent)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(times); i++)
		if (rfl_span_is(text, times[i].text)) {
			*exponent = times[i].exponent;
			return true;
		}
	return false;
}

static int prefix_exponent(char c)
{
	static const char prefixes[] = "KMGTPE";
	const char *at = c != '\0' ? strchr(prefixes, c == 'k' ? 'K' : c) : NULL;

	return at ? 3 * (int)(at - prefixes + 1) : 0;
}

static bool is_count(struct rfl_span text)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(counts); i++)
		if (rfl_span_is(text, counts[i]))
			return true;
	return false;
}

/* "byte", "Kbyte", ... */
static bool find_count(struct rfl_span *text, int *exponent)
{
	struct rfl_span rest = { .at = text->at + 1, .len = text->len - 1 };

	*exponent = 0;
	if (is_count(*text))
		return true;
	if (text->len < 2 || prefix_exponent(text->at[0]) == 0 || !is_count(rest))
		return false;
	*exponent = prefix_exponent(text->at[0]);
	*text = rest;
	return true;
}

/* "hz", "Ghz": in any case, but m is not M. */
static bool find_hertz(struct rfl_span text, int *exponent)
{
	if (text.len < 2 || text.len > 3 || strncasecmp(text.at + text.len - 2, "hz", 2) != 0)
		return false;
	*exponent = text.len == 3 ? prefix_exponent(text.at[0]) : 0;
	return text.len == 2 || *exponent != 0;
}

static struct rfl_ncu_unit make(enum rfl_ncu_unit_kind kind, int exponent, struct rfl_span base,
				const char *behind)
{
	struct rfl_ncu_unit unit = { .kind = kind, .exponent = exponent };

	(void)snprintf(unit.base, sizeof(unit.base), "%.*s%s", RFL_SPAN_ARG(base), behind);
	return unit;
}

/* "byte/second", "inst/cycle", "%/register" */
static struct rfl_ncu_unit parse_quotient(struct rfl_span text, size_t slash)
{
	struct rfl_span above = rfl_span_trim((struct rfl_span){ .at = text.at, .len = slash });
	struct rfl_span below = rfl_span_trim(rfl_span_from(text, slash + 1));
	int exponent = 0, per = 0;

	if (!find_count(&above, &exponent) && !rfl_span_is(above, "%") &&
	    !find_time(above, &exponent))
		return make(RFL_NCU_UNIT_UNKNOWN, 0, text, "");
	if (!find_time(below, &per)) {
		char behind[40];

		if (!is_count(below))
			return make(RFL_NCU_UNIT_UNKNOWN, 0, text, "");
		(void)snprintf(behind, sizeof(behind), "/%.*s", RFL_SPAN_ARG(below));
		return make(RFL_NCU_UNIT_RATIO, exponent, above, behind);
	}
	if (rfl_span_is(above, "cycle"))
		return make(RFL_NCU_UNIT_RATE, exponent - per,
			    (struct rfl_span){ .at = "Hz", .len = 2 }, "");
	return make(RFL_NCU_UNIT_RATE, exponent - per, above, "/s");
}

struct rfl_ncu_unit rfl_ncu_unit_parse(struct rfl_span text)
{
	size_t slash = rfl_span_find(text, "/");
	int exponent = 0;

	text = rfl_span_trim(text);
	if (text.len == 0)
		return make(RFL_NCU_UNIT_COUNT, 0, text, "");
	if (slash < text.len)
		return parse_quotient(text, slash);
	if (rfl_span_is(text, "%") || rfl_span_is(text, "ratio"))
		return make(RFL_NCU_UNIT_RATIO, 0, text, "");
	if (find_time(text, &exponent))
		return make(RFL_NCU_UNIT_TIME, exponent, (struct rfl_span){ .at = "s", .len = 1 },
			    "");
	if (find_hertz(text, &exponent))
		return make(RFL_NCU_UNIT_RATE, exponent, (struct rfl_span){ .at = "Hz", .len = 2 },
			    "");
	if (find_count(&text, &exponent))
		return make(RFL_NCU_UNIT_COUNT, exponent, text, "");
	return make(RFL_NCU_UNIT_UNKNOWN, 0, text, "");
}
