/*
 * folder.c - lists the classes and images of a directory in sorted order, and loads the JPEG files
 * as samples: reads them from disk or a cache in memory, decodes, resizes and flips them.
 */
#include "data/parts.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "data/jpeg.h"
#include "data/transform.h"

#define NAMED_SKIPS 10   /* skipped files to name in the log */
#define MAX_DEPTH   16   /* levels of subdirectories in a class */
#define MAX_SIZE    8192 /* width and height of an input */
#define MAX_READERS 16

#define FILE_MAX ((size_t)256 << 20) /* larger files are rejected */

/* ---- the list ---- */

struct names {
	size_t n;
	const char **items;
};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_image(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

/* Get the sorted names of the directories and, unless NULL, the files in dir.
 * @param digest  the names and sizes of the images are added, in any order */
static enum rfl_rc list_names(const char *dir, struct rfl_arena *arena, struct names *folders,
			      struct names *files, uint64_t *digest, struct rfl_err *err)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	enum rfl_rc rc = RFL_OK;

	if (!d)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	for (errno = 0; (entry = readdir(d)) != NULL; errno = 0) {
		struct names *list = files;
		const char **name;
		int64_t size = -1;
		struct stat st;

		if (entry->d_name[0] == '.') /* hidden, "." or ".." */
			continue;
		/* a dangling link counts as a file, because opening it reports the error; special
		 * files are ignored */
		if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0) {
			size = st.st_size;
			if (!S_ISREG(st.st_mode))
				list = S_ISDIR(st.st_mode) ? folders : NULL;
		}
		if (!list)
			continue;
		if (list != folders && is_image(entry->d_name))
			*digest += rfl_hash64(rfl_hash64(0, entry->d_name, strlen(entry->d_name)),
					      &size, sizeof(size));
		name = rfl_arena_append(arena, &list->items, &list->n);
		*name = rfl_arena_strdup(arena, entry->d_name);
	}
	if (errno)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	closedir(d);
	if (folders->n)
		qsort(folders->items, folders->n, sizeof(*folders->items), by_bytes);
	if (files && files->n)
		qsort(files->items, files->n, sizeof(*files->items), by_bytes);
	return rc;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* State while a directory is listed. */
struct listing {
	struct rfl_dataset *set;
	enum rfl_log_level level; /* log level of skipped files */
	bool first;               /* stop at the first directory with images, and log nothing */
	/* The directories of a class read so far, by device and inode, in a tree of tsearch():
	 * links can make a scan endless or exponential. */
	void *visited;
};

static enum rfl_rc visit(struct listing *g, const char *dir, bool *again, struct rfl_err *err)
{
	const char *id, *const *there;
	struct stat st;

