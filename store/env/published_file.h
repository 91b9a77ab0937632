// A file that other programs read while it is replaced again and again.
//
// Thread-safety: any thread.
#pragma once

#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

// Replaces the file with a new one that all users may read (mode 0644). A reader finds either the
// old or the new content, complete. The new file is made beside the old one under a name that
// begins with the file's name and a dot; a failure removes it. Nothing is synced: after a power cut
// the file may be old or empty. kInvalidArgument if the path leads to a symbolic link, a directory
// or a device, because a rename would replace them.
Status PublishFile(const std::string& path, std::string_view content);
// Finds out whether PublishFile would refuse the path, before the content is made. Errors: the
// same, and kNotFound if the directory is missing.
Status CheckPublishable(const std::string& path);

}  // namespace siltfs
