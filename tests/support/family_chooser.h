// Chunks of one family begin with the same bytes, and resemble each other. A chooser that makes
// the first chunk that it meets of each family the base of all others. Not thread-safe.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/segment/base_chooser.h"
#include "store/segment/base_ref.h"
#include "store/segment/block.h"

namespace siltfs::testing {

class FamilyChooser final : public BaseChooser {
 public:
  static constexpr size_t kFamilyBytes = 8;

  Status Choose(const DecodedBlock& block, const Offer& offer) override {
    if (before_choice) before_choice();
    for (size_t i = 0; i < block.chunk_count(); ++i) {
      const ByteView chunk = block.chunk(i);
      if (chunk.size() <= kFamilyBytes) continue;
      const ChunkRecord& record = block.records()[i];
      const BaseRef self{record.name, record.tag, record.length};
      if (learns) {
        Know(record, chunk);
        continue;
      }
      const auto [base, first] = bases_.try_emplace(FamilyOf(chunk), self, Copy(chunk));
      if (first || base->second.first == self) continue;
      if (may_offer && !may_offer(base->second.first)) continue;
      SILTFS_RETURN_IF_ERROR(offer(i, base->second.first, base->second.second));
    }
    return Status::Ok();
  }

  // Makes a chunk the base of its family.
  void Know(const ChunkRecord& record, ByteView chunk) {
    const BaseRef self{record.name, record.tag, record.length};
    bases_.insert_or_assign(FamilyOf(chunk), std::pair(self, Copy(chunk)));
  }

  // If true, offers nothing, and makes each chunk that it meets the base of its family.
  bool learns = false;
  std::function<void()> before_choice;            // may be empty
  std::function<bool(const BaseRef&)> may_offer;  // may be empty

 private:
  static Bytes Copy(ByteView bytes) { return {bytes.begin(), bytes.end()}; }
  static Bytes FamilyOf(ByteView chunk) { return Copy(chunk.first(kFamilyBytes)); }

  std::map<Bytes, std::pair<BaseRef, Bytes>> bases_;
};

// The bytes with some of them changed, but with the same beginning.
inline Bytes SimilarTo(ByteView bytes, uint8_t variant) {
  Bytes similar(bytes.begin(), bytes.end());
  for (size_t at = 100; at < similar.size(); at += 700)
    similar[at] = static_cast<uint8_t>(similar[at] + variant);
  return similar;
}

}  // namespace siltfs::testing
