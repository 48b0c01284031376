/*
 * checkpoint.c - files from which a training run continues: a line with the version, a JSON header,
 * the parts of the engine's state, the measured steps, and a checksum of everything before it.
 * Numbers are in the byte order of the machine.
 */
#include "runner/run/training.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "complexity/net/file.h"

#define MAGIC     "roofline checkpoint 1\n"
#define MAGIC_LEN (sizeof(MAGIC) - 1)
#define FAMILY    "roofline checkpoint "
#define STEPS     "measured steps"
#define BYTES_MAX ((size_t)1 << 40)

/* ---- the header ---- */

#define M(kind, key, path) RFL_RUN__MEMBER(struct rfl_run__training, kind, key, path)

/* Where a training is. */
static const struct rfl_member position[] = {
	M(INT, "samples", samples),
	M(INT, "test_samples", test_samples),
	M(INT, "steps_per_epoch", per_epoch),
	M(INT, "done", done),
	M(INT, "rows", sums.rows),
	M(INT, "correct", sums.correct),
	M(REAL, "loss", sums.loss),
	M(REAL, "train_s", train_s),
	{ .key = NULL },
};

static json_t *header_of(const struct rfl_run__training *t, const char *hash)
{
	json_t *epochs = json_array();

	for (size_t i = 0; i < t->epochs.n; i++)
		if (json_array_append_new(epochs, rfl_run__pack_members("epoch", rfl_run__epoch,
									&t->epochs.rows[i])) != 0) {
			json_decref(epochs);
			return NULL;
		}
	return rfl_run__to_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "model",
					  t->net->model, "network", hash, "engine", t->engine_id,
					  "device", t->device, "data", t->data_digest, "settings",
					  rfl_run__training_to_json(t->config), "wall_s",
					  rfl_json_real(t->burst->wall_s), "epochs", epochs),
				position, t);
}

/* ---- writing ---- */

struct out {
	FILE *f;
	uint64_t hash;
	int failed; /* errno of the first failure */
};

static void put(struct out *o, const void *data, size_t bytes)
{
	o->hash = rfl_hash64(o->hash, data, bytes);
	if (!o->failed && bytes > 0 && fwrite(data, 1, bytes, o->f) != bytes)
		o->failed = errno;
}

static enum rfl_rc put_part(const char *name, void *data, size_t bytes, void *ctx,
			    struct rfl_err *err)
{
	const uint64_t sizes[2] = { strlen(name), bytes };
	struct out *o = ctx;

	(void)err;
	put(o, sizes, sizeof(sizes));
	put(o, name, sizes[0]);
	put(o, data, bytes);
	return RFL_OK;
}

enum rfl_rc rfl_run__checkpoint_save(struct rfl_run__training *t, struct rfl_err *err)
{
	const char *path = t->config->checkpoint;
	json_auto_t *header = NULL;
	char *name = NULL, hash[17];
	RFL_AUTOFREE char *text = NULL;
	struct out o = { .f = NULL };
	uint64_t len;
	enum rfl_rc rc = rfl_net_digest(t->net, hash, err);

	if (rc)
		goto done;
	header = header_of(t, hash);
	text = json_dumps(header, JSON_COMPACT);
	if ((rc = rfl_file_mkdirs_for(path, err)) ||
	    (rc = rfl_file_neighbour(path, &name, &o.f, err)))
		goto done;
	len = strlen(text);
	put(&o, MAGIC, MAGIC_LEN);
	put(&o, &len, sizeof(len));
	put(&o, text, len);
	rc = t->ops->visit_state(t->engine, false, put_part, &o, err);
	if (rc == RFL_OK)
		rc = put_part(STEPS, t->burst->steps, (size_t)t->done * sizeof(*t->burst->steps),
			      &o, err);
	len = o.hash;
	put(&o, &len, sizeof(len));
	if (rc == RFL_OK && o.failed)
		rc = rfl_fail(err, RFL_EIO, o.failed, "%s: cannot write the checkpoint: %s", path,
			      strerror(o.failed));
	rc = rfl_file_replace(o.f, name, path, rc, err);
	if (rc == RFL_OK)
		t->saved = t->done;
done:
	return rc;
}

