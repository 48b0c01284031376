/*
 * perf_json.c - perf stat -j: an object per line, whose values are texts.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "profile/import/perf.h"

static struct rfl_span text_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);

	if (!json_is_string(v))
		return (struct rfl_span){ .at = "", .len = 0 };
	return (struct rfl_span){ .at = json_string_value(v), .len = json_string_length(v) };
}

/* A number, or a text that is one. */
static double real_of(const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	double ret;

	if (json_is_number(v))
		return json_number_value(v);
	return json_is_string(v) && rfl_span_number(text_of(row, key), &ret) ? ret : NAN;
}

static enum rfl_rc one_object(struct rfl_perf_block *k, const json_t *o, struct rfl_err *err)
{
	static const char *const places[] = { "cpu", "core", "die", "socket", "node", "thread" };
	struct rfl_span value = text_of(o, "counter-value");
	char time[64];
	struct rfl_perf_row row = { .event = text_of(o, "event"),
				    .unit = text_of(o, "unit"),
				    .value = NAN,
				    .running = real_of(o, "pcnt-running"),
				    .cpus_utilized = NAN };

	for (size_t i = 0; i < RFL_ARRAY_LEN(places) && row.place.len == 0; i++)
		row.place = text_of(o, places[i]);
	if (row.event.len == 0 && !json_object_get(o, "counter-value"))
		return RFL_OK; /* a metric without an event */
	if (row.event.len == 0)
		return rfl_import_bad_row(k->import, "event", err, "is missing");
	if (rfl_span_is(value, "<not supported>"))
		row.state = RFL_PERF_NOT_SUPPORTED;
	else if (rfl_span_starts(value, "<not "))
		row.state = RFL_PERF_NOT_COUNTED;
	else
		row.value = real_of(o, "counter-value");
	if (row.state == RFL_PERF_COUNTED && isnan(row.value))
		return rfl_import_bad_row(k->import, "counter-value", err, "'%.*s' is no number",
					  RFL_SPAN_ARG(value));
	if (rfl_span_is(text_of(o, "metric-unit"), "CPUs utilized"))
		row.cpus_utilized = real_of(o, "metric-value");
	if (json_object_get(o, "interval")) {
		(void)snprintf(time, sizeof(time), "%.9f", real_of(o, "interval"));
		row.time = (struct rfl_span){ .at = time, .len = strlen(time) };
		k->elapsed = real_of(o, "interval");
		k->intervals = true;
	}
	return rfl_perf__row(k, &row, err);
}

/* `"pcnt-running" : 85,00`: a decimal comma, which makes it no JSON. */
static bool has_decimal_comma(struct rfl_span line)
{
	for (size_t i = 2; i + 1 < line.len; i++)
		if (line.at[i] == ',' && line.at[i - 1] >= '0' && line.at[i - 1] <= '9' &&
		    line.at[i + 1] >= '0' && line.at[i + 1] <= '9')
			return true;
	return false;
}

static enum rfl_rc one_line(struct rfl_perf_block *k, struct rfl_span line, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	json_t *o = NULL;
	enum rfl_rc rc = rfl_json_loads(line.at, line.len, "", &o, &why);

	if (rc == RFL_ENOMEM)
		return rfl_fail(err, rc, 0, "%s: out of memory", rfl_input_name(k->import->in));
	if (rc == RFL_OK && json_is_object(o))
		rc = one_object(k, o, err);
	else if (has_decimal_comma(line))
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s:%zu: perf wrote decimal commas, which makes it no JSON: run it "
			      "with LC_ALL=C",
			      rfl_input_name(k->import->in), rfl_input_line_number(k->import->in));
	else
		rc = rfl_import_bad_row(k->import, NULL, err, "'%.*s' is no JSON object of perf%s",
					RFL_SPAN_ARG(line),
					rfl_input_torn(k->import->in) ? ": the file is cut off"
								      : "");
	json_decref(o);
	return rc;
}

enum rfl_rc rfl_perf__read_json(struct rfl_perf_block *k, struct rfl_err *err)
{
	struct rfl_span line;
	bool more = true;
	enum rfl_rc rc = rfl_perf__begin(k, (struct rfl_span){ .at = "process", .len = 7 }, err);

	while (rc == RFL_OK) {
		rc = rfl_import_line(k->import, &line, &more, err);
		if (rc != RFL_OK || !more)
			break;
		line = rfl_span_trim(line);
		if (line.len > 0 && line.at[0] == '{')
			rc = one_line(k, line, err);
	}
	return rc;
}

int rfl_perf__detect_json(struct rfl_span head)
{
	return rfl_span_has(head, "{\"") && rfl_span_has(head, "\"counter-value\"") ? 95 : 0;
}
