/*
 * absent_plugin.c - an engine plugin that needs a library which the loader does not find.
 */
int absent_function(void);
int needs_it(void);

int needs_it(void)
{
	return absent_function();
}
