// The errors of the library of chunks, made from Status.
#pragma once

#include "fs/library/chunks.h"
#include "store/base/status.h"

namespace siltfs::chunks {

// An Error with the code and the sentence of the Status; no error for OK.
Error ErrorOf(const Status& status);

}  // namespace siltfs::chunks
