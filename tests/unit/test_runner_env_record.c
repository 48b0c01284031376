/*
 * env.json and env_info.md: what is recorded, what is missing and why, what stays of an older
 * record, and that nothing in it names a person or a machine.
 */
#include "tests/unit/json_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "runner/env/record.h"
#include "tests/unit/file_rig.h"
#include "tests/unit/log_rig.h"

/* A rented machine with a disk of its own. */
static const char *make_root(void *dir)
{
	const char *root = tmp_path(dir, "root");

	put(root, "/proc/loadavg", "0.10 0.20 0.30 1/100 1\n");
	put(root, "/proc/self/mountinfo", "20 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n");
	put(root, "/sys/class/dmi/id/product_name", "Google Compute Engine\n");
	put(root, "/run/cloud-init/instance-data.json",
	    "{\"v1\":{\"cloud_name\":\"gce\",\"region\":\"us-central1\",\"local_hostname\":\"my-"
	    "host\","
	    "\"availability_zone\":\"us-central1-a\",\"instance_id\":\"4711\"}}");
	put(root, "/run/.containerenv", "image=\"docker.io/x:1.2\"\n");
	put(root, "/sys/class/net/eth0/type", "1\n");
	put(root, "/sys/class/net/eth0/speed", "10000\n");
	return root;
}

static struct rfl_env_spec spec_of(void *dir, const char *root)
{
	return (struct rfl_env_spec){
		.env = "lab_cpu",
		.log_dir = tmp_path(dir, "logs"),
		.root = root,
	};
}

static struct rfl_env_result record(const struct rfl_env_spec *spec)
{
	struct rfl_env_result r = { .document = NULL };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_env_record(spec, &r, &err), &err);
	return r;
}

static const json_t *find(const struct rfl_env_result *r, const char *section, const char *key)
{
	const json_t *record =
		json_object_get(json_object_get(r->document, "environments"), "lab_cpu");

	return json_object_get(json_object_get(record, section), key);
}

static void assert_fact(const struct rfl_env_result *r, const char *section, const char *key,
			const char *expected)
{
	const char *have = json_string_value(find(r, section, key));

	assert_non_null(have);
	assert_string_equal(have, expected);
}

/* Every null has its reason, and every reason its null. */
static size_t count_nulls(const json_t *value, const char *path, const json_t *missing)
{
	char below[512];
	const char *key;
	const json_t *one;
	size_t i, n = 0;

	if (json_is_null(value)) {
		if (!json_object_get(missing, path))
			fail_msg("%s is null without a reason", path);
		return 1;
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, one)
	{
		snprintf(below, sizeof(below), "%.300s/%s", path, key);
		n += count_nulls(one, below, missing);
	}
	json_array_foreach(value, i, one)
	{
		snprintf(below, sizeof(below), "%.300s/%zu", path, i);
		n += count_nulls(one, below, missing);
	}
	return n;
}

static void every_null_has_its_reason(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_engine engine = { .id = "torch-1.13-cpu", .version = "1.13.0" };
	struct rfl_env_result r;
	json_t *facts, *missing;

	spec.engines = &engine;
	spec.nengines = 1;
	r = record(&spec);
	facts = json_deep_copy(
		json_object_get(json_object_get(r.document, "environments"), "lab_cpu"));
	missing = json_incref(json_object_get(facts, "missing"));
	json_object_del(facts, "missing");
	assert_int_equal(count_nulls(facts, "", missing), json_object_size(missing));
	json_decref(missing);
	json_decref(facts);
	rfl_env_result_fini(&r);
}

