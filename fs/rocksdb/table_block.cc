#include "fs/rocksdb/table_block.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

enum Compression : uint8_t { kPlain = 0, kLz4 = 4, kZstd = 7 };

constexpr size_t kKeyTrailerBytes = 8;
constexpr uint8_t kRemoval = 0;
constexpr uint8_t kValue = 1;
constexpr uint64_t kMostPlainBytes = 1u << 20;
constexpr uint64_t kMostKeyBytes = 1024;
// So many uncompressed bytes suffice to read the three lengths of the first entry.
constexpr size_t kStartBytes = 12;

// The compression of the block in the first `length` bytes; nullopt if the bytes that follow are
// not the trailer of such a block.
std::optional<uint8_t> CompressionOf(ByteView bytes, size_t length) {
  const uint8_t compression = bytes[length];
  if (compression != kPlain && compression != kLz4 && compression != kZstd) return std::nullopt;
  const uint32_t stored = Decoder(bytes.subspan(length + 1, 4)).U32();
  const auto actual = static_cast<uint32_t>(Checksum(bytes.first(length)));
  if (stored != (actual ^ (uint32_t{compression} * 0x6b9083d9u))) return std::nullopt;
  return compression;
}

// The length of a block with this compression and at most `most` bytes at the beginning of `bytes`;
// 0 if there is none.
size_t FindEnd(ByteView bytes, size_t most, uint8_t compression) {
  const size_t beyond = bytes.size() < kBlockTrailerBytes ? 0 : bytes.size() - kBlockTrailerBytes;
  for (size_t length = 1; length <= std::min(most, beyond); ++length) {
    if (bytes[length] == compression && CompressionOf(bytes, length)) return length;
  }
  return 0;
}

// The beginning of a block's first entry, which shares no prefix.
struct Start {
  size_t key_end = 0;  // from the beginning of the entry
  uint64_t value_bytes = 0;
};

std::optional<Start> ReadStart(ByteView plain) {
  Decoder in(plain);
  const auto shared = DecodeVarint(in);
  const auto rest = DecodeVarint(in);
  const auto length = DecodeVarint(in);
  const bool may_be = shared == uint64_t{0} && rest && length && *rest >= kKeyTrailerBytes &&
                      *rest <= kMostKeyBytes && *length <= kMostPlainBytes;
  if (!may_be) return std::nullopt;
  return Start{plain.size() - in.remaining() + *rest, *length};
}

// Whether `plain` can be the beginning of a first entry; false if it does not hold the whole key.
bool MayBegin(ByteView plain) {
  const auto start = ReadStart(plain);
  if (!start || start->key_end > plain.size()) return false;
  const uint8_t kind = plain[start->key_end - kKeyTrailerBytes];
  return kind == kValue || (kind == kRemoval && start->value_bytes == 0);
}

const char* AsChars(ByteView bytes) { return reinterpret_cast<const char*>(bytes.data()); }

std::optional<Bytes> UnpackLz4(ByteView packed, size_t size) {
  Bytes plain(size);
  const int got = LZ4_decompress_safe(AsChars(packed), reinterpret_cast<char*>(plain.data()),
                                      static_cast<int>(packed.size()), static_cast<int>(size));
  if (got < 0 || static_cast<size_t>(got) != size) return std::nullopt;
  return plain;
}

// The first `size` uncompressed bytes of a block with an unknown end; empty on failure.
Bytes UnpackLz4Start(ByteView packed, size_t size) {
  Bytes plain(size);
  const auto most = static_cast<int>(size);
  const int got =
      LZ4_decompress_safe_partial(AsChars(packed), reinterpret_cast<char*>(plain.data()),
                                  static_cast<int>(packed.size()), most, most);
  if (got != most) plain.clear();
  return plain;
}

bool MayBeginPacked(ByteView packed) {
  const auto start = ReadStart(UnpackLz4Start(packed, kStartBytes));
  return start && MayBegin(UnpackLz4Start(packed, start->key_end));
}

// Reads the uncompressed length before compressed bytes; nullopt if no block can have this length.
std::optional<uint64_t> ReadPlainLength(Decoder& in) {
  const auto length = DecodeVarint(in);
  if (!length || *length == 0 || *length > kMostPlainBytes) return std::nullopt;
  return length;
}

std::optional<Bytes> UnpackZstd(ByteView packed, size_t size) {
  Bytes plain(size);
  const size_t got = ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) != 0 || got != size) return std::nullopt;
  return plain;
}

struct Length {
  size_t bytes = 0;  // 0: no possible data block begins here
  uint8_t compression = kPlain;
};

Length FindLength(ByteView bytes) {
  if (MayBegin(bytes)) return {FindEnd(bytes, kMostBlockBytes, kPlain), kPlain};
  Decoder in(bytes);
  const auto plain = ReadPlainLength(in);
  if (!plain) return {};
  const ByteView packed = bytes.last(in.remaining());
  const size_t front = bytes.size() - packed.size();
  // A zstd frame itself shows where it ends.
  const size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) == 0) {
    const size_t length = front + frame;
    const bool whole = frame > 0 && length + kBlockTrailerBytes <= bytes.size() &&
                       CompressionOf(bytes, length) == uint8_t{kZstd};
    return {whole ? length : 0, kZstd};
  }
  if (!MayBeginPacked(packed)) return {};
  // RocksDB stores a block uncompressed if compression would make it longer. So compressed data is
  // never longer than the uncompressed data.
  return {FindEnd(bytes, front + *plain, kLz4), kLz4};
}

