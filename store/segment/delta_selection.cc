#include "store/segment/delta_selection.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace siltfs {

// The smallest delta of each chunk of one block, among the bases offered so far.
class DeltaSelection::Candidates {
 public:
  Candidates(DeltaSelection& selection, const DecodedBlock& block)
      : selection_(selection), block_(block), frames_(block.chunk_count()) {
    const uint64_t payload = block.head().payload_bytes;
    const uint64_t plain = block.head().plain_bytes;
    shares_.reserve(block.chunk_count());
    for (const ChunkRecord& record : block.records())
      shares_.push_back(record.length * payload / plain);
    // The payload of an old delta is no measure for the chunk. It was worth a delta before.
    for (const DeltaBase& delta : block.bases())
      shares_[delta.position] = block.records()[delta.position].length;
  }

  Status Offer(size_t position, const BaseRef& base, ByteView bytes) {
    if (position >= frames_.size() || !IsBaseLength(base.length) || bytes.size() != base.length) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("base {} with {} bytes is offered for chunk {} of {}",
                                base.ToString(), bytes.size(), position, frames_.size()));
    }
    const ChunkName& name = block_.records()[position].name;
    if (name == base.name || selection_.names_of_bases_.contains(name) ||
        selection_.names_of_deltas_.contains(base.name)) {
      return Status::Ok();
    }
    const size_t most_bytes = MostBytes(position);
    if (most_bytes == 0) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(
        Bytes frame, selection_.codec_.EncodeDelta(block_.chunk(position), bytes, selection_.level_,
                                                   most_bytes));
    if (frame.empty()) return Status::Ok();
    selection_.names_of_deltas_.insert(name);
    selection_.names_of_bases_.insert(base.name);
    frames_[position] = DeltaFrame{{static_cast<uint32_t>(position), base}, std::move(frame)};
    return Status::Ok();
  }

  Selected Take() {
    Selected selected;
    for (size_t i = 0; i < frames_.size(); ++i) {
      if (!frames_[i]) continue;
      selected.saved_bytes += shares_[i] - kDeltaTableEntrySize - frames_[i]->frame.size();
      selected.deltas.push_back(*std::move(frames_[i]));
    }
    return selected;
  }

 private:
  // The largest useful delta: delta + entry < 7/8 of the share, and smaller than the delta so far.
  size_t MostBytes(size_t position) const {
    if (frames_[position]) return frames_[position]->frame.size() - 1;
    const uint64_t share = 7 * shares_[position];
    const uint64_t entry = 8 * uint64_t{kDeltaTableEntrySize};
    return share > entry ? (share - entry - 1) / 8 : 0;
  }

  DeltaSelection& selection_;
  const DecodedBlock& block_;
  std::vector<uint64_t> shares_;
  std::vector<std::optional<DeltaFrame>> frames_;
};

Result<DeltaSelection::Selected> DeltaSelection::Select(const DecodedBlock& block) {
  if (chooser_ == nullptr && block.bases().empty()) return Selected();
  Candidates candidates(*this, block);
  for (const DeltaBase& delta : block.bases()) {
    SILTFS_ASSIGN_OR_RETURN(const BaseBytes base, bases_->ReadBase(delta.base));
    SILTFS_RETURN_IF_ERROR(candidates.Offer(delta.position, delta.base, base.bytes));
  }
  if (chooser_ != nullptr) {
    SILTFS_RETURN_IF_ERROR(chooser_->Choose(
        block, [&candidates](size_t position, const BaseRef& base, ByteView bytes) {
          return candidates.Offer(position, base, bytes);
        }));
  }
  return candidates.Take();
}

}  // namespace siltfs
