#include "fs/ops/cloned_links.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fs/records/schema.h"

namespace siltfs {

Result<std::optional<uint64_t>> ClonedLinks::CountName(uint64_t inode) {
  auto found = links_.find(inode);
  if (found == links_.end() && spilled_) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, writer_.Written()->Get(writer_.LinkKey(inode)));
    if (value) {
      SILTFS_ASSIGN_OR_RETURN(const HiddenLink link, HiddenLink::Decode(*value));
      if (links_.size() >= most_) SILTFS_RETURN_IF_ERROR(Spill());
      found = links_.emplace(inode, link).first;
    }
  }
  if (found == links_.end()) return std::optional<uint64_t>();
  HiddenLink& link = found->second;
  const uint64_t copy = link.copy;
  ++link.names;
  // A file with a link record is kept until it is spilled again, so that the record counts all
  // names.
  if (link.names == link.links && !spilled_) links_.erase(found);
  return std::optional(copy);
}

Status ClonedLinks::Add(uint64_t inode, uint64_t copy, uint32_t links) {
  if (links_.size() >= most_) SILTFS_RETURN_IF_ERROR(Spill());
  links_.emplace(inode, HiddenLink{.copy = copy, .names = 1, .links = links});
  return Status::Ok();
}

Status ClonedLinks::Spill() {
  for (const auto& [inode, link] : links_) writer_.PutLink(inode, link.Encode());
  links_.clear();
  spilled_ = true;
  return writer_.FlushAndWait();
}

Status ClonedLinks::Finish(
    const std::function<Status(uint64_t inode, const HiddenLink& link)>& visit) {
  if (!spilled_) {
    std::vector<std::pair<uint64_t, HiddenLink>> left(links_.begin(), links_.end());
    links_.clear();
    std::sort(left.begin(), left.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [inode, link] : left) SILTFS_RETURN_IF_ERROR(visit(inode, link));
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(Spill());
  const auto written = writer_.Written();
  const KeyRange range = writer_.LinkKeys();
  const auto iterator = written->NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto key = ParseNumberedKey(Table::kHidden, iterator->key());
    if (!key) return Status(StatusCode::kCorruption, "metadata holds a malformed link record");
    SILTFS_ASSIGN_OR_RETURN(const HiddenLink link, HiddenLink::Decode(iterator->value()));
    if (link.names != link.links) SILTFS_RETURN_IF_ERROR(visit(key->number, link));
    writer_.RemoveLink(std::string(iterator->key()));
    if (writer_.IsFull()) SILTFS_RETURN_IF_ERROR(writer_.Flush());
  }
  return iterator->status();
}

}  // namespace siltfs