	if (stat(dir, &st) != 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", dir, strerror(errno));
	id = rfl_arena_printf(g->set->arena, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	there = tsearch(id, &g->visited, by_text);
	if (!there)
		rfl_out_of_memory();
	*again = *there != id;
	return RFL_OK;
}

/* List the files of a class directory or a subdirectory, then its subdirectories, in torchvision's
 * order.
 * @param under  path below the class directory */
static enum rfl_rc list_class(struct listing *g, uint32_t label, const char *under, int depth,
			      struct rfl_err *err)
{
	struct rfl_dataset *set = g->set;
	struct names files = { .n = 0 }, folders = { .n = 0 };
	const char *slash = under[0] ? "/" : "";
	const char *dir = rfl_arena_printf(set->arena, "%s/%s%s%s", set->dir, set->classes[label],
					   slash, under);
	uint64_t digest = 0;
	bool again = false;
	enum rfl_rc rc = visit(g, dir, &again, err);

	if (again && !g->first)
		rfl_log(g->level, "%s: skipped: links to a directory that was already read", dir);
	if (rc != RFL_OK || again)
		return rc;
	if (depth > MAX_DEPTH)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: directories more than %d deep; move the images up", dir,
				MAX_DEPTH);
	rc = list_names(dir, set->arena, &folders, &files, &digest, err);
	set->digest += rfl_hash64(digest, dir + strlen(set->dir), strlen(dir) - strlen(set->dir));
	for (size_t i = 0; rc == RFL_OK && i < files.n; i++) {
		const char *name = files.items[i];
		struct rfl_dataset_image *image;

		if (!is_image(name)) {
			if (set->skipped++ < NAMED_SKIPS && !g->first)
				rfl_log(g->level, "%s/%s: skipped: not named .jpg or .jpeg", dir,
					name);
			continue;
		}
		if (under[0])
			name = rfl_arena_printf(set->arena, "%s/%s", under, name);
		image = rfl_arena_append(set->arena, &set->images, &set->nimages);
		*image = (struct rfl_dataset_image){ .label = label, .name = name };
	}
	for (size_t i = 0; rc == RFL_OK && i < folders.n && !(g->first && set->nimages); i++)
		rc = list_class(
			g, label,
			rfl_arena_printf(set->arena, "%s%s%s", under, slash, folders.items[i]),
			depth + 1, err);
	return rc;
}

#define EXPECTED "store images as %s/<class>/<image>.jpg"

enum rfl_rc rfl_dataset_open(const char *dir, const char *part, int64_t max_classes, bool first,
			     bool named, struct rfl_dataset **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_dataset *set = rfl_arena_array(arena, 1, sizeof(*set));
	struct listing g = {
		.set = set,
		.level = named ? RFL_LOG_DEBUG : RFL_LOG_WARN,
		.first = first,
	};
	struct names folders = { .n = 0 };
	bool again;
	enum rfl_rc rc = RFL_OK;

	set->arena = arena;
	set->dir = rfl_arena_printf(arena, "%s/%s", dir, part);
	if (!rfl_dir_exists(dir))
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: no such directory; " EXPECTED, dir,
			      set->dir);
	else if (!rfl_dir_exists(set->dir))
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: contains no directory '%s'; " EXPECTED, dir,
			      part, set->dir);
	else
		rc = list_names(set->dir, arena, &folders, NULL, NULL, err);
	set->classes = folders.items;
	set->nclasses = folders.n;
	if (rc == RFL_OK && set->nclasses == 0)
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: no class directories; " EXPECTED, set->dir,
			      set->dir);
	else if (rc == RFL_OK && (int64_t)set->nclasses > max_classes)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: %zu classes, but the network has %lld outputs; use a network "
			      "with more outputs, or fewer directories",
			      set->dir, set->nclasses, (long long)max_classes);
	for (uint32_t c = 0; rc == RFL_OK && c < set->nclasses && !(first && set->nimages); c++) {
		/* also skip links back to the directory of all classes */
		rc = visit(&g, set->dir, &again, err);
		if (rc == RFL_OK)
			rc = list_class(&g, c, "", 0, err);
		while (g.visited)
			(void)tdelete(*(void **)g.visited, &g.visited, by_text);
	}
	if (rc == RFL_OK && set->skipped > NAMED_SKIPS && !first)
		rfl_log(g.level, "%s: skipped %zu files not named .jpg or .jpeg", set->dir,
			set->skipped);
	if (rc == RFL_OK && set->nimages == 0)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: no images in its %zu class directory%s; add .jpg or .jpeg files",
			      set->dir, set->nclasses, set->nclasses == 1 ? "" : "s");
	if (rc == RFL_OK)
		*ret = set;
	else
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

/* ---- the cache of all files ---- */

struct cache {
	const struct rfl_dataset *set;
	struct {
		size_t at, size; /* position in the block; size 0: not cached */
	} * entries;
	uint8_t *block;
	atomic_size_t next; /* next image to read into the cache */
};

static void cache_free(struct cache *c)
{
	if (!c)
		return;
	free(c->entries);
	free(c->block);
	free(c);
}

/* Read files into the block. A file that has become shorter or is unreadable is not cached. */
static void *reader_main(void *arg)
{
	struct cache *c = arg;
	RFL_AUTO(buf) file = { .max = FILE_MAX };
	char path[4096];
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->set->nimages) {
		size_t *kept = &c->entries[i].size;

		rfl_buf_reset(&file);
		if (*kept > 0 && rfl_dataset_path(c->set, i, path, sizeof(path), NULL) == RFL_OK &&
		    rfl_file_read(path, &file, NULL) == RFL_OK && file.len >= *kept)
			memcpy(c->block + c->entries[i].at, file.data, *kept);
		else
			*kept = 0;
	}
	return NULL;
}

/* @param most  bytes to cache; 0: nine tenths of the free memory. Unreadable files are not cached:
 * the error is reported when they are needed. */
static enum rfl_rc cache_new(const struct rfl_dataset *set, int64_t most, int readers,
			     struct cache **ret, struct rfl_err *err)
{
	struct cache *c = rfl_alloc_array(1, sizeof(*c));
	char need[RFL_NUM_MAX], have[RFL_NUM_MAX];
	pthread_t threads[MAX_READERS];
	size_t total = 0;
	int64_t available;
	enum rfl_rc rc;
	int n = 0;

