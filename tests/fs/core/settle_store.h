// A store whose segments and blocks are small, so that a few files fill several, and files whose
// contents compress better in larger blocks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fs/core/file_system.h"
#include "fs/core/stats.h"
#include "store/env/env.h"

namespace siltfs::testing {

// Lines drawn from a few hundred: what repeats lies far apart, and no chunk is like another.
Bytes RepetitiveBytes(uint64_t seed, size_t size);

struct SettleStore {
  // Makes the store at `path`.
  SettleStore(Env& environment, std::string store_path, uint32_t segment_bytes = 64u << 10,
              int compression_level = 3);

  Result<std::unique_ptr<FileSystem>> Open(Env& on, bool read_only = false) const;
  // Files of 60 KB, named by their seed, known from now on. Kept open by nobody.
  void WriteFiles(FileSystem& fs, uint64_t first_seed, int count);
  // Reads all that are known and compares them.
  void RequireFiles(FileSystem& fs) const;
  // fsck, everything read, finds nothing.
  void RequireSound(Env& on) const;
  // The figures of the store, which nobody has open, are those of its files and records, counted
  // anew.
  void RequireFigures(Env& on) const;

  Env& env;
  const std::string path;
  std::map<std::string, Bytes> files;
  std::vector<std::string> findings;  // not those of other threads
};

}  // namespace siltfs::testing
