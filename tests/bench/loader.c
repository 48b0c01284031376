/*
 * loader.c - one batch of a directory per line of standard input, made by one thread: read,
 * decoded, cropped, resized, flipped, laid out, and normalised to floats as an engine does it. Its
 * CPU time in ms goes to standard output.
 *
 * usage: bench_loader Directory BATCH
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/num.h"
#include "data/data.h"

#define SIZE   224
#define PIXELS ((size_t)SIZE * SIZE)

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* What is left to the engine, so that both sides do the same work. */
static void normalise(const struct rfl_batch *batch, float *out)
{
	for (size_t i = 0; i < (size_t)batch->n * 3; i++) {
		const float mean = batch->scale->mean[i % 3], std = batch->scale->std[i % 3];
		const float a = 1.0F / (255.0F * std), b = -mean / std;

		for (size_t p = 0; p < PIXELS; p++)
			out[i * PIXELS + p] = (float)batch->pixels[i * PIXELS + p] * a + b;
	}
}

int main(int argc, char **argv)
{
	const struct rfl_data_shape shape = { "the benchmark", 3, SIZE, SIZE, INT64_MAX };
	struct rfl_data_spec spec = { .kind = RFL_DATA_IMAGEFOLDER, .augment = true, .ahead = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	struct rfl_batch batch;
	float *floats = NULL;
	double checksum = 0.0;
	char line[64];
	int64_t n;

	if (argc != 3 || rfl_num_parse_int(argv[2], "BATCH", &n, NULL) || n < 1 || n > 4096) {
		fputs("usage: bench_loader Directory BATCH\n", stderr);
		return 2;
	}
	spec.dir = argv[1];
	floats = malloc((size_t)n * 3 * PIXELS * sizeof(*floats));
	if (!floats || rfl_data_open_images(&spec, &shape, n, RFL_LAYOUT_NCHW, NULL, &data, &err)) {
		fprintf(stderr, "bench_loader: %s\n", floats ? err.msg : "out of memory");
		free(floats);
		return 1;
	}
	puts("ready");
	while (fflush(stdout) == 0 && fgets(line, sizeof(line), stdin)) {
		double begun = cpu_ms();

		if (rfl_data_next(data, &batch, &err)) {
			fprintf(stderr, "bench_loader: %s\n", err.msg);
			break;
		}
		normalise(&batch, floats);
		checksum += (double)floats[0];
		printf("%.6f\n", cpu_ms() - begun);
	}
	rfl_data_free(data);
	free(floats);
	return err.rc != RFL_OK || checksum != checksum;
}
