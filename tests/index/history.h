// The oracle: it records the puts and deletions in order, and knows which answers an index may
// give, now and after a crash. It is independent of the index. It knows which operations failed
// (these may or may not have had their effect) and which must be durable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "index/chunk_index.h"
#include "store/base/random.h"

namespace siltfs::testing {

using Answer = std::optional<Location>;

class History {
 public:
  void NotePut(const IndexEntry& entry, uint64_t sequence, bool certain);
  void NoteDelete(const ChunkName& name, bool certain);
  // All operations noted so far are durable from now on, except those with `certain` false.
  void NoteFlushed();

  // Whether a running index may give this answer: the state after the last certain operation, or
  // after any later operation.
  bool MayAnswerNow(const ChunkName& name, const Answer& answer) const;
  // Whether an index may give this answer if it was opened after a crash and reports the sequence
  // `durable`. Flushed deletions count as durable, unless damage may have destroyed them.
  bool MayAnswerAfterCrash(const ChunkName& name, const Answer& answer, uint64_t durable,
                           bool flushed_is_there = true) const;

  // Returns the history of an index that gave these answers after a crash. The new history allows
  // no other state of these names, because the index must not change its answers by itself.
  History WithKnownAnswers(const std::vector<ChunkName>& names,
                           const std::vector<Answer>& answers) const;

  // PutsAbove returns the entries that a store must put again, in order.
  struct Put {
    IndexEntry entry;
    uint64_t sequence;
  };
  std::vector<Put> PutsAbove(uint64_t sequence) const;
  uint64_t last_sequence() const { return last_sequence_; }
  // This sequence and later ones must not be reported durable.
  uint64_t first_failed_sequence() const { return first_failed_sequence_; }
  std::vector<ChunkName> Names() const;

 private:
  struct Operation {
    uint64_t number;
    uint64_t sequence;  // 0: a deletion
    Answer state;       // after the operation
    bool certain;
  };

  std::map<ChunkName, std::vector<Operation>> operations_;
  uint64_t next_number_ = 1;
  uint64_t flushed_number_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t first_failed_sequence_ = UINT64_MAX;
};

// Names and locations derived from a seed.
ChunkName NameOf(uint64_t number);
Location RandomLocation(Random& random);

// Runs `steps` random operations over `names` names on an index and notes each. Failures are noted
// and do not end the run; answers are REQUIREd to be right. Leaves the index open.
struct WorkloadOptions {
  uint64_t seed = 1;
  int steps = 200;
  uint64_t names = 60;
  bool flush = true;
};
struct WorkloadResult {
  int failures = 0;
  uint64_t durable = 0;  // the last durable_sequence()
};
WorkloadResult RunWorkload(ChunkIndex& index, History& history, const WorkloadOptions& options);

// REQUIREs right answers for every name of the history and some more.
void CheckNow(ChunkIndex& index, const History& history);
void CheckAfterCrash(ChunkIndex& index, const History& history, bool flushed_is_there = true);
// After a crash: puts the entries above durable_sequence() again, runs more operations, closes and
// opens the index. All calls are REQUIREd to succeed and all answers to be right. `open` opens the
// index.
void CheckLifeGoesOn(std::unique_ptr<ChunkIndex> index, const History& history,
                     const std::function<std::unique_ptr<ChunkIndex>()>& open);
// REQUIREs that ForEach visits exactly the entries that Get answers, each once and in order.
void CheckForEach(ChunkIndex& index, const History& history);

}  // namespace siltfs::testing
