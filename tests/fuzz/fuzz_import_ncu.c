/* What ncu --csv writes, as a file of any content. */
#define IMPORTER "ncu"
#include "import_target.h"
