/* What AMD's profilers write, as a file of any content. */
#define IMPORTER "rocprof"
#include "import_target.h"