static void conforms_to_its_schema(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	const char *const notes[] = { "zone=here", "free_key=a, b" };
	struct rfl_env_engine engine = { .id = "torch-1.13-cpu", .version = "1.13.0" };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_env_result r;
	json_t *schema = NULL, *file = NULL;

	spec.notes = notes;
	spec.nnotes = 2;
	spec.engines = &engine;
	spec.nengines = 1;
	spec.data_dir = *state;
	r = record(&spec);
	rfl_env_result_fini(&r);
	spec.root = ""; /* this machine: a change, so that there is a history */
	r = record(&spec);
	assert_true(r.changed);
	assert_ok(rfl_json_load(RFL_TEST_DATA "/../../docs/env.schema.json", &schema, &err), &err);
	assert_ok(rfl_json_load(tmp_path(*state, "logs/env.json"), &file, &err), &err);
	conforms(schema, schema, file);
	assert_true(json_equal(file, r.document));
	json_decref(schema);
	json_decref(file);
	rfl_env_result_fini(&r);
}

static void facts_come_from_the_files(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r = record(&spec);
	char *page;

	assert_true(r.created && r.written && !r.changed);
	assert_fact(&r, "cloud", "provider", "Google Cloud");
	assert_fact(&r, "cloud", "zone", "us-central1-a");
	assert_true(json_is_null(find(&r, "cloud", "instance_type")));
	assert_non_null(strstr(json_string_value(find(&r, "missing", "/cloud/instance_type")),
			       "--note instance_type="));
	assert_fact(&r, "container", "image", "docker.io/x:1.2");
	assert_close(json_number_value(find(&r, "now", "load_5min")), 0.2, 0);
	assert_true(json_integer_value(find(&r, "processor", "cores")) > 0);
	rfl_env_result_fini(&r);
	page = content(tmp_path(*state, "logs/env_info.md"));
	assert_non_null(strstr(page, "## lab_cpu\n"));
	assert_non_null(strstr(page, "| Zone | us-central1-a |\n"));
	assert_non_null(strstr(page, "| Host | Google Compute Engine |\n"));
	assert_non_null(strstr(page, "| Container (image tag) | podman, docker.io/x:1.2 |\n"));
	assert_non_null(
		strstr(page, "| Instance type | unknown: not found in any file; use --note"));
	assert_non_null(strstr(page, "| Network | eth0 (virtual, 10 Gbit/s) |\n"));
	assert_non_null(strstr(page, "| Python | not used: "));
	assert_non_null(strstr(page, "| unknown: no engine has been used yet; a run records it |"));
	free(page);
}

/* Without a driver two fields are empty for the same reason: the second refers to the first. */
static void a_reason_is_told_once(void **state)
{
	static const char text[] = "{\"environments\": {\"lab\": {"
				   "\"program\": {\"version\": \"1\", \"compiler\": \"cc\"},"
				   "\"missing\": {\"/gpus/driver\": \"no driver here\", "
				   "\"/gpus/devices\": \"no driver here\","
				   "\"/cloud/zone\": \"no file says\"}}}}";
	json_t *document = json_loads(text, 0, NULL);
	const char *first;
	struct rfl_buf page;

	(void)state;
	assert_non_null(document);
	rfl_buf_init(&page, 0);
	rfl_env_page(document, "lab", true, &page);
	first = strstr(rfl_buf_str(&page), "| CUDA, driver, cuDNN | unknown: no driver here |\n");
	assert_non_null(first);
	assert_null(strstr(first + 40, "no driver here"));
	assert_non_null(strstr(first, "| GPU | unknown: see 'CUDA, driver, cuDNN' |\n"));
	assert_non_null(strstr(first, "| Zone | unknown: no file says |\n"));
	rfl_buf_fini(&page);
	json_decref(document);
}

/* Nothing that names a machine or a person, though the files have it. */
static void names_nobody(void **state)
{
	const char *const words[] = { "my-host", "4711", "server:" };
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r;
	char host[256] = "", *text;

	r = record(&spec);
	rfl_env_result_fini(&r);
	spec.root = "";
	spec.env = "here";
	r = record(&spec);
	rfl_env_result_fini(&r);
	text = content(tmp_path(*state, "logs/env.json"));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_null(strstr(text, words[i]));
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	if (strlen(host) > 8) /* a shorter one may be part of a word */
		assert_null(strstr(text, host));
	free(text);
}

