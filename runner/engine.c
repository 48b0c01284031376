/* engine.c - the registry of engines: finds and opens their plugins. */
#include "runner/engine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/dl.h"
#include "data/fill.h"
#include "machine/torch.h"

/* Known engines in order of preference. Every list contains them, even without a plugin. */
static const struct {
	const char *name, *summary, *missing;
	const char *of; /* the part of a plugin's id without which it is missing; NULL: any */
} known[] = {
	{
		.name = "torch",
		.summary = "PyTorch's operations and autograd from libtorch",
#ifdef RFL_TORCH_ENGINES
		.missing =
			"no PyTorch " RFL_TORCH_ENGINES " was found: run 'pip install torch' in "
			"the environment of this program, or link the directory torch of another "
			"as lib/roofline/torch (docs/guide/install.md)",
#elif defined(RFL_TORCH_ADVICE)
		.missing = "no plugin engine_torch-*.so found: " RFL_TORCH_ADVICE,
#else
		.missing = "no plugin engine_torch-*.so found (libtorch was " RFL_TORCH_WHY
			   " when this program was configured): install libtorch-dev, or point "
			   "CMAKE_PREFIX_PATH to PyTorch, and rebuild with -DRFL_TORCH=ON",
#endif
	},
	{
		.name = "planned",
		.summary = "a plan of the whole step, run by the libraries under a framework",
		.missing = "no plugin engine_planned-*-onednn.so for CPUs found (oneDNN "
			   "was " RFL_ONEDNN_WHY
			   " when this program was configured): install libdnnl-dev, and rebuild "
			   "with -DRFL_ONEDNN=ON",
		.of = "-onednn",
	},
};

#define PLUGIN_PREFIX "engine_"
#define PLUGIN_SUFFIX ".so"

struct rfl_engine_list {
	struct rfl_engine_row *rows;
	size_t n, cap;
	struct rfl_arena *arena; /* owns the strings */
};

/* ---- the list ---- */

/* Parse a number and advance past it; an overlong number becomes LLONG_MAX. */
static long long take_number(const char **text)
{
	long long n = 0;

	for (; isdigit((unsigned char)**text); ++*text)
		n = n < LLONG_MAX / 100 ? 10 * n + (**text - '0') : LLONG_MAX;
	return n;
}

/* Compare numerically: "2.11" is newer than "2.9". */
static int compare_versions(const char *a, const char *b)
{
	for (;;) {
		const long long x = take_number(&a), y = take_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
		if (*a != '.' || *b != '.')
			return (*a == '.') - (*b == '.');
		a++;
		b++;
	}
}

/* Sort key of an engine: known engines come first, in their order. */
static size_t rank_of(const char *name)
{
	size_t i = 0;

	while (i < RFL_ARRAY_LEN(known) && strcmp(name, known[i].name) != 0)
		i++;
	return i;
}

/* Known engines first, the newest library first, then by name. */
static int compare_rows(const void *a, const void *b)
{
	const struct rfl_engine_row *x = a, *y = b;
	const size_t rx = rank_of(x->name), ry = rank_of(y->name);
	int order = strcmp(x->name, y->name);

	if (rx != ry)
		return rx < ry ? -1 : 1;
	if (order == 0)
		order = compare_versions(y->version, x->version);
	return order ? order : strcmp(x->id, y->id);
}

static void add_row(struct rfl_engine_list *list, struct rfl_engine_row row)
{
	rfl_reserve(&list->rows, &list->cap, list->n + 1);
	list->rows[list->n++] = row;
}

/* engine_<name>-<version>-<variant>.so; other files are ignored, and plugins that an earlier
 * directory has, too. */
