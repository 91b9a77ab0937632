#include "fs/records/source_record.h"

#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kEncodingVersion = 1;

uint64_t ChecksumOf(const Recipe& recipe) { return Checksum(recipe.Encode()); }

}  // namespace

void SourceRecord::DescribeFile(const InodeRecord& file) {
  own_ctime = file.ctime;
  recipe_checksum = ChecksumOf(file.recipe);
}

bool SourceRecord::HasContentOf(const InodeRecord& file) const {
  return file.IsRegular() && !file.has_overlay && file.size == size &&
         file.recipe_limit == file.size && file.recipe.size() == file.size &&
         recipe_checksum == ChecksumOf(file.recipe);
}

std::string SourceRecord::Encode() const {
  Encoder out;
  out.U8(kEncodingVersion).U64(inode).I64(ctime).U64(size).I64(mtime);
  out.I64(own_ctime).U64(recipe_checksum);
  return out.Take();
}

Result<SourceRecord> SourceRecord::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  SourceRecord record;
  const uint8_t version = in.U8();
  record.inode = in.U64();
  record.ctime = in.I64();
  record.size = in.U64();
  record.mtime = in.I64();
  record.own_ctime = in.I64();
  record.recipe_checksum = in.U64();
  if (version != kEncodingVersion || !in.Done())
    return Status(StatusCode::kCorruption, "metadata holds a malformed source record");
  return record;
}

}  // namespace siltfs
