#include "fs/recovery/block_replay.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_scan.h"

namespace siltfs {
namespace {

// Segments that each thread may read ahead of the replay.
constexpr size_t kAheadPerThread = 2;
// Most block heads are no longer than this.
constexpr uint64_t kHeadBytes = 4096;

// The entries of a segment for the index.
struct SegmentEntries {
  struct Block {
    uint64_t sequence = 0;
    uint32_t entries = 0;
  };
  SegmentId id = kNoSegment;
  std::vector<Block> blocks;
  std::vector<IndexEntry> entries;  // of all blocks
  std::vector<std::string> damage;  // sentences
  std::vector<DamagedBlock> lost;   // chunks that are in the footer, but in no readable block
  Status unanswered;                // the segment is not damaged, but its place did not answer
};
using SegmentEntriesPtr = std::unique_ptr<SegmentEntries>;

// Makes the device begin to read all block heads at once.
void BeginReadingHeads(const SegmentReader& reader) {
  const auto table = reader.ReadBlockTable();
  if (!table.ok()) return;  // reading ahead only makes the replay faster
  for (const BlockPlace& place : table->blocks)
    reader.file().BeginRead(place.block_offset, kHeadBytes);
}

// Returns how far the segment's blocks extend.
ScanOptions ExtentOf(const SegmentReader& reader, const SegmentRecord& record) {
  ScanOptions options;
  options.committed_length = record.length;
  if (!record.sealed) return options;
  // The blocks may be whole even if the footer is damaged. In this case scan as far as blocks can
  // extend.
  const auto trailer = reader.ReadTrailer();
  options.committed_length = options.end =
      trailer.ok() ? trailer->data_end : LastDataEnd(record.length, record.chunks);
  return options;
}

// For the lost ordinals [begin, end), appends to read.lost the chunks for which the footer has a
// name prefix and a tag. The footer has neither for a chunk that was lost before the segment was
// sealed.
void NoteLost(const SegmentFooter& footer, uint32_t begin, uint32_t end, SegmentEntries& read) {
  DamagedBlock lost{read.id, begin, {}};
  const auto pass = [&](uint32_t next) {
    if (!lost.chunks.empty()) read.lost.push_back(std::move(lost));
    lost = {read.id, next, {}};
  };
  for (uint32_t ordinal = begin; ordinal < std::min<size_t>(end, footer.chunks.size()); ++ordinal) {
    const DamagedChunk chunk{footer.chunks[ordinal].name_prefix, footer.chunks[ordinal].tag};
    if (lost.chunks.size() == DamagedBlock::kMostChunks) pass(ordinal);
    if (chunk.known()) {
      lost.chunks.push_back(chunk);
    } else {
      pass(ordinal + 1);
    }
  }
  pass(end);
}

SegmentEntriesPtr ReadSegment(SegmentStore& segments, const StoreIdentity& identity, SegmentId id,
                              const SegmentRecord& record, uint64_t durable_sequence) {
  auto read = std::make_unique<SegmentEntries>();
  read->id = id;
  const BlockCodec codec;
  const SegmentIdentity segment{identity.uuid, id};
  const auto reader = SegmentReader::Open(segments, segment, codec);
  if (!reader.ok()) {
    read->damage.push_back(reader.status().ToString());
    return read;
  }
  ScanOptions options = ExtentOf(**reader, record);
  options.on_damage = [&read](uint64_t, uint64_t, const Status& cause) {
    read->damage.push_back(cause.ToString());
    return Status::Ok();
  };
  BeginReadingHeads(**reader);
  read->entries.reserve(std::min<uint64_t>(record.chunks, kMaxSegmentChunks));
  std::vector<std::pair<uint32_t, uint32_t>> gaps;  // of ordinals
  uint32_t next = 0;
  const auto scanned =
      ScanBlocks((*reader)->file(), segment, options, [&](const BlockHead& head, uint32_t offset) {
        if (head.first_ordinal > next) gaps.emplace_back(next, head.first_ordinal);
        next = head.end_ordinal();
        if (head.sequence <= durable_sequence) return Status::Ok();
        uint32_t ordinal = head.first_ordinal;
        for (const ChunkRecord& chunk : head.records)
          read->entries.push_back({chunk.name, {id, ordinal++, offset}});
        read->blocks.push_back({head.sequence, static_cast<uint32_t>(head.records.size())});
        return Status::Ok();
      });
  if (!scanned.ok()) read->damage.push_back(scanned.status().ToString());
  if (next < record.chunks) gaps.emplace_back(next, kMaxSegmentChunks);
  if (gaps.empty()) return read;
  const auto footer = (*reader)->ReadFooter();
  if (!footer.ok()) {
    footer.status().IgnoreError("then the lost chunks are unknown");
    return read;
  }
  for (const auto& [begin, end] : gaps) NoteLost(*footer, begin, end, *read);
  return read;
}

// A missing answer must not pass for damage: the index would lack the entries permanently.
SegmentEntriesPtr ReadAnswered(SegmentStore& segments, const StoreIdentity& identity, SegmentId id,
                               const SegmentRecord& record, const ReplayOptions& options,
                               const std::atomic<bool>& ended) {
  while (true) {
    const uint64_t before = segments.UnansweredReads();
    auto read = ReadSegment(segments, identity, id, record, options.durable_sequence);
    read->unanswered = CheckAnswered(segments, before);
    if (read->unanswered.ok() || ended) return read;
    if (!options.wait_for_answer || !options.wait_for_answer()) return read;
  }
}

// Reads segments in the order given, some of them ahead of the caller.
class SegmentQueue {
 public:
  using Read = std::function<SegmentEntriesPtr(size_t number)>;

