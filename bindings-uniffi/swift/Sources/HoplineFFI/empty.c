/* All code is in the library made by Rust; a C target needs a file of its own to be one. */
#include "HoplineFFI.h"
