/* The path of an image of a directory: header, the part that a crop needs, resize. Images of more
 * than a quarter of a megapixel are left out, to be quick. */
#include "fuzz.h"

#include <stdlib.h>

#include "data/jpeg.h"
#include "data/transform.h"

#define SIZE       24
#define MAX_PIXELS ((int64_t)1 << 18)

/* Begin and decode once more for each crop; the decoder must survive any order of failures. */
static void try_view(struct rfl_jpeg *j, const uint8_t *data, size_t size,
		     const struct rfl_view *view)
{
	struct rfl_image part = { .pixels = NULL };
	struct rfl_resizer resizer = { .row = NULL };
	struct rfl_err err = RFL_ERR_INIT;
	uint8_t out[3 * SIZE * SIZE];
	int width, height;
	enum rfl_rc rc = rfl_jpeg_begin(j, data, size, "input", &width, &height, &err);

	FUZZ_ASSERT(rc == RFL_OK);
	rc = rfl_jpeg_decode(j, &view->needed, &part, &err);
	fuzz_check(rc, rc == RFL_OK ? part.pixels : NULL, &err, "input");
	if (rc == RFL_OK)
		FUZZ_ASSERT(rfl_resize(&resizer, &part, view, RFL_LAYOUT_NCHW, out, &err) ==
			    RFL_OK);
	rfl_resizer_fini(&resizer);
	rfl_image_fini(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_jpeg *j = NULL;
	int width = 0, height = 0;
	struct rfl_random random;
	struct rfl_view view;
	enum rfl_rc rc;

	if (rfl_jpeg_new(&j, &err) != RFL_OK)
		return 0; /* built without libjpeg-turbo */
	rc = rfl_jpeg_begin(j, data, size, "input", &width, &height, &err);
	fuzz_check(rc, rc == RFL_OK ? &width : NULL, &err, "input");
	if (rc == RFL_OK && (int64_t)width * height <= MAX_PIXELS) {
		rfl_random_init(&random, size, 0, 0);
		for (int i = 0; i < 2; i++) {
			rfl_view_random(width, height, SIZE, &random, &view);
			try_view(j, data, size, &view);
		}
		rfl_view_centre(width, height, SIZE, &view);
		try_view(j, data, size, &view);
	}
	rfl_jpeg_free(j);
	return 0;
}