static void what_holds_is_left_alone(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r = record(&spec);
	const char *path = tmp_path(*state, "logs/env.json");
	char *before = content(path), *after;

	rfl_env_result_fini(&r);
	put(spec.root, "/proc/loadavg", "9.00 9.00 9.00 1/100 1\n"); /* of the minute */
	r = record(&spec);
	assert_false(r.written || r.changed || r.created);
	rfl_env_result_fini(&r);
	after = content(path);
	assert_string_equal(before, after);
	free(after);
	free(before);
	spec.refresh = true;
	r = record(&spec);
	assert_true(r.written && !r.changed);
	assert_close(json_number_value(find(&r, "now", "load_1min")), 9, 0);
	rfl_env_result_fini(&r);
	assert_string_equal(said, "");
}

static void a_change_is_told_and_kept(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r = record(&spec);
	const json_t *history;

	rfl_env_result_fini(&r);
	put(spec.root, "/run/.containerenv", "image=\"docker.io/x:1.3\"\n");
	r = record(&spec);
	assert_true(r.changed && r.written);
	assert_non_null(strstr(said, "environment 'lab_cpu' has changed: "
				     "container.image was \"docker.io/x:1.2\", is "
				     "\"docker.io/x:1.3\""));
	history = json_object_get(
		json_object_get(json_object_get(r.document, "environments"), "lab_cpu"), "history");
	assert_int_equal(json_array_size(history), 1);
	assert_non_null(json_object_get(json_array_get(history, 0), "replaced_utc"));
	rfl_env_result_fini(&r);

	/* back again: the record comes out of the history, and the other goes in */
	put(spec.root, "/run/.containerenv", "image=\"docker.io/x:1.2\"\n");
	for (int i = 0; i < 3; i++) {
		r = record(&spec);
		assert_int_equal(r.changed, i == 0);
		history = json_object_get(
			json_object_get(json_object_get(r.document, "environments"), "lab_cpu"),
			"history");
		assert_int_equal(json_array_size(history), 1);
		rfl_env_result_fini(&r);
	}
}

/* The size of a pool changes with every file that is written. */
static void the_size_of_a_file_system_is_no_change(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, "");
	const char *path = tmp_path(*state, "logs/env.json");
	struct rfl_env_result r = record(&spec);
	const json_t *logs = find(&r, "storage", "logs");
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(
		json_object_set_new((json_t *)(uintptr_t)logs, "size_bytes", json_integer(4096)),
		0);
	assert_ok(rfl_json_save(path, r.document, &err), &err);
	rfl_env_result_fini(&r);
	r = record(&spec);
	assert_false(r.changed);
	assert_string_equal(said, "");
	rfl_env_result_fini(&r);
}

static void engines_gather(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_engine one = { .id = "torch-1.13-cpu", .version = "1.13.0" };
	struct rfl_env_engine two = { .id = "torch-2.11-cu130",
				      .version = "2.11.0",
				      .cuda_runtime = "13.0",
				      .cuda_driver = "13.0",
				      .cudnn = "9.19.0" };
	struct rfl_env_engine asked = { .id = "torch-2.11-cu130", .version = "2.11.0" };
	struct rfl_env_result r;

	spec.nengines = 1;
	spec.engines = &one;
	r = record(&spec);
	rfl_env_result_fini(&r);
	spec.engines = &two;
	r = record(&spec); /* another engine is no other machine */
	assert_true(r.written && !r.changed);
	rfl_env_result_fini(&r);
	spec.engines = &asked; /* who only asked the plugin knows less: nothing is lost */
	r = record(&spec);
	assert_false(r.written || r.changed);
	assert_non_null(json_object_get(find(&r, "engines", "torch-1.13-cpu"), "version"));
	assert_string_equal(json_string_value(json_object_get(
				    find(&r, "engines", "torch-2.11-cu130"), "cudnn")),
			    "9.19.0");
	rfl_env_result_fini(&r);
	two.version = "2.12.0";
	spec.engines = &two;
	r = record(&spec);
	assert_true(r.changed);
	assert_non_null(strstr(said, "2.12.0"));
	rfl_env_result_fini(&r);
}