/* ---- reading ---- */

struct in {
	const char *path;
	const char *at, *end;
};

#define OTHER "; use the file of this training run, or leave out --resume to start again"

static enum rfl_rc damaged(const char *path, const char *how, struct rfl_err *err)
{
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: %s; remove the file, or leave out --resume to start again", path, how);
}

static bool take(struct in *in, void *to, size_t bytes)
{
	if ((size_t)(in->end - in->at) < bytes)
		return false;
	memcpy(to, in->at, bytes);
	in->at += bytes;
	return true;
}

/* The parts come in the order of the visit, with the sizes that the engine expects. */
static enum rfl_rc take_part(const char *name, void *data, size_t bytes, void *ctx,
			     struct rfl_err *err)
{
	struct in *in = ctx;
	uint64_t sizes[2];

	if (!take(in, sizes, sizeof(sizes)) || (size_t)(in->end - in->at) < sizes[0])
		return rfl_fail(err, RFL_EINVAL, 0, "%s: has no '%s'" OTHER, in->path, name);
	if (sizes[0] != strlen(name) || memcmp(in->at, name, sizes[0]) != 0 || sizes[1] != bytes)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: has %.*s of %" PRIu64 " bytes instead of %s of %zu" OTHER,
				in->path, (int)(sizes[0] < 200 ? sizes[0] : 200), in->at, sizes[1],
				name, bytes);
	in->at += sizes[0];
	return take(in, data, bytes) ? RFL_OK : damaged(in->path, "too short", err);
}

/* Check version and checksum, and read the header. */
static enum rfl_rc open_file(struct in *in, json_t **ret, struct rfl_err *err)
{
	const size_t size = (size_t)(in->end - in->at);
	const char *start = in->at;
	uint64_t len, hash;

	if (size < MAGIC_LEN || memcmp(start, MAGIC, MAGIC_LEN) != 0) {
		if (size >= MAGIC_LEN && memcmp(start, FAMILY, sizeof(FAMILY) - 1) == 0)
			return damaged(in->path, "a checkpoint of another version of this program",
				       err);
		return damaged(in->path, "not a checkpoint, or damaged", err);
	}
	in->at += MAGIC_LEN;
	in->end -= sizeof(hash);
	if (size < MAGIC_LEN + 2 * sizeof(len))
		return damaged(in->path, "damaged: too short", err);
	memcpy(&hash, in->end, sizeof(hash));
	if (hash != rfl_hash64(0, start, size - sizeof(hash)))
		return damaged(in->path, "damaged: the checksum is wrong", err);
	if (!take(in, &len, sizeof(len)) || (size_t)(in->end - in->at) < len)
		return damaged(in->path, "damaged: too short", err);
	if (rfl_json_loads(in->at, len, in->path, ret, err) != RFL_OK)
		return RFL_EFORMAT;
	in->at += len;
	return RFL_OK;
}

static enum rfl_rc same_text(const char *path, const json_t *header, const char *key,
			     const char *own, const char *what, struct rfl_err *err)
{
	const char *text = json_string_value(json_object_get(header, key));

	if (rfl_text_same(text, own))
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "%s: a checkpoint of %s %s, not %s" OTHER, path, what,
			text ? text : "(none)", own);
}

static enum rfl_rc same_settings(const char *path, const json_t *header,
				 const struct rfl_run_config *c, struct rfl_err *err)
{
	const json_t *theirs = json_object_get(header, "settings"), *value;
	json_auto_t *own = rfl_run__training_to_json(c);
	enum rfl_rc rc = RFL_OK;
	const char *key;

	json_object_foreach(own, key, value)
	{
		const json_t *other = json_object_get(theirs, key);
		char was[256], is[256];

		if (rc || json_equal(value, other))
			continue;
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: was written with %s, not %s; use the same value, or leave out "
			      "--resume to start again",
			      path, rfl_run__setting_text(key, other, was, sizeof(was)),
			      rfl_run__setting_text(key, value, is, sizeof(is)));
	}
	return rc;
}