	c->entries = rfl_alloc_array(set->nimages, sizeof(*c->entries));
	c->set = set;
	for (size_t i = 0; i < set->nimages; i++) {
		char path[4096];
		struct stat st;

		c->entries[i].at = total;
		if (rfl_dataset_path(set, i, path, sizeof(path), NULL) || stat(path, &st) != 0 ||
		    st.st_size < 0 || (uintmax_t)st.st_size > FILE_MAX)
			continue; /* not cached */
		c->entries[i].size = (size_t)st.st_size;
		total += c->entries[i].size;
	}
	rc = rfl_data__room(&available, err);
	if (rc)
		goto done;
	if (most <= 0 || most > available)
		most = available;
	if (total > (uint64_t)most) {
		rfl_num_bytes((double)total, need, sizeof(need));
		rfl_num_bytes((double)most, have, sizeof(have));
		rc = rfl_fail(err, RFL_ENOMEM, 0,
			      "%s: %zu images need %s, but the cache is limited to %s; use "
			      "imagefolder, which reads them as needed",
			      set->dir, set->nimages, need, have);
		goto done;
	}
	c->block = rfl_try_array(total, 1);
	if (!c->block) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: cache of %zu bytes: out of memory", set->dir,
			      total);
		goto done;
	}

	/* if a thread cannot start, the others read its share */
	while (n < MAX_READERS - 1 && n < readers - 1 &&
	       pthread_create(&threads[n], NULL, reader_main, c) == 0)
		n++;
	reader_main(c);
	while (n > 0)
		pthread_join(threads[--n], NULL);
	*ret = c;
	c = NULL;
done:
	cache_free(c);
	return rc;
}

/* ---- samples ---- */

/* Mean and standard deviation of ImageNet's pixels, as in torchvision's reference training. */
static const struct rfl_pixel_scale imagenet_scale = {
	.mean = { 0.485F, 0.456F, 0.406F },
	.std = { 0.229F, 0.224F, 0.225F },
};

struct folder {
	struct rfl_samples base;
	struct rfl_dataset *set;
	struct cache *cache; /* NULL: read files as needed */
	uint32_t *class_of;  /* of a test set: per class, its index in the training set */
	int size;            /* width and height of an input */
	bool augment;
};

/* The state of one thread, kept from image to image. */
struct decoder {
	struct rfl_jpeg *jpeg;
	struct rfl_resizer resizer;
	struct rfl_image decoded;
	struct rfl_buf file;
};

static void folder_worker_free(void *worker)
{
	struct decoder *d = worker;

	if (!d)
		return;
	rfl_jpeg_free(d->jpeg);
	rfl_resizer_fini(&d->resizer);
	rfl_image_fini(&d->decoded);
	rfl_buf_fini(&d->file);
	free(d);
}

static enum rfl_rc folder_worker_new(const struct rfl_samples *s, void **ret, struct rfl_err *err)
{
	struct decoder *d = rfl_alloc_array(1, sizeof(*d));
	enum rfl_rc rc;

	(void)s;
	rfl_buf_init(&d->file, FILE_MAX);
	rc = rfl_jpeg_new(&d->jpeg, err);
	if (rc) {
		folder_worker_free(d);
		return rc;
	}
	*ret = d;
	return RFL_OK;
}

static enum rfl_rc read_file(struct decoder *d, const char *path, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	rfl_buf_reset(&d->file);
	rc = rfl_file_read(path, &d->file, &why);
	if (rc == RFL_EOVERFLOW)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: the file is larger than 256 MiB", path);
	return rc == RFL_OK ? rc : rfl_err_pass(err, &why);
}

static enum rfl_rc folder_load(const struct rfl_samples *s, void *worker, size_t index,
			       struct rfl_random *random, struct rfl_sample *ret,
			       struct rfl_err *err)
{
	const struct folder *f = (const struct folder *)s;
	struct decoder *d = worker;
	const bool kept = f->cache && f->cache->entries[index].size > 0;
	const void *data;
	struct rfl_view view;
	char path[4096];
	size_t len;
	int width, height;
	enum rfl_rc rc = rfl_dataset_path(f->set, index, path, sizeof(path), err);

	if (rc == RFL_OK && !kept)
		rc = read_file(d, path, err);
	if (rc)
		return rc;
	data = kept ? (const void *)(f->cache->block + f->cache->entries[index].at) : d->file.data;
	len = kept ? f->cache->entries[index].size : d->file.len;
	rc = rfl_jpeg_begin(d->jpeg, data, len, path, &width, &height, err);
	if (rc)
		return rc;
	if (f->augment)
		rfl_view_random(width, height, f->size, random, &view);
	else
		rfl_view_centre(width, height, f->size, &view);
	rc = rfl_jpeg_decode(d->jpeg, &view.needed, &d->decoded, err);
	if (rc == RFL_OK)
		rc = rfl_resize(&d->resizer, &d->decoded, &view, ret->layout, ret->pixels, err);
	if (rc)
		return rc;
	ret->label = f->set->images[index].label;
	if (f->class_of)
		ret->label = f->class_of[ret->label];
	ret->read_bytes = (int64_t)len;
	return RFL_OK;
}

