// A store with small segments and blocks, so that a few files fill several, and files that compress
// better in larger blocks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "store/env/env.h"
#include "store/segment/base_chooser.h"

namespace siltfs::testing {

// Lines drawn from a few hundred: repeated lines are far apart, and no two chunks are alike.
Bytes RepetitiveBytes(uint64_t seed, size_t size);

struct RecompressionStore {
  // Makes the store at `path`.
  RecompressionStore(Env& environment, std::string store_path, uint32_t segment_bytes = 64u << 10,
                     int compression_level = 3);

  // From now on recompression makes deltas, with bases that the chooser offers. The store is
  // closed.
  void AllowDeltas(BaseChooser& chooser);

  Result<std::unique_ptr<FileSystem>> Open(Env& on, bool read_only = false) const;
  // Writes files of 60 KB, named by their seed, and adds them to `files`. They are closed.
  void WriteFiles(FileSystem& fs, uint64_t first_seed, int count);
  // Reads and compares all of `files`.
  void RequireFiles(FileSystem& fs) const;
  // Requires that fsck, reading everything, finds nothing.
  void RequireSound(Env& on) const;
  // Requires that the closed store is sound, before and after it is opened read-only and for
  // writing, and has all of `files`.
  void RequireOpensWhole(Env& on) const;
  // Requires that the closed store's statistics match a recount of its files and records.
  void RequireStatistics(Env& on) const;

  Env& env;
  std::chrono::milliseconds deletion_patience{0};  // of the next Open
  BaseChooser* base_chooser = nullptr;
  const std::string path;
  std::map<std::string, Bytes> files;
};

}  // namespace siltfs::testing
