#include "chunker/sha1/batch.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace siltfs {

namespace {

constexpr size_t kBlock = 64;
constexpr size_t kLengthBytes = 8;
// A message's tail: the bytes after its whole blocks, 0x80, zeros, and the length in bits.
constexpr size_t kMaxTailBlocks = 2;

using State = std::array<uint32_t, 5>;
// FIPS 180-4, 5.3.1.
constexpr State kInitialState = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

void StoreBigEndian(uint8_t* out, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(value >> 8 * (size - 1 - i));
}

// Whole blocks to be compressed into a state.
struct Run {
  const uint8_t* data = nullptr;
  size_t blocks = 0;
  State state = kInitialState;
};

// Compresses all its runs completely, as many at once as the kernel has lanes. Each object is used
// once.
class Lanes {
 public:
  Lanes(const Sha1Kernel& kernel, std::vector<Run>& runs) : kernel_(kernel) {
    for (Run& run : runs) {
      if (run.blocks > 0) queue_.push_back(&run);
    }
    std::stable_sort(queue_.begin(), queue_.end(),
                     [](const Run* a, const Run* b) { return a->blocks > b->blocks; });
  }

  void Finish() {
    while (busy_ < kernel_.steps[0].lanes && next_ < queue_.size()) Load(busy_++, *queue_[next_++]);
    while (busy_ > 0) Advance(ChooseStep());
  }

 private:
  const Sha1Step& ChooseStep() const {
    size_t i = 0;
    while (busy_ < kernel_.steps[i].worth_from) ++i;
    return kernel_.steps[i];
  }

  void Load(size_t lane, Run& run) {
    run_[lane] = &run;
    data_[lane] = run.data;
    left_[lane] = run.blocks;
    for (size_t j = 0; j < run.state.size(); ++j) state_[j * kSha1MaxLanes + lane] = run.state[j];
  }

  void Unload(size_t lane) {
    State& state = run_[lane]->state;
    for (size_t j = 0; j < state.size(); ++j) state[j] = state_[j * kSha1MaxLanes + lane];
  }

  void Swap(size_t a, size_t b) {
    std::swap(run_[a], run_[b]);
    std::swap(data_[a], data_[b]);
    std::swap(left_[a], left_[b]);
    for (size_t j = 0; j < kInitialState.size(); ++j)
      std::swap(state_[j * kSha1MaxLanes + a], state_[j * kSha1MaxLanes + b]);
  }

  // Moves the lanes with the most blocks left to the front, so that in the end as few blocks as
  // possible must be compressed one by one.
  void PutLongestFirst(size_t lanes) {
    for (size_t i = 0; i < lanes; ++i) {
      const auto longest = std::max_element(left_.begin() + i, left_.begin() + busy_);
      Swap(i, static_cast<size_t>(longest - left_.begin()));
    }
  }

  void Advance(const Sha1Step& step) {
    if (busy_ > step.lanes) PutLongestFirst(step.lanes);
    const size_t used = std::min(busy_, step.lanes);
    const size_t blocks = *std::min_element(left_.begin(), left_.begin() + used);
    // Idle lanes compress the data of a busy one; the results are ignored.
    for (size_t lane = used; lane < step.lanes; ++lane) data_[lane] = data_[0];
    step.compress(state_.data(), data_.data(), blocks);
    for (size_t lane = used; lane-- > 0;) {
      data_[lane] += kBlock * blocks;
      left_[lane] -= blocks;
      if (left_[lane] == 0) Refill(lane);
    }
  }

  void Refill(size_t lane) {
    Unload(lane);
    if (next_ < queue_.size()) {
      Load(lane, *queue_[next_++]);
    } else if (--busy_ != lane) {
      Swap(lane, busy_);
    }
  }

  const Sha1Kernel& kernel_;
  std::vector<Run*> queue_;
  size_t next_ = 0;  // index in queue_
  // Lanes [0, busy_) hold a run with blocks left.
  size_t busy_ = 0;
  std::array<Run*, kSha1MaxLanes> run_ = {};
  std::array<const uint8_t*, kSha1MaxLanes> data_ = {};
  std::array<size_t, kSha1MaxLanes> left_ = {};
  alignas(64) std::array<uint32_t, kInitialState.size() * kSha1MaxLanes> state_ = {};
};

// Pads the message (FIPS 180-4, 5.1.1) into the zeroed `tail`; returns its number of blocks.
size_t MakeTail(ByteView message, uint8_t* tail) {
  const ByteView rest = message.last(message.size() % kBlock);
  std::copy(rest.begin(), rest.end(), tail);
  tail[rest.size()] = 0x80;
  const size_t blocks = rest.size() + 1 + kLengthBytes <= kBlock ? 1 : kMaxTailBlocks;
  StoreBigEndian(tail + blocks * kBlock - kLengthBytes, uint64_t{message.size()} * 8, kLengthBytes);
  return blocks;
}

}  // namespace

bool Sha1Kernel::IsWorth(std::span<const ByteView> messages) const {
  if (!has_steps() || messages.size() < batch_worth_from) return false;
  if (largest_part == 0) return true;
  size_t total = 0;
  size_t longest = 0;
  for (const ByteView message : messages) {
    total += message.size();
    longest = std::max(longest, message.size());
  }
  return longest <= total / largest_part;
}

// Compresses the whole blocks of all messages first, then all tails. All lanes stop whenever one
// lane has finished its blocks. This order halves the number of stops, compared to hashing each
// tail directly after its message.
void Sha1Batch(const Sha1Kernel& kernel, std::span<const ByteView> messages,
               std::span<ChunkName> names) {
  assert(messages.size() == names.size() && kernel.has_steps());
  std::vector<Run> runs(messages.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].data = messages[i].data();
    runs[i].blocks = messages[i].size() / kBlock;
  }
  Lanes(kernel, runs).Finish();
  std::vector<uint8_t> tails(messages.size() * kMaxTailBlocks * kBlock);
  for (size_t i = 0; i < runs.size(); ++i) {
    uint8_t* const tail = tails.data() + i * kMaxTailBlocks * kBlock;
    runs[i].data = tail;
    runs[i].blocks = MakeTail(messages[i], tail);
  }
  Lanes(kernel, runs).Finish();
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = 0; j < kInitialState.size(); ++j)
      StoreBigEndian(names[i].bytes.data() + 4 * j, runs[i].state[j], 4);
  }
}

}  // namespace siltfs
