/*
 * load.c - opens a plugin and ends: what its libraries cost to load, before anybody has asked them
 * for anything. Usage: bench_load PLUGIN.so
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: bench_load PLUGIN.so\n", stderr);
		return 2;
	}
	if (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "bench_load: %s\n", dlerror());
		return 1;
	}
	_exit(0); /* libraries of this size take their time to close, too */
}
