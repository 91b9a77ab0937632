#include "fs/kv/ascending_reads.h"

#include <utility>

namespace siltfs {
namespace {

// A search costs as much as some ten steps.
constexpr int kMostSteps = 8;

}  // namespace

Result<bool> AscendingReads::MoveTo(std::string_view key) {
  if (!iterator_) iterator_ = snapshot_.NewImpatientIterator();
  const bool ahead = positioned_ && key >= from_;
  positioned_ = false;
  for (int i = 0; ahead && i < kMostSteps && iterator_->Valid() && iterator_->key() < key; ++i)
    iterator_->Next();
  // An iterator that is not valid is at the end, or has failed.
  const bool arrived =
      ahead && (iterator_->Valid() ? iterator_->key() >= key : iterator_->status().ok());
  if (!arrived) iterator_->Seek(key);
  const Status status = iterator_->status();
  if (status.Is(StatusCode::kAborted)) return false;
  SILTFS_RETURN_IF_ERROR(status);
  from_ = key;
  positioned_ = true;
  return true;
}

Result<std::optional<KvEntry>> AscendingReads::FirstIn(std::string_view begin,
                                                       std::string_view end) {
  SILTFS_ASSIGN_OR_RETURN(const bool moved, MoveTo(begin));
  if (!moved) return snapshot_.FirstIn(begin, end);
  if (!iterator_->Valid() || (!end.empty() && iterator_->key() >= end))
    return std::optional<KvEntry>();
  return std::optional(KvEntry{std::string(iterator_->key()), std::string(iterator_->value())});
}

Result<std::optional<std::string>> AscendingReads::Get(std::string_view key) {
  SILTFS_ASSIGN_OR_RETURN(const bool moved, MoveTo(key));
  if (!moved) return snapshot_.Get(key);
  if (!iterator_->Valid() || iterator_->key() != key) return std::optional<std::string>();
  return std::optional(std::string(iterator_->value()));
}

}  // namespace siltfs
