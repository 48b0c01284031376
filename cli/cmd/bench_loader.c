/*
 * bench_loader.c - roofline bench loader: how fast a folder becomes batches, by number of
 * threads, and how many threads would feed a given throughput.
 */
#include "cli/cmd.h"

#include <math.h>

#include "base/log.h"
#include "base/num.h"
#include "cli/put.h"
#include "data/loader_rate.h"
#include "report/table.h"

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

#define AT(member) offsetof(struct loader_args, member)

static const struct rfl_opt opts[] = {
	{ .name = "data",
	  .meta = "DIR",
	  .kind = RFL_OPT_TEXT,
	  .offset = AT(data),
	  .required = true,
	  .help = "folder of images (DIR/train/<class>/<image>.jpg), of CIFAR-10 or of MNIST" },
	{ .name = "batch-size",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(batch),
	  .def = "64",
	  .min = 1,
	  .max = 1000000,
	  .help = "images per batch" },
	{ .name = "image-size",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(image_size),
	  .def = "224",
	  .min = 1,
	  .max = 4096,
	  .help = "width and height that JPEG images are resized to" },
	{ .name = "workers",
	  .meta = "N",
	  .kind = RFL_OPT_INT_LIST,
	  .offset = AT(workers),
	  .def = "1 2 4",
	  .min = 0,
	  .max = 1024,
	  .help = "numbers of decoding threads to try; 0: the caller decodes" },
	{ .name = "prefetch-factor",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(prefetch),
	  .def = "2",
	  .min = 1,
	  .max = 1000,
	  .help = "batches decoded ahead" },
	{ .name = "seconds",
	  .meta = "S",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(seconds),
	  .def = "3",
	  .rmin = 0.01,
	  .rmax = 86400,
	  .help = "length of each measurement" },
	{ .name = "iters",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(iters),
	  .def = "0",
	  .min = 0,
	  .max = 1000000000,
	  .help = "batches of each measurement in place of --seconds; 0: by time" },
	{ .name = "page-cache",
	  .meta = "STATE",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(page_cache),
	  .choices = page_cache_names,
	  .def = "warm",
	  .help = "files already in the system's memory, not there, or both in turn" },
	{ .name = "cached",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(cached),
	  .help = "keep the JPEG files in the memory of the program" },
	{ .name = "augment",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(augment),
	  .def = "on",
	  .negatable = true,
	  .help = "random crop and flip; without: resize and centre crop" },
	{ .name = "channels-last",
	  .kind = RFL_OPT_FLAG,
	  .offset = AT(channels_last),
	  .help = "lay batches out as NHWC" },
	{ .name = "feed",
	  .meta = "X",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(feed),
	  .def = "0",
	  .rmin = 0,
	  .rmax = 1e9,
	  .help = "say how many threads X images/s need; 0: do not" },
	{ .name = "seed",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  .offset = AT(seed),
	  .def = "0",
	  .min = 0,
	  .max = INT64_MAX,
	  .help = "seed of the order, the crops and the flips" },
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

#define REAL(key_, title_, digits_, scale_)                                               \
	{                                                                                 \
		.key = key_, .title = title_, .kind = RFL_COLUMN_REAL, .digits = digits_, \
		.scale = scale_                                                           \
	}

static const struct rfl_column columns[] = {
	{ .key = "data", .title = "Data", .kind = RFL_COLUMN_TEXT },
	{ .key = "workers", .title = "Workers", .kind = RFL_COLUMN_INT },
	{ .key = "files", .title = "Files", .kind = RFL_COLUMN_TEXT },
	REAL("in_page_cache", "In page cache %", 3, 0.01),
	{ .key = "images", .title = "Images", .kind = RFL_COLUMN_INT },
	REAL("seconds", "Seconds", 3, 0),
	REAL("images_per_s", "Images/s", 4, 0),
	REAL("images_per_s_per_thread", "per thread", 4, 0),
	REAL("images_per_cpu_s", "per CPU second", 4, 0),
	REAL("bytes_per_s", "MB/s read", 3, 1e6),
	{ .key = "decode_errors", .title = "Decode errors", .kind = RFL_COLUMN_INT },
};

/* ---- what is measured ---- */

static enum rfl_rc configure(const struct loader_args *a, struct rfl_loader_rate_config *ret,
			     struct rfl_err *err)
{
	enum rfl_data_kind kind = RFL_DATA_IMAGEFOLDER;
	enum rfl_rc rc = rfl_data_detect(a->data, &kind, err);
	int64_t size = a->image_size; /* 0: records have their own */

	if (rc)
		return rc;
	if (kind == RFL_DATA_CIFAR10 || kind == RFL_DATA_MNIST)
		size = 0;
	if (kind != RFL_DATA_IMAGEFOLDER && (a->cached || a->page_cache != PAGES_WARM))
		return rfl_fail(
			err, RFL_EUSAGE, 0,
			"%s: %s is read into memory once; leave --cached and --page-cache out",
			a->cached ? "--cached" : "--page-cache", rfl_data_kind_names[kind]);
	if (a->cached && a->page_cache != PAGES_WARM)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--page-cache: with --cached no file is read while it is measured");
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

static void add_row(struct rfl_table *t, const struct rfl_loader_rate_config *c,
		    const struct rfl_loader_rate *rate)
{
	const bool reads = c->data.kind == RFL_DATA_IMAGEFOLDER; /* while the clock runs */

	rfl_table_text(t, rfl_data_kind_names[c->data.kind]);
	rfl_table_int(t, c->data.workers);
	rfl_table_text(t, !reads ? "in memory" : c->cold ? "cold" : "warm");
	rfl_table_real(t, rate->in_page_cache);
	rfl_table_int(t, rate->images);
	rfl_table_real(t, rate->wall_s);
	rfl_table_real(t, rate->images_per_s);
	rfl_table_real(t, rate->images_per_thread_s);
	rfl_table_real(t, rate->images_per_cpu_s);
	rfl_table_real(t, rate->bytes_per_s);
	rfl_table_int(t, rate->bad);
}

/* Where a row is not what its columns say: pages that did not leave or come; and damaged files: the
 * first measurement names those that it meets, a later one that came further may have met more. */
static void warn(struct rfl_loader_rate_config *c, const struct rfl_loader_rate *rate,
		 int64_t *named)
{
	if (c->cold && rate->in_page_cache > 0.05)
		rfl_log(RFL_LOG_WARN,
			"%s: %.0f %% of the files stayed in the page cache although the system was "
			"asked to drop them (a file system in memory, or files in use): not cold",
			c->data.dir, 100.0 * rate->in_page_cache);
	if (!c->cold && rate->in_page_cache < 0.95)
		rfl_log(RFL_LOG_WARN,
			"%s: only %.0f %% of the files fit into the page cache: not warm",
			c->data.dir, 100.0 * rate->in_page_cache);
	if (c->data.named && rate->bad > *named)
		rfl_log(RFL_LOG_WARN,
			"%s: with %d workers %lld more files could not be decoded; -v names them",
			c->data.dir, c->data.workers, (long long)(rate->bad - *named));
	*named = rate->bad > *named ? rate->bad : *named;
	c->data.named = true;
}

static enum rfl_rc measure_all(struct rfl_cli *cli, const struct loader_args *a,
			       struct rfl_loader_rate_config *c, struct rfl_table *t,
			       double *per_thread, struct rfl_err *err)
{
	const bool states[] = { a->page_cache != PAGES_WARM, a->page_cache == PAGES_COLD };
	const size_t nstates = a->page_cache == PAGES_BOTH ? 2 : 1;
	int64_t named = 0; /* damaged files, by the first measurement */
	enum rfl_rc rc = RFL_OK;

	for (size_t w = 0; w < a->workers.n && rc == RFL_OK; w++) {
		for (size_t s = 0; s < nstates && rc == RFL_OK; s++) {
			struct rfl_loader_rate rate;

			c->data.workers = (int)a->workers.items[w];
			c->cold = states[s];
			rfl_cli_progress(cli, "%d workers", c->data.workers);
			rc = rfl_loader_rate_measure(c, &rate, err);
			if (rc)
				break;
			warn(c, &rate, &named);
			add_row(t, c, &rate);
			*per_thread = fmax(*per_thread, rate.images_per_thread_s); /* NaN loses */
		}
	}
	rfl_cli_progress(cli, NULL);
	return rc;
}

/* ---- the loader ceiling ---- */

static void add_notes(struct rfl_table *t, const struct loader_args *a, double per_thread)
{
	char rate[RFL_NUM_MAX], feed[RFL_NUM_MAX];
	double threads;

	rfl_table_note(t,
		       "Images/s: batches of %lld as they are handed out. Per thread: while a "
		       "thread is at an image, reading included. Per CPU second: what one core "
		       "does that does nothing else.",
		       (long long)a->batch);
	if (a->feed <= 0.0)
		return;
	rfl_num_people(a->feed, 4, feed);
	if (!(per_thread > 0.0)) {
		rfl_table_note(
			t,
			"How many threads %s images/s need is not known: nothing was decoded "
			"while the clock ran; use more --seconds or --iters.",
			feed);
		return;
	}
	rfl_num_people(per_thread, 4, rate);
	threads = ceil(a->feed / per_thread);
	rfl_table_note(t, "%s images/s need %.0f %s, at the best row's %s images/s per thread.",
		       feed, threads,
		       threads > 1.0 ? "threads on cores of their own"
				     : "thread on a core of its own",
		       rate);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct loader_args *a = args;
	struct rfl_loader_rate_config config;
	struct rfl_table *t = NULL;
	double per_thread = NAN;
	enum rfl_rc rc = configure(a, &config, err);

	if (rc)
		return rc;
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the table");
	rc = measure_all(cli, a, &config, t, &per_thread, err);
	if (rc == RFL_OK) {
		add_notes(t, a, per_thread);
		rc = rfl_cli_put_table(cli, t, (enum rfl_format)a->format, err);
	}
	rfl_table_free(t);
	return rc;
}

const struct rfl_cmd rfl_cmd_bench_loader = {
	.name = "bench loader",
	.summary = "measure how fast a folder of images becomes batches",
	.description = "Decodes, crops, resizes and lays out batches as a run does, with nothing "
		       "that consumes them: the ceiling of what a run can be fed.",
	.example = "roofline bench loader --data imagenet --workers 1 2 4 8 --feed 3000",
	.opts = opts,
	.args_size = sizeof(struct loader_args),
	.operands_offset = -1,
	.run = run,
};
