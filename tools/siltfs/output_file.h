// The file that a command about a store writes for the user.
//
// Thread-safety: from any thread.
#pragma once

#include <string>

#include "store/base/status.h"
#include "store/env/env.h"

namespace siltfs {

// kInvalidArgument if the file is, or would be, in the store's directory (an absolute path without
// symbolic links), or in that of another store: it could take the place of one of the store's
// files. Other errors of the path are left to the function that writes the file.
Status CheckOutsideStore(Env& env, const std::string& file, const std::string& store);

}  // namespace siltfs
