#include "fs/ops/xattr_list.h"

#include "fs/records/schema.h"
#include "fs/records/source_record.h"

namespace siltfs {

Result<std::vector<std::string>> ListXattrNames(const MetadataStore& metadata, const Inode& inode) {
  std::vector<std::string> names;
  if (inode.record.xattrs == 0) return names;
  const KeyRange range = RangeOf(Table::kXattr, inode.number);
  SILTFS_RETURN_IF_ERROR(
      metadata.Pin().Scan(range.begin, range.end, [&names](std::string_view key, std::string_view) {
        const auto name = ParseXattrName(key);
        if (name && !IsHiddenXattr(*name)) names.emplace_back(*name);
        return true;
      }));
  return names;
}

Status CheckXattrList(const MetadataStore& metadata, const Inode& inode,
                      std::string_view new_name) {
  constexpr size_t kMostOfOne = 255 + 1;
  if (inode.record.xattrs < kMaxXattrListBytes / kMostOfOne) return Status::Ok();
  size_t bytes = new_name.size() + 1;
  const KeyRange range = RangeOf(Table::kXattr, inode.number);
  SILTFS_RETURN_IF_ERROR(
      metadata.Pin().Scan(range.begin, range.end, [&bytes](std::string_view key, std::string_view) {
        const auto name = ParseXattrName(key);
        if (name && !IsHiddenXattr(*name)) bytes += name->size() + 1;
        return true;
      }));
  if (bytes <= kMaxXattrListBytes) return Status::Ok();
  return Status(StatusCode::kNoSpace, "the list of attribute names would be too long");
}

}  // namespace siltfs
