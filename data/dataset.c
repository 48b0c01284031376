/*
 * dataset.c - lists an ImageFolder: classes and images, sorted. Opening the images is left to
 * others.
 */
#include "data/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

#define NAMED_SKIPS 10 /* files named one by one in the log; the rest is only counted */
#define MAX_DEPTH   16 /* of folders in a class's folder */

struct names {
	size_t n, cap;
	const char **items; /* of the arena */
};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool names_add(struct names *list, struct rfl_arena *arena, const char *name)
{
	if (rfl_grow(&list->items, &list->cap, list->n + 1, SIZE_MAX, NULL))
		return false;
	list->items[list->n] = rfl_arena_strdup(arena, name);
	if (!list->items[list->n])
		return false;
	list->n++;
	return true;
}

/* What an entry of a folder is. A link whose target is gone counts as a file: it was meant to be
 * one, and opening it gives the error. Pipes and the like are nothing. */
enum kind { NOTHING, A_FILE, A_FOLDER };

static enum kind look_at(DIR *d, const char *name)
{
	struct stat st;

	if (name[0] == '.') /* hidden, this folder, or the one above */
		return NOTHING;
	if (fstatat(dirfd(d), name, &st, 0) != 0)
		return A_FILE;
	return S_ISDIR(st.st_mode) ? A_FOLDER : S_ISREG(st.st_mode) ? A_FILE : NOTHING;
}

/* The sorted names of the folders and files in dir. @param files  NULL: they do not matter */
static enum rfl_rc list_names(const char *dir, struct rfl_arena *arena, struct names *folders,
			      struct names *files, struct rfl_err *err)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;

	if (!d)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	for (errno = 0; rc == RFL_OK && (entry = readdir(d)) != NULL; errno = 0) {
		enum kind is = look_at(d, entry->d_name);
		struct names *list = is == A_FOLDER ? folders : is == A_FILE ? files : NULL;

		if (list && !names_add(list, arena, entry->d_name))
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: too many files for the memory", dir);
	}
	if (rc == RFL_OK && errno)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	closedir(d);
	if (folders->n)
		qsort(folders->items, folders->n, sizeof(*folders->items), by_bytes);
	if (files && files->n)
		qsort(files->items, files->n, sizeof(*files->items), by_bytes);
	return rc;
}

static bool is_jpeg_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

/* The folders of a class that were read, by device and inode: a link can lead to one again, which
 * would make a scan endless, or exponential. */
struct visited {
	struct rfl_arena *arena;
	void *tree; /* of tsearch() */
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static enum rfl_rc visit(struct visited *v, const char *dir, bool *again, struct rfl_err *err)
{
	const char *id, *const *there;
	struct stat st;

	if (stat(dir, &st) != 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	id = rfl_arena_printf(v->arena, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	there = id ? tsearch(id, &v->tree, by_text) : NULL;
	if (!there)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	*again = *there != id;
	return RFL_OK;
}

static void visited_fini(struct visited *v)
{
	while (v->tree)
		(void)tdelete(*(void **)v->tree, &v->tree, by_text);
}

/* Counted growth of the set's image array, which is heap memory until the set is complete. */
struct growing {
	struct rfl_dataset *set;
	enum rfl_log_level level; /* of names of files that are left out */
	bool first_only;          /* ends with the first folder that has images, and says nothing */
	struct visited visited;
	struct rfl_dataset_image *images;
	size_t n, cap;
};

static void skip(const struct growing *g, const char *class_name, const char *name)
{
	struct rfl_dataset *set = g->set;

	set->skipped++;
	if (set->skipped > NAMED_SKIPS || g->first_only)
		return;
	rfl_log(g->level, "%s/%s/%s: not named .jpg or .jpeg, skipped", set->dir, class_name, name);
}

/* The files of one folder, which is dir/<under> of its class ("": the class's own). */
static enum rfl_rc take_files(struct growing *g, uint32_t label, const char *under,
			      const struct names *files, struct rfl_err *err)
{
	struct rfl_dataset *set = g->set;

	for (size_t i = 0; i < files->n; i++) {
		const char *name = files->items[i];

		if (under[0])
			name = rfl_arena_printf(set->arena, "%s/%s", under, name);
		if (name && !is_jpeg_name(name)) {
			skip(g, set->classes[label], name);
			continue;
		}
		if (!name || rfl_grow(&g->images, &g->cap, g->n + 1, SIZE_MAX, NULL))
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", set->dir);
		g->images[g->n++] = (struct rfl_dataset_image){ .label = label, .name = name };
	}
	return RFL_OK;
}

/* A class's files, then those of the folders in it, as torchvision goes through them. */
static enum rfl_rc list_class(struct growing *g, uint32_t label, const char *under, int depth,
			      struct rfl_err *err)
{
	struct rfl_dataset *set = g->set;
	struct names files = { .n = 0 }, folders = { .n = 0 };
	const char *dir = rfl_arena_printf(set->arena, "%s/%s%s%s", set->dir, set->classes[label],
					   under[0] ? "/" : "", under);
	bool again = false;
	enum rfl_rc rc;

	if (!dir)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", set->dir);
	rc = visit(&g->visited, dir, &again, err);
	if (again && !g->first_only)
		rfl_log(g->level, "%s: leads to a folder that is already read, skipped", dir);
	if (rc != RFL_OK || again)
		return rc;
	if (depth > MAX_DEPTH)
		return rfl_fail(err, RFL_EINVAL, 0, "%s: folders more than %d deep", dir,
				MAX_DEPTH);
	rc = list_names(dir, set->arena, &folders, &files, err);
	if (rc == RFL_OK)
		rc = take_files(g, label, under, &files, err);
	for (size_t i = 0; rc == RFL_OK && i < folders.n && !(g->first_only && g->n); i++) {
		const char *below = rfl_arena_printf(set->arena, "%s%s%s", under,
						     under[0] ? "/" : "", folders.items[i]);

		rc = below ? list_class(g, label, below, depth + 1, err)
			   : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", set->dir);
	}
	free(files.items);
	free(folders.items);
	return rc;
}

#define EXPECTED "images are expected as %s/<class>/<image>.jpg"

/* A new set with its classes. */
static enum rfl_rc new_set(const char *dir, struct rfl_dataset **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_dataset *set = arena ? rfl_arena_array(arena, 1, sizeof(*set)) : NULL;
	struct names folders = { .n = 0 };
	enum rfl_rc rc;

	if (set)
		set->dir = rfl_arena_printf(arena, "%s/train", dir);
	if (!set || !set->dir) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
		goto done;
	}
	set->arena = arena;
	if (!rfl_dir_exists(dir)) {
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: there is no such folder; " EXPECTED, dir,
			      set->dir);
		goto done;
	}
	if (!rfl_dir_exists(set->dir)) {
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: no folder 'train' in it; " EXPECTED, dir,
			      set->dir);
		goto done;
	}
	rc = list_names(set->dir, arena, &folders, NULL, err);
	if (rc == RFL_OK && folders.n == 0)
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: no class folders; " EXPECTED, set->dir,
			      set->dir);
	if (rc)
		goto done;
	set->classes = rfl_arena_array(arena, folders.n, sizeof(*set->classes));
	if (!set->classes) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
		goto done;
	}
	memcpy(set->classes, folders.items, folders.n * sizeof(*set->classes));
	set->nclasses = folders.n;
	*ret = set;
	arena = NULL;
