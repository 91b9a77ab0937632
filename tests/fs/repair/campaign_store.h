// The store that a campaign damages. It has short, long, shared, sparse and compressible files, and
// files overwritten in place. It was written in two mounts and unmounted; its bytes are the same in
// every run.
//
// Not thread-safe; const calls from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fs/interface/file_system.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/sim_env.h"

namespace siltfs::testing {

class CampaignStore {
 public:
  static constexpr char kPath[] = "/store";

  // About `bytes` on flash, in segments of `segment_bytes`.
  CampaignStore(uint64_t bytes, uint64_t segment_bytes);

  static Result<std::unique_ptr<FileSystem>> Open(Env& env, bool read_only);

  const SimEnv& env() const { return env_; }
  // Path and size of every file of the store.
  const std::map<std::string, uint64_t>& sizes() const { return sizes_; }
  // Where a segment's blocks end: at its footer or, if it is not sealed, at the end of the file.
  // nullopt if the path is not a segment.
  std::optional<uint64_t> BlocksEnd(const std::string& path) const;
  // The contents of all files, by name. All files are in the root directory.
  const std::map<std::string, Bytes>& files() const { return files_; }
  uint64_t bytes() const { return bytes_; }  // on flash

 private:
  void Write(FileSystem& fs, const std::string& name, const Bytes& content);
  void List(const std::string& directory);
  void FindBlockEnds();

  SimEnv env_;
  std::map<std::string, Bytes> files_;
  std::map<std::string, uint64_t> sizes_;
  std::map<std::string, uint64_t> block_ends_;  // by the segments' paths
  uint64_t bytes_ = 0;
};

}  // namespace siltfs::testing
