#include "tools/bench/value_model.h"

#include <algorithm>

#include "index/flash/slot.h"
#include "index/key_value/item.h"
#include "store/segment/segment_footer.h"

namespace siltfs {
namespace {

constexpr uint64_t kPaperHeader = 4;
constexpr uint64_t kPaperOffset = 4;
constexpr size_t kKeySize = 4;
constexpr double kPageChecksum = 8;
constexpr double kFilterBytesAPlace = 2.17;

// Returns the flash bytes of a slot, averaged over the kinds of stores, with its share of the
// surrounding overhead.
double SlotBytes(size_t slot_size, const IndexShape& shape) {
  const double slot =
      static_cast<double>(slot_size) * (1 + kPageChecksum / static_cast<double>(kPageSize));
  const double in_hash_store = (slot + kFilterBytesAPlace) / shape.hash_occupancy;
  return shape.hash_store_share * in_hash_store + (1 - shape.hash_store_share) * slot;
}

// Returns the flash bytes of a record in the value log, with its share of the block's head and the
// segment's footer.
double RecordBytes(double bytes, size_t block_bytes) {
  const double in_table = bytes + kChunkTableEntrySize;
  const double records = std::max(1.0, static_cast<double>(block_bytes) / in_table);
  return in_table + kFooterChunkSize + (kBlockHeaderSize + kFooterBlockSize) / records;
}

}  // namespace

ValueCost PaperCost(const ItemSizes& sizes, size_t slot_size) {
  const uint64_t room = slot_size - kPaperHeader - kPaperOffset;
  const auto tail = [room](uint64_t size) {
    return size > room ? static_cast<double>(size - room) : 0;
  };
  const auto second_read = [room](uint64_t size) { return size > room ? 1.0 : 0; };
  return {.space = (static_cast<double>(slot_size) + sizes.MeanOf(tail)) / sizes.Mean(),
          .reads = 1 + sizes.MeanOf(second_read)};
}

ValueCost ModelCost(const ItemSizes& sizes, const std::vector<size_t>& slot_sizes,
                    const IndexShape& shape, size_t block_bytes) {
  const auto item = [](uint64_t size) { return ItemSize(kKeySize, size - kKeySize); };
  // Returns the first slot size that fits, or the smallest if none fits.
  const auto slot_of = [&](uint64_t size) {
    const auto fits = std::find_if(slot_sizes.begin(), slot_sizes.end(), [&](size_t slot_size) {
      return item(size) <= slot_size - kNamedEntrySize;
    });
    return fits == slot_sizes.end() ? slot_sizes.front() : *fits;
  };
  const auto bytes = [&](uint64_t size) {
    const size_t slot = slot_of(size);
    const double in_slot = SlotBytes(slot, shape);
    const size_t room = slot - kNamedEntrySize;
    if (item(size) <= room) return in_slot;
    return in_slot + RecordBytes(static_cast<double>(item(size) - room), block_bytes);
  };
  const auto second_read = [&](uint64_t size) {
    return item(size) > slot_of(size) - kNamedEntrySize ? 1.0 : 0;
  };
  return {.space = sizes.MeanOf(bytes) / sizes.Mean(), .reads = 1 + sizes.MeanOf(second_read)};
}

}  // namespace siltfs
