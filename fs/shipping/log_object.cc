#include "fs/shipping/log_object.h"

#include <fmt/format.h>

#include <cstring>

#include "fs/shipping/zstd_text.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "siltlog1";
constexpr uint16_t kVersion = 1;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kNumberDigits = 16;
// Of a commit: its sequence and the bytes of its mutations.
constexpr size_t kCommitHead = 8 + 4;
constexpr uint8_t kRemoved = 0;
constexpr uint8_t kSet = 1;

Status Damaged(std::string_view what) {
  return Status(StatusCode::kCorruption, fmt::format("the log object is damaged: {}", what));
}

}  // namespace

std::string LogKey(uint64_t number) { return fmt::format("{}{:016x}", kLogPrefix, number); }

uint64_t ParseLogKey(std::string_view key) {
  if (!key.starts_with(kLogPrefix)) return 0;
  key.remove_prefix(kLogPrefix.size());
  if (key.size() != kNumberDigits) return 0;
  uint64_t number = 0;
  for (const char digit : key) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && !(digit >= 'a' && digit <= 'f')) return 0;
    number = number << 4 | static_cast<uint64_t>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return number;
}

Result<std::string> EncodeLogObject(const LogObject& object) {
  const std::string plain = object.attachment + object.commits;
  SILTFS_ASSIGN_OR_RETURN(const std::string payload, CompressText(AsBytes(plain)));
  Encoder out;
  out.Raw(kMagic).U16(kVersion).U8(static_cast<uint8_t>(object.kind)).U8(0);
  out.U32(object.epoch).U64(object.number).U64(object.previous);
  out.U64(object.first).U64(object.last).I64(object.time_ns).I64(object.lease_end_ns);
  out.Raw(ByteView(object.writer.id)).U64(object.manifest);
  out.Text16(object.writer.host.substr(0, 255));
  out.U32(static_cast<uint32_t>(object.attachment.size())).U32(static_cast<uint32_t>(plain.size()));
  out.Raw(payload);
  const uint64_t checksum = Checksum(out.view());
  out.U64(checksum);
  return out.Take();
}

uint64_t ChecksumOfLogObject(ByteView bytes) {
  if (bytes.size() < kChecksumBytes) return 0;
  return Decoder(bytes.last(kChecksumBytes)).U64();
}

Result<LogObject> DecodeLogObject(ByteView bytes) {
  if (bytes.size() < kMagic.size() + kChecksumBytes) return Damaged("it is too short");
  const ByteView body = bytes.first(bytes.size() - kChecksumBytes);
  if (Checksum(body) != ChecksumOfLogObject(bytes)) return Damaged("its checksum differs");
  Decoder in(body);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged("it is no log object");
  if (const uint16_t version = in.U16(); version != kVersion) {
    return Status(
        StatusCode::kNeedsNewer,
        fmt::format("the log object has version {}, this program knows {}", version, kVersion));
  }
  LogObject object;
  object.kind = static_cast<LogKind>(in.U8());
  in.U8();
  object.epoch = in.U32();
  object.number = in.U64();
  object.previous = in.U64();
  object.first = in.U64();
  object.last = in.U64();
  object.time_ns = in.I64();
  object.lease_end_ns = in.I64();
  const ByteView id = in.Raw(object.writer.id.size());
  if (id.size() == object.writer.id.size())
    std::memcpy(object.writer.id.data(), id.data(), id.size());
  object.manifest = in.U64();
  object.writer.host = in.Text16();
  const uint32_t attached = in.U32();
  const uint32_t plain_bytes = in.U32();
  if (!in.ok() || attached > plain_bytes || plain_bytes > kMostLogObjectBytes)
    return Damaged("its sizes are wrong");
  if (object.kind != LogKind::kEpoch && object.kind != LogKind::kCommits &&
      object.kind != LogKind::kCheckpoint) {
    return Damaged("its kind is unknown");
  }
  SILTFS_ASSIGN_OR_RETURN(std::string plain, DecompressText(in.Raw(in.remaining()), plain_bytes));
  object.attachment = plain.substr(0, attached);
  object.commits = plain.substr(attached);
  return object;
}

CommitEncoder::CommitEncoder(uint64_t sequence) {
  Encoder head;
  head.U64(sequence).U32(0);
  bytes_ = head.Take();
}

void CommitEncoder::Text(std::string_view text) {
  Encoder size;
  size.U32(static_cast<uint32_t>(text.size()));
  bytes_ += size.text();
  bytes_ += text;
}

void CommitEncoder::Put(std::string_view key, std::string_view value) {
  bytes_ += static_cast<char>(kSet);
  Text(key);
  Text(value);
}

void CommitEncoder::Remove(std::string_view key) {
  bytes_ += static_cast<char>(kRemoved);
  Text(key);
}

std::string CommitEncoder::Take() {
  Encoder size;
  size.U32(static_cast<uint32_t>(bytes_.size() - kCommitHead));
  bytes_.replace(kCommitHead - 4, 4, size.text());
  return std::move(bytes_);
}

Status ForEachCommit(
    ByteView commits,
    const std::function<Status(uint64_t sequence, std::vector<Mutation>& mutations)>& visit) {
  Decoder in(commits);
  while (in.ok() && in.remaining() > 0) {
    const uint64_t sequence = in.U64();
    Decoder body(in.Raw(in.U32()));
    std::vector<Mutation> mutations;
    while (body.ok() && body.remaining() > 0) {
      const uint8_t set = body.U8();
      Mutation& mutation = mutations.emplace_back();
      mutation.key = AsText(body.Raw(body.U32()));
      if (set == kSet) mutation.value = AsText(body.Raw(body.U32()));
      if (set > kSet) return Damaged("a mutation has an unknown kind");
    }
    if (!in.ok() || !body.ok()) break;
    SILTFS_RETURN_IF_ERROR(visit(sequence, mutations));
  }
  return in.ok() ? Status::Ok() : Damaged("a commit is cut off");
}

}  // namespace siltfs
