/* bench_loader.c - roofline bench loader: measure how fast images are loaded into batches. */
#include "cli/cmd.h"

#include <math.h>

#include "base/log.h"
#include "base/num.h"
#include "data/data.h"

enum page_cache { PAGES_WARM, PAGES_COLD, PAGES_BOTH };
static const char *const page_cache_names[] = { "warm", "cold", "both", NULL };

struct loader_args {
	const char *data;
	int64_t batch, image_size, prefetch, iters, seed;
	struct rfl_opt_int_list workers;
	double seconds, feed;
	bool cached, augment, channels_last;
	int page_cache, format;
};

#define OPT(kind, member, ...) RFL_OPT(struct loader_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, data, .name = "data", .often = true, .meta = "DIR", .required = true,
	    .help = "directory with images (DIR/train/<class>/<image>.jpg), CIFAR-10 or MNIST"),
	OPT(INT, batch, .name = "batch-size", .often = true, .meta = "N", .def = "64", .min = 1,
	    .max = 1000000, .help = "images per batch"),
	OPT(INT, image_size, .name = "image-size", .often = true, .meta = "N", .def = "224",
	    .min = 1, .max = 4096,
	    .help = "width and height to which JPEG images are resized, in pixels"),
	OPT(INT_LIST, workers, .name = "workers", .often = true, .meta = "N", .def = "1 2 4",
	    .min = 0, .max = 1024,
	    .help = "numbers of decoding threads to measure; 0: decode in the main thread"),
	OPT(INT, prefetch, .name = "prefetch-factor", .meta = "N", .def = "2", .min = 1,
	    .max = 1000, .help = "number of batches to decode ahead"),
	OPT(REAL, seconds, .name = "seconds", .often = true, .meta = "S", .def = "3", .rmin = 0.01,
	    .rmax = 86400, .help = "duration of each measurement"),
	OPT(INT, iters, .name = "iters", .often = true, .meta = "N", .def = "0", .min = 0,
	    .max = 1000000000,
	    .help = "batches per measurement, instead of --seconds; 0: use --seconds"),
	OPT(CHOICE, page_cache, .name = "page-cache", .often = true, .meta = "STATE",
	    .choices = page_cache_names, .def = "warm",
	    .help = "state of the page cache: files cached, not cached, or one after the other"),
	OPT(FLAG, cached, .name = "cached", .help = "keep the JPEG files in memory"),
	OPT(FLAG, augment, .name = "augment", .often = true, .def = "on", .negatable = true,
	    .help = "crop and flip at random, instead of resizing and cropping at the centre"),
	OPT(FLAG, channels_last, .name = "channels-last", .help = "store batches in NHWC order"),
	OPT(REAL, feed, .name = "feed", .often = true, .meta = "X", .def = "0", .rmin = 0,
	    .rmax = 1e9,
	    .help = "target in images/s for which the number of threads is reported; 0: none"),
	OPT(INT, seed, .name = "seed", .meta = "N", .def = "0", .min = 0, .max = INT64_MAX,
	    .help = "random seed for the order of images, the crops and the flips"),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

static enum rfl_rc configure(const struct loader_args *a, struct rfl_loader_rate_config *ret,
			     struct rfl_err *err)
{
	enum rfl_data_kind kind = RFL_DATA_IMAGEFOLDER;
	int64_t size = a->image_size; /* 0: the size of the records */

	if (rfl_data_detect(a->data, &kind, err))
		return RFL_EUSAGE; /* as in 'run' and 'train' */
	if (kind == RFL_DATA_CIFAR10 || kind == RFL_DATA_MNIST)
		size = 0;
	if (kind == RFL_DATA_TOKENS)
		return rfl_usage(err,
				 "--data: %s is a file of tokens, which nothing has to decode; use "
				 "a directory of images",
				 a->data);
	if (kind != RFL_DATA_IMAGEFOLDER && (a->cached || a->page_cache != PAGES_WARM))
		return rfl_usage(err,
				 "%s: %s is always read into memory once; leave out --cached and "
				 "--page-cache",
				 a->cached ? "--cached" : "--page-cache",
				 rfl_data_kind_names[kind]);
	if (a->cached && a->page_cache != PAGES_WARM)
		return rfl_usage(err, "--page-cache: has no effect with --cached, which reads all "
				      "files in advance; leave out one of them");
	if (a->cached)
		kind = RFL_DATA_IMAGEFOLDER_CACHED;
	*ret = (struct rfl_loader_rate_config){
		.data = { .kind = kind,
			  .dir = a->data,
			  .augment = a->augment,
			  .ahead = (int)a->prefetch,
			  .seed = (uint64_t)a->seed },
		.batch = a->batch,
		.layout = a->channels_last ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
		.seconds = a->seconds,
		.batches = a->iters,
		.shape = { .model = "the loader",
			   .channels = kind == RFL_DATA_MNIST ? 1 : 3,
			   .height = size,
			   .width = size,
			   .classes = INT64_MAX },
	};
	return RFL_OK;
}

/* A row of the table. */
struct row {
	const char *data, *files;
	int workers;
	struct rfl_loader_rate rate;
};