done:
	free(folders.items);
	rfl_arena_free(arena);
	return rc;
}

static enum rfl_rc list_images(struct rfl_dataset *set, bool named, bool first_only,
			       struct rfl_err *err)
{
	struct growing g = { .set = set,
			     .level = named ? RFL_LOG_DEBUG : RFL_LOG_WARN,
			     .first_only = first_only,
			     .visited = { .arena = set->arena } };
	enum rfl_rc rc = RFL_OK;
	bool again;

	for (uint32_t c = 0; rc == RFL_OK && c < set->nclasses && !(first_only && g.n); c++) {
		/* a link back to the folder of all classes is skipped as well */
		rc = visit(&g.visited, set->dir, &again, err);
		if (rc == RFL_OK)
			rc = list_class(&g, c, "", 0, err);
		visited_fini(&g.visited);
	}
	if (rc)
		goto done;
	if (set->skipped > NAMED_SKIPS && !first_only)
		rfl_log(g.level, "%s: %zu files skipped that are not named .jpg or .jpeg", set->dir,
			set->skipped);
	if (g.n == 0) {
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: no images in its %zu class folder%s (files named .jpg or .jpeg)",
			      set->dir, set->nclasses, set->nclasses == 1 ? "" : "s");
		goto done;
	}
	set->images = rfl_arena_array(set->arena, g.n, sizeof(*set->images));
	if (!set->images) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", set->dir);
		goto done;
	}
	memcpy(set->images, g.images, g.n * sizeof(*set->images));
	set->nimages = g.n;
done:
	free(g.images);
	return rc;
}

enum rfl_rc rfl_dataset_open(const char *dir, bool named, struct rfl_dataset **ret,
			     struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc = new_set(dir, &set, err);

	if (rc == RFL_OK)
		rc = list_images(set, named, false, err);
	if (rc == RFL_OK)
		*ret = set;
	else
		rfl_dataset_free(set);
	return rc;
}

enum rfl_rc rfl_dataset_check_classes(const struct rfl_dataset *set, int64_t max_classes,
				      struct rfl_err *err)
{
	if ((int64_t)set->nclasses > max_classes)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %zu classes, but the network has %lld outputs; take a network "
				"with more, or fewer folders",
				set->dir, set->nclasses, (long long)max_classes);
	return RFL_OK;
}

enum rfl_rc rfl_dataset_probe(const char *dir, int64_t max_classes, struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc = new_set(dir, &set, err);

	if (rc == RFL_OK)
		rc = rfl_dataset_check_classes(set, max_classes, err);
	if (rc == RFL_OK)
		rc = list_images(set, true, true, err);
	rfl_dataset_free(set);
	return rc;
}

enum rfl_rc rfl_dataset_path(const struct rfl_dataset *set, size_t index, char *out, size_t size,
			     struct rfl_err *err)
{
	const struct rfl_dataset_image *image = &set->images[index];

	if ((size_t)snprintf(out, size, "%s/%s/%s", set->dir, set->classes[image->label],
			     image->name) < size)
		return RFL_OK;
	return rfl_fail(err, RFL_EIO, ENAMETOOLONG, "%s: %s", image->name, strerror(ENAMETOOLONG));
}

void rfl_dataset_free(struct rfl_dataset *set)
{
	if (set)
		rfl_arena_free(set->arena);
}
