#include "fs/shipping/reader_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr std::string_view kMagic = "siltrdr1";
constexpr uint16_t kVersion = 1;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kMostHostBytes = 255;

Status Damaged() { return {StatusCode::kCorruption, "the object of a reader is damaged"}; }

}  // namespace

std::string ReaderKey(const std::array<uint8_t, 16>& id) {
  std::string key(kReaderPrefix);
  for (const uint8_t byte : id) key += fmt::format("{:02x}", byte);
  return key;
}

std::string EncodeReader(const ReaderObject& reader) {
  Encoder out;
  out.Raw(kMagic).U16(kVersion).Zeros(2).Raw(ByteView(reader.id));
  out.U64(reader.beat).U64(reader.reached).I64(reader.age.count());
  out.Text16(std::string_view(reader.host).substr(0, kMostHostBytes));
  const uint64_t checksum = Checksum(out.view());
  out.U64(checksum);
  return out.Take();
}

Result<ReaderObject> DecodeReader(ByteView bytes) {
  if (bytes.size() < kMagic.size() + kChecksumBytes) return Damaged();
  const ByteView body = bytes.first(bytes.size() - kChecksumBytes);
  if (Decoder(bytes.last(kChecksumBytes)).U64() != Checksum(body)) return Damaged();
  Decoder in(body);
  if (AsText(in.Raw(kMagic.size())) != kMagic) return Damaged();
  if (in.U16() != kVersion) {
    return Status(StatusCode::kNeedsNewer, "the object of a reader was put by a newer siltfs");
  }
  in.Skip(2);
  ReaderObject reader;
  const ByteView id = in.Raw(reader.id.size());
  if (id.size() == reader.id.size()) std::memcpy(reader.id.data(), id.data(), id.size());
  reader.beat = in.U64();
  reader.reached = in.U64();
  reader.age = std::clamp<std::chrono::nanoseconds>(std::chrono::nanoseconds(in.I64()),
                                                    std::chrono::nanoseconds(0), kLongestReaderAge);
  reader.host = in.Text16();
  return in.Done() ? Result<ReaderObject>(std::move(reader)) : Result<ReaderObject>(Damaged());
}

}  // namespace siltfs
