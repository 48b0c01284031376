/*
 * absent_library.c - the library of absent_plugin.c: there when that is linked, not found later.
 */
int absent_function(void);

int absent_function(void)
{
	return 0;
}
