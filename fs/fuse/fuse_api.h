// The only place that includes libfuse. It selects the interface of version 3.12, which 3.14 to
// 3.17 share.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
