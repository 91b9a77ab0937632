// The options of a mount (-o a,b=c), parsed and checked once.
//
// Three kinds are accepted: siltfs's own options; options of the kernel and libfuse that siltfs
// passes on; and options that mount(8) hands every helper although they mean nothing to a file
// system (noauto, user, _netdev, x-...), which are dropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/fuse/owner_mapping.h"
#include "fs/interface/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Whether requests come through FUSE over io_uring rather than through reads of /dev/fuse.
enum class IoUringUse : uint8_t {
  kAuto,  // if the kernel offers it
  kOn,    // the mount fails if the kernel does not offer it
  kOff,
};

struct MountOptions {
  bool read_only = false;
  bool allow_other = false;
  bool allow_root = false;
  bool no_xattrs = false;  // extended attributes do not exist
  OwnerMapping owners;     // shown in the place of the stored owners and modes
  SnapshotDirectoryMode snapshot_directory = SnapshotDirectoryMode::kHidden;
  std::string snapshot;  // shows this snapshot alone, and sets read_only; empty: the live files
  bool no_background_gc = false;         // GC runs only on request
  std::optional<uint64_t> index_memory;  // bytes
  bool index_sync = false;               // index entries are durable as soon as they are put
  uint64_t index_merge_rate = 0;         // bytes per second that the index rewrites; 0: no limit
  std::optional<std::chrono::seconds> commit_interval;
  std::optional<std::chrono::seconds> bucket_timeout;  // of reads, while the bucket fails
  bool sync_bucket = false;                            // what is durable is in the bucket
  // Of a read-only mount of a bucket: the time between looks at the bucket, and the time after
  // which the writer gives a silent mount up.
  std::optional<std::chrono::seconds> follow_interval;
  std::optional<std::chrono::seconds> reader_age;
  // Another machine changes the files, so the kernel must not keep sizes of its own. No option: the
  // caller sets it.
  bool follows = false;
  std::optional<std::string> log_file;  // path; without a value: the system log
  std::optional<uint32_t> max_read;     // most bytes of a READ request
  IoUringUse io_uring = IoUringUse::kAuto;
  // Where a store is searched that is named by its UUID or label; absolute paths. Empty: in the
  // usual places.
  std::vector<std::string> search;
  bool debug = false;                  // libfuse prints every request
  std::vector<std::string> passed_on;  // unchanged, to libfuse: "nosuid", "context=..."; "suid"
                                       // and "dev" only for the superuser
};

inline constexpr std::chrono::seconds kMinCommitInterval{1};
inline constexpr std::chrono::seconds kMaxCommitInterval{3600};

// Each of `lists` is the argument of one -o. If options contradict each other, the last one counts.
// An unknown option, an invalid value, or allow_other together with allow_root gives
// kInvalidArgument, with one sentence for the user.
Result<MountOptions> ParseMountOptions(std::span<const std::string> lists);

// The names of all options, without values.
std::vector<std::string> MountOptionNames();

}  // namespace siltfs
