/* import_nvbandwidth.c - the output of nvbandwidth --json. Tests have one column per GPU. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "peaks/import.h"

#define LOCAL_COPY "device_local_copy"

/* Of the links between GPUs, and of copies in both directions, nothing is a ceiling of one device.
 */
static const struct rfl_peaks_name names[] = {
	{ LOCAL_COPY, "DRAM" },
	{ "host_to_device_memcpy_?[em]", "link" },
	{ "device_to_host_memcpy_?[em]", "link" },
	{ NULL, NULL },
};

static bool detect(struct rfl_span head)
{
	return rfl_span_has(head, "\"nvbandwidth\"") && rfl_span_has(head, "\"testcases\"");
}

/* "0: NVIDIA H200 (00000000:19:00): (host)" is the entry of GPU 0. */
static bool take_device(struct rfl_peaks_import *in, const json_t *list, size_t i)
{
	const char *text = json_string_value(json_array_get(list, i));
	const char *begin = text ? strstr(text, ": ") : NULL;
	const char *end = begin ? strstr(begin, " (") : NULL;
	char name[sizeof(in->device)], id[24];

	snprintf(id, sizeof(id), "%zu", i);
	if (!end)
		return rfl_peaks_import_device(in, id, NULL);
	snprintf(name, sizeof(name), "%.*s", (int)(end - begin - 2), begin + 2);
	return rfl_peaks_import_device(in, id, name);
}

static enum rfl_rc read_test(struct rfl_peaks_import *in, const json_t *test, const json_t *devices)
{
	const char *name = json_string_value(json_object_get(test, "name"));
	const char *status = json_string_value(json_object_get(test, "status"));
	const json_t *row = json_array_get(json_object_get(test, "bandwidth_matrix"), 0);
	enum rfl_rc rc = RFL_OK;

	if (!name || !status)
		return rfl_peaks_import_refuse(
			in, "/nvbandwidth/testcases: a test without \"name\" or \"status\"");
	if (strcmp(status, "Passed") != 0 || json_array_size(row) == 0)
		return rfl_peaks_import_lacks(in, name, "failed", status);
	for (size_t i = 0; rc == RFL_OK && i < json_array_size(row); i++) {
		const char *text = json_string_value(json_array_get(row, i));
		double value = 0;

		if (!take_device(in, devices, i) || (text && strcmp(text, "N/A") == 0))
			continue;
		if (!text || !rfl_span_number(rfl_span_of(text), &value))
			rc = rfl_peaks_import_refuse(in, "%s: '%s' is not a number", name,
						     text ? text : "null");
		else /* nvbandwidth counts the bytes of a copy once, but memory reads and writes
			them */
			rc = rfl_peaks_import_put(in, rfl_peaks_import_key(in, name), name,
						  strcmp(name, LOCAL_COPY) == 0 ? 2 * value : value,
						  0);
	}
	return rc;
}

static enum rfl_rc read_file(struct rfl_peaks_import *in)
{
	const json_t *top, *tests;
	json_auto_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(in->text.at, in->text.len, in->name, &root, in->err);

	if (rc != RFL_OK)
		return rc;
	in->gpu = true;
	top = json_object_get(root, "nvbandwidth");
	tests = json_object_get(top, "testcases");
	rfl_peaks_import_version(in, json_string_value(json_object_get(top, "version")));
	if (!json_is_array(tests))
		rc = rfl_peaks_import_refuse(in, "/nvbandwidth/testcases: must be a list");
	for (size_t i = 0; rc == RFL_OK && i < json_array_size(tests); i++)
		rc = read_test(in, json_array_get(tests, i),
			       json_object_get(top, "GPU Device list"));
	return rc;
}

const struct rfl_peaks_format rfl_peaks_format_nvbandwidth = {
	.name = "nvbandwidth",
	.tool = "nvbandwidth",
	.detect = detect,
	.read = read_file,
	.names = names,
};
