// Names many messages by SHA-1 at once.
//
// A kernel is a list of compression functions of falling width. Messages are dealt to lanes, the
// longest first; all lanes advance by as many blocks as the lane with the fewest has left, and a
// lane that is done takes the next message. When none is left to take and lanes run empty, narrower
// functions, which need not carry the empty ones along, see the longest through to their end.
#pragma once

#include <array>
#include <span>

#include "chunker/sha1/compress.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"

namespace siltfs {

struct Sha1Step {
  size_t lanes = 0;
  size_t worth_from = 0;  // the fewest busy lanes for which it beats the steps that follow it
  Sha1CompressFunction compress = nullptr;
};

// Immutable.
struct Sha1Kernel {
  const char* name = nullptr;
  bool (*runs_here)() = nullptr;
  // Batches of fewer messages are done sooner one by one by OpenSSL.
  size_t batch_worth_from = 0;
  // From wide to narrow; the last is of one lane. Unused ones are at the end. No step at all:
  // OpenSSL does everything.
  std::array<Sha1Step, 4> steps = {};
  // Where the last step is slower than OpenSSL, so is a batch of which one message, whose end is
  // seen to alone, is more than a 1 / largest_part. 0: that does not matter.
  size_t largest_part = 0;

  // Whether Sha1Batch is likely to be faster than OpenSSL one by one.
  bool IsWorth(std::span<const ByteView> messages) const;
  bool has_steps() const { return steps[0].compress != nullptr; }
};

// names[i] becomes the SHA-1 of messages[i], whatever the kernel's batch_worth_from. Messages are
// of any length and alignment and nothing beyond them is read. Requires as many names as messages,
// names that do not overlap messages, and a kernel that has steps and runs here. Thread-safe.
void Sha1Batch(const Sha1Kernel& kernel, std::span<const ByteView> messages,
               std::span<ChunkName> names);

}  // namespace siltfs
