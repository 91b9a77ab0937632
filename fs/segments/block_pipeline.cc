#include "fs/segments/block_pipeline.h"

#include <algorithm>
#include <utility>

namespace siltfs {
namespace {

bool LeadsTo(const Location& entry, const Location& place) {
  return entry.segment == place.segment && entry.ordinal == place.ordinal;
}

}  // namespace

BlockPipeline::BlockPipeline(SegmentLog& log, ChunkIndex& index, const BlockCodec& codec,
                             const Options& options)
    : log_(log), index_(index), codec_(codec), options_(options) {
  for (size_t i = 0; i < options_.worker_threads; ++i) workers_.emplace_back([this] { Work(); });
}

BlockPipeline::~BlockPipeline() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

uint64_t BlockPipeline::Now() {
  MutexLock lock(mutex_);
  return next_append_;
}

Result<BlockPipeline::Outcome> BlockPipeline::Add(SegmentKind kind, const ChunkRecord& record,
                                                  ByteView bytes, uint64_t looked_at) {
  if (IsStuck()) SILTFS_RETURN_IF_ERROR(AppendAgain());
  MutexLock lock(mutex_);
  for (;;) {
    if (!failure_.ok()) return failure_;
    if (auto found = pending_.find(record.name); found != pending_.end()) {
      return found->second.tag == record.tag ? Outcome::kDuplicate : Outcome::kCollision;
    }
    if (looked_at < next_append_ - remembered_.size()) return Outcome::kLookAgain;
    if (bytes_on_the_way_ < options_.capacity_bytes) break;
    SILTFS_RETURN_IF_ERROR(full_);
    progress_.Wait(mutex_);
  }
  BlockPtr& open = open_[static_cast<size_t>(kind)];
  if (open && (open->content.plain.size() + bytes.size() > kMaxBlockPlainBytes ||
               open->content.records.size() == kMaxBlockChunks)) {
    Submit(std::exchange(open, nullptr));
  }
  if (!open) open = NewBlock(kind, options_.block_plain_bytes);
  if (open->content.plain.size() + bytes.size() > open->content.plain.capacity()) {
    open = Grown(*open, open->content.plain.size() + bytes.size());
  }
  PlainBlock& content = open->content;
  pending_[record.name] = {record.tag, static_cast<uint32_t>(content.plain.size()), record.length,
                           open};
  content.plain.insert(content.plain.end(), bytes.begin(), bytes.end());
  content.records.push_back(record);
  if (IsComplete(*open)) Submit(std::exchange(open, nullptr));
  return Outcome::kAdded;
}

BlockPipeline::BlockPtr BlockPipeline::NewBlock(SegmentKind kind, size_t plain_bytes) const {
  BlockPtr block = std::make_shared<Block>();
  block->kind = kind;
  block->content.plain.reserve(
      std::min<size_t>(plain_bytes + options_.chunk_max, kMaxBlockPlainBytes));
  return block;
}

BlockPipeline::BlockPtr BlockPipeline::Grown(const Block& block, size_t plain_bytes) {
  BlockPtr grown = NewBlock(block.kind, std::max(plain_bytes, options_.idle_block_plain_bytes));
  grown->content.plain.insert(grown->content.plain.end(), block.content.plain.begin(),
                              block.content.plain.end());
  grown->content.records = block.content.records;
  for (const ChunkRecord& record : grown->content.records) pending_[record.name].block = grown;
  return grown;
}

bool BlockPipeline::IsComplete(const Block& block) const {
  const size_t size = block.content.plain.size();
  if (size < options_.block_plain_bytes) return false;
  const size_t most = options_.idle_block_plain_bytes;
  return block.kind != SegmentKind::kData || size >= most ||
         bytes_on_the_way_ > options_.worker_threads * most;
}

void BlockPipeline::Submit(BlockPtr block) {
  block->ticket = next_ticket_++;
  bytes_on_the_way_ += block->content.plain.size();
  submitted_.push_back(std::move(block));
  work_.NotifyOne();
}

std::optional<ChunkTag> BlockPipeline::FindPending(const ChunkName& name) {
  MutexLock lock(mutex_);
  auto found = pending_.find(name);
  if (found == pending_.end()) return std::nullopt;
  return found->second.tag;
}

std::optional<BlockPipeline::PendingBytes> BlockPipeline::GetPending(const ChunkName& name) {
  MutexLock lock(mutex_);
  auto found = pending_.find(name);
  if (found == pending_.end()) return std::nullopt;
  const Pending& pending = found->second;
  if (!pending.block) return std::nullopt;
  return PendingBytes{pending.block, ByteView(pending.block->content.plain.data() + pending.offset,
                                              pending.length)};
}

Status BlockPipeline::Flush() {
  uint64_t end;
  bool full;
  {
    MutexLock lock(mutex_);
    for (BlockPtr& open : open_) {
      if (open) Submit(std::exchange(open, nullptr));
    }
    end = next_ticket_;
    full = !full_.ok();
  }
  if (full) SILTFS_RETURN_IF_ERROR(AppendAgain());
  MutexLock lock(mutex_);
  while (failure_.ok() && full_.ok() && next_append_ < end) progress_.Wait(mutex_);
  if (!failure_.ok()) return failure_;
  return next_append_ < end ? full_ : Status::Ok();
}

void BlockPipeline::Work() {
  for (;;) {
    BlockPtr block;
    {
      MutexLock lock(mutex_);
      while (submitted_.empty() && !stopping_) work_.Wait(mutex_);
      if (stopping_) return;
      block = std::move(submitted_.front());
      submitted_.pop_front();
    }
    EncodedBlock encoded;
    Status status = Encode(*block, encoded);
    {
      MutexLock lock(mutex_);
      if (!status.ok()) {
        failure_ = log_.Fail(status);
        progress_.NotifyAll();
        continue;
      }
      encoded_[block->ticket] = {block, std::move(encoded), std::nullopt};
    }
    AppendReady();
  }
}

Status BlockPipeline::Encode(const Block& block, EncodedBlock& encoded) const {
  // Does not change the block, because other threads may read pending chunks from it at this time.
  Compression compression = options_.compression;
  if (block.kind == SegmentKind::kRecipeNodes) compression.codec = BlockCodecId::kNone;
  auto result = codec_.Encode(block.content, compression);
  if (!result.ok()) return std::move(result).status();
  encoded = std::move(result).value();
  return Status::Ok();
}

void BlockPipeline::AppendReady() {
  for (;;) {
    Ready ready;
    {
      MutexLock lock(mutex_);
      if (appending_ || !failure_.ok()) return;
      auto next = encoded_.find(next_append_);
      if (next == encoded_.end()) return;
      ready = std::move(next->second);
      encoded_.erase(next);
      appending_ = true;
    }
    Status status = AppendAndIndex(ready);
    MutexLock lock(mutex_);
    appending_ = false;
    const bool full = status.Is(StatusCode::kNoSpace);
    if (!status.ok() && !full) {
      failure_ = log_.Fail(status);
    } else if (full) {
      encoded_[ready.block->ticket] = std::move(ready);
    } else {
      ++next_append_;
      bytes_on_the_way_ -= ready.block->content.plain.size();
      Remember(*ready.block);
    }
    full_ = full ? std::move(status) : Status::Ok();
    full_.IgnoreError("callers that wait or try again get it");
    progress_.NotifyAll();
    if (full) return;
  }
}

bool BlockPipeline::IsStuck() {
  MutexLock lock(mutex_);
  return !full_.ok() && bytes_on_the_way_ >= options_.capacity_bytes;
}

Status BlockPipeline::AppendAgain() {
  {
    // A thread that is appending now may have found the disk full before space became free. So wait
    // until this thread is done, and then try again.
    MutexLock lock(mutex_);
    while (appending_) progress_.Wait(mutex_);
  }
  AppendReady();
  MutexLock lock(mutex_);
  while (appending_) progress_.Wait(mutex_);
  return failure_.ok() ? full_ : failure_;
}

void BlockPipeline::Remember(const Block& block) {
  std::vector<ChunkName>& names = remembered_.emplace_back();
  for (const ChunkRecord& record : block.content.records) {
    names.push_back(record.name);
    pending_[record.name].block = nullptr;
  }
  remembered_chunks_ += names.size();
  while (remembered_chunks_ > kRememberedChunks) {
    for (const ChunkName& name : remembered_.front()) pending_.erase(name);
    remembered_chunks_ -= remembered_.front().size();
    remembered_.pop_front();
  }
}

void BlockPipeline::ForgetAppended() {
  MutexLock lock(mutex_);
  for (const std::vector<ChunkName>& names : remembered_) {
    for (const ChunkName& name : names) pending_.erase(name);
  }
  remembered_.clear();
  remembered_chunks_ = 0;
}

bool BlockPipeline::IsNotIndexed() const {
  const auto next = encoded_.find(next_append_);
  return next != encoded_.end() && next->second.appended;
}

Status BlockPipeline::TakeTurn() {
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (appending_ && failure_.ok()) progress_.Wait(mutex_);
      if (!failure_.ok()) return failure_;
      if (!IsNotIndexed()) {
        appending_ = true;
        return Status::Ok();
      }
    }
    SILTFS_RETURN_IF_ERROR(AppendAgain());
  }
}

