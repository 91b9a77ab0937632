#include "tests/crash/block/power_cut.h"

#include <algorithm>

#include "tests/crash/kill/failure.h"

namespace siltfs::blocktest {

std::vector<uint64_t> ChooseCuts(const DeviceLog& log, uint64_t first,
                                 const std::vector<uint64_t>& landmarks, uint64_t count,
                                 Random& random) {
  std::vector<uint64_t> flushes;
  for (uint64_t i = first; i < log.size(); ++i) {
    if (log[i].kind == DeviceRecord::Kind::kFlush) flushes.push_back(i);
  }
  const auto near = [&](uint64_t place) {
    return place + random.Below(7) - std::min<uint64_t>(place, 3);
  };
  std::vector<uint64_t> cuts;
  while (cuts.size() < count) {
    const uint64_t choice = random.Below(16);
    uint64_t cut = first + random.Below(log.size() - first + 1);
    if (choice < 8 && !flushes.empty()) cut = near(flushes[random.Below(flushes.size())]);
    if (choice == 8 && !landmarks.empty()) cut = near(landmarks[random.Below(landmarks.size())]);
    cuts.push_back(std::clamp<uint64_t>(cut, first, log.size()));
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

std::unique_ptr<CutDevice> PowerCuts::Cut(uint64_t position, Random& random) {
  uint64_t flushed = position;
  while (flushed > 0 && log_[flushed - 1].kind != DeviceRecord::Kind::kFlush) --flushed;
  if (flushed < applied_) throw killtest::Failure("power cuts must be made in ascending order");
  for (; applied_ < flushed; ++applied_) durable_.Apply(log_[applied_]);

  auto device = std::make_unique<CutDevice>(durable_);
  const uint64_t manner = random.Below(8);
  // This cut loses all writes, or keeps all, or keeps each write with a probability chosen for this
  // cut.
  const uint64_t kept_of_16 = manner == 0 ? 0 : manner == 1 ? 16 : 1 + random.Below(15);
  const bool may_tear = manner >= 4;
  for (uint64_t i = flushed; i < position; ++i) {
    if (random.Below(16) >= kept_of_16) continue;
    Keep(log_[i], random, may_tear && random.OneIn(4), *device);
  }
  return device;
}

void PowerCuts::Keep(const DeviceRecord& record, Random& random, bool tear,
                     CutDevice& device) const {
  if (record.kind == DeviceRecord::Kind::kZero) device.Zero(record.offset, record.length);
  if (record.kind != DeviceRecord::Kind::kWrite) return;
  const ByteView data = record.data;
  const uint64_t sectors = data.size() / tear_bytes_;
  if (!tear || sectors < 2) {
    device.Write(record.offset, data);
    return;
  }
  // Keeps the first part, the last part, or random sectors of the write.
  const uint64_t manner = random.Below(3);
  const uint64_t edge = 1 + random.Below(sectors - 1);
  if (manner == 0) device.Write(record.offset, data.first(edge * tear_bytes_));
  if (manner == 1) {
    device.Write(record.offset + edge * tear_bytes_, data.subspan(edge * tear_bytes_));
  }
  for (uint64_t i = 0; manner == 2 && i < sectors; ++i) {
    if (random.OneIn(2)) continue;
    device.Write(record.offset + i * tear_bytes_, data.subspan(i * tear_bytes_, tear_bytes_));
  }
}

}  // namespace siltfs::blocktest
