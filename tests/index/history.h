// The oracle: what was put and deleted, in order, and what an index may therefore answer, now and
// after a crash. It lives outside the index and knows which operations failed (they may have
// happened or not) and which must be durable.
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
  // All noted so far, and certain, is durable.
  void NoteFlushed();

  // What a running index may answer: the state since the last certain operation.
  bool MayAnswerNow(const ChunkName& name, const Answer& answer) const;
  // What an index may answer that was opened after a crash and calls `durable` durable. Deletions
  // count as durable when flushed, unless damage may have taken them.
  bool MayAnswerAfterCrash(const ChunkName& name, const Answer& answer, uint64_t durable,
                           bool flushed_is_there = true) const;

  // The history of an index that was opened after a crash and found to answer this: nothing else
  // comes back.
  History Settled(const std::vector<ChunkName>& names, const std::vector<Answer>& answers) const;

  // The entries that a store would put again, in order.
  struct Put {
    IndexEntry entry;
    uint64_t sequence;
  };
  std::vector<Put> PutsAbove(uint64_t sequence) const;
  uint64_t last_sequence() const { return last_sequence_; }
  // No sequence from this one on may be called durable.
  uint64_t first_failed_sequence() const { return first_failed_sequence_; }
  std::vector<ChunkName> Names() const;

 private:
  struct Operation {
    uint64_t number;
    uint64_t sequence;  // 0: a deletion
    Answer state;       // after it
    bool certain;
  };

  std::map<ChunkName, std::vector<Operation>> operations_;
  uint64_t next_number_ = 1;
  uint64_t flushed_number_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t first_failed_sequence_ = UINT64_MAX;
};

// Names and locations that a seed gives.
ChunkName NameOf(uint64_t number);
Location RandomLocation(Random& random);

// A random life of an index over `names` names: runs `steps` operations and notes each. Failures
// are noted and survived, answers REQUIREd to be right. Leaves the index open.
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

// REQUIREs that the index answers every name of the history and some more rightly.
void CheckNow(ChunkIndex& index, const History& history);
void CheckAfterCrash(ChunkIndex& index, const History& history, bool flushed_is_there = true);
// After a crash: puts again what is above durable_sequence(), lives on, closes and opens the index,
// all REQUIREd to succeed and to be right from there on. `open` opens the index.
void CheckLifeGoesOn(std::unique_ptr<ChunkIndex> index, const History& history,
                     const std::function<std::unique_ptr<ChunkIndex>()>& open);
// REQUIREs that ForEach, and ForEachInOrder in its order, show exactly what Get answers, each name
// once.
void CheckForEach(ChunkIndex& index, const History& history);

}  // namespace siltfs::testing