static void add_file(struct rfl_engine_list *list, const char *dir, const char *file)
{
	const size_t n = strlen(file), prefix = strlen(PLUGIN_PREFIX),
		     suffix = strlen(PLUGIN_SUFFIX);
	const char *id = file + prefix;
	struct rfl_engine_row row = { .summary = "a plugin" };
	int name, version;
	size_t rank;

	if (n <= prefix + suffix || strncmp(file, PLUGIN_PREFIX, prefix) != 0 ||
	    strcmp(file + n - suffix, PLUGIN_SUFFIX) != 0)
		return;
	id = rfl_arena_printf(list->arena, "%.*s", (int)(n - prefix - suffix), id);
	name = (int)strcspn(id, "-");
	version = id[name] ? (int)strcspn(id + name + 1, "-") : 0;
	if (name == 0 || version == 0 || id[name + 1 + version] != '-' || !id[name + version + 2])
		return;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->rows[i].id, id) == 0)
			return;
	row.id = id;
	row.name = rfl_arena_printf(list->arena, "%.*s", name, id);
	row.version = rfl_arena_printf(list->arena, "%.*s", version, id + name + 1);
	row.path = rfl_arena_printf(list->arena, "%s/%s", dir, file);
	rank = rank_of(row.name);
	if (rank < RFL_ARRAY_LEN(known))
		row.summary = known[rank].summary;
	add_row(list, row);
}

/* "torch", "planned-onednn" */
static const char *id_of(const struct rfl_engine_list *list, size_t k)
{
	return rfl_arena_printf(list->arena, "%s%s", known[k].name, known[k].of ? known[k].of : "");
}

static bool provides(const struct rfl_engine_row *row, const char *name, const char *of)
{
	return strcmp(row->name, name) == 0 && (!of || strstr(row->id, of));
}

enum rfl_rc rfl_engine_list_new(const char *const *dirs, struct rfl_engine_list **ret,
				struct rfl_err *err)
{
	struct rfl_engine_list *list = rfl_alloc_array(1, sizeof(*list));
	struct dirent *entry;
	size_t i;
	DIR *d;

	list->arena = rfl_arena_new();
	for (; *dirs; dirs++) {
		d = opendir(*dirs);
		if (!d && errno != ENOENT && errno != ENOTDIR) { /* else it has no plugins */
			rfl_engine_list_free(list);
			return rfl_fail(err, RFL_EIO, errno, "%s: %s", *dirs, strerror(errno));
		}
		while (d && (entry = readdir(d)))
			add_file(list, *dirs, entry->d_name);
		if (d)
			(void)closedir(d);
	}
	for (size_t k = 0; k < RFL_ARRAY_LEN(known); k++) {
		for (i = 0; i < list->n && !provides(&list->rows[i], known[k].name, known[k].of);)
			i++;
		if (i == list->n)
			add_row(list, (struct rfl_engine_row){
					      .name = known[k].name,
					      .id = id_of(list, k),
					      .version = "",
					      .summary = known[k].summary,
					      .missing = known[k].missing,
				      });
	}
	qsort(list->rows, list->n, sizeof(*list->rows), compare_rows);
	*ret = list;
	return RFL_OK;
}

void rfl_engine_list_free(struct rfl_engine_list *list)
{
	if (!list)
		return;
	rfl_arena_free(list->arena);
	free(list->rows);
	free(list);
}

const struct rfl_engine_row *rfl_engine_list_at(const struct rfl_engine_list *list, size_t i)
{
	return i < list->n ? &list->rows[i] : NULL;
}

/* ---- opening ---- */

/* The planned engine runs few networks: the others are tried first. */
static bool is_last(const struct rfl_engine_row *row)
{
	return strcmp(row->name, "planned") == 0;
}

#define OTHERS "any but planned"

/* "auto", OTHERS, "torch", "torch@2.11" or "torch-2.11-cu130". */
static bool wanted(const char *want, const struct rfl_engine_row *row)
{
	const size_t name = strcspn(want, "@");

	if (strcmp(want, OTHERS) == 0)
		return !is_last(row);
	if (strcmp(want, "auto") == 0 || strcmp(want, row->id) == 0)
		return true;
	if (strlen(row->name) != name || strncmp(want, row->name, name) != 0)
		return false;
	return want[name] == '\0' || row->missing || strcmp(want + name + 1, row->version) == 0;
}

const char *rfl_engine_on_any(const struct rfl_engine_list *list, const char *want)
{
	for (size_t i = 0; strcmp(want, "auto") == 0 && i < list->n; i++)
		if (!is_last(&list->rows[i]) && !list->rows[i].missing)
			return OTHERS;
	return want;
}

