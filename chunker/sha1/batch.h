// Computes the SHA-1 of many messages at once.
//
// A kernel is a list of compression functions with decreasing numbers of lanes. Messages are
// assigned to lanes, the longest first. All lanes advance until one of them has no blocks left;
// that lane then takes the next message. When no message is left, functions with fewer lanes finish
// the messages that have the most blocks left, so that few lanes are idle.
#pragma once

#include <array>
#include <span>

#include "chunker/sha1/compress.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"

namespace siltfs {

struct Sha1Step {
  size_t lanes = 0;
  // With at least this many busy lanes, this step is faster than the later steps.
  size_t worth_from = 0;
  Sha1CompressFunction compress = nullptr;
};

// Immutable.
struct Sha1Kernel {
  const char* name = nullptr;
  bool (*runs_here)() = nullptr;
  // For fewer messages than this, hashing each one with OpenSSL is faster.
  size_t batch_worth_from = 0;
  // Ordered from most to fewest lanes; the last step has one lane. Unused entries are at the end. A
  // kernel without steps uses OpenSSL for everything.
  std::array<Sha1Step, 4> steps = {};
  // For kernels whose last step is slower than OpenSSL. The last step finishes the longest message
  // alone. So Sha1Batch is slower than OpenSSL if one message has more than 1 / largest_part of all
  // bytes of the batch. 0: no such limit.
  size_t largest_part = 0;

  // Whether Sha1Batch is probably faster than hashing the messages one by one with OpenSSL.
  bool IsWorth(std::span<const ByteView> messages) const;
  bool has_steps() const { return steps[0].compress != nullptr; }
};

// Sets names[i] to the SHA-1 of messages[i], regardless of the kernel's batch_worth_from. Messages
// have any length and alignment; no byte beyond them is read. Requires as many names as messages,
// names that do not overlap messages, and a kernel that has steps and runs here. Thread-safe.
void Sha1Batch(const Sha1Kernel& kernel, std::span<const ByteView> messages,
               std::span<ChunkName> names);

}  // namespace siltfs
