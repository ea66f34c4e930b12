#include "core/error.h"

namespace crucible {}  // Keeps the folder's object library non-empty while headers are all it has.
