// The objects of the log in a bucket (docs/format.md#log-of-commits-in-a-bucket). Each object has a
// number, and the object with the next number follows it. It names the checksum of its predecessor,
// so that the objects form a chain.
//
// clang-format off
//   kind          says
//   kEpoch        a writer has the bucket from here on
//   kCommits      these commits follow (or none: the writer is still there)
//   kCheckpoint   the manifest with this number is complete, and has the state of `last`
// clang-format on
//
// Thread-safety: pure functions, and values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr std::string_view kLogPrefix = "log/";
// No log object is larger.
inline constexpr uint64_t kMostLogObjectBytes = uint64_t{1} << 30;

std::string LogKey(uint64_t number);
// 0 if this is no key of a log object.
uint64_t ParseLogKey(std::string_view key);

// A copy of a store that writes to a bucket. The id is drawn when the copy is made.
struct WriterIdentity {
  std::array<uint8_t, 16> id{};
  std::string host;

  bool operator==(const WriterIdentity&) const = default;
};

enum class LogKind : uint8_t { kEpoch = 1, kCommits = 2, kCheckpoint = 3 };

struct LogObject {
  LogKind kind = LogKind::kCommits;
  uint32_t epoch = 0;     // of the writer; each kEpoch object has the next one
  uint64_t number = 0;    // of the object, from 1 on
  uint64_t previous = 0;  // checksum of the object with the number before; 0 for the first
  // The sequences of the commits in the object; `first` is `last` + 1 if there are none.
  uint64_t first = 1;
  uint64_t last = 0;
  // Since 1970, UTC: the state after the object has all commits up to then. The time of its last
  // commit, or of the object itself if no commit waited.
  int64_t time_ns = 0;
  int64_t lease_end_ns = 0;  // until then the writer counts as alive
  WriterIdentity writer;
  uint64_t manifest = 0;   // kCheckpoint: the checksum of the manifest
  std::string attachment;  // bytes of the caller that belong to the state after the object
  std::string commits;     // encoded by AppendCommit
};

// A whole object. Its checksum is its last 8 bytes.
Result<std::string> EncodeLogObject(const LogObject& object);
// kCorruption, and kNeedsNewer for another version.
Result<LogObject> DecodeLogObject(ByteView bytes);
uint64_t ChecksumOfLogObject(ByteView bytes);

// Encodes the mutations of one commit, one by one.
class CommitEncoder final : public MutationSink {
 public:
  explicit CommitEncoder(uint64_t sequence);
  void Put(std::string_view key, std::string_view value) override;
  void Remove(std::string_view key) override;
  std::string Take();

 private:
  void Text(std::string_view text);
  std::string bytes_;
};

// Calls `visit` with each commit, in order. kCorruption.
Status ForEachCommit(
    ByteView commits,
    const std::function<Status(uint64_t sequence, std::vector<Mutation>& mutations)>& visit);

}  // namespace siltfs
