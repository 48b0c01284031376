/* replay.c - runs a fuzz target on files and on all files of directories. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "fuzz.h"

static int replay_file(const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	if (rfl_file_read(path, &text, &err) != RFL_OK) {
		fprintf(stderr, "%s\n", err.msg);
		rfl_buf_fini(&text);
		return 1;
	}
	/* a block of just that size, so that a sanitizer sees a read past the end */
	uint8_t *block = malloc(text.len ? text.len : 1);

	FUZZ_ASSERT(block != NULL);
	if (text.len)
		memcpy(block, text.data, text.len);
	(void)LLVMFuzzerTestOneInput(block, text.len);
	free(block);
	rfl_buf_fini(&text);
	return 0;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Directories in it are left out. */
static int replay_folder(const char *path, int *ran)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	int failed = 0;

	if (!dir) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(dir))) {
		char *file;

		if (entry->d_name[0] == '.')
			continue;
		file = rfl_path_join(path, entry->d_name);
		FUZZ_ASSERT(file != NULL);
		if (!is_folder(file)) {
			failed |= replay_file(file);
			(*ran)++;
		}
		free(file);
	}
	(void)closedir(dir);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0, ran = 0;

	fuzz_all_due = true;
	for (int i = 1; i < argc; i++) {
		if (is_folder(argv[i])) {
			failed |= replay_folder(argv[i], &ran);
		} else {
			failed |= replay_file(argv[i]);
			ran++;
		}
	}
	fprintf(stderr, "%d inputs\n", ran);
	return failed || !ran;
}
