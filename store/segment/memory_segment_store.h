// A SegmentStore in memory, for tests and tools: it acts like a remote object store with latency
// and faults.
//
// Durability: a segment lasts as long as this object. So it survives a power cut of a SimEnv, as an
// object of a remote store would.
//
// Faults: a call that is to fail does nothing, unless the fault says that the answer is lost after
// the call took effect. Latency: `wait` is called, without a lock, before each call takes effect;
// it gets the time that the call would take, and may sleep, advance a clock, or block.
//
// Thread-safety: every call from any thread. Memory: the segments, and removed or replaced ones as
// long as they have readers. Errors: segment_store.h; kNoSpace beyond the capacity.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/segment/segment_store.h"

namespace siltfs {

enum class SegmentCall : uint8_t { kOpen, kRead, kPut, kReplace, kRemove, kList };
inline constexpr size_t kSegmentCalls = 6;

struct SegmentFault {
  SegmentCall call = SegmentCall::kRead;
  uint64_t nth = 1;  // counted from now on, among the calls of this kind
  StatusCode code = StatusCode::kIoError;
  bool permanent = false;  // all later calls of this kind fail, too
  // The call takes effect, and only its answer is lost. For Put, Replace and Remove; the source
  // file stays.
  bool answer_lost = false;
};

struct MemorySegmentOptions {
  // The name of the store. The name of a segment is this name, "/", and the name that a segment's
  // file has in DirectorySegmentStore.
  std::string name = "memory:";
  uint64_t capacity_bytes = std::numeric_limits<uint64_t>::max();
  // `wait` is called with the time that a call is to take: `latency`, plus `nanoseconds_per_byte`
  // for each byte that is read or written.
  std::chrono::nanoseconds latency{0};
  double nanoseconds_per_byte = 0;
  // May be empty. `segment` is the name of the segment, or of the store for List.
  std::function<void(SegmentCall call, const std::string& segment, std::chrono::nanoseconds)> wait;
};

class MemorySegmentStore final : public SegmentStore {
 public:
  explicit MemorySegmentStore(MemorySegmentOptions options = {});
  ~MemorySegmentStore() override;

  const std::string& name() const override;
  std::string NameOf(SegmentId id) const override;
  std::optional<SegmentId> IdOf(std::string_view name) const override;
  Result<std::unique_ptr<const ReadableFile>> Open(SegmentId id) override;
  uint64_t UnansweredReads() const override { return 0; }
  Status Put(SegmentId id, const SegmentSource& source) override;
  Status Replace(SegmentId id, const SegmentSource& source) override;
  Status Remove(SegmentId id) override;
  Result<SegmentListing> List() override;
  Result<SegmentListing> Recover() override;

  // --- Faults, latency and damage.
  void FailCall(const SegmentFault& fault);
  void ClearFaults();
  uint64_t Calls(SegmentCall call) const;
  void SetCapacity(uint64_t bytes);
  // The content of a segment. kNotFound.
  Result<std::string> Content(SegmentId id) const;
  // Gives a segment another content without any check, as damage would, also for open readers.
  void SetContent(SegmentId id, std::string content);
  // Inverts the bits of `mask` in each byte of a range, also for open readers of the segment.
  // kNotFound; kInvalidArgument if the range is not in the segment.
  Status Corrupt(SegmentId id, uint64_t offset, uint64_t length, uint8_t mask = 0x40);
  // A store with the same segments and options, and without faults.
  std::unique_ptr<MemorySegmentStore> Fork() const;

 private:
  struct Shared;  // with the readers
  class Reader;

  // Puts or replaces; `must_match`: the content must be the same if the segment exists.
  Status Store(SegmentCall call, SegmentId id, const SegmentSource& source, bool must_match);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace siltfs
