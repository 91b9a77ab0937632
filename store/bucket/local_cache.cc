#include "store/bucket/local_cache.h"

#include <algorithm>
#include <utility>

#include "store/bucket/local_cache_unit.h"

namespace siltfs {
namespace {

constexpr size_t kMostOpenFiles = 128;

}  // namespace

LocalCache::LocalCache(Env& env, std::string directory, Limits limits)
    : env_(env), directory_(std::move(directory)), limits_(limits) {
  counters_.limit_bytes = limits.bytes;
}

LocalCache::~LocalCache() = default;

// --- Units.

LocalCache::Unit* LocalCache::FindUnit(const ContentId& id) {
  const auto found = units_.find(id);
  return found == units_.end() || found->second->state == State::kLeaving ? nullptr
                                                                          : found->second.get();
}

LocalCache::Unit& LocalCache::AddUnit(const SegmentContent& content, State state, uint64_t bytes) {
  auto& unit = units_[content.id];
  unit = std::make_unique<Unit>();
  unit->content = content;
  unit->state = state;
  unit->bytes = bytes;
  ++counters_.files;
  if (state == State::kImage) Enter(*unit, false);
  return *unit;
}

void LocalCache::EraseUnit(Unit& unit) {
  counters_.used_bytes -= unit.bytes;
  --counters_.files;
  const ContentId id = unit.content.id;
  units_.erase(id);
  changed_.NotifyAll();
}

std::string LocalCache::PathOf(const Unit& unit) const {
  return LocalFilePath(
      directory_, unit.content,
      unit.state == State::kWaiting ? LocalFileKind::kWaiting : LocalFileKind::kImage);
}

Status LocalCache::OpenUnit(Unit& unit) {
  if (unit.state == State::kDetached) return Status::Ok();
  if (unit.file) {
    open_.splice(open_.begin(), open_, unit.open_place);
    return Status::Ok();
  }
  auto file = env_.OpenFile(PathOf(unit), {.mode = OpenMode::kReadWrite});
  // On a medium that is read-only, nothing is filled in anyway.
  if (file.status().Is(StatusCode::kReadOnly))
    file = env_.OpenFile(PathOf(unit), {.mode = OpenMode::kRead});
  if (!file.ok()) return std::move(file).status();
  unit.file = std::move(file).value();
  open_.push_front(&unit);
  unit.open_place = open_.begin();
  if (open_.size() > kMostOpenFiles) CloseUnit(*open_.back());
  return Status::Ok();
}

void LocalCache::CloseUnit(Unit& unit) {
  if (!unit.file || unit.state == State::kDetached) return;
  open_.erase(unit.open_place);
  unit.file = nullptr;  // running reads hold the file themselves
}

Status LocalCache::RemoveUnit(Unit& unit) {
  const bool named = unit.state != State::kDetached;
  if (unit.state != State::kImage) pinned_bytes_ -= unit.bytes;
  Leave(unit);
  const std::string path = PathOf(unit);
  CloseUnit(unit);
  unit.state = State::kLeaving;
  Status removed = Status::Ok();
  if (named) {
    mutex_.Unlock();
    removed = env_.RemoveFile(path);
    mutex_.Lock();
  }
  EraseUnit(unit);
  return removed.Is(StatusCode::kNotFound) ? Status::Ok() : removed;
}

// --- At the start.

void LocalCache::AdoptWaiting(const SegmentContent& content) {
  MutexLock lock(mutex_);
  AddUnit(content, State::kWaiting, content.size);
  counters_.used_bytes += content.size;
  pinned_bytes_ += content.size;
}

void LocalCache::AdoptImage(const SegmentContent& content, uint64_t bytes) {
  MutexLock lock(mutex_);
  const uint64_t counted = std::min(bytes, ObjectBytes(content.size));
  Unit& unit = AddUnit(content, State::kImage, counted);
  counters_.used_bytes += counted;
  unit.unverified.Fill(BlockCount(content.size));
}

// --- Contents that wait for their upload.

void LocalCache::AddWaiting(const SegmentContent& content) {
  MutexLock lock(mutex_);
  AddUnit(content, State::kWaiting, content.size);
}

Result<std::shared_ptr<File>> LocalCache::OpenWaiting(const ContentId& id) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(id);
  if (unit == nullptr || unit->state == State::kImage)
    return Status(StatusCode::kNotFound, "the content does not wait for its upload");
  SILTFS_RETURN_IF_ERROR(OpenUnit(*unit));
  return unit->file;
}