static void the_folder_of_images_stays_known(void **state)
{
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r;

	r = record(&spec);
	assert_true(json_is_null(find(&r, "storage", "data")));
	rfl_env_result_fini(&r);
	spec.data_dir = "/data/images";
	r = record(&spec);
	assert_true(r.written && !r.changed);
	assert_true(json_is_object(find(&r, "storage", "data")));
	rfl_env_result_fini(&r);
	spec.data_dir = NULL;
	r = record(&spec);
	assert_false(r.written || r.changed);
	assert_true(json_is_object(find(&r, "storage", "data")));
	assert_null(find(&r, "missing", "/storage/data"));
	rfl_env_result_fini(&r);
	assert_string_equal(said, "");
}

static void notes_are_kept_and_taken_back(void **state)
{
	const char *const first[] = { "zone=b | c", "colour=green, mostly" };
	const char *const second[] = { "colour=" };
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r;
	char *page;

	spec.notes = first;
	spec.nnotes = 2;
	r = record(&spec);
	rfl_env_result_fini(&r);
	page = content(tmp_path(*state, "logs/env_info.md"));
	assert_non_null(strstr(page, "| Zone | us-central1-a; b \\| c (noted) |\n"));
	assert_non_null(strstr(page, "| colour | green, mostly |\n"));
	free(page);
	spec.notes = second;
	spec.nnotes = 1;
	r = record(&spec);
	assert_null(find(&r, "notes", "colour"));
	assert_fact(&r, "notes", "zone", "b | c");
	rfl_env_result_fini(&r);
}

static void notes_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = { "zone",         "=x", "Zone=x", "a b=x",
					   "k=two\nlines", "",   "k=\xff" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_env_check_note(bad[i], &err), RFL_EINVAL);
		assert_says(&err, "note '");
	}
	assert_int_equal(rfl_env_check_note("zone=", NULL), RFL_OK);
	assert_int_equal(rfl_env_check_note("a=b=c", NULL), RFL_OK);
}

static void files_of_others_are_left_alone(void **state)
{
	static const char *const texts[] = { "{", "[]", "{\"schema_version\": \"9\"}",
					     "{\"schema_version\": \"1.0\"}" };
	struct rfl_env_spec spec = spec_of(*state, make_root(*state));
	struct rfl_env_result r = { .document = NULL };
	char *text;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		put(*state, "/logs/env.json", texts[i]);
		assert_int_equal(rfl_env_record(&spec, &r, &err), RFL_EFORMAT);
		assert_says(&err, "env.json");
		text = content(tmp_path(*state, "logs/env.json"));
		assert_string_equal(text, texts[i]);
		free(text);
	}
	assert_int_equal(unlink(tmp_path(*state, "logs/env.json")), 0);
	put(*state, "/logs/env_info.md", "# My own notes\n");
	r = record(&spec);
	rfl_env_result_fini(&r);
	text = content(tmp_path(*state, "logs/env_info.md"));
	assert_string_equal(text, "# My own notes\n");
	assert_non_null(strstr(said, "env_info.md: not generated by this program"));
	free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, log_rig_make, log_rig_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_null_has_its_reason),
		TEST(conforms_to_its_schema),
		TEST(facts_come_from_the_files),
		TEST(a_reason_is_told_once),
		TEST(names_nobody),
		TEST(what_holds_is_left_alone),
		TEST(a_change_is_told_and_kept),
		TEST(the_size_of_a_file_system_is_no_change),
		TEST(engines_gather),
		TEST(the_folder_of_images_stays_known),
		TEST(notes_are_kept_and_taken_back),
		TEST(notes_that_are_none_are_refused),
		TEST(files_of_others_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