static void folder_free(struct rfl_samples *s)
{
	struct folder *f = (struct folder *)s;

	cache_free(f->cache);
	free(f->class_of);
	rfl_dataset_free(f->set);
	free(f);
}

static const struct rfl_samples_ops folder_ops = {
	.worker_new = folder_worker_new,
	.worker_free = folder_worker_free,
	.load = folder_load,
	.free = folder_free,
};

/* Find the classes of a test set in the training set. */
static enum rfl_rc match_classes(const char *dir, const struct rfl_dataset *test, uint32_t **ret,
				 struct rfl_err *err)
{
	struct rfl_dataset *train = NULL;
	uint32_t *class_of = rfl_alloc_array(test->nclasses, sizeof(*class_of));
	enum rfl_rc rc = rfl_dataset_open(dir, "train", INT64_MAX, true, true, &train, err);

	for (size_t i = 0; rc == RFL_OK && i < test->nclasses; i++) {
		const char **found = bsearch(&test->classes[i], train->classes, train->nclasses,
					     sizeof(*train->classes), by_bytes);

		if (found)
			class_of[i] = (uint32_t)(found - train->classes);
		else
			rc = rfl_fail(err, RFL_EINVAL, 0,
				      "%s/%s: %s has no class of this name; use the same class "
				      "directories in both",
				      test->dir, test->classes[i], train->dir);
	}
	rfl_dataset_free(train);
	if (rc)
		free(class_of);
	else
		*ret = class_of;
	return rc;
}

static enum rfl_rc list_part(const struct rfl_data_spec *spec, int64_t max_classes, bool first,
			     struct rfl_dataset **ret, struct rfl_err *err)
{
	static const char *const parts[] = { "val", "test" };
	char path[4096];

	if (!spec->test)
		return rfl_dataset_open(spec->dir, "train", max_classes, first, spec->named, ret,
					err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", spec->dir, parts[i]) <
			    sizeof(path) &&
		    rfl_dir_exists(path))
			return rfl_dataset_open(spec->dir, parts[i], max_classes, first,
						spec->named, ret, err);
	return rfl_fail(err, RFL_EINVAL, 0,
			"%s: contains neither a directory 'val' nor 'test'; store test images as "
			"%s/val/<class>/<image>.jpg",
			spec->dir, spec->dir);
}

enum rfl_rc rfl_samples_folder(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_samples **ret, struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	struct rfl_jpeg *j = NULL;
	struct folder *f;
	enum rfl_rc rc;

	if (shape->width > MAX_SIZE)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: images are resized to at most %d x %d; reduce --image-size",
				spec->dir, MAX_SIZE, MAX_SIZE);
	if (shape->channels != 3 || shape->width < 1 || shape->height != shape->width)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: images are resized to 3 x N x N, but %s accepts %lld x %lld x "
				"%lld; use a network that accepts 3 x N x N",
				spec->dir, shape->model, (long long)shape->channels,
				(long long)shape->height, (long long)shape->width);
	rc = rfl_jpeg_new(&j, err); /* check that a decoder is available */
	rfl_jpeg_free(j);
	if (rc == RFL_OK)
		rc = list_part(spec, shape->classes, !ret, &set, err);
	if (rc != RFL_OK || !ret) {
		rfl_dataset_free(set);
		return rc;
	}
	f = rfl_alloc_array(1, sizeof(*f));
	f->set = set;
	f->size = (int)shape->width;
	f->augment = spec->augment && !spec->test;
	f->base = (struct rfl_samples){
		.ops = &folder_ops,
		.scale = &imagenet_scale,
		.name = set->dir,
		.n = set->nimages,
		.sample_bytes = 3 * (size_t)f->size * (size_t)f->size,
		.skipped = (int64_t)set->skipped,
		.digest = set->digest,
	};
	if (spec->test)
		rc = match_classes(spec->dir, set, &f->class_of, err);
	if (rc == RFL_OK && spec->kind == RFL_DATA_IMAGEFOLDER_CACHED)
		rc = cache_new(set, spec->cache_bytes, spec->workers, &f->cache, err);
	if (rc)
		folder_free(&f->base);
	else
		*ret = &f->base;
	return rc;
}
