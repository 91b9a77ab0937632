// What metadata knows of what garbage collection has to do, as of the last commit: value behind
// kGarbageKey. Figures and hints: nothing that is true of the store follows from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/result.h"

namespace siltfs {

struct GarbageRecord {
  // Of files' content, removed or replaced since chunks were last collected; about.
  uint64_t released_bytes = 0;
  // Dead in sealed segments when they were last counted, less what was removed since: bytes of the
  // segments, and of data chunks their number and plain bytes.
  uint64_t dead_bytes = 0;
  uint64_t dead_chunks = 0;
  uint64_t dead_plain_bytes = 0;

  bool operator==(const GarbageRecord&) const = default;

  std::string Encode() const;
  static Result<GarbageRecord> Decode(std::string_view value);
};

}  // namespace siltfs
