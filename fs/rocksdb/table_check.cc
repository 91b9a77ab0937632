#include "fs/rocksdb/table_check.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "fs/rocksdb/table_block.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr size_t kFooterBytes = 53;
constexpr size_t kHandlesBytes = 40;  // part of the footer: two handles, padded
constexpr size_t kTrailerBytes = 5;
constexpr uint64_t kTableMagic = 0x88e241b785f4cff7;
constexpr uint32_t kFormatVersion = 5;
constexpr uint8_t kXxh3 = 4;  // type of checksums
constexpr uint64_t kMaxBlockBytes = 1u << 20;
constexpr std::string_view kPropertiesName = "rocksdb.properties";

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;  // without the trailer
};

struct Footer {
  uint64_t offset = 0;  // of the footer itself
  BlockHandle metaindex;
};

Status Damage(const File& file, uint64_t offset, std::string cause) {
  return Status(StatusCode::kCorruption, std::move(cause)).At(file.path(), offset);
}

// Reads a varint; nullopt if it is too long or cut short.
std::optional<uint64_t> ReadVarint(Decoder& in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = in.U8();
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return in.ok() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

// Reads a handle; nullopt if it is malformed, or if its block with the trailer does not lie below
// `end`.
std::optional<BlockHandle> ReadHandle(Decoder& in, uint64_t end) {
  const std::optional<uint64_t> offset = ReadVarint(in);
  const std::optional<uint64_t> size = ReadVarint(in);
  if (!offset || !size || end < kTrailerBytes || *size > end - kTrailerBytes ||
      *offset > end - kTrailerBytes - *size) {
    return std::nullopt;
  }
  return BlockHandle{*offset, *size};
}

// nullopt if the file is not a table of the kind siltfs writes.
Result<std::optional<Footer>> ReadFooter(const File& file) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (size < kFooterBytes) return std::optional<Footer>();
  Footer footer;
  footer.offset = size - kFooterBytes;
  uint8_t bytes[kFooterBytes];
  SILTFS_RETURN_IF_ERROR(ReadExactly(file, footer.offset, bytes));
  Decoder in(bytes);
  const uint8_t checksum_type = in.U8();
  Decoder handles(in.Raw(kHandlesBytes));
  const uint32_t version = in.U32();
  if (in.U64() != kTableMagic) return std::optional<Footer>();
  // Older format versions compress blocks in another way. If damage has changed the version in the
  // footer to an older one, RocksDB would decode the table's blocks wrongly.
  if (version < kFormatVersion) {
    return Damage(
        file, footer.offset,
        fmt::format("the table's footer says format version {}, which was never used", version));
  }
  if (version > kFormatVersion || checksum_type != kXxh3) return std::optional<Footer>();
  const std::optional<BlockHandle> metaindex = ReadHandle(handles, footer.offset);
  if (!metaindex || !ReadHandle(handles, metaindex->offset)) {
    return Damage(file, footer.offset, "the table's footer points outside the table");
  }
  footer.metaindex = *metaindex;
  return std::optional(footer);
}

// Reads and verifies the block; `name` is for messages.
Result<Bytes> ReadBlock(const File& file, const BlockHandle& handle, std::string_view name) {
  if (handle.size > kMaxBlockBytes) {
    return Damage(file, handle.offset,
                  fmt::format("the table's {} would be {} bytes long", name, handle.size));
  }
  Bytes bytes(handle.size + kTrailerBytes);
  SILTFS_RETURN_IF_ERROR(ReadExactly(file, handle.offset, bytes));
  Decoder trailer(ByteView(bytes).last(kTrailerBytes));
  const uint32_t compression = trailer.U8();
  const uint32_t stored = trailer.U32();
  bytes.resize(handle.size);
  if (stored != (static_cast<uint32_t>(Checksum(bytes)) ^ (compression * 0x6b9083d9u))) {
    return Damage(file, handle.offset, fmt::format("the table's {} are damaged", name));
  }
  return bytes;
}

// Returns the value of `key` in the block at `handle`, if the key is there. Encoding of a block:
// table_block.h.
Result<std::optional<ByteView>> FindValue(const File& file, const BlockHandle& handle,
                                          ByteView block, std::string_view key) {
  const auto senseless = [&] {
    return Damage(file, handle.offset, "the table's names of blocks make no sense");
  };
  if (block.size() < 4) return senseless();
  const uint64_t offsets_bytes = uint64_t{Decoder(block.last(4)).U32()} * 4;
  if (offsets_bytes > block.size() - 4) return senseless();
  Decoder in(block.first(block.size() - 4 - offsets_bytes));
  std::string found;
  while (in.remaining() > 0) {
    const auto shared = ReadVarint(in);
    const auto rest = ReadVarint(in);
    const auto length = ReadVarint(in);
    if (!shared || !rest || !length || *shared > found.size()) return senseless();
    found.resize(*shared);
    found += AsText(in.Raw(*rest));
    const ByteView value = in.Raw(*length);
    if (!in.ok()) return senseless();
    if (found == key) return std::optional(value);
  }
  return std::optional<ByteView>();
}

// Reads the properties block; nullopt if there is none, or the file is not a table of the kind
// siltfs writes.
Result<std::optional<Bytes>> ReadProperties(const File& file) {
  SILTFS_ASSIGN_OR_RETURN(const std::optional<Footer> footer, ReadFooter(file));
  if (!footer) return std::optional<Bytes>();
  const BlockHandle& metaindex = footer->metaindex;
  SILTFS_ASSIGN_OR_RETURN(const Bytes names, ReadBlock(file, metaindex, "names of blocks"));
  SILTFS_ASSIGN_OR_RETURN(const std::optional<ByteView> value,
                          FindValue(file, metaindex, names, kPropertiesName));
  if (!value) return std::optional<Bytes>();
  Decoder in(*value);
  const std::optional<BlockHandle> properties = ReadHandle(in, metaindex.offset);
  if (!properties) {
    return Damage(file, metaindex.offset, "the table's properties lie outside the table");
  }
  SILTFS_ASSIGN_OR_RETURN(Bytes bytes, ReadBlock(file, *properties, "properties"));
  return std::optional(std::move(bytes));
}

}  // namespace

Status CheckTable(const File& file) { return ReadProperties(file).status(); }

std::optional<uint64_t> CountInTable(const File& file) {
  const auto properties = ReadProperties(file);
  if (!properties.ok() || !*properties) {
    properties.status().IgnoreError("then the count is unknown");
    return std::nullopt;
  }
  return CountInProperties(**properties);
}

}  // namespace siltfs
