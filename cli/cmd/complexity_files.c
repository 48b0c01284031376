/*
 * complexity_files.c - what roofline complexity writes beside standard output: the document and a
 * list of layers per network (--output-dir), and the networks themselves (--write-net).
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "complexity/net/file.h"

/* A model at several contexts has the context in the names of its files. */
static bool same_file(const struct rfl_complexity_report *r, const struct rfl_summary *a,
		      const struct rfl_summary *b)
{
	return strcmp(a->name, b->name) == 0 &&
	       (r->args->contexts.n < 2 || a->context_length == b->context_length);
}

/* Files of one name would replace each other. */
static enum rfl_rc check_names(const struct rfl_complexity_report *r, const char *dir,
			       struct rfl_err *err)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < i; k++)
			if (same_file(r, r->items[i], r->items[k]))
				return rfl_fail(err, RFL_EUSAGE, 0,
						"%s: two networks are called %s, and only one file "
						"can be",
						dir, r->items[i]->name);
	return RFL_OK;
}

/* "DIR/gpt2.txt", "DIR/gpt2-256.txt". Free it. */
static enum rfl_rc path_of(const struct rfl_complexity_report *r, const struct rfl_summary *s,
			   const char *dir, const char *suffix, char **ret, struct rfl_err *err)
{
	struct rfl_buf name;
	enum rfl_rc rc;

	rfl_buf_init(&name, 0);
	if (s->context_length && r->args->contexts.n > 1)
		rfl_buf_printf(&name, "%s-%lld%s", s->name, (long long)s->context_length, suffix);
	else
		rfl_buf_printf(&name, "%s%s", s->name, suffix);
	rc = rfl_buf_check(&name, dir, err);
	if (rc == RFL_OK) {
		*ret = rfl_path_join(dir, rfl_buf_str(&name));
		if (!*ret)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	}
	rfl_buf_fini(&name);
	return rc;
}

static enum rfl_rc write_text(const struct rfl_complexity_report *r, struct rfl_summary *s,
			      struct rfl_err *err)
{
	struct rfl_buf text;
	char *path = NULL;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_summary_text(s, &r->options, &text, err);
	if (rc == RFL_OK)
		rc = path_of(r, s, r->args->output_dir, ".txt", &path, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	free(path);
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_complexity_write_dir(const struct rfl_complexity_report *r, json_t *document,
				     struct rfl_err *err)
{
	const char *dir = r->args->output_dir;
	char *path = NULL;
	enum rfl_rc rc = check_names(r, dir, err);

	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	if (rc != RFL_OK)
		return rc;
	path = rfl_path_join(dir, "summary.json");
	rc = path ? rfl_json_save(path, document, err)
		  : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	free(path);
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = write_text(r, r->items[i], err);
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %s/summary.json and %zu list%s of layers", dir, r->n,
			r->n == 1 ? "" : "s");
	return rc;
}

static enum rfl_rc write_net(const struct rfl_complexity_report *r, const struct rfl_summary *s,
			     struct rfl_err *err)
{
	char *path = NULL;
	enum rfl_rc rc = path_of(r, s, r->args->write_net, ".json", &path, err);

	if (rc == RFL_OK)
		rc = rfl_net_save(path, s->net, err);
	free(path);
	return rc;
}

enum rfl_rc rfl_complexity_write_nets(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	const char *dir = r->args->write_net;
	enum rfl_rc rc = check_names(r, dir, err);

	if (rc == RFL_OK)
		rc = rfl_file_mkdirs(dir, err);
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = write_net(r, r->items[i], err);
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %zu network%s to %s", r->n, r->n == 1 ? "" : "s", dir);
	return rc;
}
