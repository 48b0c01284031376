/* Tables of others: rules that map their columns, names that are known, what a row must contain. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ledger/repeats.h"
#include "ledger/runs.h"

/* --- rules ----------------------------------------------------------------------------------- */

static void refuses_rules(void **state)
{
	static const struct {
		const char *rule, *message;
	} cases[] = {
		{ "batch",
		  "--map: 'batch' is not a valid rule; write NAME=COLUMN or NAME=\"constant\"" },
		{ "=x", "--map: the ledger has no column ''; docs/reference/columns.md lists them" },
		{ "modle=x", "--map: the ledger has no column 'modle'; did you mean model?" },
		{ "model=", "--map: model= has no value; write the name of a column, or "
			    "\"a constant\" in quotes" },
		{ "model=\"x",
		  "--map: model=\"x is not a valid constant; write it between two double quotes" },
		{ "model=\"",
		  "--map: model=\" is not a valid constant; write it between two double quotes" },
		{ "model=\"a\"b\"", "--map: model=\"a\"b\" is not a valid constant; write it "
				    "between two double quotes" },
		{ "batch=\"many\"", "--map: batch: 'many' is not an integer" },
		{ "wall_s=\"1,5\"", "--map: wall_s: '1,5' is not a number" },
		{ "env=y", "--map: 'env' already has a rule, in first; remove one of them" },
		{ "a\nb",
		  "--map: 'a?b' is not a valid rule; write NAME=COLUMN or NAME=\"constant\"" },
	};
	struct rfl_column_map *map = rfl_column_map_new();
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_non_null(map);
	assert_ok(rfl_column_map_add(map, "env=x", "first", &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_err_clear(&err);
		assert_int_equal(rfl_column_map_add(map, cases[i].rule, "--map", &err), RFL_EINVAL);
		assert_int_equal(err.rc, RFL_EINVAL);
		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(map->n, 1);
	}
	rfl_column_map_free(map);
}

static void files_of_rules(void **state)
{
	const char *good = write_file(*state, "good.map",
				      "\xef\xbb\xbf# of an older script\r\n\r\n"
				      "  samples_per_s = imgs/sec  \r\nenv=\"mac_mps\"");
	const char *bad = write_file(*state, "bad.map", "env=\"x\"\n\nbatch=\"x\"\n");
	struct rfl_column_map *map = rfl_column_map_new();
	struct rfl_err err = RFL_ERR_INIT;
	char wanted[512];

	assert_ok(rfl_column_map_load(map, good, &err), &err);
	assert_int_equal(map->n, 2);
	assert_string_equal(map->rules[0].source, "imgs/sec");
	assert_string_equal(map->rules[1].constant, "mac_mps");
	rfl_column_map_free(map);
	map = rfl_column_map_new();
	assert_int_equal(rfl_column_map_load(map, bad, &err), RFL_EFORMAT);
	(void)snprintf(wanted, sizeof(wanted), "%s:3: batch: 'x' is not an integer", bad);
	assert_string_equal(err.msg, wanted);
	rfl_err_clear(&err);
	assert_int_equal(rfl_column_map_load(map, tmp_path(*state, "none"), &err), RFL_EIO);
	rfl_column_map_free(map);
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Read a table with rules, separated by ';'. */
static enum rfl_rc read_table(void *state, const char *text, const char *rules,
			      struct rfl_runs **ret, struct rfl_err *err)
{
	const char *path = write_file(state, "t.csv", text);
	struct rfl_column_map *map = rfl_column_map_new();
	enum rfl_rc rc = RFL_OK;

	while (*rules && rc == RFL_OK) {
		char rule[128];
		size_t len = strcspn(rules, ";");

		(void)snprintf(rule, sizeof(rule), "%.*s", (int)len, rules);
		rc = rfl_column_map_add(map, rule, "--map", err);
		rules += len + (rules[len] == ';');
	}
	if (rc == RFL_OK)
		rc = rfl_runs_load(&path, 1, map, &rfl_ledger_metrics[0], RFL_ROWS_KEPT, ret, err);
	rfl_column_map_free(map);
	return rc;
}

static struct rfl_runs *load(void *state, const char *text, const char *rules)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_runs *runs = NULL;

	assert_ok(read_table(state, text, rules, &runs, &err), &err);
	return runs;
}

/* A row for several runs has their deviation; texts are made of several columns. */
static void a_row_of_several_runs_and_made_texts(void **state)
{
	const struct rfl_repeats_options options = { .metric = &rfl_ledger_metrics[0] };
	struct rfl_runs *runs =
		load(*state,
		     "d_model,heads,device,bs,dtype,images/s (mean),images/s (std),s\n"
		     "64,2,cpu,8,fp32,100,2.5,0.1\n"
		     "64,,cpu,16,fp32,110,3.5,0.1\n",
		     "model=\"attention_d{d_model}_{device }!\";env=\"lab_{device}\";"
		     "label=\"{heads}\"");
	const struct rfl_ledger_row *r = runs->ledger->rows;
	struct rfl_repeats *repeats = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(runs->n, 2);
	assert_string_equal(r[0].model, "attention_d64_cpu!");
	assert_string_equal(r[0].env, "lab_cpu");
	assert_string_equal(r[0].label, "2");
	assert_null(r[1].label);
	assert_close(runs->runs[0].std, 2.5, 0);
	assert_non_null(strstr(runs->notes.data, "env=\"lab_{device}\""));
	assert_ok(rfl_repeats_new(runs, &options, &repeats, &err), &err);
	assert_close(repeats->configs[0].stats.std, 2.5, 0);
	assert_close(repeats->configs[0].cv, 0.025, 1e-15);
	assert_true(isnan(repeats->configs[0].stats.ci95));
	rfl_repeats_free(repeats);
	rfl_runs_free(runs);
}

static void known_names_and_words(void **state)
{
	struct rfl_runs *runs =
		load(*state,
		     "Timestamp,Arch,Batch Size,dtype,Images / sec,Backend,channels_last,"
		     "PyTorch Version,Deterministic,run\n"
		     "2025-11-14,ResNet-50,32.0,FP32,120.5,MPS,True,2.9.1,yes,2\n"
		     "2025-11-14,MobileNetV2,16,bfloat16,,mps,0,2.9.1,no,1\n",
		     "");
	const struct rfl_ledger_row *r = runs->ledger->rows;

	assert_int_equal(runs->ledger->nrows, 2);
	assert_string_equal(r[0].model, "resnet50");
	assert_string_equal(r[0].precision, "fp32");
	assert_string_equal(r[0].backend, "mps");
	assert_string_equal(r[0].env, "mps");
	assert_string_equal(r[0].layout, "nhwc");
	assert_string_equal(r[0].engine_version, "2.9.1");
	assert_string_equal(r[0].status, "ok");
	assert_int_equal(r[0].batch, 32);
	assert_int_equal(r[0].repeat, 2);
	assert_int_equal(r[0].deterministic, 1);
	assert_true(r[0].samples_per_s == 120.5);
	assert_close(r[0].step_ms_mean, 1000 * 32 / 120.5, 1e-15);
	assert_string_equal(r[1].model, "mobilenet_v2");
	assert_string_equal(r[1].precision, "bf16");
	assert_string_equal(r[1].layout, "nchw");
	assert_string_equal(r[1].status, "unknown"); /* it has no value */
	assert_int_equal(r[1].deterministic, 0);
	assert_non_null(
		strstr(runs->notes.data, "t.csv: not a ledger of this program; used columns: "));
	assert_non_null(strstr(runs->notes.data, "model=Arch"));
	rfl_runs_free(runs);
}

static void labels_tell_what_columns_do_not(void **state)
{
	struct rfl_runs *runs = load(*state,
				     "label,throughput\n"
				     "mac_mps_resnet50_fp32_bs16_r3_20251114_115032,136.75\n"
				     "lab_cpu_vgg16_amp_bs64_run1,5\n",
				     "");
	const struct rfl_ledger_row *r = runs->ledger->rows;

	assert_string_equal(r[0].env, "mac_mps");
	assert_string_equal(r[0].model, "resnet50");
	assert_string_equal(r[0].precision, "fp32");
	assert_int_equal(r[0].batch, 16);
	assert_int_equal(r[0].repeat, 3);
	assert_string_equal(r[1].env, "lab_cpu");
	assert_string_equal(r[1].precision, "amp");
	rfl_runs_free(runs);
}

static void constants_units_and_factors(void **state)
{
	struct rfl_runs *runs =
		load(*state, "net,n,secs,mem,t*2,rate\nvgg16,8,0.5,3,7,60\n",
		     "model=net;batch=n;step_ms_median=secs s;"
		     "host_peak_bytes=mem MiB;seed=t*2;samples_per_s=rate * 0.5;"
		     "env=\"lab\";precision=\"fp32\";iters=\"100\";wall_s=secs min");
	const struct rfl_ledger_row *r = runs->ledger->rows;

	assert_string_equal(r[0].env, "lab");
	assert_close(r[0].step_ms_median, 500, 1e-15);
	assert_close(r[0].host_peak_bytes, 3145728, 0);
	assert_close(r[0].samples_per_s, 30, 0);
	assert_close(r[0].wall_s, 30, 0);
	assert_int_equal(r[0].iters, 100);
	assert_int_equal(r[0].seed, 7); /* a column of that name goes before a factor */
	assert_non_null(strstr(runs->notes.data, "step_ms_median=secs*1000"));
	assert_non_null(strstr(runs->notes.data, "env=\"lab\""));
	rfl_runs_free(runs);
}

static void rates_follow_from_times(void **state)
{
	struct rfl_runs *runs = load(*state,
				     "model,batch,precision,env,iters,measured_sec\n"
				     "vgg16,8,fp32,lab,100,40\n",
				     "");

	assert_close(runs->ledger->rows[0].samples_per_s, 20, 1e-15);
	assert_close(runs->ledger->rows[0].step_ms_mean, 400, 1e-15);
	rfl_runs_free(runs);
}

static void refuses_tables(void **state)
{
	static const struct {
		const char *text, *rules, *message;
		enum rfl_rc rc;
	} cases[] = {
		{ "a,b\n1,2\n", "",
		  ": no column for 'samples_per_s', 'model', 'batch', 'precision', 'env' "
		  "among 'a', 'b'; map each one with --map samples_per_s=COLUMN model=COLUMN "
		  "batch=COLUMN precision=COLUMN (or 'precision=\"fp32\"') env=COLUMN (or "
		  "'env=\"lab_cpu\"')",
		  RFL_EFORMAT },
		{ "model,throughput\nvgg16,2\n", "",
		  ": no column for 'batch', 'precision', 'env' among 'model', "
		  "'throughput'; map each one with --map batch=COLUMN precision=COLUMN (or "
		  "'precision=\"fp32\"') env=COLUMN (or 'env=\"lab_cpu\"')",
		  RFL_EFORMAT },
		{ "model,batch,precision,throughput\nvgg16,8,fp32,2\n", "",
		  ": no column for 'env' among 'model', 'batch', 'precision', "
		  "'throughput'; map each one with --map env=COLUMN (or 'env=\"lab_cpu\"')",
		  RFL_EFORMAT },
		{ "label,throughput\nvgg16_bs8,2\n", "",
		  ":2: neither a column nor the label 'vgg16_bs8' contains the model; add --map "
		  "model=COLUMN or --map 'model=\"constant\"'",
		  RFL_EFORMAT },
		{ "label,throughput\nlab_vgg16_fp32_bs8_r1,fast\n", "",
		  ":2: column 'throughput': 'fast' is not a number; if the column has "
		  "another meaning, exclude it with --map 'NAME=\"\"', where NAME is its name in "
		  "the ledger",
		  RFL_EFORMAT },
		{ "label,throughput,batch\nlab_vgg16_fp32_bs8_r1,2,8.5\n", "",
		  ":2: column 'batch': '8.5' is not a positive integer; correct the value; if the "
		  "column has another "
		  "meaning, exclude it with --map 'NAME=\"\"', where NAME is its name in the "
		  "ledger",
		  RFL_EFORMAT },
		{ "label,throughput,batch\nlab_vgg16_fp32_bs8_r1,2,-2\n", "",
		  ":2: column 'batch': '-2' is not a positive integer; correct the value; if the "
		  "column has another meaning, exclude it with --map 'NAME=\"\"', where NAME is "
		  "its "
		  "name in the ledger",
		  RFL_EFORMAT },
		{ "label,throughput,env\nlab_vgg16_fp32_bs8_r1,2,My Lab\n", "",
		  ":2: env: 'My Lab' is not a valid environment name; use a letter a-z, then a-z, "
		  "0-9 and _, at most 48 characters",
		  RFL_EFORMAT },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_runs *runs = NULL;
		const char *path = tmp_path(*state, "t.csv");

		assert_int_equal(read_table(*state, cases[i].text, cases[i].rules, &runs, &err),
				 cases[i].rc);
		assert_int_equal(err.rc, cases[i].rc);
		assert_null(runs);
		assert_int_equal(strncmp(err.msg, path, strlen(path)), 0);
		assert_string_equal(err.msg + strlen(path), cases[i].message);
	}
}

static void refuses_rules_that_do_not_fit(void **state)
{
	static const struct {
		const char *rule, *word;
	} cases[] = {
		{ "batch=n2", "t.csv; use one of 'a', 'b c'" },
		{ "batch=b", "no such column in " },
		{ "batch=a s", "no such column in " }, /* samples have no unit */
		{ "wall_s=a MiB", "no such column in " },
		{ "wall_s=a * 0", "no such column in " },
		{ "model=a * 2",
		  "--map: model=a * 2: the column model is text, which has no unit" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_runs *runs = NULL;

		assert_int_equal(read_table(*state, "a,b c\n1,2\n", cases[i].rule, &runs, &err),
				 RFL_EINVAL);
		assert_says(&err, cases[i].word);
		assert_null(runs);
	}
}

/* Rows of our own that a power cut tore are left out, in quotes or not. */
static void a_torn_ledger_of_ours_is_read(void **state)
{
	static const char whole[] =
		"schema_version,run_id,config_hash,env,status,model,precision,batch,samples_per_s,"
		"error_text,version\n"
		"3,a,0a,x,ok,resnet18,fp32,8,100,,0.1.0\n";
	static const char *const torn[] = { "", "3,b,0a,x,ok", "3,b,0a,x,ok,m,fp32,8,1,\"a, b",
					    "3,\"b,0a,x,ok,m,fp32,8,1,,0.1.0\n" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(torn); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_runs *runs = NULL;
		char text[1024];

		snprintf(text, sizeof(text), "%s%s", whole, torn[i]);
		assert_ok(read_table(*state, text, "", &runs, &err), &err);
		assert_int_equal(runs->ledger->nrows, 1);
		assert_string_equal(runs->ledger->rows[0].model, "resnet18");
		rfl_runs_free(runs);
	}
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_rules),
		in_tmpdir(a_row_of_several_runs_and_made_texts),
		in_tmpdir(files_of_rules),
		in_tmpdir(known_names_and_words),
		in_tmpdir(labels_tell_what_columns_do_not),
		in_tmpdir(constants_units_and_factors),
		in_tmpdir(rates_follow_from_times),
		in_tmpdir(a_torn_ledger_of_ours_is_read),
		in_tmpdir(refuses_tables),
		in_tmpdir(refuses_rules_that_do_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