std::optional<Bytes> Unpack(ByteView block, uint8_t compression) {
  if (compression == kPlain) return Bytes(block.begin(), block.end());
  Decoder in(block);
  const auto size = ReadPlainLength(in);
  if (!size) return std::nullopt;
  const ByteView packed = block.last(in.remaining());
  return compression == kLz4 ? UnpackLz4(packed, *size) : UnpackZstd(packed, *size);
}

// The parts of a block: the entries, and the offsets of the restarts at its end, ascending from 0.
struct Parts {
  std::vector<uint32_t> restarts;
  ByteView entries;
};

std::optional<Parts> Divide(ByteView plain) {
  if (plain.size() < 8) return std::nullopt;
  const uint64_t count = Decoder(plain.last(4)).U32();
  if (count == 0 || count > (plain.size() - 4) / 4) return std::nullopt;
  Parts parts;
  parts.entries = plain.first(plain.size() - 4 - count * 4);
  Decoder in(plain.subspan(parts.entries.size()));
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t restart = in.U32();
    const bool fits = i == 0 ? restart == 0 : restart > parts.restarts.back();
    if (!fits || restart >= parts.entries.size()) return std::nullopt;
    parts.restarts.push_back(restart);
  }
  return parts;
}

// Calls `visit` with each entry. Returns false if `plain` is not a block, or if `visit` returns
// false.
template <typename Visit>
bool ForEachEntry(ByteView plain, const Visit& visit) {
  const auto parts = Divide(plain);
  if (!parts) return false;
  std::string key;
  size_t next_restart = 0;
  for (Decoder in(parts->entries); in.remaining() > 0;) {
    const size_t at = parts->entries.size() - in.remaining();
    const auto shared = DecodeVarint(in);
    const auto rest = DecodeVarint(in);
    const auto length = DecodeVarint(in);
    if (!shared || !rest || !length || *shared > key.size()) return false;
    if (next_restart < parts->restarts.size() && at == parts->restarts[next_restart]) {
      if (*shared != 0) return false;
      ++next_restart;
    }
    key.resize(*shared);
    key += AsText(in.Raw(*rest));
    const ByteView value = in.Raw(*length);
    if (!in.ok() || !visit(key, value)) return false;
  }
  return next_restart == parts->restarts.size();
}

}  // namespace

bool IsBefore(const StoredChange& a, const StoredChange& b) {
  return a.key != b.key ? a.key < b.key : a.number > b.number;
}

std::optional<uint64_t> DecodeVarint(Decoder& in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = in.U8();
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return in.ok() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<StoredChange>> ParseDataBlock(ByteView plain) {
  std::vector<StoredChange> changes;
  const bool parsed = ForEachEntry(plain, [&changes](std::string_view internal, ByteView value) {
    if (internal.size() < kKeyTrailerBytes) return false;
    const size_t key_bytes = internal.size() - kKeyTrailerBytes;
    const uint64_t trailer = Decoder(AsBytes(internal.substr(key_bytes))).U64();
    const auto kind = static_cast<uint8_t>(trailer);
    if (kind > kValue || (kind == kRemoval && !value.empty())) return false;
    StoredChange change;
    change.key = internal.substr(0, key_bytes);
    change.number = trailer >> 8;
    if (kind == kValue) change.value = std::string(AsText(value));
    if (!changes.empty() && !IsBefore(changes.back(), change)) return false;
    changes.push_back(std::move(change));
    return true;
  });
  if (!parsed) return std::nullopt;
  return changes;
}

std::optional<uint64_t> CountInProperties(ByteView plain) {
  std::optional<uint64_t> count;
  const bool parsed = ForEachEntry(plain, [&count](std::string_view key, ByteView value) {
    if (!key.starts_with("rocksdb.")) return false;
    Decoder in(value);
    if (key == "rocksdb.num.entries") count = DecodeVarint(in);
    return true;
  });
  return parsed ? count : std::nullopt;
}

std::optional<FoundBlock> FindDataBlock(ByteView bytes) {
  bytes = bytes.first(std::min(bytes.size(), kMostBlockBytes));
  const Length found = FindLength(bytes);
  if (found.bytes == 0) return std::nullopt;
  const auto plain = Unpack(bytes.first(found.bytes), found.compression);
  if (!plain) return std::nullopt;
  auto changes = ParseDataBlock(*plain);
  if (!changes) return std::nullopt;
  return FoundBlock{found.bytes + kBlockTrailerBytes, std::move(*changes)};
}

size_t FindAnyBlock(ByteView bytes) {
  bytes = bytes.first(std::min(bytes.size(), kMostBlockBytes));
  for (size_t length = 1; length + kBlockTrailerBytes <= bytes.size(); ++length) {
    if (CompressionOf(bytes, length)) return length + kBlockTrailerBytes;
  }
  return 0;
}

}  // namespace siltfs
