/* What time writes, as a file of any content. */
#define IMPORTER "time"
#include "import_target.h"