/* @param was  the position in the file */
static enum rfl_rc check_header(const struct rfl_run__training *t, const json_t *header,
				struct rfl_run__training *was, struct rfl_err *err)
{
	const char *path = t->config->checkpoint;
	const int64_t epochs = (int64_t)json_array_size(json_object_get(header, "epochs"));
	const bool whole = rfl_run__from_json(position, header, was);
	const char *data = json_string_value(json_object_get(header, "data"));
	const int64_t done = was->done;
	char hash[17];
	enum rfl_rc rc;

	if ((rc = rfl_net_digest(t->net, hash, err)) ||
	    (rc = same_text(path, header, "model", t->net->model, "network", err)) ||
	    (rc = same_text(path, header, "device", t->device, "device", err)) ||
	    (rc = same_text(path, header, "engine", t->engine_id, "engine", err)) ||
	    (rc = same_settings(path, header, t->config, err)))
		return rc;
	if (!rfl_text_same(json_string_value(json_object_get(header, "network")), hash))
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: a checkpoint of another network, which is also called %s" OTHER, path,
			t->net->model);
	if (was->samples != t->samples || was->test_samples != t->test_samples)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: a checkpoint of a data set with %" PRId64
				" training and %" PRId64 " test samples, not %" PRId64
				" and %" PRId64 OTHER,
				path, was->samples, was->test_samples, t->samples, t->test_samples);
	if (data && strcmp(data, t->data_digest) != 0) /* version 0.1.0 has none */
		return rfl_fail(err, RFL_EINVAL, 0, "%s: a checkpoint of another data set" OTHER,
				path);
	/* the last epoch is missing if it ended, but was not evaluated */
	if (!whole || done < 1 || was->per_epoch != t->per_epoch ||
	    (epochs != done / t->per_epoch &&
	     (done % t->per_epoch != 0 || epochs + 1 != done / t->per_epoch)))
		return damaged(path, "damaged: the position is not valid", err);
	if (done > t->burst->nsteps)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: already has %" PRId64 " epochs; use --epochs %" PRId64
				" or more",
				path, (done + t->per_epoch - 1) / t->per_epoch,
				(done + t->per_epoch - 1) / t->per_epoch);
	return RFL_OK;
}

enum rfl_rc rfl_run__checkpoint_load(struct rfl_run__training *t, struct rfl_err *err)
{
	const char *path = t->config->checkpoint;
	struct in in = { .path = path };
	struct rfl_run__training was = { .done = 0 };
	json_auto_t *header = NULL;
	const json_t *item;
	RFL_AUTO(buf) file = { .max = BYTES_MAX };
	enum rfl_rc rc;
	size_t i;

	if (!rfl_file_exists(path))
		return RFL_OK;
	rc = rfl_file_read(path, &file, err);
	if (rc)
		return rc;
	in.at = rfl_buf_str(&file);
	in.end = in.at + file.len;
	if ((rc = open_file(&in, &header, err)) || (rc = check_header(t, header, &was, err)) ||
	    (rc = t->ops->visit_state(t->engine, true, take_part, &in, err)))
		return rc;
	t->done = t->saved = was.done;
	t->sums = was.sums;
	t->train_s = was.train_s;
	item = json_object_get(header, "wall_s");
	t->burst->wall_s = json_is_number(item) ? json_number_value(item) : (double)NAN;
	rc = take_part(STEPS, t->burst->steps, (size_t)t->done * sizeof(*t->burst->steps), &in,
		       err);
	json_array_foreach(json_object_get(header, "epochs"), i, item)
	{
		struct rfl_epoch row;

		if (!json_object_get(item, "test_samples")) /* a checkpoint of version 0.1.0 */
			(void)json_object_set_new((json_t *)(uintptr_t)item, "test_samples",
						  json_integer(RFL_UNKNOWN));
		if (rc == RFL_OK && !rfl_run__from_json(rfl_run__epoch, item, &row))
			rc = damaged(path, "damaged: an epoch has no valid numbers", err);
		if (rc == RFL_OK)
			rfl_epochs_add(&t->epochs, &row);
	}
	if (rc == RFL_OK && in.at != in.end)
		rc = damaged(path, "damaged: too long", err);
	return rc;
}
