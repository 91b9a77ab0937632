#include "fs/records/directory_entry.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint32_t kTypeShift = 12;  // S_IFMT bits fit in 4

Status Malformed(const char* what) {
  return Status(StatusCode::kCorruption, std::string("metadata holds a malformed ") + what);
}

}  // namespace

std::string NameEntry::Encode() const {
  return Encoder().U64(inode).U8(static_cast<uint8_t>(type >> kTypeShift)).U64(cookie).Take();
}

Result<NameEntry> NameEntry::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  NameEntry entry;
  entry.inode = in.U64();
  entry.type = static_cast<uint32_t>(in.U8()) << kTypeShift;
  entry.cookie = in.U64();
  if (!in.Done() || entry.inode == 0) return Malformed("directory entry");
  return entry;
}

std::string CookieEntry::Encode() const {
  return Encoder().U64(inode).U8(static_cast<uint8_t>(type >> kTypeShift)).Raw(name).Take();
}

Result<CookieEntry> CookieEntry::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  CookieEntry entry;
  entry.inode = in.U64();
  entry.type = static_cast<uint32_t>(in.U8()) << kTypeShift;
  if (!in.ok() || entry.inode == 0) return Malformed("directory cookie");
  entry.name = AsText(in.Raw(in.remaining()));
  return entry;
}

}  // namespace siltfs
