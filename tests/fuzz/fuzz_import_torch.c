/* What torch.profiler writes, as a file of any content. */
#define IMPORTER "torch"
#include "import_target.h"