Status LocalCache::MarkUploaded(const ContentId& id, const std::string& trailer) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(id);
  if (unit == nullptr || unit->state != State::kWaiting) return Status::Ok();  // it was removed
  const std::string from = PathOf(*unit);
  // The name has the segment's size, so a trailer behind a waiting content does no harm.
  if (const Status opened = OpenUnit(*unit); opened.ok()) {
    unit->file->Write(unit->content.size, AsBytes(trailer))
        .IgnoreError("the trailer can be fetched");
  }
  SILTFS_RETURN_IF_ERROR(
      env_.Rename(from, LocalFilePath(directory_, unit->content, LocalFileKind::kImage)));
  pinned_bytes_ -= unit->bytes;
  unit->state = State::kImage;
  unit->has_trailer = true;
  unit->intact.Fill(BlockCount(unit->content.size));
  Enter(*unit, false);
  Grow(*unit, trailer.size());
  changed_.NotifyAll();
  return Status::Ok();
}

Status LocalCache::Drop(const ContentId& id) {
  MutexLock lock(mutex_);
  for (;;) {
    const auto found = units_.find(id);
    if (found == units_.end()) return Status::Ok();
    Unit& unit = *found->second;
    if (unit.state != State::kLeaving && unit.fills == 0) return RemoveUnit(unit);
    changed_.Wait(mutex_);
  }
}

Status LocalCache::Detach(const ContentId& id) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(id);
  if (unit == nullptr || unit->state != State::kWaiting) return Status::Ok();
  const std::string path = PathOf(*unit);
  SILTFS_RETURN_IF_ERROR(OpenUnit(*unit));
  open_.erase(unit->open_place);
  unit->state = State::kDetached;
  return env_.RemoveFile(path);
}

// --- Blocks.

LocalCache::Hit LocalCache::HitOf(Unit& unit, uint32_t block) {
  if (unit.state != State::kImage) return {Presence::kPresent, true, unit.file};
  if (unit.intact.Contains(block)) return {Presence::kPresent, false, unit.file};
  if (unit.unverified.Contains(block)) return {Presence::kUnverified, false, unit.file};
  return {Presence::kAbsent, false, unit.file};
}

Result<LocalCache::Hit> LocalCache::Use(const SegmentContent& content, uint32_t block, bool again) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(content.id);
  if (unit == nullptr) {
    ++counters_.misses;
    return Hit{};
  }
  Status opened = OpenUnit(*unit);
  if (!opened.ok() && unit->state != State::kImage) return opened;
  if (!opened.ok()) {  // another program has removed or damaged the file
    ++counters_.misses;
    if (unit->fills == 0) RemoveUnit(*unit).IgnoreError("the file cannot be used anyway");
    return Hit{};
  }
  const Hit hit = HitOf(*unit, block);
  ++(hit.presence == Presence::kPresent ? counters_.hits : counters_.misses);
  if (!again && hit.presence == Presence::kPresent) Touch(*unit, block);
  return hit;
}

void LocalCache::NoteUse(const ContentId& id, uint32_t block) {
  MutexLock lock(mutex_);
  if (Unit* const unit = FindUnit(id)) Touch(*unit, block);
}

LocalCache::Hit LocalCache::Find(const SegmentContent& content, uint32_t block) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(content.id);
  if (unit == nullptr) return {};
  if (const Status opened = OpenUnit(*unit); !opened.ok()) return {};
  return HitOf(*unit, block);
}

