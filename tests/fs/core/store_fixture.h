// A store in a temporary directory that a test opens, closes and crashes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/open/make_store.h"
#include "store/base/thread_annotations.h"
#include "tests/support/fault_env.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {

class StoreFixture {
 public:
  StoreFixture();
  explicit StoreFixture(const MakeStoreOptions& options);

  // Opens the store; commits happen only on request or when a group is full.
  FileSystem& Open(bool read_only = false);
  // Returns the status of opening the store in this way. The store is not kept open.
  Status TryOpen(bool read_only = false);
  FileSystem& fs() { return *fs_; }
  void Close();
  // Acts like a power cut: uncommitted changes are lost, nothing is closed.
  void Crash() { fs_.reset(); }
  void Reopen() {
    Close();
    Open();
  }

  // Changes the options of all later openings. May be empty.
  std::function<void(FileSystemOptions&)> adjust;

  FaultEnv& env() { return env_; }
  const std::string& path() const { return path_; }
  std::vector<std::string> findings() const;  // findings reported since the store was made
  FileSystemStats Stats();

 private:
  FileSystemOptions Options(bool read_only);

  TemporaryDirectory directory_;
  std::string path_;
  FaultEnv env_;
  mutable Mutex findings_mutex_;
  std::vector<std::string> findings_ SILTFS_GUARDED_BY(findings_mutex_);
  std::unique_ptr<FileSystem> fs_;
};

// --- helpers of many tests
inline constexpr Caller kCaller{.uid = 1000, .gid = 1000};
// Returns the inode at a path from the root ("a/b"). Forgets all lookups that the search made.
Result<InodeNumber> Resolve(FileSystem& fs, std::string_view path);
// Resolve, for a path that must exist.
InodeNumber RequireInode(FileSystem& fs, std::string_view path);
// Makes a directory, and forgets its lookup.
InodeNumber MakeDir(FileSystem& fs, InodeNumber parent, std::string_view name);
// Makes an empty file, closes it, and forgets its lookup.
InodeNumber MakeFile(FileSystem& fs, InodeNumber parent, std::string_view name);
// Creates (or truncates) a file in the root directory and writes `data` in one piece.
InodeNumber WriteFile(FileSystem& fs, std::string_view name, ByteView data);
// The same, written in pieces of 128 KiB as a kernel sends them.
InodeNumber WriteLargeFile(FileSystem& fs, std::string_view name, ByteView data);
// All of a file.
Result<Bytes> ReadFile(FileSystem& fs, InodeNumber inode);
Bytes RandomBytes(uint64_t seed, size_t size);
// Names in a directory, "." and ".." left out, in the order of ReadDirectory.
std::vector<std::string> ListNames(FileSystem& fs, InodeNumber directory);

}  // namespace siltfs::testing
