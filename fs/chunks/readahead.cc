#include "fs/chunks/readahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace siltfs {
namespace {

// Reads of a stream may overtake each other. So a read still belongs to a stream if it begins at
// most this far after the end of the stream's reads, or ends at most this far before this end.
constexpr uint64_t kSlackBytes = 8u << 20;
// A stream ends when it has more gaps than reads in order, and the difference exceeds this number.
constexpr uint64_t kMaxGaps = 4;
// The window, in blocks, of a stream that has just begun.
constexpr size_t kFirstWindow = 4;
// A recipe is walked at most this far ahead of its reader, in units of `stream_bytes`. The walk
// reaches this limit if all chunks ahead lie in a few blocks.
constexpr uint64_t kMaxDistance = 4;
constexpr size_t kMaxBatch = 64;
constexpr uint64_t kNotesPerSweep = 64;

}  // namespace

// The walk through a stream's recipe, ahead of the stream's reads.
struct Readahead::Stream::Walk {
  Walk(NodeStore& nodes, const Recipe& recipe, uint64_t limit_in)
      : reader(nodes, recipe), limit(limit_in) {}

  RecipeReader reader;
  const uint64_t limit;     // end of the part of the file that the recipe describes
  bool placed = false;      // `reader` is at the first entry that was not walked yet
  ChunkReader::Place last;  // of the chunk that was located last
};

Readahead::Readahead(NodeStore& nodes, ChunkReader& reader, const Options& options)
    : nodes_(nodes),
      reader_(reader),
      options_(options),
      total_blocks_(options.total_bytes / std::max<size_t>(options.block_bytes, 1)),
      stream_blocks_(options.stream_bytes / std::max<size_t>(options.block_bytes, 1)) {}

Readahead::~Readahead() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    work_.NotifyAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

size_t Readahead::WeightOf(const ChunkReader::Place& place) const {
  const size_t bytes = std::max<size_t>(options_.block_bytes, 1);
  return std::max<size_t>((place.plain_bytes + bytes / 2) / bytes, 1);
}

size_t Readahead::blocks_ahead() const {
  MutexLock lock(mutex_);
  return ahead_;
}

size_t Readahead::AllowedBlocks(const Stream& stream) const {
  const size_t share = std::max<size_t>(total_blocks_ / std::max<size_t>(walked_, 1), 1);
  const size_t allowed = std::min({stream.window, stream_blocks_, share});
  const size_t others = ahead_ + reserved_ - stream.weight;
  return std::min(allowed, total_blocks_ - std::min(total_blocks_, others));
}

bool Readahead::CanPlan(const Stream& stream) const {
  if (!stream.walk || stream.planning || stream.at_end) return false;
  // Wait until a few blocks can be planned at once.
  const size_t allowed = AllowedBlocks(stream);
  return allowed > 0 && stream.weight + std::max<size_t>(allowed / 4, 1) <= allowed;
}

bool Readahead::HasWork() const {
  for (const StreamPtr& stream : streams_) {
    if (Wanted(*stream) || CanPlan(*stream)) return true;
  }
  return false;
}

Readahead::StreamPtr Readahead::NextWithWork() {
  for (auto stream = streams_.begin(); stream != streams_.end(); ++stream) {
    if (!Wanted(**stream) && !CanPlan(**stream)) continue;
    streams_.splice(streams_.end(), streams_, stream);
    return streams_.back();
  }
  return nullptr;
}

Readahead::StreamPtr Readahead::Find(uint64_t file, uint64_t offset, uint64_t length) {
  StreamPtr near;
  for (const StreamPtr& stream : streams_) {
    if (stream->file != file) continue;
    if (stream->next == offset) return stream;
    if (offset <= stream->next + kSlackBytes && offset + length + kSlackBytes >= stream->next)
      near = stream;
  }
  return near;
}

void Readahead::End(StreamList::iterator stream) {
  if ((*stream)->walk) --walked_;
  ahead_ -= (*stream)->weight;
  (*stream)->weight = 0;
  (*stream)->ahead.clear();
  (*stream)->asked = 0;
  (*stream)->ended = true;
  streams_.erase(stream);
}

void Readahead::DropIdle() {
  auto oldest = streams_.end();
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const auto next = std::next(stream);
    if ((*stream)->last_note + options_.idle_reads < notes_) {
      End(stream);
    } else if (oldest == streams_.end() || (*stream)->last_note < (*oldest)->last_note) {
      oldest = stream;
    }
    stream = next;
  }
  if (streams_.size() >= options_.streams) End(oldest);
}

void Readahead::Advance(Stream& stream, uint64_t offset, uint64_t length) {
  stream.last_note = notes_;
  if (offset == stream.next) {
    ++stream.in_order;
    stream.window = std::clamp(stream.window * 2, kFirstWindow, stream_blocks_);
  } else if (offset > stream.next) {
    ++stream.gaps;
  }
  stream.next = std::max(stream.next, offset + length);
  // Blocks that the reader has reached are no longer ahead. This includes the block of which it has
  // read only a part.
  while (!stream.ahead.empty() && stream.ahead.front().offset < stream.next) {
    ahead_ -= stream.ahead.front().weight;
    stream.weight -= stream.ahead.front().weight;
    stream.ahead.pop_front();
    if (stream.asked > 0) --stream.asked;
  }
}

