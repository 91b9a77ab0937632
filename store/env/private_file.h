// Files with secrets, which other users must not be able to read.
//
// Thread-safety: functions only, safe to call from any thread.
#pragma once

#include <cstddef>
#include <string>

#include "store/base/result.h"

namespace siltfs {

// The content of a regular file that belongs to this process's effective user and that no other
// user may read or write: mode 0600 or stricter. kAccessDenied, with a sentence that says what to
// do, for any other file. kFileTooLarge if the file has more than `limit` bytes. Owner, mode and
// content are those of one opened file.
Result<std::string> ReadPrivateFile(const std::string& path, size_t limit);

}  // namespace siltfs
