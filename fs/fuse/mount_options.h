// The options of a mount (-o a,b=c), parsed and checked once.
//
// Three kinds are taken: siltfs's own; what the kernel and libfuse know and siltfs lets through;
// and what mount(8) hands every helper though it means nothing to a file system (noauto, user,
// _netdev, x-...), which is dropped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

struct MountOptions {
  bool read_only = false;
  bool allow_other = false;
  bool allow_root = false;
  bool no_xattrs = false;                // extended attributes do not exist
  bool no_background_gc = false;         // garbage is collected only when asked for
  std::optional<uint64_t> index_memory;  // bytes
  std::optional<std::chrono::seconds> commit_interval;
  std::optional<std::string> log_file;  // path; else the system log
  std::optional<uint32_t> max_read;     // bytes a READ request asks for at most
  bool debug = false;                   // libfuse prints every request
  std::vector<std::string> passed_on;   // to libfuse as they are: "nosuid", "context=..."; "suid"
                                        // and "dev" only for the superuser
};

inline constexpr std::chrono::seconds kMinCommitInterval{1};
inline constexpr std::chrono::seconds kMaxCommitInterval{3600};

// Each of `lists` is the argument of one -o. Where options contradict each other the last one
// counts. kInvalidArgument, with one sentence for the user, for an option that is unknown or whose
// value makes no sense.
Result<MountOptions> ParseMountOptions(std::span<const std::string> lists);

}  // namespace siltfs
