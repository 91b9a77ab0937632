// Reads through a View: merges its two groups and its snapshot in key order. If several of them
// have a key, the newest one wins.
#include <algorithm>
#include <array>
#include <utility>

#include "fs/meta/view_source.h"

namespace siltfs {

namespace {

// The most entries and bytes of a batch. A scan copies a group batch by batch. A batch of the open
// group shows the group as it was at one moment.
constexpr size_t kBatchEntries = 64;
constexpr size_t kBatchBytes = 64u << 10;

// Walks the entries of a group in a range, a batch at a time. The group may change between batches,
// because the cursor looks up the next key after each batch.
class GroupCursor {
 public:
  GroupCursor(const Group* group, std::string_view begin, std::string_view end)
      : group_(group), begin_(begin), end_(end) {
    Refill();
  }

  bool Valid() const { return position_ < batch_.size(); }
  const Mutation& entry() const { return batch_[position_]; }
  void Next() {
    if (++position_ == batch_.size()) Refill();
  }

 private:
  void Refill() {
    if (group_ == nullptr) return;
    if (!batch_.empty()) {
      begin_ = std::move(batch_.back().key);
      begin_.push_back('\0');  // the smallest key above the last one
    }
    batch_.clear();
    position_ = 0;
    group_->CopyRange(begin_, end_, kBatchEntries, kBatchBytes, batch_);
  }

  const Group* const group_;
  std::string begin_;
  const std::string_view end_;
  std::vector<Mutation> batch_;
  size_t position_ = 0;
};

}  // namespace

View::View(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

Result<std::optional<std::string>> View::Get(std::string_view key) const {
  std::string value;
  for (const Group* group : {&source_->open(), source_->committing()}) {
    if (group == nullptr) continue;
    switch (group->Find(key, &value)) {
      case Group::Presence::kPresent:
        return std::optional<std::string>(std::move(value));
      case Group::Presence::kRemoved:
        return std::optional<std::string>();
      case Group::Presence::kAbsent:
        break;
    }
  }
  return source_->snapshot().Get(key);
}

Status View::Scan(std::string_view begin, std::string_view end,
                  const std::function<bool(std::string_view, std::string_view)>& visit) const {
  if (!end.empty() && begin >= end) return Status::Ok();
  std::array<GroupCursor, 2> groups = {GroupCursor(&source_->open(), begin, end),
                                       GroupCursor(source_->committing(), begin, end)};
  const std::unique_ptr<KvIterator> stored = source_->snapshot().NewIteratorBelow(end);
  stored->Seek(begin);

  while (true) {
    if (!stored->Valid()) SILTFS_RETURN_IF_ERROR(stored->status());
    // Find the smallest key, and the newest source that has this key.
    const Mutation* winner = nullptr;
    for (const GroupCursor& group : groups) {
      if (group.Valid() && (winner == nullptr || group.entry().key < winner->key)) {
        winner = &group.entry();
      }
    }
    const bool from_store =
        stored->Valid() && (winner == nullptr || stored->key() < std::string_view(winner->key));
    if (from_store) {
      if (!visit(stored->key(), stored->value())) return Status::Ok();
      stored->Next();
      continue;
    }
    if (winner == nullptr) return Status::Ok();
    if (winner->value && !visit(winner->key, *winner->value)) return Status::Ok();
    // Skip the key's older values in the other sources. Moving the winner's cursor may invalidate
    // `winner`: move it last.
    GroupCursor* last = nullptr;
    if (stored->Valid() && stored->key() == winner->key) stored->Next();
    for (GroupCursor& group : groups) {
      if (!group.Valid() || group.entry().key != winner->key) continue;
      if (&group.entry() == winner) {
        last = &group;
      } else {
        group.Next();
      }
    }
    last->Next();
  }
}

}  // namespace siltfs