void LocalCache::MarkVerified(const ContentId& id, uint32_t block, bool intact) {
  MutexLock lock(mutex_);
  Unit* const unit = FindUnit(id);
  if (unit == nullptr || unit->state != State::kImage) return;
  if (!intact && unit->unverified.Contains(block)) ++counters_.bad_blocks;
  unit->unverified.Remove(block);
  intact ? unit->intact.Add(block) : unit->intact.Remove(block);
}

LocalCache::Unit* LocalCache::BeginFill(const SegmentContent& content, uint64_t bytes,
                                        std::shared_ptr<File>& file) {
  Unit* unit = FindUnit(content.id);
  if (unit != nullptr && unit->state != State::kImage) return nullptr;
  if (waiting_reserves_ > 0) return nullptr;  // writers get the room first
  if (unit != nullptr) ++unit->fills;         // so that it stays while the mutex is unlocked
  const bool room = MakeRoom(bytes, unit == nullptr, unit);
  if (unit != nullptr) --unit->fills;
  changed_.NotifyAll();
  if (!room) return nullptr;
  if (unit == nullptr) {
    if (units_.contains(content.id)) return nullptr;  // came or is leaving meanwhile
    unit = &AddUnit(content, State::kImage, 0);
    const std::string path = PathOf(*unit);
    env_.RemoveFile(path).IgnoreError("usually there is no such file");
    const auto created = env_.OpenFile(path, {.mode = OpenMode::kCreate});
    if (!created.ok()) {
      Leave(*unit);
      EraseUnit(*unit);
      return nullptr;
    }
  }
  if (const Status opened = OpenUnit(*unit); !opened.ok()) return nullptr;
  file = unit->file;
  ++unit->fills;
  // A block that comes again, because its first copy was bad, takes no more space.
  const uint64_t most = ObjectBytes(content.size);
  Grow(*unit, std::min(bytes, most - std::min(unit->bytes, most)));
  return unit;
}

void LocalCache::Fill(const SegmentContent& content, uint64_t offset, ByteView bytes,
                      uint32_t first_block, uint32_t blocks) {
  std::shared_ptr<File> file;
  Unit* unit = nullptr;
  {
    MutexLock lock(mutex_);
    unit = BeginFill(content, bytes.size(), file);
    if (unit == nullptr) {
      ++counters_.refusals;
      return;
    }
  }
  const Status written = file->Write(offset, bytes);
  MutexLock lock(mutex_);
  --unit->fills;
  changed_.NotifyAll();
  if (!written.ok()) {
    ++counters_.refusals;
    return;
  }
  if (blocks == 0) unit->has_trailer = true;
  for (uint32_t block = first_block; block < first_block + blocks; ++block) {
    unit->unverified.Remove(block);
    unit->intact.Add(block);
  }
}

void LocalCache::Store(const SegmentContent& content, uint32_t first, ByteView bytes) {
  Fill(content, uint64_t{first} * kObjectBlockBytes, bytes, first,
       BlockCount(static_cast<uint32_t>(bytes.size())));
}

void LocalCache::StoreTrailer(const SegmentContent& content, ByteView trailer) {
  Fill(content, content.size, trailer, 0, 0);
}

bool LocalCache::HasTrailer(const ContentId& id) {
  MutexLock lock(mutex_);
  const Unit* const unit = FindUnit(id);
  return unit == nullptr || unit->state != State::kImage || unit->has_trailer;
}

bool LocalCache::CanTake(uint64_t bytes) const {
  MutexLock lock(mutex_);
  return !closed_ && waiting_reserves_ == 0 && pinned_bytes_ + bytes <= limits_.bytes;
}

void LocalCache::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

LocalCacheCounters LocalCache::Counters() const {
  MutexLock lock(mutex_);
  return counters_;
}

}  // namespace siltfs