static enum rfl_rc open_plugin(const struct rfl_engine_row *row, enum rfl_device device,
			       const struct rfl_engine_ops **ret, struct rfl_err *err)
{
	const char *const names[] = { row->path, NULL };
	rfl_engine_plugin_fn entry = NULL;
	const struct rfl_dl_symbol symbols[] = {
		{ .name = RFL_ENGINE_PLUGIN_SYMBOL, .slot = &entry },
	};
	const struct rfl_engine_ops *ops;
	struct rfl_dl *dl = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_torch_load(row->path, &why);

	if (rc == RFL_OK)
		rc = rfl_dl_open(names, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), &dl, &why);
	if (rc != RFL_OK)
		/* only this failure's message lacks a remedy */
		return rfl_fail(
			err, why.rc, why.native, "%s%s", why.msg,
			strstr(why.msg, "cannot open shared object file")
				? ": install the library that the plugin was built with, or add "
				  "its directory to LD_LIBRARY_PATH (docs/internals/engines.md)"
				: "");
	ops = entry(RFL_ENGINE_ABI);
	rfl_dl_close(dl); /* the plugin stays mapped */
	if (!ops)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"%s: built for another version of this program, not for engine ABI "
				"%d; rebuild it",
				row->path, RFL_ENGINE_ABI);
	rc = ops->probe(device, err);
	if (rc == RFL_OK)
		*ret = ops;
	return rc;
}

enum rfl_rc rfl_engine_load(const struct rfl_engine_list *list, const char *want,
			    enum rfl_device device, const struct rfl_engine_ops **ret,
			    struct rfl_err *err)
{
	RFL_AUTO(buf) reasons = { .max = RFL_ERR_MSG_MAX / 2 };
	size_t tried = 0;
	enum rfl_rc rc = RFL_EUNAVAILABLE;

	for (size_t i = 0; i < 2 * list->n && rc != RFL_OK; i++) {
		const struct rfl_engine_row *row = &list->rows[i % list->n];
		struct rfl_err why = RFL_ERR_INIT;

		if (!wanted(want, row) || is_last(row) != (i >= list->n))
			continue;
		rc = row->missing ? rfl_fail(&why, RFL_EUNAVAILABLE, 0, "%s", row->missing)
				  : open_plugin(row, device, ret, &why);
		rfl_buf_printf(&reasons, "%s%s: %s", tried++ ? "; " : "", row->id, why.msg);
	}
	if (tried == 0) {
		for (size_t i = 0; i < list->n; i++)
			rfl_buf_printf(&reasons, "%s%s", i ? ", " : "", list->rows[i].id);
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "no engine '%s'; available: %s (see 'roofline list engines')", want,
			      rfl_buf_str(&reasons));
	} else if (rc != RFL_OK) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "no engine for device '%s': %s",
			      rfl_device_names[device], rfl_buf_str(&reasons));
	}
	return rc;
}

enum rfl_rc rfl_fill_engine(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			    const struct rfl_net *net, int threads, struct rfl_err *err)
{
	RFL_AUTOFREE struct rfl_fill_job *jobs =
		rfl_alloc_array((size_t)net->nparams, sizeof(*jobs));
	RFL_AUTOFREE float *copy = NULL;
	size_t njobs = 0, largest = 0;
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < net->nparams; i++) {
		float *out = ops->param_data(engine, i);

		if (out)
			jobs[njobs++] = rfl_fill_job_of(&net->params[i], out);
		else if ((size_t)net->params[i].numel > largest)
			largest = (size_t)net->params[i].numel;
	}
	rfl_fill_run(jobs, njobs, threads);

	/* parameters that cannot be filled in place are copied */
	copy = rfl_try_array(largest, sizeof(*copy));
	if (!copy)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
	for (int i = 0; i < net->nparams && rc == RFL_OK; i++) {
		const struct rfl_fill_job job = rfl_fill_job_of(&net->params[i], copy);

		if (ops->param_data(engine, i))
			continue;
		rfl_fill_run(&job, 1, threads);
		rc = ops->set_param(engine, i, copy, net->params[i].numel, err);
	}
	return rc;
}