Status BlockPipeline::InTurn(const std::function<Status()>& work) {
  SILTFS_RETURN_IF_ERROR(TakeTurn());
  Status status = work();
  {
    MutexLock lock(mutex_);
    appending_ = false;
    if (!status.ok() && !status.Is(StatusCode::kNoSpace)) failure_ = status = log_.Fail(status);
    progress_.NotifyAll();
  }
  AppendReady();  // appends blocks that became ready during the turn
  return status;
}

Result<AppendedBlock> BlockPipeline::AppendMoved(SegmentKind kind, const EncodedBlock& block) {
  AppendedBlock appended;
  SILTFS_RETURN_IF_ERROR(InTurn([&]() -> Status {
    SILTFS_ASSIGN_OR_RETURN(appended, log_.Append(MovedStreamOf(kind), block));
    return Status::Ok();
  }));
  return appended;
}

// Every thread that puts entries does so in its turn, so no entry changes between Get and Put.
Status BlockPipeline::MoveEntries(std::span<const Move> moves,
                                  const std::function<bool(SegmentId)>& gone) {
  return InTurn([&]() -> Status {
    std::vector<ChunkName> names;
    for (const Move& move : moves) names.push_back(move.name);
    std::vector<std::optional<Location>> places(moves.size());
    SILTFS_RETURN_IF_ERROR(index_.Get(names, places));
    std::vector<IndexEntry> entries;
    for (size_t i = 0; i < moves.size(); ++i) {
      const Move& move = moves[i];
      const bool leads = places[i] && !LeadsTo(*places[i], move.from) &&
                         !(move.misled && LeadsTo(*places[i], *move.misled)) &&
                         !gone(places[i]->segment);
      if (!leads) entries.push_back({move.name, move.to});
    }
    if (entries.empty()) return Status::Ok();
    const uint64_t sequence = log_.TakeSequence();
    Status put = index_.Put(entries, sequence);
    if (!put.Is(StatusCode::kNoSpace)) return put;
    // The index does not need these entries: for each name it leads to the old place, or already to
    // the new one. So this PutAgain abandons the entries that are missing.
    SILTFS_RETURN_IF_ERROR(index_.PutAgain({}, sequence));
    return put;
  });
}

Result<uint64_t> BlockPipeline::EndSequence() {
  uint64_t last = 0;
  SILTFS_RETURN_IF_ERROR(InTurn([&] {
    const uint64_t next = log_.TakeSequence();
    last = next - 1;
    return index_.Put({}, next);
  }));
  return last;
}

Status BlockPipeline::AppendAndIndex(Ready& ready) {
  const Block& block = *ready.block;
  if (!ready.appended) {
    SILTFS_ASSIGN_OR_RETURN(ready.appended, log_.Append(NewStreamOf(block.kind), ready.encoded));
  }
  const AppendedBlock& appended = *ready.appended;
  std::vector<IndexEntry> entries;
  entries.reserve(block.content.records.size());
  uint32_t ordinal = appended.place.first_ordinal;
  for (const ChunkRecord& record : block.content.records) {
    entries.push_back({record.name, {appended.segment, ordinal++, appended.place.block_offset}});
  }
  const Status put = ready.put_failed ? index_.PutAgain(entries, appended.sequence)
                                      : index_.Put(entries, appended.sequence);
  ready.put_failed = put.Is(StatusCode::kNoSpace);
  return put;
}

}  // namespace siltfs
