/*
 * crash_plugin.c - an engine plugin that takes its process down as soon as it is opened.
 */
#include <signal.h>

__attribute__((constructor)) static void crash(void)
{
	raise(SIGKILL); /* nothing can catch this one, sanitizers included */
}