static const struct rfl_column columns[] = {
	RFL_COLUMN(TEXT, struct row, data, "data", "Data"),
	RFL_COLUMN(INT, struct row, workers, "workers", "Workers"),
	RFL_COLUMN(TEXT, struct row, files, "files", "Files"),
	RFL_COLUMN(REAL, struct row, rate.in_page_cache, "in_page_cache", "In page cache %",
		   .digits = 3, .scale = 0.01),
	RFL_COLUMN(INT, struct row, rate.images, "images", "Images"),
	RFL_COLUMN(REAL, struct row, rate.wall_s, "seconds", "Seconds", .digits = 3),
	RFL_COLUMN(REAL, struct row, rate.images_per_s, "images_per_s", "Images/s", .digits = 4),
	RFL_COLUMN(REAL, struct row, rate.images_per_thread_s, "images_per_s_per_thread",
		   "per thread", .digits = 4),
	RFL_COLUMN(REAL, struct row, rate.images_per_cpu_s, "images_per_cpu_s", "per CPU second",
		   .digits = 4),
	RFL_COLUMN(REAL, struct row, rate.bytes_per_s, "bytes_per_s", "MB/s read", .digits = 3,
		   .scale = 1e6),
	RFL_COLUMN(INT, struct row, rate.bad, "decode_errors", "Decode errors"),
};

/* Warn if the page cache was not in the requested state, and about damaged files. Only the first
 * measurement names them; later ones may read more. */
static void warn(struct rfl_loader_rate_config *c, const struct rfl_loader_rate *rate,
		 int64_t *named)
{
	if (c->cold && rate->in_page_cache > 0.05)
		rfl_log(RFL_LOG_WARN,
			"%s: %.0f %% of the files stayed in the page cache: not a cold result; use "
			"a file system on a disk, and close programs that use the files",
			c->data.dir, 100.0 * rate->in_page_cache);
	if (!c->cold && rate->in_page_cache < 0.95)
		rfl_log(RFL_LOG_WARN,
			"%s: only %.0f %% of the files are in the page cache: not a warm result; "
			"free memory, or use --page-cache cold",
			c->data.dir, 100.0 * rate->in_page_cache);
	if (c->data.named && rate->bad > *named)
		rfl_log(RFL_LOG_WARN,
			"%s: with %d workers, %lld more files are damaged; use -v to list them",
			c->data.dir, c->data.workers, (long long)(rate->bad - *named));
	*named = rate->bad > *named ? rate->bad : *named;
	c->data.named = true;
}

/* @param per_thread the highest rate of a thread in images/s; 0 or NaN if nothing was decoded */
static void add_notes(struct rfl_table *t, const struct loader_args *a, double per_thread)
{
	char rate[RFL_NUM_MAX], feed[RFL_NUM_MAX];
	double threads;

	rfl_table_note(t,
		       "Batch size: %lld. Per thread: images per second of busy thread time, "
		       "including reading. Per CPU second: images per second of CPU time.",
		       (long long)a->batch);
	if (a->feed <= 0.0)
		return;
	rfl_num_people(a->feed, 4, feed);
	if (!(per_thread > 0.0)) {
		rfl_table_note(t,
			       "Number of threads for %s images/s: unknown, because nothing was "
			       "decoded in the measured time; increase --seconds or --iters.",
			       feed);
		return;
	}
	rfl_num_people(per_thread, 4, rate);
	threads = ceil(a->feed / per_thread);
	rfl_table_note(t, "%s images/s need %.0f %s, at %s images/s per thread (best row).", feed,
		       threads,
		       threads > 1.0 ? "threads with one core each" : "thread with one core", rate);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct loader_args *a = args;
	const bool states[] = { a->page_cache != PAGES_WARM, a->page_cache == PAGES_COLD };
	const size_t nstates = a->page_cache == PAGES_BOTH ? 2 : 1;
	struct rfl_loader_rate_config c;
	struct rfl_table *t;
	double per_thread = NAN;
	int64_t named = 0; /* number of damaged files already named */
	enum rfl_rc rc = configure(a, &c, err);

	if (rc)
		return rc;
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	for (size_t i = 0; i < a->workers.n * nstates && rc == RFL_OK; i++) {
		struct row row = { .data = rfl_data_kind_names[c.data.kind] };

		c.data.workers = row.workers = (int)a->workers.items[i / nstates];
		c.cold = states[i % nstates];
		row.files = c.data.kind != RFL_DATA_IMAGEFOLDER ? "in memory"
			    : c.cold                            ? "cold"
								: "warm";
		rfl_cli_progress(cli, "%d workers", c.data.workers);
		rc = rfl_loader_rate_measure(&c, &row.rate, err);
		if (rc)
			break;
		warn(&c, &row.rate, &named);
		rfl_table_add(t, &row, 1, sizeof(row));
		per_thread =
			fmax(per_thread, row.rate.images_per_thread_s); /* fmax() ignores NaN */
	}
	rfl_cli_progress(cli, NULL);
	if (rc) {
		rfl_table_free(t);
		return rc;
	}
	add_notes(t, a, per_thread);
	return rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
}

const struct rfl_cmd rfl_cmd_bench_loader = {
	.name = "bench loader",
	.summary = "measure how fast images are loaded into batches",
	.description = "Loads batches exactly as a run does (decode, crop, resize, lay out), but "
		       "does not train on them. The result is the highest rate at which a run can "
		       "be supplied with data.",
	.example = "roofline bench loader --data imagenet --workers 1 2 4 8 --feed 3000",
	.opts = opts,
	.args_size = sizeof(struct loader_args),
	.run = run,
};
