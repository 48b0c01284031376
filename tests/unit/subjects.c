/*
 * subjects.c - a program of several unit tests: runs the one that is named.
 */
#include <stdio.h>
#include <string.h>

#include RFL_TEST_SUBJECTS

#define SUBJECT(name, run) { name, run },

static const struct {
	const char *name;
	int (*run)(void);
} subjects[] = { RFL_SUBJECTS(SUBJECT) };

int main(int argc, char **argv)
{
	size_t n = sizeof(subjects) / sizeof(subjects[0]);

	for (size_t i = 0; argc == 2 && i < n; i++)
		if (strcmp(argv[1], subjects[i].name) == 0)
			return subjects[i].run();
	fprintf(stderr, "usage: %s SUBJECT, one of", argv[0]);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %s", subjects[i].name);
	fprintf(stderr, "\n");
	return 2;
}
