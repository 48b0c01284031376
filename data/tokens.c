/*
 * tokens.c - files of tokens: 16-bit little-endian numbers without a header, as written by NumPy's
 * tofile(). A file is mapped, not read. A sample is a window of context + 1 tokens at a random
 * place; its labels are its tokens shifted by one.
 */
#include "data/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define TOKEN_BYTES 2

static int64_t token_at(const struct rfl_token_file *f, int64_t i)
{
	return f->data[2 * i] | f->data[2 * i + 1] << 8;
}

static enum rfl_rc map(const char *path, struct rfl_token_file *f, struct rfl_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe */
	struct stat st;
	void *data = MAP_FAILED;
	enum rfl_rc rc = RFL_OK;

	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
		goto done;
	}
	if (!S_ISREG(st.st_mode)) {
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: not a file; tokens are read from one file of 16-bit numbers",
			      path);
		goto done;
	}
	f->bytes = (size_t)st.st_size;
	f->tokens = (int64_t)st.st_size / TOKEN_BYTES;
	if (st.st_size % TOKEN_BYTES)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: %lld bytes are not a whole number of 16-bit tokens: truncated, "
			      "or tokens of another size; write them as uint16",
			      path, (long long)st.st_size);
	else if (f->tokens <= f->context)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: %lld tokens are fewer than one sample, which needs %lld (the "
			      "context and the token after it); use a longer file or a smaller "
			      "--context-length",
			      path, (long long)f->tokens, (long long)f->context + 1);
	else if ((data = mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
	else
		f->data = data;
done:
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

enum rfl_rc rfl_token_file_open(const char *path, const struct rfl_net *net, bool check,
				struct rfl_token_file **ret, struct rfl_err *err)
{
	const struct rfl_node *input = &net->nodes[0];
	RFL_AUTOPTR(token_file) f = NULL;
	enum rfl_rc rc;

	if (input->dtype != RFL_DTYPE_I64)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %s reads images, not tokens; use a directory of images, or a "
				"language model",
				path, net->model);
	f = rfl_alloc_array(1, sizeof(*f));
	f->context = input->shape.dim[0];
	rc = map(path, f, err);
	for (int64_t i = 0; check && rc == RFL_OK && i < f->tokens; i++)
		if (token_at(f, i) >= net->classes)
			rc = rfl_fail(err, RFL_EFORMAT, 0,
				      "%s: byte %lld: token %lld is %lld, but the vocabulary of %s "
				      "ends at %lld; use the tokenizer of the model, or a model "
				      "with a larger vocabulary",
				      path, (long long)i * TOKEN_BYTES, (long long)i,
				      (long long)token_at(f, i), net->model,
				      (long long)net->classes - 1);
	if (rc == RFL_OK) {
		*ret = f;
		f = NULL;
	}
	return rc;
}

void rfl_token_file_free(struct rfl_token_file *f)
{
	if (f && f->data)
		(void)munmap((void *)(uintptr_t)f->data, f->bytes);
	free(f);
}

void rfl_token_file_sample(const struct rfl_token_file *f, uint64_t seed, uint64_t sample,
			   int64_t *tokens, int64_t *labels)
{
	struct rfl_random random;
	int64_t first;

	rfl_random_init(&random, seed, 0, sample);
	first = (int64_t)rfl_random_between(&random, 0, (double)(f->tokens - f->context));
	for (int64_t i = 0; i < f->context; i++) {
		tokens[i] = token_at(f, first + i);
		labels[i] = token_at(f, first + i + 1);
	}
}
