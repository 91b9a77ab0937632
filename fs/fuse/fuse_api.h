// The one place that includes libfuse, and says which of its interfaces is meant: that of 3.12,
// which 3.14 to 3.17 share.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
