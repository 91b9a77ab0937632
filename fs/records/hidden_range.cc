#include "fs/records/hidden_range.h"

#include <utility>

#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

// The most keys that one write removes.
constexpr size_t kKeysPerWrite = 8192;

Status Malformed() {
  return {StatusCode::kCorruption, "metadata holds a malformed record of hidden inodes"};
}

class Remover {
 public:
  Remover(const KvSnapshot& snapshot, const WriteMutations& write)
      : snapshot_(snapshot), write_(write) {}

  Status Remove(const KeyRange& range) {
    const auto iterator = snapshot_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next())
      SILTFS_RETURN_IF_ERROR(Remove(std::string(iterator->key())));
    return iterator->status();
  }
  Status Remove(std::string key) {
    mutations_.push_back({std::move(key), std::nullopt});
    return mutations_.size() < kKeysPerWrite ? Status::Ok() : Flush();
  }
  Status Flush() {
    if (mutations_.empty()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(write_(mutations_));
    mutations_.clear();
    return Status::Ok();
  }

 private:
  const KvSnapshot& snapshot_;
  const WriteMutations& write_;
  std::vector<Mutation> mutations_;
};

}  // namespace

std::string HiddenRange::EncodeEnd() const { return Encoder().U64(end).Take(); }

std::string HiddenLink::Encode() const { return Encoder().U64(copy).U32(names).U32(links).Take(); }

Result<HiddenLink> HiddenLink::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  HiddenLink link;
  link.copy = in.U64();
  link.names = in.U32();
  link.links = in.U32();
  if (!in.Done()) return Malformed();
  return link;
}

Result<std::vector<HiddenRange>> ReadHiddenRanges(const KvSnapshot& snapshot) {
  std::vector<HiddenRange> found;
  const KeyRange range = RangeOf(Table::kHidden);
  const auto iterator = snapshot.NewIteratorBelow(range.end);
  iterator->Seek(range.begin);
  while (iterator->Valid()) {
    const auto first = ParseInodeKey(Table::kHidden, iterator->key());
    Decoder in(AsBytes(iterator->value()));
    const uint64_t end = in.U64();
    if (!first || !in.Done() || end <= *first) return Malformed();
    if (!found.empty() && found.back().end > *first) return Malformed();
    found.push_back({*first, end});
    iterator->Seek(RangeOf(Table::kHidden, *first).end);  // skips the link records
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return found;
}

Status RemoveHiddenRange(const KvSnapshot& snapshot, const HiddenRange& range,
                         const WriteMutations& write) {
  Remover remover(snapshot, write);
  for (const Table table : kTablesOfInodes)
    SILTFS_RETURN_IF_ERROR(remover.Remove(RangeOf(table, range.first, range.end)));
  // The link records begin after the key of the range. That key must go last.
  const std::string key = HiddenRangeKey(range.first);
  SILTFS_RETURN_IF_ERROR(
      remover.Remove({HiddenLinkKey(range.first, 0), RangeOf(Table::kHidden, range.first).end}));
  SILTFS_RETURN_IF_ERROR(remover.Remove(key));
  return remover.Flush();
}

}  // namespace siltfs