void Readahead::Note(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                     uint64_t length) {
  if (options_.threads == 0 || total_blocks_ == 0 || stream_blocks_ == 0 || length == 0) return;
  MutexLock lock(mutex_);
  if (++notes_ % kNotesPerSweep == 0) DropIdle();
  StreamPtr stream = Find(file, offset, length);
  if (!stream) {
    DropIdle();
    stream = std::make_shared<Stream>();
    stream->file = file;
    stream->next = offset + length;
    stream->last_note = notes_;
    streams_.push_back(std::move(stream));
    return;
  }
  Advance(*stream, offset, length);
  const bool over = stream->gaps > stream->in_order + kMaxGaps || stream->next >= limit;
  if (over) End(std::find(streams_.begin(), streams_.end(), stream));
  if (!over && !stream->walk && stream->in_order > 0) {
    stream->walk = std::make_shared<Stream::Walk>(nodes_, recipe, limit);
    ++walked_;
    if (threads_.empty()) {
      for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
    }
  }
  // Another stream may use the room that this one has given up.
  if (HasWork()) work_.NotifyAll();
}

void Readahead::Forget(uint64_t file) {
  MutexLock lock(mutex_);
  for (auto stream = streams_.begin(); stream != streams_.end();) {
    const auto next = std::next(stream);
    if ((*stream)->file == file) End(stream);
    stream = next;
  }
  if (HasWork()) work_.NotifyAll();
}

void Readahead::WaitUntilIdle() {
  MutexLock lock(mutex_);
  while (busy_ > 0 || HasWork()) idle_.Wait(mutex_);
}

std::vector<Readahead::Ahead> Readahead::Plan(Stream::Walk& walk, uint64_t from, size_t blocks,
                                              std::vector<ChunkReader::Place> known, bool& at_end) {
  std::vector<Ahead> planned;
  size_t weight = 0;  // of `planned`
  RecipeReader& reader = walk.reader;
  known.push_back(walk.last);
  if (!walk.placed || (reader.Valid() && reader.entry_offset() < from)) {
    // An entry that begins before `from` was read already.
    reader.Seek(from);
    if (reader.Valid() && reader.entry_offset() < from) reader.Next();
    walk.placed = true;
  }
  const uint64_t end = std::min(walk.limit, from + kMaxDistance * options_.stream_bytes);
  std::vector<ChunkName> names;
  std::vector<uint64_t> offsets;
  std::vector<std::optional<ChunkReader::Place>> places;
  while (blocks > weight && reader.Valid() && reader.entry_offset() < end) {
    // Each chunk may lie in a block of its own, so locate no more chunks than blocks are wanted.
    const size_t batch = std::min(blocks - weight, kMaxBatch);
    names.clear();
    offsets.clear();
    for (; names.size() < batch && reader.Valid() && reader.entry_offset() < end; reader.Next()) {
      if (reader.entry().is_hole()) continue;
      names.push_back(reader.entry().name);
      offsets.push_back(reader.entry_offset());
    }
    places.assign(names.size(), std::nullopt);
    reader_.Locate(names, walk.last, places);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!places[i]) continue;
      const auto same = [&](const ChunkReader::Place& place) {
        return place.segment == places[i]->segment && place.block_offset == places[i]->block_offset;
      };
      const auto again = std::find_if(planned.rbegin(), planned.rend(),
                                      [&](const Ahead& ahead) { return same(ahead.place); });
      if (again != planned.rend()) {
        again->last = std::max(again->last, places[i]->ordinal);
        continue;
      }
      // A block that was planned before counts already. It is planned again for the bases of these
      // chunks.
      const bool counted = std::any_of(known.rbegin(), known.rend(), same);
      planned.push_back(
          {offsets[i], *places[i], places[i]->ordinal, counted ? 0 : WeightOf(*places[i])});
      weight += planned.back().weight;
    }
  }
  reader.status().IgnoreError("a read of the damaged part reports it");
  at_end = !reader.Valid() || reader.entry_offset() >= walk.limit;
  return planned;
}

void Readahead::Work() {
  mutex_.Lock();
  for (;;) {
    if (stopping_) break;
    const StreamPtr stream = NextWithWork();
    if (!stream) {
      if (busy_ == 0) idle_.NotifyAll();
      work_.Wait(mutex_);
      continue;
    }
    ++busy_;
    if (Wanted(*stream)) {
      const Ahead ahead = stream->ahead[stream->asked++];
      mutex_.Unlock();
      reader_.Prefetch(ahead.place, ahead.last);
      mutex_.Lock();
    } else {
      stream->planning = true;
      const std::shared_ptr<Stream::Walk> walk = stream->walk;
      const uint64_t from = stream->next;
      const size_t blocks = AllowedBlocks(*stream) - stream->weight;
      std::vector<ChunkReader::Place> known;
      for (const Ahead& ahead : stream->ahead) known.push_back(ahead.place);
      reserved_ += blocks;
      mutex_.Unlock();
      bool at_end = false;
      std::vector<Ahead> planned = Plan(*walk, from, blocks, std::move(known), at_end);
      mutex_.Lock();
      reserved_ -= blocks;
      stream->planning = false;
      stream->at_end = at_end;
      for (const Ahead& ahead : planned) {
        if (stream->ended || ahead.offset < stream->next) continue;
        stream->ahead.push_back(ahead);
        stream->weight += ahead.weight;
        ahead_ += ahead.weight;
      }
      // Plan nothing more until the next read in order.
      if (planned.empty() && !at_end) stream->window = 0;
      if (Wanted(*stream)) work_.NotifyAll();
    }
    --busy_;
  }
  mutex_.Unlock();
}

}  // namespace siltfs
