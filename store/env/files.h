// Helpers for callers of Env: whole-file reads, exact reads, and atomic replacement of a file.
#pragma once

#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs {

std::string JoinPath(std::string_view directory, std::string_view name);

// The whole contents, for small files only; never checks them (no kCorruption). kFileTooLarge
// beyond `limit` bytes.
Result<std::string> ReadWholeFile(Env& env, const std::string& path, uint64_t limit);

// Lists a directory with expendable contents: a file or link found in its place is removed.
// kNotFound if there is no directory, also after this removal.
Result<std::vector<DirectoryEntry>> ListOrClear(Env& env, const std::string& directory);

// Exactly out.size() bytes; kCorruption if the file is shorter.
Status ReadExactly(const File& file, uint64_t offset, MutableByteView out);

// The same failure with kNoSpace replaced by kIoError. kNoSpace would mean that the call changed
// nothing and may be retried.
Status ForGood(Status failed);
// Syncs a directory; never fails with kNoSpace, because freeing space does not undo a failed sync.
Status SyncNames(Env& env, const std::string& directory);

// Creates `directory` in `parent` durably, or only makes it durable if it exists: the process that
// created it may have been killed before its sync. May be retried after kNoSpace.
Status CreateDirectoryDurably(Env& env, const std::string& parent, const std::string& directory);

// Writes `contents` to a new file beside `path`, syncs it, renames it over `path` and syncs the
// directory: after a crash either the old or the new file exists, complete. May be retried after
// kNoSpace.
Status ReplaceFile(Env& env, const std::string& path, ByteView contents);

}  // namespace siltfs
