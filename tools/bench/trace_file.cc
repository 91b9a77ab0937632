#include "tools/bench/trace_file.h"

#include <algorithm>
#include <cstring>

#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "SILTTRC\n";
constexpr size_t kHeaderSize = 24;
constexpr size_t kChecksumSize = 8;
constexpr uint64_t kMostBytes = uint64_t{64} << 30;

Status NoTrace(const std::string& path, const char* why) {
  return Status(StatusCode::kCorruption, why).At(path);
}

}  // namespace

Status WriteTrace(Env& env, const std::string& path, const DedupTrace& trace) {
  Encoder out;
  out.Raw(kMagic).U32(trace.chunk_bytes).U32(trace.value_bytes).U64(trace.names.size());
  for (const ChunkName& name : trace.names) out.Raw(name.view());
  out.U64(Checksum(out.view()));
  return ReplaceFile(env, path, out.view());
}

Result<DedupTrace> ReadTrace(Env& env, const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const std::string contents, ReadWholeFile(env, path, kMostBytes));
  const ByteView bytes = AsBytes(contents);
  if (bytes.size() < kHeaderSize + kChecksumSize) return NoTrace(path, "is too short for a trace");
  const ByteView checked = bytes.first(bytes.size() - kChecksumSize);
  Decoder in(checked);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return NoTrace(path, "is no trace");
  if (Decoder(bytes.last(kChecksumSize)).U64() != Checksum(checked)) {
    return NoTrace(path, "has a wrong checksum");
  }
  DedupTrace trace;
  trace.chunk_bytes = in.U32();
  trace.value_bytes = in.U32();
  const uint64_t count = in.U64();
  if (count != in.remaining() / ChunkName::kSize || in.remaining() % ChunkName::kSize != 0) {
    return NoTrace(path, "has a wrong length");
  }
  trace.names.resize(count);
  for (ChunkName& name : trace.names) {
    const ByteView name_bytes = in.Raw(ChunkName::kSize);
    std::copy(name_bytes.begin(), name_bytes.end(), name.bytes.begin());
  }
  return trace;
}

}  // namespace siltfs
