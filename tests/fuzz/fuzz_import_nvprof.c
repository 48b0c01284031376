/* What nvprof writes, as a file of any content. */
#define IMPORTER "nvprof"
#include "import_target.h"
