// Helpers for callers of Env: whole-file reads, exact reads, and atomic replacement of a file.
#pragma once

#include <string>
#include <vector>

#include "store/env/env.h"

namespace siltfs {

std::string JoinPath(std::string_view directory, std::string_view name);

// The directory of a path; slashes at the end of the path do not count. "." if the path has no
// other slash.
std::string ParentOf(std::string_view path);

// Whether there is a file, a directory or a link of this name.
Result<bool> IsThere(Env& env, const std::string& path);

// The whole contents of a small file. Does not verify them, so it never returns kCorruption.
// kFileTooLarge if the file has more than `limit` bytes.
Result<std::string> ReadWholeFile(Env& env, const std::string& path, uint64_t limit);

// Lists a directory with expendable contents. If a file or link is in its place, removes that file
// or link. kNotFound if there is no directory, also after this removal.
Result<std::vector<DirectoryEntry>> ListOrClear(Env& env, const std::string& directory);

// Reads exactly out.size() bytes; kCorruption if the file is shorter.
Status ReadExactly(const ReadableFile& file, uint64_t offset, MutableByteView out);

// Returns the same failure, but with kIoError instead of kNoSpace. kNoSpace would mean that the
// call changed nothing and may be retried.
Status ForGood(Status failed);
// Syncs a directory; never fails with kNoSpace, because freeing space does not undo a failed sync.
Status SyncNames(Env& env, const std::string& directory);

// Creates `directory` in `parent` durably. If it exists, it is only made durable, because the
// process that created it may have been killed before its sync. May be retried after kNoSpace.
Status CreateDirectoryDurably(Env& env, const std::string& parent, const std::string& directory);

// Removes all files of `directory`, or creates it durably if it is missing. A file or link in its
// place is removed. The directory must have no subdirectories.
Status MakeEmptyDirectory(Env& env, const std::string& directory);

// Writes `contents` to a new file beside `path`, syncs it, renames it over `path` and syncs the
// directory: after a crash either the old or the new file exists, complete. May be retried after
// kNoSpace.
Status ReplaceFile(Env& env, const std::string& path, ByteView contents);

}  // namespace siltfs
