#include "fs/records/inode_record.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kEncodingVersion = 1;
// Flags.
constexpr uint8_t kHasOverlay = 1;
constexpr uint8_t kHasQuota = 2;
constexpr size_t kMaxTargetBytes = 4095;

Status Malformed(const char* why) {
  return Status(StatusCode::kCorruption, std::string("metadata holds a malformed inode: ") + why);
}

}  // namespace

std::string InodeRecord::Encode() const {
  Encoder out;
  out.U8(kEncodingVersion).U8((has_overlay ? kHasOverlay : 0) | (quota != 0 ? kHasQuota : 0));
  out.U32(mode).U32(links).U32(uid).U32(gid);
  out.U64(IsDevice() || IsDirectory() ? device : parent).U64(size);
  out.I64(atime).I64(mtime).I64(ctime).I64(btime).U32(xattrs);
  if (quota != 0) out.U64(quota);
  if (IsDirectory()) {
    out.U64(parent).U64(next_cookie).U64(entries);
  } else if (IsSymlink()) {
    out.Text16(target);
  } else if (IsRegular()) {
    out.U64(recipe_limit).U64(overlay_chunks).U64(overlay_bytes);
    recipe.EncodeTo(out);
  }
  return out.Take();
}

Result<InodeRecord> InodeRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  InodeRecord record;
  if (in.U8() != kEncodingVersion) return Malformed("unknown version");
  const uint8_t flags = in.U8();
  record.has_overlay = (flags & kHasOverlay) != 0;
  record.mode = in.U32();
  record.links = in.U32();
  record.uid = in.U32();
  record.gid = in.U32();
  const uint64_t device_or_parent = in.U64();
  (record.IsDevice() || record.IsDirectory() ? record.device : record.parent) = device_or_parent;
  record.size = in.U64();
  record.atime = in.I64();
  record.mtime = in.I64();
  record.ctime = in.I64();
  record.btime = in.I64();
  record.xattrs = in.U32();
  if ((flags & kHasQuota) != 0) {
    record.quota = in.U64();
    if (in.ok() && record.quota == 0) return Malformed("no number of a quota");
  }
  if (record.IsDirectory()) {
    record.parent = in.U64();
    record.next_cookie = in.U64();
    record.entries = in.U64();
  } else if (record.IsSymlink()) {
    record.target = in.Text16();
    if (record.target.size() > kMaxTargetBytes) return Malformed("target too long");
  } else if (record.IsRegular()) {
    record.recipe_limit = in.U64();
    record.overlay_chunks = in.U64();
    record.overlay_bytes = in.U64();
    auto recipe = Recipe::DecodeFrom(in);
    if (!recipe.ok()) return std::move(recipe).status();
    record.recipe = std::move(recipe).value();
    if (record.recipe_limit > record.recipe.size()) return Malformed("limit beyond its recipe");
    if (record.recipe_limit > record.size) return Malformed("recipe beyond its size");
  }
  if (!in.Done()) return Malformed("wrong length");
  if (record.size > kMaxRecipeBytes) return Malformed("size out of bounds");
  return record;
}

bool InodeRecord::HasQuotaNumber(std::string_view value) {
  return value.size() > 1 && (static_cast<uint8_t>(value[1]) & kHasQuota) != 0;
}

}  // namespace siltfs
