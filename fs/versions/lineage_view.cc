#include "fs/versions/lineage_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kInodeEnd = 1 + sizeof(uint64_t);  // in a key, behind the table's byte

bool IsOfInodes(std::string_view key) {
  return !key.empty() &&
         std::ranges::find(kTablesOfInodes, static_cast<Table>(key[0])) != kTablesOfInodes.end();
}

// The inode number at the beginning of a key or of a bound, which may be shorter than a number.
uint64_t InodeIn(std::string_view key) {
  std::string bytes(key.substr(1, sizeof(uint64_t)));
  bytes.resize(sizeof(uint64_t));
  return Decoder(AsBytes(bytes)).BigU64();
}

// A bound of keys of a view: the least key of the metadata whose key in the view is not smaller.
std::string BoundInLineage(std::string_view bound, LineageNumber lineage) {
  if (!IsOfInodes(bound)) return std::string(bound);
  if (bound.size() > 1 && InodeIn(bound) >= kInodesPerLineage)
    return RangeOfLineage(static_cast<Table>(bound[0]), lineage).end;
  return KeyInLineage(bound, lineage);
}

class LineageIterator final : public KvIterator {
 public:
  LineageIterator(const KvSnapshot& metadata, LineageNumber lineage, std::string_view end)
      : lineage_(lineage),
        end_(BoundInLineage(end, lineage)),
        iterator_(metadata.NewIteratorBelow(end_)) {}

  void Seek(std::string_view key) override {
    iterator_->Seek(BoundInLineage(key, lineage_));
    Settle();
  }
  void Next() override {
    iterator_->Next();
    Settle();
  }
  bool Valid() const override { return iterator_->Valid(); }
  std::string_view key() const override {
    return lineage_ == kLiveLineage ? iterator_->key() : std::string_view(key_);
  }
  std::string_view value() const override { return iterator_->value(); }
  Status status() const override { return iterator_->status(); }

 private:
  // Moves to the next key of the lineage, or of another table.
  void Settle() {
    while (iterator_->Valid() && IsOfInodes(iterator_->key())) {
      const std::string_view key = iterator_->key();
      if (key.size() < kInodeEnd) {  // malformed; it counts as one of the live files
        if (lineage_ == kLiveLineage) break;
        iterator_->Next();
        continue;
      }
      const KeyRange range = RangeOfLineage(static_cast<Table>(key[0]), lineage_);
      if (key < range.begin) {
        iterator_->Seek(range.begin);
      } else if (key >= range.end) {
        iterator_->Seek(RangeOf(static_cast<Table>(key[0])).end);
      } else {
        break;
      }
    }
    if (lineage_ == kLiveLineage || !iterator_->Valid()) return;
    key_ = KeyWithoutLineage(iterator_->key());
  }

  const LineageNumber lineage_;
  const std::string end_;
  const std::unique_ptr<KvIterator> iterator_;
  std::string key_;
};

class LineageView final : public KvSnapshot {
 public:
  LineageView(std::shared_ptr<const KvSnapshot> metadata, LineageNumber lineage)
      : metadata_(std::move(metadata)), lineage_(lineage) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    if (!IsOfInodes(key)) return metadata_->Get(key);
    if (InodeIn(key) >= kInodesPerLineage) return std::optional<std::string>();
    return lineage_ == kLiveLineage ? metadata_->Get(key)
                                    : metadata_->Get(KeyInLineage(key, lineage_));
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<LineageIterator>(*metadata_, lineage_, end);
  }
  Result<std::optional<KvEntry>> LastIn(std::string_view begin,
                                        std::string_view end) const override {
    // The tables of versions have keys of all lineages, so only they are long.
    if (!IsOfInodes(begin) && !IsOfInodes(end)) return metadata_->LastIn(begin, end);
    return KvSnapshot::LastIn(begin, end);
  }

 private:
  const std::shared_ptr<const KvSnapshot> metadata_;
  const LineageNumber lineage_;
};

}  // namespace

Result<std::set<LineageNumber>> FindLineages(const KvSnapshot& metadata) {
  std::set<LineageNumber> found;
  for (const Table table : kTablesOfInodes) {
    const std::string end = RangeOf(table).end;
    std::string at = RangeOfLineage(table, kLiveLineage).end;
    while (true) {
      SILTFS_ASSIGN_OR_RETURN(const auto entry, metadata.FirstIn(at, end));
      if (!entry) break;
      if (entry->key.size() < kInodeEnd) {  // malformed
        at = entry->key + '\0';
        continue;
      }
      const LineageNumber lineage = LineageOf(InodeIn(entry->key));
      found.insert(lineage);
      at = RangeOfLineage(table, lineage).end;
    }
  }
  return found;
}

std::string KeyInLineage(std::string_view key, LineageNumber lineage) {
  std::string raw(key);
  if (lineage == kLiveLineage || !IsOfInodes(key)) return raw;
  // A bound may end within the number. The bytes that are missing are zeros.
  if (raw.size() < kInodeEnd) raw.resize(kInodeEnd);
  const std::string inode = Encoder().BigU64(InLineage(lineage, InodeIn(key))).Take();
  raw.replace(1, inode.size(), inode);
  return raw;
}

std::string KeyWithoutLineage(std::string_view key) {
  std::string shown(key);
  if (!IsOfInodes(key) || key.size() < kInodeEnd) return shown;
  const std::string inode = Encoder().BigU64(WithoutLineage(InodeIn(key))).Take();
  shown.replace(1, inode.size(), inode);
  return shown;
}

std::shared_ptr<const KvSnapshot> MakeLineageView(std::shared_ptr<const KvSnapshot> metadata,
                                                  LineageNumber lineage) {
  return std::make_shared<LineageView>(std::move(metadata), lineage);
}

}  // namespace siltfs