  SegmentQueue(size_t count, unsigned threads, Read read)
      : count_(count), most_ahead_(threads * kAheadPerThread), read_(std::move(read)) {
    // If there is only one segment, Take reads it on the caller's thread.
    if (count < 2) return;
    for (size_t i = 0; i < std::min<size_t>(threads, count); ++i)
      threads_.emplace_back([this] { Work(); });
  }
  ~SegmentQueue() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  SegmentQueue(const SegmentQueue&) = delete;
  SegmentQueue& operator=(const SegmentQueue&) = delete;

  // Returns the next segment; call it `count` times.
  SegmentEntriesPtr Take() {
    if (threads_.empty()) return read_(taken_++);
    MutexLock lock(mutex_);
    while (ahead_.empty() || !ahead_.front()) changed_.Wait(mutex_);
    SegmentEntriesPtr first = std::move(ahead_.front());
    ahead_.pop_front();
    ++taken_;
    changed_.NotifyAll();
    return first;
  }

 private:
  void Work() {
    while (true) {
      size_t number = 0;
      {
        MutexLock lock(mutex_);
        while (!stopping_ && taken_ + ahead_.size() < count_ && ahead_.size() >= most_ahead_)
          changed_.Wait(mutex_);
        number = taken_ + ahead_.size();
        if (stopping_ || number >= count_) return;
        ahead_.emplace_back();
      }
      SegmentEntriesPtr read = read_(number);
      MutexLock lock(mutex_);
      ahead_[number - taken_] = std::move(read);
      changed_.NotifyAll();
    }
  }

  const size_t count_;
  const size_t most_ahead_;
  const Read read_;
  Mutex mutex_;
  CondVar changed_;
  size_t taken_ = 0;  // changed under the mutex if there are threads
  // Null: a thread is reading this segment.
  std::deque<SegmentEntriesPtr> ahead_ SILTFS_GUARDED_BY(mutex_);
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// Passes entries to `put` in batches, each with the sequence of the batch's first block. If a batch
// had the sequence of its last block, the index could count the batch's earlier blocks as durable
// before their entries are durable.
class Batches {
 public:
  explicit Batches(const ReplayOptions& options) : options_(options) {
    batch_.reserve(options.batch_entries + kMaxBlockChunks);
  }

  Status Add(std::span<const IndexEntry> entries, uint64_t sequence) {
    // If segment records are damaged, segments may come in the wrong order. The sequences that are
    // passed to `put` must not decrease even then.
    last_ = std::max(last_, sequence);
    if (batch_.empty()) first_ = last_;
    batch_.insert(batch_.end(), entries.begin(), entries.end());
    return batch_.size() < options_.batch_entries ? Status::Ok() : Pass();
  }
  Status Finish() {
    if (last_ == 0) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(Pass());
    return options_.put({}, last_);
  }

 private:
  Status Pass() {
    if (batch_.empty()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(options_.put(batch_, first_));
    batch_.clear();
    return Status::Ok();
  }

  const ReplayOptions& options_;
  std::vector<IndexEntry> batch_;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
};

// Merges the blocks of several segments with overlapping sequences into the order of the sequences.
class Merge {
 public:
  explicit Merge(const ReplayOptions& options) : options_(options), batches_(options) {}

  bool empty() const { return heap_.empty(); }
  uint64_t next_sequence() const { return heap_.top().sequence; }

