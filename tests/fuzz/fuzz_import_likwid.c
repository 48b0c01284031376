/* What likwid writes, as a file of any content. */
#define IMPORTER "likwid"
#include "import_target.h"
