// Walks a table with keys that begin with an inode number.
#pragma once

#include <limits>
#include <memory>
#include <string>

#include "fs/kv/kv_store.h"
#include "fs/records/schema.h"
#include "store/base/coding.h"

namespace siltfs {

class TableCursor {
 public:
  static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

  TableCursor(const KvSnapshot& snapshot, Table table)
      : end_(RangeOf(table).end), iterator_(snapshot.NewIteratorBelow(end_)) {
    iterator_->Seek(RangeOf(table).begin);
    SkipMalformed();
  }

  // The inode of the current key; kEnd at the end of the table and after an error.
  uint64_t inode() const { return inode_; }
  // The current key after the inode number.
  std::string_view rest() const { return iterator_->key().substr(kPrefix); }
  // Sets `number` to the number that rest() encodes. Returns false if rest() is not a number.
  bool Number(uint64_t& number) const {
    Decoder in(AsBytes(rest()));
    number = in.BigU64();
    return in.Done();
  }
  std::string_view value() const { return iterator_->value(); }
  void Next() {
    iterator_->Next();
    SkipMalformed();
  }
  Status status() const { return iterator_->status(); }
  // The number of keys too short for an inode number, which were skipped.
  uint64_t malformed() const { return malformed_; }

 private:
  static constexpr size_t kPrefix = 9;

  void SkipMalformed() {
    for (; iterator_->Valid() && iterator_->key().size() < kPrefix; iterator_->Next()) ++malformed_;
    inode_ = kEnd;
    if (!iterator_->Valid()) return;
    Decoder in(AsBytes(iterator_->key().substr(1, 8)));
    inode_ = in.BigU64();
  }

  const std::string end_;
  std::unique_ptr<KvIterator> iterator_;
  uint64_t inode_ = kEnd;
  uint64_t malformed_ = 0;
};

}  // namespace siltfs