  Status Enter(SegmentEntriesPtr segment) {
    SILTFS_RETURN_IF_ERROR(std::move(segment->unanswered));
    for (const std::string& sentence : segment->damage) options_.report(sentence);
    for (const DamagedBlock& lost : segment->lost) {
      if (options_.on_damage) SILTFS_RETURN_IF_ERROR(options_.on_damage(lost));
    }
    if (segment->blocks.empty()) return Done(segment->id);
    const uint64_t first = segment->blocks.front().sequence;
    heap_.push({first, std::make_shared<Cursor>(Cursor{std::move(segment), 0, 0})});
    return Status::Ok();
  }
  // Passes the next block to the batches.
  Status Advance() {
    const Next next = heap_.top();
    heap_.pop();
    Cursor& cursor = *next.cursor;
    const SegmentEntries::Block& block = cursor.segment->blocks[cursor.block++];
    const std::span<const IndexEntry> entries(cursor.segment->entries);
    SILTFS_RETURN_IF_ERROR(
        batches_.Add(entries.subspan(cursor.entry, block.entries), block.sequence));
    cursor.entry += block.entries;
    if (cursor.block == cursor.segment->blocks.size()) return Done(cursor.segment->id);
    heap_.push({cursor.segment->blocks[cursor.block].sequence, next.cursor});
    return Status::Ok();
  }
  Status Finish() { return batches_.Finish(); }

 private:
  struct Cursor {
    SegmentEntriesPtr segment;
    size_t block = 0;
    size_t entry = 0;
  };
  struct Next {
    uint64_t sequence = 0;
    std::shared_ptr<Cursor> cursor;

    bool operator<(const Next& other) const { return sequence > other.sequence; }  // least on top
  };

  Status Done(SegmentId id) {
    return options_.segment_done ? options_.segment_done(id) : Status::Ok();
  }

  const ReplayOptions& options_;
  Batches batches_;
  std::priority_queue<Next> heap_;
};

Status MergeAll(const SegmentRecords& wanted, SegmentQueue& queue, const ReplayOptions& options) {
  Merge merge(options);
  for (size_t taken = 0; taken < wanted.size() || !merge.empty();) {
    const bool reached =
        taken < wanted.size() &&
        (merge.empty() || wanted[taken].second.first_sequence <= merge.next_sequence());
    if (reached) {
      SILTFS_RETURN_IF_ERROR(merge.Enter(queue.Take()));
      ++taken;
    } else {
      SILTFS_RETURN_IF_ERROR(merge.Advance());
    }
  }
  return merge.Finish();
}

}  // namespace

ReplayedEntries::ReplayedEntries(ChunkIndex& index, const SegmentRecords& records,
                                 const std::vector<SegmentId>& secondary, const DamageList& damage)
    : index_(index), secondary_(secondary), damage_(damage) {
  if (secondary.empty()) return;
  for (const auto& [id, record] : records) chunks_in_[id] = record.chunks;
}

bool ReplayedEntries::LeadsElsewhere(const std::optional<Location>& place,
                                     SegmentId segment) const {
  if (!place || place->segment == segment) return false;
  const auto chunks = chunks_in_.find(place->segment);
  return chunks != chunks_in_.end() && place->ordinal < chunks->second &&
         !damage_.Contains(place->segment, place->ordinal);
}

Status ReplayedEntries::Put(std::span<const IndexEntry> entries, uint64_t sequence) {
  std::vector<IndexEntry> first;
  std::vector<IndexEntry> noted;
  std::vector<ChunkName> names;
  for (const IndexEntry& entry : entries) {
    if (!secondary_.Contains(entry.location.segment)) {
      first.push_back(entry);
    } else {
      noted.push_back(entry);
      names.push_back(entry.name);
    }
  }
  if (noted.empty()) return index_.Put(entries, sequence);
  if (!first.empty()) SILTFS_RETURN_IF_ERROR(index_.Put(first, sequence));
  std::vector<std::optional<Location>> places(names.size());
  SILTFS_RETURN_IF_ERROR(index_.Get(names, places));
  std::vector<IndexEntry> wanted;
  for (size_t i = 0; i < noted.size(); ++i) {
    if (!LeadsElsewhere(places[i], noted[i].location.segment)) wanted.push_back(noted[i]);
  }
  return index_.Put(wanted, sequence);
}

Status ReplayBlocks(SegmentStore& segments, const StoreIdentity& identity,
                    const SegmentRecords& records, const ReplayOptions& options) {
  SegmentRecords wanted;
  for (const auto& numbered : records) {
    if (numbered.second.chunks > 0 && numbered.second.last_sequence > options.durable_sequence)
      wanted.push_back(numbered);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
    return a.second.first_sequence < b.second.first_sequence;
  });
  std::atomic<bool> ended = false;
  SegmentQueue queue(wanted.size(), std::max(1u, options.threads), [&](size_t number) {
    const auto& [id, record] = wanted[number];
    return ReadAnswered(segments, identity, id, record, options, ended);
  });
  Status merged = MergeAll(wanted, queue, options);
  ended = true;  // the queue waits for its threads
  return merged;
}

}  // namespace siltfs
