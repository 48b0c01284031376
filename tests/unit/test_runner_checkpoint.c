/* Checkpoints of training runs: what is written is read, and nothing else is accepted. */
#define _GNU_SOURCE /* syscall() */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"
#include "runner/run/training.h"

#define STEPS  8
#define PARTS  2
#define HEADER 30 /* where the JSON begins: a line of 22 bytes, and its length */

struct rfl_engine {
	float parts[PARTS][5];
};

static enum rfl_rc visit_state(struct rfl_engine *e, bool load, rfl_engine_state_fn fn, void *ctx,
			       struct rfl_err *err)
{
	static const char *const names[PARTS] = { "fc.weight", "fc.bias" };
	enum rfl_rc rc = RFL_OK;

	(void)load;
	for (int i = 0; i < PARTS && rc == RFL_OK; i++)
		rc = fn(names[i], e->parts[i], sizeof(e->parts[i]), ctx, err);
	return rc;
}

static const struct rfl_engine_ops fake_ops = { .name = "fake", .visit_state = visit_state };

struct rig {
	struct rfl_run_config config;
	struct rfl_engine engine;
	struct rfl_burst burst;
	struct rfl_net *net;
	struct rfl_run__training t;
};

/* A training that reads or writes `path`, with nothing done. */
static void begin(struct rig *r, const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;

	*r = (struct rig){ .config = { .arch = "mnist_cnn",
				       .precision = RFL_PRECISION_FP32,
				       .optimizer = RFL_RULE_ADAM,
				       .lr = 0.001,
				       .checkpoint = path } };
	assert_ok(rfl_zoo_build("mnist_cnn", NULL, &r->net, &err), &err);
	assert_ok(rfl_burst_init(&r->burst, STEPS, &err), &err);
	r->t = (struct rfl_run__training){ .config = &r->config,
					   .ops = &fake_ops,
					   .engine = &r->engine,
					   .net = r->net,
					   .engine_id = "fake-1.0",
					   .device = "cpu",
					   .data_digest = "0123456789abcdef",
					   .burst = &r->burst,
					   .samples = 9,
					   .test_samples = 5,
					   .per_epoch = 4,
					   .saved = -1 };
}

static void end(struct rig *r)
{
	rfl_run__training_fini(&r->t);
	rfl_burst_fini(&r->burst);
	rfl_net_free(r->net);
}

/* Write the checkpoint of a training run in its second epoch. */
static void save(const char *path, struct rig *r)
{
	const struct rfl_epoch row = { .epoch = 1, .train_loss = 0.25, .test_loss = (double)NAN };
	struct rfl_err err = RFL_ERR_INIT;

	begin(r, path);
	for (int i = 0; i < 5; i++) {
		r->engine.parts[0][i] = (float)i;
		r->engine.parts[1][i] = -(float)i;
		r->burst.steps[i] = (struct rfl_burst_step){ .total_s = i, .loss = 1.0 / (i + 1) };
	}
	r->t.done = 5;
	r->t.sums = (struct rfl_score){ .rows = 2, .correct = 1, .loss = 0.1 };
	r->t.train_s = 0.3;
	r->burst.wall_s = 1.7;
	rfl_epochs_add(&r->t.epochs, &row);
	assert_ok(rfl_run__checkpoint_save(&r->t, &err), &err);
	assert_int_equal(r->t.saved, 5);
}

/* Count the synced directories: only then does the name of a new file survive a power failure. */
static int synced_folders;

int fsync(int fd)
{
	struct stat st;

	synced_folders += fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	return (int)syscall(SYS_fsync, fd);
}

static void the_folder_of_a_checkpoint_is_synced(void **state)
{
	struct rig r;

	synced_folders = 0;
	save(tmp_path(*state, "a.checkpoint"), &r);
	assert_int_equal(synced_folders, 1);
	end(&r);
}

static void what_is_saved_is_loaded(void **state)
{
	const char *path = tmp_path(*state, "a.checkpoint");
	struct rfl_err err = RFL_ERR_INIT;
	struct rig one, other;

	save(path, &one);
	begin(&other, path);
	assert_ok(rfl_run__checkpoint_load(&other.t, &err), &err);
	assert_memory_equal(&other.engine, &one.engine, sizeof(one.engine));
	assert_memory_equal(other.burst.steps, one.burst.steps, 5 * sizeof(*one.burst.steps));
	assert_int_equal(other.t.done, 5);
	assert_int_equal(other.t.saved, 5);
	assert_int_equal(other.t.sums.rows, 2);
	assert_int_equal(other.t.sums.correct, 1);
	assert_true(other.t.sums.loss == 0.1 && other.t.train_s == 0.3 &&
		    other.burst.wall_s == 1.7);
	assert_int_equal(other.t.epochs.n, 1);
	assert_true(other.t.epochs.rows[0].train_loss == 0.25);
	assert_true(isnan(other.t.epochs.rows[0].test_loss));
	end(&one);
	end(&other);
}

