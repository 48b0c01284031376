/* What perf writes, as a file of any content. */
#define IMPORTER "perf"
#include "import_target.h"
