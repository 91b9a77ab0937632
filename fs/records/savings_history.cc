#include "fs/records/savings_history.h"

#include <array>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;

// The numbers of a sample after its time, in the order on disk.
constexpr std::array kNumbers = {&SavingsSample::logical_bytes,  &SavingsSample::unique_bytes,
                                 &SavingsSample::stored_bytes,   &SavingsSample::dead_bytes,
                                 &SavingsSample::metadata_bytes, &SavingsSample::index_bytes,
                                 &SavingsSample::files,          &SavingsSample::chunks_logical,
                                 &SavingsSample::chunks_unique,  &SavingsSample::index_memory_bytes,
                                 &SavingsSample::index_entries,  &SavingsSample::damaged_chunks};
static_assert(sizeof(SavingsSample) == (1 + kNumbers.size()) * sizeof(uint64_t));

Status Malformed() {
  return {StatusCode::kCorruption, "metadata holds a malformed history of sizes"};
}

}  // namespace

void SavingsHistory::Add(const SavingsSample& sample) {
  if (!samples_.empty() && sample.taken_ns < samples_.front().taken_ns) return;
  while (!samples_.empty() && samples_.back().taken_ns >= sample.taken_ns) samples_.pop_back();
  samples_.push_back(sample);
  if (samples_.size() > kMostSamples) DropOne();
}

// The first sample and the newest two stay: the newest but one may have been the only one of its
// day.
void SavingsHistory::DropOne() {
  const auto time = [this](size_t i) { return static_cast<double>(samples_[i].taken_ns); };
  const double now = time(samples_.size() - 1);
  size_t least = 1;
  double least_share = 0;
  for (size_t i = 1; i + 2 < samples_.size(); ++i) {
    const double share = (time(i + 1) - time(i - 1)) / (now - time(i));
    if (i > 1 && share >= least_share) continue;
    least = i;
    least_share = share;
  }
  samples_.erase(samples_.begin() + static_cast<ptrdiff_t>(least));
}

std::string SavingsHistory::Encode() const {
  Encoder out;
  out.U8(kVersion).U16(static_cast<uint16_t>(samples_.size()));
  for (const SavingsSample& sample : samples_) {
    out.I64(sample.taken_ns);
    for (const auto number : kNumbers) out.U64(sample.*number);
  }
  return out.Take();
}

Result<SavingsHistory> SavingsHistory::Decode(std::string_view value) {
  Decoder in(AsBytes(value));
  if (const uint8_t version = in.U8(); in.ok() && version != kVersion)
    return Status(StatusCode::kNeedsNewer, "metadata holds a history of sizes in another version");
  const uint16_t count = in.U16();
  if (count > kMostSamples) return Malformed();
  SavingsHistory history;
  for (uint16_t i = 0; i < count && in.ok(); ++i) {
    SavingsSample sample;
    sample.taken_ns = in.I64();
    for (const auto number : kNumbers) sample.*number = in.U64();
    if (i > 0 && sample.taken_ns <= history.samples_.back().taken_ns) return Malformed();
    history.samples_.push_back(sample);
  }
  if (!in.Done()) return Malformed();
  return history;
}

}  // namespace siltfs
