#include "store/env/sim_trace.h"

#include <fmt/format.h>

#include <array>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "siltfs-trace-1\n";
constexpr uint8_t kLastKind = static_cast<uint8_t>(SimRecord::Kind::kSyncDirectory);
// A larger size is damage, not a write.
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 30;

constexpr std::array<const char*, kLastKind + 1> kKindNames = {
    "mark", "create",        "mkdir",  "write",  "truncate", "preallocate",
    "sync", "lose-unsynced", "rename", "remove", "rmdir",    "sync-directory"};

}  // namespace

Bytes EncodeTrace(const SimTrace& trace) {
  Encoder out;
  out.Raw(kMagic).U64(trace.size());
  for (const SimRecord& record : trace) {
    out.U8(static_cast<uint8_t>(record.kind)).U64(record.file).U64(record.offset);
    out.Text16(record.path).Text16(record.to).U64(record.data.size()).Raw(record.data);
  }
  const ByteView all = out.view();
  return Bytes(all.begin(), all.end());
}

Result<SimTrace> DecodeTrace(ByteView bytes) {
  const Status malformed(StatusCode::kCorruption, "is not a whole trace of a simulated device");
  malformed.IgnoreError("returned below where it applies");
  Decoder in(bytes);
  const ByteView magic = in.Raw(kMagic.size());
  const uint64_t count = in.U64();
  if (!in.ok() || AsText(magic) != kMagic) return malformed;
  SimTrace trace;
  for (uint64_t i = 0; i < count; ++i) {
    SimRecord record;
    const uint8_t kind = in.U8();
    record.file = in.U64();
    record.offset = in.U64();
    record.path = in.Text16();
    record.to = in.Text16();
    const uint64_t length = in.U64();
    if (!in.ok() || kind > kLastKind || length > kMaxDataBytes || length > in.remaining()) {
      return malformed;
    }
    record.kind = static_cast<SimRecord::Kind>(kind);
    const ByteView data = in.Raw(length);
    record.data.assign(data.begin(), data.end());
    trace.push_back(std::move(record));
  }
  if (!in.Done()) return malformed;
  return trace;
}

std::string Describe(const SimRecord& record) {
  using Kind = SimRecord::Kind;
  const char* name = kKindNames.at(static_cast<size_t>(record.kind));
  switch (record.kind) {
    case Kind::kMark:
      return fmt::format("{} ({} bytes)", name, record.data.size());
    case Kind::kRename:
      return fmt::format("{} {} to {}", name, record.path, record.to);
    case Kind::kWrite:
      return fmt::format("{} file {}: {} bytes at {}", name, record.file, record.data.size(),
                         record.offset);
    case Kind::kTruncate:
    case Kind::kPreallocate:
      return fmt::format("{} file {} to {}", name, record.file, record.offset);
    case Kind::kSync:
    case Kind::kLoseUnsynced:
      return fmt::format("{} file {}", name, record.file);
    default:
      return fmt::format("{} {}", name, record.path);
  }
}

}  // namespace siltfs
