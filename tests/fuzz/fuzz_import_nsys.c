/* What nsys writes, as a file of any content. */
#define IMPORTER "nsys"
#include "import_target.h"