static void put(const char *path, const char *data, size_t len)
{
	FILE *f;

	(void)remove(path); /* replacing the contents of a file would sync it */
	f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* Write a file with the right checksum, whatever its contents, and load it. */
static enum rfl_rc load_forged(const char *path, const char *data, size_t len, struct rfl_err *err)
{
	const uint64_t hash = rfl_hash64(0, data, len);
	struct rfl_buf file;
	struct rig r;
	enum rfl_rc rc;

	rfl_buf_init(&file, 0);
	rfl_buf_append(&file, data, len);
	rfl_buf_append(&file, &hash, sizeof(hash));
	put(path, file.data, file.len);
	rfl_buf_fini(&file);
	begin(&r, path);
	rc = rfl_run__checkpoint_load(&r.t, err);
	if (rc == RFL_OK) /* whatever was changed, the position is possible */
		assert_true(r.t.done >= 1 && r.t.done <= STEPS &&
			    (int64_t)r.t.epochs.n <= r.t.done / r.t.per_epoch);
	end(&r);
	return rc;
}

/* Truncated at each byte, or with one changed byte, with the checksum it had and with a new one:
 * refused, or a valid training. */
static void damaged_files_are_refused(void **state)
{
	const char *path = tmp_path(*state, "a.checkpoint");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf whole;
	struct rig one, r;
	size_t body;

	save(path, &one);
	end(&one);
	rfl_buf_init(&whole, 0);
	assert_ok(rfl_file_read(path, &whole, &err), &err);
	body = whole.len - sizeof(uint64_t);
	for (size_t len = 0; len <= whole.len; len++) {
		rfl_err_clear(&err);
		put(path, whole.data, len);
		begin(&r, path);
		assert_int_equal(rfl_run__checkpoint_load(&r.t, &err),
				 len < whole.len ? RFL_EFORMAT : RFL_OK);
		end(&r);
		rfl_err_clear(&err);
		if (len < body)
			assert_int_not_equal(load_forged(path, whole.data, len, &err), RFL_OK);
	}
	for (size_t at = 0; at < body; at++) {
		char *byte = whole.data + at;
		const char was = *byte;

		*byte = was == '9' ? '8' : '9'; /* a number stays a number */
		rfl_err_clear(&err);
		(void)load_forged(path, whole.data, body, &err);
		rfl_err_clear(&err);
		put(path, whole.data, whole.len);
		begin(&r, path);
		assert_int_equal(rfl_run__checkpoint_load(&r.t, &err), RFL_EFORMAT);
		end(&r);
		*byte = was;
	}
	rfl_err_clear(&err);
	rfl_buf_append(&whole, "12345678", 8);
	assert_int_equal(load_forged(path, whole.data, body + 8, &err), RFL_EFORMAT);
	assert_says(&err, "too long");
	rfl_buf_fini(&whole);
}

/* Replace a piece of the header with one of the same length. */
static void forge(const char *path, const char *from, const char *to, enum rfl_rc rc,
		  const char *says)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf file;
	struct rig one;
	char *at;

	save(path, &one);
	end(&one);
	rfl_buf_init(&file, 0);
	assert_ok(rfl_file_read(path, &file, &err), &err);
	assert_int_equal(strlen(from), strlen(to));
	at = strstr(file.data + HEADER, from);
	if (!at)
		fail_msg("no %s in %s", from, file.data + HEADER);
	memcpy(at, to, strlen(to));
	assert_int_equal(load_forged(path, file.data, file.len - sizeof(uint64_t), &err), rc);
	assert_says(&err, says);
	rfl_buf_fini(&file);
}

static void impossible_headers_are_refused(void **state)
{
	const char *path = tmp_path(*state, "a.checkpoint");

	forge(path, "\"optimizer\":1", "\"optimizer\":9", RFL_EINVAL,
	      "--optimizer 9, not --optimizer adam");
	forge(path, "\"lr\":0.001", "\"lr\":0.002", RFL_EINVAL, "--lr 0.002, not --lr 0.001");
	forge(path, "\"done\":5", "\"done\":3", RFL_EFORMAT, "position");
	forge(path, "\"done\":5", "\"done\":8", RFL_EINVAL, "measured steps");
	forge(path, "\"done\":5", "\"done\":9", RFL_EFORMAT, "position");
	forge(path, "\"done\":5", "\"done\":0", RFL_EFORMAT, "position");
	forge(path, "\"steps_per_epoch\":4", "\"steps_per_epoch\":5", RFL_EFORMAT, "position");
	forge(path, "\"samples\":9", "\"samples\":8", RFL_EINVAL, "8 training");
	forge(path, "\"data\":\"0", "\"data\":\"1", RFL_EINVAL, "another data set");
	forge(path, "\"epoch\":1", "\"epoch\":\"", RFL_EFORMAT, "");
}

/* Networks of the same name, operations and shapes that compute something else. */
static void only_the_same_network_continues(void **state)
{
	static const char text[] =
		"{\"schema\": \"roofline.net/1\", \"model\": \"mnist_cnn\", \"input\": {\"image\": "
		"[1, 4, 4]}, \"nodes\": [{\"op\": \"flatten\"}, {\"op\": \"dropout\", "
		"\"probability\": 0.%d},"
		" {\"name\": \"fc\", \"op\": \"linear\", \"out_features\": 10}]}";
	const char *path = tmp_path(*state, "a.checkpoint");

	for (int p = 2; p <= 3; p++) {
		struct rfl_err err = RFL_ERR_INIT;
		const char *file = tmp_path(*state, "own.json");
		char own[400];
		struct rig r;

		begin(&r, path);
		rfl_net_free(r.net);
		(void)snprintf(own, sizeof(own), text, p);
		put(file, own, strlen(own));
		assert_ok(rfl_net_load(file, &r.net, &err), &err);
		r.t.net = r.net;
		r.t.done = 1;
		if (p == 2) {
			assert_ok(rfl_run__checkpoint_save(&r.t, &err), &err);
		} else {
			assert_int_equal(rfl_run__checkpoint_load(&r.t, &err), RFL_EINVAL);
			assert_says(&err, "another network");
		}
		end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_folder_of_a_checkpoint_is_synced, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(what_is_saved_is_loaded, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(damaged_files_are_refused, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(impossible_headers_are_refused, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(only_the_same_network_continues, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
